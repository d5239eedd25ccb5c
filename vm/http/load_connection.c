/* SPDX-License-Identifier: MIT
 *
 * vm/http/load_connection.c: the connections of a load run.
 *
 * In:   open, write, close. Out: load_on_open, load_on_closed, load_on_connect_failed, and what the protocol is told.
 *
 *   CLOSED ─open─► CONNECTING ─► READYING ─► OPEN ─close─► CLOSING ─last completion─► CLOSED
 *                       └──────────┴── failed ───────────────┘
 *
 * Invariant: a connection is CLOSED only when none of its four operations is outstanding, nor what its protocol
 *       carries itself (carried).
 */
#include "vm/base/check.h"
#include "vm/http/load_internal.h"

static struct loop *load_connection_loop(struct load_connection *connection)
{
    return connection->load->options.loop;
}

static void load_connection_settle(struct load_connection *connection)
{
    if (connection->state != LOAD_CONNECTION_CLOSING) return;
    if (connection->connecting || connection->readying || connection->reading || connection->writing ||
        connection->carried)
        return;
    connection->state = LOAD_CONNECTION_CLOSED;
    load_on_closed(connection);
}

void load_connection_close(struct load_connection *connection, bool reset)
{
    struct load *load = connection->load;
    DCHECK(connection->state != LOAD_CONNECTION_CLOSING && connection->state != LOAD_CONNECTION_CLOSED);
    loop_timer_clear(load->options.loop, &connection->timer);
    if (connection->state == LOAD_CONNECTION_OPEN) load->open_count--;
    connection->state = LOAD_CONNECTION_CLOSING; /* whom closing tells, sees that */
    if (connection->connecting) loop_connect_cancel(load->options.loop, &connection->connect);
    if (connection->carried) {
        load->protocol->close(connection, reset);
        if (!connection->carried) return; /* all of it is over: load_connection_released went on from there */
    }
    if (connection->stream) {
        if (reset) stream_abort_on_close(connection->stream);
        stream_close(&connection->stream);
    }
    buffer_unref(&connection->input);
    load_connection_settle(connection);
}

void load_connection_lose(struct load_connection *connection, enum load_fault fault)
{
    const struct load_protocol *protocol = connection->load->protocol;
    for (uint32_t i = 0; i < connection->load->slot_count; i++) {
        if (!connection->slots[i].busy) continue;
        if (protocol->drop) protocol->drop(&connection->slots[i]);
        load_slot_end(&connection->slots[i], fault);
    }
    if (connection->state == LOAD_CONNECTION_CLOSING || connection->state == LOAD_CONNECTION_CLOSED)
        return; /* that ended the run */
    load_connection_close(connection, true);
}

/* -- opening --------------------------------------------------------------------------------------------- */

static void load_connection_fail(struct load_connection *connection, enum load_fault fault, cy_err err)
{
    if (connection->state == LOAD_CONNECTION_CLOSING) {
        load_connection_settle(connection);
        return;
    }
    connection->has_failed = true;
    load_on_connect_failed(connection, fault, err);
    if (connection->state != LOAD_CONNECTION_CLOSING && connection->state != LOAD_CONNECTION_CLOSED)
        load_connection_lose(connection, fault);
}

static enum load_fault load_connection_fault(cy_err err)
{
    switch (err.code) {
    case CY_ERR_TIMEOUT: return LOAD_FAULT_TIMEOUT;
    case CY_ERR_REFUSED:
    case CY_ERR_RESET:
    case CY_ERR_UNREACHABLE: return LOAD_FAULT_CONNECT;
    default: return LOAD_FAULT_LOCAL; /* EMFILE, EADDRNOTAVAIL, memory: the server had no part in it */
    }
}

static void load_connection_on_read(struct stream_read *read);
static void load_connection_on_written(struct stream_write *write);

static void load_connection_count_handshake(struct load_connection *connection)
{
    struct load *load = connection->load;
    if (!load->options.is_resumed) return;
    load->result.handshake_count++;
    if (load->options.is_resumed(connection->stream)) load->result.resumed_count++;
}

void load_connection_opened(struct load_connection *connection)
{
    DCHECK(connection->state == LOAD_CONNECTION_READYING);
    loop_timer_clear(load_connection_loop(connection), &connection->timer);
    connection->state = LOAD_CONNECTION_OPEN;
    connection->has_failed = false;
    connection->in_body = false;
    connection->load->open_count++;
    connection->load->result.opened_count++;
    load_on_open(connection);
}

void load_connection_ended(struct load_connection *connection, cy_err err)
{
    if (connection->state == LOAD_CONNECTION_READYING)
        load_connection_fail(connection, LOAD_FAULT_HANDSHAKE, err);
    else if (connection->state == LOAD_CONNECTION_OPEN)
        load_connection_close(connection, false);
}

void load_connection_released(struct load_connection *connection)
{
    connection->carried = false;
    load_connection_settle(connection);
}

static void load_connection_on_ready(struct stream_ready *ready)
{
    struct load_connection *connection = CY_CONTAINER_OF(ready, struct load_connection, ready);
    connection->readying = false;
    if (connection->state == LOAD_CONNECTION_CLOSING || cy_failed(ready->err)) {
        load_connection_fail(connection, LOAD_FAULT_HANDSHAKE, ready->err);
        return;
    }
    const struct load_protocol *protocol = connection->load->protocol;
    if (connection->load->options.make_stream) {
        cy_bytes alpn = stream_info(connection->stream)->alpn;
        if (alpn.count ? !cy_bytes_equal(alpn, protocol->alpn) : protocol != &load_http1) {
            load_connection_fail(connection, LOAD_FAULT_HANDSHAKE, CY_ERR(TLS_NO_PROTOCOL));
            return;
        }
    }
    load_connection_count_handshake(connection);
    if (protocol->start) {
        cy_err err = protocol->start(connection);
        if (cy_failed(err)) load_connection_fail(connection, LOAD_FAULT_LOCAL, err);
        return;
    }
    load_connection_opened(connection);
    if (connection->state != LOAD_CONNECTION_OPEN) return;
    connection->read.done = load_connection_on_read;
    connection->reading = true;
    stream_read_start(connection->stream, &connection->read);
}

static void load_connection_on_connected(struct loop_op *op)
{
    struct load_connection *connection =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_connect, op), struct load_connection, connect);
    struct load_options *options = &connection->load->options;
    connection->connecting = false;
    if (cy_failed(op->err)) {
        load_connection_fail(connection, load_connection_fault(op->err), op->err);
        return;
    }
    if (connection->state == LOAD_CONNECTION_CLOSING) { /* cancelled when it was complete already */
        loop_socket_close(&connection->connect.socket);
        load_connection_settle(connection);
        return;
    }
    struct loop_socket *socket = connection->connect.socket;
    if (options->on_failure) {
        struct address local;
        loop_socket_address(socket, false, &local);
        if (local.bytes > 0) connection->local_port = address_port(&local);
    }
    cy_err err = options->make_stream ? options->make_stream(options->make_stream_context, options->loop,
                                                             socket, &connection->stream)
                                      : stream_tcp_new(options->loop, socket, &connection->stream);
    if (cy_failed(err)) {
        connection->stream = NULL;
        load_connection_fail(connection, LOAD_FAULT_LOCAL, err);
        return;
    }
    connection->state = LOAD_CONNECTION_READYING;
    connection->ready.done = load_connection_on_ready;
    connection->readying = true;
    stream_ready_start(connection->stream, &connection->ready);
}

static void load_connection_on_timer(struct timer *timer)
{
    struct load_connection *connection = CY_CONTAINER_OF(timer, struct load_connection, timer);
    if (connection->state == LOAD_CONNECTION_PAUSED) {
        connection->state = LOAD_CONNECTION_CLOSED;
        connection->has_failed = false;
        load_on_closed(connection);
        return;
    }
    if (connection->state != LOAD_CONNECTION_CONNECTING && connection->state != LOAD_CONNECTION_READYING)
        return;
    load_connection_fail(connection, LOAD_FAULT_TIMEOUT, CY_ERR(TIMEOUT));
}

void load_connection_open(struct load_connection *connection)
{
    struct loop *loop = load_connection_loop(connection);
    DCHECK(connection->state == LOAD_CONNECTION_CLOSED);
    connection->timer.fire = load_connection_on_timer;
    connection->state = LOAD_CONNECTION_CONNECTING;
    connection->connecting = true;
    connection->local_port = 0;
    if (connection->load->options.on_failure) connection->began_ns = loop_now_ns(loop);
    connection->connect.op.done = load_connection_on_connected;
    loop_timer_set(loop, &connection->timer, connection->load->options.timeout_ms);
    loop_connect(loop, &connection->load->options.address, &connection->connect);
}

void load_connection_pause(struct load_connection *connection)
{
    DCHECK(connection->state == LOAD_CONNECTION_CLOSED);
    connection->state = LOAD_CONNECTION_PAUSED;
    loop_timer_set(load_connection_loop(connection), &connection->timer, LIMIT_LOAD_PAUSE_MS);
}

/* -- bytes ----------------------------------------------------------------------------------------------- */

static void load_connection_on_read(struct stream_read *read)
{
    struct load_connection *connection = CY_CONTAINER_OF(read, struct load_connection, read);
    struct buffer *buffer = read->buffer;
    connection->reading = false;
    if (connection->state != LOAD_CONNECTION_OPEN) {
        buffer_unref(&buffer);
        load_connection_settle(connection);
        return;
    }
    if (buffer) {
        load_count_received(connection->load, buffer_view(buffer).count);
        connection->load->protocol->on_read(connection, buffer);
    } else if (cy_failed(read->err)) {
        load_connection_lose(connection, LOAD_FAULT_RESET);
    } else {
        connection->load->protocol->on_end(connection);
    }
    if (connection->state != LOAD_CONNECTION_OPEN || connection->reading) return;
    connection->reading = true;
    stream_read_start(connection->stream, &connection->read);
}

static void load_connection_on_written(struct stream_write *write)
{
    struct load_connection *connection = CY_CONTAINER_OF(write, struct load_connection, write);
    connection->writing = false;
    /* A failure: an answer may have come before it; the outstanding read tells. */
    load_connection_settle(connection);
}

void load_connection_write(struct load_connection *connection)
{
    DCHECK(connection->state == LOAD_CONNECTION_OPEN && !connection->writing);
    connection->write.done = load_connection_on_written;
    connection->writing = true;
    stream_write_start(connection->stream, &connection->write);
}
