/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_memory_test.c: proves that nghttp2's memory is kept for its next request, that what is kept is
 * bounded, and that blocks keep their bytes when they grow.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/h2_memory.h"

#include <check.h>
#include <string.h>

START_TEST(test_a_block_serves_again)
{
    struct h2_memory memory;
    h2_memory_init(&memory, NULL);
    nghttp2_mem *library = &memory.library;
    for (size_t bytes = 1; bytes <= 70000; bytes = bytes * 2 + 1) {
        uint8_t *first = library->malloc(bytes, library->mem_user_data);
        ck_assert_ptr_nonnull(first);
        memset(first, 0x5a, bytes);
        library->free(first, library->mem_user_data);
        uint64_t before = mem_allocation_count();
        uint8_t *second = library->calloc(1, bytes, library->mem_user_data);
        ck_assert_ptr_nonnull(second);
        if (bytes <= 65536) ck_assert_uint_eq(mem_allocation_count(), before);
        for (size_t i = 0; i < bytes; i++) ck_assert_int_eq(second[i], 0);
        library->free(second, library->mem_user_data);
    }
    h2_memory_fini(&memory);
}
END_TEST

START_TEST(test_growing_keeps_the_bytes)
{
    struct h2_memory memory;
    h2_memory_init(&memory, NULL);
    nghttp2_mem *library = &memory.library;
    uint8_t *block = library->realloc(NULL, 3, library->mem_user_data);
    memcpy(block, "abc", 3);
    for (size_t bytes = 5; bytes < 200000; bytes *= 3) {
        block = library->realloc(block, bytes, library->mem_user_data);
        ck_assert_int_eq(memcmp(block, "abc", 3), 0);
        memset(block + 3, 0x77, bytes - 3);
    }
    library->free(block, library->mem_user_data);
    library->free(NULL, library->mem_user_data);
    ck_assert_ptr_null(library->calloc(SIZE_MAX / 2, 3, library->mem_user_data));
    ck_assert_ptr_null(library->malloc(SIZE_MAX / 2, library->mem_user_data));
    h2_memory_fini(&memory);
}
END_TEST

/* At rest; what was in use at once of late is spare_test.c's. */
START_TEST(test_what_is_kept_is_bounded)
{
    struct h2_memory memory;
    enum { COUNT = 200, BYTES = 16384 };
    void *blocks[COUNT];
    h2_memory_init(&memory, NULL);
    nghttp2_mem *library = &memory.library;
    for (int i = 0; i < COUNT; i++) blocks[i] = library->malloc(BYTES, library->mem_user_data);
    for (int i = 0; i < COUNT; i++) library->free(blocks[i], library->mem_user_data);
    uint64_t kept_max = 0, kept_count = 0;
    for (uint32_t i = 0; i < H2_MEMORY_CLASSES; i++) {
        kept_max += (uint64_t)memory.spare[i].rest_count << (5 + i);
        kept_count += memory.spare[i].count;
    }
    ck_assert_uint_le(kept_max, LIMIT_HTTP2_MEMORY_FREE_BYTES);
    ck_assert_uint_eq(kept_count, LIMIT_HTTP2_MEMORY_FREE_BYTES / H2_MEMORY_CLASSES / BYTES);
    ck_assert_uint_eq(memory.lent_count, 0);
    h2_memory_fini(&memory);
}
END_TEST

START_TEST(test_failing_is_told)
{
    struct h2_memory memory;
    h2_memory_init(&memory, NULL);
    nghttp2_mem *library = &memory.library;
    void *block = library->malloc(40, library->mem_user_data);
    mem_fail_after(0);
    ck_assert_ptr_null(library->malloc(5000, library->mem_user_data));
    mem_fail_after(0);
    ck_assert_ptr_null(library->realloc(block, 5000, library->mem_user_data));
    mem_fail_never();
    library->free(block, library->mem_user_data);
    h2_memory_fini(&memory);
}
END_TEST

Suite *unit_suite_http_h2_memory(void);
Suite *unit_suite_http_h2_memory(void)
{
    Suite *suite = suite_create("http_h2_memory");
    TCase *cases = tcase_create("h2_memory");
    tcase_add_test(cases, test_a_block_serves_again);
    tcase_add_test(cases, test_growing_keeps_the_bytes);
    tcase_add_test(cases, test_what_is_kept_is_bounded);
    tcase_add_test(cases, test_failing_is_told);
    suite_add_tcase(suite, cases);
    return suite;
}
