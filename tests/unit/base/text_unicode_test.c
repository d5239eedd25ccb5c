/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/text_unicode_test.c: proves that stepping from letter to letter agrees with counting letters, also
 * in bytes that are no UTF-8, and what cases and white space are.
 */
#include "vm/base/text.h"

#include <check.h>

/* Walks `text`; gives how many letters there were. Every step goes on, and ends inside. */
static size_t text_unicode_test_walk(cy_bytes text)
{
    size_t count = 0;
    for (size_t offset = 0; offset < text.count; count++) {
        size_t end = text_grapheme_end(text, offset);
        ck_assert_uint_gt(end, offset);
        ck_assert_uint_le(end, text.count);
        offset = end;
    }
    return count;
}

START_TEST(test_steps_agree_with_the_count)
{
    static const char *const texts[] = {"",
                                        "abc",
                                        "a\r\nb\r\r\n",
                                        "한글",
                                        "\u1112\u1161\u11ab\u1100\u1161",
                                        "e\u0301\u0323x",
                                        "\U0001f1f0\U0001f1f7\U0001f1ef\U0001f1f5\U0001f1f0",
                                        "\U0001f468\u200d\U0001f469\u200d\U0001f467!",
                                        "\xff\xfe\x80",
                                        "\xea\xb0",
                                        "가\xff\u0301나"};
    for (size_t i = 0; i < CY_COUNT_OF(texts); i++) {
        cy_bytes text = cy_bytes_from_text(texts[i]);
        ck_assert_msg(text_unicode_test_walk(text) == text_grapheme_count(text), "text %zu", i);
    }
}
END_TEST

/* Random mixes of pieces that join in every way, and of broken bytes. */
START_TEST(test_steps_agree_on_random_text)
{
    static const char *const pieces[] = {"a",          "\r",     "\n",     "\u0301", "\u200d", "\U0001f468",
                                         "\U0001f1f0", "\u1112", "\u1161", "\u11ab", "한",     "\xff",
                                         "\xea",       "\u0600", "\u0903", " "};
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        struct builder text;
        builder_init(&text);
        for (int i = 0; i < 12; i++) {
            random = random * 1103515245u + 12345u;
            builder_text(&text, pieces[random >> 16 & 15]);
        }
        cy_bytes view = builder_view(&text);
        ck_assert_msg(text_unicode_test_walk(view) == text_grapheme_count(view), "round %d", round);
        builder_fini(&text);
    }
}
END_TEST

START_TEST(test_case)
{
    uint32_t mapped[TEXT_CASE_MAX];
    ck_assert_uint_eq(text_map_case('a', TEXT_UPPER, mapped), 1);
    ck_assert_uint_eq(mapped[0], 'A');
    ck_assert_uint_eq(text_map_case(0xc9, TEXT_LOWER, mapped), 1);
    ck_assert_uint_eq(mapped[0], 0xe9);
    ck_assert_uint_eq(text_map_case(0xdf, TEXT_FOLD, mapped), 2);
    ck_assert(mapped[0] == 's' && mapped[1] == 's');
    /* Every code point folds into no more than there is room for, and into valid ones. */
    for (uint32_t code_point = 0; code_point <= 0x10ffff; code_point++) {
        if (!text_code_point_is_valid(code_point)) continue;
        for (int to = TEXT_UPPER; to <= TEXT_FOLD; to++) {
            size_t count = text_map_case(code_point, (enum text_case)to, mapped);
            if (count < 1 || count > TEXT_CASE_MAX) ck_abort_msg("U+%04X: %zu", code_point, count);
            for (size_t i = 0; i < count; i++)
                if (!text_code_point_is_valid(mapped[i])) ck_abort_msg("U+%04X", code_point);
        }
    }
}
END_TEST

START_TEST(test_kinds_of_code_points)
{
    size_t spaces = 0;
    for (uint32_t code_point = 0; code_point <= 0x10ffff; code_point++) spaces += text_is_space(code_point);
    ck_assert_uint_eq(spaces, 25); /* PropList.txt: White_Space */
    ck_assert(text_is_space(0x3000) && text_is_space('\t') && !text_is_space(0x200b) && !text_is_space('a'));
    ck_assert(text_is_mark(0x301) && text_is_mark(0x323) && !text_is_mark('a') && !text_is_mark(0xac00));
    ck_assert(!text_code_point_is_valid(0xd800) && !text_code_point_is_valid(0x110000));
    ck_assert(text_code_point_is_valid(0) && text_code_point_is_valid(0x10ffff) &&
              text_code_point_is_valid(0xe000));
}
END_TEST

Suite *unit_suite_base_text_unicode(void);
Suite *unit_suite_base_text_unicode(void)
{
    Suite *suite = suite_create("base/text_unicode");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_steps_agree_with_the_count);
    tcase_add_test(tests, test_steps_agree_on_random_text);
    tcase_add_test(tests, test_case);
    tcase_add_test(tests, test_kinds_of_code_points);
    suite_add_tcase(suite, tests);
    return suite;
}
