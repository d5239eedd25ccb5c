/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/map_test.c: proves that a map finds what was put in, walks in insertion order whatever the seed,
 * and is as before after an insert that had no memory.
 */
#include "vm/base/map.h"

#include "vm/base/mem.h"

#include <check.h>
#include <stdio.h>

static cy_bytes map_test_key(char text[16], uint32_t number)
{
    return cy_bytes_of(text, (size_t)snprintf(text, 16, "key%u", number));
}

START_TEST(test_insertion_order_and_lookup_of_many)
{
    struct map map;
    map_init(&map, (hash_seed){(uint64_t)_i, 99});
    char text[16];
    for (uint32_t i = 0; i < 2000; i++) {
        bool inserted;
        struct map_entry *entry = map_insert(&map, map_test_key(text, i), &inserted);
        ck_assert(entry && inserted);
        ck_assert_uint_eq(entry->value.number, 0);
        entry->value.number = i;
    }
    for (uint32_t i = 0; i < 2000; i++) {
        ck_assert_uint_eq(map.entries[i].value.number, i);
        ck_assert_uint_eq(map_find(&map, map_test_key(text, i))->value.number, i);
    }
    ck_assert_ptr_null(map_find(&map, map_test_key(text, 2000)));
    map_fini(&map);
}
END_TEST

START_TEST(test_second_insert_finds_the_first)
{
    struct map map;
    bool inserted = false;
    map_init(&map, (hash_seed){1, 2});
    map_insert(&map, CY_BYTES("a"), &inserted)->value.number = 5;
    ck_assert(inserted);
    ck_assert_uint_eq(map_insert(&map, CY_BYTES("a"), &inserted)->value.number, 5);
    ck_assert(!inserted);
    ck_assert_uint_eq(map.count, 1);
    map_fini(&map);
}
END_TEST

START_TEST(test_keys_are_copied_and_may_hold_anything)
{
    struct map map;
    map_init(&map, (hash_seed){1, 2});
    char text[] = "name";
    ck_assert_ptr_nonnull(map_insert(&map, cy_bytes_of(text, 4), NULL));
    text[0] = 'g';
    ck_assert_ptr_nonnull(map_find(&map, CY_BYTES("name")));
    ck_assert_int_eq(map.entries[0].key.data[4], 0); /* the NUL behind the key */
    ck_assert_ptr_nonnull(map_insert(&map, CY_BYTES_NONE, NULL));
    ck_assert_ptr_nonnull(map_find(&map, CY_BYTES("")));
    ck_assert_ptr_nonnull(map_insert(&map, CY_BYTES("a\0b"), NULL));
    ck_assert_ptr_null(map_find(&map, CY_BYTES("a")));
    map_fini(&map);
}
END_TEST

START_TEST(test_empty_and_cleared_maps)
{
    struct map map;
    map_init(&map, (hash_seed){1, 2});
    ck_assert_ptr_null(map_find(&map, CY_BYTES("a")));
    map_clear(&map);
    ck_assert_ptr_nonnull(map_insert(&map, CY_BYTES("a"), NULL));
    map_clear(&map);
    ck_assert_ptr_null(map_find(&map, CY_BYTES("a")));
    ck_assert_uint_eq(map.count, 0);
    ck_assert_ptr_nonnull(map_insert(&map, CY_BYTES("a"), NULL));
    ck_assert_uint_eq(map.count, 1);
    map_fini(&map);
}
END_TEST

START_TEST(test_failed_inserts_change_nothing)
{
    bool done = false;
    for (uint64_t n = 0; !done; n++) {
        ck_assert_uint_lt(n, 200);
        struct map map;
        map_init(&map, (hash_seed){1, 2});
        mem_fail_after(n);
        char text[16];
        uint32_t stored = 0;
        while (stored < 40 && map_insert(&map, map_test_key(text, stored), NULL)) stored++;
        mem_fail_never();
        ck_assert_uint_eq(map.count, stored);
        for (uint32_t i = 0; i < stored; i++) ck_assert_ptr_nonnull(map_find(&map, map_test_key(text, i)));
        ck_assert_ptr_null(map_find(&map, map_test_key(text, stored)));
        ck_assert_ptr_nonnull(map_insert(&map, map_test_key(text, stored), NULL)); /* and the map goes on */
        done = stored == 40;
        map_fini(&map);
    }
}
END_TEST

Suite *unit_suite_base_map(void);
Suite *unit_suite_base_map(void)
{
    Suite *suite = suite_create("base/map");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, test_insertion_order_and_lookup_of_many, 0, 3);
    tcase_add_test(tests, test_second_insert_finds_the_first);
    tcase_add_test(tests, test_keys_are_copied_and_may_hold_anything);
    tcase_add_test(tests, test_empty_and_cleared_maps);
    tcase_add_test(tests, test_failed_inserts_change_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
