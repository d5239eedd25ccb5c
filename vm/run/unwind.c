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

/* -- places: numbers when an error is raised, texts when somebody reads them -------------------------------- */

/* Stands in the stack field of an error, as an opaque value that no program gets to see. Keeps the instance's code. */
struct unwind_places {
    struct instance *instance;
    uint32_t count;
    uint32_t more_count; /* frames further out that are not kept */
    struct {
        uint32_t function;
        uint32_t step;
    } places[];
};

static size_t unwind_places_bytes(uint32_t count)
{
    struct unwind_places *places;
    return sizeof *places + count * sizeof places->places[0];
}
static void unwind_places_free(struct vm *vm, void *payload)
{
    struct unwind_places *places = payload;
    struct instance *instance = places->instance;
    heap_free(vm, places, unwind_places_bytes(places->count));
    instance_function_dropped(vm, instance);
}
static const struct opaque_type unwind_places_type = {.name = "places", .free = unwind_places_free};

static void unwind_format_place(const struct instance *instance, uint32_t function_index, uint32_t step,
                                struct builder *out)
{
    const struct code_function *function = &instance->functions[function_index];
    const struct program *program = instance->program;
    cy_bytes name = program_string(program, function->source->name);
    cy_bytes file = program_string(program, program->modules[function->source->module].file);
    uint32_t line, column, offset = function->offsets[step];
    builder_bytes(out, name.count ? name : CY_BYTES("function"));
    if (function_place(function->source, offset, &line, &column))
        builder_printf(out, " (%.*s:%u:%u)", CY_BYTES_ARG(file), line, column);
    else
        builder_printf(out, " (%.*s)", CY_BYTES_ARG(file));
}

/* The place at `index`, or the count of the rest behind the last. */
static cy_err unwind_add_place(struct vm *vm, const struct unwind_places *places, uint32_t index,
                               cy_value *list)
{
    struct builder text;
    builder_init(&text);
    if (index < places->count)
        unwind_format_place(places->instance, places->places[index].function, places->places[index].step,
                            &text);
    else
        builder_printf(&text, "... %u more", places->more_count);
    cy_value place;
    cy_err err = builder_error(&text);
    if (!cy_failed(err)) err = string_new(vm, builder_view(&text), &place);
    builder_fini(&text);
    CY_TRY(err);
    return list_append(vm, list, place);
}

void error_settle_places(struct vm *vm, cy_value record)
{
    if (!value_is_error(vm, record)) return;
    cy_value *field = &record_of(record)->fields[ERROR_FIELD_STACK];
    const struct unwind_places *places = opaque_payload(*field, &unwind_places_type);
    if (!places) return;
    /* Formatting 64 places is what raising them used to cost: it is charged where it happens. */
    vm_charge(vm, places->count);
    cy_value list = value_nil();
    vm->heap_bytes_max += UNWIND_RESERVE_BYTES;
    cy_err err = list_new(vm, 0, &list);
    uint32_t count = places->count + (places->more_count > 0);
    for (uint32_t i = 0; i < count && !cy_failed(err); i++) err = unwind_add_place(vm, places, i, &list);
    vm->heap_bytes_max -= UNWIND_RESERVE_BYTES; /* a failure leaves fewer places, nothing worse */
    cy_value before = *field;
    *field = list;
    value_unref(vm, before);
}

/* Notes the places of all frames in an error that has none yet. */
static void unwind_note_places(struct vm *vm, struct fiber *fiber, cy_value error)
{
    if (!value_is_error(vm, error) || !value_is_unshared(error)) return;
    cy_value *field = &record_of(error)->fields[ERROR_FIELD_STACK], noted;
    if (field->tag != TAG_LIST || list_of(*field)->count > 0)
        return; /* raised before: the first places stay */
    uint32_t depth = (uint32_t)(fiber->frame - fiber->frames) + 1;
    uint32_t count = depth < LIMIT_ERROR_PLACES ? depth : LIMIT_ERROR_PLACES;
    vm_charge_items(vm, count);
    vm->heap_bytes_max += UNWIND_RESERVE_BYTES;
    struct unwind_places *places = heap_alloc(vm, unwind_places_bytes(count));
    if (places) {
        *places =
            (struct unwind_places){.instance = fiber->instance, .count = count, .more_count = depth - count};
        places->instance->function_count++; /* the code stays, as with a function value */
        for (uint32_t i = 0; i < count; i++) {
            const struct frame *frame = fiber->frame - i;
            places->places[i].function = (uint32_t)(frame->function - fiber->instance->functions);
            places->places[i].step = (uint32_t)(frame->step - frame->function->code);
        }
        if (!cy_failed(opaque_new(vm, &unwind_places_type, places, &noted))) {
            cy_value before = *field;
            *field = noted;
            value_unref(vm, before);
        }
    }
    vm->heap_bytes_max -= UNWIND_RESERVE_BYTES; /* a failure leaves none, nothing worse */
}

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
    bool is_stop = vm->raised.tag == TAG_NIL;
    CHECK(!is_stop || fiber->stop);
    if (!is_stop) unwind_note_places(vm, fiber, vm->raised);
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
