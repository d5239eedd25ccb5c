/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_client.c: HTTP/2 connections to servers, whose streams carry requests (struct upstream_carrier).
 *
 *   pool ──► connections that have room ──take──► stream ─write─► HEADERS, DATA, trailers
 *                                                  └──read──◄ input: heads and body in their order, then the end
 *
 * A connection has room below the peer's SETTINGS_MAX_CONCURRENT_STREAMS and LIMIT_HTTP2_STREAMS, until a GOAWAY. The
 * newest is tried first, as with HTTP/1; one without streams is closed after keep_alive_ms.
 * Invariant: an owner is given one buffer for each want_input, from a later point of the turn.
 */
#include "vm/http/h2.h"
#include "vm/http/h2_response.h"
#include "vm/http/h2_session.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/base/spare.h"

struct h2_client_stream {
    struct upstream_carrier carrier; /* first: a carrier of type HTTP/2 is this one too */
    struct h2_stream stream;
    struct http_field *fields; /* the owner's table for the answer's head */
    bool wants;                /* the owner waits for input */
    bool has_written_last;
};

struct h2_client_connection {
    struct h2_client_connection *next, *previous; /* of the pool, newest first */
    struct h2_session session;
    struct http_pool *pool;
    bool has_served;
};

struct h2_client {
    struct h2_shared *shared;
    struct spare_list spare_streams, spare_connections;
};

static struct h2_client_stream *h2_client_stream_of(struct upstream_carrier *carrier)
{
    return (struct h2_client_stream *)carrier;
}
static struct h2_client_stream *h2_client_of_stream(struct h2_stream *stream)
{
    return CY_CONTAINER_OF(stream, struct h2_client_stream, stream);
}
static struct h2_client_connection *h2_client_connection_of(struct h2_session *session)
{
    return CY_CONTAINER_OF(session, struct h2_client_connection, session);
}

/* -- what a request's owner may ask of its carrier ------------------------------------------------------- */

static void h2_client_begin(struct upstream_carrier *carrier, struct http_field *fields)
{
    h2_client_stream_of(carrier)->fields = fields;
}

static void h2_client_put_request(struct upstream_carrier *carrier, struct head_writer *writer,
                                  cy_bytes method, cy_bytes base_path, cy_bytes target, cy_bytes host)
{
    struct h2_session *session = h2_client_stream_of(carrier)->stream.session;
    bool secure = session->stream && stream_info(session->stream)->secure;
    h2_head_put(writer, CY_BYTES(":method"), method);
    h2_head_put(writer, CY_BYTES(":scheme"), secure ? CY_BYTES("https") : CY_BYTES("http"));
    h2_head_put(writer, CY_BYTES(":authority"), host);
    h2_head_put_joined(writer, CY_BYTES(":path"), base_path, target);
}

static void h2_client_put_field(struct upstream_carrier *carrier, struct head_writer *writer, cy_bytes name,
                                cy_bytes value)
{
    (void)carrier;
    h2_head_put(writer, name, value);
}

static void h2_client_put_end(struct upstream_carrier *carrier, struct head_writer *writer)
{
    (void)carrier;
    (void)writer;
}

static void h2_client_write(struct upstream_carrier *carrier, size_t head_bytes, bool last)
{
    struct h2_client_stream *client_stream = h2_client_stream_of(carrier);
    CHECK(!carrier->writing);
    carrier->writing = true;
    if (last) {
        client_stream->has_written_last = true;
        client_stream->stream.trailer_out = carrier->trailer;
        carrier->trailer = NULL;
    }
    h2_stream_write(&client_stream->stream, head_bytes, false, last);
}

static void h2_client_want_input(struct upstream_carrier *carrier)
{
    struct h2_client_stream *client_stream = h2_client_stream_of(carrier);
    struct h2_stream *stream = &client_stream->stream;
    if (!carrier->input) h2_stream_credit(stream);
    client_stream->wants = true;
    if (stream->input_first || stream->remote_ended || stream->is_closed) h2_stream_set_ready(stream);
}

static enum upstream_head h2_client_read_head(struct upstream_carrier *carrier, bool request_is_head,
                                              struct http_response *response_out, uint8_t *fault_out)
{
    *fault_out =
        h2_response_read(carrier->input, request_is_head, h2_client_stream_of(carrier)->fields, response_out);
    if (*fault_out) return UPSTREAM_HEAD_FAULT;
    return response_out->status < 200 ? UPSTREAM_HEAD_INTERIM : UPSTREAM_HEAD_FINAL;
}

/* The owner is not called any more. What is on its way goes out; what still comes in is dropped. */
static void h2_client_let_go(struct upstream_carrier **carrier_pointer, bool reset)
{
    struct upstream_carrier *carrier = *carrier_pointer;
    struct h2_stream *stream = &h2_client_stream_of(carrier)->stream;
    *carrier_pointer = NULL;
    carrier->owner = NULL;
    upstream_clear_timer(carrier);
    buffer_unref(&carrier->input);
    buffer_unref(&carrier->trailer);
    buffer_unref(&carrier->input_trailer);
    if (reset) h2_stream_reset(stream, NGHTTP2_CANCEL);
    if (stream->id == 0) stream->is_closed = true; /* nothing was sent: nghttp2 knows nothing of it */
    h2_stream_release(stream);
}

static void h2_client_release(struct upstream_carrier **carrier_pointer, bool clean)
{
    struct upstream_carrier *carrier = *carrier_pointer;
    struct h2_client_stream *client_stream = h2_client_stream_of(carrier);
    struct h2_stream *stream = &client_stream->stream;
    /* The answer is whole; an END_STREAM that has not come yet may come on its own. */
    bool is_whole = stream->remote_ended || (clean && !stream->input_first);
    /* A request that is not all with the kernel must not look as if it ended here. */
    h2_client_let_go(carrier_pointer, !is_whole || !client_stream->has_written_last || stream->writing);
}

static void h2_client_close(struct upstream_carrier **carrier_pointer)
{
    h2_client_let_go(carrier_pointer, true);
}

static const struct upstream_carrier_type h2_client_carrier_type = {
    .name = "http/2",
    .takes_trailers = true,
    .begin = h2_client_begin,
    .put_request = h2_client_put_request,
    .put_field = h2_client_put_field,
    .put_end = h2_client_put_end,
    .write = h2_client_write,
    .want_input = h2_client_want_input,
    .read_head = h2_client_read_head,
    .release = h2_client_release,
    .close = h2_client_close,
};

/* -- what the session tells ------------------------------------------------------------------------------ */

static void h2_client_fail(struct h2_client_stream *client_stream, cy_err err)
{
    struct upstream_carrier *carrier = &client_stream->carrier;
    struct h2_stream *stream = &client_stream->stream;
    carrier->unprocessed = stream->id == 0 || stream->error_code == NGHTTP2_REFUSED_STREAM;
    client_stream->wants = false;
    if (carrier->writing && !stream->is_in_flight) {
        carrier->writing = stream->writing = false;
        relay_hold_release(&carrier->hold);
        stream->send.part_count = stream->send.part_index = 0;
        carrier->events->on_written(carrier->owner, err, 0);
        if (!carrier->owner) return;
    }
    carrier->events->on_read(carrier->owner, NULL, err);
}

static void h2_client_ready(struct h2_stream *stream)
{
    struct h2_client_stream *client_stream = h2_client_of_stream(stream);
    struct upstream_carrier *carrier = &client_stream->carrier;
    bool is_cut = stream->is_closed && !stream->remote_ended;
    if (!carrier->owner) return;
    if (!client_stream->wants) {
        if (is_cut && carrier->writing && !stream->is_in_flight) h2_client_fail(client_stream, CY_ERR(RESET));
        return;
    }
    struct buffer *input = h2_stream_take_input(stream);
    if (input) {
        client_stream->wants = false;
        carrier->events->on_read(carrier->owner, input, CY_OK);
    } else if (stream->remote_ended) {
        client_stream->wants = false;
        carrier->input_trailer = stream->trailer_in;
        stream->trailer_in = NULL;
        carrier->events->on_read(carrier->owner, NULL, CY_OK);
    } else if (is_cut) {
        h2_client_fail(client_stream, CY_ERR(RESET));
    }
}

static void h2_client_written(struct h2_stream *stream, cy_err err, size_t bytes)
{
    struct upstream_carrier *carrier = &h2_client_of_stream(stream)->carrier;
    carrier->writing = false;
    if (carrier->owner) carrier->events->on_written(carrier->owner, err, bytes);
}

static void h2_client_stream_free(struct h2_stream *stream)
{
    struct h2_client_connection *connection = h2_client_connection_of(stream->session);
    struct http_client *client = connection->pool->client;
    connection->has_served = true;
    spare_put(&client->h2->spare_streams, h2_client_of_stream(stream));
    client_release(client);
}

static void h2_client_unlink(struct h2_client_connection *connection)
{
    struct http_pool *pool = connection->pool;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        pool->h2_newest = connection->next;
    if (connection->next) connection->next->previous = connection->previous;
}

static void h2_client_closed(struct h2_session *session)
{
    for (struct h2_stream *stream = session->streams, *next; stream; stream = next) {
        next = stream->next;
        stream->is_closed = true;
        h2_stream_set_ready(stream); /* a whole answer may still wait for its owner */
    }
}

static void h2_client_free(struct h2_session *session)
{
    struct h2_client_connection *connection = h2_client_connection_of(session);
    struct http_client *client = connection->pool->client;
    h2_client_unlink(connection);
    pool_unref(&connection->pool);
    spare_put(&client->h2->spare_connections, connection);
    client_release(client);
}

/* Looks from time to time: a write that nobody takes ends the connection, and so does having no streams. */
static void h2_client_timer(struct h2_session *session)
{
    const struct http_client_options *options = &h2_client_connection_of(session)->pool->client->options;
    uint64_t now_ms = loop_now_ms(session->loop), due_ms = now_ms + options->idle_timeout_ms;
    if (h2_session_is_stuck(session, options->idle_timeout_ms, 0)) {
        h2_session_close(session);
        return;
    }
    if (session->stream_count == 0) {
        uint64_t idle_ms = session->idle_since_ms + options->keep_alive_ms;
        if (idle_ms <= now_ms)
            h2_session_end(session, NGHTTP2_NO_ERROR);
        else if (idle_ms < due_ms)
            due_ms = idle_ms;
    }
    loop_timer_set(session->loop, &session->timer, due_ms - now_ms + 1);
}

static void h2_client_idle(struct h2_session *session)
{
    const struct http_client *client = h2_client_connection_of(session)->pool->client;
    if (client->freed)
        h2_session_close(session);
    else
        loop_timer_set(session->loop, &session->timer, client->options.keep_alive_ms);
}

static void h2_client_flooded(struct h2_session *session, const char *row)
{
    const struct http_pool *pool = h2_client_connection_of(session)->pool;
    log_write_keyed(pool->client->options.log, LOG_WARN, row,
                    "upstream %.*s is cut off: more HTTP/2 frames than %s allows", CY_BYTES_ARG(pool->text),
                    row);
}

static const struct h2_role h2_client_role = {
    .name = "client",
    .ready = h2_client_ready,
    .written = h2_client_written,
    .stream_free = h2_client_stream_free,
    .closed = h2_client_closed,
    .free = h2_client_free,
    .timer = h2_client_timer,
    .flooded = h2_client_flooded,
    .idle = h2_client_idle,
};

/* -- for pools ------------------------------------------------------------------------------------------- */

static void h2_client_on_carrier_timer(struct timer *timer)
{
    struct upstream_carrier *carrier = CY_CONTAINER_OF(timer, struct upstream_carrier, timer);
    struct h2_session *session = h2_client_stream_of(carrier)->stream.session;
    /* Nothing has come for as long as a request waits: the server may be gone without a word. No more requests. */
    uint64_t quiet_ms = loop_now_ms(session->loop) - session->read_ms;
    if (quiet_ms >= carrier->options->first_byte_timeout_ms || quiet_ms >= carrier->options->idle_timeout_ms)
        session->goaway_seen = true;
    h2_session_enter(session);
    if (carrier->owner) carrier->events->on_timeout(carrier->owner);
    h2_session_leave(session);
}

static struct upstream_carrier *h2_client_open_stream(struct h2_client_connection *connection)
{
    struct http_client *client = connection->pool->client;
    struct h2_client_stream *client_stream = spare_take(&client->h2->spare_streams);
    if (!client_stream) client_stream = mem_alloc(sizeof *client_stream);
    if (!client_stream) return NULL;
    memset(client_stream, 0, sizeof *client_stream);
    client_stream->carrier.type = &h2_client_carrier_type;
    client_stream->carrier.options = &client->options;
    client_stream->carrier.send = &client_stream->stream.send;
    client_stream->carrier.timer.fire = h2_client_on_carrier_timer;
    client_stream->carrier.used_before = connection->has_served;
    client->live_count++;
    h2_stream_link(&connection->session, &client_stream->stream, &client_stream->carrier.hold);
    return &client_stream->carrier;
}

static bool h2_client_has_room(const struct h2_client_connection *connection)
{
    const struct h2_session *session = &connection->session;
    if (!session->stream || session->ending || session->goaway_seen || session->lingering) return false;
    uint32_t max =
        nghttp2_session_get_remote_settings(session->library, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    if (max > LIMIT_HTTP2_STREAMS) max = LIMIT_HTTP2_STREAMS;
    return session->stream_count < max && nghttp2_session_check_request_allowed(session->library);
}

struct upstream_carrier *h2_client_take(struct http_pool *pool, void *owner,
                                        const struct upstream_events *events)
{
    for (struct h2_client_connection *connection = pool->h2_newest; connection;
         connection = connection->next) {
        if (!h2_client_has_room(connection)) continue;
        /* Where nothing is under way the server may have hung up since. */
        struct upstream_carrier *carrier = h2_client_open_stream(connection);
        if (!carrier) return NULL;
        carrier->owner = owner;
        carrier->events = events;
        return carrier;
    }
    return NULL;
}

static struct h2_client_connection *h2_client_connection_new(struct http_client *client)
{
    if (!client->h2) {
        struct h2_client *h2 = mem_alloc_zeroed(sizeof *h2);
        if (!h2) return NULL;
        struct spare_watch *watch = loop_spares(client->options.loop);
        if (cy_failed(h2_shared_new(watch, &h2->shared))) {
            mem_free(h2);
            return NULL;
        }
        spare_init(&h2->spare_streams, watch, sizeof(struct h2_client_stream), LIMIT_HTTP_SPARE);
        spare_init(&h2->spare_connections, watch, sizeof(struct h2_client_connection), LIMIT_HTTP_SPARE);
        client->h2 = h2;
    }
    struct h2_client_connection *connection = spare_take(&client->h2->spare_connections);
    return connection ? connection : mem_alloc(sizeof *connection);
}

cy_err h2_client_add(struct http_pool *pool, struct stream *owned_stream,
                     struct upstream_carrier **carrier_out)
{
    struct http_client *client = pool->client;
    struct h2_client_connection *connection = h2_client_connection_new(client);
    if (!connection) {
        stream_close(&owned_stream);
        return CY_ERR(NO_MEMORY);
    }
    memset(connection, 0, sizeof *connection);
    cy_err err = h2_session_open(&connection->session, &h2_client_role, client->h2->shared,
                                 client->options.loop, owned_stream);
    if (cy_failed(err)) {
        spare_put(&client->h2->spare_connections, connection);
        return err;
    }
    connection->pool = pool_ref(pool);
    connection->next = pool->h2_newest;
    if (connection->next) connection->next->previous = connection;
    pool->h2_newest = connection;
    client->live_count++;
    loop_timer_set(client->options.loop, &connection->session.timer, client->options.keep_alive_ms);
    *carrier_out = h2_client_open_stream(connection);
    if (*carrier_out) return CY_OK;
    h2_session_close(&connection->session);
    return CY_ERR(NO_MEMORY);
}

bool h2_client_oldest_idle(struct http_pool *pool, bool close, uint64_t *due_ms_out)
{
    struct h2_session *oldest = NULL;
    for (struct h2_client_connection *connection = pool->h2_newest; connection;
         connection = connection->next) {
        struct h2_session *session = &connection->session;
        bool is_idle = session->stream && session->stream_count == 0;
        if (is_idle && (!oldest || session->idle_since_ms < oldest->idle_since_ms)) oldest = session;
    }
    if (!oldest) return false;
    *due_ms_out = oldest->idle_since_ms + pool->client->options.keep_alive_ms;
    if (close) h2_session_close(oldest);
    return true;
}

void h2_client_close_idle(struct http_pool *pool)
{
    for (struct h2_client_connection *connection = pool->h2_newest, *next; connection; connection = next) {
        next = connection->next;
        if (connection->session.stream_count == 0) h2_session_close(&connection->session);
    }
}

void h2_client_fini(struct http_client *client)
{
    struct h2_client *h2 = client->h2;
    if (!h2) return;
    client->h2 = NULL;
    spare_fini(&h2->spare_streams);
    spare_fini(&h2->spare_connections);
    h2_shared_free(&h2->shared);
    mem_free(h2);
}
