/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/histogram_test.c: proves the histogram against a sorted list of the same values: each quantile is at
 * least the true one and at most 1 part in 256 above it, for values of every size; counts, sums and ends are exact.
 */
#include "vm/base/histogram.h"
#include "vm/base/mem.h"

#include <check.h>
#include <stdlib.h>

static uint64_t histogram_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int histogram_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

START_TEST(test_buckets_follow_each_other_without_a_gap)
{
    uint64_t before = 0;
    for (uint32_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        uint64_t end = histogram_bucket_end(bucket);
        ck_assert_uint_eq(histogram_bucket_of(end), bucket);
        if (bucket) {
            ck_assert_uint_gt(end, before);
            ck_assert_uint_eq(histogram_bucket_of(before + 1), bucket); /* the first value of this one */
        }
        before = end;
    }
    ck_assert_uint_eq(before, HISTOGRAM_VALUE_MAX);
    ck_assert_uint_eq(histogram_bucket_of(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}
END_TEST

static void histogram_check_against_model(struct histogram *histogram, uint64_t *values, size_t count)
{
    static const uint32_t parts[] = {0, 1, 500000, 900000, 990000, 999000, 999999, 1000000};
    uint64_t sum = 0;
    histogram_clear(histogram);
    for (size_t i = 0; i < count; i++) {
        histogram_add(histogram, values[i]);
        sum += values[i];
    }
    qsort(values, count, sizeof *values, histogram_compare);
    ck_assert_uint_eq(histogram->count, count);
    ck_assert_uint_eq(histogram->sum, sum);
    ck_assert_uint_eq(histogram->smallest, values[0]);
    ck_assert_uint_eq(histogram->largest, values[count - 1]);
    ck_assert_uint_eq(histogram_mean(histogram), sum / count);
    for (size_t i = 0; i < CY_COUNT_OF(parts); i++) {
        size_t rank = (size_t)(((unsigned __int128)count * parts[i] + 999999u) / 1000000u);
        uint64_t truth = values[rank ? rank - 1 : 0], found = histogram_quantile(histogram, parts[i]);
        ck_assert_msg(found >= truth && found - truth <= truth / HISTOGRAM_PARTS,
                      "%u of a million of %zu: %llu, in truth %llu", parts[i], count,
                      (unsigned long long)found, (unsigned long long)truth);
    }
}

START_TEST(test_quantiles_agree_with_a_sorted_list)
{
    enum { COUNT_MAX = 5000 };
    uint64_t *values = mem_alloc(COUNT_MAX * sizeof *values), state = 88172645463325252u;
    struct histogram *histogram = mem_alloc(sizeof *histogram);
    ck_assert(values && histogram);
    for (unsigned round = 0; round < 60; round++) {
        size_t count = 1 + histogram_random(&state) % COUNT_MAX;
        for (size_t i = 0; i < count; i++)
            values[i] = histogram_random(&state) >> (17 + histogram_random(&state) % 47); /* every size */
        histogram_check_against_model(histogram, values, count);
    }
    mem_free(values);
    mem_free(histogram);
}
END_TEST

START_TEST(test_without_values_all_is_zero)
{
    struct histogram *histogram = mem_alloc(sizeof *histogram);
    ck_assert(histogram);
    histogram_clear(histogram);
    ck_assert_uint_eq(histogram_quantile(histogram, 990000), 0);
    ck_assert_uint_eq(histogram_mean(histogram), 0);
    mem_free(histogram);
}
END_TEST

START_TEST(test_past_the_range_the_largest_stays_exact)
{
    struct histogram *histogram = mem_alloc(sizeof *histogram);
    ck_assert(histogram);
    histogram_clear(histogram);
    histogram_add(histogram, 7);
    histogram_add(histogram, UINT64_MAX / 3);
    ck_assert_uint_eq(histogram_quantile(histogram, 500000), 7);
    ck_assert_uint_eq(histogram_quantile(histogram, 990000), UINT64_MAX / 3);
    mem_free(histogram);
}
END_TEST

Suite *unit_suite_base_histogram(void);
Suite *unit_suite_base_histogram(void)
{
    Suite *suite = suite_create("base_histogram");
    TCase *tests = tcase_create("histogram");
    tcase_add_test(tests, test_buckets_follow_each_other_without_a_gap);
    tcase_add_test(tests, test_quantiles_agree_with_a_sorted_list);
    tcase_add_test(tests, test_without_values_all_is_zero);
    tcase_add_test(tests, test_past_the_range_the_largest_stays_exact);
    suite_add_tcase(suite, tests);
    return suite;
}
