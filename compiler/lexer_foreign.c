/* SPDX-License-Identifier: MIT
 *
 * compiler/lexer_foreign.c: what other languages write: their quotes, marks and comments.
 *
 * In:   the lexer at a place where a token should begin.
 * Out:  a message that says what to write instead, and a token to go on with where one is meant without doubt.
 * Invariant: a sound program is never judged here: no row of foreign_mark.def can stand in one.
 *            `--` can (twice negated): parse_decrement.c judges it, where nothing else could be meant.
 * Not here: their words (foreign.def).
 */
#include "compiler/lexer_internal.h"

struct lexer_foreign_row {
    const char *mark;
    uint8_t reads_as;
    const char *korean, *english;
};
static const struct lexer_foreign_row lexer_foreign_rows[] = {
#define FOREIGN_MARK(mark, reads_as, korean, english) {mark, TOKEN_##reads_as, korean, english},
#include "compiler/foreign_mark.def"
#undef FOREIGN_MARK
};

static const struct lexer_foreign_row *lexer_foreign_find(const struct lexer *lexer)
{
    cy_bytes rest = cy_bytes_skip(lexer->source->text, lexer->offset);
    const struct lexer_foreign_row *best = NULL;
    size_t best_count = 0;
    for (size_t i = 0; i < CY_COUNT_OF(lexer_foreign_rows); i++) {
        cy_bytes mark = cy_bytes_from_text(lexer_foreign_rows[i].mark);
        if (mark.count <= best_count || !cy_bytes_start_with(rest, mark)) continue;
        best = &lexer_foreign_rows[i];
        best_count = mark.count;
    }
    return best;
}

static void lexer_foreign_skip_comment(struct lexer *lexer, bool block)
{
    for (; !lexer_at_end(lexer); lexer_advance(lexer, 1)) {
        if (!block && lexer_peek(lexer, 0) == '\n') return;
        if (block && lexer_peek(lexer, 0) == '*' && lexer_peek(lexer, 1) == '/') break;
    }
    lexer_advance(lexer, 2);
}

bool lexer_take_foreign(struct lexer *lexer, struct token *token, bool *is_token_out)
{
    const struct lexer_foreign_row *row = lexer_foreign_find(lexer);
    if (!row) return false;
    cy_bytes mark = cy_bytes_from_text(row->mark);
    struct span span = lexer_here(lexer, mark.count);
    if (!lexer->quiet)
        (void)diag_report(lexer->diags, lexer->source, span, DIAG_FOREIGN_MARK, mark,
                          cy_bytes_from_text(row->korean), cy_bytes_from_text(row->english));
    lexer_advance(lexer, mark.count);
    *is_token_out = row->reads_as != TOKEN_END && row->reads_as != TOKEN_NAME;
    if (*is_token_out) {
        token->kind = row->reads_as;
        token->span = span;
        token->text = source_slice(lexer->source, span);
    } else if (row->reads_as == TOKEN_NAME) {
        lexer_foreign_skip_comment(lexer, mark.data[0] == '/');
    } else {
        lexer->broken = true;
    }
    return true;
}

bool lexer_take_single_quotes(struct lexer *lexer, struct token *token)
{
    uint32_t end = 1;
    for (uint8_t byte; (byte = lexer_peek(lexer, end)) != '\''; end++) {
        if (byte == 0 || byte == '\n') return false;
        if (byte == '\\' && lexer_peek(lexer, end + 1) == '\'') end++;
    }
    token->span = lexer_here(lexer, end + 1);
    token->kind = TOKEN_STR;
    token->text = source_slice(lexer->source, (struct span){lexer->offset + 1, lexer->offset + end, 0, 0});
    (void)diag_report_1(lexer->diags, lexer->source, token->span, DIAG_SINGLE_QUOTES, token->text);
    lexer_advance(lexer, end + 1);
    return true;
}
