/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_cost_test.c: proves, on real sockets and for every back end: a relayed request in the steady
 * state costs four data calls, no empty receive, no registration and no allocation; bulk streams get larger
 * buffers; busy sockets do not starve timers; and every failing allocation is an error, not a crash or a leak.
 */
#include "tests/unit/net/loop_rig.h"

#include "vm/base/mem.h"
#include "vm/net/stream.h"

#include <fcntl.h>
#include <unistd.h>

/* -- the price of a relayed request --------------------------------------------------------------- */

/* client ⇄ (front, back) ⇄ upstream. The ends are plain blocking sockets: all counted calls are the relay's. */
struct loop_rig_relay {
    struct stream *front, *back;
    struct stream_read front_read, back_read;
    struct stream_write front_write, back_write;
    int forwarded_count, answered_count, ended_count;
};
static void relay_pass(struct stream *to, struct stream_read *read, struct stream_write *write,
                       int *ended_count)
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
    struct loop_rig_relay *relay = CY_CONTAINER_OF(read, struct loop_rig_relay, front_read);
    relay_pass(relay->back, read, &relay->back_write, &relay->ended_count);
}
static void relay_on_back_read(struct stream_read *read)
{
    struct loop_rig_relay *relay = CY_CONTAINER_OF(read, struct loop_rig_relay, back_read);
    relay_pass(relay->front, read, &relay->front_write, &relay->ended_count);
}
static void relay_on_back_written(struct stream_write *write)
{
    struct loop_rig_relay *relay = CY_CONTAINER_OF(write, struct loop_rig_relay, back_write);
    ck_assert(!cy_failed(write->err));
    buffer_unref(&relay->front_read.buffer);
    relay->forwarded_count++;
    stream_read_start(relay->front, &relay->front_read);
}
static void relay_on_front_written(struct stream_write *write)
{
    struct loop_rig_relay *relay = CY_CONTAINER_OF(write, struct loop_rig_relay, front_write);
    ck_assert(!cy_failed(write->err));
    buffer_unref(&relay->back_read.buffer);
    relay->answered_count++;
    stream_read_start(relay->back, &relay->back_read);
}

static int relay_blocking_pair(struct loop *loop, struct stream **stream_out)
{
    struct loop_socket *a, *b;
    loop_rig_tcp_pair(loop, &a, &b);
    int descriptor = dup(loop_socket_descriptor(a));
    loop_socket_close(&a);
    fcntl(descriptor, F_SETFL, 0);
    ck_assert(!cy_failed(stream_tcp_new(loop, b, stream_out)));
    return descriptor;
}

START_TEST(test_relayed_request_costs_four_data_calls)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_rig_relay relay = {.front_read.done = relay_on_front_read,
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
        loop_rig_turn_until(loop, &relay.forwarded_count, i + 1);
        ck_assert_int_eq(read(upstream, bytes, sizeof bytes), 18);
        ck_assert_int_eq(write(upstream, "HTTP/1.1 204 \r\n\r\n", 17), 17);
        loop_rig_turn_until(loop, &relay.answered_count, i + 1);
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
    loop_rig_turn_until(loop, &relay.ended_count, 2);
    stream_close(&relay.front);
    stream_close(&relay.back);
    loop_free(&loop);
}
END_TEST

/* A stream that fills its buffers gets larger ones, and small ones again afterwards. */
START_TEST(test_bulk_buffers_for_bulk)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    loop_rig_pair(loop, &a, &b);
    static uint8_t bytes[120000];
    struct loop_rig_op send, receive;
    loop_rig_init(&send, NULL);
    loop_rig_init(&receive, NULL);
    send.send.parts[0] = cy_bytes_of(bytes, sizeof bytes);
    send.send.part_count = 1;
    loop_send(a, &send.send);
    uint32_t capacity_first = 0, capacity_max = 0;
    size_t received_bytes = 0;
    for (int i = 1; received_bytes < sizeof bytes; i++) {
        loop_receive(b, &receive.receive);
        loop_rig_turn_until(loop, &receive.done_count, i);
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
    loop_rig_turn(loop);
    loop_free(&loop);
}
END_TEST

/* Two sockets that always have something to do do not keep a timer from firing. */
struct loop_rig_flood {
    struct loop_rig_op send, receive;
    struct loop_socket *a, *b;
    int count;
    bool stop;
};
static void flood_on_received(struct loop_op *op)
{
    struct loop_rig_flood *flood =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_receive, op), struct loop_rig_flood, receive.receive);
    flood->receive.done_count++;
    buffer_unref(&flood->receive.receive.buffer);
    if (!flood->stop) loop_receive(flood->b, &flood->receive.receive);
}
static void flood_on_sent(struct loop_op *op)
{
    struct loop_rig_flood *flood =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_send, op), struct loop_rig_flood, send.send);
    flood->send.done_count++;
    if (!flood->stop) loop_send(flood->a, &flood->send.send);
}
START_TEST(test_busy_sockets_do_not_starve_timers)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_rig_flood flood = {0};
    loop_rig_pair(loop, &flood.a, &flood.b);
    flood.receive.op.done = flood_on_received;
    flood.send.op.done = flood_on_sent;
    flood.send.send.parts[0] = CY_BYTES("flood");
    flood.send.send.part_count = 1;
    loop_send(flood.a, &flood.send.send);
    loop_receive(flood.b, &flood.receive.receive);
    struct loop_rig_timer test = {.timer.fire = loop_rig_count_fire, .loop = loop};
    loop_timer_set(loop, &test.timer, 5);
    loop_rig_turn_until(loop, &test.fired_count, 1);
    ck_assert_int_gt(flood.send.done_count, 1);
    flood.stop = true;
    loop_socket_close(&flood.a);
    loop_socket_close(&flood.b);
    for (int i = 0; i < 3; i++) loop_rig_turn(loop);
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
        bool failed = cy_failed(loop_new(loop_rig_backend_name(_i), &loop));
        struct loop_socket *a = NULL, *b = NULL;
        struct loop_rig_op send, receive;
        loop_rig_init(&send, NULL);
        loop_rig_init(&receive, NULL);
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
            loop_rig_turn_until(loop, &receive.done_count, 1);
            loop_rig_turn_until(loop, &send.done_count, 1);
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

Suite *unit_suite_net_loop_cost(void);
Suite *unit_suite_net_loop_cost(void)
{
    Suite *suite = suite_create("net/loop_cost");
    TCase *tests = tcase_create("every back end");
    tcase_add_loop_test(tests, test_relayed_request_costs_four_data_calls, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_bulk_buffers_for_bulk, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_busy_sockets_do_not_starve_timers, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_every_failing_allocation_is_an_error, 0, LOOP_RIG_BACKENDS);
    suite_add_tcase(suite, tests);
    return suite;
}
