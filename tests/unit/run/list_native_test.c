/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/list_native_test.c: proves what natives build and change lists with: for every way of storing items,
 * shared lists are copied first, references are kept, and what does not fit is said.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/run/object.h"

#include <check.h>

static struct run_host host;
static void list_native_test_open(void) { ck_assert(run_host_open(&host, NULL, 0)); }
static void list_native_test_close(void) { run_host_close(&host); }

static cy_value list_native_test_text(const char *bytes)
{
    cy_value value;
    ck_assert(!cy_failed(string_new(host.vm, cy_bytes_from_text(bytes), &value)));
    return value;
}

/* One list of each way of storing items, two items each. */
static cy_value list_native_test_list(int kind)
{
    cy_value list, *values;
    int64_t *ints;
    double *floats;
    switch (kind) {
    case 0:
        ck_assert(!cy_failed(list_new_ints(host.vm, 2, &list, &ints)));
        ints[0] = 1;
        ints[1] = 2;
        break;
    case 1:
        ck_assert(!cy_failed(list_new_floats(host.vm, 2, &list, &floats)));
        floats[0] = 1;
        floats[1] = 2;
        break;
    case 2: ck_assert(!cy_failed(list_new_bytes(host.vm, CY_BYTES("\1\2"), &list))); break;
    default:
        ck_assert(!cy_failed(list_new_values(host.vm, 2, &list, &values)));
        values[0] = value_int(1);
        values[1] = value_int(2);
        break;
    }
    return list;
}

static void list_native_test_shows(cy_value owned_list, const char *shown)
{
    ck_assert_str_eq(run_host_text(&host, owned_list), shown);
    value_unref(host.vm, owned_list);
}

START_TEST(test_views_know_their_kind)
{
    for (int kind = 0; kind < 4; kind++) {
        cy_value list = list_native_test_list(kind);
        ck_assert_int_eq(list_ints(list) != NULL, kind == 0);
        ck_assert_int_eq(list_floats(list) != NULL, kind == 1);
        ck_assert_int_eq(list_values(list) != NULL, kind == 3);
        value_unref(host.vm, list);
    }
    cy_value empty, *values;
    int64_t *ints;
    ck_assert(!cy_failed(list_new_ints(host.vm, 0, &empty, &ints)));
    ck_assert(list_ints(empty) == NULL && list_count(empty) == 0);
    ck_assert(!cy_failed(list_append(host.vm, &empty, list_native_test_text("x")))); /* any kind may follow */
    list_native_test_shows(empty, "[\"x\"]");
    /* Not filled yet is nil: a half-made list can be let go. */
    ck_assert(!cy_failed(list_new_values(host.vm, 2, &empty, &values)));
    list_native_test_shows(empty, "[nil, nil]");
}
END_TEST

START_TEST(test_insert_and_remove)
{
    static const char *const inserted[] = {"[1, 9, 2]", "[1.0, 9, 2.0]", "[1, 9, 2]", "[1, 9, 2]"};
    for (int kind = 0; kind < 4; kind++) {
        cy_value list = list_native_test_list(kind), shared = value_ref(list);
        ck_assert(!cy_failed(list_insert(host.vm, &list, 1, value_int(9))));
        list_native_test_shows(value_ref(list), inserted[kind]);
        ck_assert(!cy_failed(list_insert(host.vm, &list, 3, list_native_test_text("end"))));
        ck_assert(!cy_failed(list_remove_at(host.vm, &list, 0)));
        ck_assert(!cy_failed(list_remove_at(host.vm, &list, 0)));
        list_native_test_shows(list, kind == 1 ? "[2.0, \"end\"]" : "[2, \"end\"]");
        list_native_test_shows(shared, kind == 1 ? "[1.0, 2.0]" : "[1, 2]");
    }
}
END_TEST

START_TEST(test_removing_the_last_lets_it_go)
{
    cy_value list, item = list_native_test_text("held"), *values;
    ck_assert(!cy_failed(list_new_values(host.vm, 1, &list, &values)));
    values[0] = value_ref(item);
    ck_assert_uint_eq(item.as.object->refs, 2);
    ck_assert(!cy_failed(list_remove_at(host.vm, &list, 0)));
    ck_assert_uint_eq(item.as.object->refs, 1);
    ck_assert_uint_eq(list_count(list), 0);
    ck_assert(!cy_failed(list_append(host.vm, &list, value_int(1))));
    list_native_test_shows(list, "[1]");
    value_unref(host.vm, item);
}
END_TEST

START_TEST(test_append_all)
{
    for (int kind = 0; kind < 4; kind++) {
        cy_value list = list_native_test_list(kind), more = list_native_test_list(3 - kind);
        ck_assert(!cy_failed(list_append_all(host.vm, &list, more)));
        ck_assert_uint_eq(list_count(list), 4);
        ck_assert(!cy_failed(list_append_all(host.vm, &list, list))); /* itself */
        ck_assert_uint_eq(list_count(list), 8);
        value_unref(host.vm, list);
        value_unref(host.vm, more);
    }
}
END_TEST

START_TEST(test_sizes_are_bounded)
{
    cy_value list, *values;
    int64_t *ints;
    double *floats;
    ck_assert(cy_is(list_new_ints(host.vm, (size_t)LIMIT_LIST_ITEMS + 1, &list, &ints), CY_ERR_TOO_LARGE));
    ck_assert(
        cy_is(list_new_floats(host.vm, (size_t)LIMIT_LIST_ITEMS + 1, &list, &floats), CY_ERR_TOO_LARGE));
    ck_assert(cy_is(list_new_values(host.vm, SIZE_MAX, &list, &values), CY_ERR_TOO_LARGE));
    /* Past the VM's memory: refused before it is asked for. */
    ck_assert(cy_is(list_new_values(host.vm, LIMIT_LIST_ITEMS, &list, &values), CY_ERR_NO_MEMORY));
}
END_TEST

/* Without memory nothing is lost: the list is as it was. */
START_TEST(test_without_memory)
{
    cy_value list = list_native_test_list(0), shared = value_ref(list);
    mem_fail_after(0);
    cy_err inserted = list_insert(host.vm, &list, 0, value_int(3));
    cy_err removed = list_remove_at(host.vm, &list, 0), appended = list_append_all(host.vm, &list, shared);
    mem_fail_never();
    ck_assert(cy_is(inserted, CY_ERR_NO_MEMORY) && cy_is(removed, CY_ERR_NO_MEMORY));
    ck_assert(cy_is(appended, CY_ERR_NO_MEMORY));
    list_native_test_shows(list, "[1, 2]");
    list_native_test_shows(shared, "[1, 2]");
}
END_TEST

Suite *unit_suite_run_list_native(void);
Suite *unit_suite_run_list_native(void)
{
    Suite *suite = suite_create("run/list_native");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, list_native_test_open, list_native_test_close);
    tcase_add_test(tests, test_views_know_their_kind);
    tcase_add_test(tests, test_insert_and_remove);
    tcase_add_test(tests, test_removing_the_last_lets_it_go);
    tcase_add_test(tests, test_append_all);
    tcase_add_test(tests, test_sizes_are_bounded);
    tcase_add_test(tests, test_without_memory);
    suite_add_tcase(suite, tests);
    return suite;
}
