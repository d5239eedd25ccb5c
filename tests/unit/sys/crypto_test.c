/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/crypto_test.c: proves digests and signatures by published examples (FIPS 180, RFC 4231, RFC
 * 8037), that one bit less makes a signature false, and that keys which are none are refused.
 */
#include "vm/sys/crypto.h"

#include "vm/base/encode.h"

#include <check.h>
#include <openssl/err.h>

static const char *crypto_test_hex(const uint8_t *bytes, size_t count)
{
    static char text[2 * CRYPTO_DIGEST_BYTES_MAX + 1];
    encode_hex(cy_bytes_of(bytes, count), (uint8_t *)text);
    text[2 * count] = 0;
    return text;
}

START_TEST(test_digests)
{
    static const struct {
        enum crypto_digest digest;
        const char *hex; /* of "abc" */
    } rows[] = {
        {CRYPTO_MD5, "900150983cd24fb0d6963f7d28e17f72"},
        {CRYPTO_SHA1, "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {CRYPTO_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {CRYPTO_SHA512, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                        "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        uint8_t out[CRYPTO_DIGEST_BYTES_MAX];
        ck_assert(!cy_failed(crypto_hash(rows[i].digest, CY_BYTES("abc"), out)));
        ck_assert_str_eq(crypto_test_hex(out, crypto_digest_bytes(rows[i].digest)), rows[i].hex);
        ck_assert(!cy_failed(crypto_hash(rows[i].digest, CY_BYTES_NONE, out)));
        ck_assert(!cy_failed(crypto_hmac(rows[i].digest, CY_BYTES_NONE, CY_BYTES_NONE, out)));
    }
    uint8_t key[131], out[CRYPTO_DIGEST_BYTES_MAX]; /* RFC 4231 case 6: a key longer than a block */
    memset(key, 0xaa, sizeof key);
    cy_bytes text = CY_BYTES("Test Using Larger Than Block-Size Key - Hash Key First");
    ck_assert(!cy_failed(crypto_hmac(CRYPTO_SHA256, cy_bytes_of(key, sizeof key), text, out)));
    ck_assert_str_eq(crypto_test_hex(out, 32),
                     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
END_TEST

/* RFC 8037 appendix A.4. */
START_TEST(test_ed25519)
{
    cy_bytes signed_part = CY_BYTES("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc");
    cy_bytes key_text = CY_BYTES("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
    cy_bytes signature_text =
        CY_BYTES("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
    uint8_t key_bytes[64], signature[80];
    size_t key_count, count, offset;
    struct crypto_key *key;
    bool good;
    ck_assert(decode_base64(key_text, ENCODE_BASE64_URL, key_bytes, &key_count, &offset));
    ck_assert(decode_base64(signature_text, ENCODE_BASE64_URL, signature, &count, &offset));
    ck_assert_uint_eq(count, 64);
    ck_assert(!cy_failed(crypto_key_from_ed25519(cy_bytes_of(key_bytes, key_count), &key)));
    ck_assert_int_eq(crypto_key_kind(key), CRYPTO_KEY_ED25519);
    ck_assert(!cy_failed(crypto_verify(key, signed_part, cy_bytes_of(signature, count), &good)));
    ck_assert(good);
    for (size_t i = 0; i < count; i += 9) {
        signature[i] ^= 1;
        ck_assert(!cy_failed(crypto_verify(key, signed_part, cy_bytes_of(signature, count), &good)));
        ck_assert(!good);
        signature[i] ^= 1;
    }
    for (size_t i = 0; i < count; i += 7) {
        ck_assert(!cy_failed(crypto_verify(key, signed_part, cy_bytes_of(signature, i), &good)));
        ck_assert(!good);
    }
    crypto_key_free(&key);
    ck_assert_ptr_null(key);
    ck_assert_uint_eq(ERR_peek_error(), 0);
}
END_TEST

START_TEST(test_keys_that_are_none)
{
    struct crypto_key *key = NULL;
    uint8_t zeros[256] = {0}, small[64];
    memset(small, 0xff, sizeof small);
    cy_bytes zero = cy_bytes_of(zeros, 32);
    ck_assert(cy_is(crypto_key_from_p256(zero, zero, &key), CY_ERR_BAD_FORMAT)); /* not on the curve */
    ck_assert(cy_is(crypto_key_from_p256(zero, CY_BYTES("x"), &key), CY_ERR_BAD_FORMAT));
    ck_assert(cy_is(crypto_key_from_ed25519(CY_BYTES("x"), &key), CY_ERR_BAD_FORMAT));
    ck_assert(cy_is(crypto_key_from_rsa(cy_bytes_of(small, 64), CY_BYTES("\3"), &key), CY_ERR_UNSUPPORTED));
    memset(zeros, 0xff, sizeof zeros);
    ck_assert(cy_is(crypto_key_from_rsa(cy_bytes_of(zeros, 256), CY_BYTES("\1"), &key), CY_ERR_BAD_FORMAT));
    ck_assert(cy_is(crypto_key_from_rsa(CY_BYTES_NONE, CY_BYTES("\3"), &key), CY_ERR_BAD_FORMAT));
    ck_assert(cy_is(crypto_key_from_pem(CY_BYTES_NONE, &key), CY_ERR_BAD_FORMAT));
    ck_assert(
        cy_is(crypto_key_from_pem(CY_BYTES("-----BEGIN PUBLIC KEY-----\nAA\n"), &key), CY_ERR_BAD_FORMAT));
    ck_assert_ptr_null(key);
    ck_assert_uint_eq(ERR_peek_error(), 0);
}
END_TEST

START_TEST(test_equal)
{
    ck_assert(crypto_equal(CY_BYTES_NONE, CY_BYTES_NONE));
    ck_assert(crypto_equal(CY_BYTES("abc"), CY_BYTES("abc")));
    ck_assert(!crypto_equal(CY_BYTES("abc"), CY_BYTES("abd")));
    ck_assert(!crypto_equal(CY_BYTES("abc"), CY_BYTES("ab")));
}
END_TEST

Suite *unit_suite_sys_crypto(void)
{
    Suite *suite = suite_create("sys_crypto");
    TCase *tcase = tcase_create("crypto");
    tcase_add_test(tcase, test_digests);
    tcase_add_test(tcase, test_ed25519);
    tcase_add_test(tcase, test_keys_that_are_none);
    tcase_add_test(tcase, test_equal);
    suite_add_tcase(suite, tcase);
    return suite;
}
