/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls.h: TLS 1.2 and 1.3 over any stream, on both sides.
 *
 *   tls_server (certificates, policy) ──┐
 *                                       ├─► tls_stream ─► struct stream: ready is the end of the handshake
 *   tls_client (policy) ─► tls_target ──┘
 *
 * In:   certificates, keys and policy as bytes; a stream that carries ciphertext. Out: a stream of plain bytes.
 * Ownership: servers, clients and targets are counted; a running connection keeps the one that it began with, so that
 *       a reload swaps certificates without touching it.
 * Invariant: nothing here opens a file, except the system's authorities (tls_client_options.use_system). OpenSSL's
 *       queue of errors is empty after every call.
 * Ends: a read completes with NULL and OK after the peer's close_notify only. An end without it is TLS_TRUNCATED: what
 *       has no length of its own is then not complete.
 */
#ifndef CY_NET_TLS_H
#define CY_NET_TLS_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/net/stream.h"

struct tls_server;
struct tls_client;
struct tls_target;

enum { TLS_SEED_BYTES = 32, TLS_DIGEST_BYTES = 32 };

/* Bytes, and where they are from, for messages. */
struct tls_file {
    cy_bytes path;
    cy_bytes content; /* empty: there is none */
};
enum tls_version { TLS_VERSION_DEFAULT, TLS_VERSION_1_2, TLS_VERSION_1_3 };

/* -- the server's side ------------------------------------------------------------------------------------- */

struct tls_certificate {
    struct tls_file chain; /* PEM: the certificate, then those between it and its authority */
    struct tls_file key;   /* PEM, not encrypted */
    /* DER: an answer about this certificate, by serial number and issuer, to staple while it is good. The issuer's key
     * is looked at when `chain` has the issuer, else only its name. */
    struct tls_file ocsp;
};
enum tls_client_certificate {
    TLS_CLIENT_CERTIFICATE_OFF,
    TLS_CLIENT_CERTIFICATE_OPTIONAL,
    TLS_CLIENT_CERTIFICATE_REQUIRED
};
struct tls_server_options {
    /* The first one also answers clients that name nobody, or somebody else. */
    const struct tls_certificate *certificates;
    uint32_t certificate_count;
    enum tls_version version_min, version_max; /* 1.2 and 1.3 */
    enum tls_client_certificate client_certificate;
    struct tls_file client_ca;  /* PEM; must be there when client certificates are not off */
    struct tls_file client_crl; /* PEM; empty: nothing is looked up */
    bool has_client_depth;      /* else LIMIT_TLS_DEPTH */
    uint32_t client_depth;      /* of certificates between the client's and its authority; 0: none may be */
    /* TLS_SEED_BYTES that all workers share: what keys of session tickets are made of. NULL: no tickets. */
    const uint8_t *ticket_seed;
    uint32_t *failed_index; /* NULL, or gets which certificate is at fault; untouched when none is */
};
/* On failure `fault` has a text for people: the file and what is wrong with it. */
CY_NODISCARD cy_err tls_server_new(const struct tls_server_options *options, struct tls_server **server_out,
                                   struct builder *fault);
struct tls_server *tls_server_ref(struct tls_server *server);
void tls_server_unref(struct tls_server **server);
/* Whether clients have to show the same to both (certificates, authorities, revocations): what one let in, the other
 * would too. NULL: plain, which asks for nothing, and for no TLS either. */
bool tls_server_asks_the_same(const struct tls_server *a, const struct tls_server *b);
/* Does a certificate of ours carry this name (lower case, no dot at its end)? */
bool tls_server_has_name(const struct tls_server *server, cy_bytes name);

/* Takes the transport, also on failure. It must be ready. The handshake begins with stream_ready_start.
 * `alpn`: the protocols that are spoken on this stream, lengths and names, ours first (RFC 7301); borrowed as long as
 * the stream lives; empty: none is agreed on. */
CY_NODISCARD cy_err tls_server_stream(struct tls_server *server, cy_bytes alpn,
                                      struct stream *owned_transport, struct stream **stream_out);

/* -- the client's side ------------------------------------------------------------------------------------- */

struct tls_client_options {
    bool use_system;     /* trust what the system trusts */
    struct tls_file ca;  /* PEM, in addition */
    struct tls_file crl; /* PEM */
    bool unverified;     /* takes any certificate: for tests and closed networks */
    bool full_only;      /* resumes no session: every handshake is a whole one */
    bool has_depth;      /* else LIMIT_TLS_DEPTH */
    uint32_t depth;      /* of certificates between the server's and its authority; 0: none may be */
    struct tls_file certificate, key; /* of our own; empty: none */
    enum tls_version version_min, version_max;
};
CY_NODISCARD cy_err tls_client_new(const struct tls_client_options *options, struct tls_client **client_out,
                                   struct builder *fault);
struct tls_client *tls_client_ref(struct tls_client *client);
void tls_client_unref(struct tls_client **client);

/* A server as that client sees it: the name it must have (a host name or an IP address, in text), the protocols it is
 * asked for (`alpn` as above, copied), and the session to resume. One for each pool of connections. */
CY_NODISCARD cy_err tls_target_new(struct tls_client *client, cy_bytes name, cy_bytes alpn,
                                   struct tls_target **target_out);
/* Is it the one that tls_target_new would make of these, whatever the protocols? */
bool tls_target_is(const struct tls_target *target, const struct tls_client *client, cy_bytes name);
struct tls_target *tls_target_ref(struct tls_target *target);
void tls_target_unref(struct tls_target **target);
CY_NODISCARD cy_err tls_target_stream(struct tls_target *target, struct stream *owned_transport,
                                      struct stream **stream_out);

/* -- of a stream made here, once ready ------------------------------------------------------------------------- */

bool tls_stream_resumed(struct stream *stream);

#endif
