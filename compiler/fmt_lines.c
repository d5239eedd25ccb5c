/* SPDX-License-Identifier: MIT
 *
 * compiler/fmt_lines.c: lines of code with their comments, and comments in columns.
 *
 * In:   pieces of lines. Out: the text; every line ends in \n, none in space.
 */
#include "compiler/fmt_internal.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"

#define FMT_LINES_INDENT 4

void fmt_lines_init(struct fmt_lines *lines)
{
    *lines = (struct fmt_lines){0};
    builder_init(&lines->text);
}

void fmt_lines_fini(struct fmt_lines *lines)
{
    builder_fini(&lines->text);
    mem_free(lines->items);
    *lines = (struct fmt_lines){0};
}

bool fmt_lines_at_start(const struct fmt_lines *lines) { return !lines->open; }

void fmt_lines_begin(struct fmt_lines *lines, uint32_t indent)
{
    if (lines->count == lines->capacity) {
        uint32_t capacity = lines->capacity ? lines->capacity * 2 : 256;
        struct fmt_line *items = mem_resize(lines->items, capacity * sizeof *items);
        if (!items) mem_exhausted();
        lines->items = items;
        lines->capacity = capacity;
    }
    uint32_t at = (uint32_t)lines->text.count;
    lines->items[lines->count++] = (struct fmt_line){.indent = indent,
                                                     .code_start = at,
                                                     .code_end = at,
                                                     .comment_start = at,
                                                     .comment_end = at,
                                                     .blank_before = lines->blank && lines->count > 1};
    lines->open = true;
    lines->blank = false;
}

void fmt_lines_code(struct fmt_lines *lines, cy_bytes code)
{
    struct fmt_line *line = &lines->items[lines->count - 1];
    for (size_t i = 0; i < code.count; i++) {
        if (code.data[i] == '\n') line->spans_lines = true;
        if (code.data[i] != '\r') builder_u8(&lines->text, code.data[i]); /* as the lexer reads raw strings */
    }
    line->code_end = line->comment_start = line->comment_end = (uint32_t)lines->text.count;
}

void fmt_lines_comment(struct fmt_lines *lines, cy_bytes comment)
{
    if (!lines->open) fmt_lines_begin(lines, 0); /* the first bytes of a file */
    struct fmt_line *line = &lines->items[lines->count - 1];
    while (comment.count > 0 &&
           (comment.data[comment.count - 1] == ' ' || comment.data[comment.count - 1] == '\t' ||
            comment.data[comment.count - 1] == '\r'))
        comment.count--;
    builder_bytes(&lines->text, comment);
    line->comment_end = (uint32_t)lines->text.count;
}

void fmt_lines_end(struct fmt_lines *lines) { lines->open = false; }
void fmt_lines_blank(struct fmt_lines *lines) { lines->blank = true; }

/* -- writing ------------------------------------------------------------------------------------------------------- */
static bool fmt_lines_has_both(const struct fmt_line *line)
{
    return line->code_end > line->code_start && line->comment_end > line->comment_start && !line->spans_lines;
}

static uint32_t fmt_lines_columns(const struct fmt_lines *lines, const struct fmt_line *line)
{
    cy_bytes code = cy_bytes_slice(builder_view(&lines->text), line->code_start, line->code_end);
    return line->indent * FMT_LINES_INDENT + (uint32_t)text_width(code);
}

/* The column of comments behind code, for the run of lines of one indentation that begins at `first`; *end_out is the
 * line behind it. */
static uint32_t fmt_lines_comment_column(const struct fmt_lines *lines, uint32_t first, uint32_t *end_out)
{
    uint32_t widest = 0, i = first;
    while (i < lines->count && fmt_lines_has_both(&lines->items[i]) &&
           (i == first || !lines->items[i].blank_before) &&
           lines->items[i].indent == lines->items[first].indent) {
        uint32_t columns = fmt_lines_columns(lines, &lines->items[i++]);
        if (columns > widest) widest = columns;
    }
    *end_out = i;
    return widest + 1;
}

static void fmt_lines_spaces(struct builder *out, uint32_t count)
{
    for (; count > 0; count--) builder_u8(out, ' ');
}

void fmt_lines_write(const struct fmt_lines *lines, struct builder *out)
{
    cy_bytes text = builder_view(&lines->text);
    uint32_t run_end = 0, column = 0;
    for (uint32_t i = 0; i < lines->count; i++) {
        const struct fmt_line *line = &lines->items[i];
        if (line->blank_before) builder_u8(out, '\n');
        if (i >= run_end && fmt_lines_has_both(line)) column = fmt_lines_comment_column(lines, i, &run_end);
        fmt_lines_spaces(out, line->indent * FMT_LINES_INDENT);
        builder_bytes(out, cy_bytes_slice(text, line->code_start, line->code_end));
        if (line->comment_end > line->comment_start) {
            if (fmt_lines_has_both(line))
                fmt_lines_spaces(out, column - fmt_lines_columns(lines, line));
            else if (line->code_end > line->code_start)
                builder_u8(out, ' ');
            builder_bytes(out, cy_bytes_slice(text, line->comment_start, line->comment_end));
        }
        builder_u8(out, '\n');
    }
}
