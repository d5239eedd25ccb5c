/* SPDX-License-Identifier: MIT
 *
 * compiler/check_narrow.c: what a condition says about variables.
 *
 * In:   a condition, and whether it held. Out: smaller sets of kinds.
 * Rows:  x            true: not nil. false: nil, bool or a number
 *        x == nil     and its opposite, either way round
 *        x == literal true: the literal's kind
 *        kind_of(x) == "str"
 *        !a, a and b where it held, a or b where it did not
 * Not here: kinds of values (check_kind.c).
 */
#include "compiler/check_flow.h"
#include "compiler/lexer.h"
#include "vm/code/native_table.h"

static struct symbol *check_narrow_variable(const struct node *node)
{
    if (node->kind != NODE_NAME || !node->as.name.symbol) return NULL;
    return node->as.name.symbol->kind == SYMBOL_LOCAL ? node->as.name.symbol : NULL;
}

/* Nothing left: the condition cannot be so, as far as we know. Then nothing is claimed. */
static void check_narrow_to(struct flow *flow, struct symbol *symbol, uint32_t kept)
{
    uint32_t kinds = flow_get(symbol) & (kept | FLOW_NIL_SAID);
    if (!(kinds & FLOW_NIL)) kinds &= ~FLOW_NIL_SAID;
    if (!(kinds & FLOW_ALL)) kinds = FLOW_ALL;
    if (kinds == FLOW_NIL) kinds |= FLOW_NIL_SAID;
    flow_set(flow, symbol, kinds);
}

/* kind_of(x) with its x; NULL when it is something else. */
static struct symbol *check_narrow_kind_call(const struct node *node)
{
    if (node->kind != NODE_CALL || !node->as.call.known || node->as.call.argument_count != 1) return NULL;
    const struct symbol *known = node->as.call.known;
    if (known->kind != SYMBOL_NATIVE || known->native->number != NATIVE_kind_of) return NULL;
    return check_narrow_variable(node->as.call.arguments[0].value);
}

static void check_narrow_kind_word(struct flow *flow, struct symbol *symbol, cy_bytes word, bool equal)
{
    enum value_kind kind;
    /* Of records, handles and opaque values kind_of gives the name of their type. */
    if (!kind_find(word, &kind) || !cy_bytes_equal(word, cy_bytes_from_text(kind_name(kind, false)))) return;
    if (kind == KIND_RECORD || kind == KIND_HANDLE || kind == KIND_OPAQUE) return;
    check_narrow_to(flow, symbol, equal ? FLOW_KIND(kind) : FLOW_ALL & ~FLOW_KIND(kind));
}

static void check_narrow_equality(struct flow *flow, const struct node *node, bool equal)
{
    const struct node *side = node->as.binary.left, *other = node->as.binary.right;
    if (ast_is_literal(side)) side = node->as.binary.right, other = node->as.binary.left;
    if (!ast_is_literal(other)) return;
    struct symbol *symbol = check_narrow_kind_call(side);
    if (symbol && other->kind == NODE_STR) check_narrow_kind_word(flow, symbol, other->as.text, equal);
    symbol = check_narrow_variable(side);
    if (!symbol) return;
    uint32_t kind = FLOW_KIND(ast_value_kind(other));
    if (kind & FLOW_NUMBER) kind = FLOW_NUMBER;
    if (equal)
        check_narrow_to(flow, symbol, kind);
    else if (kind == FLOW_NIL)
        check_narrow_to(flow, symbol, FLOW_ALL & ~FLOW_NIL);
}

/* Each operand of a chain of one operator. */
static void check_narrow_chain(struct flow *flow, struct node *node, bool when)
{
    uint8_t op = node->op;
    for (; node->kind == NODE_BINARY && node->op == op; node = node->as.binary.left)
        flow_narrow(flow, node->as.binary.right, when);
    flow_narrow(flow, node, when);
}

void flow_narrow(struct flow *flow, struct node *node, bool when)
{
    while (node->kind == NODE_UNARY && node->op == TOKEN_NOT) {
        node = node->as.operand;
        when = !when;
    }
    struct symbol *symbol = check_narrow_variable(node);
    if (symbol) {
        uint32_t falsy = FLOW_NIL | FLOW_KIND(KIND_BOOL) | FLOW_NUMBER;
        check_narrow_to(flow, symbol, when ? FLOW_ALL & ~FLOW_NIL : falsy);
    } else if (node->kind == NODE_BINARY && (node->op == TOKEN_EQ || node->op == TOKEN_NE)) {
        check_narrow_equality(flow, node, (node->op == TOKEN_EQ) == when);
    } else if (node->kind == NODE_BINARY && node->op == (when ? TOKEN_AND : TOKEN_OR)) {
        check_narrow_chain(flow, node, when);
    }
}
