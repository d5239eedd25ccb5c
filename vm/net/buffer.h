/* SPDX-License-Identifier: MIT
 *
 * vm/net/buffer.h: the pool buffers that bytes travel in.
 *
 * In:   a pool per loop. Out: counted buffers of LIMIT_BUFFER_BYTES, and counted loans of memory that is somebody
 *       else's (a cached file, a document's body), so that it travels without a copy.
 * Ownership: a receive completes with a buffer whose one reference belongs to the receiver. Views into it (a request
 *       head) keep a reference. Idle connections hold none.
 *       A wrapped buffer is read only: whoever moves bytes inside a buffer looks at buffer_is_foreign first.
 * Invariant: begin <= end <= capacity. Bytes in [begin, end) are not yet consumed.
 */
#ifndef CY_NET_BUFFER_H
#define CY_NET_BUFFER_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

struct buffer_pool;
struct spare_watch;

struct buffer {
    struct buffer *next; /* for whoever owns it: a queue link; first, for the pool's list */
    struct buffer_pool *pool;
    uint8_t *data; /* behind this struct, or foreign */
    /* NULL: the memory is our own. Else called once, at the last unref; the buffer is the pool's again when it
     *       returns. */
    void (*release)(struct buffer *buffer);
    void *context; /* for `release` */
    uint32_t refs;
    uint32_t begin;
    uint32_t end;
    uint32_t capacity;
};

/* `free_count` small buffers, and as many bytes of bulk ones, are kept at rest, and more while they are in use by turns
 * (vm/base/spare.h). `watch` NULL: no more than that. */
CY_NODISCARD cy_err buffer_pool_new(uint32_t free_count, struct spare_watch *watch,
                                    struct buffer_pool **pool_out);
void buffer_pool_free(struct buffer_pool **pool); /* CHECKs that every buffer came back */
/* NULL when there is no memory. begin = end = 0, refs = 1. */
CY_NODISCARD struct buffer *buffer_take(struct buffer_pool *pool);
/* The same with LIMIT_BUFFER_BULK_BYTES, pooled too: what a receive takes after one that filled its buffer. A small one
 * while LIMIT_BUFFERS_BULK are lent: throughput ends there, memory does not grow. */
CY_NODISCARD struct buffer *buffer_take_bulk(struct buffer_pool *pool);
/* A buffer of its own size, not pooled afterwards; for heads larger than one pool buffer. */
CY_NODISCARD struct buffer *buffer_take_sized(struct buffer_pool *pool, size_t capacity_bytes);
/* A loan of `count` (at most UINT32_MAX) bytes that stay as they are until `release`: all of it is in [begin, end),
 * no space behind it. Counted as lent like any other. The structs of loans are pooled. NULL when there is no memory:
 * `release` is not called then. */
CY_NODISCARD struct buffer *buffer_wrap(struct buffer_pool *pool, const uint8_t *data, size_t count,
                                        void (*release)(struct buffer *buffer), void *context);
static inline bool buffer_is_foreign(const struct buffer *buffer) { return buffer->release != NULL; }
static inline struct buffer *buffer_ref(struct buffer *buffer)
{
    buffer->refs++;
    return buffer;
}
void buffer_unref(struct buffer **buffer); /* clears the pointer; NULL inside is allowed */
static inline cy_bytes buffer_view(const struct buffer *buffer)
{
    return (cy_bytes){buffer->data + buffer->begin, buffer->end - buffer->begin};
}
static inline size_t buffer_space(const struct buffer *buffer) { return buffer->capacity - buffer->end; }
size_t buffer_pool_lent(const struct buffer_pool *pool);       /* buffers that are out now */
size_t buffer_pool_lent_bytes(const struct buffer_pool *pool); /* their memory; loans have none of ours */

#endif
