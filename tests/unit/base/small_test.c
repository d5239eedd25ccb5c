/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/small_test.c: proves that small blocks do not overlap and keep what is in them, that taking and
 * putting in any order costs no allocation once as many were in use, that all goes back to malloc when a burst has
 * ended, that a block left on every page is bounded, that every block that is taken can be made to fail, and that
 * nobody may look at one that came back.
 */
#include "vm/base/small.h"

#include <check.h>

enum { SMALL_TEST_BLOCKS = 40000 };

struct small_test_block {
    uint8_t *data;
    size_t bytes;
    uint8_t mark;
};

/* A generator of Knuth's (MMIX). */
static uint32_t small_test_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* A model: what was written into each block is there until it is put back. */
START_TEST(test_blocks_keep_what_is_in_them)
{
    static struct small_test_block blocks[2000];
    struct small_pool pool;
    uint64_t state = 7;
    small_init(&pool, UINT64_MAX);
    for (int step = 0; step < 60000; step++) {
        struct small_test_block *block = &blocks[small_test_random(&state) % CY_COUNT_OF(blocks)];
        if (block->data) {
            uint8_t wanted[SMALL_BYTES_MAX];
            memset(wanted, block->mark, sizeof wanted);
            ck_assert_mem_eq(block->data, wanted, block->bytes);
            small_put(&pool, block->data, block->bytes);
            block->data = NULL;
            continue;
        }
        block->bytes = small_test_random(&state) % (SMALL_BYTES_MAX + 1);
        block->mark = (uint8_t)step;
        block->data = small_take(&pool, block->bytes);
        ck_assert_ptr_nonnull(block->data);
        ck_assert_uint_eq((uintptr_t)block->data % SMALL_STEP, 0);
        memset(block->data, block->mark, block->bytes);
    }
    for (size_t i = 0; i < CY_COUNT_OF(blocks); i++)
        if (blocks[i].data) small_put(&pool, blocks[i].data, blocks[i].bytes);
    small_fini(&pool);
    ck_assert_uint_eq(pool.bytes, 0);
}
END_TEST

START_TEST(test_sizes_share_no_page_and_lines_begin_where_they_should)
{
    struct small_pool pool;
    small_init(&pool, UINT64_MAX);
    for (size_t bytes = 0; bytes <= SMALL_BYTES_MAX; bytes++) {
        ck_assert_uint_ge(small_class_bytes(small_class(bytes)), bytes);
        ck_assert_uint_lt(small_class_bytes(small_class(bytes)), bytes + SMALL_STEP + (bytes == 0));
    }
    uint8_t *line = small_take(&pool, 64), *half = small_take(&pool, 32), *other = small_take(&pool, 48);
    ck_assert_uint_eq((uintptr_t)line % 64, 0);
    ck_assert_uint_eq((uintptr_t)half % 32, 0);
    ck_assert_uint_ne((uintptr_t)other / SMALL_PAGE_BYTES, (uintptr_t)half / SMALL_PAGE_BYTES);
    ck_assert_ptr_ne(line, half);
    small_put(&pool, half, 32);
    ck_assert_ptr_eq(small_take(&pool, 20), half); /* the one that came back last, for any of its class */
    small_put(&pool, half, 20);
    small_put(&pool, other, 48);
    small_put(&pool, line, 64);
    small_fini(&pool);
}
END_TEST

/* As many in use at once again and again, put back in three orders, allocate nothing: neither a page's nor a segment's
 * edge is crossed back and forth. */
START_TEST(test_what_was_in_use_costs_nothing_again)
{
    static void *blocks[1600];
    for (int count = 1; count <= 1600;
         count = count * 3 + 1) { /* 364 of 48 bytes are five pages, 1093 a segment */
        struct small_pool pool;
        small_init(&pool, UINT64_MAX);
        uint64_t before = 0;
        for (int round = 0; round < 9; round++) {
            if (round == 3) before = mem_allocation_count();
            for (int i = 0; i < count; i++) {
                blocks[i] = small_take(&pool, 48);
                ck_assert_ptr_nonnull(blocks[i]);
            }
            for (int i = 0; i < count; i++) {
                int at = round % 3 == 0   ? i
                         : round % 3 == 1 ? count - 1 - i
                                          : (i % 2 ? count - 1 - i / 2 : i / 2);
                small_put(&pool, blocks[at], 48);
            }
        }
        ck_assert_uint_eq(mem_allocation_count() - before, 0);
        small_fini(&pool);
    }
}
END_TEST

START_TEST(test_a_burst_goes_back)
{
    static void *blocks[SMALL_TEST_BLOCKS];
    struct small_pool pool;
    small_init(&pool, UINT64_MAX);
    for (int i = 0; i < SMALL_TEST_BLOCKS; i++) {
        blocks[i] = small_take(&pool, 64);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    ck_assert_uint_gt(pool.bytes, SMALL_TEST_BLOCKS * 64);
    ck_assert_uint_lt(pool.bytes, SMALL_TEST_BLOCKS * 64 * 9 / 8); /* headers, and where pages begin */
    for (int i = 0; i < SMALL_TEST_BLOCKS; i++) small_put(&pool, blocks[i], 64);
    ck_assert_uint_le(pool.bytes, 3 * SMALL_SEGMENT_BYTES);
    small_fini(&pool);
}
END_TEST

/* One block of each page stays, and the next size is asked for: what lies free in such pages is bounded. */
START_TEST(test_nearly_empty_pages_are_bounded)
{
    static void *kept[SMALL_TEST_BLOCKS];
    int kept_count = 0;
    struct small_pool pool;
    enum { SEGMENTS = 4 };
    for (uint32_t less = 0; less < 2; less++) {
        small_init(&pool, SEGMENTS * (uint64_t)SMALL_SEGMENT_BYTES - less);
        kept_count = 0;
        void *block;
        while ((block = small_take(&pool, 256)) != NULL) kept[kept_count++] = block;
        ck_assert_uint_eq(pool.bytes, (SEGMENTS - less) * (uint64_t)SMALL_SEGMENT_BYTES);
        ck_assert_ptr_null(small_take(&pool, 128));
        for (int i = 0; i < kept_count; i++)
            if ((uintptr_t)kept[i] % SMALL_PAGE_BYTES != 64) small_put(&pool, kept[i], 256);
        ck_assert_ptr_null(small_take(&pool, 128)); /* every page still has one */
        block = small_take(&pool, 256);
        ck_assert_ptr_nonnull(block);
        small_put(&pool, block, 256);
        for (int i = 0; i < kept_count; i++)
            if ((uintptr_t)kept[i] % SMALL_PAGE_BYTES == 64) small_put(&pool, kept[i], 256);
        block = small_take(&pool, 128);
        ck_assert_ptr_nonnull(block);
        small_put(&pool, block, 128);
        small_fini(&pool);
    }
}
END_TEST

/* As if each were malloc's: taking is counted among requests, not among allocations; the n-th can be made to fail. */
START_TEST(test_every_block_can_fail)
{
    struct small_pool pool;
    small_init(&pool, UINT64_MAX);
    mem_fail_after(1); /* 0: the block; 1: its segment */
    ck_assert_ptr_null(small_take(&pool, 32));
    mem_fail_never();
    void *first = small_take(&pool, 32);
    uint64_t allocations = mem_allocation_count(), requests = mem_request_count(),
             failures = mem_failure_count();
    mem_fail_once(1);
    void *second = small_take(&pool, 32);
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_null(small_take(&pool, 32));
    void *third = small_take(&pool, 32);
    ck_assert_ptr_nonnull(third);
    mem_fail_never();
    ck_assert_uint_eq(mem_allocation_count() - allocations, 0);
    ck_assert_uint_eq(mem_request_count() - requests, 3);
    ck_assert_uint_eq(mem_failure_count() - failures, 1);
    small_put(&pool, first, 32);
    small_put(&pool, second, 32);
    small_put(&pool, third, 32);
    small_fini(&pool);
}
END_TEST

#if MEM_HIDES
START_TEST(test_a_free_block_is_hidden)
{
    struct small_pool pool;
    small_init(&pool, UINT64_MAX);
    uint8_t *block = small_take(&pool, 40);
    ck_assert_int_eq(__asan_address_is_poisoned(block + 39), 0);
    ck_assert_int_eq(__asan_address_is_poisoned(block + 40), 1);
    small_put(&pool, block, 40);
    ck_assert_int_eq(__asan_address_is_poisoned(block), 1);
    ck_assert_int_eq(__asan_address_is_poisoned(block + 39), 1);
    small_fini(&pool);
}
END_TEST
#endif

Suite *unit_suite_base_small(void);
Suite *unit_suite_base_small(void)
{
    Suite *suite = suite_create("base_small");
    TCase *tests = tcase_create("small");
    tcase_add_test(tests, test_blocks_keep_what_is_in_them);
    tcase_add_test(tests, test_sizes_share_no_page_and_lines_begin_where_they_should);
    tcase_add_test(tests, test_what_was_in_use_costs_nothing_again);
    tcase_add_test(tests, test_a_burst_goes_back);
    tcase_add_test(tests, test_nearly_empty_pages_are_bounded);
    tcase_add_test(tests, test_every_block_can_fail);
#if MEM_HIDES
    tcase_add_test(tests, test_a_free_block_is_hidden);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
