/* SPDX-License-Identifier: MIT
 *
 * vm/http/client_internal.h: upstreams, pools, what carries a request to a server, and how one is made. For vm/http
 * only.
 *
 *   upstream ──► pool (host, port, TLS policy) ──► idle connections, last in first out
 *                     ▲ connector: name ─► addresses in turn ─► TLS ─► connection ─► owner ─► pool or close
 *
 * A request's owner (proxy*.c) knows struct upstream_carrier only: an HTTP/1 connection (pool.c) or an HTTP/2
 * stream (h2_client.c). As in carrier.h, what happens for every request is a field, what differs between protocols a
 * call.
 *
 * An HTTP/1 connection keeps one read outstanding from its first day: it costs no call, tells at once when the server
 * hangs up an idle connection, and becomes the read of the next response.
 */
#ifndef CY_HTTP_CLIENT_INTERNAL_H
#define CY_HTTP_CLIENT_INTERNAL_H

#include "vm/base/spare.h"
#include "vm/http/client.h"
#include "vm/http/h1.h"
#include "vm/http/head_write.h"
#include "vm/http/relay.h"
#include "vm/net/dns.h"
#include "vm/net/tls.h"

#define CLIENT_POOL_BUCKETS 256

struct http_pool;
struct upstream_connection;
struct h2_client;
struct h2_client_connection;

struct http_client {
    struct http_client_options options; /* with the defaults filled in */
    struct http_pool *buckets[CLIENT_POOL_BUCKETS];
    struct spare_list spare_connections, spare_connectors;
    struct h2_client *h2;            /* NULL: nobody has spoken HTTP/2 yet */
    struct tls_client *system_trust; /* made for the first https upstream without a policy of its own */
    uint32_t idle_count;             /* HTTP/1 connections in its pools */
    uint32_t live_count; /* pools, and connections and connectors whose completions may still come */
    bool freed;          /* by its owner: memory goes with the last completion */
};

struct http_pool {
    struct http_pool *next; /* in its bucket */
    struct http_client *client;
    uint32_t refs; /* upstreams, connections, connectors */
    struct upstream_connection *idle_newest, *idle_oldest;
    uint32_t idle_count;
    struct h2_client_connection *h2_newest;              /* with streams or without */
    struct http_connector *connecting;                   /* speaks_h2: the one that the others wait for */
    struct http_connector *waiting_first, *waiting_last; /* for a stream on what it makes */
    bool speaks_h2;                                      /* plain: with prior knowledge; TLS: agreed on */
    struct tls_target *tls;                              /* NULL: plain */
    bool is_numeric;
    struct address numeric; /* with the port */
    uint16_t port;
    uint8_t bucket;
    cy_bytes host; /* without brackets; NUL behind it */
    cy_bytes text; /* "host:port" */
};

struct upstream {
    uint32_t refs;
    uint8_t proxy_protocol; /* 1, 2; 0: none */
    struct http_pool *pool;
    cy_bytes base_path;      /* "/api", without a slash at its end; may be empty */
    struct http_times times; /* all but total_ms are set */
    cy_bytes authority;      /* for Host when the client sent none: without the port of the scheme */
};

/* What the owner of a carrier is told. */
struct upstream_events {
    void (*on_read)(void *owner, struct buffer *owned_buffer, cy_err err); /* NULL and OK: the server's end */
    void (*on_written)(void *owner, cy_err err, size_t sent_bytes);
    void (*on_timeout)(void *owner);
};

enum upstream_head { UPSTREAM_HEAD_MORE, UPSTREAM_HEAD_INTERIM, UPSTREAM_HEAD_FINAL, UPSTREAM_HEAD_FAULT };

struct upstream_carrier;
struct upstream_carrier_type {
    const char *name;
    bool (*takes_pipes)(const struct upstream_carrier *carrier); /* as exchange_carrier's */
    bool uses_chunks;    /* bodies whose length is not known beforehand */
    bool takes_trailers; /* without chunks: `trailer` is sent behind the request */
    /* A request begins; the fields of its answer go into `fields`, a table of LIMIT_HTTP_FIELDS. */
    void (*begin)(struct upstream_carrier *carrier, struct http_field *fields);
    /* The request's head, in this order. put_field NULL: the text form of HTTP/1. The target is base_path and
     * target. */
    void (*put_request)(struct upstream_carrier *carrier, struct head_writer *writer, cy_bytes method,
                        cy_bytes base_path, cy_bytes target, cy_bytes host);
    void (*put_field)(struct upstream_carrier *carrier, struct head_writer *writer, cy_bytes name,
                      cy_bytes value);
    void (*put_end)(struct upstream_carrier *carrier, struct head_writer *writer);
    /* As exchange_carrier's; on_written tells. Only where `uses_chunks` is false may a last write have no parts. */
    void (*write)(struct upstream_carrier *carrier, size_t head_bytes, bool last);
    void (*want_input)(struct upstream_carrier *carrier);
    /* Takes the answer's head off the input. INTERIM, FINAL: `response_out` is good until the next call, or until the
     * exchange lets the input's buffer go. FAULT: enum h1_fault in `fault_out`. */
    enum upstream_head (*read_head)(struct upstream_carrier *carrier, bool request_is_head,
                                    struct http_response *response_out, uint8_t *fault_out);
    /* No more is sent: the server sees the end of what was. `abort`: it must not take it for complete when the carrier
     * is closed. NULL: nothing but requests and answers goes over this one, no tunnel. */
    void (*shutdown)(struct upstream_carrier *carrier, bool abort);
    /* Gives it back, after a complete answer. `clean`: both sides ended as they should, so that it may serve again.
     * Clears the pointer; the owner is not called any more. */
    void (*release)(struct upstream_carrier **carrier, bool clean);
    /* The same in the middle of things. */
    void (*close)(struct upstream_carrier **carrier);
};

struct upstream_carrier {
    const struct upstream_carrier_type *type;
    const struct http_client_options *options;
    void *owner; /* NULL: idle */
    const struct upstream_events *events;
    struct buffer *input;   /* received, not yet consumed; NULL rather than empty */
    struct loop_send *send; /* parts of the next write */
    struct relay_hold hold; /* what they point at */
    /* As exchange_carrier's: of the answer, good at its end; of the request. */
    struct buffer *input_trailer, *trailer;
    struct timer timer;
    uint32_t pipe_bytes_max; /* as exchange_carrier's */
    uint32_t keep_alive_ms;  /* how long it may idle when it is given back; 0: as the options say */
    bool writing;
    bool used_before;
    bool unprocessed; /* with an error: the server has said that it did nothing of this request */
};

static inline void upstream_set_timer(struct upstream_carrier *carrier, uint32_t after_ms)
{
    loop_timer_set(carrier->options->loop, &carrier->timer, after_ms);
}
static inline void upstream_clear_timer(struct upstream_carrier *carrier)
{
    loop_timer_clear(carrier->options->loop, &carrier->timer);
}
static inline void upstream_put_field(struct upstream_carrier *carrier, struct head_writer *writer,
                                      cy_bytes name, cy_bytes value)
{
    if (CY_LIKELY(!carrier->type->put_field))
        head_put_field(writer, name, value);
    else
        carrier->type->put_field(carrier, writer, name, value);
}
static inline void upstream_drop_empty_input(struct upstream_carrier *carrier)
{
    if (carrier->input && carrier->input->begin == carrier->input->end) buffer_unref(&carrier->input);
}

/* The HTTP/1 carrier. */
struct upstream_connection {
    struct upstream_carrier carrier;             /* first: a carrier of type HTTP/1 is this one too */
    struct upstream_connection *next, *previous; /* pool's idle list (next is older) */
    struct http_pool *pool;
    struct stream *stream; /* NULL: closed, completions may still come */
    struct stream_read read;
    struct stream_write write;
    struct h1_head head;
    bool keep_alive; /* as the server's final answer said */
    uint32_t keep_alive_s;
    bool reading;
};

/* -- pool.c -- */
struct pool_server {
    cy_bytes host; /* without brackets */
    uint16_t port;
    bool is_v6;
    bool speaks_h2; /* as the pool's */
};
/* `trust` NULL: plain. */
CY_NODISCARD cy_err pool_open(struct http_client *client, const struct pool_server *server,
                              struct tls_client *trust, cy_bytes name, struct http_pool **pool_out);
struct http_pool *pool_ref(struct http_pool *pool);
void pool_unref(struct http_pool **pool);
/* A quiet idle connection, owned by the caller from here on; NULL when there is none. */
struct upstream_carrier *pool_take(struct http_pool *pool, void *owner, const struct upstream_events *events);
/* A new connection, without an owner yet. Takes the stream, also on failure. */
CY_NODISCARD cy_err pool_add(struct http_pool *pool, struct stream *owned_stream,
                             struct upstream_carrier **carrier_out);

/* Closes what is idle in it. The caller holds a reference. */
void pool_close_all_idle(struct http_pool *pool);
/* Descriptors ran out: closes those idle connections of the client's pools that would go first, at most `count`. Gives
 * their number; the log says so (rate limited). */
uint32_t pool_make_room(struct http_client *client, uint32_t count);

/* -- connector.c -- */
struct http_connector {
    struct http_connector *next; /* in pool->waiting_first */
    struct http_pool *pool;
    void *owner; /* NULL: cancelled */
    /* Once, from a later turn. `carrier` is yours when err is OK. Not called after connector_cancel. */
    void (*done)(void *owner, struct upstream_carrier *carrier, cy_err err);
    struct timer timer;
    struct loop_connect connect;
    struct dns_query query;
    struct stream *stream; /* while the handshake goes on */
    struct stream_ready ready;
    uint64_t deadline_ms;
    uint32_t address_index;
    cy_err err;                            /* of the last address tried */
    bool connecting, resolving, preparing; /* `connect`, `query`, `ready` are outstanding */
    bool waiting;                          /* in pool->waiting_first: another one makes the connection */
};
CY_NODISCARD cy_err connector_start(struct http_pool *pool, uint32_t timeout_ms, void *owner,
                                    void (*done)(void *owner, struct upstream_carrier *carrier, cy_err err),
                                    struct http_connector **connector_out);
void connector_cancel(struct http_connector **connector);

/* -- client.c -- */
/* What is set in `with` replaces. */
void http_times_override(struct http_times *times, const struct http_times *with);
void client_release(struct http_client *client); /* one live thing less */

#endif
