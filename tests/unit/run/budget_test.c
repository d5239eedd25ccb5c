/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/budget_test.c: proves that work inside one step counts against the budget: other tasks run in between,
 * and the CPU allowance ends it.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/run/vm_internal.h"

#include <check.h>

static struct run_host host;
static struct program_builder *b;

static void build_function(const char *name, uint8_t params, uint16_t locals)
{
    pb_export(b, name, EXPORT_FUNCTION, pb_function(b, name, params, params, locals));
    pb_line(b, 10, 5);
}
static cy_value large_text(void)
{
    uint8_t *data;
    cy_value text;
    ck_assert(!cy_failed(string_new_blank(host.vm, 5000000, &text, &data)));
    memset(data, 'x', 5000000);
    return text;
}

/* for ever { let t = s + "y" } is a task among others, and is stopped. */
START_TEST(test_copying_in_a_loop_is_stopped)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
    build_function("main", 1, 2);
    uint32_t again = pb_label(b);
    pb_place(b, again);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_CONST, pb_str(b, "y"));
    pb_op(b, OP_ADD);
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_LOOP, again);
    build_function("short", 0, 0);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
    host.tick_ns = 50 * 1000000;
    struct run_end end, brief;
    cy_value text = large_text();
    ck_assert(!cy_failed(run_host_start(&host, "main", &text, 1, &end, NULL)));
    int turns = 0;
    while (!end.ended) {
        ck_assert(!cy_failed(run_host_start(&host, "short", NULL, 0, &brief, NULL)));
        vm_run(host.vm);
        ck_assert(brief.ended); /* served between two copies */
        ck_assert_int_lt(++turns, 40);
    }
    ck_assert(end.outcome == CALL_STOPPED && cy_is(end.stop, CY_ERR_STOP_CPU));
    run_host_close(&host);
}
END_TEST

/* Main is not: it computes past any task's allowance, until it is cancelled. */
START_TEST(test_main_has_no_cpu_allowance)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
    build_function("main", 0, 0);
    uint32_t again = pb_label(b);
    pb_place(b, again);
    pb_op(b, OP_NIL);
    pb_op(b, OP_POP);
    pb_op(b, OP_LOOP, again);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
    host.tick_ns = 50 * 1000000;
    struct run_end end;
    struct fiber *fiber;
    ck_assert(!cy_failed(run_host_start(&host, "main", NULL, 0, &end, &fiber)));
    vm_mark_main(host.vm, fiber);
    for (int turns = 0; turns < 100; turns++) vm_run(host.vm); /* a task is stopped within 40, see above */
    ck_assert(!end.ended);
    vm_cancel(host.vm, fiber);
    while (!end.ended) vm_run(host.vm);
    ck_assert(end.outcome == CALL_STOPPED && cy_is(end.stop, CY_ERR_STOP_CANCELLED));
    run_host_close(&host);
}
END_TEST

enum step_kind { STEP_JOIN, STEP_SLICE, STEP_TEXT, STEP_LESS, STEP_EQUAL, STEP_LIST, STEP_KINDS };

static void build_step(enum step_kind kind)
{
    pb_op(b, OP_LOCAL_GET, 0);
    switch (kind) {
    case STEP_JOIN:
        pb_op(b, OP_CONST, pb_str(b, "y"));
        pb_op(b, OP_ADD);
        break;
    case STEP_SLICE:
        pb_op(b, OP_INT8, 0);
        pb_op(b, OP_CONST, pb_int(b, 4999999));
        pb_op(b, OP_RANGE);
        pb_op(b, OP_INDEX_GET);
        break;
    case STEP_TEXT: pb_op(b, OP_TEXT, 1); break;
    case STEP_LESS:
        pb_op(b, OP_LOCAL_GET, 1);
        pb_op(b, OP_LT);
        break;
    case STEP_EQUAL:
        pb_op(b, OP_LOCAL_GET, 1);
        pb_op(b, OP_EQ);
        break;
    default: /* unsharing a list of a million */
        pb_op(b, OP_POP);
        pb_op(b, OP_INT8, 1);
        pb_op(b, OP_LOCAL_APPEND, 2);
        pb_op(b, OP_NIL);
        break;
    }
    pb_op(b, OP_POP);
}

/* Without any loop: the next step is another turn. */
START_TEST(test_a_large_step_ends_the_turn)
{
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        b = program_builder_new();
        pb_module(b, "main", "main.han");
        build_function("main", 3, 3);
        build_step((enum step_kind)kind);
        pb_op(b, OP_NIL);
        pb_op(b, OP_RETURN);
        ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
        cy_value args[3] = {large_text(), large_text(), value_nil()}, kept;
        ck_assert(!cy_failed(list_new(host.vm, 0, &args[2])));
        cy_err err = CY_OK;
        for (int i = 0; i < 1000000 && !cy_failed(err); i++)
            err = list_append(host.vm, &args[2], value_int(i));
        ck_assert(!cy_failed(err));
        kept = value_ref(args[2]);
        struct run_end end;
        ck_assert(!cy_failed(run_host_start(&host, "main", args, 3, &end, NULL)));
        ck_assert_msg(vm_run(host.vm) && !end.ended, "step %d", kind);
        while (vm_run(host.vm)) {}
        ck_assert(end.ended && end.outcome == CALL_RETURNED);
        run_end_clear(&end);
        value_unref(host.vm, kept);
        run_host_close(&host);
    }
}
END_TEST

/* A frame of 60,000 locals costs what clearing it does. */
START_TEST(test_large_frames_count)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
    uint32_t large = pb_function(b, "large", 0, 0, 60000);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    build_function("main", 0, 1);
    for (int i = 0; i < 20; i++) {
        pb_op(b, OP_CALL_FUNCTION, large, 0);
        pb_op(b, OP_POP);
    }
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
    struct run_end end;
    ck_assert(!cy_failed(run_host_start(&host, "main", NULL, 0, &end, NULL)));
    int turns = 1;
    while (vm_run(host.vm)) turns++;
    ck_assert(end.ended);
    ck_assert_int_ge(turns, 3);
    run_host_close(&host);
}
END_TEST

/* Raising from a deep stack is charged for the places it notes. */
START_TEST(test_raising_counts)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
    uint32_t down = pb_function(b, "down", 1, 1, 1), up = pb_label(b), caught = pb_label(b);
    pb_export(b, "main", EXPORT_FUNCTION, down);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_JUMP_IF_FALSE, up);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_SUB);
    pb_op(b, OP_CALL_FUNCTION, down, 1);
    pb_op(b, OP_RETURN);
    pb_place(b, up);
    for (int i = 0; i < 100; i++) {
        pb_op(b, OP_TRY_BEGIN, caught);
        pb_op(b, OP_NIL);
        pb_op(b, OP_NEG);
        pb_op(b, OP_POP);
        pb_op(b, OP_TRY_END);
        pb_op(b, OP_NIL);
        pb_place(b, caught);
        pb_op(b, OP_POP);
        caught = pb_label(b);
    }
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_TRY_END);
    pb_op(b, OP_NIL);
    pb_place(b, caught);
    pb_op(b, OP_RETURN);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
    struct run_end end;
    cy_value depth = value_int(100);
    ck_assert(!cy_failed(run_host_start(&host, "main", &depth, 1, &end, NULL)));
    while (vm_run(host.vm)) {}
    ck_assert(end.ended && end.outcome == CALL_RETURNED);
    ck_assert_uint_ge(host.vm->counters.instructions, 100 + 100 * LIMIT_ERROR_PLACES / 8);
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_budget(void);
Suite *unit_suite_run_budget(void)
{
    Suite *suite = suite_create("run_budget");
    TCase *tests = tcase_create("budget");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_copying_in_a_loop_is_stopped);
    tcase_add_test(tests, test_main_has_no_cpu_allowance);
    tcase_add_test(tests, test_a_large_step_ends_the_turn);
    tcase_add_test(tests, test_large_frames_count);
    tcase_add_test(tests, test_raising_counts);
    suite_add_tcase(suite, tests);
    return suite;
}
