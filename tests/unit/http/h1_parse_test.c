/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h1_parse_test.c: proves that a head gives the same parts or the same fault however its
 * bytes are split, that each malformed head is refused for its own reason, and that each limit holds at its
 * value and one past it.
 */
#include "vm/base/builder.h"
#include "vm/base/mem.h"
#include "vm/http/h1_parse.h"

#include <check.h>

struct h1_parse_case {
    const char *input;
    uint8_t fault; /* H1_FAULT_NONE: accepted */
};

/* Feeds `step` bytes at a time, each time at another place, and puts the last place into *block (to be
 * freed). */
static enum h1_parse_result h1_parse_feed(struct h1_head *head, cy_bytes input, size_t step, uint8_t **block)
{
    enum h1_parse_result result = H1_PARSE_MORE;
    *block = NULL;
    for (size_t count = 0; result == H1_PARSE_MORE && count < input.count;) {
        count = cy_min_size(count + step, input.count);
        uint8_t *moved = mem_alloc(count);
        memcpy(moved, input.data, count);
        result = h1_parse_head(head, cy_bytes_of(moved, count));
        mem_free(*block); /* a view that was not moved along would now be found by the sanitizer */
        *block = moved;
    }
    return result;
}

static void h1_parse_check(const struct h1_parse_case *row, bool is_response)
{
    struct http_field fields[LIMIT_HTTP_FIELDS];
    cy_bytes input = cy_bytes_from_text(row->input);
    for (size_t step = 1; step <= input.count; step++) {
        struct h1_head head;
        uint8_t *block;
        if (is_response)
            h1_parse_begin_response(&head, fields);
        else
            h1_parse_begin_request(&head, fields);
        enum h1_parse_result result = h1_parse_feed(&head, input, step, &block);
        ck_assert_msg(result == (row->fault ? H1_PARSE_FAULT : H1_PARSE_DONE), "step %zu of: %s: %s", step,
                      row->input, h1_fault_text(head.fault));
        ck_assert_msg(head.fault == row->fault, "step %zu of: %s: %s instead of %s", step, row->input,
                      h1_fault_text(head.fault), h1_fault_text(row->fault));
        if (!row->fault) ck_assert_uint_eq(head.used_bytes, input.count);
        mem_free(block);
    }
}

START_TEST(test_requests_are_judged_alike_at_every_split)
{
    static const struct h1_parse_case rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", 0},
        {"\r\n\r\nGET / HTTP/1.1\r\n\r\n", 0},
        {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", 0},
        {"M-SEARCH http://a/ HTTP/1.1\r\nA:\r\nB: \t x \t\r\n\r\n", 0},
        {"GET /\xc3\xa4?\"x\" HTTP/1.1\r\nX: \xff\r\n\r\n", 0},
        {"GET / HTTP/1.1\n\r\n", H1_FAULT_LINE_END},
        {"GET / HTTP/1.1\r\nA: b\n\r\n", H1_FAULT_LINE_END},
        {"\n", H1_FAULT_LINE_END},
        {"GET / HTTP/1.1\r\nA: b\rc: d\r\n\r\n", H1_FAULT_FIELD_VALUE},
        {"GET / HTTP/1.1\r\r\n\r\n", H1_FAULT_VERSION},
        {"GET / HTTP/1.1\r\n A: b\r\n\r\n", H1_FAULT_FIELD_FOLDED},
        {"GET / HTTP/1.1\r\nA: b\r\n\tc\r\n\r\n", H1_FAULT_FIELD_FOLDED},
        {"GET / HTTP/1.1\r\nA : b\r\n\r\n", H1_FAULT_FIELD_SPACE},
        {"GET / HTTP/1.1\r\nA\t: b\r\n\r\n", H1_FAULT_FIELD_SPACE},
        {"GET / HTTP/1.1\r\n: b\r\n\r\n", H1_FAULT_FIELD_NAME},
        {"GET / HTTP/1.1\r\nA(: b\r\n\r\n", H1_FAULT_FIELD_NAME},
        {"GET / HTTP/1.1\r\nA\r\n\r\n", H1_FAULT_FIELD_NAME},
        {"GET / HTTP/1.1\r\nA: b\x01\r\n\r\n", H1_FAULT_FIELD_VALUE},
        {"GET / HTTP/1.1\r\nA: b\x7f\r\n\r\n", H1_FAULT_FIELD_VALUE},
        {" GET / HTTP/1.1\r\n\r\n", H1_FAULT_METHOD},
        {"G(T / HTTP/1.1\r\n\r\n", H1_FAULT_METHOD},
        {"GET\t/ HTTP/1.1\r\n\r\n", H1_FAULT_METHOD},
        {"GET\r\n\r\n", H1_FAULT_METHOD},
        {"GET  / HTTP/1.1\r\n\r\n", H1_FAULT_TARGET},
        {"GET /a\tb HTTP/1.1\r\n\r\n", H1_FAULT_TARGET},
        {"GET /a#b HTTP/1.1\r\n\r\n", H1_FAULT_TARGET},
        {"GET /a\x7f HTTP/1.1\r\n\r\n", H1_FAULT_TARGET},
        {"GET /\r\n\r\n", H1_FAULT_VERSION},
        {"GET / HTTP/1.1 \r\n\r\n", H1_FAULT_VERSION},
        {"GET / a HTTP/1.1\r\n\r\n", H1_FAULT_VERSION},
        {"GET / http/1.1\r\n\r\n", H1_FAULT_VERSION},
        {"GET / HTTP/1,1\r\n\r\n", H1_FAULT_VERSION},
        {"GET / HTTP/1.10\r\n\r\n", H1_FAULT_VERSION},
        {"GET / HTTP/2.0\r\n\r\n", H1_FAULT_VERSION_UNKNOWN},
        {"GET / HTTP/1.2\r\n\r\n", H1_FAULT_VERSION_UNKNOWN},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", H1_FAULT_VERSION_UNKNOWN},
        {"\x16\x03\x01", H1_FAULT_METHOD},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) h1_parse_check(&rows[i], false);
}
END_TEST

START_TEST(test_responses_are_judged_alike_at_every_split)
{
    static const struct h1_parse_case rows[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", 0},
        {"HTTP/1.0 404\r\nA: b\r\n\r\n", 0},
        {"HTTP/1.1 599 \r\n\r\n", 0},
        {"HTTP/1.1 200 \xc3\xa4 b\r\n\r\n", 0},
        {"HTTP/1.1 99 OK\r\n\r\n", H1_FAULT_STATUS_LINE},
        {"HTTP/1.1 099 OK\r\n\r\n", H1_FAULT_STATUS_LINE},
        {"HTTP/1.1 2000 OK\r\n\r\n", H1_FAULT_STATUS_LINE},
        {"HTTP/1.1 20x OK\r\n\r\n", H1_FAULT_STATUS_LINE},
        {"HTTP/1.1  200 OK\r\n\r\n", H1_FAULT_STATUS_LINE},
        {"HTTP/1.1 200 O\x01K\r\n\r\n", H1_FAULT_STATUS_LINE},
        {"HTTP/2.0 200 OK\r\n\r\n", H1_FAULT_STATUS_LINE},
        {"\r\nHTTP/1.1 200 OK\r\n\r\n", H1_FAULT_STATUS_LINE},
        {"HTTQ", H1_FAULT_STATUS_LINE},
        {"HTTP/1.1 200 OK\n\n", H1_FAULT_LINE_END},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) h1_parse_check(&rows[i], true);
}
END_TEST

START_TEST(test_parts_are_views_into_the_last_input)
{
    struct http_field fields[LIMIT_HTTP_FIELDS];
    struct h1_head head;
    uint8_t *block;
    cy_bytes input = CY_BYTES("POST /a?b HTTP/1.0\r\nHOST:  h:1 \r\nx-Y:\r\n\r\nBODY");
    h1_parse_begin_request(&head, fields);
    ck_assert_int_eq(h1_parse_feed(&head, input, 3, &block), H1_PARSE_DONE);
    ck_assert(cy_bytes_equal(head.method, CY_BYTES("POST")));
    ck_assert(cy_bytes_equal(head.target, CY_BYTES("/a?b")));
    ck_assert_uint_eq(head.minor_version, 0);
    ck_assert_uint_eq(head.field_count, 2);
    ck_assert(cy_bytes_equal(fields[0].name, CY_BYTES("HOST")));
    ck_assert(cy_bytes_equal(fields[0].value, CY_BYTES("h:1")));
    ck_assert(cy_bytes_equal(fields[1].name, CY_BYTES("x-Y")));
    ck_assert_uint_eq(fields[1].value.count, 0);
    ck_assert_uint_eq(head.used_bytes, input.count - 4);
    ck_assert(head.target.data > block && head.target.data < block + input.count);
    mem_free(block);
}
END_TEST

/* "GET /xxx HTTP/1.1" with a target, a field count and a head of given sizes. */
static uint8_t h1_parse_sized(size_t method_bytes, size_t target_bytes, unsigned field_count,
                              size_t head_bytes)
{
    struct builder text;
    builder_init(&text);
    for (size_t i = 0; i < method_bytes; i++) builder_u8(&text, 'M');
    builder_text(&text, " /");
    for (size_t i = 1; i < target_bytes; i++) builder_u8(&text, 'x');
    builder_text(&text, " HTTP/1.1\r\n");
    for (unsigned i = 0; i < field_count; i++) builder_text(&text, "a: b\r\n");
    if (head_bytes) {
        builder_text(&text, "p: ");
        while (text.count < head_bytes - 4) builder_u8(&text, 'x');
        builder_text(&text, "\r\n");
    }
    builder_text(&text, "\r\n");
    struct http_field fields[LIMIT_HTTP_FIELDS];
    struct h1_head head;
    h1_parse_begin_request(&head, fields);
    enum h1_parse_result result = h1_parse_head(&head, builder_view(&text));
    ck_assert_int_ne(result, H1_PARSE_MORE);
    builder_fini(&text);
    return head.fault;
}

START_TEST(test_limits_hold_at_their_value_and_one_past_it)
{
    ck_assert_uint_eq(h1_parse_sized(LIMIT_HTTP_METHOD_BYTES, 1, 0, 0), 0);
    ck_assert_uint_eq(h1_parse_sized(LIMIT_HTTP_METHOD_BYTES + 1, 1, 0, 0), H1_FAULT_METHOD_LONG);
    ck_assert_uint_eq(h1_parse_sized(3, LIMIT_HTTP_TARGET_BYTES, 0, 0), 0);
    ck_assert_uint_eq(h1_parse_sized(3, LIMIT_HTTP_TARGET_BYTES + 1, 0, 0), H1_FAULT_TARGET_LONG);
    ck_assert_uint_eq(h1_parse_sized(3, 1, LIMIT_HTTP_FIELDS, 0), 0);
    ck_assert_uint_eq(h1_parse_sized(3, 1, LIMIT_HTTP_FIELDS + 1, 0), H1_FAULT_FIELDS_MANY);
    ck_assert_uint_eq(h1_parse_sized(3, 1, 0, LIMIT_HTTP_HEAD_BYTES), 0);
    ck_assert_uint_eq(h1_parse_sized(3, 1, 0, LIMIT_HTTP_HEAD_BYTES + 1), H1_FAULT_HEAD_LONG);
}
END_TEST

/* A line whose end never comes is refused as soon as it cannot become short enough any more. */
START_TEST(test_endless_lines_are_refused_before_they_end)
{
    static uint8_t endless[LIMIT_HTTP_HEAD_BYTES];
    struct http_field fields[LIMIT_HTTP_FIELDS];
    struct h1_head head;
    memset(endless, 'x', sizeof endless);
    h1_parse_begin_request(&head, fields);
    ck_assert_int_eq(h1_parse_head(&head, cy_bytes_of(endless, LIMIT_HTTP_TARGET_BYTES)), H1_PARSE_MORE);
    ck_assert_int_eq(h1_parse_head(&head, cy_bytes_of(endless, LIMIT_HTTP_TARGET_BYTES + 100)),
                     H1_PARSE_FAULT);
    ck_assert_uint_eq(head.fault, H1_FAULT_TARGET_LONG);
    memcpy(endless, "GET / HTTP/1.1\r\na: ", 19);
    h1_parse_begin_request(&head, fields);
    ck_assert_int_eq(h1_parse_head(&head, cy_bytes_of(endless, sizeof endless - 1)), H1_PARSE_MORE);
    ck_assert_int_eq(h1_parse_head(&head, cy_bytes_of(endless, sizeof endless)), H1_PARSE_FAULT);
    ck_assert_uint_eq(head.fault, H1_FAULT_HEAD_LONG);
}
END_TEST

Suite *unit_suite_http_h1_parse(void);
Suite *unit_suite_http_h1_parse(void)
{
    Suite *suite = suite_create("http_h1_parse");
    TCase *cases = tcase_create("h1_parse");
    tcase_add_test(cases, test_requests_are_judged_alike_at_every_split);
    tcase_add_test(cases, test_responses_are_judged_alike_at_every_split);
    tcase_add_test(cases, test_parts_are_views_into_the_last_input);
    tcase_add_test(cases, test_limits_hold_at_their_value_and_one_past_it);
    tcase_add_test(cases, test_endless_lines_are_refused_before_they_end);
    suite_add_tcase(suite, cases);
    return suite;
}
