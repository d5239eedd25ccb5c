/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/fault_test.c: proves that a failing allocation is an error in the program and nothing worse.
 *
 * Method: one program that touches every kind of value runs again and again, the n-th allocation and all
 *         later ones failing, until it succeeds. Each time the VM must end empty (vm_free checks), and
 *         ASan sees the rest.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/mem.h"

#include <check.h>

static struct program *fault_program(void)
{
    static const char *const fields[] = {"x", "y", NULL};
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    uint32_t record = pb_record(b, "Point", fields), global = pb_global(b, "seen");
    uint32_t child = pb_function(b, "child", 1, 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN);
    uint32_t main_function = pb_function(b, "main", 0, 0, 4);
    pb_line(b, 3, 1);
    pb_export(b, "main", EXPORT_FUNCTION, main_function);
    uint32_t caught = pb_label(b), defer = pb_label(b), again = pb_label(b), done = pb_label(b);
    pb_op(b, OP_LIST, 0);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_MAP, 0);
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_DEFER_BEGIN, defer);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_INT8, 20);
    pb_op(b, OP_INTLOOP_BEGIN);
    pb_place(b, again);
    pb_op(b, OP_INTLOOP_NEXT, 2, done);
    pb_op(b, OP_LOCAL_GET, 2);
    pb_op(b, OP_CONST, pb_str(b, "text "));
    pb_op(b, OP_LOCAL_GET, 2);
    pb_op(b, OP_ADD);
    pb_op(b, OP_RECORD, record, 2);
    pb_op(b, OP_LOCAL_APPEND, 0);
    pb_op(b, OP_LOCAL_GET, 2);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LOCAL_PATH_SET, 1, 1); /* each value shares the list: copies */
    pb_op(b, OP_LOOP, again);
    pb_place(b, done);
    pb_op(b, OP_INTLOOP_END);
    pb_op(b, OP_CLOSURE, child);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_SPAWN, 1);
    pb_op(b, OP_NATIVE, pb_native(b, "task.wait"), 1);
    pb_op(b, OP_REF);
    pb_op(b, OP_GLOBAL_SET, global);
    pb_op(b, OP_CLOSURE, child + 2);
    pb_op(b, OP_LOCAL_SET, 3);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_DIV);
    pb_op(b, OP_POP);
    pb_op(b, OP_TRY_END);
    pb_op(b, OP_DEFER_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_place(b, defer);
    pb_op(b, OP_RETHROW);
    pb_place(b, caught);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_TEXT, 2);
    pb_op(b, OP_NATIVE, pb_native(b, "print"), 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_DEFER_END);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_INT8, 3);
    pb_op(b, OP_RANGE);
    pb_op(b, OP_RETURN);
    uint32_t inner = pb_function(b, "inner", 0, 0, 0);
    ck_assert_uint_eq(inner, child + 2);
    pb_parent(b, main_function);
    pb_capture(b, true, 0);
    pb_op(b, OP_CAPTURE_GET, 0);
    pb_op(b, OP_RETURN);
    return program_builder_finish(&b, true);
}

/* One run with allocation n failing. True when the program came to its end unharmed. */
static bool fault_run(uint64_t n)
{
    struct run_host host;
    struct run_end end = {.outcome = CALL_FAILED};
    struct program *program = fault_program();
    mem_fail_after(n);
    bool good = run_host_open(&host, program, 0);
    if (good && !cy_failed(run_host_start(&host, "main", NULL, 0, &end, NULL))) {
        while (vm_run(host.vm)) {}
        ck_assert(end.ended);
        if (end.outcome == CALL_FAILED) {
            cy_bytes kind = error_kind(host.vm, end.value);
            ck_assert_msg(cy_bytes_equal(kind, CY_BYTES("memory")), "allocation %u: %.*s", (unsigned)n,
                          CY_BYTES_ARG(kind));
        }
        good = end.outcome == CALL_RETURNED && !host.output.failed;
        run_end_clear(&end);
    } else
        good = false;
    mem_fail_never();
    run_host_close(&host);
    return good;
}

START_TEST(test_every_allocation_may_fail)
{
    uint64_t n = 0;
    while (!fault_run(n)) {
        n++;
        ck_assert_uint_lt(n, 5000);
    }
    ck_assert_uint_gt(n, 100);
}
END_TEST

Suite *unit_suite_run_fault(void);
Suite *unit_suite_run_fault(void)
{
    Suite *suite = suite_create("run_fault");
    TCase *tests = tcase_create("fault");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_every_allocation_may_fail);
    suite_add_tcase(suite, tests);
    return suite;
}
