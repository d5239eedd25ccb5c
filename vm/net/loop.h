/* SPDX-License-Identifier: MIT
 *
 * vm/net/loop.h: the event loop as completions.
 *
 * In:   operations, each a struct in the memory of whoever submits it.
 * Out:  exactly one call of `op->done` per submitted operation (accept: one per connection, then a last one), always
 *       from loop_turn, never from inside the submitting call.
 * Ownership: from submit until `done` the operation, and the bytes a send points at, belong to the loop. Closing a
 *       socket completes what is outstanding with CANCELLED; only then is the socket's memory gone.
 * Back ends: epoll (edge-triggered: reads and writes are tried first, a short read means drained, so that no call
 *       returns EAGAIN in the steady state), poll (portable), and the simulator of the tests. Chosen at loop_new
 * (CROWNY_IO). Not here: TLS, names, HTTP.
 */
#ifndef CY_NET_LOOP_H
#define CY_NET_LOOP_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/net/address.h"
#include "vm/net/buffer.h"
#include "vm/net/timer.h"

struct loop;
struct spare_watch;
struct loop_socket;
struct loop_backend; /* loop_internal.h */

/* -- the loop -------------------------------------------------------------------------------------------- */
/* `name`: "epoll", "poll", or NULL for the best one here. UNSUPPORTED when there is no such back end. */
CY_NODISCARD cy_err loop_new(const char *name, struct loop **loop_out);
bool loop_backend_exists(const char *name);
void loop_free(struct loop **loop);            /* everything must have been closed and completed */
uint64_t loop_now_ms(const struct loop *loop); /* monotonic, read once per turn */
uint64_t loop_now_ns(const struct loop *loop); /* monotonic, read now */
uint64_t loop_turn_ns(
    const struct loop *loop); /* monotonic, read once per turn: when its events were collected */
/* Seconds since 1970, read once per turn: for logs and the Date field. */
int64_t loop_wall_seconds(const struct loop *loop);
struct buffer_pool *loop_buffers(struct loop *loop);
/* For lists of the loop's thread (vm/base/spare.h), which must be freed before it: they are trimmed each
 * LIMIT_SPARE_TRIM_MS while one of them holds more than at rest. */
struct spare_watch *loop_spares(struct loop *loop);

/* One turn: waits for events (not at all when something is already complete or `hook` asked for another turn),
 * delivers the completions of this turn in one batch, fires timers, then calls the hook. */
CY_NODISCARD cy_err loop_turn(struct loop *loop);
/* Turns until loop_stop. */
CY_NODISCARD cy_err loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* Turns without waiting until every completion that is due has been delivered, those that deliveries cause included.
 * For the end of a process: after closing, before freeing. No hook may be set. */
CY_NODISCARD cy_err loop_flush(struct loop *loop);
/* Called at the end of every turn; true asks for the next turn without waiting. vm_run hangs here. */
void loop_set_hook(struct loop *loop, bool (*hook)(void *context), void *context);
/* Makes the current or next wait end at once. Callable from signal handlers and other threads. */
void loop_wake(struct loop *loop);

void loop_timer_set(struct loop *loop, struct timer *timer, uint64_t after_ms);
void loop_timer_clear(struct loop *loop, struct timer *timer);

/* -- operations ------------------------------------------------------------------------------------------ */
enum loop_op_kind { LOOP_ACCEPT, LOOP_CONNECT, LOOP_RECEIVE, LOOP_SEND, LOOP_READY, LOOP_POST };

/* Embed one; CY_CONTAINER_OF gets you back. */
struct loop_op {
    void (*done)(struct loop_op *op);
    cy_err err; /* valid in done */
    /* private to the loop */
    struct loop_op *next;
    struct loop_socket *socket;
    uint8_t kind;
    bool queued;
};
struct loop_accept {
    struct loop_op op;
    /* May be NULL: as many as come. Asked when connections wait, for how many of them there is room; what is closed in
     * this call may make it. 0: they stay in the kernel's queue, and it is asked again a little later, or when
     * loop_accept_again says that there is room. */
    uint32_t (*room)(struct loop_accept *accept);
    /* May be NULL. The system had no descriptor or memory for a connection that waits; it stays in the kernel's queue
     * and is tried again a little later, so what is closed in this call may make room for it. */
    void (*starved)(struct loop_accept *accept);
    int descriptor; /* in done: a new non-blocking connection, owned by you; -1 when op.err is set */
    struct address peer;
};
struct loop_connect {
    struct loop_op op;
    struct loop_socket *socket; /* in done: owned by you when op.err is OK */
};
struct loop_receive {
    struct loop_op op;
    struct buffer *buffer; /* in done: owned by you; NULL at the end of the stream or on error */
    /* Above 0: at most so many bytes may come in a pipe of the kernel's instead (loop_buffer_is_piped): a buffer
     * that has a length and no bytes, good for one send. For one receive: in done it is 0. */
    uint32_t pipe_bytes_max;
    /* Nothing is expected but the end, if anything: a socket that is not registered for events yet is so only when it
     * has waited for LIMIT_LOOP_UNHURRIED_MS, and one that is closed before never. For one receive: in done false. */
    bool unhurried;
};
#define LOOP_SEND_PARTS_MAX 16
struct loop_send {
    struct loop_op op;
    cy_bytes parts[LOOP_SEND_PARTS_MAX]; /* sent as one, completely or until an error */
    uint32_t part_count;
    bool more; /* more follows at once (MSG_MORE) */
    /* Nothing is sent behind it: its last bytes and FIN are one packet. For one send: in done it is false, and where
     * `op.err` is OK the socket is shut as loop_socket_shutdown_send does it. */
    bool ends;
    struct buffer
        *pipe; /* borrowed; what is sent is this piped buffer's, and `parts` only say so. NULL in done */
    size_t sent_bytes;   /* in done */
    uint32_t part_index; /* private progress */
    size_t part_offset;
};
/* Waits until a descriptor that somebody else reads (c-ares, an eventfd, a signal pipe) is readable or writable. */
struct loop_ready {
    struct loop_op op;
    bool want_read, want_write;
    bool can_read, can_write; /* in done */
};

/* Completes `op` from a later point of this turn, or in the next turn, which then does not wait, with the `err` that
 * it carries: for answers that need no event (bytes that lie decrypted, streams inside a connection, a handshake that
 * is none). No memory is taken. `op` must be zeroed before its first use and not be outstanding; until `done` the
 * poster may still change `err`, to CANCELLED say. For the loop's own thread alone: another one puts its result where
 * a LOOP_READY on an eventfd or pipe finds it. */
void loop_post(struct loop *loop, struct loop_op *op);

/* Adopts a descriptor (made non-blocking, close-on-exec). Takes it also on failure. */
CY_NODISCARD cy_err loop_socket_open(struct loop *loop, int owned_descriptor,
                                     struct loop_socket **socket_out);
/* The same for one that loop_accept gave, which is both already. */
CY_NODISCARD cy_err loop_socket_open_accepted(struct loop *loop, int owned_descriptor,
                                              struct loop_socket **socket_out);
/* The same for one that is closed by somebody else: close only lets go of it. */
CY_NODISCARD cy_err loop_socket_watch(struct loop *loop, int descriptor, struct loop_socket **socket_out);
/* Completes what is outstanding with CANCELLED (from the next turn), closes, clears the pointer. */
void loop_socket_close(struct loop_socket **socket);
int loop_socket_descriptor(const struct loop_socket *socket);
/* True when that is a descriptor of the system's, for splice and the like; a simulator has numbers of its own. */
bool loop_socket_is_system(const struct loop_socket *socket);
/* The other end's (`peer`) or our own; asks the system. `bytes` 0 where there is none. */
void loop_socket_address(const struct loop_socket *socket, bool peer, struct address *address_out);
/* True when nothing was received and the peer has neither sent nor closed: a kept-alive connection that may be used
 * again. Peeks (recv MSG_PEEK) only when readiness is not already known. */
bool loop_socket_is_quiet(struct loop_socket *socket);
/* No more sends: FIN after what was sent. Nothing when that is so already. */
cy_err loop_socket_shutdown_send(struct loop_socket *socket);
/* Close sends RST instead of FIN: the peer must not take what it has for a complete message. */
void loop_socket_abort_on_close(struct loop_socket *socket);

/* Can bytes go from socket to socket in pipes here? Then a receive may allow it, and still get ordinary buffers. */
bool loop_has_pipes(const struct loop *loop);
/* No more than so many pipes, each of two descriptors, at one time; until it is called LIMIT_PIPES, and never more. For
 * whoever shares the descriptors out: what clients need no pipe takes. Pipes that are lent stay so. */
void loop_set_pipes_max(struct loop *loop, uint32_t count);
bool loop_buffer_is_piped(const struct buffer *buffer);

/* At most one receive, one send, one ready outstanding per socket (CHECKed). */
void loop_accept(struct loop_socket *listener, struct loop_accept *accept);
/* There is room now (`room` above), or descriptors again: those that wait need not do so for longer. Harmless when none
 * are kept waiting. */
void loop_accept_again(struct loop_socket *listener);
void loop_connect(struct loop *loop, const struct address *to, struct loop_connect *connect);
/* Cancelling completes with CANCELLED from a later turn; harmless when already complete but not yet delivered. */
void loop_connect_cancel(struct loop *loop, struct loop_connect *connect);
void loop_receive(struct loop_socket *socket, struct loop_receive *receive);
void loop_receive_cancel(struct loop_socket *socket);
void loop_send(struct loop_socket *socket, struct loop_send *send);
void loop_ready(struct loop_socket *socket, struct loop_ready *ready);
void loop_ready_cancel(struct loop_socket *socket);

/* -- listening ------------------------------------------------------------------------------------------- */
/* A bound, listening, non-blocking, close-on-exec descriptor. `share` sets SO_REUSEPORT. ADDRESS_IN_USE, PERMISSION,
 * ... */
CY_NODISCARD cy_err listen_open(const struct address *address, bool share, int backlog, int *descriptor_out);
/* Would this address be free for somebody who does not share it? Binds and lets go; `actual_out` has the port that 0
 * became. ADDRESS_IN_USE when another process listens there, SO_REUSEPORT or not. */
CY_NODISCARD cy_err listen_probe(const struct address *address, struct address *actual_out);
/* Takes one waiting connection, non-blocking and close-on-exec; -1 when there is none now. Never waits. */
CY_NODISCARD cy_err listen_accept(int descriptor, int *connection_out);
CY_NODISCARD cy_err socket_local_address(int descriptor, struct address *address_out);

#endif
