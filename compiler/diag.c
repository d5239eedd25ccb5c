/* SPDX-License-Identifier: MIT
 *
 * compiler/diag.c: sorts messages by place and draws the source line under each.
 *
 * In:   struct diag_list. Out: text in Korean or English.
 * Invariant: the caret stands under the right column of a terminal: tabs are kept as tabs, Hangul is two wide. Control
 *            characters of the source never reach the terminal.
 * Not here: what is an error (the passes).
 */
#include "compiler/diag.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"

#include <stdlib.h>

enum {
    DIAG_NEAREST_MAX = 50,        /* messages past that many are not worth a search through every name */
    DIAG_LINE_BYTES_BEFORE = 160, /* of a very long line, what is shown before the caret */
    DIAG_LINE_BYTES_BEHIND = 160
};

struct diag_row {
    uint16_t number;
    const char *korean, *english, *korean_hint, *english_hint;
};
static const struct diag_row diag_rows[] = {
#define DIAG(name, number, korean, english, korean_hint, english_hint) \
    {number, korean, english, korean_hint, english_hint},
#include "compiler/diag.def"
#undef DIAG
};

void diag_init(struct diag_list *list, struct arena *arena, bool korean)
{
    *list = (struct diag_list){.arena = arena, .korean = korean};
}

static struct diag *diag_next(struct diag_list *list)
{
    if (list->count == LIMIT_COMPILE_ERRORS) {
        list->dropped_count++;
        return &list->dropped;
    }
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = arena_grow(list->arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    return &list->items[list->count++];
}

struct diag *diag_report(struct diag_list *list, const struct source *source, struct span span,
                         enum diag_code code, cy_bytes argument_0, cy_bytes argument_1, cy_bytes argument_2)
{
    CHECK(code < DIAG_CODE_COUNT);
    struct diag *diag = diag_next(list);
    *diag = (struct diag){.code = code,
                          .source = source,
                          .span = span,
                          .arguments = {argument_0, argument_1, argument_2},
                          .order = list->count};
    return diag;
}

struct diag *diag_report_0(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code)
{
    return diag_report(list, source, span, code, CY_BYTES_NONE, CY_BYTES_NONE, CY_BYTES_NONE);
}
struct diag *diag_report_1(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code, cy_bytes argument)
{
    return diag_report(list, source, span, code, argument, CY_BYTES_NONE, CY_BYTES_NONE);
}
struct diag *diag_report_2(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code, cy_bytes argument_0, cy_bytes argument_1)
{
    return diag_report(list, source, span, code, argument_0, argument_1, CY_BYTES_NONE);
}

cy_bytes diag_number(struct diag_list *list, int64_t number)
{
    struct builder text;
    builder_init(&text);
    builder_i64_text(&text, number);
    cy_bytes copy = arena_copy(list->arena, builder_view(&text));
    builder_fini(&text);
    return copy;
}

bool diag_wants_nearest(const struct diag_list *list) { return list->count <= DIAG_NEAREST_MAX; }

/* -- order --------------------------------------------------------------------------------------------------------- */

static int diag_compare_numbers(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

static int diag_compare(const void *left, const void *right)
{
    const struct diag *a = left, *b = right;
    int order = diag_compare_numbers(a->source ? a->source->index : UINT32_MAX,
                                     b->source ? b->source->index : UINT32_MAX);
    if (!order) order = diag_compare_numbers(a->span.start, b->span.start);
    if (!order) order = diag_compare_numbers(a->code, b->code);
    return order ? order : diag_compare_numbers(a->order, b->order);
}

static bool diag_is_twin(const struct diag *a, const struct diag *b)
{
    if (a->source != b->source || a->span.start != b->span.start || a->code != b->code) return false;
    for (int i = 0; i < DIAG_ARGUMENTS_MAX; i++)
        if (!cy_bytes_equal(a->arguments[i], b->arguments[i])) return false;
    return true;
}

/* -- text ---------------------------------------------------------------------------------------------------------- */

/* What a terminal would not show as itself becomes U+FFFD, one column wide. */
static void diag_put_code_point(struct builder *out, uint32_t code_point)
{
    bool hidden = (code_point < 0x20 && code_point != '\t') || (code_point >= 0x7f && code_point < 0xa0) ||
                  text_is_bidi_control(code_point);
    text_encode(out, hidden ? 0xFFFD : code_point);
}

static void diag_put_text(struct builder *out, cy_bytes text)
{
    for (size_t offset = 0; offset < text.count;) {
        uint32_t code_point;
        size_t length;
        bool valid = text_decode(cy_bytes_skip(text, offset), &code_point, &length);
        diag_put_code_point(out, valid ? code_point : 0xFFFD);
        offset += length;
    }
}

/* Korean particles differ behind a vowel and behind a consonant; what a reader says for Latin letters is not known, so
 * there both stand. */
struct diag_particle {
    const char *marker, *behind_consonant, *behind_vowel, *both;
};
static const struct diag_particle diag_particles[] = {{"{은}", "은", "는", "은(는)"},
                                                      {"{이}", "이", "가", "이(가)"},
                                                      {"{을}", "을", "를", "을(를)"},
                                                      {"{로}", "으로", "로", "(으)로"}};

static uint32_t diag_last_letter(cy_bytes word)
{
    uint32_t last = 0;
    for (size_t offset = 0; offset < word.count;) {
        uint32_t code_point;
        size_t length;
        if (text_decode(cy_bytes_skip(word, offset), &code_point, &length) && code_point != '`')
            last = code_point;
        offset += length;
    }
    return last;
}

/* The length of the marker at `text`; 0 when none stands there. */
static size_t diag_put_particle(struct builder *out, const char *text, cy_bytes word)
{
    enum { FIRST_SYLLABLE = 0xAC00, LAST_SYLLABLE = 0xD7A3, FINALS = 28, FINAL_RIEUL = 8 };
    for (size_t i = 0; i < CY_COUNT_OF(diag_particles); i++) {
        const struct diag_particle *particle = &diag_particles[i];
        size_t bytes = strlen(particle->marker);
        if (strncmp(text, particle->marker, bytes) != 0) continue;
        uint32_t letter = diag_last_letter(word);
        if (letter < FIRST_SYLLABLE || letter > LAST_SYLLABLE) {
            builder_text(out, particle->both);
            return bytes;
        }
        uint32_t final = (letter - FIRST_SYLLABLE) % FINALS;
        bool like_vowel = final == 0 || (final == FINAL_RIEUL && strcmp(particle->behind_vowel, "로") == 0);
        builder_text(out, like_vowel ? particle->behind_vowel : particle->behind_consonant);
        return bytes;
    }
    return 0;
}

static void diag_put_template(struct builder *out, const char *text, const struct diag *diag)
{
    cy_bytes word = CY_BYTES_NONE; /* the argument written last */
    for (const char *c = text; *c;) {
        size_t marker_bytes = *c == '{' ? diag_put_particle(out, c, word) : 0;
        bool place = *c == '{' && c[1] >= '0' && c[1] < '0' + DIAG_ARGUMENTS_MAX && c[2] == '}';
        if (place) {
            word = diag->arguments[c[1] - '0'];
            diag_put_text(out, word);
            c += 3;
        } else if (marker_bytes) {
            c += marker_bytes;
        } else {
            builder_u8(out, (uint8_t)*c++);
        }
    }
}

/* The bytes of the line that holds `offset`, cut to a window around it when the line is very long. */
static cy_bytes diag_line_window(cy_bytes text, size_t offset, size_t *before_out)
{
    size_t start = offset, end = offset;
    while (start > 0 && text.data[start - 1] != '\n' && offset - start < DIAG_LINE_BYTES_BEFORE) start--;
    while (end < text.count && text.data[end] != '\n' && end - offset < DIAG_LINE_BYTES_BEHIND) end++;
    while (start < offset && (text.data[start] & 0xC0) == 0x80) start++; /* not inside a code point */
    while (end < text.count && end > offset && (text.data[end] & 0xC0) == 0x80) end--;
    if (end > start && text.data[end - 1] == '\r') end--;
    *before_out = offset - start;
    return cy_bytes_slice(text, start, cy_max_size(end, offset));
}

static size_t diag_shown_width(cy_bytes text)
{
    struct builder shown;
    builder_init(&shown);
    diag_put_text(&shown, text);
    size_t width = text_width(builder_view(&shown));
    builder_fini(&shown);
    return width;
}

static void diag_put_line(struct builder *out, const struct diag *diag)
{
    size_t before_bytes;
    cy_bytes text = diag->source->text;
    cy_bytes line = diag_line_window(text, cy_min_size(diag->span.start, text.count), &before_bytes);
    builder_text(out, "    ");
    diag_put_text(out, line);
    builder_text(out, "\n    ");

    for (size_t offset = 0; offset < before_bytes;) {
        uint32_t code_point;
        size_t length;
        (void)!text_decode(cy_bytes_skip(line, offset), &code_point, &length);
        cy_bytes one = cy_bytes_slice(line, offset, offset + length);
        size_t width = diag_shown_width(one);
        if (line.data[offset] == '\t')
            builder_u8(out, '\t');
        else
            for (; width > 0; width--) builder_u8(out, ' ');
        offset += length;
    }
    size_t span_bytes = diag->span.end > diag->span.start ? diag->span.end - diag->span.start : 0;
    size_t carets = diag_shown_width(cy_bytes_slice(line, before_bytes, before_bytes + span_bytes));
    for (carets = carets ? carets : 1; carets > 0; carets--) builder_u8(out, '^');
    builder_u8(out, '\n');
}

static void diag_put_hint(struct builder *out, const struct diag *diag, bool korean)
{
    const struct diag_row *row = &diag_rows[diag->code];
    const char *hint = korean ? row->korean_hint : row->english_hint;
    if (!diag->nearest.count && !*hint) return;
    builder_text(out, korean ? "  도움말: " : "  hint: ");
    if (diag->nearest.count) {
        builder_text(out, korean ? "혹시 `" : "did you mean `");
        diag_put_text(out, diag->nearest);
        builder_text(out, "`?");
    } else {
        diag_put_template(out, hint, diag);
    }
    builder_u8(out, '\n');
}

static void diag_put(struct builder *out, const struct diag *diag, bool korean)
{
    const struct diag_row *row = &diag_rows[diag->code];
    if (diag->source) {
        diag_put_text(out, diag->source->file);
        builder_printf(out, ":%u:%u: ", diag->span.line, diag->span.column);
    }
    builder_printf(out, korean ? "오류 E%04u: " : "error E%04u: ", row->number);
    diag_put_template(out, korean ? row->korean : row->english, diag);
    builder_u8(out, '\n');
    if (diag->source) diag_put_line(out, diag);
    diag_put_hint(out, diag, korean);
}

uint32_t diag_render(struct diag_list *list, struct builder *out)
{
    if (list->count == 0) return 0;
    qsort(list->items, list->count, sizeof *list->items, diag_compare);
    uint32_t shown_count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (i > 0 && diag_is_twin(&list->items[i - 1], &list->items[i])) continue;
        diag_put(out, &list->items[i], list->korean);
        shown_count++;
    }
    uint32_t count = shown_count + list->dropped_count;
    if (list->dropped_count)
        builder_printf(out,
                       list->korean ? "더 있는 오류 %u건은 보이지 않았습니다\n" : "%u more are not shown\n",
                       list->dropped_count);
    if (list->korean)
        builder_printf(out, "오류 %u건\n", count);
    else
        builder_printf(out, count == 1 ? "%u error\n" : "%u errors\n", count);
    return count;
}
