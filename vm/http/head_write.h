/* SPDX-License-Identifier: MIT
 *
 * vm/http/head_write.h: writes a head into one pool buffer.
 *
 * In:   pieces that were checked before; a bound on their sum, known from the start. Out: one buffer.
 * Invariant: nothing is written past the bound. `failed` is sticky (no memory, or a bound that was too small,
 *       which is a bug that DEBUG builds stop at); the owner looks once, at the end.
 */
#ifndef CY_HTTP_HEAD_WRITE_H
#define CY_HTTP_HEAD_WRITE_H

#include "vm/base/bytes.h"
#include "vm/net/buffer.h"

struct head_writer {
    struct buffer *buffer; /* NULL when there was no memory */
    uint8_t *next;
    uint8_t *end;
    bool failed;
};

void head_open(struct head_writer *writer, struct buffer_pool *pool, size_t bytes_max);
void head_put_slow_failure(struct head_writer *writer);
static inline void head_put(struct head_writer *writer, cy_bytes bytes)
{
    if (CY_UNLIKELY((size_t)(writer->end - writer->next) < bytes.count)) {
        head_put_slow_failure(writer);
        return;
    }
    if (bytes.count) memcpy(writer->next, bytes.data, bytes.count);
    writer->next += bytes.count;
}
/* "name: value\r\n" */
static inline void head_put_field(struct head_writer *writer, cy_bytes name, cy_bytes value)
{
    head_put(writer, name);
    head_put(writer, CY_BYTES(": "));
    head_put(writer, value);
    head_put(writer, CY_BYTES("\r\n"));
}
#define HEAD_DIGITS_MAX 20
/* Its decimal digits, a view into `digits`. */
cy_bytes head_format_u64(uint8_t digits[HEAD_DIGITS_MAX], uint64_t number);
static inline void head_put_u64(struct head_writer *writer, uint64_t number)
{
    uint8_t digits[HEAD_DIGITS_MAX];
    head_put(writer, head_format_u64(digits, number));
}
/* The finished buffer, owned by the caller; NULL when anything failed. */
CY_NODISCARD struct buffer *head_close(struct head_writer *writer);

/* Joins what came first and what came later in one buffer: appends in place where there is room, else moves
 * both to a larger one. `*input` may be NULL; an empty one is replaced. NO_MEMORY loses `owned_more` and
 * leaves `*input`. */
CY_NODISCARD cy_err input_append(struct buffer **input, struct buffer *owned_more, struct buffer_pool *pool);

#endif
