/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/tls_rig.h: a TLS server and a TLS client at the two ends of a loopback pair.
 */
#ifndef CY_TESTS_TLS_RIG_H
#define CY_TESTS_TLS_RIG_H

#include "tests/support/loopback.h"
#include "tests/unit/net/certificates.h"
#include "tests/unit/net/loop_rig.h"
#include "vm/net/tls.h"

/* One end: what it was sent, and how its operations ended. */
struct tls_rig_end {
    struct stream *stream;
    struct stream_ready ready;
    struct stream_read read;
    struct stream_write write;
    struct builder received;
    cy_err ready_err, read_err, write_err;
    size_t written_bytes; /* of the last write */
    bool is_ready, reading, writing, ended, keep_reading;
    struct stream *below; /* the loopback end, borrowed */
};
struct tls_rig {
    struct loop *loop;
    struct certificate *authority, *certificate;
    struct tls_server *server;
    struct tls_client *client;
    struct tls_target *target;
    cy_bytes server_alpn, client_alpn; /* set before tls_rig_init */
    struct tls_rig_end a, b;           /* a: the client */
};

/* An authority "ca" and a certificate for name.test, *.wild.test and 127.0.0.1; a client that trusts it and wants
 * name.test. NULL options: those. */
void tls_rig_init(struct tls_rig *rig, const struct tls_server_options *server,
                  const struct tls_client_options *client, const char *name);
void tls_rig_fini(struct tls_rig *rig);
/* A new connection (the one before must be closed); reads give at most `read_bytes_max` ciphertext (0: a buffer). */
void tls_rig_connect(struct tls_rig *rig, size_t read_bytes_max);
/* Turns until both ends are ready, or failed. */
void tls_rig_handshake(struct tls_rig *rig);
void tls_rig_close(struct tls_rig *rig);
void tls_rig_turns(struct tls_rig *rig, int count);

void tls_rig_read(struct tls_rig_end *end); /* goes on until the end or a failure when keep_reading is set */
void tls_rig_write(struct tls_rig_end *end, cy_bytes bytes);
void tls_rig_turn_until_written(struct tls_rig *rig, struct tls_rig_end *end);
void tls_rig_turn_until_received(struct tls_rig *rig, struct tls_rig_end *end, size_t bytes);
void tls_rig_turn_until_read(struct tls_rig *rig, struct tls_rig_end *end); /* no read is outstanding */

#endif
