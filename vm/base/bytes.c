/* SPDX-License-Identifier: MIT
 *
 * vm/base/bytes.c: comparing views, numbers in decimal, and the careful reader.
 *
 * In:   views over anything, hostile files included.
 * Out:  results; nothing is allocated and nothing outside the view is read.
 * Invariant: reader->offset <= reader->input.count, also after a failure.
 */
#include "vm/base/bytes.h"

#include "vm/base/check.h"

static uint8_t bytes_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;
}

int cy_bytes_compare(cy_bytes a, cy_bytes b)
{
    size_t common_count = cy_min_size(a.count, b.count);
    int order = common_count ? memcmp(a.data, b.data, common_count) : 0;
    if (order != 0) return order;
    return a.count < b.count ? -1 : a.count > b.count;
}

bool cy_bytes_equal_nocase(cy_bytes a, cy_bytes b)
{
    if (a.count != b.count) return false;
    for (size_t i = 0; i < a.count; i++)
        if (a.data[i] != b.data[i] && bytes_lower(a.data[i]) != bytes_lower(b.data[i])) return false;
    return true;
}

size_t cy_bytes_find(cy_bytes whole, uint8_t byte)
{
    if (whole.count == 0) return 0;
    const uint8_t *found = memchr(whole.data, byte, whole.count);
    return found ? (size_t)(found - whole.data) : whole.count;
}

bool cy_bytes_parse_u64(cy_bytes digits, uint64_t max, uint64_t *number_out)
{
    if (digits.count == 0) return false;
    uint64_t number = 0;
    for (size_t i = 0; i < digits.count; i++) {
        uint8_t digit = (uint8_t)(digits.data[i] - '0');
        if (digit > 9) return false;
        if (__builtin_mul_overflow(number, (uint64_t)10, &number)) return false;
        if (__builtin_add_overflow(number, (uint64_t)digit, &number)) return false;
        if (number > max) return false; /* also bounds the loop over leading digits; zeros are allowed */
    }
    *number_out = number;
    return true;
}

bool cy_bytes_parse_i64(cy_bytes digits, int64_t *number_out)
{
    bool negative = digits.count > 0 && digits.data[0] == '-';
    uint64_t magnitude_max = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    uint64_t magnitude;
    if (!cy_bytes_parse_u64(cy_bytes_skip(digits, negative ? 1 : 0), magnitude_max, &magnitude)) return false;
    /* Negated as unsigned: the magnitude of INT64_MIN has no positive int64_t. */
    *number_out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

cy_bytes byte_reader_take(struct byte_reader *reader, size_t count)
{
    DCHECK(reader->offset <= reader->input.count);
    if (reader->failed || count > byte_reader_left(reader)) {
        reader->failed = true;
        return CY_BYTES_NONE;
    }
    cy_bytes taken = cy_bytes_slice(reader->input, reader->offset, reader->offset + count);
    reader->offset += count;
    return taken;
}

uint8_t byte_reader_u8(struct byte_reader *reader)
{
    cy_bytes taken = byte_reader_take(reader, 1);
    return taken.count ? taken.data[0] : 0;
}

uint16_t byte_reader_u16(struct byte_reader *reader)
{
    cy_bytes taken = byte_reader_take(reader, 2);
    return taken.count ? cy_load_u16(taken.data) : 0;
}

uint32_t byte_reader_u32(struct byte_reader *reader)
{
    cy_bytes taken = byte_reader_take(reader, 4);
    return taken.count ? cy_load_u32(taken.data) : 0;
}

uint64_t byte_reader_u64(struct byte_reader *reader)
{
    cy_bytes taken = byte_reader_take(reader, 8);
    return taken.count ? cy_load_u64(taken.data) : 0;
}
