/* SPDX-License-Identifier: MIT
 *
 * compiler/lexer_internal.h: what lexer.c and lexer_text.c share.
 */
#ifndef CY_COMPILER_LEXER_INTERNAL_H
#define CY_COMPILER_LEXER_INTERNAL_H

#include "compiler/lexer.h"

#define LEXER_NO_CODE_POINT UINT32_MAX

uint8_t lexer_peek(const struct lexer *lexer, uint32_t ahead); /* 0 past the end */
bool lexer_at_end(const struct lexer *lexer);
void lexer_advance(struct lexer *lexer, size_t bytes);
struct span lexer_here(const struct lexer *lexer, size_t bytes);
/* The code point here, or LEXER_NO_CODE_POINT (reported once per file) and length 1. */
uint32_t lexer_code_point(struct lexer *lexer, size_t *length_out);

/* At an opening quote, an opening backtick, and behind the ) that ends an interpolation. */
struct token lexer_take_string(struct lexer *lexer, struct token token);
struct token lexer_take_raw(struct lexer *lexer, struct token token);
struct token lexer_resume_string(struct lexer *lexer, struct token token);

/* lexer_foreign.c: at the beginning of a token. False when there is nothing foreign here. */
bool lexer_take_foreign(struct lexer *lexer, struct token *token, bool *is_token_out);
/* At `'`: 'text' as a string, reported. False when it does not end on its line. */
bool lexer_take_single_quotes(struct lexer *lexer, struct token *token);

#endif
