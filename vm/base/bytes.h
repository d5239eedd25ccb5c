/* SPDX-License-Identifier: MIT
 *
 * vm/base/bytes.h: cy_bytes, a borrowed view of bytes, and cautious reading of numbers out of one.
 *
 * Invariant: a cy_bytes owns nothing. `data` may be NULL only when `count` is 0.
 * Not here:  text (text.h), growing output (builder.h).
 */
#ifndef CY_BASE_BYTES_H
#define CY_BASE_BYTES_H

#include "vm/base/base.h"

#include <string.h>

typedef struct cy_bytes {
    const uint8_t *data;
    size_t count;
} cy_bytes;

#define CY_BYTES(literal) ((cy_bytes){(const uint8_t *)("" literal), sizeof(literal) - 1})
#define CY_BYTES_NONE ((cy_bytes){NULL, 0})
/* For printf's "%.*s". */
#define CY_BYTES_ARG(bytes) (int)((bytes).count), (const char *)((bytes).data)

static inline cy_bytes cy_bytes_of(const void *data, size_t count)
{
    return (cy_bytes){(const uint8_t *)data, count};
}
static inline cy_bytes cy_bytes_from_text(const char *text) { return cy_bytes_of(text, strlen(text)); }

static inline bool cy_bytes_equal(cy_bytes a, cy_bytes b)
{
    return a.count == b.count && (a.count == 0 || memcmp(a.data, b.data, a.count) == 0);
}
static inline bool cy_bytes_start_with(cy_bytes whole, cy_bytes start)
{
    return whole.count >= start.count &&
           (start.count == 0 || memcmp(whole.data, start.data, start.count) == 0);
}
/* The part [begin, end); both are clamped to the view. */
static inline cy_bytes cy_bytes_slice(cy_bytes whole, size_t begin, size_t end)
{
    if (end > whole.count) end = whole.count;
    if (begin > end) begin = end;
    return (cy_bytes){whole.data ? whole.data + begin : NULL, end - begin};
}
static inline cy_bytes cy_bytes_skip(cy_bytes whole, size_t count)
{
    return cy_bytes_slice(whole, count, whole.count);
}

/* <0, 0, >0 in byte order, the shorter first when one starts the other. */
int cy_bytes_compare(cy_bytes a, cy_bytes b);
/* ASCII letters compare equal in both cases; all other bytes as they are. */
bool cy_bytes_equal_nocase(cy_bytes a, cy_bytes b);
/* Index of the first `byte`, or whole.count when absent. */
size_t cy_bytes_find(cy_bytes whole, uint8_t byte);

/* Parses the whole view as decimal digits, nothing else. False when empty, not all digits, or above `max`. */
CY_NODISCARD bool cy_bytes_parse_u64(cy_bytes digits, uint64_t max, uint64_t *number_out);
/* The same with an optional leading '-'. */
CY_NODISCARD bool cy_bytes_parse_i64(cy_bytes digits, int64_t *number_out);

/* A cursor that can fail but never reads outside. After a failed read `failed` stays set and every result is 0. */
struct byte_reader {
    cy_bytes input;
    size_t offset;
    bool failed;
};
uint8_t byte_reader_u8(struct byte_reader *reader);
uint16_t byte_reader_u16(struct byte_reader *reader); /* little-endian, as the rest */
uint32_t byte_reader_u32(struct byte_reader *reader);
uint64_t byte_reader_u64(struct byte_reader *reader);
cy_bytes byte_reader_take(struct byte_reader *reader, size_t count); /* borrowed from the input */
static inline size_t byte_reader_left(const struct byte_reader *reader)
{
    return reader->input.count - reader->offset;
}

static inline uint16_t cy_load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t cy_load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t cy_load_u64(const uint8_t *p)
{
    return cy_load_u32(p) | (uint64_t)cy_load_u32(p + 4) << 32;
}

#endif
