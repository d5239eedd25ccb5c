/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_server.c: a client's HTTP/2 connection. Each of its streams is the carrier of one exchange (carrier.h).
 *
 *   stream: head complete ─judged as HTTP/1's (h1.h)─► exchange ─► HEADERS, DATA, trailers ─► closed by nghttp2
 *              │ malformed: RST_STREAM by nghttp2        │ client's RST: exchange_client_gone
 *
 * Invariant: an exchange is freed when no write holds its bytes; the stream when nghttp2 has forgotten it too.
 * Not here:  frames, windows and floods (h2_session.c), what becomes of a request (exchange.c).
 */
#include "vm/http/h2.h"
#include "vm/http/h2_session.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/base/spare.h"
#include "vm/http/field.h"
#include "vm/http/uri.h"

struct h2_server_stream {
    struct exchange_carrier carrier; /* first: a carrier of type HTTP/2 is this one too */
    struct h2_stream stream;
    bool interim; /* the head that was put last is one */
};

struct h2_server_connection {
    struct server_connection listed;
    struct h2_session session;
    struct http_server *server;
    cy_err close_err; /* what the exchanges are told when it is closed */
    bool has_served;
    uint8_t peer_text_bytes;
    char peer_text[SERVER_PEER_TEXT_BYTES];
};

struct h2_server {
    struct h2_shared *shared;
    struct spare_list spare_streams, spare_connections;
};

static struct h2_server_stream *h2_server_stream_of(struct exchange_carrier *carrier)
{
    return (struct h2_server_stream *)carrier;
}
static struct h2_server_stream *h2_server_of_stream(struct h2_stream *stream)
{
    return CY_CONTAINER_OF(stream, struct h2_server_stream, stream);
}
static struct h2_server_connection *h2_server_connection_of(struct h2_session *session)
{
    return CY_CONTAINER_OF(session, struct h2_server_connection, session);
}

/* -- what an exchange may ask of its carrier ------------------------------------------------------------- */

static void h2_server_want_input(struct exchange_carrier *carrier)
{
    struct h2_stream *stream = &h2_server_stream_of(carrier)->stream;
    h2_stream_credit(stream);
    if (stream->input_first || (stream->remote_ended && !carrier->input_ended)) h2_stream_set_ready(stream);
}

static void h2_server_take_trailer(struct exchange_carrier *carrier)
{
    struct h2_stream *stream = &h2_server_stream_of(carrier)->stream;
    if (!carrier->trailer) return;
    buffer_unref(&stream->trailer_out);
    stream->trailer_out = carrier->trailer;
    carrier->trailer = NULL;
}

static void h2_server_write(struct exchange_carrier *carrier, size_t head_bytes, bool last)
{
    struct h2_server_stream *server_stream = h2_server_stream_of(carrier);
    if (last) h2_server_take_trailer(carrier);
    h2_stream_write(&server_stream->stream, head_bytes, head_bytes && server_stream->interim, last);
}

/* A stream has one exchange; nothing of its request is read on for a next one. */
static bool h2_server_may_keep(const struct exchange_carrier *carrier, bool length_known)
{
    (void)carrier;
    (void)length_known;
    return false;
}

static void h2_server_end(struct exchange_carrier *carrier, enum carrier_end end)
{
    struct h2_stream *stream = &h2_server_stream_of(carrier)->stream;
    loop_timer_clear(carrier->server->options.loop, &carrier->timer);
    carrier_clear_timer(carrier);
    buffer_unref(&carrier->input);
    if (end == CARRIER_END_SHORT || end == CARRIER_END_ABORT) {
        h2_stream_reset(stream, NGHTTP2_INTERNAL_ERROR);
    } else {
        h2_server_take_trailer(carrier);
        h2_stream_finish(stream);
        h2_stream_stop_peer(stream);
    }
    buffer_unref(&carrier->trailer);
    buffer_unref(&carrier->input_trailer);
    if (!stream->is_in_flight) {
        carrier->writing = false;
        exchange_free(carrier->exchange);
        carrier->exchange = NULL;
    }
    h2_stream_release(stream);
}

static struct stream *h2_server_stream_below(struct exchange_carrier *carrier)
{
    return h2_server_stream_of(carrier)->stream.session->stream;
}

static cy_bytes h2_server_peer_text(struct exchange_carrier *carrier)
{
    const struct h2_server_connection *connection =
        h2_server_connection_of(h2_server_stream_of(carrier)->stream.session);
    return cy_bytes_of(connection->peer_text, connection->peer_text_bytes);
}

static void h2_server_put_status(struct exchange_carrier *carrier, struct head_writer *writer,
                                 uint16_t status, cy_bytes reason)
{
    uint8_t digits[HEAD_DIGITS_MAX];
    (void)carrier;
    (void)reason;
    h2_head_put(writer, CY_BYTES(":status"), head_format_u64(digits, status));
}

static void h2_server_put_field(struct exchange_carrier *carrier, struct head_writer *writer, cy_bytes name,
                                cy_bytes value)
{
    (void)carrier;
    h2_head_put(writer, name, value);
}

static void h2_server_put_end(struct exchange_carrier *carrier, struct head_writer *writer, bool interim)
{
    (void)writer;
    h2_server_stream_of(carrier)->interim = interim;
}

static const struct exchange_carrier_type h2_server_carrier_type = {
    .name = "http/2",
    .takes_trailers = true,
    .want_input = h2_server_want_input,
    .write = h2_server_write,
    .may_keep = h2_server_may_keep,
    .end = h2_server_end,
    .peer_text = h2_server_peer_text,
    .stream = h2_server_stream_below,
    .put_status = h2_server_put_status,
    .put_field = h2_server_put_field,
    .put_end = h2_server_put_end,
};

static void h2_server_on_carrier_timer(struct timer *timer)
{
    struct exchange_carrier *carrier = CY_CONTAINER_OF(timer, struct exchange_carrier, timer);
    struct h2_stream *stream = &h2_server_stream_of(carrier)->stream;
    struct h2_session *session = stream->session;
    unsigned kind = carrier->timer_kind;
    carrier_clear_timer(carrier);
    if (kind == CARRIER_TIMER_NONE || !carrier->exchange) return;
    if (kind == CARRIER_TIMER_WRITE && carrier->writing && !h2_stream_is_shut(stream)) {
        /* The connection is slow, or stuck, which its own timer sees. */
        carrier_set_timer(carrier, CARRIER_TIMER_WRITE, carrier->server->options.body_idle_timeout_ms);
        return;
    }
    h2_session_enter(session);
    exchange_on_timeout(carrier->exchange, kind);
    h2_session_leave(session);
}

/* -- the request's head ---------------------------------------------------------------------------------- */

/* :authority becomes the Host field that everybody above knows; a Host beside it must say the same. */
static uint8_t h2_server_put_host(struct http_exchange *exchange, cy_bytes authority)
{
    struct h1_head *head = &exchange->h1_head;
    if (!authority.data) return H1_FAULT_NONE;
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct http_field *field = &head->fields[i];
        if (field->known != HTTP_FIELD_HOST) continue;
        if (!cy_bytes_equal_nocase(field->value, authority)) return H1_FAULT_HOST_DISAGREES;
        field->value = authority;
        return H1_FAULT_NONE;
    }
    if (head->field_count == LIMIT_HTTP_FIELDS) return H1_FAULT_FIELDS_MANY;
    head->fields[head->field_count++] =
        (struct http_field){field_name(HTTP_FIELD_HOST), authority, HTTP_FIELD_HOST, false};
    return H1_FAULT_NONE;
}

/* The head in HTTP/1's terms, so that one judge sees all requests. */
static uint8_t h2_server_read_head(struct http_exchange *exchange, const struct h2_block *block)
{
    struct h1_head *head = &exchange->h1_head;
    const struct http_server_options *options = &exchange->carrier->server->options;
    if (block->field_count > options->fields_max) return H1_FAULT_FIELDS_MANY;
    if (block->too_large || block->list_bytes > options->head_bytes_max) return H1_FAULT_HEAD_LONG;
    h1_parse_begin_request(head, exchange->request.fields);
    head->method = h2_block_pseudo(block, CY_BYTES(":method"));
    head->target = h2_block_pseudo(block, CY_BYTES(":path"));
    head->minor_version = 1;
    head->used_bytes = block->list_bytes;
    exchange->request.is_head = cy_bytes_equal(head->method, CY_BYTES("HEAD"));
    if (cy_bytes_equal(head->method, CY_BYTES("CONNECT"))) return H1_FAULT_METHOD_CONNECT;
    head->field_count = h2_block_fields(block, head->fields);
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (!field_is_token(head->fields[i].name)) return H1_FAULT_FIELD_NAME;
        if (!field_is_value(head->fields[i].value)) return H1_FAULT_FIELD_VALUE;
    }
    uint8_t fault = h1_check_request_line(head->method, head->target);
    if (fault) return fault;
    if (head->target.data[0] != '/' && !cy_bytes_equal(head->target, CY_BYTES("*"))) return H1_FAULT_TARGET;
    return h2_server_put_host(exchange, h2_block_pseudo(block, CY_BYTES(":authority")));
}

/* A name that this connection was not made for (RFC 9110 section 15.5.20): another may have another certificate, or
 * other rules for clients. */
static bool h2_server_is_misdirected(const struct stream_info *info, const struct http_request *request)
{
    return info->secure && info->sni.count > 0 && request->host.count > 0 &&
           !cy_bytes_equal_nocase(info->sni, request->host);
}

static void h2_server_judge(struct h2_server_stream *server_stream)
{
    struct exchange_carrier *carrier = &server_stream->carrier;
    struct h2_stream *stream = &server_stream->stream;
    struct http_exchange *exchange = carrier->exchange;
    struct http_request *request = &exchange->request;
    struct h1_request wishes = {0};
    uint8_t fault = h2_server_read_head(exchange, &stream->block);
    exchange->head_buffer = stream->block.buffer;
    exchange->head_bytes = stream->block.list_bytes;
    stream->block.buffer = NULL;
    if (!fault) fault = exchange_judge(exchange, &wishes);
    request->protocol = HTTP_2;
    if (fault) {
        exchange_refuse(exchange, h1_fault_status(fault), h1_fault_text(fault), false);
        return;
    }
    const struct stream_info *info = stream_info(stream->session->stream);
    request->client = info->peer;
    request->secure = info->secure;
    if (h2_server_is_misdirected(info, request)) {
        exchange_refuse(exchange, 421, "this connection was made for another name", false);
        return;
    }
    if (stream->remote_ended && !stream->input_first)
        request->body.kind = HTTP_BODY_NONE;
    else if (request->body.kind == HTTP_BODY_NONE)
        request->body.kind = HTTP_BODY_UNTIL_CLOSE;
    carrier->input = h2_stream_take_input(stream);
    carrier->input_ended = h2_stream_input_over(stream);
    if (carrier->input_ended) carrier->input_trailer = stream->trailer_in, stream->trailer_in = NULL;
    exchange->client_keeps = true;
    exchange->continue_waiting = wishes.expects_continue && !carrier->input && !carrier->input_ended;
    exchange_begin(exchange);
}

static void h2_server_begin(struct h2_server_stream *server_stream)
{
    struct exchange_carrier *carrier = &server_stream->carrier;
    h2_server_connection_of(server_stream->stream.session)->has_served = true;
    carrier->exchange = exchange_new(carrier);
    if (!carrier->exchange) {
        h2_stream_reset(&server_stream->stream, NGHTTP2_INTERNAL_ERROR);
        h2_stream_release(&server_stream->stream);
        return;
    }
    h2_server_judge(server_stream);
}

/* -- what the session tells ------------------------------------------------------------------------------ */

static void h2_server_count(struct h2_session *session)
{
    struct http_server_counters *counters = h2_server_connection_of(session)->server->counters;
    counters->bytes_in += session->read_bytes;
    counters->bytes_out += session->written_bytes;
    session->read_bytes = 0;
    session->written_bytes = 0;
}

static struct h2_stream *h2_server_stream_new(struct h2_session *session)
{
    struct http_server *server = h2_server_connection_of(session)->server;
    struct h2_server_stream *server_stream = spare_take(&server->h2->spare_streams);
    if (!server_stream) server_stream = mem_alloc(sizeof *server_stream);
    if (!server_stream) return NULL;
    memset(server_stream, 0, sizeof *server_stream);
    server_stream->carrier.type = &h2_server_carrier_type;
    server_stream->carrier.server = server;
    server_stream->carrier.send = &server_stream->stream.send;
    server_stream->carrier.timer.fire = h2_server_on_carrier_timer;
    h2_stream_link(session, &server_stream->stream, &server_stream->carrier.hold);
    return &server_stream->stream;
}

static void h2_server_stream_free(struct h2_stream *stream)
{
    struct h2_server_stream *server_stream = h2_server_of_stream(stream);
    struct exchange_carrier *carrier = &server_stream->carrier;
    struct h2_server *h2 = carrier->server->h2;
    carrier->writing = false;
    if (carrier->exchange) exchange_free(carrier->exchange);
    carrier->exchange = NULL;
    spare_put(&h2->spare_streams, server_stream);
}

static void h2_server_feed(struct h2_server_stream *server_stream)
{
    struct exchange_carrier *carrier = &server_stream->carrier;
    struct h2_stream *stream = &server_stream->stream;
    bool news = false;
    if (!carrier->input && stream->input_first) {
        carrier->input = h2_stream_take_input(stream);
        news = true;
    }
    if (!carrier->input_ended && h2_stream_input_over(stream)) {
        carrier->input_ended = news = true;
        carrier->input_trailer = stream->trailer_in;
        stream->trailer_in = NULL;
    }
    if (news) exchange_on_input(carrier->exchange);
}

/* Has the whole answer left, so that nghttp2's forgetting the stream is no loss? */
static bool h2_server_is_answered(const struct h2_stream *stream)
{
    return stream->end_given && stream->is_in_flight && stream->session->stream &&
           !stream->session->lingering;
}

static void h2_server_ready(struct h2_stream *stream)
{
    struct h2_server_stream *server_stream = h2_server_of_stream(stream);
    struct exchange_carrier *carrier = &server_stream->carrier;
    if (stream->is_closed) {
        if (!carrier->exchange)
            h2_stream_release(stream);
        else if (!h2_server_is_answered(stream))
            exchange_client_gone(carrier->exchange, CY_ERR(RESET));
        return;
    }
    if (stream->has_head) {
        stream->has_head = false;
        h2_server_begin(server_stream);
    } else if (carrier->exchange) {
        h2_server_feed(server_stream);
    }
}

static void h2_server_written(struct h2_stream *stream, cy_err err, size_t bytes)
{
    struct exchange_carrier *carrier = &h2_server_of_stream(stream)->carrier;
    (void)bytes;
    h2_server_count(stream->session);
    carrier->writing = false;
    CHECK(carrier->exchange && !cy_failed(err));
    exchange_on_written(carrier->exchange);
}

static void h2_server_closed(struct h2_session *session)
{
    struct h2_server_connection *connection = h2_server_connection_of(session);
    for (struct h2_stream *stream = session->streams, *next; stream; stream = next) {
        next = stream->next;
        stream->is_closed = true;
        if (!stream->has_owner) continue;
        struct exchange_carrier *carrier = &h2_server_of_stream(stream)->carrier;
        if (carrier->exchange)
            exchange_client_gone(carrier->exchange, connection->close_err);
        else
            h2_stream_release(stream);
    }
    h2_server_count(session);
    server_client_left(connection->server);
    server_check_drained(connection->server);
}

static void h2_server_free(struct h2_session *session)
{
    struct h2_server_connection *connection = h2_server_connection_of(session);
    struct http_server *server = connection->server;
    server_unlink(server, &connection->listed);
    spare_put(&server->h2->spare_connections, connection);
    server_release(server);
}

/* -- time ------------------------------------------------------------------------------------------------ */

static uint64_t h2_server_due(uint64_t since_ms, uint32_t after_ms, uint64_t earliest_ms)
{
    uint64_t due_ms = since_ms + after_ms;
    return due_ms < earliest_ms ? due_ms : earliest_ms;
}

/* When a connection without requests has had its time. */
static uint64_t h2_server_idle_due(const struct h2_server_connection *connection)
{
    const struct http_server_options *options = &connection->server->options;
    const struct h2_session *session = &connection->session;
    if (session->draining) return session->drain_begun_ms + LIMIT_HTTP2_DRAIN_MS;
    return session->idle_since_ms +
           (connection->has_served ? options->keep_alive_ms : options->header_timeout_ms);
}

/* A stream whose answer is all given, but for an end that waits for a window: no exchange watches it any more. */
static uint64_t h2_server_end_shut(struct h2_session *session, uint64_t now_ms, uint64_t earliest_ms)
{
    uint32_t limit_ms = h2_server_connection_of(session)->server->options.body_idle_timeout_ms;
    for (struct h2_stream *stream = session->streams; stream; stream = stream->next) {
        if (stream->has_owner || stream->is_closed || !h2_stream_is_shut(stream)) continue;
        if (stream->released_ms + limit_ms <= now_ms)
            h2_stream_reset(stream, NGHTTP2_CANCEL);
        else
            earliest_ms = h2_server_due(stream->released_ms, limit_ms, earliest_ms);
    }
    return earliest_ms;
}

/* One timer, moved only when it fires: what it watches is noted as it happens. */
static void h2_server_timer(struct h2_session *session)
{
    struct h2_server_connection *connection = h2_server_connection_of(session);
    const struct http_server_options *options = &connection->server->options;
    uint64_t now_ms = loop_now_ms(session->loop), due_ms = now_ms + options->header_timeout_ms;
    bool is_stuck = h2_session_is_stuck(session, options->body_idle_timeout_ms,
                                        options->min_rate == HTTP_MIN_RATE_NONE ? 0 : options->min_rate);
    if (session->head_begun_ms)
        due_ms = h2_server_due(session->head_begun_ms, options->header_timeout_ms, due_ms);
    if (session->writing)
        due_ms = h2_server_due(session->write_since_ms, options->body_idle_timeout_ms, due_ms);
    if (is_stuck || due_ms <= now_ms) {
        connection->close_err = CY_ERR(TIMEOUT);
        h2_session_close(session);
        return;
    }
    due_ms = h2_server_end_shut(session, now_ms, due_ms);
    /* A client that does not say that it knows of the end begins nothing any more all the same; what runs ends. */
    if (session->draining && !session->ending) {
        if (session->drain_begun_ms + LIMIT_HTTP2_DRAIN_MS <= now_ms)
            h2_session_end(session, NGHTTP2_NO_ERROR);
        else
            due_ms = h2_server_due(session->drain_begun_ms, LIMIT_HTTP2_DRAIN_MS, due_ms);
    }
    if (!session->stream) return;
    if (session->stream_count == 0) {
        uint64_t idle_due_ms = h2_server_idle_due(connection);
        if (idle_due_ms <= now_ms)
            h2_session_end(session, NGHTTP2_NO_ERROR);
        else if (idle_due_ms < due_ms)
            due_ms = idle_due_ms;
    }
    loop_timer_set(session->loop, &session->timer, due_ms - now_ms + 1);
}

static void h2_server_begin_drain(struct h2_server_connection *connection)
{
    struct h2_session *session = &connection->session;
    if (!session->stream || session->ending || session->draining) return;
    h2_session_drain(session);
    loop_timer_set(session->loop, &session->timer, LIMIT_HTTP2_DRAIN_MS);
}

/* The last stream has gone; the timer may stand later than the idle time that begins now. */
static void h2_server_idle(struct h2_session *session)
{
    struct h2_server_connection *connection = h2_server_connection_of(session);
    if (!connection->server->draining && !connection->listed.retires) return;
    h2_server_begin_drain(connection);
    if (h2_server_idle_due(connection) <= loop_now_ms(session->loop))
        h2_session_end(session, NGHTTP2_NO_ERROR);
}

static void h2_server_flooded(struct h2_session *session, const char *row)
{
    struct h2_server_connection *connection = h2_server_connection_of(session);
    log_write_keyed(server_log(connection->server), LOG_WARN, row,
                    "client %.*s is cut off: more HTTP/2 frames than %s allows", connection->peer_text_bytes,
                    connection->peer_text, row);
}

static const struct h2_role h2_server_role = {
    .name = "server",
    .is_server = true,
    .stream_new = h2_server_stream_new,
    .ready = h2_server_ready,
    .written = h2_server_written,
    .stream_free = h2_server_stream_free,
    .closed = h2_server_closed,
    .free = h2_server_free,
    .timer = h2_server_timer,
    .flooded = h2_server_flooded,
    .idle = h2_server_idle,
};

/* -- the server's side ----------------------------------------------------------------------------------- */

static void h2_server_lose(struct server_connection *listed, cy_err err)
{
    struct h2_server_connection *connection = CY_CONTAINER_OF(listed, struct h2_server_connection, listed);
    connection->close_err = err;
    h2_session_close(&connection->session);
}

static void h2_server_drain(struct server_connection *listed)
{
    h2_server_begin_drain(CY_CONTAINER_OF(listed, struct h2_server_connection, listed));
}

/* Since when nobody but its client could move this stream; UINT64_MAX: somebody else can. */
static uint64_t h2_server_stream_waits_since(const struct h2_stream *stream)
{
    const struct h2_session *session = stream->session;
    const struct exchange_carrier *carrier =
        &((const struct h2_server_stream *)((const char *)stream - offsetof(struct h2_server_stream, stream)))
             ->carrier;
    uint64_t since_ms = stream->released_ms;
    if (!stream->head_seen) return session->head_begun_ms ? session->head_begun_ms : UINT64_MAX;
    if (stream->has_owner) {
        if (!carrier->exchange) return UINT64_MAX;
        since_ms = carrier->timer_since_ms;
        if (carrier->timer_kind == CARRIER_TIMER_BODY) return since_ms;
        if (carrier->timer_kind != CARRIER_TIMER_WRITE || !carrier->writing) return UINT64_MAX;
    }
    if (!stream->is_closed && h2_stream_is_shut(stream)) return since_ms;
    /* What may go goes with the connection's present write, or behind it. */
    if (!session->writing) return UINT64_MAX;
    return session->write_since_ms > since_ms ? session->write_since_ms : since_ms;
}

static bool h2_server_owes(uint64_t since_ms, uint64_t now_ms)
{
    return since_ms <= now_ms && now_ms - since_ms >= LIMIT_HTTP_OWING_MS;
}

/* As connection_waits_since: without a request nothing is owed to the client, inside of one it owes. A connection has
 * waited since the last of its streams has, and is left alone by the first that waits for somebody else. */
static uint64_t h2_server_waits_since(const struct server_connection *listed, uint64_t now_ms)
{
    const struct h2_server_connection *connection =
        (const struct h2_server_connection *)((const char *)listed -
                                              offsetof(struct h2_server_connection, listed));
    const struct h2_session *session = &connection->session;
    if (!session->stream) return UINT64_MAX;
    if (session->stream_count == 0 && (!session->ending || session->lingering)) return session->idle_since_ms;
    uint64_t latest_ms = session->streams ? 0 : UINT64_MAX;
    if (!session->streams && session->writing) latest_ms = session->write_since_ms; /* our last words */
    for (const struct h2_stream *stream = session->streams; stream && h2_server_owes(latest_ms, now_ms);
         stream = stream->next) {
        uint64_t since_ms = h2_server_stream_waits_since(stream);
        if (since_ms > latest_ms) latest_ms = since_ms;
    }
    return h2_server_owes(latest_ms, now_ms) ? latest_ms : UINT64_MAX;
}

static struct stream *h2_server_awaits(const struct server_connection *listed)
{
    const struct h2_server_connection *connection =
        (const struct h2_server_connection *)((const char *)listed -
                                              offsetof(struct h2_server_connection, listed));
    return connection->session.reading ? connection->session.stream : NULL;
}

static const struct server_connection_type h2_server_connection_type = {
    .lose = h2_server_lose,
    .drain = h2_server_drain,
    .waits_since = h2_server_waits_since,
    .awaits = h2_server_awaits,
};

static struct h2_server_connection *h2_server_connection_new(struct http_server *server)
{
    if (!server->h2) {
        struct h2_server *h2 = mem_alloc_zeroed(sizeof *h2);
        if (!h2) return NULL;
        struct spare_watch *watch = loop_spares(server->options.loop);
        if (cy_failed(h2_shared_new(watch, &h2->shared))) {
            mem_free(h2);
            return NULL;
        }
        spare_init(&h2->spare_streams, watch, sizeof(struct h2_server_stream), LIMIT_HTTP_SPARE);
        spare_init(&h2->spare_connections, watch, sizeof(struct h2_server_connection), LIMIT_HTTP_SPARE);
        server->h2 = h2;
    }
    struct h2_server_connection *connection = spare_take(&server->h2->spare_connections);
    return connection ? connection : mem_alloc(sizeof *connection);
}

void h2_server_start(struct http_server *server, const struct server_connection *before,
                     struct stream *owned_stream)
{
    struct h2_server_connection *connection = h2_server_connection_new(server);
    if (!connection) {
        stream_close(&owned_stream);
        return;
    }
    memset(connection, 0, sizeof *connection);
    connection->listed = (struct server_connection){
        .type = &h2_server_connection_type, .listener = before->listener, .retires = before->retires};
    connection->server = server;
    connection->close_err = CY_ERR(RESET);
    /* At once: the lines about who is gone are written when the stream is closed. */
    connection->peer_text_bytes = server_format_peer(owned_stream, connection->peer_text);
    if (cy_failed(h2_session_open(&connection->session, &h2_server_role, server->h2->shared,
                                  server->options.loop, owned_stream))) {
        spare_put(&server->h2->spare_connections, connection);
        return;
    }
    server_link(server, &connection->listed);
    server->live_count++;
    server->counters->connections_open++;
    loop_timer_set(server->options.loop, &connection->session.timer, server->options.header_timeout_ms);
    if (server->draining || connection->listed.retires) h2_server_begin_drain(connection);
}

void h2_server_fini(struct http_server *server)
{
    struct h2_server *h2 = server->h2;
    if (!h2) return;
    server->h2 = NULL;
    spare_fini(&h2->spare_streams);
    spare_fini(&h2->spare_connections);
    h2_shared_free(&h2->shared);
    mem_free(h2);
}
