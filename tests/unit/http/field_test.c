/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/field_test.c: proves that every row of field.def is found in any case and nothing else is,
 * and that tokens, values and lists are read as RFC 9110 section 5 says.
 */
#include "vm/http/field.h"
#include "vm/http/message.h"

#include <check.h>

START_TEST(test_every_row_is_found_in_any_case)
{
    for (uint8_t id = 1; id < HTTP_FIELD_COUNT; id++) {
        cy_bytes name = field_name(id);
        uint8_t upper[64], lower[64];
        ck_assert_uint_lt(name.count, sizeof upper);
        for (size_t i = 0; i < name.count; i++) {
            bool letter = (name.data[i] | 0x20) >= 'a' && (name.data[i] | 0x20) <= 'z';
            upper[i] = letter ? name.data[i] & 0xdf : name.data[i];
            lower[i] = letter ? name.data[i] | 0x20 : name.data[i];
        }
        ck_assert_uint_eq(field_identify(name), id);
        ck_assert_uint_eq(field_identify(cy_bytes_of(upper, name.count)), id);
        ck_assert_uint_eq(field_identify(cy_bytes_of(lower, name.count)), id);
        upper[name.count / 2] = '!';
        ck_assert_uint_eq(field_identify(cy_bytes_of(upper, name.count)), HTTP_FIELD_NONE);
        ck_assert_uint_eq(field_identify(cy_bytes_slice(name, 0, name.count - 1)), HTTP_FIELD_NONE);
    }
    ck_assert_uint_eq(field_identify(CY_BYTES_NONE), HTTP_FIELD_NONE);
    ck_assert_uint_eq(field_identify(CY_BYTES("Hos\x14")), HTTP_FIELD_NONE);
}
END_TEST

START_TEST(test_forwarding_names_are_seen_through_their_spellings)
{
    const char *yes[] = {"Forwarded",        "x-forwarded-for", "X_Forwarded_For",
                         "X-FORWARDED_PORT", "x-real-ip",       "X_REAL_IP"};
    const char *no[] = {"x-forwarded", "X-Request-Id", "Host", "x-real-ipp", "Xforwarded-for", ""};
    for (size_t i = 0; i < CY_COUNT_OF(yes); i++) {
        cy_bytes name = cy_bytes_from_text(yes[i]);
        ck_assert_msg(field_is_forwarding(name, field_identify(name)), "%s", yes[i]);
    }
    for (size_t i = 0; i < CY_COUNT_OF(no); i++) {
        cy_bytes name = cy_bytes_from_text(no[i]);
        ck_assert_msg(!field_is_forwarding(name, field_identify(name)), "%s", no[i]);
    }
}
END_TEST

/* Every row of the kind, with each of its '-' spelled '_', as a server of CGI's kind cannot tell them apart. */
START_TEST(test_names_for_one_hop_are_seen_through_their_spellings)
{
    const char *yes[] = {"Content_Length",
                         "content_length",
                         "Transfer_Encoding",
                         "TRANSFER_ENCODING",
                         "Proxy_Connection",
                         "Keep_Alive",
                         "HTTP2_Settings",
                         "Content-Length",
                         "Transfer-Encoding",
                         "Connection",
                         "TE",
                         "Upgrade",
                         "Keep-Alive",
                         "Proxy-Connection",
                         "HTTP2-Settings"};
    const char *no[] = {"Content_Type",
                        "Content__Length",
                        "Content_Lengths",
                        "_",
                        "",
                        "Content.Length",
                        "Set_Cookie",
                        "Transfer_Encodinh",
                        "Host",
                        "a-name-that-is-longer-than-any-that-this-table-has_here"};
    for (size_t i = 0; i < CY_COUNT_OF(yes); i++) {
        cy_bytes name = cy_bytes_from_text(yes[i]);
        ck_assert_msg(field_is_for_one_hop(name, field_identify(name)), "%s", yes[i]);
    }
    for (size_t i = 0; i < CY_COUNT_OF(no); i++) {
        cy_bytes name = cy_bytes_from_text(no[i]);
        ck_assert_msg(!field_is_for_one_hop(name, field_identify(name)), "%s", no[i]);
    }
    for (uint8_t id = 1; id < HTTP_FIELD_COUNT; id++) {
        uint8_t folded[64];
        cy_bytes name = field_name(id);
        for (size_t i = 0; i < name.count; i++) folded[i] = name.data[i] == '-' ? '_' : name.data[i];
        bool is_kind = field_flags(id) & (HTTP_FIELD_FLAG_HOP | HTTP_FIELD_FLAG_FRAMING);
        cy_bytes other = cy_bytes_of(folded, name.count);
        ck_assert_int_eq(field_is_for_one_hop(other, field_identify(other)), is_kind);
    }
}
END_TEST

START_TEST(test_every_byte_is_a_token_or_value_byte_as_the_standard_says)
{
    const char *token_marks = "!#$%&'*+-.^_`|~";
    for (unsigned byte = 0; byte < 256; byte++) {
        bool token = (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
                     (byte && byte < 0x80 && strchr(token_marks, (int)byte));
        bool value = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
        uint8_t text[40];
        memset(text, 'a', sizeof text);
        ck_assert_int_eq(field_is_token_byte((uint8_t)byte), token);
        /* in the part that is looked at 16 bytes at a time, and in the rest */
        for (size_t at = 0; at < sizeof text; at += 13) {
            text[at] = (uint8_t)byte;
            ck_assert_int_eq(field_is_value(cy_bytes_of(text, sizeof text)), value);
            ck_assert_int_eq(field_is_token(cy_bytes_of(text, sizeof text)), token);
            text[at] = 'a';
        }
    }
    ck_assert(!field_is_token(CY_BYTES_NONE));
    ck_assert(field_is_value(CY_BYTES_NONE));
}
END_TEST

START_TEST(test_lists_give_empty_elements_too)
{
    cy_bytes list = CY_BYTES(" a ,,b\t, "), element;
    const char *wanted[] = {"a", "", "b", ""};
    for (size_t i = 0; i < CY_COUNT_OF(wanted); i++) {
        ck_assert(field_next_element(&list, &element));
        ck_assert(cy_bytes_equal(element, cy_bytes_from_text(wanted[i])));
    }
    ck_assert(!field_next_element(&list, &element));
}
END_TEST

START_TEST(test_find_field_takes_the_first_of_a_name)
{
    const struct http_field fields[] = {
        {CY_BYTES("X-A"), CY_BYTES("1"), 0, false},
        {CY_BYTES("Host"), CY_BYTES("2"), HTTP_FIELD_HOST, false},
        {CY_BYTES("x-a"), CY_BYTES("3"), 0, false},
    };
    ck_assert(cy_bytes_equal(http_find_field(fields, 3, CY_BYTES("x-A"))->value, CY_BYTES("1")));
    ck_assert(cy_bytes_equal(http_find_field(fields, 3, CY_BYTES("HOST"))->value, CY_BYTES("2")));
    ck_assert_ptr_null(http_find_field(fields, 3, CY_BYTES("X-B")));
    ck_assert_ptr_null(http_find_field(fields, 0, CY_BYTES("Host")));
}
END_TEST

Suite *unit_suite_http_field(void);
Suite *unit_suite_http_field(void)
{
    Suite *suite = suite_create("http_field");
    TCase *cases = tcase_create("field");
    tcase_add_test(cases, test_every_row_is_found_in_any_case);
    tcase_add_test(cases, test_names_for_one_hop_are_seen_through_their_spellings);
    tcase_add_test(cases, test_forwarding_names_are_seen_through_their_spellings);
    tcase_add_test(cases, test_every_byte_is_a_token_or_value_byte_as_the_standard_says);
    tcase_add_test(cases, test_lists_give_empty_elements_too);
    tcase_add_test(cases, test_find_field_takes_the_first_of_a_name);
    suite_add_tcase(suite, cases);
    return suite;
}
