/* SPDX-License-Identifier: MIT
 *
 * tests/sim/sim_main.c: runs schedules and shows how to see a failed one again.
 *
 * In:   simulate [--count N] [--first SEED] [--row NAME] [--until-failure]; SIM_SEED=N SIM_ROW=NAME runs that one
 *       schedule, with SIM_TRACE=1 line by line.
 * Out:  a table of what happened; exit code 1 and the line to run again when a schedule failed, or when a row's
 *       schedules did not bring about what it is there for.
 * Schedules run in processes of their own, some in each, so that a crash or a hang is a failure with a seed too.
 */
#include "tests/sim/sim.h"

#include "vm/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIM_BATCH 50
#define SIM_BATCH_SECONDS 120
#define SIM_ROWS_MAX 16
#define SIM_FAILURES_MAX 3

/* Seen by the process that started the others. */
struct sim_shared {
    uint64_t seed;
    uint32_t row;
    struct sim_stats stats[SIM_ROWS_MAX];
};

static const char *sim_program;

static void sim_show_again(const char *row, uint64_t seed)
{
    printf("again: SIM_ROW=%s SIM_SEED=%llu SIM_TRACE=1 %s\n", row, (unsigned long long)seed, sim_program);
    fflush(stdout);
}

void sim_fail(const struct sim_world *world, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("FAILED %s, seed %llu, %llu ms: ", world->row->name, (unsigned long long)world->seed,
           world->loop ? (unsigned long long)loop_now_ms(world->loop) : 0);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    sim_show_again(world->row->name, world->seed);
    _exit(1);
}

void sim_trace(const struct sim_world *world, const char *format, ...)
{
    if (!world->trace) return;
    va_list arguments;
    va_start(arguments, format);
    printf("%6llu ms  ", (unsigned long long)loop_now_ms(world->loop));
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

static void sim_one(const struct sim_row *row, uint64_t seed, bool trace, struct sim_stats *stats)
{
    struct sim_world *world = calloc(1, sizeof *world);
    CHECK(world != NULL);
    world->row = row;
    world->seed = seed;
    world->state = seed * 2654435761u + (uint64_t)(row - sim_rows);
    world->trace = trace;
    world->stats = stats;
    sim_run(world);
    free(world);
}

/* Seeds [first, end) of a row in a process of its own. True when all was well. */
static bool sim_batch(struct sim_shared *shared, uint32_t row, uint64_t first, uint64_t end)
{
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(SIM_BATCH_SECONDS);
        shared->row = row;
        for (shared->seed = first; shared->seed < end; shared->seed++)
            sim_one(&sim_rows[row], shared->seed, false, &shared->stats[row]);
        exit(0); /* leak detection runs now */
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1) return false; /* it has said so */
    printf("FAILED %s, seed %llu: the process ended with %s %d\n", sim_rows[row].name,
           (unsigned long long)shared->seed, WIFSIGNALED(status) ? "signal" : "code",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    sim_show_again(sim_rows[row].name, shared->seed < end ? shared->seed : end - 1);
    return false;
}

/* A row whose schedules bring nothing about tests nothing. */
static bool sim_is_worth_it(const struct sim_row *row, const struct sim_stats *stats)
{
    if (stats->schedules < 80) return true;
    const uint64_t *outcomes = stats->outcomes;
    bool ok = outcomes[SIM_EXACT] > stats->requests / 6 && outcomes[SIM_500] && stats->interims &&
              stats->continues && stats->reused;
    if (row->upstream_faults && !row->stray)
        ok = ok && outcomes[SIM_502] && outcomes[SIM_504] && outcomes[SIM_SHORT] && stats->retries;
    if (row->idle_closes) ok = ok && stats->hangups && outcomes[SIM_502];
    if (row->client_faults) ok = ok && outcomes[SIM_408] && outcomes[SIM_NO_ANSWER];
    if (row->resets_per_million) ok = ok && outcomes[SIM_502] && outcomes[SIM_SHORT];
    if (!ok) printf("FAILED %s: its schedules did not bring about what it is there for\n", row->name);
    return ok;
}

static void sim_show(const char *name, const struct sim_stats *stats)
{
    printf("%-10s %6llu schedules %7llu requests:", name, (unsigned long long)stats->schedules,
           (unsigned long long)stats->requests);
    for (unsigned i = 0; i < SIM_OUTCOMES; i++)
        printf(" %s %llu", sim_outcome_name(i), (unsigned long long)stats->outcomes[i]);
    printf("; retried %llu, hung up %llu, 1xx %llu + %llu, reused %llu, turns %llu, %llu s\n",
           (unsigned long long)stats->retries, (unsigned long long)stats->hangups,
           (unsigned long long)stats->interims, (unsigned long long)stats->continues,
           (unsigned long long)stats->reused, (unsigned long long)stats->turns,
           (unsigned long long)stats->simulated_ms / 1000);
}

static uint64_t sim_number(const char *text)
{
    char *end;
    uint64_t number = strtoull(text, &end, 10);
    if (*text && !*end) return number;
    fprintf(stderr, "simulate: %s is no number\n", text);
    exit(2);
}

static unsigned sim_run_rows(struct sim_shared *shared, const char *only, uint64_t first, uint64_t count,
                             unsigned failures_max)
{
    unsigned failures = 0;
    for (uint32_t row = 0; sim_rows[row].name; row++) {
        CHECK(row < SIM_ROWS_MAX);
        if (only && strcmp(only, sim_rows[row].name) != 0) continue;
        uint64_t end = first + (only ? count : (count * sim_rows[row].share + 99) / 100);
        for (uint64_t at = first; at < end && failures < failures_max; at += SIM_BATCH)
            failures += !sim_batch(shared, row, at, at + SIM_BATCH < end ? at + SIM_BATCH : end);
        sim_show(sim_rows[row].name, &shared->stats[row]);
        if (!failures) failures += !sim_is_worth_it(&sim_rows[row], &shared->stats[row]);
    }
    return failures;
}

int main(int argc, char **argv)
{
    const char *only = getenv("SIM_ROW"), *one = getenv("SIM_SEED"), *trace = getenv("SIM_TRACE");
    uint64_t count = 2000, first = 1;
    sim_program = argv[0];
    unsigned failures_max = SIM_FAILURES_MAX;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--until-failure") == 0)
            failures_max = 1, i--;
        else if (i + 1 < argc && strcmp(argv[i], "--count") == 0)
            count = sim_number(argv[i + 1]);
        else if (i + 1 < argc && strcmp(argv[i], "--first") == 0)
            first = sim_number(argv[i + 1]);
        else if (i + 1 < argc && strcmp(argv[i], "--row") == 0)
            only = argv[i + 1];
        else {
            fprintf(stderr, "usage: simulate [--count N] [--first SEED] [--row NAME] [--until-failure]\n");
            return 2;
        }
    }
    struct sim_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    uint32_t known = 0;
    while (only && sim_rows[known].name && strcmp(only, sim_rows[known].name) != 0) known++;
    if (only && !sim_rows[known].name) {
        fprintf(stderr, "simulate: there is no row %s\n", only);
        return 2;
    }
    if (one) {
        sim_one(&sim_rows[known], sim_number(one), trace && *trace == '1', &shared->stats[0]);
        sim_show(sim_rows[known].name, &shared->stats[0]);
        return 0;
    }
    return sim_run_rows(shared, only, first, count, failures_max) ? 1 : 0;
}

#undef SIM_BATCH
#undef SIM_BATCH_SECONDS
#undef SIM_ROWS_MAX
#undef SIM_FAILURES_MAX
