/* SPDX-License-Identifier: MIT
 *
 * vm/native/job.c: see job.h.
 *
 * Invariant: a job whose task was stopped before it began does not run. One that runs already ends, and its result is
 *       let go: what it did to the file stays done.
 */
#include "vm/native/job.h"

#include "vm/base/check.h"
#include "vm/run/object.h"

#define JOB_SHUT_WAIT_MS 1000 /* for calls that still run when the process ends */

static void job_run(struct helper_job *helper)
{
    struct job *job = (struct job *)helper;
    job->work(job);
}

static void job_complete(struct job *job)
{
    struct vm *vm = job->runtime->vm;
    struct builder message;
    cy_value result = value_nil();
    builder_init(&message);
    cy_err err = job->finish(job, &result, &message);
    if (!cy_failed(err)) {
        vm_complete(vm, job->ticket, result);
    } else {
        if (message.failed) err = CY_ERR(NO_MEMORY);
        vm_complete_failed(vm, job->ticket, err, message.failed ? CY_BYTES_NONE : builder_view(&message));
    }
    builder_fini(&message);
}

static void job_on_ready(struct loop_op *op)
{
    struct runtime *runtime =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct runtime, helpers_ready);
    if (cy_failed(op->err)) return;
    struct helper_job *next;
    for (struct helper_job *helper = helper_pool_take(runtime->helpers); helper; helper = next) {
        struct job *job = (struct job *)helper;
        next = helper->next;
        if (!job->abandoned) job_complete(job);
        job->release(job);
    }
    loop_ready(runtime->helpers_socket, &runtime->helpers_ready);
}

static cy_err job_need_helpers(struct runtime *runtime)
{
    if (runtime->helpers) return CY_OK;
    CY_TRY(helper_pool_new(&runtime->helpers));
    cy_err err =
        loop_socket_watch(runtime->loop, helper_pool_descriptor(runtime->helpers), &runtime->helpers_socket);
    if (cy_failed(err)) {
        helper_pool_free(&runtime->helpers);
        return err;
    }
    runtime->helpers_ready.op.done = job_on_ready;
    runtime->helpers_ready.want_read = true;
    loop_ready(runtime->helpers_socket, &runtime->helpers_ready);
    return CY_OK;
}

static void job_cancel(void *operation)
{
    struct job *job = operation;
    memory_hold_leave_task(&job->hold);
    if (helper_pool_cancel(job->runtime->helpers, &job->helper))
        job->release(job);
    else
        job->abandoned = true;
}

static enum native_outcome job_in_place(struct native_call *call, struct job *job)
{
    struct builder message;
    cy_value result = value_nil();
    builder_init(&message);
    job->work(job);
    cy_err err = job->finish(job, &result, &message);
    if (message.failed) err = CY_ERR(NO_MEMORY);
    enum native_outcome outcome = cy_failed(err)
                                      ? native_fail(call, err, "%.*s", CY_BYTES_ARG(builder_view(&message)))
                                      : native_return(call, result);
    builder_fini(&message);
    job->release(job);
    return outcome;
}

enum native_outcome job_start(struct native_call *call, struct job *job)
{
    struct runtime *runtime = runtime_of(call->vm);
    job->runtime = runtime;
    job->helper.run = job_run;
    cy_err err = CY_OK;
    /* With others there, or a deadline, the thread must not wait. */
    if (!runtime->loop && (vm_fiber_count(call->vm) > 1 || runtime->deadline_seen))
        err = runtime_need_loop(runtime);
    if (!cy_failed(err) && !runtime->loop) return job_in_place(call, job);
    if (!cy_failed(err)) err = job_need_helpers(runtime);
    if (!cy_failed(err)) err = helper_pool_submit(runtime->helpers, &job->helper);
    if (cy_failed(err)) {
        job->release(job);
        return native_fail(call, err, "no helper thread: %s", cy_err_text(err, vm_korean(call->vm)));
    }
    job->ticket = native_wait(call, job_cancel, job);
    return NATIVE_WAIT;
}

void job_shut(struct runtime *runtime)
{
    if (!runtime->helpers) return;
    loop_socket_close(&runtime->helpers_socket);
    /* The VM is gone, so every job was cancelled: those that wait are freed, those that run are abandoned. What ends in
     * time is taken here; what hangs (a pipe nobody writes to) keeps its memory until the process ends. */
    struct helper_job *next;
    helper_pool_drain(runtime->helpers, JOB_SHUT_WAIT_MS);
    for (struct helper_job *helper = helper_pool_take(runtime->helpers); helper; helper = next) {
        next = helper->next;
        ((struct job *)helper)->release((struct job *)helper);
    }
    runtime->helpers_hang = !helper_pool_free(&runtime->helpers);
}

#undef JOB_SHUT_WAIT_MS
