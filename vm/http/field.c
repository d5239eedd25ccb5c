/* SPDX-License-Identifier: MIT
 *
 * vm/http/field.c: finds a field name's row by its length, first and last letter, and classes the bytes of
 * names and values.
 *
 * Invariant: the slot table has no two names in one place: `[slot] = id` twice is an error of the compiler
 *            (-Woverride-init, part of -Wextra), and a test looks every row up.
 */
#include "vm/http/field.h"

#include "vm/base/check.h"
#include "vm/http/message.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The two factors were found by trying all pairs below 64 for one without collisions in 256 places; for 128 there was
 * none. */
#define FIELD_SLOT(length, first, last) (((length)*8u + (first)*29u + (last)) & 255u)

static const uint8_t field_slots[256] = {
#define HTTP_FIELD(name, first, last, text, flags) \
    [FIELD_SLOT(sizeof(text) - 1, first, last)] = HTTP_FIELD_##name,
#include "vm/http/field.def"
#undef HTTP_FIELD
};

struct field_row {
    cy_bytes name;
    uint8_t flags;
};
#define HOP HTTP_FIELD_FLAG_HOP
#define FRAMING HTTP_FIELD_FLAG_FRAMING
#define FORWARDING HTTP_FIELD_FLAG_FORWARDING
#define FORBIDDEN HTTP_FIELD_FLAG_FORBIDDEN
#define SINGLE HTTP_FIELD_FLAG_SINGLE
#define HEAD_ONLY HTTP_FIELD_FLAG_HEAD_ONLY
static const struct field_row field_rows[HTTP_FIELD_COUNT] = {
    {{(const uint8_t *)"", 0}, 0},
#define HTTP_FIELD(name, first, last, text, flags) {{(const uint8_t *)(text), sizeof(text) - 1}, flags},
#include "vm/http/field.def"
#undef HTTP_FIELD
};
/* Bit n: a name of n bytes is of kind HOP or FRAMING. */
static const uint32_t field_hop_lengths =
#define HTTP_FIELD(name, first, last, text, flags) \
    (((flags) & (HOP | FRAMING)) ? (uint32_t)1 << (sizeof(text) - 1) : 0) |
#include "vm/http/field.def"
#undef HTTP_FIELD
    0;
#undef HOP
#undef FRAMING
#undef FORWARDING
#undef FORBIDDEN
#undef SINGLE
#undef HEAD_ONLY

/* Bytes that may stand in a token (RFC 9110 section 5.6.2). */
static const uint8_t field_token_bytes[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

uint8_t field_identify(cy_bytes name)
{
    if (name.count == 0) return HTTP_FIELD_NONE;
    unsigned first = name.data[0] | 0x20u, last = name.data[name.count - 1] | 0x20u;
    uint8_t id = field_slots[FIELD_SLOT((unsigned)name.count, first, last)];
    const struct field_row *row = &field_rows[id];
    if (row->name.count != name.count) return HTTP_FIELD_NONE;
    /* Names hold letters, digits and '-' only. OR 0x20 folds letters and leaves the others; no other token
     * byte becomes one of them by it. */
    for (size_t i = 0; i < name.count; i++)
        if ((name.data[i] | 0x20) != (row->name.data[i] | 0x20)) return HTTP_FIELD_NONE;
    return id;
}

#if defined(__SSE2__)
/* Without the letters' case, and bits of the bytes that this made equal to others (below 0x20) or that are no ASCII.
 * */
static __m128i field_fold(const uint8_t *text, unsigned *strange_out)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
    *strange_out = (unsigned)_mm_movemask_epi8(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)));
    return _mm_or_si128(bytes, _mm_set1_epi8(0x20));
}

uint8_t field_identify_wide(const uint8_t *text, size_t count)
{
    static const struct {
        uint8_t text[FIELD_WIDE_BYTES];
    } names[HTTP_FIELD_COUNT] = {
#define HTTP_FIELD(name, first, last, text, flags) [HTTP_FIELD_##name] = {text},
#include "vm/http/field.def"
#undef HTTP_FIELD
    };
    if (count == 0) return HTTP_FIELD_NONE;
    DCHECK(count < FIELD_WIDE_BYTES);
    unsigned first = text[0] | 0x20u, last = text[count - 1] | 0x20u;
    uint8_t id = field_slots[FIELD_SLOT((unsigned)count, first, last)];
    if (field_rows[id].name.count != count) return HTTP_FIELD_NONE;
    uint32_t differ = 0;
    for (unsigned i = 0; i < FIELD_WIDE_BYTES; i += 16) {
        unsigned strange, none;
        __m128i same = _mm_cmpeq_epi8(field_fold(text + i, &strange), field_fold(names[id].text + i, &none));
        differ |= ((~(unsigned)_mm_movemask_epi8(same) | strange) & 0xffffu) << i;
    }
    return differ & (((uint32_t)1 << count) - 1) ? HTTP_FIELD_NONE : id;
}
#else
uint8_t field_identify_wide(const uint8_t *text, size_t count)
{
    return field_is_token(cy_bytes_of(text, count)) ? field_identify(cy_bytes_of(text, count))
                                                    : HTTP_FIELD_NONE;
}
#endif

uint8_t field_flags(uint8_t id) { return id < HTTP_FIELD_COUNT ? field_rows[id].flags : 0; }

cy_bytes field_name(uint8_t id) { return id < HTTP_FIELD_COUNT ? field_rows[id].name : CY_BYTES_NONE; }

/* Compares with a lower-case text, with '_' taken for '-'. */
static bool field_starts_like(cy_bytes name, cy_bytes start)
{
    if (name.count < start.count) return false;
    for (size_t i = 0; i < start.count; i++) {
        uint8_t byte = name.data[i] == '_' ? '-' : (uint8_t)(name.data[i] | 0x20);
        if (byte != start.data[i]) return false;
    }
    return true;
}

bool field_is_forwarding(cy_bytes name, uint8_t id)
{
    if (id != HTTP_FIELD_NONE) return (field_flags(id) & HTTP_FIELD_FLAG_FORWARDING) != 0;
    if (name.count < 9 || (name.data[0] | 0x20) != 'x') return false;
    if (field_starts_like(name, CY_BYTES("x-forwarded-"))) return true;
    return name.count == 9 && field_starts_like(name, CY_BYTES("x-real-ip"));
}

bool field_is_for_one_hop(cy_bytes name, uint8_t id)
{
    const unsigned kinds = HTTP_FIELD_FLAG_HOP | HTTP_FIELD_FLAG_FRAMING;
    uint8_t folded[32];
    if (id != HTTP_FIELD_NONE) return (field_flags(id) & kinds) != 0;
    if (name.count >= sizeof folded || !(field_hop_lengths >> name.count & 1)) return false;
    for (size_t i = 0; i < name.count; i++) folded[i] = name.data[i] == '_' ? '-' : name.data[i];
    return (field_flags(field_identify(cy_bytes_of(folded, name.count))) & kinds) != 0;
}

bool field_is_token_byte(uint8_t byte) { return field_token_bytes[byte] != 0; }

bool field_is_token(cy_bytes text)
{
    for (size_t i = 0; i < text.count; i++)
        if (!field_token_bytes[text.data[i]]) return false;
    return text.count > 0;
}

bool field_is_value(cy_bytes text)
{
    size_t i = 0;
#if defined(__SSE2__)
    /* 16 at a time: below 0x20 and not a tab, or 0x7f. Signed comparison with 0x80 flipped makes it
     * unsigned. */
    const __m128i flip = _mm_set1_epi8((char)0x80), space = _mm_set1_epi8((char)(0x20 ^ 0x80));
    const __m128i tab = _mm_set1_epi8('\t'), delete = _mm_set1_epi8(0x7f);
    for (; i + 16 <= text.count; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text.data + i));
        __m128i low = _mm_cmplt_epi8(_mm_xor_si128(bytes, flip), space);
        low = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, tab), low);
        if (_mm_movemask_epi8(_mm_or_si128(low, _mm_cmpeq_epi8(bytes, delete)))) return false;
    }
#endif
    for (; i < text.count; i++) {
        uint8_t byte = text.data[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return false;
    }
    return true;
}

cy_bytes field_trim(cy_bytes text)
{
    while (text.count && (text.data[0] == ' ' || text.data[0] == '\t')) text.data++, text.count--;
    while (text.count && (text.data[text.count - 1] == ' ' || text.data[text.count - 1] == '\t'))
        text.count--;
    return text;
}

bool field_next_element(cy_bytes *list, cy_bytes *element_out)
{
    if (!list->data) return false;
    size_t end = cy_bytes_find(*list, ',');
    *element_out = field_trim(cy_bytes_slice(*list, 0, end));
    *list = end < list->count ? cy_bytes_skip(*list, end + 1) : CY_BYTES_NONE;
    return true;
}

bool http_method_is_idempotent(cy_bytes method)
{
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    for (size_t i = 0; i < CY_COUNT_OF(methods); i++)
        if (cy_bytes_equal(method, cy_bytes_from_text(methods[i]))) return true;
    return false;
}

const struct http_field *http_find_field(const struct http_field *fields, uint32_t count, cy_bytes name)
{
    uint8_t id = field_identify(name);
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].known != id) continue;
        if (id != HTTP_FIELD_NONE || cy_bytes_equal_nocase(fields[i].name, name)) return &fields[i];
    }
    return NULL;
}

#undef FIELD_SLOT
