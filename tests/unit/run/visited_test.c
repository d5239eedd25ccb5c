/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/visited_test.c: proves that ==, hashing and printing do bounded work on values with shared parts,
 * and that what they cannot do is an error, never an answer.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/run/map_object.h"
#include "vm/run/visited.h"

#include <check.h>

#define OK(expression) ck_assert_msg(!cy_failed(expression), "%s", #expression)

static struct run_host host;

/* x = [x, x], `levels` times, around one int: levels + 1 lists, 2^levels paths. */
static cy_value doubled(int levels, int64_t bottom)
{
    cy_value x;
    OK(list_new(host.vm, 0, &x));
    OK(list_append(host.vm, &x, value_int(bottom)));
    for (int i = 0; i < levels; i++) {
        cy_value next;
        OK(list_new(host.vm, 0, &next));
        OK(list_append(host.vm, &next, value_ref(x)));
        OK(list_append(host.vm, &next, x));
        x = next;
    }
    return x;
}

START_TEST(test_equality_walks_shared_parts_once)
{
    ck_assert(run_host_open(&host, NULL, 0));
    cy_value x = doubled(60, 1), y = doubled(60, 1), z = doubled(60, 2);
    bool equal = false;
    host.vm->budget = 0;
    OK(value_compare(host.vm, x, y, &equal));
    ck_assert(equal);
    ck_assert_int_lt(host.vm->budget, 0); /* charged */
    ck_assert_int_gt(host.vm->budget, -1000);
    OK(value_compare(host.vm, x, z, &equal));
    ck_assert(!equal);
    /* Different depths: 60 levels against 59 in one more list are different, whatever was taken for equal. */
    cy_value w = doubled(61, 1);
    OK(value_compare(host.vm, list_get(w, 0), list_get(list_get(w, 0), 0), &equal));
    ck_assert(!equal);
    uint64_t bytes = host.vm->heap_bytes;
    OK(value_compare(host.vm, x, y, &equal));
    ck_assert_uint_eq(host.vm->heap_bytes, bytes); /* the table was given back */
    value_unref(host.vm, x);
    value_unref(host.vm, y);
    value_unref(host.vm, z);
    value_unref(host.vm, w);
    run_host_close(&host);
}
END_TEST

START_TEST(test_hashing_walks_shared_parts_once)
{
    ck_assert(run_host_open(&host, NULL, 0));
    cy_value x = doubled(60, 1), y = doubled(60, 1), z = doubled(60, 2), map, value;
    uint64_t x_hash, y_hash, z_hash;
    OK(map_object_hash_key(host.vm, x, &x_hash));
    OK(map_object_hash_key(host.vm, y, &y_hash));
    OK(map_object_hash_key(host.vm, z, &z_hash));
    ck_assert_uint_eq(x_hash, y_hash);
    ck_assert_uint_ne(x_hash, z_hash);
    OK(map_new(host.vm, 0, &map));
    OK(map_set(host.vm, &map, x, value_int(7)));
    bool found;
    OK(map_get(host.vm, map, y, &found, &value));
    ck_assert(found && value.as.i == 7);
    value_unref(host.vm, y);
    value_unref(host.vm, z);
    value_unref(host.vm, map);
    run_host_close(&host);
}
END_TEST

/* Two keys whose hashes meet, [nil] and [110], end no ==: what was taken for equal inside one must not last. */
START_TEST(test_keys_that_only_hash_alike)
{
    ck_assert(run_host_open(&host, NULL, 0));
    cy_value sides[2];
    for (int side = 0; side < 2; side++) {
        /* [1000 times [], {n: 1, f: 1}, n] and [1000 times [], {f: 1, n: 1}, f] with n = [nil] and f = [number], which
         * hash alike: n is compared with f before it is found. */
        cy_value keys[2], map, number = value_float(0);
        uint64_t bits = 0x5555555555555555u ^ 0x6e, hashes[2];
        memcpy(&number.as.f, &bits, sizeof bits);
        OK(map_new(host.vm, 0, &map));
        for (int i = 0; i < 2; i++) {
            OK(list_new(host.vm, 0, &keys[i]));
            OK(list_append(host.vm, &keys[i], i == side ? value_nil() : number));
            OK(map_set(host.vm, &map, value_ref(keys[i]), value_int(1)));
            OK(map_object_hash_key(host.vm, keys[i], &hashes[i]));
        }
        ck_assert(hashes[0] == hashes[1]);
        cy_value key = keys[0];
        value_unref(host.vm, keys[1]);
        OK(list_new(host.vm, 0, &sides[side]));
        for (int i = 0; i < 1000; i++) {
            cy_value empty;
            OK(list_new(host.vm, 0, &empty));
            OK(list_append(host.vm, &empty, value_int(i)));
            OK(list_append(host.vm, &sides[side], empty));
        }
        OK(list_append(host.vm, &sides[side], map));
        OK(list_append(host.vm, &sides[side], key));
    }
    bool equal;
    OK(value_compare(host.vm, sides[0], sides[1], &equal));
    ck_assert(!equal);
    value_unref(host.vm, sides[0]);
    value_unref(host.vm, sides[1]);
    run_host_close(&host);
}
END_TEST

/* m = {m: 1}: comparing goes into the keys, on the C stack; past LIMIT_KEY_NESTING it says so. */
START_TEST(test_maps_as_keys_of_maps)
{
    for (int past = 0; past < 2; past++) {
        ck_assert(run_host_open(&host, NULL, 0));
        cy_value sides[2];
        for (int side = 0; side < 2; side++) {
            OK(map_new(host.vm, 0, &sides[side]));
            OK(map_set_text(host.vm, &sides[side], CY_BYTES("x"), value_int(1)));
            for (int i = 0; i < LIMIT_KEY_NESTING + past; i++) {
                cy_value outer;
                OK(map_new(host.vm, 0, &outer));
                OK(map_set(host.vm, &outer, sides[side], value_int(1)));
                sides[side] = outer;
            }
        }
        bool equal, found;
        cy_value value;
        cy_err err = value_compare(host.vm, sides[0], sides[1], &equal);
        ck_assert(past ? cy_is(err, CY_ERR_DEPTH) : !cy_failed(err) && equal);
        ck_assert_ptr_null(host.vm->compare);
        /* A look-up that cannot compare says so too: it is no "not there". */
        cy_value outer;
        OK(map_new(host.vm, 0, &outer));
        OK(map_set(host.vm, &outer, sides[0], value_int(1)));
        err = map_get(host.vm, outer, sides[1], &found, &value);
        ck_assert(past ? cy_is(err, CY_ERR_DEPTH) : !cy_failed(err) && found);
        value_unref(host.vm, outer);
        value_unref(host.vm, sides[1]);
        run_host_close(&host);
    }
}
END_TEST

/* Hashing a key without memory, or one that is too deep, is an error of the look-up. */
START_TEST(test_a_failed_look_up_is_not_absent)
{
    ck_assert(run_host_open(&host, NULL, 0));
    cy_value map, key = value_int(1), value;
    OK(map_new(host.vm, 0, &map));
    for (int i = 0; i < LIMIT_VALUE_DEPTH + 1; i++) {
        cy_value outer;
        OK(list_new(host.vm, 0, &outer));
        OK(list_append(host.vm, &outer, key));
        key = outer;
    }
    bool found = true;
    ck_assert(cy_is(map_get(host.vm, map, key, &found, &value), CY_ERR_DEPTH));
    ck_assert(!found);
    cy_value shallow;
    OK(list_new(host.vm, 0, &shallow));
    mem_fail_after(0);
    cy_err err = map_get(host.vm, map, shallow, &found, &value);
    mem_fail_never();
    ck_assert(cy_is(err, CY_ERR_NO_MEMORY));
    ck_assert(cy_is(map_get(host.vm, map, value_nil(), &found, &value), CY_ERR_KEY));
    value_unref(host.vm, shallow);
    value_unref(host.vm, map);
    value_unref(host.vm, key);
    run_host_close(&host);
}
END_TEST

/* The last step of a walk, and one past it; == then says so. */
START_TEST(test_steps_are_bounded)
{
    ck_assert(run_host_open(&host, NULL, 0));
    uint64_t steps = LIMIT_WALK_STEPS - 1;
    OK(visited_step(host.vm, &steps));
    ck_assert(cy_is(visited_step(host.vm, &steps), CY_ERR_LIMIT));
    error_raise_walk(host.vm, CY_ERR(LIMIT));
    ck_assert_ptr_nonnull(strstr((const char *)error_message(host.vm, host.vm->raised).data, "WALK_STEPS"));
    run_host_close(&host);
}
END_TEST

/* A key at the limit, counted by its contents, and one past it; the message names the row. */
START_TEST(test_a_large_key_is_refused)
{
    for (int past = 0; past < 2; past++) {
        ck_assert(run_host_open(&host, NULL, 0));
        cy_value key, map;
        OK(map_new(host.vm, 0, &map));
        OK(list_new(host.vm, 0, &key));
        for (int i = 0; i < LIMIT_KEY_STEPS + past; i++) OK(list_append(host.vm, &key, value_int(i & 1)));
        cy_err err = map_set(host.vm, &map, value_ref(key), value_int(1));
        ck_assert(past ? cy_is(err, CY_ERR_LIMIT) : !cy_failed(err));
        if (past) {
            error_raise_walk(host.vm, err);
            const char *message = (const char *)error_message(host.vm, host.vm->raised).data;
            ck_assert_msg(strstr(message, "KEY_STEPS: 262144"), "%s", message);
        }
        value_unref(host.vm, map);
        value_unref(host.vm, key);
        run_host_close(&host);
    }
}
END_TEST

/* Printing writes shared parts each time: the text is bounded, by the VM's memory and by LIMIT_FORMAT_BYTES. */
START_TEST(test_texts_are_bounded)
{
    ck_assert(run_host_open(&host, NULL, 1 << 20));
    cy_value x = doubled(60, 1);
    struct builder text;
    format_begin(host.vm, &text);
    value_format(host.vm, x, false, &text);
    ck_assert_uint_le(text.count, 1 << 20);
    ck_assert(cy_is(format_end(host.vm, &text), CY_ERR_NO_MEMORY));
    builder_fini(&text);
    value_unref(host.vm, x);
    run_host_close(&host);
    /* At LIMIT_FORMAT_BYTES and one past it. */
    for (size_t past = 0; past < 2; past++) {
        ck_assert(run_host_open(&host, NULL, 0));
        uint8_t *data;
        OK(string_new_blank(host.vm, LIMIT_FORMAT_BYTES + past, &x, &data));
        memset(data, 'x', LIMIT_FORMAT_BYTES + past);
        format_begin(host.vm, &text);
        value_format(host.vm, x, false, &text);
        host.vm->budget = 0;
        cy_err err = format_end(host.vm, &text);
        ck_assert(past ? cy_is(err, CY_ERR_TOO_LARGE) : !cy_failed(err));
        if (!past) ck_assert_int_eq(host.vm->budget, -(LIMIT_FORMAT_BYTES / 100));
        builder_fini(&text);
        value_unref(host.vm, x);
        run_host_close(&host);
    }
}
END_TEST

Suite *unit_suite_run_visited(void);
Suite *unit_suite_run_visited(void)
{
    Suite *suite = suite_create("run_visited");
    TCase *tests = tcase_create("visited");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_equality_walks_shared_parts_once);
    tcase_add_test(tests, test_hashing_walks_shared_parts_once);
    tcase_add_test(tests, test_keys_that_only_hash_alike);
    tcase_add_test(tests, test_maps_as_keys_of_maps);
    tcase_add_test(tests, test_a_failed_look_up_is_not_absent);
    tcase_add_test(tests, test_steps_are_bounded);
    tcase_add_test(tests, test_a_large_key_is_refused);
    tcase_add_test(tests, test_texts_are_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
