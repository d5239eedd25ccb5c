/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_memory.c: see h2_memory.h.
 *
 *     [class index, bytes asked for][the block that nghttp2 sees ...]
 */
#include "vm/http/h2_memory.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"

#include <string.h>

#define H2_MEMORY_SMALLEST_BYTES 32

struct h2_memory_block {
    void *next;           /* while free: the list's */
    uint32_t class_index; /* H2_MEMORY_CLASSES: of no class */
    uint32_t bytes;       /* that its owner may use, when it is of no class */
};
_Static_assert(sizeof(struct h2_memory_block) % 16 == 0, "what lies behind it is aligned for everything");

static size_t h2_memory_class_bytes(uint32_t class_index)
{
    return (size_t)H2_MEMORY_SMALLEST_BYTES << class_index;
}

static uint32_t h2_memory_class(size_t bytes)
{
    uint32_t class_index = 0;
    while (class_index < H2_MEMORY_CLASSES && h2_memory_class_bytes(class_index) < bytes) class_index++;
    return class_index;
}

static void *h2_memory_alloc(size_t bytes, void *context)
{
    struct h2_memory *memory = context;
    if (bytes > UINT32_MAX / 2) return NULL;
    uint32_t class_index = h2_memory_class(bytes);
    struct h2_memory_block *block = NULL;
    if (class_index < H2_MEMORY_CLASSES) {
        bytes = h2_memory_class_bytes(class_index);
        block = spare_take(&memory->spare[class_index]);
    }
    if (!block) block = mem_alloc(sizeof *block + bytes);
    if (!block) return NULL;
    block->class_index = class_index;
    block->bytes = (uint32_t)bytes;
    memory->lent_count++;
    return block + 1;
}

static void h2_memory_free(void *pointer, void *context)
{
    struct h2_memory *memory = context;
    if (!pointer) return;
    struct h2_memory_block *block = (struct h2_memory_block *)pointer - 1;
    CHECK(memory->lent_count > 0);
    memory->lent_count--;
    if (block->class_index < H2_MEMORY_CLASSES)
        spare_put(&memory->spare[block->class_index], block);
    else
        mem_free(block);
}

static void *h2_memory_calloc(size_t count, size_t size, void *context)
{
    size_t bytes;
    if (cy_mul_overflows(count, size, &bytes)) return NULL;
    void *pointer = h2_memory_alloc(bytes, context);
    if (pointer) memset(pointer, 0, bytes);
    return pointer;
}

static void *h2_memory_realloc(void *pointer, size_t bytes, void *context)
{
    if (!pointer) return h2_memory_alloc(bytes, context);
    const struct h2_memory_block *block = (struct h2_memory_block *)pointer - 1;
    if (bytes <= block->bytes) return pointer;
    void *larger = h2_memory_alloc(bytes, context);
    if (!larger) return NULL;
    memcpy(larger, pointer, block->bytes);
    h2_memory_free(pointer, context);
    return larger;
}

void h2_memory_init(struct h2_memory *memory, struct spare_watch *watch)
{
    memset(memory, 0, sizeof *memory);
    for (uint32_t i = 0; i < H2_MEMORY_CLASSES; i++) {
        size_t bytes = h2_memory_class_bytes(i);
        spare_init(&memory->spare[i], watch, sizeof(struct h2_memory_block) + bytes,
                   (uint32_t)(LIMIT_HTTP2_MEMORY_FREE_BYTES / H2_MEMORY_CLASSES / bytes));
    }
    memory->library =
        (nghttp2_mem){memory, h2_memory_alloc, h2_memory_free, h2_memory_calloc, h2_memory_realloc};
}

void h2_memory_fini(struct h2_memory *memory)
{
    CHECK(memory->lent_count == 0);
    for (size_t i = 0; i < H2_MEMORY_CLASSES; i++) spare_fini(&memory->spare[i]);
}

#undef H2_MEMORY_SMALLEST_BYTES
