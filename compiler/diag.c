/* SPDX-License-Identifier: MIT
 *
 * compiler/diag.c: collects messages, sorts them by place, and puts their words together.
 *
 * In:   rows of diag.def, places, arguments. Out: text in Korean or English.
 * Invariant: control characters of the source never reach the terminal.
 * Not here: what is an error (the passes), the source line and its carets (diag_text.c), JSON (diag_json.c).
 */
#include "compiler/diag_internal.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { DIAG_NEAREST_MAX = 50 }; /* messages past that many are not worth a search through every name */

struct diag_row {
    uint16_t number;
    bool warning;
    const char *korean, *english, *korean_hint, *english_hint;
};
static const struct diag_row diag_rows[] = {
#define DIAG(name, number, korean, english, korean_hint, english_hint) \
    {number, false, korean, english, korean_hint, english_hint},
#define WARNING(name, number, korean, english, korean_hint, english_hint) \
    {number, true, korean, english, korean_hint, english_hint},
#include "compiler/diag.def"
#undef DIAG
#undef WARNING
};

static const struct {
    const char *korean, *english;
} diag_labels[] = {
    {"", ""},
#define LABEL(name, korean, english) {korean, english},
#include "compiler/diag_label.def"
#undef LABEL
};

void diag_init(struct diag_list *list, struct arena *arena) { *list = (struct diag_list){.arena = arena}; }

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

void diag_add_label(struct diag *diag, enum diag_label label, const struct source *source, struct span span)
{
    CHECK(source);
    diag->label = label;
    diag->label_source = source;
    diag->label_span = span;
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

/* -- codes --------------------------------------------------------------------------------------------------------- */

bool diag_is_warning(enum diag_code code) { return diag_rows[code].warning; }

void diag_code_text(enum diag_code code, char text_out[DIAG_CODE_TEXT_BYTES])
{
    (void)snprintf(text_out, DIAG_CODE_TEXT_BYTES, "%c%04u", diag_rows[code].warning ? 'W' : 'E',
                   diag_rows[code].number % 10000u);
}

/* "W0101" into its letter, 0 when it has none, and its number. */
static bool diag_code_read(cy_bytes text, char *letter_out, uint32_t *number_out)
{
    char letter = text.count ? (char)(text.data[0] & ~0x20) : 0;
    size_t start = letter == 'E' || letter == 'W' ? 1 : 0;
    if (text.count == start || text.count - start > 4) return false;
    *letter_out = start ? letter : 0;
    *number_out = 0;
    for (size_t i = start; i < text.count; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        *number_out = *number_out * 10 + (uint32_t)(text.data[i] - '0');
    }
    return true;
}

static bool diag_code_has_letter(unsigned code, char letter)
{
    return !letter || diag_rows[code].warning == (letter == 'W');
}

bool diag_code_find(cy_bytes text, enum diag_code *code_out)
{
    char letter;
    uint32_t number;
    if (!diag_code_read(text, &letter, &number)) return false;
    for (unsigned code = 0; code < DIAG_CODE_COUNT; code++) {
        if (diag_rows[code].number != number || !diag_code_has_letter(code, letter)) continue;
        *code_out = (enum diag_code)code;
        return true;
    }
    return false;
}

bool diag_code_nearest(cy_bytes text, enum diag_code *code_out)
{
    char letter;
    uint32_t number, best = UINT32_MAX;
    if (!diag_code_read(text, &letter, &number)) return false;
    for (unsigned code = 0; code < DIAG_CODE_COUNT; code++) {
        uint32_t other = diag_rows[code].number;
        uint32_t distance = other > number ? other - number : number - other;
        /* The number itself under the other letter comes first of all; else the letter was meant. */
        if (distance && !diag_code_has_letter(code, letter)) continue;
        if (distance >= best) continue;
        best = distance;
        *code_out = (enum diag_code)code;
    }
    return best != UINT32_MAX;
}

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

void diag_put_text(struct builder *out, cy_bytes text)
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
                                                      {"{로}", "으로", "로", "(으)로"},
                                                      {"{와}", "과", "와", "과(와)"}};

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

void diag_put_message(struct builder *out, const struct diag *diag, bool korean)
{
    const struct diag_row *row = &diag_rows[diag->code];
    diag_put_template(out, korean ? row->korean : row->english, diag);
}

void diag_write_subject(enum diag_code code, bool korean, struct builder *out)
{
    struct diag diag = {.code = code};
    for (int i = 0; i < DIAG_ARGUMENTS_MAX; i++) diag.arguments[i] = CY_BYTES("…");
    diag_put_message(out, &diag, korean);
}

bool diag_put_hint(struct builder *out, const struct diag *diag, bool korean)
{
    const struct diag_row *row = &diag_rows[diag->code];
    const char *hint = korean ? row->korean_hint : row->english_hint;
    if (!diag->nearest.count && !*hint) return false;
    if (diag->nearest.count) {
        builder_text(out, korean ? "혹시 `" : "did you mean `");
        diag_put_text(out, diag->nearest);
        builder_text(out, "`?");
    } else {
        diag_put_template(out, hint, diag);
    }
    return true;
}

void diag_put_file(struct builder *out, const struct source *source, const struct diag_style *style)
{
    if (!cy_bytes_start_with(source->file, CY_BYTES("std:"))) diag_put_text(out, style->folder);
    diag_put_text(out, source->file);
}

const char *diag_label_text(enum diag_label label, bool korean)
{
    CHECK(label < CY_COUNT_OF(diag_labels));
    return korean ? diag_labels[label].korean : diag_labels[label].english;
}

/* -- all of them --------------------------------------------------------------------------------------------------- */

void diag_settle(struct diag_list *list)
{
    if (list->count == 0) return;
    qsort(list->items, list->count, sizeof *list->items, diag_compare);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < list->count; i++)
        if (!diag_is_twin(&list->items[kept - 1], &list->items[i])) list->items[kept++] = list->items[i];
    list->count = kept;
}

static uint32_t diag_render_list(struct diag_list *list, const struct diag_style *style, struct builder *out)
{
    diag_settle(list);
    for (uint32_t i = 0; i < list->count; i++) {
        if (style->json)
            diag_json_put(out, &list->items[i], style);
        else
            diag_text_put(out, &list->items[i], style);
    }
    return list->count + list->dropped_count;
}

static void diag_put_counts(struct builder *out, uint32_t count, uint32_t dropped_count, bool warnings,
                            bool korean)
{
    if (dropped_count)
        builder_printf(out,
                       korean ? warnings ? "더 있는 경고 %u건은 보이지 않았습니다\n"
                                         : "더 있는 오류 %u건은 보이지 않았습니다\n"
                              : "%u more are not shown\n",
                       dropped_count);
    if (korean)
        builder_printf(out, warnings ? "경고 %u건\n" : "오류 %u건\n", count);
    else
        builder_printf(out, "%u %s%s\n", count, warnings ? "warning" : "error", count == 1 ? "" : "s");
}

/* A program with errors may have warnings only because of them: so those are for programs without. */
struct diag_counts diag_render(struct diag_list *errors, struct diag_list *warnings,
                               const struct diag_style *style, struct builder *out)
{
    struct diag_counts counts = {0};
    counts.errors = diag_render_list(errors, style, out);
    if (!counts.errors) counts.warnings = diag_render_list(warnings, style, out);
    const struct diag_list *shown = counts.errors ? errors : warnings;
    uint32_t count = counts.errors ? counts.errors : counts.warnings;
    if (count && !style->json)
        diag_put_counts(out, count, shown->dropped_count, shown == warnings, style->korean);
    return counts;
}
