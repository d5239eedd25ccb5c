/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/timeout_test.c: proves each timeout of a server and its proxy on a simulated clock: what happens to
 * client and upstream, and that it happens neither before its time nor after. A machine that is busy changes nothing:
 * the clock moves only when everybody waits.
 *
 *   clients (here) ── server ── proxy ── upstream (here, bytes written by hand)
 */
#include "tests/unit/http/timeout_world.h"

/* -- tests ----------------------------------------------------------------------------------------------- */

START_TEST(test_a_connection_that_never_speaks_is_closed_without_a_word)
{
    struct timeout_peer peer;
    timeout_open();
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_connect(&peer);
    timeout_await_end(&peer);
    timeout_expect_after(&peer, begin_ms, HEADER_MS);
    ck_assert(peer.clean && peer.received.count == 0);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* The time of a head is from its first byte to its end: progress does not extend it. */
START_TEST(test_a_head_that_does_not_end_is_408)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "GET / HTTP/1.1\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    struct timeout_peer other; /* its life moves the clock to the middle of the head's time */
    timeout_connect(&other);
    timeout_send(&other, "GET /here HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    timeout_await_end(&other);
    timeout_peer_close(&other);
    timeout_send(&peer, "Host: a\r\n");
    timeout_await(&peer, "HTTP/1.1 408 Request Timeout\r\n");
    timeout_expect_after(&peer, begin_ms, HEADER_MS);
    timeout_await(&peer, "Connection: close\r\n");
    timeout_await(&peer, "408 Request Timeout: the head did not come in time\n");
    timeout_await_end(&peer);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

START_TEST(test_an_idle_connection_is_closed_without_a_word)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    for (int i = 0; i < 2; i++) { /* each answer gives it the whole time again */
        timeout_send(&peer, "GET /here HTTP/1.1\r\nHost: a\r\n\r\n");
        timeout_await(&peer, "\r\n\r\nx\n");
    }
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_await_end(&peer);
    timeout_expect_after(&peer, begin_ms, KEEP_ALIVE_MS);
    ck_assert(peer.clean && peer.received.count == 0);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

START_TEST(test_a_body_that_does_not_come_is_408_and_cuts_the_upstream)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
    timeout_await(&back, "\r\n\r\nhello");
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_await(&peer, "HTTP/1.1 408 Request Timeout\r\n");
    timeout_expect_after(&peer, begin_ms, GRACE_MS);
    timeout_await(&peer, "Connection: close\r\n");
    timeout_await(&peer, "408 Request Timeout: the body did not come in time\n");
    timeout_await_end(&peer);
    timeout_await_end(&back);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

START_TEST(test_no_answer_in_time_is_504)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    timeout_await(&back, "\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_await(&peer, "HTTP/1.1 504 Gateway Timeout\r\n");
    timeout_expect_after(&peer, begin_ms, FIRST_BYTE_MS);
    timeout_await(&peer, "\r\n\r\n504 Gateway Timeout\n");
    timeout_await_end(&back);
    timeout_send(&peer, "GET /here HTTP/1.1\r\nHost: a\r\n\r\n"); /* the client's connection stays */
    timeout_await(&peer, "\r\n\r\nx\n");
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* Half a head is no slow client: what lies unread then lies there for want of the rest. */
START_TEST(test_an_answer_that_stops_inside_its_head_is_504)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    timeout_await(&back, "\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_send(&back, "HTTP/1.1 200 OK\r\nContent-Le");
    timeout_await(&peer, "HTTP/1.1 504 Gateway Timeout\r\n");
    timeout_expect_after(&peer, begin_ms, FIRST_BYTE_MS);
    timeout_await_end(&back);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* The time after which we say 100 ourselves runs out while the answer's body is on its way: nothing comes into it. */
START_TEST(test_no_100_inside_an_answer)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
    timeout_await(&back, "\r\n\r\n");
    timeout_send(&back, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    timeout_await(&peer, "\r\n\r\nhello");
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_await_end(&peer); /* the upstream sends no more; LIMIT_HTTP_CONTINUE_WAIT_MS is long over */
    ck_assert_uint_ge(peer.last_ms - begin_ms, 2 * LIMIT_HTTP_CONTINUE_WAIT_MS);
    ck_assert_uint_eq(peer.received.count, 0);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

START_TEST(test_an_answer_that_stops_is_cut_off)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    timeout_await(&back, "\r\n\r\n");
    timeout_send(&back, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    timeout_await(&peer, "\r\n\r\nhello");
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_await_end(&peer);
    timeout_expect_after(&peer, begin_ms, IDLE_MS);
    ck_assert_uint_eq(peer.received.count, 0); /* five bytes of ten, and nothing that would complete them */
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* Bytes renew a client's slack at the least rate: one byte each second is not enough, 1,000 are, for as long as it
 * likes. */
START_TEST(test_a_slow_body_is_408_and_one_at_the_least_rate_is_not)
{
    struct timeout_peer slow, fair;
    char kilobyte[MIN_RATE + 1];
    memset(kilobyte, 'x', MIN_RATE);
    kilobyte[MIN_RATE] = 0;
    timeout_open();
    timeout_connect(&fair);
    timeout_send(&fair, "POST /fair HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    for (int i = 0; i < 60; i++) {
        timeout_pause(1000);
        timeout_send(&fair, kilobyte);
        ck_assert(!fair.ended && fair.received.count == 0);
    }
    timeout_peer_close(&fair);
    timeout_connect(&slow);
    timeout_send(&slow, "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    for (int i = 0; slow.received.count == 0 && i < 100; i++) {
        timeout_pause(500);
        if (slow.received.count == 0) timeout_send(&slow, "x");
    }
    ck_assert_uint_ge(slow.last_ms - begin_ms, GRACE_MS);
    ck_assert_uint_le(slow.last_ms - begin_ms, GRACE_MS + 100);
    timeout_await(&slow, "HTTP/1.1 408 Request Timeout\r\n");
    timeout_peer_close(&slow);
    timeout_close();
}
END_TEST

/* However much came before: a client that then is silent gets the idle timeout, not all that its bytes would buy. */
START_TEST(test_a_fast_beginning_buys_no_more_than_the_idle_timeout)
{
    struct timeout_peer peer;
    char kilobyte[1001];
    memset(kilobyte, 'x', 1000);
    kilobyte[1000] = 0;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    for (int i = 0; i < 50; i++) timeout_send(&peer, kilobyte);
    timeout_await(&back, "xxxx");
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_await(&peer, "HTTP/1.1 408 Request Timeout\r\n");
    timeout_expect_after(&peer, begin_ms, BODY_MS);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* A verdict without a least rate leaves the idle timeout, which each byte renews; the whole has its own bound. */
START_TEST(test_a_verdict_bounds_the_whole)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "POST /bounded HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    for (int i = 0; peer.received.count == 0 && i < 100; i++) {
        timeout_pause(1000);
        if (peer.received.count == 0) timeout_send(&peer, "x");
    }
    timeout_expect_after(&peer, begin_ms, TOTAL_MS);
    timeout_await(&peer, "HTTP/1.1 504 Gateway Timeout\r\n");
    timeout_await_end(&back);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* The same inside an answer: it is cut off. And a verdict's time of the first byte goes before the client's. */
START_TEST(test_a_verdict_bounds_the_first_byte_and_an_answer_without_end)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "GET /bounded HTTP/1.1\r\nHost: a\r\n\r\n");
    timeout_await(&back, "\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_await(&peer, "HTTP/1.1 504 Gateway Timeout\r\n");
    timeout_expect_after(&peer, begin_ms, 1500);
    timeout_await(&peer, "\r\n\r\n504 Gateway Timeout\n");
    timeout_send(&peer, "GET /bounded HTTP/1.1\r\nHost: a\r\n\r\n");
    begin_ms = loop_now_ms(loop);
    for (unsigned turns = 0; back_count < 2;) timeout_turn(&turns);
    timeout_await(&back, "\r\n\r\n");
    timeout_send(&back, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    timeout_await(&peer, "\r\n\r\n");
    for (int i = 0; !peer.ended && i < 100; i++) {
        timeout_pause(1000);
        if (!peer.ended && !back.ended) timeout_send(&back, "x");
    }
    timeout_expect_after(&peer, begin_ms, TOTAL_MS);
    timeout_await_end(&back);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* Nothing of a large answer is read: the write stops, and after a period without the least rate it is over. */
START_TEST(test_an_answer_that_nobody_reads_is_cut_off)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    peer.deaf = true;
    timeout_send(&peer, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    struct http_server_counters counters;
    for (unsigned turns = 0;;) {
        http_server_read_counters(server, &counters);
        if (counters.client_aborts) break;
        timeout_turn(&turns);
    }
    ck_assert_uint_ge(loop_now_ms(loop) - begin_ms, BODY_MS);
    ck_assert_uint_le(loop_now_ms(loop) - begin_ms,
                      2 * BODY_MS + 1); /* the first period took what the window holds */
    peer.deaf = false;
    stream_read_start(peer.stream, &peer.read);
    timeout_await_end(&peer);
    ck_assert(!peer.clean);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* Slowly, but at the least rate: it may take many periods. */
START_TEST(test_a_slow_reader_at_the_least_rate_gets_it_all)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    peer.deaf = true;
    timeout_send(&peer, "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    while (!peer.ended) { /* one receive, a few KiB, every three seconds */
        size_t before = peer.received.count;
        timeout_pause(3000);
        stream_read_start(peer.stream, &peer.read);
        for (unsigned turns = 0; peer.received.count == before && !peer.ended;) timeout_turn(&turns);
    }
    ck_assert(peer.clean);
    ck_assert_uint_gt(peer.received.count, 600000);
    ck_assert_uint_gt(loop_now_ms(loop) - begin_ms, 4 * BODY_MS);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* A new generation's bounds are for what begins under them. A write that is on its way keeps its period: it is neither
 * asked for the bytes of a longer one, nor let off after a shorter one. */
static void timeout_reload(uint32_t body_ms)
{
    struct http_server_options bounds = timeout_bounds;
    bounds.body_idle_timeout_ms = body_ms;
    http_server_set_bounds(server, &bounds);
}

START_TEST(test_a_slow_reader_is_judged_by_the_period_that_it_was_given)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    peer.deaf = true;
    timeout_send(&peer, "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for (int i = 0; !peer.ended; i++) {
        size_t before = peer.received.count;
        timeout_pause(3000);
        if (i == 1) timeout_reload(100 * BODY_MS); /* while a write is on its way */
        stream_read_start(peer.stream, &peer.read);
        for (unsigned turns = 0; peer.received.count == before && !peer.ended;) timeout_turn(&turns);
    }
    ck_assert(peer.clean);
    ck_assert_uint_gt(peer.received.count, 600000);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* How long a client has let us wait is the time since its write began, whatever a new generation says of timeouts. */
START_TEST(test_who_makes_room_is_not_chosen_by_a_new_generations_bounds)
{
    static const uint32_t body_ms[] = {BODY_MS + 5000, BODY_MS - 5000, UINT32_MAX};
    for (size_t i = 0; i < CY_COUNT_OF(body_ms); i++) {
        struct timeout_peer peer, early, late;
        struct http_server_counters counters;
        timeout_open_for(1);
        timeout_connect(&peer);
        peer.deaf = true;
        timeout_send(&peer, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        timeout_reload(body_ms[i]);
        ck_assert(!timeout_try_connect(&early)); /* nobody has let us wait for long enough */
        timeout_await_end(&early);
        timeout_pause(LIMIT_HTTP_OWING_MS);
        timeout_connect(&late);
        http_server_read_counters(server, &counters);
        ck_assert_uint_eq(counters.evictions, 1);
        peer.deaf = false;
        stream_read_start(peer.stream, &peer.read);
        timeout_await_end(&peer);
        ck_assert(!peer.clean);
        timeout_peer_close(&peer);
        timeout_peer_close(&early);
        timeout_peer_close(&late);
        timeout_close();
    }
}
END_TEST

/* An idle connection to a server goes after 4 s, or a second before the time that the server promised. */
START_TEST(test_idle_upstream_connections_go_before_common_servers_hang_up)
{
    const struct {
        const char *head;
        uint64_t ms;
    } rows[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", 4000},
                {"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 1\r\n\r\n1", 4000},
                {"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=3, max=9\r\nContent-Length: 1\r\n\r\n1", 2000},
                {"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 1\r\n\r\n1", 0}};
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct timeout_peer peer;
        timeout_open();
        timeout_connect(&peer);
        timeout_send(&peer, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        timeout_await(&back, "\r\n\r\n");
        timeout_send(&back, rows[i].head);
        uint64_t begin_ms = loop_now_ms(loop);
        timeout_await_end(&back);
        timeout_expect_after(&back, begin_ms, rows[i].ms);
        timeout_peer_close(&peer);
        timeout_close();
    }
}
END_TEST

/* A refusal that has to wait for an interim answer which the client does not take: the time of that write goes on,
 * whether the whole took too long or the client's body was at fault. */
START_TEST(test_a_refusal_behind_an_interim_answer_that_nobody_reads_ends)
{
    static const char *const requests[] = {
        "GET /bounded HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"};
    for (int bad_body = 0; bad_body < 2; bad_body++) {
        struct timeout_peer peer;
        struct http_server_counters counters;
        static char interim[9000];
        timeout_open();
        timeout_connect(&peer);
        peer.deaf = true;
        timeout_send(&peer, requests[bad_body]);
        timeout_await(&back, "\r\n\r\n");
        int head_bytes = snprintf(interim, sizeof interim, "HTTP/1.1 103 Early Hints\r\nLink: ");
        memset(interim + head_bytes, 'x', 8000);
        memcpy(interim + head_bytes + 8000, "\r\n\r\n", sizeof "\r\n\r\n");
        for (int i = 0; i < LIMIT_HTTP_INTERIM_RESPONSES; i++) timeout_send(&back, interim);
        if (bad_body) timeout_send(&peer, "no chunk\r\n");
        timeout_pause(TOTAL_MS + 3 * BODY_MS);
        http_server_read_counters(server, &counters);
        ck_assert_uint_eq(counters.connections_open, 0);
        ck_assert_uint_eq(counters.client_aborts, 1);
        peer.deaf = false;
        stream_read_start(peer.stream, &peer.read);
        timeout_await_end(&peer);
        ck_assert(!peer.clean);
        timeout_peer_close(&peer);
        timeout_close();
    }
}
END_TEST

static void timeout_begin_tunnel(struct timeout_peer *peer)
{
    timeout_connect(peer);
    timeout_send(peer, "GET /t HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    timeout_await(&back, "\r\n\r\n");
    timeout_send(&back,
                 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    timeout_await(peer, "\r\n\r\n");
}

START_TEST(test_a_tunnel_lasts_while_either_side_speaks)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_begin_tunnel(&peer);
    for (int i = 0; i < 5; i++) {
        timeout_pause(TUNNEL_MS - 1000);
        timeout_send(i & 1 ? &peer : &back, "x");
        timeout_await(i & 1 ? &back : &peer, "x");
    }
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_await_end(&peer);
    timeout_expect_after(&peer, begin_ms, TUNNEL_MS);
    timeout_await_end(&back);
    ck_assert(!peer.clean && !back.clean);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* A side that has finished leaves the other a shorter silence, whichever it was. */
START_TEST(test_a_tunnel_of_which_one_side_has_finished_waits_less)
{
    struct timeout_peer peer;
    for (int upstream_first = 0; upstream_first < 2; upstream_first++) {
        timeout_open();
        timeout_begin_tunnel(&peer);
        struct timeout_peer *first = upstream_first ? &back : &peer, *other = upstream_first ? &peer : &back;
        timeout_pause(1000);
        stream_shutdown_write(first->stream);
        timeout_await_end(other);
        ck_assert(other->clean && !first->ended);
        timeout_pause(LIMIT_HTTP_TUNNEL_HALF_MS - 1000);
        timeout_send(other, "x");
        timeout_await(first, "x");
        uint64_t begin_ms = loop_now_ms(loop);
        timeout_await_end(first);
        timeout_expect_after(first, begin_ms, LIMIT_HTTP_TUNNEL_HALF_MS);
        timeout_peer_close(&peer);
        timeout_close();
    }
}
END_TEST

START_TEST(test_a_tunnel_allocates_nothing_for_its_bytes)
{
    struct timeout_peer peer;
    uint64_t before = 0;
    timeout_open();
    timeout_begin_tunnel(&peer);
    for (int i = 0; i < 20; i++) {
        if (i == 5) before = mem_allocation_count();
        timeout_send(&peer, "some bytes");
        timeout_await(&back, "some bytes");
        timeout_send(&back, "others");
        timeout_await(&peer, "others");
    }
    ck_assert_uint_eq(mem_allocation_count(), before);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* A refusal that comes while the request is still on its way, and then stops: that the upstream has read the rest of
 * the request meanwhile does not give it time without end. */
START_TEST(test_an_early_answer_that_stops_is_cut_off)
{
    static const uint8_t body[300000];
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
    for (unsigned turns = 0; back_count == 0;) timeout_turn(&turns);
    back.deaf = true;
    peer.write.send = (struct loop_send){.parts = {cy_bytes_of(body, sizeof body)}, .part_count = 1};
    peer.writing = true;
    stream_write_start(peer.stream, &peer.write);
    timeout_pause(100);
    ck_assert(peer.writing); /* nobody takes it: the proxy's write to the upstream waits */
    timeout_send(&back, "HTTP/1.1 400 x\r\nContent-Length: 10\r\n\r\nab");
    timeout_await(&peer, "\r\n\r\nab");
    uint64_t begin_ms = loop_now_ms(loop);
    back.deaf = false;
    stream_read_start(back.stream, &back.read);
    timeout_await_end(&peer);
    timeout_expect_after(&peer, begin_ms, IDLE_MS);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* Where others serve already: a client between two requests may send one more in that time, and one that does not is
 * let go at its end; then nothing is left. */
static bool timeout_drained;
static void timeout_on_drained(void *context)
{
    (void)context;
    timeout_drained = true;
}

START_TEST(test_an_idle_connection_is_let_go_when_others_serve)
{
    struct timeout_peer silent, speaks;
    timeout_open();
    timeout_drained = false;
    struct timeout_peer *peers[] = {&silent, &speaks};
    for (int i = 0; i < 2; i++) {
        timeout_connect(peers[i]);
        timeout_send(peers[i], "GET /here HTTP/1.1\r\nHost: a\r\n\r\n");
        timeout_await(peers[i], "\r\n\r\nx\n");
    }
    uint64_t begin_ms = loop_now_ms(loop);
    http_server_hand_over(server, HAND_OVER_MS, timeout_on_drained);
    timeout_pause(HAND_OVER_MS / 2);
    ck_assert(!silent.ended && !speaks.ended);
    timeout_send(&speaks, "GET /here HTTP/1.1\r\nHost: a\r\n\r\n");
    timeout_await(&speaks, "Connection: close");
    timeout_await(&speaks, "\r\n\r\nx\n");
    timeout_await_end(&speaks);
    ck_assert(!silent.ended && !timeout_drained);
    timeout_await_end(&silent);
    timeout_expect_after(&silent, begin_ms, HAND_OVER_MS);
    ck_assert(silent.clean && silent.received.count == 0);
    for (unsigned turns = 0; !timeout_drained;) timeout_turn(&turns);
    timeout_peer_close(&silent);
    timeout_peer_close(&speaks);
    timeout_close();
}
END_TEST

/* And sooner when told: who is between two requests goes now, what runs is finished. */
START_TEST(test_the_time_of_idle_connections_can_end_early)
{
    struct timeout_peer idle, runs;
    timeout_open();
    timeout_drained = false;
    timeout_connect(&idle);
    timeout_send(&idle, "GET /here HTTP/1.1\r\nHost: a\r\n\r\n");
    timeout_await(&idle, "\r\n\r\nx\n");
    timeout_connect(&runs);
    timeout_send(&runs, "POST /here HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
    timeout_pause(1);
    http_server_hand_over(server, HAND_OVER_MS, timeout_on_drained);
    timeout_pause(HAND_OVER_MS / 4);
    ck_assert(!idle.ended && !runs.ended);
    uint64_t begin_ms = loop_now_ms(loop);
    http_server_end_idle(server);
    timeout_await_end(&idle);
    timeout_expect_after(&idle, begin_ms, 0);
    ck_assert(idle.clean && idle.received.count == 0);
    ck_assert(!runs.ended && !timeout_drained);
    timeout_send(&runs, "b");
    timeout_await(&runs, "\r\n\r\nx\n");
    timeout_await_end(&runs);
    for (unsigned turns = 0; !timeout_drained;) timeout_turn(&turns);
    timeout_peer_close(&idle);
    timeout_peer_close(&runs);
    timeout_close();
}
END_TEST

Suite *unit_suite_http_timeout(void);
Suite *unit_suite_http_timeout(void)
{
    Suite *suite = suite_create("http_timeout");
    TCase *tests = tcase_create("timeout");
    tcase_add_test(tests, test_a_connection_that_never_speaks_is_closed_without_a_word);
    tcase_add_test(tests, test_a_head_that_does_not_end_is_408);
    tcase_add_test(tests, test_an_idle_connection_is_closed_without_a_word);
    tcase_add_test(tests, test_a_body_that_does_not_come_is_408_and_cuts_the_upstream);
    tcase_add_test(tests, test_no_answer_in_time_is_504);
    tcase_add_test(tests, test_an_answer_that_stops_inside_its_head_is_504);
    tcase_add_test(tests, test_no_100_inside_an_answer);
    tcase_add_test(tests, test_an_answer_that_stops_is_cut_off);
    tcase_add_test(tests, test_a_slow_body_is_408_and_one_at_the_least_rate_is_not);
    tcase_add_test(tests, test_a_fast_beginning_buys_no_more_than_the_idle_timeout);
    tcase_add_test(tests, test_a_verdict_bounds_the_whole);
    tcase_add_test(tests, test_a_verdict_bounds_the_first_byte_and_an_answer_without_end);
    tcase_add_test(tests, test_an_answer_that_nobody_reads_is_cut_off);
    tcase_add_test(tests, test_a_slow_reader_at_the_least_rate_gets_it_all);
    tcase_add_test(tests, test_a_slow_reader_is_judged_by_the_period_that_it_was_given);
    tcase_add_test(tests, test_who_makes_room_is_not_chosen_by_a_new_generations_bounds);
    tcase_add_test(tests, test_a_refusal_behind_an_interim_answer_that_nobody_reads_ends);
    tcase_add_test(tests, test_idle_upstream_connections_go_before_common_servers_hang_up);
    tcase_add_test(tests, test_a_tunnel_lasts_while_either_side_speaks);
    tcase_add_test(tests, test_a_tunnel_of_which_one_side_has_finished_waits_less);
    tcase_add_test(tests, test_a_tunnel_allocates_nothing_for_its_bytes);
    tcase_add_test(tests, test_an_early_answer_that_stops_is_cut_off);
    tcase_add_test(tests, test_an_idle_connection_is_let_go_when_others_serve);
    tcase_add_test(tests, test_the_time_of_idle_connections_can_end_early);
    suite_add_tcase(suite, tests);
    return suite;
}
