/* SPDX-License-Identifier: MIT
 *
 * vm/net/loop_op.c: sockets and the operations on them.
 *
 * In:   submissions from the program, events from the back end. Out: completed operations, in the loop's queue.
 *
 *     submit ──► worth trying? ── yes ──► system call ──► done, or empty ──┐
 *                     │ no                                                ▼
 *                     └─────────────► wait (register once) ◄──────────────┘
 *     event  ──► note readiness ──► try what waits
 *
 * Invariant: an operation is in exactly one place: with the socket (outstanding), in the queue (`queued`), or with
 *       its owner. The socket's pointer to it stays until delivery, so that no second one can be submitted meanwhile.
 *       A socket struct is given back when it is closed and its last completion has been delivered.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"

#include <errno.h>
#include <unistd.h>

/* What only listeners need. */
struct loop_listener {
    struct loop_socket *socket;
    struct timer pause;
    uint32_t batch_count; /* connections tried for per event; adapts so that few tries find the queue empty */
};

static void loop_send_now(struct loop_socket *socket);

/* -- completing ------------------------------------------------------------------------------------------ */

static void loop_op_complete(struct loop *loop, struct loop_op *op, cy_err err)
{
    DCHECK(!op->queued);
    op->queued = true;
    op->err = err;
    op->next = NULL;
    if (loop->complete_last)
        loop->complete_last->next = op;
    else
        loop->complete_first = op;
    loop->complete_last = op;
    if (op->socket) op->socket->undelivered_count++;
}

static void loop_op_start(struct loop_op *op, struct loop_socket *socket, enum loop_op_kind kind)
{
    DCHECK(op->done != NULL);
    op->next = NULL;
    op->socket = socket;
    op->kind = (uint8_t)kind;
    op->queued = false;
    op->err = CY_OK;
}

void loop_post(struct loop *loop, struct loop_op *op)
{
    CHECK(!op->queued);
    DCHECK(op->done != NULL);
    op->socket = NULL;
    op->kind = LOOP_POST;
    loop_op_complete(loop, op, op->err);
}

/* -- sockets --------------------------------------------------------------------------------------------- */

static struct loop_socket *loop_socket_take(struct loop *loop)
{
    if (loop->free_sockets) {
        struct loop_socket *socket = loop->free_sockets;
        loop->free_sockets = socket->next;
        return socket;
    }
    if (loop->slot_count == loop->slot_capacity) {
        uint32_t capacity = loop->slot_capacity ? loop->slot_capacity * 2 : 64;
        if (capacity > UINT32_MAX / 2) return NULL; /* UINT32_MAX is no index: marks of back ends use it */
        struct loop_socket **slots = mem_resize(loop->slots, capacity * sizeof *slots);
        if (!slots) return NULL;
        loop->slots = slots;
        loop->slot_capacity = capacity;
    }
    struct loop_socket *socket = mem_alloc_zeroed(sizeof *socket);
    if (!socket) return NULL;
    socket->index = loop->slot_count;
    loop->slots[loop->slot_count++] = socket;
    return socket;
}

static cy_err loop_socket_new(struct loop *loop, int descriptor, bool owned, struct loop_socket **socket_out)
{
    struct loop_socket *socket = loop_socket_take(loop);
    if (!socket) return CY_ERR(NO_MEMORY);
    uint32_t index = socket->index, generation = socket->generation;
    *socket = (struct loop_socket){
        .loop = loop, .descriptor = descriptor, .index = index, .generation = generation};
    socket->open = true;
    socket->owned = owned;
    socket->readable = socket->writable = true; /* nothing is known yet, and trying costs less than asking */
    loop->open_count++;
    *socket_out = socket;
    return CY_OK;
}

static void loop_socket_recycle(struct loop_socket *socket)
{
    struct loop *loop = socket->loop;
    DCHECK(!socket->open && socket->undelivered_count == 0);
    mem_free(socket->listener);
    socket->listener = NULL;
    socket->next = loop->free_sockets;
    loop->free_sockets = socket;
    CHECK(loop->open_count > 0);
    loop->open_count--;
}

/* For descriptors that no struct was made for. */
static void loop_close_stray(struct loop *loop, int descriptor)
{
    struct loop_socket stray = {.loop = loop, .descriptor = descriptor, .owned = true};
    loop->backend->close_descriptor(loop->state, &stray);
}

cy_err loop_socket_open(struct loop *loop, int owned_descriptor, struct loop_socket **socket_out)
{
    cy_err err = loop->backend->adopt(loop->state, owned_descriptor);
    if (!cy_failed(err)) err = loop_socket_new(loop, owned_descriptor, true, socket_out);
    if (cy_failed(err)) loop_close_stray(loop, owned_descriptor);
    return err;
}

cy_err loop_socket_open_accepted(struct loop *loop, int owned_descriptor, struct loop_socket **socket_out)
{
    cy_err err = loop_socket_new(loop, owned_descriptor, true, socket_out);
    if (cy_failed(err)) loop_close_stray(loop, owned_descriptor);
    return err;
}

cy_err loop_socket_watch(struct loop *loop, int descriptor, struct loop_socket **socket_out)
{
    CY_TRY(loop->backend->adopt(loop->state, descriptor));
    return loop_socket_new(loop, descriptor, false, socket_out);
}

struct loop_socket *loop_socket_at(struct loop *loop, uint32_t index, uint32_t generation)
{
    if (index >= loop->slot_count) return NULL;
    struct loop_socket *socket = loop->slots[index];
    return socket->open && socket->generation == generation ? socket : NULL;
}

int loop_socket_descriptor(const struct loop_socket *socket) { return socket->descriptor; }
bool loop_socket_is_system(const struct loop_socket *socket) { return socket->loop->backend->is_system; }
void loop_socket_address(const struct loop_socket *socket, bool peer, struct address *address_out)
{
    CHECK(socket->open);
    const struct loop_backend *backend = socket->loop->backend;
    address_out->bytes = 0;
    if (backend->address) backend->address(socket->loop->state, socket, peer, address_out);
}
void loop_socket_abort_on_close(struct loop_socket *socket) { socket->abort_on_close = true; }

/* An outstanding operation is cancelled; one that is complete but not delivered turns into a cancelled one, so that
 * the owner of a closed socket needs one answer only. */
static void loop_op_cancel(struct loop_socket *socket, struct loop_op *op)
{
    if (op->queued)
        op->err = CY_ERR(CANCELLED);
    else
        loop_op_complete(socket->loop, op, CY_ERR(CANCELLED));
}

static void loop_socket_cancel_all(struct loop_socket *socket)
{
    if (socket->receive) {
        loop_op_cancel(socket, &socket->receive->op);
        buffer_unref(&socket->receive->buffer);
    }
    if (socket->send) loop_op_cancel(socket, &socket->send->op);
    if (socket->ready) loop_op_cancel(socket, &socket->ready->op);
    if (socket->accept) loop_op_cancel(socket, &socket->accept->op);
    if (socket->connect) loop_op_cancel(socket, &socket->connect->op);
}

void loop_socket_close(struct loop_socket **socket_pointer)
{
    struct loop_socket *socket = *socket_pointer;
    *socket_pointer = NULL;
    CHECK(socket->open);
    struct loop *loop = socket->loop;
    if (socket->listener) loop_timer_clear(loop, &socket->listener->pause);
    if (!socket->abort_on_close) loop_send_now(socket); /* a send was tried before a close that followed it */
    loop_socket_cancel_all(socket);
    if (socket->registered) loop->backend->unwatch(loop->state, socket, true);
    if (socket->owned) loop->backend->close_descriptor(loop->state, socket);
    socket->open = false;
    socket->descriptor = -1;
    socket->generation++;
    if (socket->undelivered_count == 0) loop_socket_recycle(socket);
}

static cy_err loop_socket_shut(struct loop_socket *socket)
{
    if (socket->send_shut) return CY_OK;
    socket->send_shut = true;
    return cy_err_from_errno(-socket->loop->backend->shutdown_send(socket->loop->state, socket));
}

cy_err loop_socket_shutdown_send(struct loop_socket *socket)
{
    CHECK(socket->open);
    loop_send_now(socket);
    return loop_socket_shut(socket);
}

bool loop_socket_is_quiet(struct loop_socket *socket)
{
    CHECK(socket->open);
    struct loop *loop = socket->loop;
    if (socket->peer_closed || (socket->receive && socket->receive->op.queued)) return false;
    if (socket->registered && !socket->readable && loop->backend->watches_idle) return true;
    loop->counters.peeks++;
    if (loop->backend->peek(loop->state, socket) != -EAGAIN) return false;
    socket->readable = false;
    return true;
}

/* Waits for an event from here on. An operation that cannot even wait completes with the reason. */
static void loop_socket_wait(struct loop_socket *socket, struct loop_op *op)
{
    if (socket->registered) return;
    cy_err err = socket->loop->backend->watch(socket->loop->state, socket);
    if (cy_failed(err)) loop_op_complete(socket->loop, op, err);
}

/* A registration, its events and its end cost a short connection 7 % of what it costs in all (0086). */
static bool loop_socket_wait_later(struct loop_socket *socket)
{
    struct loop *loop = socket->loop;
    if (socket->registered || loop->unhurried_count == LIMIT_LOOP_UNHURRIED) return false;
    uint32_t place = (loop->unhurried_first + loop->unhurried_count++) % LIMIT_LOOP_UNHURRIED;
    loop->unhurried[place] =
        (struct loop_unhurried){socket->index, socket->generation, loop->now_ms + LIMIT_LOOP_UNHURRIED_MS};
    if (!timer_is_set(&loop->unhurried_timer))
        loop_timer_set(loop, &loop->unhurried_timer, LIMIT_LOOP_UNHURRIED_MS);
    return true;
}

void loop_on_unhurried(struct timer *timer)
{
    struct loop *loop = CY_CONTAINER_OF(timer, struct loop, unhurried_timer);
    while (loop->unhurried_count > 0) {
        const struct loop_unhurried *oldest = &loop->unhurried[loop->unhurried_first];
        if (oldest->due_ms > loop->now_ms) {
            loop_timer_set(loop, timer, oldest->due_ms - loop->now_ms);
            return;
        }
        struct loop_socket *socket = loop_socket_at(loop, oldest->index, oldest->generation);
        loop->unhurried_first = (loop->unhurried_first + 1) % LIMIT_LOOP_UNHURRIED;
        loop->unhurried_count--;
        if (socket && socket->receive && !socket->receive->op.queued)
            loop_socket_wait(socket, &socket->receive->op);
    }
}

/* -- receive --------------------------------------------------------------------------------------------- */

static bool loop_is_empty(ssize_t result) { return result == -EAGAIN || result == -EWOULDBLOCK; }

/* Nothing there, the end, or an error. */
static void loop_receive_failed(struct loop_socket *socket, ssize_t count)
{
    struct loop *loop = socket->loop;
    struct loop_receive *receive = socket->receive;
    if (loop_is_empty(count)) {
        loop->counters.receives_empty++;
        socket->readable = false;
        if (!receive->unhurried || !loop_socket_wait_later(socket)) loop_socket_wait(socket, &receive->op);
        return;
    }
    if (count == 0) socket->peer_closed = true;
    loop_op_complete(loop, &receive->op, cy_err_from_errno((int)-count));
}

/* What is there goes into a pipe, if there is one to be had and this kind of socket can. False: an ordinary buffer. */
static bool loop_receive_piped(struct loop_socket *socket)
{
    struct loop *loop = socket->loop;
    struct loop_receive *receive = socket->receive;
    struct loop_pipe *pipe = socket->no_pipes ? NULL : loop_pipe_take(loop);
    if (!pipe) return false;
    size_t bytes = cy_min_size(receive->pipe_bytes_max, LIMIT_PIPE_BYTES);
    loop->counters.receives++;
    loop->counters.piped++;
    ssize_t count = loop->backend->pipe_in(loop->state, socket, pipe, bytes);
    pipe->left_bytes = count > 0 ? (uint32_t)count : 0;
    if (count <= 0) {
        loop_pipe_give(pipe);
        socket->no_pipes = count == -EINVAL;
        if (socket->no_pipes) return false;
        loop_receive_failed(socket, count);
        return true;
    }
    receive->buffer = loop_pipe_wrap(pipe);
    if (!receive->buffer) loop_pipe_give(pipe);
    loop_op_complete(loop, &receive->op, receive->buffer ? CY_OK : CY_ERR(NO_MEMORY));
    return true;
}

static void loop_receive_try(struct loop_socket *socket)
{
    struct loop *loop = socket->loop;
    struct loop_receive *receive = socket->receive;
    if (receive->pipe_bytes_max > 0 && loop_receive_piped(socket)) return;
    struct buffer *buffer = socket->bulk ? buffer_take_bulk(loop->buffers) : buffer_take(loop->buffers);
    if (!buffer) {
        loop_op_complete(loop, &receive->op, CY_ERR(NO_MEMORY));
        return;
    }
    loop->counters.receives++;
    ssize_t count = loop->backend->receive(loop->state, socket, buffer->data, buffer->capacity);
    if (count <= 0) {
        buffer_unref(&buffer);
        loop_receive_failed(socket, count);
        return;
    }
    buffer->end = (uint32_t)count;
    socket->bulk = buffer->end == buffer->capacity;
    if (!socket->bulk && !socket->peer_closed) socket->readable = false;
    receive->buffer = buffer;
    loop_op_complete(loop, &receive->op, CY_OK);
}

void loop_receive(struct loop_socket *socket, struct loop_receive *receive)
{
    CHECK(socket->open && !socket->receive);
    loop_op_start(&receive->op, socket, LOOP_RECEIVE);
    receive->buffer = NULL;
    socket->receive = receive;
    if (socket->readable)
        loop_receive_try(socket);
    else if (!receive->unhurried || !loop_socket_wait_later(socket))
        loop_socket_wait(socket, &receive->op);
}

void loop_receive_cancel(struct loop_socket *socket)
{
    CHECK(socket->open);
    if (socket->receive && !socket->receive->op.queued) loop_op_cancel(socket, &socket->receive->op);
}

/* -- send ------------------------------------------------------------------------------------------------ */

/* What is left, as the system wants it. */
static int loop_send_gather(const struct loop_send *send, struct iovec *parts, size_t *bytes_out)
{
    int count = 0;
    *bytes_out = 0;
    for (uint32_t i = send->part_index; i < send->part_count; i++) {
        cy_bytes part = send->parts[i];
        if (i == send->part_index) part = cy_bytes_skip(part, send->part_offset);
        if (part.count == 0) continue;
        parts[count++] = (struct iovec){.iov_base = (void *)(uintptr_t)part.data, .iov_len = part.count};
        *bytes_out += part.count;
    }
    return count;
}

static void loop_send_advance(struct loop_send *send, size_t count)
{
    send->sent_bytes += count;
    while (send->part_index < send->part_count) {
        size_t left = send->parts[send->part_index].count - send->part_offset;
        if (count < left) {
            send->part_offset += count;
            return;
        }
        count -= left;
        send->part_index++;
        send->part_offset = 0;
    }
    DCHECK(count == 0);
}

/* All of it is with the system. Where FIN follows, the last bytes were held back until it joins them: a packet of its
 * own costs both ends nearly what the answer did. Shut, not closed: a close with bytes unread drops what is held. */
static void loop_send_complete(struct loop_socket *socket)
{
    struct loop_send *send = socket->send;
    cy_err err = send->ends ? loop_socket_shut(socket) : CY_OK;
    loop_op_complete(socket->loop, &send->op, err);
}

/* A pipe may be taken from in pieces for reasons of its own: less than all says nothing, only -EAGAIN does. */
static void loop_send_piped(struct loop_socket *socket)
{
    struct loop *loop = socket->loop;
    struct loop_send *send = socket->send;
    struct loop_pipe *pipe = loop_pipe_of(send->pipe);
    while (pipe->left_bytes > 0) {
        loop->counters.sends++;
        ssize_t count = loop->backend->pipe_out(loop->state, socket, pipe, pipe->left_bytes);
        if (loop_is_empty(count)) {
            loop->counters.sends_blocked++;
            socket->writable = false;
            loop_socket_wait(socket, &send->op);
            return;
        }
        if (count <= 0) {
            loop_op_complete(loop, &send->op, count == 0 ? CY_ERR(CLOSED) : cy_err_from_errno((int)-count));
            return;
        }
        pipe->left_bytes -= (uint32_t)count;
        send->sent_bytes += (size_t)count;
    }
    loop_send_complete(socket);
}

static void loop_send_try(struct loop_socket *socket)
{
    struct loop *loop = socket->loop;
    struct loop_send *send = socket->send;
    if (send->pipe) {
        loop_send_piped(socket);
        return;
    }
    struct iovec parts[LOOP_SEND_PARTS_MAX];
    size_t bytes;
    int part_count = loop_send_gather(send, parts, &bytes);
    if (part_count == 0) {
        loop_send_complete(socket);
        return;
    }
    loop->counters.sends++;
    ssize_t count = loop->backend->send(loop->state, socket, parts, part_count, send->more || send->ends);
    if (count < 0 && !loop_is_empty(count)) {
        loop_op_complete(loop, &send->op, cy_err_from_errno((int)-count));
        return;
    }
    if (count > 0) loop_send_advance(send, (size_t)count);
    if (count == (ssize_t)bytes) {
        loop_send_complete(socket);
        return;
    }
    /* Less than all means that the send buffer is full; trying again would return EAGAIN. */
    loop->counters.sends_blocked++;
    socket->writable = false;
    loop_socket_wait(socket, &send->op);
}

/* Sends wait for each other: what the program does between them and what the system does inside them take turns in
 * the processor's instruction cache, and this way they do so once per batch (docs/decisions/0059-sends-in-one-go.md).
 * */
static void loop_send_later(struct loop_socket *socket)
{
    struct loop *loop = socket->loop;
    if (loop->sending_count == LIMIT_LOOP_SENDING) {
        loop_send_try(socket);
        return;
    }
    socket->send_waits = true;
    loop->sending[loop->sending_count++] = (struct loop_sending){socket->index, socket->generation};
}

/* Nothing, unless a send waits in the batch. */
static void loop_send_now(struct loop_socket *socket)
{
    if (!socket->send_waits) return;
    socket->send_waits = false;
    loop_send_try(socket);
}

void loop_send_batch(struct loop *loop)
{
    for (uint32_t i = 0; i < loop->sending_count; i++) {
        const struct loop_sending *sending = &loop->sending[i];
        struct loop_socket *socket = loop_socket_at(loop, sending->index, sending->generation);
        if (socket) loop_send_now(socket);
    }
    loop->sending_count = 0;
}

void loop_send(struct loop_socket *socket, struct loop_send *send)
{
    CHECK(socket->open && !socket->send);
    CHECK(send->part_count <= LOOP_SEND_PARTS_MAX);
    loop_op_start(&send->op, socket, LOOP_SEND);
    send->sent_bytes = 0;
    send->part_index = 0;
    send->part_offset = 0;
    socket->send = send;
    if (socket->writable)
        loop_send_later(socket);
    else
        loop_socket_wait(socket, &send->op);
}

static bool loop_lacks_descriptors(int result) { return result == -EMFILE || result == -ENFILE; }

/* -- connect --------------------------------------------------------------------------------------------- */

/* The attempt is over without a connection: its socket goes, the operation keeps it alive until delivery. */
static void loop_connect_fail(struct loop_socket *socket, cy_err err)
{
    struct loop_connect *connect = socket->connect;
    loop_op_complete(socket->loop, &connect->op, err);
    socket->connect = NULL;
    connect->socket = NULL;
    loop_socket_close(&socket);
}

static void loop_connect_finish(struct loop_socket *socket, unsigned events)
{
    struct loop *loop = socket->loop;
    if (events & LOOP_EVENT_ERROR) {
        int result = loop->backend->connect_result(loop->state, socket);
        /* HUP without an error: connected and ended by the peer at once. The receive will tell. */
        if (result < 0) {
            loop_connect_fail(socket, cy_err_from_errno(-result));
            return;
        }
    }
    if (!(events & (LOOP_EVENT_WRITE | LOOP_EVENT_ERROR))) return;
    socket->writable = true;
    loop_op_complete(loop, &socket->connect->op, CY_OK);
}

void loop_connect(struct loop *loop, const struct address *to, struct loop_connect *connect)
{
    loop_op_start(&connect->op, NULL, LOOP_CONNECT);
    connect->socket = NULL;
    int descriptor = loop->backend->connect(loop->state, to);
    if (loop_lacks_descriptors(descriptor) && loop_pipes_spare(loop))
        descriptor = loop->backend->connect(loop->state, to);
    if (descriptor < 0) {
        loop_op_complete(loop, &connect->op, cy_err_from_errno(-descriptor));
        return;
    }
    struct loop_socket *socket;
    cy_err err = loop_socket_new(loop, descriptor, true, &socket);
    if (cy_failed(err)) {
        loop_close_stray(loop, descriptor);
        loop_op_complete(loop, &connect->op, err);
        return;
    }
    socket->readable = socket->writable = false; /* registering reports what there is */
    socket->connect = connect;
    connect->op.socket = socket;
    connect->socket = socket;
    err = loop->backend->watch(loop->state, socket);
    if (cy_failed(err)) loop_connect_fail(socket, err);
}

void loop_connect_cancel(struct loop *loop, struct loop_connect *connect)
{
    (void)loop;
    if (connect->op.queued || !connect->op.socket) return;
    loop_connect_fail(connect->op.socket, CY_ERR(CANCELLED));
}

/* -- accept ---------------------------------------------------------------------------------------------- */

static void loop_accept_resume(struct timer *timer)
{
    struct loop_listener *listener = CY_CONTAINER_OF(timer, struct loop_listener, pause);
    struct loop_socket *socket = listener->socket;
    if (socket->accept && !socket->accept->op.queued) loop_socket_wait(socket, &socket->accept->op);
}

void loop_accept_again(struct loop_socket *socket)
{
    CHECK(socket->open);
    if (!socket->listener || !timer_is_set(&socket->listener->pause)) return;
    loop_timer_clear(socket->loop, &socket->listener->pause);
    loop_accept_resume(&socket->listener->pause);
}

/* A level-triggered listener would wake us in every turn while there is no descriptor, or no room, to accept with. */
static void loop_accept_pause(struct loop_socket *socket)
{
    struct loop *loop = socket->loop;
    loop->counters.accept_pauses++;
    if (socket->registered) loop->backend->unwatch(loop->state, socket, false);
    loop_timer_set(loop, &socket->listener->pause, LIMIT_ACCEPT_PAUSE_MS);
}

/* Accepting is one operation with many results: `done` is called for each connection, straight from delivery. */
static void loop_accept_deliver(struct loop *loop, struct loop_socket *socket, struct loop_accept *accept)
{
    uint32_t generation = socket->generation;
    uint32_t batch_count = socket->listener->batch_count;
    uint32_t room_count = accept->room ? accept->room(accept) : UINT32_MAX;
    if (socket->generation != generation) return;
    if (room_count == 0) {
        loop_accept_pause(socket);
        return;
    }
    if (batch_count > room_count) batch_count = room_count;
    for (uint32_t i = 0; i < batch_count; i++) {
        loop->counters.accepts++;
        int descriptor = loop->backend->accept(loop->state, socket, &accept->peer);
        if (loop_is_empty(descriptor)) {
            loop->counters.accepts_empty++;
            socket->listener->batch_count = batch_count > 1 ? batch_count / 2 : 1;
            return;
        }
        if (loop_lacks_descriptors(descriptor) && loop_pipes_spare(loop)) continue;
        if (loop_lacks_descriptors(descriptor) || descriptor == -ENOBUFS || descriptor == -ENOMEM) {
            loop_accept_pause(socket);
            if (accept->starved) accept->starved(accept);
            return;
        }
        if (descriptor == -EBADF || descriptor == -EINVAL || descriptor == -ENOTSOCK ||
            descriptor == -EOPNOTSUPP) {
            loop_op_complete(loop, &accept->op, cy_err_from_errno(-descriptor)); /* no listener any more */
            return;
        }
        if (descriptor < 0)
            continue; /* that connection is gone (accept(2) lists many ways); the next may be fine */
        accept->descriptor = descriptor;
        accept->op.err = CY_OK;
        accept->op.done(&accept->op);
        if (socket->generation != generation)
            return; /* closed by `done`; its last completion is on its way */
    }
    if (socket->listener->batch_count < LIMIT_ACCEPT_BATCH) socket->listener->batch_count++;
}

void loop_accept(struct loop_socket *socket, struct loop_accept *accept)
{
    CHECK(socket->open && !socket->accept);
    loop_op_start(&accept->op, socket, LOOP_ACCEPT);
    accept->descriptor = -1;
    accept->peer.bytes = 0;
    socket->accept = accept;
    if (socket->loop->backend->prepare_listener)
        socket->loop->backend->prepare_listener(socket->loop->state, socket);
    if (!socket->listener) socket->listener = mem_alloc(sizeof *socket->listener);
    if (!socket->listener) {
        loop_op_complete(socket->loop, &accept->op, CY_ERR(NO_MEMORY));
        return;
    }
    *socket->listener =
        (struct loop_listener){.socket = socket, .pause.fire = loop_accept_resume, .batch_count = 1};
    loop_socket_wait(socket, &accept->op);
}

/* -- ready ----------------------------------------------------------------------------------------------- */

static void loop_ready_try(struct loop_socket *socket)
{
    struct loop_ready *ready = socket->ready;
    ready->can_read = ready->want_read && socket->readable;
    ready->can_write = ready->want_write && socket->writable;
    if (ready->can_read || ready->can_write) loop_op_complete(socket->loop, &ready->op, CY_OK);
}

void loop_ready(struct loop_socket *socket, struct loop_ready *ready)
{
    CHECK(socket->open && !socket->ready);
    CHECK(ready->want_read || ready->want_write);
    loop_op_start(&ready->op, socket, LOOP_READY);
    ready->can_read = ready->can_write = false;
    socket->ready = ready;
    if (!socket->owned) {
        /* Somebody else reads it, so what we knew is worth nothing: ask anew each time. */
        socket->readable = socket->writable = false;
        cy_err err = socket->loop->backend->arm(socket->loop->state, socket);
        if (cy_failed(err)) loop_op_complete(socket->loop, &ready->op, err);
        return;
    }
    loop_ready_try(socket);
    if (!ready->op.queued) loop_socket_wait(socket, &ready->op);
}

void loop_ready_cancel(struct loop_socket *socket)
{
    CHECK(socket->open);
    if (socket->ready && !socket->ready->op.queued) loop_op_cancel(socket, &socket->ready->op);
}

/* -- events and delivery --------------------------------------------------------------------------------- */

void loop_on_event(struct loop_socket *socket, unsigned events)
{
    if (events & (LOOP_EVENT_PEER_CLOSED | LOOP_EVENT_ERROR)) socket->peer_closed = true;
    if (events & (LOOP_EVENT_READ | LOOP_EVENT_PEER_CLOSED | LOOP_EVENT_ERROR)) socket->readable = true;
    if (socket->connect) {
        if (!socket->connect->op.queued) loop_connect_finish(socket, events);
        return;
    }
    if (events & (LOOP_EVENT_WRITE | LOOP_EVENT_ERROR)) socket->writable = true;
    if (socket->accept) {
        if (!socket->accept->op.queued && !timer_is_set(&socket->listener->pause))
            loop_op_complete(socket->loop, &socket->accept->op, CY_OK);
        return;
    }
    if (socket->receive && !socket->receive->op.queued && socket->readable) loop_receive_try(socket);
    if (socket->send && !socket->send->op.queued && socket->writable) loop_send_try(socket);
    if (socket->ready && !socket->ready->op.queued) loop_ready_try(socket);
}

void loop_op_deliver(struct loop *loop, struct loop_op *op)
{
    struct loop_socket *socket = op->socket;
    op->queued = false;
    op->next = NULL;
    if (socket) {
        DCHECK(socket->undelivered_count > 0);
        socket->undelivered_count--;
        if (op->kind == LOOP_ACCEPT && !cy_failed(op->err)) {
            loop_accept_deliver(loop, socket, CY_CONTAINER_OF(op, struct loop_accept, op));
            return;
        }
        op->socket = NULL;
        switch ((enum loop_op_kind)op->kind) {
        case LOOP_ACCEPT:
            socket->accept = NULL;
            CY_CONTAINER_OF(op, struct loop_accept, op)->descriptor = -1;
            break;
        case LOOP_CONNECT: socket->connect = NULL; break;
        case LOOP_RECEIVE:
            socket->receive = NULL;
            CY_CONTAINER_OF(op, struct loop_receive, op)->pipe_bytes_max = 0;
            CY_CONTAINER_OF(op, struct loop_receive, op)->unhurried = false;
            break;
        case LOOP_SEND:
            socket->send = NULL;
            CY_CONTAINER_OF(op, struct loop_send, op)->pipe = NULL;
            CY_CONTAINER_OF(op, struct loop_send, op)->ends = false;
            break;
        case LOOP_READY: socket->ready = NULL; break;
        case LOOP_POST: UNREACHABLE(); /* has no socket */
        }
        if (!socket->open && socket->undelivered_count == 0) loop_socket_recycle(socket);
    }
    op->done(op); /* from here on the operation is its owner's; it may be gone already */
}
