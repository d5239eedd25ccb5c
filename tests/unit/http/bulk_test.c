/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/bulk_test.c: proves that a body of 1 GB costs a bounded amount of memory while its reader is
 * slow, both ways through the proxy, in pipes (length known) and in buffers (chunks), and nothing once it is over;
 * that it arrives as it was sent; that what follows a body on its connection is not taken for a part of it; and
 * that a body which breaks off is told to the other side and leaves no pipe with bytes behind.
 *
 *   client ── front server ── proxy ── origin            client and origin are this file's, on the simulated network
 *
 * Counted: buffers lent by the loop, LIMIT_PIPE_BYTES for each pipe that is out, and the structs of connection,
 * exchange and upstream. Not counted: what the kernel keeps in the sockets.
 */
#include "tests/support/loop_sim.h"
#include "vm/base/builder.h"
#include "vm/base/mem.h"
#include "vm/http/server_internal.h"
#include "vm/net/loop_internal.h"

#include <check.h>
#include <stdio.h>

#define BULK_PIECE_BYTES 65536u
#define BULK_COST_BYTES_MAX (256u * 1000)

/* One end: writes a head, then pieces until `left` is 0; reads when it is told to. */
struct bulk_peer {
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct builder received;
    const char *head;
    const uint8_t *piece;
    uint64_t left_bytes, sent_bytes, received_bytes;
    bool chunked, writing, reading, ended, failed;
};
struct bulk_world {
    struct loop *loop;
    struct loop_sim *sim;
    struct log log;
    struct http_client *client;
    struct http_server *front;
    struct upstream *upstream;
    struct http_verdict *proxy;
    struct loop_socket *listener;
    struct loop_accept accept;
    bool accept_ended;
    struct bulk_peer near, origin;
    uint8_t piece[BULK_PIECE_BYTES + 16];
};

static void bulk_on_request(void *context, struct http_exchange *exchange)
{
    http_exchange_answer(exchange, ((struct bulk_world *)context)->proxy);
}
static void bulk_on_gone(void *context, struct http_exchange *exchange)
{
    (void)context;
    (void)exchange;
}

/* -- the two ends ----------------------------------------------------------------------------------------- */

static void bulk_write(struct bulk_peer *peer, cy_bytes bytes)
{
    peer->write.send.parts[0] = bytes;
    peer->write.send.part_count = 1;
    peer->writing = true;
    stream_write_start(peer->stream, &peer->write);
}

static void bulk_go_on(struct bulk_peer *peer)
{
    if (peer->writing || !peer->stream || peer->left_bytes == 0) return;
    size_t count = cy_min_size(BULK_PIECE_BYTES, (size_t)peer->left_bytes);
    cy_bytes bytes = cy_bytes_of(peer->piece + 7, count);
    if (peer->chunked) bytes = cy_bytes_of(peer->piece, count + 9); /* "10000\r\n" in front, "\r\n" behind */
    peer->left_bytes -= count;
    bulk_write(peer, bytes);
}

static void bulk_on_written(struct stream_write *write)
{
    struct bulk_peer *peer = CY_CONTAINER_OF(write, struct bulk_peer, write);
    peer->writing = false;
    peer->sent_bytes += write->send.sent_bytes;
    if (cy_failed(write->err))
        peer->failed = true;
    else
        bulk_go_on(peer);
}

static void bulk_on_read(struct stream_read *read)
{
    struct bulk_peer *peer = CY_CONTAINER_OF(read, struct bulk_peer, read);
    peer->reading = false;
    if (!read->buffer) {
        peer->ended = true;
        peer->failed |= cy_failed(read->err) && !cy_is(read->err, CY_ERR_CANCELLED);
        return;
    }
    cy_bytes view = buffer_view(read->buffer);
    peer->received_bytes += view.count;
    if (peer->received.count < 400000) builder_bytes(&peer->received, view);
    buffer_unref(&read->buffer);
}

static void bulk_read(struct bulk_peer *peer)
{
    if (peer->reading || peer->ended || !peer->stream) return;
    peer->reading = true;
    stream_read_start(peer->stream, &peer->read);
}

static void bulk_begin(struct bulk_world *world, struct bulk_peer *peer, struct loop_socket *socket)
{
    ck_assert_ptr_null(peer->stream);
    ck_assert(!cy_failed(stream_tcp_new(world->loop, socket, &peer->stream)));
    peer->read.done = bulk_on_read;
    peer->write.done = bulk_on_written;
    peer->piece = world->piece;
    builder_init(&peer->received);
    if (peer->head) bulk_write(peer, cy_bytes_from_text(peer->head));
}

static void bulk_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    struct bulk_world *world = CY_CONTAINER_OF(accept, struct bulk_world, accept);
    struct loop_socket *socket;
    if (cy_failed(op->err)) {
        world->accept_ended = true;
        return;
    }
    ck_assert(!cy_failed(loop_socket_open(world->loop, accept->descriptor, &socket)));
    bulk_begin(world, &world->origin, socket);
}

/* -- the world -------------------------------------------------------------------------------------------- */

static void bulk_open(struct bulk_world *world, uint64_t seed, bool pieces)
{
    const struct loop_sim_options options = {.seed = seed, .pieces = pieces, .reorder = true};
    struct address address;
    struct loop_socket *far, *near;
    int ends[2];
    ck_assert(!cy_failed(loop_sim_new(&options, &world->loop, &world->sim)));
    memcpy(world->piece, "10000\r\n", 7);
    for (uint32_t i = 0; i < BULK_PIECE_BYTES; i++) world->piece[7 + i] = (uint8_t)(i * 11 + i / 251);
    memcpy(world->piece + 7 + BULK_PIECE_BYTES, "\r\n", 2);
    log_init(&world->log);
    world->log.level_min = LOG_ERROR + 1;
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), 80, &address)));
    ck_assert(
        !cy_failed(loop_socket_open(world->loop, loop_sim_listen(world->sim, &address), &world->listener)));
    world->accept.op.done = bulk_on_accept;
    loop_accept(world->listener, &world->accept);
    const struct http_client_options client = {.loop = world->loop, .log = &world->log};
    ck_assert(!cy_failed(http_client_new(&client, &world->client)));
    ck_assert(!cy_failed(upstream_open(world->client, CY_BYTES("http://10.0.0.1"), &world->upstream, NULL)));
    ck_assert(!cy_failed(
        http_verdict_proxy(world->upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &world->proxy, NULL)));
    const struct http_server_options server = {.loop = world->loop,
                                               .log = &world->log,
                                               .client = world->client,
                                               .context = world,
                                               .on_request = bulk_on_request,
                                               .on_gone = bulk_on_gone};
    ck_assert(!cy_failed(http_server_new(&server, &world->front)));
    loop_sim_pair(world->sim, &ends[0], &ends[1]);
    ck_assert(!cy_failed(loop_socket_open(world->loop, ends[0], &near)));
    ck_assert(!cy_failed(loop_socket_open(world->loop, ends[1], &far)));
    struct stream *stream;
    ck_assert(!cy_failed(stream_tcp_new(world->loop, far, &stream)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.2"), 1, &address)));
    stream_set_addresses(stream, &address, NULL);
    ck_assert(!cy_failed(http_server_adopt(world->front, stream)));
    bulk_begin(world, &world->near, near);
}

static void bulk_turn(struct bulk_world *world)
{
    loop_wake(world->loop); /* time stands still: no timeout ends what is slow */
    ck_assert(!cy_failed(loop_turn(world->loop)));
}

static size_t bulk_cost_bytes(const struct bulk_world *world)
{
    return buffer_pool_lent_bytes(world->loop->buffers) +
           (size_t)(world->loop->pipe_count - world->loop->free_pipe_count) * LIMIT_PIPE_BYTES +
           sizeof(struct http_connection) + sizeof(struct http_exchange) + sizeof(struct upstream_connection);
}

/* Both ends go; then nothing is lent any more. */
static void bulk_close(struct bulk_world *world)
{
    struct bulk_peer *peers[] = {&world->near, &world->origin};
    for (size_t i = 0; i < 2; i++)
        if (peers[i]->stream) stream_close(&peers[i]->stream);
    for (int i = 0; i < 200; i++) bulk_turn(world);
    struct http_server_counters counters;
    http_server_read_counters(world->front, &counters);
    ck_assert_uint_eq(counters.exchanges_open, 0);
    ck_assert_uint_eq(counters.connections_open, 0);
    ck_assert_uint_eq(buffer_pool_lent(world->loop->buffers), 0);
    ck_assert_uint_eq(world->loop->pipe_count, world->loop->free_pipe_count);
    loop_socket_close(&world->listener);
    http_server_free(&world->front);
    http_verdict_unref(&world->proxy);
    upstream_unref(&world->upstream);
    http_client_free(&world->client);
    for (int i = 0; i < 3; i++) bulk_turn(world);
    ck_assert(world->accept_ended);
    loop_free(&world->loop);
    builder_fini(&world->near.received);
    builder_fini(&world->origin.received);
}

/* -- slow readers ----------------------------------------------------------------------------------------- */

/* One side has 1 GB to send, the other reads a little now and then. */
static void bulk_be_slow(struct bulk_world *world, struct bulk_peer *sender, struct bulk_peer *reader,
                         bool piped)
{
    size_t cost = 0;
    for (int turn = 0; turn < 6000; turn++) {
        bulk_turn(world);
        if (turn < 20 || turn % 5 == 0) bulk_read(reader);
        bulk_read(sender);
        bulk_go_on(sender);
        size_t now = bulk_cost_bytes(world);
        if (now > cost) cost = now;
    }
    ck_assert_uint_gt(reader->received_bytes, 1000000);
    ck_assert_uint_lt(sender->sent_bytes, UINT64_C(1) << 29); /* it was held back */
    ck_assert_uint_lt(cost, BULK_COST_BYTES_MAX);
    ck_assert(!sender->failed && !reader->failed);
    if (piped)
        ck_assert_uint_gt(world->loop->counters.piped, 10);
    else
        ck_assert_uint_eq(world->loop->counters.piped, 0);
}

START_TEST(test_a_slow_reader_of_a_large_answer_costs_little)
{
    static struct bulk_world world;
    bool chunked = _i == 1;
    world = (struct bulk_world){
        .near = {.head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
        .origin = {.head = chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                   : "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n",
                   .left_bytes = 1u << 30,
                   .chunked = chunked}};
    bulk_open(&world, 11, false);
    bulk_be_slow(&world, &world.origin, &world.near, !chunked);
    bulk_close(&world);
}
END_TEST

START_TEST(test_a_large_request_to_a_slow_server_costs_little)
{
    static struct bulk_world world;
    bool chunked = _i == 1;
    world = (struct bulk_world){
        .near = {.head = chunked ? "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 : "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n",
                 .left_bytes = 1u << 30,
                 .chunked = chunked}};
    bulk_open(&world, 12, false);
    bulk_be_slow(&world, &world.near, &world.origin, !chunked);
    bulk_close(&world);
}
END_TEST

/* -- idle -------------------------------------------------------------------------------------------------- */

/* Between two requests a connection has its structs and nothing else; nginx's take about 950 bytes, HAProxy's 1,100. */
START_TEST(test_an_idle_connection_costs_little)
{
    static struct bulk_world world;
    world = (struct bulk_world){.near = {.head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
                                .origin = {.head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"}};
    bulk_open(&world, 13, false);
    for (int i = 0; i < 200; i++) {
        bulk_turn(&world);
        bulk_read(&world.near);
        if (world.origin.stream) bulk_read(&world.origin);
    }
    struct http_server_counters counters;
    http_server_read_counters(world.front, &counters);
    ck_assert_uint_gt(world.near.received_bytes, 3);
    ck_assert_uint_eq(counters.connections_open, 1);
    ck_assert_uint_eq(counters.exchanges_open, 0);
    ck_assert_uint_eq(buffer_pool_lent(world.loop->buffers), 0);
    ck_assert_uint_eq(world.front->spare_writes.count, 1); /* given back */
    ck_assert_uint_le(sizeof(struct http_connection) + sizeof(struct loop_socket) + LOOP_BLOCK_BYTES, 640);
    bulk_close(&world);
}
END_TEST

/* -- what arrives ------------------------------------------------------------------------------------------- */

static cy_bytes bulk_body(const struct bulk_peer *peer)
{
    cy_bytes all = builder_view(&peer->received);
    size_t head = 0;
    while (head + 4 <= all.count && memcmp(all.data + head, "\r\n\r\n", 4) != 0) head++;
    return cy_bytes_skip(all, cy_min_size(head + 4, all.count));
}

/* The body behind the head's empty line is the pattern. */
static void bulk_check(const struct bulk_peer *peer, size_t body_bytes)
{
    cy_bytes body = bulk_body(peer);
    ck_assert_uint_ge(body.count, body_bytes);
    for (size_t i = 0; i < body_bytes; i++)
        ck_assert_uint_eq(body.data[i], peer->piece[7 + i % BULK_PIECE_BYTES]);
}

static void bulk_read_until(struct bulk_world *world, struct bulk_peer *peer, uint64_t body_bytes)
{
    for (int turn = 0; bulk_body(peer).count < body_bytes && !peer->ended; turn++) {
        ck_assert_int_lt(turn, 400000);
        bulk_turn(world);
        bulk_read(peer);
    }
}

/* The origin answers before the end of the request, which the proxy then reads to its end: in pipes. */
START_TEST(test_bodies_arrive_and_what_follows_them_too)
{
    uint32_t body_bytes = 300000;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        static struct bulk_world world;
        world = (struct bulk_world){
            .near = {.head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n",
                     .left_bytes = body_bytes}};
        bulk_open(&world, seed, true);
        bulk_read_until(&world, &world.origin, body_bytes);
        bulk_check(&world.origin, body_bytes);
        /* Two answers' worth: the second belongs to nobody, so the connection must not be used again. */
        bulk_write(&world.origin, CY_BYTES("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"));
        world.origin.left_bytes = body_bytes;
        world.near.left_bytes = 0;
        while (world.origin.left_bytes > 0 || world.origin.writing) {
            bulk_turn(&world);
            bulk_read(&world.near);
        }
        bulk_write(&world.origin, CY_BYTES("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nforgotten"));
        bulk_read_until(&world, &world.near, body_bytes);
        for (int i = 0; i < 500; i++) {
            bulk_turn(&world);
            bulk_read(&world.near);
            bulk_read(&world.origin);
        }
        bulk_check(&world.near, body_bytes);
        ck_assert_uint_lt(world.near.received_bytes,
                          body_bytes + 200); /* a head and the body: nothing of the second */
        ck_assert(!world.near.ended);
        ck_assert(world.origin.ended); /* hung up on */
        ck_assert_uint_gt(world.loop->counters.piped, 2);
        bulk_close(&world);
    }
}
END_TEST

START_TEST(test_a_body_that_breaks_off_is_told)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static struct bulk_world world;
        bool reset = seed % 2;
        world = (struct bulk_world){
            .near = {.head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
            .origin = {.head = "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n", .left_bytes = 200000}};
        bulk_open(&world, seed, true);
        while (!world.origin.stream || world.origin.left_bytes > 0 || world.origin.writing) {
            bulk_turn(&world);
            bulk_read(&world.near);
            if (world.origin.stream) bulk_go_on(&world.origin);
        }
        if (reset) stream_abort_on_close(world.origin.stream);
        stream_close(&world.origin.stream);
        for (int i = 0; i < 100000 && !world.near.ended; i++) {
            bulk_turn(&world);
            bulk_read(&world.near);
        }
        ck_assert(world.near.ended); /* fewer bytes than its length: the client sees that it is not whole */
        ck_assert_uint_lt(world.near.received_bytes, 201000);
        bulk_close(&world);
    }
}
END_TEST

/* The client goes away at any moment of a long answer, or of a long request. */
START_TEST(test_a_client_that_leaves_takes_its_pipe_along)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        static struct bulk_world world;
        bool upload = seed % 2;
        world = (struct bulk_world){
            .near = {.head = upload ? "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n"
                                    : "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                     .left_bytes = upload ? 1u << 30 : 0},
            .origin = {.head = upload ? NULL : "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n",
                       .left_bytes = upload ? 0 : 1u << 30}};
        bulk_open(&world, seed, true);
        uint64_t turns = loop_sim_random(world.sim, 3000);
        for (uint64_t i = 0; i < turns; i++) {
            bulk_turn(&world);
            bulk_read(&world.near);
            bulk_read(&world.origin);
            bulk_go_on(&world.origin);
            bulk_go_on(&world.near);
        }
        if (seed % 3 == 0) stream_abort_on_close(world.near.stream);
        bulk_close(&world);
    }
}
END_TEST

Suite *unit_suite_http_bulk(void);
Suite *unit_suite_http_bulk(void)
{
    Suite *suite = suite_create("http_bulk");
    TCase *cases = tcase_create("bulk");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, test_a_slow_reader_of_a_large_answer_costs_little, 0, 2);
    tcase_add_loop_test(cases, test_a_large_request_to_a_slow_server_costs_little, 0, 2);
    tcase_add_test(cases, test_an_idle_connection_costs_little);
    tcase_add_test(cases, test_bodies_arrive_and_what_follows_them_too);
    tcase_add_test(cases, test_a_body_that_breaks_off_is_told);
    tcase_add_test(cases, test_a_client_that_leaves_takes_its_pipe_along);
    suite_add_tcase(suite, cases);
    return suite;
}

#undef BULK_PIECE_BYTES
#undef BULK_COST_BYTES_MAX
