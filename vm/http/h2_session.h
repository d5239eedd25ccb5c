/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_session.h: one HTTP/2 connection and its streams, as client and server share them: bytes in, frames out,
 * flow control, floods, ends. Frames themselves are nghttp2's. For vm/http/h2*.c only.
 *
 *   stream ─read─► nghttp2 ─callbacks─► h2_stream: block, input, ended ─ready─► role (h2_server.c, h2_client.c)
 *   stream ◄write─ output + parts ◄─ nghttp2 ◄─ h2_stream_write ◄───────────────┘
 *
 * A turn's frames go out in one write: whoever has something to send only asks for `work`, which the loop posts once.
 * Body bytes are not copied: a DATA frame's header lies in `output`, its payload is a part of the carrier's own.
 *
 * Invariants:
 *   - Nothing above is called from inside nghttp2: callbacks note things on the stream and put it on the ready list.
 *   - A stream lives until nghttp2 has closed it, no write holds its parts, and its role has let go of it.
 *   - What a peer can make us hold: for a stream its window, one head and one buffer; for a connection the sum over
 *     LIMIT_HTTP2_STREAMS, and of unread input no more than LIMIT_HTTP2_CONNECTION_WINDOW_BYTES (of an upstream's,
 *     which many clients share, LIMIT_HTTP2_UPSTREAM_WINDOW_BYTES). Heads take no window: 1xx answers are counted.
 */
#ifndef CY_HTTP_H2_SESSION_H
#define CY_HTTP_H2_SESSION_H

#include "vm/http/h2_head.h"
#include "vm/http/h2_memory.h"
#include "vm/http/relay.h"
#include "vm/net/stream.h"

struct h2_session;
struct h2_stream;

/* What client and server do differently. Called outside of nghttp2, except stream_new and data. */
struct h2_role {
    const char *name;
    bool is_server;
    /* A request begins (server only); NULL: no memory. */
    struct h2_stream *(*stream_new)(struct h2_session *session);
    /* Bytes of a body, used up when it returns: they never come to the input. NULL: they do. From inside nghttp2: it
     * may only count. */
    void (*data)(struct h2_stream *stream, cy_bytes bytes);
    /* The peer's first SETTINGS have come: it speaks HTTP/2. NULL: nobody waits for that. */
    void (*greeted)(struct h2_session *session);
    /* Look at has_head, input, remote_ended, is_closed. */
    void (*ready)(struct h2_stream *stream);
    /* The carrier's write is done: `err`, or all of it is with the kernel. */
    void (*written)(struct h2_stream *stream, cy_err err, size_t bytes);
    /* Nobody refers to the stream any more: its memory is the role's again. */
    void (*stream_free)(struct h2_stream *stream);
    /* The connection is closed: every stream's owner has to be told. Nothing is sent any more. */
    void (*closed)(struct h2_session *session);
    /* The last completion has come: the session's memory is the role's again. */
    void (*free)(struct h2_session *session);
    void (*timer)(struct h2_session *session);
    /* A flood: that row of limits.def was passed, and the connection ends. */
    void (*flooded)(struct h2_session *session, const char *row);
    /* No stream is left. */
    void (*idle)(struct h2_session *session);
};

/* Answers' heads travel in the input, in their order, in front of the body:
 *     records' bytes u32 | flags u8 | records
 * so that an owner sees an interim head, the final one and the first bytes as they came. */
#define H2_INPUT_HEAD_BYTES 5
#define H2_INPUT_HEAD_ENDED 1u     /* END_STREAM */
#define H2_INPUT_HEAD_TOO_LARGE 2u /* past LIMIT_HTTP_HEAD_BYTES or LIMIT_HTTP_FIELDS: no records */

#define H2_DRAIN_PING "crownyc-" /* 8 bytes: its answer tells that the peer has seen our first GOAWAY */

/* What all sessions of one server or client share. */
struct h2_shared {
    struct h2_memory memory;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
};
CY_NODISCARD cy_err h2_shared_new(struct spare_watch *watch, struct h2_shared **shared_out);
void h2_shared_free(struct h2_shared **shared);

/* What a peer may still do: filled with time and by what gives reason for more, emptied by what it does. */
struct h2_budget {
    int32_t left;
    uint64_t filled_ms;
};

struct h2_stream {
    struct h2_session *session;
    struct h2_stream *next, *previous; /* of the session */
    struct h2_stream *ready_next, *flight_next;
    int32_t id;
    /* out: the carrier's write */
    struct loop_send send;
    struct relay_hold *hold;    /* of the carrier: what the parts point at */
    struct buffer *trailer_out; /* lines; sent behind the last byte */
    size_t write_bytes;         /* of the present write, for `written` */
    bool writing;
    bool head_waits; /* its HEADERS have not left nghttp2 */
    bool head_sent;  /* a final head was submitted */
    bool body_open;  /* nghttp2 asks us for DATA */
    bool deferred;   /* it asked when there was none */
    bool last;       /* what is in `send` ends the message */
    bool end_given;  /* END_STREAM, or the trailers that have it, are nghttp2's */
    bool rst_after_end;
    /* in */
    struct h2_block incoming;  /* as HPACK gives it, until it is complete */
    struct h2_block block;     /* the request's head, until the role has taken it */
    struct buffer *trailer_in; /* lines */
    struct buffer *input_first,
        *input_last;           /* not yet given to the carrier; answers: heads too (H2_INPUT_HEAD) */
    uint32_t uncredited_bytes; /* received, not yet given back to the window */
    uint32_t head_input_bytes; /* of those: heads, which take no window */
    uint32_t error_code;       /* with is_closed */
    uint64_t released_ms;      /* when its owner let go of it */
    bool has_head;             /* `block` is complete and not yet taken */
    bool head_seen;            /* a final head was complete: what comes next are trailers */
    bool remote_ended;
    bool is_closed; /* nghttp2 has forgotten it */
    bool reset_by_peer;
    bool fault_counted;    /* its reset was the peer's fault, and is in the budget */
    uint8_t interim_count; /* of a client: heads of 1xx */
    bool has_owner;        /* the role refers to it */
    bool is_ready, is_in_flight;
};

struct h2_session {
    const struct h2_role *role;
    struct h2_shared *shared;
    struct loop *loop;
    struct stream *stream; /* NULL: closed, completions may still come */
    nghttp2_session *library;
    struct stream_read read;
    struct stream_write write;
    struct loop_op work;
    struct timer timer;
    struct buffer *output; /* frames of the present write, without the payload of DATA */
    struct h2_stream *streams, *ready_first, *ready_last, *flight;
    uint32_t stream_count;
    uint32_t busy; /* functions of ours on the C stack that still need the session */
    uint32_t continuation_count;
    uint32_t read_bytes; /* for the role's counters: taken and zeroed by it */
    uint64_t written_bytes;
    uint64_t idle_since_ms;     /* without streams; where it lingers, since then */
    uint64_t write_since_ms;    /* when the present write began, or enough of it had gone */
    size_t write_checked_bytes; /* of it, at that time */
    uint64_t drain_begun_ms;
    uint64_t read_ms;       /* when something came last */
    uint64_t head_begun_ms; /* of a head whose end has not come; 0: none */
    struct h2_budget frames, resets;
    uint32_t answered_count; /* streams that ended with their whole answer */
    uint32_t update_count; /* WINDOW_UPDATEs that DATA has earned the peer: not in `frames` */
    const char *flood;     /* the row that was passed; NULL: none */
    uint32_t broken;       /* a rule that nghttp2 lets pass: the code of the error; 0: none */
    bool reading, writing, posted;
    bool settings_seen; /* the peer's */
    bool has_reset;     /* we have reset a stream, so that frames of it may still come */
    bool ending;        /* GOAWAY is under way: close once nothing is left */
    bool draining;      /* a first GOAWAY has gone; the second follows the answer to our PING */
    bool goaway_seen;   /* the peer's, or it is silent: no new streams */
    bool lingering;     /* everything is said; input is dropped until the peer closes */
    size_t lingered_bytes;
};

/* Takes the stream, also on failure. No completion can come before it returns. */
CY_NODISCARD cy_err h2_session_open(struct h2_session *session, const struct h2_role *role,
                                    struct h2_shared *shared, struct loop *loop, struct stream *owned_stream);
/* Sends what waits, in a later part of this turn. */
void h2_session_kick(struct h2_session *session);
void h2_session_read(struct h2_session *session);
/* A frame has gone, to which the peer may have something to say. */
void h2_session_earn_by_sent(struct h2_session *session, const nghttp2_frame *frame);
/* GOAWAY, then the end of the connection: at once where no stream is left, else (`code` NO_ERROR) after them. */
void h2_session_end(struct h2_session *session, uint32_t code);
/* The polite form, in two steps: the peer is told, and what it had on its way is served until it says that it knows. */
void h2_session_drain(struct h2_session *session);
/* Has the peer taken less of the present write than `rate` bytes per second for `period_ms`? 0: nothing at all. */
bool h2_session_is_stuck(struct h2_session *session, uint32_t period_ms, uint32_t rate);
/* Cuts it off. */
void h2_session_close(struct h2_session *session);
/* Around calls that may close the session under somebody's feet. */
void h2_session_enter(struct h2_session *session);
void h2_session_leave(struct h2_session *session);

void h2_stream_link(struct h2_session *session, struct h2_stream *stream, struct relay_hold *hold);
/* Calls role->ready in a later part of this turn. */
void h2_stream_set_ready(struct h2_stream *stream);
/* Sends stream->send, whose first `head_bytes` bytes are records (h2_head.h); `interim`: a head that others follow. */
void h2_stream_write(struct h2_stream *stream, size_t head_bytes, bool interim, bool last);
/* END_STREAM, or trailers, behind what was written, where `last` was not said with it. */
void h2_stream_finish(struct h2_stream *stream);
void h2_stream_reset(struct h2_stream *stream, uint32_t code);
/* RST_STREAM with NO_ERROR, after END_STREAM has gone: no more of the request is wanted. */
void h2_stream_stop_peer(struct h2_stream *stream);
/* The role lets go; unread input goes, what is on its way still goes out. */
void h2_stream_release(struct h2_stream *stream);
/* What the carrier was given is used up: more may come. */
void h2_stream_credit(struct h2_stream *stream);
/* Is its write held up by a window that the peer does not open? */
bool h2_stream_is_shut(const struct h2_stream *stream);
/* Frees it when nobody needs it any more. */
void h2_stream_check(struct h2_stream *stream);
/* The next input, NULL when there is none. */
struct buffer *h2_stream_take_input(struct h2_stream *stream);
/* -- h2_send.c -- */
void h2_send_set_callbacks(nghttp2_session_callbacks *callbacks);
void h2_send_flush(struct h2_session *session);
void h2_send_on_written(struct stream_write *write);

static inline bool h2_stream_input_over(const struct h2_stream *stream)
{
    return stream->remote_ended && !stream->input_first;
}

#endif
