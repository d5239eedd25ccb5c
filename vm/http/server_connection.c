/* SPDX-License-Identifier: MIT
 *
 * vm/http/server_connection.c: one client's connection: its bytes, its timer, its end.
 *
 * In:   a stream. Out: exchanges, one after the other; states are drawn in server_internal.h.
 * Invariant: after connection_close `stream` is NULL, and the struct lives until its read and write have
 *            completed.
 * Not here:  what a request means (exchange.c).
 */
#include "vm/http/server_internal.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

/* -- memory ---------------------------------------------------------------------------------------------- */

static void connection_link(struct http_server *server, struct http_connection *connection)
{
    connection->next = server->connections;
    if (connection->next) connection->next->previous = connection;
    server->connections = connection;
}

static void connection_unlink(struct http_server *server, struct http_connection *connection)
{
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next) connection->next->previous = connection->previous;
}

static void connection_recycle(struct http_connection *connection)
{
    if (connection->stream || connection->reading || connection->writing) return;
    struct http_server *server = connection->server;
    if (connection->exchange) exchange_free(connection->exchange);
    connection_unlink(server, connection);
    connection->next = server->free_connections;
    server->free_connections = connection;
    server_release(server);
}

/* -- the end --------------------------------------------------------------------------------------------- */

void connection_close(struct http_connection *connection)
{
    CHECK(connection->stream);
    struct http_server *server = connection->server;
    loop_timer_clear(server->options.loop, &connection->timer);
    buffer_unref(&connection->input);
    stream_close(&connection->stream);
    CHECK(server->counters.connections_open > 0);
    server->counters.connections_open--;
    connection_recycle(connection);
    server_check_drained(server);
}

void connection_abort(struct http_connection *connection)
{
    stream_abort_on_close(connection->stream);
    connection_close(connection);
}

/* Closing with bytes unread makes the system send RST, which can destroy an answer on its way (RFC 9112
 * section 9.6). So we finish sending, then read on for a bounded time. */
void connection_finish(struct http_connection *connection, bool client_is_sending)
{
    if (connection->exchange) {
        exchange_free(connection->exchange);
        connection->exchange = NULL;
    }
    if (connection->peer_finished || (!client_is_sending && !connection->input)) {
        connection_close(connection);
        return;
    }
    buffer_unref(&connection->input);
    connection->lingering = true;
    stream_shutdown_write(connection->stream);
    connection_set_timer(connection, CONNECTION_TIMER_LINGER, LIMIT_HTTP_LINGER_MS);
    connection_want_read(connection);
}

/* -- reading --------------------------------------------------------------------------------------------- */

static void connection_read(struct http_connection *connection)
{
    if (connection->reading || connection->peer_finished) return;
    connection->reading = true;
    stream_read_start(connection->stream, &connection->read);
}

void connection_want_read(struct http_connection *connection)
{
    if (!connection->input) connection_read(connection);
}

void connection_drop_empty_input(struct http_connection *connection)
{
    if (connection->input && connection->input->begin == connection->input->end)
        buffer_unref(&connection->input);
}

/* Bytes of a head are here. */
static void connection_parse(struct http_connection *connection)
{
    struct http_exchange *exchange = connection->exchange;
    if (!exchange) {
        exchange = exchange_new(connection);
        if (!exchange) {
            connection_close(connection);
            return;
        }
        connection->exchange = exchange;
    }
    switch (h1_parse_head(&exchange->head, buffer_view(connection->input))) {
    case H1_PARSE_MORE:
        if (connection->timer_kind != CONNECTION_TIMER_HEAD)
            connection_set_timer(connection, CONNECTION_TIMER_HEAD,
                                 connection->server->options.header_timeout_ms);
        if (connection->peer_finished)
            connection_close(connection);
        else
            connection_read(connection);
        return;
    case H1_PARSE_FAULT:
        exchange_refuse(exchange, h1_fault_status(exchange->head.fault), h1_fault_text(exchange->head.fault),
                        false);
        return;
    case H1_PARSE_DONE: break;
    }
    connection->timer_kind = CONNECTION_TIMER_NONE;
    exchange->head_buffer = buffer_ref(connection->input);
    connection->input->begin += (uint32_t)exchange->head.used_bytes;
    connection_drop_empty_input(connection);
    exchange_on_head(exchange);
}

static void connection_on_data(struct http_connection *connection, struct buffer *owned_buffer)
{
    struct http_server *server = connection->server;
    size_t count = owned_buffer->end - owned_buffer->begin;
    server->counters.bytes_in += count;
    if (connection->lingering) {
        buffer_unref(&owned_buffer);
        connection->lingered_bytes += count;
        if (connection->lingered_bytes > LIMIT_HTTP_LINGER_BYTES)
            connection_close(connection);
        else
            connection_read(connection);
        return;
    }
    if (cy_failed(input_append(&connection->input, owned_buffer, server_buffers(server)))) {
        if (connection->exchange && connection->exchange->phase != EXCHANGE_HEAD)
            exchange_client_gone(connection->exchange, CY_ERR(NO_MEMORY));
        else
            connection_close(connection);
        return;
    }
    if (!connection->exchange || connection->exchange->phase == EXCHANGE_HEAD)
        connection_parse(connection);
    else
        exchange_on_input(connection->exchange);
}

/* FIN. After a complete request the client may still want its answer; inside one it has given up. */
static void connection_on_end(struct http_connection *connection)
{
    connection->peer_finished = true;
    struct http_exchange *exchange = connection->exchange;
    if (!exchange || exchange->phase == EXCHANGE_HEAD) {
        connection_close(connection);
        return;
    }
    bool wants_body = exchange->phase == EXCHANGE_THINKING || exchange->proxy.active;
    if (exchange->phase == EXCHANGE_DRAINING)
        connection_close(connection);
    else if (wants_body && !exchange->request_body.body.ended && !exchange->proxy.request_stopped)
        exchange_client_gone(exchange, CY_ERR(HTTP_EARLY_END));
}

static void connection_on_read(struct stream_read *read)
{
    struct http_connection *connection = CY_CONTAINER_OF(read, struct http_connection, read);
    connection->reading = false;
    if (!connection->stream) {
        buffer_unref(&read->buffer);
        connection_recycle(connection);
        return;
    }
    if (cy_failed(read->err)) {
        if (connection->exchange && connection->exchange->phase != EXCHANGE_HEAD)
            exchange_client_gone(connection->exchange, read->err);
        else
            connection_close(connection);
        return;
    }
    if (read->buffer)
        connection_on_data(connection, read->buffer);
    else
        connection_on_end(connection);
}

/* -- writing --------------------------------------------------------------------------------------------- */

static void connection_on_written(struct stream_write *write)
{
    struct http_connection *connection = CY_CONTAINER_OF(write, struct http_connection, write);
    connection->writing = false;
    relay_hold_release(&connection->hold);
    connection->server->counters.bytes_out += write->send.sent_bytes;
    if (!connection->stream) {
        connection_recycle(connection);
        return;
    }
    CHECK(connection->exchange);
    if (cy_failed(write->err))
        exchange_client_gone(connection->exchange, write->err);
    else
        exchange_on_written(connection->exchange, write->send.sent_bytes);
}

void connection_write(struct http_connection *connection)
{
    CHECK(!connection->writing);
    DCHECK(connection->write.send.part_count > 0);
    connection->writing = true;
    connection_set_timer(connection, CONNECTION_TIMER_WRITE,
                         connection->server->options.body_idle_timeout_ms);
    stream_write_start(connection->stream, &connection->write);
}

/* -- timer ----------------------------------------------------------------------------------------------- */

static void connection_on_timer(struct timer *timer)
{
    struct http_connection *connection = CY_CONTAINER_OF(timer, struct http_connection, timer);
    enum connection_timer kind = (enum connection_timer)connection->timer_kind;
    connection->timer_kind = CONNECTION_TIMER_NONE;
    switch (kind) {
    case CONNECTION_TIMER_NONE: return;
    case CONNECTION_TIMER_IDLE:
    case CONNECTION_TIMER_LINGER: connection_close(connection); return;
    default: CHECK(connection->exchange); exchange_on_timeout(connection->exchange, kind);
    }
}

void connection_set_timer(struct http_connection *connection, enum connection_timer kind, uint32_t after_ms)
{
    connection->timer_kind = (uint8_t)kind;
    loop_timer_set(connection->server->options.loop, &connection->timer, after_ms);
}

/* -- the beginning, and the next request ----------------------------------------------------------------- */

void connection_start(struct http_server *server, struct stream *owned_stream, const struct address *peer)
{
    struct http_connection *connection = server->free_connections;
    bool refused = server->draining || server->counters.connections_open >= server->options.connections_max;
    if (!refused && connection) server->free_connections = connection->next;
    if (!refused && !connection) connection = mem_alloc(sizeof *connection);
    if (refused || !connection) {
        stream_close(&owned_stream);
        return;
    }
    memset(connection, 0, sizeof *connection);
    connection->server = server;
    connection->stream = owned_stream;
    connection->peer = *peer;
    connection->read.done = connection_on_read;
    connection->write.done = connection_on_written;
    connection->timer.fire = connection_on_timer;
    connection_link(server, connection);
    server->live_count++;
    server->counters.connections++;
    server->counters.connections_open++;
    /* A connection on which nothing ever comes is worth no more than a slow head. */
    connection_set_timer(connection, CONNECTION_TIMER_IDLE, server->options.header_timeout_ms);
    connection_read(connection);
}

void connection_next(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    exchange_free(connection->exchange);
    connection->exchange = NULL;
    connection_drop_empty_input(connection);
    if (server->draining || (connection->peer_finished && !connection->input)) {
        connection_finish(connection, false);
        return;
    }
    if (connection->input) {
        connection_parse(connection);
        return;
    }
    connection_set_timer(connection, CONNECTION_TIMER_IDLE, server->options.keep_alive_ms);
    connection_want_read(connection);
}

cy_bytes connection_peer_text(struct http_connection *connection)
{
    if (connection->peer_text_bytes == 0) {
        struct builder text;
        builder_init(&text);
        address_format(&connection->peer, false, &text);
        cy_bytes view = builder_view(&text);
        if (view.count > 2 && view.data[0] == '[') view = cy_bytes_slice(view, 1, view.count - 1);
        if (text.failed || view.count == 0 || view.count >= sizeof connection->peer_text)
            view = CY_BYTES("unknown");
        memcpy(connection->peer_text, view.data, view.count);
        connection->peer_text_bytes = (uint8_t)view.count;
        builder_fini(&text);
    }
    return cy_bytes_of(connection->peer_text, connection->peer_text_bytes);
}
