/* SPDX-License-Identifier: MIT
 *
 * vm/native/repl.c: a runtime whose program grows between calls.
 *
 * In:   programs. Out: printed values, errors with their places.
 * Method: one VM and one instance for the whole session; instance_extend takes it to the next program. Initialisers and
 *         statements run as tasks, so they may wait, and are driven here until they have ended: with vm_run alone, or
 *         by the loop once something needed the network.
 * Invariant: between two calls no task is alive.
 */
#include "vm/native/repl.h"

#include "vm/base/mem.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"
#include "vm/sys/process.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct repl {
    struct runtime *runtime;
    struct program *program;
    int signals; /* descriptor; -1: not interactive */
    struct loop_socket *signals_socket;
    struct loop_ready signals_ready;
    /* the call under way */
    struct fiber *fiber;
    bool ended;
    enum call_outcome outcome;
    cy_value value; /* owned: the result or the error */
    cy_err stop;
};

static bool repl_korean(const struct repl *repl) { return repl->runtime->options->korean; }

static void repl_say_error(const struct repl *repl, cy_err err)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", repl->runtime->options->program_name, cy_err_text(err, repl_korean(repl)));
}

/* -- one call -------------------------------------------------------------------------------------------- */

static void repl_ended(struct vm *vm, void *context, enum call_outcome outcome, cy_value value, cy_err stop)
{
    (void)vm;
    struct repl *repl = context;
    repl->ended = true;
    repl->fiber = NULL;
    repl->outcome = outcome;
    repl->value = value_ref(value);
    repl->stop = stop;
}

static void repl_cancel(struct repl *repl)
{
    if (repl->fiber) vm_cancel(repl->runtime->vm, repl->fiber);
}

static void repl_look_at_signals(struct repl *repl)
{
    while (repl->signals >= 0 && signals_next(repl->signals) != 0) repl_cancel(repl);
}

static void repl_signal_ready(struct loop_op *op)
{
    struct repl *repl =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct repl, signals_ready);
    if (cy_failed(op->err)) return;
    repl_look_at_signals(repl);
    loop_ready(repl->signals_socket, &repl->signals_ready);
}

/* The loop was made just now: from here on it waits, and SIGINT must end that. */
static void repl_watch(struct repl *repl)
{
    if (repl->signals < 0 || repl->signals_socket) return;
    repl->signals_ready.op.done = repl_signal_ready;
    repl->signals_ready.want_read = true;
    cy_err err = loop_socket_watch(repl->runtime->loop, repl->signals, &repl->signals_socket);
    if (cy_failed(err))
        repl_say_error(repl, err);
    else
        loop_ready(repl->signals_socket, &repl->signals_ready);
}

static void repl_turn(struct repl *repl)
{
    struct runtime *runtime = repl->runtime;
    repl_look_at_signals(repl);
    if (runtime->loop) {
        cy_err err = loop_turn(runtime->loop);
        if (!cy_failed(err)) return;
        repl_say_error(repl, err);
        repl_cancel(repl);
        return;
    }
    bool more = vm_run(runtime->vm);
    if (runtime->loop) {
        repl_watch(repl);
        loop_wake(runtime->loop);
    } else if (!more && !repl->ended) {
        fflush(stdout);
        fprintf(stderr, repl_korean(repl) ? "모든 일이 서로를 기다립니다: 더 나아갈 수 없습니다\n"
                                          : "every task waits for another one: nothing can go on\n");
        repl_cancel(repl);
    }
}

/* Drives the call that was just started to its end. False, and said, when it was not a good one. */
static bool repl_finish(struct repl *repl)
{
    struct runtime *runtime = repl->runtime;
    if (runtime->loop)
        loop_wake(runtime->loop); /* an earlier input made it: a ready fiber must not wait for others */
    while (!repl->ended) repl_turn(repl);
    fflush(stdout);
    if (repl->outcome == CALL_FAILED) runtime_report_error(runtime, repl->value);
    if (repl->outcome == CALL_STOPPED)
        runtime_report_stop(runtime, runtime->options->program_name, repl->value, repl->stop);
    return repl->outcome == CALL_RETURNED;
}

static void repl_begin(struct repl *repl)
{
    value_unref(repl->runtime->vm, repl->value);
    repl->value = value_nil();
    repl->ended = false;
    repl->outcome = CALL_RETURNED;
}

void repl_forget_interrupts(struct repl *repl)
{
    while (repl->signals >= 0 && signals_next(repl->signals) != 0) {}
}

/* -- values ---------------------------------------------------------------------------------------------- */

static void repl_print(struct repl *repl, enum repl_show show)
{
    struct vm *vm = repl->runtime->vm;
    if (show == REPL_SHOW_KIND) {
        printf("%s\n", value_kind_text(vm, repl->value));
        return;
    }
    if (value_is_nil(repl->value)) return;
    struct builder text;
    format_begin(vm, &text);
    value_format(vm, repl->value, true, &text);
    cy_err err = format_end(vm, &text);
    if (cy_failed(err))
        repl_say_error(repl, err);
    else
        printf("%.*s\n", CY_BYTES_ARG(builder_view(&text)));
    builder_fini(&text);
    fflush(stdout); /* print writes past stdio */
}

/* -- inputs ---------------------------------------------------------------------------------------------- */

static bool repl_run_initialisers(struct repl *repl, uint32_t first_module)
{
    struct runtime *runtime = repl->runtime;
    for (uint32_t i = first_module; i < repl->program->module_count; i++) {
        bool started;
        repl_begin(repl);
        cy_err err = instance_start_initialiser(runtime->vm, runtime->instance, i, repl_ended, repl,
                                                &repl->fiber, &started);
        if (cy_failed(err)) {
            repl_say_error(repl, err);
            return false;
        }
        if (started && !repl_finish(repl)) return false;
    }
    return true;
}

static bool repl_run_entry(struct repl *repl, cy_bytes entry, enum repl_show show)
{
    struct runtime *runtime = repl->runtime;
    cy_value function;
    cy_err err = instance_export(runtime->instance, entry, &function);
    if (cy_is(err, CY_ERR_NOT_FOUND)) return true; /* an input that only declares */
    if (cy_failed(err)) {
        repl_say_error(repl, err);
        return false;
    }
    repl_begin(repl);
    err = vm_start(runtime->vm, runtime->instance, function, NULL, 0, repl_ended, repl, &repl->fiber);
    if (cy_failed(err)) {
        repl_say_error(repl, err);
        return false;
    }
    if (!repl_finish(repl)) return false;
    repl_print(repl, show);
    return true;
}

enum repl_outcome repl_run(struct repl *repl, struct program *owned_program, cy_bytes entry,
                           enum repl_show show)
{
    struct runtime *runtime = repl->runtime;
    uint32_t first_module = repl->program->module_count;
    cy_value error;
    cy_err err = instance_extend(runtime->vm, runtime->instance, owned_program, &error);
    if (cy_failed(err)) {
        if (error.tag == TAG_NIL)
            repl_say_error(repl, err);
        else
            runtime_report_error(runtime, error);
        value_unref(runtime->vm, error);
        program_free(&owned_program);
        return REPL_REFUSED;
    }
    program_free(&repl->program);
    repl->program = owned_program;
    bool good = repl_run_initialisers(repl, first_module) && repl_run_entry(repl, entry, show);
    repl_begin(repl); /* lets go of the value */
    return good ? REPL_DONE : REPL_FAILED;
}

/* -- the session ----------------------------------------------------------------------------------------- */

static cy_err repl_open_in(struct repl *repl, bool interactive)
{
    static const int signals[] = {SIGINT};
    CY_TRY(runtime_open_rules(repl->runtime));
    CY_TRY(runtime_open(repl->runtime));
    if (interactive) CY_TRY(signals_open(signals, CY_COUNT_OF(signals), &repl->signals));
    return instance_new(repl->runtime->vm, repl->program, &repl->runtime->instance, NULL);
}

cy_err repl_open(const struct runtime_options *options, struct program *owned_program, bool interactive,
                 struct repl **repl_out)
{
    struct repl *repl = mem_alloc_zeroed(sizeof *repl);
    cy_err err = repl ? runtime_new(options, &repl->runtime) : CY_ERR(NO_MEMORY);
    if (cy_failed(err)) {
        fprintf(stderr, "%s: %s\n", options->program_name, cy_err_text(err, options->korean));
        mem_free(repl);
        program_free(&owned_program);
        return err;
    }
    repl->program = owned_program;
    repl->signals = -1;
    repl->value = value_nil();
    err = repl_open_in(repl, interactive);
    if (cy_failed(err)) {
        repl_say_error(repl, err);
        repl_close(&repl);
    }
    *repl_out = repl;
    return err;
}

void repl_close(struct repl **repl_pointer)
{
    struct repl *repl = *repl_pointer;
    *repl_pointer = NULL;
    if (!repl) return;
    if (repl->runtime->vm) value_unref(repl->runtime->vm, repl->value);
    if (repl->signals_socket) loop_socket_close(&repl->signals_socket);
    runtime_free(&repl->runtime); /* what was watched is let go of in its last turns */
    if (repl->signals >= 0) close(repl->signals);
    program_free(&repl->program);
    mem_free(repl);
}
