/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_rig.h: what the tests of the loop share: loops of every back end, operations that count
 * their completions, socket pairs, a listener. Each function fails the running test by itself when something goes
 * wrong.
 */
#ifndef CY_TESTS_LOOP_RIG_H
#define CY_TESTS_LOOP_RIG_H

#include "vm/net/loop_internal.h"

#include <check.h>

#ifdef __linux__
#define LOOP_RIG_BACKENDS 2 /* epoll, poll */
#else
#define LOOP_RIG_BACKENDS 1
#endif

/* An operation's owner: counts its completions and notes whether one came inside a submitting call. */
struct loop_rig_op {
    union {
        struct loop_op op;
        struct loop_receive receive;
        struct loop_send send;
        struct loop_ready ready;
        struct loop_connect connect;
    };
    int done_count;
    cy_err err;
    bool *submitting;
    bool done_inside;
};

struct loop_rig_listener {
    struct loop_accept accept;
    struct loop *loop;
    struct loop_socket *socket;
    struct address address;
    struct loop_socket *accepted[128];
    int accepted_count;
    int end_count;
    cy_err end_err;
    int close_after; /* closes the listener from inside `done` */
};

struct loop_rig_timer {
    struct timer timer;
    int fired_count;
    struct loop *loop;
    struct loop_rig_op *submit;
    struct loop_socket *on;
};

/* `which` in 0..LOOP_RIG_BACKENDS - 1. */
struct loop *loop_rig_new(int which);
void loop_rig_done(struct loop_op *op);
/* `submitting` (may be NULL) is true while a submitting call runs. */
void loop_rig_init(struct loop_rig_op *test, bool *submitting);
/* Turns until the counter reaches `wanted`; a test that never gets there fails instead of hanging. */
void loop_rig_turn_until(struct loop *loop, const int *counter, int wanted);
/* A turn that returns also when nothing happens. */
void loop_rig_turn(struct loop *loop);
/* Two connected sockets of the Unix family. */
void loop_rig_pair(struct loop *loop, struct loop_socket **a, struct loop_socket **b);
/* Accepts on 127.0.0.1 with a port of the kernel's choice. */
void loop_rig_listen(struct loop *loop, struct loop_rig_listener *listener);
void loop_rig_unlisten(struct loop *loop, struct loop_rig_listener *listener);
/* A connected pair over TCP on loopback. */
void loop_rig_tcp_pair(struct loop *loop, struct loop_socket **client, struct loop_socket **server);
/* For struct loop_rig_timer: counts, and starts the send when there is one. */
void loop_rig_count_fire(struct timer *timer);
const char *loop_rig_backend_name(int which);

#endif
