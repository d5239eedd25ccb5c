/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/native_data_test.c: proves the bodies of list, map, text and the prelude, called as the VM calls
 * them, and that none of them works without bound.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/native/native_bodies.h"

#include <check.h>
#include <stdio.h>
#include <unistd.h>

static struct run_host host;
static void data_open(void) { ck_assert(run_host_open(&host, NULL, 0)); }
static void data_close(void) { run_host_close(&host); }

static cy_value text(const char *bytes)
{
    cy_value value;
    ck_assert(!cy_failed(string_new(host.vm, cy_bytes_from_text(bytes), &value)));
    return value;
}
/* A list of the given values, which it takes. */
static cy_value list_of_values(const cy_value *items, size_t count)
{
    cy_value list;
    ck_assert(!cy_failed(list_new(host.vm, 0, &list)));
    for (size_t i = 0; i < count; i++) ck_assert(!cy_failed(list_append(host.vm, &list, items[i])));
    return list;
}
#define LIST(...) \
    list_of_values((cy_value[]){__VA_ARGS__}, sizeof((cy_value[]){__VA_ARGS__}) / sizeof(cy_value))

/* Calls a body with arguments it takes; gives the result's text or "kind: message". */
static const char *call_body(native_body body, cy_value *args, uint32_t count)
{
    static char shown[512];
    struct native_call call = {
        .vm = host.vm, .args = args, .arg_count = count, .result = value_nil(), .error = value_nil()};
    enum native_outcome outcome = body(&call);
    if (outcome == NATIVE_DONE)
        snprintf(shown, sizeof shown, "%s", run_host_text(&host, call.result));
    else {
        cy_bytes kind = error_kind(host.vm, call.error), message = error_message(host.vm, call.error);
        snprintf(shown, sizeof shown, "%.*s: %.*s", CY_BYTES_ARG(kind), CY_BYTES_ARG(message));
    }
    value_unref(host.vm, call.result);
    value_unref(host.vm, call.error);
    for (uint32_t i = 0; i < count; i++) value_unref(host.vm, args[i]);
    return shown;
}
#define CALL(name, ...) \
    call_body(native_##name, (cy_value[]){__VA_ARGS__}, sizeof((cy_value[]){__VA_ARGS__}) / sizeof(cy_value))

/* A key that cannot be hashed is no absent key; one that can be no key is. */
START_TEST(test_map_look_up_errors)
{
    cy_value deep = value_int(1);
    for (int i = 0; i < LIMIT_VALUE_DEPTH + 1; i++) deep = LIST(deep);
    cy_value map;
    ck_assert(!cy_failed(map_new(host.vm, 0, &map)));
    ck_assert_str_eq(CALL(map_has, value_ref(map), value_ref(deep)),
                     "depth: map.has: too deep (VALUE_DEPTH: 10000)");
    ck_assert_str_eq(CALL(map_get, value_ref(map), deep, value_int(5)),
                     "depth: map.get: too deep (VALUE_DEPTH: 10000)");
    ck_assert_str_eq(CALL(map_has, value_ref(map), value_nil()), "false");
    ck_assert_str_eq(CALL(map_get, map, value_nil(), value_int(5)), "5");
}
END_TEST

/* A part that almost fits everywhere, backwards: linear, or this takes a day. */
START_TEST(test_find_last_is_linear)
{
    enum { COUNT = 4000000 };
    cy_value large, part;
    uint8_t *data;
    ck_assert(!cy_failed(string_new_blank(host.vm, COUNT, &large, &data)));
    memset(data, 'a', COUNT);
    data[7] = 'b';
    ck_assert(!cy_failed(string_new_blank(host.vm, COUNT / 2, &part, &data)));
    memset(data, 'a', COUNT / 2);
    data[COUNT / 2 - 1] = 'b';
    ck_assert_str_eq(CALL(text_find_last, value_ref(large), part), "-1");
    ck_assert_str_eq(CALL(text_find_last, large, text("ab")), "6");
    ck_assert_str_eq(CALL(text_find_last, text("abcabc"), text("bc")), "4");
}
END_TEST

/* Many items that differ late from the one looked for: the whole search is bounded. So is sorting equal long texts. */
START_TEST(test_searching_and_sorting_are_bounded)
{
    cy_value item = LIST(value_int(0)), other = LIST(value_int(0)), items, texts, large[2];
    for (int i = 0; i < 100000; i++) {
        ck_assert(!cy_failed(list_append(host.vm, &item, value_int(i))));
        ck_assert(!cy_failed(list_append(host.vm, &other, value_int(i + (i == 99999)))));
    }
    ck_assert(!cy_failed(list_new(host.vm, 0, &items)));
    ck_assert(!cy_failed(list_new(host.vm, 0, &texts)));
    for (int side = 0; side < 2; side++) {
        uint8_t *data;
        ck_assert(!cy_failed(string_new_blank(host.vm, 4 << 20, &large[side], &data)));
        memset(data, 'x', 4 << 20);
    }
    for (int i = 0; i < 10000; i++) {
        cy_err err = list_append(host.vm, &items, value_ref(other));
        if (!cy_failed(err)) err = list_append(host.vm, &texts, value_ref(large[i & 1]));
        if (cy_failed(err)) ck_abort();
    }
    ck_assert_str_eq(CALL(list_contains, items, item),
                     "limit: list.contains: a limit was exceeded (WALK_STEPS: 134217728)");
    ck_assert_str_eq(CALL(list_sort, texts),
                     "limit: list.sort: a limit was exceeded (WALK_STEPS: 134217728)");
    /* 1024 words of 1 KiB: 8 pairs are a step. Equal ones count as others do, and take no time. */
    cy_value word, words;
    uint8_t *data;
    ck_assert(!cy_failed(string_new_blank(host.vm, 1024, &word, &data)));
    memset(data, 'x', 1024);
    ck_assert(!cy_failed(list_new(host.vm, 0, &words)));
    for (int i = 0; i < 1024; i++) ck_assert(!cy_failed(list_append(host.vm, &words, value_ref(word))));
    ck_assert_str_eq(CALL(text_nearest, word, words),
                     "limit: text.nearest: a limit was exceeded (WALK_STEPS: 134217728)");
    value_unref(host.vm, other);
    value_unref(host.vm, large[0]);
    value_unref(host.vm, large[1]);
}
END_TEST

/* What a body needs for itself comes out of the VM's memory. */
START_TEST(test_scratch_memory_is_bounded)
{
    data_close();
    ck_assert(run_host_open(&host, NULL, 400000));
    cy_value items;
    ck_assert(!cy_failed(list_new(host.vm, 0, &items)));
    for (int i = 0; i < 20000; i++) ck_assert(!cy_failed(list_append(host.vm, &items, value_int(-i))));
    ck_assert_str_eq(CALL(list_sort, value_ref(items)),
                     "memory: list.sort: out of memory (VM_MEMORY_BYTES: 400000)"); /* 640,000 bytes */
    value_unref(host.vm, items);
    ck_assert_str_eq(CALL(text_replace, text("aaaa"), text("a"), text("b")), "bbbb");
    cy_value large;
    uint8_t *data;
    ck_assert(!cy_failed(string_new_blank(host.vm, 300000, &large, &data)));
    memset(data, 'a', 300000);
    ck_assert_str_eq(CALL(text_replace, value_ref(large), text("a"), text("bb")),
                     "memory: text.replace: out of memory (VM_MEMORY_BYTES: 400000)");
    ck_assert_str_eq(CALL(to_str, LIST(value_ref(large), large)), "memory: str: out of memory");
}
END_TEST

START_TEST(test_text)
{
    ck_assert_str_eq(CALL(text_split, text("a,,b,"), text(",")), "[\"a\", \"\", \"b\", \"\"]");
    ck_assert_str_eq(CALL(text_split, text(""), text("ab")), "[\"\"]");
    ck_assert_str_eq(CALL(text_split, text("x"), text("")), "value: text.split: the separator is empty");
    ck_assert_str_eq(CALL(text_join, LIST(text("a"), text(""), text("b")), text("--")), "a----b");
    ck_assert_str_eq(CALL(text_join, LIST(value_int(1))), "type: text.join: item 0 must be str, not int");
    ck_assert_str_eq(CALL(text_contains, text("abc"), text("bc")), "true");
    ck_assert_str_eq(CALL(text_contains, text("abc"), text("")), "true");
    ck_assert_str_eq(CALL(text_starts, text("abc"), text("abcd")), "false");
    ck_assert_str_eq(CALL(text_ends, text("abc"), text("bc")), "true");
    ck_assert_str_eq(CALL(text_find, text("abcabc"), text("c"), value_int(3)), "5");
    ck_assert_str_eq(CALL(text_find, text("abc"), text("c"), value_int(3)), "-1");
    ck_assert_str_eq(CALL(text_find, text("abc"), text("c"), value_int(4)),
                     "index: text.find: from 4 is outside 0..3");
    ck_assert_str_eq(CALL(text_find_last, text("aXbXX"), text("XX")), "3");
    ck_assert_str_eq(CALL(text_find_last, text("a"), text("aa")), "-1");
    ck_assert_str_eq(CALL(text_lower_ascii, text("AbZ[가")), "abz[가");
    ck_assert_str_eq(CALL(text_trim, text(" \t x y\r\n")), "x y");
    ck_assert_str_eq(CALL(text_trim, text("  ")), "");
    ck_assert_str_eq(CALL(text_replace, text("aXbX"), text("X"), text("--")), "a--b--");
    ck_assert_str_eq(CALL(text_repeat, text("ab"), value_int(3)), "ababab");
    ck_assert_str_eq(CALL(text_repeat, text("ab"), value_int(INT64_MAX)),
                     "too_large: text.repeat: too large (STRING_BYTES: 1073741824)");
    ck_assert_str_eq(CALL(text_repeat, text("ab"), value_int(-1)),
                     "value: text.repeat: times must be 0 or more, not -1");
    ck_assert_str_eq(CALL(text_graphemes, text("한글é")), "3");
    ck_assert_str_eq(CALL(text_nearest, text("upstrem"), LIST(text("domain"), text("upstream"))), "upstream");
    ck_assert_str_eq(CALL(text_nearest, text("zzz"), LIST(text("domain"))), "nil");
}
END_TEST

START_TEST(test_list)
{
    ck_assert_str_eq(CALL(list_contains, LIST(value_int(1), value_int(2)), value_float(2.0)), "true");
    ck_assert_str_eq(CALL(list_index, LIST(text("a"), text("b")), text("b")), "1");
    ck_assert_str_eq(CALL(list_index, LIST(text("a")), value_nil()), "-1");
    ck_assert_str_eq(CALL(list_reverse, LIST(value_int(1), text("b"), value_nil())), "[nil, \"b\", 1]");
    ck_assert_str_eq(CALL(list_sort, LIST(value_int(3), value_float(1.5), value_int(-2), value_float(3.0))),
                     "[-2, 1.5, 3, 3.0]"); /* equal ones keep their order */
    ck_assert_str_eq(CALL(list_sort, LIST(text("b"), text(""), text("ab"))), "[\"\", \"ab\", \"b\"]");
    ck_assert_str_eq(CALL(list_sort, LIST(value_int(3), text("a"))),
                     "type: list.sort: item 1 is str; all items must be numbers, or all str, or all "
                     "lists of those");
    ck_assert_str_eq(CALL(list_sort, LIST(value_float(1), value_float(0.0 / 0.0))),
                     "type: list.sort: item 1 is NaN; all items must be numbers, or all str, or all "
                     "lists of those");
    ck_assert_str_eq(CALL(list_sort, list_of_values(NULL, 0)), "[]");
}
END_TEST

/* Sorting many: against the property, not an example. */
START_TEST(test_sort_many)
{
    cy_value list = list_of_values(NULL, 0);
    uint32_t random = 12345;
    for (int i = 0; i < 1000; i++) {
        random = random * 1103515245 + 12345;
        ck_assert(!cy_failed(list_append(host.vm, &list, value_int((random >> 16) % 500))));
    }
    struct native_call call = {.vm = host.vm, .args = &list, .arg_count = 1, .result = value_nil()};
    ck_assert_int_eq(native_list_sort(&call), NATIVE_DONE);
    ck_assert_uint_eq(list_count(call.result), 1000);
    int64_t sum = 0;
    for (size_t i = 0; i < 1000; i++) {
        sum += list_get(call.result, i).as.i - list_get(list, i).as.i;
        if (i > 0) ck_assert_int_le(list_get(call.result, i - 1).as.i, list_get(call.result, i).as.i);
    }
    ck_assert_int_eq(sum, 0);
    value_unref(host.vm, call.result);
    value_unref(host.vm, list);
}
END_TEST

static cy_value map_value(void)
{
    cy_value map;
    ck_assert(!cy_failed(map_new(host.vm, 0, &map)));
    ck_assert(!cy_failed(map_set_text(host.vm, &map, CY_BYTES("a"), value_int(1))));
    ck_assert(!cy_failed(map_set(host.vm, &map, value_int(2), value_nil())));
    return map;
}

START_TEST(test_map)
{
    ck_assert_str_eq(CALL(map_keys, map_value()), "[\"a\", 2]");
    ck_assert_str_eq(CALL(map_values, map_value()), "[1, nil]");
    ck_assert_str_eq(CALL(map_has, map_value(), value_float(2.0)), "true");
    ck_assert_str_eq(CALL(map_has, map_value(), value_nil()), "false");
    ck_assert_str_eq(CALL(map_get, map_value(), text("b")), "nil");
    ck_assert_str_eq(CALL(map_get, map_value(), text("b"), value_int(7)), "7");
    ck_assert_str_eq(CALL(map_get, map_value(), value_int(2), value_int(7)), "nil");
    ck_assert_str_eq(CALL(map_remove, map_value(), text("a")), "{2: nil}");
    ck_assert_str_eq(CALL(map_remove, map_value(), value_nil()), "{\"a\": 1, 2: nil}");
    cy_value shared = map_value();
    ck_assert_str_eq(CALL(map_remove, value_ref(shared), text("a")), "{2: nil}");
    ck_assert_uint_eq(map_object_count(shared), 2);
    value_unref(host.vm, shared);
}
END_TEST

START_TEST(test_conversions)
{
    ck_assert_str_eq(CALL(to_int, text("-12")), "-12");
    ck_assert_str_eq(CALL(to_int, text("12x")), "value: int: \"12x\" is not a number");
    ck_assert_str_eq(CALL(to_int, text("9223372036854775808")),
                     "value: int: \"9223372036854775808\" is not a number");
    ck_assert_str_eq(CALL(to_int, value_float(-2.9)), "-2");
    ck_assert_str_eq(CALL(to_int, value_float(1e30)), "overflow: int: 1e+30 is outside the range of an int");
    ck_assert_str_eq(CALL(to_int, value_nil()), "type: int: nil is not a number");
    ck_assert_str_eq(CALL(to_int, value_bool(true)), "1");
    ck_assert_str_eq(CALL(to_float, text("1.5e2")), "150.0");
    ck_assert_str_eq(CALL(to_float, text("0x10")), "value: float: \"0x10\" is not a number");
    ck_assert_str_eq(CALL(to_float, text("inf")), "value: float: \"inf\" is not a number");
    ck_assert_str_eq(CALL(to_float, text("1.")), "value: float: \"1.\" is not a number");
    ck_assert_str_eq(CALL(to_float, value_int(3)), "3.0");
    ck_assert_str_eq(CALL(to_str, LIST(text("a"), value_int(1))), "[\"a\", 1]");
    ck_assert_str_eq(CALL(kind_of, value_float(1)), "float");
    ck_assert_str_eq(CALL(length, text("한")), "3");
    ck_assert_str_eq(CALL(length, LIST(value_int(1))), "1");
    ck_assert_str_eq(CALL(int_wrapping_add, value_int(INT64_MAX), value_int(1)), "-9223372036854775808");
    ck_assert_str_eq(CALL(int_wrapping_mul, value_int(INT64_MAX), value_int(2)), "-2");
    ck_assert_str_eq(CALL(raise, text("m"), text("mine"), value_int(1)), "mine: m");
    ck_assert_str_eq(CALL(raise, text("m")), "thrown: m");
}
END_TEST

/* print writes one line whole; a closed output is an error, not silence. */
START_TEST(test_print)
{
    int ends[2], saved = dup(STDOUT_FILENO);
    char bytes[64] = "";
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    ck_assert_str_eq(CALL(print, text("a"), value_int(1), LIST(text("b"))), "nil");
    ck_assert_int_eq(close(STDOUT_FILENO), 0);
    char failed[128];
    snprintf(failed, sizeof failed, "%s", CALL(print, text("x")));
    ck_assert_int_eq(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
    ck_assert_int_eq((int)read(ends[0], bytes, sizeof bytes - 1), 10);
    ck_assert_str_eq(bytes, "a 1 [\"b\"]\n");
    ck_assert_msg(strncmp(failed, "system: print: ", 15) == 0, "%s", failed);
    close(ends[0]);
    close(ends[1]);
    close(saved);
}
END_TEST

Suite *unit_suite_native_native_data(void);
Suite *unit_suite_native_native_data(void)
{
    Suite *suite = suite_create("native_native_data");
    TCase *tests = tcase_create("data");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, data_open, data_close);
    tcase_add_test(tests, test_map_look_up_errors);
    tcase_add_test(tests, test_scratch_memory_is_bounded);
    tcase_add_test(tests, test_find_last_is_linear);
    tcase_add_test(tests, test_searching_and_sorting_are_bounded);
    tcase_add_test(tests, test_text);
    tcase_add_test(tests, test_list);
    tcase_add_test(tests, test_sort_many);
    tcase_add_test(tests, test_map);
    tcase_add_test(tests, test_conversions);
    tcase_add_test(tests, test_print);
    suite_add_tcase(suite, tests);
    return suite;
}
#undef LIST
#undef CALL
