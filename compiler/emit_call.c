/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_call.c: calls, construction of records, spawn.
 *
 * Invariant: arguments are evaluated in the order in which the source has them, also when names give them another order
 *            for the callee.
 */
#include "compiler/emit_internal.h"
#include "vm/base/check.h"
#include "vm/code/native_table.h"

/* A local function without captures is called like one of the module. */
static bool emit_call_is_plain_local(const struct symbol *known)
{
    return known->kind == SYMBOL_LOCAL && known->function->capture_count == 0;
}

bool emit_call_is_direct(const struct node *call)
{
    const struct symbol *known = call->as.call.known;
    return known && (known->kind != SYMBOL_LOCAL || emit_call_is_plain_local(known));
}

static void emit_call_absent(struct code *code, const struct node *call, uint32_t index)
{
    const struct symbol *known = call->as.call.known;
    if (known->kind != SYMBOL_RECORD) {
        emit_op(code, call->span, OP_ABSENT);
        return;
    }
    const struct span *outer = code->fixed_place;
    code->fixed_place = &call->span; /* the default's own place is in the record's file */
    emit_expression(code, known->record->fields[index].default_value);
    code->fixed_place = outer;
}

/* Named out of order: evaluate as written, into temporaries, then push as declared. */
static void emit_call_reordered(struct code *code, const struct node *call)
{
    const struct call_plan *plan = call->as.call.plan;
    uint32_t temp_before = code->temp_next;
    uint32_t temps[256];
    CHECK(call->as.call.argument_count <= CY_COUNT_OF(temps));
    for (uint32_t i = 0; i < call->as.call.argument_count; i++) {
        struct node *value = call->as.call.arguments[i].value;
        emit_expression(code, value);
        temps[i] = emit_temp(code, value->span);
        emit_local_set(code, value->span, temps[i]);
    }
    for (uint32_t index = 0; index < plan->count; index++) {
        uint32_t i = 0;
        while (plan->values[index] && call->as.call.arguments[i].value != plan->values[index]) i++;
        if (plan->values[index])
            emit_local_get(code, plan->values[index]->span, temps[i], true);
        else
            emit_call_absent(code, call, index);
    }
    code->temp_next = temp_before;
}

/* Pushes the arguments and returns how many there are. */
static uint32_t emit_call_push(struct code *code, const struct node *call)
{
    const struct call_plan *plan = call->as.call.plan;
    if (!plan) {
        for (uint32_t i = 0; i < call->as.call.argument_count; i++)
            emit_expression(code, call->as.call.arguments[i].value);
        return call->as.call.argument_count;
    }
    if (!plan->in_source_order) {
        emit_call_reordered(code, call);
        return plan->count;
    }
    for (uint32_t index = 0; index < plan->count; index++) {
        if (plan->values[index])
            emit_expression(code, plan->values[index]);
        else
            emit_call_absent(code, call, index);
    }
    return plan->count;
}

void emit_call(struct code *code, struct node *call)
{
    const struct symbol *known = call->as.call.known;
    CHECK(known);
    uint32_t count = emit_call_push(code, call);
    switch (known->kind) {
    case SYMBOL_NATIVE:
        emit_op_ab(code, call->span, OP_NATIVE, emit_native(code->emitter, known->native), count);
        break;
    case SYMBOL_RECORD: emit_op_ab(code, call->span, OP_RECORD, known->record->index, count); break;
    default: emit_op_ab(code, call->span, OP_CALL_FUNCTION_WIDE, known->function->index, count);
    }
}

void emit_call_arguments(struct code *code, struct node *call)
{
    uint32_t count = emit_call_push(code, call);
    emit_op_a(code, call->span, OP_CALL, count);
}

void emit_spawn(struct code *code, struct node *node)
{
    struct node *call = node->as.operand;
    const struct symbol *known = call->as.call.known;
    if (!known)
        emit_expression(code, call->as.call.callee);
    else if (emit_call_is_plain_local(known))
        emit_op_a(code, call->span, OP_CLOSURE_WIDE, known->function->index);
    else if (known->kind == SYMBOL_LOCAL)
        emit_name(code, call->as.call.callee);
    else
        emit_symbol(code, known, call->span);
    uint32_t count = emit_call_push(code, call);
    emit_op_a(code, node->span, OP_SPAWN, count);
}
