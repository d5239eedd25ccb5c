/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/address_test.c: proves that address texts are taken apart as documented, that everything else is
 * refused, and that formatting reads back equal.
 */
#include "vm/net/address.h"

#include <check.h>

static void address_expect(const char *text, const char *formatted)
{
    struct address address, again;
    ck_assert_msg(!cy_failed(address_from_text(cy_bytes_from_text(text), &address)), "%s", text);
    struct builder out;
    builder_init(&out);
    address_format(&address, true, &out);
    ck_assert_str_eq(builder_text_view(&out), formatted);
    ck_assert(!cy_failed(address_from_text(builder_view(&out), &again)));
    builder_fini(&out);
}

START_TEST(test_forms)
{
    address_expect("127.0.0.1:80", "127.0.0.1:80");
    address_expect("[::1]:65535", "[::1]:65535");
    address_expect("[2001:DB8::0:1]:0", "[2001:db8::1]:0");
    address_expect(":8080", "[::]:8080");
    address_expect("[::ffff:10.0.0.1]:5", "10.0.0.1:5"); /* an IPv4 peer of a dual-stack listener */
}
END_TEST

START_TEST(test_split)
{
    cy_bytes host;
    uint16_t port;
    ck_assert(!cy_failed(address_split(CY_BYTES("example.com:443"), &host, &port)));
    ck_assert(cy_bytes_equal(host, CY_BYTES("example.com")));
    ck_assert_uint_eq(port, 443);
    ck_assert(!cy_failed(address_split(CY_BYTES("[fe80::1]:1"), &host, &port)));
    ck_assert(cy_bytes_equal(host, CY_BYTES("fe80::1")));
    ck_assert(!cy_failed(address_split(CY_BYTES(":0"), &host, &port)));
    ck_assert_uint_eq(host.count, 0);
    static const char *const refused[] = {
        "",       "a",      "a:",      "a:65536",  "a:-1",   "a:+1",  "a: 1",         "1.2.3.4",
        "::1:80", "[::1]",  "[::1]80", "[::1",     "[a]:80", "[]:80", "[1.2.3.4]:80", "a:80:80",
        "a:8 0",  "a:0x10", "[::1]:",  "[::1]]:1", "fd@3"};
    for (size_t i = 0; i < CY_COUNT_OF(refused); i++)
        ck_assert_msg(cy_is(address_split(cy_bytes_from_text(refused[i]), &host, &port), CY_ERR_BAD_ADDRESS),
                      "%s", refused[i]);
}
END_TEST

START_TEST(test_ip)
{
    struct address address;
    static const char *const refused[] = {
        "",
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "01.2.3.4",
        "a",
        "[::1]",
        ":::",
        "1::2::3",
        "::1%lo",
        "1.2.3.4 ",
        "0x7f.0.0.1",
        "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"};
    for (size_t i = 0; i < CY_COUNT_OF(refused); i++)
        ck_assert_msg(cy_is(address_from_ip(cy_bytes_from_text(refused[i]), 1, &address), CY_ERR_BAD_ADDRESS),
                      "%s", refused[i]);
    ck_assert(cy_is(address_from_ip(CY_BYTES("1.2.3.4\0"), 1, &address), CY_ERR_BAD_ADDRESS));
}
END_TEST

START_TEST(test_equal_and_port)
{
    struct address a, b, none = {.bytes = 0};
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), 5, &a)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), 6, &b)));
    ck_assert(!address_equal(&a, &b));
    address_set_port(&b, 5);
    ck_assert(address_equal(&a, &b));
    ck_assert_uint_eq(address_port(&b), 5);
    ck_assert(!address_equal(&a, &none));
    ck_assert(address_equal(&none, &none));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("::1"), 5, &b)));
    ck_assert(!address_equal(&a, &b));
    ck_assert_uint_eq(address_port(&none), 0);
}
END_TEST

START_TEST(test_inherited)
{
    int descriptor = 0;
    ck_assert(address_is_inherited(CY_BYTES("fd@3"), &descriptor));
    ck_assert_int_eq(descriptor, 3);
    ck_assert(!address_is_inherited(CY_BYTES("fd@"), &descriptor));
    ck_assert(!address_is_inherited(CY_BYTES("fd@-1"), &descriptor));
    ck_assert(!address_is_inherited(CY_BYTES("fd@99999999999"), &descriptor));
    ck_assert(!address_is_inherited(CY_BYTES("fd3"), &descriptor));
}
END_TEST

Suite *unit_suite_net_address(void);
Suite *unit_suite_net_address(void)
{
    Suite *suite = suite_create("net/address");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, test_forms);
    tcase_add_test(tests, test_split);
    tcase_add_test(tests, test_ip);
    tcase_add_test(tests, test_equal_and_port);
    tcase_add_test(tests, test_inherited);
    suite_add_tcase(suite, tests);
    return suite;
}
