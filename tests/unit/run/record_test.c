/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/record_test.c: proves that a field's rule outlives the type it names, that types which name each
 * other are freed, and that adding at the end of a path obeys the rule.
 */
#include "tests/unit/run/run_host.h"
#include "vm/code/opcode.h"
#include "vm/run/interp_slow.h"
#include "vm/run/record.h"
#include "vm/run/vm_internal.h"

#include <check.h>

#define OK(expression) ck_assert_msg(!cy_failed(expression), "%s", #expression)

static struct run_host host;

static struct record_shape *record_test_shape(const char *name)
{
    const cy_bytes field = CY_BYTES("f");
    struct record_shape *shape;
    OK(record_shape_new(host.vm, NULL, cy_bytes_from_text(name), &field, 1, &shape));
    return shape;
}

static cy_value record_test_make(struct record_shape *shape, cy_value field)
{
    cy_value record;
    OK(record_new(host.vm, shape, &field, &record));
    return record;
}

/* The message of what was raised. */
static void record_test_expect(bool done, const char *wanted)
{
    ck_assert(!done);
    cy_value error = host.vm->raised;
    host.vm->raised = value_nil();
    ck_assert(cy_bytes_equal(error_kind(host.vm, error), CY_BYTES("type")));
    cy_bytes message = error_message(host.vm, error);
    ck_assert_msg(cy_bytes_equal(message, cy_bytes_from_text(wanted)), "%.*s", CY_BYTES_ARG(message));
    value_unref(host.vm, error);
}

START_TEST(test_a_rule_outlives_its_type)
{
    ck_assert(run_host_open(&host, NULL, 0));
    struct record_shape *inner = record_test_shape("Inner"), *outer = record_test_shape("Outer");
    OK(record_shape_rule(host.vm, outer, 0, RECORD_FIELD_KIND(KIND_RECORD), inner));
    cy_value good = record_test_make(inner, value_int(1));
    ck_assert(record_check_field(host.vm, outer, 0, good));
    cy_value holder = record_test_make(outer, good); /* keeps both types */
    record_shape_unref(host.vm, outer);
    record_shape_unref(host.vm, inner);
    ck_assert(record_check_field(host.vm, record_of(holder)->shape, 0, record_of(holder)->fields[0]));

    /* Now the inner type goes, and others come, one of them perhaps at its address. */
    slow_clear(host.vm, &record_of(holder)->fields[0]);
    for (int i = 0; i < 4; i++) {
        struct record_shape *other = record_test_shape("Inner");
        cy_value bad = record_test_make(other, value_int(1));
        record_test_expect(record_check_field(host.vm, record_of(holder)->shape, 0, bad),
                           "Outer field \"f\" must be Inner, not Inner");
        value_unref(host.vm, bad);
        record_shape_unref(host.vm, other);
    }
    value_unref(host.vm, holder);
    run_host_close(&host); /* checks that nothing is left */
}
END_TEST

START_TEST(test_types_that_name_each_other_are_freed)
{
    ck_assert(run_host_open(&host, NULL, 0));
    struct record_shape *a = record_test_shape("A"), *b = record_test_shape("B");
    OK(record_shape_rule(host.vm, a, 0, RECORD_FIELD_KIND(KIND_RECORD), b));
    OK(record_shape_rule(host.vm, b, 0, RECORD_FIELD_KIND(KIND_RECORD), a));
    record_shape_unref(host.vm, a);
    record_shape_unref(host.vm, b);
    run_host_close(&host);
}
END_TEST

/* record[slots[0]] = that + slots[1], as a step does it. */
static bool record_test_add(cy_value *record, cy_value *slots)
{
    const struct run_step step = {.op = RUN_INDEX_ADD, .x = RUN_OWN_B};
    return slow_index_add(host.vm, slots, record, &step, slow_take(&slots[1]));
}

START_TEST(test_adding_obeys_the_rule)
{
    ck_assert(run_host_open(&host, NULL, 0));
    struct record_shape *shape = record_test_shape("R");
    OK(record_shape_rule(host.vm, shape, 0, RECORD_FIELD_KIND(KIND_INT), NULL));
    cy_value record = record_test_make(shape, value_int(1)), name, slots[2];
    OK(string_new(host.vm, CY_BYTES("f"), &name));
    const cy_value added[] = {value_float(0.5), value_bool(true), name};
    const char *const refused[] = {"R field \"f\" must be int, not float",
                                   "'+' does not work between int and bool",
                                   "R field \"f\" must be int, not str"};
    for (int i = 0; i < 3; i++) {
        slots[0] = value_ref(name);
        slots[1] = value_ref(added[i]);
        record_test_expect(record_test_add(&record, slots), refused[i]);
        ck_assert_int_eq(record_of(record)->fields[0].tag, TAG_INT);
        ck_assert_int_eq(record_of(record)->fields[0].as.i, 1);
        value_unref(host.vm, slots[0]); /* a failed write leaves the key */
    }
    slots[0] = value_ref(name);
    slots[1] = value_int(41);
    ck_assert(record_test_add(&record, slots));
    ck_assert_int_eq(record_of(record)->fields[0].as.i, 42);
    value_unref(host.vm, name);
    value_unref(host.vm, record);
    record_shape_unref(host.vm, shape);
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_record(void);
Suite *unit_suite_run_record(void)
{
    Suite *suite = suite_create("run/record");
    TCase *tests = tcase_create("record");
    tcase_add_test(tests, test_a_rule_outlives_its_type);
    tcase_add_test(tests, test_types_that_name_each_other_are_freed);
    tcase_add_test(tests, test_adding_obeys_the_rule);
    suite_add_tcase(suite, tests);
    return suite;
}
