/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_stmt.c: blocks, branches, loops, match.
 *
 * Invariant: a statement leaves the stack as it found it.
 * Not here: assignment (emit_assign.c), try, defer and ways out (emit_unwind.c).
 */
#include "compiler/emit_internal.h"
#include "compiler/lexer.h"
#include "vm/base/check.h"

static void emit_stmt(struct code *code, struct node *node);

void emit_block(struct code *code, struct block *block)
{
    struct unwind *outer = code->unwind;
    for (uint32_t i = 0; i < block->statements.count && code->reachable; i++)
        emit_stmt(code, block->statements.items[i]);
    emit_close_defers(code, outer);
}

static void emit_stmt_if(struct code *code, struct node *node)
{
    struct label end;
    emit_label_init(&end);
    uint32_t count = node->as.branch.arm_count;
    for (uint32_t i = 0; i < count && code->reachable; i++) {
        struct if_arm *arm = &node->as.branch.arms[i];
        struct label next;
        emit_label_init(&next);
        emit_condition(code, arm->condition, &next, false);
        emit_block(code, &arm->block);
        bool last = i + 1 == count && !node->as.branch.otherwise;
        if (!last && next.last_use != PROGRAM_NO_INDEX)
            emit_jump(code, node->span, OP_JUMP, 0, 0, &end);
        else if (!last && code->reachable)
            break; /* this arm is always taken */
        emit_bind(code, &next);
        if (i + 1 == count && node->as.branch.otherwise && code->reachable)
            emit_block(code, node->as.branch.otherwise);
    }
    emit_bind(code, &end);
}

/* -- loops --------------------------------------------------------------------------------------------------------- */

static void emit_stmt_loop_body(struct code *code, struct node *node, enum unwind_kind kind, uint32_t top,
                                struct label *exit, struct block *block)
{
    struct unwind entry = {.outer = code->unwind, .kind = kind, .top = top, .exit = exit};
    code->unwind = &entry;
    emit_block(code, block);
    code->unwind = entry.outer;
    if (code->reachable && emit_here(code) == top) {
        /* `loop { }`: LOOP must go back over something. */
        emit_op(code, node->span, OP_NIL);
        emit_op(code, node->span, OP_POP);
    }
    emit_op_a(code, node->span, OP_LOOP, top);
    emit_bind(code, exit);
}

static void emit_stmt_while(struct code *code, struct node *node)
{
    struct label exit;
    emit_label_init(&exit);
    uint32_t top = emit_here(code);
    if (node->as.loop.condition) emit_condition(code, node->as.loop.condition, &exit, false);
    emit_stmt_loop_body(code, node, UNWIND_LOOP, top, &exit, &node->as.loop.block);
}

static void emit_stmt_for(struct code *code, struct node *node)
{
    struct node *iterable = node->as.each.iterable;
    struct symbol *const *symbols = node->as.each.symbols;
    struct label exit;
    emit_label_init(&exit);
    bool ints = iterable->kind == NODE_RANGE && !symbols[1];
    if (ints) {
        emit_expression(code, iterable->as.binary.left);
        emit_expression(code, iterable->as.binary.right);
        emit_op(code, iterable->span, OP_INTLOOP_BEGIN);
    } else {
        emit_expression(code, iterable);
        emit_op(code, iterable->span, OP_ITER_BEGIN);
    }
    uint32_t top = emit_here(code);
    struct span span = node->as.each.names[0].span;
    if (ints)
        emit_jump(code, span, OP_INTLOOP_NEXT, symbols[0]->slot, 0, &exit);
    else if (symbols[1])
        emit_jump(code, span, OP_ITER_NEXT_PAIR, symbols[0]->slot, symbols[1]->slot, &exit);
    else
        emit_jump(code, span, OP_ITER_NEXT, symbols[0]->slot, 0, &exit);
    emit_stmt_loop_body(code, node, ints ? UNWIND_INTLOOP : UNWIND_ITER, top, &exit, &node->as.each.block);
    emit_op(code, node->span, ints ? OP_INTLOOP_END : OP_ITER_END);
}

/* -- match --------------------------------------------------------------------------------------------------------- */

/* The range a..b matches ints only: comparing anything else with an int could be an error. */
static void emit_stmt_range_pattern(struct code *code, const struct node *pattern, uint32_t slot,
                                    struct label *body)
{
    struct label no;
    emit_label_init(&no);
    emit_local_get(code, pattern->span, slot, false);
    emit_op_a(code, pattern->span, OP_IS_KIND, KIND_INT);
    emit_jump(code, pattern->span, OP_JUMP_IF_FALSE, 0, 0, &no);
    emit_local_get(code, pattern->span, slot, false);
    emit_expression(code, pattern->as.binary.left);
    emit_op(code, pattern->span, OP_GE);
    emit_jump(code, pattern->span, OP_JUMP_IF_FALSE, 0, 0, &no);
    emit_local_get(code, pattern->span, slot, false);
    emit_expression(code, pattern->as.binary.right);
    emit_op(code, pattern->span, OP_LT);
    emit_jump(code, pattern->span, OP_JUMP_IF_TRUE, 0, 0, body);
    emit_bind(code, &no);
}

static void emit_stmt_pattern(struct code *code, struct node *pattern, uint32_t slot, struct label *body)
{
    const struct symbol *symbol = pattern->kind == NODE_NAME    ? pattern->as.name.symbol
                                  : pattern->kind == NODE_FIELD ? pattern->as.field.member
                                                                : NULL;
    if (pattern->kind == NODE_RANGE) {
        emit_stmt_range_pattern(code, pattern, slot, body);
        return;
    }
    emit_local_get(code, pattern->span, slot, false);
    if (symbol && symbol->kind == SYMBOL_RECORD) {
        emit_op_a(code, pattern->span, OP_IS_RECORD, symbol->record->index);
    } else if (symbol && symbol->value_kind != KIND_COUNT) {
        emit_op_a(code, pattern->span, OP_IS_KIND, symbol->value_kind);
    } else {
        emit_expression(code, pattern);
        emit_op(code, pattern->span, OP_EQ);
    }
    emit_jump(code, pattern->span, OP_JUMP_IF_TRUE, 0, 0, body);
}

static void emit_stmt_match(struct code *code, struct node *node)
{
    uint32_t temp_before = code->temp_next, slot = emit_temp(code, node->span);
    struct label end;
    emit_label_init(&end);
    emit_expression(code, node->as.match.subject);
    emit_local_set(code, node->span, slot);
    for (uint32_t i = 0; i < node->as.match.arm_count; i++) {
        struct match_arm *arm = &node->as.match.arms[i];
        struct label body, next;
        emit_label_init(&body);
        emit_label_init(&next);
        for (uint32_t k = 0; k < arm->patterns.count; k++)
            emit_stmt_pattern(code, arm->patterns.items[k], slot, &body);
        emit_jump(code, node->span, OP_JUMP, 0, 0, &next);
        emit_bind(code, &body);
        emit_block(code, &arm->block);
        emit_jump(code, node->span, OP_JUMP, 0, 0, &end);
        emit_bind(code, &next);
    }
    if (node->as.match.otherwise && code->reachable) emit_block(code, node->as.match.otherwise);
    emit_bind(code, &end);
    code->temp_next = temp_before;
}

/* -- the rest ------------------------------------------------------------------------------------------------------ */

static void emit_stmt_local_function(struct code *code, struct node *node)
{
    emit_op_a(code, node->span, OP_CLOSURE_WIDE, node->as.function->index);
    emit_local_set(code, node->span, node->as.function->symbol->slot);
}

static void emit_stmt(struct code *code, struct node *node)
{
    switch (node->kind) {
    case NODE_LET: emit_let(code, node); break;
    case NODE_ASSIGN: emit_assign(code, node); break;
    case NODE_CALL_ALONE:
        emit_expression(code, node->as.operand);
        emit_op(code, node->span, OP_POP);
        break;
    case NODE_RETURN: emit_return(code, node); break;
    case NODE_THROW:
        emit_expression(code, node->as.operand);
        emit_op(code, node->span, OP_THROW);
        break;
    case NODE_IF: emit_stmt_if(code, node); break;
    case NODE_WHILE:
    case NODE_LOOP: emit_stmt_while(code, node); break;
    case NODE_FOR: emit_stmt_for(code, node); break;
    case NODE_BREAK:
    case NODE_CONTINUE: emit_leave_loop(code, node); break;
    case NODE_MATCH: emit_stmt_match(code, node); break;
    case NODE_TRY: emit_try(code, node); break;
    case NODE_DEFER: emit_defer(code, node); break;
    default: CHECK(node->kind == NODE_LOCAL_FN); emit_stmt_local_function(code, node);
    }
}
