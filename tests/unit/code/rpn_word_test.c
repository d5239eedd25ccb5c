/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/rpn_word_test.c: proves that every word of RPN text has two spellings, each with one meaning.
 */
#include "vm/code/rpn_word.h"

#include <check.h>

static struct rpn_dictionary dictionary;

static void set_up(void) { ck_assert(!cy_failed(rpn_dictionary_init(&dictionary))); }
static void tear_down(void) { rpn_dictionary_fini(&dictionary); }

START_TEST(test_every_opcode_has_a_korean_word)
{
    for (unsigned number = 0; number < 256; number++) {
        const struct opcode_row *row = opcode_row((uint8_t)number);
        if (!row->name || opcode_narrow(row)) continue;
        const char *korean = rpn_opcode_text(row, true);
        ck_assert_msg(strcmp(korean, row->name) != 0,
                      "vm/code/rpn_word.def: RPN_OPCODE(%s, \"...\") is missing", row->name);
        ck_assert_ptr_eq(rpn_dictionary_opcode(&dictionary, cy_bytes_from_text(korean)), row);
        ck_assert_ptr_eq(rpn_dictionary_opcode(&dictionary, cy_bytes_from_text(row->name)), row);
    }
}
END_TEST

/* A wide twin is written as its narrow one; by its own name it is read too. */
START_TEST(test_wide_twins)
{
    ck_assert_str_eq(rpn_opcode_text(opcode_row(OP_LOCAL_GET_WIDE), false), "LOCAL_GET");
    ck_assert_str_eq(rpn_opcode_text(opcode_row(OP_LOCAL_GET_WIDE), true),
                     rpn_opcode_text(opcode_row(OP_LOCAL_GET), true));
    ck_assert_ptr_eq(rpn_dictionary_opcode(&dictionary, CY_BYTES("LOCAL_GET_WIDE")),
                     opcode_row(OP_LOCAL_GET_WIDE));
}
END_TEST

/* An opcode ends its instruction, so nothing that stands before one may be spelled like one. */
START_TEST(test_no_opcode_is_spelled_as_something_else)
{
    for (uint32_t i = 0; i < dictionary.opcodes.count; i++) {
        cy_bytes word = dictionary.opcodes.entries[i].key;
        enum value_kind kind;
        ck_assert_msg(!kind_find(word, &kind), "%.*s is a kind", CY_BYTES_ARG(word));
        ck_assert_msg(!rpn_dictionary_word(&dictionary, word), "%.*s is a section word", CY_BYTES_ARG(word));
        ck_assert_msg(text_is_nfc(word), "%.*s is not in normal form C", CY_BYTES_ARG(word));
    }
    for (unsigned word = 1; word < RPN_WORD_COUNT; word++)
        for (int korean = 0; korean < 2; korean++)
            ck_assert_uint_eq(rpn_dictionary_word(&dictionary, cy_bytes_from_text(rpn_word_text(
                                                                   (enum rpn_word)word, korean))),
                              word);
}
END_TEST

START_TEST(test_every_native_is_found_by_what_is_written)
{
    const struct native_row *row;
    unsigned korean_count = 0;
    for (size_t i = 0; (row = native_row_at(i)); i++) {
        for (int korean = 0; korean < 2; korean++) {
            struct builder text;
            builder_init(&text);
            rpn_native_text(row, korean, &text);
            ck_assert_ptr_eq(rpn_dictionary_native(&dictionary, builder_view(&text)), row);
            ck_assert_ptr_null(rpn_dictionary_opcode(&dictionary, builder_view(&text)));
            korean_count += korean && !cy_bytes_equal(builder_view(&text), cy_bytes_from_text(row->english));
            builder_fini(&text);
        }
    }
    ck_assert_uint_gt(korean_count, 30);
}
END_TEST

Suite *unit_suite_code_rpn_word(void);
Suite *unit_suite_code_rpn_word(void)
{
    Suite *suite = suite_create("code/rpn_word");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, test_every_opcode_has_a_korean_word);
    tcase_add_test(tests, test_wide_twins);
    tcase_add_test(tests, test_no_opcode_is_spelled_as_something_else);
    tcase_add_test(tests, test_every_native_is_found_by_what_is_written);
    suite_add_tcase(suite, tests);
    return suite;
}
