/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/deadline_test.c: proves deadlines, on a clock that the test moves: a stop that is not caught,
 * inherited, only ever earlier, told to the host; and the heap of many.
 */
#include "tests/unit/run/run_source.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"

#include <check.h>

static struct run_host host;
static struct run_end end;

static void run_all(void)
{
    while (vm_run(host.vm)) {}
}
static void pass_ms(uint64_t ms)
{
    host.wall_ns += ms * 1000000;
    run_all();
}

static const char source[] =
    "import \"task\"\n"
    "fn work() { defer { print(\"defer\") } try { task.sleep(1) } catch e { print(\"caught\") } }\n"
    "export fn own() { task.deadline(50) work() return 1 }\n"
    "export fn child() { task.deadline(50) let t = spawn work() task.deadline(20) task.wait(t) }\n"
    "export fn earlier() { task.deadline(20) task.deadline(500) task.sleep(1) return task.time_left() }\n"
    "export fn given() { let t = spawn work() task.deadline(30, t)\n"
    "    try { task.wait(t) } catch e { return e.kind + \": \" + e.message } }\n"
    "export fn none() { return task.time_left() }\n"
    "export fn left() { task.deadline(70) return task.time_left() }\n"
    "export fn range(n) { try { task.deadline(n) } catch e { return e.message } return \"good\" }\n"
    "export fn past() { let t = spawn none() task.wait(t) task.deadline(5, t) }\n"
    "export fn now() { task.deadline(0) task.sleep(1) return \"late\" }\n"
    "export fn spins() { task.deadline(5) try { loop { } } catch e { } }\n"
    "fn sleeps() { task.sleep(1) return 1 }\n"
    "export fn tail() { task.deadline(10) spawn sleeps() return 5 }\n"
    "export fn set(n) { task.deadline(n) task.sleep(1) }\n"
    "export fn main(args) { }\n";

START_TEST(test_a_deadline_is_a_stop)
{
    run_source_open(&host, source, 0, UINT64_MAX);
    run_source_call(&host, "own", &end);
    ck_assert_uint_eq(host.deadline_ns, 50 * 1000000);
    pass_ms(49);
    ck_assert(!end.ended);
    pass_ms(1);
    run_source_expect_report(&end, CALL_STOPPED,
                             "stop: the deadline passed\n  at work (main.han:2:44)\n  at own");
    ck_assert_str_eq(run_host_printed(&host), "defer\n");
    ck_assert_uint_eq(host.cancel_count, 1);
    run_source_call(&host, "now", &end);
    pass_ms(0);
    run_source_expect_report(&end, CALL_STOPPED, "stop: the deadline passed");
    ck_assert(!cy_failed(run_host_start(&host, "spins", NULL, 0, &end, NULL)));
    for (int i = 0; i < 10; i++) ck_assert(vm_run(host.vm) && !end.ended);
    pass_ms(5);
    run_source_expect_report(&end, CALL_STOPPED, "stop: the deadline passed\n  at spins (main.han:13");
    ck_assert_uint_eq(host.vm->deadline_count, 0);
    run_host_close(&host);
}
END_TEST

START_TEST(test_inherited_and_only_earlier)
{
    run_source_open(&host, source, 0, UINT64_MAX);
    run_source_call(&host, "child", &end);
    ck_assert_uint_eq(host.vm->deadline_count, 2);
    pass_ms(20); /* the parent's; the child's 50 do not matter: it is stopped with its parent */
    run_source_expect_report(&end, CALL_STOPPED, "stop: the deadline passed\n  at child");
    ck_assert_str_eq(run_host_printed(&host), "defer\n");
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    run_source_call(&host, "earlier", &end);
    pass_ms(19);
    run_host_wake_all(&host);
    run_all();
    run_source_expect(&end, "1");
    run_source_call(&host, "given", &end);
    pass_ms(30);
    run_source_expect(&end, "timeout: the task was stopped: the deadline passed");
    run_source_call(&host, "tail", &end); /* it returned in time, what it spawned does not end in time */
    pass_ms(10);
    run_source_expect_report(&end, CALL_FAILED,
                             "timeout: the task was stopped: the deadline passed\n  at sleeps");
    run_host_close(&host);
}
END_TEST

START_TEST(test_time_left_and_bounds)
{
    run_source_open(&host, source, 0, UINT64_MAX);
    run_source_call(&host, "none", &end);
    run_source_expect(&end, "nil");
    run_source_call(&host, "left", &end);
    run_source_expect(&end, "70");
    run_source_call(&host, "past", &end);
    run_source_expect_report(&end, CALL_FAILED, "closed: task.deadline: not a task");
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {{LIMIT_TIMEOUT_MS, "good"}, /* TIMEOUT_MS */
                {LIMIT_TIMEOUT_MS + 1, "task.deadline: milliseconds must be 0..86400000, not 86400001"},
                {-1, "task.deadline: milliseconds must be 0..86400000, not -1"}};
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        cy_value ms = value_int(rows[i].ms);
        ck_assert(!cy_failed(run_host_start(&host, "range", &ms, 1, &end, NULL)));
        run_all();
        run_source_expect(&end, rows[i].text);
    }
    run_host_close(&host);
}
END_TEST

/* 800 tasks with deadlines in no order, some of which end before: at each time exactly those are stopped that must. */
START_TEST(test_many)
{
    enum { COUNT = 800 };
    static struct run_end ends[COUNT];
    static uint64_t at_ms[COUNT];
    run_source_open(&host, source, 0, UINT64_MAX);
    uint64_t random = 12345;
    for (int i = 0; i < COUNT; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        at_ms[i] = 1 + (random >> 40) % 1000;
        cy_value ms = value_int((int64_t)at_ms[i]);
        ck_assert(!cy_failed(run_host_start(&host, "set", &ms, 1, &ends[i], NULL)));
    }
    run_all();
    for (int i = 0; i < COUNT; i += 3) {
        vm_complete(host.vm, host.tickets[i], value_nil());
        at_ms[i] = 0;
    }
    run_all();
    ck_assert_uint_eq(host.vm->deadline_count, COUNT - (COUNT + 2) / 3);
    for (uint64_t now = 1; now <= 1000; now++) {
        pass_ms(1);
        for (int i = 0; i < COUNT; i++) {
            ck_assert_msg(ends[i].ended == (at_ms[i] <= now), "task %d at %d", i, (int)now);
            if (at_ms[i] == now) ck_assert(cy_is(ends[i].stop, CY_ERR_STOP_DEADLINE));
        }
    }
    ck_assert_uint_eq(host.vm->deadline_count, 0);
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_deadline(void);
Suite *unit_suite_run_deadline(void)
{
    Suite *suite = suite_create("run_deadline");
    TCase *tests = tcase_create("deadline");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_a_deadline_is_a_stop);
    tcase_add_test(tests, test_inherited_and_only_earlier);
    tcase_add_test(tests, test_time_left_and_bounds);
    tcase_add_test(tests, test_many);
    suite_add_tcase(suite, tests);
    return suite;
}
