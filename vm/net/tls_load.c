/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls_load.c: certificates, keys, authorities and revocations from bytes into OpenSSL's contexts.
 *
 * In:   files in memory, with their paths for messages. Out: a context that has them; or a text that names the file and
 *       what is wrong with it.
 * Policy that both sides share stands here: versions, ciphers, groups, no renegotiation, no compression.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/net/tls_internal.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

/* TLS 1.2: forward secrecy and authenticated encryption only (RFC 9325). TLS 1.3 has nothing else. */
#define TLS_LOAD_CIPHERS_1_2                                                                   \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:" \
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define TLS_LOAD_CIPHERS_1_3 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define TLS_LOAD_GROUPS "X25519:P-256:P-384"

static cy_err tls_load_fault(struct builder *fault, const struct tls_file *file, const char *what)
{
    builder_printf(fault, "%.*s: %s", CY_BYTES_ARG(file->path), what);
    return tls_error_or_memory(CY_ERR(BAD_FORMAT));
}

static int tls_load_version(enum tls_version version, int otherwise)
{
    switch (version) {
    case TLS_VERSION_1_2: return TLS1_2_VERSION;
    case TLS_VERSION_1_3: return TLS1_3_VERSION;
    case TLS_VERSION_DEFAULT: break;
    }
    return otherwise;
}

cy_err tls_load_context(bool is_server, enum tls_version version_min, enum tls_version version_max,
                        SSL_CTX **context_out, struct builder *fault)
{
    SSL_CTX *context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    if (!context) {
        ERR_clear_error();
        return CY_ERR(NO_MEMORY);
    }
    uint64_t options = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                       SSL_OP_PRIORITIZE_CHACHA;
    SSL_CTX_clear_options(context, SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_options(context, options);
    SSL_CTX_set_read_ahead(context, 1); /* all that was received is taken at once */
    SSL_CTX_set_security_level(context, 2);
    bool ok = SSL_CTX_set_min_proto_version(context, tls_load_version(version_min, TLS1_2_VERSION)) == 1 &&
              SSL_CTX_set_max_proto_version(context, tls_load_version(version_max, TLS1_3_VERSION)) == 1 &&
              SSL_CTX_set_cipher_list(context, TLS_LOAD_CIPHERS_1_2) == 1 &&
              SSL_CTX_set_ciphersuites(context, TLS_LOAD_CIPHERS_1_3) == 1 &&
              SSL_CTX_set1_groups_list(context, TLS_LOAD_GROUPS) == 1;
    if (!ok) {
        builder_text(fault, "TLS: ");
        cy_err err = tls_error_text(fault, CY_ERR(UNSUPPORTED));
        SSL_CTX_free(context);
        return err;
    }
    *context_out = context;
    return CY_OK;
}

/* -- PEM ------------------------------------------------------------------------------------------------- */

/* Said of the file itself, before anything is looked for in it. */
cy_err tls_load_check_size(const struct tls_file *file, struct builder *fault)
{
    if (file->content.count <= LIMIT_TLS_PEM_BYTES) return CY_OK;
    builder_printf(fault, "%.*s: longer than TLS_PEM_BYTES = %d bytes", CY_BYTES_ARG(file->path),
                   LIMIT_TLS_PEM_BYTES);
    return CY_ERR(TOO_LARGE);
}

static BIO *tls_load_open(const struct tls_file *file)
{
    CHECK(file->content.count <= LIMIT_TLS_PEM_BYTES);
    return BIO_new_mem_buf(file->content.data, (int)file->content.count);
}

/* A key that wants a password gets none: nobody sits there to type it. */
static int tls_load_no_password(char *room, int bytes_max, int writing, void *context)
{
    (void)room;
    (void)bytes_max;
    (void)writing;
    *(bool *)context = true;
    return -1;
}

/* Reading PEM ended: because there was no more, or because what follows is broken? */
static bool tls_load_ended_well(void)
{
    unsigned long last = ERR_peek_last_error();
    bool well = !last || ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return well;
}

static cy_err tls_load_chain(SSL_CTX *context, const struct tls_file *file, X509 **leaf_out,
                             struct builder *fault)
{
    BIO *bio = tls_load_open(file);
    X509 *leaf = bio ? PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL) : NULL;
    if (!leaf) {
        BIO_free(bio);
        return tls_load_fault(fault, file,
                              "there is no certificate in it (PEM, -----BEGIN CERTIFICATE-----)");
    }
    cy_err err = CY_OK;
    if (SSL_CTX_use_certificate(context, leaf) != 1) {
        builder_printf(fault, "%.*s: the certificate cannot be used: ", CY_BYTES_ARG(file->path));
        err = tls_error_text(fault, CY_ERR(BAD_FORMAT));
    }
    X509 *next;
    while (!cy_failed(err) && (next = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        if (SSL_CTX_add0_chain_cert(context, next) == 1) continue; /* takes it */
        X509_free(next);
        err = tls_load_fault(fault, file, "a certificate of the chain cannot be used");
    }
    if (!cy_failed(err) && !tls_load_ended_well())
        err = tls_load_fault(fault, file, "a certificate behind the first one is malformed");
    BIO_free(bio);
    if (cy_failed(err))
        X509_free(leaf);
    else
        *leaf_out = leaf;
    return err;
}

cy_err tls_load_pair(SSL_CTX *context, const struct tls_file *chain, const struct tls_file *key,
                     struct builder *fault)
{
    X509 *leaf = NULL;
    CY_TRY(tls_load_check_size(chain, fault));
    CY_TRY(tls_load_check_size(key, fault));
    CY_TRY(tls_load_chain(context, chain, &leaf, fault));
    bool wants_password = false;
    BIO *bio = tls_load_open(key);
    EVP_PKEY *secret = bio ? PEM_read_bio_PrivateKey(bio, NULL, tls_load_no_password, &wants_password) : NULL;
    BIO_free(bio);
    cy_err err = CY_OK;
    if (!secret) {
        err = tls_load_fault(fault, key,
                             wants_password
                                 ? "the key is encrypted; write it without a password"
                                 : "there is no private key in it (PEM, -----BEGIN PRIVATE KEY-----)");
    } else if (X509_check_private_key(leaf, secret) != 1) {
        builder_printf(fault, "%.*s: the key does not belong to the certificate of %.*s",
                       CY_BYTES_ARG(key->path), CY_BYTES_ARG(chain->path));
        err = CY_ERR(BAD_FORMAT);
    } else if (SSL_CTX_use_PrivateKey(context, secret) != 1) {
        builder_printf(fault, "%.*s: the key cannot be used: ", CY_BYTES_ARG(key->path));
        err = tls_error_text(fault, CY_ERR(BAD_FORMAT));
    }
    EVP_PKEY_free(secret);
    X509_free(leaf);
    ERR_clear_error();
    return err;
}

/* -- trust ----------------------------------------------------------------------------------------------- */

static cy_err tls_load_ca(SSL_CTX *context, const struct tls_file *file, bool names_too,
                          struct builder *fault)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    BIO *bio = tls_load_open(file);
    X509 *certificate;
    uint32_t count = 0;
    bool ok = bio != NULL;
    while (ok && (certificate = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL) {
        ok = X509_STORE_add_cert(store, certificate) == 1; /* one that is there already is fine */
        if (ok && names_too) ok = SSL_CTX_add_client_CA(context, certificate) == 1;
        X509_free(certificate);
        count++;
    }
    BIO_free(bio);
    if (!ok || !tls_load_ended_well())
        return tls_load_fault(fault, file, "an authority's certificate is malformed");
    if (count == 0)
        return tls_load_fault(fault, file,
                              "there is no certificate in it (PEM, -----BEGIN CERTIFICATE-----)");
    return CY_OK;
}

static cy_err tls_load_crl(SSL_CTX *context, const struct tls_file *file, struct builder *fault)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    BIO *bio = tls_load_open(file);
    X509_CRL *list;
    uint32_t count = 0;
    bool ok = bio != NULL;
    while (ok && (list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL) {
        ok = X509_STORE_add_crl(store, list) == 1;
        X509_CRL_free(list);
        count++;
    }
    BIO_free(bio);
    if (!ok || !tls_load_ended_well()) return tls_load_fault(fault, file, "a revocation list is malformed");
    if (count == 0)
        return tls_load_fault(fault, file,
                              "there is no revocation list in it (PEM, -----BEGIN X509 CRL-----)");
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context),
                                X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return CY_OK;
}

cy_err tls_load_trust(SSL_CTX *context, const struct tls_file *ca, const struct tls_file *crl, bool names_too,
                      struct builder *fault)
{
    CY_TRY(tls_load_check_size(ca, fault));
    CY_TRY(tls_load_check_size(crl, fault));
    if (ca->content.count > 0) CY_TRY(tls_load_ca(context, ca, names_too, fault));
    if (crl->content.count > 0) CY_TRY(tls_load_crl(context, crl, fault));
    return CY_OK;
}

#undef TLS_LOAD_CIPHERS_1_2
#undef TLS_LOAD_CIPHERS_1_3
#undef TLS_LOAD_GROUPS
