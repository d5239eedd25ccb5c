/* SPDX-License-Identifier: MIT
 *
 * vm/http/connector.c: from a pool's host and port to a connection: look-up, then one address after the
 * other.
 *
 *   start ─► numeric ────────────────► connect ─ok─► TLS, where asked for ─ok─► done(connection)
 *     └────► name ─► look-up ─► address 0 ─┘ │failed or late  │
 *                      └failed─► done(err)   └► next address, none left: done(err)
 *
 * The whole may last timeout_ms; each address gets an equal share of what is left, so that one that
 * swallows packets leaves time for the next.
 * Where a connection carries many requests (HTTP/2) one connector makes it, and the others wait for a stream on it:
 * when that one is full the next of them makes another one.
 * Invariant: `done` is never called from inside connector_start. A cancelled connector lives until the loop
 *       has completed its connect.
 */
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/http/client_internal.h"
#include "vm/http/h2.h"

static void connector_try_next(struct http_connector *connector);
static void connector_on_waited(struct http_connector *connector);

static struct loop *connector_loop(const struct http_connector *connector)
{
    return connector->pool->client->options.loop;
}

static void connector_release(struct http_connector *connector)
{
    struct http_client *client = connector->pool->client;
    DCHECK(!connector->connecting && !connector->resolving && !connector->preparing);
    loop_timer_clear(client->options.loop, &connector->timer);
    pool_unref(&connector->pool);
    spare_put(&client->spare_connectors, connector);
    client_release(client);
}

static void connector_hand_out(struct http_connector *connector, struct upstream_carrier *carrier, cy_err err)
{
    void *owner = connector->owner;
    void (*done)(void *, struct upstream_carrier *, cy_err) = connector->done;
    connector_release(connector);
    done(owner, carrier, err);
}

static void connector_unlink_waiting(struct http_connector *connector)
{
    struct http_pool *pool = connector->pool;
    struct http_connector *before = NULL;
    for (struct http_connector *other = pool->waiting_first; other != connector; other = other->next)
        before = other;
    if (before)
        before->next = connector->next;
    else
        pool->waiting_first = connector->next;
    if (pool->waiting_last == connector) pool->waiting_last = before;
    connector->waiting = false;
}

/* Nobody makes a connection any more: the next one shall, from its timer. */
static void connector_wake_waiting(struct http_pool *pool)
{
    if (pool->waiting_first) loop_timer_set(pool->client->options.loop, &pool->waiting_first->timer, 0);
}

/* The connection is there, or cannot be made: that goes for those who wait, too. */
static void connector_serve_waiting(struct http_pool *pool, cy_err err)
{
    while (pool->waiting_first && !pool->connecting) {
        struct http_connector *connector = pool->waiting_first;
        struct upstream_carrier *carrier = cy_failed(err) ? NULL : h2_client_take(pool, NULL, NULL);
        if (!carrier && !cy_failed(err)) {
            connector_wake_waiting(pool);
            return;
        }
        connector_unlink_waiting(connector);
        connector_hand_out(connector, carrier, err);
    }
}

static void connector_finish(struct http_connector *connector, struct upstream_carrier *carrier, cy_err err)
{
    struct http_pool *pool = connector->pool;
    if (CY_LIKELY(pool->connecting != connector)) {
        connector_hand_out(connector, carrier, err);
        return;
    }
    pool->connecting = NULL;
    pool_ref(pool);
    connector_hand_out(connector, carrier, err);
    connector_serve_waiting(pool, err);
    pool_unref(&pool);
}

/* HTTP/2 over TLS is agreed on, never assumed (RFC 9113 section 3.2): a server that knows no ALPN agrees on nothing. */
static cy_err connector_judge(const struct http_connector *connector, struct stream *stream, cy_err err)
{
    if (!stream) return CY_ERR(TIMEOUT);
    if (cy_failed(err) || !connector->pool->speaks_h2) return err;
    return cy_bytes_equal(stream_info(stream)->alpn, CY_BYTES("h2")) ? CY_OK : CY_ERR(TLS_NO_PROTOCOL);
}

static void connector_on_ready(struct stream_ready *ready)
{
    struct http_connector *connector = CY_CONTAINER_OF(ready, struct http_connector, ready);
    struct stream *stream = connector->stream; /* NULL: our timer closed it, or the owner is gone */
    connector->preparing = false;
    connector->stream = NULL;
    if (!connector->owner) {
        stream_close(&stream);
        connector_release(connector);
        return;
    }
    cy_err err = connector_judge(connector, stream, ready->err);
    if (cy_failed(err)) {
        connector->err = err;
        stream_close(&stream);
        connector_try_next(connector);
        return;
    }
    struct upstream_carrier *carrier = NULL;
    err = pool_add(connector->pool, stream, &carrier);
    connector_finish(connector, carrier, err);
}

/* Connected: the handshake, where there is one. */
static void connector_prepare(struct http_connector *connector)
{
    struct upstream_carrier *carrier = NULL;
    struct stream *stream;
    cy_err err = stream_tcp_new(connector_loop(connector), connector->connect.socket, &stream);
    if (!cy_failed(err) && connector->pool->tls) {
        err = tls_target_stream(connector->pool->tls, stream, &connector->stream);
        if (!cy_failed(err)) {
            connector->preparing = true;
            connector->ready.done = connector_on_ready;
            stream_ready_start(connector->stream, &connector->ready);
            return;
        }
    }
    if (!cy_failed(err)) err = pool_add(connector->pool, stream, &carrier);
    connector_finish(connector, carrier, err);
}

static void connector_on_connected(struct loop_op *op)
{
    struct loop_connect *connect = CY_CONTAINER_OF(op, struct loop_connect, op);
    struct http_connector *connector = CY_CONTAINER_OF(connect, struct http_connector, connect);
    connector->connecting = false;
    if (!connector->owner) {
        if (!cy_failed(op->err)) loop_socket_close(&connect->socket);
        connector_release(connector);
        return;
    }
    if (cy_failed(op->err)) {
        /* Only our own timer cancels a connect that has an owner. */
        connector->err = cy_is(op->err, CY_ERR_CANCELLED) ? CY_ERR(TIMEOUT) : op->err;
        /* No descriptor: what idles towards others goes for it, and this address is tried again. */
        if (cy_is(op->err, CY_ERR_TOO_MANY) && pool_make_room(connector->pool->client, 1))
            connector->address_index--;
        connector_try_next(connector);
        return;
    }
    connector_prepare(connector);
}

static uint32_t connector_share_ms(const struct http_connector *connector)
{
    uint64_t now_ms = loop_now_ms(connector_loop(connector));
    if (now_ms >= connector->deadline_ms) return 0;
    uint32_t addresses_left = connector->query.address_count - connector->address_index;
    return (uint32_t)((connector->deadline_ms - now_ms) / addresses_left) + 1;
}

static void connector_try_next(struct http_connector *connector)
{
    uint32_t share_ms = 0;
    if (connector->address_index < connector->query.address_count) share_ms = connector_share_ms(connector);
    if (share_ms == 0) {
        connector_finish(connector, NULL, connector->err);
        return;
    }
    struct address *address = &connector->query.addresses[connector->address_index++];
    address_set_port(address, connector->pool->port);
    connector->connecting = true;
    connector->connect.op.done = connector_on_connected;
    loop_timer_set(connector_loop(connector), &connector->timer, share_ms);
    loop_connect(connector_loop(connector), address, &connector->connect);
}

static void connector_on_timer(struct timer *timer)
{
    struct http_connector *connector = CY_CONTAINER_OF(timer, struct http_connector, timer);
    if (connector->waiting) {
        connector_on_waited(connector);
        return;
    }
    if (connector->connecting) {
        loop_connect_cancel(connector_loop(connector), &connector->connect);
        return;
    }
    if (connector->preparing) {
        stream_close(&connector->stream); /* `ready` completes and goes on to the next address */
        return;
    }
    if (!connector->resolving) return;
    dns_cancel(&connector->query);
    connector->resolving = false;
    connector_finish(connector, NULL, CY_ERR(TIMEOUT));
}

static void connector_on_resolved(struct dns_query *query)
{
    struct http_connector *connector = CY_CONTAINER_OF(query, struct http_connector, query);
    connector->resolving = false;
    if (cy_failed(query->err)) {
        connector_finish(connector, NULL, query->err);
        return;
    }
    connector_try_next(connector);
}

static cy_err connector_resolve(struct http_connector *connector, uint32_t timeout_ms)
{
    struct http_client_options *options = &connector->pool->client->options;
    if (!options->dns) return CY_ERR(UNSUPPORTED);
    if (!*options->dns) CY_TRY(dns_new(options->loop, options->dns));
    connector->resolving = true;
    connector->query.done = connector_on_resolved;
    loop_timer_set(options->loop, &connector->timer, timeout_ms);
    dns_resolve(*options->dns, connector->pool->host, &connector->query);
    return CY_OK;
}

/* On failure the connector is still the caller's. */
static cy_err connector_begin(struct http_connector *connector)
{
    struct http_pool *pool = connector->pool;
    if (!pool->is_numeric) {
        uint64_t now_ms = loop_now_ms(connector_loop(connector));
        CY_TRY(connector_resolve(
            connector, connector->deadline_ms > now_ms ? (uint32_t)(connector->deadline_ms - now_ms) : 0));
        if (pool->speaks_h2) pool->connecting = connector;
        return CY_OK;
    }
    if (pool->speaks_h2) pool->connecting = connector;
    connector->query.addresses[0] = pool->numeric;
    connector->query.address_count = 1;
    connector_try_next(connector);
    return CY_OK;
}

static void connector_wait(struct http_connector *connector)
{
    struct http_pool *pool = connector->pool;
    connector->waiting = true;
    if (pool->waiting_first)
        pool->waiting_last->next = connector;
    else
        pool->waiting_first = connector;
    pool->waiting_last = connector;
    uint64_t now_ms = loop_now_ms(connector_loop(connector));
    loop_timer_set(connector_loop(connector), &connector->timer,
                   connector->deadline_ms > now_ms ? connector->deadline_ms - now_ms : 0);
}

/* Its time is over, or it was woken to make the connection itself. */
static void connector_on_waited(struct http_connector *connector)
{
    bool late = loop_now_ms(connector_loop(connector)) >= connector->deadline_ms;
    connector_unlink_waiting(connector);
    connector->next = NULL;
    if (!late && connector->pool->connecting) {
        connector_wait(connector);
        return;
    }
    cy_err err = late ? CY_ERR(TIMEOUT) : connector_begin(connector);
    if (cy_failed(err)) {
        connector_wake_waiting(connector->pool);
        connector_hand_out(connector, NULL, err);
    }
}

cy_err connector_start(struct http_pool *pool, uint32_t timeout_ms, void *owner,
                       void (*done)(void *owner, struct upstream_carrier *carrier, cy_err err),
                       struct http_connector **connector_out)
{
    CHECK(owner != NULL);
    struct http_client *client = pool->client;
    struct http_connector *connector = spare_take(&client->spare_connectors);
    if (!connector) connector = mem_alloc(sizeof *connector);
    if (!connector) return CY_ERR(NO_MEMORY);
    memset(connector, 0, sizeof *connector);
    client->live_count++;
    connector->pool = pool_ref(pool);
    connector->owner = owner;
    connector->done = done;
    connector->timer.fire = connector_on_timer;
    connector->deadline_ms = loop_now_ms(client->options.loop) + timeout_ms;
    connector->err = CY_ERR(TIMEOUT);
    cy_err err = CY_OK;
    if (pool->speaks_h2 && pool->connecting)
        connector_wait(connector);
    else
        err = connector_begin(connector);
    if (cy_failed(err)) {
        connector_release(connector);
        return err;
    }
    *connector_out = connector;
    return CY_OK;
}

void connector_cancel(struct http_connector **connector_pointer)
{
    struct http_connector *connector = *connector_pointer;
    *connector_pointer = NULL;
    connector->owner = NULL;
    loop_timer_clear(connector_loop(connector), &connector->timer);
    if (connector->waiting) connector_unlink_waiting(connector);
    if (connector->pool->connecting == connector) {
        connector->pool->connecting = NULL;
        connector_wake_waiting(connector->pool);
    }
    if (connector->resolving) {
        dns_cancel(&connector->query);
        connector->resolving = false;
    }
    if (connector->preparing) {
        stream_close(&connector->stream); /* `ready` completes and frees */
        return;
    }
    if (!connector->connecting) {
        connector_release(connector);
        return;
    }
    loop_connect_cancel(connector_loop(connector), &connector->connect);
}
