/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_client_test.c: proves that requests go to servers over HTTP/2: streams on one connection, trailers
 * both ways as gRPC needs them, what is sent again and what is not, windows, ends. Client and server are h2_peer.c,
 * frame by frame, with the proxy between.
 *
 *   peer ── loopback ── server ── proxy ── client ── socket on 127.0.0.1 ── far[0..]
 */
#include "tests/unit/http/h2_relay.h"

#include <check.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* What gRPC does, in small: a request in pieces, an answer in pieces, trailers at both ends. */
START_TEST(test_trailers_pass_both_ways)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_head(&relay.peer, 0, 1,
                 ":method: POST\n:scheme: http\n:authority: a.example\n:path: /pkg.Echo/Say\n"
                 "content-type: application/grpc\nte: trailers\ngrpc-timeout: 1S\n");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    struct h2_frame frame = h2_peer_wait(far);
    ck_assert_uint_eq(frame.type, PEER_HEADERS);
    ck_assert_uint_eq(frame.flags, PEER_END_HEADERS);
    uint32_t id = frame.id;
    ck_assert(
        cy_bytes_start_with(frame.payload, CY_BYTES(":method: POST\n:scheme: http\n:authority: a.example\n"
                                                    ":path: /base/pkg.Echo/Say\n")));
    ck_assert(h2_peer_has(frame.payload, "\nte: trailers\n") &&
              h2_peer_has(frame.payload, "\ngrpc-timeout: 1S\n"));
    ck_assert(h2_peer_has(frame.payload, "\nx-forwarded-proto: http\n"));
    ck_assert(!h2_peer_has(frame.payload, "transfer-encoding") && !h2_peer_has(frame.payload, "\nhost:"));
    h2_peer_frame(&relay.peer, PEER_DATA, 0, 1, CY_BYTES("ping"));
    frame = h2_peer_wait(far);
    ck_assert(cy_bytes_equal(frame.payload, CY_BYTES("ping")));
    /* the answer begins while the request goes on */
    h2_peer_head(far, 0, id, ":status: 200\ncontent-type: application/grpc\n");
    h2_peer_frame(far, PEER_DATA, 0, id, CY_BYTES("pong"));
    frame = h2_peer_wait(&relay.peer);
    ck_assert(h2_peer_has(frame.payload, ":status: 200\n"));
    ck_assert(!h2_peer_has(frame.payload, "content-length"));
    frame = h2_peer_wait(&relay.peer);
    ck_assert_uint_eq(frame.flags, 0);
    ck_assert(cy_bytes_equal(frame.payload, CY_BYTES("pong")));
    h2_peer_head(&relay.peer, PEER_END_STREAM, 1, "x-request-end: yes\n");
    do {
        frame = h2_peer_wait(far);
    } while (frame.type == PEER_DATA && frame.payload.count == 0);
    ck_assert_uint_eq(frame.type, PEER_HEADERS);
    ck_assert_uint_eq(frame.flags, PEER_END_HEADERS | PEER_END_STREAM);
    ck_assert(cy_bytes_equal(frame.payload, CY_BYTES("x-request-end: yes\n")));
    h2_peer_head(far, PEER_END_STREAM, id, "grpc-status: 0\ngrpc-message: fine\n");
    do {
        frame = h2_peer_wait(&relay.peer);
    } while (frame.type == PEER_DATA && frame.payload.count == 0);
    ck_assert_uint_eq(frame.type, PEER_HEADERS);
    ck_assert_uint_eq(frame.flags, PEER_END_HEADERS | PEER_END_STREAM);
    ck_assert(cy_bytes_equal(frame.payload, CY_BYTES("grpc-status: 0\ngrpc-message: fine\n")));
    /* an answer that is trailers only */
    h2_peer_get(&relay.peer, 3, "/x");
    id = h2_peer_wait(far).id;
    h2_peer_head(far, PEER_END_STREAM, id, ":status: 200\ngrpc-status: 12\n");
    frame = h2_peer_wait(&relay.peer);
    ck_assert_uint_eq(frame.flags, PEER_END_HEADERS | PEER_END_STREAM);
    ck_assert(h2_peer_has(frame.payload, "grpc-status: 12\n"));
    ck_assert_uint_eq(relay.far_count, 1);
    h2_relay_close(&relay);
}
END_TEST

/* Requests that come while the connection is made wait for it; afterwards they share it. */
START_TEST(test_streams_share_a_connection)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    for (uint32_t i = 0; i < 50; i++) h2_peer_get(&relay.peer, 2 * i + 1, "/");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    for (uint32_t i = 0; i < 50; i++) {
        struct h2_frame frame = h2_peer_wait(far);
        ck_assert_uint_eq(frame.type, PEER_HEADERS);
        h2_peer_head(far, 0, frame.id, ":status: 200\ncontent-length: 2\n");
        h2_peer_frame(far, PEER_DATA, PEER_END_STREAM, frame.id, CY_BYTES("ok"));
    }
    for (unsigned ended = 0; ended < 50;) ended += h2_peer_wait(&relay.peer).flags & PEER_END_STREAM;
    ck_assert_uint_eq(relay.far_count, 1);
    h2_relay_close(&relay);
}
END_TEST

/* As many at once as the server takes; more need another connection. */
START_TEST(test_a_full_connection_is_not_the_last)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_get(&relay.peer, 1, "/");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    h2_peer_setting(far, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2);
    struct h2_frame frame = h2_peer_wait(far);
    uint32_t first = frame.id;
    for (struct h2_frame ack;
         !h2_peer_next(far, true, &ack) || ack.type != PEER_SETTINGS || !(ack.flags & PEER_ACK);)
        h2_peer_turn(far);
    for (int i = 0; i < 5; i++) h2_peer_turn(far);
    h2_peer_get(&relay.peer, 3, "/");
    h2_peer_get(&relay.peer, 5, "/");
    ck_assert_uint_gt(h2_peer_wait(far).id, first);
    struct h2_peer *second = h2_relay_far(&relay, 1);
    h2_peer_greet_back(second);
    frame = h2_peer_wait(second);
    h2_peer_head(second, PEER_END_STREAM, frame.id, ":status: 204\n");
    ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 204\n"));
    h2_relay_close(&relay);
}
END_TEST

/* REFUSED_STREAM, and a stream past GOAWAY's last: the server did nothing, so even a first request, and a POST, goes
 * out again. */
START_TEST(test_what_the_server_did_not_begin_is_sent_again)
{
    for (int goaway = 0; goaway < 2; goaway++) {
        struct h2_relay relay;
        h2_relay_open(&relay, "h2c", "/base", false);
        h2_peer_head(&relay.peer, PEER_END_STREAM, 1,
                     ":method: POST\n:scheme: http\n:authority: a\n:path: /\n");
        struct h2_peer *far = h2_relay_far(&relay, 0);
        h2_peer_greet_back(far);
        uint32_t id = h2_peer_wait(far).id;
        if (goaway)
            h2_peer_frame(far, PEER_GOAWAY, 0, 0, CY_BYTES("\0\0\0\0\0\0\0\0"));
        else
            h2_peer_u32(far, PEER_RST, id, NGHTTP2_REFUSED_STREAM);
        struct h2_peer *second = h2_relay_far(&relay, 1);
        h2_peer_greet_back(second);
        id = h2_peer_wait(second).id;
        h2_peer_head(second, PEER_END_STREAM, id, ":status: 204\n");
        ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 204\n"));
        h2_relay_close(&relay);
    }
}
END_TEST

/* gRPC's calls all have a body. What has been taken of it goes out again from its beginning, whether it was whole by
 * then or not; but it is kept for as long as one buffer holds it, no longer. */
static void h2_client_refuse(struct h2_peer *far, uint32_t id, bool goaway)
{
    if (goaway)
        h2_peer_frame(far, PEER_GOAWAY, 0, 0, CY_BYTES("\0\0\0\0\0\0\0\0"));
    else
        h2_peer_u32(far, PEER_RST, id, NGHTTP2_REFUSED_STREAM);
}

/* Up to the end of a request: its body, without what DATA frames it came in. */
static void h2_client_expect_body(struct h2_peer *far, const char *body)
{
    struct builder got;
    struct h2_frame frame;
    builder_init(&got);
    do {
        frame = h2_peer_wait(far);
        ck_assert_uint_eq(frame.type, PEER_DATA);
        builder_bytes(&got, frame.payload);
    } while (!(frame.flags & PEER_END_STREAM));
    ck_assert(cy_bytes_equal(builder_view(&got), cy_bytes_from_text(body)));
    builder_fini(&got);
}

START_TEST(test_a_body_is_sent_again_with_what_the_server_did_not_begin)
{
    enum { WHOLE, ENDS_LATER, GOES_ON, WITH_LENGTH, IN_TWO, WITH_TRAILERS, CASES };
    for (int i = 0; i < 2 * CASES; i++) {
        int what = i / 2;
        bool goaway = i & 1, comes_again = what < IN_TWO;
        struct h2_relay relay;
        h2_relay_open(&relay, "h2c", "/base", false);
        h2_peer_head(&relay.peer, 0, 1,
                     what == WITH_LENGTH
                         ? ":method: POST\n:scheme: http\n:authority: a\n:path: /\ncontent-length: 5\n"
                         : ":method: POST\n:scheme: http\n:authority: a\n:path: /\nte: trailers\n");
        if (what == WHOLE || what == WITH_LENGTH)
            h2_peer_frame(&relay.peer, PEER_DATA, PEER_END_STREAM, 1, CY_BYTES("hello"));
        struct h2_peer *far = h2_relay_far(&relay, 0);
        h2_peer_greet_back(far);
        struct h2_frame frame = h2_peer_wait(far);
        ck_assert_uint_eq(frame.type, PEER_HEADERS);
        uint32_t id = frame.id;
        if (what != WHOLE && what != WITH_LENGTH) {
            h2_peer_frame(&relay.peer, PEER_DATA, 0, 1, CY_BYTES("hello"));
            ck_assert(cy_bytes_equal(h2_peer_wait(far).payload, CY_BYTES("hello")));
        }
        if (what == IN_TWO) {
            h2_peer_frame(&relay.peer, PEER_DATA, 0, 1, CY_BYTES(" you"));
            ck_assert(cy_bytes_equal(h2_peer_wait(far).payload, CY_BYTES(" you")));
        }
        if (what == ENDS_LATER) h2_peer_frame(&relay.peer, PEER_DATA, PEER_END_STREAM, 1, CY_BYTES_NONE);
        if (what == WITH_TRAILERS) h2_peer_head(&relay.peer, PEER_END_STREAM, 1, "x-request-end: yes\n");
        if (what == ENDS_LATER || what == WITH_TRAILERS)
            while (!(h2_peer_wait(far).flags & PEER_END_STREAM)) continue;
        if (what == WHOLE || what == WITH_LENGTH) h2_client_expect_body(far, "hello");
        h2_client_refuse(far, id, goaway);
        if (!comes_again) {
            ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 502\n"));
            ck_assert_uint_eq(relay.far_count, 1);
            h2_relay_close(&relay);
            continue;
        }
        struct h2_peer *second = h2_relay_far(&relay, 1);
        h2_peer_greet_back(second);
        id = h2_peer_wait(second).id;
        if (what == GOES_ON) {
            ck_assert(cy_bytes_equal(h2_peer_wait(second).payload, CY_BYTES("hello")));
            h2_peer_frame(&relay.peer, PEER_DATA, PEER_END_STREAM, 1, CY_BYTES(" you"));
            h2_client_expect_body(second, " you");
        } else {
            h2_client_expect_body(second, "hello");
        }
        h2_peer_head(second, PEER_END_STREAM, id, ":status: 204\n");
        ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 204\n"));
        h2_relay_close(&relay);
    }
}
END_TEST

/* Another reset says nothing of the kind: 502. Inside an answer it becomes a reset of the client's stream. */
START_TEST(test_other_resets_are_failures)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_head(&relay.peer, PEER_END_STREAM, 1, ":method: POST\n:scheme: http\n:authority: a\n:path: /\n");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    h2_peer_u32(far, PEER_RST, h2_peer_wait(far).id, NGHTTP2_INTERNAL_ERROR);
    ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 502\n"));
    ck_assert_uint_eq(h2_peer_wait(&relay.peer).type, PEER_DATA);
    h2_peer_get(&relay.peer, 3, "/");
    uint32_t id = h2_peer_wait(far).id;
    h2_peer_head(far, 0, id, ":status: 200\ncontent-length: 10\n");
    h2_peer_frame(far, PEER_DATA, 0, id, CY_BYTES("half"));
    ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 200\n"));
    ck_assert_uint_eq(h2_peer_wait(&relay.peer).type, PEER_DATA);
    h2_peer_u32(far, PEER_RST, id, NGHTTP2_CANCEL);
    struct h2_frame frame = h2_peer_wait(&relay.peer);
    ck_assert_uint_eq(frame.type, PEER_RST);
    ck_assert_uint_eq(frame.id, 3);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 0), NGHTTP2_INTERNAL_ERROR);
    ck_assert_uint_eq(relay.far_count, 1);
    h2_relay_close(&relay);
}
END_TEST

START_TEST(test_a_client_that_goes_away_cancels_upstream)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_get(&relay.peer, 1, "/");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    uint32_t id = h2_peer_wait(far).id;
    h2_peer_u32(&relay.peer, PEER_RST, 1, NGHTTP2_CANCEL);
    struct h2_frame frame = h2_peer_wait(far);
    ck_assert_uint_eq(frame.type, PEER_RST);
    ck_assert_uint_eq(frame.id, id);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 0), NGHTTP2_CANCEL);
    struct http_server_counters counters;
    http_server_read_counters(relay.server, &counters);
    ck_assert_uint_eq(counters.client_aborts, 1);
    h2_relay_close(&relay);
}
END_TEST

START_TEST(test_interim_answers_pass)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_get(&relay.peer, 1, "/");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    uint32_t id = h2_peer_wait(far).id;
    h2_peer_head(far, 0, id, ":status: 103\nlink: </s>\n");
    h2_peer_head(far, 0, id, ":status: 200\n");
    h2_peer_frame(far, PEER_DATA, PEER_END_STREAM, id, CY_BYTES("x"));
    struct h2_frame frame = h2_peer_wait(&relay.peer);
    ck_assert(h2_peer_has(frame.payload, ":status: 103\nlink: </s>\n"));
    ck_assert_uint_eq(frame.flags, PEER_END_HEADERS);
    ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 200\n"));
    ck_assert(cy_bytes_equal(h2_peer_wait(&relay.peer).payload, CY_BYTES("x")));
    h2_relay_close(&relay);
}
END_TEST

static const char *const h2_bad_answers[] = {
    "content-type: a\n",
    ":status: 99\n",
    ":status: abc\n",
    ":status: 200\nconnection: close\n",
    ":status: 200\ncontent-length: 1\ncontent-length: 2\n",
    ":status: 200\n:path: /\n",
    ":status: 101\n",
};

/* RFC 9113 section 8.1.1, towards servers: a malformed answer is none. */
START_TEST(test_malformed_answers_are_502)
{
    for (size_t i = 0; i < CY_COUNT_OF(h2_bad_answers); i++) {
        struct h2_relay relay;
        h2_relay_open(&relay, "h2c", "/base", false);
        h2_peer_get(&relay.peer, 1, "/");
        struct h2_peer *far = h2_relay_far(&relay, 0);
        h2_peer_greet_back(far);
        h2_peer_head(far, 0, h2_peer_wait(far).id, h2_bad_answers[i]);
        ck_assert_msg(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 502\n"), "%s",
                      h2_bad_answers[i]);
        h2_relay_close(&relay);
    }
}
END_TEST

/* Bodies longer than every window go through both connections, and neither side is sent more than it allows. */
START_TEST(test_long_bodies_pass_both_ways)
{
    enum { TOTAL = 1500000, PIECE = 9000 };
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    static uint8_t bytes[TOTAL];
    for (size_t i = 0; i < TOTAL; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    h2_peer_head(&relay.peer, 0, 1, ":method: POST\n:scheme: http\n:authority: a\n:path: /\n");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    uint32_t id = h2_peer_wait(far).id;
    h2_peer_head(far, 0, id, ":status: 200\n");
    struct h2_peer *ends[2] = {&relay.peer, far};
    uint32_t ids[2] = {1, id};
    size_t sent[2] = {0}, got[2] = {0}, stream_window[2] = {65535, LIMIT_HTTP2_STREAM_WINDOW_BYTES},
           window[2] = {65535,
                        LIMIT_HTTP2_UPSTREAM_WINDOW_BYTES}; /* of our end: said while the test waited */
    bool ended[2] = {false};
    for (int turn = 0; !ended[0] || !ended[1]; turn++) {
        ck_assert_int_lt(turn, 50000);
        for (int e = 0; e < 2; e++) {
            struct h2_frame frame;
            h2_peer_turn(ends[e]);
            while (h2_peer_next(ends[e], true, &frame)) {
                if (frame.type == PEER_SETTINGS && !(frame.flags & PEER_ACK)) {
                    stream_window[e] += LIMIT_HTTP2_STREAM_WINDOW_BYTES - 65535;
                    h2_peer_frame(ends[e], PEER_SETTINGS, PEER_ACK, 0, CY_BYTES_NONE);
                }
                if (frame.type == PEER_WINDOW)
                    *(frame.id ? &stream_window[e] : &window[e]) += h2_peer_number(frame.payload, 0);
                ck_assert_uint_ne(frame.type, PEER_RST);
                ck_assert_uint_ne(frame.type, PEER_GOAWAY);
                if (frame.type != PEER_DATA) continue;
                ck_assert_int_eq(memcmp(frame.payload.data, bytes + got[e], frame.payload.count), 0);
                got[e] += frame.payload.count;
                if (frame.payload.count) {
                    h2_peer_u32(ends[e], PEER_WINDOW, frame.id, (uint32_t)frame.payload.count);
                    h2_peer_u32(ends[e], PEER_WINDOW, 0, (uint32_t)frame.payload.count);
                }
                ended[e] |= (frame.flags & PEER_END_STREAM) != 0;
            }
            size_t piece =
                cy_min_size(cy_min_size(PIECE, TOTAL - sent[e]), cy_min_size(stream_window[e], window[e]));
            if (e == 1 && sent[e] + piece == TOTAL && got[1] < TOTAL) continue; /* the answer ends last */
            if (piece == 0 || ends[e]->pending.count > 100000) continue;
            stream_window[e] -= piece;
            window[e] -= piece;
            h2_peer_frame(ends[e], PEER_DATA, sent[e] + piece == TOTAL ? PEER_END_STREAM : 0, ids[e],
                          cy_bytes_of(bytes + sent[e], piece));
            sent[e] += piece;
        }
        ck_assert_uint_le(buffer_pool_lent(loop_buffers(relay.loop)), 64);
    }
    ck_assert_uint_eq(got[0], TOTAL);
    ck_assert_uint_eq(got[1], TOTAL);
    h2_relay_close(&relay);
}
END_TEST

/* An answer that ends while the request's last bytes wait for a window: the server must not take those that it has for
 * all. */
START_TEST(test_a_request_cut_off_by_its_answer_is_reset)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_head(&relay.peer, 0, 1, ":method: POST\n:scheme: http\n:authority: a\n:path: /\n");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    h2_peer_setting(far, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 3);
    uint32_t id = h2_peer_wait(far).id;
    for (int i = 0; i < 10; i++) h2_peer_turn(far);
    h2_peer_frame(&relay.peer, PEER_DATA, PEER_END_STREAM, 1, CY_BYTES("four"));
    ck_assert_uint_eq(h2_peer_wait(far).payload.count, 3);
    h2_peer_head(far, 0, id, ":status: 200\n");
    h2_peer_frame(far, PEER_DATA, PEER_END_STREAM, id, CY_BYTES("enough"));
    struct h2_frame frame = h2_peer_wait(far);
    ck_assert_uint_eq(frame.type, PEER_RST);
    ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 200\n"));
    ck_assert(cy_bytes_equal(h2_peer_wait(&relay.peer).payload, CY_BYTES("enough")));
    h2_relay_close(&relay);
}
END_TEST

/* An upload that the server does not read: what we hold of it is a window's worth. */
START_TEST(test_an_upload_that_nobody_reads_is_bounded)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_head(&relay.peer, 0, 1, ":method: POST\n:scheme: http\n:authority: a\n:path: /\n");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    (void)h2_peer_wait(far);
    uint8_t bytes[1000] = {0};
    size_t window = LIMIT_HTTP2_STREAM_WINDOW_BYTES, sent = 0;
    for (int i = 0; i < 400; i++) {
        struct h2_frame frame;
        while (h2_peer_next(&relay.peer, true, &frame))
            if (frame.type == PEER_WINDOW && frame.id == 1) window += h2_peer_number(frame.payload, 0);
        if (window >= sizeof bytes) {
            h2_peer_frame(&relay.peer, PEER_DATA, 0, 1, cy_bytes_of(bytes, sizeof bytes));
            window -= sizeof bytes;
            sent += sizeof bytes;
        }
        h2_peer_turn(&relay.peer);
    }
    ck_assert_uint_le(sent, 65535 + 2 * LIMIT_HTTP2_STREAM_WINDOW_BYTES);
    ck_assert_uint_lt(window, sizeof bytes);
    ck_assert_uint_le(buffer_pool_lent(loop_buffers(relay.loop)),
                      8 + LIMIT_HTTP2_STREAM_WINDOW_BYTES / LIMIT_BUFFER_BYTES);
    h2_relay_close(&relay);
}
END_TEST

/* Bodies that their clients do not read fill the windows of their streams, and leave others theirs: the connection is
 * everybody's. */
START_TEST(test_slow_clients_leave_others_the_connection)
{
    enum { SLOW = LIMIT_HTTP2_CONNECTION_WINDOW_BYTES / LIMIT_HTTP2_STREAM_WINDOW_BYTES + 1 };
    static const uint8_t bytes[16384];
    struct h2_relay relay;
    struct h2_frame frame;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_setting(&relay.peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    h2_peer_get(&relay.peer, 1, "/");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    h2_peer_frame(far, PEER_SETTINGS, PEER_ACK, 0, CY_BYTES_NONE);
    for (uint32_t i = 0; i < SLOW; i++) {
        if (i) h2_peer_get(&relay.peer, 2 * i + 1, "/");
        uint32_t id = h2_peer_wait(far).id;
        h2_peer_head(far, 0, id, ":status: 200\n");
        for (size_t k = 0; k < LIMIT_HTTP2_STREAM_WINDOW_BYTES; k += sizeof bytes)
            h2_peer_frame(far, PEER_DATA, 0, id, cy_bytes_of(bytes, sizeof bytes));
    }
    h2_peer_get(&relay.peer, 2 * SLOW + 1, "/");
    h2_peer_u32(&relay.peer, PEER_WINDOW, 2 * SLOW + 1, 100);
    uint32_t id = h2_peer_wait(far).id;
    h2_peer_head(far, 0, id, ":status: 200\n");
    h2_peer_frame(far, PEER_DATA, PEER_END_STREAM, id, CY_BYTES("quick"));
    do {
        frame = h2_peer_wait(&relay.peer);
    } while (frame.id != 2 * SLOW + 1 || frame.type != PEER_DATA);
    ck_assert(cy_bytes_equal(frame.payload, CY_BYTES("quick")));
    ck_assert_uint_le(buffer_pool_lent_bytes(loop_buffers(relay.loop)),
                      SLOW * (LIMIT_HTTP2_STREAM_WINDOW_BYTES + 4 * (size_t)LIMIT_BUFFER_BYTES) + (1 << 20));
    h2_relay_close(&relay);
}
END_TEST

/* LIMIT_HTTP2_UPSTREAM_WINDOW_BYTES is what the first WINDOW_UPDATE opens, no more: every stream's window. */
START_TEST(test_the_connection_s_window_at_and_past_the_limit)
{
    struct h2_relay relay;
    struct h2_frame frame;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_get(&relay.peer, 1, "/");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    do {
        while (!h2_peer_next(far, true, &frame)) h2_peer_turn(far);
    } while (frame.type != PEER_WINDOW);
    ck_assert_uint_eq(frame.id, 0);
    ck_assert_uint_eq(65535 + h2_peer_number(frame.payload, 0), LIMIT_HTTP2_UPSTREAM_WINDOW_BYTES);
    h2_relay_close(&relay);
}
END_TEST

/* Heads are in no window: a server that goes on with 1xx while the client does not read is cut off. */
START_TEST(test_interim_answers_without_end_are_bounded)
{
    struct h2_relay relay;
    struct h2_frame frame;
    struct builder head;
    h2_relay_open(&relay, "h2c", "/base", false);
    h2_peer_get(&relay.peer, 1, "/");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    uint32_t id = h2_peer_wait(far).id;
    relay.peer.stalled = true;
    builder_init(&head);
    builder_text(&head, ":status: 103\nlink: ");
    for (int i = 0; i < 8000; i++) builder_u8(&head, 'x');
    builder_text(&head, "\n");
    builder_u8(&head, 0);
    for (int i = 0; i < 400; i++) h2_peer_head(far, 0, id, (const char *)head.data);
    builder_fini(&head);
    frame = h2_peer_wait(far);
    ck_assert_uint_eq(frame.type, PEER_RST);
    ck_assert_uint_eq(frame.id, id);
    ck_assert_uint_le(buffer_pool_lent_bytes(loop_buffers(relay.loop)), 40 * LIMIT_BUFFER_BYTES);
    relay.peer.stalled = false;
    h2_relay_close(&relay);
}
END_TEST

/* A server that says nothing more: 504, and the next request does not go where the first one was lost. */
START_TEST(test_a_silent_connection_gets_no_more_requests)
{
    struct h2_relay relay;
    struct h2_frame frame;
    h2_relay_open(&relay, "h2c", "/base", true);
    h2_peer_get(&relay.peer, 1, "/");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    (void)h2_peer_wait(far);
    for (int i = 0; !h2_peer_next(&relay.peer, false, &frame); i++) {
        ck_assert_int_lt(i, 20000);
        ck_assert(!cy_failed(loop_turn(relay.loop))); /* may wait: the clock moves */
    }
    ck_assert(h2_peer_has(frame.payload, ":status: 504\n"));
    h2_peer_get(&relay.peer, 3, "/");
    struct h2_peer *second = h2_relay_far(&relay, 1);
    h2_peer_greet_back(second);
    h2_peer_head(second, PEER_END_STREAM, h2_peer_wait(second).id, ":status: 204\n");
    do {
        frame = h2_peer_wait(&relay.peer);
    } while (frame.id != 3);
    ck_assert(h2_peer_has(frame.payload, ":status: 204\n"));
    h2_relay_close(&relay);
}
END_TEST

/* Descriptors run out while a connection without streams idles: it goes for a connection to another server. */
START_TEST(test_an_idle_connection_gives_way)
{
    struct h2_relay relay;
    struct address address;
    struct upstream *other;
    char url[64];
    h2_relay_open(&relay, "h2c", "", false);
    h2_peer_get(&relay.peer, 1, "/first");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    h2_peer_greet_back(far);
    struct h2_frame frame = h2_peer_wait(far);
    ck_assert_uint_eq(frame.type, PEER_HEADERS);
    h2_peer_head(far, PEER_END_STREAM, frame.id, ":status: 204\n");
    frame = h2_peer_wait(&relay.peer);
    ck_assert(h2_peer_has(frame.payload, ":status: 204\n"));
    /* Another server: HTTP/1 at the same address. */
    loop_socket_address(relay.listener, false, &address);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", address_port(&address));
    ck_assert(!cy_failed(upstream_open(relay.client, cy_bytes_from_text(url), &other, NULL)));
    http_verdict_unref(&relay.verdict);
    ck_assert(!cy_failed(http_verdict_proxy(other, NULL, 0, NULL, 0, CY_BYTES_NONE, &relay.verdict, NULL)));
    struct rlimit before, full;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    int first_free = dup(STDERR_FILENO);
    ck_assert_int_ge(first_free, 0);
    ck_assert_int_eq(close(first_free), 0);
    full = before;
    full.rlim_cur = (rlim_t)first_free;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &full), 0);
    h2_peer_get(&relay.peer, 3, "/second");
    h2_peer_wait_end(far);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0); /* this end accepts it */
    far = h2_relay_far(&relay, 1);
    while (!h2_peer_has(builder_view(&far->received), "GET /second HTTP/1.1\r\n")) h2_peer_turn(&relay.peer);
    h2_peer_bytes(far, CY_BYTES("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    frame = h2_peer_wait(&relay.peer);
    ck_assert_uint_eq(frame.id, 3);
    ck_assert(h2_peer_has(frame.payload, ":status: 200\n"));
    upstream_unref(&other);
    h2_relay_close(&relay);
}
END_TEST

Suite *unit_suite_http_h2_client(void);
Suite *unit_suite_http_h2_client(void)
{
    Suite *suite = suite_create("http_h2_client");
    TCase *cases = tcase_create("h2_client");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, test_trailers_pass_both_ways);
    tcase_add_test(cases, test_streams_share_a_connection);
    tcase_add_test(cases, test_a_full_connection_is_not_the_last);
    tcase_add_test(cases, test_what_the_server_did_not_begin_is_sent_again);
    tcase_add_test(cases, test_a_body_is_sent_again_with_what_the_server_did_not_begin);
    tcase_add_test(cases, test_other_resets_are_failures);
    tcase_add_test(cases, test_a_client_that_goes_away_cancels_upstream);
    tcase_add_test(cases, test_interim_answers_pass);
    tcase_add_test(cases, test_malformed_answers_are_502);
    tcase_add_test(cases, test_long_bodies_pass_both_ways);
    tcase_add_test(cases, test_a_request_cut_off_by_its_answer_is_reset);
    tcase_add_test(cases, test_an_upload_that_nobody_reads_is_bounded);
    tcase_add_test(cases, test_slow_clients_leave_others_the_connection);
    tcase_add_test(cases, test_the_connection_s_window_at_and_past_the_limit);
    tcase_add_test(cases, test_interim_answers_without_end_are_bounded);
    tcase_add_test(cases, test_a_silent_connection_gets_no_more_requests);
    tcase_add_test(cases, test_an_idle_connection_gives_way);
    suite_add_tcase(suite, cases);
    return suite;
}
