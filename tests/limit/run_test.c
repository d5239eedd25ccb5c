/* SPDX-License-Identifier: MIT
 *
 * tests/limit/run_test.c: proves that the limits of running programs hold at their value, and one past it
 * end in an error that names the row. Programs are compiled from source, so that a limit is met the way a
 * user meets it.
 *
 * Not here: limits that a unit test of their module stands at already; rows_test.py lists where each is.
 */
#include "tests/unit/compiler/compile_text.h"
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"
#include "vm/run/handle.h"
#include "vm/run/heap.h"

#include <check.h>
#include <stdio.h>

static struct run_host host;

static void limit_open(const char *source, uint64_t memory_bytes_max)
{
    struct compile_text test;
    compile_text_init(&test, cy_bytes_from_text(source));
    compile_text_run(&test);
    ck_assert_msg(test.program, "%s", builder_text_view(&test.messages));
    struct program *program = test.program;
    test.program = NULL;
    compile_text_fini(&test);
    ck_assert(run_host_open(&host, program, memory_bytes_max));
}

/* Calls an exported function with one int and runs it to its end. */
static void limit_call(const char *name, int64_t argument, struct run_end *end)
{
    cy_value value = value_int(argument);
    ck_assert(!cy_failed(run_host_start(&host, name, &value, 1, end, NULL)));
    while (vm_run(host.vm)) {}
    ck_assert(end->ended);
}

static void limit_expect_returned(struct run_end *end)
{
    if (end->outcome == CALL_FAILED) ck_abort_msg("failed: %s", run_host_text(&host, end->value));
    ck_assert_int_eq(end->outcome, CALL_RETURNED);
    run_end_clear(end);
}

static void limit_expect_failed(struct run_end *end, const char *words)
{
    ck_assert_int_eq(end->outcome, CALL_FAILED);
    const char *text = run_host_text(&host, end->value);
    ck_assert_msg(strstr(text, words), "\"%s\" is not in: %.300s", words, text);
    run_end_clear(end);
}

/* down(n) has n + 1 frames. */
START_TEST(test_call_depth)
{
    limit_open(
        "export fn down(n) { if n > 0 { return down(n - 1) + 1 } return 0 }\nexport fn main(args) { }\n", 0);
    struct run_end end;
    limit_call("down", LIMIT_CALL_DEPTH - 1, &end);
    ck_assert_int_eq(end.value.as.i, LIMIT_CALL_DEPTH - 1);
    limit_expect_returned(&end);
    limit_call("down", LIMIT_CALL_DEPTH, &end);
    limit_expect_failed(&end, "limit CALL_DEPTH: 100000");
    run_host_close(&host);
}
END_TEST

/* One fiber's stack, asked for as calls do; and a program whose frames are large, for the words. */
START_TEST(test_fiber_stack_bytes)
{
    struct builder text;
    builder_init(&text);
    for (int pass = 0; pass < 3; pass++) {
        if (pass == 0) builder_text(&text, "export fn deep(");
        if (pass == 1) builder_text(&text, ") { return deep(");
        if (pass == 2) builder_text(&text, ") }\nexport fn main(n) { return deep(");
        for (int i = 0; i < LIMIT_FUNCTION_PARAMS; i++)
            builder_printf(&text, pass == 2 ? "%sn" : "%sp%d", i ? "," : "", i);
    }
    builder_text(&text, ") }\n");
    limit_open(builder_text_view(&text), 0);
    builder_fini(&text);
    struct run_end end;
    limit_call("main", 1, &end);
    limit_expect_failed(&end, "limit FIBER_STACK_BYTES: 268435456");

    struct fiber *fiber;
    ck_assert(!cy_failed(fiber_new(host.vm, host.instance, &fiber)));
    uint32_t slots = LIMIT_FIBER_STACK_BYTES / sizeof(cy_value);
    ck_assert(cy_is(fiber_reserve(fiber, fiber->stack, slots + 1), CY_ERR_TOO_LARGE));
    ck_assert(!cy_failed(fiber_reserve(fiber, fiber->stack, slots)));
    fiber_recycle(host.vm, fiber);
    run_host_close(&host);
}
END_TEST

/* nest(n) is a list in a list, n levels: shown whole at the limit, cut past it. As a key it is refused. == goes
 * on. */
START_TEST(test_value_depth)
{
    limit_open("export fn nest(n) { let x = [] for i in 1..n { x = [x] } return x }\n"
               "export fn same(n) { return nest(n) == nest(n) }\n"
               "export fn key(n) { let m = {} m[nest(n)] = 1 }\nexport fn main(args) { }\n",
               0);
    struct run_end end;
    for (int past = 0; past < 2; past++) {
        limit_call("nest", LIMIT_VALUE_DEPTH + past, &end);
        const char *text = run_host_text(&host, end.value);
        ck_assert_uint_eq(strlen(text), 2 * (size_t)(LIMIT_VALUE_DEPTH + past) + (past ? strlen("…") : 0));
        ck_assert_int_eq(strstr(text, "…") != NULL, past);
        limit_expect_returned(&end);
    }
    for (int past = 0; past < 2; past++) {
        limit_call("same", LIMIT_VALUE_DEPTH + past, &end);
        ck_assert(end.value.as.b); /* == has no such limit */
        limit_expect_returned(&end);
    }
    limit_call("key", LIMIT_VALUE_DEPTH, &end);
    limit_expect_returned(&end);
    limit_call("key", LIMIT_VALUE_DEPTH + 1, &end);
    limit_expect_failed(&end, "VALUE_DEPTH");
    run_host_close(&host);
}
END_TEST

/* Told apart from want of memory without ever having that much. */
START_TEST(test_string_bytes_and_list_items)
{
    limit_open("export fn main(args) { }\n", 1 << 20);
    cy_value value;
    uint8_t *data;
    const size_t string_max = LIMIT_STRING_BYTES, list_max = LIMIT_LIST_ITEMS;
    ck_assert(cy_is(string_new_blank(host.vm, string_max, &value, &data), CY_ERR_NO_MEMORY));
    ck_assert(cy_is(string_new_blank(host.vm, string_max + 1, &value, &data), CY_ERR_TOO_LARGE));
    ck_assert(cy_is(list_new(host.vm, list_max, &value), CY_ERR_NO_MEMORY));
    ck_assert(cy_is(list_new(host.vm, list_max + 1, &value), CY_ERR_TOO_LARGE));
    ck_assert(cy_is(map_new(host.vm, list_max, &value), CY_ERR_NO_MEMORY));
    ck_assert(cy_is(map_new(host.vm, list_max + 1, &value), CY_ERR_TOO_LARGE));
    run_host_close(&host);
}
END_TEST

/* spin(n) takes n back edges: within the budget it ends in its first turn. */
START_TEST(test_budget_steps)
{
    limit_open(
        "export fn spin(n) { let i = 0 while i < n { i = i + 1 } return i }\nexport fn main(args) { }\n", 0);
    for (int past = 0; past < 2; past++) {
        cy_value steps = value_int(LIMIT_BUDGET_STEPS + past);
        struct run_end end;
        ck_assert(!cy_failed(run_host_start(&host, "spin", &steps, 1, &end, NULL)));
        ck_assert_int_eq(vm_run(host.vm), past);
        ck_assert_int_eq(end.ended, !past);
        while (vm_run(host.vm)) {}
        ck_assert_int_eq(end.value.as.i, LIMIT_BUDGET_STEPS + past);
        limit_expect_returned(&end);
    }
    run_host_close(&host);
}
END_TEST

/* The first turn of a burst is not measured; the second takes all of the allowance, or 1 ms more. */
START_TEST(test_cpu_burst_ms)
{
    for (int past = 0; past < 2; past++) {
        limit_open("export fn main(args) { while true { } }\n", 0);
        host.tick_ns = (uint64_t)(LIMIT_CPU_BURST_MS + past) * 1000000u;
        struct run_end end;
        struct fiber *fiber;
        cy_value nothing = value_nil();
        ck_assert(!cy_failed(run_host_start(&host, "main", &nothing, 1, &end, &fiber)));
        for (int turn = 0; turn < 3; turn++) vm_run(host.vm);
        ck_assert_int_eq(end.ended, past);
        if (past) {
            ck_assert_int_eq(end.outcome, CALL_STOPPED);
            ck_assert(cy_is(end.stop, CY_ERR_STOP_CPU));
            ck_assert_ptr_nonnull(strstr(cy_err_text(end.stop, false), "CPU allowance"));
        }
        run_host_close(&host);
    }
}
END_TEST

/* Stopped in its second turn, a defer has that turn and no other when it takes more than the allowance. */
START_TEST(test_defer_allowance_ms)
{
    for (int past = 0; past < 2; past++) {
        limit_open("export fn main(args) { defer { while true { } } while true { } }\n", 0);
        host.tick_ns = (uint64_t)(LIMIT_DEFER_ALLOWANCE_MS + past) * 1000000u;
        struct run_end end;
        struct fiber *fiber;
        cy_value nothing = value_nil();
        ck_assert(!cy_failed(run_host_start(&host, "main", &nothing, 1, &end, &fiber)));
        vm_run(host.vm);
        vm_cancel(host.vm, fiber);
        for (int turn = 0; turn < 2; turn++) vm_run(host.vm);
        ck_assert_int_eq(end.ended, past);
        vm_run(host.vm);
        ck_assert(end.ended);
        ck_assert(cy_is(end.stop, CY_ERR_STOP_CANCELLED));
        run_host_close(&host);
    }
}
END_TEST

START_TEST(test_vm_memory_bytes)
{
    limit_open("export fn grow(n) { let x = \"12345678\" for i in 0..n { x = x + x } return x }\n"
               "export fn main(args) { }\n",
               0);
    struct vm_counters counters;
    vm_read_counters(host.vm, &counters);
    size_t left = (size_t)LIMIT_VM_MEMORY_BYTES - counters.heap_bytes;
    ck_assert_ptr_null(heap_alloc(host.vm, left + 1));
    void *block = heap_alloc(host.vm, left); /* address space: nothing touches it */
    ck_assert_ptr_nonnull(block);
    heap_free(host.vm, block, left);
    run_host_close(&host);

    limit_open("export fn grow(n) { let x = \"12345678\" for i in 0..n { x = x + x } return x }\n"
               "export fn main(args) { }\n",
               1 << 20);
    struct run_end end;
    limit_call("grow", 40, &end);
    limit_expect_failed(&end, "limit of this VM: 1048576 bytes");
    run_host_close(&host);
}
END_TEST

/* The table of fibers is made to look full: a million of them would take longer than they prove. */
START_TEST(test_tasks)
{
    limit_open("fn nothing() { }\nexport fn start(n) { for i in 0..n { spawn nothing() } }\n"
               "export fn main(args) { }\n",
               0);
    struct run_end end;
    limit_call("start", 10, &end);
    limit_expect_returned(&end);
    uint32_t count = host.vm->fiber_count;
    host.vm->fiber_count = LIMIT_TASKS;
    limit_call("start", (int64_t)count - 1, &end); /* the others of the pool; one is the caller */
    limit_expect_returned(&end);
    limit_call("start", (int64_t)count, &end);
    limit_expect_failed(&end, "TASKS: 1048576");
    host.vm->fiber_count = count;
    run_host_close(&host);
}
END_TEST

START_TEST(test_handles)
{
    static const struct handle_type type = {.name = "thing"};
    limit_open("fn nothing() { }\nexport fn start(n) { spawn nothing() }\nexport fn main(args) { }\n", 0);
    cy_value handle, first = value_nil();
    for (int i = 0; i < LIMIT_HANDLES; i++) {
        ck_assert(!cy_failed(handle_open(host.vm, &type, &host, NULL, &handle)));
        if (i == 0) first = handle;
    }
    ck_assert(cy_is(handle_open(host.vm, &type, &host, NULL, &handle), CY_ERR_TOO_MANY));
    struct run_end end;
    limit_call("start", 1, &end);
    limit_expect_failed(&end, "HANDLES: 1048576");
    handle_close(host.vm, first);
    ck_assert(!cy_failed(handle_open(host.vm, &type, &host, NULL, &handle)));
    run_host_close(&host);
}
END_TEST

/* down(n) fails in n + 1 frames: at the limit all of them stand in the error, past it the rest is a count. */
START_TEST(test_error_places)
{
    limit_open("export fn down(n) { if n > 0 { return down(n - 1) + 1 } throw \"bottom\" }\n"
               "export fn main(args) { }\n",
               0);
    for (int past = 0; past < 3; past++) {
        struct run_end end;
        limit_call("down", LIMIT_ERROR_PLACES - 1 + past, &end);
        cy_value places = error_stack(host.vm, end.value);
        ck_assert_uint_eq(list_count(places), (size_t)(LIMIT_ERROR_PLACES + (past > 0)));
        struct builder text;
        builder_init(&text);
        vm_describe_error(host.vm, end.value, &text);
        char words[32];
        snprintf(words, sizeof words, "%d more", past);
        ck_assert_int_eq(strstr(builder_text_view(&text), words) != NULL, past > 0);
        builder_fini(&text);
        run_end_clear(&end);
    }
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_limit_run(void);
Suite *unit_suite_limit_run(void)
{
    Suite *suite = suite_create("limit/run");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60); /* a hundred thousand frames, a million handles: under sanitizers too */
    tcase_add_test(tests, test_call_depth);
    tcase_add_test(tests, test_fiber_stack_bytes);
    tcase_add_test(tests, test_value_depth);
    tcase_add_test(tests, test_string_bytes_and_list_items);
    tcase_add_test(tests, test_budget_steps);
    tcase_add_test(tests, test_cpu_burst_ms);
    tcase_add_test(tests, test_defer_allowance_ms);
    tcase_add_test(tests, test_vm_memory_bytes);
    tcase_add_test(tests, test_tasks);
    tcase_add_test(tests, test_handles);
    tcase_add_test(tests, test_error_places);
    suite_add_tcase(suite, tests);
    return suite;
}
