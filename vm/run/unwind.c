/* SPDX-License-Identifier: MIT
 *
 * vm/run/unwind.c: from a raised error or a stop to the handler that gets it.
 *
 *   handlers of a frame are stack slots, linked from the innermost:  frame.handler -> slot -> slot -> none
 *   payload:  target step (32) | is a defer (1) | slot + 1 of the next outer handler (31)
 *
 * In:   vm->raised, or nothing when the fiber's stop is under way.
 * Out:  the frame and step to go on with, the error (or the mark of the stop) in the handler's slot.
 * Not here: places in errors (places.c).
 * Invariant: errors go to the nearest handler; stops pass TRY and run defers only, and none once their
 *       allowance is used up. Everything above the handler has been let go.
 */
#include "vm/run/unwind.h"
#include "vm/run/fiber.h"

/* -- handlers ---------------------------------------------------------------------------------------------- */

void unwind_push_handler(struct frame *frame, cy_value *slot_zero, uint32_t slot, uint32_t target,
                         bool is_defer)
{
    uint64_t payload = (uint64_t)target << 32 | (uint64_t)is_defer << 31 | frame->handler;
    slot_zero[slot] = (cy_value){TAG_HANDLER, {.handle = payload}};
    frame->handler = slot + 1;
}

void unwind_pop_handler(struct frame *frame, cy_value *slot_zero, uint32_t slot)
{
    DCHECK(frame->handler == slot + 1 && slot_zero[slot].tag == TAG_HANDLER);
    frame->handler = (uint32_t)slot_zero[slot].as.handle & 0x7fffffffu;
    slot_zero[slot].tag = TAG_NIL;
}

/* The next handler of the frame on top that is meant; false when the frame has none. */
static bool unwind_in_frame(struct vm *vm, struct fiber *fiber, bool is_stop)
{
    struct frame *frame = fiber->frame;
    cy_value *r = fiber->stack + frame->base;
    while (frame->handler) {
        uint32_t slot = frame->handler - 1;
        CHECK(slot < frame->function->slot_count && r[slot].tag == TAG_HANDLER);
        uint64_t payload = r[slot].as.handle;
        bool is_defer = payload >> 31 & 1;
        frame->handler = (uint32_t)payload & 0x7fffffffu;
        if (is_stop && !is_defer) continue;
        vm_charge_items(vm, frame->function->slot_count - slot);
        fiber_let_go(vm, r + slot, r + frame->function->slot_count);
        if (is_stop)
            r[slot] = (cy_value){TAG_STOP, {.i = fiber->stop}};
        else
            r[slot] = vm->raised;
        vm->raised = value_nil();
        frame->step = frame->function->code + (payload >> 32);
        return true;
    }
    return false;
}

bool unwind(struct vm *vm, struct fiber *fiber)
{
    fiber_drop_work(vm, fiber);
    /* What was refused because the task's memory is used up is that stop, not an error that try could catch. */
    if (fiber->stop_wanted == CY_ERR_STOP_MEMORY && !fiber->stop) {
        value_unref(vm, vm->raised);
        vm->raised = value_nil();
        fiber_begin_stop(vm, fiber);
    }
    bool is_stop = vm->raised.tag == TAG_NIL;
    CHECK(!is_stop || fiber->stop);
    if (!is_stop) places_note(vm, fiber, vm->raised);
    for (;;) {
        struct frame *frame = fiber->frame;
        if (!fiber->unwinding_hard && unwind_in_frame(vm, fiber, is_stop)) return true;
        cy_value *r = fiber->stack + frame->base;
        fiber_let_go(vm, r, r + frame->function->slot_count);
        if (frame == fiber->frames) break;
        fiber->frame--;
    }
    fiber->frame = NULL;
    fiber->outcome = is_stop ? CALL_STOPPED : CALL_FAILED;
    fiber->result = vm->raised;
    vm->raised = value_nil();
    return false;
}
