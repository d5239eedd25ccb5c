/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/native_regex_test.c: proves that calls of regex pause: others have turns while one match runs, and
 * between many matches; the results are what they were; a task that is stopped, or a VM that ends, in the middle of a
 * match leaves nothing; and initialisers, which may not wait, may search as long as anybody.
 */
#include "tests/unit/compiler/compile_text.h"
#include "tests/unit/run/run_source.h"
#include "vm/base/limits.h"
#include "vm/native/native.h"
#include "vm/run/fiber.h"

#include <check.h>

static struct run_host host;
static bool cpu_is_simulated;

static const char source[] =
    "import \"regex\"\n"
    "import \"text\"\n"
    "let early = regex.test(\"^(?:a|b)*$\", text.repeat(\"ab\", 10000))\n"
    "export fn initialised() { return early }\n"
    "fn evil() { return regex.find(\"(a+)+$\", text.repeat(\"a\", 40) + \"!\") }\n"
    "export fn steps() { try { return evil() } catch e { return e.kind } }\n"
    "export fn items() { return regex.test(`[a-z]+\\d`, text.repeat(\"a\", 3000) + \"!\") }\n"
    "export fn whole() { return regex.match(\"(?:a|b)*\", text.repeat(\"ab\", 25000)).end }\n"
    "export fn all() { return len(regex.find_all(`\\w+`, text.repeat(\"a, \", 2000))) }\n"
    "export fn parts() { return len(regex.split(`, `, text.repeat(\"a, \", 10000))) }\n"
    "export fn new() { return len(regex.replace(`a`, text.repeat(\"a, \", 10000), \"$0$0\")) }\n"
    "export fn bytes() { return len(regex.find_all(`\\w+`, text.repeat(\"a, \" + \"한\"[0..1], 2000))) }\n"
    "export fn endless() { loop { try { let _ = evil() } catch e { } } }\n"
    "export fn short() { return 1 }\n"
    "export fn main(args) { }\n";

/* A second each time: no more than two looks. */
static uint64_t regex_test_cpu(void *context)
{
    struct run_host *of = context;
    return cpu_is_simulated ? of->now_ns += UINT64_C(1000000000) : 0;
}

static void regex_test_open(void)
{
    struct compile_text test;
    compile_text_init(&test, cy_bytes_from_text(source));
    compile_text_run(&test);
    ck_assert_msg(test.program, "%s", builder_text_view(&test.messages));
    host = (struct run_host){.program = test.program};
    cpu_is_simulated = false;
    test.program = NULL;
    compile_text_fini(&test);
    builder_init(&host.output);
    builder_init(&host.stopped);
    const struct vm_options options = {.natives = native_table_full,
                                       .task_memory_bytes_max = UINT64_MAX,
                                       .seed = {1, 2},
                                       .host = &host,
                                       .cpu_ns = regex_test_cpu};
    ck_assert(!cy_failed(vm_new(&options, &host.vm)));
    ck_assert(!cy_failed(instance_new(host.vm, host.program, &host.instance, NULL)));
}
static void regex_test_close(void) { run_host_close(&host); }

/* Turns that others had until it had ended. */
static int regex_test_turns(const char *name, struct run_end *end)
{
    int turns = 0;
    struct run_end brief;
    ck_assert(!cy_failed(run_host_start(&host, name, NULL, 0, end, NULL)));
    for (; !end->ended; turns++) {
        ck_assert(!cy_failed(run_host_start(&host, "short", NULL, 0, &brief, NULL)));
        (void)vm_run(host.vm);
        run_source_expect(&brief, "1");
    }
    return turns;
}

/* Each takes ten times as long as a piece at least, and under valgrind not as long as REGEX_CALL_MS. */
START_TEST(test_others_have_turns)
{
    static const struct {
        const char *name, *result;
    } rows[] = {
        {"steps", "limit"}, {"items", "false"}, {"whole", "50000"}, {"all", "2000"},
        {"parts", "10001"}, {"new", "40000"},   {"bytes", "2000"},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct run_end end;
        int turns = regex_test_turns(rows[i].name, &end);
        run_source_expect(&end, rows[i].result);
        ck_assert_msg(turns >= 4, "%s: %d turns", rows[i].name, turns);
    }
}
END_TEST

START_TEST(test_initialisers_search_too)
{
    struct run_end end;
    run_source_call(&host, "initialised", &end);
    run_source_expect(&end, "true");
}
END_TEST

static struct fiber *regex_test_begin(const char *name, struct run_end *end)
{
    struct fiber *fiber;
    ck_assert(!cy_failed(run_host_start(&host, name, NULL, 0, end, &fiber)));
    for (int i = 0; i < 3; i++) ck_assert(vm_run(host.vm));
    ck_assert_ptr_nonnull(fiber->work);
    return fiber;
}

START_TEST(test_stopped_meanwhile)
{
    static const char *const names[] = {"steps", "whole", "all", "parts", "new", "bytes"};
    for (size_t i = 0; i < CY_COUNT_OF(names); i++) {
        struct run_end end;
        vm_cancel(host.vm, regex_test_begin(names[i], &end));
        while (vm_run(host.vm)) {}
        run_source_expect_report(&end, CALL_STOPPED, "stop: the task was cancelled");
    }
}
END_TEST

/* The VM ends (regex_test_close looks that nothing is left) in the middle of some. */
START_TEST(test_the_vm_ends_meanwhile)
{
    static struct run_end ends[2];
    (void)regex_test_begin("steps", &ends[0]);
    (void)regex_test_begin("new", &ends[1]);
}
END_TEST

/* Searching is the task's own time: catching the errors does not help. */
START_TEST(test_the_allowance_ends_it)
{
    struct run_end end;
    cpu_is_simulated = true;
    run_source_call(&host, "endless", &end);
    run_source_expect_report(&end, CALL_STOPPED, "stop: the CPU allowance is used up");
}
END_TEST

Suite *unit_suite_native_native_regex(void);
Suite *unit_suite_native_native_regex(void)
{
    Suite *suite = suite_create("native_native_regex");
    TCase *tests = tcase_create("native_regex");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, regex_test_open, regex_test_close);
    tcase_add_test(tests, test_others_have_turns);
    tcase_add_test(tests, test_initialisers_search_too);
    tcase_add_test(tests, test_stopped_meanwhile);
    tcase_add_test(tests, test_the_vm_ends_meanwhile);
    tcase_add_test(tests, test_the_allowance_ends_it);
    suite_add_tcase(suite, tests);
    return suite;
}
