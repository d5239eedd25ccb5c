/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_rig.c: see loop_rig.h.
 */
#include "tests/unit/net/loop_rig.h"

#include "vm/net/loop_internal.h"

#include <fcntl.h>
#include <sys/socket.h>

#define LOOP_RIG_TURNS_MAX 20000

const char *loop_rig_backend_name(int which)
{
    static const char *const names[] = {
#ifdef __linux__
        "epoll",
#endif
        "poll",
    };
    _Static_assert(CY_COUNT_OF(names) == LOOP_RIG_BACKENDS, "the header counts them too");
    return names[which];
}

struct loop *loop_rig_new(int which)
{
    struct loop *loop = NULL;
    ck_assert(!cy_failed(loop_new(loop_rig_backend_name(which), &loop)));
    ck_assert_str_eq(loop->backend->name, loop_rig_backend_name(which));
    return loop;
}

void loop_rig_done(struct loop_op *op)
{
    struct loop_rig_op *test = (struct loop_rig_op *)op;
    test->done_count++;
    test->err = op->err;
    if (test->submitting && *test->submitting) test->done_inside = true;
}
void loop_rig_init(struct loop_rig_op *test, bool *submitting)
{
    memset(test, 0, sizeof *test);
    test->op.done = loop_rig_done;
    test->submitting = submitting;
}

/* Turns until the counter reaches `wanted`; a test that never gets there fails instead of hanging. */
void loop_rig_turn_until(struct loop *loop, const int *counter, int wanted)
{
    for (int i = 0; *counter < wanted; i++) {
        ck_assert_int_lt(i, LOOP_RIG_TURNS_MAX);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
}

static void loop_rig_ignore_fire(struct timer *timer) { (void)timer; }

/* A turn that returns also when nothing happens. */
void loop_rig_turn(struct loop *loop)
{
    struct timer soon = {.fire = loop_rig_ignore_fire};
    loop_timer_set(loop, &soon, 1);
    ck_assert(!cy_failed(loop_turn(loop)));
    loop_timer_clear(loop, &soon);
}

void loop_rig_pair(struct loop *loop, struct loop_socket **a, struct loop_socket **b)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert(!cy_failed(loop_socket_open(loop, pair[0], a)));
    ck_assert(!cy_failed(loop_socket_open(loop, pair[1], b)));
}

/* -- accepting, for the tests over TCP ------------------------------------------------------------ */

static void loop_rig_on_accept(struct loop_op *op)
{
    struct loop_rig_listener *listener =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_accept, op), struct loop_rig_listener, accept);
    if (cy_failed(op->err)) {
        ck_assert_int_eq(listener->accept.descriptor, -1);
        listener->end_count++;
        listener->end_err = op->err;
        return;
    }
    ck_assert_uint_eq(listener->accept.peer.storage.ss_family, AF_INET);
    int flags = fcntl(listener->accept.descriptor, F_GETFL);
    ck_assert(flags & O_NONBLOCK);
    ck_assert(!cy_failed(loop_socket_open(listener->loop, listener->accept.descriptor,
                                          &listener->accepted[listener->accepted_count])));
    listener->accepted_count++;
    if (listener->accepted_count == listener->close_after) loop_socket_close(&listener->socket);
}
void loop_rig_listen(struct loop *loop, struct loop_rig_listener *listener)
{
    memset(listener, 0, sizeof *listener);
    struct address any;
    ck_assert(!cy_failed(address_from_text(CY_BYTES("127.0.0.1:0"), &any)));
    int descriptor;
    ck_assert(!cy_failed(listen_open(&any, false, 128, &descriptor)));
    ck_assert(!cy_failed(socket_local_address(descriptor, &listener->address)));
    ck_assert_uint_ne(address_port(&listener->address), 0);
    ck_assert(!cy_failed(loop_socket_open(loop, descriptor, &listener->socket)));
    listener->loop = loop;
    listener->accept.op.done = loop_rig_on_accept;
    loop_accept(listener->socket, &listener->accept);
}
void loop_rig_unlisten(struct loop *loop, struct loop_rig_listener *listener)
{
    if (listener->socket) loop_socket_close(&listener->socket);
    loop_rig_turn_until(loop, &listener->end_count, 1);
    ck_assert(cy_is(listener->end_err, CY_ERR_CANCELLED));
}
/* A connected pair over TCP on loopback. */
void loop_rig_tcp_pair(struct loop *loop, struct loop_socket **client, struct loop_socket **server)
{
    struct loop_rig_listener listener;
    loop_rig_listen(loop, &listener);
    struct loop_rig_op connect;
    loop_rig_init(&connect, NULL);
    loop_connect(loop, &listener.address, &connect.connect);
    loop_rig_turn_until(loop, &connect.done_count, 1);
    loop_rig_turn_until(loop, &listener.accepted_count, 1);
    ck_assert(!cy_failed(connect.err));
    *client = connect.connect.socket;
    *server = listener.accepted[0];
    loop_rig_unlisten(loop, &listener);
}

void loop_rig_count_fire(struct timer *timer)
{
    struct loop_rig_timer *test = CY_CONTAINER_OF(timer, struct loop_rig_timer, timer);
    test->fired_count++;
    if (test->submit) loop_send(test->on, &test->submit->send);
}
