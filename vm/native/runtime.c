/* SPDX-License-Identifier: MIT
 *
 * vm/native/runtime.c: the driver: loads a program, runs main, becomes master or worker, leaves with an exit code.
 *
 * In:   runtime_options. Out: an exit code; messages on stderr.
 * Invariant: vm_run is called here (directly while there is no loop, as the loop's hook afterwards) and nowhere else.
 * Not here: serving (serve.c), what natives do.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/toau.h"
#include "vm/native/job.h"
#include "vm/native/native.h"
#include "vm/native/runtime_internal.h"
#include "vm/native/serve_metrics.h"
#include "vm/run/object.h"
#include "vm/sys/clock.h"
#include "vm/sys/random.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* -- loop and client, on first use ----------------------------------------------------------------------- */
static bool runtime_hook(void *context)
{
    struct runtime *runtime = context;
    bool more = vm_run(runtime->vm);
    runtime_tell_repeats(runtime);
    return more || vm_idle(runtime->vm);
}

cy_err runtime_need_loop(struct runtime *runtime)
{
    if (runtime->loop) return CY_OK;
    CY_TRY(loop_new(runtime->options->io, &runtime->loop));
    loop_set_hook(runtime->loop, runtime_hook, runtime);
    return interrupt_watch(runtime);
}

cy_err runtime_need_client(struct runtime *runtime)
{
    if (runtime->client) return CY_OK;
    CY_TRY(runtime_need_loop(runtime));
    struct http_client_options options = {.loop = runtime->loop, .dns = &runtime->dns, .log = &runtime->log};
    return http_client_new(&options, &runtime->client);
}

void runtime_request_exit(struct runtime *runtime, int exit_code)
{
    if (runtime->exit_requested) return;
    runtime->exit_requested = true;
    runtime->exit_code = exit_code;
}

void runtime_report_error(struct runtime *runtime, cy_value error)
{
    struct builder text;
    builder_init(&text);
    bool configuration = cy_is(error_reason(runtime->vm, error), CY_ERR_CONFIGURATION);
    if (configuration) {
        builder_bytes(&text, error_message(runtime->vm, error));
    } else {
        vm_describe_error(runtime->vm, error, &text);
    }
    if (text.failed) { /* no memory even for saying it in full */
        fprintf(stderr, "%.*s (%s)\n", CY_BYTES_ARG(error_message(runtime->vm, error)),
                cy_err_text(CY_ERR(NO_MEMORY), runtime->options->korean));
    } else {
        if (text.count > 0 && text.data[text.count - 1] == '\n') text.count--;
        fprintf(stderr, "%.*s\n", CY_BYTES_ARG(builder_view(&text)));
    }
    builder_fini(&text);
}

/* Why it does not start: of want of memory, which may come in any step, we say it here; all else the step has said. */
static int runtime_not_started(const struct runtime_options *options, cy_err err, int exit_code)
{
    if (!cy_is(err, CY_ERR_NO_MEMORY)) return exit_code;
    fprintf(stderr, "%s: %s\n", options->program_name, cy_err_text(err, options->korean));
    return EXIT_CODE_INTERNAL;
}

void runtime_report_stop(struct runtime *runtime, const char *who, cy_value record, cy_err stop)
{
    struct builder text;
    builder_init(&text);
    if (value_is_error(runtime->vm, record)) vm_describe_error(runtime->vm, record, &text);
    if (text.failed || text.count == 0) {
        fprintf(stderr, "%s: stop: %s%s\n", who, cy_err_text(stop, runtime->options->korean),
                text.failed ? " (no memory for where)" : "");
    } else {
        fprintf(stderr, "%s: %.*s", who, CY_BYTES_ARG(builder_view(&text)));
    }
    builder_fini(&text);
}

/* -- driving --------------------------------------------------------------------------------------------- */
static void runtime_become(struct runtime *runtime);

void runtime_drive(struct runtime *runtime, const bool *flag)
{
    while (!*flag && !runtime->exit_requested) {
        if (runtime->loop) {
            cy_err err = loop_turn(runtime->loop);
            if (!cy_failed(err)) continue;
            log_write(&runtime->log, LOG_ERROR, "event loop: %s", cy_err_text(err, false));
            runtime_request_exit(runtime, EXIT_CODE_INTERNAL);
            continue;
        }
        interrupt_look(runtime);
        bool more = vm_run(runtime->vm);
        if (runtime->loop) loop_wake(runtime->loop); /* made just now: its first turn must not wait */
        if (runtime->workers.pending) {
            runtime_become(runtime);
        } else if (!more && !runtime->loop && !*flag && !runtime->exit_requested) {
            fprintf(stderr,
                    runtime->options->korean ? "%s: 모든 작업이 서로를 기다립니다: 더 나아갈 수 없습니다\n"
                                             : "%s: every task waits for another one: nothing can go on\n",
                    runtime->options->program_name);
            runtime_request_exit(runtime, EXIT_CODE_PROGRAM);
        }
    }
}

/* -- master and workers ---------------------------------------------------------------------------------- */
static cy_err runtime_load_generation(void *context, cy_bytes wanted, struct builder *bytes_out,
                                      struct builder *message_out)
{
    return generation_load(&((struct runtime *)context)->plan, wanted, bytes_out, message_out);
}

cy_err runtime_tls_seed(struct runtime *runtime, const uint8_t **seed_out)
{
    if (!runtime->has_tls_seed) CY_TRY(random_bytes(runtime->tls_seed, sizeof runtime->tls_seed));
    runtime->has_tls_seed = true;
    *seed_out = runtime->tls_seed;
    return CY_OK;
}

struct runtime_checking {
    bool ended;
    int exit_code;
};
static void runtime_check_done(struct configuring *configuring, cy_value result)
{
    struct runtime_checking *checking = configuring->runtime->checking;
    struct serve_addresses addresses = {.count = 0};
    checking->exit_code = configuring->exit_code;
    if (checking->exit_code == EXIT_CODE_OK && !serve_read_result(configuring->runtime, result, &addresses))
        checking->exit_code = EXIT_CODE_PROGRAM;
    serve_addresses_fini(addresses.rows, &addresses.count);
    if (checking->exit_code == EXIT_CODE_OK && !serve_extra_check(configuring->runtime, result))
        checking->exit_code = EXIT_CODE_CONFIGURATION;
    checking->ended = true;
    configuring_free(&configuring);
}

/* In a child of the master that ends afterwards: would this generation start? */
static int runtime_check_generation(void *context, cy_bytes bytes, struct builder *wanted_out)
{
    struct runtime *runtime = context;
    struct runtime_checking checking = {false, EXIT_CODE_PROGRAM};
    struct generation generation = {0};
    runtime->checking = &checking;
    cy_err err = generation_parse(bytes, &generation);
    if (!cy_failed(err)) err = configure_start(runtime, &generation, runtime_check_done);
    if (cy_is(err, CY_ERR_BAD_FORMAT)) return EXIT_CODE_BAD_TOAU;
    if (cy_failed(err)) return EXIT_CODE_PROGRAM;
    runtime_drive(runtime, &checking.ended);
    int exit_code = checking.ended ? checking.exit_code : runtime->exit_code;
    if (exit_code == MASTER_CHECK_WANTS) builder_bytes(wanted_out, builder_view(&runtime->wanted));
    return exit_code;
}

static void runtime_print_banner(void *context, cy_bytes banner)
{
    (void)context;
    if (banner.count == 0) return;
    printf("%.*s\n", CY_BYTES_ARG(banner));
    fflush(stdout);
}

static void runtime_set_label(struct runtime *runtime)
{
    if (runtime->workers.label[0]) {
        snprintf(runtime->log.label, sizeof runtime->log.label, "%s/%u", runtime->workers.label,
                 runtime->worker_index);
    } else {
        snprintf(runtime->log.label, sizeof runtime->log.label, "%u", runtime->worker_index);
    }
}

static void runtime_become(struct runtime *runtime)
{
    struct workers_request *workers = &runtime->workers;
    workers->pending = false;
    interrupt_hand_over(runtime); /* the master has signals of its own, and its children theirs */
    struct master_options options = {
        .worker_count = workers->count,
        .user = workers->user,
        .log = &runtime->log,
        .context = runtime,
        .load_generation = runtime_load_generation,
        .check = runtime_check_generation,
        .on_ready = runtime_print_banner,
        .drain_ms = workers->drain_ms,
        .command = runtime->options->command,
    };
    fflush(stdout); /* a child must not print what the parent has buffered */
    const uint8_t *seed;
    cy_err err = runtime_make_shared(runtime);
    if (!cy_failed(err)) err = serve_metrics_new(runtime, workers->count);
    if (!cy_failed(err)) err = runtime_tls_seed(runtime, &seed);
    if (cy_failed(err)) {
        fprintf(stderr, "%s: %s\n", runtime->options->program_name,
                cy_err_text(err, runtime->options->korean));
        runtime_request_exit(runtime, EXIT_CODE_INTERNAL);
        return;
    }
    snprintf(runtime->log.label, sizeof runtime->log.label, "%s", workers->label);
    options.counters = &runtime->metrics->master;
    struct master_result result = {0};
    if (master_run(&options, &result) == MASTER_ENDED) {
        runtime_request_exit(runtime, result.exit_code);
        return;
    }
    runtime->link = result.link;
    runtime->worker_index = result.worker_index;
    runtime_set_label(runtime);
    runtime_report_worker(runtime);
    vm_complete(runtime->vm, workers->ticket, value_int(result.worker_index));
}

/* -- main ------------------------------------------------------------------------------------------------ */
static void runtime_main_ended(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                               cy_err stop)
{
    struct runtime *runtime = context;
    (void)vm;
    runtime->main_ended = true;
    int interrupted = runtime->interrupt.signal;
    if (interrupted) runtime_request_exit(runtime, EXIT_CODE_SIGNAL + interrupted);
    if (outcome == CALL_RETURNED) return;
    if (outcome == CALL_FAILED) {
        runtime_report_error(runtime, value);
    } else if (!interrupted) {
        runtime_report_stop(runtime, runtime->options->program_name, value, stop);
    }
    bool configuration = outcome == CALL_FAILED && cy_is(error_reason(vm, value), CY_ERR_CONFIGURATION);
    runtime_request_exit(runtime, configuration ? EXIT_CODE_CONFIGURATION : EXIT_CODE_PROGRAM);
}

cy_err runtime_main_args(struct runtime *runtime, cy_value *list_out)
{
    CY_TRY(list_new(runtime->vm, (size_t)runtime->options->arg_count, list_out));
    for (int i = 0; i < runtime->options->arg_count; i++) {
        cy_value text;
        cy_err err = string_new(runtime->vm, cy_bytes_from_text(runtime->options->args[i]), &text);
        if (!cy_failed(err)) err = list_append(runtime->vm, list_out, text);
        if (cy_failed(err)) {
            value_unref(runtime->vm, *list_out);
            return err;
        }
    }
    return CY_OK;
}

static cy_err runtime_start_main(struct runtime *runtime)
{
    const struct program *program = instance_program(runtime->instance);
    const struct export_entry *entry =
        program_find_export(program, program->module_count - 1, CY_BYTES("main"));
    cy_value function, args;
    if (!entry || entry->kind != EXPORT_FUNCTION) {
        fprintf(stderr,
                runtime->options->korean ? "%s: 프로그램이 함수 `main`을 내보내지 않습니다\n"
                                         : "%s: the program exports no function `main`\n",
                runtime->options->program_name);
        return CY_ERR(NOT_FOUND);
    }
    CY_TRY(instance_export(runtime->instance, CY_BYTES("main"), &function));
    CY_TRY(runtime_main_args(runtime, &args));
    uint32_t arg_count = program->functions[entry->index].param_count > 0 ? 1 : 0;
    struct fiber *fiber;
    cy_err err = vm_start(runtime->vm, runtime->instance, function, &args, arg_count, runtime_main_ended,
                          runtime, &fiber);
    if (!cy_failed(err)) vm_mark_main(runtime->vm, fiber);
    if (cy_failed(err) || arg_count == 0) value_unref(runtime->vm, args);
    return err;
}

static uint64_t runtime_clock_ns(void *host)
{
    (void)host;
    return clock_monotonic_ns();
}
static void runtime_deadline_fired(struct timer *timer)
{
    struct runtime *runtime = CY_CONTAINER_OF(timer, struct runtime, deadline_timer);
    runtime->deadline_ns =
        UINT64_MAX; /* the hook at the end of this turn runs the VM, which tells the next one */
}
/* Before there is a loop nothing waits for long: the driver runs the VM again and again. */
static void runtime_on_deadline(void *host, uint64_t at_ns)
{
    struct runtime *runtime = host;
    runtime->deadline_seen = true;
    if (!runtime->loop || at_ns == runtime->deadline_ns) return;
    uint64_t now_ns = clock_monotonic_ns();
    runtime->deadline_ns = at_ns;
    runtime->deadline_timer.fire = runtime_deadline_fired;
    loop_timer_set(runtime->loop, &runtime->deadline_timer,
                   at_ns > now_ns ? (at_ns - now_ns + 999999) / 1000000 : 0);
}
static uint64_t runtime_cpu_ns(void *host)
{
    (void)host;
    return clock_thread_cpu_ns();
}

cy_err runtime_open(struct runtime *runtime)
{
    struct vm_options options = {
        .held_bytes = &runtime->job_bounds.bytes,
        .natives = native_table_full,
        .capabilities = runtime->options->capabilities,
        .korean = runtime->options->korean,
        .cpu_burst_ms = runtime->options->cpu_burst_ms,
        .log = &runtime->log,
        .host = runtime,
        .put = runtime_put,
        .clock_ns = runtime_clock_ns,
        .on_deadline = runtime_on_deadline,
        .cpu_ns = runtime_cpu_ns,
    };
    CY_TRY(runtime_report_open(runtime));
    options.profile = runtime->profile;
    if (runtime->options->stats) options.holds = &runtime->holds;
    CY_TRY(random_hash_seed(&options.seed));
    map_init(&runtime->literal_upstreams, options.seed);
    return vm_new(&options, &runtime->vm);
}

/* What was closed completes in later turns; the loop must have nothing outstanding when it goes. No bytecode runs. */
static void runtime_flush(struct runtime *runtime)
{
    if (!runtime->loop) return;
    loop_set_hook(runtime->loop, NULL, NULL);
    cy_err err = loop_flush(runtime->loop);
    if (cy_failed(err)) log_write(&runtime->log, LOG_ERROR, "event loop: %s", cy_err_text(err, false));
}

static void runtime_close(struct runtime *runtime)
{
    runtime->closing = true;
    if (runtime->vm) {
        serve_fini(runtime);
        value_unref(runtime->vm, runtime->input);
        if (runtime->instance) instance_unref(runtime->vm, &runtime->instance);
        vm_free(&runtime->vm);
        serve_free_calls(runtime);
    }
    interrupt_close(runtime);
    input_close(runtime);
    if (runtime->loop) loop_timer_clear(runtime->loop, &runtime->deadline_timer);
    native_run_leave(runtime);
    job_shut(runtime);
    if (runtime->loop) loop_timer_clear(runtime->loop, &runtime->repeats_timer);
    runtime_flush(runtime);
    serve_extra_close(runtime);
    for (uint32_t i = 0; i < runtime->literal_upstreams.count; i++) {
        struct upstream *upstream = runtime->literal_upstreams.entries[i].value.pointer;
        upstream_unref(&upstream);
    }
    map_fini(&runtime->literal_upstreams);
    if (runtime->client) http_client_free(&runtime->client);
    if (runtime->dns) dns_free(&runtime->dns);
    runtime_flush(runtime);
    if (runtime->loop) loop_free(&runtime->loop);
    if (runtime->link) worker_link_free(&runtime->link);
    configure_free_programs(runtime);
    generation_plan_fini(&runtime->plan);
    mem_free(runtime->workers.user);
    builder_fini(&runtime->wanted);
    explicit_bzero(runtime->tls_seed, sizeof runtime->tls_seed);
    runtime_free_shared(runtime);
    serve_metrics_free(runtime);
    if (!runtime->helpers_hang) path_rules_free(&runtime->rules);
    input_fini(runtime);
    runtime_output_shut(runtime);
}

cy_err runtime_open_rules(struct runtime *runtime)
{
    const char *fault, *paths = getenv("CROWNY_PATHS");
    cy_err err = path_rules_new(runtime->options->path_rules, runtime->options->path_rule_count,
                                paths && strcmp(paths, "walk") == 0, &runtime->rules, &fault);
    if (cy_failed(err) && !cy_is(err, CY_ERR_NO_MEMORY)) {
        char why[128];
        fprintf(stderr, "%s: --allow, --deny: %s: %s\n", runtime->options->program_name, fault,
                cy_err_describe(err, runtime->options->korean, why, sizeof why));
    }
    runtime->plan.rules = runtime->rules;
    return err;
}

static int runtime_run_in(struct runtime *runtime)
{
    struct loaded_program *loaded;
    cy_err err = runtime_open_rules(runtime);
    if (cy_failed(err)) return runtime_not_started(runtime->options, err, EXIT_CODE_USAGE);
    err = runtime_open(runtime);
    if (cy_failed(err)) {
        fprintf(stderr, "%s: %s\n", runtime->options->program_name,
                cy_err_text(err, runtime->options->korean));
        return EXIT_CODE_INTERNAL;
    }
    err = configure_load_program(runtime, runtime->options->program, &loaded);
    if (cy_failed(err)) return runtime_not_started(runtime->options, err, EXIT_CODE_BAD_TOAU);
    if (runtime->options->tests) {
        runtime_test_all(runtime, loaded);
        return runtime->options->tests->failed_count ? EXIT_CODE_PROGRAM : EXIT_CODE_OK;
    }
    if (cy_failed(configure_new_instance(runtime, loaded, &runtime->instance))) return EXIT_CODE_PROGRAM;
    err = interrupt_open(runtime);
    if (cy_failed(err)) log_write(&runtime->log, LOG_WARN, "signals: %s", cy_err_text(err, false));
    err = runtime_start_main(runtime);
    if (cy_failed(err)) return runtime_not_started(runtime->options, err, EXIT_CODE_PROGRAM);
    runtime_drive(runtime, &runtime->main_ended);
    return runtime->exit_requested ? runtime->exit_code : EXIT_CODE_OK;
}

cy_err runtime_new(const struct runtime_options *options, struct runtime **runtime_out)
{
    struct runtime *runtime = mem_alloc_zeroed(sizeof *runtime);
    if (!runtime) return CY_ERR(NO_MEMORY);
    signal(SIGCHLD,
           SIG_DFL); /* ignored, as who started us may have left it, the codes of children are lost */
    signal(SIGPIPE, SIG_IGN); /* a peer that goes away is an error of a write, not of the process */
    runtime->options = options;
    runtime->input = value_nil();
    runtime->deadline_ns = UINT64_MAX;
    runtime->plan.program_path = options->program_path;
    runtime->plan.program = options->program;
    builder_init(&runtime->wanted);
    log_init(&runtime->log);
    interrupt_init(&runtime->interrupt);
    runtime->serving.signals_descriptor = -1;
    input_init(&runtime->input_stream);
    *runtime_out = runtime;
    return CY_OK;
}

void runtime_free(struct runtime **runtime)
{
    if (!*runtime) return;
    runtime_close(*runtime);
    runtime_report_fini(*runtime);
    if (!(*runtime)->helpers_hang) mem_free(*runtime);
    *runtime = NULL;
}

int runtime_run(const struct runtime_options *options)
{
    struct runtime *runtime;
    cy_err err = runtime_new(options, &runtime);
    if (cy_failed(err)) return runtime_not_started(options, err, EXIT_CODE_INTERNAL);
    int exit_code = runtime_run_in(runtime);
    runtime_report_end(runtime);
    runtime_free(&runtime);
    return exit_code;
}
