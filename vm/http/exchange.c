/* SPDX-License-Identifier: MIT
 *
 * vm/http/exchange.c: one request and its answer, from the complete head to the next request.
 *
 * In:   a parsed head, then a verdict. Out: calls of the handler, and the work of respond.c and proxy.c.
 * Invariant: on_request is followed by exactly one answer or fail, or by on_gone; phase THINKING is the time
 *            between.
 */
#include "vm/http/server_internal.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

/* -- memory ---------------------------------------------------------------------------------------------- */

struct http_exchange *exchange_new(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    struct http_exchange *exchange = server->free_exchanges;
    if (exchange)
        server->free_exchanges = exchange->next;
    else
        exchange = mem_alloc(sizeof *exchange);
    if (!exchange) return NULL;
    /* The tables at the end are filled by whoever counts their rows: clearing 12 KiB per request would cost
     * more than the parser does. */
    memset(exchange, 0, offsetof(struct http_exchange, request));
    exchange->connection = connection;
    exchange->phase = EXCHANGE_HEAD;
    exchange->request_body.body.fault =
        H1_FAULT_LENGTH; /* no framing yet: nothing behind a refused head can be read */
    exchange->request.field_count = 0;
    exchange->request.minor_version = 1;
    exchange->request.method = exchange->request.host = exchange->request.path = CY_BYTES_NONE;
    exchange->request.keep_alive = exchange->request.is_head = exchange->request.expects_continue = false;
    h1_parse_begin_request(&exchange->head, exchange->request.fields);
    server->counters.exchanges_open++;
    return exchange;
}

void exchange_free(struct http_exchange *exchange)
{
    struct http_server *server = exchange->connection->server;
    DCHECK(!exchange->connection->writing && !exchange->proxy.connection && !exchange->proxy.connector);
    http_verdict_unref(&exchange->verdict);
    buffer_unref(&exchange->head_buffer);
    buffer_unref(&exchange->space_buffer);
    relay_end(&exchange->request_body);
    relay_end(&exchange->proxy.response);
    exchange->next = server->free_exchanges;
    server->free_exchanges = exchange;
    CHECK(server->counters.exchanges_open > 0);
    server->counters.exchanges_open--;
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
    log_write(server_log(exchange->connection->server), LOG_ERROR,
              "handler failed: %.*s: %.*s %.*s%.*s answered 500", CY_BYTES_ARG(reason),
              CY_BYTES_ARG(request->method), CY_BYTES_ARG(request->host), CY_BYTES_ARG(request->path));
    exchange_refuse(exchange, 500, NULL, true);
}

/* -- the head -------------------------------------------------------------------------------------------- */

static uint8_t exchange_judge(struct http_exchange *exchange)
{
    size_t space_bytes = h1_space_needed(&exchange->head);
    uint8_t *space = exchange->space;
    if (space_bytes > sizeof exchange->space) {
        exchange->space_buffer = buffer_take_sized(server_buffers(exchange->connection->server), space_bytes);
        if (!exchange->space_buffer) return H1_FAULT_HEAD_LONG;
        space = exchange->space_buffer->data;
    }
    return h1_judge_request(&exchange->head, space, &exchange->request);
}

void exchange_on_head(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    struct http_server *server = connection->server;
    struct http_request *request = &exchange->request;
    uint8_t fault = exchange_judge(exchange);
    if (fault) {
        exchange_refuse(exchange, h1_fault_status(fault), h1_fault_text(fault), false);
        return;
    }
    request->client = connection->peer;
    request->secure = false;
    relay_begin(&exchange->request_body, &request->body, request->body.kind == HTTP_BODY_CHUNKED);
    exchange->continue_waiting = request->expects_continue && !connection->input;
    exchange->phase = EXCHANGE_THINKING;
    server->counters.requests++;
    connection_want_read(connection);
    server->options.on_request(server->options.context, exchange);
}

/* -- what the connection tells --------------------------------------------------------------------------- */

/* Reads and drops what has come of the request's body. */
static enum h1_body_step exchange_skip_body(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    enum h1_body_step step = exchange->request_body.body.ended ? H1_BODY_END : H1_BODY_MORE;
    if (!connection->input) return step;
    cy_bytes rest = buffer_view(connection->input), piece;
    size_t before = rest.count;
    do {
        step = h1_body_step(&exchange->request_body.body, &rest, &piece);
    } while (step == H1_BODY_DATA || step == H1_BODY_TRAILER);
    exchange->drained_bytes += before - rest.count;
    connection->input->begin = connection->input->end - (uint32_t)rest.count;
    connection_drop_empty_input(connection);
    return step;
}

/* The answer is out; the rest of the request's body is in the way of the next request. */
static void exchange_drain(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    exchange->phase = EXCHANGE_DRAINING;
    enum h1_body_step step = exchange_skip_body(exchange);
    if (step == H1_BODY_END) {
        connection_next(connection);
        return;
    }
    if (step == H1_BODY_FAULT || exchange->drained_bytes > LIMIT_HTTP_DRAIN_BYTES ||
        connection->peer_finished) {
        connection_finish(connection, true);
        return;
    }
    connection_set_timer(connection, CONNECTION_TIMER_BODY, connection->server->options.body_idle_timeout_ms);
    connection_want_read(connection);
}

void exchange_on_input(struct http_exchange *exchange)
{
    exchange->continue_waiting = false; /* the client did not wait */
    if (exchange->phase == EXCHANGE_DRAINING) {
        exchange_drain(exchange);
    } else if (exchange->phase == EXCHANGE_ANSWERING && exchange->proxy.active) {
        proxy_pump_request(exchange);
    }
    /* Else the bytes wait: for the verdict, or for the end of the answer. */
}

void exchange_on_written(struct http_exchange *exchange, size_t sent_bytes)
{
    enum exchange_write write = (enum exchange_write)exchange->write;
    exchange->write = EXCHANGE_WRITE_NONE;
    exchange->connection->timer_kind = CONNECTION_TIMER_NONE;
    (void)sent_bytes;
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
    /* The write's timer stood in for the one that watches the request's body. */
    if (!exchange->request_body.ended && !proxy_pump_request(exchange)) return;
    if (write == EXCHANGE_WRITE_PROXY)
        proxy_on_client_written(exchange);
    else
        proxy_pump_response(exchange);
}

void exchange_client_gone(struct http_exchange *exchange, cy_err err)
{
    struct http_connection *connection = exchange->connection;
    struct http_server *server = connection->server;
    const struct http_request *request = &exchange->request;
    char text[128];
    bool is_ours = cy_is(err, CY_ERR_CANCELLED);
    if (!is_ours) server->counters.client_aborts++;
    if (exchange->phase == EXCHANGE_THINKING) {
        server->options.on_gone(server->options.context, exchange);
        exchange->phase = EXCHANGE_ANSWERING;
    }
    if (exchange->phase == EXCHANGE_ANSWERING && !is_ours) {
        log_write(server_log(server), LOG_INFO, "client %.*s is gone (%s): %.*s %.*s%.*s ends with 499",
                  CY_BYTES_ARG(connection_peer_text(connection)),
                  cy_err_describe(err, false, text, sizeof text), CY_BYTES_ARG(request->method),
                  CY_BYTES_ARG(request->host), CY_BYTES_ARG(request->path));
    }
    proxy_cancel(exchange);
    connection_abort(connection);
}

void exchange_on_timeout(struct http_exchange *exchange, enum connection_timer kind)
{
    struct http_connection *connection = exchange->connection;
    switch (kind) {
    case CONNECTION_TIMER_HEAD:
        exchange_refuse(exchange, 408, "the head did not come in time", false);
        return;
    case CONNECTION_TIMER_CONTINUE:
        exchange->continue_waiting = false;
        if (connection->writing) return;
        if (!respond_interim(exchange, 100, CY_BYTES("Continue"), NULL, 0)) connection_abort(connection);
        return;
    case CONNECTION_TIMER_BODY:
        if (exchange->phase == EXCHANGE_DRAINING) {
            connection_close(connection);
            return;
        }
        if (exchange->status == 0) {
            proxy_cancel(exchange);
            exchange_refuse(exchange, 408, "the body did not come in time", false);
            return;
        }
        break;
    default: break;
    }
    exchange_client_gone(exchange, CY_ERR(TIMEOUT));
}

/* -- the answer ------------------------------------------------------------------------------------------ */

void exchange_refuse(struct http_exchange *exchange, uint16_t status, const char *text, bool keep)
{
    struct http_connection *connection = exchange->connection;
    DCHECK(exchange->status == 0 && !exchange->proxy.active);
    exchange->phase = EXCHANGE_ANSWERING;
    connection->timer_kind = CONNECTION_TIMER_NONE;
    if (!keep) exchange->request.keep_alive = false;
    if (connection->writing) { /* an interim answer; this one follows it */
        exchange->pending_status = status;
        exchange->pending_text = text;
        return;
    }
    if (!respond_text(exchange, status, text)) connection_abort(connection);
}

bool respond_may_keep(const struct http_exchange *exchange, bool length_known)
{
    const struct http_connection *connection = exchange->connection;
    if (!exchange->request.keep_alive || connection->server->draining) return false;
    if (connection->peer_finished && !connection->input) return false;
    if (exchange->request.minor_version == 0 && !length_known) return false;
    /* Nobody can know whether a client that waits for 100 will send its body after a final answer. */
    if (exchange->continue_waiting || exchange->proxy.request_stopped) return false;
    const struct h1_body *body = &exchange->request_body.body;
    if (body->fault) return false;
    return body->kind != HTTP_BODY_LENGTH || body->left_bytes <= LIMIT_HTTP_DRAIN_BYTES;
}

void exchange_answered(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    connection->server->counters.responses_by_class[exchange->status / 100 % 6]++;
    connection->timer_kind = CONNECTION_TIMER_NONE;
    enum h1_body_step step = exchange_skip_body(exchange);
    if (!exchange->keep_alive)
        connection_finish(connection, step != H1_BODY_END);
    else if (step == H1_BODY_END)
        connection_next(connection);
    else
        exchange_drain(exchange);
}
