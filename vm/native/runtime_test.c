/* SPDX-License-Identifier: MIT
 *
 * vm/native/runtime_test.c: runs the test blocks of a program (crownyc test).
 *
 * In:   a program compiled with its tests: exported functions named `test "NAME"`.
 * Out:  a line for each test on stdout, the error of each that failed, counts.
 * Invariant: each test has an instance of its own, so that none sees module variables that another one changed. They
 *            run one after another, in the order of the file; a test has ended when all its tasks have.
 */
#include "vm/base/check.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"

#include <stdio.h>
#include <string.h>

struct runtime_test_run {
    struct runtime *runtime;
    bool ended;
    bool failed;
    struct builder why;
};

static void runtime_test_ended(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                               cy_err stop)
{
    struct runtime_test_run *run = context;
    run->ended = true;
    run->failed = outcome != CALL_RETURNED;
    if (outcome == CALL_FAILED) vm_describe_error(vm, value, &run->why);
    if (outcome == CALL_STOPPED && value_is_error(vm, value)) vm_describe_error(vm, value, &run->why);
    if (outcome == CALL_STOPPED && run->why.count == 0)
        builder_text(&run->why, cy_err_text(stop, run->runtime->options->korean)); /* no memory for where */
}

/* Starts the test and waits for its end. Tasks that wait for one another are told so by the wait that closes the circle
 * (task_join.c); a test that the end of the run overtakes is stopped. */
static void runtime_test_one(struct runtime_test_run *run, struct instance *instance, cy_bytes name)
{
    struct runtime *runtime = run->runtime;
    cy_value function;
    cy_err err = instance_export(instance, name, &function);
    if (!cy_failed(err))
        err = vm_start(runtime->vm, instance, function, NULL, 0, runtime_test_ended, run, NULL);
    if (cy_failed(err)) {
        builder_text(&run->why, cy_err_text(err, runtime->options->korean));
        return;
    }
    if (runtime->loop)
        loop_wake(runtime->loop); /* an earlier test made it; its turn must not wait for others */
    runtime_drive(runtime, &run->ended);
    if (!run->ended) vm_cancel_instance(runtime->vm, instance);
    while (!run->ended && vm_run(runtime->vm)) {}
    runtime->exit_requested = false;
}

static void runtime_test_report(const struct runtime_test_run *run, cy_bytes name)
{
    printf("%s %.*s\n", run->failed ? "FAIL" : "ok  ", CY_BYTES_ARG(name));
    cy_bytes rest = builder_view(&run->why);
    while (rest.count > 0) {
        size_t end = cy_bytes_find(rest, '\n');
        printf("     %.*s\n", CY_BYTES_ARG(cy_bytes_slice(rest, 0, end)));
        rest = cy_bytes_skip(rest, end + 1);
    }
    fflush(stdout); /* a test that never ends is the one behind the last line */
}

static bool runtime_test_wanted(const struct runtime_tests *tests, cy_bytes name)
{
    return !tests->filter || memmem(name.data, name.count, tests->filter, strlen(tests->filter)) != NULL;
}

void runtime_test_all(struct runtime *runtime, struct loaded_program *loaded)
{
    struct runtime_tests *tests = runtime->options->tests;
    const struct program *program = loaded->program;
    const struct module *module = &program->modules[program->module_count - 1];
    const cy_bytes prefix = cy_bytes_from_text(tests->name_prefix);
    for (uint32_t i = 0; i < module->export_count; i++) {
        cy_bytes name = program_string(program, module->exports[i].name);
        if (module->exports[i].kind != EXPORT_FUNCTION || !cy_bytes_start_with(name, prefix)) continue;
        if (!runtime_test_wanted(tests, cy_bytes_skip(name, prefix.count))) {
            tests->skipped_count++;
            continue;
        }
        struct runtime_test_run run = {.runtime = runtime, .failed = true};
        struct instance *instance = NULL;
        builder_init(&run.why);
        if (!cy_failed(configure_new_instance(runtime, loaded, &instance))) {
            runtime_test_one(&run, instance, name);
            instance_unref(runtime->vm, &instance);
        }
        runtime_test_report(&run, cy_bytes_skip(name, prefix.count));
        builder_fini(&run.why);
        if (run.failed)
            tests->failed_count++;
        else
            tests->passed_count++;
    }
}
