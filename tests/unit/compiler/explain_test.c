/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/explain_test.c: proves that every message has a page in both languages, that the wrong example
 * of a page gives exactly that message, and that the mended one compiles without a word.
 */
#include "compiler/explain.h"

#include <check.h>
#include <stdio.h>

START_TEST(test_every_code_has_a_page_in_both_languages)
{
    for (unsigned code = 0; code < DIAG_CODE_COUNT; code++) {
        char text[DIAG_CODE_TEXT_BYTES];
        diag_code_text((enum diag_code)code, text);
        struct explain_example example = explain_example_of((enum diag_code)code);
        ck_assert_msg(example.wrong && *example.wrong && example.fixed, "%s has no row in explain.def", text);
        for (int korean = 0; korean < 2; korean++) {
            struct builder page;
            builder_init(&page);
            ck_assert_msg(explain_page(cy_bytes_from_text(text), korean, &page), "%s", text);
            ck_assert_msg(page.count > 100, "%s: %s", text, builder_text_view(&page));
            builder_fini(&page);
        }
    }
}
END_TEST

static uint32_t explain_test_count(const char *text, const char *word)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) count++;
    return count;
}

START_TEST(test_examples_give_their_code_and_are_mended)
{
    uint32_t told_in_words = 0;
    for (unsigned code = 0; code < DIAG_CODE_COUNT; code++) {
        char text[DIAG_CODE_TEXT_BYTES], wanted[DIAG_CODE_TEXT_BYTES + 16];
        diag_code_text((enum diag_code)code, text);
        struct explain_example example = explain_example_of((enum diag_code)code);
        if (!*example.fixed) {
            told_in_words++;
            continue;
        }
        bool warning = diag_is_warning((enum diag_code)code);
        struct builder messages;
        builder_init(&messages);
        bool good = explain_compile(example.wrong, false, &messages);
        ck_assert_msg(good == warning, "%s: %s", text, builder_text_view(&messages));
        (void)snprintf(wanted, sizeof wanted, "%s %s: ", warning ? "warning" : "error", text);
        const char *shown = builder_text_view(&messages);
        /* It, and nothing else: an example with a second mistake would teach the wrong thing. */
        ck_assert_msg(explain_test_count(shown, wanted) == 1, "%s: %s", text, shown);
        ck_assert_msg(strstr(shown, warning ? "\n1 warning\n" : "\n1 error\n") != NULL, "%s: %s", text,
                      shown);
        builder_clear(&messages);
        good = explain_compile(example.fixed, false, &messages);
        ck_assert_msg(good && messages.count == 0, "%s mended: %s", text, builder_text_view(&messages));
        builder_fini(&messages);
    }
    ck_assert_uint_le(told_in_words, 2); /* a file that cannot be read, a fault of the standard library */
}
END_TEST

START_TEST(test_codes_are_found_however_they_are_written)
{
    static const char *const good[] = {"E0040", "e0040", "40", "E40", "W0101", "w101", "101"};
    static const char *const bad[] = {"",      "E",   "E9999", "X0040", "E00400",
                                      "E004x", "-40", "W0001", "W0040", "E0101"};
    struct builder page;
    builder_init(&page);
    for (size_t i = 0; i < CY_COUNT_OF(good); i++)
        ck_assert(explain_page(cy_bytes_from_text(good[i]), false, &page));
    size_t count = page.count;
    for (size_t i = 0; i < CY_COUNT_OF(bad); i++)
        ck_assert(!explain_page(cy_bytes_from_text(bad[i]), false, &page));
    ck_assert_uint_eq(page.count, count);
    builder_clear(&page);
    explain_list(true, &page);
    ck_assert_ptr_nonnull(strstr(builder_text_view(&page), "E0040  알 수 없는 이름 `…`\n"));
    builder_fini(&page);
}
END_TEST

/* For every code: under the wrong letter it is not found, and is the nearest. */
START_TEST(test_the_nearest_code_is_named)
{
    enum diag_code code, meant;
    for (unsigned i = 0; i < DIAG_CODE_COUNT; i++) {
        char text[DIAG_CODE_TEXT_BYTES];
        diag_code_text((enum diag_code)i, text);
        ck_assert(diag_code_find(cy_bytes_from_text(text), &code) && code == (enum diag_code)i);
        text[0] = text[0] == 'W' ? 'E' : 'W';
        ck_assert_msg(!diag_code_find(cy_bytes_from_text(text), &code), "%s", text);
        ck_assert(diag_code_nearest(cy_bytes_from_text(text), &meant) && meant == (enum diag_code)i);
    }
    ck_assert(diag_code_nearest(CY_BYTES("E9999"), &meant) && meant == DIAG_LIMIT);
    ck_assert(diag_code_nearest(CY_BYTES("w100"), &meant) && meant == WARNING_UNUSED_VARIABLE);
    ck_assert(!diag_code_nearest(CY_BYTES("unused"), &meant));
}
END_TEST

Suite *unit_suite_compiler_explain(void);
Suite *unit_suite_compiler_explain(void)
{
    Suite *suite = suite_create("compiler/explain");
    TCase *tests = tcase_create("explain");
    tcase_add_test(tests, test_every_code_has_a_page_in_both_languages);
    tcase_add_test(tests, test_examples_give_their_code_and_are_mended);
    tcase_add_test(tests, test_codes_are_found_however_they_are_written);
    tcase_add_test(tests, test_the_nearest_code_is_named);
    suite_add_tcase(suite, tests);
    return suite;
}
