/* SPDX-License-Identifier: MIT
 *
 * tests/support/core_main.c: the core as a program: compiles a file, saves and reloads it in memory, runs its main.
 *
 * In:   crownyc-core FILE.han
 * Out:  what the program prints; 0, or 1 with messages on stderr.
 * Invariant: needs libc, libm and utf8proc only. tests/tidy/core_test.py looks, so that TLS never enters the core.
 * Not here: whatever waits for the network or a timer; the natives of group CORE do not.
 */
#include "compiler/compiler.h"
#include "compiler/source_file.h"
#include "vm/code/toau.h"
#include "vm/native/native.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

#include <stdio.h>
#include <time.h>

struct core_run {
    bool ended;
    enum call_outcome outcome;
};

static uint64_t core_clock_ns(void *host)
{
    (void)host;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void core_on_ready(void *host) { (void)host; } /* core_run_main asks vm_run until main has ended */

static void core_print(struct builder *text)
{
    const char *view = builder_text_view(text);
    if (view && *view) fprintf(stderr, "%s\n", view);
    builder_clear(text);
}

static void core_on_done(struct vm *vm, void *context, enum call_outcome outcome, cy_value value, cy_err stop)
{
    struct core_run *run = context;
    run->ended = true;
    run->outcome = outcome;
    struct builder text;
    builder_init(&text);
    if (outcome == CALL_FAILED) vm_describe_error(vm, value, &text);
    if (outcome == CALL_STOPPED && value_is_error(vm, value))
        vm_describe_error(vm, value, &text);
    else if (outcome == CALL_STOPPED)
        builder_text(&text, cy_err_text(stop, false));
    core_print(&text);
    builder_fini(&text);
}

/* Source to the bytes of a .toau, as the command line does it. */
static bool core_compile(const char *path, struct builder *toau)
{
    struct builder messages;
    builder_init(&messages);
    struct program *program = NULL;
    uint32_t error_count;
    const struct compile_options options = {
        .path = path,
        .stdlib = stdlib_modules,
        .stdlib_count = stdlib_module_count,
        .read_source = source_file_read,
    };
    cy_err err = compile_program(&options, &program, &messages, &error_count);
    core_print(&messages);
    builder_fini(&messages);
    if (cy_failed(err)) return false;
    err = toau_write(program, toau);
    program_free(&program);
    return !cy_failed(err);
}

static bool core_call_main(struct vm *vm, struct instance *instance, const struct program *program)
{
    cy_value main_function, args = value_nil();
    const struct export_entry *entry =
        program_find_export(program, program->module_count - 1, CY_BYTES("main"));
    if (!entry || cy_failed(instance_export(instance, CY_BYTES("main"), &main_function))) {
        fputs("crownyc-core: the program exports no main\n", stderr);
        return false;
    }
    uint32_t arg_count = program->functions[entry->index].param_count;
    if (arg_count && cy_failed(list_new(vm, 0, &args))) return false;
    struct core_run run = {.ended = false};
    if (cy_failed(vm_start(vm, instance, main_function, &args, arg_count, core_on_done, &run, NULL)))
        return false;
    while (!run.ended) vm_run(vm);
    return run.outcome == CALL_RETURNED;
}

static bool core_run_program(const struct program *program)
{
    struct log log;
    log_init(&log);
    const struct vm_options options = {
        .natives = native_table_core,
        .capabilities = 0,
        .seed = {1, 2}, /* fixed: nothing here comes from a peer */
        .log = &log,
        .on_ready = core_on_ready,
        .clock_ns = core_clock_ns,
    };
    struct vm *vm;
    if (cy_failed(vm_new(&options, &vm))) return false;
    struct instance *instance;
    cy_value error = value_nil();
    bool good = !cy_failed(instance_new(vm, program, &instance, &error));
    if (good) {
        good = core_call_main(vm, instance, program);
        instance_unref(vm, &instance);
    } else {
        struct builder text;
        builder_init(&text);
        vm_describe_error(vm, error, &text);
        core_print(&text);
        builder_fini(&text);
        value_unref(vm, error);
    }
    vm_free(&vm);
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: crownyc-core FILE.han\n", stderr);
        return 2;
    }
    struct builder toau;
    builder_init(&toau);
    struct program *program = NULL;
    bool good = core_compile(argv[1], &toau);
    if (good) {
        struct code_failure failure;
        good = !cy_failed(toau_load(builder_view(&toau), &program, &failure));
        if (!good) fprintf(stderr, "crownyc-core: rule %s\n", code_rule_name(failure.rule));
    }
    if (good) good = core_run_program(program);
    program_free(&program);
    builder_fini(&toau);
    return good ? 0 : 1;
}
