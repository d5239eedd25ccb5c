/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/toau_run.c: see toau_run.h.
 */
#include "tests/fuzz/toau_run.h"

#include "vm/base/check.h"
#include "vm/base/log.h"
#include "vm/native/native.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

enum {
    TOAU_RUN_PRINTED_BYTES_MAX = 1 << 20,
    TOAU_RUN_WAITS_MAX = 64,
    TOAU_RUN_CANCELLED_TURNS_MAX = 4000,
    TOAU_RUN_ARGS_MAX = 4
};

struct toau_run {
    const struct toau_run_bounds *bounds;
    struct vm *vm;
    struct instance *instance;
    struct builder *printed, *error;
    uint64_t now_ms;
    /* Waits begun in this turn: completed before the next one. Past the end they are left to vm_cancel. */
    wait_ticket waits[TOAU_RUN_WAITS_MAX];
    uint32_t wait_count;
};
struct toau_run_call {
    struct toau_run *run;
    bool is_main; /* only its error is described */
    bool ended;
    enum call_outcome outcome;
};

const char *toau_run_end_text(enum toau_run_end end)
{
    static const char *const texts[TOAU_RUN_END_COUNT] = {
        [TOAU_RUN_NO_VM] = "no memory for a VM", [TOAU_RUN_REFUSED] = "refused at load",
        [TOAU_RUN_NO_MAIN] = "no main",          [TOAU_RUN_FAILED] = "failed",
        [TOAU_RUN_STOPPED] = "stopped",          [TOAU_RUN_UNENDED] = "still running",
        [TOAU_RUN_RETURNED] = "returned",
    };
    return texts[end];
}

/* -- natives --------------------------------------------------------------------------------------------- */

static enum native_outcome toau_run_print(struct native_call *call)
{
    struct toau_run *run = vm_host(call->vm);
    struct builder *out = run->printed;
    if (!out) return NATIVE_DONE;
    struct builder line;
    builder_init(&line);
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (i > 0) builder_u8(&line, ' ');
        value_format(call->vm, call->args[i], false, &line);
    }
    builder_u8(&line, '\n');
    cy_err err = builder_error(&line);
    if (!cy_failed(err) && out->count < TOAU_RUN_PRINTED_BYTES_MAX) {
        builder_bytes(out, builder_view(&line));
        err = builder_error(out);
    }
    builder_fini(&line);
    return cy_failed(err) ? native_fail(call, err, "print") : NATIVE_DONE;
}

static enum native_outcome toau_run_answer_nil(struct native_call *call)
{
    (void)call;
    return NATIVE_DONE;
}

static void toau_run_cancelled(void *operation) { (void)operation; }

static enum native_outcome toau_run_park(struct native_call *call)
{
    struct toau_run *run = vm_host(call->vm);
    wait_ticket ticket = native_wait(call, toau_run_cancelled, run);
    if (run->wait_count < TOAU_RUN_WAITS_MAX) run->waits[run->wait_count++] = ticket;
    return NATIVE_WAIT;
}

static void toau_run_natives(native_body table_out[NATIVE_NUMBER_END])
{
    memcpy(table_out, native_table_core, NATIVE_NUMBER_END * sizeof *table_out);
    table_out[NATIVE_print] = table_out[NATIVE_print_error] = toau_run_print;
    for (size_t i = 0; native_row_at(i); i++) {
        const struct native_row *row = native_row_at(i);
        if (!row->core)
            table_out[row->number] = row->flags & NATIVE_FLAG_WAIT ? toau_run_park : toau_run_answer_nil;
    }
}

/* -- host ------------------------------------------------------------------------------------------------ */

static uint64_t toau_run_clock_ns(void *host)
{
    struct toau_run *run = host;
    return (run->now_ms += TOAU_RUN_LOOK_MS) * 1000000u;
}

static void toau_run_ready(void *host) { (void)host; } /* toau_run_turns asks until the call has ended */

static void toau_run_describe(struct toau_run *run, cy_value error)
{
    if (run->error) vm_describe_error(run->vm, error, run->error);
}

static void toau_run_done(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                          cy_err stop)
{
    (void)vm;
    struct toau_run_call *call = context;
    CHECK(!call->ended);
    call->ended = true;
    call->outcome = outcome;
    if (!call->is_main) return;
    if (outcome == CALL_FAILED) toau_run_describe(call->run, value);
    if (outcome == CALL_STOPPED && call->run->error) builder_text(call->run->error, cy_err_text(stop, false));
}

static void toau_run_turns(struct toau_run *run, const struct toau_run_call *call, uint32_t turns_max)
{
    for (uint32_t turn = 0; turn < turns_max && !call->ended; turn++) {
        uint32_t wait_count = run->wait_count;
        run->wait_count = 0;
        for (uint32_t i = 0; i < wait_count; i++) vm_complete(run->vm, run->waits[i], value_nil());
        vm_run(run->vm);
        vm_idle(run->vm);
    }
}

/* -- calls ----------------------------------------------------------------------------------------------- */

/* One value of each of some kinds; without memory nil. The caller lets go of it. */
static cy_value toau_run_argument(struct toau_run *run, uint32_t which)
{
    cy_value value;
    switch (which % 5) {
    case 0: return value_int(which);
    case 1:
        if (cy_failed(string_new(run->vm, CY_BYTES("18081"), &value))) return value_nil();
        return value;
    case 2:
        if (cy_failed(list_new(run->vm, 2, &value))) return value_nil();
        return value;
    case 3:
        if (cy_failed(map_new(run->vm, 0, &value))) return value_nil();
        cy_err err = map_set_text(run->vm, &value, CY_BYTES("host"), value_int(1));
        (void)err; /* an empty map will do */
        return value;
    default: return value_nil();
    }
}

static enum toau_run_end toau_run_function(struct toau_run *run, cy_value function, uint32_t arg_count,
                                           uint32_t which, bool is_main)
{
    cy_value args[TOAU_RUN_ARGS_MAX] = {value_nil()};
    struct toau_run_call call = {.run = run, .is_main = is_main};
    struct fiber *fiber;
    for (uint32_t i = 0; i < arg_count; i++) args[i] = toau_run_argument(run, which + i);
    cy_err err = vm_start(run->vm, run->instance, function, args, arg_count, toau_run_done, &call, &fiber);
    if (cy_failed(err)) {
        for (uint32_t i = 0; i < arg_count; i++) value_unref(run->vm, args[i]);
        return TOAU_RUN_NO_VM;
    }
    toau_run_turns(run, &call, run->bounds->turns_max);
    if (!call.ended) {
        /* A task that starts itself is followed one generation a turn, until the VM has no memory for more. */
        vm_cancel(run->vm, fiber);
        toau_run_turns(run, &call, TOAU_RUN_CANCELLED_TURNS_MAX);
    }
    if (!call.ended) return TOAU_RUN_UNENDED;
    return call.outcome == CALL_RETURNED ? TOAU_RUN_RETURNED
           : call.outcome == CALL_FAILED ? TOAU_RUN_FAILED
                                         : TOAU_RUN_STOPPED;
}

static enum toau_run_end toau_run_main(struct toau_run *run)
{
    const struct program *program = instance_program(run->instance);
    cy_value function;
    const struct export_entry *entry =
        program_find_export(program, program->module_count - 1, CY_BYTES("main"));
    if (!entry || entry->kind != EXPORT_FUNCTION) return TOAU_RUN_NO_MAIN;
    uint32_t arg_count = program->functions[entry->index].required_count;
    if (arg_count > 1) return TOAU_RUN_NO_MAIN;
    if (cy_failed(instance_export(run->instance, CY_BYTES("main"), &function))) return TOAU_RUN_NO_VM;
    return toau_run_function(run, function, arg_count, 2, true);
}

static void toau_run_exports(struct toau_run *run)
{
    const struct program *program = instance_program(run->instance);
    const struct module *module = &program->modules[program->module_count - 1];
    for (uint32_t i = 0; i < module->export_count; i++) {
        const struct export_entry *entry = &module->exports[i];
        cy_value function;
        cy_bytes name = program_string(program, entry->name);
        if (entry->kind != EXPORT_FUNCTION || cy_bytes_equal(name, CY_BYTES("main"))) continue;
        uint32_t arg_count = program->functions[entry->index].required_count;
        if (arg_count > TOAU_RUN_ARGS_MAX) continue;
        if (cy_failed(instance_export(run->instance, name, &function))) continue;
        for (uint32_t which = 0; which < 5; which++)
            (void)toau_run_function(run, function, arg_count, which, false);
    }
}

enum toau_run_end toau_run(const struct program *program, const struct toau_run_bounds *bounds,
                           struct builder *printed, struct builder *error)
{
    struct toau_run run = {.bounds = bounds, .printed = printed, .error = error};
    native_body natives[NATIVE_NUMBER_END];
    struct log log;
    toau_run_natives(natives);
    log_init(&log);
    log.level_min = LOG_ERROR;
    const struct vm_options options = {
        .natives = natives,
        .memory_bytes_max = bounds->memory_bytes_max,
        .capabilities = UINT32_MAX,
        .seed = {1, 2},
        .log = &log,
        .host = &run,
        .on_ready = toau_run_ready,
        .clock_ns = toau_run_clock_ns,
        .cpu_ns = toau_run_clock_ns,
        .cpu_burst_ms = bounds->cpu_burst_ms,
    };
    if (cy_failed(vm_new(&options, &run.vm))) return TOAU_RUN_NO_VM;
    enum toau_run_end end = TOAU_RUN_REFUSED;
    cy_value refusal = value_nil();
    if (cy_failed(instance_new(run.vm, program, &run.instance, &refusal))) {
        toau_run_describe(&run, refusal);
        value_unref(run.vm, refusal);
    } else {
        end = toau_run_main(&run);
        if (bounds->call_exports) toau_run_exports(&run);
        instance_unref(run.vm, &run.instance);
    }
    vm_free(&run.vm);
    return end;
}
