/* SPDX-License-Identifier: MIT
 *
 * vm/run/interp_collect.c: steps that build collections, walk them, make functions and errors.
 *
 * In:   slots. Out: see interp_slow.h.
 */
#include "vm/base/limits.h"
#include "vm/run/format.h"
#include "vm/run/interp_slow.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"

static bool slow_too_large(struct vm *vm, cy_err err, const char *limit_name)
{
    return cy_is(err, CY_ERR_TOO_LARGE) ? error_raise_limit(vm, err, limit_name) : error_raise_walk(vm, err);
}

/* -- building -------------------------------------------------------------------------------------------- */

bool slow_list(struct vm *vm, cy_value *r, const struct run_step *step)
{
    cy_value list;
    vm_charge_items(vm, step->x);
    cy_err err = list_new(vm, 0, &list);
    if (cy_failed(err)) return error_raise_plain(vm, err);
    for (uint32_t i = 0; i < step->x && !cy_failed(err); i++)
        err = list_push(vm, list_of(list), slow_take(&run_slot(r, step->b)[i]));
    if (cy_failed(err)) {
        value_unref(vm, list);
        return slow_too_large(vm, err, "LIST_ITEMS");
    }
    slow_put(vm, run_slot(r, step->a), list);
    return true;
}

static bool slow_bad_key(struct vm *vm, cy_err err, cy_value key)
{
    if (cy_is(err, CY_ERR_KEY)) return error_raise_bad_key(vm, err, key);
    return slow_too_large(vm, err, "LIST_ITEMS");
}

bool slow_map(struct vm *vm, cy_value *r, const struct run_step *step)
{
    cy_value map;
    vm_charge_items(vm, 4 * (size_t)step->x);
    cy_err err = map_new(vm, step->x, &map);
    if (cy_failed(err)) return error_raise_plain(vm, err);
    for (uint32_t i = 0; i < step->x; i++) {
        cy_value *pair = &run_slot(r, step->b)[2 * i];
        cy_value key = value_ref(pair[0]);
        err = map_object_set(vm, map_object_of(map), slow_take(&pair[0]), slow_take(&pair[1]));
        if (cy_failed(err)) slow_bad_key(vm, err, key);
        value_unref(vm, key);
        if (!cy_failed(err)) continue;
        value_unref(vm, map);
        return false;
    }
    slow_put(vm, run_slot(r, step->a), map);
    return true;
}

bool slow_record(struct vm *vm, cy_value *r, const struct instance *instance, const struct run_step *step)
{
    cy_value record;
    struct record_shape *shape = instance->shapes[step->c];
    for (uint32_t i = 0; shape->rules && i < shape->field_count; i++)
        if (!record_check_field(vm, shape, i, run_slot(r, step->b)[i])) return false;
    cy_err err = record_new(vm, shape, run_slot(r, step->b), &record);
    if (cy_failed(err)) return error_raise_plain(vm, err);
    for (uint32_t i = 0; i < step->x; i++) run_slot(r, step->b)[i].tag = TAG_NIL;
    slow_put(vm, run_slot(r, step->a), record);
    return true;
}

bool slow_range(struct vm *vm, cy_value *r, const struct run_step *step)
{
    cy_value from = *run_slot(r, step->b), to = *run_slot(r, step->c), range;
    if (from.tag != TAG_INT || to.tag != TAG_INT)
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_LOOP_INTS, value_kind_text(vm, from),
                           value_kind_text(vm, to));
    cy_err err = range_new(vm, from.as.i, to.as.i, &range);
    if (cy_failed(err)) return error_raise_plain(vm, err);
    slow_put(vm, run_slot(r, step->a), range);
    return true;
}

bool slow_ref(struct vm *vm, cy_value *r, const struct run_step *step)
{
    cy_value ref;
    vm_charge(vm, 1); /* so that a search for cycles keeps up with a loop that makes cells */
    cy_err err = ref_new(vm, slow_take(run_slot(r, step->b)), &ref);
    if (cy_failed(err)) return error_raise_plain(vm, err);
    slow_put(vm, run_slot(r, step->a), ref);
    return true;
}

/* What an earlier turn has left of a long text. */
struct slow_text_work {
    struct format_text text;
};

static void slow_text_free(struct vm *vm, void *work)
{
    struct slow_text_work *kept = work;
    format_text_drop(vm, &kept->text);
    heap_free(vm, kept, sizeof *kept);
}

/* The turn is over: keeps the text for the next one. */
static bool slow_text_pause(struct fiber *fiber, struct format_text *text)
{
    struct vm *vm = fiber->vm;
    struct slow_text_work *kept = heap_alloc(vm, sizeof *kept);
    if (!kept) {
        format_text_drop(vm, text);
        return error_raise_plain(vm, CY_ERR(NO_MEMORY));
    }
    kept->text = *text;
    fiber->work = kept;
    fiber->work_free = slow_text_free;
    vm->step_paused = true;
    return false;
}

bool slow_text(struct fiber *fiber, cy_value *r, const struct run_step *step)
{
    struct vm *vm = fiber->vm;
    struct slow_text_work *kept = fiber->work;
    struct format_text text;
    if (CY_UNLIKELY(kept != NULL)) {
        CHECK(fiber->work_free == slow_text_free);
        text = kept->text;
        fiber->work = NULL;
        heap_free(vm, kept, sizeof *kept);
    } else
        format_text_begin(vm, &text);
    if (!format_text_go(vm, &text, run_slot(r, step->b), step->x, FORMAT_PLAIN))
        return slow_text_pause(fiber, &text);
    cy_value joined;
    cy_err err = format_text_end(vm, &text, &joined);
    if (cy_failed(err)) return slow_too_large(vm, err, "FORMAT_BYTES");
    for (uint32_t i = 0; i < step->x; i++) slow_clear(vm, &run_slot(r, step->b)[i]);
    slow_put(vm, run_slot(r, step->a), joined);
    return true;
}

/* -- loops ----------------------------------------------------------------------------------------------- */

bool slow_iter_begin(struct vm *vm, cy_value *r, const struct run_step *step)
{
    cy_value container = *run_slot(r, step->b);
    switch (container.tag) {
    case TAG_LIST:
    case TAG_MAP:
    case TAG_RANGE:
    case TAG_STR: break;
    default: return error_raise(vm, CY_ERR(TYPE), MESSAGE_NOT_ITERABLE, value_kind_text(vm, container));
    }
    /* Holding a reference is the snapshot: whoever writes now meets a shared value and copies it. */
    run_slot(r, step->a)[1] = (cy_value){TAG_ITER_INDEX, {.i = 0}};
    return true;
}

static bool slow_iter_map(const struct map_object *map, uint64_t *position, bool pair, cy_value *key_out,
                          cy_value *value_out)
{
    uint32_t index = (uint32_t)*position;
    if (!map_object_seek(map, &index)) return false;
    const struct map_object_entry *entry = &map->entries[index];
    *position = (uint64_t)index + 1;
    if (pair) {
        *key_out = value_ref(map_object_key(entry));
        *value_out = value_ref(entry->value);
    } else
        *value_out = value_ref(map_object_key(entry));
    return true;
}

bool slow_iter_next(cy_value *state, bool pair, cy_value *key_out, cy_value *value_out)
{
    cy_value container = state[0];
    uint64_t index = (uint64_t)state[1].as.i;
    if (container.tag == TAG_MAP) {
        bool more = slow_iter_map(map_object_of(container), &index, pair, key_out, value_out);
        state[1].as.i = (int64_t)index;
        return more;
    }
    switch (container.tag) {
    case TAG_LIST:
        if (index >= list_of(container)->count) return false;
        *value_out = value_ref(list_item(list_of(container), (uint32_t)index));
        break;
    case TAG_STR:
        if (index >= string_of(container)->count) return false;
        *value_out = value_int(string_of(container)->data[index]);
        break;
    default:
        if (index >= range_count(range_of(container))) return false;
        *value_out = value_int((int64_t)((uint64_t)range_of(container)->from + index));
        break;
    }
    if (pair) *key_out = value_int((int64_t)index);
    state[1].as.i = (int64_t)index + 1;
    return true;
}

/* -- functions as values --------------------------------------------------------------------------------- */

/* A function that captures nothing is one value per instance, so that it equals itself. */
static bool slow_plain_function(struct instance *instance, uint32_t index, cy_value *owned_out)
{
    cy_value *cached = &instance->function_values[index];
    if (cached->tag == TAG_NIL) {
        cy_err err = function_new(instance->vm, instance, index, false, 0, cached);
        if (cy_failed(err)) {
            *cached = value_nil();
            return error_raise_plain(instance->vm, err);
        }
    }
    *owned_out = value_ref(*cached);
    return true;
}

bool slow_closure(struct fiber *fiber, cy_value *r, const struct run_step *step)
{
    struct instance *instance = fiber->instance;
    const struct function *source = &instance->program->functions[step->c];
    cy_value value;
    if (source->capture_count == 0) {
        if (!slow_plain_function(instance, step->c, &value)) return false;
    } else {
        vm_charge_items(fiber->vm, source->capture_count);
        cy_err err = function_new(fiber->vm, instance, step->c, false, source->capture_count, &value);
        if (cy_failed(err)) return error_raise_plain(fiber->vm, err);
        struct function_object *parent = fiber->frame->closure, *function = function_of(value);
        for (uint32_t i = 0; i < source->capture_count; i++) {
            const struct capture *capture = &source->captures[i];
            CHECK(capture->from_parent_local || (parent && capture->index < parent->capture_count));
            function->captures[i] =
                value_ref(capture->from_parent_local ? r[capture->index] : parent->captures[capture->index]);
        }
    }
    slow_put(fiber->vm, run_slot(r, step->a), value);
    return true;
}

bool slow_self(struct fiber *fiber, cy_value *r, const struct run_step *step)
{
    struct function_object *closure = fiber->frame->closure;
    cy_value value;
    if (closure)
        value = value_ref(value_object(TAG_FUNCTION, &closure->container.head));
    else {
        struct instance *instance = fiber->instance;
        uint32_t index = (uint32_t)(fiber->frame->function - instance->functions);
        if (!slow_plain_function(instance, index, &value)) return false;
    }
    slow_put(fiber->vm, run_slot(r, step->a), value);
    return true;
}

bool slow_native_function(struct fiber *fiber, cy_value *r, const struct run_step *step)
{
    struct native_link *link = &fiber->instance->natives[step->c];
    if (link->function.tag == TAG_NIL) {
        cy_err err = function_new(fiber->vm, fiber->instance, step->c, true, 0, &link->function);
        if (cy_failed(err)) {
            link->function = value_nil();
            return error_raise_plain(fiber->vm, err);
        }
    }
    slow_put(fiber->vm, run_slot(r, step->a), value_ref(link->function));
    return true;
}

enum { SLOW_NAME_BYTES = 128 };
/* The function's name as text, cut to the room. */
static const char *slow_function_name(const struct instance *instance, const struct function *source,
                                      char text[SLOW_NAME_BYTES])
{
    cy_bytes name = program_string(instance->program, source->name);
    size_t count = cy_min_size(name.count, SLOW_NAME_BYTES - 1);
    if (count == 0) return "function";
    memcpy(text, name.data, count);
    text[count] = 0;
    return text;
}

bool slow_absent_argument(struct vm *vm, const struct instance *instance, const struct code_function *callee,
                          const cy_value *args)
{
    char text[SLOW_NAME_BYTES];
    uint32_t index = 0;
    while (args[index].tag != TAG_ABSENT) index++;
    CHECK(index < callee->required_count);
    return error_raise(vm, CY_ERR(CALL), MESSAGE_ARGUMENT_ABSENT,
                       slow_function_name(instance, callee->source, text), index + 1);
}

bool slow_wrong_count(struct vm *vm, const struct instance *instance, uint32_t function, uint32_t arg_count)
{
    const struct function *source = &instance->program->functions[function];
    char text[SLOW_NAME_BYTES];
    const char *shown = slow_function_name(instance, source, text);
    if (source->required_count == source->param_count)
        return error_raise(vm, CY_ERR(CALL), MESSAGE_ARGUMENTS, shown, source->param_count, arg_count);
    return error_raise(vm, CY_ERR(CALL), MESSAGE_ARGUMENTS_RANGE, shown, source->required_count,
                       source->param_count, arg_count);
}

/* What the step behind a MAP_GET_OR sets, owned. */
static cy_value slow_default(cy_value *r, const cy_value *k, const struct run_step *step)
{
    if (step->op == RUN_INT) return value_int((int32_t)step->c);
    return value_ref(step->op == RUN_CONSTANT ? *run_constant(k, step->c) : *run_slot(r, step->b));
}

bool slow_native(struct fiber *fiber, cy_value *r, const cy_value *k, const struct run_step *step,
                 uint16_t number, uint32_t arg_count)
{
    struct vm *vm = fiber->vm;
    uint32_t import = 0;
    while (fiber->instance->natives[import].row->number != number) import++;
    cy_value args[3] = {value_ref(*run_slot(r, step->b)), value_nil(), value_nil()}, result = value_nil();
    /* The operands stay where they are until it is done: a native may want to be called again in a later turn. */
    if (step->x & RUN_NUMBER_C)
        args[1] = value_int((int32_t)step->c);
    else if (arg_count >= 2)
        args[1] = value_ref(step->x & RUN_CONSTANT_C ? *run_constant(k, step->c) : *run_slot(r, step->c));
    if (arg_count == 3) args[2] = slow_default(r, k, step + 1);
    enum invoke_outcome outcome = native_invoke(fiber, import, args, arg_count, &result);
    for (uint32_t i = 0; i < arg_count; i++) value_unref(vm, args[i]);
    if (outcome == INVOKE_FAIL) return false;
    CHECK(outcome == INVOKE_DONE); /* none of them waits */
    if (step->x & RUN_OWN_B) slow_clear(vm, run_slot(r, step->b));
    if (step->x & RUN_OWN_C) slow_clear(vm, run_slot(r, step->c));
    slow_put(vm, run_slot(r, step->a), result);
    return true;
}

/* -- errors ---------------------------------------------------------------------------------------------- */

bool slow_throw(struct vm *vm, cy_value *slot)
{
    if (value_is_error(vm, *slot)) return error_raise_value(vm, slow_take(slot));
    struct builder text;
    builder_init(&text);
    text.count_max = 4096; /* a message, not a document: the value itself is in error.data */
    value_format(vm, *slot, false, &text);
    cy_bytes shown =
        slot->tag == TAG_STR ? cy_bytes_slice(string_bytes(*slot), 0, 4096) : builder_view(&text);
    cy_value error = error_make(vm, CY_ERR(THROWN), shown, value_ref(*slot));
    builder_fini(&text);
    return error_raise_value(vm, error);
}

/* Puts the line at the end of the pending error's stack. Whoever else holds that error keeps it as it was. */
static cy_err slow_attach_line(struct vm *vm, cy_value *pending, cy_bytes line)
{
    cy_value text, copy;
    if (error_stack(vm, *pending).tag != TAG_LIST) return CY_ERR(TYPE);
    if (!value_is_unshared(*pending)) {
        CY_TRY(record_copy(vm, *pending, &copy));
        slow_put(vm, pending, copy);
    }
    CY_TRY(string_new(vm, line, &text));
    return list_append(vm, &record_of(*pending)->fields[ERROR_FIELD_STACK], text);
}

/* The defer's error goes to the end of the pending error's stack; beside a stop, or where that cannot be, to the log:
 * the pending error passes on, which matters more. */
void slow_defer_attach(struct vm *vm, cy_value *pending, cy_value *error)
{
    bool shown = value_is_error(vm, *error), stop = !value_is_error(vm, *pending);
    cy_bytes kind = shown ? error_kind(vm, *error) : CY_BYTES("thrown");
    cy_bytes message = shown ? error_message(vm, *error) : CY_BYTES_NONE;
    struct builder line;
    builder_init(&line);
    builder_printf(&line, "defer: %.*s: %.*s", CY_BYTES_ARG(kind), CY_BYTES_ARG(message));
    cy_err err = builder_error(&line);
    if (!stop && !cy_failed(err)) err = slow_attach_line(vm, pending, builder_view(&line));
    builder_fini(&line);
    if (vm->options.log && stop)
        log_write(vm->options.log, LOG_WARN, "defer of a stopped task failed: %.*s: %.*s", CY_BYTES_ARG(kind),
                  CY_BYTES_ARG(message));
    else if (vm->options.log && cy_failed(err))
        log_write(vm->options.log, LOG_WARN, "defer failed beside another error: %.*s: %.*s",
                  CY_BYTES_ARG(kind), CY_BYTES_ARG(message));
    slow_clear(vm, error);
}
