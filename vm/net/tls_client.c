/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls_client.c: the policy of a client's side, and a server as seen with it.
 *
 * In:   tls_client_options; the name that a server must have. Out: connections that end in an error unless the
 *       certificate is for that name, in time, and signed by whom the policy trusts.
 * Sessions: a target keeps the newest one. It belongs to the target and with it to the policy: a client with other
 *       authorities, another certificate of its own or no verification has other targets.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/address.h"
#include "vm/net/tls_internal.h"
#include "vm/sys/crypto.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

struct tls_client {
    uint32_t refs;
    SSL_CTX *context;
    BIO_METHOD *method;
    struct tls_warm warm;
    bool unverified;
    uint8_t digest[TLS_DIGEST_BYTES];
};

struct tls_target {
    uint32_t refs;
    struct tls_client *client;
    SSL_SESSION *session; /* to resume; NULL: none yet */
    bool is_ip;
    cy_bytes alpn; /* behind the name */
    char name[];   /* with NUL */
};

/* -- clients --------------------------------------------------------------------------------------------- */

static cy_err tls_client_make_digest(struct tls_client *client, const struct tls_client_options *options)
{
    const cy_bytes parts[] = {options->ca.content, options->crl.content, options->certificate.content,
                              options->key.content};
    uint8_t out[CRYPTO_DIGEST_BYTES_MAX];
    struct builder text;
    builder_init_secret(&text);
    builder_printf(&text, "%d %d %d %u %d %d ", options->use_system, options->unverified, options->full_only,
                   tls_depth(options->has_depth, options->depth), options->version_min, options->version_max);
    for (size_t i = 0; i < CY_COUNT_OF(parts); i++) {
        builder_u64(&text, parts[i].count);
        builder_bytes(&text, parts[i]);
    }
    cy_err err = builder_error(&text);
    if (!cy_failed(err)) err = crypto_hash(CRYPTO_SHA256, builder_view(&text), out);
    builder_fini(&text);
    if (!cy_failed(err)) memcpy(client->digest, out, sizeof client->digest);
    return err;
}

/* A ticket came. In TLS 1.3 each should be used once; the server sends a new one with every connection. */
static int tls_client_on_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls_target *target = SSL_get_app_data(ssl);
    if (!target || SSL_SESSION_is_resumable(session) != 1) return 0;
    SSL_SESSION_free(target->session);
    target->session = session;
    return 1; /* we keep the reference */
}

static cy_err tls_client_fill(struct tls_client *client, const struct tls_client_options *options,
                              struct builder *fault)
{
    CY_TRY(tls_client_make_digest(client, options));
    client->method = tls_bio_method_new();
    if (!client->method) return CY_ERR(NO_MEMORY);
    CY_TRY(tls_load_context(false, options->version_min, options->version_max, &client->context, fault));
    SSL_CTX *context = client->context;
    if (options->use_system && SSL_CTX_set_default_verify_paths(context) != 1) {
        builder_text(fault, "the system's certificate authorities cannot be read: ");
        return tls_error_text(fault, CY_ERR(NOT_FOUND));
    }
    ERR_clear_error(); /* a missing folder is no failure to OpenSSL, but leaves a note */
    CY_TRY(tls_load_trust(context, &options->ca, &options->crl, false, fault));
    if (options->certificate.content.count > 0)
        CY_TRY(tls_load_pair(context, &options->certificate, &options->key, fault));
    SSL_CTX_set_verify(context, options->unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_verify_depth(context, (int)tls_depth(options->has_depth, options->depth));
    SSL_CTX_set_session_cache_mode(context, options->full_only
                                                ? SSL_SESS_CACHE_OFF
                                                : SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    if (!options->full_only) SSL_CTX_sess_set_new_cb(context, tls_client_on_session);
    return CY_OK;
}

static void tls_client_free(struct tls_client *client)
{
    SSL_CTX_free(client->context);
    BIO_meth_free(client->method);
    mem_free(client);
}

cy_err tls_client_new(const struct tls_client_options *options, struct tls_client **client_out,
                      struct builder *fault)
{
    struct tls_client *client = mem_alloc_zeroed(sizeof *client);
    if (!client) return CY_ERR(NO_MEMORY);
    client->refs = 1;
    client->unverified = options->unverified;
    cy_err err = tls_client_fill(client, options, fault);
    if (cy_failed(err))
        tls_client_free(client);
    else
        *client_out = client;
    return err;
}

struct tls_client *tls_client_ref(struct tls_client *client)
{
    CHECK(client->refs > 0);
    client->refs++;
    return client;
}

void tls_client_unref(struct tls_client **client_pointer)
{
    struct tls_client *client = *client_pointer;
    *client_pointer = NULL;
    if (!client) return;
    CHECK(client->refs > 0);
    if (--client->refs == 0) tls_client_free(client);
}

/* -- targets --------------------------------------------------------------------------------------------- */

cy_err tls_target_new(struct tls_client *client, cy_bytes name, cy_bytes alpn, struct tls_target **target_out)
{
    struct address address;
    if (name.count == 0 || name.count > LIMIT_NAME_BYTES || cy_bytes_find(name, 0) < name.count)
        return CY_ERR(BAD_ADDRESS);
    struct tls_target *target = mem_alloc_zeroed(sizeof *target + name.count + 1 + alpn.count);
    if (!target) return CY_ERR(NO_MEMORY);
    target->refs = 1;
    target->client = tls_client_ref(client);
    memcpy(target->name, name.data, name.count);
    if (alpn.count) {
        uint8_t *copy = (uint8_t *)target->name + name.count + 1;
        memcpy(copy, alpn.data, alpn.count);
        target->alpn = cy_bytes_of(copy, alpn.count);
    }
    target->is_ip = !cy_failed(address_from_ip(name, 0, &address));
    *target_out = target;
    return CY_OK;
}

bool tls_target_is(const struct tls_target *target, const struct tls_client *client, cy_bytes name)
{
    return memcmp(target->client->digest, client->digest, sizeof client->digest) == 0 &&
           cy_bytes_equal(cy_bytes_from_text(target->name), name);
}

struct tls_target *tls_target_ref(struct tls_target *target)
{
    CHECK(target->refs > 0);
    target->refs++;
    return target;
}

void tls_target_unref(struct tls_target **target_pointer)
{
    struct tls_target *target = *target_pointer;
    *target_pointer = NULL;
    if (!target) return;
    CHECK(target->refs > 0);
    if (--target->refs > 0) return;
    SSL_SESSION_free(target->session);
    tls_client_unref(&target->client);
    mem_free(target);
}

/* Which name is asked for, and which the certificate must have. RFC 6066: an IP address is never asked for. */
static bool tls_target_set_name(const struct tls_target *target, SSL *ssl)
{
    if (target->is_ip) {
        if (target->client->unverified) return true;
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), target->name) == 1;
    }
    if (SSL_set_tlsext_host_name(ssl, target->name) != 1) return false;
    if (target->client->unverified) return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, target->name) == 1;
}

/* OpenSSL's answer is 0 when it went well. */
static bool tls_target_set_alpn(const struct tls_target *target, SSL *ssl)
{
    return target->alpn.count == 0 ||
           SSL_set_alpn_protos(ssl, target->alpn.data, (unsigned)target->alpn.count) == 0;
}

SSL *tls_target_ssl(struct tls_target *target)
{
    SSL *ssl = SSL_new(target->client->context);
    if (!ssl || !tls_target_set_name(target, ssl) || !tls_target_set_alpn(target, ssl)) {
        SSL_free(ssl);
        ERR_clear_error();
        return NULL;
    }
    SSL_set_app_data(ssl, target); /* the stream holds it */
    SSL_set_connect_state(ssl);
    if (target->session && SSL_SESSION_is_resumable(target->session)) {
        SSL_set_session(ssl, target->session);
        if (SSL_SESSION_get_protocol_version(target->session) == TLS1_3_VERSION) {
            SSL_SESSION_free(target->session); /* once only */
            target->session = NULL;
        }
    }
    ERR_clear_error();
    return ssl;
}

struct tls_warm *tls_target_warm(struct tls_target *target) { return &target->client->warm; }
BIO_METHOD *tls_target_method(struct tls_target *target) { return target->client->method; }
