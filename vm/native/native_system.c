/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_system.c: natives over the process: environment, files, clock, log, sleep, exit.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"
#include "vm/sys/clock.h"
#include "vm/sys/file.h"
#include "vm/sys/process.h"

#include <stdlib.h>

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
    if (cy_failed(err)) return native_fail(call, err, "env.get");
    return native_return(call, result);
}

/* Reads in place, which blocks: allowed while a program starts. Once the loop serves, a slow disk would hold up every
 * connection, so it is refused until files are read on helper threads. In configure it is refused always: what a
 * generation is made of was read by the master (process.workers, files), and a worker must not see other bytes than
 * the checker did. */
enum native_outcome native_fs_read(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    cy_bytes path = string_bytes(call->args[0]);
    if (runtime->serving.ready || runtime->configuring_count > 0) {
        return native_fail(call, CY_ERR(UNSUPPORTED),
                           "fs.read: not in configure or a handler; name the file in process.workers' files");
    }
    if (path.count == 0 || memchr(path.data, 0, path.count))
        return native_fail(call, CY_ERR(VALUE), "fs.read: not a path");
    struct builder content;
    builder_init(&content);
    cy_value result;
    cy_err err = file_read((const char *)path.data, LIMIT_STRING_BYTES, &content);
    if (!cy_failed(err)) err = string_new(call->vm, builder_view(&content), &result);
    builder_fini(&content);
    if (cy_failed(err)) {
        char why[128];
        return native_fail(call, err, "fs.read: %.*s: %s", CY_BYTES_ARG(path),
                           cy_err_describe(err, vm_korean(call->vm), why, sizeof why));
    }
    return native_return(call, result);
}

enum native_outcome native_clock_ms(struct native_call *call)
{
    return native_return(call, value_int((int64_t)(clock_monotonic_ns() / 1000000)));
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

enum native_outcome native_log_write(struct native_call *call)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    cy_bytes level = string_bytes(call->args[0]);
    for (size_t i = 0; i < CY_COUNT_OF(names); i++) {
        if (!cy_bytes_equal(level, cy_bytes_from_text(names[i]))) continue;
        log_write(vm_log(call->vm), (enum log_level)i, "%.*s", CY_BYTES_ARG(string_bytes(call->args[1])));
        return native_return(call, value_nil());
    }
    return native_fail(call, CY_ERR(VALUE),
                       "log.write: the level must be debug, info, warn or error, not \"%.*s\"",
                       CY_BYTES_ARG(level));
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
    if (ms < 0 || ms > LIMIT_TASK_MILLISECONDS) {
        return native_fail(call, CY_ERR(VALUE), "task.sleep: milliseconds must be 0..%d, not %lld",
                           LIMIT_TASK_MILLISECONDS, (long long)ms);
    }
    cy_err err = runtime_need_loop(runtime);
    struct native_system_sleep *sleep = cy_failed(err) ? NULL : mem_alloc_zeroed(sizeof *sleep);
    if (!sleep) return native_fail(call, cy_failed(err) ? err : CY_ERR(NO_MEMORY), "task.sleep");
    sleep->runtime = runtime;
    sleep->timer.fire = native_system_wake;
    sleep->ticket = native_wait(call, native_system_sleep_cancel, sleep);
    loop_timer_set(runtime->loop, &sleep->timer, (uint64_t)ms);
    return NATIVE_WAIT;
}
