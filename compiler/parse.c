/* SPDX-License-Identifier: MIT
 *
 * compiler/parse.c: the parser's hands: taking tokens, saying what was expected, finding back after a mistake.
 *
 * Not here: grammar (parse_decl.c, parse_stmt.c, parse_expr.c).
 */
#include "compiler/parse.h"

#include "compiler/foreign.h"
#include "vm/base/check.h"
#include "vm/base/text.h"

/* Returns whether a block was left open. */
static bool parse_read(struct compilation *compilation, struct unit *unit, bool unbalanced)
{
    struct parser parser = {.compilation = compilation,
                            .arena = &compilation->arena,
                            .unit = unit,
                            .unbalanced = unbalanced,
                            .indent = 1};
    lexer_init(&parser.lexer, &compilation->arena, &compilation->diags, &unit->source,
               &compilation->keywords);
    parser.current = lexer_next(&parser.lexer);
    parser.ahead = lexer_next(&parser.lexer);
    /* The first lines are about the file, unless a declaration other than an import stands right below. */
    struct span doc = parser.lexer.module_doc;
    bool own =
        parser.current.doc.end && parser.current.doc.start == doc.start && !parse_at(&parser, TOKEN_IMPORT);
    unit->doc = own ? CY_BYTES_NONE : lexer_doc_text(parser.arena, &unit->source, doc);
    if (unit->in_session)
        parse_session(&parser);
    else
        parse_declarations(&parser);
    CHECK(parser.depth == 0);
    return parser.unclosed_reported && !parser.lexer.gave_up;
}

/* Indentation means nothing, so the first reading does not look at it. But where a `}` is missing, it is the only
 * thing that tells where: such a file is read again, and what the first reading said is forgotten. */
void parse_unit(struct compilation *compilation, struct unit *unit)
{
    struct diag_list *diags = &compilation->diags;
    uint32_t count = diags->count, dropped_count = diags->dropped_count;
    if (!parse_read(compilation, unit, false)) return;
    diags->count = count;
    diags->dropped_count = dropped_count;
    unit->declarations = (struct node_list){0};
    (void)parse_read(compilation, unit, true);
}

void parse_advance(struct parser *parser)
{
    parser->previous = parser->current.span;
    if (parser->current.line_start) parser->indent = parser->current.span.column;
    if (parser->current.broken) parser->panicking = true;
    parser->current = parser->ahead;
    if (parser->ahead.kind != TOKEN_END) parser->ahead = lexer_next(&parser->lexer);
}

bool parse_take(struct parser *parser, uint8_t kind)
{
    if (!parse_at(parser, kind)) return false;
    parse_advance(parser);
    return true;
}

bool parse_at_word(const struct parser *parser)
{
    return parser->current.kind == TOKEN_NAME || token_is_keyword(parser->current.kind);
}

/* -- what was expected --------------------------------------------------------------------------------------------- */

cy_bytes parse_words(const struct parser *parser, const char *korean, const char *english)
{
    return cy_bytes_from_text(parser->compilation->options->korean ? korean : english);
}

static cy_bytes parse_quoted(const struct parser *parser, cy_bytes text)
{
    struct builder quoted;
    builder_init(&quoted);
    builder_u8(&quoted, '`');
    builder_bytes(&quoted, text);
    builder_u8(&quoted, '`');
    cy_bytes copy = arena_copy(parser->arena, builder_view(&quoted));
    builder_fini(&quoted);
    return copy;
}

cy_bytes parse_describe(const struct parser *parser, const struct token *token)
{
    switch (token->kind) {
    case TOKEN_END: return parse_words(parser, "파일의 끝", "the end of the file");
    case TOKEN_STR:
    case TOKEN_TEXT_BEGIN: return parse_words(parser, "문자열", "a string");
    case TOKEN_TEXT_MIDDLE:
    case TOKEN_TEXT_END: return parse_words(parser, "`\\( )`의 끝", "the end of `\\( )`");
    default: return parse_quoted(parser, source_slice(&parser->unit->source, token->span));
    }
}

struct diag *parse_report(struct parser *parser, struct span span, enum diag_code code, cy_bytes a,
                          cy_bytes b)
{
    struct diag_list *diags = &parser->compilation->diags;
    bool known = parser->panicking || parser->current.broken || parser->lexer.gave_up;
    parser->panicking = true;
    if (known) return &diags->dropped;
    return diag_report_2(diags, &parser->unit->source, span, code, a, b);
}

void parse_report_expected(struct parser *parser, cy_bytes what)
{
    (void)parse_report(parser, parser->current.span, DIAG_EXPECTED, what,
                       parse_describe(parser, &parser->current));
}

bool parse_expect(struct parser *parser, uint8_t kind)
{
    if (parse_take(parser, kind)) return true;
    cy_bytes spelling = cy_bytes_from_text(token_spelling(kind, parser->compilation->options->korean));
    parse_report_expected(parser, parse_quoted(parser, spelling));
    return false;
}

bool parse_expect_close(struct parser *parser, uint8_t kind, struct span opening)
{
    if (parse_take(parser, kind)) return true;
    cy_bytes spelling = cy_bytes_from_text(token_spelling(kind, parser->compilation->options->korean));
    struct diag *diag =
        parse_report(parser, parser->current.span, DIAG_EXPECTED, parse_quoted(parser, spelling),
                     parse_describe(parser, &parser->current));
    opening.end = opening.start + 1;
    diag_add_label(diag, DIAG_LABEL_OPENED, &parser->unit->source, opening);
    return false;
}

bool parse_at_declaration(const struct parser *parser)
{
    if (!parser->current.line_start) return false;
    switch (parser->current.kind) {
    case TOKEN_EXPORT:
    case TOKEN_IMPORT:
    case TOKEN_RECORD:
    case TOKEN_TEST: return true;
    case TOKEN_FN:
        return parser->unbalanced && parser->current.span.column == 1 && parser->ahead.kind == TOKEN_NAME;
    default: return false;
    }
}

cy_bytes parse_meant_keyword(const struct parser *parser, cy_bytes word)
{
    bool korean = parser->compilation->options->korean;
    const struct foreign_row *foreign = foreign_find(word);
    if (foreign) return cy_bytes_from_text(token_spelling(foreign->keyword, korean));
    struct nearest nearest;
    nearest_init(&nearest, word);
    for (uint32_t i = 0; i < parser->compilation->keywords.count; i++)
        nearest_offer(&nearest, parser->compilation->keywords.entries[i].key);
    return nearest.best;
}

bool parse_name(struct parser *parser, struct word *word_out)
{
    *word_out = (struct word){parser->current.text, parser->current.span};
    if (parse_take(parser, TOKEN_NAME)) return true;
    if (token_is_keyword(parser->current.kind)) {
        (void)parse_report(parser, parser->current.span, DIAG_RESERVED_WORD, parser->current.text,
                           CY_BYTES_NONE);
    } else {
        parse_report_expected(parser, parse_words(parser, "이름", "a name"));
    }
    *word_out = (struct word){0};
    return false;
}

/* -- nesting and recovery ------------------------------------------------------------------------------------------ */

/* Past the limit the rest of the file is skipped: what nests so deeply is not worth guessing at. */
bool parse_enter(struct parser *parser)
{
    parser->depth++;
    if (parser->depth <= LIMIT_NESTING_DEPTH) return true;
    (void)parse_report(parser, parser->current.span, DIAG_TOO_DEEP,
                       diag_number(&parser->compilation->diags, LIMIT_NESTING_DEPTH), CY_BYTES_NONE);
    parser->lexer.gave_up = true;
    while (!parse_at(parser, TOKEN_END)) parse_advance(parser);
    return false;
}

void parse_leave(struct parser *parser) { parser->depth--; }

bool parse_begins_statement(uint8_t kind)
{
    switch (kind) {
    case TOKEN_LET:
    case TOKEN_CONST:
    case TOKEN_FN:
    case TOKEN_RETURN:
    case TOKEN_IF:
    case TOKEN_MATCH:
    case TOKEN_WHILE:
    case TOKEN_FOR:
    case TOKEN_LOOP:
    case TOKEN_BREAK:
    case TOKEN_CONTINUE:
    case TOKEN_TRY:
    case TOKEN_THROW:
    case TOKEN_DEFER:
    case TOKEN_RECORD:
    case TOKEN_IMPORT:
    case TOKEN_EXPORT:
    case TOKEN_TEST: return true;
    default: return false;
    }
}

/* Skips to the closing brace of the block we are in, or to a line that begins with a statement. Braces that open on the
 * way are skipped as a whole; a keyword that starts a line is trusted also inside open parentheses. */
void parse_recover(struct parser *parser)
{
    if (!parser->panicking) return;
    uint32_t braces = 0, brackets = 0;
    while (!parse_at(parser, TOKEN_END)) {
        uint8_t kind = parser->current.kind;
        bool fresh_line = parser->current.line_start;
        if (kind == TOKEN_BRACE_CLOSE && braces == 0) break;
        if (parse_at_declaration(parser)) break;
        if (braces == 0 && fresh_line && parse_begins_statement(kind)) break;
        if (braces == 0 && brackets == 0 && fresh_line && kind == TOKEN_NAME) break;
        if (kind == TOKEN_BRACE_OPEN) braces++;
        if (kind == TOKEN_BRACE_CLOSE) braces--;
        if (kind == TOKEN_PAREN_OPEN || kind == TOKEN_BRACKET_OPEN) brackets++;
        if ((kind == TOKEN_PAREN_CLOSE || kind == TOKEN_BRACKET_CLOSE) && brackets > 0) brackets--;
        parse_advance(parser);
    }
    parser->panicking = false;
}
