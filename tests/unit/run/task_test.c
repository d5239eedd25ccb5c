/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/task_test.c: proves waiting for many tasks, cancelling, results that nobody takes, tasks that move
 * with their handle, turns of groups, and where errors and stops are said to be. Deadlines: deadline_test.c.
 */
#include "tests/unit/run/run_source.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"

#include <check.h>
#include <stdio.h>

static struct run_host host;
static struct run_end end;

static void open_source(const char *source) { run_source_open(&host, source, 0, UINT64_MAX); }
static void run_all(void)
{
    while (vm_run(host.vm)) {}
}

START_TEST(test_all_and_race)
{
    open_source("import \"task\"\n"
                "fn later(n) { defer { print(\"end\", n) } task.sleep(n) return n }\n"
                "fn bad(n) { fail(\"bad \\(n)\") }\n"
                "export fn all() { return task.all([spawn later(1), spawn later(2), spawn later(3)]) }\n"
                "export fn none() { return task.all([]) }\n"
                "export fn first() { return task.race([spawn later(1), spawn later(2)]) }\n"
                "export fn failed() { return task.all([spawn later(1), spawn bad(2), spawn later(3)]) }\n"
                "export fn done() { let a = spawn bad(1) let b = spawn later(2) task.sleep(0)\n"
                "    try { task.race([b, a]) } catch e { return e.message } }\n"
                "export fn main(args) { }\n");
    run_source_call(&host, "all", &end);
    ck_assert(!end.ended && host.wait_count == 3);
    vm_complete(host.vm, host.tickets[2], value_nil()); /* in any order: the list's counts */
    vm_complete(host.vm, host.tickets[0], value_nil());
    run_all();
    ck_assert(!end.ended);
    vm_complete(host.vm, host.tickets[1], value_nil());
    run_all();
    run_source_expect(&end, "[1, 2, 3]");
    run_source_call(&host, "none", &end);
    run_source_expect(&end, "[]");
    builder_clear(&host.output);
    run_source_call(&host, "first", &end);
    vm_complete(host.vm, host.ticket, value_nil()); /* 2 */
    run_all();
    ck_assert_str_eq(run_host_printed(&host), "end 2\nend 1\n"); /* the loser has ended before race does */
    run_source_expect(&end, "2");
    builder_clear(&host.output);
    run_source_call(&host, "failed", &end);
    ck_assert_str_eq(run_host_printed(&host), "end 1\n");
    run_source_expect_report(&end, CALL_FAILED,
                             "value: bad 2\n  at bad (main.han:3:13)\n  spawned in failed (main.han:7:");
    builder_clear(&host.output);
    run_source_call(&host, "done", &end); /* one has ended before race looks */
    vm_complete(host.vm, host.tickets[host.wait_count - 2], value_nil());
    run_all();
    run_source_expect(&end, "bad 1");
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    run_host_close(&host);
}
END_TEST

/* cancel comes back when the defers have run; the handle is closed then. Waiting for a canceller is no dead end. */
START_TEST(test_cancel)
{
    open_source("import \"task\"\n"
                "fn child() { defer { print(\"child\") } task.sleep(1) }\n"
                "fn work() { defer { print(\"work\") } let t = spawn child() task.sleep(1) }\n"
                "export fn cancel() { let t = spawn work() task.sleep(0) task.cancel(t) print(\"after\")\n"
                "    try { task.wait(t) } catch e { return e.kind } }\n"
                "fn waits() { let t = spawn work() task.all([t]) }\n"
                "export fn middle() { let t = spawn waits() task.sleep(0) task.cancel(t) return 1 }\n"
                "fn cancels(t) { task.cancel(t) }\n"
                "export fn both() { let t = spawn work() let c = spawn cancels(t) task.wait(c) return 2 }\n"
                "export fn ended() { let t = spawn fails() task.sleep(0) task.cancel(t) return 3 }\n"
                "fn fails() { fail(\"nobody hears this\") }\n"
                "export fn main(args) { }\n");
    run_source_call(&host, "cancel", &end);
    run_host_wake_all(&host);
    host.wait_count = 0;
    run_all();
    if (!end.ended) ck_abort_msg("%s", run_host_printed(&host));
    run_source_expect(&end, "cancelled");
    run_source_call(&host, "middle", &end);
    vm_complete(host.vm, host.tickets[0], value_nil());
    run_all();
    run_host_wake_all(&host);
    run_all();
    run_source_expect(&end, "1");
    run_source_call(&host, "both", &end);
    run_source_expect(&end, "2");
    run_source_call(&host, "ended", &end);
    run_host_wake_all(&host);
    run_all();
    run_source_expect(&end, "3");
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    run_host_close(&host);
}
END_TEST

START_TEST(test_refused)
{
    open_source("import \"task\"\n"
                "fn work() { task.sleep(1) return 1 }\n"
                "fn waits(t) { task.wait(t) }\n"
                "export fn twice() { let t = spawn work() return task.all([t, t]) }\n"
                "export fn other() { return task.all([1]) }\n"
                "export fn empty() { return task.race([]) }\n"
                "fn above(box) { task.wait(box.value) }\n"
                "export fn up() { let box = ref(nil) let t = spawn holder(box) box.value = t task.wait(t) }\n"
                "fn holder(box) { task.wait(spawn above(box)) }\n"
                "export fn main(args) { }\n");
    run_source_call(&host, "twice", &end);
    run_host_wake_all(&host);
    run_all();
    run_source_expect_report(&end, CALL_FAILED, "value: task.all: the same task stands there twice");
    run_source_call(&host, "other", &end);
    run_source_expect_report(&end, CALL_FAILED, "type: task.all: item 1 must be a task, not int");
    run_source_call(&host, "empty", &end);
    run_source_expect_report(&end, CALL_FAILED, "value: task.race: there must be at least one task");
    run_source_call(&host, "up", &end);
    run_source_expect_report(&end, CALL_FAILED, "cannot wait for itself or for one that it belongs to");
    run_host_close(&host);
}
END_TEST

/* Whoever is told of a task at the end of its parent: an error of a task spawned as a statement, the first one. */
START_TEST(test_errors_that_nobody_waits_for)
{
    open_source("import \"task\"\n"
                "fn bad(n) { fail(\"bad \\(n)\") }\n"
                "export fn main(args) { }\n"
                "export fn forget() { spawn bad(1) spawn bad(2) task.sleep(0) return 1 }\n"
                "export fn own() { spawn bad(1) task.sleep(0) fail(\"own\") }\n");
    run_source_call(&host, "forget", &end);
    run_host_wake_all(&host);
    run_all();
    run_source_expect_report(&end, CALL_FAILED,
                             "value: bad 1\n  at bad (main.han:2:13)\n  spawned in forget (main.han:4:22)\n");
    run_source_call(&host, "own", &end);
    run_host_wake_all(&host);
    run_all();
    run_source_expect_report(&end, CALL_FAILED, "value: own");
    run_host_close(&host);
}
END_TEST

/* A task that spawns for ever and waits for nobody holds no more memory for it. */
START_TEST(test_results_do_not_pile_up)
{
    open_source(
        "import \"task\"\n"
        "fn give(n) { return [n, n] }\n"
        "export fn statements() { for i in 0..150000 { spawn give(i) if i % 100 == 0 { task.sleep(0) } } }\n"
        "export fn handles() { let first = spawn give(1)\n"
        "    for i in 0..70000 { let t = spawn give(i) if i % 100 == 0 { task.sleep(0) } }\n"
        "    return task.wait(first) }\n"
        "export fn main(args) { }\n");
    run_source_call(&host, "statements", &end);
    uint64_t most = 0;
    while (!end.ended) {
        run_host_wake_all(&host);
        run_all();
        if (host.vm->heap_bytes > most) most = host.vm->heap_bytes;
    }
    run_source_expect(&end, "nil");
    ck_assert_uint_lt(most, 2 << 20);
    run_source_call(&host, "handles", &end);
    while (!end.ended) {
        run_host_wake_all(&host);
        run_all();
    }
    run_source_expect(&end, "[1, 1]");
    run_host_close(&host);
}
END_TEST

/* LIMIT_TASK_RESULTS of them can be kept; then spawn is refused, but as a statement, until one is taken. */
START_TEST(test_task_results)
{
    open_source(
        "import \"task\"\n"
        "fn give(n) { return n }\n"
        "export fn f(count) { let all = [] for i in 0..count { all = all + [spawn give(i)] } task.sleep(0)\n"
        "    spawn give(1) task.sleep(0)\n"
        "    let said = nil\n"
        "    try { let t = spawn give(2) task.wait(t) } catch e { said = \"\\(e.kind) \\(e.message)\" }\n"
        "    let first = task.wait(all[0])\n"
        "    return [said, first, task.wait(spawn give(3)), task.all(all[1..count])[count - 2]] }\n"
        "export fn at() { return f(262143) }\n"
        "export fn past() { return f(262144) }\n"
        "export fn main(args) { }\n");
    const char *names[] = {"at", "past"};
    for (int past = 0; past < 2; past++) {
        run_source_call(&host, names[past], &end);
        while (!end.ended) {
            run_host_wake_all(&host);
            run_all();
        }
        char text[256];
        const char *said =
            "\"limit spawn: 262144 tasks of this one have ended and nobody took their results (limit "
            "TASK_RESULTS): wait for them, or write `spawn` as a statement\"";
        snprintf(text, sizeof text, "[%s, 0, 3, %d]", past ? said : "nil", LIMIT_TASK_RESULTS - 2 + past);
        run_source_expect(&end, text);
    }
    run_host_close(&host);
}
END_TEST

/* A cancelled task is remembered by its handle, the last LIMIT_TASKS_CANCELLED of them. */
START_TEST(test_tasks_cancelled)
{
    open_source("import \"task\"\n"
                "fn sleeps() { task.sleep(60000) }\n"
                "fn asks(t) { try { task.wait(t) } catch e { return e.kind } }\n"
                "export fn f(count) { let first = spawn sleeps() task.cancel(first)\n"
                "    for i in 0..count { let t = spawn sleeps() task.cancel(t) }\n"
                "    return asks(first) }\n"
                "export fn at() { return f(255) }\nexport fn past() { return f(256) }\n"
                "export fn main(args) { }\n");
    run_source_call(&host, "at", &end);
    run_all();
    run_source_expect(&end, "cancelled");
    run_source_call(&host, "past", &end);
    run_all();
    run_source_expect(&end, "closed");
    run_host_close(&host);
}
END_TEST

/* spawn f(t): the task goes with its handle. It ends after f at the latest, and its error is f's. */
START_TEST(test_a_task_moves)
{
    open_source(
        "import \"task\"\n"
        "fn work() { task.sleep(1) return 7 }\n"
        "fn bad() { task.sleep(1) fail(\"bad\") }\n"
        "fn use(t) { return task.wait(t) }\n"
        "fn keep(t) { return 1 }\n"
        "export fn gives() { let t = spawn work() let u = spawn use(t) return task.wait(u) }\n"
        "export fn joins() { let t = spawn bad() let u = spawn keep(t)\n"
        "    try { task.wait(u) } catch e { return e.message } }\n"
        "export fn ended() { let t = spawn keep(1) task.sleep(1) let u = spawn use(t) return task.wait(u) }\n"
        "export fn main(args) { }\n");
    run_source_call(&host, "gives", &end);
    run_host_wake_all(&host);
    run_all();
    run_source_expect(&end, "7");
    run_source_call(&host, "joins", &end);
    ck_assert(!end.ended); /* keep has returned, and waits for the task that is its own now */
    run_host_wake_all(&host);
    run_all();
    run_source_expect(&end, "bad");
    run_source_call(&host, "ended", &end);
    run_host_wake_all(&host);
    run_all();
    run_source_expect(&end, "1");
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    run_host_close(&host);
}
END_TEST

/* A task that spawns without end gets one turn like everybody; a call that comes meanwhile ends in the next round. */
START_TEST(test_turns_of_groups)
{
    open_source(
        "import \"task\"\n"
        "fn spin() { loop { } }\n"
        "export fn bomb() { loop { spawn spin() } }\n"
        "export fn short() { let n = 0 for i in 0..2000 { n = n + i } return task.wait(spawn one()) }\n"
        "fn one() { return 1 }\n"
        "export fn main(args) { }\n");
    struct run_end bomb;
    struct fiber *fiber;
    ck_assert(!cy_failed(run_host_start(&host, "bomb", NULL, 0, &bomb, &fiber)));
    for (int i = 0; i < 100; i++) ck_assert(vm_run(host.vm));
    ck_assert_uint_gt(vm_fiber_count(host.vm), 300);
    struct vm_counters before, after;
    for (int i = 0; i < 20; i++) {
        ck_assert(!cy_failed(run_host_start(&host, "short", NULL, 0, &end, NULL)));
        vm_read_counters(host.vm, &before);
        ck_assert(vm_run(host.vm));
        vm_read_counters(host.vm, &after);
        ck_assert(end.ended);
        ck_assert_uint_lt(after.instructions - before.instructions, 3 * LIMIT_BUDGET_STEPS);
        run_source_expect(&end, "1");
    }
    vm_cancel(host.vm, fiber);
    run_all();
    ck_assert(bomb.ended && bomb.outcome == CALL_STOPPED);
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    run_host_close(&host);
}
END_TEST

/* Places of an error through two tasks, and of a stop; what was read before it crosses stays. */
START_TEST(test_places_across_tasks)
{
    open_source("import \"task\"\n"
                "fn deep() { fail(\"deep\") }\n"
                "fn inner() { deep() }\n"
                "fn middle() { return task.wait(spawn inner()) }\n"
                "export fn outer() { task.wait(spawn middle()) }\n"
                "fn reads() { try { deep() } catch e { let read = e.stack throw e } }\n"
                "export fn read() { task.wait(spawn reads()) }\n"
                "fn spin() { loop { } }\n"
                "export fn stopped() { task.wait(spawn spin()) }\n"
                "export fn caught() { try { loop { } } catch e { return \"no\" } }\n"
                "export fn main(args) { }\n");
    host.tick_ns = 50 * 1000000;
    run_source_call(&host, "outer", &end);
    run_source_expect_report(&end, CALL_FAILED,
                             "value: deep\n"
                             "  at deep (main.han:2:13)\n"
                             "  at inner (main.han:3:14)\n"
                             "  spawned in middle (main.han:4:32)\n"
                             "  awaited in middle (main.han:4:22)\n"
                             "  spawned in outer (main.han:5:31)\n"
                             "  awaited in outer (main.han:5:21)\n");
    run_source_call(&host, "read", &end);
    run_source_expect_report(&end, CALL_FAILED,
                             "  at deep (main.han:2:13)\n"
                             "  at reads (main.han:6:20)\n"
                             "  spawned in read (main.han:7:30)\n"
                             "  awaited in read (main.han:7:20)\n");
    run_source_call(&host, "stopped", &end);
    run_source_expect_report(
        &end, CALL_FAILED,
        "limit: the task was stopped: the CPU allowance is used up (limit CPU_BURST_MS: 1000 ms)\n"
        "  at spin (main.han:8:13)\n"
        "  spawned in stopped (main.han:9:33)\n"
        "  awaited in stopped (main.han:9:23)\n");
    run_source_call(&host, "caught", &end);
    run_source_expect_report(
        &end, CALL_STOPPED,
        "stop: the CPU allowance is used up (limit CPU_BURST_MS: 1000 ms)\n  at caught (main.han:10:28)\n");
    run_host_close(&host);
}
END_TEST

/* What a write copies stays what it was made from. */
START_TEST(test_a_copied_error_keeps_its_reason)
{
    open_source(
        "export fn copied() { try { let x = 1 / 0 } catch e { let kept = e e.message = \"mine\" throw e } }\n"
        "export fn main(args) { }\n");
    run_source_call(&host, "copied", &end);
    ck_assert(end.ended && end.outcome == CALL_FAILED);
    ck_assert(cy_is(error_reason(host.vm, end.value), CY_ERR_DIVISION));
    run_source_expect_report(&end, CALL_FAILED, "division: mine");
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_task(void);
Suite *unit_suite_run_task(void)
{
    Suite *suite = suite_create("run_task");
    TCase *tests = tcase_create("task");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_all_and_race);
    tcase_add_test(tests, test_cancel);
    tcase_add_test(tests, test_refused);
    tcase_add_test(tests, test_errors_that_nobody_waits_for);
    tcase_add_test(tests, test_results_do_not_pile_up);
    tcase_add_test(tests, test_task_results);
    tcase_add_test(tests, test_tasks_cancelled);
    tcase_add_test(tests, test_a_task_moves);
    tcase_add_test(tests, test_turns_of_groups);
    tcase_add_test(tests, test_places_across_tasks);
    tcase_add_test(tests, test_a_copied_error_keeps_its_reason);
    suite_add_tcase(suite, tests);
    return suite;
}
