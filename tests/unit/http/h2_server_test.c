/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_server_test.c: proves that a server answers over HTTP/2: heads, bodies through any windows, ends
 * of streams and connections. The client is h2_peer.c, frame by frame. Refusals: h2_rule_test.c, h2_flood_test.c.
 */
#include "tests/unit/http/h2_world.h"

#include "vm/base/mem.h"
#include "vm/http/h2_session.h"

#include <check.h>
#include <stdio.h>

/* -- answers --------------------------------------------------------------------------------------------- */

START_TEST(test_a_request_is_answered)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_get(&world.peer, 1, "/5");
    struct h2_frame frame = h2_peer_wait(&world.peer);
    ck_assert_uint_eq(frame.type, PEER_HEADERS);
    ck_assert_uint_eq(frame.flags, PEER_END_HEADERS);
    ck_assert(h2_peer_has(frame.payload, ":status: 200\n"));
    ck_assert(h2_peer_has(frame.payload, "\ncontent-length: 5\n"));
    ck_assert(h2_peer_has(frame.payload, "\ndate: "));
    frame = h2_peer_wait(&world.peer);
    ck_assert_uint_eq(frame.type, PEER_DATA);
    ck_assert_uint_eq(frame.flags, PEER_END_STREAM);
    ck_assert(cy_bytes_equal(frame.payload, CY_BYTES("abcde")));
    ck_assert(h2_peer_has(builder_view(&world.seen), "GET a.example /5\nHost: a.example\n"));
    ck_assert(!world.peer.ended);
    h2_world_close(&world);
}
END_TEST

/* The preface one byte at a time; what is no preface after all is HTTP/1, and refused as that. */
START_TEST(test_the_preface_comes_in_pieces_or_not_at_all)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_close(&world.peer);
    h2_world_connect(&world, NULL, 1);
    h2_peer_greet(&world.peer);
    h2_peer_get(&world.peer, 1, "/204");
    ck_assert(h2_peer_has(h2_peer_wait(&world.peer).payload, ":status: 204\n"));
    h2_peer_close(&world.peer);
    h2_world_connect(&world, NULL, 5);
    h2_peer_bytes(&world.peer, CY_BYTES("PRI * HTTP/2.0\r\n\r\nSMALL\r\n"));
    h2_peer_wait_end(&world.peer);
    ck_assert(h2_peer_has(builder_view(&world.peer.received), "HTTP/1.1 505 "));
    h2_peer_close(&world.peer);
    h2_world_connect(&world, NULL, 0); /* behind a request of HTTP/1 it comes too late */
    h2_peer_bytes(&world.peer,
                  CY_BYTES("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    h2_peer_wait_end(&world.peer);
    ck_assert(h2_peer_has(builder_view(&world.peer.received), "HTTP/1.1 505 "));
    h2_world_close(&world);
}
END_TEST

START_TEST(test_answers_without_body_end_with_their_head)
{
    static const char *const heads[] = {":method: HEAD\n:scheme: http\n:authority: a\n:path: /7\n",
                                        ":method: GET\n:scheme: http\n:authority: a\n:path: /204\n",
                                        ":method: GET\n:scheme: http\n:authority: a\n:path: /304\n",
                                        ":method: GET\n:scheme: http\n:authority: a\n:path: /0\n"};
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    for (uint32_t i = 0; i < CY_COUNT_OF(heads); i++) {
        h2_peer_head(&world.peer, PEER_END_STREAM, 2 * i + 1, heads[i]);
        struct h2_frame frame = h2_peer_wait(&world.peer);
        ck_assert_uint_eq(frame.type, PEER_HEADERS);
        if (i == 3 && !(frame.flags & PEER_END_STREAM)) { /* an empty DATA may carry it */
            frame = h2_peer_wait(&world.peer);
            ck_assert_uint_eq(frame.payload.count, 0);
        }
        ck_assert(frame.flags & PEER_END_STREAM);
        if (i == 0) ck_assert(h2_peer_has(frame.payload, "content-length: 7\n"));
    }
    h2_world_close(&world);
}
END_TEST

/* All that one read brought is answered with one write. */
START_TEST(test_answers_of_a_turn_go_out_together)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_get(&world.peer, 1, "/1");
    ck_assert_uint_eq(h2_peer_wait(&world.peer).type, PEER_HEADERS);
    ck_assert_uint_eq(h2_peer_wait(&world.peer).type, PEER_DATA);
    unsigned reads = world.peer.read_count;
    for (uint32_t id = 3; id < 3 + 2 * 50; id += 2) h2_peer_get(&world.peer, id, "/10");
    for (int i = 0; i < 100; i++) (void)h2_peer_wait(&world.peer);
    ck_assert_uint_eq(world.request_count, 51);
    ck_assert_uint_le(world.peer.read_count - reads, 2);
    h2_world_close(&world);
}
END_TEST

START_TEST(test_fields_arrive_as_from_http1)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_head(&world.peer, PEER_END_STREAM, 1,
                 ":method: GET\n:scheme: http\n:authority: A.Example:80\n:path: /a/%2e%2E/b?q=1\n"
                 "cookie: a=1\nx-a: v\ncookie: b=2\nhost: a.example:80\ncookie: c=3\nte: trailers\n");
    ck_assert(h2_peer_has(h2_peer_wait(&world.peer).payload, ":status: 200"));
    cy_bytes seen = builder_view(&world.seen);
    ck_assert(h2_peer_has(seen, "GET a.example /b\n"));
    ck_assert(h2_peer_has(seen, "cookie: a=1; b=2; c=3\n"));
    ck_assert(h2_peer_has(seen, "x-a: v\n"));
    ck_assert(h2_peer_has(seen, "host: A.Example:80\n"));
    h2_world_close(&world);
}
END_TEST

/* -- ends ------------------------------------------------------------------------------------------------ */

START_TEST(test_a_stream_that_the_client_resets_is_gone)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_get(&world.peer, 1, "/wait");
    h2_peer_get(&world.peer, 3, "/wait");
    while (world.waiting_count < 2) h2_peer_turn(&world.peer);
    h2_peer_u32(&world.peer, PEER_RST, 1, NGHTTP2_CANCEL);
    while (world.gone_count < 1) h2_peer_turn(&world.peer);
    ck_assert_uint_eq(world.waiting_count, 1);
    h2_world_respond(&world, world.waiting[0], 200, 3); /* the other one goes on */
    ck_assert_uint_eq(h2_peer_wait(&world.peer).id, 3);
    h2_world_close(&world);
}
END_TEST

START_TEST(test_a_closed_connection_ends_all_its_streams)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    for (uint32_t id = 1; id < 20; id += 2) h2_peer_get(&world.peer, id, "/wait");
    while (world.waiting_count < 10) h2_peer_turn(&world.peer);
    stream_close(&world.peer.stream);
    while (world.gone_count < 10) {
        loop_wake(world.loop);
        ck_assert(!cy_failed(loop_turn(world.loop)));
    }
    h2_world_close(&world);
}
END_TEST

/* Behind an answer that came before the end of the request: NO_ERROR, so that the answer is kept. */
START_TEST(test_a_request_still_under_way_is_stopped_after_its_answer)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_head(&world.peer, 0, 1, ":method: POST\n:scheme: http\n:authority: a\n:path: /3\n");
    h2_peer_frame(&world.peer, PEER_DATA, 0, 1, CY_BYTES("some"));
    ck_assert_uint_eq(h2_peer_wait(&world.peer).type, PEER_HEADERS);
    struct h2_frame frame = h2_peer_wait(&world.peer);
    ck_assert_uint_eq(frame.type, PEER_DATA);
    ck_assert(frame.flags & PEER_END_STREAM);
    frame = h2_peer_wait(&world.peer);
    ck_assert_uint_eq(frame.type, PEER_RST);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 0), NGHTTP2_NO_ERROR);
    h2_world_close(&world);
}
END_TEST

START_TEST(test_draining_finishes_what_runs)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_get(&world.peer, 1, "/wait");
    while (world.waiting_count < 1) h2_peer_turn(&world.peer);
    http_server_drain(world.server, h2_world_on_drained);
    struct h2_frame frame = h2_peer_wait(&world.peer);
    ck_assert_uint_eq(frame.type, PEER_GOAWAY);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 0), 0x7fffffff);
    frame = h2_peer_wait(&world.peer);
    ck_assert_uint_eq(frame.type, PEER_PING);
    h2_peer_get(&world.peer, 3, "/2"); /* was on its way */
    h2_peer_frame(&world.peer, PEER_PING, PEER_ACK, 0, frame.payload);
    bool answered = false, told = false;
    while (!answered || !told) {
        frame = h2_peer_wait(&world.peer);
        answered |= frame.type == PEER_DATA && frame.id == 3;
        if (frame.type != PEER_GOAWAY) continue;
        ck_assert_uint_eq(h2_peer_number(frame.payload, 0), 3);
        told = true;
    }
    ck_assert(!world.peer.ended && !world.drained);
    h2_world_respond(&world, world.waiting[0], 200, 2);
    ck_assert_uint_eq(h2_peer_wait(&world.peer).id, 1);
    ck_assert(h2_peer_wait(&world.peer).flags & PEER_END_STREAM);
    h2_peer_wait_end(&world.peer);
    stream_close(&world.peer.stream);
    while (!world.drained) {
        loop_wake(world.loop);
        ck_assert(!cy_failed(loop_turn(world.loop)));
    }
    h2_world_close(&world);
}
END_TEST

/* A connection between two requests is told in two steps too: a request may be on its way. */
START_TEST(test_draining_loses_no_request_between_two)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_get(&world.peer, 1, "/204");
    ck_assert_uint_eq(h2_peer_wait(&world.peer).type, PEER_HEADERS);
    http_server_drain(world.server, h2_world_on_drained);
    h2_peer_head(&world.peer, PEER_END_STREAM, 3,
                 ":method: POST\n:scheme: http\n:authority: a\n:path: /204\n");
    struct h2_frame frame, ping = {0};
    bool answered = false, told = false;
    for (unsigned goaways = 0; !answered || !told;) {
        frame = h2_peer_wait(&world.peer);
        answered |= frame.type == PEER_HEADERS && frame.id == 3;
        if (frame.type == PEER_GOAWAY) {
            told = goaways > 0;
            ck_assert_uint_eq(h2_peer_number(frame.payload, 0), goaways++ ? 3 : 0x7fffffff);
        }
        if (frame.type == PEER_PING) ping = frame;
        if (answered && ping.type == PEER_PING) {
            h2_peer_frame(&world.peer, PEER_PING, PEER_ACK, 0, CY_BYTES(H2_DRAIN_PING));
            ping.type = 0;
        }
    }
    h2_peer_wait_end(&world.peer);
    stream_close(&world.peer.stream);
    while (!world.drained) {
        loop_wake(world.loop);
        ck_assert(!cy_failed(loop_turn(world.loop)));
    }
    h2_world_close(&world);
}
END_TEST

START_TEST(test_a_name_that_the_connection_is_not_for)
{
    struct h2_world world;
    struct stream_info info = {
        .descriptor = -1, .secure = true, .alpn = CY_BYTES("h2"), .sni = CY_BYTES("a.example")};
    h2_world_open(&world, NULL, NULL);
    h2_peer_close(&world.peer);
    h2_world_connect(&world, &info, 0);
    h2_peer_greet(&world.peer);
    h2_peer_head(&world.peer, PEER_END_STREAM, 1,
                 ":method: GET\n:scheme: https\n:authority: b.example\n:path: /1\n");
    ck_assert(h2_peer_has(h2_peer_wait(&world.peer).payload, ":status: 421\n"));
    (void)h2_peer_wait(&world.peer);
    h2_peer_get(&world.peer, 3, "/1");
    ck_assert(h2_peer_has(h2_peer_wait(&world.peer).payload, ":status: 200\n"));
    h2_world_close(&world);
}
END_TEST

/* -- windows --------------------------------------------------------------------------------------------- */

static uint32_t h2_world_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* Bodies of several streams through windows that open a little at a time, some streams reset on the way: what arrives
 * is a beginning of the body, never past a window, and whole where it was not reset. */
START_TEST(test_bodies_through_random_windows)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        enum { STREAMS = 6 };
        struct h2_world world;
        uint64_t state = seed;
        size_t wanted[STREAMS], got[STREAMS] = {0}, window[STREAMS], connection = 65535, done = 0;
        bool over[STREAMS] = {false};
        h2_world_open(&world, NULL, NULL);
        if (seed % 3 == 0) { /* over TLS, in records cut anywhere */
            h2_peer_close(&world.peer);
            h2_world_connect_tls(&world, seed % 2 ? 0 : 1 + h2_world_random(&state, 3000));
        }
        h2_peer_greet(&world.peer);
        uint32_t initial = h2_world_random(&state, 3) ? h2_world_random(&state, 5000) : 65535;
        h2_peer_setting(&world.peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, initial);
        for (uint32_t i = 0; i < STREAMS; i++) {
            char path[16];
            wanted[i] = h2_world_random(&state, 3) ? h2_world_random(&state, 3000)
                                                   : h2_world_random(&state, H2_WORLD_BODY_BYTES);
            window[i] = initial;
            snprintf(path, sizeof path, "/%zu", wanted[i]);
            h2_peer_get(&world.peer, 2 * i + 1, path);
        }
        for (int turn = 0; done < STREAMS; turn++) {
            struct h2_frame frame;
            ck_assert_int_lt(turn, 100000);
            h2_peer_turn(&world.peer);
            while (h2_peer_next(&world.peer, false, &frame)) {
                if (frame.type == PEER_HEADERS && !(frame.flags & PEER_END_STREAM)) continue;
                uint32_t i = (frame.id - 1) / 2;
                ck_assert_uint_lt(i, STREAMS);
                if (frame.type == PEER_DATA) {
                    ck_assert_uint_le(frame.payload.count, window[i]);
                    ck_assert_uint_le(frame.payload.count, connection);
                    window[i] -= frame.payload.count;
                    connection -= frame.payload.count;
                    ck_assert_uint_le(got[i] + frame.payload.count, wanted[i]);
                    ck_assert_int_eq(memcmp(frame.payload.data, world.body + got[i], frame.payload.count), 0);
                    got[i] += frame.payload.count;
                }
                if (!(frame.flags & PEER_END_STREAM) || over[i]) continue;
                ck_assert_uint_eq(got[i], wanted[i]);
                over[i] = true;
                done++;
            }
            uint32_t i = h2_world_random(&state, STREAMS), more = 1 + h2_world_random(&state, 60000);
            if (over[i]) continue;
            if (h2_world_random(&state, 200) == 0) {
                h2_peer_u32(&world.peer, PEER_RST, 2 * i + 1, NGHTTP2_CANCEL);
                over[i] = true;
                done++;
                continue;
            }
            h2_peer_u32(&world.peer, PEER_WINDOW, 2 * i + 1, more);
            window[i] += more;
            more = 1 + h2_world_random(&state, 60000);
            h2_peer_u32(&world.peer, PEER_WINDOW, 0, more);
            connection += more;
        }
        h2_world_close(&world);
    }
}
END_TEST

/* What comes in one piece over TLS is more than one read of it: the next read has its bytes at once. */
START_TEST(test_a_burst_over_tls)
{
    static const uint8_t bytes[16384];
    for (size_t read_bytes_max = 0; read_bytes_max < 3; read_bytes_max++) {
        struct h2_world world;
        h2_world_open(&world, NULL, NULL);
        h2_peer_close(&world.peer);
        h2_world_connect_tls(&world, read_bytes_max * 20000);
        h2_peer_greet(&world.peer);
        h2_peer_frame(&world.peer, PEER_SETTINGS, PEER_ACK, 0, CY_BYTES_NONE);
        while (world.peer.received.count == 0) h2_peer_turn(&world.peer);
        h2_peer_head(&world.peer, 0, 1,
                     ":method: POST\n:scheme: https\n:authority: a.example\n:path: /wait\n");
        for (size_t sent = 0; sent < LIMIT_HTTP2_STREAM_WINDOW_BYTES; sent += sizeof bytes)
            h2_peer_frame(&world.peer, PEER_DATA, 0, 1, cy_bytes_of(bytes, sizeof bytes));
        h2_peer_get(&world.peer, 3, "/30000");
        struct h2_frame frame = h2_peer_wait(&world.peer);
        ck_assert_uint_eq(frame.id, 3);
        ck_assert(h2_peer_has(frame.payload, ":status: 200\n"));
        for (size_t got = 0; got < 30000; got += frame.payload.count) frame = h2_peer_wait(&world.peer);
        h2_world_close(&world);
    }
}
END_TEST

/* A client that opens no window: nothing but heads, and its memory is one slice's parts, not the body. */
START_TEST(test_a_window_that_stays_shut)
{
    struct h2_world world;
    struct h2_frame frame;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_setting(&world.peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    for (uint32_t id = 1; id < 2 * 100; id += 2) h2_peer_get(&world.peer, id, "/300000");
    for (int heads = 0; heads < 100; heads++) ck_assert_uint_eq(h2_peer_wait(&world.peer).type, PEER_HEADERS);
    for (int i = 0; i < 20; i++) h2_peer_turn(&world.peer);
    ck_assert(!h2_peer_next(&world.peer, false, &frame));
    /* each request's and each answer's head, and the reads under way */
    ck_assert_uint_le(buffer_pool_lent(loop_buffers(world.loop)), 2 * 100 + 4);
    h2_world_close(&world);
}
END_TEST

/* Requests in the steady state take their memory from pools, nghttp2's too. */
START_TEST(test_a_request_allocates_nothing)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    struct builder block;
    builder_init(&block);
    h2_peer_pack(&block, H2_WORLD_GET "user-agent: test\naccept: */*\n");
    ck_assert(
        !cy_failed(http_verdict_respond(200, cy_bytes_of(world.body, 5000), NULL, 0, &world.verdict, NULL)));
    uint32_t id = 1;
    uint64_t before = 0;
    struct builder *own[] = {&world.peer.pending, &world.peer.sending, &world.peer.received};
    for (size_t i = 0; i < CY_COUNT_OF(own); i++) ck_assert_ptr_nonnull(builder_reserve(own[i], 1 << 20));
    /* A new peak of what is in flight at once may still allocate; 40 rounds without one must come. */
    for (int round = 0, quiet = 0; quiet < 40; round++) {
        ck_assert_int_lt(round, 1000);
        before = mem_allocation_count();
        world.peer.parsed = 0; /* the peer's own memory stays as it is */
        builder_clear(&world.peer.received);
        h2_peer_u32(&world.peer, PEER_WINDOW, 0, 20 * 5000);
        for (int i = 0; i < 20; i++, id += 2)
            h2_peer_frame(&world.peer, PEER_HEADERS, PEER_END_STREAM | PEER_END_HEADERS, id,
                          builder_view(&block));
        for (int i = 0; i < 40; i++) (void)h2_peer_wait(&world.peer);
        quiet = mem_allocation_count() == before ? quiet + 1 : 0;
    }
    http_verdict_unref(&world.verdict);
    builder_fini(&block);
    h2_world_close(&world);
}
END_TEST

Suite *unit_suite_http_h2_server(void);
Suite *unit_suite_http_h2_server(void)
{
    Suite *suite = suite_create("http_h2_server");
    TCase *cases = tcase_create("h2_server");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, test_a_request_is_answered);
    tcase_add_test(cases, test_the_preface_comes_in_pieces_or_not_at_all);
    tcase_add_test(cases, test_answers_without_body_end_with_their_head);
    tcase_add_test(cases, test_answers_of_a_turn_go_out_together);
    tcase_add_test(cases, test_fields_arrive_as_from_http1);
    tcase_add_test(cases, test_a_stream_that_the_client_resets_is_gone);
    tcase_add_test(cases, test_a_closed_connection_ends_all_its_streams);
    tcase_add_test(cases, test_a_request_still_under_way_is_stopped_after_its_answer);
    tcase_add_test(cases, test_draining_finishes_what_runs);
    tcase_add_test(cases, test_draining_loses_no_request_between_two);
    tcase_add_test(cases, test_a_name_that_the_connection_is_not_for);
    tcase_add_test(cases, test_bodies_through_random_windows);
    tcase_add_test(cases, test_a_burst_over_tls);
    tcase_add_test(cases, test_a_window_that_stays_shut);
    tcase_add_test(cases, test_a_request_allocates_nothing);
    suite_add_tcase(suite, cases);
    return suite;
}
