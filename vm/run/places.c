/* SPDX-License-Identifier: MIT
 *
 * vm/run/places.c: where an error was raised: numbers when it is raised, texts when somebody reads them.
 *
 *   error.stack ─► places of the waiter ─► places of the task it waited for ─► ...      (inner: nearer to the cause)
 *                  frames, and where
 *                  the task was spawned
 *
 * In:   errors and stops on their way through a fiber, and from a task to whoever waits for it.
 * Out:  the field `stack`: an opaque value that no program gets to see, then a list of texts, innermost first.
 * Invariant: places never change once made, so errors may share them. They keep the instance's code, as a function
 *       value does, and never its variables.
 */
#include "vm/base/limits.h"
#include "vm/run/fiber.h"
#include "vm/run/list.h"
#include "vm/run/string.h"

enum {
    PLACES_RESERVE_BYTES =
        64 << 10, /* errors may be completed when the memory limit is reached; see error_value.c */
    PLACES_CROSSINGS_MAX = 16, /* tasks that waited for tasks that waited, as far as they are told */
};

struct places_frame {
    uint32_t function;
    uint32_t step;
};
struct places {
    struct instance *instance;
    cy_value inner;              /* owned: an opaque or a list of texts from before, or nil */
    struct places_frame spawned; /* of the task that `inner` is about */
    uint32_t crossings; /* how many of these hang together through `inner`, 0: none was crossed here */
    uint32_t count;
    uint32_t more_count; /* frames further out that are not kept */
    struct places_frame frames[];
};

static size_t places_bytes(uint32_t count)
{
    struct places *places;
    return sizeof *places + count * sizeof places->frames[0];
}
static void places_free(struct vm *vm, void *payload)
{
    struct places *places = payload;
    struct instance *instance = places->instance;
    value_unref(vm, places->inner);
    heap_free(vm, places, places_bytes(places->count));
    instance_function_dropped(vm, instance);
}
static const struct opaque_type places_type = {.name = "places", .free = places_free};

static struct places *places_of(cy_value field) { return opaque_payload(field, &places_type); }

/* -- noting ---------------------------------------------------------------------------------------------- */

static struct places_frame places_of_frame(const struct instance *instance, const struct frame *frame)
{
    return (struct places_frame){(uint32_t)(frame->function - instance->functions),
                                 (uint32_t)(frame->step - frame->function->code)};
}

/* The frames of a fiber (NULL: none), as a value for the stack field. */
static cy_err places_new(struct vm *vm, struct instance *instance, struct fiber *fiber, cy_value *owned_out,
                         struct places **places_out)
{
    uint32_t depth = fiber && fiber->frame ? (uint32_t)(fiber->frame - fiber->frames) + 1 : 0;
    uint32_t count = depth < LIMIT_ERROR_PLACES ? depth : LIMIT_ERROR_PLACES;
    vm_charge_items(vm, count);
    vm->heap_bytes_max += PLACES_RESERVE_BYTES;
    struct places *places = heap_alloc(vm, places_bytes(count));
    cy_err err = CY_ERR(NO_MEMORY);
    if (places) {
        *places = (struct places){
            .instance = instance, .inner = value_nil(), .count = count, .more_count = depth - count};
        instance->function_count++; /* the code stays, as with a function value */
        for (uint32_t i = 0; i < count; i++) places->frames[i] = places_of_frame(instance, fiber->frame - i);
        err = opaque_new(vm, &places_type, places, 0, owned_out); /* frees it when it fails */
    }
    vm->heap_bytes_max -= PLACES_RESERVE_BYTES;
    *places_out = places;
    return err;
}

static cy_value *places_field(struct vm *vm, cy_value error)
{
    if (!value_is_error(vm, error) || !value_is_unshared(error)) return NULL;
    return &record_of(error)->fields[ERROR_FIELD_STACK];
}

void places_note(struct vm *vm, struct fiber *fiber, cy_value error)
{
    cy_value *field = places_field(vm, error), noted;
    struct places *places;
    if (!field || field->tag != TAG_LIST || list_of(*field)->count > 0)
        return; /* raised before: the first places stay */
    if (cy_failed(places_new(vm, fiber->instance, fiber, &noted, &places))) return; /* none, nothing worse */
    cy_value before = *field;
    *field = noted;
    value_unref(vm, before);
}

void places_cross(struct vm *vm, cy_value error, struct instance *instance, uint32_t function, uint32_t step,
                  struct fiber *waiter)
{
    cy_value *field = places_field(vm, error), noted;
    struct places *places, *inner = field ? places_of(*field) : NULL;
    uint32_t crossings = inner ? inner->crossings + 1 : 1;
    if (!field || (!inner && field->tag != TAG_LIST) || crossings > PLACES_CROSSINGS_MAX) return;
    if (cy_failed(places_new(vm, instance, waiter, &noted, &places))) return;
    places->crossings = crossings;
    places->spawned = (struct places_frame){function, step};
    places->inner = *field;
    *field = noted;
}

/* -- reading --------------------------------------------------------------------------------------------- */

static void places_format(const struct instance *instance, struct places_frame frame, const char *before,
                          struct builder *out)
{
    const struct code_function *function = &instance->functions[frame.function];
    const struct program *program = instance->program;
    cy_bytes name = program_string(program, function->source->name);
    cy_bytes file = program_string(program, program->modules[function->source->module].file);
    uint32_t line, column, offset = function->offsets[frame.step];
    builder_text(out, before);
    bool initialises = program->modules[function->source->module].init_function == frame.function;
    builder_bytes(out, initialises ? CY_BYTES("initialiser") : name.count ? name : CY_BYTES("function"));
    if (function_place(function->source, offset, &line, &column))
        builder_printf(out, " (%.*s:%u:%u)", CY_BYTES_ARG(file), line, column);
    else
        builder_printf(out, " (%.*s)", CY_BYTES_ARG(file));
}

void places_describe_turn(const struct fiber *fiber, struct builder *out)
{
    const struct frame *frame = fiber->frame;
    if (!frame || fiber->state == FIBER_POOLED) {
        builder_text(out, "return");
        return;
    }
    struct places_frame place = places_of_frame(fiber->instance, frame);
    if (fiber->state != FIBER_WAITING && !fiber->work && place.step > 0) place.step--;
    places_format(fiber->instance, place, "", out);
}

static cy_err places_add_text(struct vm *vm, struct builder *text, cy_value *list)
{
    cy_value place;
    cy_err err = builder_error(text);
    if (!cy_failed(err)) err = string_new(vm, builder_view(text), &place);
    builder_clear(text);
    CY_TRY(err);
    return list_append(vm, list, place);
}

static cy_err places_add(struct vm *vm, const struct places *places, cy_value *list)
{
    struct builder text;
    builder_init(&text);
    cy_err err = CY_OK;
    if (places->crossings) {
        places_format(places->instance, places->spawned,
                      vm_message_text(MESSAGE_PLACE_SPAWNED, vm_is_korean(vm)), &text);
        err = places_add_text(vm, &text, list);
    }
    for (uint32_t i = 0; i < places->count && !cy_failed(err); i++) {
        const char *awaited = vm_message_text(MESSAGE_PLACE_AWAITED, vm_is_korean(vm));
        const char *before = i == 0 && places->crossings ? awaited : "";
        places_format(places->instance, places->frames[i], before, &text);
        err = places_add_text(vm, &text, list);
    }
    if (places->more_count > 0 && !cy_failed(err)) {
        builder_printf(&text, vm_message_text(MESSAGE_PLACES_MORE, vm_is_korean(vm)), places->more_count);
        err = places_add_text(vm, &text, list);
    }
    builder_fini(&text);
    return err;
}

/* Texts that were read before the error crossed. */
static cy_err places_add_list(struct vm *vm, cy_value from, cy_value *list)
{
    cy_err err = CY_OK;
    for (uint32_t i = 0; from.tag == TAG_LIST && i < list_of(from)->count && !cy_failed(err); i++)
        err = list_append(vm, list, value_ref(list_item(list_of(from), i)));
    return err;
}

void error_settle_places(struct vm *vm, cy_value record)
{
    if (!value_is_error(vm, record)) return;
    cy_value *field = &record_of(record)->fields[ERROR_FIELD_STACK];
    const struct places *chain[PLACES_CROSSINGS_MAX + 1], *places = places_of(*field);
    if (!places) return;
    uint32_t count = 0;
    cy_value first = value_nil(), list = value_nil();
    for (; places; places = places_of(first)) {
        CHECK(count < CY_COUNT_OF(chain));
        chain[count++] = places;
        first = places->inner;
        /* Formatting 64 places is what raising them used to cost: it is charged where it happens. */
        vm_charge(vm, places->count);
    }
    vm->heap_bytes_max += PLACES_RESERVE_BYTES;
    cy_err err = list_new(vm, 0, &list);
    if (!cy_failed(err)) err = places_add_list(vm, first, &list);
    while (count > 0 && !cy_failed(err)) err = places_add(vm, chain[--count], &list);
    vm->heap_bytes_max -= PLACES_RESERVE_BYTES; /* a failure leaves fewer places, nothing worse */
    cy_value before = *field;
    *field = list;
    value_unref(vm, before);
}
