/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_test.c: proves, on real sockets and for every back end: each operation completes exactly
 * once and never inside the submitting call; close cancels; gathered sends survive full send buffers; end and
 * reset are told apart; watched descriptors, timers, the hook and the wake-up do as loop.h says.
 */
#include "tests/unit/net/loop_rig.h"
#include "vm/base/limits.h"

#include <signal.h>
#include <unistd.h>

START_TEST(test_no_such_backend)
{
    struct loop *loop = NULL;
    ck_assert(cy_is(loop_new("kqueue9", &loop), CY_ERR_UNSUPPORTED));
    ck_assert_ptr_null(loop);
}
END_TEST

START_TEST(test_completions_come_once_and_later)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_pair(loop, &a, &b);
    bool submitting = true;
    struct loop_rig_op send, receive;
    loop_rig_init(&send, &submitting);
    loop_rig_init(&receive, &submitting);
    send.send.parts[0] = CY_BYTES("hel");
    send.send.parts[1] = CY_BYTES("");
    send.send.parts[2] = CY_BYTES("lo");
    send.send.part_count = 3;
    loop_send(a, &send.send);
    loop_receive(b, &receive.receive);
    ck_assert_int_eq(send.done_count, 0);
    ck_assert_int_eq(receive.done_count, 0);
    submitting = false;
    loop_rig_turn_until(loop, &receive.done_count, 1);
    loop_rig_turn_until(loop, &send.done_count, 1);
    ck_assert_uint_eq(send.send.sent_bytes, 5);
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("hello")));
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 1);
    buffer_unref(&receive.receive.buffer);
    for (int i = 0; i < 3; i++) loop_rig_turn(loop);
    ck_assert_int_eq(send.done_count, 1);
    ck_assert_int_eq(receive.done_count, 1);
    ck_assert(!send.done_inside && !receive.done_inside);
    loop_socket_close(&a);
    loop_socket_close(&b);
    ck_assert_ptr_null(a);
    loop_free(&loop);
}
END_TEST

/* Posts itself again until it has been delivered `posts_left` times more. */
struct loop_test_post {
    struct loop_op op;
    struct loop *loop;
    int done_count, posts_left;
    bool inside, posting;
};
static void loop_test_on_post(struct loop_op *op)
{
    struct loop_test_post *post = CY_CONTAINER_OF(op, struct loop_test_post, op);
    post->done_count++;
    if (post->posting) post->inside = true;
    if (post->posts_left-- <= 0) return;
    post->posting = true;
    loop_post(post->loop, op);
    post->posting = false;
}

START_TEST(test_a_posted_op_completes_once_later_and_without_waiting)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_test_post first = {.op.done = loop_test_on_post, .loop = loop, .posting = true};
    struct loop_test_post second = {
        .op.done = loop_test_on_post, .loop = loop, .posts_left = LIMIT_LOOP_ROUNDS + 3};
    first.op.err = CY_ERR(RESET);
    loop_post(loop,
              &first.op); /* outside a turn: no timer and no wake-up is needed, or the turn would hang */
    loop_post(loop, &second.op);
    first.posting = false;
    ck_assert_int_eq(first.done_count, 0);
    ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert_int_eq(first.done_count, 1);
    ck_assert(!first.inside && !second.inside);
    ck_assert(cy_is(first.op.err, CY_ERR_RESET)); /* as it was posted */
    /* What posts itself again is held off at the end of the turn's rounds, and goes on in the next turn. */
    ck_assert_int_eq(second.done_count, LIMIT_LOOP_ROUNDS);
    ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert_int_eq(second.done_count, LIMIT_LOOP_ROUNDS + 4);
    /* On its way it may still turn into something else. */
    first.op.err = CY_OK;
    loop_post(loop, &first.op);
    first.op.err = CY_ERR(CANCELLED);
    ck_assert(!cy_failed(loop_flush(loop)));
    ck_assert_int_eq(first.done_count, 2);
    ck_assert(cy_is(first.op.err, CY_ERR_CANCELLED));
    loop_free(&loop);
}
END_TEST

START_TEST(test_posting_an_outstanding_op_aborts)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_test_post post = {.op.done = loop_test_on_post, .loop = loop};
    loop_post(loop, &post.op);
    loop_post(loop, &post.op);
}
END_TEST

START_TEST(test_idle_receive_holds_no_buffer)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_pair(loop, &a, &b);
    struct loop_rig_op receive;
    loop_rig_init(&receive, NULL);
    loop_receive(b, &receive.receive);
    loop_rig_turn(loop);
    ck_assert_int_eq(receive.done_count, 0);
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 0);
    loop_socket_close(&b);
    loop_rig_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_is(receive.err, CY_ERR_CANCELLED));
    ck_assert_ptr_null(receive.receive.buffer);
    loop_socket_close(&a);
    loop_free(&loop);
}
END_TEST

/* Closing turns a receive that is complete but undelivered into a cancelled one, and its buffer goes back. */
START_TEST(test_close_takes_back_what_was_received)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_pair(loop, &a, &b);
    struct loop_rig_op send, receive;
    loop_rig_init(&send, NULL);
    loop_rig_init(&receive, NULL);
    send.send.parts[0] = CY_BYTES("x");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    ck_assert(!cy_failed(loop_socket_shutdown_send(a))); /* what was submitted goes first */
    loop_receive(b, &receive.receive); /* the byte is there: received at once, delivered later */
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 1);
    loop_socket_close(&b);
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 0);
    loop_rig_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_is(receive.err, CY_ERR_CANCELLED));
    loop_socket_close(&a);
    loop_rig_turn_until(loop, &send.done_count, 1);
    loop_rig_turn(loop);
    ck_assert_int_eq(send.done_count, 1);
    ck_assert_int_eq(receive.done_count, 1);
    loop_free(&loop);
}
END_TEST

START_TEST(test_receive_cancel_leaves_the_socket_usable)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_pair(loop, &a, &b);
    struct loop_rig_op receive, send;
    loop_rig_init(&receive, NULL);
    loop_rig_init(&send, NULL);
    loop_receive(b, &receive.receive);
    loop_receive_cancel(b);
    loop_receive_cancel(b); /* harmless */
    loop_rig_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_is(receive.err, CY_ERR_CANCELLED));
    loop_receive(b, &receive.receive);
    send.send.parts[0] = CY_BYTES("again");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_rig_turn_until(loop, &receive.done_count, 2);
    ck_assert(!cy_failed(receive.err));
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("again")));
    buffer_unref(&receive.receive.buffer);
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_rig_turn(loop);
    loop_free(&loop);
}
END_TEST

/* 16 parts of uneven sizes through a small send buffer: progress is kept across many short sends, no byte is lost. */
START_TEST(test_gathered_send_through_a_small_buffer)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_tcp_pair(loop, &a, &b);
    /* Not smaller: below the loopback's segment size TCP waits for delayed acknowledgements, 40 ms each. */
    int small_bytes = 65536;
    setsockopt(loop_socket_descriptor(a), SOL_SOCKET, SO_SNDBUF, &small_bytes, sizeof small_bytes);
    size_t total_bytes = 0;
    static uint8_t bytes[4 << 20];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    struct loop_rig_op send, receive;
    loop_rig_init(&send, NULL);
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
        loop_rig_init(&receive, NULL);
        loop_receive(b, &receive.receive);
        loop_rig_turn_until(loop, &receive.done_count, 1);
        ck_assert(!cy_failed(receive.err));
        ck_assert_ptr_nonnull(receive.receive.buffer);
        cy_bytes view = buffer_view(receive.receive.buffer);
        ck_assert_uint_le(received_bytes + view.count, total_bytes);
        ck_assert(memcmp(view.data, bytes + received_bytes, view.count) == 0);
        received_bytes += view.count;
        buffer_unref(&receive.receive.buffer);
    }
    loop_rig_turn_until(loop, &send.done_count, 1);
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
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_pair(loop, &a, &b);
    static uint8_t bytes[8 << 20];
    struct loop_rig_op send;
    loop_rig_init(&send, NULL);
    send.send.parts[0] = cy_bytes_of(bytes, sizeof bytes);
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_rig_turn(loop);
    ck_assert_int_eq(send.done_count, 0);
    loop_socket_close(&a);
    ck_assert_int_eq(send.done_count, 0);
    loop_rig_turn_until(loop, &send.done_count, 1);
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
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_tcp_pair(loop, &a, &b);
    struct loop_rig_op send, receive;
    loop_rig_init(&send, NULL);
    send.send.parts[0] = CY_BYTES("bye");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    ck_assert(!cy_failed(loop_socket_shutdown_send(a)));
    loop_rig_turn(loop);
    ck_assert(!loop_socket_is_quiet(b));
    loop_rig_init(&receive, NULL);
    loop_receive(b, &receive.receive);
    loop_rig_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("bye")));
    buffer_unref(&receive.receive.buffer);
    for (int i = 2; i < 4; i++) {
        loop_receive(b, &receive.receive);
        loop_rig_turn_until(loop, &receive.done_count, i);
        ck_assert(!cy_failed(receive.err));
        ck_assert_ptr_null(receive.receive.buffer);
    }
    /* Half-closed: the other direction still works. */
    loop_send(b, &send.send);
    loop_receive(a, &receive.receive);
    loop_rig_turn_until(loop, &receive.done_count, 4);
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("bye")));
    buffer_unref(&receive.receive.buffer);
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_rig_turn(loop);
    loop_free(&loop);
}
END_TEST

START_TEST(test_abort_is_seen_as_reset)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_tcp_pair(loop, &a, &b);
    struct loop_rig_op receive;
    loop_rig_init(&receive, NULL);
    loop_receive(b, &receive.receive);
    loop_rig_turn(loop);
    loop_socket_abort_on_close(a);
    loop_socket_close(&a);
    loop_rig_turn_until(loop, &receive.done_count, 1);
    ck_assert(cy_is(receive.err, CY_ERR_RESET));
    ck_assert_ptr_null(receive.receive.buffer);
    ck_assert(!loop_socket_is_quiet(b));
    loop_socket_close(&b);
    loop_free(&loop);
}
END_TEST

START_TEST(test_send_to_a_closed_peer_fails_without_a_signal)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_pair(loop, &a, &b);
    loop_socket_close(&b);
    struct loop_rig_op send;
    loop_rig_init(&send, NULL);
    send.send.parts[0] = CY_BYTES("x");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_rig_turn_until(loop, &send.done_count, 1);
    ck_assert(cy_is(send.err, CY_ERR_CLOSED) || cy_is(send.err, CY_ERR_RESET));
    loop_socket_close(&a);
    loop_free(&loop);
}
END_TEST

START_TEST(test_quiet)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_tcp_pair(loop, &a, &b);
    ck_assert(loop_socket_is_quiet(a));
    ck_assert(loop_socket_is_quiet(b));
    struct loop_rig_op send;
    loop_rig_init(&send, NULL);
    send.send.parts[0] = CY_BYTES("x");
    send.send.part_count = 1;
    loop_send(a, &send.send);
    loop_rig_turn(loop);
    ck_assert(!loop_socket_is_quiet(b));
    ck_assert(loop_socket_is_quiet(a));
    loop_socket_close(&b);
    loop_rig_turn(loop);
    loop_rig_turn(loop);
    ck_assert(!loop_socket_is_quiet(a));
    loop_socket_close(&a);
    loop_free(&loop);
}
END_TEST

/* A descriptor that somebody else reads: asked anew each time, and closing it here leaves it open there. */
START_TEST(test_ready_on_a_watched_descriptor)
{
    struct loop *loop = loop_rig_new(_i);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    struct loop_socket *socket;
    ck_assert(!cy_failed(loop_socket_watch(loop, ends[0], &socket)));
    struct loop_rig_op ready;
    loop_rig_init(&ready, NULL);
    ready.ready.want_read = true;
    loop_ready(socket, &ready.ready);
    loop_rig_turn(loop);
    ck_assert_int_eq(ready.done_count, 0);
    ck_assert_int_eq(write(ends[1], "ab", 2), 2);
    loop_rig_turn_until(loop, &ready.done_count, 1);
    ck_assert(ready.ready.can_read && !ready.ready.can_write);
    uint8_t byte;
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    loop_ready(socket, &ready.ready); /* one byte is left: ready at once, though nothing new arrived */
    loop_rig_turn_until(loop, &ready.done_count, 2);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    loop_ready(socket, &ready.ready);
    loop_rig_turn(loop);
    ck_assert_int_eq(ready.done_count, 2);
    loop_ready_cancel(socket);
    loop_rig_turn_until(loop, &ready.done_count, 3);
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
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_tcp_pair(loop, &a, &b);
    struct loop_rig_op ready;
    loop_rig_init(&ready, NULL);
    ck_assert(loop_socket_is_quiet(b)); /* peeks, so that readiness is known */
    ready.ready.want_read = true;
    loop_ready(b, &ready.ready);
    loop_rig_turn(loop);
    ck_assert_int_eq(ready.done_count, 0);
    loop_socket_close(&a);
    loop_rig_turn_until(loop, &ready.done_count, 1);
    ck_assert(ready.ready.can_read);
    ck_assert(!loop_socket_is_quiet(b));
    loop_socket_close(&b);
    loop_free(&loop);
}
END_TEST

START_TEST(test_timers_fire_in_turns_and_may_submit)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_pair(loop, &a, &b);
    struct loop_rig_op send;
    loop_rig_init(&send, NULL);
    send.send.parts[0] = CY_BYTES("t");
    send.send.part_count = 1;
    struct loop_rig_timer test = {.timer.fire = loop_rig_count_fire, .loop = loop, .submit = &send, .on = a};
    uint64_t begin_ms = loop_now_ms(loop);
    loop_timer_set(loop, &test.timer, 30);
    loop_rig_turn_until(loop, &send.done_count, 1);
    ck_assert_int_eq(test.fired_count, 1);
    ck_assert_uint_ge(loop_now_ms(loop), begin_ms + 30);
    ck_assert(!timer_is_set(&test.timer));
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_free(&loop);
}
END_TEST

static bool loop_rig_hook(void *context)
{
    int *count = context;
    return ++*count < 5;
}
START_TEST(test_hook_asks_for_turns_and_wake_ends_a_wait)
{
    struct loop *loop = loop_rig_new(_i);
    int count = 0;
    loop_set_hook(loop, loop_rig_hook, &count);
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

Suite *unit_suite_net_loop(void);
Suite *unit_suite_net_loop(void)
{
    Suite *suite = suite_create("net/loop");
    TCase *tests = tcase_create("every back end");
    tcase_add_test(tests, test_no_such_backend);
    tcase_add_loop_test(tests, test_completions_come_once_and_later, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_a_posted_op_completes_once_later_and_without_waiting, 0,
                        LOOP_RIG_BACKENDS);
    tcase_add_loop_test_raise_signal(tests, test_posting_an_outstanding_op_aborts, SIGABRT, 0,
                                     LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_idle_receive_holds_no_buffer, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_close_takes_back_what_was_received, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_receive_cancel_leaves_the_socket_usable, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_gathered_send_through_a_small_buffer, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_close_cancels_a_blocked_send, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_end_after_data, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_abort_is_seen_as_reset, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_send_to_a_closed_peer_fails_without_a_signal, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_quiet, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_ready_on_a_watched_descriptor, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_ready_on_an_owned_socket_tells_of_the_end, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_timers_fire_in_turns_and_may_submit, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_hook_asks_for_turns_and_wake_ends_a_wait, 0, LOOP_RIG_BACKENDS);
    suite_add_tcase(suite, tests);
    return suite;
}
