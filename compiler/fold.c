/* SPDX-License-Identifier: MIT
 *
 * compiler/fold.c: constant expressions become literals.
 *
 * In:   a node whose children were folded. Out: the same node, perhaps a literal now; or the error with which it always
 *       fails.
 * Invariant: the result is what the interpreter would compute, because both use vm/code/arith.h. What would be an
 *            error at run time is left as it is: it happens when, and only if, it is reached.
 * Not here: text of floats and of bools (the runtime's).
 */
#include "compiler/lexer.h"
#include "compiler/resolve_internal.h"
#include "vm/code/arith.h"

#include <math.h>

enum { FOLD_STRING_BYTES_MAX = 4096 }; /* past it, a long chain of + would copy its text over and over */

static void fold_to_int(struct node *node, int64_t integer)
{
    node->kind = NODE_INT;
    node->as.integer = integer;
}
static void fold_to_bool(struct node *node, bool boolean)
{
    node->kind = NODE_BOOL;
    node->as.boolean = boolean;
}
static void fold_to_real(struct node *node, double real)
{
    if (!isfinite(real)) return; /* inf and NaN have no literal: left to the runtime */
    node->kind = NODE_FLOAT;
    node->as.real = real;
}

static cy_err fold_ints(struct node *node, int64_t a, int64_t b)
{
    int64_t result = 0;
    cy_err err = CY_OK;
    switch (node->op) {
    case TOKEN_PLUS: err = arith_add(a, b, &result); break;
    case TOKEN_MINUS: err = arith_sub(a, b, &result); break;
    case TOKEN_STAR: err = arith_mul(a, b, &result); break;
    case TOKEN_SLASH: err = arith_div(a, b, &result); break;
    case TOKEN_PERCENT: err = arith_mod(a, b, &result); break;
    case TOKEN_SHIFT_LEFT: err = arith_shift_left(a, b, &result); break;
    case TOKEN_SHIFT_RIGHT: err = arith_shift_right(a, b, &result); break;
    case TOKEN_AMPERSAND: result = a & b; break;
    case TOKEN_BAR: result = a | b; break;
    case TOKEN_CARET: result = a ^ b; break;
    case TOKEN_EQ: fold_to_bool(node, a == b); return CY_OK;
    case TOKEN_NE: fold_to_bool(node, a != b); return CY_OK;
    case TOKEN_LT: fold_to_bool(node, a < b); return CY_OK;
    case TOKEN_LE: fold_to_bool(node, a <= b); return CY_OK;
    case TOKEN_GT: fold_to_bool(node, a > b); return CY_OK;
    case TOKEN_GE: fold_to_bool(node, a >= b); return CY_OK;
    default: return CY_OK;
    }
    if (!cy_failed(err)) fold_to_int(node, result);
    return err;
}

static void fold_reals(struct node *node, double a, double b)
{
    switch (node->op) {
    case TOKEN_PLUS: fold_to_real(node, a + b); break;
    case TOKEN_MINUS: fold_to_real(node, a - b); break;
    case TOKEN_STAR: fold_to_real(node, a * b); break;
    case TOKEN_SLASH:
        if (b != 0.0) fold_to_real(node, a / b);
        break;
    case TOKEN_LT: fold_to_bool(node, a < b); break;
    case TOKEN_LE: fold_to_bool(node, a <= b); break;
    case TOKEN_GT: fold_to_bool(node, a > b); break;
    case TOKEN_GE: fold_to_bool(node, a >= b); break;
    case TOKEN_EQ: fold_to_bool(node, a == b); break;
    case TOKEN_NE: fold_to_bool(node, a != b); break;
    default: break;
    }
}

static void fold_strings(struct arena *arena, struct node *node, cy_bytes a, cy_bytes b)
{
    if (node->op == TOKEN_EQ)
        fold_to_bool(node, cy_bytes_equal(a, b));
    else if (node->op == TOKEN_NE)
        fold_to_bool(node, !cy_bytes_equal(a, b));
    else if (node->op == TOKEN_PLUS && a.count + b.count <= FOLD_STRING_BYTES_MAX) {
        struct builder joined;
        builder_init(&joined);
        builder_bytes(&joined, a);
        builder_bytes(&joined, b);
        node->kind = NODE_STR;
        node->as.text = arena_copy(arena, builder_view(&joined));
        builder_fini(&joined);
    }
}

/* Takes over what `from` is; the place stays. */
static void fold_become(struct node *node, const struct node *from)
{
    struct span span = node->span;
    uint16_t flags = node->flags;
    *node = *from;
    node->span = span;
    node->flags = from->flags | flags;
}

/* What a right operand does to every left one. */
static cy_err fold_right(const struct node *node, const struct node *right)
{
    bool divides = node->op == TOKEN_SLASH || node->op == TOKEN_PERCENT;
    bool shifts = node->op == TOKEN_SHIFT_LEFT || node->op == TOKEN_SHIFT_RIGHT;
    int64_t ignored;
    if (divides && right->kind == NODE_FLOAT && right->as.real == 0.0) return CY_ERR(DIVISION);
    if (divides && right->kind == NODE_INT && right->as.integer == 0) return CY_ERR(DIVISION);
    if (shifts && right->kind == NODE_INT) return arith_shift_left(0, right->as.integer, &ignored);
    return CY_OK;
}

static cy_err fold_binary(struct arena *arena, struct node *node)
{
    struct node *left = node->as.binary.left, *right = node->as.binary.right;
    bool known = ast_is_literal(left);
    if (node->op == TOKEN_AND || node->op == TOKEN_OR) {
        if (!known) return CY_OK;
        bool left_decides = ast_literal_is_true(left) == (node->op == TOKEN_OR);
        fold_become(node, left_decides ? left : right);
        return CY_OK;
    }
    CY_TRY(fold_right(node, right));
    if (!known || !ast_is_literal(right)) return CY_OK;
    if (left->kind == NODE_INT && right->kind == NODE_INT)
        return fold_ints(node, left->as.integer, right->as.integer);
    if (left->kind == NODE_FLOAT && right->kind == NODE_FLOAT)
        fold_reals(node, left->as.real, right->as.real);
    else if (left->kind == NODE_STR && right->kind == NODE_STR)
        fold_strings(arena, node, left->as.text, right->as.text);
    return CY_OK;
}

static cy_err fold_unary(struct node *node)
{
    const struct node *operand = node->as.operand;
    if (!ast_is_literal(operand)) return CY_OK;
    if (node->op == TOKEN_NOT)
        fold_to_bool(node, !ast_literal_is_true(operand));
    else if (node->op == TOKEN_TILDE && operand->kind == NODE_INT)
        fold_to_int(node, ~operand->as.integer);
    else if (node->op == TOKEN_MINUS && operand->kind == NODE_FLOAT)
        fold_to_real(node, -operand->as.real);
    else if (node->op == TOKEN_MINUS && operand->kind == NODE_INT) {
        int64_t negated = 0;
        CY_TRY(arith_sub(0, operand->as.integer, &negated));
        fold_to_int(node, negated);
    }
    return CY_OK;
}

/* Neighbouring pieces of known text become one. */
static void fold_text(struct arena *arena, struct node *node)
{
    struct node_list *items = &node->as.items;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < items->count;) {
        struct builder joined;
        builder_init(&joined);
        uint32_t first = i;
        for (; i < items->count; i++) {
            const struct node *item = items->items[i];
            if (item->kind == NODE_STR)
                builder_bytes(&joined, item->as.text);
            else if (item->kind == NODE_INT)
                builder_i64_text(&joined, item->as.integer);
            else
                break;
        }
        if (i > first) {
            struct node *text = items->items[first];
            text->kind = NODE_STR;
            text->as.text = arena_copy(arena, builder_view(&joined));
            items->items[kept++] = text;
        } else {
            items->items[kept++] = items->items[i++];
        }
        builder_fini(&joined);
    }
    items->count = kept;
    if (kept == 1 && items->items[0]->kind == NODE_STR)
        fold_become(node, items->items[0]);
    else if (kept == 0) {
        node->kind = NODE_STR;
        node->as.text = CY_BYTES_NONE;
    }
}

cy_err fold_node(struct arena *arena, struct node *node)
{
    switch (node->kind) {
    case NODE_BINARY: return fold_binary(arena, node);
    case NODE_UNARY: return fold_unary(node);
    case NODE_TEXT: fold_text(arena, node); return CY_OK;
    default: return CY_OK;
    }
}
