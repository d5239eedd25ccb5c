/* SPDX-License-Identifier: MIT
 *
 * vm/http/proxy_response.c: the response's way: from the upstream's bytes to the client's.
 *
 *   bytes ─► head ─101─► if it was asked for: its head and what follows it in one write ─► tunnel.c
 *                ├1xx──► pass on or drop, head again
 *                └final► client's head + first body bytes in one write ─► body, write by write ─► end
 *
 * Back-pressure: the upstream is read again only when the client's write is done, so one exchange holds one
 * received buffer.
 * Invariant: proxy_pump_response does nothing while a client write is outstanding; its completion calls it
 *            again.
 */
#include "vm/base/check.h"
#include "vm/http/field.h"
#include "vm/http/server_internal.h"

void proxy_on_read(void *owner, struct buffer *owned_buffer, cy_err err)
{
    struct http_exchange *exchange = owner;
    struct http_proxy *proxy = &exchange->proxy;
    if (owned_buffer) {
        proxy->received_any = true;
        if (CY_UNLIKELY(proxy->kept != NULL)) buffer_unref(&proxy->kept);
        err = input_append(&proxy->upstream->input, owned_buffer, server_buffers(exchange->carrier->server));
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

/* Writes parts of the response, or ends the exchange where nothing is left to write. */
static bool proxy_write_client(struct http_exchange *exchange, size_t head_bytes)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_proxy *proxy = &exchange->proxy;
    bool ended = proxy->response.ended;
    if (ended && carrier->type->takes_trailers && !carrier->trailer)
        carrier->trailer = relay_take_trailer(&proxy->response);
    if (ended && proxy->upstream) {
        bool is_shared = exchange->verdict->upstream->proxy_protocol == 0; /* else it is this client's */
        bool clean = is_shared && proxy->request_sent && !proxy->stream_ended && !proxy->upstream->input;
        proxy->upstream->type->release(&proxy->upstream, clean);
    }
    if (carrier->send->part_count > 0) {
        exchange->write = EXCHANGE_WRITE_PROXY;
        carrier_write(carrier, head_bytes, ended);
        return false;
    }
    if (!ended) return true;
    proxy_done(exchange);
    exchange_answered(exchange);
    return false;
}

/* Sends the client's head, if it has not gone yet, and what has come of the body. True when the pump may go
 * on. */
static bool proxy_relay(struct http_exchange *exchange, struct buffer *owned_head)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_proxy *proxy = &exchange->proxy;
    struct upstream_carrier *upstream = proxy->upstream;
    struct loop_send *send = carrier->send;
    size_t head_bytes = 0;
    send->part_count = 0;
    send->more = false;
    if (owned_head) {
        send->parts[send->part_count++] = buffer_view(owned_head);
        head_bytes = send->parts[0].count;
        relay_hold_add(&carrier->hold, owned_head);
    }
    if (!proxy->response.ended && upstream->input) {
        uint32_t part_count = send->part_count;
        if (relay_fill(&proxy->response, upstream->input, send, &carrier->hold) == RELAY_FAULT) {
            relay_hold_release(&carrier->hold);
            if (owned_head) exchange->status = 0; /* nothing has been sent: a 502 is still possible */
            uint8_t fault = proxy->response.body.fault;
            proxy_fail(exchange, 502, h1_fault_text(fault), CY_ERR_DETAIL(HTTP_SYNTAX, fault));
            return false;
        }
        if (send->part_count > part_count) relay_hold_add(&carrier->hold, buffer_ref(upstream->input));
        upstream_drop_empty_input(upstream);
    }
    if (owned_head) relay_join_small(send, owned_head);
    return proxy_write_client(exchange, head_bytes);
}

/* -- the head -------------------------------------------------------------------------------------------- */

static void proxy_fail_fault(struct http_exchange *exchange, uint8_t fault)
{
    proxy_fail(exchange, 502, h1_fault_text(fault), CY_ERR_DETAIL(HTTP_SYNTAX, fault));
}

/* Does this 101 choose what the client asked for? One that does not would have both sides speak different things. */
static uint8_t proxy_judge_switch(const struct http_exchange *exchange)
{
    const struct http_response *answer = &exchange->proxy.answer;
    bool found = false;
    if (!exchange->proxy.upgrade_sent) return H1_FAULT_STATUS_UNEXPECTED;
    for (uint32_t i = 0; i < answer->field_count; i++) {
        if (answer->fields[i].known != HTTP_FIELD_UPGRADE) continue;
        if (!h1_upgrade_lists(exchange->request.fields, exchange->request.field_count,
                              answer->fields[i].value))
            return H1_FAULT_UPGRADE_OTHER;
        found = true;
    }
    return found ? H1_FAULT_NONE : H1_FAULT_UPGRADE_OTHER;
}

/* The head of the 101, and what the upstream has already said behind it. */
static bool proxy_switch(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct upstream_carrier *upstream = exchange->proxy.upstream;
    struct loop_send *send = carrier->send;
    struct buffer *head = proxy_write_switch_head(exchange);
    if (!head) {
        proxy_fail(exchange, 503, "cannot write the response", CY_ERR(NO_MEMORY));
        return false;
    }
    exchange->status = 101;
    upstream_clear_timer(upstream);
    send->parts[0] = buffer_view(head);
    send->part_count = 1;
    send->more = false;
    relay_hold_add(&carrier->hold, head);
    upstream_drop_empty_input(upstream);
    if (upstream->input) {
        send->parts[send->part_count++] = buffer_view(upstream->input);
        relay_hold_add(&carrier->hold, upstream->input);
        upstream->input = NULL;
    }
    exchange->write = EXCHANGE_WRITE_SWITCH;
    carrier_write(carrier, send->parts[0].count, false);
    return false;
}

/* 1xx. True when the pump may go on. */
static bool proxy_on_interim(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    const struct http_response *interim = &proxy->answer;
    uint8_t fault = H1_FAULT_NONE;
    if (interim->status == 101)
        fault = proxy_judge_switch(exchange);
    else if (++proxy->interim_count > LIMIT_HTTP_INTERIM_RESPONSES)
        fault = H1_FAULT_INTERIM_MANY;
    if (fault) {
        proxy_fail_fault(exchange, fault);
        return false;
    }
    if (interim->status == 101) return proxy_switch(exchange);
    bool passes = exchange->request.protocol >= HTTP_1_1;
    if (interim->status == 100) {
        passes = passes && exchange->continue_waiting;
        exchange->continue_waiting = false;
    }
    bool ok = !passes || respond_interim(exchange, interim->status, interim->reason, interim->fields,
                                         interim->field_count);
    upstream_drop_empty_input(proxy->upstream);
    if (!ok) proxy_fail(exchange, 503, "cannot pass on an interim response", CY_ERR(NO_MEMORY));
    return ok;
}

static bool proxy_on_final(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    const struct http_response *answer = &proxy->answer;
    struct exchange_carrier *carrier = exchange->carrier;
    bool has_length = answer->body.kind == HTTP_BODY_NONE || answer->body.kind == HTTP_BODY_LENGTH;
    bool chunked = !has_length && exchange->request.protocol == HTTP_1_1;
    relay_begin(&proxy->response, &answer->body, chunked);
    proxy->response.trailers_out = carrier->type->takes_trailers;
    /* A refusal makes the rest of the request's body pointless. Success may be a server that answers while it
     * reads. */
    if (!exchange->request_body.ended && answer->status >= 300) proxy->request_stopped = true;
    exchange->keep_alive = carrier->type->may_keep(carrier, has_length || chunked);
    struct buffer *head = proxy_write_response_head(exchange);
    if (!head) {
        proxy_fail(exchange, 503, "cannot write the response", CY_ERR(NO_MEMORY));
        return false;
    }
    exchange->status = answer->status;
    proxy->head_complete = true;
    proxy->head_ns = loop_turn_ns(exchange->carrier->server->options.loop);
    upstream_drop_empty_input(proxy->upstream);
    return proxy_relay(exchange, head);
}

static void proxy_on_stream_end(struct http_exchange *exchange);

static bool proxy_read_head(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct upstream_carrier *upstream = proxy->upstream;
    uint8_t fault;
    switch (upstream->type->read_head(upstream, exchange->request.is_head, &proxy->answer, &fault)) {
    case UPSTREAM_HEAD_MORE:
        if (proxy->stream_ended)
            proxy_on_stream_end(exchange);
        else
            upstream->type->want_input(upstream);
        return false;
    case UPSTREAM_HEAD_FAULT: proxy_fail_fault(exchange, fault); return false;
    case UPSTREAM_HEAD_INTERIM: return proxy_on_interim(exchange);
    case UPSTREAM_HEAD_FINAL: break;
    }
    return proxy_on_final(exchange);
}

/* -- the body and the end -------------------------------------------------------------------------------- */

/* The upstream will send no more, and what it sent has been consumed up to here. */
static void proxy_on_stream_end(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct loop_send *send = exchange->carrier->send;
    cy_err err = proxy->stream_err; /* OK: an end in order, only too early */
    if (!proxy->head_complete) {
        if (proxy_retry(exchange)) return;
        proxy_fail(exchange, 502,
                   proxy->received_any ? "connection ended inside the head"
                                       : "connection ended without an answer",
                   err);
        return;
    }
    send->part_count = 0;
    relay_give_trailer(&proxy->response, proxy->upstream->input_trailer);
    proxy->upstream->input_trailer = NULL;
    if (cy_failed(proxy->stream_err) || !relay_finish(&proxy->response, send, &exchange->carrier->hold)) {
        proxy_fail(exchange, 502, "connection ended inside the body", err);
        return;
    }
    proxy_write_client(exchange, 0);
}

void proxy_pump_response(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_proxy *proxy = &exchange->proxy;
    while (!carrier->writing && proxy->active && proxy->upstream) {
        struct upstream_carrier *upstream = proxy->upstream;
        if (!upstream->input) {
            if (proxy->stream_ended) {
                proxy_on_stream_end(exchange);
                return;
            }
            /* Behind 100 it owes nothing while the client owes its body. */
            bool owes = proxy->head_complete || exchange->request_body.ended || proxy->request_stopped;
            if (proxy->received_any && owes)
                upstream_set_timer(upstream, exchange->verdict->terms.times.idle_ms);
            if (proxy->head_complete) upstream->pipe_bytes_max = proxy_pipe_bytes(exchange, &proxy->response);
            upstream->type->want_input(upstream);
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
    proxy_done(exchange);
    exchange_answered(exchange);
}
