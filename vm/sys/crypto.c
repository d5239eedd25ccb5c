/* SPDX-License-Identifier: MIT
 *
 * vm/sys/crypto.c: OpenSSL for digests and signatures.
 *
 * In, Out, Invariant: crypto.h.
 * Method: the EVP interface of OpenSSL 3 only; nothing that is deprecated there.
 */
#include "vm/sys/crypto.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

enum {
    CRYPTO_RSA_BITS_MIN = 2048,
    CRYPTO_RSA_BYTES_MAX = 2048,
    CRYPTO_P256_BYTES = 32,
    CRYPTO_PEM_BYTES_MAX = 65536
};

/* -- memory ------------------------------------------------------------------------------------------------- */

static void *crypto_malloc(size_t bytes, const char *file, int line)
{
    (void)file, (void)line;
    return mem_alloc(bytes);
}
static void *crypto_realloc(void *block, size_t bytes, const char *file, int line)
{
    (void)file, (void)line;
    if (bytes > 0) return mem_resize(block, bytes);
    mem_free(block);
    return NULL;
}
static void crypto_free(void *block, const char *file, int line)
{
    (void)file, (void)line;
    mem_free(block);
}

bool crypto_use_mem(void)
{
    return CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free) == 1;
}

/* What went wrong inside OpenSSL is said by our own words; its queue must not surprise the next caller. Want of memory,
 * which often it does not tell of, is told from all else: it says nothing about a key or a signature. */
static cy_err crypto_done(uint64_t failures_before, cy_err err)
{
    ERR_clear_error();
    return cy_failed(err) && mem_failure_count() != failures_before ? CY_ERR(NO_MEMORY) : err;
}

/* -- digests ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t bytes;
} crypto_digests[] = {
    [CRYPTO_MD5] = {"MD5", 16},
    [CRYPTO_SHA1] = {"SHA1", 20},
    [CRYPTO_SHA256] = {"SHA256", 32},
    [CRYPTO_SHA512] = {"SHA512", 64},
};

size_t crypto_digest_bytes(enum crypto_digest digest) { return crypto_digests[digest].bytes; }

cy_err crypto_hash(enum crypto_digest digest, cy_bytes bytes, uint8_t out[CRYPTO_DIGEST_BYTES_MAX])
{
    size_t count = 0;
    uint64_t failures = mem_failure_count();
    if (EVP_Q_digest(NULL, crypto_digests[digest].name, NULL, bytes.data, bytes.count, out, &count) != 1)
        return crypto_done(failures, CY_ERR(UNSUPPORTED));
    CHECK(count == crypto_digests[digest].bytes);
    return CY_OK;
}

cy_err crypto_hmac(enum crypto_digest digest, cy_bytes key, cy_bytes bytes,
                   uint8_t out[CRYPTO_DIGEST_BYTES_MAX])
{
    size_t count = 0;
    uint64_t failures = mem_failure_count();
    const uint8_t *key_data = key.count ? key.data : (const uint8_t *)"";
    if (!EVP_Q_mac(NULL, "HMAC", NULL, crypto_digests[digest].name, NULL, key_data, key.count, bytes.data,
                   bytes.count, out, CRYPTO_DIGEST_BYTES_MAX, &count))
        return crypto_done(failures, CY_ERR(UNSUPPORTED));
    CHECK(count == crypto_digests[digest].bytes);
    return CY_OK;
}

bool crypto_equal(cy_bytes a, cy_bytes b)
{
    if (a.count != b.count) return false;
    return a.count == 0 || CRYPTO_memcmp(a.data, b.data, a.count) == 0;
}

/* -- keys --------------------------------------------------------------------------------------------------- */

struct crypto_key {
    EVP_PKEY *key;
    enum crypto_key_kind kind;
};

static bool crypto_is_p256(const EVP_PKEY *key)
{
    char group[64];
    size_t count = 0;
    return EVP_PKEY_get_group_name(key, group, sizeof group, &count) == 1 &&
           (strcmp(group, "prime256v1") == 0 || strcmp(group, "P-256") == 0);
}

static bool crypto_kind_of(const EVP_PKEY *key, enum crypto_key_kind *kind_out)
{
    if (EVP_PKEY_is_a(key, "RSA")) {
        *kind_out = CRYPTO_KEY_RSA;
        int bits = EVP_PKEY_get_bits(key);
        return bits >= CRYPTO_RSA_BITS_MIN && bits <= CRYPTO_RSA_BYTES_MAX * 8;
    }
    if (EVP_PKEY_is_a(key, "EC")) {
        *kind_out = CRYPTO_KEY_P256;
        return crypto_is_p256(key);
    }
    *kind_out = CRYPTO_KEY_ED25519;
    return EVP_PKEY_is_a(key, "ED25519");
}

/* Takes the key. `failures` is mem_failure_count() from before it was made. */
static cy_err crypto_key_wrap(uint64_t failures, EVP_PKEY *owned_key, struct crypto_key **key_out)
{
    if (!owned_key) return crypto_done(failures, CY_ERR(BAD_FORMAT));
    struct crypto_key *key = mem_alloc(sizeof *key);
    cy_err err = key ? CY_OK : CY_ERR(NO_MEMORY);
    if (key && !crypto_kind_of(owned_key, &key->kind)) err = CY_ERR(UNSUPPORTED);
    if (cy_failed(err)) {
        EVP_PKEY_free(owned_key);
        mem_free(key);
        return crypto_done(failures, err);
    }
    key->key = owned_key;
    *key_out = key;
    return crypto_done(failures, CY_OK);
}

/* A private key would need a passphrase callback; we never ask a terminal. */
static int crypto_no_passphrase(char *room, int bytes_max, int writing, void *context)
{
    (void)room, (void)bytes_max, (void)writing, (void)context;
    return -1;
}

cy_err crypto_key_from_pem(cy_bytes pem, struct crypto_key **key_out)
{
    if (pem.count > CRYPTO_PEM_BYTES_MAX) return CY_ERR(BAD_FORMAT);
    uint64_t failures = mem_failure_count();
    BIO *bio = BIO_new_mem_buf(pem.count ? pem.data : (const uint8_t *)"", (int)pem.count);
    if (!bio) return crypto_done(failures, CY_ERR(NO_MEMORY));
    EVP_PKEY *key = PEM_read_bio_PUBKEY(bio, NULL, crypto_no_passphrase, NULL);
    if (!key && BIO_reset(bio) == 1) {
        X509 *certificate = PEM_read_bio_X509(bio, NULL, crypto_no_passphrase, NULL);
        if (certificate) key = X509_get_pubkey(certificate);
        X509_free(certificate);
    }
    BIO_free(bio);
    return crypto_key_wrap(failures, key, key_out);
}

/* A key from parameters; NULL when OpenSSL takes them for none. */
static EVP_PKEY *crypto_key_from_params(const char *type, OSSL_PARAM_BLD *builder)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    bool made = params && context && EVP_PKEY_fromdata_init(context) == 1 &&
                EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) == 1;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    if (made) return key;
    EVP_PKEY_free(key);
    return NULL;
}

cy_err crypto_key_from_rsa(cy_bytes modulus, cy_bytes exponent, struct crypto_key **key_out)
{
    bool sizes = modulus.count > 0 && modulus.count <= CRYPTO_RSA_BYTES_MAX && exponent.count > 0 &&
                 exponent.count <= 8;
    if (!sizes) return CY_ERR(BAD_FORMAT);
    uint64_t failures = mem_failure_count();
    BIGNUM *n = BN_bin2bn(modulus.data, (int)modulus.count, NULL);
    BIGNUM *e = BN_bin2bn(exponent.data, (int)exponent.count, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (n && e && builder && BN_is_odd(e) && !BN_is_one(e) &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e))
        key = crypto_key_from_params("RSA", builder);
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    return crypto_key_wrap(failures, key, key_out);
}

cy_err crypto_key_from_p256(cy_bytes x, cy_bytes y, struct crypto_key **key_out)
{
    uint8_t point[1 + 2 * CRYPTO_P256_BYTES] = {4}; /* uncompressed */
    if (x.count != CRYPTO_P256_BYTES || y.count != CRYPTO_P256_BYTES) return CY_ERR(BAD_FORMAT);
    uint64_t failures = mem_failure_count();
    memcpy(point + 1, x.data, x.count);
    memcpy(point + 1 + CRYPTO_P256_BYTES, y.data, y.count);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (builder && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point))
        key = crypto_key_from_params("EC", builder); /* refuses a point that is not on the curve */
    OSSL_PARAM_BLD_free(builder);
    return crypto_key_wrap(failures, key, key_out);
}

cy_err crypto_key_from_ed25519(cy_bytes x, struct crypto_key **key_out)
{
    if (x.count != 32) return CY_ERR(BAD_FORMAT);
    uint64_t failures = mem_failure_count();
    return crypto_key_wrap(failures, EVP_PKEY_new_raw_public_key_ex(NULL, "ED25519", NULL, x.data, x.count),
                           key_out);
}

void crypto_key_free(struct crypto_key **key)
{
    if (!*key) return;
    EVP_PKEY_free((*key)->key);
    mem_free(*key);
    *key = NULL;
}

enum crypto_key_kind crypto_key_kind(const struct crypto_key *key) { return key->kind; }

/* -- signatures --------------------------------------------------------------------------------------------- */

/* r and s as OpenSSL wants them: DER. Owned by the caller (OPENSSL_free); 0 bytes when they are none, -1 without
 * memory. */
static int crypto_ecdsa_der(cy_bytes signature, uint8_t **der_out)
{
    *der_out = NULL;
    if (signature.count != 2 * CRYPTO_P256_BYTES) return 0;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature.data, CRYPTO_P256_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(signature.data + CRYPTO_P256_BYTES, CRYPTO_P256_BYTES, NULL);
    int count = 0;
    if (pair && r && s && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = s = NULL; /* the pair's now */
        count = i2d_ECDSA_SIG(pair, der_out);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    return count > 0 ? count : -1; /* any two numbers can be written */
}

cy_err crypto_verify(const struct crypto_key *key, cy_bytes bytes, cy_bytes signature, bool *good_out)
{
    uint64_t failures = mem_failure_count();
    *good_out = false;
    uint8_t *der = NULL;
    if (key->kind == CRYPTO_KEY_P256) {
        int count = crypto_ecdsa_der(signature, &der);
        if (count < 0) return crypto_done(failures, CY_ERR(NO_MEMORY));
        if (count == 0) return crypto_done(failures, CY_OK);
        signature = cy_bytes_of(der, (size_t)count);
    }
    cy_err err = CY_OK;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const char *digest = key->kind == CRYPTO_KEY_ED25519 ? NULL : "SHA256";
    if (!context)
        err = CY_ERR(NO_MEMORY);
    else if (EVP_DigestVerifyInit_ex(context, NULL, digest, NULL, NULL, key->key, NULL) != 1)
        err = CY_ERR(UNSUPPORTED);
    else
        *good_out = EVP_DigestVerify(context, signature.data, signature.count, bytes.data, bytes.count) == 1;
    EVP_MD_CTX_free(context);
    OPENSSL_free(der);
    if (*good_out || cy_failed(err)) return crypto_done(failures, err);
    err = crypto_done(failures, CY_ERR(THROWN)); /* not good, unless there was no memory for finding out */
    return cy_is(err, CY_ERR_NO_MEMORY) ? err : CY_OK;
}
