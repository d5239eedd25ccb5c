/* SPDX-License-Identifier: MIT
 *
 * vm/http/proxy.c: carries out a proxy verdict: the upstream's connection, the request's way to it, and
 * failures.
 *
 *   start ─► idle connection? ─yes─► send head (+ first body bytes) ─► pump body ─► request_sent
 *              └no─► connect ─────────┘                            the response's way: proxy_response.c
 *
 * Back-pressure: the client is read again only when what it sent before is with the kernel.
 * Retry: once, on a new connection, when a reused one died before any byte of an answer and sending again
 *       cannot do something twice: the request has no body, and it is idempotent or nothing of it had been
 *       sent.
 * Invariant: while `active`, exactly one of connector and connection is set, until the response has ended.
 */
#include "vm/base/check.h"
#include "vm/http/server_internal.h"

static void proxy_on_written(void *owner, cy_err err, size_t sent_bytes);
static void proxy_on_timeout(void *owner);

static const struct upstream_events proxy_events = {proxy_on_read, proxy_on_written, proxy_on_timeout};

/* -- failing --------------------------------------------------------------------------------------------- */

void proxy_cancel(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    if (proxy->connector) connector_cancel(&proxy->connector);
    if (proxy->connection) upstream_connection_close(&proxy->connection);
    relay_end(&proxy->response);
    proxy->active = false;
}

void proxy_fail(struct http_exchange *exchange, uint16_t status, const char *cause, cy_err err)
{
    struct http_connection *connection = exchange->connection;
    const struct http_request *request = &exchange->request;
    char text[128];
    connection->server->counters.upstream_failures++;
    bool has_begun = exchange->status != 0;
    log_write(server_log(connection->server), LOG_WARN, "upstream %.*s: %s (%s): %.*s %.*s%.*s %s %u",
              CY_BYTES_ARG(upstream_text(exchange->verdict->upstream)), cause,
              cy_err_describe(err, false, text, sizeof text), CY_BYTES_ARG(request->method),
              CY_BYTES_ARG(request->host), CY_BYTES_ARG(request->path),
              has_begun ? "cut off inside" : "answered", (unsigned)(has_begun ? exchange->status : status));
    bool until_close = has_begun && exchange->proxy.response.body.kind != HTTP_BODY_LENGTH &&
                       !exchange->proxy.response.chunked_out;
    proxy_cancel(exchange);
    if (!has_begun)
        exchange_refuse(exchange, status, NULL, true);
    else if (until_close)
        connection_abort(connection);
    else
        connection_close(connection); /* short of its length or its last chunk: visibly incomplete */
}

static void proxy_on_timeout(void *owner)
{
    struct http_exchange *exchange = owner;
    struct upstream_connection *upstream = exchange->proxy.connection;
    uint32_t idle_ms = upstream->pool->client->options.idle_timeout_ms;
    if (upstream->input || exchange->connection->writing) { /* the client is slow, not the upstream */
        upstream_connection_set_timer(upstream, idle_ms);
        return;
    }
    proxy_fail(exchange, 504, exchange->proxy.received_any ? "stopped answering" : "no answer in time",
               CY_ERR(TIMEOUT));
}

/* -- connecting ------------------------------------------------------------------------------------------ */

static bool proxy_send(struct http_exchange *exchange, struct buffer *owned_head);

static void proxy_use(struct http_exchange *exchange, struct upstream_connection *upstream)
{
    struct http_proxy *proxy = &exchange->proxy;
    proxy->connection = upstream;
    struct buffer *head = proxy_write_request_head(exchange);
    if (!head) {
        proxy_fail(exchange, 503, "cannot write the request", CY_ERR(NO_MEMORY));
        return;
    }
    if (proxy_send(exchange, head)) upstream_connection_read(upstream);
}

static void proxy_on_connected(void *owner, struct upstream_connection *upstream, cy_err err)
{
    struct http_exchange *exchange = owner;
    exchange->proxy.connector = NULL;
    if (cy_failed(err)) {
        proxy_fail(exchange, cy_is(err, CY_ERR_TIMEOUT) ? 504 : 502, "cannot connect", err);
        return;
    }
    upstream->owner = exchange;
    upstream->events = &proxy_events;
    proxy_use(exchange, upstream);
}

static void proxy_connect(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct http_pool *pool = exchange->verdict->upstream->pool;
    cy_err err = connector_start(pool, exchange, proxy_on_connected, &proxy->connector);
    if (cy_failed(err)) proxy_fail(exchange, 502, "cannot connect", err);
}

void proxy_start(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct http_pool *pool = exchange->verdict->upstream->pool;
    proxy->active = true;
    h1_parse_begin_response(&proxy->head, exchange->response_fields);
    struct upstream_connection *upstream = pool_take(pool, exchange, &proxy_events);
    if (upstream)
        proxy_use(exchange, upstream);
    else
        proxy_connect(exchange);
}

/* RFC 9110 section 9.2.2. */
static bool proxy_is_idempotent(cy_bytes method)
{
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    for (size_t i = 0; i < CY_COUNT_OF(methods); i++)
        if (cy_bytes_equal(method, cy_bytes_from_text(methods[i]))) return true;
    return false;
}

bool proxy_retry(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct upstream_connection *upstream = proxy->connection;
    if (proxy->retried || !upstream->used_before || proxy->received_any) return false;
    if (exchange->request.body.kind != HTTP_BODY_NONE) return false;
    bool unsent = proxy->sent_bytes == 0 && !upstream->writing;
    if (!unsent && !proxy_is_idempotent(exchange->request.method)) return false;
    upstream_connection_close(&proxy->connection);
    proxy->retried = true;
    proxy->request_sent = proxy->request_stopped = proxy->stream_ended = false;
    proxy->sent_bytes = 0;
    h1_parse_begin_response(&proxy->head, exchange->response_fields);
    proxy_connect(exchange);
    return true;
}

/* -- the request's way ----------------------------------------------------------------------------------- */

/* The client's body turned out to be malformed: what was sent of it cannot be taken back, so the upstream's
 * connection goes. */
static void proxy_on_bad_body(struct http_exchange *exchange)
{
    uint8_t fault = exchange->request_body.body.fault;
    proxy_cancel(exchange);
    exchange->request.keep_alive = false;
    if (exchange->status == 0)
        exchange_refuse(exchange, h1_fault_status(fault), h1_fault_text(fault), false);
    else
        connection_abort(exchange->connection);
}

/* Adds what the client has sent of its body. False when that is malformed. */
static bool proxy_add_body(struct http_exchange *exchange, struct loop_send *send)
{
    struct http_connection *connection = exchange->connection;
    struct relay_hold *hold = &exchange->proxy.connection->hold;
    uint32_t part_count = send->part_count;
    while (!exchange->request_body.ended && connection->input && send->part_count == part_count) {
        if (relay_fill(&exchange->request_body, connection->input, send, hold) == RELAY_FAULT) return false;
        if (send->part_count > part_count) relay_hold_add(hold, buffer_ref(connection->input));
        connection_drop_empty_input(connection);
    }
    return true;
}

/* Sends the head, if any, and body bytes, if any. False when that ended the exchange. */
static bool proxy_send(struct http_exchange *exchange, struct buffer *owned_head)
{
    struct upstream_connection *upstream = exchange->proxy.connection;
    const struct http_client_options *options = &upstream->pool->client->options;
    struct loop_send *send = &upstream->write.send;
    send->part_count = 0;
    send->more = false;
    if (owned_head) {
        send->parts[send->part_count++] = buffer_view(owned_head);
        relay_hold_add(&upstream->hold, owned_head);
    }
    if (!exchange->request_body.ended && !proxy_add_body(exchange, send)) {
        relay_hold_release(&upstream->hold);
        proxy_on_bad_body(exchange);
        return false;
    }
    if (send->part_count == 0) return true;
    if (owned_head) relay_join_small(send, owned_head);
    upstream_connection_set_timer(upstream, exchange->request_body.ended ? options->first_byte_timeout_ms
                                                                         : options->idle_timeout_ms);
    upstream_connection_write(upstream);
    return true;
}

bool proxy_pump_request(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    struct http_proxy *proxy = &exchange->proxy;
    if (!proxy->active || !proxy->connection || proxy->request_stopped) return true;
    if (proxy->connection->writing || exchange->request_body.ended) return true;
    if (connection->input) {
        if (!proxy_send(exchange, NULL)) return false;
        if (proxy->connection->writing || exchange->request_body.ended) return true;
    }
    /* Now it is the client's turn. */
    if (!connection->writing) {
        if (!exchange->continue_waiting)
            connection_set_timer(connection, CONNECTION_TIMER_BODY,
                                 connection->server->options.body_idle_timeout_ms);
        else if (connection->timer_kind != CONNECTION_TIMER_CONTINUE)
            connection_set_timer(connection, CONNECTION_TIMER_CONTINUE, LIMIT_HTTP_CONTINUE_WAIT_MS);
    }
    connection_want_read(connection);
    return true;
}

static void proxy_on_written(void *owner, cy_err err, size_t sent_bytes)
{
    struct http_exchange *exchange = owner;
    struct http_connection *connection = exchange->connection;
    struct http_proxy *proxy = &exchange->proxy;
    proxy->sent_bytes += sent_bytes;
    if (cy_failed(err)) {
        /* The answer, a refusal perhaps, may have come before: the read that is outstanding tells. */
        proxy->request_stopped = true;
        exchange->continue_waiting = false;
        if (connection->timer_kind == CONNECTION_TIMER_BODY ||
            connection->timer_kind == CONNECTION_TIMER_CONTINUE)
            connection->timer_kind = CONNECTION_TIMER_NONE;
        return;
    }
    if (!exchange->request_body.ended) {
        /* The upstream owes nothing while the client owes bytes. */
        loop_timer_clear(connection->server->options.loop, &proxy->connection->timer);
        proxy_pump_request(exchange);
        return;
    }
    proxy->request_sent = true;
    if (connection->timer_kind == CONNECTION_TIMER_BODY) connection->timer_kind = CONNECTION_TIMER_NONE;
    connection_want_read(connection); /* sees the client go away */
}
