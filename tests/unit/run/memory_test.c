/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/memory_test.c: proves that a memory bomb ends its own task and nothing else, and that a task which
 * lets go of what it makes is left alone.
 */
#include "tests/unit/run/run_source.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"

#include <check.h>

enum { VM_BYTES = 64 << 20, TASK_BYTES = 4 << 20 };
static struct run_host host;
static struct run_end end;

static const char source[] =
    "import \"task\"\n"
    "export fn text() { let s = \"x\" loop { try { s = s + s } catch e { print(\"caught\") } } }\n"
    "export fn list() { let xs = [] loop { try { xs = xs + [\"x\"] } catch e { print(\"caught\") } } }\n"
    "export fn map() { let m = {} let i = 0 loop { try { m[i] = \"x\" i = i + 1 } catch e { "
    "print(\"caught\") } } }\n"
    "fn down(n) { return 1 + down(n + 1) }\n"
    "export fn deep() { try { return down(0) } catch e { print(\"caught\") } loop { } }\n"
    "fn hold() { task.sleep(1) }\n"
    "export fn crowd() { loop { spawn hold() } }\n"
    "fn fork() { spawn fork() spawn fork() task.sleep(1) }\n"
    "export fn forks() { loop { spawn fork() spawn fork() } }\n"
    "export fn cells() { let all = ref(nil) loop { all.value = ref(all.value) } }\n"
    "fn keep(n) { let xs = [] for i in 0..n { xs = xs + [\"x\"] } task.sleep(1) return xs }\n"
    "export fn spread() { let ts = [] loop { ts = ts + [spawn keep(1000)] } }\n"
    "export fn churn() { for i in 0..300 { let xs = [] for k in 0..20000 { xs = xs + [[k]] } } return 1 }\n"
    "export fn cycles() { for i in 0..400000 { let c = ref(nil) c.value = [c] } return 1 }\n"
    "export fn spawns() { for i in 0..20000 { task.wait(spawn small(i)) } return 1 }\n"
    "fn small(i) { return [i, i, i] }\n"
    "export fn in_defer() { defer { let s = \"x\" loop { s = s + s } } let s = \"x\" loop { s = s + s } }\n"
    "export fn rings() { for i in 0..200 { let c = ref(nil) c.value = [c, large()] } }\n"
    "fn large() { let xs = [0] for i in 0..10 { xs = xs + xs } return xs }\n"
    "export fn answer() { return 42 }\n"
    "export fn main(args) { }\n";

/* Another task waits all the while, and new ones are served between the turns. */
START_TEST(test_bombs)
{
    static const char *const bombs[] = {"text",  "list",  "map",    "deep",    "crowd",
                                        "forks", "cells", "spread", "in_defer"};
    run_source_open(&host, source, VM_BYTES, TASK_BYTES);
    struct run_end brief;
    for (size_t i = 0; i < CY_COUNT_OF(bombs); i++) {
        ck_assert(!cy_failed(run_host_start(&host, bombs[i], NULL, 0, &end, NULL)));
        uint64_t most = 0;
        while (!end.ended) {
            ck_assert(!cy_failed(run_host_start(&host, "answer", NULL, 0, &brief, NULL)));
            (void)vm_run(host.vm);
            run_source_expect(&brief, "42");
            if (host.vm->heap_bytes > most) most = host.vm->heap_bytes;
        }
        ck_assert_msg(end.outcome == CALL_STOPPED && cy_is(end.stop, CY_ERR_STOP_MEMORY), "%s: %d %s",
                      bombs[i], (int)end.outcome, builder_text_view(&host.stopped));
        ck_assert_msg(most < 6 * TASK_BYTES, "%s: %llu bytes", bombs[i], (unsigned long long)most);
        while (vm_run(host.vm) || vm_idle(host.vm)) {}
        ck_assert_msg(host.vm->heap_bytes < TASK_BYTES, "%s left %llu bytes, %llu cells", bombs[i],
                      (unsigned long long)host.vm->heap_bytes, (unsigned long long)host.vm->ref_count);
    }
    ck_assert_str_eq(run_host_printed(&host), "");
    ck_assert_ptr_nonnull(
        strstr(builder_text_view(&host.stopped),
               "memory limit is used up (limit TASK_MEMORY_BYTES: 4194304 bytes)\n  at in_defer"));
    run_host_close(&host);
}
END_TEST

/* Cells that only hold each other, few and large, are found in the idle turns behind their task, however little else
 * happens: here it is exactly one turn. */
START_TEST(test_cycles_that_a_task_leaves_are_found_when_it_has_ended)
{
    run_source_open(&host, source, VM_BYTES, TASK_BYTES);
    ck_assert(!cy_failed(run_host_start(&host, "rings", NULL, 0, &end, NULL)));
    uint64_t before = host.vm->heap_bytes;
    while (!end.ended) (void)vm_run(host.vm);
    ck_assert_int_eq(end.outcome, CALL_RETURNED);
    while (vm_idle(host.vm)) {}
    ck_assert_msg(host.vm->ref_count == 0, "%llu cells, %llu bytes", (unsigned long long)host.vm->ref_count,
                  (unsigned long long)(host.vm->heap_bytes - before));
    run_host_close(&host);
}
END_TEST

START_TEST(test_what_is_let_go_of_counts_no_more)
{
    static const char *const calls[] = {"churn", "cycles", "spawns"};
    run_source_open(&host, source, VM_BYTES, TASK_BYTES);
    for (size_t i = 0; i < CY_COUNT_OF(calls); i++) {
        ck_assert(!cy_failed(run_host_start(&host, calls[i], NULL, 0, &end, NULL)));
        while (vm_run(host.vm) || vm_idle(host.vm)) {}
        run_source_expect(&end, "1");
    }
    run_host_close(&host);
}
END_TEST

/* At the limit and past it: a text of this size is had, one of twice the size is not. */
START_TEST(test_task_memory_bytes)
{
    run_source_open(&host,
                    "export fn make(n) { let s = \"x\" for i in 0..n { s = s + s } return 1 }\n"
                    "export fn main(args) { }\n",
                    0, 0);
    for (int past = 0; past < 2; past++) {
        /* TASK_MEMORY_BYTES is 2^28; doubling in place needs room for both halves only. */
        cy_value n = value_int(27 + past);
        struct fiber *fiber;
        ck_assert(!cy_failed(run_host_start(&host, "make", &n, 1, &end, &fiber)));
        ck_assert_uint_eq(fiber->memory_bytes_max, LIMIT_TASK_MEMORY_BYTES);
        while (vm_run(host.vm)) {}
        if (past)
            run_source_expect_report(
                &end, CALL_STOPPED,
                "the task's memory limit is used up (limit TASK_MEMORY_BYTES: 268435456 bytes)");
        else
            run_source_expect(&end, "1");
    }
    run_host_close(&host);
}
END_TEST

/* The main task has the VM's limit only, which is an error that it may catch. */
START_TEST(test_main_has_no_soft_limit)
{
    run_source_open(&host,
                    "export fn big() { let s = \"x\" for i in 0..25 { s = s + s } return 1 }\n"
                    "export fn main(args) { }\n",
                    VM_BYTES, TASK_BYTES);
    struct fiber *fiber;
    ck_assert(!cy_failed(run_host_start(&host, "big", NULL, 0, &end, &fiber)));
    vm_mark_main(host.vm, fiber);
    while (vm_run(host.vm)) {}
    run_source_expect(&end, "1");
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_memory(void);
Suite *unit_suite_run_memory(void)
{
    Suite *suite = suite_create("run_memory");
    TCase *tests = tcase_create("memory");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_bombs);
    tcase_add_test(tests, test_cycles_that_a_task_leaves_are_found_when_it_has_ended);
    tcase_add_test(tests, test_what_is_let_go_of_counts_no_more);
    tcase_add_test(tests, test_task_memory_bytes);
    tcase_add_test(tests, test_main_has_no_soft_limit);
    suite_add_tcase(suite, tests);
    return suite;
}
