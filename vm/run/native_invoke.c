/* SPDX-License-Identifier: MIT
 *
 * vm/run/native_invoke.c: calling a native: counts and kinds first, then the body, then what came of it.
 *
 * In:   a native import of the instance and a window of arguments.
 * Out:  the result, vm->raised, or a parked fiber.
 * Invariant: a body sees only what its signature allows. Signatures are taken apart once, when the
 *       instance is made.
 */
#include "vm/base/limits.h"
#include "vm/code/opcode.h"
#include "vm/run/fiber.h"
#include "vm/run/native_call.h"

#include <stdarg.h>
#include <stddef.h>

/* "int", "str|list", "any" -- as the signature has it. */
static void native_describe_kinds(uint32_t kinds, char *text, size_t bytes_max)
{
    size_t count = 0;
    text[0] = 0;
    uint32_t all = (1u << KIND_COUNT) - 1;
    if ((kinds & all) == all) kinds = 0;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        if (!(kinds & 1u << kind)) continue;
        const char *name = kind_name((enum value_kind)kind, false);
        size_t length = strlen(name);
        if (count + length + 2 > bytes_max) return;
        if (count) text[count++] = '|';
        memcpy(text + count, name, length + 1);
        count += length;
    }
    if (count == 0 && bytes_max > 3) memcpy(text, "any", 4);
}

static bool native_count_failed(struct vm *vm, const struct native_link *link, uint32_t arg_count)
{
    const struct native_signature *signature = &link->signature;
    const char *name = link->row->english;
    uint32_t least = signature->required_count, most = signature->param_count;
    if (most == NATIVE_ARGS_ANY)
        return error_raise(vm, CY_ERR(CALL), MESSAGE_ARGUMENTS_LEAST, name, least, arg_count);
    if (least == most) return error_raise(vm, CY_ERR(CALL), MESSAGE_ARGUMENTS, name, most, arg_count);
    return error_raise(vm, CY_ERR(CALL), MESSAGE_ARGUMENTS_RANGE, name, least, most, arg_count);
}

static bool native_kind_failed(struct vm *vm, const struct native_link *link, uint32_t index, cy_value arg)
{
    const struct native_param *param = &link->signature.params[index];
    char wanted[128];
    native_describe_kinds(param->kinds, wanted, sizeof wanted);
    return error_raise(vm, CY_ERR(TYPE), MESSAGE_NATIVE_ARGUMENT, link->row->english, index + 1,
                       CY_BYTES_ARG(param->name), wanted, value_kind_text(vm, arg));
}

static bool native_check(struct vm *vm, const struct native_link *link, const cy_value *args,
                         uint32_t arg_count)
{
    const struct native_signature *signature = &link->signature;
    if (arg_count < signature->required_count ||
        (signature->param_count != NATIVE_ARGS_ANY && arg_count > signature->param_count))
        return native_count_failed(vm, link, arg_count);
    uint32_t checked = arg_count < signature->named_count ? arg_count : signature->named_count;
    for (uint32_t i = 0; i < checked; i++) {
        if (args[i].tag == TAG_ABSENT && !signature->params[i].optional)
            return error_raise(vm, CY_ERR(CALL), MESSAGE_ARGUMENT_ABSENT, link->row->english, i + 1);
        if (args[i].tag == TAG_ABSENT) continue;
        if (!(signature->params[i].kinds & value_kind_bit(args[i])))
            return native_kind_failed(vm, link, i, args[i]);
    }
    return true;
}

static bool native_allowed_now(struct fiber *fiber, const struct native_link *link)
{
    if ((link->row->flags & NATIVE_FLAG_MAIN) && !fiber->is_main)
        return error_raise(fiber->vm, CY_ERR(UNSUPPORTED), MESSAGE_MAIN_ONLY, link->row->english);
    if (!fiber->initialising) return true;
    if (link->row->capability)
        return error_raise(
            fiber->vm, CY_ERR(CAPABILITY), MESSAGE_INIT_CAPABILITY, link->row->english,
            capability_word((enum capability)(link->row->capability & -link->row->capability)));
    if (link->row->flags & NATIVE_FLAG_WAIT)
        return error_raise(fiber->vm, CY_ERR(UNSUPPORTED), MESSAGE_INIT_WAIT, link->row->english);
    return true;
}

/* The body wants to wait. A task that is being stopped may not: its defers have an allowance, not a life
 * of their own. */
static enum invoke_outcome native_park(struct fiber *fiber, struct native_call *call,
                                       const struct native_link *link)
{
    CHECK(fiber->operation == call->operation && fiber->state == FIBER_WAITING);
    if (!fiber->stop && !fiber->stop_wanted && !fiber->initialising) return INVOKE_WAIT;
    fiber->state = FIBER_RUNNING;
    fiber->generation++;
    fiber->operation = NULL;
    fiber->cancel = NULL;
    if (call->cancel) call->cancel(call->operation);
    if (fiber->stop_wanted) fiber->vm->budget = 0;
    error_raise(fiber->vm, CY_ERR(CANCELLED), MESSAGE_STOP_WAIT, link->row->english);
    return INVOKE_FAIL;
}

enum invoke_outcome native_invoke(struct fiber *fiber, uint32_t import, const cy_value *args,
                                  uint32_t arg_count, cy_value *owned_out)
{
    struct vm *vm = fiber->vm;
    const struct native_link *link = &fiber->instance->natives[import];
    if (!native_check(vm, link, args, arg_count) || !native_allowed_now(fiber, link)) return INVOKE_FAIL;
    struct native_call call = {
        .vm = vm,
        .fiber = fiber,
        .instance = fiber->instance,
        .args = args,
        .arg_count = arg_count,
        .result = value_nil(),
        .error = value_nil(),
    };
    enum native_outcome outcome = link->body(&call);
    if (outcome == NATIVE_WAIT) {
        DCHECK(link->row->flags & NATIVE_FLAG_WAIT); /* the row says it: initialisers are refused by it */
        value_unref(vm, call.result);
        value_unref(vm, call.error);
        fiber_drop_work(vm,
                        fiber); /* of turns before: what completes the wait does not call the body again */
        return native_park(fiber, &call, link);
    }
    if (outcome == NATIVE_AGAIN) {
        CHECK(fiber->work);
        vm->step_paused = true;
        return INVOKE_FAIL;
    }
    fiber_drop_work(vm, fiber);
    CHECK(fiber->state == FIBER_RUNNING); /* a body that called native_wait returns NATIVE_WAIT */
    if (outcome == NATIVE_DONE) {
        value_unref(vm, call.error);
        *owned_out = call.result;
        return INVOKE_DONE;
    }
    value_unref(vm, call.result);
    CHECK(call.error.tag != TAG_NIL);
    error_raise_value(vm, call.error);
    return INVOKE_FAIL;
}

/* -- for bodies ------------------------------------------------------------------------------------------ */

static enum native_outcome native_fail_list(struct native_call *call, cy_err reason, cy_value owned_data,
                                            const char *format, va_list arguments)
{
    struct builder text;
    builder_init(&text);
    builder_vprintf(&text, vm_text(call->vm, format), arguments);
    value_unref(call->vm, call->error);
    /* Half an error would be taken for a whole one: without memory for its words it is memory's. */
    if (text.failed) {
        value_unref(call->vm, owned_data);
        call->error = value_ref(call->vm->memory_error);
    } else
        call->error = error_make(call->vm, reason, builder_view(&text), owned_data);
    builder_fini(&text);
    return NATIVE_FAIL;
}

enum native_outcome native_fail(struct native_call *call, cy_err reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    native_fail_list(call, reason, value_nil(), format, arguments);
    va_end(arguments);
    return NATIVE_FAIL;
}

static const struct limit *native_limit_met(cy_err reason)
{
    if (cy_is(reason, CY_ERR_TOO_LARGE))
        return limit_find(reason.detail == LIMIT_LIST_ITEMS     ? "LIST_ITEMS"
                          : reason.detail == LIMIT_FORMAT_BYTES ? "FORMAT_BYTES"
                                                                : "STRING_BYTES");
    if (cy_is(reason, CY_ERR_LIMIT))
        return limit_find(reason.detail == LIMIT_KEY_STEPS ? "KEY_STEPS" : "WALK_STEPS");
    if (cy_is(reason, CY_ERR_DEPTH))
        return limit_find(reason.detail == LIMIT_KEY_NESTING ? "KEY_NESTING" : "VALUE_DEPTH");
    return NULL;
}

enum native_outcome native_fail_reason(struct native_call *call, cy_err reason, const char *native)
{
    const char *why = cy_err_text(reason, vm_korean(call->vm));
    const struct limit *limit = native_limit_met(reason);
    if (limit)
        return native_fail(call, reason, "%s: %s (%s: %lld)", native, why, limit->name,
                           (long long)limit->value);
    if (cy_is(reason, CY_ERR_NO_MEMORY))
        return native_fail(call, reason, "%s: %s (VM_MEMORY_BYTES: %llu)", native, why,
                           (unsigned long long)call->vm->heap_bytes_max);
    return native_fail(call, reason, "%s: %s", native, why);
}

enum native_outcome native_fail_data(struct native_call *call, cy_err reason, cy_value owned_data,
                                     const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    native_fail_list(call, reason, owned_data, format, arguments);
    va_end(arguments);
    return NATIVE_FAIL;
}

wait_ticket native_wait(struct native_call *call, void (*cancel)(void *operation), void *operation)
{
    struct fiber *fiber = call->fiber;
    CHECK(fiber->state == FIBER_RUNNING);
    call->cancel = fiber->cancel = cancel;
    call->operation = fiber->operation = operation;
    fiber->state = FIBER_WAITING;
    return (wait_ticket){fiber->index, fiber->generation};
}

void *native_work(const struct native_call *call) { return call->fiber->work; }

void native_keep_work(struct native_call *call, void *owned_work, void (*free)(struct vm *vm, void *work))
{
    CHECK(!call->fiber->work);
    call->fiber->work = owned_work;
    call->fiber->work_free = free;
}

struct native_kept {
    size_t bytes;
    void (*drop)(struct vm *vm, void *state);
    max_align_t state[];
};

static void native_kept_free(struct vm *vm, void *work)
{
    struct native_kept *kept = work;
    if (kept->drop) kept->drop(vm, kept->state);
    heap_free(vm, kept, sizeof *kept + kept->bytes);
}

bool native_resume(struct native_call *call, void *state_out, size_t bytes)
{
    struct native_kept *kept = call->fiber ? call->fiber->work : NULL;
    if (!kept) return false;
    CHECK(call->fiber->work_free == native_kept_free && kept->bytes == bytes);
    memcpy(state_out, kept->state, bytes);
    call->fiber->work = NULL; /* the body owns it again */
    heap_free(call->vm, kept, sizeof *kept + bytes);
    return true;
}

enum native_outcome native_pause(struct native_call *call, void *state, size_t bytes,
                                 void (*drop)(struct vm *vm, void *state), const char *native)
{
    struct native_kept *kept = heap_alloc(call->vm, sizeof *kept + bytes);
    if (!kept) {
        if (drop) drop(call->vm, state);
        cy_err err = CY_ERR(NO_MEMORY);
        return native_fail(call, err, "%s: %s", native, cy_err_text(err, vm_is_korean(call->vm)));
    }
    *kept = (struct native_kept){.bytes = bytes, .drop = drop};
    memcpy(kept->state, state, bytes);
    native_keep_work(call, kept, native_kept_free);
    return NATIVE_AGAIN;
}

bool native_turn_over(const struct native_call *call) { return call->fiber && call->vm->budget < 0; }

void native_charge(struct native_call *call, uint64_t steps) { vm_charge(call->vm, steps); }

int64_t native_budget(const struct native_call *call) { return call->vm->budget; }
