/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/stream_test.c: proves, over the simulated network and over the loopback pair, that a stream
 * delivers every byte once and in order whatever the sizes of reads and writes, ends cleanly, and that a broken
 * network leaves no operation undelivered and no buffer lent; that bytes pushed back come first, that being ready
 * comes later, and that a stream knows who is at its ends. One seed is one run; a failing one is named.
 */
#include "tests/support/loop_sim.h"
#include "tests/support/loopback.h"
#include "tests/unit/net/loop_rig.h"
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
    ck_assert(!stream_has_come(a.stream));
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

/* -- what all streams share ------------------------------------------------------------------------------ */

struct stream_test_ready {
    struct stream_ready ready;
    int done_count;
};
static void stream_test_on_ready(struct stream_ready *ready)
{
    CY_CONTAINER_OF(ready, struct stream_test_ready, ready)->done_count++;
}

/* Loops and pairs of the three kinds: the simulator, the loopback, TCP on 127.0.0.1. */
static struct loop *stream_test_pair(int kind, struct stream **a, struct stream **b)
{
    struct loop_sim_options options = {.seed = 11};
    struct loop *loop;
    struct loop_sim *sim;
    if (kind == 0) {
        ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
        stream_test_sim_pair(loop, sim, a, b);
    } else if (kind == 1) {
        ck_assert(!cy_failed(loop_new("poll", &loop)));
        ck_assert(!cy_failed(loopback_pair(loop, 0, a, b)));
    } else {
        struct loop_socket *client, *server;
        loop = loop_rig_new(kind - 2);
        loop_rig_tcp_pair(loop, &client, &server);
        ck_assert(!cy_failed(stream_tcp_new(loop, client, a)));
        ck_assert(!cy_failed(stream_tcp_new(loop, server, b)));
    }
    return loop;
}
enum { STREAM_TEST_KINDS = 2 + LOOP_RIG_BACKENDS };

static void stream_test_close_pair(struct loop *loop, struct stream *a, struct stream *b)
{
    stream_close(&a);
    stream_close(&b);
    for (int i = 0; i < 3; i++) {
        loop_wake(loop);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 0);
    loop_free(&loop);
}

START_TEST(test_ready_comes_later_and_close_cancels_it)
{
    struct stream *a, *b;
    struct loop *loop = stream_test_pair(_i, &a, &b);
    struct stream_test_ready ready = {.ready.done = stream_test_on_ready};
    struct stream_test_ready cut = {.ready.done = stream_test_on_ready};
    stream_ready_start(a, &ready.ready);
    stream_ready_start(b, &cut.ready);
    ck_assert_int_eq(ready.done_count, 0);
    stream_close(&b);
    while (ready.done_count + cut.done_count < 2) ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert(!cy_failed(ready.ready.err));
    ck_assert(cy_is(cut.ready.err, CY_ERR_CANCELLED));
    ck_assert_int_eq(ready.done_count, 1);
    stream_ready_start(a, &ready.ready); /* asked again, it says so again */
    while (ready.done_count < 2) ck_assert(!cy_failed(loop_turn(loop)));
    stream_test_close_pair(loop, a, b);
}
END_TEST

struct stream_test_text {
    struct stream_read read;
    int done_count;
};
static void stream_test_on_text(struct stream_read *read)
{
    CY_CONTAINER_OF(read, struct stream_test_text, read)->done_count++;
}
static struct buffer *stream_test_buffer(struct loop *loop, cy_bytes text)
{
    struct buffer *buffer = buffer_take(loop_buffers(loop));
    if (text.count) memcpy(buffer->data, text.data, text.count);
    buffer->end = (uint32_t)text.count;
    return buffer;
}

START_TEST(test_unread_bytes_come_first_and_later)
{
    struct stream *a, *b;
    struct loop *loop = stream_test_pair(_i, &a, &b);
    struct stream_test_end sender = {.write.done = stream_test_on_written};
    struct stream_test_text text = {.read.done = stream_test_on_text};
    sender.write.send.parts[0] = CY_BYTES("PROXY ... GET /");
    sender.write.send.part_count = 1;
    sender.open_operations = 1;
    stream_write_start(a, &sender.write);
    stream_read_start(b, &text.read);
    while (text.done_count < 1) ck_assert(!cy_failed(loop_turn(loop)));
    struct buffer *buffer = text.read.buffer;
    buffer->begin += sizeof "PROXY ... " - 1;
    stream_unread(b, buffer);
    ck_assert(!stream_is_quiet(b));
    ck_assert(stream_has_come(b));
    stream_read_start(b, &text.read);
    ck_assert_int_eq(text.done_count, 1); /* never from inside the call */
    while (text.done_count < 2) ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert_ptr_eq(text.read.buffer, buffer); /* the very buffer */
    ck_assert(cy_bytes_equal(buffer_view(buffer), CY_BYTES("GET /")));
    buffer_unref(&text.read.buffer);
    /* Nothing pushed back is nothing to read. */
    stream_unread(b, stream_test_buffer(loop, CY_BYTES_NONE));
    ck_assert_ptr_null(b->unread);
    stream_shutdown_write(a);
    stream_read_start(b, &text.read);
    while (text.done_count < 3) ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert_ptr_null(text.read.buffer);
    ck_assert(!cy_failed(text.read.err));
    while (sender.open_operations) ck_assert(!cy_failed(loop_turn(loop)));
    stream_test_close_pair(loop, a, b);
}
END_TEST

/* Closed with bytes pushed back, and closed while they are on their way to a read. */
START_TEST(test_close_gives_unread_bytes_back)
{
    struct stream *a, *b;
    struct loop *loop = stream_test_pair(_i, &a, &b);
    struct stream_test_text text = {.read.done = stream_test_on_text};
    stream_unread(a, stream_test_buffer(loop, CY_BYTES("left")));
    stream_unread(b, stream_test_buffer(loop, CY_BYTES("right")));
    stream_read_start(b, &text.read);
    stream_read_cancel(b); /* it is complete already */
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 2);
    stream_close(&a);
    stream_close(&b);
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(loop)), 0);
    while (text.done_count < 1) ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert(cy_is(text.read.err, CY_ERR_CANCELLED));
    ck_assert_ptr_null(text.read.buffer);
    stream_test_close_pair(loop, a, b);
}
END_TEST

START_TEST(test_info_says_who_is_there)
{
    struct stream *a, *b;
    struct loop *loop = stream_test_pair(_i, &a, &b);
    const struct stream_info of_a = *stream_info_with_local(a); /* good until the next */
    const struct stream_info of_b = *stream_info_with_local(b);
    bool is_tcp = _i >= 2;
    ck_assert(!of_a.secure);
    ck_assert_uint_eq(of_a.alpn.count + of_a.sni.count + of_a.peer_certificate.count, 0);
    ck_assert_int_eq(of_a.descriptor >= 0, is_tcp); /* never a number of the simulator's */
    ck_assert_int_eq(of_a.peer.bytes > 0, is_tcp);
    if (is_tcp) {
        ck_assert(address_equal(&of_a.peer, &of_b.local));
        ck_assert(address_equal(&of_b.peer, &of_a.local));
        ck_assert_uint_ne(address_port(&of_a.local), 0);
    }
    struct address said;
    ck_assert(!cy_failed(address_from_text(CY_BYTES("192.0.2.9:4321"), &said)));
    struct address local = of_a.local;
    stream_set_addresses(a, &said, NULL);
    ck_assert(address_equal(&stream_info_with_local(a)->peer, &said));
    ck_assert_uint_eq(stream_info_with_local(a)->local.bytes, local.bytes);
    stream_test_close_pair(loop, a, b);
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
    tcase_add_loop_test(tests, test_ready_comes_later_and_close_cancels_it, 0, STREAM_TEST_KINDS);
    tcase_add_loop_test(tests, test_unread_bytes_come_first_and_later, 0, STREAM_TEST_KINDS);
    tcase_add_loop_test(tests, test_close_gives_unread_bytes_back, 0, STREAM_TEST_KINDS);
    tcase_add_loop_test(tests, test_info_says_who_is_there, 0, STREAM_TEST_KINDS);
    suite_add_tcase(suite, tests);
    return suite;
}
