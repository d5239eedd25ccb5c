/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_assign.c: let and assignment.
 *
 * Here is what makes value semantics cheap: `x = x + e`, `x[i].f = v` and `x[i].f = x[i].f + e` are single instructions
 *                                           on the variable itself, so that a value nobody else holds is changed in
 *                                           place.
 */
#include "compiler/emit_internal.h"
#include "vm/base/check.h"

static void emit_assign_set(struct code *code, const struct symbol *symbol, struct span span)
{
    if (symbol->kind == SYMBOL_LOCAL)
        emit_local_set(code, span, symbol->slot);
    else
        emit_op_a(code, span, OP_GLOBAL_SET_WIDE, symbol->index);
}

void emit_let(struct code *code, struct node *node)
{
    const struct symbol *symbol = node->as.let.symbol;
    if (symbol->kind == SYMBOL_GLOBAL ? !symbol->needs_global : symbol->literal != NULL)
        return; /* written into its uses */
    if (node->as.let.value)
        emit_expression(code, node->as.let.value);
    else
        emit_op(code, node->span, OP_NIL);
    emit_check(code, node->as.let.annotation, node->as.let.value, node->as.let.name.span);
    emit_assign_set(code, symbol, node->span);
}

/* -- paths --------------------------------------------------------------------------------------------------------- */

/* Pushes the keys from the variable outwards and returns how many; `*root_out` is the variable. */
static uint32_t emit_assign_keys(struct code *code, struct node *target, struct node **root_out)
{
    struct ast_spine spine;
    ast_spine_init(&spine);
    struct node *node = target;
    while (node->kind == NODE_INDEX || (node->kind == NODE_FIELD && !node->as.field.member)) {
        ast_spine_push(&spine, node);
        node = ast_left(node);
    }
    *root_out = node;
    uint32_t count = spine.count;
    while (spine.count > 0) {
        node = spine.items[--spine.count];
        if (node->kind == NODE_INDEX)
            emit_expression(code, node->as.index.index);
        else
            emit_op_a(code, node->span, OP_CONST_WIDE,
                      emit_constant_text(code->emitter, node->as.field.name.text));
    }
    ast_spine_fini(&spine);
    return count;
}

static struct node *emit_assign_root(struct node *target)
{
    struct node *node = target;
    while (node->kind == NODE_INDEX || (node->kind == NODE_FIELD && !node->as.field.member))
        node = ast_left(node);
    return node;
}

static const uint8_t emit_assign_opcodes[][2] = {
    [PATH_SET] = {OP_GLOBAL_PATH_SET, OP_LOCAL_PATH_SET},
    [PATH_ADD] = {OP_GLOBAL_PATH_ADD, OP_LOCAL_PATH_ADD},
    [PATH_APPEND] = {OP_GLOBAL_PATH_APPEND, OP_LOCAL_PATH_APPEND},
};

/* m[k] = map.get(m, k, []) + e, behind the keys. What map.get gives shares the entry's value, so the sum would be a
 * copy each time. So: when it gave nothing but the default, the sum as it is written; otherwise it is let go, and
 * m[k] = m[k] + e is one instruction. map.get has said by then that m is no map, and e is evaluated behind it, once. */
static void emit_assign_path_found(struct code *code, struct node *node, bool local, uint32_t target,
                                   uint32_t key_count)
{
    struct node *call = node->as.assign.found, *value = node->as.assign.value;
    const struct call_plan *plan = call->as.call.plan;
    bool append = node->as.assign.path_form == PATH_APPEND;
    uint32_t temp_before = code->temp_next;
    uint32_t found = emit_temp(code, call->span), more = emit_temp(code, call->span);
    struct label end, there;
    emit_label_init(&end);
    emit_label_init(&there);
    emit_expression(code, call);
    emit_local_set(code, call->span, found);
    emit_expression(code, value);
    emit_local_set(code, value->span, more);
    emit_local_get(code, call->span, found, false);
    struct node *otherwise = NULL;
    if (plan ? plan->count > 2 : call->as.call.argument_count > 2)
        otherwise = plan ? plan->values[2] : call->as.call.arguments[2].value;
    if (otherwise)
        emit_expression(code, otherwise);
    else
        emit_op(code, call->span, OP_NIL);
    emit_op(code, call->span, OP_EQ);
    emit_jump(code, call->span, OP_JUMP_IF_FALSE, 0, 0, &there);
    emit_local_get(code, call->span, found, true);
    emit_local_get(code, value->span, more, true);
    if (append) emit_op_a(code, value->span, OP_LIST, 1);
    emit_op(code, call->span, OP_ADD);
    emit_op_ab(code, node->as.assign.target->span, emit_assign_opcodes[PATH_SET][local], target, key_count);
    emit_jump(code, call->span, OP_JUMP, 0, 0, &end);
    emit_bind(code, &there);
    emit_op(code, call->span, OP_NIL);
    emit_local_set(code, call->span, found);
    emit_local_get(code, value->span, more, true);
    emit_op_ab(code, node->as.assign.target->span, emit_assign_opcodes[node->as.assign.path_form][local],
               target, key_count);
    emit_bind(code, &end);
    code->temp_next = temp_before;
}

/* Behind the keys: the value, and the instruction on `target`, a slot or a module variable. */
static void emit_assign_path_value(struct code *code, struct node *node, bool local, uint32_t target,
                                   uint32_t key_count)
{
    if (node->as.assign.found) {
        emit_assign_path_found(code, node, local, target, key_count);
        return;
    }
    if (node->as.assign.probe) {
        emit_expression(code, node->as.assign.probe);
        emit_op(code, node->as.assign.probe->span, OP_POP);
    }
    emit_expression(code, node->as.assign.value);
    emit_op_ab(code, node->as.assign.target->span, emit_assign_opcodes[node->as.assign.path_form][local],
               target, key_count);
}

/* A root that may not be written itself: its value must be a ref, and the write goes into the cell. */
static void emit_assign_through_ref(struct code *code, struct node *node)
{
    uint32_t temp_before = code->temp_next, temp = emit_temp(code, node->span);
    struct node *target = node->as.assign.target, *root = emit_assign_root(target);
    if (root->kind == NODE_FIELD)
        emit_symbol(code, root->as.field.member, root->span);
    else
        emit_name(code, root);
    emit_op_a(code, root->span, OP_CHECK_KIND, KIND_REF);
    emit_local_set(code, root->span, temp);
    uint32_t count = emit_assign_keys(code, target, &root);
    emit_assign_path_value(code, node, true, temp, count);
    code->temp_next = temp_before;
}

static void emit_assign_path(struct code *code, struct node *node)
{
    struct node *target = node->as.assign.target, *root;
    uint32_t count = emit_assign_keys(code, target, &root);
    const struct symbol *symbol = root->as.name.symbol;
    bool local = symbol->kind == SYMBOL_LOCAL;
    emit_assign_path_value(code, node, local, local ? symbol->slot : symbol->index, count);
}

void emit_assign(struct code *code, struct node *node)
{
    if (node->as.assign.form == ASSIGN_PATH) {
        emit_assign_path(code, node);
        return;
    }
    if (node->as.assign.form == ASSIGN_THROUGH_REF) {
        emit_assign_through_ref(code, node);
        return;
    }
    const struct symbol *symbol = node->as.assign.target->as.name.symbol;
    bool local = symbol->kind == SYMBOL_LOCAL;
    emit_expression(code, node->as.assign.value);
    if (node->as.assign.form == ASSIGN_PLAIN) {
        emit_check(code, node->as.assign.check, node->as.assign.value, node->as.assign.target->span);
        emit_assign_set(code, symbol, node->span);
        return;
    }
    bool append = node->as.assign.form == ASSIGN_APPEND;
    uint8_t opcode =
        local ? (append ? OP_LOCAL_APPEND : OP_LOCAL_ADD) : (append ? OP_GLOBAL_APPEND : OP_GLOBAL_ADD);
    emit_op_a(code, node->as.assign.op_span, opcode, local ? symbol->slot : symbol->index);
}
