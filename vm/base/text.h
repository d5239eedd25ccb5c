/* SPDX-License-Identifier: MIT
 *
 * vm/base/text.h: UTF-8 text as people see it. utf8proc stands behind this header and nowhere else.
 *
 * Not here: case of ASCII protocol words (bytes.h).
 */
#ifndef CY_BASE_TEXT_H
#define CY_BASE_TEXT_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"

/* Decodes one code point. False at a malformed or truncated sequence; `*length_out` is then 1. */
CY_NODISCARD bool text_decode(cy_bytes text, uint32_t *code_point_out, size_t *length_out);
void text_encode(struct builder *builder, uint32_t code_point);
/* True when all of it is UTF-8; else `*offset_out` (may be NULL) is the first bad byte. */
CY_NODISCARD bool text_is_utf8(cy_bytes text, size_t *offset_out);
size_t text_code_point_count(cy_bytes text); /* malformed bytes count one each */
size_t text_grapheme_count(cy_bytes text);
/* Columns on a terminal: Hangul and CJK 2, combining 0, tab and control 1. */
size_t text_width(cy_bytes text);

/* The end of the grapheme cluster that begins at `offset`, which lies before the end of the text. */
size_t text_grapheme_end(cy_bytes text, size_t offset);
/* UPPER and LOWER: simple mappings, one code point to one. FOLD: full case folding, for comparing. */
enum text_case { TEXT_UPPER, TEXT_LOWER, TEXT_FOLD };
enum { TEXT_CASE_MAX = 4 };
/* What a valid code point becomes; gives how many there are, 1..TEXT_CASE_MAX. */
size_t text_map_case(uint32_t code_point, enum text_case to, uint32_t mapped_out[TEXT_CASE_MAX]);
bool text_is_space(uint32_t code_point);
bool text_is_mark(uint32_t code_point);             /* what normal forms put in order behind a letter */
bool text_code_point_is_valid(uint32_t code_point); /* what UTF-8 can say: no surrogate, not above U+10FFFF */

bool text_is_identifier_start(uint32_t code_point); /* a letter or _ */
bool text_is_identifier_part(uint32_t code_point);  /* a letter, a mark, a digit or _ */
bool text_is_bidi_control(uint32_t code_point);

/* Appends the text in normal form C. BAD_TEXT when it is not UTF-8. ASCII is copied unchanged. */
CY_NODISCARD cy_err text_to_nfc(cy_bytes text, struct builder *out);
CY_NODISCARD cy_err text_to_nfd(cy_bytes text, struct builder *out);
CY_NODISCARD bool text_is_nfc(cy_bytes text);

/* How many single edits (insert, delete, replace, swap of neighbours; by code point, Hangul by jamo) lead from a to
 * b; stops counting past `limit` and returns limit + 1. */
#define TEXT_DISTANCE_NO_MEMORY SIZE_MAX /* larger than any limit + 1 */
size_t text_edit_distance(cy_bytes a, cy_bytes b, size_t limit);

/* Nearest-name search: feed every known name, then read the best. Gives none when nothing is close enough
 * (more than a third of the letters wrong). Ties keep the earlier name. */
enum { NEAREST_NAME_BYTES = 96 }; /* comparing two names takes the product of their lengths */
struct nearest {
    cy_bytes wanted;
    size_t bytes_max; /* longer names are not compared: NEAREST_NAME_BYTES, or more for a program's answer */
    uint64_t work;    /* pairs of letters compared so far, for whoever charges them */
    cy_bytes best;    /* count 0 = none */
    size_t best_distance;
    bool
        no_memory; /* a name could not be compared: for a hint that does not matter, for a program's answer it does */
    uint32_t unit_count; /* of `wanted`, decoded once */
    uint32_t units[NEAREST_NAME_BYTES];
};
void nearest_init(struct nearest *nearest, cy_bytes wanted); /* for a hint: bytes_max is small */
void nearest_offer(struct nearest *nearest, cy_bytes candidate);

/* Length in bytes of a Korean particle (조사: 은 는 이 가 을 를 에 에서 의 로 으로 와 과 도 만 부터 까지) that ends
 * `word` with something before it; 0 when there is none. For the hint on `route에서`. */
size_t text_particle_length(cy_bytes word);

#endif
