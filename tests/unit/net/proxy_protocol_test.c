/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/proxy_protocol_test.c: proves that the examples of the specification are read as it says, that each
 * prefix of a good header asks for more and never reads past its end, that each changed byte does no harm, that
 * what is malformed is refused, and that headers that are written read back equal; and what address ranges hold.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/address_range.h"
#include "vm/net/proxy_protocol.h"

#include <check.h>

#define SIGNATURE "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"

/* From a block of exactly its size, so that a sanitizer sees a step past the end. */
static enum proxy_protocol_step parse(cy_bytes input, struct proxy_protocol *header)
{
    uint8_t *copy = mem_alloc(input.count ? input.count : 1);
    ck_assert_ptr_nonnull(copy);
    if (input.count) memcpy(copy, input.data, input.count);
    enum proxy_protocol_step step = proxy_protocol_parse(cy_bytes_of(copy, input.count), header);
    mem_free(copy);
    return step;
}

static void expect_address(const struct address *address, const char *text)
{
    struct builder out;
    builder_init(&out);
    address_format(address, true, &out);
    ck_assert_str_eq(builder_text_view(&out), text);
    builder_fini(&out);
}

/* The header, with the request behind it; and cut at each byte. */
static void expect_good(cy_bytes header_bytes, const char *source, const char *destination)
{
    struct proxy_protocol header;
    struct builder both;
    builder_init(&both);
    builder_bytes(&both, header_bytes);
    builder_text(&both, "GET / HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(parse(builder_view(&both), &header), PROXY_PROTOCOL_DONE);
    ck_assert_uint_eq(header.used_bytes, header_bytes.count);
    ck_assert_int_eq(header.has_addresses, source != NULL);
    if (source) {
        expect_address(&header.source, source);
        expect_address(&header.destination, destination);
    }
    builder_fini(&both);
    ck_assert_int_eq(parse(header_bytes, &header), PROXY_PROTOCOL_DONE);
    for (size_t count = 0; count < header_bytes.count; count++)
        ck_assert_msg(parse(cy_bytes_slice(header_bytes, 0, count), &header) == PROXY_PROTOCOL_MORE,
                      "%zu bytes", count);
}

static void expect_bad(cy_bytes input)
{
    struct proxy_protocol header;
    ck_assert_msg(parse(input, &header) == PROXY_PROTOCOL_BAD, "%.*s", CY_BYTES_ARG(input));
    ck_assert_ptr_nonnull(header.fault);
}

START_TEST(test_version_1)
{
    /* the specification's own, section 2.1 */
    expect_good(CY_BYTES("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"), "192.168.0.1:56324",
                "192.168.0.11:443");
    expect_good(CY_BYTES("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"),
                "255.255.255.255:65535", "255.255.255.255:65535");
    expect_good(CY_BYTES("PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"), "[2001:db8::1]:1",
                "[2001:db8::2]:65535");
    expect_good(CY_BYTES("PROXY UNKNOWN\r\n"), NULL, NULL);
    expect_good(CY_BYTES("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
                NULL, NULL);
    expect_good(CY_BYTES("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
}
END_TEST

START_TEST(test_version_1_refused)
{
    static const char *const refused[] = {
        "GET / HTTP/1.1\r\n",
        "proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP5 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1 \r\n",
        "PROXY TCP4 ::1 ::1 1 1\r\n",
        "PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 65536 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 -1 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n\n\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\rx",
        "PROXY \r\n",
        "PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n",
        "QROXY",
        "P ",
        "\r\nx",
    };
    for (size_t i = 0; i < CY_COUNT_OF(refused); i++) expect_bad(cy_bytes_from_text(refused[i]));
    /* 107 bytes without an end are no line */
    char line[PROXY_PROTOCOL_V1_BYTES + 1];
    memset(line, 'x', sizeof line);
    memcpy(line, "PROXY UNKNOWN ", 14);
    struct proxy_protocol header;
    ck_assert_int_eq(parse(cy_bytes_of(line, PROXY_PROTOCOL_V1_BYTES - 1), &header), PROXY_PROTOCOL_MORE);
    expect_bad(cy_bytes_of(line, PROXY_PROTOCOL_V1_BYTES));
    line[PROXY_PROTOCOL_V1_BYTES - 1] = '\r';
    line[PROXY_PROTOCOL_V1_BYTES] = '\n';
    expect_bad(cy_bytes_of(line, sizeof line));
}
END_TEST

START_TEST(test_version_2)
{
    expect_good(cy_bytes_of(SIGNATURE "\x21\x11\x00\x0c\xc0\xa8\x00\x01\xc0\xa8\x00\x0b\xdc\x04\x01\xbb", 28),
                "192.168.0.1:56324", "192.168.0.11:443");
    expect_good(
        cy_bytes_of(SIGNATURE
                    "\x21\x21\x00\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0"
                    "\0\0\0\0\0\x02\x00\x01\xff\xff",
                    52),
        "[2001:db8::1]:1", "[2001:db8::2]:65535");
    /* TLVs behind the addresses: PP2_TYPE_AUTHORITY and one nobody knows */
    expect_good(cy_bytes_of(SIGNATURE
                            "\x21\x11\x00\x17\x0a\0\0\x01\x0a\0\0\x02\0\x01\0\x02\x02\0\x05host.\xee\0\0",
                            39),
                "10.0.0.1:1", "10.0.0.2:2");
    /* LOCAL: with nothing, and with what is to be ignored */
    expect_good(cy_bytes_of(SIGNATURE "\x20\x00\x00\x00", 16), NULL, NULL);
    expect_good(cy_bytes_of(SIGNATURE "\x20\x11\x00\x02zz", 18), NULL, NULL);
    /* unspecified, datagrams and UNIX: accepted, their addresses are not used */
    expect_good(cy_bytes_of(SIGNATURE "\x21\x00\x00\x03xyz", 19), NULL, NULL);
    expect_good(cy_bytes_of(SIGNATURE "\x21\x12\x00\x00", 16), NULL, NULL);
    expect_good(cy_bytes_of(SIGNATURE "\x21\x31\x00\x01u", 17), NULL, NULL);
}
END_TEST

START_TEST(test_version_2_refused)
{
    expect_bad(cy_bytes_of(SIGNATURE "\x11", 13)); /* version 1 in version 2's clothes */
    expect_bad(cy_bytes_of(SIGNATURE "\x31", 13));
    expect_bad(cy_bytes_of(SIGNATURE "\x22", 13));             /* a command that is not there */
    expect_bad(cy_bytes_of(SIGNATURE "\x21\x11\x00\x0b", 16)); /* too short for IPv4 */
    expect_bad(cy_bytes_of(SIGNATURE "\x21\x21\x00\x23", 16)); /* and for IPv6 */
    expect_bad(cy_bytes_of(SIGNATURE "\x21\x41\x00\x00", 16)); /* a family that is not there */
    expect_bad(cy_bytes_of(SIGNATURE "\x21\x13\x00\x00", 16)); /* a transport that is not there */
    expect_bad(cy_bytes_of("\x0d\x0a\x0d\x0a\x01", 5));
}
END_TEST

START_TEST(test_version_2_is_bounded)
{
    uint8_t bytes[LIMIT_PROXY_PROTOCOL_BYTES + 1] = SIGNATURE "\x21\x11";
    struct proxy_protocol header;
    size_t length = LIMIT_PROXY_PROTOCOL_BYTES - 16;
    bytes[14] = (uint8_t)(length >> 8);
    bytes[15] = (uint8_t)length;
    ck_assert_int_eq(parse(cy_bytes_of(bytes, LIMIT_PROXY_PROTOCOL_BYTES), &header), PROXY_PROTOCOL_DONE);
    ck_assert_uint_eq(header.used_bytes, LIMIT_PROXY_PROTOCOL_BYTES);
    length++;
    bytes[14] = (uint8_t)(length >> 8);
    bytes[15] = (uint8_t)length;
    expect_bad(cy_bytes_of(bytes, 16)); /* as soon as the length is there */
}
END_TEST

/* Each byte changed in each way: nothing is read past the end, and DONE has used what is there. */
START_TEST(test_changed_bytes)
{
    static const char v1[] = "PROXY TCP4 10.0.0.1 10.0.0.2 1000 2000\r\n";
    static const char v2[] =
        SIGNATURE "\x21\x11\x00\x0f\xc0\xa8\x00\x01\xc0\xa8\x00\x0b\xdc\x04\x01\xbb\x01\0\0";
    const cy_bytes good[] = {cy_bytes_of(v1, sizeof v1 - 1), cy_bytes_of(v2, sizeof v2 - 1)};
    for (size_t which = 0; which < 2; which++)
        for (size_t i = 0; i < good[which].count; i++)
            for (unsigned value = 0; value < 256; value++) {
                uint8_t bytes[64];
                struct proxy_protocol header;
                memcpy(bytes, good[which].data, good[which].count);
                bytes[i] = (uint8_t)value;
                if (parse(cy_bytes_of(bytes, good[which].count), &header) == PROXY_PROTOCOL_DONE)
                    ck_assert_uint_le(header.used_bytes, good[which].count);
            }
}
END_TEST

static void expect_written(uint8_t version, const char *source, const char *destination)
{
    struct address from = {.bytes = 0}, to = {.bytes = 0};
    struct proxy_protocol header;
    struct builder out;
    builder_init(&out);
    ck_assert(!cy_failed(address_from_text(cy_bytes_from_text(source), &from)));
    ck_assert(!cy_failed(address_from_text(cy_bytes_from_text(destination), &to)));
    proxy_protocol_write(version, &from, &to, &out);
    ck_assert_int_eq(parse(builder_view(&out), &header), PROXY_PROTOCOL_DONE);
    ck_assert_uint_eq(header.used_bytes, out.count);
    ck_assert(header.has_addresses);
    ck_assert_msg(address_equal(&header.source, &from) && address_equal(&header.destination, &to),
                  "%s, %s: read as others", source, destination);
    builder_fini(&out);
}

START_TEST(test_written_headers_read_back)
{
    struct address unknown = {.bytes = 0}, from;
    struct proxy_protocol header;
    for (uint8_t version = 1; version <= 2; version++) {
        expect_written(version, "192.168.0.1:56324", "192.168.0.11:443");
        expect_written(version, "[2001:db8::1]:1", "[2001:db8::2]:65535");
        /* An IPv4 client whom a balancer before us names beside an IPv6 address is not left out. */
        expect_written(version, "[::ffff:192.0.2.1]:1", "[2001:db8::2]:443");
        expect_written(version, "[2001:db8::1]:1", "[::ffff:192.0.2.1]:443");
        struct builder out;
        builder_init(&out);
        ck_assert(!cy_failed(address_from_text(CY_BYTES("10.0.0.1:5"), &from)));
        proxy_protocol_write(version, &from, &unknown, &out); /* a UNIX socket's, say */
        ck_assert_int_eq(parse(builder_view(&out), &header), PROXY_PROTOCOL_DONE);
        ck_assert(!header.has_addresses);
        builder_fini(&out);
    }
    struct builder out;
    builder_init(&out);
    ck_assert(
        !cy_failed(address_from_text(CY_BYTES("[::ffff:10.0.0.1]:5"), &from))); /* of a dual-stack listener */
    proxy_protocol_write(1, &from, &from, &out);
    ck_assert_str_eq(builder_text_view(&out), "PROXY TCP4 10.0.0.1 10.0.0.1 5 5\r\n");
    builder_fini(&out);
}
END_TEST

START_TEST(test_ranges)
{
    static const struct {
        const char *range, *address;
        bool has;
    } rows[] = {
        {"10.0.0.0/8", "10.255.0.1:1", true},
        {"10.0.0.0/8", "11.0.0.0:1", false},
        {"10.0.0.0/8", "[::ffff:10.1.2.3]:1", true},
        {"10.0.0.0/8", "[::1]:1", false},
        {"0.0.0.0/0", "1.2.3.4:1", true},
        {"0.0.0.0/0", "[2001:db8::1]:1", false},
        {"::/0", "[2001:db8::1]:1", true},
        {"192.0.2.7", "192.0.2.7:1", true},
        {"192.0.2.7", "192.0.2.6:1", false},
        {"2001:db8::/33", "[2001:db8:7fff::]:1", true},
        {"2001:db8::/33", "[2001:db8:8000::]:1", false},
        {"192.0.2.4/31", "192.0.2.5:1", true},
        {"192.0.2.4/31", "192.0.2.6:1", false},
    };
    static const char *const refused[] = {
        "",   "10.0.0.0/33", "10.0.0.1/8",   "::/129",      "10.0.0.0/",
        "/8", "a/8",         "10.0.0.0/8/8", "10.0.0.0/-1", "2001:db8::1/64"};
    struct address_range range;
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct address address;
        ck_assert(!cy_failed(address_range_from_text(cy_bytes_from_text(rows[i].range), &range)));
        ck_assert(!cy_failed(address_from_text(cy_bytes_from_text(rows[i].address), &address)));
        ck_assert_msg(address_range_has(&range, &address) == rows[i].has, "%s %s", rows[i].range,
                      rows[i].address);
    }
    for (size_t i = 0; i < CY_COUNT_OF(refused); i++)
        ck_assert_msg(cy_failed(address_range_from_text(cy_bytes_from_text(refused[i]), &range)), "%s",
                      refused[i]);
    struct address unix_peer = {.bytes = 2};
    unix_peer.storage.ss_family = AF_UNIX;
    ck_assert(!cy_failed(address_range_from_text(CY_BYTES("::/0"), &range)));
    ck_assert(!address_range_has(&range, &unix_peer));
}
END_TEST

Suite *unit_suite_net_proxy_protocol(void);
Suite *unit_suite_net_proxy_protocol(void)
{
    Suite *suite = suite_create("net/proxy_protocol");
    TCase *tests = tcase_create("headers");
    tcase_add_test(tests, test_version_1);
    tcase_add_test(tests, test_version_1_refused);
    tcase_add_test(tests, test_version_2);
    tcase_add_test(tests, test_version_2_refused);
    tcase_add_test(tests, test_version_2_is_bounded);
    tcase_add_test(tests, test_changed_bytes);
    tcase_add_test(tests, test_written_headers_read_back);
    tcase_add_test(tests, test_ranges);
    suite_add_tcase(suite, tests);
    return suite;
}
