/* SPDX-License-Identifier: MIT
 *
 * compiler/parse_decrement.c: `x--` and `--x`, where they can be nothing else.
 *
 * In:   the parser where it has found a mistake, or the expression that it read in vain.
 * Out:  whether a decrement was meant, which is then reported.
 * Invariant: `--` is two signs for the lexer: `x--1` is x - (-1), also over two lines, and `--x` is x. So this is asked
 *            only where the program is refused in any case, and what is sound is never judged.
 * Not here: marks that no program has (lexer_foreign.c).
 */
#include "compiler/parse.h"

static bool parse_decrement_is_at(const struct parser *parser, uint32_t start)
{
    return cy_bytes_start_with(cy_bytes_skip(parser->unit->source.text, start), CY_BYTES("--"));
}

static void parse_decrement_report(struct parser *parser, struct span first_sign)
{
    first_sign.end = first_sign.start + 2;
    bool known = parser->panicking || parser->current.broken || parser->lexer.gave_up;
    parser->panicking = true;
    if (known) return;
    (void)diag_report(&parser->compilation->diags, &parser->unit->source, first_sign, DIAG_FOREIGN_MARK,
                      CY_BYTES("--"), CY_BYTES("`x = x - 1`로 쓰세요"), CY_BYTES("write `x = x - 1`"));
}

bool parse_report_decrement_before(struct parser *parser)
{
    struct span sign = parser->previous; /* of one byte: no token but `-` ends in this one and is as short */
    if (sign.start == 0 || sign.end != sign.start + 1 || !parse_decrement_is_at(parser, sign.start - 1))
        return false;
    sign.start--;
    sign.column--;
    parse_decrement_report(parser, sign);
    return true;
}

/* Nothing but space, `;` and a comment up to the end of the line. */
static bool parse_decrement_ends_line(const struct parser *parser, uint32_t start)
{
    cy_bytes rest = cy_bytes_skip(parser->unit->source.text, start);
    while (rest.count > 0 && (rest.data[0] == ' ' || rest.data[0] == '\t' || rest.data[0] == ';'))
        rest = cy_bytes_skip(rest, 1);
    return rest.count == 0 || rest.data[0] == '\n' || rest.data[0] == '\r' ||
           cy_bytes_start_with(rest, CY_BYTES("//"));
}

bool parse_report_decrement_in(struct parser *parser, const struct node *value)
{
    if (parse_decrement_is_at(parser, value->span.start)) {
        parse_decrement_report(parser, value->span);
        return true;
    }
    for (; value->kind == NODE_BINARY; value = value->as.binary.left) {
        struct span sign = value->as.binary.op_span;
        if (value->op != TOKEN_MINUS || !parse_decrement_is_at(parser, sign.start) ||
            !parse_decrement_ends_line(parser, sign.start + 2))
            continue;
        parse_decrement_report(parser, sign);
        return true;
    }
    return false;
}
