/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/native_json_test.c: proves that reading and writing JSON leave nothing behind whatever allocation
 * fails, stay within the VM's memory, and stop at LIMIT_JSON_BYTES.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/json_value.h"

#include <check.h>

static struct run_host json_host;
static void json_test_open(void) { ck_assert(run_host_open(&json_host, NULL, 0)); }
static void json_test_close(void) { run_host_close(&json_host); }

static uint64_t json_test_objects(void)
{
    struct vm_counters counters;
    while (vm_idle(json_host.vm)) continue;
    vm_read_counters(json_host.vm, &counters);
    return counters.heap_objects;
}

/* Reads, writes what it read with sorted keys, and compares. */
static cy_err json_test_round(cy_bytes text, const char *wanted)
{
    struct json_read_options read_options = {0};
    struct json_write_options write_options = {.sort_keys = true};
    struct json_value_fault fault;
    struct builder out;
    cy_value value;
    CY_TRY(json_value_read(json_host.vm, text, &read_options, false, &fault, &value));
    builder_init(&out);
    cy_err err = json_value_write(json_host.vm, value, &write_options, &out, &fault);
    if (!cy_failed(err)) err = builder_error(&out);
    if (!cy_failed(err)) ck_assert_str_eq(builder_text_view(&out), wanted);
    builder_fini(&out);
    value_unref(json_host.vm, value);
    return err;
}

START_TEST(test_whatever_allocation_fails_nothing_is_left)
{
    static const char text[] =
        "[{\"b\": [1, 2.5, \"x\"], \"a\": {}, \"c\\u0041\": null}, {\"b\": [true], \"a\": 0}]";
    static const char wanted[] = "[{\"a\":{},\"b\":[1,2.5,\"x\"],\"cA\":null},{\"a\":0,\"b\":[true]}]";
    uint64_t before = json_test_objects(), n = 0;
    cy_err err = CY_ERR(NO_MEMORY);
    for (; cy_failed(err); n++) {
        mem_fail_after(n);
        err = json_test_round(cy_bytes_from_text(text), wanted);
        mem_fail_never();
        ck_assert(!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY));
        ck_assert_uint_eq(json_test_objects(), before);
        ck_assert_uint_lt(n, 1000);
    }
    ck_assert_uint_gt(n, 15);
}
END_TEST

START_TEST(test_faults_leave_nothing)
{
    static const char *const texts[] = {"[[1,{\"a\":[2,", "{\"a\":1,\"a\":{}}", "{\"a\" 1}", "[\"abc",
                                        "[{\"a\":[]},]"};
    uint64_t before = json_test_objects();
    for (size_t i = 0; i < CY_COUNT_OF(texts); i++) {
        ck_assert(cy_is(json_test_round(cy_bytes_from_text(texts[i]), ""), CY_ERR_BAD_FORMAT));
        ck_assert_uint_eq(json_test_objects(), before);
    }
}
END_TEST

/* JSON_BYTES: white space costs nothing but its bytes. */
START_TEST(test_bytes_at_and_past_the_limit)
{
    uint8_t *text = mem_alloc(LIMIT_JSON_BYTES + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, ' ', LIMIT_JSON_BYTES + 1);
    text[LIMIT_JSON_BYTES - 1] = '7';
    ck_assert(!cy_failed(json_test_round(cy_bytes_of(text, LIMIT_JSON_BYTES), "7")));
    ck_assert(cy_is(json_test_round(cy_bytes_of(text, LIMIT_JSON_BYTES + 1), "7"), CY_ERR_LIMIT));
    mem_free(text);
}
END_TEST

/* 2^60 paths to one str: the bound of the output ends it. */
START_TEST(test_shared_parts_end_at_the_bound)
{
    cy_value value;
    ck_assert(!cy_failed(string_new(json_host.vm, CY_BYTES("x"), &value)));
    for (int i = 0; i < 60; i++) {
        cy_value list;
        ck_assert(!cy_failed(list_new(json_host.vm, 2, &list)));
        ck_assert(!cy_failed(list_append(json_host.vm, &list, value_ref(value))));
        ck_assert(!cy_failed(list_append(json_host.vm, &list, value)));
        value = list;
    }
    struct json_write_options options = {.indent = 2};
    struct json_value_fault fault;
    struct builder out;
    builder_init(&out);
    out.count_max = 100000;
    ck_assert(!cy_failed(json_value_write(json_host.vm, value, &options, &out, &fault)));
    ck_assert(out.failed && out.past_max);
    builder_fini(&out);
    value_unref(json_host.vm, value);
}
END_TEST

Suite *unit_suite_native_native_json(void)
{
    Suite *suite = suite_create("native_json");
    TCase *tcase = tcase_create("json");
    tcase_add_checked_fixture(tcase, json_test_open, json_test_close);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, test_whatever_allocation_fails_nothing_is_left);
    tcase_add_test(tcase, test_faults_leave_nothing);
    tcase_add_test(tcase, test_bytes_at_and_past_the_limit);
    tcase_add_test(tcase, test_shared_parts_end_at_the_bound);
    suite_add_tcase(suite, tcase);
    return suite;
}
