/* SPDX-License-Identifier: MIT
 *
 * vm/http/proxy.c: carries out a proxy verdict: what carries it to the upstream, the request's way there, and
 * failures.
 *
 *   start ─► idle connection? ─yes─► send head (+ first body bytes) ─► pump body ─► request_sent
 *              └no─► connect ─────────┘                            the response's way: proxy_response.c
 *
 * The verdict's terms bound the times, the body and its rate. An upgrade (a wish to leave HTTP on this connection) goes
 * to the upstream when the terms allow it; only its 101 begins a tunnel (tunnel.c).
 *
 * Back-pressure: the client is read again only when what it sent before is with the kernel.
 * Retry: once, on a new connection, when there was no byte of an answer and sending again cannot do something twice:
 *       the server has said that it did nothing of the request (HTTP/2: REFUSED_STREAM, GOAWAY), or a reused connection
 *       died and the request is idempotent, or nothing of it had been sent. And only while all that was taken of its
 *       body is still there: the first buffer of it is kept, by a reference, until an answer or a second buffer comes.
 * Invariant: while `active`, exactly one of connector and upstream is set, until the response has ended.
 */
#include "vm/base/check.h"
#include "vm/http/server_internal.h"
#include "vm/http/uri.h"
#include "vm/net/proxy_protocol.h"

#include <stdio.h>

static void proxy_on_written(void *owner, cy_err err, size_t sent_bytes);
static void proxy_on_timeout(void *owner);

static const struct upstream_events proxy_events = {proxy_on_read, proxy_on_written, proxy_on_timeout};

/* -- failing --------------------------------------------------------------------------------------------- */

void proxy_done(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    proxy->active = false;
    if (CY_UNLIKELY(timer_is_set(&proxy->total_timer)))
        loop_timer_clear(exchange->carrier->server->options.loop, &proxy->total_timer);
}

void proxy_cancel(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    if (proxy->connector) connector_cancel(&proxy->connector);
    if (proxy->upstream) proxy->upstream->type->close(&proxy->upstream);
    relay_end(&proxy->response);
    proxy_done(exchange);
}

void proxy_fail(struct http_exchange *exchange, uint16_t status, const char *cause, cy_err err)
{
    struct exchange_carrier *carrier = exchange->carrier;
    const struct http_request *request = &exchange->request;
    char text[128], why[sizeof text + 3] = "";
    carrier->server->counters->upstream_failures++;
    bool has_begun = exchange->status != 0;
    if (cy_failed(err)) snprintf(why, sizeof why, " (%s)", cy_err_describe(err, false, text, sizeof text));
    char key[160]; /* an upstream that is down is one line a second, not one for each request */
    snprintf(key, sizeof key, "upstream %.*s: %s%s", CY_BYTES_ARG(upstream_text(exchange->verdict->upstream)),
             cause, why);
    log_write_keyed(server_log(carrier->server), LOG_WARN, key, "upstream %.*s: %s%s: %.*s %.*s%.*s %s %u",
                    CY_BYTES_ARG(upstream_text(exchange->verdict->upstream)), cause, why,
                    CY_BYTES_ARG(request->method), CY_BYTES_ARG(request->host), CY_BYTES_ARG(request->path),
                    has_begun ? "is cut off inside" : "ends with",
                    (unsigned)(has_begun ? exchange->status : status));
    bool until_close = has_begun && exchange->proxy.response.body.kind != HTTP_BODY_LENGTH &&
                       !exchange->proxy.response.chunked_out;
    proxy_cancel(exchange);
    if (!has_begun)
        exchange_refuse(exchange, status, NULL, true);
    else if (until_close)
        carrier_end(carrier, CARRIER_END_ABORT);
    else
        carrier_end(carrier, CARRIER_END_SHORT);
}

static void proxy_on_timeout(void *owner)
{
    struct http_exchange *exchange = owner;
    struct upstream_carrier *upstream = exchange->proxy.upstream;
    /* Then the client is slow, not the upstream. Input alone may be half a head. */
    if (exchange->carrier->writing) {
        upstream_set_timer(upstream, exchange->verdict->terms.times.idle_ms);
        return;
    }
    bool began = exchange->proxy.received_any;
    proxy_fail(exchange, 504, began ? "stopped answering" : "no answer in time",
               began ? CY_ERR(TIMEOUT) : CY_OK);
}

/* The verdict's bound on the whole. */
static void proxy_on_total(struct timer *timer)
{
    struct http_proxy *proxy = CY_CONTAINER_OF(timer, struct http_proxy, total_timer);
    proxy_fail(CY_CONTAINER_OF(proxy, struct http_exchange, proxy), 504, "the whole took too long", CY_OK);
}

/* -- connecting ------------------------------------------------------------------------------------------ */

static bool proxy_send(struct http_exchange *exchange, struct buffer *owned_head);

/* The connection is this client's alone, and says so first. Gives NULL, and the head is gone, without memory. */
static struct buffer *proxy_put_client(struct http_exchange *exchange, struct buffer *owned_head)
{
    const struct upstream *target = exchange->verdict->upstream;
    struct builder text;
    builder_init(&text);
    struct stream *stream = exchange->carrier->type->stream(exchange->carrier);
    proxy_protocol_write(target->proxy_protocol, &exchange->request.client,
                         &stream_info_with_local(stream)->local, &text);
    cy_bytes header = builder_view(&text), rest = buffer_view(owned_head);
    struct head_writer writer;
    head_open(&writer, server_buffers(exchange->carrier->server), header.count + rest.count);
    head_put(&writer, header);
    head_put(&writer, rest);
    struct buffer *joined = head_close(&writer);
    if (text.failed) buffer_unref(&joined);
    builder_fini(&text);
    buffer_unref(&owned_head);
    return joined;
}

static void proxy_use(struct http_exchange *exchange, struct upstream_carrier *upstream)
{
    struct http_proxy *proxy = &exchange->proxy;
    const uint8_t kind = exchange->request.body.kind;
    proxy->upstream = upstream;
    upstream->keep_alive_ms = exchange->verdict->terms.times.keep_alive_ms;
    proxy->upgrade_sent =
        exchange->wants_upgrade && !exchange->verdict->terms.no_upgrade && upstream->type->shutdown;
    upstream->type->begin(upstream, exchange->response_fields);
    exchange->request_body.chunked_out =
        upstream->type->uses_chunks && (kind == HTTP_BODY_CHUNKED || kind == HTTP_BODY_UNTIL_CLOSE);
    exchange->request_body.trailers_out = upstream->type->takes_trailers;
    struct buffer *head = proxy_write_request_head(exchange);
    if (!head) {
        proxy_fail(exchange, 503, "cannot write the request", CY_ERR(NO_MEMORY));
        return;
    }
    if (exchange->verdict->upstream->proxy_protocol) head = proxy_put_client(exchange, head);
    if (!head) {
        proxy_fail(exchange, 503, "cannot write the PROXY header", CY_ERR(NO_MEMORY));
        return;
    }
    if (proxy_send(exchange, head)) upstream->type->want_input(upstream);
}

static void proxy_on_connected(void *owner, struct upstream_carrier *upstream, cy_err err)
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
    cy_err err = connector_start(pool, exchange->verdict->terms.times.connect_ms, exchange,
                                 proxy_on_connected, &proxy->connector);
    if (cy_failed(err)) proxy_fail(exchange, 502, "cannot connect", err);
}

/* RFC 9110 section 7.6.2. A value that is no number counts nothing, as for any server. False: it ends here, and is
 * answered. */
static bool proxy_count_forwards(struct http_exchange *exchange)
{
    const struct http_request *request = &exchange->request;
    bool is_trace = cy_bytes_equal(request->method, CY_BYTES("TRACE"));
    if (!is_trace && !cy_bytes_equal(request->method, CY_BYTES("OPTIONS"))) return true;
    const struct http_field *field =
        http_find_field(request->fields, request->field_count, CY_BYTES("Max-Forwards"));
    uint64_t left;
    if (!field || !cy_bytes_parse_u64(field->value, UINT32_MAX, &left)) return true;
    if (left == 0) { /* we are whom it asks; TRACE would show the client what others added on the way */
        exchange_refuse(exchange, is_trace ? 405 : 200, NULL, true);
        return false;
    }
    exchange->proxy.counts_forwards = true;
    exchange->proxy.forwards_left = (uint32_t)left - 1;
    return true;
}

void proxy_start(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    const struct upstream *target = exchange->verdict->upstream;
    struct http_pool *pool = target->pool;
    cy_bytes path = exchange->request.target;
    /* The original path is forwarded, so what the upstream would make of "/base/../secret" must not come about. */
    if (target->base_path.count > 0 && uri_climbs(cy_bytes_slice(path, 0, cy_bytes_find(path, '?')))) {
        exchange_refuse(exchange, 400, "the path leaves the upstream's base path", true);
        return;
    }
    const struct http_proxy_terms *terms = &exchange->verdict->terms;
    if (terms->body_bytes_max && exchange->request.body.kind == HTTP_BODY_LENGTH &&
        exchange->request.body.length > terms->body_bytes_max) {
        exchange_refuse(exchange, 413, h1_fault_text(H1_FAULT_BODY_LARGE), false);
        return;
    }
    uint8_t initial = exchange->request.method.data[0];
    if (CY_UNLIKELY(initial == 'O' || initial == 'T') && !proxy_count_forwards(exchange)) return;
    proxy->active = true;
    proxy->start_ns = loop_turn_ns(exchange->carrier->server->options.loop);
    if (terms->times.total_ms) {
        proxy->total_timer.fire = proxy_on_total;
        loop_timer_set(exchange->carrier->server->options.loop, &proxy->total_timer, terms->times.total_ms);
    }
    struct upstream_carrier *upstream = NULL;
    if (!target->proxy_protocol) upstream = pool_take(pool, exchange, &proxy_events);
    if (upstream)
        proxy_use(exchange, upstream);
    else
        proxy_connect(exchange);
}

/* Of a request's body what is about to be taken from `input` may have to be sent again. Without a copy that is possible
 * for one buffer; a bulk one, or the bytes of a pipe, are not held for it. */
static void proxy_keep_body(struct http_proxy *proxy, struct buffer *input)
{
    if (proxy->body_lost || proxy->kept == input) return;
    if (proxy->kept || proxy->retried || proxy->received_any || input->capacity > LIMIT_BUFFER_BYTES ||
        loop_buffer_is_piped(input)) {
        buffer_unref(&proxy->kept);
        proxy->body_lost = true;
        return;
    }
    proxy->kept = buffer_ref(input);
    proxy->kept_begin = input->begin;
}

/* The body is where it began: what was taken of it stands in front of what has come since. */
static bool proxy_rewind_body(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_proxy *proxy = &exchange->proxy;
    struct buffer *kept = proxy->kept;
    if (proxy->body_lost || exchange->request_body.moved) return false;
    if (carrier->input && loop_buffer_is_piped(carrier->input)) return false; /* nothing can be put in front of it */
    if (kept && carrier->input && carrier->input != kept) {
        kept->end = kept->begin; /* what it had left, if anything, is in the other one too */
        kept->begin = proxy->kept_begin;
        proxy->kept = NULL;
        struct buffer *later = carrier->input;
        carrier->input = kept;
        if (cy_failed(input_append(&carrier->input, later, server_buffers(carrier->server)))) {
            buffer_unref(&carrier->input); /* nobody can tell where the next request begins */
            exchange->client_keeps = false;
            proxy->body_lost = true;
            return false;
        }
    } else if (kept) {
        kept->begin = proxy->kept_begin;
        buffer_unref(&carrier->input);
        carrier->input = kept;
        proxy->kept = NULL;
    }
    relay_end(&exchange->request_body);
    relay_begin(&exchange->request_body, &exchange->request.body, false); /* chunks: proxy_use */
    if (carrier->timer_kind == CARRIER_TIMER_BODY) carrier_clear_timer(carrier);
    return true;
}

bool proxy_retry(struct http_exchange *exchange)
{
    struct http_proxy *proxy = &exchange->proxy;
    struct upstream_carrier *upstream = proxy->upstream;
    if (proxy->retried || proxy->received_any) return false;
    if (!upstream->used_before && !upstream->unprocessed) return false;
    bool unsent = proxy->sent_bytes == 0 && !upstream->writing;
    if (!unsent && !upstream->unprocessed && !http_method_is_idempotent(exchange->request.method))
        return false;
    if (exchange->request.body.kind != HTTP_BODY_NONE && !proxy_rewind_body(exchange)) return false;
    upstream->type->close(&proxy->upstream);
    proxy->retried = true;
    exchange->carrier->server->counters->upstream_retries++;
    proxy->request_sent = proxy->request_stopped = proxy->stream_ended = false;
    proxy->sent_bytes = 0;
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
    exchange->client_keeps = false;
    if (exchange->status == 0)
        exchange_refuse(exchange, h1_fault_status(fault), h1_fault_text(fault), false);
    else
        carrier_end(exchange->carrier, CARRIER_END_ABORT);
}

/* Is there anything of the client's body to pass on: bytes, or the end that only the end of the input tells? */
static bool proxy_has_body(const struct http_exchange *exchange)
{
    const struct exchange_carrier *carrier = exchange->carrier;
    return carrier->input || (carrier->input_ended && exchange->request.body.kind == HTTP_BODY_UNTIL_CLOSE);
}

/* Adds what the client has sent of its body. False when that is malformed or too much. */
static bool proxy_add_body(struct http_exchange *exchange, struct loop_send *send)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct relay *relay = &exchange->request_body;
    struct relay_hold *hold = &exchange->proxy.upstream->hold;
    uint32_t part_count = send->part_count;
    uint64_t max = exchange->verdict->terms.body_bytes_max;
    while (!relay->ended && carrier->input && send->part_count == part_count) {
        proxy_keep_body(&exchange->proxy, carrier->input);
        if (relay_fill(relay, carrier->input, send, hold) == RELAY_FAULT) return false;
        if (max && relay->passed_bytes > max) {
            relay->body.fault = H1_FAULT_BODY_LARGE;
            return false;
        }
        if (send->part_count > part_count) relay_hold_add(hold, buffer_ref(carrier->input));
        carrier_drop_empty_input(carrier);
    }
    if (!relay->ended && !carrier->input && proxy_has_body(exchange)) {
        if (carrier->input_trailer) exchange->proxy.body_lost = true; /* it is made one with the request */
        relay_give_trailer(relay, carrier->input_trailer);
        carrier->input_trailer = NULL;
        relay_finish(relay, send, hold);
    }
    return true;
}

/* Sends the head, if any, and body bytes, if any. False when that ended the exchange. */
static bool proxy_send(struct http_exchange *exchange, struct buffer *owned_head)
{
    struct upstream_carrier *upstream = exchange->proxy.upstream;
    const struct http_times *times = &exchange->verdict->terms.times;
    struct loop_send *send = upstream->send;
    size_t head_bytes = 0;
    bool had_ended = exchange->request_body.ended;
    send->part_count = 0;
    send->more = false;
    if (owned_head) {
        send->parts[send->part_count++] = buffer_view(owned_head);
        head_bytes = send->parts[0].count;
        relay_hold_add(&upstream->hold, owned_head);
    }
    if (!had_ended && !proxy_add_body(exchange, send)) {
        relay_hold_release(&upstream->hold);
        proxy_on_bad_body(exchange);
        return false;
    }
    bool ended = exchange->request_body.ended;
    if (send->part_count == 0 && ended == had_ended) return true;
    if (ended && upstream->type->takes_trailers)
        upstream->trailer = relay_take_trailer(&exchange->request_body);
    if (owned_head) relay_join_small(send, owned_head);
    upstream_set_timer(upstream, ended ? times->first_byte_ms : times->idle_ms);
    upstream->type->write(upstream, head_bytes, ended);
    return true;
}

uint32_t proxy_pipe_bytes(const struct http_exchange *exchange, const struct relay *relay)
{
    uint32_t bytes = relay_pipe_bytes(relay);
    if (CY_LIKELY(bytes == 0)) return 0;
    const struct exchange_carrier *carrier = exchange->carrier;
    const struct upstream_carrier *upstream = exchange->proxy.upstream;
    bool takes = carrier->type->takes_pipes && carrier->type->takes_pipes(carrier) &&
                 upstream->type->takes_pipes && upstream->type->takes_pipes(upstream);
    return takes ? bytes : 0;
}

bool proxy_pump_request(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_proxy *proxy = &exchange->proxy;
    if (!proxy->active || !proxy->upstream || proxy->request_stopped) return true;
    if (proxy->upstream->writing || exchange->request_body.ended) return true;
    if (proxy_has_body(exchange)) {
        if (!proxy_send(exchange, NULL)) return false;
        if (proxy->upstream->writing || exchange->request_body.ended) return true;
    }
    /* Now it is the client's turn. */
    if (!carrier->writing) {
        if (!exchange->continue_waiting)
            exchange_await_body(exchange);
        else if (exchange->status == 0 && carrier->timer_kind != CARRIER_TIMER_CONTINUE)
            carrier_set_timer(carrier, CARRIER_TIMER_CONTINUE, LIMIT_HTTP_CONTINUE_WAIT_MS);
    }
    /* Not before `kept` is of no use any more: what is in a pipe cannot stand behind it in a buffer. */
    bool copies = carrier->input || !proxy->body_lost;
    carrier->pipe_bytes_max = copies ? 0 : proxy_pipe_bytes(exchange, &exchange->request_body);
    carrier_want_input(carrier);
    return true;
}

static void proxy_on_written(void *owner, cy_err err, size_t sent_bytes)
{
    struct http_exchange *exchange = owner;
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_proxy *proxy = &exchange->proxy;
    proxy->sent_bytes += sent_bytes;
    if (cy_failed(err)) {
        /* The answer, a refusal perhaps, may have come before: the read that is outstanding tells. */
        proxy->request_stopped = true;
        exchange->continue_waiting = false;
        if (carrier->timer_kind == CARRIER_TIMER_BODY || carrier->timer_kind == CARRIER_TIMER_CONTINUE)
            carrier_clear_timer(carrier);
        return;
    }
    if (!exchange->request_body.ended) {
        /* The upstream owes nothing while the client owes bytes; but the rest of an answer that it has begun. */
        if (!proxy->head_complete && !proxy->request_stopped) upstream_clear_timer(proxy->upstream);
        proxy_pump_request(exchange);
        return;
    }
    proxy->request_sent = true;
    if (carrier->timer_kind == CARRIER_TIMER_BODY) carrier_clear_timer(carrier);
    carrier_want_input(carrier); /* sees the client go away */
}
