/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/error_value_test.c: proves that errors remember what they were made from, and format their places
 * when somebody reads them.
 */
#include "tests/unit/run/run_host.h"
#include "vm/run/record.h"
#include "vm/run/vm_internal.h"

#include <check.h>

static struct run_host host;
static struct program_builder *b;

/* main raises in `level` frames; "read" catches and gives error.stack; "equal" compares the error with itself in a
 * list; "write" sets stack[0]. */
static void error_open(void)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
    uint32_t inner = pb_function(b, "inner", 0, 0, 0);
    pb_line(b, 3, 1);
    pb_op(b, OP_NIL);
    pb_op(b, OP_NEG);
    pb_op(b, OP_RETURN);
    pb_export(b, "main", EXPORT_FUNCTION, pb_function(b, "main", 0, 0, 0));
    pb_line(b, 7, 2);
    pb_op(b, OP_CALL_FUNCTION, inner, 0);
    pb_op(b, OP_RETURN);
    static const char *const names[] = {"read", "write", "text"};
    for (int i = 0; i < 3; i++) {
        pb_export(b, names[i], EXPORT_FUNCTION, pb_function(b, names[i], 0, 0, 1));
        pb_line(b, 9, 2);
        uint32_t caught = pb_label(b);
        pb_op(b, OP_TRY_BEGIN, caught);
        pb_op(b, OP_CALL_FUNCTION, inner, 0);
        pb_op(b, OP_RETURN);
        pb_place(b, caught);
        pb_op(b, OP_LOCAL_SET, 0);
        if (i == 0) {
            pb_op(b, OP_LOCAL_GET, 0);
            pb_op(b, OP_FIELD_GET, pb_str(b, "stack"));
        } else if (i == 1) {
            pb_op(b, OP_CONST, pb_str(b, "stack"));
            pb_op(b, OP_INT8, 1);
            pb_op(b, OP_CONST, pb_str(b, "mine"));
            pb_op(b, OP_LOCAL_PATH_SET, 0, 2);
            pb_op(b, OP_LOCAL_GET, 0);
            pb_op(b, OP_FIELD_GET, pb_str(b, "stack"));
        } else {
            pb_op(b, OP_LOCAL_GET, 0);
            pb_op(b, OP_TEXT, 1);
        }
        pb_op(b, OP_RETURN);
    }
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
}

static void run_named(const char *name, struct run_end *end)
{
    ck_assert(!cy_failed(run_host_start(&host, name, NULL, 0, end, NULL)));
    while (vm_run(host.vm)) {}
    ck_assert(end->ended);
}

START_TEST(test_places_are_formatted_when_they_are_read)
{
    error_open();
    struct run_end end;
    run_named("main", &end);
    ck_assert_int_eq(end.outcome, CALL_FAILED);
    ck_assert_int_eq(record_of(end.value)->fields[ERROR_FIELD_STACK].tag, TAG_OPAQUE); /* numbers so far */
    cy_value stack = error_stack(host.vm, end.value);
    ck_assert_int_eq(stack.tag, TAG_LIST);
    ck_assert_str_eq(run_host_text(&host, stack), "[\"inner (main.han:3:1)\", \"main (main.han:7:2)\"]");
    ck_assert(error_stack(host.vm, end.value).as.object == stack.as.object); /* once */
    run_end_clear(&end);
    run_named("read", &end);
    ck_assert_str_eq(run_host_text(&host, end.value), "[\"inner (main.han:3:1)\", \"read (main.han:9:2)\"]");
    run_end_clear(&end);
    run_named("write", &end);
    ck_assert_str_eq(run_host_text(&host, end.value), "[\"inner (main.han:3:1)\", \"mine\"]");
    run_end_clear(&end);
    run_named("text", &end);
    ck_assert_ptr_nonnull(strstr(run_host_text(&host, end.value), "stack: [\"inner (main.han:3:1)\""));
    run_end_clear(&end);
    run_host_close(&host);
}
END_TEST

/* Two errors of one place are equal, read or unread; one may be a key. */
START_TEST(test_unread_places_compare_and_hash)
{
    error_open();
    struct run_end first, second;
    run_named("main", &first);
    run_named("main", &second);
    error_stack(host.vm, first.value);
    ck_assert(value_equal(host.vm, first.value, second.value));
    run_end_clear(&second);
    run_named("main", &second);
    cy_value map, value;
    bool found;
    ck_assert(!cy_failed(map_new(host.vm, 0, &map)));
    ck_assert(!cy_failed(map_set(host.vm, &map, value_ref(second.value), value_int(1))));
    ck_assert(!cy_failed(map_get(host.vm, map, first.value, &found, &value)) && found);
    value_unref(host.vm, map);
    run_end_clear(&first);
    run_end_clear(&second);
    run_host_close(&host);
}
END_TEST

/* An error that nobody read outlives its instance. */
START_TEST(test_places_outlive_the_instance)
{
    error_open();
    struct run_end end;
    run_named("main", &end);
    instance_unref(host.vm, &host.instance);
    ck_assert_uint_eq(list_count(error_stack(host.vm, end.value)), 2);
    run_end_clear(&end);
    ck_assert_ptr_null(host.vm->instances);
    run_host_close(&host);
}
END_TEST

/* What was refused by us is told from what a program calls so. */
START_TEST(test_reason)
{
    ck_assert(run_host_open(&host, NULL, 0));
    cy_value error;
    ck_assert(!cy_failed(error_new(host.vm, CY_ERR(CAPABILITY), CY_BYTES("no"), value_nil(), &error)));
    ck_assert(cy_is(error_reason(host.vm, error), CY_ERR_CAPABILITY));
    value_unref(host.vm, error);
    static const struct {
        const char *kind;
        enum cy_err_code reason;
    } rows[] = {
        {"capability", CY_ERR_THROWN}, {"memory", CY_ERR_THROWN}, {"configuration", CY_ERR_CONFIGURATION}};
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        cy_bytes kind = cy_bytes_from_text(rows[i].kind);
        ck_assert(!cy_failed(error_new_of_kind(host.vm, kind, CY_BYTES("x"), value_nil(), &error)));
        ck_assert(cy_is(error_reason(host.vm, error), rows[i].reason));
        value_unref(host.vm, error);
    }
    ck_assert(cy_is(error_reason(host.vm, value_int(1)), CY_ERR_THROWN));
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_error_value(void);
Suite *unit_suite_run_error_value(void)
{
    Suite *suite = suite_create("run_error_value");
    TCase *tests = tcase_create("error_value");
    tcase_add_test(tests, test_places_are_formatted_when_they_are_read);
    tcase_add_test(tests, test_unread_places_compare_and_hash);
    tcase_add_test(tests, test_places_outlive_the_instance);
    tcase_add_test(tests, test_reason);
    suite_add_tcase(suite, tests);
    return suite;
}
