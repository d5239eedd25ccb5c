/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls_internal.h: what the files tls*.c share.
 */
#ifndef CY_NET_TLS_INTERNAL_H
#define CY_NET_TLS_INTERNAL_H

#include "vm/base/limits.h"
#include "vm/net/tls.h"

#include <openssl/ssl.h>

static inline unsigned tls_depth(bool given, uint32_t depth) { return given ? depth : LIMIT_TLS_DEPTH; }

#define TLS_RECORD_BYTES 16384 /* of plain bytes, RFC 8446 section 5.1 */

/* -- tls_bio.c: how OpenSSL reads and writes ------------------------------------------------------------------- */

/* Ciphertext on its way in and out. */
struct tls_pipe {
    struct buffer_pool *buffers;
    struct buffer *input; /* received, not yet taken; NULL rather than empty */
    bool input_ended;
    bool output_bulk; /* much is to come: large buffers */
    bool failed;      /* no memory */
    struct buffer *output_first, *output_last;
    size_t output_bytes;
};
CY_NODISCARD BIO_METHOD *tls_bio_method_new(void);
/* Both directions of `ssl` go through `pipe`. */
CY_NODISCARD cy_err tls_bio_attach(SSL *ssl, BIO_METHOD *method, struct tls_pipe *pipe);
void tls_buffers_unref(struct buffer **first); /* a list of them */

/* -- tls_error.c ----------------------------------------------------------------------------------------------- */

/* What OpenSSL says it is; empties its queue. `ssl` may be NULL. */
CY_NODISCARD cy_err tls_error_take(SSL *ssl);
/* The newest entry of OpenSSL's queue, in its words; empties it. */
cy_err tls_error_text(struct builder *text, cy_err otherwise);
/* NO_MEMORY when one of OpenSSL's errors that wait says so, else `otherwise`. Forgets them. */
cy_err tls_error_or_memory(cy_err otherwise);

/* -- tls_load.c: files to OpenSSL's objects -------------------------------------------------------------------- */

CY_NODISCARD cy_err tls_load_context(bool is_server, enum tls_version version_min,
                                     enum tls_version version_max, SSL_CTX **context_out,
                                     struct builder *fault);
CY_NODISCARD cy_err tls_load_check_size(const struct tls_file *file, struct builder *fault);
/* Certificate, chain and key; they must belong together. */
CY_NODISCARD cy_err tls_load_pair(SSL_CTX *context, const struct tls_file *chain, const struct tls_file *key,
                                  struct builder *fault);
/* Authorities and revocations. `names_too`: servers tell their clients which authorities they would take. */
CY_NODISCARD cy_err tls_load_trust(SSL_CTX *context, const struct tls_file *ca, const struct tls_file *crl,
                                   bool names_too, struct builder *fault);

/* -- tls_stream.c: who was at work last ------------------------------------------------------------------------ */

/* OpenSSL's two record buffers of a connection are 33 KiB. Those that were used last keep theirs, so that a busy
 * connection takes no memory per record; the others give theirs back, so that an idle one holds none. One list for
 * each server and client. */
struct tls_stream;
struct tls_warm {
    struct tls_stream *newest, *oldest;
    uint32_t count;
};
/* For tests: what was agreed on, "TLSv1.3", once ready. */
const char *tls_stream_version(struct stream *stream);

/* -- tls_server.c ---------------------------------------------------------------------------------------------- */

SSL *tls_server_ssl(struct tls_server *server);
/* What it speaks; `alpn` stays as long as `ssl`. */
void tls_server_offer(SSL *ssl, cy_bytes *alpn);
BIO_METHOD *tls_server_method(struct tls_server *server);
bool tls_server_has_tickets(const struct tls_server *server);
struct tls_warm *tls_server_warm(struct tls_server *server);

/* -- tls_ticket.c ---------------------------------------------------------------------------------------------- */

struct tls_ticket_key {
    int64_t period; /* -1: none */
    uint8_t name[16], cipher[32], digest[32];
};
struct tls_tickets {
    uint8_t seed[TLS_SEED_BYTES];
    struct tls_ticket_key keys[3]; /* by period % 3 */
};
void tls_tickets_init(struct tls_tickets *tickets, const uint8_t *seed);
void tls_tickets_fini(struct tls_tickets *tickets);
/* `tickets` stay as long as the context. */
void tls_tickets_attach(struct tls_tickets *tickets, SSL_CTX *context);
/* For tests: the key of that hour. NULL when it cannot be made. */
const struct tls_ticket_key *tls_tickets_key(struct tls_tickets *tickets, int64_t period);

/* -- tls_client.c ---------------------------------------------------------------------------------------------- */

SSL *tls_target_ssl(struct tls_target *target);
BIO_METHOD *tls_target_method(struct tls_target *target);
struct tls_warm *tls_target_warm(struct tls_target *target);

#endif
