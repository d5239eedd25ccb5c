/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/run_source.c: see run_source.h.
 */
#include "tests/unit/run/run_source.h"

#include "tests/unit/compiler/compile_text.h"

#include <check.h>

void run_source_open(struct run_host *host, const char *source, uint64_t memory_bytes_max,
                     uint64_t task_memory_bytes_max)
{
    struct compile_text test;
    compile_text_init(&test, cy_bytes_from_text(source));
    compile_text_run(&test);
    ck_assert_msg(test.program, "%s", builder_text_view(&test.messages));
    struct program *program = test.program;
    test.program = NULL;
    compile_text_fini(&test);
    ck_assert(run_host_open_limited(host, program, memory_bytes_max, task_memory_bytes_max));
}

void run_source_call(struct run_host *host, const char *name, struct run_end *end)
{
    ck_assert(!cy_failed(run_host_start(host, name, NULL, 0, end, NULL)));
    while (vm_run(host->vm)) {}
}

static void run_source_report(struct run_end *end, struct builder *out)
{
    if (end->outcome == CALL_STOPPED)
        builder_bytes(out, builder_view(&end->host->stopped));
    else
        vm_describe_error(end->host->vm, end->value, out);
}

void run_source_expect(struct run_end *end, const char *text)
{
    struct builder report;
    builder_init(&report);
    ck_assert_msg(end->ended, "\"%s\": has not ended", text);
    if (end->outcome != CALL_RETURNED) {
        run_source_report(end, &report);
        ck_abort_msg("\"%s\" expected, but: %s", text, builder_text_view(&report));
    }
    value_format(end->host->vm, end->value, false, &report);
    ck_assert_str_eq(builder_text_view(&report), text);
    builder_fini(&report);
    run_end_clear(end);
}

void run_source_expect_report(struct run_end *end, enum call_outcome outcome, const char *words)
{
    struct builder report;
    builder_init(&report);
    ck_assert_msg(end->ended, "\"%s\": has not ended", words);
    if (end->outcome == CALL_RETURNED) value_format(end->host->vm, end->value, false, &report);
    ck_assert_msg(end->outcome == outcome, "\"%s\": outcome %d: %s", words, (int)end->outcome,
                  end->outcome == CALL_RETURNED ? builder_text_view(&report) : "");
    run_source_report(end, &report);
    ck_assert_msg(strstr(builder_text_view(&report), words), "\"%s\" is not in: %.600s", words,
                  builder_text_view(&report));
    builder_fini(&report);
    run_end_clear(end);
}
