/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/toau_write_test.c: pins the bytes of the smallest file, and proves that bytes depend on
 * the program only and that reading and writing again gives the same ones.
 */
#include "vm/code/toau.h"

#include "tests/unit/code/program_sample.h"
#include "vm/base/mem.h"

#include <check.h>

/* docs/TOAU.md walks through these bytes. */
/* clang-format off */
static const uint8_t toau_write_test_smallest[] = {
    0x93, 'T', 'O', 'A', 'U', '\r', '\n', 0x1a, 1, 0, 0, 0, 0, 0, 0, 0, 192, 0, 0, 0,
    /* STRINGS */ 1, 24, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 'm', 'a', 'i', 'n', 8, 0, 0, 0, 'm', 'a', 'i', 'n',
    '.', 'h', 'a', 'n',
    /* CONSTANTS */ 2, 4, 0, 0, 0, 0, 0, 0, 0,
    /* NATIVES */ 3, 4, 0, 0, 0, 0, 0, 0, 0,
    /* CAPABILITIES */ 4, 4, 0, 0, 0, 0, 0, 0, 0,
    /* RECORDS */ 5, 4, 0, 0, 0, 0, 0, 0, 0,
    /* MODULES */ 6, 45, 0, 0, 0, 1, 0, 0, 0,
    /* name, file, init */ 0, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    /* globals, functions, exports */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
    /* export */ 0, 0, 0, 0, 1, 0, 0, 0, 0,
    /* GLOBALS */ 7, 4, 0, 0, 0, 0, 0, 0, 0,
    /* FUNCTIONS */ 8, 30, 0, 0, 0, 1, 0, 0, 0,
    /* name, module, parent */ 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    /* params, required, locals, stack, captures */ 1, 0, 1, 0, 1, 0, 0, 0,
    /* code */ 2, 0, 0, 0, 0x01, 0x5b,
    /* LINES */ 9, 4, 0, 0, 0, 0, 0, 0, 0,
};
/* clang-format on */

START_TEST(test_the_smallest_file_is_pinned)
{
    struct program *program = program_sample_smallest();
    struct builder file;
    builder_init(&file);
    ck_assert_uint_eq(toau_write(program, &file).code, CY_ERR_NONE);
    ck_assert_uint_eq(file.count, sizeof toau_write_test_smallest + 4);
    ck_assert_mem_eq(file.data, toau_write_test_smallest, sizeof toau_write_test_smallest);
    ck_assert_uint_eq(cy_load_u32(file.data + file.count - 4), 0xd84fe115); /* computed by another program */
    builder_fini(&file);
    program_free(&program);
}
END_TEST

START_TEST(test_read_and_write_give_the_same_bytes)
{
    struct program *(*const samples[])(void) = {program_sample_smallest, program_sample_broad,
                                                program_sample_wide};
    struct program *program = samples[_i](), *again, *loaded;
    struct code_failure failure;
    struct builder file, copy;
    builder_init(&file);
    builder_init(&copy);
    builder_text(&copy, "in front"); /* appending changes nothing */
    ck_assert_uint_eq(toau_write(program, &file).code, CY_ERR_NONE);
    program_free(&program);
    again = samples[_i](); /* other addresses */
    ck_assert_uint_eq(toau_write(again, &copy).code, CY_ERR_NONE);
    program_free(&again);
    ck_assert(cy_bytes_equal(builder_view(&file), cy_bytes_skip(builder_view(&copy), 8)));

    ck_assert_uint_eq(toau_load(cy_bytes_skip(builder_view(&copy), 8), &loaded, &failure).code, CY_ERR_NONE);
    builder_fini(&copy); /* the program borrows nothing */
    ck_assert_uint_eq(toau_write(loaded, &copy).code, CY_ERR_NONE);
    ck_assert(cy_bytes_equal(builder_view(&file), builder_view(&copy)));
    program_free(&loaded);
    builder_fini(&copy);
    builder_fini(&file);
}
END_TEST

START_TEST(test_no_memory_is_an_error_and_nothing_else)
{
    struct program *program = program_sample_broad();
    struct builder file;
    cy_err err = CY_ERR(NO_MEMORY);
    for (uint64_t n = 0; cy_failed(err); n++) {
        builder_init(&file);
        mem_fail_after(n);
        err = toau_write(program, &file);
        mem_fail_never();
        ck_assert(!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY));
        builder_fini(&file);
    }
    program_free(&program);
}
END_TEST

Suite *unit_suite_code_toau_write(void);
Suite *unit_suite_code_toau_write(void)
{
    Suite *suite = suite_create("code/toau_write");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, test_the_smallest_file_is_pinned);
    tcase_add_loop_test(tests, test_read_and_write_give_the_same_bytes, 0, 3);
    tcase_add_test(tests, test_no_memory_is_an_error_and_nothing_else);
    suite_add_tcase(suite, tests);
    return suite;
}
