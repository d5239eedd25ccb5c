/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1_scan.c: one pass over a field line: where its name ends, which name it is, where its value ends.
 *
 * In, Out: h1_scan.h.
 * Why:  read byte by byte, fields were 5,000 of the 12,900 instructions of our own that a small proxied request took.
 * Invariant: nothing outside the input is read. What has fewer than H1_SCAN_ROOM_BYTES behind it is copied before a
 *            block of zeros, which end every name and every value.
 */
#include "vm/http/h1_scan.h"

#include "vm/http/field.h"

#if defined(__SSE2__)
#include <emmintrin.h>

#define H1_SCAN_ROOM_BYTES 64 /* so much lies behind the beginning of a line, or it is copied */

static unsigned h1_scan_equal_mask(const uint8_t *data, char byte)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)data);
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte)));
}

/* Bits of the bytes that no value has: below 0x20 but the tab, and 0x7f. */
static unsigned h1_scan_stop_mask(const uint8_t *data)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)data);
    /* max(byte, 0x1f) is 0x1f for what is below 0x20, unsigned. */
    __m128i last_control = _mm_set1_epi8(0x1f);
    __m128i low = _mm_cmpeq_epi8(_mm_max_epu8(bytes, last_control), last_control);
    low = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t')), low);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f))));
}

/* A line at `line` with H1_SCAN_ROOM_BYTES or more behind it, `room` in all. The views of the field lie at `base`
 * instead.
 */
static size_t h1_scan_line(const uint8_t *line, size_t room, const uint8_t *base,
                           struct http_field *field_out)
{
    unsigned colons = h1_scan_equal_mask(line, ':') | h1_scan_equal_mask(line + 16, ':') << 16;
    if (colons == 0) return 0;
    size_t name_bytes = (size_t)__builtin_ctz(colons);
    uint8_t id = field_identify_wide(line, name_bytes);
    if (id == HTTP_FIELD_NONE && !field_is_token(cy_bytes_of(line, name_bytes))) return 0;
    size_t begin = name_bytes + 1;
    begin += line[begin] == ' ';
    size_t end = begin;
    unsigned stops = 0;
    while (end + 16 <= room && !(stops = h1_scan_stop_mask(line + end))) end += 16;
    if (!stops) return 0;
    end += (size_t)__builtin_ctz(stops);
    if (line[end] != '\r' || end + 1 >= room || line[end + 1] != '\n') return 0;
    /* White space around the value is for the line parser. */
    if (end > begin &&
        (line[begin] == ' ' || line[begin] == '\t' || line[end - 1] == ' ' || line[end - 1] == '\t'))
        return 0;
    field_out->name = cy_bytes_of(base, name_bytes);
    field_out->value = cy_bytes_of(base + begin, end - begin);
    field_out->known = id;
    field_out->hop = false;
    return end + 2;
}

size_t h1_scan_field(cy_bytes input, struct http_field *field_out)
{
    if (input.count >= H1_SCAN_ROOM_BYTES) {
        if (input.data[0] == '\r') return 0; /* the end of the head */
        return h1_scan_line(input.data, input.count, input.data, field_out);
    }
    uint8_t tail[2 * H1_SCAN_ROOM_BYTES] = {0};
    if (input.count < 4 || input.data[0] == '\r') return 0;
    memcpy(tail, input.data, input.count);
    return h1_scan_line(tail, sizeof tail, input.data, field_out);
}

#undef H1_SCAN_ROOM_BYTES
#else
size_t h1_scan_field(cy_bytes input, struct http_field *field_out)
{
    (void)input;
    (void)field_out;
    return 0;
}
#endif
