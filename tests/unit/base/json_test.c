/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/json_test.c: proves that the reader gives the events of a document and no others, that it says what
 * it expected and where, that numbers are exact, and that no prefix of a document is read past its end.
 */
#include "vm/base/json.h"

#include "vm/base/mem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* All events as letters; texts behind theirs. */
static const char *json_test_events(cy_bytes input)
{
    static char shown[512];
    static const char letters[] = {'!', '.', 'N', 'T', 'F', 'i', 'f', '"', 'k', '[', ']', '{', '}'};
    struct json_reader reader;
    json_reader_init(&reader, input);
    size_t count = 0;
    for (;;) {
        enum json_event event = json_next(&reader);
        shown[count++] = letters[event];
        if (event == JSON_INT)
            count += (size_t)snprintf(shown + count, 40, "%lld ", (long long)reader.int_value);
        if (event == JSON_FLOAT) count += (size_t)snprintf(shown + count, 40, "%.17g ", reader.float_value);
        if (event == JSON_TEXT || event == JSON_KEY) {
            ck_assert_uint_lt(count + reader.decoded_count, sizeof shown - 64);
            json_decode(&reader, (uint8_t *)shown + count);
            count += reader.decoded_count;
            shown[count++] = '"';
        }
        if (event == JSON_FAILED) snprintf(shown + count, 40, "%zu:%d", reader.offset, reader.fault);
        if (event == JSON_FAILED) return shown;
        if (event == JSON_END) break;
    }
    shown[count] = 0;
    return shown;
}

START_TEST(test_events)
{
    static const struct {
        const char *text, *events;
    } rows[] = {
        {"null", "N."},
        {" [ ] ", "[]."},
        {"{\"a\":[1,-2,true],\"b\":{}}", "{ka\"[i1 i-2 T]kb\"{}}."},
        {"\"\\u00e9\\ud83d\\ude00\\/\\n\"", "\"\xc3\xa9\xf0\x9f\x98\x80/\n\"."},
        {"[0,-0,0.5,1e2,1E-2,-0.0]", "[i0 i0 f0.5 f100 f0.01 f-0 ]."},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++)
        ck_assert_str_eq(json_test_events(cy_bytes_from_text(rows[i].text)), rows[i].events);
}
END_TEST

START_TEST(test_faults)
{
    static const struct {
        const char *text;
        size_t offset;
        enum json_fault fault;
    } rows[] = {
        {"", 0, JSON_FAULT_EMPTY},
        {"\xef\xbb\xbf{}", 0, JSON_FAULT_MARK},
        {"[1,]", 3, JSON_FAULT_VALUE},
        {"[,1]", 1, JSON_FAULT_VALUE_OR_END},
        {"{\"a\":1,}", 7, JSON_FAULT_KEY},
        {"{a:1}", 1, JSON_FAULT_KEY_OR_END},
        {"{\"a\" 1}", 5, JSON_FAULT_COLON},
        {"[1 2]", 3, JSON_FAULT_LIST_NEXT},
        {"{\"a\":1]", 6, JSON_FAULT_MAP_NEXT},
        {"1 1", 2, JSON_FAULT_BEHIND},
        {"nul", 0, JSON_FAULT_WORD},
        {"-", 1, JSON_FAULT_DIGIT},
        {"1.", 2, JSON_FAULT_DIGIT},
        {"1e+", 3, JSON_FAULT_DIGIT},
        {"01", 0, JSON_FAULT_LEADING_ZERO},
        {"+1", 0, JSON_FAULT_VALUE},
        {"NaN", 0, JSON_FAULT_VALUE},
        {"9223372036854775808", 0, JSON_FAULT_BIG_INT},
        {"-9223372036854775809", 0, JSON_FAULT_BIG_INT},
        {"18446744073709551616", 0, JSON_FAULT_BIG_INT},
        {"1e309", 0, JSON_FAULT_BIG_FLOAT},
        {"1e99999999999999999999", 0, JSON_FAULT_BIG_FLOAT},
        {"\"abc", 4, JSON_FAULT_OPEN_TEXT},
        {"\"a\tb\"", 2, JSON_FAULT_CONTROL},
        {"\"\\x\"", 1, JSON_FAULT_ESCAPE},
        {"\"\\", 1, JSON_FAULT_ESCAPE},
        {"\"\\u12g4\"", 1, JSON_FAULT_HEX},
        {"\"\\ud800\"", 1, JSON_FAULT_SURROGATE},
        {"\"\\udc00\"", 1, JSON_FAULT_SURROGATE},
        {"\"\\ud800\\u0041\"", 1, JSON_FAULT_SURROGATE},
        {"\"\xc0\x80\"", 1, JSON_FAULT_UTF8},
        {"\"\xed\xa0\x80\"", 1, JSON_FAULT_UTF8},
        {"\"\xf4\x90\x80\x80\"", 1, JSON_FAULT_UTF8},
        {"\"\xe3\x81\"", 1, JSON_FAULT_UTF8},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct json_reader reader;
        enum json_event event;
        json_reader_init(&reader, cy_bytes_from_text(rows[i].text));
        do event = json_next(&reader);
        while (event > JSON_END);
        ck_assert_msg(event == JSON_FAILED && reader.fault == rows[i].fault &&
                          reader.offset == rows[i].offset,
                      "%s: event %d fault %d at %zu", rows[i].text, event, reader.fault, reader.offset);
        ck_assert_int_eq(json_next(&reader), JSON_FAILED); /* and stays failed */
    }
}
END_TEST

/* Each prefix in a block of its own size: AddressSanitizer sees a byte too many. */
START_TEST(test_prefixes)
{
    static const char whole[] =
        "{\"k\\u0041\\ud83d\\ude00\xed\x95\x9c\":[true,false,null,-1.5e-3,12345678901234567890.5]}";
    for (size_t count = 0; count < sizeof whole; count++) {
        uint8_t *part = mem_alloc(count);
        ck_assert_ptr_nonnull(part);
        memcpy(part, whole, count);
        const char *events = json_test_events(cy_bytes_of(part, count));
        ck_assert_int_eq(strchr(events, '!') == NULL, count == sizeof whole - 1);
        mem_free(part);
    }
}
END_TEST

static double json_test_float(const char *text)
{
    struct json_reader reader;
    json_reader_init(&reader, cy_bytes_from_text(text));
    ck_assert_int_eq(json_next(&reader), JSON_FLOAT);
    ck_assert_int_eq(json_next(&reader), JSON_END);
    return reader.float_value;
}

START_TEST(test_floats_are_the_nearest)
{
    static const char *const texts[] = {"0.1",
                                        "123456789.123456789",
                                        "1.7976931348623157e308",
                                        "5e-324",
                                        "2.4703282292062327e-324",
                                        "2.2250738585072011e-308",
                                        "9007199254740993.0",
                                        "9007199254740992.99999999999999999999999",
                                        "1e22",
                                        "1e23",
                                        "123456789012345678901234567890e-20",
                                        "0.00000000000000000000000000000000000001e38",
                                        "-1e-400",
                                        "100000000000000000000000000000000000000000000000000.0"};
    for (size_t i = 0; i < CY_COUNT_OF(texts); i++)
        ck_assert_msg(json_test_float(texts[i]) == strtod(texts[i], NULL), "%s", texts[i]);
    /* A tie that only the 900th digit breaks: 2^53 + 1, exactly half way, and a 1 far behind. */
    static char tie[1000];
    memset(tie, '0', sizeof tie - 1);
    memcpy(tie, "9007199254740993.", 17);
    ck_assert_double_eq(json_test_float(tie), 9007199254740992.0);
    tie[900] = '1';
    ck_assert_double_eq(json_test_float(tie), 9007199254740994.0);
}
END_TEST

START_TEST(test_depth_at_and_past_the_limit)
{
    static uint8_t text[2 * (LIMIT_JSON_DEPTH + 1)];
    for (size_t depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct json_reader reader;
        json_reader_init(&reader, cy_bytes_of(text, 2 * depth));
        enum json_event event;
        do event = json_next(&reader);
        while (event > JSON_END);
        ck_assert_int_eq(event, depth > LIMIT_JSON_DEPTH ? JSON_FAILED : JSON_END);
        ck_assert_int_eq(reader.fault, depth > LIMIT_JSON_DEPTH ? JSON_FAULT_DEPTH : JSON_FAULT_NONE);
    }
}
END_TEST

START_TEST(test_writing_texts)
{
    struct builder out;
    size_t offset = 99;
    builder_init(&out);
    ck_assert(json_write_text(&out, cy_bytes_of("a\"\\\n\x01\x1f\0\x7f\xed\x95\x9c and more than eight", 31),
                              &offset));
    ck_assert_str_eq(builder_text_view(&out),
                     "\"a\\\"\\\\\\n\\u0001\\u001f\\u0000\x7f\xed\x95\x9c and more than eight\"");
    ck_assert(!json_write_text(&out, CY_BYTES("abcdefgh\xff"), &offset));
    ck_assert_uint_eq(offset, 8);
    builder_fini(&out);
}
END_TEST

START_TEST(test_places)
{
    uint32_t line, column;
    json_place(CY_BYTES("a\n\xed\x95\x9cx"), 5, &line, &column);
    ck_assert_uint_eq(line, 2);
    ck_assert_uint_eq(column, 2);
    for (enum json_fault fault = JSON_FAULT_EMPTY; fault < JSON_FAULT_COUNT; fault++)
        ck_assert(json_fault_text(fault, true)[0] && json_fault_text(fault, false)[0]);
}
END_TEST

Suite *unit_suite_base_json(void)
{
    Suite *suite = suite_create("base_json");
    TCase *tcase = tcase_create("json");
    tcase_add_test(tcase, test_events);
    tcase_add_test(tcase, test_faults);
    tcase_add_test(tcase, test_prefixes);
    tcase_add_test(tcase, test_floats_are_the_nearest);
    tcase_add_test(tcase, test_depth_at_and_past_the_limit);
    tcase_add_test(tcase, test_writing_texts);
    tcase_add_test(tcase, test_places);
    suite_add_tcase(suite, tcase);
    return suite;
}
