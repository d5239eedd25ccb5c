/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/verdict_test.c: proves that a verdict owns copies of all it was given, that what could
 * break a message apart or take over its framing is refused with the part to blame, and that upstream URLs
 * are judged.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/client_internal.h"
#include "vm/http/verdict.h"

#include <check.h>

static cy_err verdict_try(uint16_t status, const char *body, const char *name, const char *value,
                          cy_bytes *fault)
{
    struct http_verdict *verdict = NULL;
    const struct http_verdict_field field = {cy_bytes_from_text(name), cy_bytes_from_text(value)};
    cy_err err = http_verdict_respond(status, cy_bytes_from_text(body), &field, 1, &verdict, fault);
    http_verdict_unref(&verdict);
    return err;
}

START_TEST(test_respond_refuses_what_would_break_the_message)
{
    cy_bytes fault;
    ck_assert(!cy_failed(verdict_try(200, "x", "X-A", "b", &fault)));
    ck_assert(!cy_failed(verdict_try(599, "x", "Server", "", &fault)));
    ck_assert(cy_is(verdict_try(199, "x", "X-A", "b", &fault), CY_ERR_VALUE));
    ck_assert(cy_is(verdict_try(600, "x", "X-A", "b", &fault), CY_ERR_VALUE));
    ck_assert(cy_is(verdict_try(204, "x", "X-A", "b", &fault), CY_ERR_VALUE));
    ck_assert(!cy_failed(verdict_try(204, "", "X-A", "b", &fault)));
    ck_assert(cy_is(verdict_try(304, "x", "X-A", "b", &fault), CY_ERR_VALUE));
    ck_assert(cy_is(verdict_try(200, "x", "X A", "b", &fault), CY_ERR_VALUE));
    ck_assert(cy_bytes_equal(fault, CY_BYTES("X A")));
    ck_assert(cy_is(verdict_try(200, "x", "", "b", &fault), CY_ERR_VALUE));
    ck_assert(cy_is(verdict_try(200, "x", "X-A", "b\r\nX-B: c", &fault), CY_ERR_VALUE));
    ck_assert(cy_bytes_equal(fault, CY_BYTES("b\r\nX-B: c")));
    const char *forbidden[] = {
        "content-length", "Transfer-Encoding", "CONNECTION", "Keep-Alive", "Upgrade", "TE", "Trailer",
        "Content_Length", "transfer_encoding"};
    for (size_t i = 0; i < CY_COUNT_OF(forbidden); i++)
        ck_assert(cy_is(verdict_try(200, "x", forbidden[i], "1", &fault), CY_ERR_VALUE));
}
END_TEST

START_TEST(test_limits_hold_at_their_value_and_one_past_it)
{
    static struct http_verdict_field fields[LIMIT_HTTP_VERDICT_FIELDS + 1];
    struct http_verdict *verdict = NULL;
    for (size_t i = 0; i < CY_COUNT_OF(fields); i++)
        fields[i] = (struct http_verdict_field){CY_BYTES("a"), CY_BYTES("b")};
    ck_assert(!cy_failed(
        http_verdict_respond(200, CY_BYTES_NONE, fields, LIMIT_HTTP_VERDICT_FIELDS, &verdict, NULL)));
    http_verdict_unref(&verdict);
    ck_assert(
        cy_is(http_verdict_respond(200, CY_BYTES_NONE, fields, LIMIT_HTTP_VERDICT_FIELDS + 1, &verdict, NULL),
              CY_ERR_TOO_MANY));
    uint8_t *body = mem_alloc_zeroed(LIMIT_HTTP_RESPOND_BODY_BYTES + 1);
    ck_assert(!cy_failed(http_verdict_respond(200, cy_bytes_of(body, LIMIT_HTTP_RESPOND_BODY_BYTES), NULL, 0,
                                              &verdict, NULL)));
    http_verdict_unref(&verdict);
    cy_err err = http_verdict_respond(200, cy_bytes_of(body, LIMIT_HTTP_RESPOND_BODY_BYTES + 1), NULL, 0,
                                      &verdict, NULL);
    ck_assert(cy_is(err, CY_ERR_TOO_LARGE));
    mem_free(body);
}
END_TEST

START_TEST(test_a_verdict_owns_its_copies)
{
    struct http_verdict *verdict;
    char body[] = "body", name[] = "X-A", value[] = " v ";
    const struct http_verdict_field field = {cy_bytes_from_text(name), cy_bytes_from_text(value)};
    ck_assert(!cy_failed(http_verdict_respond(200, cy_bytes_from_text(body), &field, 1, &verdict, NULL)));
    memset(body, '?', sizeof body);
    memset(name, '?', sizeof name);
    memset(value, '?', sizeof value);
    ck_assert(cy_bytes_equal(verdict->body, CY_BYTES("body")));
    ck_assert(cy_bytes_equal(verdict->fields[0].name, CY_BYTES("X-A")));
    ck_assert(cy_bytes_equal(verdict->fields[0].value, CY_BYTES("v")));
    struct http_verdict *other = http_verdict_ref(verdict);
    http_verdict_unref(&verdict);
    ck_assert_ptr_null(verdict);
    ck_assert_uint_eq(other->refs, 1);
    http_verdict_unref(&other);
}
END_TEST

START_TEST(test_no_memory_at_any_allocation_is_an_error_and_leaks_nothing)
{
    const struct http_verdict_field field = {CY_BYTES("X-A"), CY_BYTES("b")};
    cy_err err = CY_ERR(NO_MEMORY);
    for (uint64_t n = 0; cy_failed(err); n++) {
        struct http_verdict *verdict = NULL;
        mem_fail_after(n);
        err = http_verdict_respond(200, CY_BYTES("body"), &field, 1, &verdict, NULL);
        mem_fail_never();
        ck_assert(cy_failed(err) == (verdict == NULL));
        if (cy_failed(err)) ck_assert(cy_is(err, CY_ERR_NO_MEMORY));
        http_verdict_unref(&verdict);
        ck_assert_uint_lt(n, 20);
    }
}
END_TEST

/* -- upstreams, which proxy verdicts hold ---------------------------------------------------------------- */

static struct loop *verdict_test_loop;
static struct log verdict_test_log;
static struct http_client *verdict_test_client;

static void verdict_open_client(void)
{
    log_init(&verdict_test_log);
    ck_assert(!cy_failed(loop_new("poll", &verdict_test_loop)));
    const struct http_client_options options = {.loop = verdict_test_loop, .log = &verdict_test_log};
    ck_assert(!cy_failed(http_client_new(&options, &verdict_test_client)));
}
static void verdict_close_client(void)
{
    http_client_free(&verdict_test_client);
    loop_free(&verdict_test_loop);
}

START_TEST(test_upstream_urls)
{
    static const struct {
        const char *url, *text; /* NULL: refused */
    } rows[] = {
        {"http://127.0.0.1:9000", "127.0.0.1:9000"},
        {"HTTP://Example.ORG", "example.org:80"},
        {"http://a/", "a:80"},
        {"http://a.:81/x/", "a:81"},
        {"http://[::1]:9/", "[::1]:9"},
        {"http://[::1]", "[::1]:80"},
        {"https://a", "a:443"},
        {"HTTPS://A:8443/x", "a:8443"},
        {"https://", NULL},
        {"https://u:p@a", NULL},
        {"", NULL},
        {"127.0.0.1:9000", NULL},
        {"ftp://a", NULL},
        {"http://", NULL},
        {"http:///x", NULL},
        {"http://a:0x", NULL},
        {"http://u:p@a", NULL},
        {"http://a/x?y", NULL},
        {"http://a?y", NULL},
        {"http://a/x#y", NULL},
        {"http://a/x y", NULL},
        {"http://[:::1]", NULL},
        {"http://a:70000", NULL},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct upstream *upstream = NULL;
        const char *fault = NULL;
        cy_err err = upstream_open(verdict_test_client, cy_bytes_from_text(rows[i].url), &upstream, &fault);
        ck_assert_msg(cy_failed(err) == (rows[i].text == NULL), "%s", rows[i].url);
        if (cy_failed(err)) {
            ck_assert(cy_is(err, CY_ERR_BAD_ADDRESS));
            ck_assert_ptr_nonnull(fault);
            continue;
        }
        ck_assert_msg(cy_bytes_equal(upstream_text(upstream), cy_bytes_from_text(rows[i].text)), "%s",
                      rows[i].url);
        upstream_unref(&upstream);
    }
}
END_TEST

/* Connections are shared by upstreams whose server must be the same, judged by the same policy; by no others. */
START_TEST(test_pools_are_parted_by_policy)
{
    struct tls_client_options options = {.unverified = true};
    struct tls_client *trust, *equal, *other;
    struct builder text;
    builder_init(&text);
    ck_assert(!cy_failed(tls_client_new(&options, &trust, &text)));
    ck_assert(!cy_failed(tls_client_new(&options, &equal, &text)));
    options.version_min = TLS_VERSION_1_3;
    ck_assert(!cy_failed(tls_client_new(&options, &other, &text)));
    const struct {
        const char *url;
        struct tls_client *trust;
        const char *name;
        bool same;
    } rows[] = {
        {"https://a:443/x", trust, "", true}, {"https://a/y", equal, "a", true},
        {"https://a", other, "", false},      {"https://a", trust, "b", false},
        {"https://a:444", trust, "", false},  {"http://a:443", NULL, "", false},
        {"https://a", NULL, "", false},
    };
    struct upstream *first, *upstream;
    ck_assert(!cy_failed(
        upstream_open_tls(verdict_test_client, CY_BYTES("https://a"), trust, CY_BYTES_NONE, &first, NULL)));
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        ck_assert(
            !cy_failed(upstream_open_tls(verdict_test_client, cy_bytes_from_text(rows[i].url), rows[i].trust,
                                         cy_bytes_from_text(rows[i].name), &upstream, NULL)));
        ck_assert_msg((upstream->pool == first->pool) == rows[i].same, "%s %s", rows[i].url, rows[i].name);
        upstream_unref(&upstream);
    }
    const char *fault = NULL;
    cy_err err =
        upstream_open_tls(verdict_test_client, CY_BYTES("http://a"), trust, CY_BYTES_NONE, &upstream, &fault);
    ck_assert(cy_is(err, CY_ERR_BAD_ADDRESS));
    ck_assert_ptr_nonnull(fault);
    upstream_unref(&first);
    tls_client_unref(&trust);
    tls_client_unref(&equal);
    tls_client_unref(&other);
}
END_TEST

START_TEST(test_proxy_verdicts_hold_their_upstream_and_check_names)
{
    struct upstream *upstream;
    struct http_verdict *verdict;
    const struct http_verdict_field set = {CY_BYTES("X-A"), CY_BYTES("b")},
                                    host = {CY_BYTES("Host"), CY_BYTES("b")};
    cy_bytes remove = CY_BYTES("cookie"), bad = CY_BYTES("a b"), fault;
    ck_assert(
        !cy_failed(upstream_open(verdict_test_client, CY_BYTES("http://127.0.0.1:1"), &upstream, NULL)));
    ck_assert(
        !cy_failed(http_verdict_proxy(upstream, &set, 1, &remove, 1, CY_BYTES("h:1"), &verdict, &fault)));
    upstream_unref(&upstream);
    ck_assert(cy_bytes_equal(upstream_text(verdict->upstream), CY_BYTES("127.0.0.1:1")));
    ck_assert(cy_bytes_equal(verdict->remove[0], CY_BYTES("cookie")));
    upstream = upstream_ref(verdict->upstream);
    http_verdict_unref(&verdict);
    ck_assert(cy_is(http_verdict_proxy(upstream, &host, 1, NULL, 0, CY_BYTES_NONE, &verdict, &fault),
                    CY_ERR_VALUE));
    ck_assert(cy_bytes_equal(fault, CY_BYTES("Host")));
    ck_assert(
        cy_is(http_verdict_proxy(upstream, NULL, 0, &bad, 1, CY_BYTES_NONE, &verdict, &fault), CY_ERR_VALUE));
    ck_assert(cy_is(http_verdict_proxy(upstream, NULL, 0, NULL, 0, CY_BYTES("a\r\nb"), &verdict, &fault),
                    CY_ERR_VALUE));
    upstream_unref(&upstream);
}
END_TEST

Suite *unit_suite_http_verdict(void);
Suite *unit_suite_http_verdict(void)
{
    Suite *suite = suite_create("http_verdict");
    TCase *cases = tcase_create("respond");
    tcase_add_test(cases, test_respond_refuses_what_would_break_the_message);
    tcase_add_test(cases, test_limits_hold_at_their_value_and_one_past_it);
    tcase_add_test(cases, test_a_verdict_owns_its_copies);
    tcase_add_test(cases, test_no_memory_at_any_allocation_is_an_error_and_leaks_nothing);
    suite_add_tcase(suite, cases);
    TCase *upstreams = tcase_create("upstream");
    tcase_add_checked_fixture(upstreams, verdict_open_client, verdict_close_client);
    tcase_add_test(upstreams, test_upstream_urls);
    tcase_add_test(upstreams, test_pools_are_parted_by_policy);
    tcase_add_test(upstreams, test_proxy_verdicts_hold_their_upstream_and_check_names);
    suite_add_tcase(suite, upstreams);
    return suite;
}
