/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/error_test.c: proves that every row answers in both languages, that numbers are not used twice, and
 * that errno values find their rows.
 */
#include "vm/base/error.h"

#include <check.h>
#include <errno.h>
#include <string.h>

START_TEST(test_every_row_has_texts_and_a_number_of_its_own)
{
    static const struct {
        const char *name, *kind, *korean, *english;
        uint32_t code;
    } rows[] = {
#define ERR(name, number, kind, korean, english) {#name, kind, korean, english, number},
#include "vm/base/error.def"
#undef ERR
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        cy_err err = {rows[i].code, 0};
        ck_assert_str_eq(cy_err_name(err), rows[i].name);
        ck_assert_str_eq(cy_err_kind(err), rows[i].kind);
        ck_assert_str_eq(cy_err_text(err, true), rows[i].korean);
        ck_assert_str_eq(cy_err_text(err, false), rows[i].english);
        ck_assert_uint_ne(err.code, CY_ERR_NONE);
        for (size_t j = 0; j < i; j++) ck_assert_uint_ne(rows[i].code, rows[j].code);
    }
}
END_TEST

/* Numbers stand in logs and may not move. Rows may be added; these may not change. */
START_TEST(test_numbers_are_pinned)
{
    ck_assert_int_eq(CY_ERR_NO_MEMORY, 1);
    ck_assert_int_eq(CY_ERR_SYSTEM, 3);
    ck_assert_int_eq(CY_ERR_NOT_FOUND, 10);
    ck_assert_int_eq(CY_ERR_CANCELLED, 20);
    ck_assert_int_eq(CY_ERR_TIMEOUT, 21);
    ck_assert_int_eq(CY_ERR_HTTP_SYNTAX, 40);
    ck_assert_int_eq(CY_ERR_TYPE, 60);
    ck_assert_int_eq(CY_ERR_STOP_CANCELLED, 80);
}
END_TEST

START_TEST(test_unknown_codes_still_have_text)
{
    cy_err err = {0xdeadbeef, 0};
    ck_assert_str_eq(cy_err_name(err), "UNKNOWN");
    ck_assert_ptr_nonnull(cy_err_text(err, true));
    ck_assert_ptr_nonnull(cy_err_kind(err));
    ck_assert_str_eq(cy_err_name(CY_OK), "NONE");
    ck_assert(!cy_failed(CY_OK));
}
END_TEST

START_TEST(test_errno_finds_its_row)
{
    ck_assert(cy_is(cy_err_from_errno(ECONNREFUSED), CY_ERR_REFUSED));
    ck_assert(cy_is(cy_err_from_errno(ECONNRESET), CY_ERR_RESET));
    ck_assert(cy_is(cy_err_from_errno(EADDRINUSE), CY_ERR_ADDRESS_IN_USE));
    ck_assert(cy_is(cy_err_from_errno(ENOENT), CY_ERR_NOT_FOUND));
    ck_assert(cy_is(cy_err_from_errno(ENOTDIR), CY_ERR_NOT_FOLDER));
    ck_assert(cy_is(cy_err_from_errno(EISDIR), CY_ERR_IS_FOLDER));
    ck_assert(cy_is(cy_err_from_errno(EACCES), CY_ERR_PERMISSION));
    ck_assert(cy_is(cy_err_from_errno(ENOMEM), CY_ERR_NO_MEMORY));
    cy_err other = cy_err_from_errno(EIO);
    ck_assert(cy_is(other, CY_ERR_SYSTEM));
    ck_assert_int_eq(other.detail, EIO);
    ck_assert(!cy_failed(cy_err_from_errno(0)));
}
END_TEST

START_TEST(test_describe_speaks_for_the_system_and_keeps_its_bound)
{
    char text[128];
    ck_assert_str_eq(cy_err_describe(CY_ERR_DETAIL(SYSTEM, EIO), false, text, sizeof text), strerror(EIO));
    ck_assert_str_eq(cy_err_describe(CY_ERR(REFUSED), false, text, sizeof text), "connection refused");
    char small[5] = "zzzz";
    ck_assert_str_eq(cy_err_describe(CY_ERR(REFUSED), false, small, 4), "con");
    ck_assert_ptr_eq(cy_err_describe(CY_ERR(REFUSED), false, small, 0), small);
    ck_assert_str_eq(small, "con");
}
END_TEST

static cy_err error_test_try(cy_err inner, int *reached)
{
    CY_TRY(inner);
    *reached = 1;
    return CY_OK;
}

START_TEST(test_try_returns_the_error)
{
    int reached = 0;
    ck_assert(cy_is(error_test_try(CY_ERR(CLOSED), &reached), CY_ERR_CLOSED));
    ck_assert_int_eq(reached, 0);
    ck_assert(!cy_failed(error_test_try(CY_OK, &reached)));
    ck_assert_int_eq(reached, 1);
}
END_TEST

Suite *unit_suite_base_error(void);
Suite *unit_suite_base_error(void)
{
    Suite *suite = suite_create("base/error");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_every_row_has_texts_and_a_number_of_its_own);
    tcase_add_test(tests, test_numbers_are_pinned);
    tcase_add_test(tests, test_unknown_codes_still_have_text);
    tcase_add_test(tests, test_errno_finds_its_row);
    tcase_add_test(tests, test_describe_speaks_for_the_system_and_keeps_its_bound);
    tcase_add_test(tests, test_try_returns_the_error);
    suite_add_tcase(suite, tests);
    return suite;
}
