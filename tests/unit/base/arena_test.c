/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/arena_test.c: proves that blocks are aligned, distinct and kept until reset, that the limit holds
 * exactly, and that a failed allocation leaves the arena usable.
 */
#include "vm/base/arena.h"

#include "vm/base/mem.h"

#include <check.h>

START_TEST(test_blocks_are_aligned_and_keep_their_bytes)
{
    struct arena arena;
    arena_init(&arena, 0);
    uint8_t *blocks[300];
    for (size_t i = 0; i < 300; i++) {
        blocks[i] = arena_alloc(&arena, i);
        ck_assert_uint_eq((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)(i & 0xff), i);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t j = 0; j < i; j++) ck_assert_uint_eq(blocks[i][j], i & 0xff);
    ck_assert_ptr_ne(blocks[0], blocks[1]); /* an empty block has an address of its own */
    arena_fini(&arena);
}
END_TEST

START_TEST(test_limit_is_met_and_not_passed)
{
    struct arena arena;
    arena_init(&arena, 64);
    ck_assert_ptr_nonnull(arena_alloc(&arena, 32));
    ck_assert_ptr_nonnull(arena_alloc(&arena, 32));
    ck_assert_uint_eq(arena.used_bytes, 64);
    ck_assert_ptr_null(arena_alloc(&arena, 1));
    arena_reset(&arena);
    ck_assert_ptr_null(arena_alloc(&arena, 65));
    ck_assert_ptr_nonnull(arena_alloc(&arena, 64));
    arena_fini(&arena);
}
END_TEST

START_TEST(test_absurd_sizes_are_refused)
{
    struct arena arena;
    arena_init(&arena, 0);
    ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX));
    ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX - 15));
    ck_assert_ptr_null(arena_copy(&arena, cy_bytes_of("", SIZE_MAX)).data);
    ck_assert_ptr_nonnull(arena_alloc(&arena, 1));
    arena_fini(&arena);
}
END_TEST

START_TEST(test_reset_reuses_one_chunk_without_allocating)
{
    struct arena arena;
    arena_init(&arena, 0);
    for (int i = 0; i < 100; i++) ck_assert_ptr_nonnull(arena_alloc(&arena, 1000));
    arena_reset(&arena);
    ck_assert_uint_eq(arena.used_bytes, 0);
    uint64_t before = mem_allocation_count();
    ck_assert_ptr_nonnull(arena_alloc(&arena, 16000));
    ck_assert_uint_eq(mem_allocation_count(), before);
    arena_fini(&arena);
    arena_fini(&arena); /* twice is harmless */
    arena_reset(&arena);
}
END_TEST

START_TEST(test_grow_is_in_place_for_the_newest_block_only)
{
    struct arena arena;
    arena_init(&arena, 0);
    char *first = arena_alloc(&arena, 3);
    memcpy(first, "ab", 3);
    ck_assert_ptr_eq(arena_grow(&arena, first, 3, 16), first); /* inside its own rounding */
    ck_assert_ptr_eq(arena_grow(&arena, first, 16, 100), first);
    memset(first + 3, 'x', 97);
    char *second = arena_alloc(&arena, 8);
    char *moved = arena_grow(&arena, first, 100, 200);
    ck_assert_ptr_ne(moved, first);
    ck_assert_str_eq(moved, "ab");
    memset(moved, 'y', 200);
    memset(second, 'z', 8);
    ck_assert_int_eq(moved[199], 'y');
    ck_assert_int_eq(second[7], 'z');
    char *far = arena_grow(&arena, moved, 200, 100000); /* leaves its chunk */
    ck_assert_int_eq(far[199], 'y');
    ck_assert_ptr_nonnull(arena_grow(&arena, NULL, 0, 10));
    arena_fini(&arena);
}
END_TEST

START_TEST(test_copy_has_a_nul_behind_it)
{
    struct arena arena;
    arena_init(&arena, 0);
    cy_bytes copy = arena_copy(&arena, CY_BYTES("abc"));
    ck_assert_uint_eq(copy.count, 3);
    ck_assert_str_eq((const char *)copy.data, "abc");
    cy_bytes empty = arena_copy(&arena, CY_BYTES_NONE);
    ck_assert_ptr_nonnull(empty.data);
    ck_assert_uint_eq(empty.count, 0);
    uint8_t *zeros = arena_alloc_zeroed(&arena, 33);
    for (int i = 0; i < 33; i++) ck_assert_uint_eq(zeros[i], 0);
    arena_fini(&arena);
}
END_TEST

START_TEST(test_every_failing_allocation_leaves_a_usable_arena)
{
    bool done = false;
    for (uint64_t n = 0; !done; n++) {
        ck_assert_uint_lt(n, 50);
        struct arena arena;
        arena_init(&arena, 0);
        mem_fail_after(n);
        done = true;
        for (int i = 0; i < 40; i++)
            if (!arena_alloc(&arena, 900)) done = false;
        mem_fail_never();
        ck_assert_ptr_nonnull(arena_alloc(&arena, 100000));
        arena_fini(&arena);
    }
}
END_TEST

START_TEST(test_compiler_arena_exits_instead_of_null)
{
    struct arena arena;
    arena_init(&arena, 16);
    arena.exit_when_exhausted = true;
    (void)!arena_alloc(&arena, 17);
}
END_TEST

Suite *unit_suite_base_arena(void);
Suite *unit_suite_base_arena(void)
{
    Suite *suite = suite_create("base/arena");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_blocks_are_aligned_and_keep_their_bytes);
    tcase_add_test(tests, test_limit_is_met_and_not_passed);
    tcase_add_test(tests, test_absurd_sizes_are_refused);
    tcase_add_test(tests, test_reset_reuses_one_chunk_without_allocating);
    tcase_add_test(tests, test_grow_is_in_place_for_the_newest_block_only);
    tcase_add_test(tests, test_copy_has_a_nul_behind_it);
    tcase_add_test(tests, test_every_failing_allocation_leaves_a_usable_arena);
    tcase_add_exit_test(tests, test_compiler_arena_exits_instead_of_null, 70);
    suite_add_tcase(suite, tests);
    return suite;
}
