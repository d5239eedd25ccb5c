/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls_server.c: the certificates and the policy of a server's side.
 *
 *   name the client asks for ─► exact names ─► certificate
 *                          └──► "*." and the rest behind its first label ─► certificate
 *                          └──► the first certificate
 *
 * In:   tls_server_options. Out: contexts of OpenSSL, one for each set of names, and the choice among them: two
 *       look-ups, however many certificates there are.
 * Two certificates with the same names and different kinds of key share a context: OpenSSL then chooses what the client
 * understands.
 * Sessions: tickets only (nothing is kept here), one for each full or resumed handshake. Their session id context is a
 * digest of what clients had to show, so that a session never outlives a change of that policy.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/map.h"
#include "vm/base/mem.h"
#include "vm/net/tls_internal.h"
#include "vm/sys/clock.h"
#include "vm/sys/crypto.h"
#include "vm/sys/random.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

/* What an authority says of one certificate. */
struct tls_server_staple {
    struct tls_server_staple *next;
    int key_kind;    /* of the certificate: certificates of one context differ in it */
    int64_t until_s; /* 0: no end */
    size_t bytes;
    uint8_t der[]; /* as OpenSSL wants it */
};
struct tls_server_entry {
    SSL_CTX *context;
    cy_bytes
        names; /* of the certificate, sorted, one after the other: finds the twin with another kind of key */
    struct tls_server_staple *staples;
};

struct tls_server {
    uint32_t refs;
    uint32_t entry_count;
    struct tls_server_entry *entries;
    struct map exact, wildcard; /* names to entries; of a wildcard what stands behind "*." */
    BIO_METHOD *method;
    struct tls_tickets tickets;
    struct tls_warm warm;
    bool has_tickets;
    enum tls_client_certificate client_certificate;
    uint8_t policy[TLS_DIGEST_BYTES];
};

SSL *tls_server_ssl(struct tls_server *server)
{
    SSL *ssl = SSL_new(server->entries[0].context);
    if (ssl)
        SSL_set_accept_state(ssl);
    else
        ERR_clear_error();
    return ssl;
}
struct tls_warm *tls_server_warm(struct tls_server *server) { return &server->warm; }
BIO_METHOD *tls_server_method(struct tls_server *server) { return server->method; }
bool tls_server_has_tickets(const struct tls_server *server) { return server->has_tickets; }

/* -- choosing -------------------------------------------------------------------------------------------- */

static struct tls_server_entry *tls_server_find(const struct tls_server *server, cy_bytes name)
{
    uint8_t space[LIMIT_NAME_BYTES];
    if (name.count > sizeof space) return NULL;
    for (size_t i = 0; i < name.count; i++)
        space[i] = name.data[i] >= 'A' && name.data[i] <= 'Z' ? (uint8_t)(name.data[i] | 0x20) : name.data[i];
    name = cy_bytes_of(space, name.count);
    if (name.count > 0 && name.data[name.count - 1] == '.') name.count--;
    struct map_entry *found = map_find(&server->exact, name);
    size_t dot = cy_bytes_find(name, '.');
    if (!found && dot > 0 && dot < name.count)
        found = map_find(&server->wildcard, cy_bytes_skip(name, dot + 1));
    return found ? &server->entries[found->value.number] : NULL;
}

bool tls_server_has_name(const struct tls_server *server, cy_bytes name)
{
    return tls_server_find(server, name) != NULL;
}

static int tls_server_on_name(SSL *ssl, int *alert, void *context)
{
    const struct tls_server *server = context;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    if (!name) return SSL_TLSEXT_ERR_NOACK;
    struct tls_server_entry *entry = tls_server_find(server, cy_bytes_from_text(name));
    if (!entry)
        return SSL_TLSEXT_ERR_OK; /* the first certificate: the client judges, HTTP answers 421 or 404 */
    if (entry != &server->entries[0]) SSL_set_SSL_CTX(ssl, entry->context);
    return SSL_TLSEXT_ERR_OK;
}

void tls_server_offer(SSL *ssl, cy_bytes *alpn) { SSL_set_app_data(ssl, alpn); }

/* Ours first. Nothing in common is fatal (RFC 7301 section 3.2): else one protocol's bytes would be read as
 * another's. */
static int tls_server_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_bytes,
                              const unsigned char *theirs, unsigned theirs_bytes, void *context)
{
    const cy_bytes *ours = SSL_get_app_data(ssl);
    (void)context;
    if (!ours || ours->count == 0) return SSL_TLSEXT_ERR_NOACK;
    unsigned char *chosen = NULL;
    int result =
        SSL_select_next_proto(&chosen, out_bytes, ours->data, (unsigned)ours->count, theirs, theirs_bytes);
    *out = chosen;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int tls_server_key_kind(const X509 *certificate)
{
    return EVP_PKEY_get_base_id(X509_get0_pubkey(certificate));
}

static const struct tls_server_staple *tls_server_find_staple(const struct tls_server *server, SSL *ssl)
{
    const SSL_CTX *chosen = SSL_get_SSL_CTX(ssl);
    const X509 *shown = SSL_get_certificate(ssl); /* in this callback: the one that goes with the cipher */
    for (uint32_t i = 0; shown && i < server->entry_count; i++) {
        if (server->entries[i].context != chosen) continue;
        const struct tls_server_staple *staple = server->entries[i].staples;
        while (staple && staple->key_kind != tls_server_key_kind(shown)) staple = staple->next;
        return staple;
    }
    return NULL;
}

static int tls_server_on_status(SSL *ssl, void *context)
{
    const struct tls_server_staple *staple = tls_server_find_staple(context, ssl);
    if (!staple || (staple->until_s && clock_wall_ms() / 1000 >= staple->until_s))
        return SSL_TLSEXT_ERR_NOACK;
    unsigned char *copy = OPENSSL_memdup(staple->der, staple->bytes); /* OpenSSL frees it */
    if (!copy) return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)staple->bytes);
    return SSL_TLSEXT_ERR_OK;
}

/* -- names of a certificate ------------------------------------------------------------------------------ */

static cy_err tls_server_put_name(struct tls_server *server, cy_bytes name, uint32_t index)
{
    uint8_t space[LIMIT_NAME_BYTES];
    if (name.count == 0 || name.count > sizeof space) return CY_OK; /* nobody can ask for it */
    for (size_t i = 0; i < name.count; i++)
        space[i] = name.data[i] >= 'A' && name.data[i] <= 'Z' ? (uint8_t)(name.data[i] | 0x20) : name.data[i];
    name = cy_bytes_of(space, name.count);
    bool is_wildcard = cy_bytes_start_with(name, CY_BYTES("*."));
    if (is_wildcard) name = cy_bytes_skip(name, 2);
    bool inserted;
    struct map_entry *entry = map_insert(is_wildcard ? &server->wildcard : &server->exact, name, &inserted);
    if (!entry) return CY_ERR(NO_MEMORY);
    if (inserted) entry->value.number = index; /* the first certificate with a name keeps it */
    return CY_OK;
}

/* Calls for each name: the alternative names, or the common name where there are none. */
static cy_err tls_server_each_name(X509 *certificate, cy_err (*call)(void *context, cy_bytes name),
                                   void *context)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    cy_err err = CY_OK;
    uint32_t found = 0;
    for (int i = 0; !cy_failed(err) && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_DNS) continue;
        found++;
        err = call(context, cy_bytes_of(ASN1_STRING_get0_data(name->d.dNSName),
                                        (size_t)ASN1_STRING_length(name->d.dNSName)));
    }
    GENERAL_NAMES_free(names);
    if (found > 0 || cy_failed(err)) return err;
    X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    const ASN1_STRING *text = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    if (!text) return CY_OK;
    return call(context, cy_bytes_of(ASN1_STRING_get0_data(text), (size_t)ASN1_STRING_length(text)));
}

static cy_err tls_server_gather_name(void *context, cy_bytes name)
{
    builder_bytes(context, name);
    builder_u8(context, '\n');
    return builder_error(context);
}

struct tls_server_naming {
    struct tls_server *server;
    uint32_t index;
};
static cy_err tls_server_take_name(void *context, cy_bytes name)
{
    struct tls_server_naming *naming = context;
    return tls_server_put_name(naming->server, name, naming->index);
}

/* -- OCSP ------------------------------------------------------------------------------------------------ */

static cy_err tls_server_bad_staple(const struct tls_file *file, const char *what, struct builder *fault)
{
    builder_printf(fault, "%.*s: %s", CY_BYTES_ARG(file->path), what);
    ERR_clear_error();
    return CY_ERR(BAD_FORMAT);
}

/* Who signed the certificate of this context, when the chain's file has it; borrowed. */
static X509 *tls_server_issuer(SSL_CTX *context)
{
    X509 *certificate = SSL_CTX_get0_certificate(context);
    STACK_OF(X509) *chain = NULL;
    if (X509_check_issued(certificate, certificate) == X509_V_OK) return certificate;
    SSL_CTX_get0_chain_certs(context, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++)
        if (X509_check_issued(sk_X509_value(chain, i), certificate) == X509_V_OK)
            return sk_X509_value(chain, i);
    return NULL;
}

/* Serial numbers are one authority's own: two authorities may give the same. So the issuer is compared as well, by name
 * and key; by name alone when the chain does not have it, for its key stands nowhere else. */
static bool tls_server_is_id_of(const OCSP_CERTID *id, const X509 *certificate, const X509 *issuer)
{
    ASN1_OCTET_STRING *name_hash = NULL;
    ASN1_OBJECT *algorithm = NULL;
    ASN1_INTEGER *serial = NULL;
    OCSP_id_get0_info(&name_hash, &algorithm, NULL, &serial, (OCSP_CERTID *)(uintptr_t)id);
    const EVP_MD *digest = algorithm ? EVP_get_digestbyobj(algorithm) : NULL;
    if (!digest || !name_hash || !serial) return false;
    if (issuer) {
        OCSP_CERTID *own = OCSP_cert_to_id(digest, certificate, issuer);
        bool same = own && OCSP_id_cmp(own, id) == 0;
        OCSP_CERTID_free(own);
        return same;
    }
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    return ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(certificate)) == 0 &&
           X509_NAME_digest(X509_get_issuer_name(certificate), digest, hash, &bytes) == 1 &&
           cy_bytes_equal(cy_bytes_of(hash, bytes), cy_bytes_of(ASN1_STRING_get0_data(name_hash),
                                                                (size_t)ASN1_STRING_length(name_hash)));
}

/* False: it says nothing of this certificate. */
static bool tls_server_staple_is_for(OCSP_BASICRESP *basic, SSL_CTX *context, int64_t *until_s_out)
{
    const X509 *certificate = SSL_CTX_get0_certificate(context), *issuer = tls_server_issuer(context);
    bool found = false;
    *until_s_out = 0;
    for (int i = 0; i < OCSP_resp_count(basic); i++) {
        OCSP_SINGLERESP *one = OCSP_resp_get0(basic, i);
        ASN1_GENERALIZEDTIME *next = NULL;
        struct tm tm;
        if (!tls_server_is_id_of(OCSP_SINGLERESP_get0_id(one), certificate, issuer)) continue;
        found = true;
        OCSP_single_get0_status(one, NULL, NULL, NULL, &next);
        if (!next || ASN1_TIME_to_tm(next, &tm) != 1) continue;
        int64_t at_s = (int64_t)timegm(&tm);
        if (*until_s_out == 0 || at_s < *until_s_out) *until_s_out = at_s;
    }
    return found;
}

static cy_err tls_server_keep_staple(struct tls_server_entry *entry, const X509 *certificate, cy_bytes der,
                                     int64_t until_s)
{
    struct tls_server_staple *staple = mem_alloc(sizeof *staple + der.count);
    if (!staple) return CY_ERR(NO_MEMORY);
    *staple = (struct tls_server_staple){.next = entry->staples,
                                         .key_kind = tls_server_key_kind(certificate),
                                         .until_s = until_s,
                                         .bytes = der.count};
    memcpy(staple->der, der.data, der.count);
    entry->staples = staple;
    return CY_OK;
}

/* `context` has the certificate and its chain; `entry` is where the staple belongs. */
static cy_err tls_server_load_staple(struct tls_server_entry *entry, SSL_CTX *context,
                                     const struct tls_file *file, struct builder *fault)
{
    if (file->content.count == 0) return CY_OK;
    CY_TRY(tls_load_check_size(file, fault));
    const unsigned char *at = file->content.data;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, (long)file->content.count);
    OCSP_BASICRESP *basic = NULL;
    int64_t until_s;
    if (response && OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL)
        basic = OCSP_response_get1_basic(response);
    cy_err err;
    if (!basic)
        err = tls_server_bad_staple(file, "not a successful OCSP answer (DER)", fault);
    else if (!tls_server_staple_is_for(basic, context, &until_s))
        err = tls_server_bad_staple(file, "the OCSP answer is about another certificate", fault);
    else
        err = tls_server_keep_staple(entry, SSL_CTX_get0_certificate(context), file->content, until_s);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    return err;
}

/* -- making ---------------------------------------------------------------------------------------------- */

/* What clients have to show, as a digest. Not which protocols are spoken: each handshake agrees on one anew. */
static cy_err tls_server_make_policy(struct tls_server *server, const struct tls_server_options *options)
{
    uint8_t out[CRYPTO_DIGEST_BYTES_MAX];
    struct builder text;
    builder_init(&text);
    builder_printf(&text, "%d %u ", options->client_certificate,
                   tls_depth(options->has_client_depth, options->client_depth));
    builder_u64(&text, options->client_ca.content.count);
    builder_bytes(&text, options->client_ca.content);
    builder_u64(&text, options->client_crl.content.count);
    builder_bytes(&text, options->client_crl.content);
    cy_err err = builder_error(&text);
    if (!cy_failed(err)) err = crypto_hash(CRYPTO_SHA256, builder_view(&text), out);
    builder_fini(&text);
    if (!cy_failed(err)) memcpy(server->policy, out, sizeof server->policy);
    return err;
}

static cy_err tls_server_set_clients(SSL_CTX *context, const struct tls_server_options *options,
                                     struct builder *fault)
{
    if (options->client_certificate == TLS_CLIENT_CERTIFICATE_OFF) return CY_OK;
    if (options->client_ca.content.count == 0) {
        builder_text(fault, "client certificates are asked for, but no authority is named that signs them");
        return CY_ERR(VALUE);
    }
    CY_TRY(tls_load_trust(context, &options->client_ca, &options->client_crl, true, fault));
    bool required = options->client_certificate == TLS_CLIENT_CERTIFICATE_REQUIRED;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    SSL_CTX_set_verify_depth(context, (int)tls_depth(options->has_client_depth, options->client_depth));
    return CY_OK;
}

static cy_err tls_server_set_up(struct tls_server *server, SSL_CTX *context,
                                const struct tls_server_options *options, struct builder *fault)
{
    CY_TRY(tls_server_set_clients(context, options, fault));
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0); /* the stream asks for one when it first writes */
    if (SSL_CTX_set_session_id_context(context, server->policy, SSL_MAX_SID_CTX_LENGTH) != 1) {
        ERR_clear_error();
        return CY_ERR(INTERNAL);
    }
    if (server->has_tickets)
        tls_tickets_attach(&server->tickets, context);
    else
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_tlsext_servername_callback(context, tls_server_on_name);
    SSL_CTX_set_tlsext_servername_arg(context, server);
    SSL_CTX_set_tlsext_status_cb(context, tls_server_on_status);
    SSL_CTX_set_tlsext_status_arg(context, server);
    SSL_CTX_set_alpn_select_cb(context, tls_server_on_alpn, NULL);
    return CY_OK;
}
_Static_assert(TLS_DIGEST_BYTES >= SSL_MAX_SID_CTX_LENGTH, "the whole session id context is policy");

static struct tls_server_entry *tls_server_twin(struct tls_server *server, cy_bytes names)
{
    for (uint32_t i = 0; i < server->entry_count; i++)
        if (names.count > 0 && cy_bytes_equal(server->entries[i].names, names)) return &server->entries[i];
    return NULL;
}

/* The certificate of a twin must be of another kind of key: else it would silently replace the first. */
static cy_err tls_server_join(struct tls_server_entry *twin, const struct tls_certificate *certificate,
                              SSL_CTX *alone, struct builder *fault)
{
    const X509 *own = SSL_CTX_get0_certificate(alone);
    if (SSL_CTX_set_current_cert(twin->context, SSL_CERT_SET_FIRST) == 1) {
        do {
            X509 *theirs = SSL_CTX_get0_certificate(twin->context);
            if (theirs && tls_server_key_kind(theirs) == tls_server_key_kind(own)) {
                builder_printf(fault, "%.*s: another certificate has the same names and kind of key",
                               CY_BYTES_ARG(certificate->chain.path));
                return CY_ERR(EXISTS);
            }
        } while (SSL_CTX_set_current_cert(twin->context, SSL_CERT_SET_NEXT) == 1);
    }
    CY_TRY(tls_server_load_staple(twin, alone, &certificate->ocsp, fault));
    return tls_load_pair(twin->context, &certificate->chain, &certificate->key, fault);
}

static cy_err tls_server_add_entry(struct tls_server *server, SSL_CTX *owned_context, cy_bytes names,
                                   const struct tls_server_options *options,
                                   const struct tls_certificate *certificate, struct builder *fault)
{
    uint32_t index = server->entry_count++;
    struct tls_server_entry *entry = &server->entries[index];
    entry->context = owned_context;
    uint8_t *copy = mem_alloc(names.count);
    if (!copy) return CY_ERR(NO_MEMORY);
    if (names.count) memcpy(copy, names.data, names.count);
    entry->names = cy_bytes_of(copy, names.count);
    CY_TRY(tls_server_set_up(server, owned_context, options, fault));
    CY_TRY(tls_server_load_staple(entry, owned_context, &certificate->ocsp, fault));
    struct tls_server_naming naming = {server, index};
    return tls_server_each_name(SSL_CTX_get0_certificate(owned_context), tls_server_take_name, &naming);
}

static cy_err tls_server_add(struct tls_server *server, const struct tls_server_options *options,
                             const struct tls_certificate *certificate, struct builder *fault)
{
    SSL_CTX *context;
    CY_TRY(tls_load_context(true, options->version_min, options->version_max, &context, fault));
    struct builder names;
    builder_init(&names);
    cy_err err = tls_load_pair(context, &certificate->chain, &certificate->key, fault);
    if (!cy_failed(err))
        err = tls_server_each_name(SSL_CTX_get0_certificate(context), tls_server_gather_name, &names);
    struct tls_server_entry *twin = cy_failed(err) ? NULL : tls_server_twin(server, builder_view(&names));
    if (twin) err = tls_server_join(twin, certificate, context, fault);
    if (cy_failed(err) || twin)
        SSL_CTX_free(context);
    else
        err = tls_server_add_entry(server, context, builder_view(&names), options, certificate, fault);
    builder_fini(&names);
    return err;
}

/* Once, so that what is wrong there is not said of a certificate. */
static cy_err tls_server_check_clients(const struct tls_server_options *options, struct builder *fault)
{
    SSL_CTX *context;
    CY_TRY(tls_load_context(true, options->version_min, options->version_max, &context, fault));
    cy_err err = tls_server_set_clients(context, options, fault);
    SSL_CTX_free(context);
    return err;
}

static void tls_server_free(struct tls_server *server)
{
    for (uint32_t i = 0; i < server->entry_count; i++) {
        SSL_CTX_free(server->entries[i].context);
        mem_free((void *)(uintptr_t)server->entries[i].names.data);
        for (struct tls_server_staple *staple = server->entries[i].staples, *next; staple; staple = next) {
            next = staple->next;
            mem_free(staple);
        }
    }
    mem_free(server->entries);
    map_fini(&server->exact);
    map_fini(&server->wildcard);
    BIO_meth_free(server->method);
    tls_tickets_fini(&server->tickets);
    mem_free(server);
}

static cy_err tls_server_fill(struct tls_server *server, const struct tls_server_options *options,
                              struct builder *fault)
{
    server->method = tls_bio_method_new();
    server->entries = mem_alloc_zeroed(options->certificate_count * sizeof *server->entries);
    if (!server->method || !server->entries) return CY_ERR(NO_MEMORY);
    server->has_tickets = options->ticket_seed != NULL;
    if (server->has_tickets) tls_tickets_init(&server->tickets, options->ticket_seed);
    CY_TRY(tls_server_make_policy(server, options));
    CY_TRY(tls_server_check_clients(options, fault));
    cy_err err = CY_OK;
    for (uint32_t i = 0; i < options->certificate_count && !cy_failed(err); i++) {
        err = tls_server_add(server, options, &options->certificates[i], fault);
        if (cy_failed(err) && options->failed_index) *options->failed_index = i;
    }
    return err;
}

cy_err tls_server_new(const struct tls_server_options *options, struct tls_server **server_out,
                      struct builder *fault)
{
    hash_seed seed;
    if (options->certificate_count == 0) {
        builder_text(fault, "no certificate is named");
        return CY_ERR(VALUE);
    }
    if (options->certificate_count > LIMIT_TLS_CERTIFICATES) {
        builder_printf(fault, "more than TLS_CERTIFICATES = %d certificates", LIMIT_TLS_CERTIFICATES);
        return CY_ERR(LIMIT);
    }
    CY_TRY(random_hash_seed(&seed));
    struct tls_server *server = mem_alloc_zeroed(sizeof *server);
    if (!server) return CY_ERR(NO_MEMORY);
    server->refs = 1;
    server->client_certificate = options->client_certificate;
    map_init(&server->exact, seed);
    map_init(&server->wildcard, seed);
    cy_err err = tls_server_fill(server, options, fault);
    if (cy_failed(err))
        tls_server_free(server);
    else
        *server_out = server;
    return err;
}

struct tls_server *tls_server_ref(struct tls_server *server)
{
    CHECK(server->refs > 0);
    server->refs++;
    return server;
}

bool tls_server_asks_the_same(const struct tls_server *a, const struct tls_server *b)
{
    if (!a || !b) return !a && !b;
    return memcmp(a->policy, b->policy, sizeof a->policy) == 0;
}

void tls_server_unref(struct tls_server **server_pointer)
{
    struct tls_server *server = *server_pointer;
    *server_pointer = NULL;
    if (!server) return;
    CHECK(server->refs > 0);
    if (--server->refs == 0) tls_server_free(server);
}
