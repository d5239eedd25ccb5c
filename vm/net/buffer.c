/* SPDX-License-Identifier: MIT
 *
 * vm/net/buffer.c: a pool of buffers, last in first out.
 *
 * In:   takes and unrefs of one loop (no locks). Out: buffers of LIMIT_BUFFER_BYTES, recycled while warm in the
 *       cache, and buffers of LIMIT_BUFFER_BULK_BYTES for streams that fill the small ones; structs without memory
 *       for loans.
 * Invariant: lent = taken - returned; a pool with lent buffers cannot be freed. In DEBUG builds a buffer in the free
 *       list is filled with a pattern that is checked when it is taken again: a write after the last unref is found.
 *       What the pool does not need gives its pages back.
 *       Under AddressSanitizer it is hidden instead, and a read is found too, where it happens.
 */
#include "vm/net/buffer.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/spare.h"

#include <unistd.h>

#define BUFFER_POISON 0xdb

struct buffer_class {
    struct spare_list spare;
    size_t lent_count;
    uint32_t capacity;
};
struct buffer_pool {
    struct buffer_class small;
    struct buffer_class bulk;
    struct buffer_class loan; /* capacity 0: the memory is foreign */
    size_t lent_count;
    size_t lent_bytes; /* of our own memory, not of loans */
};

static void buffer_class_init(struct buffer_class *class, struct spare_watch *watch, uint32_t capacity,
                              uint32_t free_count)
{
    class->capacity = capacity;
    if (capacity)
        spare_init_pages(&class->spare, watch, sizeof(struct buffer) + capacity, free_count,
                         sizeof(struct buffer));
    else
        spare_init(&class->spare, watch, sizeof(struct buffer), free_count);
}

cy_err buffer_pool_new(uint32_t free_count, struct spare_watch *watch, struct buffer_pool **pool_out)
{
    struct buffer_pool *pool = mem_alloc_zeroed(sizeof *pool);
    if (!pool) return CY_ERR(NO_MEMORY);
    /* The same number of bytes may wait in either list. */
    uint32_t bulk_count = free_count / (LIMIT_BUFFER_BULK_BYTES / LIMIT_BUFFER_BYTES) + 1;
    buffer_class_init(&pool->small, watch, LIMIT_BUFFER_BYTES, free_count);
    buffer_class_init(&pool->bulk, watch, LIMIT_BUFFER_BULK_BYTES, bulk_count);
    buffer_class_init(&pool->loan, watch, 0, free_count);
    *pool_out = pool;
    return CY_OK;
}

void buffer_pool_free(struct buffer_pool **pool)
{
    if (!*pool) return;
    CHECK((*pool)->lent_count == 0);
    spare_fini(&(*pool)->small.spare);
    spare_fini(&(*pool)->bulk.spare);
    spare_fini(&(*pool)->loan.spare);
    mem_free(*pool);
    *pool = NULL;
}

static struct buffer *buffer_new(struct buffer_pool *pool, size_t capacity_bytes)
{
    size_t bytes;
    if (capacity_bytes > UINT32_MAX || cy_add_overflows(sizeof(struct buffer), capacity_bytes, &bytes))
        return NULL;
    struct buffer *buffer = mem_alloc(bytes);
    if (!buffer) return NULL;
    buffer->pool = pool;
    buffer->data = (uint8_t *)(buffer + 1);
    buffer->release = NULL;
    buffer->context = NULL;
    buffer->capacity = (uint32_t)capacity_bytes;
    return buffer;
}

static struct buffer *buffer_lend(struct buffer_pool *pool, struct buffer *buffer)
{
    buffer->next = NULL;
    buffer->refs = 1;
    buffer->begin = buffer->end = 0;
    pool->lent_count++;
    pool->lent_bytes += buffer->capacity;
    return buffer;
}

/* What nobody may write to from here on. */
static void buffer_poison(struct buffer *buffer)
{
#if defined(CY_DEBUG) && !MEM_HIDES
    memset(buffer->data, BUFFER_POISON, buffer->capacity);
#else
    (void)buffer;
#endif
}

static void buffer_check_poison(const struct buffer *buffer)
{
#if defined(CY_DEBUG) && !MEM_HIDES
    /* Page by page: one that went back to the system is all zero. */
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)buffer->data;
    for (uintptr_t end = at + buffer->capacity, next; at < end; at = next) {
        next = (at + page_bytes) & ~(page_bytes - 1);
        if (next > end) next = end;
        const uint8_t *bytes = (const uint8_t *)at;
        CHECK(bytes[0] == BUFFER_POISON || (bytes[0] == 0 && next - at == page_bytes));
        CHECK(memcmp(bytes, bytes + 1, next - at - 1) == 0); /* each byte is as the one before it */
    }
#else
    (void)buffer;
#endif
}

static struct buffer *buffer_take_class(struct buffer_pool *pool, struct buffer_class *class)
{
    struct buffer *buffer = spare_take(&class->spare);
    if (buffer) {
        buffer_check_poison(buffer);
    } else {
        buffer = buffer_new(pool, class->capacity);
        if (!buffer) return NULL;
    }
    class->lent_count++;
    return buffer_lend(pool, buffer);
}

struct buffer *buffer_take(struct buffer_pool *pool) { return buffer_take_class(pool, &pool->small); }
struct buffer *buffer_take_bulk(struct buffer_pool *pool)
{
    return buffer_take_class(pool, pool->bulk.lent_count < LIMIT_BUFFERS_BULK ? &pool->bulk : &pool->small);
}

struct buffer *buffer_take_sized(struct buffer_pool *pool, size_t capacity_bytes)
{
    if (capacity_bytes == LIMIT_BUFFER_BYTES) return buffer_take(pool);
    if (capacity_bytes == LIMIT_BUFFER_BULK_BYTES) return buffer_take_class(pool, &pool->bulk);
    struct buffer *buffer = buffer_new(pool, capacity_bytes);
    return buffer ? buffer_lend(pool, buffer) : NULL;
}

struct buffer *buffer_wrap(struct buffer_pool *pool, const uint8_t *data, size_t count,
                           void (*release)(struct buffer *buffer), void *context)
{
    CHECK(release != NULL && count <= UINT32_MAX);
    struct buffer *buffer = buffer_take_class(pool, &pool->loan);
    if (!buffer) return NULL;
    buffer->data = (uint8_t *)(uintptr_t)data;
    buffer->release = release;
    buffer->context = context;
    buffer->end = buffer->capacity = (uint32_t)count;
    return buffer;
}

static struct buffer_class *buffer_class_of(struct buffer *buffer)
{
    struct buffer_pool *pool = buffer->pool;
    if (buffer->capacity == pool->small.capacity) return &pool->small;
    return buffer->capacity == pool->bulk.capacity ? &pool->bulk : &pool->loan;
}

/* The owner of the memory is told; what is left is a struct of the loan class. */
static void buffer_end_loan(struct buffer *buffer)
{
    buffer->release(buffer);
    buffer->data = (uint8_t *)(buffer + 1);
    buffer->release = NULL;
    buffer->context = NULL;
    buffer->capacity = 0;
}

static void buffer_return(struct buffer *buffer)
{
    if (CY_UNLIKELY(buffer_is_foreign(buffer))) buffer_end_loan(buffer);
    struct buffer_pool *pool = buffer->pool;
    CHECK(pool->lent_count > 0);
    pool->lent_count--;
    pool->lent_bytes -= buffer->capacity;
    struct buffer_class *class = buffer_class_of(buffer);
    if (buffer->capacity != class->capacity) {
        mem_free(buffer);
        return;
    }
    class->lent_count--;
    buffer_poison(buffer);
    spare_put(&class->spare, buffer);
}

void buffer_unref(struct buffer **buffer)
{
    struct buffer *which = *buffer;
    *buffer = NULL;
    if (!which) return;
    CHECK(which->refs > 0);
    DCHECK(which->begin <= which->end && which->end <= which->capacity);
    if (--which->refs == 0) buffer_return(which);
}

size_t buffer_pool_lent(const struct buffer_pool *pool) { return pool->lent_count; }
size_t buffer_pool_lent_bytes(const struct buffer_pool *pool) { return pool->lent_bytes; }

#undef BUFFER_POISON
