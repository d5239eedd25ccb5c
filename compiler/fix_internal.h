/* SPDX-License-Identifier: MIT
 *
 * compiler/fix_internal.h: what the files of fix share: the run, its tokens, its edits.
 */
#ifndef CY_COMPILER_FIX_INTERNAL_H
#define CY_COMPILER_FIX_INTERNAL_H

#include "compiler/fix.h"
#include "compiler/lexer.h"

enum fix_row {
#define REWRITE(id, korean, english) FIX_##id,
#define REMAINS(id, korean, english) FIX_##id,
#include "compiler/fix.def"
#undef REWRITE
#undef REMAINS
    FIX_ROW_COUNT
};

struct fix_edit {
    uint32_t start, end; /* of the text that is replaced; equal: something is put in */
    cy_bytes text;
    uint32_t order;
};
struct fix_remark {
    enum fix_row row;
    struct span span;
    cy_bytes what;
};

struct fix {
    const char *path;
    const struct fix_options *options;
    struct arena arena;
    struct map keywords;
    struct source source;
    struct token *tokens; /* the end included */
    uint32_t token_count, token_capacity;
    struct fix_edit *edits;
    uint32_t edit_count, edit_capacity;
    struct fix_remark *remarks;
    uint32_t remark_count, remark_capacity;
    uint32_t made[FIX_ROW_COUNT];
};

/* fix.c */
/* The reasons that the text is no tokens are appended to `messages`; what fix itself rewrites is no reason. */
CY_NODISCARD bool fix_lex(struct fix *fix, struct builder *messages);
void fix_edit(struct fix *fix, enum fix_row row, uint32_t start, uint32_t end, cy_bytes text);
void fix_remain(struct fix *fix, enum fix_row row, struct span span, cy_bytes what);
/* Makes the edits the text, and forgets them. True when there were any. */
bool fix_apply(struct fix *fix);
cy_bytes fix_join(struct fix *fix, cy_bytes a, cy_bytes b, cy_bytes c);
/* fix_tokens.c: edits and remarks for what tokens tell. */
void fix_marks(struct fix *fix);
void fix_tokens(struct fix *fix);
/* fix_main.c: puts statements of the top level into main. */
void fix_top_level(struct fix *fix);
/* True at a token that begins a statement, by what stands before it. */
bool fix_begins_statement(const struct fix *fix, uint32_t index);
/* The index behind the expression that begins at `index`. */
uint32_t fix_expression_end(const struct fix *fix, uint32_t index, bool *joined_out);
/* The index of the bracket that closes the one at `index`; of the end when none does. */
uint32_t fix_close(const struct fix *fix, uint32_t index);
/* The keyword that a token is, or that a foreign word in its place means. */
uint8_t fix_kind(const struct fix *fix, uint32_t index);
/* fix_names.c: what the resolver tells. Appends what the compiler still reports, and returns how many that are. */
uint32_t fix_names(struct fix *fix, struct builder *messages);

#endif
