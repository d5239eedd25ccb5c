/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/buffer_test.c: proves that buffers are counted, reused last in first out, bounded in the free
 * list, that a pool with lent buffers cannot be freed, that a write after the last unref is found in DEBUG
 * builds (under AddressSanitizer a read too), and that foreign memory is lent without a copy and given back exactly
 * once.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/buffer.h"

#include <check.h>
#include <signal.h>

/* LIMIT_BUFFERS_BULK are lent: who wants one more gets a small one, until one comes back. */
START_TEST(test_bulk_buffers_at_and_past_the_limit)
{
    struct buffer_pool *pool;
    static struct buffer *lent[LIMIT_BUFFERS_BULK];
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    for (size_t i = 0; i < LIMIT_BUFFERS_BULK; i++) {
        lent[i] = buffer_take_bulk(pool);
        ck_assert_uint_eq(lent[i]->capacity, LIMIT_BUFFER_BULK_BYTES);
    }
    ck_assert_uint_eq(buffer_pool_lent_bytes(pool), (size_t)LIMIT_BUFFERS_BULK * LIMIT_BUFFER_BULK_BYTES);
    struct buffer *past = buffer_take_bulk(pool);
    ck_assert_uint_eq(past->capacity, LIMIT_BUFFER_BYTES);
    buffer_unref(&past);
    buffer_unref(&lent[0]);
    lent[0] = buffer_take_bulk(pool);
    ck_assert_uint_eq(lent[0]->capacity, LIMIT_BUFFER_BULK_BYTES);
    for (size_t i = 0; i < LIMIT_BUFFERS_BULK; i++) buffer_unref(&lent[i]);
    ck_assert_uint_eq(buffer_pool_lent_bytes(pool), 0);
    buffer_pool_free(&pool);
}
END_TEST

START_TEST(test_take_and_unref)
{
    struct buffer_pool *pool;
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    struct buffer *a = buffer_take(pool), *b = buffer_take(pool);
    ck_assert_uint_eq(buffer_pool_lent(pool), 2);
    ck_assert_uint_eq(a->capacity, LIMIT_BUFFER_BYTES);
    ck_assert_uint_eq(buffer_space(a), LIMIT_BUFFER_BYTES);
    a->end = 5;
    a->begin = 2;
    ck_assert_uint_eq(buffer_view(a).count, 3);
    struct buffer *again = buffer_ref(a);
    buffer_unref(&a);
    ck_assert_ptr_null(a);
    ck_assert_uint_eq(buffer_pool_lent(pool), 2);
    struct buffer *address = again;
    buffer_unref(&b);
    buffer_unref(&again);
    ck_assert_uint_eq(buffer_pool_lent(pool), 0);
    struct buffer *c = buffer_take(pool);
    ck_assert_ptr_eq(c, address); /* the warmest first */
    ck_assert_uint_eq(c->begin, 0);
    ck_assert_uint_eq(c->end, 0);
    buffer_unref(&c);
    buffer_unref(&c); /* NULL inside is allowed */
    buffer_pool_free(&pool);
    ck_assert_ptr_null(pool);
}
END_TEST

START_TEST(test_sizes)
{
    struct buffer_pool *pool;
    ck_assert(!cy_failed(buffer_pool_new(4, NULL, &pool)));
    struct buffer *bulk = buffer_take_bulk(pool), *own = buffer_take_sized(pool, 100001),
                  *empty = buffer_take_sized(pool, 0);
    ck_assert_uint_eq(bulk->capacity, LIMIT_BUFFER_BULK_BYTES);
    ck_assert_uint_eq(own->capacity, 100001);
    ck_assert_uint_eq(buffer_space(empty), 0);
    ck_assert_ptr_null(buffer_take_sized(pool, (size_t)UINT32_MAX + 1));
    struct buffer *address = bulk;
    buffer_unref(&bulk);
    buffer_unref(&own);
    buffer_unref(&empty);
    bulk = buffer_take_sized(pool, LIMIT_BUFFER_BULK_BYTES);
    ck_assert_ptr_eq(bulk, address); /* bulk buffers are pooled too */
    buffer_unref(&bulk);
    buffer_pool_free(&pool);
}
END_TEST

START_TEST(test_free_list_is_bounded)
{
    struct buffer_pool *pool;
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    struct buffer *buffers[5];
    for (int i = 0; i < 5; i++) buffers[i] = buffer_take(pool);
    for (int i = 0; i < 5; i++) buffer_unref(&buffers[i]);
    uint64_t allocations = mem_allocation_count();
    for (int i = 0; i < 3; i++) buffers[i] = buffer_take(pool);
    ck_assert_uint_eq(mem_allocation_count() - allocations, 1); /* two were kept */
    for (int i = 0; i < 3; i++) buffer_unref(&buffers[i]);
    buffer_pool_free(&pool);
}
END_TEST

START_TEST(test_no_memory_is_null)
{
    struct buffer_pool *pool = NULL;
    mem_fail_after(0);
    ck_assert(cy_is(buffer_pool_new(2, NULL, &pool), CY_ERR_NO_MEMORY));
    mem_fail_after(1);
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    ck_assert_ptr_null(buffer_take(pool));
    mem_fail_never();
    ck_assert_uint_eq(buffer_pool_lent(pool), 0);
    buffer_pool_free(&pool);
}
END_TEST

struct buffer_test_loan {
    int released_count;
    const uint8_t *data;
    struct buffer_pool *pool;
    bool takes_another; /* `release` may use the pool */
};
static void buffer_test_release(struct buffer *buffer)
{
    struct buffer_test_loan *loan = buffer->context;
    loan->released_count++;
    ck_assert_ptr_eq(buffer->data, loan->data);
    if (!loan->takes_another) return;
    struct buffer *other = buffer_take(loan->pool);
    buffer_unref(&other);
}

START_TEST(test_foreign_memory_is_lent_and_released_once)
{
    static const uint8_t text[LIMIT_BUFFER_BYTES] =
        "a document"; /* the size of a pooled buffer, to confuse */
    struct buffer_pool *pool;
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    struct buffer_test_loan loan = {.data = text, .pool = pool, .takes_another = true};
    for (int i = 1; i <= 3; i++) {
        uint64_t allocations = mem_allocation_count();
        struct buffer *buffer = buffer_wrap(pool, text, sizeof text, buffer_test_release, &loan);
        ck_assert(buffer_is_foreign(buffer));
        ck_assert_ptr_eq(buffer_view(buffer).data, text); /* no copy */
        ck_assert_uint_eq(buffer_view(buffer).count, sizeof text);
        ck_assert_uint_eq(buffer_space(buffer), 0);
        ck_assert_uint_eq(buffer_pool_lent(pool), 1);
        if (i > 1) ck_assert_uint_eq(mem_allocation_count(), allocations); /* the struct is pooled */
        struct buffer *again = buffer_ref(buffer);
        buffer_unref(&buffer);
        ck_assert_int_eq(loan.released_count, i - 1);
        again->begin = 5; /* half read */
        buffer_unref(&again);
        ck_assert_int_eq(loan.released_count, i);
        ck_assert_uint_eq(buffer_pool_lent(pool), 0);
    }
    struct buffer *own = buffer_take(pool); /* foreign memory did not get among the pool's own */
    ck_assert(!buffer_is_foreign(own));
    ck_assert_ptr_ne(own->data, text);
    buffer_unref(&own);
    buffer_pool_free(&pool);
    ck_assert_str_eq((const char *)text, "a document");
}
END_TEST

START_TEST(test_loan_without_memory_is_not_released)
{
    struct buffer_pool *pool;
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    struct buffer_test_loan loan = {0};
    mem_fail_after(0);
    ck_assert_ptr_null(buffer_wrap(pool, (const uint8_t *)"x", 1, buffer_test_release, &loan));
    mem_fail_never();
    ck_assert_int_eq(loan.released_count, 0);
    ck_assert_uint_eq(buffer_pool_lent(pool), 0);
    buffer_pool_free(&pool);
}
END_TEST

START_TEST(test_pool_with_lent_buffers_aborts)
{
    struct buffer_pool *pool;
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    ck_assert_ptr_nonnull(buffer_take(pool));
    buffer_pool_free(&pool);
}
END_TEST

#if MEM_HIDES
START_TEST(test_nobody_touches_a_buffer_after_unref)
{
    struct buffer_pool *pool;
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    struct buffer *buffer = buffer_take(pool);
    uint8_t *data = buffer->data;
    ck_assert(!__asan_region_is_poisoned(data, LIMIT_BUFFER_BYTES));
    buffer_unref(&buffer);
    for (size_t i = 0; i < LIMIT_BUFFER_BYTES; i++) ck_assert(__asan_address_is_poisoned(data + i));
    buffer = buffer_take(pool);
    ck_assert_ptr_eq(buffer->data, data);
    ck_assert(!__asan_region_is_poisoned(data, LIMIT_BUFFER_BYTES));
    buffer_unref(&buffer);
    buffer_pool_free(&pool);
}
END_TEST
#elif defined(CY_DEBUG)
START_TEST(test_write_after_unref_aborts)
{
    struct buffer_pool *pool;
    ck_assert(!cy_failed(buffer_pool_new(2, NULL, &pool)));
    struct buffer *buffer = buffer_take(pool);
    uint8_t *data = buffer->data;
    buffer_unref(&buffer);
    data[12345] = 'x';
    buffer = buffer_take(pool);
}
END_TEST
#endif

Suite *unit_suite_net_buffer(void);
Suite *unit_suite_net_buffer(void)
{
    Suite *suite = suite_create("net/buffer");
    TCase *tests = tcase_create("pool");
    tcase_add_test(tests, test_bulk_buffers_at_and_past_the_limit);
    tcase_add_test(tests, test_take_and_unref);
    tcase_add_test(tests, test_sizes);
    tcase_add_test(tests, test_free_list_is_bounded);
    tcase_add_test(tests, test_no_memory_is_null);
    tcase_add_test(tests, test_foreign_memory_is_lent_and_released_once);
    tcase_add_test(tests, test_loan_without_memory_is_not_released);
    tcase_add_test_raise_signal(tests, test_pool_with_lent_buffers_aborts, SIGABRT);
#if MEM_HIDES
    tcase_add_test(tests, test_nobody_touches_a_buffer_after_unref);
#elif defined(CY_DEBUG)
    tcase_add_test_raise_signal(tests, test_write_after_unref_aborts, SIGABRT);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
