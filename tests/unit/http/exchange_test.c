/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/exchange_test.c: proves that whole requests pass a server, its proxy and a second server in
 * one loop, on a simulated network that cuts, delays and reorders what it carries: every answer arrives
 * complete and in order; and when connections break at any moment, nothing wrong arrives and nothing is lost:
 * the loop CHECKs its buffers, sockets and operations when it is freed.
 *
 *   client (this file) ── front server ── proxy ── back server, which answers /N with N bytes
 * Once with HTTP/1 between front and back, once with HTTP/2.
 */
#include "tests/support/loop_sim.h"
#include "tests/support/loopback.h"
#include "vm/base/builder.h"
#include "vm/base/mem.h"
#include "vm/http/h1.h"
#include "vm/http/h1_body.h"
#include "vm/http/server.h"

#include <check.h>
#include <stdio.h>
#include <sys/socket.h>

#define EXCHANGE_REQUESTS 12
#define EXCHANGE_TURNS_MAX 20000

struct exchange_world {
    struct loop *loop;
    struct loop_sim *sim;
    struct log log;
    struct http_client *client;
    struct http_server *front, *back;
    struct upstream *upstream;
    struct http_verdict *proxy;  /* the front's verdict */
    struct http_verdict *answer; /* the back's, when it shall not depend on the request */
    uint8_t *body;               /* a pattern that every answer is a prefix of */
    unsigned front_requests, front_gone;
    bool front_secure; /* of the last request */
    struct address front_client;
};

static const uint32_t exchange_body_bytes_max = 150000;

static uint64_t exchange_asked_bytes(const struct http_request *request)
{
    uint64_t count = 0;
    ck_assert(cy_bytes_parse_u64(cy_bytes_skip(request->path, 1), exchange_body_bytes_max, &count));
    return count;
}

static void exchange_on_back_request(void *context, struct http_exchange *exchange)
{
    struct exchange_world *world = context;
    struct http_verdict *verdict;
    if (world->answer) {
        http_exchange_answer(exchange, world->answer);
        return;
    }
    cy_bytes body = cy_bytes_of(world->body, (size_t)exchange_asked_bytes(http_exchange_request(exchange)));
    ck_assert(!cy_failed(http_verdict_respond(200, body, NULL, 0, &verdict, NULL)));
    http_exchange_answer(exchange, verdict);
    http_verdict_unref(&verdict);
}

static void exchange_on_front_request(void *context, struct http_exchange *exchange)
{
    struct exchange_world *world = context;
    world->front_requests++;
    world->front_secure = http_exchange_request(exchange)->secure;
    world->front_client = http_exchange_request(exchange)->client;
    http_exchange_answer(exchange, world->proxy);
}

static void exchange_on_gone(void *context, struct http_exchange *exchange)
{
    (void)exchange;
    ((struct exchange_world *)context)->front_gone++;
}

/* The loop and where the back server listens: simulated, or (seed 0) the system's own sockets. */
static int exchange_open_loop(struct exchange_world *world, uint64_t seed, uint32_t resets_per_million,
                              char *host, size_t host_bytes)
{
    const struct loop_sim_options options = {.seed = seed,
                                             .pieces = true,
                                             .reorder = true,
                                             .window_bytes = 20000,
                                             .resets_per_million = resets_per_million};
    struct address address;
    int descriptor;
    if (seed) {
        ck_assert(!cy_failed(loop_sim_new(&options, &world->loop, &world->sim)));
        ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), 80, &address)));
        descriptor = loop_sim_listen(world->sim, &address);
        snprintf(host, host_bytes, "10.0.0.1");
    } else {
        ck_assert(!cy_failed(loop_new("poll", &world->loop)));
        ck_assert(!cy_failed(address_from_ip(CY_BYTES("127.0.0.1"), 0, &address)));
        ck_assert(!cy_failed(listen_open(&address, false, 16, &descriptor)));
        ck_assert(!cy_failed(socket_local_address(descriptor, &address)));
        snprintf(host, host_bytes, "127.0.0.1:%u", address_port(&address));
    }
    return descriptor;
}

/* What the front speaks to the back, by the index of a loop test. */
static const char *const exchange_schemes[] = {"http", "h2c"};

static void exchange_open(struct exchange_world *world, uint64_t seed, uint32_t resets_per_million,
                          int protocol)
{
    char host[64], url[80];
    *world = (struct exchange_world){0};
    log_init(&world->log);
    world->log.level_min = LOG_ERROR + 1; /* broken connections are the point here */
    world->body = mem_alloc(exchange_body_bytes_max);
    for (uint32_t i = 0; i < exchange_body_bytes_max; i++)
        world->body[i] = (uint8_t)('a' + i % 26 + i / 1000 % 3);
    int listener = exchange_open_loop(world, seed, resets_per_million, host, sizeof host);
    snprintf(url, sizeof url, "%s://%s", exchange_schemes[protocol], host);
    const struct http_client_options client = {.loop = world->loop, .log = &world->log};
    ck_assert(!cy_failed(http_client_new(&client, &world->client)));
    ck_assert(!cy_failed(upstream_open(world->client, cy_bytes_from_text(url), &world->upstream, NULL)));
    ck_assert(!cy_failed(
        http_verdict_proxy(world->upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &world->proxy, NULL)));
    struct http_server_options server = {.loop = world->loop,
                                         .log = &world->log,
                                         .client = world->client,
                                         .context = world,
                                         .on_request = exchange_on_back_request,
                                         .on_gone = exchange_on_gone};
    ck_assert(!cy_failed(http_server_new(&server, &world->back)));
    ck_assert(!cy_failed(http_server_listen(world->back, listener)));
    server.on_request = exchange_on_front_request;
    ck_assert(!cy_failed(http_server_new(&server, &world->front)));
}

static void exchange_close(struct exchange_world *world)
{
    http_server_free(&world->front);
    http_server_free(&world->back);
    http_verdict_unref(&world->proxy);
    http_verdict_unref(&world->answer);
    upstream_unref(&world->upstream);
    http_client_free(&world->client);
    for (int i = 0; i < 3; i++) {
        loop_wake(world->loop);
        ck_assert(!cy_failed(loop_turn(world->loop)));
    }
    loop_free(&world->loop);
    mem_free(world->body);
}

/* -- the client ------------------------------------------------------------------------------------------ */

struct exchange_peer {
    struct exchange_world *world;
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct builder requests, received;
    uint32_t sizes[EXCHANGE_REQUESTS];
    unsigned answers;
    size_t parsed;
    bool ended, write_done, read_done;
};

static void exchange_write_requests(struct exchange_peer *peer)
{
    struct loop_sim *sim = peer->world->sim;
    for (unsigned i = 0; i < EXCHANGE_REQUESTS; i++) {
        uint32_t size =
            (uint32_t)loop_sim_random(sim, loop_sim_random(sim, 3) ? 500 : exchange_body_bytes_max);
        uint32_t body = (uint32_t)loop_sim_random(sim, loop_sim_random(sim, 3) ? 100 : 40000);
        peer->sizes[i] = size;
        switch (loop_sim_random(sim, 3)) {
        case 0: builder_printf(&peer->requests, "GET /%u HTTP/1.1\r\nHost: a\r\n\r\n", size); break;
        case 1:
            builder_printf(&peer->requests, "POST /%u HTTP/1.1\r\nHost: a\r\nContent-Length: %u\r\n\r\n",
                           size, body);
            for (uint32_t k = 0; k < body; k++) builder_u8(&peer->requests, 'b');
            break;
        default:
            builder_printf(&peer->requests,
                           "PUT /%u HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", size);
            for (uint32_t left = body, piece; left > 0; left -= piece) {
                piece = 1 + (uint32_t)loop_sim_random(sim, left);
                builder_printf(&peer->requests, "%x\r\n", piece);
                for (uint32_t k = 0; k < piece; k++) builder_u8(&peer->requests, 'c');
                builder_text(&peer->requests, "\r\n");
            }
            builder_text(&peer->requests, "0\r\n\r\n");
        }
    }
    ck_assert(!peer->requests.failed);
}

/* Takes complete answers off the front of what was received. */
static void exchange_parse_answers(struct exchange_peer *peer)
{
    static struct http_field fields[LIMIT_HTTP_FIELDS];
    for (;;) {
        struct h1_head head;
        struct h1_response response;
        cy_bytes rest = cy_bytes_skip(builder_view(&peer->received), peer->parsed);
        h1_parse_begin_response(&head, fields);
        enum h1_parse_result result = h1_parse_head(&head, rest);
        ck_assert_int_ne(result, H1_PARSE_FAULT);
        if (result == H1_PARSE_MORE) return;
        ck_assert_uint_eq(h1_judge_response(&head, false, &response), 0);
        if (head.status != 200) return; /* a 502 after a reset; the test that has none looks at the count */
        ck_assert_uint_lt(peer->answers, EXCHANGE_REQUESTS);
        ck_assert_uint_eq(response.body.length, peer->sizes[peer->answers]);
        cy_bytes body = cy_bytes_slice(cy_bytes_skip(rest, head.used_bytes), 0, (size_t)response.body.length);
        ck_assert_int_eq(memcmp(body.data, peer->world->body, body.count), 0);
        if (body.count < response.body.length) return;
        peer->parsed += head.used_bytes + body.count;
        peer->answers++;
    }
}

static void exchange_on_read(struct stream_read *read)
{
    struct exchange_peer *peer = CY_CONTAINER_OF(read, struct exchange_peer, read);
    if (!read->buffer) {
        peer->ended = peer->read_done = true;
        return;
    }
    builder_bytes(&peer->received, buffer_view(read->buffer));
    buffer_unref(&read->buffer);
    stream_read_start(peer->stream, &peer->read);
}

static void exchange_on_written(struct stream_write *write)
{
    CY_CONTAINER_OF(write, struct exchange_peer, write)->write_done = true;
}

/* Sends all requests at once and turns the loop until all answers are there or the connection has ended. */
static unsigned exchange_talk(struct exchange_world *world, struct stream *near, struct stream *far)
{
    struct exchange_peer peer = {
        .world = world, .stream = near, .read.done = exchange_on_read, .write.done = exchange_on_written};
    struct address address;
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.2"), 1, &address)));
    stream_set_addresses(far, &address, NULL);
    ck_assert(!cy_failed(http_server_adopt(world->front, far)));
    builder_init(&peer.requests);
    builder_init(&peer.received);
    exchange_write_requests(&peer);
    peer.write.send.parts[0] = builder_view(&peer.requests);
    peer.write.send.part_count = 1;
    stream_read_start(near, &peer.read);
    stream_write_start(near, &peer.write);
    unsigned turns = 0;
    size_t looked_at = 0;
    while (!peer.ended && peer.answers < EXCHANGE_REQUESTS) {
        ck_assert(!cy_failed(loop_turn(world->loop)));
        ck_assert_uint_lt(turns++, EXCHANGE_TURNS_MAX);
        if (peer.received.count == looked_at) continue;
        looked_at = peer.received.count;
        exchange_parse_answers(&peer);
    }
    stream_close(&peer.stream);
    while (!peer.write_done || !peer.read_done) {
        loop_wake(world->loop);
        ck_assert(!cy_failed(loop_turn(world->loop)));
    }
    builder_fini(&peer.requests);
    builder_fini(&peer.received);
    return peer.answers;
}

static unsigned exchange_run(uint64_t seed, uint32_t resets_per_million, int protocol)
{
    struct exchange_world world;
    struct loop_socket *socket;
    struct stream *near, *far;
    int a, b;
    exchange_open(&world, seed, resets_per_million, protocol);
    loop_sim_pair(world.sim, &a, &b);
    ck_assert(!cy_failed(loop_socket_open(world.loop, a, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(world.loop, socket, &near)));
    ck_assert(!cy_failed(loop_socket_open(world.loop, b, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(world.loop, socket, &far)));
    unsigned answers = exchange_talk(&world, near, far);
    ck_assert_uint_ge(world.front_requests, answers);
    exchange_close(&world);
    return answers;
}

START_TEST(test_every_answer_arrives_whole_and_in_order)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        unsigned answers = exchange_run(seed, 0, _i);
        ck_assert_msg(answers == EXCHANGE_REQUESTS, "seed %llu: %u answers", (unsigned long long)seed,
                      answers);
    }
}
END_TEST

START_TEST(test_breaking_connections_lose_nothing_and_invent_nothing)
{
    unsigned whole = 0, cut = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        if (exchange_run(seed, 2000, _i) == EXCHANGE_REQUESTS)
            whole++;
        else
            cut++;
    }
    /* Else the chance is set so that the test tests nothing. */
    ck_assert_uint_gt(whole, 0);
    ck_assert_uint_gt(cut, 0);
}
END_TEST

/* The same conversation over a stream that is no socket at all, in reads of at most 7 bytes. */
START_TEST(test_a_request_needs_no_socket)
{
    struct exchange_world world;
    struct stream *near, *far;
    exchange_open(&world, 7, 0, _i);
    ck_assert(!cy_failed(loopback_pair(world.loop, 7000, &near, &far)));
    ck_assert_uint_eq(exchange_talk(&world, near, far), EXCHANGE_REQUESTS);
    exchange_close(&world);
}
END_TEST

/* One request over a stream that says `info` of itself. True: it reached the handler; else the server closed. */
static bool exchange_ask(struct exchange_world *world, const struct stream_info *info)
{
    struct stream *near, *far;
    unsigned before = world->front_requests;
    ck_assert(!cy_failed(loopback_pair(world->loop, 0, &near, &far)));
    loopback_set_info(far, info);
    ck_assert(!cy_failed(http_server_adopt(world->front, far)));
    struct exchange_peer peer = {
        .world = world, .stream = near, .read.done = exchange_on_read, .write.done = exchange_on_written};
    builder_init(&peer.received);
    peer.write.send.parts[0] = CY_BYTES("GET /35 HTTP/1.1\r\nHost: a\r\n\r\n");
    peer.write.send.part_count = 1;
    stream_read_start(near, &peer.read);
    stream_write_start(near, &peer.write);
    for (int i = 0; !peer.ended && peer.received.count == 0; i++) {
        ck_assert_int_lt(i, EXCHANGE_TURNS_MAX);
        ck_assert(!cy_failed(loop_turn(world->loop)));
    }
    bool closed = peer.ended;
    stream_close(&peer.stream);
    while (!peer.write_done || !peer.read_done) {
        loop_wake(world->loop);
        ck_assert(!cy_failed(loop_turn(world->loop)));
    }
    builder_fini(&peer.received);
    ck_assert(closed == (world->front_requests == before));
    return !closed;
}

START_TEST(test_what_a_stream_says_of_itself_decides_and_shows)
{
    struct exchange_world world;
    exchange_open(&world, 9, 0, 0);
    struct stream_info info = {.descriptor = -1};
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("192.0.2.77"), 4711, &info.peer)));
    ck_assert(exchange_ask(&world, &info));
    ck_assert(!world.front_secure);
    ck_assert(address_equal(&world.front_client, &info.peer));
    info.secure = true;
    info.alpn = CY_BYTES("http/1.1");
    ck_assert(exchange_ask(&world, &info));
    ck_assert(world.front_secure);
    info.alpn = CY_BYTES("h3"); /* agreed on, but nobody is there who speaks it: not a byte is read */
    ck_assert(!exchange_ask(&world, &info));
    info.alpn = CY_BYTES("http/1.1x");
    ck_assert(!exchange_ask(&world, &info));
    exchange_close(&world);
}
END_TEST

/* In the steady state a proxied request allocates nothing, whatever its body. */
START_TEST(test_a_keep_alive_request_allocates_nothing)
{
    const cy_bytes requests[] = {
        CY_BYTES("GET /35 HTTP/1.1\r\nHost: bench.local\r\n\r\n"),
        CY_BYTES("POST /35 HTTP/1.1\r\nHost: bench.local\r\nContent-Length: 5\r\n\r\nhello"),
        CY_BYTES("POST /35 HTTP/1.1\r\nHost: bench.local\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "5;a=b\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n"),
    };
    struct exchange_world world;
    struct stream *near, *far;
    struct address address;
    exchange_open(&world, 0, 0, _i); /* real sockets: simulated ones allocate, and break up what is steady */
    cy_bytes body = cy_bytes_of(world.body, 35);
    ck_assert(!cy_failed(http_verdict_respond(200, body, NULL, 0, &world.answer, NULL)));
    ck_assert(!cy_failed(loopback_pair(world.loop, 0, &near, &far)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.2"), 1, &address)));
    stream_set_addresses(far, &address, NULL);
    ck_assert(!cy_failed(http_server_adopt(world.front, far)));
    struct exchange_peer peer = {
        .world = &world, .stream = near, .read.done = exchange_on_read, .write.done = exchange_on_written};
    uint64_t before = 0;
    builder_init(&peer.received);
    ck_assert_ptr_nonnull(builder_reserve(&peer.received, 1 << 20));
    stream_read_start(near, &peer.read);
    /* A new peak of what is under way at once may allocate; 60 requests without one must come. */
    for (unsigned i = 0, quiet = 0; quiet < 60; i++) {
        ck_assert_uint_lt(i, 2000);
        size_t had = peer.received.count;
        before = mem_allocation_count();
        peer.write_done = false;
        peer.write.send.parts[0] = requests[i % CY_COUNT_OF(requests)];
        peer.write.send.part_count = 1;
        stream_write_start(near, &peer.write);
        while (!peer.write_done || peer.received.count < had + 35 ||
               memcmp(peer.received.data + peer.received.count - 35, world.body, 35) != 0)
            ck_assert(!cy_failed(loop_turn(world.loop)));
        quiet = mem_allocation_count() == before ? quiet + 1 : 0;
    }
    stream_close(&peer.stream);
    while (!peer.read_done) {
        loop_wake(world.loop);
        ck_assert(!cy_failed(loop_turn(world.loop)));
    }
    builder_fini(&peer.received);
    exchange_close(&world);
}
END_TEST

/* One request, with the n-th allocation and all later ones failing. True when its answer came. */
static bool exchange_without_memory(uint64_t n, int protocol)
{
    struct exchange_world world;
    struct stream *near, *far;
    struct address address;
    int pair[2];
    struct loop_socket *socket;
    exchange_open(&world, 0, 0, protocol); /* the simulator must not run out of memory itself */
    cy_bytes body = cy_bytes_of(world.body, 35);
    ck_assert(!cy_failed(http_verdict_respond(200, body, NULL, 0, &world.answer, NULL)));
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert(!cy_failed(loop_socket_open(world.loop, pair[0], &socket)));
    ck_assert(!cy_failed(stream_tcp_new(world.loop, socket, &near)));
    ck_assert(!cy_failed(loop_socket_open(world.loop, pair[1], &socket)));
    ck_assert(!cy_failed(stream_tcp_new(world.loop, socket, &far)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.2"), 1, &address)));
    struct exchange_peer peer = {
        .world = &world, .stream = near, .read.done = exchange_on_read, .write.done = exchange_on_written};
    builder_init(&peer.received);
    ck_assert_ptr_nonnull(builder_reserve(&peer.received, 65536));
    mem_fail_after(n);
    stream_set_addresses(far, &address, NULL);
    cy_err adopted = http_server_adopt(world.front, far);
    stream_read_start(near, &peer.read);
    peer.write.send.parts[0] = CY_BYTES("POST /35 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    peer.write.send.part_count = 1;
    stream_write_start(near, &peer.write);
    for (int turn = 0; turn < 200 && !peer.ended; turn++) {
        loop_wake(world.loop);
        ck_assert(!cy_failed(loop_turn(world.loop)));
    }
    mem_fail_never();
    bool answered = peer.received.count > 35 &&
                    cy_bytes_start_with(builder_view(&peer.received), CY_BYTES("HTTP/1.1 200"));
    ck_assert(!answered || !cy_failed(adopted));
    stream_close(&peer.stream);
    while (!peer.write_done || !peer.read_done) {
        loop_wake(world.loop);
        ck_assert(!cy_failed(loop_turn(world.loop)));
    }
    builder_fini(&peer.received);
    exchange_close(&world);
    return answered;
}

START_TEST(test_no_memory_at_any_allocation_ends_the_exchange_and_leaks_nothing)
{
    uint64_t n = 0;
    while (!exchange_without_memory(n, _i)) ck_assert_uint_lt(++n, 200);
    ck_assert_uint_gt(n, 8);
}
END_TEST

Suite *unit_suite_http_exchange(void);
Suite *unit_suite_http_exchange(void)
{
    Suite *suite = suite_create("http_exchange");
    TCase *cases = tcase_create("exchange");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, test_every_answer_arrives_whole_and_in_order, 0,
                        CY_COUNT_OF(exchange_schemes));
    tcase_add_loop_test(cases, test_breaking_connections_lose_nothing_and_invent_nothing, 0,
                        CY_COUNT_OF(exchange_schemes));
    tcase_add_loop_test(cases, test_a_request_needs_no_socket, 0, CY_COUNT_OF(exchange_schemes));
    tcase_add_test(cases, test_what_a_stream_says_of_itself_decides_and_shows);
    tcase_add_loop_test(cases, test_a_keep_alive_request_allocates_nothing, 0, CY_COUNT_OF(exchange_schemes));
    tcase_add_loop_test(cases, test_no_memory_at_any_allocation_ends_the_exchange_and_leaks_nothing, 0,
                        CY_COUNT_OF(exchange_schemes));
    suite_add_tcase(suite, cases);
    return suite;
}
