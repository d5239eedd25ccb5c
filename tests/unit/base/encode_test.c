/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/encode_test.c: proves hex and base64 against RFC 4648 section 10, that every accepted text is the one
 * that encoding gives, and that counts promised before are the counts written.
 */
#include "vm/base/encode.h"

#include <check.h>

START_TEST(test_vectors)
{
    static const char *const rows[][3] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xfb\xff\xbf", "+/+/", "-_-_"},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        cy_bytes bytes = cy_bytes_from_text(rows[i][0]);
        for (enum encode_alphabet alphabet = ENCODE_BASE64; alphabet <= ENCODE_BASE64_URL; alphabet++) {
            uint8_t text[32], back[32];
            size_t text_count = encode_base64_count(bytes.count, alphabet), count, offset;
            ck_assert_uint_eq(text_count, strlen(rows[i][1 + alphabet]));
            encode_base64(bytes, alphabet, text);
            ck_assert_mem_eq(text, rows[i][1 + alphabet], text_count);
            ck_assert(decode_base64(cy_bytes_of(text, text_count), alphabet, back, &count, &offset));
            ck_assert(cy_bytes_equal(cy_bytes_of(back, count), bytes));
        }
    }
}
END_TEST

/* All texts of up to four letters of a small alphabet: what decodes must encode to the same text again. */
START_TEST(test_one_text_for_each_byte_string)
{
    static const char letters[] = "AQZg9+-_/=\n";
    enum { LETTERS = sizeof letters - 1 };
    size_t accepted = 0;
    for (size_t length = 0; length <= 4; length++) {
        size_t texts = 1;
        for (size_t i = 0; i < length; i++) texts *= LETTERS;
        for (size_t n = 0; n < texts; n++) {
            uint8_t text[4], bytes[8], again[8];
            size_t rest = n, count, offset;
            for (size_t i = 0; i < length; i++, rest /= LETTERS) text[i] = (uint8_t)letters[rest % LETTERS];
            for (enum encode_alphabet alphabet = ENCODE_BASE64; alphabet <= ENCODE_BASE64_URL; alphabet++) {
                if (!decode_base64(cy_bytes_of(text, length), alphabet, bytes, &count, &offset)) {
                    ck_assert_uint_le(offset, length);
                    continue;
                }
                accepted++;
                ck_assert_uint_eq(encode_base64_count(count, alphabet), length);
                encode_base64(cy_bytes_of(bytes, count), alphabet, again);
                ck_assert_mem_eq(text, again, length);
            }
        }
    }
    ck_assert_uint_gt(accepted, 1000);
}
END_TEST

START_TEST(test_hex)
{
    uint8_t text[512], back[256], bytes[256];
    size_t offset;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    encode_hex(cy_bytes_of(bytes, sizeof bytes), text);
    ck_assert_mem_eq(text + 0x7e * 2, "7e7f8081", 8);
    ck_assert(decode_hex(cy_bytes_of(text, sizeof text), back, &offset));
    ck_assert_mem_eq(back, bytes, sizeof bytes);
    ck_assert(decode_hex(CY_BYTES("aBCd"), back, &offset));
    ck_assert_mem_eq(back, "\xab\xcd", 2);
    ck_assert(!decode_hex(CY_BYTES("ab "), back, &offset));
    ck_assert_uint_eq(offset, 2);
    ck_assert(!decode_hex(CY_BYTES("abc"), back, &offset));
    ck_assert_uint_eq(offset, 3);
}
END_TEST

Suite *unit_suite_base_encode(void)
{
    Suite *suite = suite_create("base_encode");
    TCase *tcase = tcase_create("encode");
    tcase_add_test(tcase, test_vectors);
    tcase_add_test(tcase, test_one_text_for_each_byte_string);
    tcase_add_test(tcase, test_hex);
    suite_add_tcase(suite, tcase);
    return suite;
}
