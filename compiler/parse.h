/* SPDX-License-Identifier: MIT
 *
 * compiler/parse.h: what the files of the parser share.
 *
 * Method: recursive descent with one token of look-ahead. After a mistake the parser is `panicking`: it reports nothing
 *         more until it stands again at something that begins a statement or declaration (parse_recover).
 * Invariant: every loop either takes a token or ends; nesting is counted (parse_enter), so that no source can
 *            exhaust the C stack.
 */
#ifndef CY_COMPILER_PARSE_H
#define CY_COMPILER_PARSE_H

#include "compiler/lexer.h"
#include "compiler/unit.h"

struct parser {
    struct compilation *compilation;
    struct arena *arena;
    struct unit *unit;
    struct lexer lexer;
    struct token current;
    struct token ahead;
    struct span previous; /* of the token taken last */
    uint32_t depth;
    bool panicking;
    uint32_t indent;      /* column where the line of the token taken last begins */
    bool unbalanced;      /* second reading of a file with an open block: its indentation is trusted */
    struct span suspect;  /* the `{` of a block whose `}` stands further left than it; end 0 = none */
    uint32_t unclosed_at; /* where an open block was reported: not again for those around it */
    bool unclosed_reported;
    bool
        value_wanted; /* an expression may stand alone, outside of all blocks: its value is the statement's */
};

/* parse.c */
void parse_advance(struct parser *parser);
static inline bool parse_at(const struct parser *parser, uint8_t kind)
{
    return parser->current.kind == kind;
}
bool parse_take(struct parser *parser, uint8_t kind);   /* true and moved on when it is there */
bool parse_expect(struct parser *parser, uint8_t kind); /* the same, else an error */
/* The same for what closes the bracket at `opening`. */
bool parse_expect_close(struct parser *parser, uint8_t kind, struct span opening);
/* True at what can only begin a declaration: blocks around it were not closed. */
bool parse_at_declaration(const struct parser *parser);
/* The keyword that is meant by a word of another language, or nearly written; "" when none. */
cy_bytes parse_meant_keyword(const struct parser *parser, cy_bytes word);
bool parse_at_word(const struct parser *parser); /* a name or a keyword */
struct diag *parse_report(struct parser *parser, struct span span, enum diag_code code, cy_bytes a,
                          cy_bytes b);
void parse_report_expected(struct parser *parser, cy_bytes what);
cy_bytes parse_describe(const struct parser *parser, const struct token *token);
cy_bytes parse_words(const struct parser *parser, const char *korean, const char *english);
/* False, reported, when the nesting is too deep; the parser then stands at the end of the file. */
bool parse_enter(struct parser *parser);
void parse_leave(struct parser *parser);
/* A name being declared; false when something else stands there. */
bool parse_name(struct parser *parser, struct word *word_out);
void parse_recover(struct parser *parser);
/* A keyword that no expression begins with, `fn` and `test` apart. */
bool parse_begins_statement(uint8_t kind);

/* parse_decl.c */
struct function_decl *parse_function_rest(struct parser *parser, struct word name, struct span start);
struct annotation *parse_annotation(struct parser *parser);
void parse_declarations(struct parser *parser);
void parse_declaration(struct parser *parser); /* one; always moves on */
struct node *parse_let(struct parser *parser);

/* parse_stmt.c */
struct block parse_block(struct parser *parser);
struct node *parse_statement(struct parser *parser); /* NULL when there is none, which was reported */

/* parse_decrement.c: `--` of other languages; false when none is meant, else it was reported. */
/* Before the current token, which cannot be its operand: `f(x--)`. */
bool parse_report_decrement_before(struct parser *parser);
/* In an expression that is no statement: `--x`, or `x--` that has taken the next line for its operand. */
bool parse_report_decrement_in(struct parser *parser, const struct node *value);

/* parse_session.c */
void parse_session(struct parser *parser);

/* parse_expr.c */
struct node *parse_expression(struct parser *parser);
struct node *parse_pattern(struct parser *parser);
/* True when the current token can begin an expression. */
bool parse_begins_expression(const struct parser *parser);

#endif
