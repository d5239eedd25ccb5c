/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/stream_test.c: proves, over the simulated network and over the loopback pair, that a stream
 * delivers every byte once and in order whatever the sizes of reads and writes, ends cleanly, and that a broken
 * network leaves no operation undelivered and no buffer lent. One seed is one run; a failing one is named.
 */
#include "tests/support/loop_sim.h"
#include "tests/support/loopback.h"
#include "vm/net/loop_internal.h"
#include "vm/net/stream.h"

#include <check.h>

enum { STREAM_TEST_BYTES = 300000, STREAM_TEST_TURNS_MAX = 2000000 };

static uint8_t stream_test_byte(size_t index) { return (uint8_t)(index * 2654435761u >> 11); }

/* A sender and a checking receiver at the two ends of a stream pair. */
struct stream_test_end {
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    uint8_t *bytes;
    size_t sent_bytes, received_bytes;
    int open_operations;
    bool ended, failed;
};
static void stream_test_send_next(struct stream_test_end *end)
{
    size_t left = STREAM_TEST_BYTES - end->sent_bytes;
    if (left == 0) {
        stream_shutdown_write(end->stream);
        return;
    }
    uint32_t count = 1 + (uint32_t)(end->sent_bytes % 5);
    size_t offset = end->sent_bytes;
    for (uint32_t i = 0; i < count; i++) {
        size_t part = cy_min_size(left, 1 + (end->sent_bytes * 37 + i * 911) % 9000);
        end->write.send.parts[i] = cy_bytes_of(end->bytes + offset, part);
        offset += part;
        left -= part;
    }
    end->write.send.part_count = count;
    end->open_operations++;
    stream_write_start(end->stream, &end->write);
}
static void stream_test_on_written(struct stream_write *write)
{
    struct stream_test_end *end = CY_CONTAINER_OF(write, struct stream_test_end, write);
    end->open_operations--;
    if (cy_failed(write->err)) {
        end->failed = true;
        return;
    }
    end->sent_bytes += write->send.sent_bytes;
    if (end->stream) stream_test_send_next(end);
}
static void stream_test_receive_next(struct stream_test_end *end)
{
    end->open_operations++;
    stream_read_start(end->stream, &end->read);
}
static void stream_test_on_read(struct stream_read *read)
{
    struct stream_test_end *end = CY_CONTAINER_OF(read, struct stream_test_end, read);
    end->open_operations--;
    if (cy_failed(read->err)) {
        ck_assert_ptr_null(read->buffer);
        end->failed = true;
        return;
    }
    if (!read->buffer) {
        end->ended = true;
        return;
    }
    cy_bytes view = buffer_view(read->buffer);
    ck_assert_uint_gt(view.count, 0);
    bool equal = true; /* one assertion for all: each is a write to Check's pipe */
    for (size_t i = 0; i < view.count; i++)
        equal &= view.data[i] == stream_test_byte(end->received_bytes + i);
    ck_assert(equal);
    end->received_bytes += view.count;
    buffer_unref(&read->buffer);
    if (end->stream) stream_test_receive_next(end);
}

static void stream_test_begin(struct stream_test_end *sender, struct stream_test_end *receiver)
{
    static uint8_t bytes[STREAM_TEST_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = stream_test_byte(i);
    sender->bytes = bytes;
    sender->write.done = stream_test_on_written;
    receiver->read.done = stream_test_on_read;
    stream_test_send_next(sender);
    stream_test_receive_next(receiver);
}
static void stream_test_finish(struct loop *loop, struct stream_test_end *sender,
                               struct stream_test_end *receiver)
{
    stream_close(&sender->stream);
    stream_close(&receiver->stream);
    for (int i = 0; i < 10 && (loop->complete_first || i < 3); i++) {
        loop_wake(loop);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    ck_assert_int_eq(sender->open_operations, 0);
    ck_assert_int_eq(receiver->open_operations, 0);
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 0);
    loop_free(&loop);
}

static void stream_test_sim_pair(struct loop *loop, struct loop_sim *sim, struct stream **a,
                                 struct stream **b)
{
    int x, y;
    struct loop_socket *socket;
    loop_sim_pair(sim, &x, &y);
    ck_assert(!cy_failed(loop_socket_open(loop, x, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(loop, socket, a)));
    ck_assert(!cy_failed(loop_socket_open(loop, y, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(loop, socket, b)));
}

START_TEST(test_every_byte_over_the_simulator)
{
    struct loop_sim_options options = {.seed = (uint64_t)_i, .pieces = true, .reorder = true};
    options.window_bytes = _i % 3 == 0 ? 700 : 65536;
    struct loop *loop;
    struct loop_sim *sim;
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    struct stream_test_end sender = {0}, receiver = {0};
    stream_test_sim_pair(loop, sim, &sender.stream, &receiver.stream);
    stream_test_begin(&sender, &receiver);
    for (int i = 0; !receiver.ended; i++) {
        if (i > STREAM_TEST_TURNS_MAX || cy_failed(loop_turn(loop)))
            ck_abort_msg("seed %d hangs after %zu bytes", _i, receiver.received_bytes);
    }
    ck_assert_uint_eq(receiver.received_bytes, STREAM_TEST_BYTES);
    ck_assert(!sender.failed && !receiver.failed);
    stream_test_finish(loop, &sender, &receiver);
}
END_TEST

START_TEST(test_broken_network_leaves_nothing_behind)
{
    struct loop_sim_options options = {
        .seed = (uint64_t)_i, .pieces = true, .reorder = true, .resets_per_million = 3000};
    struct loop *loop;
    struct loop_sim *sim;
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    struct stream_test_end sender = {0}, receiver = {0};
    stream_test_sim_pair(loop, sim, &sender.stream, &receiver.stream);
    stream_test_begin(&sender, &receiver);
    uint64_t close_at = loop_sim_random(sim, 600); /* or the owner gives up first */
    for (uint64_t i = 0; i < close_at && !receiver.ended && !receiver.failed; i++)
        ck_assert_msg(!cy_failed(loop_turn(loop)), "seed %d hangs", _i);
    stream_test_finish(loop, &sender, &receiver);
}
END_TEST

static void stream_test_ignore_fire(struct timer *timer) { (void)timer; }
static void stream_test_note(struct loop_op *op) { (void)op; }
struct stream_test_accept {
    struct loop_accept accept;
    struct loop *loop;
    int accepted_count;
    int ended_count;
};
static void stream_test_on_accept(struct loop_op *op)
{
    struct stream_test_accept *test =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_accept, op), struct stream_test_accept, accept);
    if (cy_failed(op->err)) {
        test->ended_count++;
        return;
    }
    struct loop_socket *socket;
    ck_assert(!cy_failed(loop_socket_open(test->loop, test->accept.descriptor, &socket)));
    test->accepted_count++;
    loop_socket_close(&socket);
}

START_TEST(test_simulated_listener_and_clock)
{
    struct loop_sim_options options = {.seed = 5, .reorder = true};
    struct loop *loop;
    struct loop_sim *sim;
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    struct address address, nobody;
    ck_assert(!cy_failed(address_from_text(CY_BYTES("192.0.2.7:80"), &address)));
    ck_assert(!cy_failed(address_from_text(CY_BYTES("192.0.2.7:81"), &nobody)));
    struct loop_socket *listener;
    ck_assert(!cy_failed(loop_socket_open(loop, loop_sim_listen(sim, &address), &listener)));
    struct stream_test_accept test = {.accept.op.done = stream_test_on_accept, .loop = loop};
    loop_accept(listener, &test.accept);
    struct loop_connect good = {.op.done = stream_test_note}, bad = {.op.done = stream_test_note};
    loop_connect(loop, &address, &good);
    loop_connect(loop, &nobody, &bad);
    while (!good.socket || test.accepted_count == 0 || !cy_failed(bad.op.err))
        ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert(cy_is(bad.op.err, CY_ERR_REFUSED));
    loop_socket_close(&good.socket);
    loop_socket_close(&listener);
    while (test.ended_count == 0) ck_assert(!cy_failed(loop_turn(loop)));
    /* A minute passes in a few waits; without any timer a wait that could never end says so. */
    struct timer minute = {.fire = stream_test_ignore_fire};
    uint64_t begin_ms = loop_now_ms(loop);
    loop_timer_set(loop, &minute, 60000);
    for (int i = 0; timer_is_set(&minute); i++) {
        ck_assert_int_lt(i, 10);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    ck_assert_uint_ge(loop_now_ms(loop), begin_ms + 60000);
    ck_assert(cy_is(loop_turn(loop), CY_ERR_TIMEOUT));
    loop_free(&loop);
}
END_TEST

START_TEST(test_every_byte_over_the_loopback)
{
    static const size_t chunks[] = {0, 64, 1000, 4096};
    struct loop *loop;
    ck_assert(!cy_failed(loop_new("poll", &loop)));
    struct stream_test_end sender = {0}, receiver = {0};
    ck_assert(!cy_failed(loopback_pair(loop, chunks[_i], &sender.stream, &receiver.stream)));
    stream_test_begin(&sender, &receiver);
    for (int i = 0; !receiver.ended; i++) {
        if (i > STREAM_TEST_TURNS_MAX || cy_failed(loop_turn(loop))) ck_abort_msg("hangs");
    }
    ck_assert_uint_eq(receiver.received_bytes, STREAM_TEST_BYTES);
    ck_assert(!stream_is_quiet(receiver.stream)); /* ended */
    stream_test_finish(loop, &sender, &receiver);
}
END_TEST

START_TEST(test_loopback_close_and_abort)
{
    struct loop *loop;
    ck_assert(!cy_failed(loop_new("poll", &loop)));
    struct stream_test_end a = {.read.done = stream_test_on_read}, b = {.read.done = stream_test_on_read};
    ck_assert(!cy_failed(loopback_pair(loop, 0, &a.stream, &b.stream)));
    ck_assert(stream_is_quiet(a.stream));
    stream_test_receive_next(&a);
    stream_test_receive_next(&b);
    stream_abort_on_close(a.stream);
    stream_close(&a.stream);
    for (int i = 0; i < 3; i++) {
        loop_wake(loop);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    ck_assert(cy_is(a.read.err, CY_ERR_CANCELLED));
    ck_assert(cy_is(b.read.err, CY_ERR_RESET));
    stream_test_finish(loop, &a, &b);
}
END_TEST

Suite *unit_suite_net_stream(void);
Suite *unit_suite_net_stream(void)
{
    Suite *suite = suite_create("net/stream");
    TCase *tests = tcase_create("streams");
    tcase_add_loop_test(tests, test_every_byte_over_the_simulator, 0, 24);
    tcase_add_loop_test(tests, test_broken_network_leaves_nothing_behind, 0, 100);
    tcase_add_test(tests, test_simulated_listener_and_clock);
    tcase_add_loop_test(tests, test_every_byte_over_the_loopback, 0, 4);
    tcase_add_test(tests, test_loopback_close_and_abort);
    suite_add_tcase(suite, tests);
    return suite;
}
