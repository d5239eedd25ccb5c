/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/toau_mutate_main.c: the command `toau_mutate [--seed N] [--mutants N] [--budget-ms N]
 * [FILE.toau ...]`.
 *
 * In:   files; the samples of tests/unit/code always come along, since they have a place for every rule.
 * Out:  a table of rules, how the accepted mutants' runs ended, and "N passed, N failed". Exit code 1 when
 *       a mutant was judged wrongly, a rule refused none, fewer than 30 % reached the verifier, or no
 *       accepted mutant ended in each of the ways that bounded runs can end.
 */
#include "tests/fuzz/toau_mutate.h"

#include "tests/fuzz/toau_run.h"
#include "tests/unit/code/program_sample.h"
#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/code/toau.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

enum { MUTATE_MAIN_FILES_MAX = 256, MUTATE_MAIN_REACH_PERCENT_MIN = 30 };

static int mutate_main_usage(void)
{
    fputs("usage: toau_mutate [--seed N] [--mutants N] [--budget-ms N] [FILE.toau ...]\n", stderr);
    return 2;
}

static bool mutate_main_read(const char *path, struct builder *file)
{
    FILE *stream = fopen(path, "rb");
    if (!stream) return false;
    uint8_t *room;
    size_t got = 1;
    while (got && (room = builder_reserve(file, 65536))) file->count += got = fread(room, 1, 65536, stream);
    bool read_all = !ferror(stream) && !file->failed;
    fclose(stream);
    return read_all;
}

/* False when the file cannot be read, or is none that a VM would run. */
static bool mutate_main_take(const char *path, struct builder *file)
{
    struct program *program;
    struct code_failure failure;
    if (!mutate_main_read(path, file) || cy_failed(toau_load(builder_view(file), &program, &failure))) {
        fprintf(stderr, "toau_mutate: %s cannot be read, or is refused\n", path);
        return false;
    }
    program_free(&program);
    return true;
}

static void mutate_main_sample(struct program *(*sample)(void), struct builder *file)
{
    struct program *program = sample();
    cy_err err = toau_write(program, file);
    CHECK(!cy_failed(err));
    program_free(&program);
}

/* A file one byte too large: address space without memory behind it, apart from its first page. */
static bool mutate_main_too_large(cy_bytes file)
{
    size_t bytes = (size_t)LIMIT_TOAU_BYTES + 1;
    void *large =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (large == MAP_FAILED) return false;
    memcpy(large, file.data, file.count);
    struct program *program;
    struct code_failure failure;
    cy_err err = toau_load(cy_bytes_of(large, bytes), &program, &failure);
    munmap(large, bytes);
    return cy_failed(err) && failure.rule == CODE_RULE_READ_SIZE;
}

/* What an accepted mutant may take: far more than the originals need, little enough for thousands of them. */
static const struct toau_run_bounds mutate_main_bounds = {
    .memory_bytes_max = 1 << 20, .turns_max = 24, .cpu_burst_ms = 30, .call_exports = true};

/* 0 also for programs that fail or are stopped: they are allowed to. What is not: not ending at all. */
static int mutate_main_run(const struct program *program, void *context)
{
    uint64_t *ends = context;
    struct builder error;
    builder_init(&error);
    enum toau_run_end end = toau_run(program, &mutate_main_bounds, NULL, &error);
    bool described = end != TOAU_RUN_FAILED || error.count > 0;
    builder_fini(&error);
    ends[end]++;
    return end == TOAU_RUN_UNENDED || !described;
}

/* Returned, failed and stopped must all have happened, or the runs prove little. */
static bool mutate_main_report_ends(const uint64_t *ends)
{
    for (unsigned end = 0; end < TOAU_RUN_END_COUNT; end++)
        printf("%8" PRIu64 "  main %s\n", ends[end], toau_run_end_text((enum toau_run_end)end));
    return ends[TOAU_RUN_RETURNED] && ends[TOAU_RUN_FAILED] && ends[TOAU_RUN_STOPPED];
}

static int mutate_main_report(const struct toau_mutate *plan, const struct toau_mutate_result *result)
{
    uint64_t reached = result->verify_refused + result->accepted;
    unsigned passed = 0, failed = 0;
    for (unsigned rule = 1; rule < CODE_RULE_COUNT; rule++) {
        printf("%8" PRIu64 "  %s\n", result->rules[rule], code_rule_name((enum code_rule)rule));
        *(result->rules[rule] ? &passed : &failed) += 1;
    }
    bool reaches = reached * 100 >= result->mutants * MUTATE_MAIN_REACH_PERCENT_MIN;
    *(reaches ? &passed : &failed) += 1;
    *(result->failed ? &failed : &passed) += 1;
    *(mutate_main_report_ends(plan->run_context) ? &passed : &failed) += 1;
    printf("seed %" PRIu64 ": %" PRIu64 " mutants; refused by the reader %" PRIu64
           ", by the verifier %" PRIu64 "; accepted %" PRIu64 ", of these run %" PRIu64
           "; reached the verifier %.1f %%\n",
           plan->seed, result->mutants, result->read_refused, result->verify_refused, result->accepted,
           result->run, 100.0 * (double)reached / (double)result->mutants);
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}

static bool mutate_main_option(struct toau_mutate *plan, const char *name, const char *text)
{
    uint64_t *number = strcmp(name, "--seed") == 0        ? &plan->seed
                       : strcmp(name, "--mutants") == 0   ? &plan->mutants
                       : strcmp(name, "--budget-ms") == 0 ? &plan->budget_ms
                                                          : NULL;
    return number && text && cy_bytes_parse_u64(cy_bytes_from_text(text), UINT64_MAX, number);
}

int main(int argc, char **argv)
{
    struct builder files[MUTATE_MAIN_FILES_MAX];
    cy_bytes views[MUTATE_MAIN_FILES_MAX];
    uint64_t ends[TOAU_RUN_END_COUNT] = {0};
    struct toau_mutate plan = {.files = views,
                               .seed = 20261130,
                               .mutants = UINT64_MAX,
                               .budget_ms = 15000,
                               .run = mutate_main_run,
                               .run_context = ends};
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at += 2)
        if (!mutate_main_option(&plan, argv[at], argv[at + 1])) return mutate_main_usage();
    if (argc - at > MUTATE_MAIN_FILES_MAX - 2) return mutate_main_usage();

    for (size_t i = 0; i < CY_COUNT_OF(files); i++) builder_init(&files[i]);
    mutate_main_sample(program_sample_broad, &files[plan.file_count++]);
    mutate_main_sample(program_sample_smallest, &files[plan.file_count++]);
    bool usable = true;
    for (; usable && at < argc; at++) usable = mutate_main_take(argv[at], &files[plan.file_count++]);
    for (size_t i = 0; i < plan.file_count; i++) views[i] = builder_view(&files[i]);

    fprintf(stderr, "seed %" PRIu64 "\n", plan.seed); /* now: a sanitizer lets nobody speak afterwards */
    struct toau_mutate_result result;
    if (usable) toau_mutate(&plan, &result);
    if (usable && mutate_main_too_large(views[0])) result.rules[CODE_RULE_READ_SIZE]++;
    for (size_t i = 0; i < CY_COUNT_OF(files); i++) builder_fini(&files[i]);
    return usable ? mutate_main_report(&plan, &result) : 2;
}
