/* SPDX-License-Identifier: MIT
 *
 * vm/http/exchange.c: one request and its answer, from the complete head to the next request.
 *
 * In:   a judged request, then a verdict. Out: calls of the handler, and the work of respond.c and proxy.c.
 * Invariant: on_request is followed by exactly one answer or fail, or by on_gone; phase THINKING is the time
 *            between.
 */
#include "vm/http/server_internal.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

/* -- memory ---------------------------------------------------------------------------------------------- */

struct http_exchange *exchange_new(struct exchange_carrier *carrier)
{
    struct http_server *server = carrier->server;
    struct http_exchange *exchange = spare_take(&server->spare_exchanges);
    if (!exchange) exchange = mem_alloc(sizeof *exchange);
    if (!exchange) return NULL;
    /* The tables at the end are filled by whoever counts their rows: clearing 12 KiB per request would cost
     * more than the parser does. */
    memset(exchange, 0, offsetof(struct http_exchange, request));
    exchange->carrier = carrier;
    exchange->phase = EXCHANGE_HEAD;
    exchange->request_body.body.fault =
        H1_FAULT_LENGTH; /* no framing yet: nothing behind a refused head can be read */
    exchange->request.field_count = 0;
    exchange->request.protocol = HTTP_1_1;
    exchange->request.method = exchange->request.host = exchange->request.path = CY_BYTES_NONE;
    exchange->request.is_head = false;
    server->counters->exchanges_open++;
    return exchange;
}

void exchange_free(struct http_exchange *exchange)
{
    struct http_server *server = exchange->carrier->server;
    if (exchange->start_ns || exchange->status) exchange_record(exchange);
    DCHECK(!exchange->carrier->writing && !exchange->proxy.upstream && !exchange->proxy.connector);
    DCHECK(!timer_is_set(&exchange->proxy.total_timer));
    http_verdict_unref(&exchange->verdict);
    buffer_unref(&exchange->head_buffer);
    if (CY_UNLIKELY(exchange->proxy.kept != NULL)) buffer_unref(&exchange->proxy.kept);
    buffer_unref(&exchange->space_buffer);
    relay_end(&exchange->request_body);
    relay_end(&exchange->proxy.response);
    spare_put(&server->spare_exchanges, exchange);
    CHECK(server->counters->exchanges_open > 0);
    server->counters->exchanges_open--;
}

/* -- the handler's side ---------------------------------------------------------------------------------- */

const struct http_request *http_exchange_request(const struct http_exchange *exchange)
{
    return &exchange->request;
}
void http_exchange_set_context(struct http_exchange *exchange, void *context)
{
    exchange->handler_context = context;
}
void *http_exchange_context(const struct http_exchange *exchange) { return exchange->handler_context; }

void http_exchange_answer(struct http_exchange *exchange, struct http_verdict *verdict)
{
    CHECK(exchange->phase == EXCHANGE_THINKING); /* answered twice, or after on_gone */
    exchange->phase = EXCHANGE_ANSWERING;
    exchange->verdict = http_verdict_ref(verdict);
    if (verdict->kind == HTTP_VERDICT_PROXY)
        proxy_start(exchange);
    else
        respond_verdict(exchange);
}

void http_exchange_fail(struct http_exchange *exchange, cy_bytes reason)
{
    CHECK(exchange->phase == EXCHANGE_THINKING);
    const struct http_request *request = &exchange->request;
    log_write(server_log(exchange->carrier->server), LOG_ERROR,
              "handler failed: %.*s: %.*s %.*s%.*s answered 500", CY_BYTES_ARG(reason),
              CY_BYTES_ARG(request->method), CY_BYTES_ARG(request->host), CY_BYTES_ARG(request->path));
    exchange_refuse(exchange, 500, NULL, true);
}

/* -- the request ----------------------------------------------------------------------------------------- */

uint8_t exchange_judge(struct http_exchange *exchange, struct h1_request *wishes_out)
{
    size_t space_bytes = h1_space_needed(&exchange->h1_head);
    uint8_t *space = exchange->space;
    if (space_bytes > sizeof exchange->space) {
        exchange->space_buffer = buffer_take_sized(server_buffers(exchange->carrier->server), space_bytes);
        if (!exchange->space_buffer) return H1_FAULT_HEAD_LONG;
        space = exchange->space_buffer->data;
    }
    return h1_judge_request(&exchange->h1_head, space, &exchange->request, wishes_out);
}

void exchange_begin(struct http_exchange *exchange)
{
    struct http_server *server = exchange->carrier->server;
    relay_begin(&exchange->request_body, &exchange->request.body,
                false); /* chunks: where it goes decides (proxy_use) */
    exchange->phase = EXCHANGE_THINKING;
    server->counters->requests++;
    exchange->start_ns = loop_turn_ns(server->options.loop);
    carrier_want_input(exchange->carrier);
    server->options.on_request(server->options.context, exchange);
}

/* -- what the carrier tells --------------------------------------------------------------------------- */

/* -- the client's rate ------------------------------------------------------------------------------------- */

static uint32_t exchange_min_rate(const struct http_exchange *exchange)
{
    uint32_t rate = exchange->carrier->server->options.min_rate;
    if (exchange->verdict && exchange->verdict->terms.min_rate) rate = exchange->verdict->terms.min_rate;
    return rate == HTTP_MIN_RATE_NONE ? 0 : rate;
}

/* A client that owes bytes has slack, which waiting uses up and bytes renew, up to the idle timeout: below the least
 * rate it runs out, and one timer watches both. Without a least rate it is always the idle timeout. */
void exchange_await_body(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    const struct http_server_options *options = &carrier->server->options;
    if (carrier->timer_kind == CARRIER_TIMER_BODY) return; /* it goes on waiting */
    if (!exchange->slack_given) {
        exchange->slack_given = true;
        exchange->slack_ms = options->body_idle_timeout_ms;
        if (exchange_min_rate(exchange) && options->min_rate_grace_ms < exchange->slack_ms)
            exchange->slack_ms = options->min_rate_grace_ms;
    }
    carrier_set_timer(carrier, CARRIER_TIMER_BODY, exchange->slack_ms);
}

static void exchange_count_body(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    const struct http_server_options *options = &carrier->server->options;
    uint32_t rate = exchange_min_rate(exchange);
    if (carrier->timer_kind != CARRIER_TIMER_BODY) return;
    carrier_clear_timer(carrier);
    exchange->slack_given = rate > 0;
    if (!rate || !carrier->input) return;
    uint64_t waited_ms = loop_now_ms(options->loop) - carrier->timer_since_ms;
    uint64_t slack_ms = waited_ms < exchange->slack_ms ? exchange->slack_ms - waited_ms : 0;
    slack_ms += (uint64_t)buffer_view(carrier->input).count * 1000 / rate;
    if (slack_ms > options->body_idle_timeout_ms) slack_ms = options->body_idle_timeout_ms;
    exchange->slack_ms = slack_ms ? (uint32_t)slack_ms : 1;
}

/* The write's timer has run once around: was enough taken since it last looked? */
static bool exchange_is_read(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    uint64_t sent_bytes = carrier->send->sent_bytes, before_bytes = carrier->checked_bytes;
    uint64_t least_bytes = (uint64_t)exchange_min_rate(exchange) * carrier->timer_after_ms / 1000;
    if (!carrier->writing || sent_bytes <= before_bytes || sent_bytes - before_bytes < least_bytes)
        return false;
    carrier->checked_bytes = sent_bytes;
    carrier_set_timer(carrier, CARRIER_TIMER_WRITE, carrier->server->options.body_idle_timeout_ms);
    return true;
}

/* Reads and drops what has come of the request's body. */
static enum h1_body_step exchange_skip_body(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct h1_body *body = &exchange->request_body.body;
    enum h1_body_step step = body->ended ? H1_BODY_END : H1_BODY_MORE;
    if (carrier->input && CY_UNLIKELY(loop_buffer_is_piped(carrier->input))) {
        size_t count = buffer_view(carrier->input).count;
        h1_body_skip(body, count);
        exchange->drained_bytes += count;
        buffer_unref(&carrier->input);
        if (body->ended) step = H1_BODY_END;
    } else if (carrier->input) {
        cy_bytes rest = buffer_view(carrier->input), piece;
        size_t before = rest.count;
        do {
            step = h1_body_step(body, &rest, &piece);
        } while (step == H1_BODY_DATA || step == H1_BODY_TRAILER);
        exchange->drained_bytes += before - rest.count;
        carrier->input->begin = carrier->input->end - (uint32_t)rest.count;
        carrier_drop_empty_input(carrier);
    }
    if (step == H1_BODY_MORE && carrier->input_ended && h1_body_end_of_stream(body)) step = H1_BODY_END;
    return step;
}

/* The answer is out; the rest of the request's body is in the way of the next request. */
static void exchange_drain(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    exchange->phase = EXCHANGE_DRAINING;
    enum h1_body_step step = exchange_skip_body(exchange);
    if (step == H1_BODY_END) {
        carrier_end(carrier, CARRIER_END_KEPT);
        return;
    }
    if (step == H1_BODY_FAULT || exchange->drained_bytes > LIMIT_HTTP_DRAIN_BYTES || carrier->input_ended) {
        carrier_end(carrier, CARRIER_END_LAST_SENDING);
        return;
    }
    exchange_await_body(exchange);
    carrier_want_input(carrier);
}

/* The client has finished before the end that its request's framing promises, and somebody still waits for that. */
static bool exchange_is_cut(const struct http_exchange *exchange)
{
    const struct exchange_carrier *carrier = exchange->carrier;
    const struct h1_body *body = &exchange->request_body.body;
    if (!carrier->input_ended || carrier->input || body->ended || body->kind == HTTP_BODY_UNTIL_CLOSE)
        return false;
    bool is_wanted = exchange->phase == EXCHANGE_THINKING || exchange->proxy.active;
    return is_wanted && !exchange->proxy.request_stopped;
}

void exchange_on_input(struct http_exchange *exchange)
{
    if (exchange->carrier->input) exchange->continue_waiting = false; /* the client did not wait */
    exchange_count_body(exchange);
    if (exchange->phase == EXCHANGE_DRAINING)
        exchange_drain(exchange);
    else if (exchange_is_cut(exchange))
        exchange_client_gone(exchange, CY_ERR(HTTP_EARLY_END));
    else if (exchange->phase == EXCHANGE_ANSWERING && exchange->proxy.active)
        proxy_pump_request(exchange);
    /* Else the bytes wait: for the verdict, or for the end of the answer. */
}

void exchange_on_written(struct http_exchange *exchange)
{
    enum exchange_write write = (enum exchange_write)exchange->write;
    exchange->write = EXCHANGE_WRITE_NONE;
    carrier_clear_timer(exchange->carrier);
    if (exchange->pending_status) {
        uint16_t status = exchange->pending_status;
        exchange->pending_status = 0;
        exchange_refuse(exchange, status, exchange->pending_text, true);
        return;
    }
    if (write == EXCHANGE_WRITE_RESPOND) {
        respond_continue(exchange);
        return;
    }
    if (write == EXCHANGE_WRITE_SWITCH) {
        tunnel_start(exchange);
        return;
    }
    /* The write's timer stood in for the one that watches the request's body. */
    if (!exchange->request_body.ended && !proxy_pump_request(exchange)) return;
    if (write == EXCHANGE_WRITE_PROXY)
        proxy_on_client_written(exchange);
    else
        proxy_pump_response(exchange);
}

void exchange_client_gone(struct http_exchange *exchange, cy_err err)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_server *server = carrier->server;
    const struct http_request *request = &exchange->request;
    char text[128];
    bool is_ours = cy_is(err, CY_ERR_CANCELLED), is_answered = exchange->phase == EXCHANGE_DRAINING;
    if (!is_ours && !is_answered) server->counters->client_aborts++;
    exchange->client_gone = !is_answered;
    if (exchange->phase == EXCHANGE_THINKING) {
        server->options.on_gone(server->options.context, exchange);
        exchange->phase = EXCHANGE_ANSWERING;
    }
    if (exchange->phase == EXCHANGE_ANSWERING && !is_ours) {
        log_write(server_log(server), LOG_INFO, "client %.*s is gone (%s): %.*s %.*s%.*s ends with 499",
                  CY_BYTES_ARG(carrier_peer_text(carrier)), cy_err_describe(err, false, text, sizeof text),
                  CY_BYTES_ARG(request->method), CY_BYTES_ARG(request->host), CY_BYTES_ARG(request->path));
    }
    proxy_cancel(exchange);
    carrier_end(carrier, CARRIER_END_ABORT);
}

void exchange_on_timeout(struct http_exchange *exchange, unsigned kind)
{
    struct exchange_carrier *carrier = exchange->carrier;
    if (kind == CARRIER_TIMER_CONTINUE) {
        exchange->continue_waiting = false;
        if (carrier->writing) return;
        if (!respond_interim(exchange, 100, CY_BYTES("Continue"), NULL, 0))
            carrier_end(carrier, CARRIER_END_ABORT);
        return;
    }
    if (kind == CARRIER_TIMER_BODY && exchange->phase == EXCHANGE_DRAINING) {
        carrier_end(carrier, CARRIER_END_SHORT);
        return;
    }
    if (kind == CARRIER_TIMER_BODY && exchange->status == 0) {
        proxy_cancel(exchange);
        exchange_refuse(exchange, 408, "the body did not come in time", false);
        return;
    }
    if (kind == CARRIER_TIMER_WRITE && exchange_is_read(exchange)) return;
    exchange_client_gone(exchange, CY_ERR(TIMEOUT));
}

/* -- the answer ------------------------------------------------------------------------------------------ */

void exchange_refuse(struct http_exchange *exchange, uint16_t status, const char *text, bool keep)
{
    struct exchange_carrier *carrier = exchange->carrier;
    DCHECK(exchange->status == 0 && !exchange->proxy.active);
    exchange->phase = EXCHANGE_ANSWERING;
    if (!keep) exchange->client_keeps = false;
    if (carrier->writing) { /* an interim answer, with its time; this one follows it */
        exchange->pending_status = status;
        exchange->pending_text = text;
        return;
    }
    carrier_clear_timer(carrier);
    if (!respond_text(exchange, status, text)) carrier_end(carrier, CARRIER_END_ABORT);
}

void exchange_answered(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    /* RFC 9110 section 15: what is past the last class is taken for it. */
    carrier->server->counters->responses_by_class[exchange->status < 600 ? exchange->status / 100 : 5]++;
    carrier_clear_timer(carrier);
    enum h1_body_step step = exchange_skip_body(exchange);
    if (!exchange->keep_alive) /* a client that would stay may be sending its next request already */
        carrier_end(carrier, step == H1_BODY_END && !exchange->client_keeps ? CARRIER_END_LAST
                                                                            : CARRIER_END_LAST_SENDING);
    else if (step == H1_BODY_END)
        carrier_end(carrier, CARRIER_END_KEPT);
    else
        exchange_drain(exchange);
}
