/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/run_host.c: see run_host.h.
 */
#include "tests/unit/run/run_host.h"

#include "vm/code/native_table.h"
#include "vm/code/verify.h"
#include "vm/run/task.h"

#include <check.h>

static enum native_outcome run_host_print(struct native_call *call)
{
    struct run_host *host = vm_host(call->vm);
    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (i > 0) builder_u8(&host->output, ' ');
        value_format(call->vm, call->args[i], false, &host->output);
    }
    builder_u8(&host->output, '\n');
    return NATIVE_DONE;
}

static enum native_outcome run_host_fail(struct native_call *call)
{
    cy_bytes message = string_bytes(call->args[0]);
    return native_fail(call, CY_ERR(VALUE), "%.*s", CY_BYTES_ARG(message));
}

static void run_host_cancelled(void *operation) { ((struct run_host *)operation)->cancel_count++; }

static enum native_outcome run_host_sleep(struct native_call *call)
{
    struct run_host *host = vm_host(call->vm);
    host->ticket = native_wait(call, run_host_cancelled, host);
    host->tickets[host->wait_count++ % RUN_HOST_TICKETS] = host->ticket;
    return NATIVE_WAIT;
}

static uint64_t run_host_clock(void *context)
{
    struct run_host *host = context;
    host->now_ns += host->tick_ns;
    return host->now_ns;
}

static uint64_t run_host_wall(void *context) { return ((struct run_host *)context)->wall_ns; }
static void run_host_deadline(void *context, uint64_t at_ns)
{
    ((struct run_host *)context)->deadline_ns = at_ns;
}

void run_host_wake_all(struct run_host *host)
{
    uint32_t first = host->wait_count > RUN_HOST_TICKETS ? host->wait_count - RUN_HOST_TICKETS : 0;
    for (uint32_t i = first, end = host->wait_count; i < end; i++)
        vm_complete(host->vm, host->tickets[i % RUN_HOST_TICKETS], value_nil());
}

static void run_host_ready(void *context) { ((struct run_host *)context)->ready_count++; }

static const native_body run_host_natives[NATIVE_NUMBER_END] = {
    [NATIVE_print] = run_host_print,
    [NATIVE_raise] = run_host_fail,
    [NATIVE_task_wait] = task_wait,
    [NATIVE_task_sleep] = run_host_sleep,
    [NATIVE_task_all] = task_all,
    [NATIVE_task_race] = task_race,
    [NATIVE_task_cancel] = task_cancel,
    [NATIVE_task_deadline] = task_deadline,
    [NATIVE_task_time_left] = task_time_left,
    [NATIVE_process_exit] = run_host_sleep, /* waits, in the main task only */
};

bool run_host_open(struct run_host *host, struct program *owned_program, uint64_t memory_bytes_max)
{
    return run_host_open_limited(host, owned_program, memory_bytes_max, UINT64_MAX);
}

bool run_host_open_limited(struct run_host *host, struct program *owned_program, uint64_t memory_bytes_max,
                           uint64_t task_memory_bytes_max)
{
    *host = (struct run_host){.program = owned_program, .tick_ns = 1000};
    builder_init(&host->output);
    builder_init(&host->stopped);
    const struct vm_options options = {
        .natives = run_host_natives,
        .memory_bytes_max = memory_bytes_max,
        .task_memory_bytes_max = task_memory_bytes_max,
        .seed = {1, 2},
        .host = host,
        .on_ready = run_host_ready,
        .cpu_ns = run_host_clock,
        .clock_ns = run_host_wall,
        .on_deadline = run_host_deadline,
    };
    if (owned_program) {
        struct code_failure failure;
        cy_err err = verify_program(owned_program, &failure);
        if (cy_is(err, CY_ERR_BAD_FORMAT))
            ck_abort_msg("rule %s in function %u at %u", code_rule_name(failure.rule), failure.function,
                         failure.offset);
        if (cy_failed(err)) return false;
    }
    if (cy_failed(vm_new(&options, &host->vm))) return false;
    return !owned_program || !cy_failed(instance_new(host->vm, owned_program, &host->instance, NULL));
}

void run_host_close(struct run_host *host)
{
    if (host->vm) {
        instance_unref(host->vm, &host->instance);
        vm_free(&host->vm); /* DCHECKs that nothing is left */
    }
    builder_fini(&host->output);
    builder_fini(&host->stopped);
    program_free(&host->program);
}

static void run_host_done(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                          cy_err stop)
{
    struct run_end *end = context;
    ck_assert(!end->ended);
    end->ended = true;
    end->outcome = outcome;
    end->stop = stop;
    if (outcome != CALL_STOPPED) {
        end->value = value_ref(value);
        return;
    }
    builder_clear(&end->host->stopped);
    vm_describe_error(vm, value, &end->host->stopped);
}

cy_err run_host_start(struct run_host *host, const char *name, const cy_value *args, uint32_t arg_count,
                      struct run_end *end, struct fiber **fiber_out)
{
    cy_value function;
    *end = (struct run_end){.host = host, .value = value_nil()};
    CY_TRY(instance_export(host->instance, cy_bytes_from_text(name), &function));
    return vm_start(host->vm, host->instance, function, args, arg_count, run_host_done, end, fiber_out);
}

void run_host_main(struct run_host *host, struct run_end *end)
{
    ck_assert(!cy_failed(run_host_start(host, "main", NULL, 0, end, NULL)));
    while (vm_run(host->vm)) {}
}

void run_end_clear(struct run_end *end)
{
    value_unref(end->host->vm, end->value);
    end->value = value_nil();
}

const char *run_host_text(struct run_host *host, cy_value value)
{
    builder_clear(&host->output);
    value_format(host->vm, value, false, &host->output);
    return run_host_printed(host);
}

const char *run_host_printed(struct run_host *host)
{
    const char *text = builder_text_view(&host->output);
    return text ? text : "(no memory)";
}
