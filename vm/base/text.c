/* SPDX-License-Identifier: MIT
 *
 * vm/base/text.c: UTF-8 through utf8proc, edit distance, particles.
 *
 * In:   bytes that claim to be text.
 * Out:  code points, columns, normal forms, distances.
 * Spec: Unicode 14 tables of utf8proc; UAX #15 (normal forms), UAX #29 (grapheme clusters).
 * Invariant: utf8proc never sees memory that it would have to allocate: buffers come from mem.h.
 * Not here: the language's grammar of identifiers beyond single code points (compiler/lexer.c).
 */
#include "vm/base/text.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <utf8proc.h>

enum {
    TEXT_HANGUL_FIRST = 0xAC00,
    TEXT_HANGUL_LAST = 0xD7A3,
    TEXT_JAMO_LEAD = 0x1100,
    TEXT_JAMO_VOWEL = 0x1161,
    TEXT_JAMO_TAIL = 0x11A7, /* one before the first tail: index 0 means none */
    TEXT_JAMO_VOWEL_COUNT = 21,
    TEXT_JAMO_TAIL_COUNT = 28
};

bool text_decode(cy_bytes text, uint32_t *code_point_out, size_t *length_out)
{
    *code_point_out = 0;
    *length_out = text.count ? 1 : 0; /* at the end there is nothing to step over */
    if (text.count == 0) return false;
    if (text.data[0] < 0x80) {
        *code_point_out = text.data[0];
        return true;
    }
    utf8proc_int32_t code_point;
    /* Four bytes are the longest sequence; a longer view could pass utf8proc's signed length. */
    utf8proc_ssize_t length =
        utf8proc_iterate(text.data, (utf8proc_ssize_t)cy_min_size(text.count, 4), &code_point);
    if (length <= 0) return false;
    *code_point_out = (uint32_t)code_point;
    *length_out = (size_t)length;
    return true;
}

void text_encode(struct builder *builder, uint32_t code_point)
{
    CHECK(utf8proc_codepoint_valid((utf8proc_int32_t)code_point));
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t length = utf8proc_encode_char((utf8proc_int32_t)code_point, bytes);
    builder_bytes(builder, cy_bytes_of(bytes, (size_t)length));
}

static bool text_is_ascii(cy_bytes text)
{
    for (size_t i = 0; i < text.count; i++)
        if (text.data[i] >= 0x80) return false;
    return true;
}

bool text_is_utf8(cy_bytes text, size_t *offset_out)
{
    size_t offset = 0;
    while (offset < text.count) {
        uint32_t code_point;
        size_t length;
        if (!text_decode(cy_bytes_skip(text, offset), &code_point, &length)) {
            if (offset_out) *offset_out = offset;
            return false;
        }
        offset += length;
    }
    return true;
}

size_t text_code_point_count(cy_bytes text)
{
    size_t count = 0;
    for (size_t offset = 0; offset < text.count; count++) {
        uint32_t code_point;
        size_t length;
        (void)!text_decode(cy_bytes_skip(text, offset), &code_point,
                           &length); /* a bad byte is one step as well */
        offset += length;
    }
    return count;
}

size_t text_grapheme_count(cy_bytes text)
{
    size_t count = 0;
    utf8proc_int32_t state = 0;
    uint32_t previous = 0;
    bool joins_possible = false; /* false at the start and behind a malformed byte, which stands alone */
    for (size_t offset = 0; offset < text.count;) {
        uint32_t code_point;
        size_t length;
        bool valid = text_decode(cy_bytes_skip(text, offset), &code_point, &length);
        bool border = true;
        if (valid && joins_possible)
            border = utf8proc_grapheme_break_stateful((utf8proc_int32_t)previous,
                                                      (utf8proc_int32_t)code_point, &state);
        else
            state = 0;
        if (border) count++;
        joins_possible = valid;
        previous = code_point;
        offset += length;
    }
    return count;
}

static size_t text_code_point_width(uint32_t code_point)
{
    /* Medial vowels and final consonants draw inside the syllable that the leading consonant opened; utf8proc says
     * 1. */
    bool inner_jamo =
        (code_point >= 0x1160 && code_point <= 0x11FF) || (code_point >= 0xD7B0 && code_point <= 0xD7FF);
    if (inner_jamo) return 0;
    if (code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0)) return 1;
    return (size_t)utf8proc_charwidth((utf8proc_int32_t)code_point);
}

size_t text_width(cy_bytes text)
{
    size_t width = 0;
    for (size_t offset = 0; offset < text.count;) {
        uint32_t code_point;
        size_t length;
        bool valid = text_decode(cy_bytes_skip(text, offset), &code_point, &length);
        width += valid ? text_code_point_width(code_point) : 1;
        offset += length;
    }
    return width;
}

/* Letters that draw nothing (U+3164 HANGUL FILLER and its kin) would make two names that look the same. */
static bool text_is_invisible(uint32_t code_point)
{
    return utf8proc_get_property((utf8proc_int32_t)code_point)->ignorable;
}

bool text_is_identifier_start(uint32_t code_point)
{
    if (code_point < 0x80) {
        uint32_t lower = code_point | 0x20;
        return code_point == '_' || (lower >= 'a' && lower <= 'z');
    }
    switch (utf8proc_category((utf8proc_int32_t)code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL: return !text_is_invisible(code_point);
    default: return false;
    }
}

bool text_is_identifier_part(uint32_t code_point)
{
    if (code_point >= '0' && code_point <= '9') return true;
    if (text_is_identifier_start(code_point)) return true;
    if (code_point < 0x80) return false;
    switch (utf8proc_category((utf8proc_int32_t)code_point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND: return !text_is_invisible(code_point);
    default: return false;
    }
}

bool text_is_bidi_control(uint32_t code_point)
{
    return code_point == 0x061C || code_point == 0x200E || code_point == 0x200F ||
           (code_point >= 0x202A && code_point <= 0x202E) || (code_point >= 0x2066 && code_point <= 0x2069);
}

/* Decomposes, and for COMPOSE also composes, in one buffer of code points that utf8proc then turns into UTF-8 in
 * place. */
static cy_err text_normalise(cy_bytes text, utf8proc_option_t form, struct builder *out)
{
    if (text_is_ascii(text)) {
        builder_bytes(out, text);
        return builder_error(out);
    }
    if (!text_is_utf8(text, NULL)) return CY_ERR(BAD_TEXT);
    if (text.count > PTRDIFF_MAX / 64)
        return CY_ERR(TOO_LARGE); /* no code point decomposes into more than 18 */

    utf8proc_option_t options = UTF8PROC_STABLE | form;
    utf8proc_ssize_t count = utf8proc_decompose(text.data, (utf8proc_ssize_t)text.count, NULL, 0, options);
    if (count < 0) return CY_ERR(BAD_TEXT);
    utf8proc_int32_t *code_points = mem_alloc(((size_t)count + 1) * sizeof *code_points);
    if (!code_points) return CY_ERR(NO_MEMORY);

    cy_err err = CY_OK;
    utf8proc_ssize_t filled =
        utf8proc_decompose(text.data, (utf8proc_ssize_t)text.count, code_points, count, options);
    CHECK(filled == count);
    utf8proc_ssize_t bytes = utf8proc_reencode(code_points, count, options);
    if (bytes < 0) {
        err = CY_ERR(BAD_TEXT);
    } else {
        builder_bytes(out, cy_bytes_of(code_points, (size_t)bytes));
        err = builder_error(out);
    }
    mem_free(code_points);
    return err;
}

cy_err text_to_nfc(cy_bytes text, struct builder *out) { return text_normalise(text, UTF8PROC_COMPOSE, out); }
cy_err text_to_nfd(cy_bytes text, struct builder *out)
{
    return text_normalise(text, UTF8PROC_DECOMPOSE, out);
}

/* Without memory the answer is "no": a name that could not be checked is refused, never let through. */
bool text_is_nfc(cy_bytes text)
{
    if (text_is_ascii(text)) return true;
    struct builder composed;
    builder_init(&composed);
    bool same = !cy_failed(text_to_nfc(text, &composed)) && cy_bytes_equal(builder_view(&composed), text);
    builder_fini(&composed);
    return same;
}

/* Writes the units of comparison, at most three for each code point: a Hangul syllable is its jamo, so that 츨력 is
 * one slip away from 출력 and not half of the word. `units` may be NULL to count. */
static size_t text_units(cy_bytes text, uint32_t *units)
{
    size_t count = 0;
    for (size_t offset = 0; offset < text.count;) {
        uint32_t code_point;
        size_t length;
        if (!text_decode(cy_bytes_skip(text, offset), &code_point, &length))
            code_point = 0x110000u + text.data[offset]; /* a bad byte equals only itself */
        offset += length;
        if (code_point < TEXT_HANGUL_FIRST || code_point > TEXT_HANGUL_LAST) {
            if (units) units[count] = code_point;
            count++;
            continue;
        }
        uint32_t syllable = code_point - TEXT_HANGUL_FIRST;
        uint32_t tail = syllable % TEXT_JAMO_TAIL_COUNT;
        uint32_t vowel = syllable / TEXT_JAMO_TAIL_COUNT % TEXT_JAMO_VOWEL_COUNT;
        uint32_t lead = syllable / (TEXT_JAMO_TAIL_COUNT * TEXT_JAMO_VOWEL_COUNT);
        if (units) {
            units[count] = TEXT_JAMO_LEAD + lead;
            units[count + 1] = TEXT_JAMO_VOWEL + vowel;
            if (tail) units[count + 2] = TEXT_JAMO_TAIL + tail;
        }
        count += tail ? 3 : 2;
    }
    return count;
}

/* Optimal string alignment: rows[0] is two letters back, rows[1] one back, rows[2] the current one. */
static size_t text_distance_of_units(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count,
                                     size_t *rows[3], size_t limit)
{
    for (size_t j = 0; j <= b_count; j++) rows[1][j] = j;
    for (size_t i = 1; i <= a_count; i++) {
        size_t row_min = rows[2][0] = i;
        for (size_t j = 1; j <= b_count; j++) {
            size_t best = rows[1][j - 1] + (a[i - 1] != b[j - 1]);
            best = cy_min_size(best, rows[1][j] + 1);
            best = cy_min_size(best, rows[2][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = cy_min_size(best, rows[0][j - 2] + 1);
            rows[2][j] = best;
            row_min = cy_min_size(row_min, best);
        }
        /* A swap reads two rows back. A minimum of limit + 2 here means at least limit + 1 there: no way down
         * again. */
        if (row_min > limit + 1) return limit + 1;
        size_t *oldest = rows[0];
        rows[0] = rows[1];
        rows[1] = rows[2];
        rows[2] = oldest;
    }
    return cy_min_size(rows[1][b_count], limit + 1);
}

size_t text_edit_distance(cy_bytes a, cy_bytes b, size_t limit)
{
    if (limit > SIZE_MAX / 2) limit = SIZE_MAX / 2;
    if (cy_bytes_equal(a, b)) return 0;
    size_t a_count = text_units(a, NULL);
    size_t b_count = text_units(b, NULL);
    size_t difference = a_count > b_count ? a_count - b_count : b_count - a_count;
    if (difference > limit) return limit + 1;

    /* One block: both unit arrays, and three rows. */
    size_t row_count = b_count + 1;
    size_t *block = mem_alloc(3 * row_count * sizeof(size_t) + (a_count + b_count) * sizeof(uint32_t));
    if (!block) return TEXT_DISTANCE_NO_MEMORY;
    size_t *rows[3] = {block, block + row_count, block + 2 * row_count};
    uint32_t *a_units = (uint32_t *)(block + 3 * row_count);
    uint32_t *b_units = a_units + a_count;
    text_units(a, a_units);
    text_units(b, b_units);
    size_t distance = text_distance_of_units(a_units, a_count, b_units, b_count, rows, limit);
    mem_free(block);
    return distance;
}

void nearest_init(struct nearest *nearest, cy_bytes wanted)
{
    *nearest = (struct nearest){.wanted = wanted, .bytes_max = NEAREST_NAME_BYTES};
    /* No letter has more units than bytes. */
    if (wanted.count <= NEAREST_NAME_BYTES)
        nearest->unit_count = (uint32_t)text_units(wanted, nearest->units);
}

/* The distance of two short names: without memory of its own. */
static size_t nearest_distance(struct nearest *nearest, cy_bytes candidate, size_t limit)
{
    uint32_t units[NEAREST_NAME_BYTES];
    size_t rows[3][NEAREST_NAME_BYTES + 1], *places[3] = {rows[0], rows[1], rows[2]};
    size_t count = text_units(candidate, units);
    nearest->work += (uint64_t)nearest->unit_count * count;
    return text_distance_of_units(nearest->units, nearest->unit_count, units, count, places, limit);
}

void nearest_offer(struct nearest *nearest, cy_bytes candidate)
{
    if (candidate.count == 0 || nearest->wanted.count == 0) return;
    if (cy_max_size(candidate.count, nearest->wanted.count) > nearest->bytes_max) return;
    bool is_short = cy_max_size(candidate.count, nearest->wanted.count) <= NEAREST_NAME_BYTES;
    size_t wanted_count = is_short ? nearest->unit_count : text_units(nearest->wanted, NULL);
    size_t count = text_units(candidate, NULL), letters = cy_max_size(wanted_count, count);
    size_t limit = letters / 3;
    if (nearest->best.count) {
        if (nearest->best_distance == 0) return;
        limit = cy_min_size(limit, nearest->best_distance - 1); /* a tie keeps the earlier name */
    }
    if (letters - cy_min_size(wanted_count, count) > limit) return;
    size_t distance = is_short ? nearest_distance(nearest, candidate, limit)
                               : text_edit_distance(nearest->wanted, candidate, limit);
    if (distance == TEXT_DISTANCE_NO_MEMORY) nearest->no_memory = true;
    if (distance > limit) return;
    nearest->best = candidate;
    nearest->best_distance = distance;
}

size_t text_particle_length(cy_bytes word)
{
    /* Longer ones first: 에서 ends in no shorter particle, but 으로 ends in 로. */
    static const char *const particles[] = {"에서", "으로", "부터", "까지", "은", "는", "이", "가", "을",
                                            "를",   "에",   "의",   "로",   "와", "과", "도", "만"};
    for (size_t i = 0; i < CY_COUNT_OF(particles); i++) {
        cy_bytes particle = cy_bytes_from_text(particles[i]);
        if (word.count <= particle.count) continue;
        if (cy_bytes_equal(cy_bytes_skip(word, word.count - particle.count), particle)) return particle.count;
    }
    return 0;
}
