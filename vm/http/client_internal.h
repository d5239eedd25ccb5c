/* SPDX-License-Identifier: MIT
 *
 * vm/http/client_internal.h: upstreams, pools, connections to servers, and how one is made. For vm/http only.
 *
 *   upstream ──► pool (host, port) ──► idle connections, last in first out
 *                     ▲ connector: name ─► addresses in turn ─► connection ─► owner ─► pool or close
 *
 * A connection keeps one read outstanding from its first day: it costs no call, tells at once when the server
 * hangs up an idle connection, and becomes the read of the next response.
 */
#ifndef CY_HTTP_CLIENT_INTERNAL_H
#define CY_HTTP_CLIENT_INTERNAL_H

#include "vm/http/client.h"
#include "vm/http/relay.h"
#include "vm/net/dns.h"

#define CLIENT_POOL_BUCKETS 256

struct http_pool;
struct upstream_connection;

struct http_client {
    struct http_client_options options; /* with the defaults filled in */
    struct http_pool *buckets[CLIENT_POOL_BUCKETS];
    struct upstream_connection *free_connections;
    struct http_connector *free_connectors;
    uint32_t live_count; /* pools, and connections and connectors whose completions may still come */
    bool freed;          /* by its owner: memory goes with the last completion */
};

struct http_pool {
    struct http_pool *next; /* in its bucket */
    struct http_client *client;
    uint32_t refs; /* upstreams, connections, connectors */
    struct upstream_connection *idle_newest, *idle_oldest;
    uint32_t idle_count;
    bool is_numeric;
    struct address numeric; /* with the port */
    uint16_t port;
    uint8_t bucket;
    cy_bytes host; /* without brackets; NUL behind it */
    cy_bytes text; /* "host:port" */
};

struct upstream {
    uint32_t refs;
    struct http_pool *pool;
    cy_bytes base_path; /* "/api", without a slash at its end; may be empty */
    cy_bytes authority; /* for Host when the client sent none: without the port when it is 80 */
};

/* What the owner of a connection is told. */
struct upstream_events {
    void (*on_read)(void *owner, struct buffer *owned_buffer, cy_err err); /* NULL and OK: the server's end */
    void (*on_written)(void *owner, cy_err err, size_t sent_bytes);
    void (*on_timeout)(void *owner);
};

struct upstream_connection {
    struct upstream_connection *next, *previous; /* pool's idle list (next is older), or free list */
    struct http_pool *pool;
    struct stream *stream; /* NULL: closed, completions may still come */
    void *owner;           /* NULL: idle */
    const struct upstream_events *events;
    struct stream_read read;
    struct stream_write write;
    struct relay_hold hold; /* what the write points at */
    struct timer timer;
    struct buffer *input; /* received, not yet consumed */
    bool reading, writing;
    bool used_before;
};

/* -- pool.c -- */
CY_NODISCARD cy_err pool_open(struct http_client *client, cy_bytes host, uint16_t port, bool is_v6,
                              struct http_pool **pool_out);
struct http_pool *pool_ref(struct http_pool *pool);
void pool_unref(struct http_pool **pool);
/* A quiet idle connection, owned by the caller from here on; NULL when there is none. */
struct upstream_connection *pool_take(struct http_pool *pool, void *owner,
                                      const struct upstream_events *events);

/* Takes the stream, also on failure. */
CY_NODISCARD cy_err upstream_connection_new(struct http_pool *pool, struct stream *owned_stream,
                                            struct upstream_connection **connection_out);
/* Starts the read if none is outstanding. */
void upstream_connection_read(struct upstream_connection *connection);
/* Sends write.send with what `hold` holds. */
void upstream_connection_write(struct upstream_connection *connection);
void upstream_connection_set_timer(struct upstream_connection *connection, uint32_t after_ms);
/* Gives it back for reuse, for at most `keep_ms`; closes it where the pool is full or something is unread. */
void upstream_connection_keep(struct upstream_connection **connection, uint32_t keep_ms);
/* Its memory goes when the last completion has come; the owner is not called any more. */
void upstream_connection_close(struct upstream_connection **connection);

/* -- connector.c -- */
struct http_connector {
    struct http_connector *next;
    struct http_pool *pool;
    void *owner; /* NULL: cancelled */
    /* Once, from a later turn. `connection` is yours when err is OK. Not called after connector_cancel. */
    void (*done)(void *owner, struct upstream_connection *connection, cy_err err);
    struct timer timer;
    struct loop_connect connect;
    struct dns_query query;
    uint64_t deadline_ms;
    uint32_t address_index;
    cy_err err; /* of the last address tried */
    bool connecting, resolving;
};
CY_NODISCARD cy_err connector_start(struct http_pool *pool, void *owner,
                                    void (*done)(void *owner, struct upstream_connection *connection,
                                                 cy_err err),
                                    struct http_connector **connector_out);
void connector_cancel(struct http_connector **connector);

/* -- client.c -- */
void client_release(struct http_client *client); /* one live thing less */

#endif
