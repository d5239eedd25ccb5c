/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/builder_test.c: proves that a builder holds what was appended, that failure is sticky and leaves
 * the bytes before it, that the text of a float is short, marked as a float, and reads back equal, and that a builder
 * of secrets gives no block back with something in it.
 */
#include "vm/base/builder.h"

#include "vm/base/mem.h"

#include "tests/support/secrets.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

START_TEST(test_pieces_in_order)
{
    struct builder builder;
    builder_init(&builder);
    builder_bytes(&builder, CY_BYTES("ab"));
    builder_text(&builder, "cd");
    builder_u8(&builder, 'e');
    builder_printf(&builder, "%d-%s", 7, "x");
    builder_i64_text(&builder, INT64_MIN);
    builder_bytes(&builder, CY_BYTES_NONE);
    ck_assert_str_eq(builder_text_view(&builder), "abcde7-x-9223372036854775808");
    ck_assert_uint_eq(builder.count, 28); /* the NUL is not counted */
    builder_fini(&builder);
}
END_TEST

START_TEST(test_numbers_are_little_endian)
{
    struct builder builder;
    builder_init(&builder);
    builder_u16(&builder, 0x0102);
    builder_u32(&builder, 0x03040506);
    builder_u64(&builder, 0x0708090a0b0c0d0eu);
    ck_assert(cy_bytes_equal(builder_view(&builder),
                             CY_BYTES("\x02\x01\x06\x05\x04\x03\x0e\x0d\x0c\x0b\x0a\x09\x08\x07")));
    builder_fini(&builder);
}
END_TEST

START_TEST(test_count_max_is_met_and_not_passed)
{
    struct builder builder;
    builder_init(&builder);
    builder.count_max = 4;
    builder_text(&builder, "abcd");
    ck_assert(!builder.failed);
    builder_text(&builder, "e");
    ck_assert(builder.failed);
    ck_assert(cy_is(builder_error(&builder), CY_ERR_NO_MEMORY));
    ck_assert(cy_bytes_equal(builder_view(&builder), CY_BYTES("abcd")));
    builder_clear(&builder);
    builder_text(&builder, "xy");
    ck_assert(!builder.failed);
    ck_assert(cy_bytes_equal(builder_view(&builder), CY_BYTES("xy")));
    builder_fini(&builder);
}
END_TEST

START_TEST(test_reserve_of_impossible_size_fails)
{
    struct builder builder;
    builder_init(&builder);
    builder_text(&builder, "a");
    ck_assert_ptr_null(builder_reserve(&builder, SIZE_MAX));
    ck_assert(builder.failed);
    builder_clear(&builder);
    ck_assert_ptr_null(builder_reserve(&builder, SIZE_MAX / 2 + 2)); /* doubling would wrap */
    builder_fini(&builder);
}
END_TEST

START_TEST(test_every_failing_allocation_is_sticky)
{
    bool done = false;
    for (uint64_t n = 0; !done; n++) {
        ck_assert_uint_lt(n, 30);
        struct builder builder;
        builder_init(&builder);
        mem_fail_after(n);
        for (int i = 0; i < 100; i++) builder_printf(&builder, "line %02d\n", i);
        mem_fail_never();
        done = !builder.failed;
        ck_assert_uint_eq(builder.count % 8, 0); /* whole pieces only */
        if (done) ck_assert_uint_eq(builder.count, 800);
        size_t count = builder.count;
        builder_text(&builder, "more");
        ck_assert_uint_eq(builder.count, done ? count + 4 : count);
        ck_assert(done || !builder_text_view(&builder));
        builder_fini(&builder);
    }
}
END_TEST

static void builder_check_float(double number, const char *expected)
{
    struct builder builder;
    builder_init(&builder);
    builder_f64_text(&builder, number);
    ck_assert_str_eq(builder_text_view(&builder), expected);
    builder_fini(&builder);
}

START_TEST(test_text_of_floats)
{
    builder_check_float(1.0, "1.0");
    builder_check_float(-0.0, "-0.0");
    builder_check_float(0.1, "0.1");
    builder_check_float(0.1 + 0.2, "0.30000000000000004");
    builder_check_float(1e300, "1e300");
    builder_check_float(1.5e-7, "1.5e-7");
    builder_check_float(123456.0, "123456.0");
    builder_check_float(1e15, "1e15");
    builder_check_float(5e-324, "5e-324");
    builder_check_float(DBL_MAX, "1.7976931348623157e308");
    builder_check_float(DBL_MIN, "2.2250738585072014e-308");
    builder_check_float(NAN, "nan");
    builder_check_float(-NAN, "nan");
    builder_check_float(INFINITY, "inf");
    builder_check_float(-INFINITY, "-inf");
}
END_TEST

START_TEST(test_text_of_any_float_reads_back_equal)
{
    /* A fixed walk over bit patterns: every run tests the same numbers. */
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ state >> 29;
        double number;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number)) continue;
        struct builder builder;
        builder_init(&builder);
        builder_f64_text(&builder, number);
        const char *text = builder_text_view(&builder);
        ck_assert_msg(strtod(text, NULL) == number, "%s", text);
        ck_assert(strpbrk(text, ".e"));
        builder_fini(&builder);
    }
}
END_TEST

#ifdef __linux__
/* Appends until it has grown several times, writes past the end as readers do, clears, appends again, and ends. */
static unsigned builder_leaks(void (*init)(struct builder *builder))
{
    struct secrets_watch watch;
    struct builder builder;
    init(&builder);
    secrets_watch_begin(&watch, CY_BYTES("s3cret-key"));
    for (int i = 0; i < 40; i++) builder_text(&builder, "a s3cret-key, ");
    uint8_t *room = builder_reserve(&builder, 10000);
    ck_assert_ptr_nonnull(room);
    memcpy(room + 5000, "s3cret-key", 10); /* not counted */
    ck_assert_ptr_nonnull(builder_reserve(&builder, 20000));
    ck_assert_uint_eq(builder.count, 40 * 14);
    ck_assert_int_eq(memcmp(builder.data + 39 * 14, "a s3cret-key, ", 14), 0);
    builder_clear(&builder);
    if (builder.is_secret) ck_assert_ptr_null(memmem(builder.data, builder.capacity, "s3cret", 6));
    builder_text(&builder, "one more s3cret-key");
    builder_fini(&builder);
    ck_assert(!builder.is_secret && !builder.data);
    return secrets_watch_end(&watch);
}

START_TEST(test_secrets_are_wiped)
{
    ck_assert_uint_gt(builder_leaks(builder_init), 1); /* the watch sees what it is there for */
    ck_assert_uint_eq(builder_leaks(builder_init_secret), 0);
}
END_TEST

/* A growth that fails leaves the block and its bytes where they are. */
START_TEST(test_secrets_stay_where_growth_fails)
{
    struct builder builder;
    builder_init_secret(&builder);
    builder_text(&builder, "s3cret-key");
    mem_fail_after(0);
    ck_assert_ptr_null(builder_reserve(&builder, 4000));
    mem_fail_never();
    ck_assert(builder.failed && cy_bytes_equal(builder_view(&builder), CY_BYTES("s3cret-key")));
    struct secrets_watch watch;
    secrets_watch_begin(&watch, CY_BYTES("s3cret-key"));
    builder_fini(&builder);
    ck_assert_uint_eq(secrets_watch_end(&watch), 0);
}
END_TEST
#endif

Suite *unit_suite_base_builder(void);
Suite *unit_suite_base_builder(void)
{
    Suite *suite = suite_create("base/builder");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_pieces_in_order);
    tcase_add_test(tests, test_numbers_are_little_endian);
    tcase_add_test(tests, test_count_max_is_met_and_not_passed);
    tcase_add_test(tests, test_reserve_of_impossible_size_fails);
    tcase_add_test(tests, test_every_failing_allocation_is_sticky);
    tcase_add_test(tests, test_text_of_floats);
    tcase_add_test(tests, test_text_of_any_float_reads_back_equal);
#ifdef __linux__
    tcase_add_test(tests, test_secrets_are_wiped);
    tcase_add_test(tests, test_secrets_stay_where_growth_fails);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
