/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_world.h: a server that is asked over HTTP/2, for the tests of it: /N is answered with N bytes,
 * /204 and /304 with that status, /wait by the test itself.
 */
#ifndef CY_TESTS_UNIT_HTTP_H2_WORLD_H
#define CY_TESTS_UNIT_HTTP_H2_WORLD_H

#include "tests/unit/http/h2_peer.h"
#include "vm/http/server.h"
#include "vm/net/tls.h"

#define H2_WORLD_WAITING_MAX 1024

struct h2_world {
    struct loop *loop;
    struct log log;
    struct http_server *server;
    struct h2_peer peer;
    struct http_exchange *waiting[H2_WORLD_WAITING_MAX]; /* requests for /wait */
    unsigned request_count, gone_count, waiting_count;
    struct builder seen; /* of the last request: method, host, path, fields */
    uint8_t *body;
    struct http_verdict *verdict; /* answers everything, when there is one */
    struct tls_server *tls;       /* NULL: no connection was over TLS yet */
    struct tls_target *target;
    struct stream_ready ready; /* of the peer's end */
    bool drained;
};

#define H2_WORLD_BODY_BYTES 300000
#define H2_WORLD_GET ":method: GET\n:scheme: http\n:authority: a\n:path: /1\n"
#define H2_WORLD_POST ":method: POST\n:scheme: http\n:authority: a\n:path: /wait\n"

/* With one connection, `peer`. `loop` NULL: one of its own. */
void h2_world_open(struct h2_world *world, struct loop *owned_loop, const struct http_server_options *times);
/* A connection in place of the one that was closed. `info` NULL: a plain stream. */
void h2_world_connect(struct h2_world *world, const struct stream_info *info, size_t read_bytes_max);
/* The same over TLS, for a.example. */
void h2_world_connect_tls(struct h2_world *world, size_t read_bytes_max);
void h2_world_close(struct h2_world *world);
void h2_world_respond(struct h2_world *world, struct http_exchange *exchange, uint16_t status, size_t bytes);
void h2_world_on_drained(void *context);

#endif
