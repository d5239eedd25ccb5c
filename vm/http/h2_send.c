/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_send.c: frames out: what nghttp2 has to say, and the bodies' bytes between, as one gathered write.
 *
 *     output:  [frames ...][DATA header]              [frames][DATA header]
 *     parts:   ^^^^^^^^^^^^^^^^^^^^^^^^^^ ^^^payload^^^ ^^^^^^^^^^^^^^^^^^^^ ^^^payload^^^
 *
 * Small payloads are copied behind their header: one part is sent with send, which costs the kernel less.
 * Invariant: a stream whose bytes are parts of the present write is on the flight list, and its carrier's hold stays
 *       until that write is done.
 */
#include "vm/http/h2_session.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"

/* Payloads up to this size are copied: cheaper than a part. */
#define H2_SEND_COPY_BYTES 2048
#define H2_SEND_FRAME_HEADER_BYTES 9
/* A frame is begun only where this much fits behind the others. */
#define H2_SEND_ROOM_BYTES (H2_SEND_COPY_BYTES + H2_SEND_FRAME_HEADER_BYTES)

static struct h2_session *h2_send_session(void *context) { return context; }

/* -- the output ------------------------------------------------------------------------------------------ */

static bool h2_send_has_room(const struct h2_session *session)
{
    return session->write.send.part_count + 2 < LOOP_SEND_PARTS_MAX &&
           buffer_space(session->output) >= H2_SEND_ROOM_BYTES;
}

static void h2_send_add_part(struct h2_session *session, cy_bytes bytes)
{
    struct loop_send *send = &session->write.send;
    CHECK(send->part_count < LOOP_SEND_PARTS_MAX);
    send->parts[send->part_count++] = bytes;
}

/* Appends to the output, and to its last part where that ends there. */
static void h2_send_copy(struct h2_session *session, const uint8_t *bytes, size_t count)
{
    struct buffer *output = session->output;
    struct loop_send *send = &session->write.send;
    uint8_t *at = output->data + output->end;
    CHECK(buffer_space(output) >= count);
    memcpy(at, bytes, count);
    output->end += (uint32_t)count;
    cy_bytes *last = send->part_count ? &send->parts[send->part_count - 1] : NULL;
    if (last && last->data + last->count == at)
        last->count += count;
    else
        h2_send_add_part(session, cy_bytes_of(at, count));
}

/* -- the carrier's bytes --------------------------------------------------------------------------------- */

static size_t h2_send_left(const struct h2_stream *stream)
{
    const struct loop_send *send = &stream->send;
    size_t left = 0;
    for (uint32_t i = send->part_index; i < send->part_count; i++) left += send->parts[i].count;
    return left - (left ? send->part_offset : 0);
}

/* The next piece, at most `count` bytes of one part. */
static cy_bytes h2_send_take(struct h2_stream *stream, size_t count)
{
    struct loop_send *send = &stream->send;
    cy_bytes piece = cy_bytes_skip(send->parts[send->part_index], send->part_offset);
    if (piece.count > count) {
        piece.count = count;
        send->part_offset += count;
    } else {
        send->part_index++;
        send->part_offset = 0;
    }
    send->sent_bytes += piece.count; /* timers look at it */
    return piece;
}

/* How many bytes the parts that are free can take, one of them for the frame's header. */
static size_t h2_send_fit(const struct h2_session *session, const struct h2_stream *stream, size_t count)
{
    if (count <= H2_SEND_COPY_BYTES) return count;
    const struct loop_send *send = &stream->send;
    uint32_t parts_left = LOOP_SEND_PARTS_MAX - session->write.send.part_count - 1;
    size_t fit = 0, offset = send->part_offset;
    for (uint32_t i = send->part_index; i < send->part_count && parts_left > 0; i++, parts_left--) {
        fit += send->parts[i].count - offset;
        offset = 0;
    }
    return cy_min_size(fit, count);
}

static void h2_send_in_flight(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    if (stream->is_in_flight) return;
    stream->is_in_flight = true;
    stream->flight_next = session->flight;
    session->flight = stream;
}

static void h2_send_submit_trailer(struct h2_stream *stream)
{
    nghttp2_nv table[H2_HEAD_FIELDS_MAX];
    uint8_t space[LIMIT_HTTP_TRAILER_BYTES];
    size_t count = h2_head_trailer_table(buffer_view(stream->trailer_out), space, table);
    (void)nghttp2_submit_trailer(stream->session->library, stream->id, table, count);
    buffer_unref(&stream->trailer_out);
}

static ssize_t h2_send_on_source(nghttp2_session *library, int32_t id, uint8_t *room, size_t length,
                                 uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct h2_session *session = h2_send_session(context);
    struct h2_stream *stream = nghttp2_session_get_stream_user_data(library, id);
    (void)room;
    (void)source;
    if (!stream) return NGHTTP2_ERR_DEFERRED;
    size_t left = h2_send_left(stream);
    if (left == 0 && !stream->last) {
        stream->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (!h2_send_has_room(session)) return NGHTTP2_ERR_PAUSE;
    size_t count = h2_send_fit(session, stream, cy_min_size(left, length));
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (count == left && stream->last) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        stream->end_given = true;
        if (stream->trailer_out) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            h2_send_submit_trailer(stream);
        }
    }
    return (ssize_t)count;
}

static int h2_send_on_data(nghttp2_session *library, nghttp2_frame *frame, const uint8_t *header,
                           size_t length, nghttp2_data_source *source, void *context)
{
    struct h2_session *session = h2_send_session(context);
    struct h2_stream *stream = nghttp2_session_get_stream_user_data(library, frame->hd.stream_id);
    (void)source;
    if (!stream) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    h2_send_copy(session, header, H2_SEND_FRAME_HEADER_BYTES);
    bool copies = length <= H2_SEND_COPY_BYTES;
    for (size_t left = length; left > 0;) {
        cy_bytes piece = h2_send_take(stream, left);
        if (copies)
            h2_send_copy(session, piece.data, piece.count);
        else if (piece.count)
            h2_send_add_part(session, piece);
        left -= piece.count;
    }
    return 0;
}

/* Is everything of the carrier's write with the present write, or an earlier one? */
static bool h2_send_is_complete(const struct h2_stream *stream)
{
    if (stream->head_waits || h2_send_left(stream) > 0) return false;
    return !stream->last || stream->end_given;
}

static int h2_send_on_frame_sent(nghttp2_session *library, const nghttp2_frame *frame, void *context)
{
    struct h2_session *session = h2_send_session(context);
    if (frame->hd.type == NGHTTP2_GOAWAY && session->draining)
        (void)nghttp2_submit_ping(library, NGHTTP2_FLAG_NONE, (const uint8_t *)H2_DRAIN_PING);
    if (frame->hd.type == NGHTTP2_RST_STREAM) session->has_reset = true;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    h2_session_earn_by_sent(session, frame);
    struct h2_stream *stream = nghttp2_session_get_stream_user_data(library, frame->hd.stream_id);
    if (!stream) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS) stream->head_waits = false;
    if (stream->writing) h2_send_in_flight(stream);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) && stream->rst_after_end)
        (void)nghttp2_submit_rst_stream(library, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    return 0;
}

void h2_send_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_send_data_callback(callbacks, h2_send_on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, h2_send_on_frame_sent);
}

/* -- the connection's write ------------------------------------------------------------------------------ */

/* Everything is said, and the peer knows it: what may still come is dropped for a while, so that our last frames
 * are not destroyed by a reset. */
static void h2_send_linger(struct h2_session *session)
{
    if (session->lingering) return;
    session->lingering = true;
    session->lingered_bytes = 0;
    session->idle_since_ms = loop_now_ms(session->loop);
    for (struct h2_stream *stream = session->streams; stream; stream = stream->next) {
        stream->is_closed = true; /* cut off by an error: their owners have to know */
        h2_stream_set_ready(stream);
    }
    stream_shutdown_write(session->stream);
    loop_timer_set(session->loop, &session->timer, LIMIT_HTTP_LINGER_MS);
    h2_session_read(session);
}

static bool h2_send_fill(struct h2_session *session)
{
    while (h2_send_has_room(session)) {
        const uint8_t *bytes;
        ssize_t count = nghttp2_session_mem_send(session->library, &bytes);
        if (count < 0) return false;
        if (count == 0) return true;
        if ((size_t)count > buffer_space(session->output)) {
            h2_send_add_part(session, cy_bytes_of(bytes, (size_t)count)); /* stays until the next call */
            return true;
        }
        h2_send_copy(session, bytes, (size_t)count);
    }
    return true;
}

void h2_send_flush(struct h2_session *session)
{
    if (!session->stream || session->writing || session->lingering) return;
    session->output = buffer_take(loop_buffers(session->loop));
    session->write.send.part_count = 0;
    session->write.send.more = false;
    if (!session->output || !h2_send_fill(session)) {
        buffer_unref(&session->output);
        session->write.send.part_count = 0;
        for (struct h2_stream *stream = session->flight; stream; stream = stream->flight_next)
            stream->is_in_flight = false; /* nothing flies */
        session->flight = NULL;
        h2_session_close(session);
        return;
    }
    if (session->write.send.part_count > 0) {
        session->writing = true;
        session->write_since_ms = loop_now_ms(session->loop);
        session->write_checked_bytes = 0;
        stream_write_start(session->stream, &session->write);
        return;
    }
    buffer_unref(&session->output);
    if (!nghttp2_session_want_read(session->library) && !nghttp2_session_want_write(session->library))
        h2_send_linger(session);
}

void h2_send_on_written(struct stream_write *write)
{
    struct h2_session *session = CY_CONTAINER_OF(write, struct h2_session, write);
    struct h2_stream *flight = session->flight;
    cy_err err = session->stream ? write->err : CY_ERR(CANCELLED);
    session->writing = false;
    session->flight = NULL;
    session->written_bytes += write->send.sent_bytes;
    buffer_unref(&session->output);
    h2_session_enter(session);
    while (flight) {
        struct h2_stream *stream = flight;
        flight = stream->flight_next;
        stream->is_in_flight = false;
        if (!stream->has_owner) {
            relay_hold_release(stream->hold);
            stream->writing = false;
            stream->send.part_count = stream->send.part_index = 0;
            stream->send.part_offset = 0;
            h2_stream_check(stream);
        } else if (stream->writing && !cy_failed(err) && h2_send_is_complete(stream)) {
            stream->writing = false;
            relay_hold_release(stream->hold);
            session->role->written(stream, CY_OK, stream->write_bytes);
        } else if (cy_failed(err)) {
            stream->is_closed = true;
            h2_stream_set_ready(stream);
        }
    }
    if (session->stream && cy_failed(err)) h2_session_close(session);
    if (session->stream) {
        h2_session_kick(session);
    }
    h2_session_leave(session);
}

/* -- a carrier's write ----------------------------------------------------------------------------------- */

static void h2_send_head(struct h2_stream *stream, cy_bytes block, bool interim, bool has_body)
{
    nghttp2_session *library = stream->session->library;
    nghttp2_nv table[H2_HEAD_FIELDS_MAX];
    nghttp2_data_provider provider = {.read_callback = h2_send_on_source};
    size_t count = h2_head_table(block, table);
    int result;
    if (interim) {
        result = nghttp2_submit_headers(library, NGHTTP2_FLAG_NONE, stream->id, NULL, table, count, NULL);
    } else if (stream->session->role->is_server) {
        result = nghttp2_submit_response(library, stream->id, table, count, has_body ? &provider : NULL);
    } else {
        result = nghttp2_submit_request(library, NULL, table, count, has_body ? &provider : NULL, stream);
        if (result > 0) stream->id = result;
    }
    stream->head_waits = true;
    if (result < 0) { /* no memory, or no stream numbers left */
        stream->is_closed = true;
        stream->error_code = NGHTTP2_REFUSED_STREAM;
        h2_stream_set_ready(stream);
        return;
    }
    if (interim) return;
    stream->head_sent = true;
    stream->body_open = has_body;
    if (!has_body) stream->end_given = true;
}

void h2_stream_write(struct h2_stream *stream, size_t head_bytes, bool interim, bool last)
{
    struct loop_send *send = &stream->send;
    CHECK(!stream->writing && stream->has_owner);
    cy_bytes block = head_bytes ? cy_bytes_slice(send->parts[0], 0, head_bytes) : CY_BYTES_NONE;
    stream->writing = true;
    stream->last = last;
    send->part_index = 0;
    send->part_offset = 0;
    send->sent_bytes = 0;
    stream->write_bytes = 0;
    for (uint32_t i = 0; i < send->part_count; i++) stream->write_bytes += send->parts[i].count;
    if (head_bytes) send->parts[0] = cy_bytes_skip(send->parts[0], head_bytes);
    if (stream->is_closed || !stream->session->stream) {
        h2_stream_set_ready(stream);
        return;
    }
    if (head_bytes) {
        bool has_body = !last || h2_send_left(stream) > 0 || stream->trailer_out;
        h2_send_head(stream, block, interim, has_body);
    } else if (stream->deferred) {
        stream->deferred = false;
        (void)nghttp2_session_resume_data(stream->session->library, stream->id);
    }
    h2_session_kick(stream->session);
}

void h2_stream_finish(struct h2_stream *stream)
{
    if (stream->last || !stream->head_sent || stream->is_closed) return;
    stream->last = true;
    stream->send.part_count = stream->send.part_index = 0;
    stream->send.part_offset = 0;
    if (stream->deferred) {
        stream->deferred = false;
        (void)nghttp2_session_resume_data(stream->session->library, stream->id);
    }
    h2_session_kick(stream->session);
}

#undef H2_SEND_COPY_BYTES
#undef H2_SEND_FRAME_HEADER_BYTES
#undef H2_SEND_ROOM_BYTES
