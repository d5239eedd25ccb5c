/* SPDX-License-Identifier: MIT
 *
 * vm/base/text_unicode.c: clusters, case and white space of Unicode, through utf8proc.
 *
 * In:   bytes that claim to be text; malformed ones stand for themselves, one cluster each.
 * Out:  ends of clusters, mapped code points.
 * Spec: UAX #29 (extended grapheme clusters), the simple case mappings and full case folding of the Unicode tables.
 * Not here: normal forms, widths, counting (text.c).
 */
#include "vm/base/text.h"

#include "vm/base/check.h"

#include <utf8proc.h>

size_t text_grapheme_end(cy_bytes text, size_t offset)
{
    uint32_t previous, code_point;
    size_t length;
    /* Between two ASCII bytes there is a border, but inside CR LF. */
    if (offset + 1 < text.count && text.data[offset] < 0x80 && text.data[offset + 1] < 0x80 &&
        text.data[offset] != '\r')
        return offset + 1;
    bool valid = text_decode(cy_bytes_skip(text, offset), &previous, &length);
    offset += length;
    utf8proc_int32_t state = 0;
    while (valid && offset < text.count) {
        if (!text_decode(cy_bytes_skip(text, offset), &code_point, &length)) break;
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)previous, (utf8proc_int32_t)code_point,
                                             &state))
            break;
        previous = code_point;
        offset += length;
    }
    return offset;
}

size_t text_map_case(uint32_t code_point, enum text_case to, uint32_t mapped_out[TEXT_CASE_MAX])
{
    utf8proc_int32_t from = (utf8proc_int32_t)code_point;
    if (to == TEXT_UPPER) mapped_out[0] = (uint32_t)utf8proc_toupper(from);
    if (to == TEXT_LOWER) mapped_out[0] = (uint32_t)utf8proc_tolower(from);
    if (to != TEXT_FOLD) return 1;
    utf8proc_int32_t folded[TEXT_CASE_MAX];
    int boundary = 0;
    utf8proc_ssize_t count =
        utf8proc_decompose_char(from, folded, TEXT_CASE_MAX, UTF8PROC_CASEFOLD, &boundary);
    CHECK(count > 0 && count <= TEXT_CASE_MAX); /* no code point folds into more than three */
    for (utf8proc_ssize_t i = 0; i < count; i++) mapped_out[i] = (uint32_t)folded[i];
    return (size_t)count;
}

/* The property White_Space. */
bool text_is_space(uint32_t code_point)
{
    if (code_point < 0x80) return code_point == ' ' || (code_point >= 9 && code_point <= 13);
    return code_point == 0x85 || code_point == 0xa0 || code_point == 0x1680 ||
           (code_point >= 0x2000 && code_point <= 0x200a) || code_point == 0x2028 || code_point == 0x2029 ||
           code_point == 0x202f || code_point == 0x205f || code_point == 0x3000;
}

bool text_code_point_is_valid(uint32_t code_point)
{
    return code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff);
}

bool text_is_mark(uint32_t code_point)
{
    return code_point >= 0x300 && utf8proc_get_property((utf8proc_int32_t)code_point)->combining_class != 0;
}
