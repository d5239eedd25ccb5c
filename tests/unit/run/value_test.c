/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/value_test.c: proves values of all kinds: storage, order, equality, text, and that depth
 * is no danger.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/run/heap.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/native_call.h"
#include "vm/run/record.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

#include <check.h>
#include <math.h>

#define OK(expression) ck_assert_msg(!cy_failed(expression), "%s", #expression)

static struct run_host host;
static void value_open(void) { ck_assert(run_host_open(&host, NULL, 0)); }
static void value_close(void) { run_host_close(&host); }

static cy_value text_value(const char *text)
{
    cy_value value;
    OK(string_new(host.vm, cy_bytes_from_text(text), &value));
    return value;
}
static bool map_has(cy_value map, cy_value key, cy_value *value_out)
{
    bool found;
    OK(map_get(host.vm, map, key, &found, value_out));
    return found;
}
static cy_value empty_list(void)
{
    cy_value list;
    OK(list_new(host.vm, 0, &list));
    return list;
}
static cy_value empty_map(void)
{
    cy_value map;
    OK(map_new(host.vm, 0, &map));
    return map;
}

/* A list of ints takes 8 bytes an item and becomes a list of values when another kind comes. */
START_TEST(test_list_storage_is_typed)
{
    cy_value list = empty_list();
    for (int64_t i = 0; i < 1000; i++) OK(list_append(host.vm, &list, value_int(i)));
    ck_assert_int_eq(list_kind_of(list_of(list)), LIST_INT64);
    ck_assert_uint_le(host.vm->heap_bytes, 1000 * 8 * 2 + 2000);
    ck_assert_int_eq(list_get(list, 999).as.i, 999);
    OK(list_append(host.vm, &list, text_value("x")));
    ck_assert_int_eq(list_kind_of(list_of(list)), LIST_ANY);
    for (int64_t i = 0; i < 1000; i++) ck_assert_int_eq(list_get(list, (size_t)i).as.i, i);
    ck_assert_str_eq(value_kind_text(host.vm, list_get(list, 1000)), "str");
    value_unref(host.vm, list);
}
END_TEST

START_TEST(test_list_floats_and_bytes)
{
    cy_value floats = empty_list(), bytes;
    OK(list_append(host.vm, &floats, value_float(1.5)));
    OK(list_append(host.vm, &floats, value_float(2.5)));
    ck_assert_int_eq(list_kind_of(list_of(floats)), LIST_FLOAT64);
    OK(list_append(host.vm, &floats, value_int(1)));
    ck_assert_int_eq(list_kind_of(list_of(floats)), LIST_ANY);
    ck_assert_str_eq(run_host_text(&host, floats), "[1.5, 2.5, 1]");
    OK(list_new_bytes(host.vm, CY_BYTES("abc"), &bytes));
    ck_assert_int_eq(list_kind_of(list_of(bytes)), LIST_BYTE);
    OK(list_set(host.vm, list_of(bytes), 1, value_int(255)));
    ck_assert_int_eq(list_kind_of(list_of(bytes)), LIST_BYTE);
    OK(list_set(host.vm, list_of(bytes), 1, value_int(256)));
    ck_assert_int_eq(list_kind_of(list_of(bytes)), LIST_INT64);
    ck_assert_str_eq(run_host_text(&host, bytes), "[97, 256, 99]");
    OK(list_extend(host.vm, list_of(bytes), floats));
    ck_assert_str_eq(run_host_text(&host, bytes), "[97, 256, 99, 1.5, 2.5, 1]");
    value_unref(host.vm, floats);
    value_unref(host.vm, bytes);
}
END_TEST

/* Appending to a str or list with one holder copies O(n) bytes in all, so allocations grow with the
 * logarithm. */
START_TEST(test_append_is_amortised)
{
    cy_value text = text_value("");
    const void *before = NULL;
    int moves = 0;
    for (int i = 0; i < 100000; i++) {
        OK(string_append(host.vm, &text, CY_BYTES("y")));
        moves += text.as.object != before;
        before = text.as.object;
    }
    ck_assert_uint_eq(string_bytes(text).count, 100000);
    ck_assert_int_lt(moves, 64);
    ck_assert_uint_eq(string_of(text)->data[100000], 0);
    value_unref(host.vm, text);
}
END_TEST

START_TEST(test_string_hash_follows_the_text)
{
    cy_value a = text_value("ab"), b = text_value("abc");
    uint64_t before = string_hash(host.vm, string_of(a));
    OK(string_append(host.vm, &a, CY_BYTES("c")));
    ck_assert(string_hash(host.vm, string_of(a)) == string_hash(host.vm, string_of(b)));
    ck_assert(string_hash(host.vm, string_of(a)) != before);
    value_unref(host.vm, a);
    value_unref(host.vm, b);
}
END_TEST

/* Insertion order stands through replacing, removing and growing past every size of the slots. */
/* Text of many contents is charged by their number, also where each is short. */
START_TEST(test_formatting_is_charged)
{
    cy_value list;
    OK(list_new(host.vm, 0, &list));
    for (int i = 0; i < 1000; i++) OK(list_append(host.vm, &list, value_int(1)));
    struct builder out;
    format_begin(host.vm, &out);
    int64_t budget = host.vm->budget;
    value_format(host.vm, list, false, &out);
    ck_assert_int_ge(budget - host.vm->budget, 4000);
    OK(format_end(host.vm, &out));
    builder_fini(&out);
    value_unref(host.vm, list);
}
END_TEST

/* Whoever takes the first, or the second, key and removes it must not walk over all that went before. */
START_TEST(test_map_removal_leaves_few_holes)
{
    for (size_t which = 0; which < 2; which++) {
        cy_value map = empty_map(), value, key;
        bool removed;
        for (int64_t i = 0; i < 3000; i++) OK(map_set(host.vm, &map, value_int(i), value_int(i)));
        const struct map_object *object = map_object_of(map);
        uint64_t bytes = host.vm->heap_bytes;
        for (int64_t i = (int64_t)which; i < 2990; i++) {
            ck_assert(map_entry_at(map, which, &key, &value));
            ck_assert_int_eq(key.as.i, i);
            OK(map_remove(host.vm, &map, key, &removed));
            uint32_t holes = object->entry_count - object->live_count;
            ck_assert(holes <= object->live_count || holes < 40);
            ck_assert(which == 1 || object->live_count == 0 ||
                      object->entries[object->first_live].key_tag == TAG_INT);
            ck_assert(map_get(host.vm, map, value_int(2999), &removed, &value).code == 0 && removed);
        }
        ck_assert_uint_lt(host.vm->heap_bytes, bytes / 4); /* and gives memory back */
        for (int64_t i = 0; i < 100; i++) OK(map_set(host.vm, &map, value_int(i), value_int(i)));
        ck_assert(map_get(host.vm, map, value_int(99), &removed, &value).code == 0 && removed);
        value_unref(host.vm, map);
    }
}
END_TEST

START_TEST(test_map_keeps_order)
{
    cy_value map = empty_map(), value, key;
    bool removed;
    for (int64_t i = 0; i < 3000; i++) OK(map_set(host.vm, &map, value_int(i), value_int(i * 2)));
    for (int64_t i = 0; i < 3000; i += 3) {
        OK(map_remove(host.vm, &map, value_int(i), &removed));
        ck_assert(removed);
    }
    OK(map_remove(host.vm, &map, value_int(0), &removed));
    ck_assert(!removed);
    OK(map_set(host.vm, &map, value_int(0), value_int(7)));
    ck_assert_uint_eq(map_object_count(map), 2001);
    int64_t last = -1;
    size_t cursor = 0, count = 0;
    while (map_next(map, &cursor, &key, &value)) {
        if (count++ == 2000) break;
        ck_assert_int_gt(key.as.i, last);
        ck_assert_int_ne(key.as.i % 3, 0);
        ck_assert_int_eq(value.as.i, key.as.i * 2);
        last = key.as.i;
    }
    ck_assert_int_eq(key.as.i, 0);
    ck_assert_int_eq(value.as.i, 7);
    ck_assert(map_entry_at(map, 1, &key, &value));
    ck_assert_int_eq(key.as.i, 2);
    ck_assert(!map_entry_at(map, 2001, &key, &value));
    value_unref(host.vm, map);
}
END_TEST

/* Adding and removing for ever neither grows the map nor fills its slots with removed marks. */
START_TEST(test_map_churn_stays_small)
{
    cy_value map = empty_map(), value;
    bool removed;
    for (int64_t i = 0; i < 20; i++) OK(map_set(host.vm, &map, value_int(i), value_nil()));
    for (int64_t i = 20; i < 50000; i++) {
        OK(map_set(host.vm, &map, value_int(i), value_nil()));
        OK(map_remove(host.vm, &map, value_int(i - 20), &removed));
        ck_assert(removed);
        ck_assert(!map_has(map, value_int(i - 20), &value));
    }
    ck_assert_uint_eq(map_object_count(map), 20);
    ck_assert_uint_le(map_object_of(map)->entry_capacity, 128);
    value_unref(host.vm, map);
}
END_TEST

START_TEST(test_map_keys)
{
    cy_value map = empty_map(), list_a = empty_list(), list_b = empty_list(), value;
    OK(list_append(host.vm, &list_a, value_int(1)));
    OK(list_append(host.vm, &list_b, value_float(1.0)));
    OK(map_set(host.vm, &map, value_int(1), value_int(10)));
    OK(map_set(host.vm, &map, value_float(1.0), value_int(11))); /* the same key */
    OK(map_set(host.vm, &map, value_bool(true), value_int(12)));
    OK(map_set(host.vm, &map, text_value("1"), value_int(13)));
    OK(map_set(host.vm, &map, list_a, value_int(14)));
    ck_assert_uint_eq(map_object_count(map), 4);
    ck_assert(map_has(map, list_b, &value));
    ck_assert_int_eq(value.as.i, 14);
    ck_assert(map_get_text(host.vm, map, CY_BYTES("1"), &value));
    ck_assert_int_eq(value.as.i, 13);
    ck_assert_str_eq(run_host_text(&host, map), "{1: 11, true: 12, \"1\": 13, [1]: 14}");
    ck_assert(cy_is(map_set(host.vm, &map, value_float(NAN), value_nil()), CY_ERR_KEY));
    ck_assert(cy_is(map_set(host.vm, &map, value_nil(), value_nil()), CY_ERR_KEY));
    cy_value cell;
    OK(ref_new(host.vm, value_int(1), &cell));
    cy_value holder = empty_list();
    OK(list_append(host.vm, &holder, cell));
    ck_assert(cy_is(map_set(host.vm, &map, holder, value_nil()), CY_ERR_KEY));
    ck_assert_uint_eq(map_object_count(map), 4);
    value_unref(host.vm, list_b);
    value_unref(host.vm, map);
}
END_TEST

/* A shared map is copied before it changes; the other holder sees nothing. */
START_TEST(test_map_copy_on_write)
{
    cy_value a = empty_map(), value;
    for (int64_t i = 0; i < 40; i++) OK(map_set(host.vm, &a, value_int(i), text_value("v")));
    cy_value b = value_ref(a);
    OK(map_set(host.vm, &b, value_int(3), value_int(33)));
    OK(map_set(host.vm, &b, value_int(99), value_nil()));
    ck_assert_uint_eq(host.vm->counters.copies, 1);
    ck_assert_uint_eq(map_object_count(a), 40);
    ck_assert(map_has(a, value_int(3), &value));
    ck_assert_int_eq(value.tag, TAG_STR);
    ck_assert(!value_equal(host.vm, a, b));
    value_unref(host.vm, a);
    value_unref(host.vm, b);
}
END_TEST

START_TEST(test_equality)
{
    cy_value a = empty_map(), b = empty_map();
    OK(map_set_text(host.vm, &a, CY_BYTES("x"), value_int(1)));
    OK(map_set_text(host.vm, &a, CY_BYTES("y"), value_float(2.0)));
    OK(map_set_text(host.vm, &b, CY_BYTES("y"), value_int(2)));
    OK(map_set_text(host.vm, &b, CY_BYTES("x"), value_int(1)));
    ck_assert(value_equal(host.vm, a, b));
    OK(map_set_text(host.vm, &b, CY_BYTES("x"), value_int(3)));
    ck_assert(!value_equal(host.vm, a, b));
    ck_assert(value_equal(host.vm, value_int(1), value_float(1.0)));
    ck_assert(!value_equal(host.vm, value_int(INT64_MAX), value_float(9223372036854775808.0)));
    ck_assert(!value_equal(host.vm, value_float(NAN), value_float(NAN)));
    ck_assert(value_equal(host.vm, value_float(0.0), value_float(-0.0)));
    ck_assert(!value_equal(host.vm, value_nil(), value_bool(false)));
    ck_assert(!value_equal(host.vm, value_int(1), value_bool(true)));
    value_unref(host.vm, a);
    value_unref(host.vm, b);
}
END_TEST

static cy_value nested_list(size_t depth)
{
    cy_value inner = empty_list();
    for (size_t i = 0; i < depth; i++) {
        cy_value outer = empty_list();
        OK(list_append(host.vm, &outer, inner));
        inner = outer;
    }
    return inner;
}

/* Freeing a million levels neither recurses nor happens all at once: what is left is freed at idle. */
START_TEST(test_deep_free_is_sliced)
{
    cy_value deep = nested_list(1000000);
    value_unref(host.vm, deep);
    ck_assert_uint_gt(host.vm->heap_objects, 900000);
    int slices = 0;
    while (vm_idle(host.vm)) slices++;
    ck_assert_int_gt(slices, 100);
    ck_assert_uint_lt(host.vm->heap_objects, 20);
}
END_TEST

/* A task that makes large lists and never waits has no idle turn: its allocations free what is dead. */
START_TEST(test_allocations_free_what_is_dead)
{
    uint64_t heap_bytes_max = 0;
    for (int round = 0; round < 50; round++) {
        cy_value list = empty_list();
        for (int i = 0; i < 50000; i++) OK(list_append(host.vm, &list, value_bool(true)));
        value_unref(host.vm, list);
        if (host.vm->heap_bytes > heap_bytes_max) heap_bytes_max = host.vm->heap_bytes;
    }
    /* one list, while the one before it dies */
    ck_assert_uint_lt(heap_bytes_max, 4 * 65536 * sizeof(cy_value));
    while (vm_idle(host.vm)) {}
}
END_TEST

START_TEST(test_deep_equality_and_text)
{
    cy_value a = nested_list(LIMIT_VALUE_DEPTH - 100), b = nested_list(LIMIT_VALUE_DEPTH - 100);
    ck_assert(value_equal(host.vm, a, b));
    const char *text = run_host_text(&host, a);
    ck_assert_uint_eq(strlen(text), 2 * (LIMIT_VALUE_DEPTH - 99));
    cy_value c = nested_list(200000), d = nested_list(200000);
    ck_assert(value_equal(host.vm, c, d)); /* however deep */
    ck_assert(value_equal(host.vm, c, c));
    text = run_host_text(&host, c);
    ck_assert_ptr_nonnull(strstr(text, "…"));
    cy_value map = empty_map();
    ck_assert(cy_is(map_set(host.vm, &map, c, value_nil()), CY_ERR_DEPTH));
    value_unref(host.vm, map);
    value_unref(host.vm, a);
    value_unref(host.vm, b);
    value_unref(host.vm, d);
}
END_TEST

START_TEST(test_text_of_values)
{
    cy_value map = empty_map(), list = empty_list(), range, cell;
    OK(range_new(host.vm, -1, 5, &range));
    OK(list_append(host.vm, &list, text_value("a\"\n\x01")));
    OK(list_append(host.vm, &list, range));
    OK(ref_new(host.vm, list, &cell));
    OK(map_set_text(host.vm, &map, CY_BYTES("k"), cell));
    ck_assert_str_eq(run_host_text(&host, map), "{\"k\": ref([\"a\\\"\\n\\x01\", -1..5])}");
    ck_assert_str_eq(run_host_text(&host, value_float(1.0)), "1.0");
    /* A cell that holds itself is shown once, and the VM's end frees it. */
    value_unref(host.vm, ref_of(cell)->value);
    ref_of(cell)->value = value_ref(cell);
    ck_assert_str_eq(run_host_text(&host, map), "{\"k\": ref(ref(…))}");
    value_unref(host.vm, map);
}
END_TEST

START_TEST(test_memory_is_refused_past_the_limit)
{
    run_host_close(&host);
    ck_assert(run_host_open(&host, NULL, 100000));
    cy_value value;
    uint8_t *data;
    ck_assert(cy_is(string_new_blank(host.vm, 200000, &value, &data), CY_ERR_NO_MEMORY));
    OK(string_new_blank(host.vm, 50000, &value, &data));
    memset(data, 'x', 50000);
    cy_value other;
    ck_assert(cy_is(string_new_blank(host.vm, 60000, &other, &data), CY_ERR_NO_MEMORY));
    value_unref(host.vm, value);
    OK(string_new_blank(host.vm, 60000, &other, &data));
    value_unref(host.vm, other);
    ck_assert(
        cy_is(string_new_blank(host.vm, (size_t)LIMIT_STRING_BYTES + 1, &other, &data), CY_ERR_TOO_LARGE));
}
END_TEST

static int opaque_freed;
static void opaque_on_free(struct vm *vm, void *payload)
{
    opaque_freed++;
    value_unref(vm, *(cy_value *)payload);
}
START_TEST(test_opaque_chain_frees_without_recursion)
{
    static const struct opaque_type type = {.name = "verdict", .free = opaque_on_free};
    static cy_value held[100000];
    opaque_freed = 0;
    cy_value value = value_nil();
    for (size_t i = 0; i < CY_COUNT_OF(held); i++) {
        held[i] = value;
        OK(opaque_new(host.vm, &type, &held[i], 0, &value));
    }
    ck_assert_str_eq(value_kind_text(host.vm, value), "verdict");
    ck_assert_ptr_eq(opaque_payload(value, &type), &held[CY_COUNT_OF(held) - 1]);
    value_unref(host.vm, value);
    while (vm_idle(host.vm)) {}
    ck_assert_int_eq(opaque_freed, (int)CY_COUNT_OF(held));
}
END_TEST

/* Both languages of a message take the same conversions. */
START_TEST(test_messages_agree)
{
    for (int message = 0; message < MESSAGE_COUNT; message++) {
        const char *texts[2] = {vm_message_text((enum vm_message)message, false),
                                vm_message_text((enum vm_message)message, true)};
        char conversions[2][64] = {"", ""};
        for (int k = 0; k < 2; k++)
            for (const char *at = strchr(texts[k], '%'); at; at = strchr(at, '%')) {
                size_t length = strspn(at + 1, ".*lhz0123456789") + 2;
                ck_assert_uint_lt(strlen(conversions[k]) + length, sizeof conversions[k]);
                strncat(conversions[k], at, length);
                at += length;
            }
        ck_assert_msg(strcmp(conversions[0], conversions[1]) == 0, "%s / %s", texts[0], texts[1]);
    }
}
END_TEST

/* Only rows of the table have another text, and a VM that speaks English never looks there. */
START_TEST(test_native_messages_are_found)
{
    ck_assert_str_eq(native_message_korean("math.sign: NaN has no sign"),
                     "math.sign: NaN에는 부호가 없습니다");
    ck_assert_ptr_null(native_message_korean("math.sign: NaN has no sig"));
    ck_assert_ptr_null(native_message_korean(""));
    ck_assert_ptr_null(native_message_korean("\xff"));
#define NATIVE_MESSAGE(english, korean) ck_assert_str_eq(native_message_korean(english), korean);
#include "vm/run/native_message.def"
#undef NATIVE_MESSAGE
    ck_assert_str_eq(vm_text(host.vm, "str or list"), "str or list");
}
END_TEST

Suite *unit_suite_run_value(void);
Suite *unit_suite_run_value(void)
{
    Suite *suite = suite_create("run_value");
    TCase *tests = tcase_create("value");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, value_open, value_close);
    tcase_add_test(tests, test_list_storage_is_typed);
    tcase_add_test(tests, test_list_floats_and_bytes);
    tcase_add_test(tests, test_append_is_amortised);
    tcase_add_test(tests, test_string_hash_follows_the_text);
    tcase_add_test(tests, test_map_keeps_order);
    tcase_add_test(tests, test_map_removal_leaves_few_holes);
    tcase_add_test(tests, test_formatting_is_charged);
    tcase_add_test(tests, test_map_churn_stays_small);
    tcase_add_test(tests, test_map_keys);
    tcase_add_test(tests, test_map_copy_on_write);
    tcase_add_test(tests, test_equality);
    tcase_add_test(tests, test_deep_free_is_sliced);
    tcase_add_test(tests, test_allocations_free_what_is_dead);
    tcase_add_test(tests, test_deep_equality_and_text);
    tcase_add_test(tests, test_text_of_values);
    tcase_add_test(tests, test_memory_is_refused_past_the_limit);
    tcase_add_test(tests, test_opaque_chain_frees_without_recursion);
    tcase_add_test(tests, test_messages_agree);
    tcase_add_test(tests, test_native_messages_are_found);
    suite_add_tcase(suite, tests);
    return suite;
}
#undef OK
