/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2.h: what the rest of vm/http sees of HTTP/2: a server's connections, and a client's.
 *
 * Not here: nghttp2, which only h2_*.c and their own headers include.
 */
#ifndef CY_HTTP_H2_H
#define CY_HTTP_H2_H

#include "vm/http/client_internal.h"
#include "vm/http/server_internal.h"

/* What a client with prior knowledge sends first (RFC 9113 section 3.4). */
#define H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* -- h2_server.c -- */
/* A connection on which HTTP/2 was agreed, or whose preface was seen and pushed back. Takes the stream. `before`: as
 * what it was listed until now. */
void h2_server_start(struct http_server *server, const struct server_connection *before,
                     struct stream *owned_stream);
/* With the server's memory: its connections have gone. */
void h2_server_fini(struct http_server *server);

/* -- h2_client.c -- */
/* A stream on a connection that is there and has room; NULL when there is none. */
struct upstream_carrier *h2_client_take(struct http_pool *pool, void *owner,
                                        const struct upstream_events *events);
/* A new connection, and its first stream, without an owner yet. Takes the connection's stream, also on failure. */
CY_NODISCARD cy_err h2_client_add(struct http_pool *pool, struct stream *owned_stream,
                                  struct upstream_carrier **carrier_out);
/* Of the pool's connections without streams the one that has been so longest; false: there is none. `close` closes it
 * and may take the pool along; else `due_ms_out` says when its time is over. */
bool h2_client_oldest_idle(struct http_pool *pool, bool close, uint64_t *due_ms_out);
/* Closes connections without streams: all of the pool's when the client goes. */
void h2_client_close_idle(struct http_pool *pool);
void h2_client_fini(struct http_client *client);

#endif
