/* SPDX-License-Identifier: MIT
 *
 * compiler/fmt_internal.h: what format.c and fmt_lines.c share.
 */
#ifndef CY_COMPILER_FMT_INTERNAL_H
#define CY_COMPILER_FMT_INTERNAL_H

#include "compiler/fmt.h"
#include "compiler/lexer.h"

#define FMT_BRACKETS_MAX (4 * LIMIT_NESTING_DEPTH) /* ( [ { of one level of nesting, and interpolations */

struct fmt_token {
    uint8_t kind;
    bool is_name;  /* a keyword's word where any word is a name */
    bool is_unary; /* `-`, `~`, `!` with one operand */
    struct span span;
    struct token token;
};
struct fmt_token_list {
    struct fmt_token *items;
    uint32_t count, capacity;
};

struct fmt_bracket {
    uint8_t kind;
    bool is_map;
    uint32_t line_indent; /* of the line it stands on */
};

/* One line: code, then a comment behind it. Offsets into `text`. */
struct fmt_line {
    uint32_t indent;
    uint32_t code_start, code_end;
    uint32_t comment_start, comment_end;
    bool blank_before;
    bool spans_lines; /* a raw string with line ends: no column can be given to a comment */
};
struct fmt_lines {
    struct builder text;
    struct fmt_line *items; /* the one being written is the last */
    uint32_t count, capacity;
    bool open;  /* something stands on the last line */
    bool blank; /* a blank line comes before the next */
};

struct fmt {
    struct arena *arena;
    struct diag_list *diags;
    const struct map *keywords;
    const struct source *source;
    const struct fmt_options *options;
    struct fmt_lines lines;
    struct fmt_bracket brackets[FMT_BRACKETS_MAX];
    uint32_t bracket_count;
    uint32_t line_indent;
    bool bar_tight;    /* the last `|` had no space before it */
    bool gap_is_fresh; /* no comment was met since the last token */
};

void fmt_lines_init(struct fmt_lines *lines);
void fmt_lines_fini(struct fmt_lines *lines);
bool fmt_lines_at_start(const struct fmt_lines *lines);
void fmt_lines_begin(struct fmt_lines *lines, uint32_t indent);
void fmt_lines_code(struct fmt_lines *lines, cy_bytes code);
void fmt_lines_comment(struct fmt_lines *lines, cy_bytes comment);
void fmt_lines_end(struct fmt_lines *lines);
void fmt_lines_blank(struct fmt_lines *lines);
void fmt_lines_write(const struct fmt_lines *lines, struct builder *out);

#endif
