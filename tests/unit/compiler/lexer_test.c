/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/lexer_test.c: proves that tokens have the right kind, place and text: both spellings of every
 * keyword, NFC, numbers at their borders, interpolation, and that broken input always ends.
 */
#include "compiler/lexer.h"

#include <check.h>

struct lexer_test {
    struct arena arena;
    struct diag_list diags;
    struct source source;
    struct map keywords;
    struct lexer lexer;
};

static void lexer_test_init(struct lexer_test *test, cy_bytes text)
{
    arena_init(&test->arena, 0);
    test->arena.exit_when_exhausted = true;
    diag_init(&test->diags, &test->arena);
    test->source = (struct source){.file = CY_BYTES("t.han"), .text = text};
    lexer_keywords_init(&test->keywords);
    lexer_init(&test->lexer, &test->arena, &test->diags, &test->source, &test->keywords);
}
static void lexer_test_fini(struct lexer_test *test)
{
    map_fini(&test->keywords);
    arena_fini(&test->arena);
}

START_TEST(test_both_spellings_are_one_token)
{
    static const struct {
        uint8_t kind;
        const char *spellings[3];
    } words[] = {
#define KEYWORD(name, english, korean, korean_2) {TOKEN_##name, {english, korean, korean_2}},
#define MARK(name, text)
#include "compiler/token.def"
#undef KEYWORD
#undef MARK
    };
    for (size_t i = 0; i < CY_COUNT_OF(words); i++) {
        for (size_t k = 0; k < 3; k++) {
            if (!*words[i].spellings[k]) continue;
            struct lexer_test test;
            lexer_test_init(&test, cy_bytes_from_text(words[i].spellings[k]));
            ck_assert_uint_eq(lexer_next(&test.lexer).kind, words[i].kind);
            ck_assert_uint_eq(lexer_next(&test.lexer).kind, TOKEN_END);
            lexer_test_fini(&test);
        }
        ck_assert(token_is_keyword(words[i].kind));
    }
    ck_assert_uint_eq(CY_COUNT_OF(words), 30);
}
END_TEST

START_TEST(test_marks_take_the_longest_match)
{
    static const uint8_t kinds[] = {TOKEN_SHIFT_LEFT, TOKEN_LE,        TOKEN_LT,    TOKEN_EQ,  TOKEN_ASSIGN,
                                    TOKEN_RANGE,      TOKEN_DOT,       TOKEN_ARROW, TOKEN_NE,  TOKEN_NOT,
                                    TOKEN_AND,        TOKEN_AMPERSAND, TOKEN_OR,    TOKEN_BAR, TOKEN_END};
    struct lexer_test test;
    lexer_test_init(&test, CY_BYTES("<< <= < == = .. . -> != ! && & || |"));
    for (size_t i = 0; i < CY_COUNT_OF(kinds); i++) ck_assert_uint_eq(lexer_next(&test.lexer).kind, kinds[i]);
    ck_assert_uint_eq(test.diags.count, 0);
    lexer_test_fini(&test);
}
END_TEST

START_TEST(test_places_count_code_points)
{
    struct lexer_test test;
    lexer_test_init(&test, CY_BYTES("한글 a\n\t나 \"다\" b"));
    static const struct {
        uint32_t start, end, line, column;
        bool line_start;
    } want[] = {{0, 6, 1, 1, true},
                {7, 8, 1, 4, false},
                {10, 13, 2, 2, true},
                {14, 19, 2, 4, false},
                {20, 21, 2, 8, false}};
    for (size_t i = 0; i < CY_COUNT_OF(want); i++) {
        struct token token = lexer_next(&test.lexer);
        ck_assert_uint_eq(token.span.start, want[i].start);
        ck_assert_uint_eq(token.span.end, want[i].end);
        ck_assert_uint_eq(token.span.line, want[i].line);
        ck_assert_uint_eq(token.span.column, want[i].column);
        ck_assert(token.line_start == want[i].line_start);
    }
    lexer_test_fini(&test);
}
END_TEST

START_TEST(test_names_are_composed)
{
    /* 가 as two jamo, and 함수 decomposed: a name and a keyword. */
    struct lexer_test test;
    lexer_test_init(&test, CY_BYTES("\u1100\u1161\u1112\u1161\u11ab \u1112\u1161\u11b7\u1109\u116e"));
    struct token name = lexer_next(&test.lexer);
    ck_assert_uint_eq(name.kind, TOKEN_NAME);
    ck_assert(cy_bytes_equal(name.text, CY_BYTES("가한")));
    ck_assert_uint_eq(name.span.end, 15);
    ck_assert_uint_eq(lexer_next(&test.lexer).kind, TOKEN_FN);
    lexer_test_fini(&test);
}
END_TEST

static struct token lexer_test_one(const char *text, uint32_t errors)
{
    struct lexer_test test;
    lexer_test_init(&test, cy_bytes_from_text(text));
    struct token token = lexer_next(&test.lexer);
    ck_assert_msg(test.diags.count == errors, "%s: %u errors", text, test.diags.count);
    token.text = CY_BYTES_NONE;
    lexer_test_fini(&test);
    return token;
}

START_TEST(test_numbers_at_their_borders)
{
    ck_assert_uint_eq(lexer_test_one("9223372036854775808", 0).integer,
                      (uint64_t)INT64_MAX + 1); /* the parser may negate */
    ck_assert_uint_eq(lexer_test_one("0xFFFF_FFFF_FFFF_FFFF", 0).integer, UINT64_MAX);
    ck_assert_uint_eq(lexer_test_one("0b1_01", 0).integer, 5);
    ck_assert_uint_eq(lexer_test_one("1_000", 0).integer, 1000);
    ck_assert(lexer_test_one("1.5e3", 0).real == 1500.0);
    ck_assert_uint_eq(lexer_test_one("1..5", 0).kind, TOKEN_INT);
    ck_assert_uint_eq(lexer_test_one("1.x", 0).kind, TOKEN_INT);
    static const char *const bad[] = {"9223372036854775809",
                                      "0x1_0000_0000_0000_0000",
                                      "0x",
                                      "0b2",
                                      "1__0",
                                      "1_",
                                      "1abc",
                                      "1e",
                                      "1e999",
                                      "1.5.e_"};
    for (size_t i = 0; i + 1 < CY_COUNT_OF(bad); i++) (void)lexer_test_one(bad[i], 1);
}
END_TEST

START_TEST(test_interpolation_nests)
{
    static const struct {
        uint8_t kind;
        const char *text;
    } want[] = {{TOKEN_TEXT_BEGIN, "a"}, {TOKEN_NAME, "x"},        {TOKEN_PAREN_OPEN, "("},
                {TOKEN_STR, ")"},        {TOKEN_PAREN_CLOSE, ")"}, {TOKEN_TEXT_MIDDLE, "b"},
                {TOKEN_TEXT_BEGIN, ""},  {TOKEN_NAME, "y"},        {TOKEN_TEXT_END, "i"},
                {TOKEN_TEXT_END, "c"},   {TOKEN_END, ""}};
    struct lexer_test test;
    lexer_test_init(&test, CY_BYTES("\"a\\(x(\")\"))b\\(\"\\(y)i\")c\""));
    for (size_t i = 0; i < CY_COUNT_OF(want); i++) {
        struct token token = lexer_next(&test.lexer);
        ck_assert_uint_eq(token.kind, want[i].kind);
        if (want[i].kind != TOKEN_END)
            ck_assert(cy_bytes_equal(token.text, cy_bytes_from_text(want[i].text)));
    }
    ck_assert_uint_eq(test.diags.count, 0);
    lexer_test_fini(&test);
}
END_TEST

START_TEST(test_raw_strings_drop_cr)
{
    struct lexer_test test;
    lexer_test_init(&test, CY_BYTES("`a\r\n\\n\\(x)`"));
    ck_assert(cy_bytes_equal(lexer_next(&test.lexer).text, CY_BYTES("a\n\\n\\(x)")));
    lexer_test_fini(&test);
}
END_TEST

/* Every prefix of every byte pattern must end, and report at most what the list holds. */
START_TEST(test_broken_input_always_ends)
{
    static const char text[] = "\xEF\xBB\xBF fn \"a\\(b \"c\\(d\ne\" `x\\u{ \"\\u{110000}\\q\\\" \xff\xc3 ; "
                               "0x 1e+ \xE2\x80\xAE // \xE2\x80\xAE\n\"\\(((";
    for (size_t count = 0; count < sizeof text; count++) {
        struct lexer_test test;
        lexer_test_init(&test, cy_bytes_of(text, count));
        size_t tokens = 0;
        while (lexer_next(&test.lexer).kind != TOKEN_END) ck_assert_uint_lt(tokens++, 2 * sizeof text);
        ck_assert_uint_eq(lexer_next(&test.lexer).kind, TOKEN_END);
        lexer_test_fini(&test);
    }
}
END_TEST

Suite *unit_suite_compiler_lexer(void);
Suite *unit_suite_compiler_lexer(void)
{
    Suite *suite = suite_create("compiler/lexer");
    TCase *tests = tcase_create("lexer");
    tcase_add_test(tests, test_both_spellings_are_one_token);
    tcase_add_test(tests, test_marks_take_the_longest_match);
    tcase_add_test(tests, test_places_count_code_points);
    tcase_add_test(tests, test_names_are_composed);
    tcase_add_test(tests, test_numbers_at_their_borders);
    tcase_add_test(tests, test_interpolation_nests);
    tcase_add_test(tests, test_raw_strings_drop_cr);
    tcase_add_test(tests, test_broken_input_always_ends);
    suite_add_tcase(suite, tests);
    return suite;
}
