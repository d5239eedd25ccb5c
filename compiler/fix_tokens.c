/* SPDX-License-Identifier: MIT
 *
 * compiler/fix_tokens.c: what tokens alone tell: trit marks, 만약3, builtins by number, keywords of other languages,
 * `;`, compound assignments.
 *
 * In:   the tokens of a source, and the bytes between them.
 * Out:  edits, and remarks about what is not certain.
 */
#include "compiler/fix_internal.h"
#include "compiler/foreign.h"

static bool fix_tokens_is(const struct fix *fix, uint32_t index, const char *word)
{
    return cy_bytes_equal(source_slice(&fix->source, fix->tokens[index].span), cy_bytes_from_text(word));
}

static uint8_t fix_tokens_kind(const struct fix *fix, uint32_t index)
{
    return index < fix->token_count ? fix->tokens[index].kind : TOKEN_END;
}

/* Korean where the word that is replaced is. */
static cy_bytes fix_tokens_spelling(const struct fix *fix, uint32_t index, uint8_t kind)
{
    bool korean = fix->source.text.data[fix->tokens[index].span.start] >= 0x80;
    return cy_bytes_from_text(token_spelling(kind, korean));
}

/* -- between tokens ------------------------------------------------------------------------------------------------ */

/* The next byte of [at, end) that is not in a comment. */
static uint32_t fix_tokens_skip_comment(cy_bytes text, uint32_t at, uint32_t end)
{
    if (at + 1 >= end || text.data[at] != '/' || text.data[at + 1] != '/') return at;
    while (at < end && text.data[at] != '\n') at++;
    return at;
}

void fix_marks(struct fix *fix)
{
    static const struct {
        const char *mark, *word;
    } rows[] = {{"▲", "티"}, {"■", "옴"}, {"▼", "타"}};
    cy_bytes text = fix->source.text;
    for (uint32_t i = 0; i < fix->token_count; i++) {
        uint32_t at = i ? fix->tokens[i - 1].span.end : 0, end = fix->tokens[i].span.start;
        for (; at < end; at++) {
            at = fix_tokens_skip_comment(text, at, end);
            for (size_t row = 0; row < CY_COUNT_OF(rows); row++) {
                cy_bytes mark = cy_bytes_from_text(rows[row].mark);
                if (at + mark.count > end || !cy_bytes_start_with(cy_bytes_skip(text, at), mark)) continue;
                fix_edit(fix, FIX_TRIT_MARK, at, at + (uint32_t)mark.count,
                         cy_bytes_from_text(rows[row].word));
            }
        }
    }
}

/* The line end and indentation of the line that `offset` lies in. */
static cy_bytes fix_tokens_new_line(struct fix *fix, uint32_t offset)
{
    cy_bytes text = fix->source.text;
    uint32_t start = offset, end;
    while (start > 0 && text.data[start - 1] != '\n') start--;
    for (end = start; end < offset && (text.data[end] == ' ' || text.data[end] == '\t'); end++)
        ;
    return fix_join(fix, CY_BYTES("\n"), cy_bytes_slice(text, start, end), CY_BYTES_NONE);
}

/* A `;` behind token i - 1. What follows on its line gets a line of its own: `a = b; (c)` must not become a call. */
static void fix_tokens_semicolon(struct fix *fix, uint32_t i, uint32_t at, uint32_t bracket_depth)
{
    struct span span = fix->tokens[i].span;
    cy_bytes text = fix->source.text;
    if (bracket_depth > 0) {
        fix_remain(fix, FIX_SEMICOLON_IN, (struct span){.start = at, .end = at + 1}, CY_BYTES(";"));
        return;
    }
    uint32_t end = at + 1;
    bool more = !fix->tokens[i].line_start && fix->tokens[i].kind != TOKEN_END;
    while (more && end < span.start && (text.data[end] == ' ' || text.data[end] == '\t')) end++;
    bool plain = more && end == span.start && fix->tokens[i].kind != TOKEN_BRACE_CLOSE;
    if (plain)
        fix_edit(fix, FIX_SEMICOLON, at, end, fix_tokens_new_line(fix, at));
    else
        fix_edit(fix, FIX_SEMICOLON, at, at + 1, CY_BYTES_NONE);
}

static bool fix_tokens_after_semicolon(const struct fix *fix, uint32_t i)
{
    uint32_t at = i ? fix->tokens[i - 1].span.end : 0, end = fix->tokens[i].span.start;
    for (; at < end; at++) {
        at = fix_tokens_skip_comment(fix->source.text, at, end);
        if (at < end && fix->source.text.data[at] == ';') return true;
    }
    return false;
}

/* Depth of ( and [ only: in a block inside of them `;` stands between statements again. */
static void fix_tokens_gaps(struct fix *fix)
{
    uint32_t depth = 0;
    uint32_t *outer = arena_alloc(&fix->arena, (fix->token_count + 1) * sizeof *outer);
    uint32_t outer_count = 0;
    for (uint32_t i = 0; i < fix->token_count; i++) {
        uint32_t at = i ? fix->tokens[i - 1].span.end : 0, end = fix->tokens[i].span.start;
        for (; at < end; at++) {
            at = fix_tokens_skip_comment(fix->source.text, at, end);
            if (at < end && fix->source.text.data[at] == ';') fix_tokens_semicolon(fix, i, at, depth);
        }
        switch (fix->tokens[i].kind) {
        case TOKEN_PAREN_OPEN:
        case TOKEN_BRACKET_OPEN: depth++; break;
        case TOKEN_PAREN_CLOSE:
        case TOKEN_BRACKET_CLOSE: depth -= depth > 0; break;
        case TOKEN_BRACE_OPEN:
            outer[outer_count++] = depth;
            depth = 0;
            break;
        case TOKEN_BRACE_CLOSE:
            if (outer_count > 0) depth = outer[--outer_count];
            break;
        default: break;
        }
    }
}

/* -- where things begin and end ------------------------------------------------------------------------------------ */

uint32_t fix_close(const struct fix *fix, uint32_t index)
{
    uint32_t depth = 0;
    for (; index + 1 < fix->token_count; index++) {
        switch (fix->tokens[index].kind) {
        case TOKEN_PAREN_OPEN:
        case TOKEN_BRACKET_OPEN:
        case TOKEN_BRACE_OPEN: depth++; break;
        case TOKEN_PAREN_CLOSE:
        case TOKEN_BRACKET_CLOSE:
        case TOKEN_BRACE_CLOSE:
            if (--depth == 0) return index;
            break;
        default: break;
        }
    }
    return index;
}

static bool fix_tokens_ends_operand(uint8_t kind)
{
    switch (kind) {
    case TOKEN_NAME:
    case TOKEN_INT:
    case TOKEN_FLOAT:
    case TOKEN_STR:
    case TOKEN_TEXT_END:
    case TOKEN_TRUE:
    case TOKEN_FALSE:
    case TOKEN_NIL:
    case TOKEN_PAREN_CLOSE:
    case TOKEN_BRACKET_CLOSE:
    case TOKEN_BRACE_CLOSE: return true;
    default: return false;
    }
}

static bool fix_tokens_is_binary(uint8_t kind)
{
    return kind == TOKEN_AND || kind == TOKEN_OR || kind == TOKEN_RANGE ||
           (kind >= TOKEN_EQ && kind <= TOKEN_SHIFT_RIGHT && kind != TOKEN_TILDE);
}

bool fix_begins_statement(const struct fix *fix, uint32_t index)
{
    if (index == 0 || fix->tokens[index].line_start) return true;
    uint8_t before = fix->tokens[index - 1].kind;
    return before == TOKEN_BRACE_OPEN || before == TOKEN_BRACE_CLOSE ||
           fix_tokens_after_semicolon(fix, index);
}

uint32_t fix_expression_end(const struct fix *fix, uint32_t index, bool *joined_out)
{
    bool operand = false; /* the token before ends one */
    *joined_out = false;
    uint32_t first = index;
    for (; fix->tokens[index].kind != TOKEN_END; index++) {
        const struct token *token = &fix->tokens[index];
        uint8_t kind = token->kind;
        if (index > first && operand) {
            bool opens = kind == TOKEN_PAREN_OPEN || kind == TOKEN_BRACKET_OPEN;
            bool minus = kind == TOKEN_MINUS;
            if (fix_tokens_after_semicolon(fix, index)) break;
            if ((opens || minus) && token->line_start) break;
            if (!opens && !fix_tokens_is_binary(kind) && kind != TOKEN_DOT) break;
        }
        if (operand && fix_tokens_is_binary(kind)) *joined_out = true;
        bool was_dot = index > first && fix->tokens[index - 1].kind == TOKEN_DOT;
        if (kind == TOKEN_FN && !was_dot) { /* fn (a) -> kind { ... } */
            while (fix->tokens[index].kind != TOKEN_BRACE_OPEN && fix->tokens[index].kind != TOKEN_END)
                index++;
            index = fix_close(fix, index);
        } else if (kind == TOKEN_TEXT_BEGIN) {
            while (fix->tokens[index].kind != TOKEN_TEXT_END && fix->tokens[index].kind != TOKEN_END) index++;
        } else if (kind == TOKEN_PAREN_OPEN || kind == TOKEN_BRACKET_OPEN || kind == TOKEN_BRACE_OPEN) {
            index = fix_close(fix, index);
        } else if (kind == TOKEN_BRACE_CLOSE || kind == TOKEN_PAREN_CLOSE || kind == TOKEN_BRACKET_CLOSE ||
                   kind == TOKEN_COMMA) {
            break;
        }
        if (fix->tokens[index].kind == TOKEN_END) break;
        operand = was_dot || fix_tokens_ends_operand(fix->tokens[index].kind);
    }
    return index;
}

uint8_t fix_kind(const struct fix *fix, uint32_t index)
{
    const struct token *token = &fix->tokens[index];
    if (token->kind != TOKEN_NAME) return token->kind;
    const struct foreign_row *row = foreign_find(token->text);
    uint8_t next = fix_tokens_kind(fix, index + 1), behind = fix_tokens_kind(fix, index + 2);
    bool exported = index > 0 && fix->tokens[index - 1].kind == TOKEN_EXPORT;
    bool begins = exported || fix_begins_statement(fix, index);
    if (!row) return TOKEN_NAME;
    switch (row->shape) {
    case FOREIGN_CALL:
        return begins && next == TOKEN_NAME && behind == TOKEN_PAREN_OPEN ? row->keyword : TOKEN_NAME;
    case FOREIGN_LET:
        return begins && next == TOKEN_NAME && behind == TOKEN_ASSIGN ? row->keyword : TOKEN_NAME;
    case FOREIGN_BEHIND: {
        bool closes = index > 0 && fix->tokens[index - 1].kind == TOKEN_BRACE_CLOSE;
        uint32_t close = next == TOKEN_PAREN_OPEN ? fix_close(fix, index + 1) : index;
        bool block = close > index && fix_tokens_kind(fix, close + 1) == TOKEN_BRACE_OPEN;
        return closes && block ? row->keyword : TOKEN_NAME;
    }
    default: return TOKEN_NAME;
    }
}

/* -- 만약3 --------------------------------------------------------------------------------------------------------- */

/* The trit that an arm's name means: TRUE, NIL or FALSE; else NAME. */
static uint8_t fix_tokens_trit(const struct fix *fix, uint32_t index)
{
    const struct token *token = &fix->tokens[index];
    if (token->kind == TOKEN_TRUE || token->kind == TOKEN_NIL || token->kind == TOKEN_FALSE)
        return token->kind;
    if (token->kind != TOKEN_NAME) return TOKEN_NAME;
    if (fix_tokens_is(fix, index, "긍정")) return TOKEN_TRUE;
    if (fix_tokens_is(fix, index, "보류")) return TOKEN_NIL;
    return fix_tokens_is(fix, index, "부정") ? TOKEN_FALSE : TOKEN_NAME;
}

static cy_bytes fix_tokens_trit_word(uint8_t trit)
{
    return trit == TOKEN_TRUE ? CY_BYTES("티") : trit == TOKEN_NIL ? CY_BYTES("옴") : CY_BYTES("타");
}

/* 만약3 (e) { 긍정: { } 보류: { } 부정: { } }: each arm at most once, in any order. With `edit` they are rewritten. */
static bool fix_tokens_if3(struct fix *fix, uint32_t index, bool edit)
{
    if (fix_tokens_kind(fix, index + 1) != TOKEN_PAREN_OPEN) return false;
    uint32_t at = fix_close(fix, index + 1) + 1;
    if (fix_tokens_kind(fix, at) != TOKEN_BRACE_OPEN) return false;
    uint32_t end = fix_close(fix, at++);
    bool seen[TOKEN_KIND_COUNT] = {false};
    if (fix->tokens[end].kind != TOKEN_BRACE_CLOSE) return false;
    if (edit)
        fix_edit(fix, FIX_IF3, fix->tokens[index].span.start, fix->tokens[index].span.end,
                 fix_tokens_spelling(fix, index, TOKEN_MATCH));
    while (at < end) {
        uint8_t trit = fix_tokens_trit(fix, at);
        bool arm = trit != TOKEN_NAME && !seen[trit] && fix->tokens[at + 1].kind == TOKEN_COLON &&
                   fix->tokens[at + 2].kind == TOKEN_BRACE_OPEN;
        if (!arm) return false;
        seen[trit] = true;
        if (edit)
            fix_edit(fix, FIX_ROW_COUNT, fix->tokens[at].span.start, fix->tokens[at + 1].span.end,
                     fix_tokens_trit_word(trit));
        at = fix_close(fix, at + 2) + 1;
    }
    return at == end;
}

/* -- builtins by number -------------------------------------------------------------------------------------------- */

/* What a line of the table gives for `key` ("12", or "\"파일쓰기\""); count 0 when none does. */
static cy_bytes fix_tokens_builtin(cy_bytes table, cy_bytes key)
{
    for (size_t start = 0; start < table.count;) {
        size_t end = start + cy_bytes_find(cy_bytes_skip(table, start), '\n');
        cy_bytes line = cy_bytes_slice(table, start, end);
        start = end + 1;
        if (!cy_bytes_start_with(line, key)) continue;
        line = cy_bytes_skip(line, key.count);
        if (line.count == 0 || (line.data[0] != ' ' && line.data[0] != '\t')) continue;
        while (line.count > 0 && (line.data[0] == ' ' || line.data[0] == '\t')) line = cy_bytes_skip(line, 1);
        while (line.count > 0 && line.data[line.count - 1] <= ' ') line.count--;
        for (size_t i = 0; i < line.count; i++) {
            uint8_t c = line.data[i];
            bool good = c >= 0x80 || c == '_' || c == '.' || (c >= '0' && c <= '9') ||
                        ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
            if (!good) return CY_BYTES_NONE; /* no name of a function */
        }
        return line;
    }
    return CY_BYTES_NONE;
}

static void fix_tokens_call_builtin(struct fix *fix, uint32_t index)
{
    struct span key_span = fix->tokens[index + 2].span;
    uint8_t key_kind = fix_tokens_kind(fix, index + 2), behind = fix_tokens_kind(fix, index + 3);
    bool keyed = (key_kind == TOKEN_INT || key_kind == TOKEN_STR) &&
                 (behind == TOKEN_COMMA || behind == TOKEN_PAREN_CLOSE);
    cy_bytes key = keyed ? source_slice(&fix->source, key_span) : CY_BYTES_NONE;
    cy_bytes name = keyed ? fix_tokens_builtin(fix->options->builtins, key) : CY_BYTES_NONE;
    struct span span = fix->tokens[index].span;
    if (name.count == 0) {
        if (keyed) span.end = key_span.end;
        cy_bytes what = source_slice(&fix->source, span);
        fix_remain(fix, FIX_BUILTIN_KEY, span,
                   keyed ? fix_join(fix, what, CY_BYTES(")"), CY_BYTES_NONE) : what);
        return;
    }
    uint32_t end = behind == TOKEN_COMMA ? fix->tokens[index + 4].span.start : key_span.end;
    fix_edit(fix, FIX_BUILTIN, span.start, end, fix_join(fix, name, CY_BYTES("("), CY_BYTES_NONE));
}

/* -- trits in arithmetic ------------------------------------------------------------------------------------------- */

/* 티, 옴, 타 beside an operator that treats them as numbers or as an order, or 옴 beside and, or, not. */
static void fix_tokens_trit_math(struct fix *fix, uint32_t index)
{
    bool unknown = fix_tokens_is(fix, index, "옴");
    if (!unknown && !fix_tokens_is(fix, index, "티") && !fix_tokens_is(fix, index, "타")) return;
    uint8_t around[2] = {index ? fix->tokens[index - 1].kind : TOKEN_END, fix_tokens_kind(fix, index + 1)};
    for (int i = 0; i < 2; i++) {
        uint8_t kind = around[i];
        bool number = kind >= TOKEN_LT && kind <= TOKEN_SHIFT_RIGHT;
        bool logic = unknown && (kind == TOKEN_AND || kind == TOKEN_OR || kind == TOKEN_NOT);
        /* a minus that begins a line belongs to the next statement */
        if (i == 1 && kind == TOKEN_MINUS && fix->tokens[index + 1].line_start) continue;
        if (number || logic)
            fix_remain(fix, FIX_TRIT_MATH, fix->tokens[index].span,
                       source_slice(&fix->source, fix->tokens[index].span));
    }
}

/* -- x += y -------------------------------------------------------------------------------------------------------- */

/* The first token of the target that ends before `index`: a name, its fields, and items whose index does nothing;
 * `index` when it is none, or does not begin a statement. */
static uint32_t fix_tokens_target(const struct fix *fix, uint32_t index)
{
    uint32_t at = index;
    while (at > 0) {
        uint8_t kind = fix->tokens[at - 1].kind;
        if (kind == TOKEN_BRACKET_CLOSE) {
            for (at--; at > 0 && fix->tokens[at - 1].kind != TOKEN_BRACKET_OPEN; at--) {
                uint8_t inside = fix->tokens[at - 1].kind;
                bool quiet = inside == TOKEN_NAME || inside == TOKEN_INT || inside == TOKEN_STR ||
                             inside == TOKEN_DOT || inside == TOKEN_PLUS || inside == TOKEN_MINUS;
                if (!quiet) return index;
            }
            if (at > 0) at--;
            continue;
        }
        bool field = at >= 2 && fix->tokens[at - 2].kind == TOKEN_DOT;
        if (kind != TOKEN_NAME && !(field && token_is_keyword(kind))) return index;
        at--;
        if (!field) {
            bool joined = at > 0 && fix_tokens_ends_operand(fix->tokens[at - 1].kind);
            return fix_begins_statement(fix, at) || joined ? at : index;
        }
        at--;
    }
    return index;
}

static void fix_tokens_compound(struct fix *fix, uint32_t index)
{
    struct span span = fix->tokens[index].span;
    cy_bytes mark = source_slice(&fix->source, span);
    uint32_t target = fix_tokens_target(fix, index);
    bool joined;
    uint32_t end = fix_expression_end(fix, index + 1, &joined);
    if (target == index || end == index + 1) {
        fix_remain(fix, FIX_TARGET, span, mark);
        return;
    }
    cy_bytes left =
        cy_bytes_slice(fix->source.text, fix->tokens[target].span.start, fix->tokens[index - 1].span.end);
    cy_bytes op = cy_bytes_slice(mark, 0, mark.count - 1);
    fix_edit(fix, FIX_COMPOUND, span.start, span.end,
             fix_join(fix, CY_BYTES("= "), left, fix_join(fix, CY_BYTES(" "), op, CY_BYTES_NONE)));
    if (!joined) return;
    uint32_t start = fix->tokens[index + 1].span.start;
    fix_edit(fix, FIX_ROW_COUNT, start, start, CY_BYTES("("));
    fix_edit(fix, FIX_ROW_COUNT, fix->tokens[end - 1].span.end, fix->tokens[end - 1].span.end, CY_BYTES(")"));
}

/* -- one after another --------------------------------------------------------------------------------------------- */

static void fix_tokens_name(struct fix *fix, uint32_t index)
{
    struct span span = fix->tokens[index].span;
    uint8_t kind = fix_kind(fix, index), next = fix_tokens_kind(fix, index + 1);
    bool member = index > 0 && fix->tokens[index - 1].kind == TOKEN_DOT;
    if (kind != TOKEN_NAME) {
        fix_edit(fix, FIX_KEYWORD, span.start, span.end, fix_tokens_spelling(fix, index, kind));
    } else if (!member && (fix_tokens_is(fix, index, "만약3") || fix_tokens_is(fix, index, "if3"))) {
        if (fix_tokens_if3(fix, index, false))
            (void)fix_tokens_if3(fix, index, true);
        else if (next == TOKEN_PAREN_OPEN && fix_begins_statement(fix, index))
            fix_remain(fix, FIX_IF3_SHAPE, span, source_slice(&fix->source, span));
    } else if (!member && foreign_is_old_word(fix->tokens[index].text) && next == TOKEN_PAREN_OPEN) {
        fix_tokens_call_builtin(fix, index);
    } else if (fix_tokens_is(fix, index, "주장") && next == TOKEN_NAME && fix_begins_statement(fix, index)) {
        fix_remain(fix, FIX_CLAIM, span, source_slice(&fix->source, span));
    }
}

static void fix_tokens_catch(struct fix *fix, uint32_t index)
{
    const struct token *at = &fix->tokens[index];
    bool parens = index + 4 < fix->token_count && at[1].kind == TOKEN_PAREN_OPEN &&
                  at[2].kind == TOKEN_NAME && at[3].kind == TOKEN_PAREN_CLOSE &&
                  at[4].kind == TOKEN_BRACE_OPEN;
    if (!parens) return;
    cy_bytes space = at[1].span.start == at[0].span.end ? CY_BYTES(" ") : CY_BYTES_NONE;
    fix_edit(fix, FIX_CATCH, at[1].span.start, at[1].span.end, space);
    space = at[4].span.start == at[3].span.end ? CY_BYTES(" ") : CY_BYTES_NONE;
    fix_edit(fix, FIX_ROW_COUNT, at[3].span.start, at[3].span.end, space);
}

static void fix_tokens_else(struct fix *fix, uint32_t index)
{
    struct span word = fix->tokens[index].span, next = fix->tokens[index + 1].span;
    cy_bytes gap = cy_bytes_slice(fix->source.text, word.end, next.start);
    if (fix->tokens[index + 1].kind != TOKEN_IF || cy_bytes_find(gap, '/') < gap.count) return;
    fix_edit(fix, FIX_ELSE_IF, word.start, next.end, fix_tokens_spelling(fix, index, TOKEN_ELIF));
}

void fix_tokens(struct fix *fix)
{
    fix_tokens_gaps(fix);
    for (uint32_t i = 0; fix->tokens[i].kind != TOKEN_END; i++) {
        const struct token *token = &fix->tokens[i];
        bool member = i > 0 && fix->tokens[i - 1].kind == TOKEN_DOT;
        switch (token->kind) {
        case TOKEN_NAME: fix_tokens_name(fix, i); break;
        case TOKEN_ASSIGN:
            if (token->span.end - token->span.start > 1) fix_tokens_compound(fix, i);
            break;
        case TOKEN_CATCH:
            if (!member) fix_tokens_catch(fix, i);
            break;
        case TOKEN_ELSE:
            if (!member) fix_tokens_else(fix, i);
            break;
        case TOKEN_TRUE:
        case TOKEN_FALSE:
        case TOKEN_NIL:
            if (!member) fix_tokens_trit_math(fix, i);
            break;
        default: break;
        }
    }
}
