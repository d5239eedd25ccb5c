/* SPDX-License-Identifier: MIT
 *
 * vm/net/loop_internal.h: what loop.c, its back ends and the tests' simulator share.
 *
 * A back end moves bytes and says when a socket may be tried again; loop.c decides when to try, keeps the operations
 * and delivers completions. All system calls on sockets pass through struct loop_backend, so that the simulator can
 * stand in.
 *
 * Readiness of an owned stream socket is edge-triggered, in three bits:
 *
 *     readable     a receive is worth trying. Set at accept and by events; cleared by an empty receive, and by a
 *                  short one (the socket is drained) unless the peer has closed: its end produces no second event.
 *     writable     a send is worth trying. Set at accept, connect and by events; cleared by a send that took less
 *     than all. registered   the back end watches this socket. Done once, the first time an operation has to wait.
 *
 * Listeners are level-triggered (accepting stops before the queue is known to be empty). Watched descriptors of
 * others are armed for one event each time somebody waits.
 */
#ifndef CY_NET_LOOP_INTERNAL_H
#define CY_NET_LOOP_INTERNAL_H

#include "vm/base/limits.h"
#include "vm/base/spare.h"
#include "vm/net/loop.h"

#include <sys/types.h>
#include <sys/uio.h>

#define LOOP_EVENT_READ 1u
#define LOOP_EVENT_WRITE 2u
#define LOOP_EVENT_PEER_CLOSED 4u /* the peer will send no more */
#define LOOP_EVENT_ERROR 8u       /* error or both directions closed: every try will say what it is */

struct loop_listener;
struct stream_info;

/* loop_pipe.c */
struct loop_pipe {
    struct loop_pipe *next; /* in the pool */
    struct loop *loop;
    uint32_t left_bytes; /* in it */
    /* for the back end */
    int read_end, write_end;
    uint8_t *bytes;
    uint32_t begin;
};

struct loop_socket {
    struct loop *loop;
    int descriptor;
    uint32_t index;             /* in loop->slots, for events of back ends */
    uint32_t generation;        /* moves on at close: an event of an earlier life is recognised */
    uint32_t undelivered_count; /* completed operations that wait for delivery */
    uint32_t backend_index;     /* for the back end */
    bool open;
    bool owned;
    bool registered;
    bool readable;
    bool writable;
    bool peer_closed;
    bool abort_on_close;
    bool send_waits; /* `send` was not tried yet: it is in the loop's batch */
    bool send_shut;  /* FIN is with the system */
    bool bulk;       /* the last receive filled its buffer */
    bool no_pipes;   /* its kind cannot be received from into a pipe */
    struct loop_receive *receive;
    struct loop_send *send;
    struct loop_ready *ready;
    struct loop_connect *connect;
    struct loop_accept *accept;
    struct loop_listener *listener; /* with `accept`: pause and batch size */
    struct loop_socket *next;       /* free list */
};

/* Results of calls: >= 0, or -errno. `state` is what `open` made. */
struct loop_backend {
    const char *name;
    /* Sockets without an operation are watched too: a registered socket that is not readable is known to be quiet. */
    bool watches_idle;
    bool is_system; /* descriptors are the operating system's own */
    cy_err (*open)(struct loop *loop, void *context, void **state_out);
    void (*close)(void *state);
    uint64_t (*clock_ns)(void *state); /* monotonic, above 0 */
    int64_t (*wall_ms)(void *state);
    /* A descriptor that comes from outside: non-blocking, close-on-exec. */
    cy_err (*adopt)(void *state, int descriptor);
    /* Reports events through loop_on_event. -1: no time limit. */
    cy_err (*wait)(void *state, int timeout_ms);
    void (*wake)(void *state);                                /* from signal handlers and other threads too */
    cy_err (*watch)(void *state, struct loop_socket *socket); /* sets registered */
    cy_err (*arm)(void *state,
                  struct loop_socket *socket); /* a descriptor of others: one event for socket->ready */
    void (*unwatch)(void *state, struct loop_socket *socket, bool closing);
    ssize_t (*receive)(void *state, struct loop_socket *socket, void *room, size_t bytes);
    ssize_t (*peek)(void *state, struct loop_socket *socket);
    ssize_t (*send)(void *state, struct loop_socket *socket, const struct iovec *parts, int part_count,
                    bool more);
    /* NULL: nothing to do. Before the first accept. */
    void (*prepare_listener)(void *state, struct loop_socket *listener);
    int (*accept)(void *state, struct loop_socket *listener, struct address *peer_out); /* a descriptor */
    /* The descriptor, connecting or connected: either way an event tells. */
    int (*connect)(void *state, const struct address *to);
    int (*connect_result)(void *state, struct loop_socket *socket); /* 0 or -errno, after an ERROR event */
    int (*shutdown_send)(void *state, struct loop_socket *socket);
    /* NULL: sockets of this back end have no addresses. `bytes` 0: this one has none. */
    void (*address)(void *state, const struct loop_socket *socket, bool peer, struct address *address_out);
    void (*close_descriptor)(void *state, struct loop_socket *socket); /* honours abort_on_close */
    /* NULL, all four: no pipes here. A receive into an empty pipe, of at most LIMIT_PIPE_BYTES, that says -EAGAIN
     * only when the socket has nothing and -EINVAL when that kind of socket cannot; less than `bytes` says nothing.
     * A send that took less is tried again until -EAGAIN. Neither changes left_bytes. */
    int (*pipe_open)(void *state, struct loop_pipe *pipe);
    void (*pipe_close)(void *state, struct loop_pipe *pipe);
    ssize_t (*pipe_in)(void *state, struct loop_socket *from, struct loop_pipe *pipe, size_t bytes);
    ssize_t (*pipe_out)(void *state, struct loop_socket *to, struct loop_pipe *pipe, size_t bytes);
};

/* What the loop did since it was opened; tests hold these to the design's numbers. */
struct loop_counters {
    uint64_t receives;       /* receive calls */
    uint64_t receives_empty; /* ... that found nothing */
    uint64_t sends;          /* send calls */
    uint64_t sends_blocked;  /* ... that took less than all */
    uint64_t waits;          /* waits of the back end */
    uint64_t controls;       /* registrations and changes to them */
    uint64_t piped;          /* ... and receives into a pipe, counted as receives too */
    uint64_t peeks;
    uint64_t accepts;       /* accept calls */
    uint64_t accepts_empty; /* ... that found nothing */
    uint64_t accept_pauses; /* times accepting stopped because descriptors or memory ran out */
};

#define LOOP_BLOCK_BYTES 136
struct loop_block {
    struct loop_block *next;
};

struct loop {
    const struct loop_backend *backend;
    void *state;
    struct buffer_pool *buffers;
    struct timer_wheel *wheel;
    struct spare_watch spares; /* lists of this thread that hold more than at rest */
    struct timer spares_timer; /* trims them */
    uint64_t now_ms, turn_ns;
    uint64_t skipped_ns; /* what tests let the clock go ahead of the system's */
    int64_t wall_seconds;
    struct loop_op *complete_first; /* completed, not yet delivered, in order of completion */
    struct loop_op *complete_last;
    struct loop_socket **slots; /* every socket struct there is; never freed before the loop */
    uint32_t slot_count;
    uint32_t slot_capacity;
    uint32_t open_count; /* sockets open, or closed with completions outstanding */
    struct loop_socket *free_sockets;
    struct loop_block *free_blocks;
    struct stream_info *stream_info; /* stream.c: where a stream shows itself; NULL before the first */
    struct loop_pipe *free_pipes;
    uint32_t free_pipe_count;
    uint32_t pipe_count; /* lent and pooled */
    uint32_t pipe_count_max;
    uint64_t pipes_paused_ms; /* no new ones until then: the system had none */
    struct loop_counters counters;
    bool (*hook)(void *context);
    void *hook_context;
    bool turn_again;
    bool stopping;
    bool in_turn;
    /* Sends that were submitted and not yet tried. They are tried behind the delivery or hook that submitted them. */
    uint32_t sending_count;
    struct loop_sending {
        uint32_t index, generation;
    } sending[LIMIT_LOOP_SENDING];
    /* Receives of sockets that are registered later, oldest first, in a ring. What has ended meanwhile stays in it. */
    struct timer unhurried_timer;
    uint32_t unhurried_first, unhurried_count;
    struct loop_unhurried {
        uint32_t index, generation;
        uint64_t due_ms;
    } unhurried[LIMIT_LOOP_UNHURRIED];
};

/* A loop on a given back end; `context` goes to its `open`. */
CY_NODISCARD cy_err loop_new_on(const struct loop_backend *backend, void *context, struct loop **loop_out);
/* For tests, outside of a turn: from now on it is so much later, so that what is due by then fires in the next turn
 * without a wait. The wall clock stays. */
void loop_skip_ms(struct loop *loop, uint64_t ms);
/* For back ends, from inside `wait`: notes what the events say and tries the operations that wait for it. */
void loop_on_event(struct loop_socket *socket, unsigned events);
/* For loop.c: takes a completed operation out of its socket and tells its owner. */
void loop_op_deliver(struct loop *loop, struct loop_op *op);
/* For loop.c: tries the sends that were submitted since the last time. */
void loop_send_batch(struct loop *loop);
/* For loop.c: registers the sockets that have waited long enough. */
void loop_on_unhurried(struct timer *timer);
/* The socket that an event names; NULL when it has been closed since. */
struct loop_socket *loop_socket_at(struct loop *loop, uint32_t index, uint32_t generation);
void loop_read_counters(const struct loop *loop, struct loop_counters *counters_out);

/* Blocks of LOOP_BLOCK_BYTES for the small objects of connections; kept for the next one, given to the system with
 * the loop. NULL: no memory. */
CY_NODISCARD void *loop_block_take(struct loop *loop);
void loop_block_give(struct loop *loop, void *block);

/* -- loop_system.c: the calls of real sockets, shared by the real back ends ------------------------------ */
uint64_t loop_system_clock_ns(void *state);
int64_t loop_system_wall_ms(void *state);
cy_err loop_system_adopt(void *state, int descriptor);
ssize_t loop_system_receive(void *state, struct loop_socket *socket, void *room, size_t bytes);
ssize_t loop_system_peek(void *state, struct loop_socket *socket);
ssize_t loop_system_send(void *state, struct loop_socket *socket, const struct iovec *parts, int part_count,
                         bool more);
void loop_system_prepare_listener(void *state, struct loop_socket *listener);
int loop_system_accept(void *state, struct loop_socket *listener, struct address *peer_out);
int loop_system_connect(void *state, const struct address *to);
int loop_system_connect_result(void *state, struct loop_socket *socket);
int loop_system_pipe_open(void *state, struct loop_pipe *pipe);
void loop_system_pipe_close(void *state, struct loop_pipe *pipe);
ssize_t loop_system_pipe_in(void *state, struct loop_socket *from, struct loop_pipe *pipe, size_t bytes);
ssize_t loop_system_pipe_out(void *state, struct loop_socket *to, struct loop_pipe *pipe, size_t bytes);
int loop_system_shutdown_send(void *state, struct loop_socket *socket);
void loop_system_address(void *state, const struct loop_socket *socket, bool peer,
                         struct address *address_out);
void loop_system_close_descriptor(void *state, struct loop_socket *socket);
#ifdef __linux__
#define LOOP_SYSTEM_PIPES                                                     \
    .pipe_open = loop_system_pipe_open, .pipe_close = loop_system_pipe_close, \
    .pipe_in = loop_system_pipe_in, .pipe_out = loop_system_pipe_out
#else
#define LOOP_SYSTEM_PIPES .pipe_open = NULL
#endif
#define LOOP_SYSTEM_CALLS                                                                             \
    .is_system = true, .adopt = loop_system_adopt, .address = loop_system_address,                    \
    .clock_ns = loop_system_clock_ns, .wall_ms = loop_system_wall_ms, .receive = loop_system_receive, \
    .peek = loop_system_peek, .send = loop_system_send, .accept = loop_system_accept,                 \
    .prepare_listener = loop_system_prepare_listener, .connect = loop_system_connect,                 \
    .connect_result = loop_system_connect_result, .shutdown_send = loop_system_shutdown_send,         \
    .close_descriptor = loop_system_close_descriptor, LOOP_SYSTEM_PIPES

/* -- loop_pipe.c -- */
CY_NODISCARD struct loop_pipe *loop_pipe_take(struct loop *loop); /* empty; NULL: none to be had */
void loop_pipe_give(struct loop_pipe *pipe);
/* A buffer of what is in the pipe, which is the buffer's from here on. NULL when there is no memory. */
CY_NODISCARD struct buffer *loop_pipe_wrap(struct loop_pipe *pipe);
struct loop_pipe *loop_pipe_of(const struct buffer *piped_buffer);
void loop_pipes_free(struct loop *loop);
/* The system has no descriptor for somebody who waits: pipes that nobody uses give theirs, and none are made for
 * LIMIT_PIPES_PAUSE_MS. True when there were any: try again. */
bool loop_pipes_spare(struct loop *loop);

/* Non-blocking and close-on-exec. */
CY_NODISCARD cy_err loop_system_prepare(int descriptor);

#ifdef __linux__
extern const struct loop_backend loop_backend_epoll;
#endif
extern const struct loop_backend loop_backend_poll;

#endif
