/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_test.c: proves, on real sockets and for every back end: each operation completes exactly once and
 * never inside the submitting call; close cancels; gathered sends survive full send buffers; end, reset and refusal are
 * told apart; and a relayed request in the steady state costs four data calls, no empty receive and no registration.
 */
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"
#include "vm/net/stream.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOOP_TEST_TURNS_MAX 20000

static const char *const loop_test_backends[] = {
#ifdef __linux__
    "epoll",
#endif
    "poll",
};
#define LOOP_TEST_BACKENDS (int)CY_COUNT_OF(loop_test_backends)

static struct loop *loop_test_new(int which)
{
    struct loop *loop = NULL;
    ck_assert(!cy_failed(loop_new(loop_test_backends[which], &loop)));
    ck_assert_str_eq(loop_backend_name(loop), loop_test_backends[which]);
    return loop;
}

/* An operation's owner: counts its completions and notes whether one came inside a submitting call. */
struct loop_test_op {
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
static void loop_test_done(struct loop_op *op)
{
    struct loop_test_op *test = (struct loop_test_op *)op;
    test->done_count++;
    test->err = op->err;
    if (test->submitting && *test->submitting) test->done_inside = true;
}
static void loop_test_init(struct loop_test_op *test, bool *submitting)
{
    memset(test, 0, sizeof *test);
    test->op.done = loop_test_done;
    test->submitting = submitting;
}

/* Turns until the counter reaches `wanted`; a test that never gets there fails instead of hanging. */
static void loop_test_turn_until(struct loop *loop, const int *counter, int wanted)
{
    for (int i = 0; *counter < wanted; i++) {
        ck_assert_int_lt(i, LOOP_TEST_TURNS_MAX);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
}

static void loop_test_ignore_fire(struct timer *timer) { (void)timer; }

/* A turn that returns also when nothing happens. */
static void loop_test_turn(struct loop *loop)
{
    struct timer soon = {.fire = loop_test_ignore_fire};
    loop_timer_set(loop, &soon, 1);
    ck_assert(!cy_failed(loop_turn(loop)));
    loop_timer_clear(loop, &soon);
}

static void loop_test_pair(struct loop *loop, struct loop_socket **a, struct loop_socket **b)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert(!cy_failed(loop_socket_open(loop, pair[0], a)));
    ck_assert(!cy_failed(loop_socket_open(loop, pair[1], b)));
}

/* -- accepting, for the tests over TCP --------------------------------------------------------------------------------- */

struct loop_test_listener {
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
static void loop_test_on_accept(struct loop_op *op)
{
    struct loop_test_listener *listener =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_accept, op), struct loop_test_listener, accept);
    if (cy_failed(op->err)) {
        ck_assert_int_eq(listener->accept.descriptor, -1);
        listener->end_count++;
        listener->end_err = op->err;
        return;
    }
    ck_assert_uint_eq(listener->accept.peer.storage.ss_family, AF_INET);
    int flags = fcntl(listener->accept.descriptor, F_GETFL);
    ck_assert(flags & O_NONBLOCK);
    ck_assert(!cy_failed(
        loop_socket_open(listener->loop, listener->accept.descriptor, &listener->accepted[listener->accepted_count])));
    listener->accepted_count++;
    if (listener->accepted_count == listener->close_after) loop_socket_close(&listener->socket);
}
static void loop_test_listen(struct loop *loop, struct loop_test_listener *listener)
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
    listener->accept.op.done = loop_test_on_accept;
    loop_accept(listener->socket, &listener->accept);
}
static void loop_test_unlisten(struct loop *loop, struct loop_test_listener *listener)
{
    if (listener->socket) loop_socket_close(&listener->socket);
    loop_test_turn_until(loop, &listener->end_count, 1);
    ck_assert(cy_is(listener->end_err, CY_ERR_CANCELLED));
}
/* A connected pair over TCP on loopback. */
static void loop_test_tcp_pair(struct loop *loop, struct loop_socket **client, struct loop_socket **server)
{
    struct loop_test_listener listener;
    loop_test_listen(loop, &listener);
    struct loop_test_op connect;
    loop_test_init(&connect, NULL);
    loop_connect(loop, &listener.address, &connect.connect);
    loop_test_turn_until(loop, &connect.done_count, 1);
    loop_test_turn_until(loop, &listener.accepted_count, 1);
    ck_assert(!cy_failed(connect.err));
    *client = connect.connect.socket;
    *server = listener.accepted[0];
    loop_test_unlisten(loop, &listener);
}

/* -- the tests ------------------------------------------------------------------------------------------------------------ */

START_TEST(test_no_such_backend)
{
    struct loop *loop = NULL;
    ck_assert(cy_is(loop_new("kqueue9", &loop), CY_ERR_UNSUPPORTED));
    ck_assert_ptr_null(loop);
}
END_TEST

START_TEST(test_completions_come_once_and_later)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_pair(loop, &a, &b);
    bool submitting = true;
    struct loop_test_op send, receive;
    loop_test_init(&send, &submitting);
    loop_test_init(&receive, &submitting);
    send.send.parts[0] = CY_BYTES("hel");
    send.send.parts[1] = CY_BYTES("");
    send.send.parts[2] = CY_BYTES("lo");
    send.send.part_count = 3;
    loop_send(a, &send.send);
    loop_receive(b, &receive.receive);
    ck_assert_int_eq(send.done_count, 0);
    ck_assert_int_eq(receive.done_count, 0);
    submitting = false;
    loop_test_turn_until(loop, &receive.done_count, 1);
    loop_test_turn_until(loop, &send.done_count, 1);
    ck_assert_uint_eq(send.send.sent_bytes, 5);
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("hello")));
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 1);
    buffer_unref(&receive.receive.buffer);
    for (int i = 0; i < 3; i++) loop_test_turn(loop);
    ck_assert_int_eq(send.done_count, 1);
    ck_assert_int_eq(receive.done_count, 1);
    ck_assert(!send.done_inside && !receive.done_inside);
    loop_socket_close(&a);
    loop_socket_close(&b);
    ck_assert_ptr_null(a);
    loop_free(&loop);
}
END_TEST

START_TEST(test_idle_receive_holds_no_buffer)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_pair(loop, &a, &b);
    struct loop_test_op receive;
    loop_test_init(&receive, NULL);
    loop_receive(b, &receive.receive);
    loop_test_turn(loop);
    ck_assert_int_eq(receive.done_count, 0);
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 0);
    loop_socket_close(&b);
    loop_test_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_is(receive.err, CY_ERR_CANCELLED));
    ck_assert_ptr_null(receive.receive.buffer);
    loop_socket_close(&a);
    loop_free(&loop);
}
END_TEST

/* Closing turns a receive that is complete but undelivered into a cancelled one, and its buffer goes back. */
START_TEST(test_close_takes_back_what_was_received)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_pair(loop, &a, &b);
    struct loop_test_op send, receive;
    loop_test_init(&send, NULL);
    loop_test_init(&receive, NULL);
    send.send.parts[0] = CY_BYTES("x");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_receive(b, &receive.receive); /* the byte is there: received at once, delivered later */
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 1);
    loop_socket_close(&b);
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 0);
    loop_test_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_is(receive.err, CY_ERR_CANCELLED));
    loop_socket_close(&a);
    loop_test_turn_until(loop, &send.done_count, 1);
    loop_test_turn(loop);
    ck_assert_int_eq(send.done_count, 1);
    ck_assert_int_eq(receive.done_count, 1);
    loop_free(&loop);
}
END_TEST

START_TEST(test_receive_cancel_leaves_the_socket_usable)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_pair(loop, &a, &b);
    struct loop_test_op receive, send;
    loop_test_init(&receive, NULL);
    loop_test_init(&send, NULL);
    loop_receive(b, &receive.receive);
    loop_receive_cancel(b);
    loop_receive_cancel(b); /* harmless */
    loop_test_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_is(receive.err, CY_ERR_CANCELLED));
    loop_receive(b, &receive.receive);
    send.send.parts[0] = CY_BYTES("again");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_test_turn_until(loop, &receive.done_count, 2);
    ck_assert(!cy_failed(receive.err));
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("again")));
    buffer_unref(&receive.receive.buffer);
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_test_turn(loop);
    loop_free(&loop);
}
END_TEST

/* 16 parts of uneven sizes through a small send buffer: progress is kept across many short sends, no byte is lost. */
START_TEST(test_gathered_send_through_a_small_buffer)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_tcp_pair(loop, &a, &b);
    /* Not smaller: below the loopback's segment size TCP waits for delayed acknowledgements, 40 ms each. */
    int small_bytes = 65536;
    setsockopt(loop_socket_descriptor(a), SOL_SOCKET, SO_SNDBUF, &small_bytes, sizeof small_bytes);
    size_t total_bytes = 0;
    static uint8_t bytes[4 << 20];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    struct loop_test_op send, receive;
    loop_test_init(&send, NULL);
    for (uint32_t i = 0; i < LOOP_SEND_PARTS_MAX; i++) {
        size_t count = i % 5 == 2 ? 0 : i % 3 ? 1000 * i + 7 : 400000 + i;
        send.send.parts[i] = cy_bytes_of(bytes + total_bytes, count);
        total_bytes += count;
    }
    ck_assert_uint_le(total_bytes, sizeof bytes);
    send.send.part_count = LOOP_SEND_PARTS_MAX;
    loop_send(a, &send.send);
    size_t received_bytes = 0;
    while (received_bytes < total_bytes) {
        loop_test_init(&receive, NULL);
        loop_receive(b, &receive.receive);
        loop_test_turn_until(loop, &receive.done_count, 1);
        ck_assert(!cy_failed(receive.err));
        ck_assert_ptr_nonnull(receive.receive.buffer);
        cy_bytes view = buffer_view(receive.receive.buffer);
        ck_assert_uint_le(received_bytes + view.count, total_bytes);
        ck_assert(memcmp(view.data, bytes + received_bytes, view.count) == 0);
        received_bytes += view.count;
        buffer_unref(&receive.receive.buffer);
    }
    loop_test_turn_until(loop, &send.done_count, 1);
    ck_assert(!cy_failed(send.err));
    ck_assert_uint_eq(send.send.sent_bytes, total_bytes);
    struct loop_counters counters;
    loop_read_counters(loop, &counters);
    ck_assert_uint_gt(counters.sends_blocked, 0); /* the buffer was really full */
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_free(&loop);
}
END_TEST

START_TEST(test_close_cancels_a_blocked_send)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_pair(loop, &a, &b);
    static uint8_t bytes[8 << 20];
    struct loop_test_op send;
    loop_test_init(&send, NULL);
    send.send.parts[0] = cy_bytes_of(bytes, sizeof bytes);
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_test_turn(loop);
    ck_assert_int_eq(send.done_count, 0);
    loop_socket_close(&a);
    ck_assert_int_eq(send.done_count, 0);
    loop_test_turn_until(loop, &send.done_count, 1);
    ck_assert(cy_is(send.err, CY_ERR_CANCELLED));
    ck_assert_uint_gt(send.send.sent_bytes, 0);
    ck_assert_uint_lt(send.send.sent_bytes, sizeof bytes);
    loop_socket_close(&b);
    loop_free(&loop);
}
END_TEST

/* The last data and the end arrive together: the data first, then OK without a buffer, again and again. */
START_TEST(test_end_after_data)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_tcp_pair(loop, &a, &b);
    struct loop_test_op send, receive;
    loop_test_init(&send, NULL);
    send.send.parts[0] = CY_BYTES("bye");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    ck_assert(!cy_failed(loop_socket_shutdown_send(a)));
    loop_test_turn(loop);
    ck_assert(!loop_socket_is_quiet(b));
    loop_test_init(&receive, NULL);
    loop_receive(b, &receive.receive);
    loop_test_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("bye")));
    buffer_unref(&receive.receive.buffer);
    for (int i = 2; i < 4; i++) {
        loop_receive(b, &receive.receive);
        loop_test_turn_until(loop, &receive.done_count, i);
        ck_assert(!cy_failed(receive.err));
        ck_assert_ptr_null(receive.receive.buffer);
    }
    /* Half-closed: the other direction still works. */
    loop_send(b, &send.send);
    loop_receive(a, &receive.receive);
    loop_test_turn_until(loop, &receive.done_count, 4);
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("bye")));
    buffer_unref(&receive.receive.buffer);
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_test_turn(loop);
    loop_free(&loop);
}
END_TEST

START_TEST(test_abort_is_seen_as_reset)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_tcp_pair(loop, &a, &b);
    struct loop_test_op receive;
    loop_test_init(&receive, NULL);
    loop_receive(b, &receive.receive);
    loop_test_turn(loop);
    loop_socket_abort_on_close(a);
    loop_socket_close(&a);
    loop_test_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_is(receive.err, CY_ERR_RESET));
    ck_assert_ptr_null(receive.receive.buffer);
    ck_assert(!loop_socket_is_quiet(b));
    loop_socket_close(&b);
    loop_free(&loop);
}
END_TEST

START_TEST(test_send_to_a_closed_peer_fails_without_a_signal)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_pair(loop, &a, &b);
    loop_socket_close(&b);
    struct loop_test_op send;
    loop_test_init(&send, NULL);
    send.send.parts[0] = CY_BYTES("x");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_test_turn_until(loop, &send.done_count, 1);
    ck_assert(cy_is(send.err, CY_ERR_CLOSED) || cy_is(send.err, CY_ERR_RESET));
    loop_socket_close(&a);
    loop_free(&loop);
}
END_TEST

START_TEST(test_connect_refused)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_test_listener listener;
    loop_test_listen(loop, &listener);
    struct address address = listener.address;
    loop_test_unlisten(loop, &listener); /* now nobody listens there */
    struct loop_test_op connect;
    bool submitting = true;
    loop_test_init(&connect, &submitting);
    loop_connect(loop, &address, &connect.connect);
    submitting = false;
    loop_test_turn_until(loop, &connect.done_count, 1);
    ck_assert(cy_is(connect.err, CY_ERR_REFUSED));
    ck_assert_ptr_null(connect.connect.socket);
    ck_assert(!connect.done_inside);
    loop_free(&loop);
}
END_TEST

START_TEST(test_connect_cancel)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_test_listener listener;
    loop_test_listen(loop, &listener);
    struct loop_test_op connect;
    loop_test_init(&connect, NULL);
    loop_connect(loop, &listener.address, &connect.connect);
    loop_connect_cancel(loop, &connect.connect);
    loop_connect_cancel(loop, &connect.connect);
    loop_test_turn_until(loop, &connect.done_count, 1);
    ck_assert(cy_is(connect.err, CY_ERR_CANCELLED));
    ck_assert_ptr_null(connect.connect.socket);
    loop_connect_cancel(loop, &connect.connect); /* after the fact: nothing */
    loop_test_turn(loop);
    ck_assert_int_eq(connect.done_count, 1);
    for (int i = 0; i < listener.accepted_count; i++) loop_socket_close(&listener.accepted[i]);
    listener.accepted_count = 0;
    loop_test_unlisten(loop, &listener);
    for (int i = 0; i < listener.accepted_count; i++) loop_socket_close(&listener.accepted[i]);
    loop_free(&loop);
}
END_TEST

START_TEST(test_accept_many)
{
    enum { COUNT = 100 };
    struct loop *loop = loop_test_new(_i);
    struct loop_test_listener listener;
    loop_test_listen(loop, &listener);
    static struct loop_test_op connects[COUNT];
    for (int i = 0; i < COUNT; i++) {
        loop_test_init(&connects[i], NULL);
        loop_connect(loop, &listener.address, &connects[i].connect);
    }
    loop_test_turn_until(loop, &listener.accepted_count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        loop_test_turn_until(loop, &connects[i].done_count, 1);
        ck_assert(!cy_failed(connects[i].err));
        loop_socket_close(&connects[i].connect.socket);
        loop_socket_close(&listener.accepted[i]);
    }
    ck_assert_int_eq(listener.end_count, 0);
    loop_test_unlisten(loop, &listener);
    ck_assert_int_eq(listener.end_count, 1);
    loop_free(&loop);
}
END_TEST

START_TEST(test_listener_closed_inside_its_own_completion)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_test_listener listener;
    loop_test_listen(loop, &listener);
    listener.close_after = 1;
    struct loop_test_op connects[3];
    for (int i = 0; i < 3; i++) {
        loop_test_init(&connects[i], NULL);
        loop_connect(loop, &listener.address, &connects[i].connect);
    }
    loop_test_turn_until(loop, &listener.end_count, 1);
    ck_assert_int_eq(listener.accepted_count, 1);
    ck_assert_ptr_null(listener.socket);
    for (int i = 0; i < 3; i++) {
        loop_test_turn_until(loop, &connects[i].done_count, 1);
        if (connects[i].connect.socket) loop_socket_close(&connects[i].connect.socket);
    }
    loop_socket_close(&listener.accepted[0]);
    ck_assert_int_eq(listener.end_count, 1);
    loop_free(&loop);
}
END_TEST

/* Out of descriptors: accepting pauses instead of spinning, and goes on when there are some again. */
START_TEST(test_accept_pauses_when_descriptors_run_out)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_test_listener listener;
    loop_test_listen(loop, &listener);
    struct loop_test_op connect;
    loop_test_init(&connect, NULL);
    loop_connect(loop, &listener.address, &connect.connect);
    struct rlimit before, none;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct loop_counters counters;
    for (int i = 0; i < 1000; i++) {
        loop_test_turn(loop);
        loop_read_counters(loop, &counters);
        if (counters.accept_pauses > 0) break;
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_uint_eq(counters.accept_pauses, 1);
    uint64_t waits_before = counters.waits;
    loop_test_turn_until(loop, &listener.accepted_count, 1);
    loop_read_counters(loop, &counters);
    ck_assert_uint_lt(counters.waits - waits_before, 20);
    loop_test_turn_until(loop, &connect.done_count, 1);
    loop_socket_close(&connect.connect.socket);
    loop_socket_close(&listener.accepted[0]);
    loop_test_unlisten(loop, &listener);
    loop_free(&loop);
}
END_TEST

START_TEST(test_quiet)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_tcp_pair(loop, &a, &b);
    ck_assert(loop_socket_is_quiet(a));
    ck_assert(loop_socket_is_quiet(b));
    struct loop_test_op send;
    loop_test_init(&send, NULL);
    send.send.parts[0] = CY_BYTES("x");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_test_turn(loop);
    ck_assert(!loop_socket_is_quiet(b));
    ck_assert(loop_socket_is_quiet(a));
    loop_socket_close(&b);
    loop_test_turn(loop);
    loop_test_turn(loop);
    ck_assert(!loop_socket_is_quiet(a));
    loop_socket_close(&a);
    loop_free(&loop);
}
END_TEST

/* A descriptor that somebody else reads: asked anew each time, and closing it here leaves it open there. */
START_TEST(test_ready_on_a_watched_descriptor)
{
    struct loop *loop = loop_test_new(_i);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    struct loop_socket *socket;
    ck_assert(!cy_failed(loop_socket_watch(loop, ends[0], &socket)));
    struct loop_test_op ready;
    loop_test_init(&ready, NULL);
    ready.ready.want_read = true;
    loop_ready(socket, &ready.ready);
    loop_test_turn(loop);
    ck_assert_int_eq(ready.done_count, 0);
    ck_assert_int_eq(write(ends[1], "ab", 2), 2);
    loop_test_turn_until(loop, &ready.done_count, 1);
    ck_assert(ready.ready.can_read && !ready.ready.can_write);
    uint8_t byte;
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    loop_ready(socket, &ready.ready); /* one byte is left: ready at once, though nothing new arrived */
    loop_test_turn_until(loop, &ready.done_count, 2);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    loop_ready(socket, &ready.ready);
    loop_test_turn(loop);
    ck_assert_int_eq(ready.done_count, 2);
    loop_ready_cancel(socket);
    loop_test_turn_until(loop, &ready.done_count, 3);
    ck_assert(cy_is(ready.err, CY_ERR_CANCELLED));
    loop_socket_close(&socket);
    ck_assert_int_eq(write(ends[1], "c", 1), 1);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    loop_free(&loop);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* A connection's client can be watched for its end without holding a buffer. */
START_TEST(test_ready_on_an_owned_socket_tells_of_the_end)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_tcp_pair(loop, &a, &b);
    struct loop_test_op ready;
    loop_test_init(&ready, NULL);
    ck_assert(loop_socket_is_quiet(b)); /* peeks, so that readiness is known */
    ready.ready.want_read = true;
    loop_ready(b, &ready.ready);
    loop_test_turn(loop);
    ck_assert_int_eq(ready.done_count, 0);
    loop_socket_close(&a);
    loop_test_turn_until(loop, &ready.done_count, 1);
    ck_assert(ready.ready.can_read);
    ck_assert(!loop_socket_is_quiet(b));
    loop_socket_close(&b);
    loop_free(&loop);
}
END_TEST

struct loop_test_timer {
    struct timer timer;
    int fired_count;
    struct loop *loop;
    struct loop_test_op *submit;
    struct loop_socket *on;
};
static void loop_test_count_fire(struct timer *timer)
{
    struct loop_test_timer *test = CY_CONTAINER_OF(timer, struct loop_test_timer, timer);
    test->fired_count++;
    if (test->submit) loop_send(test->on, &test->submit->send);
}

START_TEST(test_timers_fire_in_turns_and_may_submit)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_pair(loop, &a, &b);
    struct loop_test_op send;
    loop_test_init(&send, NULL);
    send.send.parts[0] = CY_BYTES("t");
    send.send.part_count = 1;
    struct loop_test_timer test = {.timer.fire = loop_test_count_fire, .loop = loop, .submit = &send, .on = a};
    uint64_t begin_ms = loop_now_ms(loop);
    loop_timer_set(loop, &test.timer, 30);
    loop_test_turn_until(loop, &send.done_count, 1);
    ck_assert_int_eq(test.fired_count, 1);
    ck_assert_uint_ge(loop_now_ms(loop), begin_ms + 30);
    ck_assert(!timer_is_set(&test.timer));
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_free(&loop);
}
END_TEST

static bool loop_test_hook(void *context)
{
    int *count = context;
    return ++*count < 5;
}
START_TEST(test_hook_asks_for_turns_and_wake_ends_a_wait)
{
    struct loop *loop = loop_test_new(_i);
    int count = 0;
    loop_set_hook(loop, loop_test_hook, &count);
    loop_wake(loop);
    for (int i = 0; i < 5; i++) ck_assert(!cy_failed(loop_turn(loop))); /* the last four do not wait */
    ck_assert_int_eq(count, 5);
    loop_wake(loop);
    loop_wake(loop);
    ck_assert(!cy_failed(loop_turn(loop)));
    loop_stop(loop);
    ck_assert(!cy_failed(loop_run(loop)));
    ck_assert_int_gt(loop_wall_seconds(loop), 1600000000);
    loop_free(&loop);
}
END_TEST

/* -- the price of a relayed request ------------------------------------------------------------------------------------- */

/* client ⇄ (front, back) ⇄ upstream. The two ends are plain blocking sockets, so that all counted calls are the relay's. */
struct loop_test_relay {
    struct stream *front, *back;
    struct stream_read front_read, back_read;
    struct stream_write front_write, back_write;
    int forwarded_count, answered_count, ended_count;
};
static void relay_pass(struct stream *to, struct stream_read *read, struct stream_write *write, int *ended_count)
{
    ck_assert(!cy_failed(read->err));
    if (!read->buffer) {
        ++*ended_count;
        return;
    }
    write->send.parts[0] = buffer_view(read->buffer);
    write->send.part_count = 1;
    write->send.more = false;
    stream_write_start(to, write);
}
static void relay_on_front_read(struct stream_read *read)
{
    struct loop_test_relay *relay = CY_CONTAINER_OF(read, struct loop_test_relay, front_read);
    relay_pass(relay->back, read, &relay->back_write, &relay->ended_count);
}
static void relay_on_back_read(struct stream_read *read)
{
    struct loop_test_relay *relay = CY_CONTAINER_OF(read, struct loop_test_relay, back_read);
    relay_pass(relay->front, read, &relay->front_write, &relay->ended_count);
}
static void relay_on_back_written(struct stream_write *write)
{
    struct loop_test_relay *relay = CY_CONTAINER_OF(write, struct loop_test_relay, back_write);
    ck_assert(!cy_failed(write->err));
    buffer_unref(&relay->front_read.buffer);
    relay->forwarded_count++;
    stream_read_start(relay->front, &relay->front_read);
}
static void relay_on_front_written(struct stream_write *write)
{
    struct loop_test_relay *relay = CY_CONTAINER_OF(write, struct loop_test_relay, front_write);
    ck_assert(!cy_failed(write->err));
    buffer_unref(&relay->back_read.buffer);
    relay->answered_count++;
    stream_read_start(relay->back, &relay->back_read);
}

static int relay_blocking_pair(struct loop *loop, struct stream **stream_out)
{
    struct loop_socket *a, *b;
    loop_test_tcp_pair(loop, &a, &b);
    int descriptor = dup(loop_socket_descriptor(a));
    loop_socket_close(&a);
    fcntl(descriptor, F_SETFL, 0);
    ck_assert(!cy_failed(stream_tcp_new(loop, b, stream_out)));
    return descriptor;
}

START_TEST(test_relayed_request_costs_four_data_calls)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_test_relay relay = {.front_read.done = relay_on_front_read,
                                    .back_read.done = relay_on_back_read,
                                    .front_write.done = relay_on_front_written,
                                    .back_write.done = relay_on_back_written};
    int client = relay_blocking_pair(loop, &relay.front), upstream = relay_blocking_pair(loop, &relay.back);
    stream_read_start(relay.front, &relay.front_read);
    stream_read_start(relay.back, &relay.back_read);
    struct loop_counters before = {0}, after;
    uint64_t allocations_before = 0;
    enum { WARM = 10, REQUESTS = 200 };
    char bytes[256];
    for (int i = 0; i < WARM + REQUESTS; i++) {
        if (i == WARM) {
            loop_read_counters(loop, &before);
            allocations_before = mem_allocation_count();
        }
        ck_assert_int_eq(write(client, "GET / HTTP/1.1\r\n\r\n", 18), 18);
        loop_test_turn_until(loop, &relay.forwarded_count, i + 1);
        ck_assert_int_eq(read(upstream, bytes, sizeof bytes), 18);
        ck_assert_int_eq(write(upstream, "HTTP/1.1 204 \r\n\r\n", 17), 17);
        loop_test_turn_until(loop, &relay.answered_count, i + 1);
        ck_assert_int_eq(read(client, bytes, sizeof bytes), 17);
    }
    loop_read_counters(loop, &after);
    ck_assert_uint_eq(after.receives - before.receives, 2 * REQUESTS);
    ck_assert_uint_eq(after.sends - before.sends, 2 * REQUESTS);
    ck_assert_uint_eq(after.receives_empty - before.receives_empty, 0);
    ck_assert_uint_eq(after.sends_blocked - before.sends_blocked, 0);
    ck_assert_uint_eq(after.controls - before.controls, 0);
    ck_assert_uint_eq(mem_allocation_count() - allocations_before, 0);
    close(client);
    close(upstream);
    loop_test_turn_until(loop, &relay.ended_count, 2);
    stream_close(&relay.front);
    stream_close(&relay.back);
    loop_free(&loop);
}
END_TEST

/* A stream that fills its buffers gets larger ones, and small ones again afterwards. */
START_TEST(test_bulk_buffers_for_bulk)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_socket *a, *b;
    loop_test_pair(loop, &a, &b);
    static uint8_t bytes[120000];
    struct loop_test_op send, receive;
    loop_test_init(&send, NULL);
    loop_test_init(&receive, NULL);
    send.send.parts[0] = cy_bytes_of(bytes, sizeof bytes);
    send.send.part_count = 1;
    loop_send(a, &send.send);
    uint32_t capacity_first = 0, capacity_max = 0;
    size_t received_bytes = 0;
    for (int i = 1; received_bytes < sizeof bytes; i++) {
        loop_receive(b, &receive.receive);
        loop_test_turn_until(loop, &receive.done_count, i);
        uint32_t capacity = receive.receive.buffer->capacity;
        if (i == 1) capacity_first = capacity;
        if (capacity > capacity_max) capacity_max = capacity;
        received_bytes += buffer_view(receive.receive.buffer).count;
        buffer_unref(&receive.receive.buffer);
    }
    ck_assert_uint_eq(capacity_first, 16384);
    ck_assert_uint_eq(capacity_max, 65536);
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_test_turn(loop);
    loop_free(&loop);
}
END_TEST

/* Two sockets that always have something to do do not keep a timer from firing. */
struct loop_test_flood {
    struct loop_test_op send, receive;
    struct loop_socket *a, *b;
    int count;
    bool stop;
};
static void flood_on_received(struct loop_op *op)
{
    struct loop_test_flood *flood = CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_receive, op), struct loop_test_flood,
                                                    receive.receive);
    flood->receive.done_count++;
    buffer_unref(&flood->receive.receive.buffer);
    if (!flood->stop) loop_receive(flood->b, &flood->receive.receive);
}
static void flood_on_sent(struct loop_op *op)
{
    struct loop_test_flood *flood =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_send, op), struct loop_test_flood, send.send);
    flood->send.done_count++;
    if (!flood->stop) loop_send(flood->a, &flood->send.send);
}
START_TEST(test_busy_sockets_do_not_starve_timers)
{
    struct loop *loop = loop_test_new(_i);
    struct loop_test_flood flood = {0};
    loop_test_pair(loop, &flood.a, &flood.b);
    flood.receive.op.done = flood_on_received;
    flood.send.op.done = flood_on_sent;
    flood.send.send.parts[0] = CY_BYTES("flood");
    flood.send.send.part_count = 1;
    loop_send(flood.a, &flood.send.send);
    loop_receive(flood.b, &flood.receive.receive);
    struct loop_test_timer test = {.timer.fire = loop_test_count_fire, .loop = loop};
    loop_timer_set(loop, &test.timer, 5);
    loop_test_turn_until(loop, &test.fired_count, 1);
    ck_assert_int_gt(flood.send.done_count, 1);
    flood.stop = true;
    loop_socket_close(&flood.a);
    loop_socket_close(&flood.b);
    for (int i = 0; i < 3; i++) loop_test_turn(loop);
    loop_free(&loop);
}
END_TEST

/* Failing allocations anywhere in set-up and traffic are errors, not crashes or leaks. */
START_TEST(test_every_failing_allocation_is_an_error)
{
    for (uint64_t fail_after = 0;; fail_after++) {
        ck_assert_uint_lt(fail_after, 200);
        struct loop *loop = NULL;
        mem_fail_after(fail_after);
        bool failed = cy_failed(loop_new(loop_test_backends[_i], &loop));
        struct loop_socket *a = NULL, *b = NULL;
        struct loop_test_op send, receive;
        loop_test_init(&send, NULL);
        loop_test_init(&receive, NULL);
        if (!failed) {
            int pair[2];
            ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
            failed |= cy_failed(loop_socket_open(loop, pair[0], &a));
            failed |= cy_failed(loop_socket_open(loop, pair[1], &b));
        }
        if (!failed) {
            send.send.parts[0] = CY_BYTES("x");
            send.send.part_count = 1;
            loop_receive(b, &receive.receive);
            loop_send(a, &send.send);
            loop_test_turn_until(loop, &receive.done_count, 1);
            loop_test_turn_until(loop, &send.done_count, 1);
            failed |= cy_failed(receive.err);
            buffer_unref(&receive.receive.buffer);
        }
        mem_fail_never();
        if (a) loop_socket_close(&a);
        if (b) loop_socket_close(&b);
        loop_free(&loop);
        if (!failed) break;
    }
}
END_TEST

Suite *unit_suite_net_loop(void);
Suite *unit_suite_net_loop(void)
{
    Suite *suite = suite_create("net/loop");
    TCase *tests = tcase_create("every back end");
    tcase_add_test(tests, test_no_such_backend);
    tcase_add_loop_test(tests, test_completions_come_once_and_later, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_idle_receive_holds_no_buffer, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_close_takes_back_what_was_received, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_receive_cancel_leaves_the_socket_usable, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_gathered_send_through_a_small_buffer, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_close_cancels_a_blocked_send, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_end_after_data, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_abort_is_seen_as_reset, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_send_to_a_closed_peer_fails_without_a_signal, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_connect_refused, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_connect_cancel, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_accept_many, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_listener_closed_inside_its_own_completion, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_accept_pauses_when_descriptors_run_out, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_quiet, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_ready_on_a_watched_descriptor, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_ready_on_an_owned_socket_tells_of_the_end, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_timers_fire_in_turns_and_may_submit, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_hook_asks_for_turns_and_wake_ends_a_wait, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_relayed_request_costs_four_data_calls, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_bulk_buffers_for_bulk, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_busy_sockets_do_not_starve_timers, 0, LOOP_TEST_BACKENDS);
    tcase_add_loop_test(tests, test_every_failing_allocation_is_an_error, 0, LOOP_TEST_BACKENDS);
    suite_add_tcase(suite, tests);
    return suite;
}

#undef LOOP_TEST_TURNS_MAX
#undef LOOP_TEST_BACKENDS
