/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/instance_extend_test.c: proves that an instance goes over to a longer program with its variables,
 * closures and record types, that one which does not begin alike is refused, and that a failure changes nothing.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/mem.h"
#include "vm/run/code.h"
#include "vm/run/vm_internal.h"

#include <check.h>

static struct run_host host;

enum variant { FIRST, LONGER, OTHER_CODE };

/* main: `kept` is a variable, make() a closure over 5 with a record P(a) behind it. LONGER has a module more that calls
 * what `kept` holds. */
static struct program *program(enum variant variant)
{
    static const char *const fields[] = {"a", NULL};
    struct program_builder *b = program_builder_new();
    pb_module(b, "one", "one.han");
    uint32_t kept = pb_global(b, "kept"), record = pb_record(b, "P", fields);
    uint32_t make = pb_function(b, "make", 0, 0, 1);
    pb_line(b, 1, 1);
    pb_op(b, OP_INT8, variant == OTHER_CODE ? 6 : 5);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_CLOSURE, make + 1);
    pb_op(b, OP_GLOBAL_SET, kept);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_function(b, "inner", 0, 0, 0);
    pb_parent(b, make);
    pb_capture(b, true, 0);
    pb_line(b, 2, 1);
    pb_op(b, OP_CAPTURE_GET, 0);
    pb_op(b, OP_RECORD, record, 1);
    pb_op(b, OP_RETURN);
    pb_export(b, "main", EXPORT_FUNCTION, make);
    if (variant == LONGER) {
        pb_module(b, "two", "two.han");
        uint32_t own = pb_global(b, "own");
        uint32_t init = pb_function(b, "", 0, 0, 0);
        pb_line(b, 1, 1);
        pb_op(b, OP_CONST, pb_str(b, "own"));
        pb_op(b, OP_GLOBAL_SET, own);
        pb_op(b, OP_NIL);
        pb_op(b, OP_RETURN);
        pb_init(b, init);
        pb_export(b, "main", EXPORT_FUNCTION, pb_function(b, "main", 0, 0, 0));
        pb_line(b, 2, 1);
        pb_op(b, OP_GLOBAL_GET, kept);
        pb_op(b, OP_CALL, 0);
        pb_op(b, OP_GLOBAL_GET, own);
        pb_op(b, OP_LIST, 2);
        pb_op(b, OP_RETURN);
    }
    return program_builder_finish(&b, true);
}

static void open_first(void)
{
    ck_assert(run_host_open(&host, program(FIRST), 0));
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert(end.outcome == CALL_RETURNED);
}

static void initialised(struct vm *vm, void *context, enum call_outcome outcome, cy_value value, cy_err stop)
{
    (void)vm, (void)value, (void)stop;
    *(bool *)context = outcome == CALL_RETURNED;
}

START_TEST(test_what_was_made_before_goes_on)
{
    open_first();
    struct program *longer = program(LONGER), *old = host.program;
    struct record_shape *shape = host.instance->shapes[0];
    ck_assert(!cy_failed(instance_extend(host.vm, host.instance, longer, NULL)));
    host.program = longer;
    program_free(&old); /* nothing points into it */
    ck_assert_ptr_eq(host.instance->shapes[0], shape);
    bool started, good = false;
    ck_assert(!cy_failed(
        instance_start_initialiser(host.vm, host.instance, 1, initialised, &good, NULL, &started)));
    ck_assert(started);
    while (vm_run(host.vm)) {}
    ck_assert(good);
    ck_assert(!cy_failed(
        instance_start_initialiser(host.vm, host.instance, 0, initialised, &good, NULL, &started)));
    ck_assert(!started); /* module one has none */
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert(end.outcome == CALL_RETURNED);
    ck_assert_str_eq(run_host_text(&host, end.value), "[P(a: 5), \"own\"]");
    run_end_clear(&end);
    run_host_close(&host);
}
END_TEST

START_TEST(test_another_program_is_refused)
{
    open_first();
    struct program *other = program(OTHER_CODE);
    ck_assert(cy_is(instance_extend(host.vm, host.instance, other, NULL), CY_ERR_BAD_FORMAT));
    program_free(&other);
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert(end.outcome == CALL_RETURNED);
    run_host_close(&host);
}
END_TEST

START_TEST(test_without_memory_nothing_has_changed)
{
    open_first();
    struct program *longer = program(LONGER);
    const struct code_function *functions = host.instance->functions;
    uint64_t bytes = host.vm->heap_bytes;
    bool worked = false;
    uint64_t n = 0;
    for (; !worked && n < 200; n++) {
        cy_value error;
        mem_fail_after(n);
        cy_err err = instance_extend(host.vm, host.instance, longer, &error);
        mem_fail_never();
        worked = !cy_failed(err);
        value_unref(host.vm, error);
        if (worked) break;
        ck_assert_ptr_eq(host.instance->functions, functions);
        ck_assert_uint_eq(host.vm->heap_bytes, bytes);
    }
    ck_assert(worked && n > 5);
    struct program *old = host.program;
    host.program = longer;
    program_free(&old);
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_instance_extend(void);
Suite *unit_suite_run_instance_extend(void)
{
    Suite *suite = suite_create("run_instance_extend");
    TCase *tests = tcase_create("instance_extend");
    tcase_add_test(tests, test_what_was_made_before_goes_on);
    tcase_add_test(tests, test_another_program_is_refused);
    tcase_add_test(tests, test_without_memory_nothing_has_changed);
    suite_add_tcase(suite, tests);
    return suite;
}
