/* SPDX-License-Identifier: MIT
 *
 * vm/run/unwind.c: from a raised error or a stop to the handler that gets it.
 *
 *   handlers of a frame are stack slots, linked from the innermost:  frame.handler -> slot -> slot -> none
 *   payload:  target step (32) | is a defer (1) | slot + 1 of the next outer handler (31)
 *
 * In:   vm->raised, or nothing when the fiber's stop is under way.
 * Out:  the frame and step to go on with, the error (or the mark of the stop) in the handler's slot.
 * Invariant: errors go to the nearest handler; stops pass TRY and run defers only, and none once their
 *       allowance is used up. Everything above the handler has been let go.
 */
#include "vm/run/unwind.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"
#include "vm/run/list.h"
#include "vm/run/string.h"

/* Errors may be completed when the memory limit is reached; see error_value.c. */
enum { UNWIND_RESERVE_BYTES = 64 << 10 };

static void unwind_format_place(const struct frame *frame, const struct program *program, struct builder *out)
{
    const struct code_function *function = frame->function;
    cy_bytes name = program_string(program, function->source->name);
    cy_bytes file = program_string(program, program->modules[function->source->module].file);
    uint32_t line, column;
    uint32_t offset = function->offsets[frame->step - function->code];
    builder_bytes(out, name.count ? name : CY_BYTES("function"));
    if (function_place(function->source, offset, &line, &column))
        builder_printf(out, " (%.*s:%u:%u)", CY_BYTES_ARG(file), line, column);
    else
        builder_printf(out, " (%.*s)", CY_BYTES_ARG(file));
}

static cy_err unwind_add_place(struct vm *vm, cy_value *places, const struct frame *frame,
                               const struct program *program, uint32_t more_count)
{
    struct builder text;
    builder_init(&text);
    if (frame)
        unwind_format_place(frame, program, &text);
    else
        builder_printf(&text, "... %u more", more_count);
    cy_value place;
    cy_err err = builder_error(&text);
    if (!cy_failed(err)) err = string_new(vm, builder_view(&text), &place);
    builder_fini(&text);
    CY_TRY(err);
    return list_append(vm, places, place);
}

void unwind_add_places(struct vm *vm, struct fiber *fiber, cy_value error)
{
    if (!value_is_error(vm, error) || !value_is_unshared(error)) return;
    cy_value *places = &record_of(error)->fields[ERROR_FIELD_STACK];
    if (places->tag != TAG_LIST || list_of(*places)->count > 0)
        return; /* raised before: the first places stay */
    vm->heap_bytes_max += UNWIND_RESERVE_BYTES;
    uint32_t shown = 0;
    cy_err err = CY_OK;
    for (const struct frame *frame = fiber->frame; frame >= fiber->frames && !cy_failed(err); frame--) {
        if (shown++ == LIMIT_ERROR_PLACES) {
            err = unwind_add_place(vm, places, NULL, NULL, (uint32_t)(frame - fiber->frames) + 1);
            break;
        }
        err = unwind_add_place(vm, places, frame, fiber->instance->program, 0);
        if (frame == fiber->frames) break;
    }
    vm->heap_bytes_max -= UNWIND_RESERVE_BYTES; /* a failure leaves fewer places, nothing worse */
}

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
    bool is_stop = vm->raised.tag == TAG_NIL;
    CHECK(!is_stop || fiber->stop);
    if (!is_stop) unwind_add_places(vm, fiber, vm->raised);
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
