/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/native_text_test.c: proves that the bodies of module text, and the sorts of module list, work
 * within bounds of time and memory whatever they are given, and agree with slow and plain ways of doing the same.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/native/native_data_internal.h"
#include "vm/run/object.h"

#include <check.h>
#include <stdio.h>

static struct run_host host;
static void native_text_test_open(void) { ck_assert(run_host_open(&host, NULL, 0)); }
static void native_text_test_close(void) { run_host_close(&host); }

static cy_value native_text_test_fill(size_t count, char byte)
{
    cy_value text;
    uint8_t *data;
    ck_assert(!cy_failed(string_new_blank(host.vm, count, &text, &data)));
    memset(data, byte, count);
    return text;
}
static cy_value native_text_test_text(const char *bytes)
{
    cy_value text;
    ck_assert(!cy_failed(string_new(host.vm, cy_bytes_from_text(bytes), &text)));
    return text;
}

/* Calls a body with arguments it takes. The result, owned; or, when it failed, the text "kind: message". */
static cy_value native_text_test_call(native_body body, cy_value *args, uint32_t count)
{
    struct native_call call = {
        .vm = host.vm, .args = args, .arg_count = count, .result = value_nil(), .error = value_nil()};
    cy_value result;
    if (body(&call) == NATIVE_DONE) {
        result = call.result;
    } else {
        char said[256];
        cy_bytes kind = error_kind(host.vm, call.error), message = error_message(host.vm, call.error);
        snprintf(said, sizeof said, "%.*s: %.*s", CY_BYTES_ARG(kind), CY_BYTES_ARG(message));
        result = native_text_test_text(said);
        value_unref(host.vm, call.error);
    }
    for (uint32_t i = 0; i < count; i++) value_unref(host.vm, args[i]);
    return result;
}
#define CALL(name, ...)                                             \
    native_text_test_call(native_##name, (cy_value[]){__VA_ARGS__}, \
                          sizeof((cy_value[]){__VA_ARGS__}) / sizeof(cy_value))

static void native_text_test_says(cy_value owned, const char *said)
{
    ck_assert_str_eq(run_host_text(&host, owned), said);
    value_unref(host.vm, owned);
}

/* Parts that almost fit everywhere: linear, or this takes days. */
START_TEST(test_searches_are_linear)
{
    enum { COUNT = 4000000 };
    cy_value hay = native_text_test_fill(COUNT, 'a'), part = native_text_test_fill(COUNT / 2, 'a');
    ((uint8_t *)(uintptr_t)string_bytes(part).data)[COUNT / 2 - 1] = 'b';
    native_text_test_says(CALL(text_find, value_ref(hay), value_ref(part)), "-1");
    native_text_test_says(CALL(text_count_of, value_ref(hay), value_ref(part)), "0");
    cy_value parts = CALL(text_split, value_ref(hay), value_ref(part));
    ck_assert_uint_eq(list_count(parts), 1);
    value_unref(host.vm, parts);
    /* Many false starts between real ones. */
    cy_value replaced = CALL(text_replace, hay, part, native_text_test_text("x"));
    ck_assert_uint_eq(string_bytes(replaced).count, COUNT);
    value_unref(host.vm, replaced);
}
END_TEST

START_TEST(test_trimming_is_bounded)
{
    cy_value letters = native_text_test_fill(8 << 20, 'b'), text = native_text_test_fill(8 << 20, 'a');
    ((uint8_t *)(uintptr_t)string_bytes(letters).data)[(8 << 20) - 1] = 'a';
    native_text_test_says(CALL(text_trim, text, letters),
                          "limit: text.trim: a limit was exceeded (WALK_STEPS: 134217728)");
}
END_TEST

/* At the row and one past it. */
START_TEST(test_marks_are_bounded)
{
    for (int past = 0; past < 2; past++) {
        struct builder text;
        builder_init(&text);
        builder_text(&text, "a");
        for (int i = 0; i < LIMIT_TEXT_MARKS + past; i++) builder_text(&text, i & 1 ? "\u0323" : "\u0301");
        cy_value marked;
        ck_assert(!cy_failed(string_new(host.vm, builder_view(&text), &marked)));
        builder_fini(&text);
        cy_value normal = CALL(text_nfd, marked);
        ck_assert_int_eq(strncmp(run_host_text(&host, normal), "limit: text.nfd: too many marks", 30) == 0,
                         past);
        value_unref(host.vm, normal);
    }
}
END_TEST

/* Splitting and joining give the text back, whatever the parts are, through the table of recent parts too. */
START_TEST(test_split_agrees_with_join)
{
    uint32_t random = 7;
    for (int round = 0; round < 200; round++) {
        struct builder text;
        builder_init(&text);
        int pieces = round * 11;
        for (int i = 0; i < pieces; i++) {
            random = random * 1103515245u + 12345u;
            builder_printf(&text, "%.*s,", (int)(random >> 16 & 31), "0123456789abcdefghijklmnopqrstuvw");
            if (random >> 28 == 3) builder_u8(&text, (uint8_t)(random >> 8));
        }
        cy_value whole;
        ck_assert(!cy_failed(string_new(host.vm, builder_view(&text), &whole)));
        cy_value parts = CALL(text_split, value_ref(whole), native_text_test_text(","));
        ck_assert_uint_ge(list_count(parts), (size_t)pieces + 1);
        cy_value joined = CALL(text_join, parts, native_text_test_text(","));
        ck_assert(cy_bytes_equal(string_bytes(joined), builder_view(&text)));
        value_unref(host.vm, joined);
        value_unref(host.vm, whole);
        builder_fini(&text);
    }
}
END_TEST

/* What a body needs for itself comes out of the VM's memory. */
START_TEST(test_memory_is_bounded)
{
    native_text_test_close();
    ck_assert(run_host_open(&host, NULL, 400000));
    cy_value text = native_text_test_fill(100000, 'a');
    native_text_test_says(CALL(text_split, value_ref(text), native_text_test_text("a")),
                          "memory: text.split: out of memory (VM_MEMORY_BYTES: 400000)");
    native_text_test_says(CALL(text_graphemes, value_ref(text)), "100000");
    native_text_test_says(CALL(text_grapheme_list, value_ref(text)),
                          "memory: text.graphemes: out of memory (VM_MEMORY_BYTES: 400000)");
    native_text_test_says(CALL(text_code_points, value_ref(text)),
                          "memory: text.code_points: out of memory (VM_MEMORY_BYTES: 400000)");
    native_text_test_says(CALL(text_pad_end, value_ref(text), value_int(1000000)),
                          "memory: text.pad_end: out of memory (VM_MEMORY_BYTES: 400000)");
    native_text_test_says(
        CALL(text_replace, value_ref(text), native_text_test_text("a"), native_text_test_text("bbbb")),
        "memory: text.replace: out of memory (VM_MEMORY_BYTES: 400000)");
    native_text_test_says(CALL(text_find_all, text, native_text_test_text("a")),
                          "memory: text.find_all: out of memory (VM_MEMORY_BYTES: 400000)");
}
END_TEST

/* Sorting against comparing each with each, for every kind, both directions and many lengths. */
static cy_value native_text_test_item(int kind, uint32_t random)
{
    char text[64];
    switch (kind) {
    case 0: return value_int((int64_t)(random % 50) - 25);
    case 1: return value_float((double)(random % 50) / 4 - 6);
    case 2: return random & 1 ? value_int(random % 20) : value_float((double)(random % 40) / 2);
    default:
        snprintf(text, sizeof text, "%s%u", random & 64 ? "a long beginning " : "", random % 30);
        return native_text_test_text(text);
    }
}

START_TEST(test_sorting_agrees_with_order)
{
    uint32_t random = 99;
    for (int round = 0; round < 400; round++) {
        int kind = round & 3;
        cy_value list;
        ck_assert(!cy_failed(list_new(host.vm, 0, &list)));
        for (int i = 0; i < round * 2; i++) {
            random = random * 1103515245u + 12345u;
            ck_assert(!cy_failed(list_append(host.vm, &list, native_text_test_item(kind, random >> 8))));
        }
        bool descending = round & 4;
        cy_value sorted = CALL(list_sort, value_ref(list), value_bool(descending));
        cy_value order = CALL(list_order, value_ref(list), value_bool(descending));
        ck_assert_uint_eq(list_count(sorted), list_count(list));
        for (size_t i = 0; i < list_count(sorted); i++) {
            cy_value here = list_get(list, (size_t)list_get(order, i).as.i);
            ck_assert(value_equal(host.vm, here, list_get(sorted, i)) && here.tag == list_get(sorted, i).tag);
            if (i == 0) continue;
            cy_value pair;
            ck_assert(!cy_failed(list_new(host.vm, 0, &pair)));
            ck_assert(!cy_failed(list_append(host.vm, &pair, value_ref(list_get(sorted, i - 1)))));
            ck_assert(!cy_failed(list_append(host.vm, &pair, value_ref(here))));
            /* The first of the two is the smallest (largest) of both, or equal to it. */
            cy_value first = descending ? CALL(list_max, value_ref(pair)) : CALL(list_min, value_ref(pair));
            ck_assert(value_equal(host.vm, first, list_get(pair, 0)));
            if (value_equal(host.vm, list_get(pair, 0), list_get(pair, 1))) /* stable */
                ck_assert_int_lt(list_get(order, i - 1).as.i, list_get(order, i).as.i);
            value_unref(host.vm, first);
            value_unref(host.vm, pair);
        }
        value_unref(host.vm, order);
        value_unref(host.vm, sorted);
        value_unref(host.vm, list);
    }
}
END_TEST

/* One long list many times over: each comparison is long, all of them together are bounded. */
START_TEST(test_sorting_lists_is_bounded)
{
    cy_value key, keys;
    int64_t *ints;
    ck_assert(!cy_failed(list_new_ints(host.vm, 1 << 20, &key, &ints)));
    memset(ints, 0, sizeof *ints << 20);
    ck_assert(!cy_failed(list_new(host.vm, 0, &keys)));
    for (int i = 0; i < 1000; i++) ck_assert(!cy_failed(list_append(host.vm, &keys, value_ref(key))));
    native_text_test_says(CALL(list_sort, value_ref(keys)),
                          "limit: list.sort: a limit was exceeded (WALK_STEPS: 134217728)");
    value_unref(host.vm, keys);
    value_unref(host.vm, key);
}
END_TEST

/* Two words at the row and past it; all of one call are bounded by WALK_STEPS, with pauses. */
START_TEST(test_words_compared_are_bounded)
{
    enum { ROOT = 1024 };
    ck_assert_int_eq(ROOT * ROOT, LIMIT_NEAREST_PAIRS);
    for (size_t past = 0; past < 2; past++) {
        cy_value known, word = native_text_test_fill(ROOT, 'a'),
                        other = native_text_test_fill(ROOT + past, 'a');
        ((uint8_t *)(uintptr_t)string_bytes(word).data)[0] = 'b'; /* equal words are not compared */
        ck_assert(!cy_failed(list_new(host.vm, 0, &known)));
        ck_assert(!cy_failed(list_append(host.vm, &known, value_ref(other))));
        cy_value said = CALL(text_nearest, word, known);
        ck_assert(past == 1 || cy_bytes_equal(string_bytes(said), string_bytes(other)));
        if (past == 0)
            value_unref(host.vm, said);
        else
            native_text_test_says(
                said, "limit: text.nearest: item 0 and the word are too long: 1025 and 1024 bytes "
                      "(NEAREST_PAIRS: 1048576, multiplied)");
        value_unref(host.vm, other);
    }
}
END_TEST

/* Keys that are large too: each look-up is bounded by map_set, and all of one call by this, at the row and one past
 * it. */
START_TEST(test_keys_of_one_call_are_bounded)
{
    struct native_call call = {.vm = host.vm};
    cy_value map;
    ck_assert(!cy_failed(map_new(host.vm, 0, &map)));
    for (int past = 0; past < 2; past++) {
        int64_t before = native_budget(&call) + LIMIT_WALK_STEPS / 8 + past;
        cy_err err = native_data_set(&call, before, &map, value_int(past), value_nil());
        ck_assert_int_eq(cy_is(err, CY_ERR_LIMIT), past);
    }
    /* What walking a key charges is what is counted: an eighth of its contents. */
    cy_value key;
    int64_t *ints, before = native_budget(&call);
    ck_assert(!cy_failed(list_new_ints(host.vm, 80000, &key, &ints)));
    memset(ints, 0, 80000 * sizeof *ints);
    ck_assert(!cy_failed(native_data_set(&call, before, &map, key, value_nil())));
    ck_assert_int_ge(before - native_budget(&call), 80000 / 8);
    value_unref(host.vm, key);
    value_unref(host.vm, map);
}
END_TEST

Suite *unit_suite_native_native_text(void);
Suite *unit_suite_native_native_text(void)
{
    Suite *suite = suite_create("native/native_text");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, native_text_test_open, native_text_test_close);
    tcase_add_test(tests, test_searches_are_linear);
    tcase_add_test(tests, test_trimming_is_bounded);
    tcase_add_test(tests, test_marks_are_bounded);
    tcase_add_test(tests, test_split_agrees_with_join);
    tcase_add_test(tests, test_memory_is_bounded);
    tcase_add_test(tests, test_sorting_agrees_with_order);
    tcase_add_test(tests, test_sorting_lists_is_bounded);
    tcase_add_test(tests, test_words_compared_are_bounded);
    tcase_add_test(tests, test_keys_of_one_call_are_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
