/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_expr.c: code that leaves the value of an expression on the stack.
 *
 * Method: as in resolve_expr.c, the left spine is walked in a loop.
 * Not here: calls (emit_call.c).
 */
#include "compiler/emit_internal.h"
#include "compiler/lexer.h"
#include "vm/base/check.h"

enum {
    EMIT_EXPR_LIST_CHUNK = 4096, /* items of a long list literal on the stack at once: heights are bounded */
    EMIT_EXPR_TEXT_PARTS = 255
};

/* -- leaves -------------------------------------------------------------------------------------------------------- */

static void emit_expr_literal(struct code *code, const struct node *node)
{
    struct emitter *emitter = code->emitter;
    switch (node->kind) {
    case NODE_NIL: emit_op(code, node->span, OP_NIL); break;
    case NODE_BOOL: emit_op(code, node->span, node->as.boolean ? OP_TRUE : OP_FALSE); break;
    case NODE_FLOAT:
        emit_op_a(code, node->span, OP_CONST_WIDE, emit_constant_real(emitter, node->as.real));
        break;
    case NODE_STR:
        emit_op_a(code, node->span, OP_CONST_WIDE, emit_constant_text(emitter, node->as.text));
        break;
    default:
        if (node->as.integer >= INT8_MIN && node->as.integer <= INT8_MAX)
            emit_op_a(code, node->span, OP_INT8, node->as.integer);
        else
            emit_op_a(code, node->span, OP_CONST_WIDE, emit_constant_int(emitter, node->as.integer));
    }
}

/* A symbol that needs no frame: a module variable, a function, a native. */
void emit_symbol(struct code *code, const struct symbol *symbol, struct span span)
{
    switch (symbol->kind) {
    case SYMBOL_GLOBAL:
        /* Used in a function inside an initialiser, before its value was known: it may have no variable at all. */
        if (symbol->literal) {
            struct node literal = *symbol->literal;
            literal.span = span;
            emit_expr_literal(code, &literal);
            break;
        }
        CHECK(symbol->needs_global);
        emit_op_a(code, span, OP_GLOBAL_GET_WIDE, symbol->index);
        break;
    case SYMBOL_FUNCTION: emit_op_a(code, span, OP_CLOSURE_WIDE, symbol->function->index); break;
    case SYMBOL_NATIVE:
        emit_op_a(code, span, OP_NATIVE_FUNCTION, emit_native(code->emitter, symbol->native));
        break;
    default: UNREACHABLE();
    }
}

void emit_name(struct code *code, const struct node *node)
{
    const struct symbol *symbol = node->as.name.symbol;
    if (symbol->kind != SYMBOL_LOCAL)
        emit_symbol(code, symbol, node->span);
    else if (node->as.name.access == ACCESS_SELF)
        emit_op(code, node->span, OP_SELF);
    else if (node->as.name.access == ACCESS_CAPTURE)
        emit_op_a(code, node->span, OP_CAPTURE_GET, node->as.name.capture);
    else
        emit_local_get(code, node->span, symbol->slot, (node->flags & NODE_LAST_USE) != 0);
}

/* A long list is built in a temporary, chunk by chunk, in place. */
static void emit_expr_list(struct code *code, const struct node *node)
{
    const struct node_list *items = &node->as.items;
    uint32_t temp_before = code->temp_next, temp = 0, chunks = 0;
    for (uint32_t i = 0; i < items->count || chunks == 0; chunks++) {
        uint32_t count = (uint32_t)cy_min_size(items->count - i, EMIT_EXPR_LIST_CHUNK);
        for (uint32_t k = 0; k < count; k++) emit_expression(code, items->items[i + k]);
        emit_op_a(code, node->span, OP_LIST, count);
        i += count;
        if (chunks > 0)
            emit_op_a(code, node->span, OP_LOCAL_ADD, temp);
        else if (i < items->count) {
            temp = emit_temp(code, node->span);
            emit_local_set(code, node->span, temp);
        }
    }
    if (chunks > 1) emit_local_get(code, node->span, temp, true);
    code->temp_next = temp_before;
}

static void emit_expr_map(struct code *code, const struct node *node)
{
    const struct node_list *items = &node->as.items;
    uint32_t at_once = (uint32_t)cy_min_size(items->count / 2, EMIT_EXPR_LIST_CHUNK);
    for (uint32_t i = 0; i < 2 * at_once; i++) emit_expression(code, items->items[i]);
    emit_op_a(code, node->span, OP_MAP, at_once);
    if (2 * at_once == items->count) return;
    uint32_t temp_before = code->temp_next, temp = emit_temp(code, node->span);
    emit_local_set(code, node->span, temp);
    for (uint32_t i = 2 * at_once; i < items->count; i += 2) {
        emit_expression(code, items->items[i]);
        emit_expression(code, items->items[i + 1]);
        emit_op_ab(code, node->span, OP_LOCAL_PATH_SET, temp, 1);
    }
    emit_local_get(code, node->span, temp, true);
    code->temp_next = temp_before;
}

static void emit_expr_text(struct code *code, const struct node *node)
{
    uint32_t on_stack = 0;
    for (uint32_t i = 0; i < node->as.items.count; i++) {
        if (on_stack == EMIT_EXPR_TEXT_PARTS) {
            emit_op_a(code, node->span, OP_TEXT, on_stack);
            on_stack = 1;
        }
        emit_expression(code, node->as.items.items[i]);
        on_stack++;
    }
    emit_op_a(code, node->span, OP_TEXT, on_stack);
}

static void emit_expr_unary(struct code *code, const struct node *node)
{
    emit_expression(code, node->as.operand);
    uint8_t opcode = node->op == TOKEN_MINUS ? OP_NEG : node->op == TOKEN_TILDE ? OP_BIT_NOT : OP_NOT;
    emit_op(code, node->span, opcode);
}

static void emit_expr_leaf(struct code *code, struct node *node)
{
    switch (node->kind) {
    case NODE_NAME: emit_name(code, node); break;
    case NODE_TEXT: emit_expr_text(code, node); break;
    case NODE_LIST: emit_expr_list(code, node); break;
    case NODE_MAP: emit_expr_map(code, node); break;
    case NODE_UNARY: emit_expr_unary(code, node); break;
    case NODE_FIELD: emit_symbol(code, node->as.field.member, node->span); break;
    case NODE_CALL: emit_call(code, node); break;
    case NODE_SPAWN: emit_spawn(code, node); break;
    case NODE_FUNCTION: emit_op_a(code, node->span, OP_CLOSURE_WIDE, node->as.function->index); break;
    case NODE_REF:
        emit_expression(code, node->as.operand);
        emit_op(code, node->span, OP_REF);
        break;
    case NODE_RANGE:
        emit_expression(code, node->as.binary.left);
        emit_expression(code, node->as.binary.right);
        emit_op(code, node->as.binary.op_span, OP_RANGE);
        break;
    default: CHECK(ast_is_literal(node)); emit_expr_literal(code, node);
    }
}

/* -- operators ----------------------------------------------------------------------------------------------------- */

static uint8_t emit_expr_opcode(uint8_t token)
{
    switch (token) {
    case TOKEN_PLUS: return OP_ADD;
    case TOKEN_MINUS: return OP_SUB;
    case TOKEN_STAR: return OP_MUL;
    case TOKEN_SLASH: return OP_DIV;
    case TOKEN_PERCENT: return OP_MOD;
    case TOKEN_AMPERSAND: return OP_BIT_AND;
    case TOKEN_BAR: return OP_BIT_OR;
    case TOKEN_CARET: return OP_BIT_XOR;
    case TOKEN_SHIFT_LEFT: return OP_SHIFT_LEFT;
    case TOKEN_SHIFT_RIGHT: return OP_SHIFT_RIGHT;
    case TOKEN_EQ: return OP_EQ;
    case TOKEN_NE: return OP_NE;
    case TOKEN_LT: return OP_LT;
    case TOKEN_LE: return OP_LE;
    case TOKEN_GT: return OP_GT;
    default: CHECK(token == TOKEN_GE); return OP_GE;
    }
}

static bool emit_expr_is_logical(const struct node *node)
{
    return node->kind == NODE_BINARY && (node->op == TOKEN_AND || node->op == TOKEN_OR);
}

/* The left value decides, or makes way for the right one. */
static void emit_expr_logical(struct code *code, struct node *node)
{
    struct label end;
    emit_label_init(&end);
    emit_op(code, node->span, OP_DUP);
    emit_jump(code, node->span, node->op == TOKEN_AND ? OP_JUMP_IF_FALSE : OP_JUMP_IF_TRUE, 0, 0, &end);
    emit_op(code, node->span, OP_POP);
    emit_expression(code, node->as.binary.right);
    emit_bind(code, &end);
}

static void emit_expr_finish(struct code *code, struct node *node)
{
    switch (node->kind) {
    case NODE_BINARY:
        if (emit_expr_is_logical(node)) {
            emit_expr_logical(code, node);
        } else {
            emit_expression(code, node->as.binary.right);
            emit_op(code, node->as.binary.op_span, emit_expr_opcode(node->op));
        }
        break;
    case NODE_INDEX:
        emit_expression(code, node->as.index.index);
        emit_op(code, node->as.index.index->span, OP_INDEX_GET);
        break;
    case NODE_FIELD:
        emit_op_a(code, node->as.field.name.span, OP_FIELD_GET_WIDE,
                  emit_constant_text(code->emitter, node->as.field.name.text));
        break;
    default: emit_call_arguments(code, node);
    }
}

static bool emit_expr_has_left(const struct node *node)
{
    switch (node->kind) {
    case NODE_BINARY:
    case NODE_INDEX: return true;
    case NODE_FIELD: return !node->as.field.member;
    case NODE_CALL: return !emit_call_is_direct(node);
    default: return false;
    }
}

void emit_expression(struct code *code, struct node *node)
{
    if (!code->reachable) return;
    struct ast_spine spine;
    ast_spine_init(&spine);
    while (emit_expr_has_left(node)) {
        ast_spine_push(&spine, node);
        node = ast_left(node);
    }
    emit_expr_leaf(code, node);
    while (spine.count > 0) emit_expr_finish(code, spine.items[--spine.count]);
    ast_spine_fini(&spine);
}

/* -- conditions ---------------------------------------------------------------------------------------------------- */

/* a and b and c, as one row: each operand decides alone, or the last one does. */
static void emit_expr_condition_chain(struct code *code, struct node *node, struct label *label, bool when)
{
    bool decides = node->op == TOKEN_OR; /* the truth with which one operand settles the whole */
    struct ast_spine spine;
    ast_spine_init(&spine);
    uint8_t op = node->op;
    while (node->kind == NODE_BINARY && node->op == op) {
        ast_spine_push(&spine, node->as.binary.right);
        node = node->as.binary.left;
    }
    ast_spine_push(&spine, node);
    struct label settled;
    emit_label_init(&settled);
    while (spine.count > 1)
        emit_condition(code, spine.items[--spine.count], decides == when ? label : &settled, decides);
    emit_condition(code, spine.items[0], label, when);
    emit_bind(code, &settled);
    ast_spine_fini(&spine);
}

void emit_condition(struct code *code, struct node *node, struct label *label, bool when)
{
    while (node->kind == NODE_UNARY && node->op == TOKEN_NOT) {
        node = node->as.operand;
        when = !when;
    }
    if (ast_is_literal(node)) {
        if (ast_literal_is_true(node) == when) emit_jump(code, node->span, OP_JUMP, 0, 0, label);
    } else if (emit_expr_is_logical(node)) {
        emit_expr_condition_chain(code, node, label, when);
    } else {
        emit_expression(code, node);
        emit_jump(code, node->span, when ? OP_JUMP_IF_TRUE : OP_JUMP_IF_FALSE, 0, 0, label);
    }
}

/* -- checks -------------------------------------------------------------------------------------------------------- */

static void emit_expr_check_choice(struct code *code, const struct annotation *choice, struct span span,
                                   bool check)
{
    if (choice->record)
        emit_op_a(code, span, check ? OP_CHECK_RECORD : OP_IS_RECORD, choice->record->index);
    else
        emit_op_a(code, span, check ? OP_CHECK_KIND : OP_IS_KIND, choice->kind);
}

/* All but one are asked for, and the one that remains is demanded: the first that is not nil, so that the error names
 * what was mostly wanted. */
static void emit_expr_check_choices(struct code *code, const struct annotation *annotation, struct span span)
{
    const struct annotation *demanded = annotation->choices;
    if (demanded->next && !demanded->record && demanded->kind == KIND_NIL) demanded = demanded->next;
    struct label fits;
    emit_label_init(&fits);
    for (const struct annotation *choice = annotation->choices; choice; choice = choice->next) {
        if (choice == demanded) continue;
        emit_op(code, span, OP_DUP);
        emit_expr_check_choice(code, choice, span, false);
        emit_jump(code, span, OP_JUMP_IF_TRUE, 0, 0, &fits);
    }
    emit_expr_check_choice(code, demanded, span, true);
    emit_bind(code, &fits);
}

void emit_check(struct code *code, const struct annotation *annotation, const struct node *value,
                struct span span)
{
    if (!annotation || !annotation->known) return;
    const struct symbol *known = value && value->kind == NODE_CALL ? value->as.call.known : NULL;
    const struct record_decl *built = known && known->kind == SYMBOL_RECORD ? known->record : NULL;
    uint8_t kind = built ? KIND_RECORD : value ? ast_value_kind(value) : KIND_COUNT;
    if (kind != KIND_COUNT && annotation_allows(annotation, kind, built)) return;
    if (annotation->choices)
        emit_expr_check_choices(code, annotation, span);
    else
        emit_expr_check_choice(code, annotation, span, true);
}
