/* SPDX-License-Identifier: MIT
 *
 * vm/net/stream.c: the stream over a plain socket, and what all streams share: pushed-back bytes, and being ready
 * without a handshake.
 *
 * In:   reads and writes. Out: the loop's receives and sends, one to one.
 * Invariant: the operations live in the caller's struct stream_read and stream_write, so the stream itself may be given
 *       back at close while their last completions are still on their way.
 */
#include "vm/net/stream.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"

#include <netinet/in.h>

/* An IP address in the room that it needs: idle connections are many. */
struct stream_address {
    uint8_t bytes; /* of `name`; 0: none */
    union {
        struct sockaddr any;
        struct sockaddr_in6 v6; /* the largest */
    } name;
};
struct stream_tcp {
    struct stream stream; /* first: a struct stream * is this one too */
    struct loop_socket *socket;
    struct stream_address peer, local; /* once somebody asked, or as they were set */
    bool knows_peer, knows_local;
};
_Static_assert(sizeof(struct stream_tcp) <= LOOP_BLOCK_BYTES, "streams come from the loop's block list");

static struct loop_socket *stream_tcp_socket(struct stream *stream)
{
    return ((struct stream_tcp *)stream)->socket;
}

static void stream_tcp_on_received(struct loop_op *op)
{
    struct loop_receive *receive = CY_CONTAINER_OF(op, struct loop_receive, op);
    struct stream_read *read = CY_CONTAINER_OF(receive, struct stream_read, receive);
    read->err = op->err;
    read->buffer = receive->buffer;
    read->done(read);
}

static void stream_tcp_on_sent(struct loop_op *op)
{
    struct loop_send *send = CY_CONTAINER_OF(op, struct loop_send, op);
    struct stream_write *write = CY_CONTAINER_OF(send, struct stream_write, send);
    write->err = op->err;
    write->done(write);
}

static void stream_tcp_read(struct stream *stream, struct stream_read *read)
{
    read->receive.op.done = stream_tcp_on_received;
    read->buffer = NULL;
    loop_receive(stream_tcp_socket(stream), &read->receive);
}

static void stream_tcp_read_cancel(struct stream *stream) { loop_receive_cancel(stream_tcp_socket(stream)); }

static void stream_tcp_write(struct stream *stream, struct stream_write *write)
{
    write->send.op.done = stream_tcp_on_sent;
    loop_send(stream_tcp_socket(stream), &write->send);
}

/* What is longer than an IP address has no place in a stream's info: the path of a UNIX socket. */
static void stream_address_keep(struct stream_address *kept, const struct address *address)
{
    kept->bytes = address->bytes <= sizeof kept->name ? (uint8_t)address->bytes : 0;
    memcpy(&kept->name, &address->storage, kept->bytes);
}

static void stream_address_ask(const struct loop_socket *socket, bool peer, struct stream_address *kept)
{
    struct address address;
    loop_socket_address(socket, peer, &address);
    stream_address_keep(kept, &address);
}

static void stream_address_show(const struct stream_address *kept, struct address *address_out)
{
    memcpy(&address_out->storage, &kept->name, sizeof kept->name);
    address_out->bytes = kept->bytes;
}

/* Most peers are known from accept; our own end is asked for once per connection, when somebody wants to know. */
static const struct stream_info *stream_tcp_info(struct stream *stream, bool with_local)
{
    struct stream_tcp *tcp = (struct stream_tcp *)stream;
    struct stream_info *info = stream->loop->stream_info;
    if (!tcp->knows_peer) stream_address_ask(tcp->socket, true, &tcp->peer);
    if (with_local && !tcp->knows_local) stream_address_ask(tcp->socket, false, &tcp->local);
    tcp->knows_peer = true;
    tcp->knows_local |= with_local;
    stream_address_show(&tcp->peer, &info->peer);
    stream_address_show(&tcp->local, &info->local);
    info->descriptor = loop_socket_is_system(tcp->socket) ? loop_socket_descriptor(tcp->socket) : -1;
    return info;
}

static void stream_tcp_set_addresses(struct stream *stream, const struct address *peer,
                                     const struct address *local)
{
    struct stream_tcp *tcp = (struct stream_tcp *)stream;
    if (peer) stream_address_keep(&tcp->peer, peer);
    if (local) stream_address_keep(&tcp->local, local);
    tcp->knows_peer |= peer != NULL;
    tcp->knows_local |= local != NULL;
}

static bool stream_tcp_is_quiet(struct stream *stream)
{
    return loop_socket_is_quiet(stream_tcp_socket(stream));
}

static bool stream_tcp_has_come(struct stream *stream)
{
    return !loop_socket_is_quiet(stream_tcp_socket(stream));
}

static void stream_tcp_shutdown_write(struct stream *stream)
{
    cy_err err = loop_socket_shutdown_send(stream_tcp_socket(stream));
    (void)err; /* fails only when the connection is gone, which the reader learns anyway */
}

static void stream_tcp_abort_on_close(struct stream *stream)
{
    loop_socket_abort_on_close(stream_tcp_socket(stream));
}

static void stream_tcp_close(struct stream *stream)
{
    struct stream_tcp *tcp = (struct stream_tcp *)stream;
    struct loop *loop = stream->loop;
    loop_socket_close(&tcp->socket);
    loop_block_give(loop, tcp);
}

static const struct stream_type stream_tcp_type = {
    .name = "tcp",
    .read = stream_tcp_read,
    .read_cancel = stream_tcp_read_cancel,
    .write = stream_tcp_write,
    .ready = stream_ready_at_once,
    .info = stream_tcp_info,
    .set_addresses = stream_tcp_set_addresses,
    .is_quiet = stream_tcp_is_quiet,
    .has_come = stream_tcp_has_come,
    .shutdown_write = stream_tcp_shutdown_write,
    .abort_on_close = stream_tcp_abort_on_close,
    .close = stream_tcp_close,
    .takes_pipes = true,
};

cy_err stream_tcp_new(struct loop *loop, struct loop_socket *owned_socket, struct stream **stream_out)
{
    if (!loop->stream_info) loop->stream_info = mem_alloc_zeroed(sizeof *loop->stream_info);
    struct stream_tcp *tcp = loop->stream_info ? loop_block_take(loop) : NULL;
    if (!tcp) {
        loop_socket_close(&owned_socket);
        return CY_ERR(NO_MEMORY);
    }
    memset(tcp, 0, sizeof *tcp);
    tcp->stream.type = &stream_tcp_type;
    tcp->stream.loop = loop;
    tcp->socket = owned_socket;
    *stream_out = &tcp->stream;
    return CY_OK;
}

/* -- what all streams share ---------------------------------------------------------------------------- */

/* The stream may have been closed since; then `stream` is NULL. */
static void stream_on_posted_read(struct loop_op *op)
{
    struct loop_receive *receive = CY_CONTAINER_OF(op, struct loop_receive, op);
    struct stream_read *read = CY_CONTAINER_OF(receive, struct stream_read, receive);
    if (read->stream) read->stream->posted_read = NULL;
    read->stream = NULL;
    read->err = op->err;
    read->done(read);
}

void stream_post_read(struct stream *stream, struct stream_read *read, struct buffer *owned_buffer,
                      cy_err err)
{
    CHECK(!stream->posted_read);
    read->buffer = owned_buffer;
    stream->posted_read = read;
    read->stream = stream;
    read->receive.op.done = stream_on_posted_read;
    read->receive.op.err = err;
    loop_post(stream->loop, &read->receive.op);
}

void stream_read_unread(struct stream *stream, struct stream_read *read)
{
    struct buffer *buffer = stream->unread;
    stream->unread = NULL;
    stream_post_read(stream, read, buffer, CY_OK);
}

void stream_unread(struct stream *stream, struct buffer *owned_buffer)
{
    CHECK(!stream->unread && !stream->posted_read);
    if (owned_buffer->begin == owned_buffer->end)
        buffer_unref(&owned_buffer); /* a read never gives nothing */
    else
        stream->unread = owned_buffer;
}

static void stream_on_ready(struct loop_op *op)
{
    struct stream_ready *ready = CY_CONTAINER_OF(op, struct stream_ready, op);
    if (ready->stream) ready->stream->posted_ready = NULL;
    ready->stream = NULL;
    ready->err = op->err;
    ready->done(ready);
}

void stream_post_ready(struct stream *stream, struct stream_ready *ready, cy_err err)
{
    CHECK(!stream->posted_ready);
    stream->posted_ready = ready;
    ready->stream = stream;
    ready->op.done = stream_on_ready;
    ready->op.err = err;
    loop_post(stream->loop, &ready->op);
}

void stream_ready_at_once(struct stream *stream, struct stream_ready *ready)
{
    stream_post_ready(stream, ready, CY_OK);
}

bool stream_unwrap(struct stream **stream_pointer)
{
    struct stream *stream = *stream_pointer;
    CHECK(!stream->posted_read && !stream->posted_ready);
    if (!stream->type->unwrap || stream->unread) return false;
    struct stream *below = stream->type->unwrap(stream);
    if (below) *stream_pointer = below;
    return below != NULL;
}

void stream_close(struct stream **stream_pointer)
{
    struct stream *stream = *stream_pointer;
    *stream_pointer = NULL;
    if (!stream) return;
    buffer_unref(&stream->unread);
    if (stream->posted_read) {
        struct stream_read *read = stream->posted_read;
        buffer_unref(&read->buffer);
        read->receive.op.err = CY_ERR(CANCELLED);
        read->stream = NULL;
    }
    if (stream->posted_ready) {
        stream->posted_ready->op.err = CY_ERR(CANCELLED);
        stream->posted_ready->stream = NULL;
    }
    stream->type->close(stream);
}
