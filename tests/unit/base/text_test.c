/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/text_test.c: proves that malformed UTF-8 is found at its byte, that widths are those of a terminal,
 * that normal forms go both ways, and that the nearest name is near.
 */
#include "vm/base/text.h"

#include "vm/base/mem.h"

#include <check.h>

START_TEST(test_malformed_utf8_is_found_at_its_offset)
{
    static const struct {
        const char *text;
        size_t offset;
    } bad[] = {
        {"ab\x80", 2},           /* a continuation alone */
        {"a\xc3", 1},            /* cut off */
        {"\xc0\xaf", 0},         /* overlong '/' */
        {"\xe0\x80\xaf", 0},     /* overlong in three */
        {"x\xed\xa0\x80", 1},    /* a surrogate */
        {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
        {"한\xff", 3},           /* never a lead byte */
        {"\xf0\x9f\x98", 0},     /* an emoji cut off */
    };
    for (size_t i = 0; i < CY_COUNT_OF(bad); i++) {
        size_t offset = 99;
        ck_assert_msg(!text_is_utf8(cy_bytes_from_text(bad[i].text), &offset), "row %zu was accepted", i);
        ck_assert_uint_eq(offset, bad[i].offset);
    }
    ck_assert(text_is_utf8(CY_BYTES("한글 a\xf4\x8f\xbf\xbf"), NULL));
    ck_assert(text_is_utf8(CY_BYTES_NONE, NULL));
}
END_TEST

START_TEST(test_decode_steps_one_byte_over_bad_ones)
{
    uint32_t code_point;
    size_t length;
    ck_assert(!text_decode(CY_BYTES("\xe1\x84"), &code_point, &length));
    ck_assert_uint_eq(length, 1);
    ck_assert(text_decode(CY_BYTES("가"), &code_point, &length));
    ck_assert_uint_eq(code_point, 0xAC00);
    ck_assert_uint_eq(length, 3);
    ck_assert(!text_decode(CY_BYTES_NONE, &code_point, &length));
    ck_assert_uint_eq(length, 0);
}
END_TEST

START_TEST(test_encode_and_decode_are_inverse_at_the_borders)
{
    static const uint32_t borders[] = {0,      0x7f,   0x80,   0x7ff,   0x800,
                                       0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
    for (size_t i = 0; i < CY_COUNT_OF(borders); i++) {
        struct builder builder;
        builder_init(&builder);
        text_encode(&builder, borders[i]);
        uint32_t code_point;
        size_t length;
        ck_assert(text_decode(builder_view(&builder), &code_point, &length));
        ck_assert_uint_eq(code_point, borders[i]);
        ck_assert_uint_eq(length, builder.count);
        builder_fini(&builder);
    }
}
END_TEST

START_TEST(test_counts_of_code_points_and_graphemes)
{
    cy_bytes decomposed = CY_BYTES("\u1112\u1161\u11ab"); /* 한 in three jamo */
    ck_assert_uint_eq(text_code_point_count(decomposed), 3);
    ck_assert_uint_eq(text_grapheme_count(decomposed), 1);
    ck_assert_uint_eq(text_grapheme_count(CY_BYTES("e\u0301x")), 2);
    ck_assert_uint_eq(text_grapheme_count(CY_BYTES("\U0001F468\u200D\U0001F469\u200D\U0001F467")),
                      1); /* a family */
    ck_assert_uint_eq(text_grapheme_count(CY_BYTES("\U0001F1F0\U0001F1F7\U0001F1EF\U0001F1F5")),
                      2); /* two flags */
    ck_assert_uint_eq(text_grapheme_count(CY_BYTES("\r\n")), 1);
    ck_assert_uint_eq(text_grapheme_count(CY_BYTES("a\xff\u0301")), 3); /* a bad byte joins nothing */
    ck_assert_uint_eq(text_code_point_count(CY_BYTES("\xff\xfe가")), 3);
    ck_assert_uint_eq(text_grapheme_count(CY_BYTES_NONE), 0);
}
END_TEST

START_TEST(test_width_on_a_terminal)
{
    ck_assert_uint_eq(text_width(CY_BYTES("한글")), 4);
    ck_assert_uint_eq(text_width(CY_BYTES("\u1112\u1161\u11ab")), 2); /* decomposed, one syllable */
    ck_assert_uint_eq(text_width(CY_BYTES("漢a")), 3);
    ck_assert_uint_eq(text_width(CY_BYTES("e\u0301")), 1);
    ck_assert_uint_eq(text_width(CY_BYTES("\t\x01\x7f")), 3);
    ck_assert_uint_eq(text_width(CY_BYTES("\xff\xff")), 2);
    ck_assert_uint_eq(text_width(CY_BYTES("")), 0);
}
END_TEST

START_TEST(test_identifier_letters)
{
    ck_assert(text_is_identifier_start('_') && text_is_identifier_start('A') &&
              text_is_identifier_start(0xAC00));
    ck_assert(!text_is_identifier_start('1') && text_is_identifier_part('1'));
    ck_assert(!text_is_identifier_start(0x0301) && text_is_identifier_part(0x0301)); /* a combining mark */
    ck_assert(!text_is_identifier_part(' ') && !text_is_identifier_part('-') &&
              !text_is_identifier_part('$'));
    ck_assert(!text_is_identifier_part('@') && !text_is_identifier_part('[') &&
              !text_is_identifier_part('`'));
    ck_assert(!text_is_identifier_part(0x200D)); /* a joiner draws nothing */
    ck_assert(!text_is_identifier_start(0x3164) &&
              !text_is_identifier_part(0x115F)); /* Hangul fillers: letters unseen */
    ck_assert(!text_is_identifier_start(0x1F600));
}
END_TEST

START_TEST(test_bidi_controls)
{
    static const uint32_t controls[] = {0x061C, 0x200E, 0x200F, 0x202A, 0x202E, 0x2066, 0x2069};
    for (size_t i = 0; i < CY_COUNT_OF(controls); i++) ck_assert(text_is_bidi_control(controls[i]));
    ck_assert(!text_is_bidi_control(0x2029) && !text_is_bidi_control(0x202F) &&
              !text_is_bidi_control(0x206A));
}
END_TEST

START_TEST(test_normal_forms_of_hangul_go_both_ways)
{
    struct builder composed, decomposed;
    builder_init(&composed);
    builder_init(&decomposed);
    ck_assert(!cy_failed(text_to_nfc(CY_BYTES("x\u1112\u1161\u11ab\u1100\u1173\u11af"), &composed)));
    ck_assert(cy_bytes_equal(builder_view(&composed), CY_BYTES("x한글")));
    ck_assert(!cy_failed(text_to_nfd(CY_BYTES("한글"), &decomposed)));
    ck_assert(cy_bytes_equal(builder_view(&decomposed), CY_BYTES("\u1112\u1161\u11ab\u1100\u1173\u11af")));
    ck_assert(!text_is_nfc(builder_view(&decomposed)));
    ck_assert(text_is_nfc(builder_view(&composed)) && text_is_nfc(CY_BYTES("plain")));
    builder_fini(&composed);
    builder_fini(&decomposed);
}
END_TEST

START_TEST(test_normal_form_appends_and_refuses_bad_text)
{
    struct builder out;
    builder_init(&out);
    builder_text(&out, "before ");
    ck_assert(!cy_failed(text_to_nfc(CY_BYTES("ascii"), &out)));
    ck_assert(cy_is(text_to_nfc(CY_BYTES("\xc3("), &out), CY_ERR_BAD_TEXT));
    ck_assert(cy_bytes_equal(builder_view(&out), CY_BYTES("before ascii")));
    ck_assert(!text_is_nfc(CY_BYTES("\xff")));
    builder_fini(&out);
}
END_TEST

START_TEST(test_normal_form_at_every_failing_allocation)
{
    bool done = false;
    for (uint64_t n = 0; !done; n++) {
        ck_assert_uint_lt(n, 10);
        struct builder out;
        builder_init(&out);
        mem_fail_after(n);
        cy_err err = text_to_nfc(CY_BYTES("e\u0301"), &out);
        mem_fail_never();
        done = !cy_failed(err);
        ck_assert(done ? cy_bytes_equal(builder_view(&out), CY_BYTES("\u00e9"))
                       : cy_is(err, CY_ERR_NO_MEMORY));
        builder_fini(&out);
    }
}
END_TEST

START_TEST(test_edit_distance)
{
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("kitten"), CY_BYTES("sitting"), 9), 3);
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("pritn"), CY_BYTES("print"), 9), 1); /* a swap */
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("츨력"), CY_BYTES("출력"), 9), 1);   /* one jamo */
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("출"), CY_BYTES("추"), 9), 1);
    ck_assert_uint_eq(text_edit_distance(CY_BYTES(""), CY_BYTES("abc"), 9), 3);
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("same"), CY_BYTES("same"), 0), 0);
}
END_TEST

START_TEST(test_edit_distance_stops_at_its_limit)
{
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("kitten"), CY_BYTES("sitting"), 3), 3);
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("kitten"), CY_BYTES("sitting"), 2), 3);
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("aaaaaaaa"), CY_BYTES("bbbbbbbb"), 1), 2);
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("a"), CY_BYTES("abcdefgh"), 2), 3);
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("ab"), CY_BYTES("ba"), 0), 1);
    ck_assert_uint_eq(text_edit_distance(CY_BYTES("xaby"), CY_BYTES("xbay"), 1),
                      1); /* the swap's first row is worse */
}
END_TEST

static cy_bytes text_nearest_of(const char *wanted, const char *const *names, size_t count)
{
    struct nearest nearest;
    nearest_init(&nearest, cy_bytes_from_text(wanted));
    for (size_t i = 0; i < count; i++) nearest_offer(&nearest, cy_bytes_from_text(names[i]));
    return nearest.best;
}

/* A hint's price is bounded by the name's length, and told; a program's own question may be longer. */
START_TEST(test_nearest_of_long_names)
{
    char a[NEAREST_NAME_BYTES + 2], b[NEAREST_NAME_BYTES + 2];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    b[7] = 'y';
    for (size_t count = NEAREST_NAME_BYTES; count <= NEAREST_NAME_BYTES + 1; count++) {
        struct nearest nearest;
        nearest_init(&nearest, cy_bytes_of(a, count));
        nearest_offer(&nearest, cy_bytes_of(b, count));
        bool is_short = count <= NEAREST_NAME_BYTES;
        ck_assert_uint_eq(nearest.best.count, is_short ? count : 0);
        ck_assert_uint_eq(nearest.work, is_short ? count * count : 0);
        nearest.bytes_max = SIZE_MAX;
        nearest_offer(&nearest, cy_bytes_of(b, count));
        ck_assert_uint_eq(nearest.best.count, count);
        ck_assert_uint_eq(nearest.best_distance, 1);
    }
}
END_TEST

START_TEST(test_nearest_name)
{
    static const char *const names[] = {"print", "point", "route", "경로찾기", "출력", "list", "lost"};
    size_t count = CY_COUNT_OF(names);
    ck_assert(cy_bytes_equal(text_nearest_of("prnt", names, count), CY_BYTES("print")));
    ck_assert(cy_bytes_equal(text_nearest_of("경로찻기", names, count), CY_BYTES("경로찾기")));
    ck_assert(cy_bytes_equal(text_nearest_of("츨력", names, count), CY_BYTES("출력")));
    ck_assert(
        cy_bytes_equal(text_nearest_of("lust", names, count), CY_BYTES("list"))); /* a tie: the earlier one */
    ck_assert_uint_eq(text_nearest_of("elephant", names, count).count, 0);
    ck_assert_uint_eq(text_nearest_of("x", names, count).count, 0); /* one letter, all of it wrong */
    ck_assert_uint_eq(text_nearest_of("", names, count).count, 0);
}
END_TEST

START_TEST(test_particle_at_the_end_of_a_word)
{
    ck_assert_uint_eq(text_particle_length(CY_BYTES("route에서")), strlen("에서"));
    ck_assert_uint_eq(text_particle_length(CY_BYTES("route에")), strlen("에"));
    ck_assert_uint_eq(text_particle_length(CY_BYTES("길으로")), strlen("으로"));
    ck_assert_uint_eq(text_particle_length(CY_BYTES("값을")), strlen("을"));
    ck_assert_uint_eq(text_particle_length(CY_BYTES("route")), 0);
    ck_assert_uint_eq(text_particle_length(CY_BYTES("은")), 0); /* nothing before it */
    ck_assert_uint_eq(text_particle_length(CY_BYTES_NONE), 0);
}
END_TEST

Suite *unit_suite_base_text(void);
Suite *unit_suite_base_text(void)
{
    Suite *suite = suite_create("base/text");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_malformed_utf8_is_found_at_its_offset);
    tcase_add_test(tests, test_decode_steps_one_byte_over_bad_ones);
    tcase_add_test(tests, test_encode_and_decode_are_inverse_at_the_borders);
    tcase_add_test(tests, test_counts_of_code_points_and_graphemes);
    tcase_add_test(tests, test_width_on_a_terminal);
    tcase_add_test(tests, test_identifier_letters);
    tcase_add_test(tests, test_bidi_controls);
    tcase_add_test(tests, test_normal_forms_of_hangul_go_both_ways);
    tcase_add_test(tests, test_normal_form_appends_and_refuses_bad_text);
    tcase_add_test(tests, test_normal_form_at_every_failing_allocation);
    tcase_add_test(tests, test_edit_distance);
    tcase_add_test(tests, test_edit_distance_stops_at_its_limit);
    tcase_add_test(tests, test_nearest_name);
    tcase_add_test(tests, test_nearest_of_long_names);
    tcase_add_test(tests, test_particle_at_the_end_of_a_word);
    suite_add_tcase(suite, tests);
    return suite;
}
