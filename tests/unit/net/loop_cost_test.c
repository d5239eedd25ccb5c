/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_cost_test.c: proves, on real sockets and for every back end: a relayed request in the steady
 * state costs four data calls, no empty receive, no registration and no allocation; bulk streams get larger
 * buffers; busy sockets do not starve timers; and every failing allocation is an error, not a crash or a leak.
 */
#include "tests/unit/net/loop_rig.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/tcp.h> /* the C library's struct tcp_info has no tcpi_segs_in */
#endif

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

/* -- the price of a connection's end --------------------------------------------------------------- */

#ifdef __linux__
static uint32_t cost_packets_in(const struct loop_socket *socket)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    memset(&info, 0, sizeof info);
    ck_assert_int_eq(getsockopt(loop_socket_descriptor(socket), IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
    return info.tcpi_segs_in;
}
#else
static uint32_t cost_packets_in(const struct loop_socket *socket)
{
    (void)socket;
    return 0;
}
#endif

/* The last send of a connection and FIN are one packet; both arrive, also when the sender closes with bytes unread. */
START_TEST(test_a_last_send_and_the_end_are_one_packet)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    struct loop_rig_op send, receive, unread;
    loop_rig_tcp_pair(loop, &a, &b);
    loop_rig_init(&send, NULL);
    loop_rig_init(&receive, NULL);
    loop_rig_init(&unread, NULL);
    uint32_t packets = cost_packets_in(b);
    send.send.parts[0] = CY_BYTES("the last");
    send.send.part_count = 1;
    send.send.ends = true;
    loop_send(a, &send.send);
    loop_rig_turn_until(loop, &send.done_count, 1);
    ck_assert(!cy_failed(send.err));
    ck_assert(!send.send.ends); /* for one send */
#ifdef __linux__
    ck_assert_uint_eq(cost_packets_in(b) - packets, 1);
#else
    (void)packets;
#endif
    ck_assert(!cy_failed(loop_socket_shutdown_send(a))); /* it is already; nothing happens */
    unread.send.parts[0] = CY_BYTES("nobody reads this");
    unread.send.part_count = 1;
    loop_send(b, &unread.send);
    loop_rig_turn_until(loop, &unread.done_count, 1);
    loop_socket_close(&a);
    loop_receive(b, &receive.receive);
    loop_rig_turn_until(loop, &receive.done_count, 1);
    ck_assert(!cy_failed(receive.err));
    ck_assert(cy_bytes_equal(buffer_view(receive.receive.buffer), CY_BYTES("the last")));
    buffer_unref(&receive.receive.buffer);
    loop_socket_close(&b);
    loop_rig_turn(loop);
    loop_free(&loop);
}
END_TEST

/* One that the system takes in pieces ends behind its last piece. */
START_TEST(test_a_long_last_send_ends_behind_its_last_byte)
{
    enum { BYTES = 3000000 };
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b;
    struct loop_rig_op send, receive;
    uint8_t *bytes = mem_alloc_zeroed(BYTES);
    loop_rig_pair(loop, &a, &b);
    loop_rig_init(&send, NULL);
    loop_rig_init(&receive, NULL);
    send.send.parts[0] = cy_bytes_of(bytes, BYTES);
    send.send.part_count = 1;
    send.send.ends = true;
    loop_send(a, &send.send);
    size_t received_bytes = 0;
    for (int i = 1;; i++) {
        loop_receive(b, &receive.receive);
        loop_rig_turn_until(loop, &receive.done_count, i);
        ck_assert(!cy_failed(receive.err));
        if (!receive.receive.buffer) break;
        received_bytes += buffer_view(receive.receive.buffer).count;
        buffer_unref(&receive.receive.buffer);
    }
    ck_assert_uint_eq(received_bytes, BYTES);
    loop_rig_turn_until(loop, &send.done_count, 1);
    ck_assert(!cy_failed(send.err));
    ck_assert_uint_gt(loop->counters.sends_blocked, 0);
    loop_socket_close(&a);
    loop_socket_close(&b);
    loop_free(&loop);
    mem_free(bytes);
}
END_TEST

/* -- who is not expected to say anything ----------------------------------------------------------- */

/* It is registered for events only when it has waited a while, so a short wait costs no call; what happens in the
 * meantime is seen then. */
START_TEST(test_an_unhurried_receive_is_registered_late)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_socket *a, *b, *c, *d;
    struct loop_rig_op brief, receive;
    loop_rig_pair(loop, &a, &b);
    loop_rig_pair(loop, &c, &d);
    loop_rig_init(&brief, NULL);
    loop_rig_init(&receive, NULL);
    brief.receive.unhurried = receive.receive.unhurried = true;
    loop_receive(b, &brief.receive);
    loop_receive(d, &receive.receive);
    loop_wake(loop);
    ck_assert(!cy_failed(loop_turn(loop)));
    loop_socket_close(&b);
    loop_rig_turn_until(loop, &brief.done_count, 1);
    ck_assert(cy_is(brief.err, CY_ERR_CANCELLED));
    ck_assert(!brief.receive.unhurried);                                          /* for one receive */
    ck_assert_uint_eq(loop->counters.controls, _i == 0 && LOOP_RIG_BACKENDS > 1); /* epoll's own eventfd */
    loop_socket_close(&c);
    loop_rig_turn_until(loop, &receive.done_count, 1);
    ck_assert(!cy_failed(receive.err));
    ck_assert_ptr_null(receive.receive.buffer); /* the end */
    loop_socket_close(&a);
    loop_socket_close(&d);
    loop_free(&loop);
}
END_TEST

static void cost_allow_descriptors(uint64_t count)
{
    struct rlimit files;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    ck_assert_uint_gt(files.rlim_cur, count + 20);
}

/* As many as there are places, and one more: that one is registered at once, and all are seen. */
START_TEST(test_unhurried_at_and_past_the_limit)
{
    static struct loop_socket *near[LIMIT_LOOP_UNHURRIED + 1], *far[LIMIT_LOOP_UNHURRIED + 1];
    static struct loop_rig_op receives[LIMIT_LOOP_UNHURRIED + 1];
    cost_allow_descriptors(2 * CY_COUNT_OF(near));
    for (int over = 0; over < 2; over++) {
        int pairs = LIMIT_LOOP_UNHURRIED + over;
        struct loop *loop = loop_rig_new(_i);
        uint64_t controls = loop->counters.controls;
        for (int i = 0; i < pairs; i++) {
            loop_rig_pair(loop, &near[i], &far[i]);
            loop_rig_init(&receives[i], NULL);
            receives[i].receive.unhurried = true;
            loop_receive(near[i], &receives[i].receive);
        }
        ck_assert_uint_eq(loop->unhurried_count, LIMIT_LOOP_UNHURRIED);
        ck_assert_uint_eq(loop->counters.controls - controls, over);
        for (int i = 0; i < pairs; i++) loop_socket_close(&far[i]);
        for (int i = 0; i < pairs; i++) {
            loop_rig_turn_until(loop, &receives[i].done_count, 1);
            ck_assert(!cy_failed(receives[i].err));
            loop_socket_close(&near[i]);
        }
        loop_free(&loop);
    }
}
END_TEST

/* As many sends as may wait for each other, and one more: that one is tried at once; all are done. */
START_TEST(test_sends_that_wait_at_and_past_the_limit)
{
    static struct loop_socket *near[LIMIT_LOOP_SENDING + 1], *far[LIMIT_LOOP_SENDING + 1];
    static struct loop_rig_op sends[LIMIT_LOOP_SENDING + 1];
    cost_allow_descriptors(2 * CY_COUNT_OF(near));
    for (int over = 0; over < 2; over++) {
        int pairs = LIMIT_LOOP_SENDING + over;
        struct loop *loop = loop_rig_new(_i);
        for (int i = 0; i < pairs; i++) {
            loop_rig_pair(loop, &near[i], &far[i]);
            loop_rig_init(&sends[i], NULL);
            sends[i].send.parts[0] = CY_BYTES("x");
            sends[i].send.part_count = 1;
        }
        uint64_t before = loop->counters.sends;
        for (int i = 0; i < pairs; i++) loop_send(near[i], &sends[i].send);
        ck_assert_uint_eq(loop->sending_count, LIMIT_LOOP_SENDING);
        ck_assert_uint_eq(loop->counters.sends - before, over);
        for (int i = 0; i < pairs; i++) {
            loop_rig_turn_until(loop, &sends[i].done_count, 1);
            ck_assert(!cy_failed(sends[i].err));
        }
        ck_assert_uint_eq(loop->counters.sends - before, pairs);
        for (int i = 0; i < pairs; i++) {
            loop_socket_close(&near[i]);
            loop_socket_close(&far[i]);
        }
        loop_free(&loop);
    }
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
    tcase_add_loop_test(tests, test_a_last_send_and_the_end_are_one_packet, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_a_long_last_send_ends_behind_its_last_byte, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_an_unhurried_receive_is_registered_late, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_unhurried_at_and_past_the_limit, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_sends_that_wait_at_and_past_the_limit, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_bulk_buffers_for_bulk, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_busy_sockets_do_not_starve_timers, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_every_failing_allocation_is_an_error, 0, LOOP_RIG_BACKENDS);
    suite_add_tcase(suite, tests);
    return suite;
}
