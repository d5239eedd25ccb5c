/* SPDX-License-Identifier: MIT
 *
 * vm/net/buffer.h: the pool buffers that bytes travel in.
 *
 * In:   a pool per loop. Out: counted buffers of LIMIT_BUFFER_BYTES.
 * Ownership: a receive completes with a buffer whose one reference belongs to the receiver. Views into it (a request
 *       head) keep a reference. Idle connections hold none.
 * Invariant: begin <= end <= capacity. Bytes in [begin, end) are not yet consumed.
 */
#ifndef CY_NET_BUFFER_H
#define CY_NET_BUFFER_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

struct buffer_pool;

struct buffer {
    struct buffer *next; /* for whoever owns it: a queue link */
    struct buffer_pool *pool;
    uint32_t refs;
    uint32_t begin;
    uint32_t end;
    uint32_t capacity;
    uint8_t data[];
};

CY_NODISCARD cy_err buffer_pool_new(size_t free_count_max, struct buffer_pool **pool_out);
void buffer_pool_free(struct buffer_pool **pool); /* CHECKs that every buffer came back */
/* NULL when there is no memory. begin = end = 0, refs = 1. */
CY_NODISCARD struct buffer *buffer_take(struct buffer_pool *pool);
/* The same with LIMIT_BUFFER_BULK_BYTES, pooled too: what a receive takes after one that filled its buffer. */
CY_NODISCARD struct buffer *buffer_take_bulk(struct buffer_pool *pool);
/* A buffer of its own size, not pooled afterwards; for heads larger than one pool buffer. */
CY_NODISCARD struct buffer *buffer_take_sized(struct buffer_pool *pool, size_t capacity_bytes);
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
size_t buffer_pool_lent(const struct buffer_pool *pool); /* buffers that are out now */

#endif
