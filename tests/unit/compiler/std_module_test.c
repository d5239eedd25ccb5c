/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/std_module_test.c: proves that a standard module and its natives are one name space with two
 * spellings of every name, that names which clash are refused, and that a program holds only what it reaches.
 */
#include "tests/unit/compiler/compile_text.h"
#include "vm/code/toau.h"

#include <check.h>

static const char std_module_test_list[] =
    "record Pair { a: Inner }\nrecord Inner { n: int }\n"
    "let table = [10, 20]\nlet unused = [30]\n"
    "export const answer = 42\n"
    "/// 한국어: 맨처음\n/// The first.\nexport fn foremost(items) { return helper(items, 0) }\n"
    "fn helper(items, index) { let f = fn (i) { return items[i] } return f(index) }\n"
    "fn nobody() { return unused }\n"
    "export fn looked_up(i) { return table[i] }\n"
    "export fn pair(n) -> Pair { return Pair(Inner(n)) }\n"
    "export fn reaches_text(s) { return \"\\(list.reverse([1]))\" + str(nobody()) }\n"
    "test \"unit\" { nobody() }\n";

static const struct stdlib_module std_module_test_modules[] = {
    {"list", (const unsigned char *)std_module_test_list, sizeof std_module_test_list - 1}};

static void std_module_test_run(struct compile_text *test, const char *main_text)
{
    compile_text_init(test, cy_bytes_from_text(main_text));
    test->stdlib = std_module_test_modules;
    test->stdlib_count = 1;
    compile_text_run(test);
}

static void std_module_test_counts(const char *main_text, uint32_t modules, uint32_t functions,
                                   uint32_t globals, uint32_t records)
{
    struct compile_text test;
    std_module_test_run(&test, main_text);
    ck_assert_msg(test.program != NULL, "%.*s", CY_BYTES_ARG(builder_view(&test.messages)));
    ck_assert_uint_eq(test.program->module_count, modules);
    ck_assert_uint_eq(test.program->function_count, functions);
    ck_assert_uint_eq(test.program->global_count, globals);
    ck_assert_uint_eq(test.program->record_count, records);
    compile_text_fini(&test);
}

START_TEST(test_only_what_is_reached_is_in_the_program)
{
    /* foremost, helper, the function in helper; main */
    std_module_test_counts("export fn main(args) { print(list.foremost(args)) }\n", 2, 4, 0, 0);
    /* the module's initialiser and looked_up; main */
    std_module_test_counts("export fn main(args) { print(list.looked_up(0)) }\n", 2, 3, 1, 0);
    std_module_test_counts("export fn main(args) { print(list.pair(1)) }\n", 2, 2, 0, 2);
    /* reaches_text, nobody, the initialiser */
    std_module_test_counts("export fn main(args) { print(list.reaches_text(1)) }\n", 2, 4, 1, 0);
    /* A constant is written where it is used. */
    std_module_test_counts("export fn main(args) { print(list.answer) }\n", 1, 1, 0, 0);
    /* Tests of the program are no part of it. */
    std_module_test_counts("export fn main(args) { }\ntest \"t\" { print(list.foremost([1])) }\n", 1, 1, 0,
                           0);
    /* A mention is a use. */
    std_module_test_counts("import \"list\"\nexport fn main(args) { let f = list.foremost print(f(args)) }\n",
                           2, 4, 0, 0);
}
END_TEST

START_TEST(test_a_program_without_std_has_the_same_bytes)
{
    static const char main_text[] = "export fn main(args) { print(list.reverse(args)) }\n";
    struct builder with, without;
    builder_init(&with);
    builder_init(&without);
    struct compile_text test;
    std_module_test_run(&test, main_text);
    ck_assert(test.program && !cy_failed(toau_write(test.program, &with)));
    compile_text_fini(&test);
    compile_text_init(&test, cy_bytes_from_text(main_text));
    compile_text_run(&test);
    ck_assert(test.program && !cy_failed(toau_write(test.program, &without)));
    compile_text_fini(&test);
    ck_assert(cy_bytes_equal(builder_view(&with), builder_view(&without)));
    builder_fini(&with);
    builder_fini(&without);
}
END_TEST

START_TEST(test_both_spellings_reach_one_function)
{
    std_module_test_counts("export fn main(args) { print(list.foremost(args), 배열.맨처음(args)) }\n", 2, 4,
                           0, 0);
    std_module_test_counts(
        "가져오기 목록 = \"list\"\nexport fn main(args) { print(목록.맨처음(args), 목록.뒤집기(args)) }\n", 2,
        4, 0, 0);
}
END_TEST

START_TEST(test_an_unknown_member_is_met_with_the_nearest_of_both)
{
    struct compile_text test;
    std_module_test_run(
        &test, "export fn main(args) { print(list.formost(args), list.revrse(args), 배열.맨처은(args)) }\n");
    const char *said = builder_text_view(&test.messages);
    ck_assert_uint_eq(test.error_count, 3);
    ck_assert_ptr_nonnull(strstr(said, "did you mean `foremost`?"));
    ck_assert_ptr_nonnull(strstr(said, "did you mean `reverse`?"));
    ck_assert_ptr_nonnull(strstr(said, "did you mean `맨처음`?"));
    compile_text_fini(&test);
}
END_TEST

START_TEST(test_names_that_clash_are_refused)
{
    static const char *const sources[] = {
        "export fn reverse(items) { return items }\n",                  /* a native */
        "/// 한국어: 뒤집기\nexport fn turn(items) { return items }\n", /* a native's Korean name */
        "export fn 정렬(items) { return items }\n",                     /* the same, as a name */
        "/// 한국어: 하나\nexport fn a() { }\n/// 한국어: 하나\nexport fn b() { }\n", /* two exports */
        "/// 한국어: b\nexport fn a() { }\nexport fn b() { }\n",
    };
    for (size_t i = 0; i < CY_COUNT_OF(sources); i++) {
        struct stdlib_module module = {"list", (const unsigned char *)sources[i], strlen(sources[i])};
        struct compile_text test;
        compile_text_init(&test, CY_BYTES("import \"list\"\nexport fn main(args) { }\n"));
        test.stdlib = &module;
        test.stdlib_count = 1;
        compile_text_run(&test);
        ck_assert_msg(test.error_count == 1 && strstr(builder_text_view(&test.messages), "std:list:") &&
                          strstr(builder_text_view(&test.messages), "E0088"),
                      "%zu: %.*s", i, CY_BYTES_ARG(builder_view(&test.messages)));
        compile_text_fini(&test);
    }
}
END_TEST

START_TEST(test_std_modules_may_name_each_other)
{
    static const char list[] = "export fn f(m) { return map.g(m) }\n";
    static const char map[] = "export fn g(m) { return len(m) }\nexport fn h(m) { return list.f(m) }\n";
    static const struct stdlib_module modules[] = {{"list", (const unsigned char *)list, sizeof list - 1},
                                                   {"map", (const unsigned char *)map, sizeof map - 1}};
    struct compile_text test;
    compile_text_init(&test, CY_BYTES("export fn main(args) { print(map.h({a: 1})) }\n"));
    test.stdlib = modules;
    test.stdlib_count = 2;
    compile_text_run(&test);
    ck_assert_msg(test.program != NULL, "%.*s", CY_BYTES_ARG(builder_view(&test.messages)));
    ck_assert_uint_eq(test.program->module_count, 3);
    ck_assert_uint_eq(test.program->function_count, 4);
    compile_text_fini(&test);
}
END_TEST

Suite *unit_suite_compiler_std_module(void);
Suite *unit_suite_compiler_std_module(void)
{
    Suite *suite = suite_create("compiler/std_module");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_only_what_is_reached_is_in_the_program);
    tcase_add_test(tests, test_a_program_without_std_has_the_same_bytes);
    tcase_add_test(tests, test_both_spellings_reach_one_function);
    tcase_add_test(tests, test_an_unknown_member_is_met_with_the_nearest_of_both);
    tcase_add_test(tests, test_names_that_clash_are_refused);
    tcase_add_test(tests, test_std_modules_may_name_each_other);
    suite_add_tcase(suite, tests);
    return suite;
}
