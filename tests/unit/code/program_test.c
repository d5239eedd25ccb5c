/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_test.c: proves the questions a program answers: exports, places, capabilities.
 */
#include "vm/code/program.h"

#include "tests/unit/code/program_builder.h"
#include "tests/unit/code/program_sample.h"
#include "vm/code/native_table.h"

#include <check.h>

START_TEST(test_exports_are_found_by_module)
{
    struct program *program = program_sample_broad();
    const struct export_entry *export = program_find_export(program, 1, CY_BYTES("main"));
    ck_assert_ptr_nonnull(export);
    ck_assert_int_eq(export->kind, EXPORT_FUNCTION);
    ck_assert(
        cy_bytes_equal(program_string(program, program->functions[export->index].name), CY_BYTES("main")));
    ck_assert_ptr_null(program_find_export(program, 0, CY_BYTES("main")));
    ck_assert_ptr_nonnull(program_find_export(program, 0, CY_BYTES("표")));
    program_free(&program);
    ck_assert_ptr_null(program);
    program_free(&program); /* NULL is allowed */
}
END_TEST

START_TEST(test_place_is_the_entry_at_or_before)
{
    struct line_entry lines[] = {{2, 10, 1}, {5, 11, 3}, {9, 7, 2}};
    struct function function = {.line_count = 3, .lines = lines};
    static const uint32_t expected[12] = {0, 0, 10, 10, 10, 11, 11, 11, 11, 7, 7, 7};
    for (uint32_t offset = 0; offset < 12; offset++) {
        uint32_t line = 0, column = 0;
        ck_assert_int_eq(function_place(&function, offset, &line, &column), expected[offset] != 0);
        ck_assert_uint_eq(line, expected[offset]);
    }
    uint32_t line, column;
    ck_assert(function_place(&function, UINT32_MAX, &line, &column));
    ck_assert_uint_eq(column, 2);
    function.line_count = 0;
    ck_assert(!function_place(&function, 5, &line, &column));
}
END_TEST

START_TEST(test_capabilities_are_those_of_the_natives)
{
    struct program *program = program_sample_broad();
    ck_assert_uint_eq(program_capabilities(program), CAPABILITY_ENV);
    ck_assert_uint_eq(program->capabilities, CAPABILITY_ENV);
    program_free(&program);
    program = program_sample_smallest();
    ck_assert_uint_eq(program_capabilities(program), CAPABILITY_NONE);
    program_free(&program);
}
END_TEST

Suite *unit_suite_code_program(void);
Suite *unit_suite_code_program(void)
{
    Suite *suite = suite_create("code/program");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_exports_are_found_by_module);
    tcase_add_test(tests, test_place_is_the_entry_at_or_before);
    tcase_add_test(tests, test_capabilities_are_those_of_the_natives);
    suite_add_tcase(suite, tests);
    return suite;
}
