/* SPDX-License-Identifier: MIT
 *
 * compiler/fix.c: the run of crownyc fix: reading tokens, collecting edits, applying them, saying what was done.
 *
 * In:   a source. Out: the new text, and messages.
 * Order: trit marks, which are no tokens; then what tokens tell; then statements of the top level; then names. Each
 *        step reads the text that the one before has made.
 * Invariant: edits do not overlap; those at one place keep the order in which they were made.
 * Not here: what is rewritten (fix_tokens.c, fix_main.c, fix_names.c).
 */
#include "compiler/fix_internal.h"
#include "compiler/unit.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <stdlib.h>

static const char *const fix_texts[FIX_ROW_COUNT][2] = {
#define REWRITE(id, korean, english) [FIX_##id] = {korean, english},
#define REMAINS(id, korean, english) [FIX_##id] = {korean, english},
#include "compiler/fix.def"
#undef REWRITE
#undef REMAINS
};
static const char *const fix_ids[FIX_ROW_COUNT] = {
#define REWRITE(id, korean, english) [FIX_##id] = #id,
#define REMAINS(id, korean, english) [FIX_##id] = #id,
#include "compiler/fix.def"
#undef REWRITE
#undef REMAINS
};

/* -- tokens -------------------------------------------------------------------------------------------------------- */

/* What the lexer reports and fix mends: `;`, compound assignments, and trit marks as long as they stand. */
static bool fix_mends(const struct diag *diag)
{
    static const char *const marks[] = {"▲", "■", "▼"};
    if (diag->code == DIAG_SEMICOLON || diag->code == DIAG_COMPOUND_ASSIGNMENT) return true;
    for (size_t i = 0; i < CY_COUNT_OF(marks); i++)
        if (diag->code == DIAG_UNKNOWN_CHARACTER &&
            cy_bytes_equal(diag->arguments[0], cy_bytes_from_text(marks[i])))
            return true;
    return false;
}

bool fix_lex(struct fix *fix, struct builder *messages)
{
    struct lexer lexer;
    struct diag_list diags, none;
    diag_init(&diags, &fix->arena);
    diag_init(&none, &fix->arena);
    lexer_init(&lexer, &fix->arena, &diags, &fix->source, &fix->keywords);
    fix->token_count = 0;
    uint32_t mended = 0;
    struct token token;
    do {
        token = lexer_next(&lexer);
        if (fix->token_count == fix->token_capacity) {
            uint32_t capacity = fix->token_capacity ? fix->token_capacity * 2 : 256;
            fix->tokens = arena_grow(&fix->arena, fix->tokens, fix->token_capacity * sizeof token,
                                     capacity * sizeof token);
            fix->token_capacity = capacity;
        }
        fix->tokens[fix->token_count++] = token;
        /* The list has a bound, and what is mended may be more than that. */
        while (diags.count > mended && fix_mends(&diags.items[diags.count - 1])) diags.count--;
        mended = diags.count;
    } while (token.kind != TOKEN_END);
    struct diag_style style = {.korean = fix->options->korean};
    if (diags.count > 0) (void)diag_render(&diags, &none, &style, messages);
    return diags.count == 0;
}

/* -- edits --------------------------------------------------------------------------------------------------------- */

void fix_edit(struct fix *fix, enum fix_row row, uint32_t start, uint32_t end, cy_bytes text)
{
    if (fix->edit_count == fix->edit_capacity) {
        uint32_t capacity = fix->edit_capacity ? fix->edit_capacity * 2 : 64;
        fix->edits = arena_grow(&fix->arena, fix->edits, fix->edit_capacity * sizeof *fix->edits,
                                capacity * sizeof *fix->edits);
        fix->edit_capacity = capacity;
    }
    fix->edits[fix->edit_count] = (struct fix_edit){start, end, text, fix->edit_count};
    fix->edit_count++;
    if (row != FIX_ROW_COUNT) fix->made[row]++;
}

/* A place in the old text, in the new one. */
static uint32_t fix_moved(const struct fix *fix, uint32_t offset)
{
    uint32_t moved = offset;
    for (uint32_t i = 0; i < fix->edit_count && fix->edits[i].start <= offset; i++) {
        const struct fix_edit *edit = &fix->edits[i];
        if (edit->end <= offset)
            moved += (uint32_t)edit->text.count - (edit->end - edit->start);
        else
            moved -= offset - edit->start; /* inside of what is replaced: at its start */
    }
    return moved;
}

static void fix_find_place(const struct fix *fix, struct span *span)
{
    cy_bytes text = fix->source.text;
    span->line = span->column = 1;
    for (uint32_t i = 0; i < span->start && i < text.count; i++) {
        if (text.data[i] == '\n') {
            span->line++;
            span->column = 1;
        } else if ((text.data[i] & 0xC0) != 0x80) {
            span->column++;
        }
    }
}

void fix_remain(struct fix *fix, enum fix_row row, struct span span, cy_bytes what)
{
    for (uint32_t i = 0; i < fix->remark_count; i++)
        if (fix->remarks[i].span.start == span.start && fix->remarks[i].row == row) return;
    if (fix->remark_count == fix->remark_capacity) {
        uint32_t capacity = fix->remark_capacity ? fix->remark_capacity * 2 : 16;
        fix->remarks = arena_grow(&fix->arena, fix->remarks, fix->remark_capacity * sizeof *fix->remarks,
                                  capacity * sizeof *fix->remarks);
        fix->remark_capacity = capacity;
    }
    fix_find_place(fix, &span);
    fix->remarks[fix->remark_count++] = (struct fix_remark){row, span, arena_copy(&fix->arena, what)};
}

cy_bytes fix_join(struct fix *fix, cy_bytes a, cy_bytes b, cy_bytes c)
{
    struct builder text;
    builder_init(&text);
    builder_bytes(&text, a);
    builder_bytes(&text, b);
    builder_bytes(&text, c);
    if (text.failed) mem_exhausted();
    cy_bytes copy = arena_copy(&fix->arena, builder_view(&text));
    builder_fini(&text);
    return copy;
}

/* At one place what is put in comes before what is taken out. */
static int fix_compare_edits(const void *left, const void *right)
{
    const struct fix_edit *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if ((a->end == a->start) != (b->end == b->start)) return a->end == a->start ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

bool fix_apply(struct fix *fix)
{
    if (fix->edit_count == 0) return false;
    qsort(fix->edits, fix->edit_count, sizeof *fix->edits, fix_compare_edits);
    struct builder text;
    builder_init(&text);
    uint32_t at = 0;
    for (uint32_t i = 0; i < fix->edit_count; i++) {
        const struct fix_edit *edit = &fix->edits[i];
        CHECK(edit->start >= at && edit->end >= edit->start);
        builder_bytes(&text, cy_bytes_slice(fix->source.text, at, edit->start));
        builder_bytes(&text, edit->text);
        at = edit->end;
    }
    builder_bytes(&text, cy_bytes_skip(fix->source.text, at));
    if (text.failed) mem_exhausted();
    fix->source.text = arena_copy(&fix->arena, builder_view(&text));
    builder_fini(&text);
    for (uint32_t i = 0; i < fix->remark_count; i++) {
        struct span *span = &fix->remarks[i].span;
        span->start = fix_moved(fix, span->start);
        fix_find_place(fix, span);
    }
    fix->edit_count = 0;
    return true;
}

/* -- messages ------------------------------------------------------------------------------------------------------ */

static void fix_say(const struct fix *fix, struct builder *messages, struct fix_counts *counts)
{
    bool korean = fix->options->korean;
    for (uint32_t row = 0; row < FIX_ROW_COUNT; row++) {
        if (!fix->made[row]) continue;
        counts->made += fix->made[row];
        builder_printf(messages, korean ? "%s: %s: %s (%u번)\n" : "%s: %s: %s (%u times)\n", fix->path,
                       fix_ids[row], fix_texts[row][korean ? 0 : 1], fix->made[row]);
    }
    for (uint32_t i = 0; i < fix->remark_count; i++) {
        const struct fix_remark *remark = &fix->remarks[i];
        const char *text = fix_texts[remark->row][korean ? 0 : 1];
        const char *hole = strstr(text, "%.*s");
        CHECK(hole);
        builder_printf(messages,
                       korean ? "%s:%u:%u: 고쳐 쓰지 않음 %s: " : "%s:%u:%u: not rewritten %s: ", fix->path,
                       remark->span.line, remark->span.column, fix_ids[remark->row]);
        builder_bytes(messages, cy_bytes_of(text, (size_t)(hole - text)));
        builder_bytes(messages, remark->what);
        builder_printf(messages, "%s\n", hole + strlen("%.*s"));
    }
}

/* -- the run ------------------------------------------------------------------------------------------------------- */

static cy_err fix_run(struct fix *fix, struct builder *messages, struct fix_counts *counts)
{
    if (!fix_lex(fix, messages)) return CY_ERR(BAD_FORMAT);
    fix_marks(fix);
    bool changed = fix_apply(fix);
    if (changed && !fix_lex(fix, messages)) return CY_ERR(INTERNAL);
    fix_tokens(fix);
    changed = fix_apply(fix);
    if (changed && !fix_lex(fix, messages)) return CY_ERR(INTERNAL);
    fix_top_level(fix);
    changed = fix_apply(fix);
    if (changed && !fix_lex(fix, messages)) return CY_ERR(INTERNAL);
    struct builder reports;
    builder_init(&reports);
    counts->remaining = fix_names(fix, &reports);
    counts->remaining += fix->remark_count;
    fix_say(fix, messages, counts);
    builder_bytes(messages, builder_view(&reports));
    builder_fini(&reports);
    return CY_OK;
}

cy_err fix_source(const char *path, cy_bytes text, const struct fix_options *options, struct builder *out,
                  struct builder *messages, struct fix_counts *counts_out)
{
    CHECK(options->read_source);
    if (text.count > LIMIT_SOURCE_BYTES) return CY_ERR(TOO_LARGE);
    struct fix fix = {
        .path = path, .options = options, .source = {.file = cy_bytes_from_text(path), .text = text}};
    arena_init(&fix.arena, 0);
    fix.arena.exit_when_exhausted = true;
    lexer_keywords_init(&fix.keywords);
    *counts_out = (struct fix_counts){0};
    cy_err err = fix_run(&fix, messages, counts_out);
    if (!cy_failed(err)) builder_bytes(out, fix.source.text);
    map_fini(&fix.keywords);
    arena_fini(&fix.arena);
    return err;
}
