/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/mem_test.c: proves that the n-th allocation fails exactly when asked, in this thread only.
 */
#include "vm/base/mem.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

START_TEST(test_size_0_gives_distinct_pointers)
{
    void *a = mem_alloc(0), *b = mem_alloc_zeroed(0);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_ne(a, b);
    a = mem_resize(a, 0);
    ck_assert_ptr_nonnull(a);
    mem_free(a);
    mem_free(b);
    mem_free(NULL);
}
END_TEST

START_TEST(test_zeroed_is_zero)
{
    static const uint8_t zeros[256];
    uint8_t *block = mem_alloc_zeroed(sizeof zeros);
    ck_assert_mem_eq(block, zeros, sizeof zeros);
    mem_free(block);
}
END_TEST

START_TEST(test_the_nth_and_all_later_fail_until_never)
{
    mem_fail_after(2);
    void *first = mem_alloc(1), *second = mem_alloc(1);
    void *third = mem_alloc(1), *fourth = mem_alloc_zeroed(1);
    mem_fail_never();
    void *fifth = mem_alloc(1);
    ck_assert(first && second && !third && !fourth && fifth);
    mem_free(first);
    mem_free(second);
    mem_free(fifth);
}
END_TEST

START_TEST(test_failed_resize_leaves_the_block)
{
    char *block = mem_alloc(4);
    memcpy(block, "abc", 4);
    mem_fail_after(0);
    void *larger = mem_resize(block, 4000);
    mem_fail_never();
    ck_assert_ptr_null(larger);
    ck_assert_str_eq(block, "abc");
    mem_free(block);
}
END_TEST

START_TEST(test_the_count_includes_failed_allocations)
{
    uint64_t before = mem_allocation_count();
    mem_fail_after(1);
    void *block = mem_alloc(1), *none = mem_alloc(1);
    mem_fail_never();
    ck_assert_ptr_null(none);
    mem_free(block);
    ck_assert_uint_eq(mem_allocation_count() - before, 2);
}
END_TEST

static void *mem_test_other_thread(void *unused)
{
    (void)unused;
    return mem_alloc(1);
}

START_TEST(test_other_threads_are_not_starved)
{
    pthread_t thread;
    void *block = NULL;
    mem_fail_after(0);
    int error = pthread_create(&thread, NULL, mem_test_other_thread, NULL);
    ck_assert_int_eq(error, 0);
    pthread_join(thread, &block);
    mem_fail_never();
    ck_assert_ptr_nonnull(block);
    mem_free(block);
}
END_TEST

START_TEST(test_exhausted_exits_with_70) { mem_exhausted(); }
END_TEST

Suite *unit_suite_base_mem(void);
Suite *unit_suite_base_mem(void)
{
    Suite *suite = suite_create("base/mem");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_size_0_gives_distinct_pointers);
    tcase_add_test(tests, test_zeroed_is_zero);
    tcase_add_test(tests, test_the_nth_and_all_later_fail_until_never);
    tcase_add_test(tests, test_failed_resize_leaves_the_block);
    tcase_add_test(tests, test_the_count_includes_failed_allocations);
    tcase_add_test(tests, test_other_threads_are_not_starved);
    tcase_add_exit_test(tests, test_exhausted_exits_with_70, 70);
    suite_add_tcase(suite, tests);
    return suite;
}
