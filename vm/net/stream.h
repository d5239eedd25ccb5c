/* SPDX-License-Identifier: MIT
 *
 * vm/net/stream.h: a byte stream, whatever carries it: TCP now, TLS and the tests' loopback behind the same type.
 *
 * In:   a stream_read or stream_write in the caller's memory. Out: one call of its `done`, from a later point of the
 *       turn.
 * Ownership: as in loop.h. A read completes with a buffer owned by the reader; NULL buffer with OK is the clean end.
 * Invariant: one read and one write outstanding at most.
 */
#ifndef CY_NET_STREAM_H
#define CY_NET_STREAM_H

#include "vm/net/loop.h"

struct stream;

struct stream_read {
    void (*done)(struct stream_read *read);
    cy_err err;
    struct buffer *buffer;       /* owned by the reader in done */
    struct loop_receive receive; /* private to the carrier */
};
struct stream_write {
    void (*done)(struct stream_write *write);
    cy_err err;
    struct loop_send send; /* fill send.parts, part_count, more before stream_write_start */
};

struct stream_type {
    const char *name;
    void (*read)(struct stream *stream, struct stream_read *read);
    void (*read_cancel)(struct stream *stream);
    void (*write)(struct stream *stream, struct stream_write *write);
    bool (*is_quiet)(struct stream *stream);
    void (*shutdown_write)(struct stream *stream);
    void (*abort_on_close)(struct stream *stream);
    void (*close)(struct stream *stream); /* frees; outstanding operations complete with CANCELLED first */
};
struct stream {
    const struct stream_type *type;
    struct loop *loop;
};

CY_NODISCARD cy_err stream_tcp_new(struct loop *loop, struct loop_socket *owned_socket,
                                   struct stream **stream_out);

static inline void stream_read_start(struct stream *s, struct stream_read *read) { s->type->read(s, read); }
static inline void stream_read_cancel(struct stream *s) { s->type->read_cancel(s); }
static inline void stream_write_start(struct stream *s, struct stream_write *write)
{
    s->type->write(s, write);
}
static inline bool stream_is_quiet(struct stream *s) { return s->type->is_quiet(s); }
static inline void stream_shutdown_write(struct stream *s) { s->type->shutdown_write(s); }
static inline void stream_abort_on_close(struct stream *s) { s->type->abort_on_close(s); }
void stream_close(struct stream **stream); /* clears the pointer */

#endif
