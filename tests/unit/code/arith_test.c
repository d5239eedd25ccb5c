/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/arith_test.c: proves that integer arithmetic is exact or an error at the edges of 64 bits,
 * and that ints and floats are compared without rounding.
 */
#include "vm/code/arith.h"

#include <check.h>
#include <math.h>

#define EXPECT(call, result)                         \
    do {                                             \
        int64_t got = 77;                            \
        ck_assert_uint_eq((call).code, CY_ERR_NONE); \
        ck_assert_int_eq(got, result);               \
    } while (0)
#define EXPECT_ERROR(call, error)                       \
    do {                                                \
        int64_t got = 77;                               \
        ck_assert_uint_eq((call).code, CY_ERR_##error); \
        (void)got;                                      \
    } while (0)

START_TEST(test_overflow_is_an_error_at_each_edge)
{
    EXPECT(arith_add(INT64_MAX - 1, 1, &got), INT64_MAX);
    EXPECT_ERROR(arith_add(INT64_MAX, 1, &got), OVERFLOW);
    EXPECT_ERROR(arith_add(INT64_MIN, -1, &got), OVERFLOW);
    EXPECT(arith_sub(-1, INT64_MAX, &got), INT64_MIN);
    EXPECT_ERROR(arith_sub(0, INT64_MIN, &got), OVERFLOW);
    EXPECT(arith_mul(INT64_MIN, 1, &got), INT64_MIN);
    EXPECT_ERROR(arith_mul(INT64_MIN, -1, &got), OVERFLOW);
    EXPECT_ERROR(arith_mul(INT64_C(1) << 32, INT64_C(1) << 31, &got), OVERFLOW);
}
END_TEST

START_TEST(test_division_and_modulo)
{
    EXPECT(arith_div(7, -2, &got), -3);
    EXPECT(arith_mod(7, -2, &got), 1);
    EXPECT(arith_div(-7, 2, &got), -3);
    EXPECT(arith_mod(-7, 2, &got), -1);
    EXPECT_ERROR(arith_div(1, 0, &got), DIVISION);
    EXPECT_ERROR(arith_mod(1, 0, &got), DIVISION);
    EXPECT_ERROR(arith_div(INT64_MIN, -1, &got), OVERFLOW);
    EXPECT(arith_mod(INT64_MIN, -1, &got), 0);
    EXPECT(arith_div(INT64_MIN, 1, &got), INT64_MIN);
}
END_TEST

START_TEST(test_shifts)
{
    EXPECT(arith_shift_left(1, 63, &got), INT64_MIN);
    EXPECT(arith_shift_left(3, 63, &got), INT64_MIN);
    EXPECT(arith_shift_right(-1, 63, &got), -1);
    EXPECT(arith_shift_right(INT64_MIN, 62, &got), -2);
    EXPECT_ERROR(arith_shift_left(1, 64, &got), VALUE);
    EXPECT_ERROR(arith_shift_left(1, -1, &got), VALUE);
    EXPECT_ERROR(arith_shift_right(1, 64, &got), VALUE);
}
END_TEST

START_TEST(test_ints_and_floats_compare_exactly)
{
    static const struct {
        int64_t i;
        double f;
        int order;
    } rows[] = {
        {0, 0.0, 0},
        {0, -0.0, 0},
        {1, 1.5, -1},
        {2, 1.5, 1},
        {-1, -1.5, 1},
        {-2, -1.5, -1},
        {0, 5e-324, -1},
        {0, -5e-324, 1},
        {INT64_C(9007199254740993), 9007199254740992.0, 1}, /* 2^53 + 1: as floats they would be equal */
        {INT64_C(9007199254740993), 9007199254740994.0, -1},
        {INT64_MAX, 9223372036854775808.0, -1},
        {INT64_MAX, 9223372036854774784.0, 1},
        {INT64_MIN, -9223372036854775808.0, 0},
        {INT64_MIN, -9223372036854777856.0, 1},
        {INT64_MAX, INFINITY, -1},
        {INT64_MIN, -INFINITY, 1},
        {0, NAN, 2},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++)
        ck_assert_int_eq(arith_compare_int_float(rows[i].i, rows[i].f), rows[i].order);
}
END_TEST

START_TEST(test_float_to_int)
{
    EXPECT(arith_float_to_int(2.9, &got), 2);
    EXPECT(arith_float_to_int(-2.9, &got), -2);
    EXPECT(arith_float_to_int(-0.0, &got), 0);
    EXPECT(arith_float_to_int(-9223372036854775808.0, &got), INT64_MIN);
    EXPECT(arith_float_to_int(9223372036854774784.0, &got), INT64_C(9223372036854774784));
    EXPECT_ERROR(arith_float_to_int(9223372036854775808.0, &got), OVERFLOW);
    EXPECT_ERROR(arith_float_to_int(-9223372036854777856.0, &got), OVERFLOW);
    EXPECT_ERROR(arith_float_to_int(INFINITY, &got), OVERFLOW);
    EXPECT_ERROR(arith_float_to_int(NAN, &got), VALUE);
}
END_TEST

Suite *unit_suite_code_arith(void);
Suite *unit_suite_code_arith(void)
{
    Suite *suite = suite_create("code/arith");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_overflow_is_an_error_at_each_edge);
    tcase_add_test(tests, test_division_and_modulo);
    tcase_add_test(tests, test_shifts);
    tcase_add_test(tests, test_ints_and_floats_compare_exactly);
    tcase_add_test(tests, test_float_to_int);
    suite_add_tcase(suite, tests);
    return suite;
}
