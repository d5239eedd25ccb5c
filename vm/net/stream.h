/* SPDX-License-Identifier: MIT
 *
 * vm/net/stream.h: a byte stream, whatever carries it: TCP now, TLS and the tests' loopback behind the same type.
 *
 * In:   a stream_read, stream_write or stream_ready in the caller's memory. Out: one call of its `done`, from a later
 *       point of the turn.
 * Ownership: as in loop.h. A read completes with a buffer owned by the reader; NULL buffer with OK is the clean end.
 *       Closing completes what is outstanding with CANCELLED. A write is tried when it is started: what the system
 *       takes at once is on its way even when the stream is closed next (a last alert, say).
 * Invariant: one read, one write and one ready outstanding at most.
 *
 * What every carrier shares is in struct stream itself: bytes that were pushed back, and completions that need no
 * event.
 */
#ifndef CY_NET_STREAM_H
#define CY_NET_STREAM_H

#include "vm/base/check.h"
#include "vm/net/loop.h"

struct stream;

/* Zero these before their first use. */
struct stream_read {
    void (*done)(struct stream_read *read);
    cy_err err;
    struct buffer *buffer; /* owned by the reader in done */
    /* private to the carrier */
    struct loop_receive receive;
    struct stream *stream; /* while pushed-back bytes are on their way */
};
struct stream_write {
    void (*done)(struct stream_write *write);
    cy_err err;
    struct loop_send send; /* fill send.parts, part_count, more before stream_write_start */
};
/* Waits until bytes may be exchanged and `stream_info` says with whom: the end of a handshake. */
struct stream_ready {
    void (*done)(struct stream_ready *ready);
    cy_err err;
    /* private to the carrier */
    struct loop_op op;
    struct stream *stream;
};

/* Who is at the other end and what was agreed on. Complete once ready; views are good as long as the stream, the struct
 * until the next stream_info of the same loop. */
struct stream_info {
    bool secure;               /* nobody between could read or change the bytes */
    cy_bytes alpn;             /* RFC 7301; empty: nothing was agreed on */
    cy_bytes sni;              /* the name that the client asked for; empty: none */
    cy_bytes peer_certificate; /* DER, verified; empty: none */
    struct address peer;       /* `bytes` 0: not known (no socket) */
    struct address local;      /* the same; of stream_info_with_local, where nobody set it */
    /* Where the stream's bytes are the socket's own bytes, for splice and sendfile; -1 where they are not (TLS). What
     * was pushed back is not in the socket. */
    int descriptor;
};

struct stream_type {
    const char *name;
    void (*read)(struct stream *stream, struct stream_read *read);
    void (*read_cancel)(struct stream *stream);
    void (*write)(struct stream *stream, struct stream_write *write);
    void (*ready)(struct stream *stream, struct stream_ready *ready);
    const struct stream_info *(*info)(struct stream *stream, bool with_local);
    /* What stands in `info` from now on. NULL: leave that one. */
    void (*set_addresses)(struct stream *stream, const struct address *peer, const struct address *local);
    bool (*is_quiet)(struct stream *stream);
    bool (*has_come)(struct stream *stream);
    void (*shutdown_write)(struct stream *stream);
    void (*abort_on_close)(struct stream *stream);
    void (*close)(struct stream *stream); /* frees; outstanding operations complete with CANCELLED first */
    /* The stream below, for who gives this one up; frees this one. NULL: not to be had. NULL here: there is none. */
    struct stream *(*unwrap)(struct stream *stream);
    /* Reads may allow a pipe, writes may have one (loop.h): read->receive.pipe_bytes_max, write->send.pipe. */
    bool takes_pipes;
};
struct stream {
    const struct stream_type *type;
    struct loop *loop;
    struct buffer *unread;             /* pushed back: the next read's */
    struct stream_read *posted_read;   /* complete with what was pushed back, not yet delivered */
    struct stream_ready *posted_ready; /* complete, not yet delivered */
};

CY_NODISCARD cy_err stream_tcp_new(struct loop *loop, struct loop_socket *owned_socket,
                                   struct stream **stream_out);

/* -- for users ------------------------------------------------------------------------------------------ */
void stream_read_unread(struct stream *stream, struct stream_read *read); /* stream_read_start's rare half */
static inline void stream_read_start(struct stream *stream, struct stream_read *read)
{
    DCHECK(!stream->posted_read);
    if (CY_UNLIKELY(stream->unread != NULL))
        stream_read_unread(stream, read);
    else
        stream->type->read(stream, read);
}
/* Harmless when the read is complete but not yet delivered, or when there is none. */
static inline void stream_read_cancel(struct stream *s) { s->type->read_cancel(s); }
static inline void stream_write_start(struct stream *s, struct stream_write *write)
{
    s->type->write(s, write);
}
/* Where there is no handshake this completes at once (from a later point, as everything does). */
static inline void stream_ready_start(struct stream *s, struct stream_ready *ready)
{
    s->type->ready(s, ready);
}
/* Borrowed until the next call of it in this loop: what is idle keeps little. The first call may ask the system for
 * addresses. */
static inline const struct stream_info *stream_info(struct stream *s) { return s->type->info(s, false); }
/* The same for who wants to know our own end too: a call of the system's, once, that no request needs. */
static inline const struct stream_info *stream_info_with_local(struct stream *s)
{
    return s->type->info(s, true);
}
/* For who knows them better than the socket: the accept that was told the peer, a PROXY protocol header. */
static inline void stream_set_addresses(struct stream *s, const struct address *peer,
                                        const struct address *local)
{
    s->type->set_addresses(s, peer, local);
}
/* Pushes back what was read too far (behind a PROXY protocol header, or while finding out which protocol is spoken):
 * the next read gives this very buffer. No read may be outstanding, nothing else pushed back. */
void stream_unread(struct stream *stream, struct buffer *owned_buffer);
static inline bool stream_takes_pipes(const struct stream *s)
{
    return s->type->takes_pipes && loop_has_pipes(s->loop);
}
static inline bool stream_is_quiet(struct stream *s)
{
    return !s->unread && !s->posted_read && s->type->is_quiet(s);
}
/* Bytes, or the end, have come that nobody was given to look at, nor this stream itself: the beginning of a record that
 * lacks its end, kept here, is none. May ask the system. */
static inline bool stream_has_come(struct stream *s)
{
    return s->unread || s->posted_read || s->type->has_come(s);
}
static inline void stream_shutdown_write(struct stream *s) { s->type->shutdown_write(s); }
static inline void stream_abort_on_close(struct stream *s) { s->type->abort_on_close(s); }
void stream_close(struct stream **stream); /* clears the pointer */
/* For a stream that cannot begin (a handshake that failed): puts the one below in its place, on which its last words
 * are on their way, so that the connection can be ended in order. Nothing may be outstanding. False: it stays, and
 * there is only stream_close. */
bool stream_unwrap(struct stream **stream);

/* -- for carriers --------------------------------------------------------------------------------------- */
/* `ready` of a carrier without a handshake. */
void stream_ready_at_once(struct stream *stream, struct stream_ready *ready);
/* Completes a read (`owned_buffer` NULL and OK: the end) or a ready from a later point. A close before that makes it
 * CANCELLED. */
void stream_post_read(struct stream *stream, struct stream_read *read, struct buffer *owned_buffer,
                      cy_err err);
void stream_post_ready(struct stream *stream, struct stream_ready *ready, cy_err err);

#endif
