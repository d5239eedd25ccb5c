/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/pause_test.c: proves that == over large values pauses when the task's turn is over, in each form that
 * the step has, gives the right answer, and leaves nothing when the task is stopped meanwhile.
 */
#include "tests/unit/run/run_source.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"

#include <check.h>

static struct run_host host;

static const char source[] =
    "export fn value(a, b) { return a == b }\n"
    "export fn differ(a, b) { return a != b }\n"
    "export fn jump(a, b) { if a == b { return \"same\" } return \"other\" }\n"
    "export fn loops(a, b) { let n = 0 for i in 0..2 { if a == b { n = n + 1 } } return n }\n"
    "export fn caught(a, b) { try { return [a] == [b] } catch e { return e } }\n"
    "export fn short() { return 1 }\n"
    "let seen = nil\n"
    "export fn defers(a, b) { defer { seen = [[1], a] == [[2], a] } return a == b }\n"
    "export fn was() { return seen }\n"
    "export fn main(args) { }\n";

/* [[0, ""], [1, ""], ...] */
static cy_value large(int count, int last)
{
    cy_value list, pair, text;
    ck_assert(!cy_failed(list_new(host.vm, 0, &list)));
    ck_assert(!cy_failed(string_new(host.vm, CY_BYTES("x"), &text)));
    cy_err err = CY_OK;
    for (int i = 0; i < count && !cy_failed(err); i++) {
        err = list_new(host.vm, 2, &pair);
        if (!cy_failed(err)) err = list_append(host.vm, &pair, value_int(i == count - 1 ? last : i));
        if (!cy_failed(err)) err = list_append(host.vm, &pair, value_ref(text));
        if (!cy_failed(err)) err = list_append(host.vm, &list, pair);
    }
    ck_assert(!cy_failed(err));
    value_unref(host.vm, text);
    return list;
}

START_TEST(test_every_form)
{
    static const struct {
        const char *call, *same, *other;
    } rows[] = {{"value", "true", "false"},
                {"differ", "false", "true"},
                {"jump", "same", "other"},
                {"loops", "2", "0"},
                {"caught", "true", "false"}};
    run_source_open(&host, source, 0, UINT64_MAX);
    cy_value a = large(100000, 5), same = large(100000, 5), other = large(100000, 6);
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++)
        for (int equal = 0; equal < 2; equal++) {
            cy_value args[2] = {value_ref(a), value_ref(equal ? same : other)};
            struct run_end end, brief;
            ck_assert(!cy_failed(run_host_start(&host, rows[i].call, args, 2, &end, NULL)));
            int turns = 0;
            for (; !end.ended; turns++) {
                ck_assert(!cy_failed(run_host_start(&host, "short", NULL, 0, &brief, NULL)));
                (void)vm_run(host.vm);
                run_source_expect(&brief, "1");
            }
            ck_assert_msg(turns >= 4, "%s: %d turns", rows[i].call, turns); /* 400,000 steps */
            run_source_expect(&end, equal ? rows[i].same : rows[i].other);
        }
    value_unref(host.vm, a);
    value_unref(host.vm, same);
    value_unref(host.vm, other);
    run_host_close(&host);
}
END_TEST

START_TEST(test_stopped_meanwhile)
{
    run_source_open(&host, source, 0, UINT64_MAX);
    cy_value args[2] = {large(100000, 5), large(100000, 5)};
    struct run_end end;
    struct fiber *fiber;
    ck_assert(!cy_failed(run_host_start(&host, "caught", args, 2, &end, &fiber)));
    ck_assert(vm_run(host.vm) && vm_run(host.vm));
    ck_assert_ptr_nonnull(fiber->work);
    vm_cancel(host.vm, fiber);
    while (vm_run(host.vm)) {}
    run_source_expect_report(&end, CALL_STOPPED, "stop: the task was cancelled\n  at caught (main.han:5:43)");
    run_host_close(&host); /* nothing is left */
}
END_TEST

/* The defer of a stopped task compares too: that is another ==, not the rest of the first. */
START_TEST(test_a_defer_compares_again)
{
    run_source_open(&host, source, 0, UINT64_MAX);
    cy_value args[2] = {large(100000, 5), large(100000, 5)};
    struct run_end end;
    struct fiber *fiber;
    ck_assert(!cy_failed(run_host_start(&host, "defers", args, 2, &end, &fiber)));
    ck_assert(vm_run(host.vm) && vm_run(host.vm));
    ck_assert_ptr_nonnull(fiber->work);
    vm_cancel(host.vm, fiber);
    while (vm_run(host.vm)) {}
    run_source_expect_report(&end, CALL_STOPPED, "stop: the task was cancelled");
    run_source_call(&host, "was", &end);
    run_source_expect(&end, "false");
    run_host_close(&host);
}
END_TEST

/* The CPU allowance ends a walk that would take too long for its task. */
START_TEST(test_stopped_by_its_allowance)
{
    run_source_open(&host, source, 0, UINT64_MAX);
    host.tick_ns = 300 * 1000000;
    cy_value args[2] = {large(300000, 5), large(300000, 5)};
    struct run_end end;
    ck_assert(!cy_failed(run_host_start(&host, "caught", args, 2, &end, NULL)));
    while (vm_run(host.vm)) {}
    run_source_expect_report(&end, CALL_STOPPED,
                             "stop: the CPU allowance is used up (limit CPU_BURST_MS: 1000 ms)\n"
                             "  at caught");
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_pause(void);
Suite *unit_suite_run_pause(void)
{
    Suite *suite = suite_create("run_pause");
    TCase *tests = tcase_create("pause");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_every_form);
    tcase_add_test(tests, test_stopped_meanwhile);
    tcase_add_test(tests, test_a_defer_compares_again);
    tcase_add_test(tests, test_stopped_by_its_allowance);
    suite_add_tcase(suite, tests);
    return suite;
}
