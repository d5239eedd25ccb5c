/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_load.c: HTTP/2 for the load generator: a stream for each slot of a connection.
 *
 * In:   rows, fields and a body. Out: their heads as records, made once; then the answers: heads read as the proxy
 *       reads its upstreams', bodies only counted, as they come.
 *
 *   stream ─start─► session ─first SETTINGS─► open: slots send          (a new connection for each request: at once)
 *      slot ─send─► h2_stream ─ready─► whole answer | refused | reset | cut ─► slot
 *      GOAWAY, or no stream number left: what runs ends, then the connection is opened again
 *
 * Invariant: a busy slot of an open connection has a stream; a stream whose slot was ended has none, and goes when the
 *       session lets it.
 * Not here:  frames, flow control, writes (h2_session.h), whom connections are opened for (load_connection.c).
 */
#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/spare.h"
#include "vm/http/h2_response.h"
#include "vm/http/h2_session.h"
#include "vm/http/load_internal.h"

struct h2_load_stream {
    struct h2_stream stream;
    struct relay_hold hold; /* stays empty: what is sent lies in the run's bytes */
    struct load_slot *slot; /* NULL: let go */
};

struct h2_load_connection {
    struct h2_session session;
    struct load_connection *connection;
};

struct h2_load {
    struct h2_shared *shared;
    struct h2_load_connection *connections; /* one for each of the run's */
    struct spare_list spare_streams;
};

static struct h2_load_stream *h2_load_of(struct h2_stream *stream)
{
    return CY_CONTAINER_OF(stream, struct h2_load_stream, stream);
}
static struct load_connection *h2_load_connection_of(const struct h2_session *session)
{
    return CY_CONTAINER_OF(session, struct h2_load_connection, session)->connection;
}
static struct h2_session *h2_load_session(const struct load_connection *connection)
{
    const struct load *load = connection->load;
    return &load->h2->connections[connection - load->connections].session;
}

/* -- requests -------------------------------------------------------------------------------------------- */

static void h2_load_put(struct builder *out, cy_bytes name, cy_bytes value)
{
    builder_u16(out, (uint16_t)name.count);
    builder_u32(out, (uint32_t)value.count);
    for (size_t i = 0; i < name.count; i++) {
        uint8_t byte = name.data[i];
        builder_u8(out, byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte);
    }
    builder_bytes(out, value);
}

/* One record for each field (h2_head.h). A Host field among the options is the authority. */
static void h2_load_write_head(const struct load_options *options, const struct load_row *row,
                               struct builder *out)
{
    cy_bytes authority = row->authority;
    for (uint32_t i = 0; i < options->field_count; i++)
        if (cy_bytes_equal_nocase(options->fields[i].name, CY_BYTES("Host")))
            authority = options->fields[i].value;
    h2_load_put(out, CY_BYTES(":method"), row->method.count ? row->method : CY_BYTES("GET"));
    h2_load_put(out, CY_BYTES(":scheme"), options->make_stream ? CY_BYTES("https") : CY_BYTES("http"));
    h2_load_put(out, CY_BYTES(":authority"), authority);
    h2_load_put(out, CY_BYTES(":path"), row->target.count ? row->target : CY_BYTES("/"));
    if (!load_request_has_field(options, "User-Agent"))
        h2_load_put(out, CY_BYTES("user-agent"), CY_BYTES("crownyc-load"));
    if (!load_request_has_field(options, "Accept")) h2_load_put(out, CY_BYTES("accept"), CY_BYTES("*/*"));
    for (uint32_t i = 0; i < options->field_count; i++)
        if (!cy_bytes_equal_nocase(options->fields[i].name, CY_BYTES("Host")))
            h2_load_put(out, options->fields[i].name, options->fields[i].value);
    if (options->body.count == 0) return;
    uint8_t digits[HEAD_DIGITS_MAX];
    h2_load_put(out, CY_BYTES("content-length"), head_format_u64(digits, options->body.count));
}

static cy_err h2_load_prepare(struct load *load, struct builder *fault)
{
    if (load->options.field_count > LIMIT_HTTP_FIELDS) {
        builder_printf(fault, "more fields than HTTP_FIELDS = %d", LIMIT_HTTP_FIELDS);
        return CY_ERR(VALUE);
    }
    CY_TRY(load_request_make(load, h2_load_write_head, fault));
    load->h2 = mem_alloc_zeroed(sizeof *load->h2);
    if (!load->h2) return CY_ERR(NO_MEMORY);
    struct spare_watch *watch = loop_spares(load->options.loop);
    spare_init(&load->h2->spare_streams, watch, sizeof(struct h2_load_stream), LIMIT_HTTP_SPARE);
    CY_TRY(h2_shared_new(watch, &load->h2->shared));
    load->h2->connections = mem_alloc_zeroed(load->options.connections * sizeof *load->h2->connections);
    if (!load->h2->connections) return CY_ERR(NO_MEMORY);
    for (uint32_t i = 0; i < load->options.connections; i++)
        load->h2->connections[i].connection = &load->connections[i];
    return CY_OK;
}

static void h2_load_fini(struct load *load)
{
    struct h2_load *h2 = load->h2;
    if (!h2) return;
    load->h2 = NULL;
    spare_fini(&h2->spare_streams);
    mem_free(h2->connections);
    h2_shared_free(&h2->shared);
    mem_free(h2);
}

static bool h2_load_has_room(const struct load_connection *connection)
{
    const struct h2_session *session = h2_load_session(connection);
    return session->stream && !session->ending && !session->goaway_seen && !session->lingering &&
           nghttp2_session_check_request_allowed(session->library);
}

static struct h2_load_stream *h2_load_stream_new(struct load *load)
{
    struct h2_load_stream *one = spare_take(&load->h2->spare_streams);
    if (!one) one = mem_alloc(sizeof *one);
    if (one) memset(one, 0, sizeof *one);
    return one;
}

static void h2_load_send(struct load_slot *slot)
{
    struct load_connection *connection = slot->connection;
    struct load *load = connection->load;
    struct h2_load_stream *one = h2_load_stream_new(load);
    if (!one) {
        load_connection_lose(connection, LOAD_FAULT_LOCAL);
        return;
    }
    DCHECK(!slot->h2_stream);
    one->slot = slot;
    slot->h2_stream = one;
    h2_stream_link(h2_load_session(connection), &one->stream, &one->hold);
    cy_bytes head = load->requests[slot->row].head;
    struct loop_send *send = &one->stream.send;
    send->parts[0] = head;
    send->part_count = 1;
    if (load->body.count) send->parts[send->part_count++] = load->body;
    h2_stream_write(&one->stream, head.count, false, true);
}

/* -- answers --------------------------------------------------------------------------------------------- */

/* The slot's request is over, here. */
static void h2_load_let_go(struct load_slot *slot)
{
    struct h2_load_stream *one = slot->h2_stream;
    struct h2_stream *stream = &one->stream;
    slot->h2_stream = NULL;
    one->slot = NULL;
    /* Also an answer that came whole before all of the request had gone. */
    if (!stream->remote_ended || stream->writing) h2_stream_reset(stream, NGHTTP2_CANCEL);
    if (stream->id == 0) stream->is_closed = true; /* nothing was sent: nghttp2 knows nothing of it */
    h2_stream_release(stream);
}

static void h2_load_drop(struct load_slot *slot)
{
    if (slot->h2_stream) h2_load_let_go(slot); /* else it still waited for its connection */
}

static bool h2_load_is_quiet(const struct load_connection *connection)
{
    for (uint32_t i = 0; i < connection->load->slot_count; i++)
        if (connection->slots[i].busy) return false;
    return true;
}

static void h2_load_end(struct load_slot *slot, enum load_fault fault)
{
    struct load_connection *connection = slot->connection;
    struct h2_session *session = h2_load_session(connection);
    h2_session_enter(session);
    h2_load_let_go(slot);
    load_slot_end(slot, fault);
    if (connection->state != LOAD_CONNECTION_OPEN) {
        /* that was the last one, and all is being closed */
    } else if (connection->load->options.keeping == LOAD_NEW) {
        load_connection_close(connection, true);
    } else if (h2_load_has_room(connection)) {
        load_slot_free(slot);
    } else if (session->stream && h2_load_is_quiet(connection)) {
        load_connection_close(connection, false);
    }
    h2_session_leave(session);
}

static void h2_load_data(struct h2_stream *stream, cy_bytes bytes)
{
    struct load_slot *slot = h2_load_of(stream)->slot;
    if (!slot) return;
    slot->body_bytes += bytes.count;
    if (slot->connection->load->wants_crc32c) slot->crc32c = crc32c(slot->crc32c, bytes);
}

/* Why a stream ended without a whole answer. */
static enum load_fault h2_load_fault(const struct h2_stream *stream, const struct load_slot *slot)
{
    const struct h2_session *session = stream->session;
    if (stream->error_code == NGHTTP2_REFUSED_STREAM) return LOAD_FAULT_REFUSED; /* also: beyond a GOAWAY */
    if (stream->reset_by_peer) return LOAD_FAULT_STREAM;
    if (!session->settings_seen) return LOAD_FAULT_HANDSHAKE;
    if (session->ending || stream->error_code != NGHTTP2_NO_ERROR) return LOAD_FAULT_SYNTAX;
    if (cy_failed(session->read.err) || cy_failed(session->write.err)) return LOAD_FAULT_RESET;
    return slot->status || slot->body_bytes ? LOAD_FAULT_CUT : LOAD_FAULT_CLOSED;
}

/* False: not an answer. */
static bool h2_load_read_heads(struct h2_stream *stream, struct load_slot *slot)
{
    struct load *load = slot->connection->load;
    struct buffer *input;
    bool ok = true;
    while ((input = h2_stream_take_input(stream))) {
        while (ok && input->begin < input->end) {
            struct http_response response;
            ok = h2_response_read(input, load->requests[slot->row].is_head, load->fields, &response) == 0;
            if (ok && response.status >= 200) slot->status = response.status;
        }
        buffer_unref(&input);
    }
    return ok;
}

static void h2_load_ready(struct h2_stream *stream)
{
    struct load_slot *slot = h2_load_of(stream)->slot;
    struct load_connection *connection = h2_load_connection_of(stream->session);
    uint32_t *read_bytes = &stream->session->read_bytes;
    if (*read_bytes) load_count_received(connection->load, *read_bytes);
    *read_bytes = 0;
    if (!slot) return;
    if (!slot->busy) { /* the run ended before its answer */
        if (stream->is_closed) h2_load_let_go(slot);
    } else if (!h2_load_read_heads(stream, slot)) {
        h2_load_end(slot, LOAD_FAULT_SYNTAX);
    } else if (stream->remote_ended) {
        h2_load_end(slot, slot->status ? LOAD_FAULT_NONE : LOAD_FAULT_SYNTAX);
    } else if (stream->is_closed) {
        h2_load_end(slot, h2_load_fault(stream, slot));
    }
}

/* A server that says nothing on the whole connection is gone; else only this stream is given up. */
static void h2_load_on_timeout(struct load_slot *slot)
{
    struct load_connection *connection = slot->connection;
    const struct h2_session *session = h2_load_session(connection);
    uint64_t quiet_ms = loop_now_ms(session->loop) - session->read_ms;
    if (connection->load->options.keeping == LOAD_NEW || quiet_ms >= connection->load->options.timeout_ms)
        load_connection_lose(connection, LOAD_FAULT_TIMEOUT);
    else
        h2_load_end(slot, LOAD_FAULT_TIMEOUT);
}

/* -- connections ----------------------------------------------------------------------------------------- */

static void h2_load_written(struct h2_stream *stream, cy_err err, size_t bytes)
{
    (void)stream; /* what failed closes the connection, which tells */
    (void)err;
    (void)bytes;
}

static void h2_load_stream_free(struct h2_stream *stream)
{
    struct h2_load *h2 = h2_load_connection_of(stream->session)->load->h2;
    spare_put(&h2->spare_streams, h2_load_of(stream));
}

static void h2_load_greeted(struct h2_session *session)
{
    struct load_connection *connection = h2_load_connection_of(session);
    struct load_result *result = &connection->load->result;
    uint32_t allowed =
        nghttp2_session_get_remote_settings(session->library, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    if (result->streams_allowed == 0 || allowed < result->streams_allowed) result->streams_allowed = allowed;
    if (connection->state == LOAD_CONNECTION_READYING) load_connection_opened(connection);
}

/* Of its own accord, or because load_connection_close asked for it. */
static void h2_load_closed(struct h2_session *session)
{
    struct load_connection *connection = h2_load_connection_of(session);
    if (session->goaway_seen) connection->load->result.goaway_count++;
    for (struct h2_stream *stream = session->streams, *next; stream; stream = next) {
        next = stream->next;
        stream->is_closed = true;
        h2_load_ready(stream); /* a whole answer may have waited */
    }
    load_connection_ended(connection, session->settings_seen ? CY_ERR(CLOSED) : CY_ERR(HTTP2_NO_SETTINGS));
}

static void h2_load_session_free(struct h2_session *session)
{
    load_connection_released(h2_load_connection_of(session));
}

static void h2_load_timer(struct h2_session *session) { h2_session_close(session); }

static void h2_load_flooded(struct h2_session *session, const char *row)
{
    (void)session; /* it ends now, with our GOAWAY: what ran on it is not well-formed HTTP */
    (void)row;
}

static void h2_load_idle(struct h2_session *session)
{
    (void)session; /* slots say when there is nothing more to be sent */
}

static const struct h2_role h2_load_role = {
    .name = "load",
    .data = h2_load_data,
    .greeted = h2_load_greeted,
    .ready = h2_load_ready,
    .written = h2_load_written,
    .stream_free = h2_load_stream_free,
    .closed = h2_load_closed,
    .free = h2_load_session_free,
    .timer = h2_load_timer,
    .flooded = h2_load_flooded,
    .idle = h2_load_idle,
};

static cy_err h2_load_start(struct load_connection *connection)
{
    const struct load *load = connection->load;
    struct stream *stream = connection->stream;
    connection->stream = NULL;
    CY_TRY(h2_session_open(h2_load_session(connection), &h2_load_role, load->h2->shared, load->options.loop,
                           stream));
    connection->carried = true;
    /* Where each request has a connection of its own the first one does not wait for the server's SETTINGS. */
    if (load->options.keeping == LOAD_NEW) load_connection_opened(connection);
    return CY_OK;
}

static void h2_load_close(struct load_connection *connection, bool reset)
{
    struct h2_session *session = h2_load_session(connection);
    if (!session->stream) return;
    if (reset) stream_abort_on_close(session->stream);
    h2_session_close(session);
}

const struct load_protocol load_http2 = {
    .name = "http/2",
    .alpn = {(const uint8_t *)"h2", 2},
    .has_streams = true,
    .prepare = h2_load_prepare,
    .fini = h2_load_fini,
    .start = h2_load_start,
    .close = h2_load_close,
    .has_room = h2_load_has_room,
    .send = h2_load_send,
    .drop = h2_load_drop,
    .on_timeout = h2_load_on_timeout,
};
