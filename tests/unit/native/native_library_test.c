/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/native_library_test.c: proves that natives of the standard library, called as the VM calls them,
 * leave nothing behind: whatever allocation fails, and when they refuse their arguments.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/mem.h"
#include "vm/native/json_value.h"
#include "vm/native/native_bodies.h"

#include <check.h>

static struct run_host library_host;
static void library_test_open(void) { ck_assert(run_host_open(&library_host, NULL, 0)); }
static void library_test_close(void) { run_host_close(&library_host); }

static uint64_t library_test_objects(void)
{
    struct vm_counters counters;
    while (vm_idle(library_host.vm)) continue;
    vm_read_counters(library_host.vm, &counters);
    return counters.heap_objects;
}

/* A call: its arguments as a JSON list, and what it gives as JSON; NULL: it fails. */
struct library_test_row {
    native_body body;
    const char *arguments;
    const char *result;
};
#define TOKEN                                                                                              \
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9" \
    "leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define JWK                                                                                                  \
    "{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAz" \
    "Zr1Z9CAow\"}"
static const struct library_test_row library_test_rows[] = {
    {native_json_parse, "[\"{\\\"a\\\": [1, {\\\"b\\\": \\\"c\\\"}]}\"]", "{\"a\":[1,{\"b\":\"c\"}]}"},
    {native_json_parse, "[\"[1, {\\\"a\\\": \\\"b\\\", \\\"a\\\": 1}]\"]", NULL},
    {native_json_write, "[{\"b\": [1], \"a\": {}}, {\"sort_keys\": true}]",
     "\"{\\\"a\\\":{},\\\"b\\\":[1]}\""},
    {native_json_write, "[1, {\"indnt\": 1}]", NULL},
    {native_time_parts, "[0, \"s\"]",
     "{\"year\":1970,\"month\":1,\"day\":1,\"hour\":0,\"minute\":0,\"second\":0,\"nanosecond\":0,"
     "\"offset_minutes\":0,\"weekday\":4,\"day_of_year\":1}"},
    {native_time_format, "[0]", "\"1970-01-01T00:00:00Z\""},
    {native_time_from_parts, "[{\"year\": 1970}]", "0"},
    {native_url_parse, "[\"http://a:1/b?c#d\"]",
     "{\"scheme\":\"http\",\"userinfo\":null,\"host\":\"a\",\"port\":1,\"path\":\"/b\",\"query\":\"c\","
     "\"fragment\":\"d\"}"},
    {native_url_parse, "[\"http://a b\"]", NULL},
    {native_url_build, "[{\"host\": \"a\", \"path\": \"/b\"}]", "\"//a/b\""},
    {native_url_parse_query, "[\"a=1&b=2&a=3&a=%20\"]", "{\"a\":[\"1\",\"3\",\" \"],\"b\":[\"2\"]}"},
    {native_url_parse_query, "[\"a=1&a=%zz\"]", NULL},
    {native_url_build_query, "[{\"a\": [1, \"x y\"], \"b\": true}]", "\"a=1&a=x%20y&b=true\""},
    {native_url_build_query, "[{\"a\": [{}]}]", NULL},
    {native_url_normalise, "[\"HTTP://A/%7e\"]", "\"http://a/~\""},
    {native_url_resolve, "[\"http://a/b\", \"c\"]", "\"http://a/c\""},
    {native_regex_find, "[\"(?<x>a)(b)?\", \"ca\"]",
     "{\"start\":1,\"end\":2,\"text\":\"a\",\"groups\":[{\"start\":1,\"end\":2,\"text\":\"a\"},{\"start\":1,"
     "\"end\":2,"
     "\"text\":\"a\"},null],\"names\":{\"x\":{\"start\":1,\"end\":2,\"text\":\"a\"}}}"},
    {native_regex_find, "[\"(\", \"ca\"]", NULL},
    {native_regex_find_all, "[\"b\", \"a\"]", "[]"},
    {native_regex_split, "[\",\", \"a,b,c\"]", "[\"a\",\"b\",\"c\"]"},
    {native_regex_replace, "[\"(b)\", \"abc\", \"<$1>\"]", "\"a<b>c\""},
    {native_regex_replace, "[\"(b)\", \"abc\", \"$9\"]", NULL},
    {native_base64_encode, "[\"foob\"]", "\"Zm9vYg==\""},
    {native_base64_decode, "[\"Zm9vYg==\"]", "\"foob\""},
    {native_base64_decode, "[\"Zm9vYg=\"]", NULL},
    {native_hex_decode, "[\"6a\"]", "\"j\""},
    {native_hex_decode, "[\"6\"]", NULL},
    {native_hash_md5, "[\"\"]", "\"d41d8cd98f00b204e9800998ecf8427e\""},
    {native_jwt_verify, "[\"" TOKEN "\", " JWK ", {\"algorithms\": [\"HS256\"], \"now_s\": 1300819379}]",
     "{\"header\":{\"typ\":\"JWT\",\"alg\":\"HS256\"},\"claims\":{\"iss\":\"joe\",\"exp\":1300819380,"
     "\"http://example.com/is_root\":true}}"},
    {native_jwt_verify, "[\"" TOKEN "\", " JWK ", {\"algorithms\": [\"HS256\"], \"now_s\": 1300819380}]",
     NULL},
    {native_jwt_verify, "[\"" TOKEN "\", " JWK ", {\"algorithms\": [\"RS256\"]}]", NULL},
};
#undef TOKEN
#undef JWK

static cy_value library_test_read(const char *text)
{
    struct json_read_options options = {0};
    struct json_value_fault fault;
    cy_value value;
    cy_err err = json_value_read(library_host.vm, cy_bytes_from_text(text), &options, false, &fault, &value);
    ck_assert_msg(!cy_failed(err), "%s: %s", text, fault.message);
    return value;
}

static void library_test_compare(cy_value value, const char *wanted)
{
    struct json_write_options options = {0};
    struct json_value_fault fault;
    struct builder out;
    builder_init(&out);
    ck_assert(!cy_failed(json_value_write(library_host.vm, value, &options, &out, &fault)));
    ck_assert_str_eq(builder_text_view(&out), wanted);
    builder_fini(&out);
}

START_TEST(test_nothing_is_left)
{
    const struct library_test_row *row = &library_test_rows[_i];
    cy_value arguments = library_test_read(row->arguments), args[4];
    uint32_t count = (uint32_t)list_count(arguments);
    ck_assert_uint_le(count, CY_COUNT_OF(args));
    for (uint32_t i = 0; i < count; i++) args[i] = list_get(arguments, i);
    uint64_t before = library_test_objects(), n = 0, failures = 0;
    for (bool failing = true; failing; n++) {
        struct native_call call = {.vm = library_host.vm,
                                   .args = args,
                                   .arg_count = count,
                                   .result = value_nil(),
                                   .error = value_nil()};
        uint64_t allocations = mem_request_count();
        mem_fail_after(n);
        enum native_outcome outcome = row->body(&call);
        mem_fail_never();
        failing = mem_request_count() - allocations > n; /* the n-th was asked for, and failed */
        failures += failing;
        if (!failing) ck_assert_int_eq(outcome, row->result ? NATIVE_DONE : NATIVE_FAIL);
        if (!failing && row->result) library_test_compare(call.result, row->result);
        ck_assert(outcome != NATIVE_FAIL || call.error.tag != TAG_NIL);
        value_unref(library_host.vm, call.result);
        value_unref(library_host.vm, call.error);
        ck_assert_uint_eq(library_test_objects(), before);
        ck_assert_uint_lt(n, 2000);
    }
    ck_assert(failures > 0 || row->body == native_time_from_parts);
    value_unref(library_host.vm, arguments);
}
END_TEST

Suite *unit_suite_native_native_library(void)
{
    Suite *suite = suite_create("native_library");
    TCase *tcase = tcase_create("library");
    tcase_add_checked_fixture(tcase, library_test_open, library_test_close);
    tcase_add_loop_test(tcase, test_nothing_is_left, 0, CY_COUNT_OF(library_test_rows));
    suite_add_tcase(suite, tcase);
    return suite;
}
