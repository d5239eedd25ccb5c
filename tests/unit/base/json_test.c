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
        {"[0e30,-0e30,0.0e-99,-0.000000000000000000000000]", "[f0 f-0 f0 f-0 ]."},
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

START_TEST(test_number_at_and_past_the_limit)
{
    static uint8_t text[LIMIT_JSON_NUMBER_BYTES + 4];
    static const char *const begins[] = {"0.", "-1.5e-", "1"};
    for (size_t i = 0; i < CY_COUNT_OF(begins); i++)
        for (size_t count = LIMIT_JSON_NUMBER_BYTES; count <= LIMIT_JSON_NUMBER_BYTES + 1; count++) {
            struct json_reader reader;
            bool integer = i == 2, past = count > LIMIT_JSON_NUMBER_BYTES;
            memset(text, '0', count);
            memcpy(text, begins[i], strlen(begins[i]));
            json_reader_init(&reader, cy_bytes_of(text, count));
            enum json_event event = json_next(&reader);
            ck_assert_int_eq(event, past || integer ? JSON_FAILED : JSON_FLOAT);
            ck_assert_int_eq(reader.fault, past      ? JSON_FAULT_LONG_NUMBER
                                           : integer ? JSON_FAULT_BIG_INT
                                                     : JSON_FAULT_NONE);
        }
}
END_TEST

/* The events, with a limit that moves on by `step` at each pause; `*pauses_out` says how often it paused. */
static const char *json_test_paused_events(cy_bytes text, size_t step, unsigned *pauses_out)
{
    static char shown[256];
    struct json_reader reader;
    size_t count = 0;
    *pauses_out = 0;
    json_reader_init(&reader, text);
    reader.limit = step;
    for (;;) {
        enum json_event event = json_next(&reader);
        ck_assert_uint_lt(count, sizeof shown - 2);
        if (event == JSON_PAUSED) {
            ++*pauses_out;
            reader.limit += step;
            continue;
        }
        shown[count++] = (char)('a' + event);
        if (event == JSON_TEXT || event == JSON_KEY) {
            uint8_t whole[256], pieces[256];
            size_t raw_at = 0, written = 0;
            json_decode(&reader, whole);
            while (raw_at < reader.raw.count)
                written += json_decode_piece(&reader, &raw_at, step, pieces + written);
            ck_assert_uint_eq(written, reader.decoded_count);
            ck_assert_int_eq(memcmp(whole, pieces, written), 0);
        }
        if (event == JSON_END || event == JSON_FAILED) break;
    }
    snprintf(shown + count, sizeof shown - count, " %zu %d", reader.offset, (int)reader.fault);
    return shown;
}

/* Wherever reading pauses, it gives the same events, texts and faults. */
START_TEST(test_pausing_anywhere)
{
    static const char *const texts[] = {
        ("  {  \"a long key with \\u0041\\ud83d\\ude00 and \xed\x95\x9c\xea\xb8\x80\"  \n :  \n [ 1 ,   "
         "\"x\\n\\t\\\\\" ,  true ] }   "),
        "[\"\xed\x95\x9c\xed\x95\x9c\xed\x95\x9c\xed\x95\x9c a text that is not closed",
        "[\"twenty bytes of text, and then \\q\"]",
        "{\"a\"      1}",
        "[1,          ]",
    };
    for (size_t i = 0; i < CY_COUNT_OF(texts); i++) {
        cy_bytes text = cy_bytes_from_text(texts[i]);
        char expected[256];
        unsigned pauses, most = 0;
        snprintf(expected, sizeof expected, "%s", json_test_paused_events(text, text.count, &pauses));
        ck_assert_uint_eq(pauses, 0);
        for (size_t step = 1; step <= text.count; step++) {
            ck_assert_str_eq(json_test_paused_events(text, step, &pauses), expected);
            if (pauses > most) most = pauses;
        }
        ck_assert_uint_gt(most, 1);
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
    struct json_place place = {0, 1, 1};
    for (size_t to = 0; to <= 6; to++) json_place_advance(CY_BYTES("a\n\xed\x95\x9cx"), to, &place);
    ck_assert_uint_eq(place.line, 2);
    ck_assert_uint_eq(place.column, 3);
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
    tcase_add_test(tcase, test_number_at_and_past_the_limit);
    tcase_add_test(tcase, test_pausing_anywhere);
    tcase_add_test(tcase, test_writing_texts);
    tcase_add_test(tcase, test_places);
    suite_add_tcase(suite, tcase);
    return suite;
}
