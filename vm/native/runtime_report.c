/* SPDX-License-Identifier: MIT
 *
 * vm/native/runtime_report.c: what `crownyc run --profile FILE --stats` leaves behind when a program ends.
 *
 * In:   a runtime whose program has ended, also on SIGTERM. Out: a file with the profile, a table on stderr.
 * Invariant: a worker has a profile of its own from its first turn on, in a file of its own: FILE.N, or NAME.N.svg. A
 *            master runs no bytecode after the fork and writes none. What goes wrong here is said and changes no exit
 *            code.
 */
#include "vm/native/runtime_internal.h"
#include "vm/run/heap_stats.h"
#include "vm/run/profile.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <string.h>

cy_err runtime_report_open(struct runtime *runtime)
{
    if (!runtime->options->profile_path) return CY_OK;
    enum profile_unit unit = runtime->options->profile_steps ? PROFILE_STEPS : PROFILE_TIME;
    return profile_new(unit, 0, 0, &runtime->profile);
}

void runtime_report_worker(struct runtime *runtime)
{
    if (runtime->profile) profile_clear(runtime->profile);
    holds_clear(&runtime->holds);
}

static bool runtime_report_is_svg(const char *path)
{
    size_t count = strlen(path);
    return count > 4 && strcmp(path + count - 4, ".svg") == 0;
}

static void runtime_report_path(struct runtime *runtime, struct builder *path)
{
    const char *given = runtime->options->profile_path;
    if (!runtime->link)
        builder_text(path, given);
    else if (runtime_report_is_svg(given))
        builder_printf(path, "%.*s.%u.svg", (int)(strlen(given) - 4), given, runtime->worker_index);
    else
        builder_printf(path, "%s.%u", given, runtime->worker_index);
}

/* The main file's name, as messages show it. */
static cy_bytes runtime_report_title(const struct runtime *runtime)
{
    if (!runtime->instance) return CY_BYTES("crownyc");
    const struct program *program = instance_program(runtime->instance);
    return program_string(program, program->modules[program->module_count - 1].file);
}

static void runtime_report_profile(struct runtime *runtime)
{
    bool korean = runtime->options->korean;
    struct builder path, text;
    builder_init(&path);
    builder_init(&text);
    runtime_report_path(runtime, &path);
    const char *to = builder_text_view(&path);
    if (runtime_report_is_svg(runtime->options->profile_path))
        profile_write_svg(runtime->profile, runtime_report_title(runtime), korean, &text);
    else
        profile_write_folded(runtime->profile, &text);
    cy_err err = to ? builder_error(&text) : CY_ERR(NO_MEMORY);
    if (!cy_failed(err)) err = file_write(to, builder_view(&text));
    unsigned long long samples = profile_sample_count(runtime->profile),
                       cut = profile_cut_count(runtime->profile);
    if (cy_failed(err))
        fprintf(stderr, "%s: %s: %s\n", runtime->options->program_name, to ? to : "--profile",
                cy_err_text(err, korean));
    else
        fprintf(stderr, korean ? "%s: 표본 %llu개를 %s에 썼습니다" : "%s: %llu samples in %s",
                runtime->options->program_name, samples, to);
    if (!cy_failed(err) && cut > 0)
        fprintf(stderr,
                korean ? " (%llu개는 한도 PROFILE_DEPTH, PROFILE_FRAMES에서 잘렸습니다)"
                       : " (%llu cut at the limits PROFILE_DEPTH and PROFILE_FRAMES)",
                cut);
    if (!cy_failed(err)) fputc('\n', stderr);
    builder_fini(&path);
    builder_fini(&text);
}

static void runtime_report_stats(struct runtime *runtime)
{
    struct heap_stats stats;
    struct builder text;
    cy_err err = heap_stats_collect(runtime->vm, &stats);
    if (cy_failed(err)) {
        fprintf(stderr, "%s: --stats: %s\n", runtime->options->program_name,
                cy_err_text(err, runtime->options->korean));
        return;
    }
    builder_init(&text);
    if (runtime->link) builder_printf(&text, "worker %u\n", runtime->worker_index);
    heap_stats_describe(runtime->vm, &stats, runtime->options->korean, &text);
    holds_describe(&runtime->holds, runtime->options->korean, &text);
    fflush(stdout);
    fprintf(stderr, "%.*s", CY_BYTES_ARG(builder_view(&text)));
    heap_stats_fini(&stats);
    builder_fini(&text);
}

void runtime_report_end(struct runtime *runtime)
{
    bool is_master = runtime->workers.asked && !runtime->link;
    if (!runtime->vm || is_master) return;
    if (runtime->profile) runtime_report_profile(runtime);
    if (runtime->options->stats) runtime_report_stats(runtime);
}

void runtime_report_fini(struct runtime *runtime) { profile_free(&runtime->profile); }
