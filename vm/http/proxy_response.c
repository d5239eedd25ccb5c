/* SPDX-License-Identifier: MIT
 *
 * vm/http/proxy_response.c: the response's way: from the upstream's bytes to the client's.
 *
 *   bytes ─► head ─1xx─► pass on or drop, head again
 *                └final─► client's head + first body bytes in one write ─► body, write by write ─► end
 *
 * Back-pressure: the upstream is read again only when the client's write is done, so one exchange holds one
 * received buffer.
 * Invariant: proxy_pump_response does nothing while a client write is outstanding; its completion calls it
 *            again.
 */
#include "vm/base/check.h"
#include "vm/http/server_internal.h"

void proxy_on_read(void *owner, struct buffer *owned_buffer, cy_err err)
{
    struct http_exchange *exchange = owner;
    struct http_proxy *proxy = &exchange->proxy;
    if (owned_buffer) {
        proxy->received_any = true;
        err = input_append(&proxy->connection->input, owned_buffer,
                           server_buffers(exchange->connection->server));
        if (cy_failed(err)) {
            proxy_fail(exchange, 503, "cannot take in the response", err);
            return;
        }
    } else {
        proxy->stream_ended = true;
        proxy->stream_err = err;
    }
    proxy_pump_response(exchange);
}

static void proxy_drop_empty_input(struct upstream_connection *upstream)
{
    if (upstream->input && upstream->input->begin == upstream->input->end) buffer_unref(&upstream->input);
}

/* The response is complete: keep the connection if both sides of it ended cleanly. */
static void proxy_release_upstream(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct upstream_connection *upstream = proxy->connection;
    uint32_t keep_ms = upstream->pool->client->options.keep_alive_ms;
    uint64_t promised_ms = proxy->answer.keep_alive_s * UINT64_C(1000);
    /* A second less than the server says: a request must not meet its hang-up. */
    if (promised_ms && promised_ms < keep_ms + UINT64_C(1000))
        keep_ms = promised_ms > 1000 ? (uint32_t)(promised_ms - 1000) : 0;
    bool is_clean =
        proxy->answer.keep_alive && proxy->request_sent && !proxy->stream_ended && !upstream->input;
    upstream_connection_keep(&proxy->connection, is_clean ? keep_ms : 0);
}

/* Writes parts of the response, or ends the exchange where nothing is left to write. */
static bool proxy_write_client(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    struct http_proxy *proxy = &exchange->proxy;
    bool ended = proxy->response.ended;
    if (ended && proxy->connection) proxy_release_upstream(exchange);
    if (connection->write.send.part_count > 0) {
        exchange->write = EXCHANGE_WRITE_PROXY;
        connection_write(connection);
        return false;
    }
    if (!ended) return true;
    proxy->active = false;
    exchange_answered(exchange);
    return false;
}

/* Sends the client's head, if it has not gone yet, and what has come of the body. True when the pump may go
 * on. */
static bool proxy_relay(struct http_exchange *exchange, struct buffer *owned_head)
{
    struct http_connection *connection = exchange->connection;
    struct http_proxy *proxy = &exchange->proxy;
    struct upstream_connection *upstream = proxy->connection;
    struct loop_send *send = &connection->write.send;
    send->part_count = 0;
    send->more = false;
    if (owned_head) {
        send->parts[send->part_count++] = buffer_view(owned_head);
        relay_hold_add(&connection->hold, owned_head);
    }
    if (!proxy->response.ended && upstream->input) {
        uint32_t part_count = send->part_count;
        if (relay_fill(&proxy->response, upstream->input, send, &connection->hold) == RELAY_FAULT) {
            relay_hold_release(&connection->hold);
            if (owned_head) exchange->status = 0; /* nothing has been sent: a 502 is still possible */
            uint8_t fault = proxy->response.body.fault;
            proxy_fail(exchange, 502, h1_fault_text(fault), CY_ERR_DETAIL(HTTP_SYNTAX, fault));
            return false;
        }
        if (send->part_count > part_count) relay_hold_add(&connection->hold, buffer_ref(upstream->input));
        proxy_drop_empty_input(upstream);
    }
    if (owned_head) relay_join_small(send, owned_head);
    return proxy_write_client(exchange);
}

/* -- the head -------------------------------------------------------------------------------------------- */

/* 1xx. True when the pump may go on. */
static bool proxy_on_interim(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    const struct h1_head *head = &proxy->head;
    uint8_t fault = H1_FAULT_NONE;
    if (head->status == 101)
        fault = H1_FAULT_STATUS_UNEXPECTED; /* Upgrade was not forwarded */
    else if (++proxy->interim_count > LIMIT_HTTP_INTERIM_RESPONSES)
        fault = H1_FAULT_INTERIM_MANY;
    if (fault) {
        proxy_fail(exchange, 502, h1_fault_text(fault), CY_ERR_DETAIL(HTTP_SYNTAX, fault));
        return false;
    }
    bool passes = exchange->request.minor_version >= 1;
    if (head->status == 100) {
        passes = passes && exchange->continue_waiting;
        exchange->continue_waiting = false;
    }
    bool ok =
        !passes || respond_interim(exchange, head->status, head->reason, head->fields, head->field_count);
    proxy_drop_empty_input(proxy->connection);
    h1_parse_begin_response(&proxy->head, exchange->response_fields);
    if (!ok) proxy_fail(exchange, 503, "cannot pass on an interim response", CY_ERR(NO_MEMORY));
    return ok;
}

static bool proxy_on_final(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct h1_response *answer = &proxy->answer;
    uint8_t fault = h1_judge_response(&proxy->head, exchange->request.is_head, answer);
    if (fault) {
        proxy_fail(exchange, 502, h1_fault_text(fault), CY_ERR_DETAIL(HTTP_SYNTAX, fault));
        return false;
    }
    bool has_length = answer->body.kind == HTTP_BODY_NONE || answer->body.kind == HTTP_BODY_LENGTH;
    bool chunked = !has_length && exchange->request.minor_version >= 1;
    relay_begin(&proxy->response, &answer->body, chunked);
    /* A refusal makes the rest of the request's body pointless. Success may be a server that answers while it
     * reads. */
    if (!exchange->request_body.ended && proxy->head.status >= 300) proxy->request_stopped = true;
    exchange->keep_alive = respond_may_keep(exchange, has_length || chunked);
    struct buffer *head = proxy_write_response_head(exchange);
    if (!head) {
        proxy_fail(exchange, 503, "cannot write the response", CY_ERR(NO_MEMORY));
        return false;
    }
    exchange->status = proxy->head.status;
    proxy->head_complete = true;
    proxy_drop_empty_input(proxy->connection);
    return proxy_relay(exchange, head);
}

static void proxy_on_stream_end(struct http_exchange *exchange);

static bool proxy_read_head(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct upstream_connection *upstream = proxy->connection;
    switch (h1_parse_head(&proxy->head, buffer_view(upstream->input))) {
    case H1_PARSE_MORE:
        if (proxy->stream_ended)
            proxy_on_stream_end(exchange);
        else
            upstream_connection_read(upstream);
        return false;
    case H1_PARSE_FAULT:
        proxy_fail(exchange, 502, h1_fault_text(proxy->head.fault),
                   CY_ERR_DETAIL(HTTP_SYNTAX, proxy->head.fault));
        return false;
    case H1_PARSE_DONE: break;
    }
    upstream->input->begin += (uint32_t)proxy->head.used_bytes;
    return proxy->head.status < 200 ? proxy_on_interim(exchange) : proxy_on_final(exchange);
}

/* -- the body and the end -------------------------------------------------------------------------------- */

/* The upstream will send no more, and what it sent has been consumed up to here. */
static void proxy_on_stream_end(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct loop_send *send = &exchange->connection->write.send;
    cy_err err = cy_failed(proxy->stream_err) ? proxy->stream_err : CY_ERR(HTTP_EARLY_END);
    if (!proxy->head_complete) {
        if (proxy_retry(exchange)) return;
        proxy_fail(exchange, 502,
                   proxy->received_any ? "connection ended inside the head"
                                       : "connection ended without an answer",
                   err);
        return;
    }
    send->part_count = 0;
    if (cy_failed(proxy->stream_err) || !relay_finish(&proxy->response, send)) {
        proxy_fail(exchange, 502, "connection ended inside the body", err);
        return;
    }
    proxy_write_client(exchange);
}

void proxy_pump_response(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    struct http_proxy *proxy = &exchange->proxy;
    while (!connection->writing && proxy->active && proxy->connection) {
        struct upstream_connection *upstream = proxy->connection;
        if (!upstream->input) {
            if (proxy->stream_ended) {
                proxy_on_stream_end(exchange);
                return;
            }
            if (proxy->received_any)
                upstream_connection_set_timer(upstream, upstream->pool->client->options.idle_timeout_ms);
            upstream_connection_read(upstream);
            return;
        }
        if (!(proxy->head_complete ? proxy_relay(exchange, NULL) : proxy_read_head(exchange))) return;
    }
}

void proxy_on_client_written(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    if (!proxy->response.ended) {
        proxy_pump_response(exchange);
        return;
    }
    proxy->active = false;
    exchange_answered(exchange);
}
