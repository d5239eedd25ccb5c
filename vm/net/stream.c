/* SPDX-License-Identifier: MIT
 *
 * vm/net/stream.c: the stream over a plain socket.
 *
 * In:   reads and writes. Out: the loop's receives and sends, one to one.
 * Invariant: the operations live in the caller's struct stream_read and stream_write, so the stream itself may be given
 *       back at close while their last completions are still on their way.
 */
#include "vm/net/stream.h"

#include "vm/base/check.h"
#include "vm/net/loop_internal.h"

struct stream_tcp {
    struct stream stream; /* first: a struct stream * is this one too */
    struct loop_socket *socket;
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

static bool stream_tcp_is_quiet(struct stream *stream)
{
    return loop_socket_is_quiet(stream_tcp_socket(stream));
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
    .is_quiet = stream_tcp_is_quiet,
    .shutdown_write = stream_tcp_shutdown_write,
    .abort_on_close = stream_tcp_abort_on_close,
    .close = stream_tcp_close,
};

cy_err stream_tcp_new(struct loop *loop, struct loop_socket *owned_socket, struct stream **stream_out)
{
    struct stream_tcp *tcp = loop_block_take(loop);
    if (!tcp) {
        loop_socket_close(&owned_socket);
        return CY_ERR(NO_MEMORY);
    }
    *tcp = (struct stream_tcp){.stream = {.type = &stream_tcp_type, .loop = loop}, .socket = owned_socket};
    *stream_out = &tcp->stream;
    return CY_OK;
}

void stream_close(struct stream **stream)
{
    struct stream *which = *stream;
    *stream = NULL;
    if (which) which->type->close(which);
}
