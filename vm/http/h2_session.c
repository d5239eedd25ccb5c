/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_session.c: see h2_session.h: the life of a connection, frames in, streams.
 *
 * Floods (each bound is a row of limits.def; past it: GOAWAY with ENHANCE_YOUR_CALM, and the end):
 *   - frames use up `frames`; time fills it again, and whatever an honest peer has them for: each request for those
 *     that go with one (HTTP2_STREAM_FRAMES), DATA that comes for itself and one more, DATA that goes for a PING;
 *   - WINDOW_UPDATE uses up `update_count` first, which the bytes of DATA fill that we send: a receiver gives back what
 *     it has read in pieces of its choice (HTTP2_UPDATE_BYTES), perhaps late, and then all that its windows held;
 *   - streams that the peer resets, or makes us reset, use up `resets`, whoever finds the fault: nghttp2 tells of a bad
 *     frame at once, of a body that is not what content-length says only by the stream's end. Some that end
 *     with their whole answer (HTTP2_RESET_ANSWERS) give one back: the part of clients that leave is what a proxy in
 *     front of us cannot choose, and who buys resets with answers pays for them;
 *   - CONTINUATION frames of one head are counted; what a head holds is h2_head.c's.
 */
#include "vm/http/h2_session.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"

#include <nghttp2/nghttp2.h>

#define H2_SESSION_BUDGET_MS 10000 /* in which an empty budget is full again */
/* That DATA accounts for: one that comes for itself and an empty one or grease, one that goes for the PING of who
 * measures round trips by it, and what it then sets. */
#define H2_SESSION_DATA_FRAMES 2
#define H2_SESSION_HEAD_FRAMES 2 /* the same of answers and trailers: a bounded number for each stream */
#define H2_SESSION_WINDOWS 2     /* that one byte of DATA takes from: its stream's and the connection's */
/* As many as the largest window holds (RFC 9113 section 6.9.1): no more can be on their way. */
#define H2_SESSION_UPDATES_MAX (H2_SESSION_WINDOWS * (NGHTTP2_MAX_WINDOW_SIZE / LIMIT_HTTP2_UPDATE_BYTES))

static struct h2_session *h2_session_of(void *context) { return context; }

/* -- budgets --------------------------------------------------------------------------------------------- */

static void h2_budget_spend(struct h2_session *session, struct h2_budget *budget, int32_t max,
                            const char *row)
{
    uint64_t now_ms = loop_now_ms(session->loop), passed_ms = now_ms - budget->filled_ms;
    int64_t fill = (int64_t)cy_min_size(passed_ms, H2_SESSION_BUDGET_MS) * max / H2_SESSION_BUDGET_MS;
    if (fill > 0) {
        budget->left = (int32_t)cy_min_size((size_t)(budget->left + fill), (size_t)max);
        budget->filled_ms = now_ms;
    }
    if (budget->left > 0)
        budget->left--;
    else
        session->flood = row;
}

static void h2_budget_earn(struct h2_budget *budget, int32_t count, int32_t max)
{
    budget->left = budget->left < max - count ? budget->left + count : max;
}

static void h2_session_earn(struct h2_session *session, int32_t frame_count)
{
    h2_budget_earn(&session->frames, frame_count, LIMIT_HTTP2_IDLE_FRAMES);
}

static void h2_session_spend_frame(struct h2_session *session, uint8_t type)
{
    if (type == NGHTTP2_WINDOW_UPDATE && session->update_count > 0)
        session->update_count--;
    else
        h2_budget_spend(session, &session->frames, LIMIT_HTTP2_IDLE_FRAMES, "HTTP2_IDLE_FRAMES");
}

void h2_session_earn_by_sent(struct h2_session *session, const nghttp2_frame *frame)
{
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        h2_session_earn(session, LIMIT_HTTP2_STREAM_FRAMES);
    if (frame->hd.type != NGHTTP2_DATA || frame->hd.length == 0) return;
    size_t pieces = (frame->hd.length + LIMIT_HTTP2_UPDATE_BYTES - 1) / LIMIT_HTTP2_UPDATE_BYTES;
    session->update_count =
        (uint32_t)cy_min_size(session->update_count + H2_SESSION_WINDOWS * pieces, H2_SESSION_UPDATES_MAX);
    h2_session_earn(session, H2_SESSION_DATA_FRAMES);
}

/* -- frames in ------------------------------------------------------------------------------------------- */

static struct h2_stream *h2_session_stream(struct h2_session *session, int32_t id)
{
    return id > 0 ? nghttp2_session_get_stream_user_data(session->library, id) : NULL;
}

/* What nghttp2 lets pass: it takes a head of a stream that is not there any more for trailers that crossed our
 * RST_STREAM, which they cannot have done where none was sent (RFC 9113 section 5.1.1), and skips all of PRIORITY
 * (section 6.3). */
static uint32_t h2_session_judge_frame(const struct h2_session *session, const nghttp2_frame_hd *header)
{
    int32_t id = header->stream_id;
    if (header->type == NGHTTP2_PRIORITY && id == 0) return NGHTTP2_PROTOCOL_ERROR;
    if (header->type != NGHTTP2_HEADERS || session->has_reset) return NGHTTP2_NO_ERROR;
    bool is_past = id % 2 == 1 && id <= nghttp2_session_get_last_proc_stream_id(session->library);
    return is_past && !nghttp2_session_find_stream(session->library, id) ? NGHTTP2_PROTOCOL_ERROR
                                                                         : NGHTTP2_NO_ERROR;
}

static int h2_session_on_begin_frame(nghttp2_session *library, const nghttp2_frame_hd *header, void *context)
{
    struct h2_session *session = h2_session_of(context);
    (void)library;
    if (session->flood) return NGHTTP2_ERR_CALLBACK_FAILURE; /* not another frame */
    if (header->type == NGHTTP2_CONTINUATION) {
        if (++session->continuation_count > LIMIT_HTTP2_CONTINUATIONS) {
            session->flood = "HTTP2_CONTINUATIONS";
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
    } else {
        session->continuation_count = 0;
        session->head_begun_ms = 0;
    }
    h2_session_spend_frame(session, header->type);
    if (session->role->is_server) session->broken = h2_session_judge_frame(session, header);
    return session->flood || session->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int h2_session_on_begin_headers(nghttp2_session *library, const nghttp2_frame *frame, void *context)
{
    struct h2_session *session = h2_session_of(context);
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    session->head_begun_ms = loop_now_ms(session->loop);
    if (session->role->is_server && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        struct h2_stream *stream = session->role->stream_new(session);
        if (!stream) {
            session->has_reset = true;
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        stream->id = frame->hd.stream_id;
        (void)nghttp2_session_set_stream_user_data(library, stream->id, stream);
        h2_session_earn(session, LIMIT_HTTP2_STREAM_FRAMES);
        return 0;
    }
    h2_session_earn(session, H2_SESSION_HEAD_FRAMES);
    return 0;
}

static int h2_session_on_header(nghttp2_session *library, const nghttp2_frame *frame, const uint8_t *name,
                                size_t name_count, const uint8_t *value, size_t value_count, uint8_t flags,
                                void *context)
{
    struct h2_session *session = h2_session_of(context);
    struct h2_stream *stream = h2_session_stream(session, frame->hd.stream_id);
    (void)library;
    (void)flags;
    if (frame->hd.type == NGHTTP2_HEADERS && stream)
        h2_block_add(&stream->incoming, loop_buffers(session->loop), cy_bytes_of(name, name_count),
                     cy_bytes_of(value, value_count));
    return 0;
}

/* Copies into the buffer that was begun last, where the carrier has not got that yet. */
static bool h2_stream_add_input(struct h2_stream *stream, const uint8_t *data, size_t count)
{
    struct buffer_pool *pool = loop_buffers(stream->session->loop);
    while (count > 0) {
        struct buffer *last = stream->input_last;
        if (!last || buffer_space(last) == 0) {
            /* A stream that filled a buffer gets a larger one. */
            struct buffer *more = last ? buffer_take_bulk(pool) : buffer_take(pool);
            if (!more) return false;
            if (last)
                last->next = more;
            else
                stream->input_first = more;
            stream->input_last = last = more;
        }
        size_t piece = cy_min_size(count, buffer_space(last));
        memcpy(last->data + last->end, data, piece);
        last->end += (uint32_t)piece;
        data += piece;
        count -= piece;
    }
    return true;
}

static int h2_session_on_data(nghttp2_session *library, uint8_t flags, int32_t id, const uint8_t *data,
                              size_t count, void *context)
{
    struct h2_session *session = h2_session_of(context);
    struct h2_stream *stream = h2_session_stream(session, id);
    (void)flags;
    if (!stream || !stream->has_owner) {
        (void)nghttp2_session_consume_connection(library, count);
        return 0;
    }
    if (session->role->data) {
        session->role->data(stream, cy_bytes_of(data, count));
        (void)nghttp2_session_consume(library, id, count);
        return 0;
    }
    if (!h2_stream_add_input(stream, data, count)) return NGHTTP2_ERR_CALLBACK_FAILURE;
    stream->uncredited_bytes += (uint32_t)count;
    h2_stream_set_ready(stream);
    return 0;
}

/* Its views into the buffer must not be parted: a head lies in one piece. */
static bool h2_stream_add_head(struct h2_stream *stream, bool ended)
{
    struct h2_block *block = &stream->incoming;
    cy_bytes records = block->buffer && !block->too_large ? buffer_view(block->buffer) : CY_BYTES_NONE;
    size_t bytes = H2_INPUT_HEAD_BYTES + records.count;
    struct buffer *last = stream->input_last;
    if (!last || buffer_space(last) < bytes) {
        struct buffer_pool *pool = loop_buffers(stream->session->loop);
        struct buffer *more =
            bytes <= LIMIT_BUFFER_BYTES ? buffer_take(pool) : buffer_take_sized(pool, bytes);
        if (!more) return false;
        if (last)
            last->next = more;
        else
            stream->input_first = more;
        stream->input_last = last = more;
    }
    uint8_t header[H2_INPUT_HEAD_BYTES];
    for (int i = 0; i < 4; i++) header[i] = (uint8_t)(records.count >> 8 * i);
    header[4] =
        (uint8_t)((ended ? H2_INPUT_HEAD_ENDED : 0) | (block->too_large ? H2_INPUT_HEAD_TOO_LARGE : 0));
    stream->uncredited_bytes += (uint32_t)bytes;
    stream->head_input_bytes += (uint32_t)bytes;
    return h2_stream_add_input(stream, header, sizeof header) &&
           (records.count == 0 || h2_stream_add_input(stream, records.data, records.count));
}

/* Heads that wait for their owner are in no window, so that it is their number that is bounded: the owner finds one too
 * many, and the stream ends here. */
static bool h2_stream_add_interim(struct h2_stream *stream)
{
    if (stream->interim_count > LIMIT_HTTP_INTERIM_RESPONSES) return true;
    if (++stream->interim_count > LIMIT_HTTP_INTERIM_RESPONSES)
        (void)nghttp2_submit_rst_stream(stream->session->library, NGHTTP2_FLAG_NONE, stream->id,
                                        NGHTTP2_ENHANCE_YOUR_CALM);
    return h2_stream_add_head(stream, false);
}

/* A head or a trailer section is complete. */
static bool h2_session_on_head(struct h2_stream *stream, const nghttp2_frame *frame)
{
    struct buffer_pool *pool = loop_buffers(stream->session->loop);
    stream->session->head_begun_ms = 0;
    bool ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0, ok = true;
    h2_block_join_cookies(&stream->incoming, pool);
    if (stream->incoming.failed) return false;
    if (stream->head_seen) {
        stream->trailer_in = h2_block_trailer(&stream->incoming, pool);
    } else if (stream->session->role->is_server) {
        stream->block = stream->incoming;
        stream->incoming = (struct h2_block){0};
        stream->has_head = stream->head_seen = true;
    } else {
        cy_bytes status = h2_block_pseudo(&stream->incoming, CY_BYTES(":status"));
        stream->head_seen = status.count == 0 || status.data[0] != '1';
        if (stream->has_owner && stream->head_seen)
            ok = h2_stream_add_head(stream, ended);
        else if (stream->has_owner)
            ok = h2_stream_add_interim(stream);
    }
    h2_block_fini(&stream->incoming);
    stream->remote_ended |= ended;
    h2_stream_set_ready(stream);
    return ok;
}

static int h2_session_on_frame(nghttp2_session *library, const nghttp2_frame *frame, void *context)
{
    struct h2_session *session = h2_session_of(context);
    struct h2_stream *stream = h2_session_stream(session, frame->hd.stream_id);
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (stream && !h2_session_on_head(stream, frame)) return NGHTTP2_ERR_CALLBACK_FAILURE;
        break;
    case NGHTTP2_DATA:
        if (frame->hd.length > frame->data.padlen) h2_session_earn(session, H2_SESSION_DATA_FRAMES);
        if (stream && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
            stream->remote_ended = true;
            h2_stream_set_ready(stream);
        }
        break;
    case NGHTTP2_RST_STREAM:
        if (session->role->is_server)
            h2_budget_spend(session, &session->resets, LIMIT_HTTP2_RESETS, "HTTP2_RESETS");
        if (stream) stream->reset_by_peer = true;
        break;
    case NGHTTP2_GOAWAY: session->goaway_seen = true; break;
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK)) session->settings_seen = true;
        break;
    case NGHTTP2_PING:
        if (session->draining && (frame->hd.flags & NGHTTP2_FLAG_ACK) &&
            memcmp(frame->ping.opaque_data, H2_DRAIN_PING, 8) == 0) {
            session->draining = false;
            (void)nghttp2_submit_goaway(library, NGHTTP2_FLAG_NONE,
                                        nghttp2_session_get_last_proc_stream_id(library), NGHTTP2_NO_ERROR,
                                        NULL, 0);
            session->ending = true;
        }
        break;
    default: break;
    }
    return 0;
}

/* A frame or head that breaks the rules of its stream: nghttp2 resets it, which costs us as much as a reset does. */
static int h2_session_on_invalid_frame(nghttp2_session *library, const nghttp2_frame *frame, int code,
                                       void *context)
{
    struct h2_session *session = h2_session_of(context);
    struct h2_stream *stream = h2_session_stream(session, frame->hd.stream_id);
    (void)library;
    (void)code;
    session->has_reset = true; /* before it is sent: what comes in this read may be behind the fault */
    if (!session->role->is_server) return 0;
    h2_budget_spend(session, &session->resets, LIMIT_HTTP2_RESETS, "HTTP2_RESETS");
    if (stream) stream->fault_counted = true;
    return 0;
}

/* What we reset on our own account has other codes: a failed upstream, an answer that came first. */
static bool h2_session_is_fault(uint32_t code)
{
    return code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR && code != NGHTTP2_CANCEL;
}

static int h2_session_on_stream_close(nghttp2_session *library, int32_t id, uint32_t code, void *context)
{
    struct h2_session *session = h2_session_of(context);
    struct h2_stream *stream = h2_session_stream(session, id);
    (void)library;
    if (!stream) return 0;
    if (session->role->is_server && h2_session_is_fault(code) && !stream->reset_by_peer &&
        !stream->fault_counted)
        h2_budget_spend(session, &session->resets, LIMIT_HTTP2_RESETS, "HTTP2_RESETS");
    if (stream->end_given && code == NGHTTP2_NO_ERROR && !stream->reset_by_peer &&
        ++session->answered_count % LIMIT_HTTP2_RESET_ANSWERS == 0)
        h2_budget_earn(&session->resets, 1, LIMIT_HTTP2_RESETS);
    stream->is_closed = true;
    stream->error_code = code;
    h2_stream_set_ready(stream);
    return 0;
}

/* A request that could not be sent any more. */
static int h2_session_on_not_sent(nghttp2_session *library, const nghttp2_frame *frame, int code,
                                  void *context)
{
    struct h2_session *session = h2_session_of(context);
    (void)library;
    (void)code;
    if (frame->hd.type != NGHTTP2_HEADERS || session->role->is_server) return 0;
    for (struct h2_stream *stream = session->streams; stream; stream = stream->next) {
        if (stream->id != frame->hd.stream_id || stream->is_closed) continue;
        stream->is_closed = true;
        stream->error_code = NGHTTP2_REFUSED_STREAM;
        h2_stream_set_ready(stream);
    }
    return 0;
}

/* Frames of unknown types are skipped, but they count: nghttp2 tells of those only that somebody would unpack. */
static int h2_session_on_extension(nghttp2_session *library, const nghttp2_frame_hd *header,
                                   const uint8_t *data, size_t count, void *context)
{
    (void)library;
    (void)header;
    (void)data;
    (void)count;
    (void)context;
    return 0;
}

static int h2_session_unpack_extension(nghttp2_session *library, void **payload,
                                       const nghttp2_frame_hd *header, void *context)
{
    (void)library;
    (void)payload;
    (void)header;
    (void)context;
    return NGHTTP2_ERR_CANCEL;
}

/* -- what all sessions share ----------------------------------------------------------------------------- */

cy_err h2_shared_new(struct spare_watch *watch, struct h2_shared **shared_out)
{
    struct h2_shared *shared = mem_alloc_zeroed(sizeof *shared);
    if (!shared) return CY_ERR(NO_MEMORY);
    h2_memory_init(&shared->memory, watch);
    if (nghttp2_session_callbacks_new(&shared->callbacks) || nghttp2_option_new(&shared->option)) {
        h2_shared_free(&shared);
        return CY_ERR(NO_MEMORY);
    }
    nghttp2_session_callbacks *callbacks = shared->callbacks;
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, h2_session_on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, h2_session_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, h2_session_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, h2_session_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, h2_session_on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, h2_session_on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, h2_session_on_stream_close);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, h2_session_on_not_sent);
    nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(callbacks, h2_session_on_extension);
    nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, h2_session_unpack_extension);
    for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++)
        nghttp2_option_set_user_recv_extension_type(shared->option, (uint8_t)type);
    h2_send_set_callbacks(callbacks);
    /* Windows grow as the carriers use bytes up; closed streams are not kept for a priority tree that we have not. */
    nghttp2_option_set_no_auto_window_update(shared->option, 1);
    nghttp2_option_set_no_closed_streams(shared->option, 1);
    nghttp2_option_set_peer_max_concurrent_streams(shared->option, LIMIT_HTTP2_STREAMS);
    /* Resets are our budget's: nghttp2's bound knows nothing of what was answered between them. */
    nghttp2_option_set_stream_reset_rate_limit(shared->option, UINT64_MAX, 1);
    *shared_out = shared;
    return CY_OK;
}

void h2_shared_free(struct h2_shared **shared_pointer)
{
    struct h2_shared *shared = *shared_pointer;
    *shared_pointer = NULL;
    if (!shared) return;
    nghttp2_option_del(shared->option);
    nghttp2_session_callbacks_del(shared->callbacks);
    h2_memory_fini(&shared->memory);
    mem_free(shared);
}

/* -- the connection's life ------------------------------------------------------------------------------- */

static void h2_session_on_read(struct stream_read *read);
static void h2_session_on_work(struct loop_op *op);

static void h2_session_on_timer(struct timer *timer)
{
    struct h2_session *session = CY_CONTAINER_OF(timer, struct h2_session, timer);
    h2_session_enter(session);
    if (session->lingering)
        h2_session_close(session);
    else
        session->role->timer(session);
    h2_session_leave(session);
}

static int h2_session_submit_settings(struct h2_session *session)
{
    const nghttp2_settings_entry server[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LIMIT_HTTP2_STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LIMIT_HTTP2_STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HTTP_HEAD_BYTES},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    const nghttp2_settings_entry client[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LIMIT_HTTP2_STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HTTP_HEAD_BYTES},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    bool is_server = session->role->is_server;
    int result = nghttp2_submit_settings(session->library, NGHTTP2_FLAG_NONE, is_server ? server : client,
                                         is_server ? CY_COUNT_OF(server) : CY_COUNT_OF(client));
    if (result) return result;
    int32_t window = is_server ? LIMIT_HTTP2_CONNECTION_WINDOW_BYTES : LIMIT_HTTP2_UPSTREAM_WINDOW_BYTES;
    return nghttp2_session_set_local_window_size(session->library, NGHTTP2_FLAG_NONE, 0, window);
}
_Static_assert(LIMIT_HTTP2_UPSTREAM_WINDOW_BYTES >= LIMIT_HTTP2_STREAMS * LIMIT_HTTP2_STREAM_WINDOW_BYTES,
               "no stream can take another one's window");

cy_err h2_session_open(struct h2_session *session, const struct h2_role *role, struct h2_shared *shared,
                       struct loop *loop, struct stream *owned_stream)
{
    memset(session, 0, sizeof *session);
    session->role = role;
    session->shared = shared;
    session->loop = loop;
    session->read.done = h2_session_on_read;
    session->write.done = h2_send_on_written;
    session->work.done = h2_session_on_work;
    session->timer.fire = h2_session_on_timer;
    session->idle_since_ms = session->read_ms = loop_now_ms(loop);
    session->frames = (struct h2_budget){LIMIT_HTTP2_IDLE_FRAMES, session->idle_since_ms};
    session->resets = (struct h2_budget){LIMIT_HTTP2_RESETS, session->idle_since_ms};
    int (*open)(nghttp2_session **, const nghttp2_session_callbacks *, void *, const nghttp2_option *,
                nghttp2_mem *) = role->is_server ? nghttp2_session_server_new3 : nghttp2_session_client_new3;
    if (open(&session->library, shared->callbacks, session, shared->option, &shared->memory.library) ||
        h2_session_submit_settings(session)) {
        nghttp2_session_del(session->library);
        session->library = NULL;
        stream_close(&owned_stream);
        return CY_ERR(NO_MEMORY);
    }
    session->stream = owned_stream;
    h2_session_read(session);
    h2_session_kick(session);
    return CY_OK;
}

void h2_session_enter(struct h2_session *session) { session->busy++; }

void h2_session_leave(struct h2_session *session)
{
    CHECK(session->busy > 0);
    if (--session->busy > 0 || session->stream || session->reading || session->writing || session->posted)
        return;
    if (session->streams) return;
    nghttp2_session_del(session->library);
    session->library = NULL;
    session->role->free(session);
}

void h2_session_close(struct h2_session *session)
{
    if (!session->stream) return;
    h2_session_enter(session);
    loop_timer_clear(session->loop, &session->timer);
    stream_close(&session->stream);
    session->role->closed(session);
    for (struct h2_stream *stream = session->streams, *next; stream; stream = next) {
        next = stream->next;
        stream->is_closed = true;
        h2_stream_check(stream);
    }
    h2_session_leave(session);
}

void h2_session_end(struct h2_session *session, uint32_t code)
{
    if (!session->stream || session->ending) return;
    session->ending = true;
    session->draining = false;
    if (code == NGHTTP2_NO_ERROR)
        (void)nghttp2_submit_goaway(session->library, NGHTTP2_FLAG_NONE,
                                    nghttp2_session_get_last_proc_stream_id(session->library), code, NULL, 0);
    else
        (void)nghttp2_session_terminate_session(session->library, code);
    h2_session_kick(session);
}

void h2_session_drain(struct h2_session *session)
{
    if (!session->stream || session->ending || session->draining) return;
    session->draining = true;
    session->drain_begun_ms = loop_now_ms(session->loop);
    (void)nghttp2_submit_shutdown_notice(session->library); /* h2_send.c has the PING follow it */
    h2_session_kick(session);
}

bool h2_session_is_stuck(struct h2_session *session, uint32_t period_ms, uint32_t rate)
{
    uint64_t now_ms = loop_now_ms(session->loop);
    if (!session->writing || now_ms < session->write_since_ms + period_ms) return false;
    size_t sent_bytes = session->write.send.sent_bytes - session->write_checked_bytes;
    if (sent_bytes == 0 || sent_bytes < (uint64_t)rate * period_ms / 1000) return true;
    session->write_checked_bytes += sent_bytes;
    session->write_since_ms = now_ms;
    return false;
}

/* -- turns ----------------------------------------------------------------------------------------------- */

void h2_session_kick(struct h2_session *session)
{
    if (session->posted) return;
    session->posted = true;
    session->work.err = CY_OK;
    loop_post(session->loop, &session->work);
}

static void h2_session_run_ready(struct h2_session *session)
{
    struct h2_stream *stream;
    while ((stream = session->ready_first)) {
        session->ready_first = stream->ready_next;
        stream->is_ready = false;
        if (stream->has_owner)
            session->role->ready(stream); /* which may end with its memory */
        else
            h2_stream_check(stream);
    }
    session->ready_last = NULL;
}

static void h2_session_fault(struct h2_session *session, ssize_t code);

static void h2_session_on_work(struct loop_op *op)
{
    struct h2_session *session = CY_CONTAINER_OF(op, struct h2_session, work);
    session->posted = false;
    h2_session_enter(session);
    h2_session_run_ready(session);
    h2_send_flush(session);
    if (session->flood && session->stream) h2_session_fault(session, 0);
    if (session->ready_first) h2_session_kick(session);
    h2_session_leave(session);
}

void h2_session_read(struct h2_session *session)
{
    if (session->reading || !session->stream) return;
    session->reading = true;
    stream_read_start(session->stream, &session->read);
}

/* nghttp2 has bounds of its own, near ours: whichever is met first. */
static const char *h2_session_flood(const struct h2_session *session, ssize_t code)
{
    if (session->flood) return session->flood;
    if (code == NGHTTP2_ERR_FLOODED) return "HTTP2_IDLE_FRAMES";
    return code < 0 && session->continuation_count >= LIMIT_HTTP2_CONTINUATIONS ? "HTTP2_CONTINUATIONS"
                                                                                : NULL;
}

static void h2_session_fault(struct h2_session *session, ssize_t code)
{
    const char *flood = h2_session_flood(session, code);
    uint32_t error = session->broken ? session->broken : NGHTTP2_INTERNAL_ERROR;
    session->flood = NULL;
    session->broken = NGHTTP2_NO_ERROR;
    if (code == NGHTTP2_ERR_NOMEM) {
        h2_session_close(session);
        return;
    }
    if (flood) {
        error = NGHTTP2_ENHANCE_YOUR_CALM;
        session->role->flooded(session, flood);
    } else if (code == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        error = NGHTTP2_PROTOCOL_ERROR;
    }
    session->ending = false;
    h2_session_end(session, error);
}

static void h2_session_take(struct h2_session *session, cy_bytes bytes)
{
    ssize_t used = nghttp2_session_mem_recv(session->library, bytes.data, bytes.count);
    if (used < 0 || session->flood) h2_session_fault(session, used);
}

static void h2_session_on_read(struct stream_read *read)
{
    struct h2_session *session = CY_CONTAINER_OF(read, struct h2_session, read);
    struct buffer *buffer = read->buffer;
    read->buffer = NULL; /* before the next read is begun: what TLS has already is that one's at once */
    session->reading = false;
    h2_session_enter(session);
    if (session->stream && (cy_failed(read->err) || !buffer)) {
        h2_session_close(session);
    } else if (session->stream && session->lingering) {
        session->lingered_bytes += buffer->end - buffer->begin;
        if (session->lingered_bytes > LIMIT_HTTP_LINGER_BYTES)
            h2_session_close(session);
        else
            h2_session_read(session);
    } else if (session->stream) {
        session->read_bytes += buffer->end - buffer->begin;
        session->read_ms = loop_now_ms(session->loop);
        bool greeted = session->settings_seen;
        h2_session_take(session, buffer_view(buffer));
        if (!greeted && session->settings_seen && session->role->greeted) session->role->greeted(session);
        h2_session_run_ready(session);
        h2_session_read(session);
        h2_session_kick(session);
    }
    buffer_unref(&buffer);
    h2_session_leave(session);
}

/* -- streams --------------------------------------------------------------------------------------------- */

void h2_stream_link(struct h2_session *session, struct h2_stream *stream, struct relay_hold *hold)
{
    stream->session = session;
    stream->hold = hold;
    stream->has_owner = true;
    stream->next = session->streams;
    stream->previous = NULL;
    if (stream->next) stream->next->previous = stream;
    session->streams = stream;
    session->stream_count++;
}

void h2_stream_set_ready(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    if (stream->is_ready) return;
    stream->is_ready = true;
    stream->ready_next = NULL;
    if (session->ready_first)
        session->ready_last->ready_next = stream;
    else
        session->ready_first = stream;
    session->ready_last = stream;
    h2_session_kick(session);
}

void h2_stream_check(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    if (stream->has_owner || stream->is_in_flight || stream->is_ready) return;
    if (!stream->is_closed && session->stream) return;
    if (!stream->is_closed && session->library && stream->id > 0)
        (void)nghttp2_session_set_stream_user_data(session->library, stream->id, NULL);
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        session->streams = stream->next;
    if (stream->next) stream->next->previous = stream->previous;
    CHECK(session->stream_count > 0);
    session->stream_count--;
    session->idle_since_ms = loop_now_ms(session->loop);
    relay_hold_release(stream->hold);
    buffer_unref(&stream->trailer_out);
    buffer_unref(&stream->trailer_in);
    h2_block_fini(&stream->block);
    h2_block_fini(&stream->incoming);
    h2_session_enter(session);
    session->role->stream_free(stream);
    if (session->stream && session->stream_count == 0) {
        session->role->idle(session);
        if (session->ending) h2_session_kick(session);
    }
    h2_session_leave(session);
}

static void h2_stream_drop_input(struct h2_stream *stream)
{
    while (stream->input_first) {
        struct buffer *buffer = stream->input_first;
        stream->input_first = buffer->next;
        buffer_unref(&buffer);
    }
    stream->input_last = NULL;
}

void h2_stream_credit(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    size_t waiting = 0;
    for (const struct buffer *buffer = stream->input_first; buffer; buffer = buffer->next)
        waiting += buffer->end - buffer->begin;
    size_t count = stream->uncredited_bytes - waiting;
    stream->uncredited_bytes -= (uint32_t)count;
    size_t heads = cy_min_size(count, stream->head_input_bytes); /* they come first, and are in no window */
    stream->head_input_bytes -= (uint32_t)heads;
    count -= heads;
    if (count == 0 || !session->stream) return;
    if (stream->is_closed || stream->remote_ended)
        (void)nghttp2_session_consume_connection(session->library, count);
    else
        (void)nghttp2_session_consume(session->library, stream->id, count);
    if (nghttp2_session_want_write(session->library)) h2_session_kick(session);
}

struct buffer *h2_stream_take_input(struct h2_stream *stream)
{
    struct buffer *buffer = stream->input_first;
    if (!buffer) return NULL;
    stream->input_first = buffer->next;
    if (!stream->input_first) stream->input_last = NULL;
    buffer->next = NULL;
    return buffer;
}

void h2_stream_reset(struct h2_stream *stream, uint32_t code)
{
    struct h2_session *session = stream->session;
    if (stream->is_closed || !session->stream) return;
    if (stream->id > 0)
        (void)nghttp2_submit_rst_stream(session->library, NGHTTP2_FLAG_NONE, stream->id, code);
    h2_session_kick(session);
}

void h2_stream_stop_peer(struct h2_stream *stream)
{
    if (stream->is_closed || stream->remote_ended) return;
    if (stream->end_given && !stream->trailer_out && !stream->head_waits)
        h2_stream_reset(stream, NGHTTP2_NO_ERROR);
    else
        stream->rst_after_end = true;
}

bool h2_stream_is_shut(const struct h2_stream *stream)
{
    nghttp2_session *library = stream->session->library;
    if (stream->is_in_flight) return false;
    return nghttp2_session_get_stream_remote_window_size(library, stream->id) <= 0 ||
           nghttp2_session_get_remote_window_size(library) <= 0;
}

void h2_stream_release(struct h2_stream *stream)
{
    CHECK(stream->has_owner);
    stream->has_owner = false;
    stream->released_ms = loop_now_ms(stream->session->loop);
    h2_stream_drop_input(stream);
    h2_stream_credit(stream);
    h2_block_fini(&stream->block);
    if (!stream->is_in_flight) {
        relay_hold_release(stream->hold);
        stream->writing = false;
        stream->send.part_count = stream->send.part_index = 0;
        stream->send.part_offset = 0;
    }
    h2_stream_check(stream);
}

#undef H2_SESSION_BUDGET_MS
#undef H2_SESSION_DATA_FRAMES
#undef H2_SESSION_HEAD_FRAMES
#undef H2_SESSION_WINDOWS
#undef H2_SESSION_UPDATES_MAX
