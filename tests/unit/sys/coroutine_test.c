/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/coroutine_test.c: proves that a coroutine goes on where it paused, with its locals, its registers and
 * those of its caller whole, that many live beside each other, and that one which leaves its stack is found.
 */
#include "vm/sys/coroutine.h"

#include "vm/base/mem.h"

#include <check.h>
#include <signal.h>

struct test_numbers {
    uint64_t sum;
    double product;
    int count;
};

/* More values across a pause than there are registers that a call preserves. */
static void add(struct coroutine *coroutine, void *context)
{
    struct test_numbers *numbers = context;
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    double x = 1.5, y = 0.5;
    for (;;) {
        numbers->sum = a + b + c + d + e + f + g + h;
        numbers->product = x * y;
        numbers->count++;
        coroutine_pause(coroutine);
        a++, b += 2, c += 3, d += 4, e += 5, f += 6, g += 7, h += 8;
        x += 1, y += 1;
    }
}

static struct coroutine *begin(void (*entry)(struct coroutine *coroutine, void *context), void *context)
{
    void *memory = mem_alloc(coroutine_bytes());
    ck_assert_ptr_nonnull(memory);
    return coroutine_begin(memory, entry, context);
}

START_TEST(test_goes_on_where_it_paused)
{
    struct test_numbers numbers = {0};
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7;
    double x = 0.25;
    struct coroutine *coroutine = begin(add, &numbers);
    ck_assert_int_eq(numbers.count, 0); /* it has not begun */
    for (int i = 1; i <= 1000; i++) {
        coroutine_resume(coroutine);
        ck_assert_int_eq(numbers.count, i);
        ck_assert_uint_eq(numbers.sum, 36u * (unsigned)i);
        ck_assert_double_eq(numbers.product, (i + 0.5) * (i - 0.5));
        a++, b++, c++, d++, e++, f++, g++;
        x += 1;
    }
    ck_assert_uint_eq(a + b + c + d + e + f + g, 7028);
    ck_assert_double_eq(x, 1000.25);
    mem_free(coroutine);
}
END_TEST

START_TEST(test_many_beside_each_other)
{
    enum { COUNT = 50 };
    struct test_numbers numbers[COUNT] = {0};
    struct coroutine *all[COUNT];
    for (int i = 0; i < COUNT; i++) all[i] = begin(add, &numbers[i]);
    for (int round = 0; round < COUNT; round++)
        for (int i = round; i < COUNT; i++) coroutine_resume(all[i]);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(numbers[i].count, i + 1);
        ck_assert_uint_eq(numbers[i].sum, 36u * (unsigned)(i + 1));
        mem_free(all[i]);
    }
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) /* which would find it first */
/* What a frame that does not fit would do: a byte below the stack is another one. */
static void overflow(struct coroutine *coroutine, void *context)
{
    volatile uint8_t *below = (volatile uint8_t *)context - 1;
    *below ^= 1;
    for (;;) coroutine_pause(coroutine);
}

START_TEST(test_past_the_stack_is_found)
{
    uint8_t *memory = mem_alloc(coroutine_bytes());
    ck_assert_ptr_nonnull(memory);
    struct coroutine *coroutine =
        coroutine_begin(memory, overflow, memory + coroutine_bytes() - coroutine_stack_bytes());
    coroutine_resume(coroutine); /* CHECK: abort */
    mem_free(memory);
}
END_TEST
#endif

Suite *unit_suite_sys_coroutine(void);
Suite *unit_suite_sys_coroutine(void)
{
    Suite *suite = suite_create("sys_coroutine");
    TCase *tests = tcase_create("coroutine");
    tcase_add_test(tests, test_goes_on_where_it_paused);
    tcase_add_test(tests, test_many_beside_each_other);
#if !defined(__SANITIZE_ADDRESS__)
    tcase_add_test_raise_signal(tests, test_past_the_stack_is_found, SIGABRT);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
