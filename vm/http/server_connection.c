/* SPDX-License-Identifier: MIT
 *
 * vm/http/server_connection.c: one client's HTTP/1 connection: its bytes, its timer, its end. The carrier of its
 * exchanges (carrier.h), one after the other.
 *
 * In:   a stream. Out: exchanges; states are drawn in server_internal.h.
 *
 *   stream ─ready─► what was agreed on (ALPN) ─http/1.1 or nothing─► HTTP/1 ─its preface─┐
 *                                             ├─h2───────────────────────────────────────┴─► h2_server.c
 *                                             └─anything else─► closed
 *
 * Invariant: after connection_close `stream` is NULL, and the struct lives until its ready, read and write have
 *            completed.
 * Not here:  what becomes of a request (exchange.c).
 */
#include "vm/http/h2.h"
#include "vm/http/server_internal.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

static struct http_connection *connection_of(struct exchange_carrier *carrier)
{
    return (struct http_connection *)carrier;
}

static void connection_on_written(struct stream_write *write);
static void connection_on_half_close_timer(struct timer *timer);
static cy_bytes connection_peer_text(struct exchange_carrier *carrier);

/* -- memory ---------------------------------------------------------------------------------------------- */

static bool connection_take_write(struct http_connection *connection)
{
    if (connection->write) return true;
    struct connection_write *write = spare_take(&connection->carrier.server->spare_writes);
    if (!write) write = mem_alloc_zeroed(sizeof *write);
    if (!write) return false;
    write->write.done = connection_on_written;
    write->half_close_timer.fire = connection_on_half_close_timer;
    write->connection = connection;
    connection->write = write;
    connection->carrier.send = &write->write.send;
    return true;
}

static void connection_give_write(struct http_connection *connection)
{
    if (!connection->write) return;
    spare_put(&connection->carrier.server->spare_writes, connection->write);
    connection->write = NULL;
    connection->carrier.send = NULL;
}

static void connection_end_half_close(struct http_connection *connection)
{
    if (connection->write && timer_is_set(&connection->write->half_close_timer))
        loop_timer_clear(connection->carrier.server->options.loop, &connection->write->half_close_timer);
}

static void connection_recycle(struct http_connection *connection)
{
    if (connection->stream || connection->preparing || connection->reading || connection->carrier.writing)
        return;
    struct http_server *server = connection->carrier.server;
    if (connection->carrier.exchange) exchange_free(connection->carrier.exchange);
    connection_give_write(connection);
    server_unlink(server, &connection->listed);
    spare_put(&server->spare_connections, connection);
    server_release(server);
}

/* -- the end --------------------------------------------------------------------------------------------- */

void connection_close(struct http_connection *connection)
{
    CHECK(connection->stream);
    struct http_server *server = connection->carrier.server;
    /* Its exchange may outlive the stream, and is recorded with the client's name. */
    if (connection->carrier.exchange && server->options.access_log)
        connection_peer_text(&connection->carrier);
    loop_timer_clear(server->options.loop, &connection->carrier.timer);
    connection_end_half_close(connection);
    buffer_unref(&connection->carrier.input);
    stream_close(&connection->stream);
    server_client_left(server);
    connection_recycle(connection);
    server_check_drained(server);
}

static void connection_read(struct http_connection *connection);

static void connection_set_quiet(struct http_connection *connection)
{
    connection->quiet_since_ms = loop_now_ms(connection->carrier.server->options.loop);
}

/* Closing with bytes unread makes the system send RST, which can destroy an answer on its way (RFC 9112
 * section 9.6). So we finish sending, then read on for a bounded time. */
static void connection_finish(struct http_connection *connection, bool client_is_sending)
{
    if (connection->carrier.exchange) {
        exchange_free(connection->carrier.exchange);
        connection->carrier.exchange = NULL;
    }
    if (connection->carrier.input_ended || (!client_is_sending && !connection->carrier.input)) {
        connection_close(connection);
        return;
    }
    buffer_unref(&connection->carrier.input);
    connection->lingering = true;
    connection_set_quiet(connection);
    stream_shutdown_write(connection->stream);
    carrier_set_timer(&connection->carrier, CONNECTION_TIMER_LINGER, LIMIT_HTTP_LINGER_MS);
    connection_read(connection);
}

/* -- making room ----------------------------------------------------------------------------------------- */

/* Since when we have been waiting for this client, which is what may be held against it; UINT64_MAX: we are not, or not
 * for long enough. Inside a handshake, between requests, inside a head, and behind its last answer nothing is owed to
 * it; inside a body, and while it does not take what we send, it owes. */
static uint64_t connection_waits_since(const struct server_connection *listed, uint64_t now_ms)
{
    const struct http_connection *connection =
        (const struct http_connection *)((const char *)listed - offsetof(struct http_connection, listed));
    const struct exchange_carrier *carrier = &connection->carrier;
    const struct http_exchange *exchange = carrier->exchange;
    if (!connection->stream || carrier->tunnel) return UINT64_MAX;
    if (!exchange || (exchange->phase == EXCHANGE_HEAD && !carrier->writing))
        return connection->quiet_since_ms;
    bool owes = carrier->timer_kind == CARRIER_TIMER_BODY ||
                (carrier->timer_kind == CARRIER_TIMER_WRITE && carrier->writing);
    if (!owes || now_ms - carrier->timer_since_ms < LIMIT_HTTP_OWING_MS) return UINT64_MAX;
    return carrier->timer_since_ms;
}

/* Whose bytes have come does not let us wait, it is we who have not looked: all that a loaded machine lets pile up is
 * accepted in one turn, and read after that. Asked of those chosen alone, for it may cost a call of the system's. */
static bool connection_has_said_more(const struct server_connection *listed)
{
    struct stream *stream = listed->type->awaits(listed);
    return stream && stream_has_come(stream);
}

/* Looks at all, so that no request pays for an order among them; the batch spreads that over the clients that come.
 * The list begins with the newest, so of those that wait since the same millisecond the last one seen goes first. */
uint32_t connection_evict(struct http_server *server)
{
    struct server_connection *oldest[LIMIT_HTTP_EVICT_BATCH];
    uint64_t since_ms[LIMIT_HTTP_EVICT_BATCH], now_ms = loop_now_ms(server->options.loop);
    uint32_t count = 0;
    for (struct server_connection *one = server->connections; one; one = one->next) {
        uint64_t since = one->type->waits_since(one, now_ms);
        uint32_t place = count;
        if (since == UINT64_MAX || now_ms - since < LIMIT_HTTP_QUIET_MS) continue;
        while (place > 0 && since_ms[place - 1] >= since) place--;
        if (place == LIMIT_HTTP_EVICT_BATCH) continue;
        if (count < LIMIT_HTTP_EVICT_BATCH) count++;
        memmove(oldest + place + 1, oldest + place, (count - 1 - place) * sizeof(struct server_connection *));
        memmove(since_ms + place + 1, since_ms + place, (count - 1 - place) * sizeof(uint64_t));
        oldest[place] = one;
        since_ms[place] = since;
    }
    uint32_t lost_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (connection_has_said_more(oldest[i])) continue;
        oldest[i]->type->lose(oldest[i], CY_ERR(TIMEOUT));
        lost_count++;
    }
    server->counters->evictions += lost_count;
    return lost_count;
}

/* -- reading --------------------------------------------------------------------------------------------- */

/* The client's last request is here, all of it. Most of these connections end with its answer, soon. */
static bool connection_expects_nothing(const struct http_connection *connection)
{
    const struct http_exchange *exchange = connection->carrier.exchange;
    return exchange && exchange->phase != EXCHANGE_HEAD && !exchange->client_keeps &&
           !exchange->wants_upgrade && exchange->request_body.body.ended;
}

static void connection_read(struct http_connection *connection)
{
    uint32_t pipe_bytes_max = connection->carrier.pipe_bytes_max;
    connection->carrier.pipe_bytes_max = 0;
    if (connection->reading || connection->carrier.input_ended) return;
    connection->reading = true;
    connection->read.receive.pipe_bytes_max = pipe_bytes_max;
    connection->read.receive.unhurried = connection_expects_nothing(connection);
    stream_read_start(connection->stream, &connection->read);
}

/* The head is complete. */
static void connection_on_head(struct http_connection *connection)
{
    struct exchange_carrier *carrier = &connection->carrier;
    struct http_exchange *exchange = carrier->exchange;
    carrier_clear_timer(carrier);
    connection->has_served = true;
    exchange->head_buffer = buffer_ref(carrier->input);
    carrier->input->begin += (uint32_t)exchange->h1_head.used_bytes;
    carrier_drop_empty_input(carrier);
    struct h1_request wishes;
    uint8_t fault = exchange_judge(exchange, &wishes);
    if (fault) {
        exchange_refuse(exchange, h1_fault_status(fault), h1_fault_text(fault), false);
        return;
    }
    const struct stream_info *info = stream_info(connection->stream);
    exchange->request.client = info->peer;
    exchange->request.secure = info->secure;
    exchange->head_bytes = exchange->h1_head.used_bytes;
    exchange->client_keeps = wishes.keep_alive;
    exchange->continue_waiting = wishes.expects_continue && !carrier->input;
    exchange->wants_upgrade = wishes.wants_upgrade;
    exchange_begin(exchange);
}

/* Somebody else speaks on from here, beginning with the bytes that wait. */
static void connection_hand_over_h2(struct http_connection *connection)
{
    struct http_server *server = connection->carrier.server;
    struct stream *stream = connection->stream;
    CHECK(!connection->reading && !connection->carrier.writing);
    if (connection->carrier.exchange) exchange_free(connection->carrier.exchange);
    connection->carrier.exchange = NULL;
    loop_timer_clear(server->options.loop, &connection->carrier.timer);
    if (connection->carrier.input) stream_unread(stream, connection->carrier.input);
    connection->carrier.input = NULL;
    connection->stream = NULL;
    h2_server_start(server, &connection->listed, stream);
    server_client_left(server);
    connection_recycle(connection);
    server_check_drained(server);
}

/* To HTTP/1 the preface of HTTP/2 is a request of a version that it does not know: so only what is refused is looked
 * at, and nobody else pays. True when it was the preface, or may become it. */
static bool connection_take_preface(struct http_connection *connection)
{
    struct exchange_carrier *carrier = &connection->carrier;
    struct h1_head *head = &carrier->exchange->h1_head;
    cy_bytes input = buffer_view(carrier->input), preface = CY_BYTES(H2_PREFACE);
    size_t count = cy_min_size(input.count, preface.count);
    if (head->fault != H1_FAULT_VERSION_UNKNOWN || connection->has_served) return false;
    if (carrier->server->options.refuses_http2 || stream_info(connection->stream)->secure) return false;
    if (!cy_bytes_equal(cy_bytes_slice(input, 0, count), cy_bytes_slice(preface, 0, count))) return false;
    if (count == preface.count) {
        connection_hand_over_h2(connection);
        return true;
    }
    h1_parse_begin_request(head, carrier->exchange->request.fields); /* from the start, with more of it */
    if (carrier->timer_kind != CONNECTION_TIMER_HEAD)
        carrier_set_timer(carrier, CONNECTION_TIMER_HEAD, carrier->server->options.header_timeout_ms);
    connection_read(connection);
    return true;
}

/* Bytes of a head are here. */
static void connection_parse(struct http_connection *connection)
{
    struct http_exchange *exchange = connection->carrier.exchange;
    if (!exchange) {
        exchange = connection_take_write(connection) ? exchange_new(&connection->carrier) : NULL;
        if (!exchange) {
            connection_close(connection);
            return;
        }
        h1_parse_begin_request(&exchange->h1_head, exchange->request.fields);
        exchange->h1_head.bytes_max = connection->carrier.server->options.head_bytes_max;
        exchange->h1_head.fields_max = connection->carrier.server->options.fields_max;
        connection->carrier.exchange = exchange;
    }
    switch (h1_parse_head(&exchange->h1_head, buffer_view(connection->carrier.input))) {
    case H1_PARSE_MORE:
        if (connection->carrier.timer_kind != CONNECTION_TIMER_HEAD) {
            connection_set_quiet(connection);
            carrier_set_timer(&connection->carrier, CONNECTION_TIMER_HEAD,
                              connection->carrier.server->options.header_timeout_ms);
        }
        if (connection->carrier.input_ended)
            connection_close(connection);
        else
            connection_read(connection);
        return;
    case H1_PARSE_FAULT:
        if (connection_take_preface(connection)) return;
        exchange_refuse(exchange, h1_fault_status(exchange->h1_head.fault),
                        h1_fault_text(exchange->h1_head.fault), false);
        return;
    case H1_PARSE_DONE: connection_on_head(connection); return;
    }
}

void connection_lose(struct http_connection *connection, cy_err err)
{
    struct exchange_carrier *carrier = &connection->carrier;
    if (carrier->tunnel)
        tunnel_client_gone(carrier->tunnel, err);
    else if (carrier->exchange && carrier->exchange->phase != EXCHANGE_HEAD)
        exchange_client_gone(carrier->exchange, err);
    else
        connection_close(connection);
}

static void connection_on_data(struct http_connection *connection, struct buffer *owned_buffer)
{
    struct http_server *server = connection->carrier.server;
    size_t count = owned_buffer->end - owned_buffer->begin;
    server->counters->bytes_in += count;
    if (connection->lingering) {
        buffer_unref(&owned_buffer);
        connection->lingered_bytes += count;
        if (connection->lingered_bytes > LIMIT_HTTP_LINGER_BYTES)
            connection_close(connection);
        else
            connection_read(connection);
        return;
    }
    if (cy_failed(input_append(&connection->carrier.input, owned_buffer, server_buffers(server)))) {
        connection_lose(connection, CY_ERR(NO_MEMORY));
        return;
    }
    if (CY_UNLIKELY(connection->carrier.tunnel != NULL))
        tunnel_on_input(connection->carrier.tunnel);
    else if (!connection->carrier.exchange || connection->carrier.exchange->phase == EXCHANGE_HEAD)
        connection_parse(connection);
    else
        exchange_on_input(connection->carrier.exchange);
}

/* Behind a whole request a client that has only finished sending and one that has left look alike: both send FIN. So
 * the first is given some time for its answer to begin; the second would hold an upstream for as long as that thinks.
 * When the answer goes out, who has left resets. A timer of its own, which no interim answer disturbs. */
static void connection_on_half_close_timer(struct timer *timer)
{
    struct http_connection *connection =
        CY_CONTAINER_OF(timer, struct connection_write, half_close_timer)->connection;
    struct http_exchange *exchange = connection->carrier.exchange;
    CHECK(connection->stream);
    if (exchange && !exchange_answer_has_begun(exchange)) exchange_client_gone(exchange, CY_ERR(CLOSED));
}

/* FIN. After a whole request the client may still want its answer; inside one it has given up. */
static void connection_on_end(struct http_connection *connection)
{
    const struct http_server_options *options = &connection->carrier.server->options;
    struct http_exchange *exchange = connection->carrier.exchange;
    connection->carrier.input_ended = true;
    if (connection->carrier.tunnel) {
        tunnel_on_input(connection->carrier.tunnel);
    } else if (!exchange || exchange->phase == EXCHANGE_HEAD) {
        connection_close(connection);
    } else if (exchange_answer_has_begun(exchange)) {
        exchange_on_input(exchange);
    } else if (options->half_close_ms == HTTP_HALF_CLOSE_NONE) {
        exchange_client_gone(exchange, CY_ERR(CLOSED));
    } else {
        loop_timer_set(options->loop, &connection->write->half_close_timer, options->half_close_ms);
        exchange_on_input(exchange);
    }
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
        connection_lose(connection, read->err);
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
    struct http_connection *connection = CY_CONTAINER_OF(write, struct connection_write, write)->connection;
    connection->carrier.writing = false;
    relay_hold_release(&connection->carrier.hold);
    connection->carrier.server->counters->bytes_out += write->send.sent_bytes;
    if (!connection->stream) {
        connection_recycle(connection);
        return;
    }
    CHECK(connection->carrier.exchange || connection->carrier.tunnel);
    if (cy_failed(write->err))
        connection_lose(connection, write->err);
    else if (CY_UNLIKELY(connection->carrier.tunnel != NULL))
        tunnel_on_written(connection->carrier.tunnel);
    else
        exchange_on_written(connection->carrier.exchange);
}

/* Where a head and where an answer ends, the bytes themselves say. Behind the last answer nothing is sent. */
static void connection_write(struct exchange_carrier *carrier, size_t head_bytes, bool last)
{
    struct http_connection *connection = connection_of(carrier);
    (void)head_bytes;
    connection->write->write.send.ends = last && !carrier->exchange->keep_alive;
    stream_write_start(connection->stream, &connection->write->write);
}

/* -- timer ----------------------------------------------------------------------------------------------- */

static void connection_on_timer(struct timer *timer)
{
    struct exchange_carrier *carrier = CY_CONTAINER_OF(timer, struct exchange_carrier, timer);
    struct http_connection *connection = connection_of(carrier);
    unsigned kind = carrier->timer_kind;
    carrier_clear_timer(carrier);
    switch (kind) {
    case CARRIER_TIMER_NONE: return;
    case CONNECTION_TIMER_IDLE:
    case CONNECTION_TIMER_LINGER: connection_close(connection); return;
    case CARRIER_TIMER_TUNNEL:
        CHECK(carrier->tunnel);
        tunnel_on_timeout(carrier->tunnel);
        return;
    case CONNECTION_TIMER_HEAD:
        exchange_refuse(carrier->exchange, 408, "the head did not come in time", false);
        return;
    default: CHECK(carrier->exchange); exchange_on_timeout(carrier->exchange, kind);
    }
}

/* -- for the server's list ------------------------------------------------------------------------------- */

static void connection_lose_listed(struct server_connection *listed, cy_err err)
{
    struct http_connection *connection = CY_CONTAINER_OF(listed, struct http_connection, listed);
    if (connection->stream) connection_lose(connection, err);
}

static void connection_drain(struct server_connection *listed)
{
    struct http_connection *connection = CY_CONTAINER_OF(listed, struct http_connection, listed);
    const struct exchange_carrier *carrier = &connection->carrier;
    /* A head that has begun may end under other terms, but not where nothing new begins any more. */
    bool begins = listed->retires && carrier->exchange && carrier->exchange->phase == EXCHANGE_HEAD &&
                  !carrier->writing;
    if (connection->stream && (!carrier->exchange || begins) && !carrier->tunnel && !connection->lingering)
        connection_close(connection);
}

static struct stream *connection_awaits(const struct server_connection *listed)
{
    const struct http_connection *connection =
        (const struct http_connection *)((const char *)listed - offsetof(struct http_connection, listed));
    return connection->preparing || connection->reading ? connection->stream : NULL;
}

static const struct server_connection_type connection_listed_type = {
    .lose = connection_lose_listed,
    .drain = connection_drain,
    .waits_since = connection_waits_since,
    .awaits = connection_awaits,
};

/* -- the beginning, and the next request ----------------------------------------------------------------- */

static const struct exchange_carrier_type connection_carrier_type;

/* The protocols there are, by their names in ALPN. A client that agreed on nothing speaks HTTP/1. */
static bool connection_speaks_h1(const struct stream_info *info)
{
    return info->alpn.count == 0 || cy_bytes_equal(info->alpn, CY_BYTES("http/1.1"));
}

cy_bytes connection_alpn(const struct http_server *server)
{
    return server->options.refuses_http2 ? CY_BYTES("\x08http/1.1") : CY_BYTES("\x02h2\x08http/1.1");
}

/* Strangers and their scanners fail in many ways, none of which is an error of ours; but an operator must be able to
 * see why a client of theirs does not come through. One line a second for each reason. */
static void connection_on_unready(struct http_connection *connection, cy_err err)
{
    char text[128];
    if (cy_is(err, CY_ERR_CANCELLED)) return; /* we ended it */
    const char *why = cy_err_describe(err, false, text, sizeof text);
    log_write_keyed(server_log(connection->carrier.server), LOG_INFO, why,
                    "client %.*s: no connection was made: %s (%d)",
                    CY_BYTES_ARG(connection_peer_text(&connection->carrier)), why, (int)err.detail);
}

static void connection_on_ready(struct stream_ready *ready)
{
    struct http_connection *connection = CY_CONTAINER_OF(ready, struct http_connection, ready);
    cy_err err = ready->err; /* `ready` and `read` are one place */
    connection->preparing = false;
    memset(&connection->read, 0, sizeof connection->read);
    connection->read.done = connection_on_read;
    if (!connection->stream) {
        connection_recycle(connection);
        return;
    }
    const struct stream_info *info = cy_failed(err) ? NULL : stream_info(connection->stream);
    if (info && connection_speaks_h1(info)) {
        connection_set_quiet(connection); /* it has ended its handshake */
        connection_read(connection);
        return;
    }
    if (info && cy_bytes_equal(info->alpn, CY_BYTES("h2")) &&
        !connection->carrier.server->options.refuses_http2) {
        connection_hand_over_h2(connection);
        return;
    }
    if (info)
        log_write(server_log(connection->carrier.server), LOG_WARN,
                  "client %.*s agreed on %.*s, which is not there",
                  CY_BYTES_ARG(connection_peer_text(&connection->carrier)), CY_BYTES_ARG(info->alpn));
    else
        connection_on_unready(connection, err);
    /* Why it failed may be on its way to the client as an alert, and the client may be sending on. */
    if (cy_failed(err) && stream_unwrap(&connection->stream))
        connection_finish(connection, true);
    else
        connection_close(connection);
}

bool connection_start(struct http_server *server, const struct http_listener *listener,
                      struct stream *owned_stream)
{
    struct http_connection *connection = NULL;
    if (server_has_room(server)) {
        connection = spare_take(&server->spare_connections);
        if (!connection) connection = mem_alloc(sizeof *connection);
    }
    if (!connection) {
        stream_close(&owned_stream);
        return false;
    }
    memset(connection, 0, sizeof *connection);
    connection->carrier.type = &connection_carrier_type;
    connection->listed = (struct server_connection){.type = &connection_listed_type, .listener = listener};
    connection->carrier.server = server;
    connection->carrier.timer.fire = connection_on_timer;
    connection->stream = owned_stream;
    connection->ready.done = connection_on_ready;
    server_link(server, &connection->listed);
    server->live_count++;
    server->counters->connections++;
    server->counters->connections_open++;
    connection_set_quiet(connection);
    /* A connection on which nothing ever comes is worth no more than a slow head; a handshake counts. */
    carrier_set_timer(&connection->carrier, CONNECTION_TIMER_IDLE, server->options.header_timeout_ms);
    connection->preparing = true;
    stream_ready_start(connection->stream, &connection->ready);
    return true;
}

/* Nothing follows on it. */
static bool connection_goes(const struct http_connection *connection)
{
    return connection->carrier.server->draining || connection->listed.retires;
}

static void connection_next(struct http_connection *connection)
{
    struct http_server *server = connection->carrier.server;
    exchange_free(connection->carrier.exchange);
    connection->carrier.exchange = NULL;
    carrier_drop_empty_input(&connection->carrier);
    if (connection_goes(connection) || (connection->carrier.input_ended && !connection->carrier.input)) {
        connection_finish(connection, true); /* the answer said that it may send more */
        return;
    }
    if (connection->carrier.input) {
        connection_parse(connection);
        return;
    }
    connection_give_write(connection);
    connection_set_quiet(connection);
    carrier_set_timer(&connection->carrier, CONNECTION_TIMER_IDLE, server->options.keep_alive_ms);
    connection_read(connection);
}

/* -- what an exchange may ask of its carrier --------------------------------------------------------------- */

static void connection_want_input(struct exchange_carrier *carrier)
{
    connection_read(connection_of(carrier));
}

static bool connection_takes_pipes(const struct exchange_carrier *carrier)
{
    return stream_takes_pipes(((const struct http_connection *)carrier)->stream);
}

static bool connection_may_keep(const struct exchange_carrier *carrier, bool length_known)
{
    const struct http_exchange *exchange = carrier->exchange;
    if (!exchange->client_keeps || connection_goes((const struct http_connection *)carrier)) return false;
    if (carrier->input_ended && !carrier->input) return false;
    if (exchange->request.protocol == HTTP_1_0 && !length_known) return false;
    /* Nobody can know whether a client that waits for 100 will send its body after a final answer. */
    if (exchange->continue_waiting || exchange->proxy.request_stopped) return false;
    const struct h1_body *body = &exchange->request_body.body;
    if (body->fault) return false;
    return body->kind != HTTP_BODY_LENGTH || body->left_bytes <= LIMIT_HTTP_DRAIN_BYTES;
}

static void connection_end(struct exchange_carrier *carrier, enum carrier_end end)
{
    struct http_connection *connection = connection_of(carrier);
    switch (end) {
    case CARRIER_END_KEPT: connection_next(connection); return;
    case CARRIER_END_LAST: connection_finish(connection, false); return;
    case CARRIER_END_LAST_SENDING: connection_finish(connection, true); return;
    case CARRIER_END_ABORT: stream_abort_on_close(connection->stream); break;
    case CARRIER_END_SHORT: break;
    }
    connection_close(connection);
}

static void connection_shutdown(struct exchange_carrier *carrier, bool abort)
{
    if (abort)
        stream_abort_on_close(connection_of(carrier)->stream);
    else
        stream_shutdown_write(connection_of(carrier)->stream);
}

static cy_bytes connection_peer_text(struct exchange_carrier *carrier)
{
    struct http_connection *connection = connection_of(carrier);
    if (connection->peer_text_bytes == 0)
        connection->peer_text_bytes = server_format_peer(connection->stream, connection->peer_text);
    return cy_bytes_of(connection->peer_text, connection->peer_text_bytes);
}

static void connection_put_status(struct exchange_carrier *carrier, struct head_writer *writer,
                                  uint16_t status, cy_bytes reason)
{
    (void)carrier;
    DCHECK(status >= 100 && status <= 999);
    uint8_t line[] = "HTTP/1.1 000 "; /* one piece: each costs a look at the room that is left */
    line[9] = (uint8_t)('0' + status / 100);
    line[10] = (uint8_t)('0' + status / 10 % 10);
    line[11] = (uint8_t)('0' + status % 10);
    head_put(writer, cy_bytes_of(line, sizeof line - 1));
    head_put(writer, reason);
    head_put(writer, CY_BYTES("\r\n"));
}

static void connection_put_end(struct exchange_carrier *carrier, struct head_writer *writer, bool interim)
{
    const struct http_exchange *exchange = carrier->exchange;
    if (!interim) {
        if (!exchange->keep_alive)
            head_put(writer, CY_BYTES("Connection: close\r\n"));
        else if (exchange->request.protocol == HTTP_1_0)
            head_put(writer, CY_BYTES("Connection: keep-alive\r\n"));
    }
    head_put(writer, CY_BYTES("\r\n"));
}

static struct stream *connection_stream(struct exchange_carrier *carrier)
{
    return connection_of(carrier)->stream;
}

static const struct exchange_carrier_type connection_carrier_type = {
    .name = "http/1",
    .takes_pipes = connection_takes_pipes,
    .want_input = connection_want_input,
    .write = connection_write,
    .may_keep = connection_may_keep,
    .end = connection_end,
    .shutdown = connection_shutdown,
    .peer_text = connection_peer_text,
    .stream = connection_stream,
    .put_status = connection_put_status,
    .put_end = connection_put_end,
};
