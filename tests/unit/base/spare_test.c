/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/spare_test.c: proves that kept blocks come back newest first and as they were behind their first
 * word, that no more than the bound are kept, and that a burst beyond it costs allocations the next time.
 */
#include "vm/base/spare.h"

#include "vm/base/limits.h"

#include <check.h>

struct spare_block {
    void *link;
    uint64_t number;
};

START_TEST(test_blocks_come_back_newest_first)
{
    struct spare_list list = {0};
    ck_assert_ptr_null(spare_take(&list));
    for (uint64_t i = 0; i < 3; i++) {
        struct spare_block *block = mem_alloc(sizeof *block);
        ck_assert_ptr_nonnull(block);
        block->number = i;
        spare_put(&list, block, 3);
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

/* As many as the bound, and one more, in use at once. */
START_TEST(test_no_more_than_the_bound_are_kept)
{
    struct spare_list list = {0};
    for (uint32_t over = 0; over < 2; over++) {
        uint32_t count = LIMIT_HTTP_SPARE + over;
        for (int burst = 0; burst < 2; burst++) {
            static struct spare_block *blocks[LIMIT_HTTP_SPARE + 1];
            uint64_t before = mem_allocation_count();
            for (uint32_t i = 0; i < count; i++) {
                blocks[i] = spare_take(&list);
                if (!blocks[i]) blocks[i] = mem_alloc(sizeof *blocks[i]);
                ck_assert_ptr_nonnull(blocks[i]);
            }
            if (burst > 0) ck_assert_uint_eq(mem_allocation_count() - before, over);
            for (uint32_t i = 0; i < count; i++) spare_put(&list, blocks[i], LIMIT_HTTP_SPARE);
            ck_assert_uint_eq(list.count, LIMIT_HTTP_SPARE);
        }
    }
    spare_fini(&list);
    ck_assert_uint_eq(list.count, 0);
}
END_TEST

Suite *unit_suite_base_spare(void);
Suite *unit_suite_base_spare(void)
{
    Suite *suite = suite_create("base_spare");
    TCase *tests = tcase_create("spare");
    tcase_add_test(tests, test_blocks_come_back_newest_first);
    tcase_add_test(tests, test_no_more_than_the_bound_are_kept);
    suite_add_tcase(suite, tests);
    return suite;
}
