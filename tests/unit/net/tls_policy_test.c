/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/tls_policy_test.c: proves who is let in and who is not, and why: names, dates, authorities,
 * revocations, client certificates, protocols and versions; which certificate a name gets; that a session is resumed by
 * any worker under the same policy and by none under another; that bad files are named with what is wrong with them.
 */
#include "tests/unit/net/tls_rig.h"

#include "vm/base/limits.h"
#include "vm/net/loop_internal.h"
#include "vm/net/tls_internal.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

static const uint8_t tls_policy_seed[TLS_SEED_BYTES] = {9, 8, 7};

/* Connects and gives the error of the client; `server_err` (may be NULL) that of the server. */
static const char *tls_policy_connect(struct tls_rig *rig, const char **server_err)
{
    tls_rig_connect(rig, 0);
    tls_rig_handshake(rig);
    /* In TLS 1.3 a client hears of a refusal of its certificate with its first read only. */
    if (!cy_failed(rig->a.ready_err) && cy_failed(rig->b.ready_err)) {
        tls_rig_read(&rig->a);
        tls_rig_turn_until_read(rig, &rig->a);
        rig->a.ready_err = rig->a.read_err;
    }
    if (server_err) *server_err = cy_err_name(rig->b.ready_err);
    return cy_err_name(rig->a.ready_err);
}

static void tls_policy_talk(struct tls_rig *rig)
{
    tls_rig_read(&rig->b);
    tls_rig_write(&rig->a, CY_BYTES("hello"));
    tls_rig_turn_until_read(rig, &rig->b);
    tls_rig_read(&rig->a);
    tls_rig_write(&rig->b, CY_BYTES("world"));
    tls_rig_turn_until_read(rig, &rig->a);
    ck_assert(cy_bytes_equal(builder_view(&rig->a.received), CY_BYTES("world")));
}

/* -- whom a client takes --------------------------------------------------------------------------------- */

START_TEST(test_names_that_a_certificate_is_for)
{
    static const struct {
        const char *name, *err;
    } rows[] = {
        {"name.test", "NONE"},
        {"NAME.test", "NONE"},
        {"x.wild.test", "NONE"},
        {"127.0.0.1", "NONE"},
        {"wild.test", "CERTIFICATE_NAME"},
        {"x.y.wild.test", "CERTIFICATE_NAME"},
        {"other.test", "CERTIFICATE_NAME"},
        {"127.0.0.2", "CERTIFICATE_NAME"},
    };
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, rows[_i].name);
    ck_assert_str_eq(tls_policy_connect(&rig, NULL), rows[_i].err);
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_dates_and_authorities)
{
    static const struct {
        long from_s, until_s;
        bool stranger;
        const char *err;
    } rows[] = {
        {-7200, -3600, false, "CERTIFICATE_EXPIRED"},
        {3600, 7200, false, "CERTIFICATE_EXPIRED"},
        {-3600, 3600, true, "CERTIFICATE_UNTRUSTED"},
        {-3600, 3600, false, "NONE"},
    };
    struct tls_rig rig = {0};
    struct certificate *stranger =
        certificate_new(&(struct certificate_options){.name = "stranger", .is_authority = true});
    rig.authority = certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    rig.certificate = certificate_new(&(struct certificate_options){
        .name = "name.test",
        .names = "DNS:name.test",
        .issuer = rows[_i].stranger ? stranger : rig.authority,
        .from_s = rows[_i].from_s,
        .until_s = rows[_i].until_s,
    });
    tls_rig_init(&rig, NULL, NULL, NULL);
    const char *server;
    ck_assert_str_eq(tls_policy_connect(&rig, &server), rows[_i].err);
    /* The server is told why. */
    ck_assert_str_eq(server, strcmp(rows[_i].err, "NONE") == 0 ? "NONE" : "TLS_ALERT");
    certificate_free(&stranger);
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_a_client_that_verifies_nothing_takes_anything)
{
    struct tls_rig rig = {0};
    struct tls_client_options client = {.unverified = true};
    rig.certificate =
        certificate_new(&(struct certificate_options){.name = "self", .from_s = -20, .until_s = -10});
    tls_rig_init(&rig, NULL, &client, "whatever.test");
    ck_assert_str_eq(tls_policy_connect(&rig, NULL), "NONE");
    ck_assert_uint_eq(stream_info(rig.a.stream)->peer_certificate.count, 0); /* nobody verified it */
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_a_revoked_server_is_refused)
{
    struct tls_rig rig = {0};
    rig.authority = certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    rig.certificate = certificate_new(&(struct certificate_options){
        .name = "name.test", .names = "DNS:name.test", .issuer = rig.authority});
    struct tls_client_options client = {
        .crl = certificate_file("crl.pem", certificate_crl(rig.authority, _i ? rig.certificate : NULL))};
    tls_rig_init(&rig, NULL, &client, NULL);
    ck_assert_str_eq(tls_policy_connect(&rig, NULL), _i ? "CERTIFICATE_REVOKED" : "NONE");
    tls_rig_fini(&rig);
}
END_TEST

/* -- whom a server takes --------------------------------------------------------------------------------- */

enum { TLS_POLICY_NONE, TLS_POLICY_GOOD, TLS_POLICY_STRANGER, TLS_POLICY_REVOKED, TLS_POLICY_EXPIRED };

START_TEST(test_client_certificates)
{
    static const struct {
        enum tls_client_certificate mode;
        int shown;
        const char *server, *client;
    } rows[] = {
        {TLS_CLIENT_CERTIFICATE_OFF, TLS_POLICY_GOOD, "NONE", "NONE"},
        {TLS_CLIENT_CERTIFICATE_OPTIONAL, TLS_POLICY_NONE, "NONE", "NONE"},
        {TLS_CLIENT_CERTIFICATE_OPTIONAL, TLS_POLICY_GOOD, "NONE", "NONE"},
        {TLS_CLIENT_CERTIFICATE_OPTIONAL, TLS_POLICY_STRANGER, "CERTIFICATE_UNTRUSTED", "TLS_ALERT"},
        {TLS_CLIENT_CERTIFICATE_REQUIRED, TLS_POLICY_NONE, "CERTIFICATE_MISSING", "TLS_ALERT"},
        {TLS_CLIENT_CERTIFICATE_REQUIRED, TLS_POLICY_GOOD, "NONE", "NONE"},
        {TLS_CLIENT_CERTIFICATE_REQUIRED, TLS_POLICY_STRANGER, "CERTIFICATE_UNTRUSTED", "TLS_ALERT"},
        {TLS_CLIENT_CERTIFICATE_REQUIRED, TLS_POLICY_REVOKED, "CERTIFICATE_REVOKED", "TLS_ALERT"},
        {TLS_CLIENT_CERTIFICATE_REQUIRED, TLS_POLICY_EXPIRED, "CERTIFICATE_EXPIRED", "TLS_ALERT"},
    };
    int which = _i % (int)CY_COUNT_OF(rows);
    enum tls_version version = _i < (int)CY_COUNT_OF(rows) ? TLS_VERSION_1_2 : TLS_VERSION_1_3;
    struct tls_rig rig = {0};
    struct certificate *stranger =
        certificate_new(&(struct certificate_options){.name = "other", .is_authority = true});
    rig.authority = certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    bool expired = rows[which].shown == TLS_POLICY_EXPIRED;
    struct certificate *own = certificate_new(&(struct certificate_options){
        .name = "client",
        .names = "DNS:client.test",
        .issuer = rows[which].shown == TLS_POLICY_STRANGER ? stranger : rig.authority,
        .from_s = -7200,
        .until_s = expired ? -3600 : 3600});
    struct tls_server_options server = {.client_certificate = rows[which].mode};
    if (rows[which].mode != TLS_CLIENT_CERTIFICATE_OFF) {
        server.client_ca = certificate_file("ca.pem", certificate_pem(rig.authority));
        server.client_crl = certificate_file(
            "crl.pem", certificate_crl(rig.authority, rows[which].shown == TLS_POLICY_REVOKED ? own : NULL));
    }
    struct tls_client_options client = {.version_min = version, .version_max = version};
    if (rows[which].shown != TLS_POLICY_NONE) {
        client.certificate = certificate_file("own.pem", certificate_pem(own));
        client.key = certificate_file("own.key", certificate_key_pem(own));
    }
    tls_rig_init(&rig, &server, &client, NULL);
    const char *server_err, *client_err = tls_policy_connect(&rig, &server_err);
    ck_assert_str_eq(server_err, rows[which].server);
    ck_assert_str_eq(client_err, rows[which].client);
    bool known = rows[which].mode != TLS_CLIENT_CERTIFICATE_OFF && rows[which].shown == TLS_POLICY_GOOD;
    cy_bytes peer = stream_info(rig.b.stream)->peer_certificate;
    if (known) ck_assert(cy_bytes_equal(peer, certificate_der(own)));
    if (!known) ck_assert_uint_eq(peer.count, 0);
    certificate_free(&own);
    certificate_free(&stranger);
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_versions)
{
    static const struct {
        enum tls_version server_min, server_max, client_min, client_max;
        const char *version; /* NULL: refused */
    } rows[] = {
        {TLS_VERSION_DEFAULT, TLS_VERSION_DEFAULT, TLS_VERSION_DEFAULT, TLS_VERSION_DEFAULT, "TLSv1.3"},
        {TLS_VERSION_DEFAULT, TLS_VERSION_1_2, TLS_VERSION_DEFAULT, TLS_VERSION_DEFAULT, "TLSv1.2"},
        {TLS_VERSION_1_3, TLS_VERSION_DEFAULT, TLS_VERSION_DEFAULT, TLS_VERSION_1_2, NULL},
        {TLS_VERSION_DEFAULT, TLS_VERSION_1_2, TLS_VERSION_1_3, TLS_VERSION_DEFAULT, NULL},
    };
    struct tls_rig rig = {0};
    struct tls_server_options server = {.version_min = rows[_i].server_min,
                                        .version_max = rows[_i].server_max};
    struct tls_client_options client = {.version_min = rows[_i].client_min,
                                        .version_max = rows[_i].client_max};
    tls_rig_init(&rig, &server, &client, NULL);
    const char *server_err, *client_err = tls_policy_connect(&rig, &server_err);
    if (rows[_i].version) {
        ck_assert_str_eq(client_err, "NONE");
        ck_assert_str_eq(tls_stream_version(rig.a.stream), rows[_i].version);
    } else {
        ck_assert_str_eq(server_err, "TLS_VERSION");
        ck_assert_str_ne(client_err, "NONE");
    }
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_alpn)
{
    static const struct {
        const char *server, *client, *agreed; /* NULL: refused */
    } rows[] = {
        {"\x02h2\x08http/1.1", "\x08http/1.1\x02h2", "h2"}, /* the server's order counts */
        {"\x08http/1.1", "\x02h2\x08http/1.1", "http/1.1"},
        {"\x08http/1.1", "", ""},
        {"", "\x02h2", ""},
        {"\x08http/1.1", "\x02h2", NULL},
    };
    struct tls_rig rig = {.server_alpn = cy_bytes_from_text(rows[_i].server),
                          .client_alpn = cy_bytes_from_text(rows[_i].client)};
    tls_rig_init(&rig, NULL, NULL, NULL);
    const char *err = tls_policy_connect(&rig, NULL);
    if (rows[_i].agreed) {
        ck_assert_str_eq(err, "NONE");
        ck_assert(cy_bytes_equal(stream_info(rig.a.stream)->alpn, cy_bytes_from_text(rows[_i].agreed)));
        ck_assert(cy_bytes_equal(stream_info(rig.b.stream)->alpn, cy_bytes_from_text(rows[_i].agreed)));
    } else {
        ck_assert_str_eq(err, "TLS_NO_PROTOCOL");
        ck_assert_str_eq(cy_err_name(rig.b.ready_err), "TLS_NO_PROTOCOL");
    }
    tls_rig_fini(&rig);
}
END_TEST

/* A server's end whose other one is the bare transport. */
static void tls_policy_replace_client(struct tls_rig *rig)
{
    struct stream *below;
    tls_rig_connect(rig, 0);
    tls_rig_close(rig);
    ck_assert(!cy_failed(loopback_pair(rig->loop, 0, &rig->a.stream, &below)));
    ck_assert(!cy_failed(tls_server_stream(rig->server, CY_BYTES_NONE, below, &rig->b.stream)));
    rig->b.is_ready = false;
    stream_ready_start(rig->b.stream, &rig->b.ready);
}

/* -- which certificate ----------------------------------------------------------------------------------- */

START_TEST(test_the_name_chooses_the_certificate)
{
    static const struct {
        const char *name;
        int certificate;
    } rows[] = {
        {"a.test", 0},       {"A.TEST", 0},   {"b.test", 1},     {"x.b.test", 2},
        {"exact.b.test", 3}, {"nobody.x", 0}, {"y.x.b.test", 0}, {"127.0.0.1", 0},
    };
    static const char *const names[] = {"DNS:a.test,DNS:nobody.x,DNS:y.x.b.test,IP:127.0.0.1", "DNS:b.test",
                                        "DNS:*.b.test", "DNS:exact.b.test"};
    struct tls_rig rig = {0};
    struct certificate *made[CY_COUNT_OF(names)];
    struct tls_certificate pairs[CY_COUNT_OF(names)] = {0};
    rig.authority = certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    for (size_t i = 0; i < CY_COUNT_OF(names); i++) {
        made[i] = certificate_new(
            &(struct certificate_options){.name = "x", .names = names[i], .issuer = rig.authority});
        pairs[i].chain = certificate_file("c", certificate_pem(made[i]));
        pairs[i].key = certificate_file("k", certificate_key_pem(made[i]));
    }
    struct tls_server_options server = {.certificates = pairs, .certificate_count = CY_COUNT_OF(names)};
    tls_rig_init(&rig, &server, NULL, rows[_i].name);
    ck_assert_str_eq(tls_policy_connect(&rig, NULL), "NONE");
    ck_assert(cy_bytes_equal(stream_info(rig.a.stream)->peer_certificate,
                             certificate_der(made[rows[_i].certificate])));
    ck_assert(tls_server_has_name(rig.server, CY_BYTES("q.b.test")));
    ck_assert(!tls_server_has_name(rig.server, CY_BYTES("q.q.b.test")));
    ck_assert(!tls_server_has_name(rig.server, CY_BYTES("q.test")));
    for (size_t i = 0; i < CY_COUNT_OF(names); i++) certificate_free(&made[i]);
    tls_rig_fini(&rig);
}
END_TEST

/* One name, two kinds of key: the client gets what it understands. */
START_TEST(test_two_kinds_of_key_for_one_name)
{
    struct tls_rig rig = {0};
    rig.authority = certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    struct certificate *ec = certificate_new(
        &(struct certificate_options){.name = "x", .names = "DNS:name.test", .issuer = rig.authority});
    struct certificate *rsa = certificate_new(&(struct certificate_options){
        .name = "x", .names = "DNS:name.test", .issuer = rig.authority, .is_rsa = true});
    struct tls_certificate pairs[] = {
        {.chain = certificate_file("rsa.pem", certificate_pem(rsa)),
         .key = certificate_file("rsa.key", certificate_key_pem(rsa))},
        {.chain = certificate_file("ec.pem", certificate_pem(ec)),
         .key = certificate_file("ec.key", certificate_key_pem(ec))},
        {.chain = certificate_file("again.pem", certificate_pem(ec)),
         .key = certificate_file("again.key", certificate_key_pem(ec))},
    };
    struct tls_server_options server = {.certificates = pairs, .certificate_count = 2};
    tls_rig_init(&rig, &server, NULL, NULL);
    ck_assert_str_eq(tls_policy_connect(&rig, NULL), "NONE");
    cy_bytes shown = stream_info(rig.a.stream)->peer_certificate;
    ck_assert(cy_bytes_equal(shown, certificate_der(ec)) || cy_bytes_equal(shown, certificate_der(rsa)));
    server.certificate_count = 3;
    uint32_t index = 99;
    server.failed_index = &index;
    struct tls_server *none = NULL;
    struct builder fault;
    builder_init(&fault);
    ck_assert(cy_is(tls_server_new(&server, &none, &fault), CY_ERR_EXISTS));
    ck_assert(cy_bytes_start_with(builder_view(&fault), CY_BYTES("again.pem: ")));
    ck_assert_uint_eq(index, 2);
    builder_fini(&fault);
    certificate_free(&ec);
    certificate_free(&rsa);
    tls_rig_fini(&rig);
}
END_TEST

static int tls_policy_on_staple(SSL *ssl, void *context)
{
    const unsigned char *bytes;
    long count = SSL_get_tlsext_status_ocsp_resp(ssl, &bytes);
    builder_clear(context);
    if (count > 0) builder_bytes(context, cy_bytes_of(bytes, (size_t)count));
    return 1;
}

/* What a client gets that understands these algorithms of signatures (NULL: all). Asked by OpenSSL itself, for our
 * client does not. */
static void tls_policy_ask_staple(struct tls_rig *rig, const char *algorithms, struct builder *got)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_tlsext_status_cb(context, tls_policy_on_staple);
    SSL_CTX_set_tlsext_status_arg(context, got);
    if (algorithms) ck_assert_int_eq(SSL_CTX_set1_sigalgs_list(context, algorithms), 1);
    SSL *ssl = SSL_new(context);
    SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    ck_assert_int_eq(SSL_connect(ssl), -1);
    char *hello;
    long count = BIO_get_mem_data(out, &hello);
    tls_policy_replace_client(rig);
    tls_rig_write(&rig->a, cy_bytes_of(hello, (size_t)count));
    tls_rig_turn_until_written(rig, &rig->a);
    tls_rig_read(&rig->a);
    tls_rig_turn_until_read(rig, &rig->a);
    BIO_write(in, rig->a.received.data, (int)rig->a.received.count);
    builder_text(got, "not called");
    ck_assert_int_eq(SSL_connect(ssl), 1);
    SSL_free(ssl);
    SSL_CTX_free(context);
}

/* A staple is sent to who asks for it, while it is good; with its issuer in the chain's file, and without. */
START_TEST(test_ocsp_staple)
{
    bool good = _i & 1;
    struct tls_rig rig = {0};
    rig.authority = certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    rig.certificate = certificate_new(&(struct certificate_options){
        .name = "name.test", .names = "DNS:name.test", .issuer = rig.authority});
    cy_bytes answer = certificate_ocsp(rig.certificate, rig.authority, good ? 3600 : -3600);
    struct builder got, chain;
    builder_init(&got);
    builder_init(&chain);
    builder_bytes(&chain, certificate_pem(rig.certificate));
    if (_i & 2) builder_bytes(&chain, certificate_pem(rig.authority));
    struct tls_certificate pair = {.chain = certificate_file("c", builder_view(&chain)),
                                   .key = certificate_file("k", certificate_key_pem(rig.certificate)),
                                   .ocsp = certificate_file("o", answer)};
    struct tls_server_options server = {.certificates = &pair, .certificate_count = 1};
    tls_rig_init(&rig, &server, NULL, NULL);
    tls_policy_ask_staple(&rig, NULL, &got);
    ck_assert(cy_bytes_equal(builder_view(&got), good ? answer : CY_BYTES_NONE));
    builder_fini(&got);
    builder_fini(&chain);
    tls_rig_fini(&rig);
}
END_TEST

/* Two certificates with one name and two kinds of key: each is stapled what is about it. */
START_TEST(test_each_kind_of_key_has_its_own_staple)
{
    struct certificate *authority =
        certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    struct certificate *both[2];
    struct tls_certificate pairs[2];
    for (int i = 0; i < 2; i++) {
        both[i] = certificate_new(&(struct certificate_options){
            .name = "x", .names = "DNS:name.test", .issuer = authority, .is_rsa = i == 1});
        pairs[i] = (struct tls_certificate){
            .chain = certificate_file("c", certificate_pem(both[i])),
            .key = certificate_file("k", certificate_key_pem(both[i])),
            .ocsp = certificate_file("o", certificate_ocsp(both[i], authority, 3600)),
        };
    }
    struct tls_server_options options = {.certificates = pairs, .certificate_count = 2};
    static const char *const algorithms[] = {"ECDSA+SHA256", "RSA-PSS+SHA256"};
    for (int i = 0; i < 2; i++) {
        struct tls_rig rig = {.authority = authority, .certificate = both[i]};
        struct builder got;
        builder_init(&got);
        tls_rig_init(&rig, &options, NULL, NULL);
        tls_policy_ask_staple(&rig, algorithms[i], &got);
        ck_assert(cy_bytes_equal(builder_view(&got), pairs[i].ocsp.content));
        builder_fini(&got);
        rig.authority = rig.certificate = NULL;
        tls_rig_fini(&rig);
    }
    for (int i = 0; i < 2; i++) certificate_free(&both[i]);
    certificate_free(&authority);
}
END_TEST

/* -- sessions -------------------------------------------------------------------------------------------- */

/* Another server, as another worker has it. */
static void tls_policy_swap_server(struct tls_rig *rig, const struct tls_server_options *given)
{
    struct tls_certificate pair = {.chain = certificate_file("c", certificate_pem(rig->certificate)),
                                   .key = certificate_file("k", certificate_key_pem(rig->certificate))};
    struct tls_server_options options = *given;
    struct builder fault;
    builder_init(&fault);
    options.certificates = &pair;
    options.certificate_count = 1;
    tls_server_unref(&rig->server);
    ck_assert(!cy_failed(tls_server_new(&options, &rig->server, &fault)));
}

START_TEST(test_sessions_are_resumed_by_any_worker_under_the_same_policy)
{
    static const uint8_t other_seed[TLS_SEED_BYTES] = {1};
    enum tls_version version = _i ? TLS_VERSION_1_3 : TLS_VERSION_1_2;
    struct tls_rig rig = {0};
    struct tls_server_options server = {.ticket_seed = tls_policy_seed};
    struct tls_client_options client = {.version_min = version, .version_max = version};
    tls_rig_init(&rig, &server, &client, NULL);
    const struct {
        struct tls_server_options options;
        bool resumed;
    } rows[] = {
        {{.ticket_seed = tls_policy_seed}, false}, /* the first */
        {{.ticket_seed = tls_policy_seed}, true},
        {{.ticket_seed = tls_policy_seed}, true},
        {{.ticket_seed = tls_policy_seed,
          .client_certificate = TLS_CLIENT_CERTIFICATE_OPTIONAL,
          .client_ca = certificate_file("ca", certificate_pem(rig.authority))},
         false},
        {{.ticket_seed = tls_policy_seed,
          .client_certificate = TLS_CLIENT_CERTIFICATE_OPTIONAL,
          .client_ca = certificate_file("ca", certificate_pem(rig.authority))},
         true},
        {{.ticket_seed = tls_policy_seed,
          .client_certificate = TLS_CLIENT_CERTIFICATE_OPTIONAL,
          .client_ca = certificate_file("ca", certificate_pem(rig.authority)),
          .client_crl = certificate_file("crl", certificate_crl(rig.authority, NULL))},
         false},
        {{.ticket_seed = other_seed}, false},
        {{.ticket_seed = NULL}, false},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        tls_policy_swap_server(&rig, &rows[i].options);
        ck_assert_str_eq(tls_policy_connect(&rig, NULL), "NONE");
        ck_assert_msg(tls_stream_resumed(rig.a.stream) == rows[i].resumed, "row %zu", i);
        ck_assert(tls_stream_resumed(rig.b.stream) == rows[i].resumed);
        ck_assert(stream_info(rig.a.stream)->peer_certificate.count > 0); /* known also when resumed */
        tls_policy_talk(&rig);
        tls_rig_close(&rig);
    }
    tls_rig_fini(&rig);
}
END_TEST

/* Who was let in by one of them stays when the other one takes its place, or has to come anew. */
START_TEST(test_what_clients_have_to_show_is_compared)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    struct tls_certificate own = {.chain = certificate_file("cert.pem", certificate_pem(rig.certificate)),
                                  .key = certificate_file("key.pem", certificate_key_pem(rig.certificate))};
    struct tls_file ca = certificate_file("ca.pem", certificate_pem(rig.authority));
    struct builder none, revoked; /* a list is the issuer's until its next one */
    builder_init(&none);
    builder_init(&revoked);
    builder_bytes(&none, certificate_crl(rig.authority, NULL));
    builder_bytes(&revoked, certificate_crl(rig.authority, rig.certificate));
    const struct tls_server_options rows[] = {
        {.client_certificate = TLS_CLIENT_CERTIFICATE_OFF},
        {.client_certificate = TLS_CLIENT_CERTIFICATE_OPTIONAL, .client_ca = ca},
        {.client_certificate = TLS_CLIENT_CERTIFICATE_REQUIRED, .client_ca = ca},
        {.client_certificate = TLS_CLIENT_CERTIFICATE_REQUIRED, .client_ca = ca, .has_client_depth = true},
        {.client_certificate = TLS_CLIENT_CERTIFICATE_REQUIRED,
         .client_ca = ca,
         .client_crl = certificate_file("crl.pem", builder_view(&none))},
        {.client_certificate = TLS_CLIENT_CERTIFICATE_REQUIRED,
         .client_ca = ca,
         .client_crl = certificate_file("crl.pem", builder_view(&revoked))},
    };
    struct tls_server *servers[CY_COUNT_OF(rows)], *again;
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct builder fault;
        builder_init(&fault);
        struct tls_server_options options = rows[i];
        options.certificates = &own;
        options.certificate_count = 1;
        options.ticket_seed = tls_policy_seed;
        ck_assert(!cy_failed(tls_server_new(&options, &servers[i], &fault)));
        options.version_min = TLS_VERSION_1_3; /* is not what they show */
        ck_assert(!cy_failed(tls_server_new(&options, &again, &fault)));
        ck_assert(tls_server_asks_the_same(servers[i], again));
        tls_server_unref(&again);
        builder_fini(&fault);
    }
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        for (size_t j = 0; j < CY_COUNT_OF(rows); j++)
            ck_assert_int_eq(tls_server_asks_the_same(servers[i], servers[j]), i == j);
        ck_assert(!tls_server_asks_the_same(NULL, servers[i]) && !tls_server_asks_the_same(servers[i], NULL));
    }
    ck_assert(tls_server_asks_the_same(NULL, NULL));
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) tls_server_unref(&servers[i]);
    builder_fini(&none);
    builder_fini(&revoked);
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_ticket_keys_change_by_the_hour)
{
    struct tls_tickets a, b;
    tls_tickets_init(&a, tls_policy_seed);
    tls_tickets_init(&b, tls_policy_seed);
    for (int64_t hour = 100; hour < 110; hour++) {
        struct tls_ticket_key key = *tls_tickets_key(&a, hour);
        ck_assert_mem_eq(&key, tls_tickets_key(&b, hour), sizeof key); /* equal in every worker */
        for (int64_t age = 1; age < 3; age++) {
            const struct tls_ticket_key *older = tls_tickets_key(&a, hour - age);
            ck_assert_mem_ne(key.name, older->name, sizeof key.name);
            ck_assert_mem_ne(key.cipher, older->cipher, sizeof key.cipher);
            ck_assert_mem_ne(key.digest, older->digest, sizeof key.digest);
        }
    }
    ck_assert_ptr_null(tls_tickets_key(&a, -1));
    tls_tickets_fini(&a);
    tls_tickets_fini(&b);
}
END_TEST

/* -- bad files ------------------------------------------------------------------------------------------- */

START_TEST(test_bad_files_are_named)
{
    struct certificate *authority =
        certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    struct certificate *one =
        certificate_new(&(struct certificate_options){.name = "one", .issuer = authority, .serial = 1});
    struct certificate *two =
        certificate_new(&(struct certificate_options){.name = "two", .issuer = authority});
    /* Other authorities: of another name, and of the same name with another key. Their serial is `one`'s too. */
    struct certificate *others[2], *theirs[2];
    for (int i = 0; i < 2; i++) {
        others[i] =
            certificate_new(&(struct certificate_options){.name = i ? "ca" : "cb", .is_authority = true});
        theirs[i] =
            certificate_new(&(struct certificate_options){.name = "one", .issuer = others[i], .serial = 1});
    }
    cy_bytes cert = certificate_pem(one), key = certificate_key_pem(one), none = CY_BYTES("nothing"),
             cut = cy_bytes_slice(cert, 0, cert.count / 2);
    struct builder broken;
    builder_init(&broken);
    builder_bytes(&broken, cert);
    builder_bytes(&broken, cut);
    struct builder chain;
    builder_init(&chain);
    builder_bytes(&chain, cert);
    builder_bytes(&chain, certificate_pem(authority));
    const struct {
        cy_bytes chain, key, ocsp, ca, crl;
        const char *fault;
    } rows[] = {
        {none, key, CY_BYTES_NONE, CY_BYTES_NONE, CY_BYTES_NONE, "cert.pem: there is no certificate in it"},
        {cut, key, CY_BYTES_NONE, CY_BYTES_NONE, CY_BYTES_NONE, "cert.pem: there is no certificate in it"},
        {builder_view(&broken), key, CY_BYTES_NONE, CY_BYTES_NONE, CY_BYTES_NONE,
         "cert.pem: a certificate behind the first one is malformed"},
        {cert, none, CY_BYTES_NONE, CY_BYTES_NONE, CY_BYTES_NONE, "key.pem: there is no private key in it"},
        {cert, certificate_key_pem(two), CY_BYTES_NONE, CY_BYTES_NONE, CY_BYTES_NONE,
         "key.pem: the key does not belong to the certificate of cert.pem"},
        {cert, key, certificate_ocsp(two, authority, 3600), CY_BYTES_NONE, CY_BYTES_NONE,
         "ocsp.der: the OCSP answer is about another certificate"},
        {cert, key, certificate_ocsp(theirs[0], others[0], 3600), CY_BYTES_NONE, CY_BYTES_NONE,
         "ocsp.der: the OCSP answer is about another certificate"},
        {builder_view(&chain), key, certificate_ocsp(theirs[1], others[1], 3600), CY_BYTES_NONE,
         CY_BYTES_NONE, "ocsp.der: the OCSP answer is about another certificate"},
        {cert, key, none, CY_BYTES_NONE, CY_BYTES_NONE, "ocsp.der: not a successful OCSP answer"},
        {cert, key, CY_BYTES_NONE, none, CY_BYTES_NONE, "ca.pem: there is no certificate in it"},
        {cert, key, CY_BYTES_NONE, cert, none, "crl.pem: there is no revocation list in it"},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct tls_certificate pair = {.chain = certificate_file("cert.pem", rows[i].chain),
                                       .key = certificate_file("key.pem", rows[i].key),
                                       .ocsp = certificate_file("ocsp.der", rows[i].ocsp)};
        struct tls_server_options options = {.certificates = &pair, .certificate_count = 1};
        if (rows[i].ca.count) {
            options.client_certificate = TLS_CLIENT_CERTIFICATE_REQUIRED;
            options.client_ca = certificate_file("ca.pem", rows[i].ca);
            options.client_crl = certificate_file("crl.pem", rows[i].crl);
        }
        struct tls_server *server = NULL;
        struct builder fault;
        builder_init(&fault);
        ck_assert_msg(cy_is(tls_server_new(&options, &server, &fault), CY_ERR_BAD_FORMAT), "row %zu", i);
        ck_assert_msg(cy_bytes_start_with(builder_view(&fault), cy_bytes_from_text(rows[i].fault)),
                      "row %zu: %.*s", i, CY_BYTES_ARG(builder_view(&fault)));
        builder_fini(&fault);
    }
    builder_fini(&broken);
    builder_fini(&chain);
    for (int i = 0; i < 2; i++) {
        certificate_free(&theirs[i]);
        certificate_free(&others[i]);
    }
    certificate_free(&one);
    certificate_free(&two);
    certificate_free(&authority);
}
END_TEST

START_TEST(test_a_file_past_the_limit_is_not_looked_at)
{
    struct builder large, fault;
    struct tls_server *server = NULL;
    builder_init(&large);
    builder_init(&fault);
    uint8_t *room = builder_reserve(&large, LIMIT_TLS_PEM_BYTES + 1);
    ck_assert_ptr_nonnull(room);
    memset(room, '\n', LIMIT_TLS_PEM_BYTES + 1);
    large.count = LIMIT_TLS_PEM_BYTES;
    struct tls_certificate pair = {.chain = certificate_file("c.pem", builder_view(&large))};
    struct tls_server_options options = {.certificates = &pair, .certificate_count = 1};
    ck_assert(cy_is(tls_server_new(&options, &server, &fault), CY_ERR_BAD_FORMAT)); /* there is none in it */
    builder_clear(&fault);
    large.count++;
    pair.chain.content = builder_view(&large);
    ck_assert(cy_is(tls_server_new(&options, &server, &fault), CY_ERR_TOO_LARGE));
    ck_assert(cy_bytes_start_with(builder_view(&fault), CY_BYTES("c.pem: longer than TLS_PEM_BYTES")));
    builder_fini(&large);
    builder_fini(&fault);
}
END_TEST

START_TEST(test_a_server_needs_certificates_and_client_certificates_an_authority)
{
    struct tls_server *server = NULL;
    struct tls_server_options options = {0};
    struct builder fault;
    builder_init(&fault);
    ck_assert(cy_is(tls_server_new(&options, &server, &fault), CY_ERR_VALUE));
    options.certificate_count = LIMIT_TLS_CERTIFICATES + 1;
    ck_assert(cy_is(tls_server_new(&options, &server, &fault), CY_ERR_LIMIT));
    struct tls_certificate pair = {0};
    options.certificates = &pair;
    options.certificate_count = 1;
    options.client_certificate = TLS_CLIENT_CERTIFICATE_REQUIRED;
    ck_assert(cy_is(tls_server_new(&options, &server, &fault), CY_ERR_VALUE));
    builder_fini(&fault);
}
END_TEST

/* A chain longer than the depth that is allowed. */
START_TEST(test_depth)
{
    struct tls_rig rig = {0};
    rig.authority = certificate_new(&(struct certificate_options){.name = "root", .is_authority = true});
    struct certificate *upper = certificate_new(
        &(struct certificate_options){.name = "upper", .is_authority = true, .issuer = rig.authority});
    struct certificate *lower = certificate_new(
        &(struct certificate_options){.name = "lower", .is_authority = true, .issuer = upper});
    rig.certificate = certificate_new(
        &(struct certificate_options){.name = "name.test", .names = "DNS:name.test", .issuer = lower});
    struct builder chain;
    builder_init(&chain);
    builder_bytes(&chain, certificate_pem(rig.certificate));
    builder_bytes(&chain, certificate_pem(lower));
    builder_bytes(&chain, certificate_pem(upper));
    struct tls_certificate pair = {.chain = certificate_file("c", builder_view(&chain)),
                                   .key = certificate_file("k", certificate_key_pem(rig.certificate))};
    struct tls_server_options server = {.certificates = &pair, .certificate_count = 1};
    /* Counted are those between the peer's certificate and the authority: two here. */
    struct tls_client_options client = {.has_depth = _i < 3, .depth = (uint32_t)_i}; /* 3: none is given */
    tls_rig_init(&rig, &server, &client, NULL);
    ck_assert_str_eq(tls_policy_connect(&rig, NULL), _i < 2 ? "CERTIFICATE" : "NONE");
    builder_fini(&chain);
    certificate_free(&upper);
    certificate_free(&lower);
    tls_rig_fini(&rig);
}
END_TEST

/* -- what a peer may not do ------------------------------------------------------------------------------ */

/* Carries what a client of OpenSSL's own says to rig.b, and back. */
static void tls_policy_carry(struct tls_rig *rig, BIO *in, BIO *out)
{
    char *bytes;
    long count = BIO_get_mem_data(out, &bytes);
    if (count > 0) {
        tls_rig_write(&rig->a, cy_bytes_of(bytes, (size_t)count));
        tls_rig_turn_until_written(rig, &rig->a);
        (void)BIO_reset(out);
    }
    tls_rig_turns(rig, 3);
    if (rig->a.received.count) BIO_write(in, rig->a.received.data, (int)rig->a.received.count);
    builder_clear(&rig->a.received);
}

/* TLS 1.2, a client of OpenSSL's that wants to negotiate anew in the middle. */
START_TEST(test_renegotiation_is_refused)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    SSL *ssl = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    tls_policy_replace_client(&rig);
    rig.a.keep_reading = true;
    tls_rig_read(&rig.a);
    for (int i = 0; i < 10 && SSL_do_handshake(ssl) != 1; i++) tls_policy_carry(&rig, in, out);
    ck_assert(SSL_is_init_finished(ssl) && rig.b.is_ready && !cy_failed(rig.b.ready_err));
    tls_rig_read(&rig.b);
    ck_assert_int_eq(SSL_renegotiate(ssl), 1);
    for (int i = 0; i < 10 && SSL_do_handshake(ssl) != 1 && !ERR_peek_error(); i++)
        tls_policy_carry(&rig, in, out);
    ck_assert_int_eq(ERR_GET_REASON(ERR_peek_error()), SSL_R_NO_RENEGOTIATION);
    ERR_clear_error();
    ck_assert_uint_eq(rig.b.received.count, 0);
    SSL_free(ssl);
    SSL_CTX_free(context);
    tls_rig_fini(&rig);
}
END_TEST

Suite *unit_suite_net_tls_policy(void);
Suite *unit_suite_net_tls_policy(void)
{
    Suite *suite = suite_create("net/tls_policy");
    TCase *tests = tcase_create("policy");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_names_that_a_certificate_is_for, 0, 8);
    tcase_add_loop_test(tests, test_dates_and_authorities, 0, 4);
    tcase_add_test(tests, test_a_client_that_verifies_nothing_takes_anything);
    tcase_add_loop_test(tests, test_a_revoked_server_is_refused, 0, 2);
    tcase_add_loop_test(tests, test_client_certificates, 0, 18);
    tcase_add_loop_test(tests, test_versions, 0, 4);
    tcase_add_loop_test(tests, test_alpn, 0, 5);
    tcase_add_loop_test(tests, test_the_name_chooses_the_certificate, 0, 8);
    tcase_add_test(tests, test_two_kinds_of_key_for_one_name);
    tcase_add_loop_test(tests, test_ocsp_staple, 0, 4);
    tcase_add_test(tests, test_each_kind_of_key_has_its_own_staple);
    tcase_add_loop_test(tests, test_sessions_are_resumed_by_any_worker_under_the_same_policy, 0, 2);
    tcase_add_test(tests, test_what_clients_have_to_show_is_compared);
    tcase_add_test(tests, test_ticket_keys_change_by_the_hour);
    tcase_add_test(tests, test_bad_files_are_named);
    tcase_add_test(tests, test_a_file_past_the_limit_is_not_looked_at);
    tcase_add_test(tests, test_a_server_needs_certificates_and_client_certificates_an_authority);
    tcase_add_loop_test(tests, test_depth, 0, 4);
    tcase_add_test(tests, test_renegotiation_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
