/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_unwind.c: try, defer, and the ways out that must run defers: return, break, continue, the end of a
 * block.
 *
 *      DEFER_BEGIN H         a defer's rest of the block
 *        ...
 *      DEFER_END
 *      body                  the normal way: its errors go where the block's would
 *      JUMP done
 *   H: (pending)             an error or a stop is on its way
 *      TRY_BEGIN T
 *      body
 *      TRY_END
 *      RETHROW
 *   T: (pending, error)      the defer failed as well
 *      DEFER_ATTACH
 *      RETHROW
 *   done:
 *
 * Invariant: while a defer's body is written, `unwind` is what lies outside of that defer, so ways out inside the
 *            body do not run it again.
 */
#include "compiler/emit_internal.h"
#include "vm/base/check.h"

static void emit_unwind_body(struct code *code, struct unwind *entry)
{
    struct unwind *inner = code->unwind;
    code->unwind = entry->outer;
    emit_block(code, &entry->defer->as.block);
    code->unwind = inner;
}

void emit_defer(struct code *code, struct node *node)
{
    if (!code->reachable) return;
    struct unwind *entry = arena_alloc_zeroed(&code->emitter->compilation->arena, sizeof *entry);
    entry->kind = UNWIND_DEFER;
    entry->outer = code->unwind;
    entry->defer = node;
    emit_label_init(&entry->handler);
    emit_jump(code, node->span, OP_DEFER_BEGIN, 0, 0, &entry->handler);
    code->unwind = entry;
}

static void emit_unwind_close(struct code *code, struct unwind *entry)
{
    struct span span = entry->defer->span;
    struct label done, failed;
    emit_label_init(&done);
    emit_label_init(&failed);
    emit_op(code, span, OP_DEFER_END);
    emit_unwind_body(code, entry);
    emit_jump(code, span, OP_JUMP, 0, 0, &done);

    emit_bind(code, &entry->handler);
    emit_jump(code, span, OP_TRY_BEGIN, 0, 0, &failed);
    emit_unwind_body(code, entry);
    emit_op(code, span, OP_TRY_END);
    emit_op(code, span, OP_RETHROW);
    emit_bind(code, &failed);
    emit_op(code, span, OP_DEFER_ATTACH);
    emit_op(code, span, OP_RETHROW);
    emit_bind(code, &done);
}

void emit_close_defers(struct code *code, struct unwind *until)
{
    while (code->unwind != until) {
        struct unwind *entry = code->unwind;
        CHECK(entry && entry->kind == UNWIND_DEFER);
        code->unwind = entry->outer;
        emit_unwind_close(code, entry);
    }
}

/* Takes one entry's state off the stack, and runs it when it is a defer. */
static void emit_unwind_leave(struct code *code, struct unwind *entry, struct span span)
{
    switch (entry->kind) {
    case UNWIND_LOOP: break;
    case UNWIND_INTLOOP: emit_op(code, span, OP_INTLOOP_END); break;
    case UNWIND_ITER: emit_op(code, span, OP_ITER_END); break;
    case UNWIND_TRY: emit_op(code, span, OP_TRY_END); break;
    case UNWIND_DEFER:
        emit_op(code, entry->defer->span, OP_DEFER_END);
        emit_unwind_body(code, entry);
        break;
    }
}

void emit_return(struct code *code, struct node *node)
{
    struct unwind *last =
        NULL; /* the outermost defer: nothing outside of it needs to be undone, RETURN lets go of it */
    for (struct unwind *entry = code->unwind; entry; entry = entry->outer)
        if (entry->kind == UNWIND_DEFER) last = entry;

    if (node->as.operand)
        emit_expression(code, node->as.operand);
    else
        emit_op(code, node->span, OP_NIL);
    struct span value_span = node->as.operand ? node->as.operand->span : node->span;
    emit_check(code, code->function->result, node->as.operand, value_span);
    if (last) {
        uint32_t temp_before = code->temp_next, temp = emit_temp(code, node->span);
        emit_local_set(code, node->span, temp);
        for (struct unwind *entry = code->unwind; entry != last->outer; entry = entry->outer)
            emit_unwind_leave(code, entry, node->span);
        emit_local_get(code, node->span, temp, true);
        code->temp_next = temp_before;
    }
    emit_op(code, node->span, OP_RETURN);
}

void emit_leave_loop(struct code *code, struct node *node)
{
    struct unwind *entry = code->unwind;
    for (; entry->kind == UNWIND_TRY || entry->kind == UNWIND_DEFER; entry = entry->outer)
        emit_unwind_leave(code, entry, node->span);
    if (node->kind == NODE_BREAK)
        emit_jump(code, node->span, OP_JUMP, 0, 0, entry->exit);
    else
        emit_op_a(code, node->span, OP_LOOP, entry->top);
}

void emit_try(struct code *code, struct node *node)
{
    struct label handler, done;
    emit_label_init(&handler);
    emit_label_init(&done);
    emit_jump(code, node->span, OP_TRY_BEGIN, 0, 0, &handler);
    struct unwind entry = {.outer = code->unwind, .kind = UNWIND_TRY};
    code->unwind = &entry;
    emit_block(code, &node->as.attempt.block);
    code->unwind = entry.outer;
    emit_op(code, node->span, OP_TRY_END);
    emit_jump(code, node->span, OP_JUMP, 0, 0, &done);

    emit_bind(code, &handler);
    if (node->as.attempt.symbol)
        emit_local_set(code, node->as.attempt.name.span, node->as.attempt.symbol->slot);
    else
        emit_op(code, node->span, OP_POP);
    emit_block(code, &node->as.attempt.catch_block);
    emit_bind(code, &done);
}
