/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/bytes_test.c: proves that views compare as documented, that decimal numbers are refused one past
 * every bound, and that a reader never leaves its input and stays failed.
 */
#include "vm/base/bytes.h"

#include <check.h>

START_TEST(test_compare_orders_by_byte_then_by_length)
{
    ck_assert_int_lt(cy_bytes_compare(CY_BYTES("a"), CY_BYTES("b")), 0);
    ck_assert_int_gt(cy_bytes_compare(CY_BYTES("\xff"), CY_BYTES("a")), 0); /* unsigned */
    ck_assert_int_lt(cy_bytes_compare(CY_BYTES("ab"), CY_BYTES("abc")), 0);
    ck_assert_int_gt(cy_bytes_compare(CY_BYTES("abc"), CY_BYTES("ab")), 0);
    ck_assert_int_eq(cy_bytes_compare(CY_BYTES("abc"), CY_BYTES("abc")), 0);
    ck_assert_int_eq(cy_bytes_compare(CY_BYTES_NONE, CY_BYTES("")), 0);
    ck_assert_int_lt(cy_bytes_compare(CY_BYTES_NONE, CY_BYTES("\0")), 0);
}
END_TEST

START_TEST(test_equal_nocase_folds_ascii_letters_only)
{
    ck_assert(cy_bytes_equal_nocase(CY_BYTES("Content-LENGTH"), CY_BYTES("content-length")));
    ck_assert(!cy_bytes_equal_nocase(CY_BYTES("a"), CY_BYTES("ab")));
    /* '@' and '`', '[' and '{' differ by the same bit as letters do. */
    ck_assert(!cy_bytes_equal_nocase(CY_BYTES("@["), CY_BYTES("`{")));
    ck_assert(!cy_bytes_equal_nocase(CY_BYTES("\xc4"), CY_BYTES("\xe4")));
    ck_assert(cy_bytes_equal_nocase(CY_BYTES_NONE, CY_BYTES("")));
}
END_TEST

START_TEST(test_find_gives_count_when_absent)
{
    ck_assert_uint_eq(cy_bytes_find(CY_BYTES("abcb"), 'b'), 1);
    ck_assert_uint_eq(cy_bytes_find(CY_BYTES("abcb"), 'x'), 4);
    ck_assert_uint_eq(cy_bytes_find(CY_BYTES_NONE, 'x'), 0);
}
END_TEST

START_TEST(test_slice_clamps)
{
    cy_bytes whole = CY_BYTES("hello");
    ck_assert(cy_bytes_equal(cy_bytes_slice(whole, 1, 3), CY_BYTES("el")));
    ck_assert(cy_bytes_equal(cy_bytes_slice(whole, 3, 99), CY_BYTES("lo")));
    ck_assert_uint_eq(cy_bytes_slice(whole, 4, 2).count, 0);
    ck_assert_uint_eq(cy_bytes_slice(whole, 99, 100).count, 0);
    ck_assert_ptr_null(cy_bytes_slice(CY_BYTES_NONE, 0, 1).data);
    ck_assert(cy_bytes_start_with(whole, CY_BYTES("he")));
    ck_assert(!cy_bytes_start_with(CY_BYTES("he"), whole));
    ck_assert(cy_bytes_start_with(whole, CY_BYTES_NONE));
}
END_TEST

START_TEST(test_u64_at_and_past_the_bound)
{
    uint64_t number = 7;
    ck_assert(cy_bytes_parse_u64(CY_BYTES("18446744073709551615"), UINT64_MAX, &number));
    ck_assert_uint_eq(number, UINT64_MAX);
    number = 7;
    ck_assert(!cy_bytes_parse_u64(CY_BYTES("18446744073709551616"), UINT64_MAX, &number));
    ck_assert(!cy_bytes_parse_u64(CY_BYTES("184467440737095516150"), UINT64_MAX, &number));
    ck_assert(!cy_bytes_parse_u64(CY_BYTES("256"), 255, &number));
    ck_assert_uint_eq(number, 7); /* untouched on failure */
    ck_assert(cy_bytes_parse_u64(CY_BYTES("00000000000000000000000255"), 255, &number));
    ck_assert_uint_eq(number, 255);
}
END_TEST

START_TEST(test_u64_refuses_anything_but_digits)
{
    static const char *const bad[] = {"", " 1", "1 ", "+1", "-1", "0x1", "1e3", "1_0", "\xd9\xa1"};
    for (size_t i = 0; i < CY_COUNT_OF(bad); i++) {
        uint64_t number;
        ck_assert_msg(!cy_bytes_parse_u64(cy_bytes_from_text(bad[i]), UINT64_MAX, &number), "accepted \"%s\"",
                      bad[i]);
    }
}
END_TEST

START_TEST(test_i64_at_and_past_both_bounds)
{
    int64_t number = 0;
    ck_assert(cy_bytes_parse_i64(CY_BYTES("9223372036854775807"), &number));
    ck_assert_int_eq(number, INT64_MAX);
    ck_assert(cy_bytes_parse_i64(CY_BYTES("-9223372036854775808"), &number));
    ck_assert_int_eq(number, INT64_MIN);
    ck_assert(!cy_bytes_parse_i64(CY_BYTES("9223372036854775808"), &number));
    ck_assert(!cy_bytes_parse_i64(CY_BYTES("-9223372036854775809"), &number));
    ck_assert(!cy_bytes_parse_i64(CY_BYTES("-"), &number));
    ck_assert(!cy_bytes_parse_i64(CY_BYTES("--1"), &number));
    ck_assert(!cy_bytes_parse_i64(CY_BYTES(""), &number));
    ck_assert(cy_bytes_parse_i64(CY_BYTES("-0"), &number));
    ck_assert_int_eq(number, 0);
}
END_TEST

START_TEST(test_reader_reads_little_endian)
{
    struct byte_reader reader = {
        .input = CY_BYTES("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\xff")};
    ck_assert_uint_eq(byte_reader_u16(&reader), 0x0201);
    ck_assert_uint_eq(byte_reader_u32(&reader), 0x06050403);
    ck_assert_uint_eq(byte_reader_u64(&reader), 0x0e0d0c0b0a090807u);
    ck_assert_uint_eq(byte_reader_left(&reader), 1);
    ck_assert_uint_eq(byte_reader_u8(&reader), 0xff);
    ck_assert(!reader.failed);
    ck_assert_uint_eq(byte_reader_left(&reader), 0);
}
END_TEST

START_TEST(test_reader_past_the_end_fails_for_good)
{
    struct byte_reader reader = {.input = CY_BYTES("\x01\x02\x03")};
    ck_assert_uint_eq(byte_reader_u32(&reader), 0);
    ck_assert(reader.failed);
    ck_assert_uint_eq(reader.offset, 0);
    ck_assert_uint_eq(byte_reader_u8(&reader), 0); /* would fit, but a failure is final */
    ck_assert_uint_eq(byte_reader_take(&reader, 0).count, 0);
    ck_assert(reader.failed);
}
END_TEST

START_TEST(test_reader_take_of_huge_count_does_not_wrap)
{
    struct byte_reader reader = {.input = CY_BYTES("abc"), .offset = 2};
    ck_assert_ptr_null(byte_reader_take(&reader, SIZE_MAX).data);
    ck_assert(reader.failed);
    struct byte_reader empty = {.input = CY_BYTES_NONE};
    ck_assert_uint_eq(byte_reader_take(&empty, 0).count, 0);
    ck_assert(!empty.failed);
}
END_TEST

Suite *unit_suite_base_bytes(void);
Suite *unit_suite_base_bytes(void)
{
    Suite *suite = suite_create("base/bytes");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_compare_orders_by_byte_then_by_length);
    tcase_add_test(tests, test_equal_nocase_folds_ascii_letters_only);
    tcase_add_test(tests, test_find_gives_count_when_absent);
    tcase_add_test(tests, test_slice_clamps);
    tcase_add_test(tests, test_u64_at_and_past_the_bound);
    tcase_add_test(tests, test_u64_refuses_anything_but_digits);
    tcase_add_test(tests, test_i64_at_and_past_both_bounds);
    tcase_add_test(tests, test_reader_reads_little_endian);
    tcase_add_test(tests, test_reader_past_the_end_fails_for_good);
    tcase_add_test(tests, test_reader_take_of_huge_count_does_not_wrap);
    suite_add_tcase(suite, tests);
    return suite;
}
