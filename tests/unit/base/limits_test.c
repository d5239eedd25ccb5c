/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/limits_test.c: proves that every row of limits.def can be found by name, is positive and says why.
 */
#include "vm/base/limits.h"

#include <check.h>
#include <string.h>

START_TEST(test_rows_are_complete_and_found)
{
    size_t count = 0;
    for (const struct limit *row; (row = limit_at(count)); count++) {
        ck_assert_ptr_eq(limit_find(row->name), row); /* so no name stands twice */
        ck_assert_msg(row->value > 0, "%s is %lld", row->name, (long long)row->value);
        ck_assert_msg(row->unit[0] && row->why[0], "%s lacks a unit or a reason", row->name);
    }
    ck_assert_uint_gt(count, 10);
    ck_assert_ptr_null(limit_at(SIZE_MAX));
}
END_TEST

START_TEST(test_row_and_constant_agree)
{
    ck_assert_int_eq(limit_find("HTTP_FIELDS")->value, LIMIT_HTTP_FIELDS);
    ck_assert_str_eq(limit_find("HTTP_FIELDS")->unit, "fields");
    ck_assert_ptr_null(limit_find("NO_SUCH_LIMIT"));
}
END_TEST

Suite *unit_suite_base_limits(void);
Suite *unit_suite_base_limits(void)
{
    Suite *suite = suite_create("base/limits");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_rows_are_complete_and_found);
    tcase_add_test(tests, test_row_and_constant_agree);
    suite_add_tcase(suite, tests);
    return suite;
}
