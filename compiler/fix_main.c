/* SPDX-License-Identifier: MIT
 *
 * compiler/fix_main.c: puts the statements at the end of a file into main.
 *
 * In:   tokens. In the earlier dialect a file ran from its first line to its last.
 * Out:  `export fn main(args) {` before the first statement, `}` behind the last, when nothing but statements and
 *       variables follows it. Else a remark: functions below would become local ones and see other variables.
 */
#include "compiler/fix_internal.h"

/* The index behind the declaration that begins at `index`; `index` itself when a statement does. */
static uint32_t fix_main_skip_declaration(const struct fix *fix, uint32_t index)
{
    const struct token *tokens = fix->tokens;
    bool joined;
    uint32_t at = index + (tokens[index].kind == TOKEN_EXPORT);
    switch (tokens[at].kind) {
    case TOKEN_LET:
    case TOKEN_CONST:
        if (tokens[at + 1].kind != TOKEN_NAME) return index;
        for (at += 2; tokens[at].kind == TOKEN_COLON || tokens[at].kind == TOKEN_NAME ||
                      tokens[at].kind == TOKEN_BAR || tokens[at].kind == TOKEN_DOT;)
            at++; /* its kind */
        return tokens[at].kind == TOKEN_ASSIGN ? fix_expression_end(fix, at + 1, &joined) : at;
    case TOKEN_IMPORT:
        while (tokens[at].kind != TOKEN_STR && tokens[at].kind != TOKEN_END) at++;
        return at + (tokens[at].kind != TOKEN_END);
    case TOKEN_FN:
        if (tokens[at + 1].kind != TOKEN_NAME) return index;
        while (tokens[at].kind != TOKEN_PAREN_OPEN && tokens[at].kind != TOKEN_END) at++;
        at = fix_close(fix, at); /* a default may hold a map */
        break;
    case TOKEN_RECORD:
    case TOKEN_TEST: break;
    default: return index;
    }
    while (tokens[at].kind != TOKEN_BRACE_OPEN && tokens[at].kind != TOKEN_END) at++;
    at = fix_close(fix, at);
    return at + (tokens[at].kind != TOKEN_END);
}

/* A declaration other than of a variable at the top level behind `index`; the end when there is none. */
static uint32_t fix_main_next_declaration(const struct fix *fix, uint32_t index)
{
    for (; fix->tokens[index].kind != TOKEN_END; index++) {
        uint8_t kind = fix->tokens[index].kind;
        bool begins = fix_begins_statement(fix, index);
        bool function = kind == TOKEN_FN && fix->tokens[index + 1].kind == TOKEN_NAME;
        bool other = kind == TOKEN_IMPORT || kind == TOKEN_EXPORT || kind == TOKEN_RECORD ||
                     kind == TOKEN_TEST || kind == TOKEN_CONST;
        if (begins && (function || other)) break;
        if (kind == TOKEN_PAREN_OPEN || kind == TOKEN_BRACKET_OPEN || kind == TOKEN_BRACE_OPEN)
            index = fix_close(fix, index);
        if (fix->tokens[index].kind == TOKEN_END) break;
    }
    return index;
}

void fix_top_level(struct fix *fix)
{
    uint32_t at = 0;
    bool has_main = false;
    while (fix->tokens[at].kind != TOKEN_END) {
        uint32_t name = at + (fix->tokens[at].kind == TOKEN_EXPORT) + 1;
        if (name < fix->token_count && fix->tokens[name - 1].kind == TOKEN_FN &&
            cy_bytes_equal(fix->tokens[name].text, CY_BYTES("main")))
            has_main = true;
        uint32_t next = fix_main_skip_declaration(fix, at);
        if (next == at) break;
        at = next;
    }
    const struct token *first = &fix->tokens[at];
    if (first->kind == TOKEN_END) return;
    uint32_t end = fix_main_next_declaration(fix, at);
    if (has_main || fix->tokens[end].kind != TOKEN_END || !first->line_start) {
        fix_remain(fix, FIX_TOP_LEVEL, first->span, source_slice(&fix->source, first->span));
        return;
    }
    bool korean = fix->source.text.data[fix->tokens[0].span.start] >= 0x80;
    uint32_t last = fix->tokens[end - 1].span.end;
    cy_bytes text = fix->source.text;
    while (last < text.count && text.data[last] != '\n') last++; /* a comment on the last line stays on it */
    fix_edit(fix, FIX_MAIN, first->span.start, first->span.start,
             korean ? CY_BYTES("내보내기 함수 main(args) {\n") : CY_BYTES("export fn main(args) {\n"));
    fix_edit(fix, FIX_ROW_COUNT, last, last, CY_BYTES("\n}"));
}
