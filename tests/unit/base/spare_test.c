/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/spare_test.c: proves that kept blocks come back newest first and as they were behind their first
 * word, that no more than the bound are kept at rest, that a watched list keeps what was in use at once and gives it
 * back by halves when nobody needs it, no more at a time than its bound, and that nobody may look at a block that lies
 * there; that of large blocks those which nobody needs lose their pages, and get them back when they are used.
 */
#include "vm/base/spare.h"

#include "vm/base/limits.h"

#include <check.h>
#ifdef __linux__
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

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

enum { LARGE_BYTES = 20000, LARGE_HEAD_BYTES = 24, LARGE_REST = 64, LARGE_WARM = LARGE_REST / 16 };

/* A list with as many to give back as one trimming may, and one more. */
static void spare_test_trims_at_most(bool large, uint32_t blocks_max)
{
    for (uint32_t over = 0; over < 2; over++) {
        struct spare_test_watch own = {.watch.begin = spare_test_begin};
        struct spare_list list;
        uint32_t count = 2 * (blocks_max + over);
        if (large)
            spare_init_pages(&list, &own.watch, LARGE_BYTES, 1, LARGE_HEAD_BYTES);
        else
            spare_init(&list, &own.watch, sizeof(struct spare_block), 1);
        spare_test_use(&list, count);
        ck_assert(spare_trim(&own.watch)); /* the interval in which they came */
        count = list.count;
        while (count < 2 * (blocks_max + over)) {
            spare_put(&list, mem_alloc(list.block_bytes));
            count++;
        }
        list.low = list.count; /* an interval begins */
        ck_assert(spare_trim(&own.watch));
        ck_assert_uint_eq(count - list.count, blocks_max);
        spare_fini(&list);
    }
}

START_TEST(test_trim_blocks_at_and_past_the_limit)
{
    spare_test_trims_at_most(false, LIMIT_SPARE_TRIM_BLOCKS);
    spare_test_trims_at_most(true, LIMIT_SPARE_TRIM_LARGE_BLOCKS);
}
END_TEST

/* Takes `count`, writes to all of each, puts them back. */
static void spare_test_fill(struct spare_list *list, uint32_t count)
{
    uint8_t *blocks[2 * LARGE_REST];
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = spare_take(list);
        if (!blocks[i]) blocks[i] = mem_alloc(list->block_bytes);
        ck_assert_ptr_nonnull(blocks[i]);
        memset(blocks[i], (int)i + 1, list->block_bytes);
    }
    for (uint32_t i = count; i-- > 0;) spare_put(list, blocks[i]);
}

/* How many of those that lie here have pages. Either all or none of a block's are. */
static uint32_t spare_test_warm_count(const struct spare_list *list)
{
#ifdef __linux__
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint32_t count = 0;
    uint8_t *block = list->first;
    for (uint32_t i = 0; i < list->count; i++) {
        uintptr_t begin = ((uintptr_t)block + LARGE_HEAD_BYTES + page_bytes - 1) & ~(page_bytes - 1);
        uintptr_t end = ((uintptr_t)block + LARGE_BYTES) & ~(page_bytes - 1);
        unsigned char resident[LARGE_BYTES / 4096 + 1];
        ck_assert_uint_gt(end, begin);
        ck_assert_int_eq(mincore((void *)begin, end - begin, resident), 0);
        for (size_t k = 1; k < (end - begin) / page_bytes; k++)
            ck_assert_int_eq(resident[k] & 1, resident[0] & 1);
        count += resident[0] & 1;
        memcpy(&block, block, sizeof block);
    }
    return count;
#else
    return list->count - spare_cold_count(list);
#endif
}

START_TEST(test_large_blocks_lose_their_pages)
{
    struct spare_test_watch own = {.watch.begin = spare_test_begin};
    struct spare_list list;
    spare_init_pages(&list, &own.watch, LARGE_BYTES, LARGE_REST, LARGE_HEAD_BYTES);
    spare_test_fill(&list, LARGE_WARM);
    ck_assert_uint_eq(own.begun, 0); /* a few are always warm */
    for (uint32_t round = 1; round <= 3; round++) {
        spare_test_fill(&list, LARGE_REST);
        ck_assert_uint_eq(spare_test_warm_count(&list), LARGE_REST);
        ck_assert_uint_eq(own.begun, round);
        uint32_t intervals = 0;
        for (; spare_test_warm_count(&list) > LARGE_WARM; intervals++) {
            ck_assert_uint_lt(intervals, 12);
            ck_assert(spare_trim(&own.watch));
        }
        ck_assert_uint_gt(intervals, 3); /* by halves */
        ck_assert_uint_gt(list.count, 3 * LARGE_REST / 4);
        /* What was cold is there for a while, and comes back without an allocation. */
        uint64_t before = mem_allocation_count();
        uint32_t count = list.count;
        spare_test_fill(&list, count);
        ck_assert_uint_eq(mem_allocation_count(), before);
        ck_assert_uint_eq(spare_test_warm_count(&list), count);
        for (intervals = 0; spare_trim(&own.watch); intervals++) {
            ck_assert_uint_le(list.count, count);
            ck_assert_uint_lt(intervals, 2 * LARGE_REST);
        }
        ck_assert_uint_eq(list.count, LARGE_WARM);
        ck_assert_uint_eq(spare_test_warm_count(&list), LARGE_WARM);
    }
    spare_test_fill(&list, LARGE_REST);
    while (spare_test_warm_count(&list) > LARGE_WARM) ck_assert(spare_trim(&own.watch));
    uint32_t left = list.count;
    /* A block keeps its head. */
    uint8_t head[LARGE_HEAD_BYTES];
    void *blocks[LARGE_REST];
    for (uint32_t i = 0; i < left; i++) blocks[i] = spare_take(&list);
    memset(head, (int)left, sizeof head); /* the lowest that is left: blocks were put back in reverse */
    ck_assert_mem_eq((uint8_t *)blocks[left - 1] + sizeof(void *), head, sizeof head - sizeof(void *));
    for (uint32_t i = 0; i < left; i++) mem_free(blocks[i]);
    spare_fini(&list);
}
END_TEST

/* What is needed in every interval keeps its pages, also what a list that nobody watched any more needs again. */
START_TEST(test_what_is_needed_keeps_its_pages)
{
    struct spare_test_watch own = {.watch.begin = spare_test_begin};
    struct spare_list list;
    spare_init_pages(&list, &own.watch, LARGE_BYTES, LARGE_REST, LARGE_HEAD_BYTES);
    spare_test_fill(&list, LARGE_REST);
    while (spare_trim(&own.watch)) {}
    uint32_t needed = LARGE_REST / 2;
    for (int i = 0; i < 30; i++) {
        spare_test_fill(&list, needed);
        ck_assert_uint_eq(own.begun, 2);
        ck_assert(spare_trim(&own.watch));
        ck_assert_uint_ge(spare_test_warm_count(&list), needed);
    }
    ck_assert_uint_eq(spare_test_warm_count(&list), needed);
    spare_fini(&list);
}
END_TEST

#if defined(__linux__) && !MEM_HIDES /* AddressSanitizer keeps what was freed */
static size_t spare_test_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long total, resident;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lu %lu", &total, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* At the bound of what is worth it, and below. */
START_TEST(test_pages_of_a_burst_go_back)
{
    enum { BLOCK_BYTES = 1024, BLOCKS = 32 * LIMIT_SPARE_TRIM_BYTES / BLOCK_BYTES };
    for (int under = 0; under < 2; under++) {
        struct spare_test_watch own = {.watch.begin = spare_test_begin};
        struct spare_list list;
        spare_init(&list, &own.watch, BLOCK_BYTES, 10);
        size_t before = spare_test_resident_bytes();
        spare_test_use(&list, under ? LIMIT_SPARE_TRIM_BYTES / BLOCK_BYTES + 9 : BLOCKS);
        while (spare_trim(&own.watch)) {}
        ck_assert_uint_eq(list.count, 10);
        if (under)
            ck_assert_uint_eq(own.watch.freed_bytes, LIMIT_SPARE_TRIM_BYTES - BLOCK_BYTES);
        else
            ck_assert_uint_lt(spare_test_resident_bytes(), before + 4 * LIMIT_SPARE_TRIM_BYTES);
        spare_fini(&list);
    }
}
END_TEST
#endif

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
    tcase_add_test(tests, test_large_blocks_lose_their_pages);
    tcase_add_test(tests, test_what_is_needed_keeps_its_pages);
#if defined(__linux__) && !MEM_HIDES
    tcase_add_test(tests, test_pages_of_a_burst_go_back);
#endif
#if MEM_HIDES
    tcase_add_test(tests, test_a_kept_block_is_hidden);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
