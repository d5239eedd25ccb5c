/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/spare_test.c: proves that kept blocks come back newest first and as they were behind their first
 * word, that no more than the bound are kept at rest, that a watched list keeps what was in use at once and gives it
 * back by halves when nobody needs it, no more at a time than its bound, and that nobody may look at a block that lies
 * there.
 */
#include "vm/base/spare.h"

#include "vm/base/limits.h"

#include <check.h>

struct spare_block {
    void *link;
    uint64_t number;
};

struct spare_test_watch {
    struct spare_watch watch;
    uint32_t begun;
};

static void spare_test_begin(struct spare_watch *watch)
{
    CY_CONTAINER_OF(watch, struct spare_test_watch, watch)->begun++;
}

/* `count` blocks are in use at once. */
static void spare_test_use(struct spare_list *list, uint32_t count)
{
    void **blocks = mem_alloc(count * sizeof *blocks);
    ck_assert_ptr_nonnull(blocks);
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = spare_take(list);
        if (!blocks[i]) blocks[i] = mem_alloc(list->block_bytes);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    for (uint32_t i = 0; i < count; i++) spare_put(list, blocks[i]);
    mem_free(blocks);
}

START_TEST(test_blocks_come_back_newest_first)
{
    struct spare_list list;
    spare_init(&list, NULL, sizeof(struct spare_block), 3);
    ck_assert_ptr_null(spare_take(&list));
    for (uint64_t i = 0; i < 3; i++) {
        struct spare_block *block = mem_alloc(sizeof *block);
        ck_assert_ptr_nonnull(block);
        block->number = i;
        spare_put(&list, block);
    }
    ck_assert_uint_eq(list.count, 3);
    for (uint64_t i = 3; i-- > 0;) {
        struct spare_block *block = spare_take(&list);
        ck_assert_ptr_nonnull(block);
        ck_assert_uint_eq(block->number, i);
        mem_free(block);
    }
    ck_assert_ptr_null(spare_take(&list));
    ck_assert_uint_eq(list.count, 0);
}
END_TEST

/* As many as at rest, and one more, in use at once; nobody trims. */
START_TEST(test_no_more_than_the_bound_are_kept)
{
    struct spare_list list;
    spare_init(&list, NULL, sizeof(struct spare_block), LIMIT_HTTP_SPARE);
    for (uint32_t over = 0; over < 2; over++) {
        for (int burst = 0; burst < 2; burst++) {
            uint64_t before = mem_allocation_count();
            spare_test_use(&list, LIMIT_HTTP_SPARE + over);
            if (burst > 0)
                ck_assert_uint_eq(mem_allocation_count() - before, 1 + over); /* one is the test's */
            ck_assert_uint_eq(list.count, LIMIT_HTTP_SPARE);
        }
    }
    spare_fini(&list);
    ck_assert_uint_eq(list.count, 0);
}
END_TEST

/* Past the bound too, what is needed again and again is there. */
START_TEST(test_what_is_in_use_at_once_is_kept)
{
    struct spare_test_watch own = {.watch.begin = spare_test_begin};
    struct spare_list list, other;
    spare_init(&list, &own.watch, sizeof(struct spare_block), LIMIT_HTTP_SPARE);
    spare_init(&other, &own.watch, sizeof(struct spare_block), 2);
    spare_test_use(&list, LIMIT_HTTP_SPARE);
    ck_assert_uint_eq(own.begun, 0); /* as many as at rest: nothing to trim */
    uint32_t peak = 4 * LIMIT_HTTP_SPARE;
    spare_test_use(&list, peak);
    spare_test_use(&other, 3);
    ck_assert_uint_eq(own.begun, 1);
    ck_assert_uint_eq(list.count, peak);
    for (int interval = 0; interval < 100; interval++) {
        uint64_t before = mem_allocation_count();
        spare_test_use(&list, peak);
        /* The first interval began with what had just come. */
        if (interval > 1) ck_assert_uint_eq(mem_allocation_count() - before, 1);
        ck_assert(spare_trim(&own.watch));
    }
    spare_fini(&list);
    spare_fini(&other);
    ck_assert_ptr_null(own.watch.first);
}
END_TEST

START_TEST(test_a_burst_is_given_back)
{
    struct spare_test_watch own = {.watch.begin = spare_test_begin};
    struct spare_list list;
    spare_init(&list, &own.watch, sizeof(struct spare_block), 10);
    for (uint32_t burst = 1; burst <= 2; burst++) {
        spare_test_use(&list, 1000);
        ck_assert_uint_eq(own.begun, burst);
        uint32_t intervals = 1, before = list.count;
        for (; spare_trim(&own.watch); intervals++) {
            ck_assert_uint_lt(list.count, before);
            before = list.count;
            ck_assert_uint_lt(intervals, 12);
        }
        ck_assert_uint_eq(list.count, 10);
        ck_assert_ptr_null(own.watch.first);
    }
    /* What half of the burst still needs stays. */
    spare_test_use(&list, 1000);
    for (int i = 0; i < 30; i++) {
        spare_test_use(&list, 500);
        ck_assert(spare_trim(&own.watch));
    }
    ck_assert_uint_ge(list.count, 500);
    ck_assert_uint_le(list.count, 501);
    spare_fini(&list);
}
END_TEST

/* A list with as many to give back as one trimming may, and one more. */
START_TEST(test_trim_blocks_at_and_past_the_limit)
{
    for (uint32_t over = 0; over < 2; over++) {
        struct spare_test_watch own = {.watch.begin = spare_test_begin};
        struct spare_list list;
        uint32_t count = 2 * (LIMIT_SPARE_TRIM_BLOCKS + over);
        spare_init(&list, &own.watch, sizeof(struct spare_block), 1);
        spare_test_use(&list, count);
        ck_assert(spare_trim(&own.watch)); /* the interval in which they came */
        count = list.count;
        while (count < 2 * (LIMIT_SPARE_TRIM_BLOCKS + over)) {
            spare_put(&list, mem_alloc(sizeof(struct spare_block)));
            count++;
        }
        list.low = list.count; /* an interval begins */
        ck_assert(spare_trim(&own.watch));
        ck_assert_uint_eq(count - list.count, LIMIT_SPARE_TRIM_BLOCKS);
        spare_fini(&list);
    }
}
END_TEST

#if MEM_HIDES
START_TEST(test_a_kept_block_is_hidden)
{
    struct spare_list list;
    spare_init(&list, NULL, sizeof(struct spare_block), 2);
    struct spare_block *block = mem_alloc(sizeof *block);
    ck_assert_ptr_nonnull(block);
    block->number = 7;
    spare_put(&list, block);
    ck_assert_int_eq(__asan_address_is_poisoned(&block->link), 0);
    ck_assert_int_eq(__asan_address_is_poisoned(&block->number), 1);
    ck_assert_ptr_eq(spare_take(&list), block);
    ck_assert_uint_eq(block->number, 7);
    mem_free(block);
}
END_TEST
#endif

Suite *unit_suite_base_spare(void);
Suite *unit_suite_base_spare(void)
{
    Suite *suite = suite_create("base_spare");
    TCase *tests = tcase_create("spare");
    tcase_add_test(tests, test_blocks_come_back_newest_first);
    tcase_add_test(tests, test_no_more_than_the_bound_are_kept);
    tcase_add_test(tests, test_what_is_in_use_at_once_is_kept);
    tcase_add_test(tests, test_a_burst_is_given_back);
    tcase_add_test(tests, test_trim_blocks_at_and_past_the_limit);
#if MEM_HIDES
    tcase_add_test(tests, test_a_kept_block_is_hidden);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
