/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/parse_test.c: proves where statements end, that one mistake costs one message and the rest of the
 * file is still read, and that no source makes the parser recurse without bound.
 */
#include "tests/unit/compiler/compile_text.h"
#include "vm/base/limits.h"

#include <check.h>

START_TEST(test_statements_end_without_separators)
{
    compile_text_accept("let a = 1 let b = 2 print(a) print(b)");
    compile_text_accept("let a = print\n(a)(1)"); /* `(` does not continue from the next line */
    compile_text_accept("let a = [1]\nlet b = a\n  .len\nprint(b)"); /* `.` does */
    compile_text_accept("let a = 1\n + 2\n * 3\n and 4\nprint(a)");
    compile_text_accept("return\nprint(1)");
    compile_text_accept("if args { return } return args");
    compile_text_accept("let m = {} if m == {a: 1} { print(m) }");
    compile_text_accept("만약 (args) { print(1) } 혹시 args { } 아니면 { print(2) }");
    compile_text_accept("let f = fn (a, b = {x: 1},) { return a } print(f([1, 2,], {y: 2,},))");
}
END_TEST

START_TEST(test_every_mistake_of_a_file_is_reported)
{
    compile_text_expect("fn a( { }\n"
                        "fn b() { let = 1\n let y = ) \n if { print(1) }\n match 1 { + { } }\n}\n"
                        "fn c() { for x on xs { } }\n"
                        "record { }\n"
                        "let 1 = 2\n"
                        "export fn main(args) { return [1, 2 }\n",
                        false,
                        "main.han:1:7: error E0020: expected a name, found `{`\n"
                        "    fn a( { }\n"
                        "          ^\n"
                        "main.han:2:14: error E0020: expected a name, found `=`\n"
                        "    fn b() { let = 1\n"
                        "                 ^\n"
                        "main.han:3:10: error E0021: expected an expression, found `)`\n"
                        "     let y = ) \n"
                        "             ^\n"
                        "main.han:4:16: error E0020: expected `:`, found `}`\n"
                        "     if { print(1) }\n"
                        "                   ^\n"
                        "main.han:5:12: error E0035: this cannot be a pattern of match\n"
                        "     match 1 { + { } }\n"
                        "               ^\n"
                        "  hint: patterns are literals, ranges, constants and kinds\n"
                        "main.han:7:16: error E0020: expected `in`, found `on`\n"
                        "    fn c() { for x on xs { } }\n"
                        "                   ^^\n"
                        "main.han:8:8: error E0020: expected a name, found `{`\n"
                        "    record { }\n"
                        "           ^\n"
                        "main.han:9:5: error E0020: expected a name, found `1`\n"
                        "    let 1 = 2\n"
                        "        ^\n"
                        "main.han:10:37: error E0020: expected `]`, found `}`\n"
                        "    export fn main(args) { return [1, 2 }\n"
                        "                                        ^\n"
                        "  main.han:10:31: opened here\n"
                        "    export fn main(args) { return [1, 2 }\n"
                        "                                  -\n"
                        "9 errors\n");
}
END_TEST

START_TEST(test_an_open_block_names_its_line)
{
    compile_text_expect("export fn main(args) {\n    if args {\n", false,
                        "main.han:2:13: error E0023: the `{` of line 2 is not closed\n"
                        "        if args {\n"
                        "                ^\n"
                        "  hint: write `}` where this block ends\n"
                        "1 error\n");
}
END_TEST

static void parse_test_put(struct builder *text, const char *piece, size_t times)
{
    for (size_t i = 0; i < times; i++) builder_text(text, piece);
}

static uint32_t parse_test_errors(const char *before, const char *open, const char *middle, const char *close,
                                  const char *behind, size_t times)
{
    struct builder text;
    builder_init(&text);
    builder_text(&text, before);
    parse_test_put(&text, open, times);
    builder_text(&text, middle);
    parse_test_put(&text, close, times);
    builder_text(&text, behind);
    struct compile_text test;
    compile_text_init(&test, builder_view(&text));
    compile_text_run(&test);
    uint32_t errors = test.error_count;
    if (errors) ck_assert_ptr_nonnull(strstr(builder_text_view(&test.messages), "E0028"));
    compile_text_fini(&test);
    builder_fini(&text);
    return errors;
}

/* At the limit and one past it; and a hundred thousand levels, which must end in the same message. */
START_TEST(test_nesting_is_bounded)
{
    static const char begin[] = "export fn main(args) { print(", end[] = ") }";
    /* The block of main, the statement's expression and print's argument are three levels. */
    ck_assert_uint_eq(parse_test_errors(begin, "(", "1", ")", end, LIMIT_NESTING_DEPTH - 3), 0);
    ck_assert_uint_eq(parse_test_errors(begin, "(", "1", ")", end, LIMIT_NESTING_DEPTH - 2), 1);
    static const char *const pairs[][2] = {
        {"(", ")"},  {"[", "]"},     {"{a: ", "}"},   {"!", ""},
        {"- ", ""},  {"spawn ", ""}, {"ref(", ")"},   {"fn () { return ", "}"},
        {"f(", ")"}, {"a[", "]"},    {"\"\\(", ")\""}};
    for (size_t i = 0; i < CY_COUNT_OF(pairs); i++)
        ck_assert_uint_eq(parse_test_errors(begin, pairs[i][0], "1", pairs[i][1], end, 100000), 1);
    ck_assert_uint_eq(parse_test_errors("export fn main(args) { ", "if 1 {", "", "}", "}", 100000), 1);
    ck_assert_uint_eq(parse_test_errors("export fn main(args) { ", "match 1 { 1 {", "", "}}", "}", 100000),
                      1);
}
END_TEST

/* Chains are long, not deep. */
START_TEST(test_long_chains_are_no_nesting)
{
    static const char begin[] = "fn f(a) { return a", end[] = " }\nexport fn main(args) { print(f(args)) }";
    static const char *const links[] = {" + a", " and a", " or a",     ".b",        "[1]",
                                        "(1)",  " - 1",   " .. 2 + 1", " == a or a"};
    for (size_t i = 0; i < CY_COUNT_OF(links); i++) {
        size_t times = i == 7 ? 1 : 100000;
        ck_assert_msg(parse_test_errors(begin, links[i], "", "", end, times) == 0, "%s", links[i]);
    }
    ck_assert_uint_eq(
        parse_test_errors("export fn main(a) { if a { } ", "elif a { print(1) } ", "", "", " }", 100000), 0);
}
END_TEST

Suite *unit_suite_compiler_parse(void);
Suite *unit_suite_compiler_parse(void)
{
    Suite *suite = suite_create("compiler/parse");
    TCase *tests = tcase_create("parse");
    tcase_set_timeout(tests, 60); /* the long chains, under sanitizers */
    tcase_add_test(tests, test_statements_end_without_separators);
    tcase_add_test(tests, test_every_mistake_of_a_file_is_reported);
    tcase_add_test(tests, test_an_open_block_names_its_line);
    tcase_add_test(tests, test_nesting_is_bounded);
    tcase_add_test(tests, test_long_chains_are_no_nesting);
    suite_add_tcase(suite, tests);
    return suite;
}
