/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/native_table_test.c: proves that every row of native.def is found by number and by both
 * names, that all signatures parse, and that capabilities have the words and grants that --allow and --deny take.
 */
#include "vm/code/native_table.h"

#include "vm/base/text.h"
#include "vm/code/opcode.h"

#include <check.h>

START_TEST(test_rows_are_unique_and_found)
{
    size_t count = 0;
    for (const struct native_row *row; (row = native_row_at(count)); count++) {
        cy_bytes english = cy_bytes_from_text(row->english);
        size_t dot = cy_bytes_find(english, '.');
        cy_bytes module = cy_bytes_slice(english, 0, dot < english.count ? dot : 0);
        cy_bytes member = dot < english.count ? cy_bytes_skip(english, dot + 1) : english;
        ck_assert_uint_gt(row->number, 0);
        ck_assert_uint_lt(row->number, NATIVE_NUMBER_END);
        ck_assert_ptr_eq(native_row_by_number(row->number), row);
        ck_assert_ptr_eq(native_row_find(english), row);
        ck_assert_ptr_eq(native_row_find_member(module, member), row);
        ck_assert_ptr_eq(native_row_find_member(module, cy_bytes_from_text(row->korean)), row);
        ck_assert(text_is_nfc(cy_bytes_from_text(row->korean)));
        ck_assert(native_module_exists(module));
    }
    ck_assert_uint_gt(count, 40);
    ck_assert_ptr_null(native_row_by_number(0));
    ck_assert_ptr_null(native_row_by_number(NATIVE_NUMBER_END));
    ck_assert_ptr_null(native_row_by_number(0xffff));
    ck_assert_ptr_null(native_row_find(CY_BYTES("http")));
    ck_assert_ptr_null(native_row_find(CY_BYTES("")));
    ck_assert_ptr_null(native_row_find_member(CY_BYTES("http"), CY_BYTES("print")));
    ck_assert(!native_module_exists(CY_BYTES("frob")));
    ck_assert(native_module_exists(CY_BYTES(""))); /* the prelude */
}
END_TEST

START_TEST(test_all_signatures_parse)
{
    for (size_t i = 0; native_row_at(i); i++) {
        struct native_signature signature;
        native_signature_parse(native_row_at(i), &signature);
        ck_assert_uint_le(signature.required_count, signature.named_count);
        if (signature.param_count != NATIVE_ARGS_ANY)
            ck_assert_uint_eq(signature.param_count, signature.named_count);
        for (uint8_t k = 0; k < signature.named_count; k++) {
            ck_assert_uint_ne(signature.params[k].kinds, 0);
            ck_assert_int_eq(signature.params[k].optional, k >= signature.required_count);
        }
    }
}
END_TEST

static struct native_signature native_table_test_parse(const char *text)
{
    struct native_row row = {.signature = text};
    struct native_signature signature;
    native_signature_parse(&row, &signature);
    return signature;
}

START_TEST(test_signatures_mean_what_they_say)
{
    struct native_signature s = native_table_test_parse("(...) -> nil");
    ck_assert_uint_eq(s.required_count, 0);
    ck_assert_uint_eq(s.param_count, NATIVE_ARGS_ANY);
    ck_assert_uint_eq(s.named_count, 0);
    s = native_table_test_parse("() -> int");
    ck_assert_uint_eq(s.param_count, 0);
    s = native_table_test_parse("(a: str|list, b: str = \"),\\\"\", c: map = {}, d: any = nil) -> str|nil");
    ck_assert_uint_eq(s.required_count, 1);
    ck_assert_uint_eq(s.param_count, 4);
    ck_assert_uint_eq(s.params[0].kinds, 1u << KIND_STR | 1u << KIND_LIST);
    ck_assert(cy_bytes_equal(s.params[2].name, CY_BYTES("c")));
    ck_assert_uint_eq(s.params[3].kinds, (1u << KIND_COUNT) - 1);
    s = native_table_test_parse("(first: number, ...) -> verdict");
    ck_assert_uint_eq(s.required_count, 1);
    ck_assert_uint_eq(s.named_count, 1);
    ck_assert_uint_eq(s.param_count, NATIVE_ARGS_ANY);
    ck_assert_uint_eq(s.params[0].kinds, 1u << KIND_INT | 1u << KIND_FLOAT);
}
END_TEST

START_TEST(test_a_malformed_signature_is_our_bug)
{
    static const char *const bad[] = {"",
                                      "(",
                                      "()",
                                      "(a) -> nil",
                                      "(a: frob) -> nil",
                                      "(a: int) ->",
                                      "(a:int) -> nil",
                                      "(..., a: int) -> nil",
                                      "(a: int = 1, b: int) -> nil",
                                      "(a: int = \") -> nil"};
    native_table_test_parse(bad[_i]);
}
END_TEST

START_TEST(test_capabilities)
{
    static const struct {
        const char *word;
        enum capability capability;
        bool granted;
    } rows[] = {{"net", CAPABILITY_NET, true},  {"read", CAPABILITY_READ, true},
                {"env", CAPABILITY_ENV, true},  {"write", CAPABILITY_WRITE, false},
                {"run", CAPABILITY_RUN, false}, {"ffi", CAPABILITY_FFI, false}};
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        enum capability found;
        ck_assert_str_eq(capability_word(rows[i].capability), rows[i].word);
        ck_assert(capability_find(cy_bytes_from_text(rows[i].word), &found));
        ck_assert_int_eq(found, rows[i].capability);
        ck_assert_int_eq((capability_granted_mask() & rows[i].capability) != 0, rows[i].granted);
    }
    enum capability found;
    ck_assert(!capability_find(CY_BYTES("root"), &found));
    ck_assert_int_eq(CAPABILITY_NONE, 0);
}
END_TEST

Suite *unit_suite_code_native_table(void);
Suite *unit_suite_code_native_table(void)
{
    Suite *suite = suite_create("code/native_table");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_rows_are_unique_and_found);
    tcase_add_test(tests, test_all_signatures_parse);
    tcase_add_test(tests, test_signatures_mean_what_they_say);
    tcase_add_loop_test_raise_signal(tests, test_a_malformed_signature_is_our_bug, 6 /* SIGABRT */, 0, 10);
    tcase_add_test(tests, test_capabilities);
    suite_add_tcase(suite, tests);
    return suite;
}
