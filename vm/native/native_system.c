/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_system.c: natives over the process: environment, clock, sleep, exit.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"
#include "vm/sys/clock.h"
#include "vm/sys/process.h"

#include <stdlib.h>
#include <unistd.h>

extern char **environ;

enum native_outcome native_env_get(struct native_call *call)
{
    cy_bytes name = string_bytes(call->args[0]);
    if (name.count == 0 || memchr(name.data, 0, name.count) || memchr(name.data, '=', name.count)) {
        return native_fail(call, CY_ERR(VALUE), "env.get: \"%.*s\" is no name of a variable",
                           CY_BYTES_ARG(name));
    }
    const char *text = getenv((const char *)name.data); /* a NUL stands behind every str */
    cy_value result = value_nil();
    if (!text) return native_return(call, native_has_arg(call, 1) ? value_ref(call->args[1]) : result);
    cy_err err = string_new(call->vm, cy_bytes_from_text(text), &result);
    if (cy_failed(err)) return native_fail_reason(call, err, "env.get");
    return native_return(call, result);
}

static int native_system_compare(const void *a, const void *b)
{
    return cy_bytes_compare(*(const cy_bytes *)a, *(const cy_bytes *)b);
}

enum native_outcome native_env_names(struct native_call *call)
{
    size_t count = 0, kept = 0;
    while (environ && environ[count]) count++;
    cy_bytes *names = mem_alloc((count + 1) * sizeof *names);
    cy_value list = value_nil(), text;
    if (!names) return native_fail_reason(call, CY_ERR(NO_MEMORY), "env.names");
    for (size_t i = 0; i < count; i++) {
        cy_bytes whole = cy_bytes_from_text(environ[i]);
        names[kept] = cy_bytes_slice(whole, 0, cy_bytes_find(whole, '='));
        if (names[kept].count > 0 && names[kept].count < whole.count) kept++;
    }
    qsort(names, kept, sizeof *names, native_system_compare);
    native_charge(call, 1 + kept / 16);
    cy_err err = list_new(call->vm, kept, &list);
    for (size_t i = 0; i < kept && !cy_failed(err); i++) {
        err = string_new(call->vm, names[i], &text);
        if (!cy_failed(err)) err = list_append(call->vm, &list, text);
    }
    mem_free(names);
    if (!cy_failed(err)) return native_return(call, list);
    value_unref(call->vm, list);
    return native_fail(call, err, "env.names: %s", cy_err_text(err, vm_korean(call->vm)));
}

enum native_outcome native_process_pid(struct native_call *call)
{
    return native_return(call, value_int(getpid()));
}

enum native_outcome native_process_args(struct native_call *call)
{
    cy_value list;
    cy_err err = runtime_main_args(runtime_of(call->vm), &list);
    if (cy_failed(err))
        return native_fail(call, err, "process.args: %s", cy_err_text(err, vm_korean(call->vm)));
    return native_return(call, list);
}

enum native_outcome native_process_cpus(struct native_call *call)
{
    return native_return(call, value_int(process_cpu_count()));
}

static void native_system_never(void *operation) { (void)operation; }

enum native_outcome native_process_exit(struct native_call *call)
{
    int64_t code = call->args[0].as.i;
    if (code < 0 || code > 125) {
        return native_fail(call, CY_ERR(VALUE), "process.exit: the code must be 0..125, not %lld",
                           (long long)code);
    }
    struct runtime *runtime = runtime_of(call->vm);
    if (runtime->serving.ready)
        return native_fail(call, CY_ERR(UNSUPPORTED), "process.exit: not while serving");
    runtime_request_exit(runtime, (int)code);
    (void)native_wait(call, native_system_never, NULL); /* nobody wakes it: the driver leaves */
    return NATIVE_WAIT;
}

/* -- sleeping ---------------------------------------------------------------------------------------------------- */
struct native_system_sleep {
    struct timer timer;
    struct runtime *runtime;
    wait_ticket ticket;
};
static void native_system_wake(struct timer *timer)
{
    struct native_system_sleep *sleep = CY_CONTAINER_OF(timer, struct native_system_sleep, timer);
    vm_complete(sleep->runtime->vm, sleep->ticket, value_nil());
    mem_free(sleep);
}
static void native_system_sleep_cancel(void *operation)
{
    struct native_system_sleep *sleep = operation;
    loop_timer_clear(sleep->runtime->loop, &sleep->timer);
    mem_free(sleep);
}

enum native_outcome native_task_sleep(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    int64_t ms = call->args[0].as.i;
    if (ms < 0 || ms > LIMIT_TIMEOUT_MS) {
        return native_fail(call, CY_ERR(VALUE),
                           "task.sleep: milliseconds must be 0..%d (TIMEOUT_MS), not %lld", LIMIT_TIMEOUT_MS,
                           (long long)ms);
    }
    cy_err err = runtime_need_loop(runtime);
    struct native_system_sleep *sleep = cy_failed(err) ? NULL : mem_alloc_zeroed(sizeof *sleep);
    if (!sleep) return native_fail_reason(call, cy_failed(err) ? err : CY_ERR(NO_MEMORY), "task.sleep");
    sleep->runtime = runtime;
    sleep->timer.fire = native_system_wake;
    sleep->ticket = native_wait(call, native_system_sleep_cancel, sleep);
    loop_timer_set(runtime->loop, &sleep->timer, (uint64_t)ms);
    return NATIVE_WAIT;
}
