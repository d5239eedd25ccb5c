/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_load.c: crownyc load.
 *
 * In:   URLs and options. Out: a measurement on stdout, progress on stderr; exit code 0 when every measured request was
 *       answered as expected, 1 when not.
 * SIGINT and SIGTERM end the measurement early; what was measured until then is told.
 * --failures FILE: lines of "began_us failed_us port word status" with tabs between, each whole at once, for who knows
 * what else happened then (bench/gateway/mixed). Times are of the monotonic clock.
 */
#include "vm/cli/cli_load.h"

#include "vm/base/mem.h"
#include "vm/cli/cli_option.h"
#include "vm/net/tls.h"
#include "vm/sys/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLI_LOAD_PROGRESS_MS 1000u

struct cli_load_run {
    const struct cli_options *options;
    struct loop *loop;
    struct load *load;
    struct timer progress;
    uint64_t finished_before, told_ns, begin_ns;
    struct loop_socket *signals;
    struct loop_ready signals_ready;
    int signals_descriptor;
    FILE *failures; /* NULL: none are told */
    bool signals_outstanding, done;
};

/* -- options --------------------------------------------------------------------------------------------- */

#define CLI_LOAD_FLAGS_MAX (cli_load_field_count + 1)
enum {
#define LOAD_VALUE(field, short_name, name, value, range, initial, english, korean) cli_load_field_##field,
#define LOAD_TEXTS LOAD_VALUE
#define LOAD_SWITCH(field, short_name, name, english, korean) cli_load_field_##field,
#include "vm/cli/load_option.def"
#undef LOAD_VALUE
#undef LOAD_TEXTS
#undef LOAD_SWITCH
    cli_load_field_count
};

static size_t cli_load_flags(struct cli_options *options, struct cli_load_words *words,
                             struct cli_flag *flags)
{
    size_t count = 0;
    flags[count++] = (struct cli_flag){.name = "--json", .set_out = &options->json};
#define LOAD_VALUE(field, short_name, long_name, value, range, initial, english, korean) \
    flags[count++] = (struct cli_flag){.name = long_name, .value_out = &words->field};
#define LOAD_TEXTS(field, short_name, long_name, value, range, initial, english, korean) \
    flags[count++] = (struct cli_flag){                                                  \
        .name = long_name, .texts_out = words->field, .text_count_out = &words->field##_count};
#define LOAD_SWITCH(field, short_name, long_name, english, korean) \
    flags[count++] = (struct cli_flag){.name = long_name, .set_out = &words->field};
#include "vm/cli/load_option.def"
#undef LOAD_VALUE
#undef LOAD_TEXTS
#undef LOAD_SWITCH
    return count;
}

static uint32_t cli_load_ms(const struct cli_options *options, const char *name, const char *text)
{
    return (uint32_t)(cli_option_real(options->running, name, text) * 1000 + 0.5);
}

/* Options that exclude each other, in English or Korean; NULL: none. */
static const char *cli_load_find_conflict(const struct cli_load_words *words, bool korean)
{
    const struct {
        bool both;
        const char *english, *korean;
    } rows[] = {
        {words->idle && (words->fresh || words->rate || words->requests),
         "--idle goes with none of --new, --rate, --requests",
         "--idle은 --new, --rate, --requests와 함께 쓸 수 없습니다"},
        {words->http2 && words->http10, "--http2 does not go with --http10",
         "--http2는 --http10과 함께 쓸 수 없습니다"},
        {words->streams && !words->http2, "--streams is for --http2", "--streams는 --http2와 함께 씁니다"},
        {words->streams && (words->fresh || words->idle), "--streams goes with none of --new, --idle",
         "--streams는 --new, --idle과 함께 쓸 수 없습니다"},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++)
        if (rows[i].both) return korean ? rows[i].korean : rows[i].english;
    return NULL;
}

static bool cli_load_read_numbers(const struct cli_options *options, const struct cli_load_words *words,
                                  struct load_options *load)
{
    const struct cli_command *command = options->running;
    uint64_t connections = cli_option_count(command, "--connections", words->connections);
    uint64_t streams = cli_option_count(command, "--streams", words->streams);
    bool counted = words->requests != NULL; /* then nothing is measured by time unless that is asked for */
    load->connections = (uint32_t)connections;
    load->streams = (uint32_t)streams;
    load->protocol = words->http2 ? &load_http2 : &load_http1;
    load->request_count_max = cli_option_count(command, "--requests", words->requests);
    load->seed = cli_option_count(command, "--seed", words->seed);
    load->rate_per_s = cli_option_real(command, "--rate", words->rate);
    load->duration_ms = counted && !words->duration ? 0 : cli_load_ms(options, "--duration", words->duration);
    bool warm = !words->idle && (!counted || words->warm_up);
    load->warm_up_ms = warm ? cli_load_ms(options, "--warm-up", words->warm_up) : 0;
    load->timeout_ms = cli_load_ms(options, "--timeout", words->timeout);
    load->drain_ms = cli_load_ms(options, "--drain", words->drain);
    load->http10 = words->http10;
    load->keeping = words->fresh ? LOAD_NEW : LOAD_KEEP;
    load->same_body = words->same_body;
    load->idle = words->idle;
    load->fine_pacing = true;
    const char *fault = cli_load_find_conflict(words, options->korean);
    char slots[128];
    if (!fault && !load_slots_fit(connections, streams)) {
        snprintf(slots, sizeof slots,
                 options->korean ? "--connections와 --streams의 곱은 LOAD_SLOTS = %d까지입니다: %llu"
                                 : "--connections times --streams is at most LOAD_SLOTS = %d, not %llu",
                 LIMIT_LOAD_SLOTS, (unsigned long long)(connections * streams));
        fault = slots;
    }
    if (fault) cli_usage(options, fault, NULL);
    return !fault;
}

static bool cli_load_read_defaults(const struct cli_options *options, const struct cli_load_words *words,
                                   struct load_row *row)
{
    *row = (struct load_row){.weight = 1};
    uint64_t status = cli_option_count(options->running, "--expect-status", words->status);
    uint64_t length = cli_option_count(options->running, "--expect-length", words->length);
    if (words->method) row->method = cy_bytes_from_text(words->method);
    row->expect.status = (uint16_t)status;
    row->expect.has_length = words->length != NULL;
    row->expect.length = length;
    if (!words->crc32c) return true;
    char *end;
    unsigned long long crc = strtoull(words->crc32c, &end, 16);
    row->expect.has_crc32c = true;
    row->expect.crc32c = (uint32_t)crc;
    if (*words->crc32c && *end == 0 && strlen(words->crc32c) <= 8 && words->crc32c[0] != '-') return true;
    cli_usage(options,
              options->korean ? "--expect-crc32c는 16진수 8자리까지입니다"
                              : "--expect-crc32c is up to 8 hex digits, not",
              words->crc32c);
    return false;
}

/* "Name: value" taken apart. */
static bool cli_load_read_fields(const struct cli_options *options, const struct cli_load_words *words,
                                 struct load_field *fields)
{
    for (uint32_t i = 0; i < words->headers_count; i++) {
        cy_bytes text = cy_bytes_from_text(words->headers[i]);
        size_t colon = cy_bytes_find(text, ':');
        if (colon == text.count) {
            cli_usage(options,
                      options->korean ? "--header는 'NAME: VALUE' 꼴입니다"
                                      : "--header is 'NAME: VALUE', not",
                      words->headers[i]);
            return false;
        }
        fields[i].name = cy_bytes_slice(text, 0, colon);
        fields[i].value = cy_bytes_skip(text, colon + 1);
        while (fields[i].value.count && fields[i].value.data[0] == ' ')
            fields[i].value = cy_bytes_skip(fields[i].value, 1);
    }
    return true;
}

static bool cli_load_read_watched(const struct cli_options *options, const struct cli_load_words *words,
                                  pid_t *watched)
{
    for (uint32_t i = 0; i < words->watched_count; i++) {
        struct cpu_usage usage;
        watched[i] = (pid_t)cli_option_count(options->running, "--watch-pid", words->watched[i]);
        cy_err err = usage_of_process(watched[i], &usage);
        if (!cy_failed(err)) continue;
        cli_say_error(options, words->watched[i], err);
        return false;
    }
    return true;
}

/* -- the run --------------------------------------------------------------------------------------------- */

static void cli_load_on_done(void *owner)
{
    struct cli_load_run *run = owner;
    run->done = true;
    loop_stop(run->loop);
}

static void cli_load_on_idle(void *owner)
{
    struct cli_load_run *run = owner;
    fprintf(stderr,
            run->options->korean ? "모든 연결이 열려 있습니다: %u\n" : "all connections are open: %u\n",
            load_open_count(run->load));
}

static void cli_load_on_failure(void *owner, const struct load_failure *failure)
{
    struct cli_load_run *run = owner;
    fprintf(run->failures, "%llu\t%llu\t%u\t%s\t%u\n", (unsigned long long)(failure->began_ns / 1000u),
            (unsigned long long)(failure->failed_ns / 1000u), failure->local_port,
            load_fault_word(failure->fault), failure->status);
    fflush(run->failures);
}

static void cli_load_on_progress(struct timer *timer)
{
    struct cli_load_run *run = CY_CONTAINER_OF(timer, struct cli_load_run, progress);
    const struct load_result *result = load_read(run->load);
    uint64_t now_ns = loop_now_ns(run->loop), finished = load_finished_count(run->load), faults = 0;
    for (unsigned i = 0; i < LOAD_FAULT_COUNT; i++) faults += result->faults[i];
    fprintf(stderr,
            run->options->korean ? "%4.0f초  초당 %.0f개  연결 %u  실패 %llu%s\n"
                                 : "%4.0f s  %.0f requests/s  %u open  %llu failed%s\n",
            (double)(now_ns - run->begin_ns) / 1e9,
            (double)(finished - run->finished_before) * 1e9 / (double)(now_ns - run->told_ns),
            load_open_count(run->load), (unsigned long long)faults,
            load_is_measuring(run->load) ? ""
            : run->options->korean       ? "  (재지 않는 중)"
                                         : "  (not measured)");
    run->finished_before = finished;
    run->told_ns = now_ns;
    loop_timer_set(run->loop, &run->progress, CLI_LOAD_PROGRESS_MS);
}

static void cli_load_on_signal(struct loop_op *op)
{
    struct cli_load_run *run =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct cli_load_run, signals_ready);
    run->signals_outstanding = false;
    if (cy_failed(op->err)) return;
    while (signals_next(run->signals_descriptor) != 0) {}
    if (!run->done) load_stop(run->load);
    run->signals_outstanding = true;
    loop_ready(run->signals, &run->signals_ready);
}

static cy_err cli_load_watch_signals(struct cli_load_run *run)
{
    static const int signals[] = {SIGINT, SIGTERM};
    CY_TRY(signals_open(signals, CY_COUNT_OF(signals), &run->signals_descriptor));
    CY_TRY(loop_socket_watch(run->loop, run->signals_descriptor, &run->signals));
    run->signals_ready.op.done = cli_load_on_signal;
    run->signals_ready.want_read = true;
    run->signals_outstanding = true;
    loop_ready(run->signals, &run->signals_ready);
    return CY_OK;
}

/* Turns until the run has ended and everything it used is closed. */
static cy_err cli_load_turn(struct cli_load_run *run, bool quiet)
{
    run->begin_ns = run->told_ns = loop_now_ns(run->loop);
    run->progress.fire = cli_load_on_progress;
    if (!quiet) loop_timer_set(run->loop, &run->progress, CLI_LOAD_PROGRESS_MS);
    load_start(run->load);
    cy_err err = CY_OK;
    while (!run->done && !cy_failed(err)) err = loop_run(run->loop);
    loop_timer_clear(run->loop, &run->progress);
    return err;
}

static int cli_load_say_failed(const struct cli_options *options, const struct cli_load_plan *plan,
                               cy_err err, uint32_t opened, uint32_t wanted)
{
    char why[160];
    fprintf(stderr,
            options->korean ? "%s: %.*s: %s (연결 %u개 중 %u개를 연 뒤)\n"
                            : "%s: %.*s: %s (of %u connections %u were open)\n",
            options->name, CY_BYTES_ARG(plan->connect),
            cy_err_describe(err, options->korean, why, sizeof why), wanted, opened);
    return EXIT_CODE_PROGRAM;
}

static int cli_load_measure(struct cli_options *options, const struct cli_load_words *words,
                            const struct cli_load_plan *plan, struct load_options *load_options,
                            FILE *failures)
{
    struct cli_load_run run = {
        .options = options, .loop = load_options->loop, .signals_descriptor = -1, .failures = failures};
    struct builder fault;
    load_options->owner = &run;
    load_options->on_failure = failures ? cli_load_on_failure : NULL;
    load_options->done = cli_load_on_done;
    load_options->on_idle = cli_load_on_idle;
    builder_init(&fault);
    cy_err err = load_new(load_options, &run.load, &fault);
    builder_u8(&fault, 0);
    bool told = cy_failed(err) && fault.count > 1;
    if (told) cli_usage(options, (const char *)fault.data, NULL);
    builder_fini(&fault);
    if (told) return EXIT_CODE_USAGE;
    if (!cy_failed(err)) err = cli_load_watch_signals(&run);
    if (cy_failed(err)) {
        load_free(&run.load);
        cli_say_error(options, "load", err);
        return EXIT_CODE_PROGRAM;
    }
    err = cli_load_turn(&run, words->quiet);
    loop_socket_close(&run.signals);
    if (!cy_failed(err)) err = loop_flush(run.loop);
    const struct load_result *result = load_read(run.load);
    int code = EXIT_CODE_OK;
    if (cy_failed(err) || cy_failed(result->err)) {
        code = cli_load_say_failed(options, plan, cy_failed(err) ? err : result->err,
                                   (uint32_t)result->opened_count, load_options->connections);
    } else {
        cli_load_report(options, plan, load_options, result);
        if (result->well_count < result->measured_count || result->measured_count == 0)
            code = EXIT_CODE_PROGRAM;
    }
    if (run.done) load_free(&run.load);
    close(run.signals_descriptor);
    signals_reset();
    return code;
}

/* The same with the file of --failures open. */
static int cli_load_note_failures(struct cli_options *options, const struct cli_load_words *words,
                                  const struct cli_load_plan *plan, struct load_options *load_options)
{
    if (!words->failures) return cli_load_measure(options, words, plan, load_options, NULL);
    FILE *failures = fopen(words->failures, "w");
    if (!failures) {
        cli_say_error(options, words->failures, cy_err_from_errno(errno));
        return EXIT_CODE_PROGRAM;
    }
    int code = cli_load_measure(options, words, plan, load_options, failures);
    int lost = ferror(failures) ? EIO : 0;
    if (fclose(failures) != 0) lost = errno;
    if (!lost) return code;
    cli_say_error(options, words->failures, cy_err_from_errno(lost));
    return EXIT_CODE_PROGRAM;
}

static int cli_load_with(struct cli_options *options, const struct cli_load_words *words, int url_count,
                         char **urls, struct load_field *fields, pid_t *watched)
{
    struct load_options load = {.fields = fields,
                                .field_count = words->headers_count,
                                .watched = watched,
                                .watched_count = words->watched_count};
    struct load_row defaults;
    const char *io = getenv("CROWNY_IO");
    if (io && !loop_backend_exists(io)) return cli_usage(options, "CROWNY_IO is epoll or poll, not", io);
    if (!cli_load_read_numbers(options, words, &load) || !cli_load_read_defaults(options, words, &defaults) ||
        !cli_load_read_fields(options, words, fields) || !cli_load_read_watched(options, words, watched))
        return EXIT_CODE_USAGE;
    struct cli_load_plan plan;
    int code = EXIT_CODE_USAGE;
    if (cli_load_plan_fill(options, words, urls, url_count, &defaults, &plan)) {
        load.rows = plan.rows;
        load.row_count = plan.row_count;
        load.body = builder_view(&plan.body);
        process_raise_descriptors();
        struct tls_target *target = NULL;
        cy_err err = loop_new(io, &load.loop);
        code = EXIT_CODE_PROGRAM;
        if (cy_failed(err)) cli_say_error(options, "load", err);
        if (!cy_failed(err) && cli_load_tls_open(options, words, &plan, &target) &&
            cli_load_resolve(options, load.loop, &plan, &load.address)) {
            load.make_stream = target ? cli_load_tls_stream : NULL;
            load.make_stream_context = target;
            load.is_resumed = target ? tls_stream_resumed : NULL;
            code = cli_load_note_failures(options, words, &plan, &load);
        }
        cli_load_tls_close(&target);
        if (!cy_failed(err)) loop_free(&load.loop);
    }
    cli_load_plan_fini(&plan);
    return code;
}

int cli_http_load(struct cli_options *options, int argc, char **argv)
{
    struct cli_load_words words = {.connections = NULL};
    struct cli_flag flags[CLI_LOAD_FLAGS_MAX];
    size_t room = (size_t)argc + 1;
    words.headers = mem_alloc(room * sizeof *words.headers);
    words.watched = mem_alloc(room * sizeof *words.watched);
    struct load_field *fields = mem_alloc(room * sizeof *fields);
    pid_t *watched = mem_alloc(room * sizeof *watched);
    if (!words.headers || !words.watched || !fields || !watched) mem_exhausted();
    int word_count = cli_words(options, flags, cli_load_flags(options, &words, flags), false, argc, argv);
    int code = EXIT_CODE_USAGE;
    if (word_count >= 0) code = cli_load_with(options, &words, word_count, argv, fields, watched);
    mem_free(words.headers);
    mem_free(words.watched);
    mem_free(fields);
    mem_free(watched);
    return code;
}

#undef CLI_LOAD_PROGRESS_MS
#undef CLI_LOAD_FLAGS_MAX
