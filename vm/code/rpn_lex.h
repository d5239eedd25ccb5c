/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_lex.h: RPN text as tokens.
 *
 * In:   bytes from anywhere.
 * Out:  one token after the other; what is malformed is reported and becomes BAD, and reading goes on behind it.
 * Invariant: copying a lexer saves the place; every token but END takes at least one byte, so reading ends.
 */
#ifndef CY_CODE_RPN_LEX_H
#define CY_CODE_RPN_LEX_H

#include "vm/base/arena.h"
#include "vm/code/rpn_fault.h"

enum rpn_token_kind {
    RPN_TOKEN_END,
    RPN_TOKEN_WORD,
    RPN_TOKEN_LABEL, /* "again:"; the value is without the colon */
    RPN_TOKEN_STRING,
    RPN_TOKEN_INT,
    RPN_TOKEN_FLOAT,
    RPN_TOKEN_SOURCE, /* "@12:5" */
    RPN_TOKEN_BAD,    /* reported */
};
struct rpn_token {
    enum rpn_token_kind kind;
    struct rpn_place place;
    cy_bytes raw;   /* as it stands in the text */
    cy_bytes value; /* WORD, LABEL: in normal form C; STRING: what it means */
    int64_t integer;
    double real;
    uint32_t line, column; /* SOURCE */
};

struct rpn_lexer {
    cy_bytes text;
    size_t offset;
    uint32_t line, column;
    struct rpn_faults *faults; /* NULL: report nothing and do not make values (but of words) */
    struct arena *arena;       /* of values that differ from the raw text */
    bool *no_memory;
};

void rpn_lexer_init(struct rpn_lexer *lexer, cy_bytes text, struct rpn_faults *faults, struct arena *arena,
                    bool *no_memory);
struct rpn_token rpn_lexer_next(struct rpn_lexer *lexer);

/* rpn_number.c. False when the whole word is no int, no float. */
enum rpn_number { RPN_NUMBER_OK, RPN_NUMBER_MALFORMED, RPN_NUMBER_PAST_RANGE, RPN_NUMBER_TOO_PRECISE };
/* Decimal, or hex after 0x; with a sign. */
enum rpn_number rpn_number_int(cy_bytes word, int64_t *integer_out);
/* Hex as %a writes it, exactly; inf, -inf, nan; decimal with . or e, to the nearest (`*exact_out`: nothing rounded). */
enum rpn_number rpn_number_float(cy_bytes word, double *real_out, bool *exact_out);
/* inf, +inf, -inf, nan. */
bool rpn_number_is_named(cy_bytes word);
/* True when the word is written like a float rather than an int. */
bool rpn_number_is_float(cy_bytes word);

#endif
