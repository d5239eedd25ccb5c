/* SPDX-License-Identifier: MIT
 *
 * vm/http/server_intake.c: connections whose first bytes say for whom they are (PROXY protocol), until those are there.
 *
 *   accept ─► trusted? ─yes─► read until the header is complete ─► its addresses, the rest pushed back ─► as any other
 *               └─no─► closed        └─ wrong, too long, too slow, the end: closed, and the log says so
 *
 * In:   streams of listeners that want a header, before anything else is read from them (TLS comes behind it).
 * Out:  the same streams with other addresses; a closed stream and a line in the log.
 * Invariant: a connection without a good header never reaches HTTP, so nobody outside can choose an address. Until it
 *       has one it is a client like any other: counted, first to go where room is needed, closed by a stop.
 */
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/http/server_internal.h"
#include "vm/net/proxy_protocol.h"

struct server_intake {
    struct server_connection listed;
    struct http_listener *listener;
    uint64_t since_ms;
    struct stream *stream; /* NULL: closed or handed on, the read may still come */
    struct stream_read read;
    struct timer timer;
    struct buffer *input; /* of the header; NULL rather than empty */
    bool reading;
};

static struct http_server *intake_server(const struct server_intake *intake)
{
    return intake->listener->server;
}

/* -- the end --------------------------------------------------------------------------------------------- */

static void intake_release(struct server_intake *intake)
{
    struct http_server *server = intake_server(intake);
    if (intake->stream || intake->reading) return;
    server_unlink(server, &intake->listed);
    mem_free(intake);
    server_release(server);
}

/* Takes the stream off it. */
static struct stream *intake_end(struct server_intake *intake)
{
    struct http_server *server = intake_server(intake);
    struct stream *stream = intake->stream;
    loop_timer_clear(server->options.loop, &intake->timer);
    buffer_unref(&intake->input);
    intake->stream = NULL;
    server_client_left(server);
    return stream;
}

static void intake_close(struct server_intake *intake)
{
    struct http_server *server = intake_server(intake);
    struct stream *stream = intake_end(intake);
    stream_close(&stream);
    intake_release(intake);
    server_check_drained(server);
}

/* One line a second for each reason and not for each connection. */
static void intake_log(struct http_server *server, const struct address *peer, const char *why)
{
    struct builder text;
    builder_init(&text);
    address_format(peer, true, &text);
    server->counters->intake_refused++;
    log_write_keyed(server_log(server), LOG_WARN, why, "client %.*s is closed: %s",
                    CY_BYTES_ARG(builder_view(&text)), why);
    builder_fini(&text);
}

static void intake_refuse(struct server_intake *intake, const char *why)
{
    intake_log(intake_server(intake), &stream_info(intake->stream)->peer, why);
    intake_close(intake);
}

/* -- the header ------------------------------------------------------------------------------------------ */

static void intake_read(struct server_intake *intake)
{
    intake->reading = true;
    stream_read_start(intake->stream, &intake->read);
}

static void intake_hand_on(struct server_intake *intake, const struct proxy_protocol *header)
{
    struct http_listener *listener = intake->listener;
    struct buffer *input = intake->input;
    intake->input = NULL;
    input->begin += (uint32_t)header->used_bytes;
    if (header->has_addresses) stream_set_addresses(intake->stream, &header->source, &header->destination);
    stream_unread(intake->stream, input);
    struct stream *stream = intake_end(intake);
    intake_release(intake);
    server_serve(listener, stream);
    server_check_drained(listener->server); /* it may have been refused */
}

static void intake_on_read(struct stream_read *read)
{
    struct server_intake *intake = CY_CONTAINER_OF(read, struct server_intake, read);
    intake->reading = false;
    if (!intake->stream) {
        buffer_unref(&read->buffer);
        intake_release(intake);
        return;
    }
    if (cy_failed(read->err) || !read->buffer) {
        if (intake->input)
            intake_refuse(intake, "it ended inside its PROXY header");
        else
            intake_close(intake); /* a port check, say */
        return;
    }
    if (cy_failed(input_append(&intake->input, read->buffer, server_buffers(intake_server(intake))))) {
        intake_close(intake);
        return;
    }
    struct proxy_protocol header;
    switch (proxy_protocol_parse(buffer_view(intake->input), &header)) {
    case PROXY_PROTOCOL_MORE: intake_read(intake); return;
    case PROXY_PROTOCOL_BAD: intake_refuse(intake, header.fault); return;
    case PROXY_PROTOCOL_DONE: intake_hand_on(intake, &header); return;
    }
}

static void intake_on_timer(struct timer *timer)
{
    intake_refuse(CY_CONTAINER_OF(timer, struct server_intake, timer),
                  "its PROXY header did not come in time");
}

/* -- for the server's list ------------------------------------------------------------------------------- */

static void intake_lose(struct server_connection *listed, cy_err err)
{
    struct server_intake *intake = CY_CONTAINER_OF(listed, struct server_intake, listed);
    (void)err;
    if (intake->stream) intake_close(intake);
}

static void intake_drain(struct server_connection *listed) { intake_lose(listed, CY_ERR(CANCELLED)); }

static uint64_t intake_waits_since(const struct server_connection *listed, uint64_t now_ms)
{
    const struct server_intake *intake =
        (const struct server_intake *)((const char *)listed - offsetof(struct server_intake, listed));
    (void)now_ms;
    return intake->stream ? intake->since_ms : UINT64_MAX;
}

static struct stream *intake_awaits(const struct server_connection *listed)
{
    const struct server_intake *intake =
        (const struct server_intake *)((const char *)listed - offsetof(struct server_intake, listed));
    return intake->reading ? intake->stream : NULL;
}

static const struct server_connection_type intake_listed_type = {
    .lose = intake_lose,
    .drain = intake_drain,
    .waits_since = intake_waits_since,
    .awaits = intake_awaits,
};

/* -- the beginning --------------------------------------------------------------------------------------- */

/* Whoever may open a UNIX socket was let in by its mode. */
static bool intake_trusts(const struct http_listener *listener, const struct address *peer)
{
    if (listener->trusted_count == 0 || (peer->bytes && peer->storage.ss_family == AF_UNIX)) return true;
    for (uint32_t i = 0; i < listener->trusted_count; i++)
        if (address_range_has(&listener->trusted[i], peer)) return true;
    return false;
}

void intake_start(struct http_listener *listener, struct stream *owned_stream)
{
    struct http_server *server = listener->server;
    bool trusted = intake_trusts(listener, &stream_info(owned_stream)->peer);
    if (!trusted)
        intake_log(server, &stream_info(owned_stream)->peer,
                   "it may not speak the PROXY protocol here (not trusted)");
    struct server_intake *intake =
        trusted && server_has_room(server) ? mem_alloc_zeroed(sizeof *intake) : NULL;
    if (!intake) {
        stream_close(&owned_stream);
        return;
    }
    intake->listener = listener;
    intake->stream = owned_stream;
    intake->read.done = intake_on_read;
    intake->timer.fire = intake_on_timer;
    intake->listed.type = &intake_listed_type;
    intake->since_ms = loop_now_ms(server->options.loop);
    server_link(server, &intake->listed);
    server->live_count++;
    server->counters->connections_open++;
    loop_timer_set(server->options.loop, &intake->timer, LIMIT_PROXY_PROTOCOL_MS);
    intake_read(intake);
}
