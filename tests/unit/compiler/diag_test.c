/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/diag_test.c: proves what a message looks like: place, caret under the right column behind
 * Hangul and tabs, Korean and English, nearest names, order, twins, and the limit on their number.
 */
#include "compiler/diag.h"

#include "tests/unit/compiler/compile_text.h"
#include "vm/base/limits.h"

#include <check.h>

START_TEST(test_caret_stands_behind_hangul_and_tabs)
{
    compile_text_expect("export fn main(args) {\n\t출력(\"한글\", 가나다)\n}\n", false,
                        "main.han:2:11: error E0040: unknown name `가나다`\n"
                        "    \t출력(\"한글\", 가나다)\n"
                        "    \t             ^^^^^^\n"
                        "1 error\n");
}
END_TEST

START_TEST(test_korean_message_and_nearest_name)
{
    compile_text_expect("export fn main(args) {\n    let 경로 = 1\n    print(경롣)\n}\n", true,
                        "main.han:3:11: 오류 E0040: 알 수 없는 이름 `경롣`\n"
                        "        print(경롣)\n"
                        "              ^^^^\n"
                        "  도움말: 혹시 `경로`?\n"
                        "오류 1건\n");
}
END_TEST

/* Hangul picks its particle by the last letter; behind Latin letters both stand. */
START_TEST(test_korean_particles_fit_the_word)
{
    static const struct {
        const char *word, *message;
    } rows[] = {
        {"나무", "`나무`는 값이 아닙니다"}, {"강", "`강`은 값이 아닙니다"}, {"P", "`P`은(는) 값이 아닙니다"}};
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct builder text;
        builder_init(&text);
        builder_printf(&text, "record %s { }\nexport fn main(args) { print(%s) }\n", rows[i].word,
                       rows[i].word);
        struct compile_text test;
        compile_text_init(&test, builder_view(&text));
        test.korean = true;
        compile_text_run(&test);
        ck_assert_ptr_nonnull(strstr(builder_text_view(&test.messages), rows[i].message));
        compile_text_fini(&test);
        builder_fini(&text);
    }
}
END_TEST

START_TEST(test_messages_are_in_order_of_place)
{
    compile_text_expect("fn g() { return bb }\nexport fn main(args) { return cc + }\nlet a = aa\n", false,
                        "main.han:1:17: error E0040: unknown name `bb`\n"
                        "    fn g() { return bb }\n"
                        "                    ^^\n"
                        "main.han:2:31: error E0040: unknown name `cc`\n"
                        "    export fn main(args) { return cc + }\n"
                        "                                  ^^\n"
                        "main.han:2:36: error E0021: expected an expression, found `}`\n"
                        "    export fn main(args) { return cc + }\n"
                        "                                       ^\n"
                        "main.han:3:9: error E0040: unknown name `aa`\n"
                        "    let a = aa\n"
                        "            ^^\n"
                        "4 errors\n");
}
END_TEST

START_TEST(test_control_characters_do_not_reach_the_terminal)
{
    struct compile_text test;
    compile_text_init(&test, CY_BYTES("export fn main(args) { \x1b[31m \xE2\x80\xAE }"));
    compile_text_run(&test);
    const char *text = builder_text_view(&test.messages);
    ck_assert_ptr_null(strchr(text, '\x1b'));
    ck_assert_ptr_null(strstr(text, "\xE2\x80\xAE"));
    compile_text_fini(&test);
}
END_TEST

START_TEST(test_a_very_long_line_is_cut_around_the_caret)
{
    struct builder text;
    builder_init(&text);
    builder_text(&text, "export fn main(args) { print([");
    for (int i = 0; i < 5000; i++) builder_text(&text, "1, ");
    builder_text(&text, "zz]) }");
    struct compile_text test;
    compile_text_init(&test, builder_view(&text));
    compile_text_run(&test);
    ck_assert_uint_lt(test.messages.count, 700);
    ck_assert_ptr_nonnull(strstr(builder_text_view(&test.messages), "main.han:1:15031: error E0040"));
    compile_text_fini(&test);
    builder_fini(&text);
}
END_TEST

START_TEST(test_at_the_limit_all_are_shown_and_past_it_counted)
{
    for (int extra = 0; extra < 2; extra++) {
        struct builder text;
        builder_init(&text);
        builder_text(&text, "export fn main(args) {\n");
        for (int i = 0; i < LIMIT_COMPILE_ERRORS + extra; i++) builder_printf(&text, "print(qqqq%d)\n", i);
        builder_text(&text, "}\n");
        struct compile_text test;
        compile_text_init(&test, builder_view(&text));
        compile_text_run(&test);
        ck_assert_uint_eq(test.error_count, LIMIT_COMPILE_ERRORS + extra);
        bool cut = strstr(builder_text_view(&test.messages), "1 more are not shown") != NULL;
        ck_assert_int_eq(cut, extra);
        compile_text_fini(&test);
        builder_fini(&text);
    }
}
END_TEST

START_TEST(test_every_row_has_a_number_of_its_own)
{
    static const struct {
        int number;
        const char *korean, *english;
    } rows[] = {
#define DIAG(name, number, korean, english, korean_hint, english_hint) {number, korean, english},
#define WARNING DIAG
#include "compiler/diag.def"
#undef WARNING
#undef DIAG
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        ck_assert(*rows[i].korean && *rows[i].english);
        for (size_t k = 0; k < i; k++) ck_assert_int_ne(rows[i].number, rows[k].number);
        for (char digit = '0'; digit < '0' + DIAG_ARGUMENTS_MAX; digit++) {
            char place[] = {'{', digit, '}', 0};
            ck_assert_msg(!strstr(rows[i].korean, place) == !strstr(rows[i].english, place), "E%04d: %s",
                          rows[i].number, place);
        }
    }
}
END_TEST

Suite *unit_suite_compiler_diag(void);
Suite *unit_suite_compiler_diag(void)
{
    Suite *suite = suite_create("compiler/diag");
    TCase *tests = tcase_create("diag");
    tcase_add_test(tests, test_caret_stands_behind_hangul_and_tabs);
    tcase_add_test(tests, test_korean_message_and_nearest_name);
    tcase_add_test(tests, test_korean_particles_fit_the_word);
    tcase_add_test(tests, test_messages_are_in_order_of_place);
    tcase_add_test(tests, test_control_characters_do_not_reach_the_terminal);
    tcase_add_test(tests, test_a_very_long_line_is_cut_around_the_caret);
    tcase_add_test(tests, test_at_the_limit_all_are_shown_and_past_it_counted);
    tcase_add_test(tests, test_every_row_has_a_number_of_its_own);
    suite_add_tcase(suite, tests);
    return suite;
}
