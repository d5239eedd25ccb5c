/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h1_test.c: proves that framing is decided as the table in h1.c says, persistence as RFC
 * 9112 section 9 says, and that host and target are reduced to one form or refused.
 */
#include "vm/http/h1.h"

#include <check.h>
#include <stdio.h>

static struct http_field h1_test_table[LIMIT_HTTP_FIELDS];
static struct http_request h1_test_request;
static struct h1_request h1_test_connection;
static uint8_t h1_test_space[8192];

static uint8_t h1_test_judge(const char *text)
{
    struct h1_head head;
    cy_bytes input = cy_bytes_from_text(text);
    h1_parse_begin_request(&head, h1_test_request.fields);
    ck_assert_msg(h1_parse_head(&head, input) == H1_PARSE_DONE, "%s: %s", text, h1_fault_text(head.fault));
    ck_assert_uint_le(h1_space_needed(&head), sizeof h1_test_space);
    return h1_judge_request(&head, h1_test_space, &h1_test_request, &h1_test_connection);
}

struct h1_framing_row {
    const char *fields;
    uint8_t fault, kind;
    uint64_t length;
};
static const struct h1_framing_row h1_framing_rows[] = {
    {"", 0, HTTP_BODY_NONE, 0},
    {"Content-Length: 0\r\n", 0, HTTP_BODY_NONE, 0},
    {"Content-Length: 17\r\n", 0, HTTP_BODY_LENGTH, 17},
    {"Content-Length: 007\r\n", 0, HTTP_BODY_LENGTH, 7},
    {"Content-Length: 9223372036854775807\r\n", 0, HTTP_BODY_LENGTH, INT64_MAX},
    {"Content-Length: 9223372036854775808\r\n", H1_FAULT_LENGTH, 0, 0},
    {"Content-Length: 99999999999999999999999\r\n", H1_FAULT_LENGTH, 0, 0},
    {"Content-Length:\r\n", H1_FAULT_LENGTH, 0, 0},
    {"Content-Length: +1\r\n", H1_FAULT_LENGTH, 0, 0},
    {"Content-Length: -1\r\n", H1_FAULT_LENGTH, 0, 0},
    {"Content-Length: 1 2\r\n", H1_FAULT_LENGTH, 0, 0},
    {"Content-Length: 0x10\r\n", H1_FAULT_LENGTH, 0, 0},
    {"Content-Length: 5, 5\r\n", H1_FAULT_LENGTH, 0, 0},
    {"Content-Length: 5\r\nContent-Length: 5\r\n", H1_FAULT_LENGTH_TWICE, 0, 0},
    {"Content-Length: 5\r\ncontent-length: 6\r\n", H1_FAULT_LENGTH_TWICE, 0, 0},
    {"Transfer-Encoding: chunked\r\n", 0, HTTP_BODY_CHUNKED, 0},
    {"transfer-encoding: CHUNKED\r\n", 0, HTTP_BODY_CHUNKED, 0},
    {"Transfer-Encoding:\t chunked \r\n", 0, HTTP_BODY_CHUNKED, 0},
    {"Transfer-Encoding:\r\n", H1_FAULT_CODING, 0, 0},
    {"Transfer-Encoding: chunked,\r\n", H1_FAULT_CODING, 0, 0},
    {"Transfer-Encoding: , chunked\r\n", H1_FAULT_CODING, 0, 0},
    {"Transfer-Encoding: chunked, chunked\r\n", H1_FAULT_CODING, 0, 0},
    {"Transfer-Encoding: chunked, gzip\r\n", H1_FAULT_CODING, 0, 0},
    {"Transfer-Encoding: chunked;a=b\r\n", H1_FAULT_CODING, 0, 0},
    {"Transfer-Encoding: chun ked\r\n", H1_FAULT_CODING, 0, 0},
    {"Transfer-Encoding: \"chunked\"\r\n", H1_FAULT_CODING, 0, 0},
    {"Transfer-Encoding: gzip, chunked\r\n", H1_FAULT_CODING_UNKNOWN, 0, 0},
    {"Transfer-Encoding: identity\r\n", H1_FAULT_CODING_UNKNOWN, 0, 0},
    {"Transfer-Encoding: xchunked\r\n", H1_FAULT_CODING_UNKNOWN, 0, 0},
    {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", H1_FAULT_CODING_TWICE, 0, 0},
    {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", H1_FAULT_LENGTH_AND_CODING, 0, 0},
    {"Content-Length: 0\r\nTransfer-Encoding: identity\r\n", H1_FAULT_LENGTH_AND_CODING, 0, 0},
};

START_TEST(test_request_framing_follows_the_table)
{
    char text[512];
    for (size_t i = 0; i < CY_COUNT_OF(h1_framing_rows); i++) {
        const struct h1_framing_row *row = &h1_framing_rows[i];
        snprintf(text, sizeof text, "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n", row->fields);
        uint8_t fault = h1_test_judge(text);
        ck_assert_msg(fault == row->fault, "%s: %s", row->fields, h1_fault_text(fault));
        if (fault) continue;
        ck_assert_uint_eq(h1_test_request.body.kind, row->kind);
        ck_assert_uint_eq(h1_test_request.body.length, row->length);
    }
    ck_assert_uint_eq(h1_test_judge("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
                      H1_FAULT_CODING_OLD);
}
END_TEST

static uint8_t h1_test_response(const char *status, const char *fields, bool is_head,
                                struct h1_response *response)
{
    char text[512];
    struct h1_head head;
    snprintf(text, sizeof text, "HTTP/%s\r\n%s\r\n", status, fields);
    h1_parse_begin_response(&head, h1_test_table);
    ck_assert(h1_parse_head(&head, cy_bytes_from_text(text)) == H1_PARSE_DONE);
    uint8_t fault = h1_judge_response(&head, is_head, response);
    response->declared_length.data = NULL; /* `text` ends here; its count is what is looked at */
    return fault;
}

START_TEST(test_response_framing_is_decided_by_status_and_method_first)
{
    struct h1_response response;
    static const struct {
        const char *status, *fields;
        bool is_head;
        uint8_t kind;
        size_t declared;
    } rows[] = {
        {"1.1 200 OK", "", false, HTTP_BODY_UNTIL_CLOSE, 0},
        {"1.1 200 OK", "Content-Length: 5\r\n", false, HTTP_BODY_LENGTH, 0},
        {"1.1 200 OK", "Content-Length: 0\r\n", false, HTTP_BODY_NONE, 0},
        {"1.1 200 OK", "Transfer-Encoding: chunked\r\n", false, HTTP_BODY_CHUNKED, 0},
        {"1.1 200 OK", "Content-Length: 5\r\n", true, HTTP_BODY_NONE, 1},
        {"1.1 200 OK", "Transfer-Encoding: chunked\r\n", true, HTTP_BODY_NONE, 0},
        {"1.1 200 OK", "", true, HTTP_BODY_NONE, 0},
        {"1.1 204 No", "Content-Length: 5\r\n", false, HTTP_BODY_NONE, 0},
        {"1.1 304 No", "Content-Length: 5\r\n", false, HTTP_BODY_NONE, 1},
        {"1.1 100 Go", "", false, HTTP_BODY_NONE, 0},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        ck_assert_uint_eq(h1_test_response(rows[i].status, rows[i].fields, rows[i].is_head, &response), 0);
        ck_assert_msg(response.body.kind == rows[i].kind, "%s %s", rows[i].status, rows[i].fields);
        ck_assert_uint_eq(response.declared_length.count, rows[i].declared);
    }
    /* A bodyless status does not excuse unsound framing. */
    ck_assert_uint_eq(h1_test_response("1.1 204 No", "Content-Length: x\r\n", false, &response),
                      H1_FAULT_LENGTH);
    ck_assert_uint_eq(h1_test_response("1.0 200 OK", "Transfer-Encoding: chunked\r\n", false, &response),
                      H1_FAULT_CODING_OLD);
}
END_TEST

START_TEST(test_persistence_of_both_versions)
{
    static const struct {
        const char *text;
        bool keep;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, CLOSE\r\n\r\n", false},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nConnection: x, keep-alive\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        ck_assert_uint_eq(h1_test_judge(rows[i].text), 0);
        ck_assert_msg(h1_test_connection.keep_alive == rows[i].keep, "%s", rows[i].text);
    }
    ck_assert_uint_eq(h1_test_judge("GET / HTTP/1.1\r\nHost: a\r\nConnection: a b\r\n\r\n"),
                      H1_FAULT_CONNECTION);
    struct h1_response response;
    ck_assert_uint_eq(h1_test_response("1.1 200 OK", "Content-Length: 1\r\nKeep-Alive: max=3, timeout=7\r\n",
                                       false, &response),
                      0);
    ck_assert(response.keep_alive);
    ck_assert_uint_eq(response.keep_alive_s, 7);
    ck_assert_uint_eq(h1_test_response("1.0 200 OK", "Content-Length: 1\r\n", false, &response), 0);
    ck_assert(!response.keep_alive);
    ck_assert_uint_eq(h1_test_response("1.1 200 OK", "", false, &response), 0);
    ck_assert(!response.keep_alive); /* its end is the connection's end */
}
END_TEST

START_TEST(test_connection_names_fields_but_never_host)
{
    ck_assert_uint_eq(
        h1_test_judge(
            "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nX-B: 2\r\nConnection: close, x-a, Host\r\n\r\n"),
        0);
    ck_assert_uint_eq(h1_test_request.field_count, 4);
    ck_assert(!h1_test_request.fields[0].hop);
    ck_assert(h1_test_request.fields[1].hop);
    ck_assert(!h1_test_request.fields[2].hop);
    ck_assert_uint_eq(
        h1_test_judge("GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nConnection: keep-alive, upgrade, te\r\n\r\n"),
        0);
    ck_assert(!h1_test_request.fields[1].hop); /* the mark of the request before is gone */
}
END_TEST

START_TEST(test_expectations)
{
    ck_assert_uint_eq(
        h1_test_judge("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n"), 0);
    ck_assert(h1_test_connection.expects_continue);
    ck_assert_uint_eq(h1_test_judge("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"), 0);
    ck_assert(!h1_test_connection.expects_continue);
    ck_assert_uint_eq(h1_test_judge("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"),
                      0);
    ck_assert(!h1_test_connection.expects_continue);
    ck_assert_uint_eq(h1_test_judge("POST / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n"),
                      H1_FAULT_EXPECTATION);
}
END_TEST

START_TEST(test_targets_and_hosts_become_one_form)
{
    static const struct {
        const char *line, *host_fields;
        uint8_t fault;
        const char *target, *host, *path, *query;
        unsigned port;
    } rows[] = {
        {"GET /a?b=c HTTP/1.1", "Host: A.B:81\r\n", 0, "/a?b=c", "a.b", "/a", "b=c", 81},
        {"GET /%61/../b HTTP/1.1", "Host: a.b.\r\n", 0, "/%61/../b", "a.b", "/b", "", 0},
        {"GET http://X.Y HTTP/1.1", "Host: x.y\r\n", 0, "/", "x.y", "/", "", 0},
        {"GET http://x.y?q HTTP/1.1", "Host: x.y:80\r\n", 0, "/?q", "x.y", "/", "q", 0},
        {"GET HTTP://x.y:8/p?q HTTP/1.1", "Host: x.y:8\r\n", 0, "/p?q", "x.y", "/p", "q", 8},
        {"GET https://x.y:443/p HTTP/1.1", "Host: x.y\r\n", 0, "/p", "x.y", "/p", "", 443},
        {"GET http://x.y/p HTTP/1.0", "", 0, "/p", "x.y", "/p", "", 0},
        {"GET / HTTP/1.1", "Host:\r\n", 0, "/", "", "/", "", 0},
        {"GET / HTTP/1.0", "", 0, "/", "", "/", "", 0},
        {"OPTIONS * HTTP/1.1", "Host: a\r\n", 0, "*", "a", "*", "", 0},
        {"GET / HTTP/1.1", "", H1_FAULT_HOST_MISSING, 0, 0, 0, 0, 0},
        {"GET / HTTP/1.1", "Host: a\r\nHost: a\r\n", H1_FAULT_HOST_TWICE, 0, 0, 0, 0, 0},
        {"GET / HTTP/1.1", "Host: a, b\r\n", H1_FAULT_HOST, 0, 0, 0, 0, 0},
        {"GET / HTTP/1.1", "Host: a@b\r\n", H1_FAULT_HOST, 0, 0, 0, 0, 0},
        {"GET / HTTP/1.1", "Host: a:65536\r\n", H1_FAULT_HOST, 0, 0, 0, 0, 0},
        {"GET / HTTP/1.1", "Host: .\r\n", H1_FAULT_HOST, 0, 0, 0, 0, 0},
        {"GET http://a/ HTTP/1.1", "Host: b\r\n", H1_FAULT_HOST_DISAGREES, 0, 0, 0, 0, 0},
        {"GET http://a:81/ HTTP/1.1", "Host: a\r\n", H1_FAULT_HOST_DISAGREES, 0, 0, 0, 0, 0},
        {"GET http://u@a/ HTTP/1.1", "Host: a\r\n", H1_FAULT_HOST, 0, 0, 0, 0, 0},
        {"GET http:///a HTTP/1.1", "Host:\r\n", H1_FAULT_HOST, 0, 0, 0, 0, 0},
        {"GET ftp://a/ HTTP/1.1", "Host: a\r\n", H1_FAULT_TARGET, 0, 0, 0, 0, 0},
        {"GET a/b HTTP/1.1", "Host: a\r\n", H1_FAULT_TARGET, 0, 0, 0, 0, 0},
        {"GET * HTTP/1.1", "Host: a\r\n", H1_FAULT_TARGET, 0, 0, 0, 0, 0},
        {"CONNECT a:443 HTTP/1.1", "Host: a:443\r\n", H1_FAULT_METHOD_CONNECT, 0, 0, 0, 0, 0},
        {"GET /%00 HTTP/1.1", "Host: a\r\n", H1_FAULT_TARGET_ESCAPE, 0, 0, 0, 0, 0},
        {"GET /a\\b HTTP/1.1", "Host: a\r\n", H1_FAULT_TARGET_BACKSLASH, 0, 0, 0, 0, 0},
    };
    char text[512];
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        snprintf(text, sizeof text, "%s\r\n%s\r\n", rows[i].line, rows[i].host_fields);
        uint8_t fault = h1_test_judge(text);
        ck_assert_msg(fault == rows[i].fault, "%s: %s", text, h1_fault_text(fault));
        if (fault) continue;
        const struct http_request *r = &h1_test_request;
        ck_assert_msg(cy_bytes_equal(r->target, cy_bytes_from_text(rows[i].target)), "%s: %.*s", text,
                      CY_BYTES_ARG(r->target));
        ck_assert_msg(cy_bytes_equal(r->host, cy_bytes_from_text(rows[i].host)), "%s: %.*s", text,
                      CY_BYTES_ARG(r->host));
        ck_assert_msg(cy_bytes_equal(r->path, cy_bytes_from_text(rows[i].path)), "%s: %.*s", text,
                      CY_BYTES_ARG(r->path));
        ck_assert_msg(cy_bytes_equal(r->query, cy_bytes_from_text(rows[i].query)), "%s: %.*s", text,
                      CY_BYTES_ARG(r->query));
        ck_assert_uint_eq(r->port, rows[i].port);
    }
}
END_TEST

Suite *unit_suite_http_h1(void);
Suite *unit_suite_http_h1(void)
{
    Suite *suite = suite_create("http_h1");
    TCase *cases = tcase_create("h1");
    tcase_add_test(cases, test_request_framing_follows_the_table);
    tcase_add_test(cases, test_response_framing_is_decided_by_status_and_method_first);
    tcase_add_test(cases, test_persistence_of_both_versions);
    tcase_add_test(cases, test_connection_names_fields_but_never_host);
    tcase_add_test(cases, test_expectations);
    tcase_add_test(cases, test_targets_and_hosts_become_one_form);
    suite_add_tcase(suite, cases);
    return suite;
}
