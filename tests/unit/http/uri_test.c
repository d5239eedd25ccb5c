/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/uri_test.c: proves that equivalent paths and hosts get one form, that escapes which could
 * mean two things are kept or refused, and that normalising twice changes nothing.
 */
#include "vm/base/limits.h"
#include "vm/http/uri.h"

#include <check.h>

START_TEST(test_paths)
{
    static const struct {
        const char *path, *normal; /* NULL: refused */
    } rows[] = {
        {"/", "/"},
        {"/a/b.c", "/a/b.c"},
        {"//a//b/", "//a//b/"},
        {"/a/./b", "/a/b"},
        {"/a/../b", "/b"},
        {"/../../b", "/b"},
        {"/a/b/..", "/a/"},
        {"/a/b/.", "/a/b/"},
        {"/..", "/"},
        {"/a/..b/.c/...", "/a/..b/.c/..."},
        {"/%61%2e%2E/%7e", "/a../~"},
        {"/a/%2e%2e/admin", "/admin"},
        {"/a/%2E/b", "/a/b"},
        {"/a%2fb", "/a%2Fb"},
        {"/a/%2f%2e%2e", "/a/%2F.."},
        {"/%c3%a4\xc3\xa4", "/%C3%A4\xc3\xa4"},
        {"/%5c%25", "/%5C%25"},
        {"//../a", "/a"},
        {"/a//../b", "/a/b"},
        {"/%", NULL},
        {"/%4", NULL},
        {"/%4g", NULL},
        {"/a%00b", NULL},
        {"/a\\..\\b", NULL},
        {"a", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        uint8_t space[64], again_space[64];
        cy_bytes path = cy_bytes_from_text(rows[i].path), normal, again;
        uint8_t fault = uri_normalise_path(path, space, &normal);
        ck_assert_msg((fault == 0) == (rows[i].normal != NULL), "%s: %s", rows[i].path, h1_fault_text(fault));
        if (fault) continue;
        ck_assert_msg(cy_bytes_equal(normal, cy_bytes_from_text(rows[i].normal)), "%s: %.*s", rows[i].path,
                      CY_BYTES_ARG(normal));
        ck_assert_uint_eq(uri_normalise_path(normal, again_space, &again), 0);
        ck_assert(cy_bytes_equal(again, normal));
    }
}
END_TEST

START_TEST(test_hosts)
{
    static const struct {
        const char *authority, *host; /* NULL: refused */
        unsigned port;
    } rows[] = {
        {"a", "a", 0},
        {"A.b-C_d", "a.b-c_d", 0},
        {"a:80", "a", 80},
        {"a.:8080", "a", 8080},
        {"a:", "a", 0},
        {"", "", 0},
        {"127.0.0.1:1", "127.0.0.1", 1},
        {"[::1]", "[::1]", 0},
        {"[FE80::A]:65535", "[fe80::a]", 65535},
        {"a:0", NULL, 0},
        {".", NULL, 0},
        {":80", NULL, 0},
        {"a:65536", NULL, 0},
        {"a:8x", NULL, 0},
        {"a:000080", NULL, 0},
        {"a b", NULL, 0},
        {"a/b", NULL, 0},
        {"a,b", NULL, 0},
        {"a%2e", NULL, 0},
        {"u@a", NULL, 0},
        {"[::1", NULL, 0},
        {"[::1]x", NULL, 0},
        {"a..", NULL, 0}, /* without one dot it would still end with one */
        {"a..example", NULL, 0},
        {"[]", NULL, 0},
        {"[g::1]", NULL, 0},
        {"::1", NULL, 0},
        {"a:80:80", NULL, 0},
        {"\xc3\xa4", NULL, 0},
        {"[fe80::1%25eth0]", NULL, 0},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        uint8_t space[64];
        struct uri_host host;
        uint8_t fault = uri_normalise_host(cy_bytes_from_text(rows[i].authority), space, &host);
        ck_assert_msg((fault == 0) == (rows[i].host != NULL), "%s: %s", rows[i].authority,
                      h1_fault_text(fault));
        if (fault) continue;
        ck_assert_msg(cy_bytes_equal(host.host, cy_bytes_from_text(rows[i].host)), "%s", rows[i].authority);
        ck_assert_uint_eq(host.port, rows[i].port);
    }
}
END_TEST

START_TEST(test_a_host_name_may_be_as_long_as_the_limit)
{
    static uint8_t name[LIMIT_NAME_BYTES + 1], space[LIMIT_NAME_BYTES + 1];
    struct uri_host host;
    memset(name, 'A', sizeof name);
    ck_assert_uint_eq(uri_normalise_host(cy_bytes_of(name, LIMIT_NAME_BYTES), space, &host), 0);
    ck_assert_uint_eq(host.host.count, LIMIT_NAME_BYTES);
    ck_assert_uint_eq(uri_normalise_host(cy_bytes_of(name, LIMIT_NAME_BYTES + 1), space, &host),
                      H1_FAULT_HOST);
}
END_TEST

Suite *unit_suite_http_uri(void);
Suite *unit_suite_http_uri(void)
{
    Suite *suite = suite_create("http_uri");
    TCase *cases = tcase_create("uri");
    tcase_add_test(cases, test_paths);
    tcase_add_test(cases, test_hosts);
    tcase_add_test(cases, test_a_host_name_may_be_as_long_as_the_limit);
    suite_add_tcase(suite, cases);
    return suite;
}
