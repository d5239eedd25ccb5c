/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_timeout_test.c: proves the timeouts of HTTP/2 on a simulated clock, which moves only when all
 * wait: idle connections end with GOAWAY, heads and windows that never open cost their time and no more.
 */
#include "tests/support/loop_sim.h"
#include "tests/unit/http/h2_world.h"

#include <check.h>

enum { HEADER_MS = 3000, KEEP_ALIVE_MS = 5000, BODY_MS = 7000 };

static const struct http_server_options h2_timeout_times = {
    .header_timeout_ms = HEADER_MS, .keep_alive_ms = KEEP_ALIVE_MS, .body_idle_timeout_ms = BODY_MS};

static void h2_timeout_open(struct h2_world *world)
{
    const struct loop_sim_options options = {.seed = 1};
    struct loop *loop;
    struct loop_sim *sim;
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    h2_world_open(world, loop, &h2_timeout_times);
}

/* A turn that may wait: only then does the clock move. */
static struct h2_frame h2_timeout_wait(struct h2_world *world)
{
    struct h2_frame frame;
    for (int i = 0; !h2_peer_next(&world->peer, false, &frame); i++) {
        ck_assert_int_lt(i, 20000);
        ck_assert(!world->peer.ended);
        ck_assert(!cy_failed(loop_turn(world->loop)));
    }
    return frame;
}

static void h2_timeout_end(struct h2_world *world)
{
    for (int i = 0; !world->peer.ended; i++) {
        ck_assert_int_lt(i, 20000);
        ck_assert(!cy_failed(loop_turn(world->loop)));
    }
}

/* One timer is moved lazily, so that it may be late by its own period, never early. */
static void h2_timeout_expect(const struct h2_world *world, uint64_t begin_ms, uint64_t ms)
{
    uint64_t passed_ms = loop_now_ms(world->loop) - begin_ms;
    ck_assert_uint_ge(passed_ms, ms);
    ck_assert_uint_le(passed_ms, ms + HEADER_MS + 5);
}

static void h2_timeout_nothing(struct timer *timer) { (void)timer; }

static void h2_timeout_pass(struct h2_world *world, uint32_t ms)
{
    struct timer timer = {.fire = h2_timeout_nothing};
    loop_timer_set(world->loop, &timer, ms);
    for (int i = 0; timer_is_set(&timer); i++) {
        ck_assert_int_lt(i, 20000);
        ck_assert(!cy_failed(loop_turn(world->loop)));
    }
}

START_TEST(test_an_idle_connection_ends_with_goaway)
{
    struct h2_world world;
    h2_timeout_open(&world);
    h2_peer_greet(&world.peer);
    h2_peer_get(&world.peer, 1, "/204");
    h2_peer_turn(&world.peer);
    ck_assert_uint_eq(h2_timeout_wait(&world).type, PEER_HEADERS);
    uint64_t begin_ms = loop_now_ms(world.loop);
    struct h2_frame frame = h2_timeout_wait(&world);
    ck_assert_uint_eq(frame.type, PEER_GOAWAY);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 0), 1);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 4), NGHTTP2_NO_ERROR);
    h2_timeout_expect(&world, begin_ms, KEEP_ALIVE_MS);
    h2_timeout_end(&world);
    h2_world_close(&world);
}
END_TEST

START_TEST(test_a_connection_on_which_nothing_is_asked)
{
    struct h2_world world;
    h2_timeout_open(&world);
    uint64_t begin_ms = loop_now_ms(world.loop);
    h2_peer_greet(&world.peer);
    h2_peer_turn(&world.peer);
    ck_assert_uint_eq(h2_timeout_wait(&world).type, PEER_GOAWAY);
    h2_timeout_expect(&world, begin_ms, HEADER_MS);
    h2_world_close(&world);
}
END_TEST

/* HEADERS whose CONTINUATION never comes. */
START_TEST(test_half_a_head)
{
    struct h2_world world;
    struct builder block;
    h2_timeout_open(&world);
    uint64_t begin_ms = loop_now_ms(world.loop);
    h2_peer_greet(&world.peer);
    builder_init(&block);
    h2_peer_pack(&block, H2_WORLD_GET);
    h2_peer_frame(&world.peer, PEER_HEADERS, PEER_END_STREAM, 1, builder_view(&block));
    builder_fini(&block);
    h2_peer_turn(&world.peer);
    h2_timeout_end(&world);
    h2_timeout_expect(&world, begin_ms, HEADER_MS);
    ck_assert_uint_eq(world.request_count, 0);
    h2_world_close(&world);
}
END_TEST

/* A window that never opens: the stream is reset, the connection goes on. */
START_TEST(test_a_stream_whose_window_stays_shut)
{
    struct h2_world world;
    h2_timeout_open(&world);
    h2_peer_greet(&world.peer);
    h2_peer_setting(&world.peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 10);
    h2_peer_get(&world.peer, 1, "/20");
    h2_peer_turn(&world.peer);
    ck_assert_uint_eq(h2_timeout_wait(&world).type, PEER_HEADERS);
    ck_assert_uint_eq(h2_timeout_wait(&world).payload.count, 10);
    uint64_t begin_ms = loop_now_ms(world.loop);
    struct h2_frame frame = h2_timeout_wait(&world);
    ck_assert_uint_eq(frame.type, PEER_RST);
    ck_assert_uint_ge(loop_now_ms(world.loop) - begin_ms, BODY_MS - 1);
    h2_peer_get(&world.peer, 3, "/3");
    h2_peer_turn(&world.peer);
    ck_assert_uint_eq(h2_timeout_wait(&world).id, 3);
    h2_world_close(&world);
}
END_TEST

/* A client that reads nothing at all. */
START_TEST(test_a_client_that_does_not_read)
{
    struct h2_world world;
    h2_timeout_open(&world);
    h2_peer_greet(&world.peer);
    h2_peer_setting(&world.peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30);
    h2_peer_u32(&world.peer, PEER_WINDOW, 0, 1 << 30);
    h2_peer_turn(&world.peer);
    world.peer.stalled = true;
    for (uint32_t id = 1; id < 20; id += 2) h2_peer_get(&world.peer, id, "/300000");
    uint64_t begin_ms = loop_now_ms(world.loop);
    for (int i = 0; world.request_count < 10; i++) {
        ck_assert_int_lt(i, 1000);
        h2_peer_turn(&world.peer);
    }
    struct http_server_counters counters;
    do {
        ck_assert(!cy_failed(loop_turn(world.loop)));
        http_server_read_counters(world.server, &counters);
        ck_assert_uint_lt(loop_now_ms(world.loop) - begin_ms, 3 * BODY_MS);
    } while (counters.connections_open > 0 || counters.exchanges_open > 0);
    h2_world_close(&world);
}
END_TEST

/* One that reads slowly, but above its least rate: a write takes longer than any of our times, and goes on. */
START_TEST(test_a_client_that_reads_slowly)
{
    struct h2_world world;
    struct http_server_counters counters;
    h2_timeout_open(&world);
    h2_peer_close(&world.peer);
    h2_world_connect(&world, NULL, 2000);
    h2_peer_greet(&world.peer);
    h2_peer_setting(&world.peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30);
    h2_peer_u32(&world.peer, PEER_WINDOW, 0, 1 << 30);
    h2_peer_get(&world.peer, 1, "/300000");
    h2_peer_turn(&world.peer);
    uint64_t begin_ms = loop_now_ms(world.loop);
    world.peer.stalled = true;
    for (int i = 0; world.peer.received_bytes < 300000; i++) {
        ck_assert_int_lt(i, 1000);
        ck_assert(!world.peer.ended);
        h2_timeout_pass(&world, 500);
        world.peer.stalled = false;
        h2_peer_turn(&world.peer); /* begins a read */
        world.peer.stalled = true;
    }
    ck_assert_uint_ge(loop_now_ms(world.loop) - begin_ms, 5 * BODY_MS);
    http_server_read_counters(world.server, &counters);
    ck_assert_uint_eq(counters.connections_open, 1);
    world.peer.stalled = false;
    h2_world_close(&world);
}
END_TEST

/* One that does not answer the PING of a drain: it is given its time to send what was on its way, and no more. */
START_TEST(test_a_client_that_does_not_hear_of_the_end)
{
    struct h2_world world;
    h2_timeout_open(&world);
    h2_peer_greet(&world.peer);
    h2_peer_get(&world.peer, 1, "/204");
    h2_peer_turn(&world.peer);
    ck_assert_uint_eq(h2_timeout_wait(&world).type, PEER_HEADERS);
    uint64_t begin_ms = loop_now_ms(world.loop);
    http_server_drain(world.server, h2_world_on_drained);
    ck_assert_uint_eq(h2_timeout_wait(&world).type, PEER_GOAWAY);
    ck_assert_uint_eq(h2_timeout_wait(&world).type, PEER_PING);
    struct h2_frame frame = h2_timeout_wait(&world);
    ck_assert_uint_eq(frame.type, PEER_GOAWAY);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 0), 1);
    h2_timeout_end(&world);
    ck_assert_uint_ge(loop_now_ms(world.loop) - begin_ms, LIMIT_HTTP2_DRAIN_MS);
    ck_assert_uint_le(loop_now_ms(world.loop) - begin_ms, LIMIT_HTTP2_DRAIN_MS + 10);
    h2_world_close(&world);
}
END_TEST

Suite *unit_suite_http_h2_timeout(void);
Suite *unit_suite_http_h2_timeout(void)
{
    Suite *suite = suite_create("http_h2_timeout");
    TCase *cases = tcase_create("h2_timeout");
    tcase_add_test(cases, test_an_idle_connection_ends_with_goaway);
    tcase_add_test(cases, test_a_connection_on_which_nothing_is_asked);
    tcase_add_test(cases, test_half_a_head);
    tcase_add_test(cases, test_a_stream_whose_window_stays_shut);
    tcase_add_test(cases, test_a_client_that_does_not_read);
    tcase_add_test(cases, test_a_client_that_reads_slowly);
    tcase_add_test(cases, test_a_client_that_does_not_hear_of_the_end);
    suite_add_tcase(suite, cases);
    return suite;
}
