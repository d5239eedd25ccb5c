/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_room_test.c: proves who of HTTP/2's clients is closed for another one's sake, on a simulated clock
 * that moves only when all wait: a connection all of whose streams wait for their client goes after
 * LIMIT_HTTP_OWING_MS, whatever they wait for, and one that has a stream that waits for its upstream stays.
 *
 *   peer ── the only place of the server ── proxy ── far, which speaks HTTP/1
 */
#include "tests/support/loopback.h"
#include "tests/unit/http/h2_relay.h"

#include <check.h>

#define ROOM_TURNS 300 /* in which everything happens that needs no time */
#define ROOM_GET ":method: GET\n:scheme: http\n:authority: a\n:path: /\n"
#define ROOM_POST ":method: POST\n:scheme: http\n:authority: a\n:path: /\n"

enum { ROOM_BODY_MS = 7000 };

struct room {
    struct h2_relay relay;
    struct stream *late; /* a client that comes when there is no place */
};

static void room_open(struct room *room)
{
    const struct http_server_options bounds = {.connections_max = 1, .body_idle_timeout_ms = ROOM_BODY_MS};
    room->late = NULL;
    h2_relay_open_bounded(&room->relay, "http", "", true, &bounds);
}

static void room_close(struct room *room)
{
    if (room->late) stream_close(&room->late);
    h2_relay_close(&room->relay);
}

static void room_settle(struct room *room)
{
    for (int i = 0; i < ROOM_TURNS; i++) h2_peer_turn(&room->relay.peer);
}

static void room_nothing(struct timer *timer) { (void)timer; }

static void room_pass(struct room *room, uint32_t ms)
{
    struct timer timer = {.fire = room_nothing};
    loop_timer_set(room->relay.loop, &timer, ms);
    for (int i = 0; timer_is_set(&timer); i++) {
        ck_assert_int_lt(i, 20000);
        ck_assert(!cy_failed(loop_turn(room->relay.loop)));
    }
}

static bool room_admits(struct room *room)
{
    struct stream *far;
    ck_assert(!cy_failed(loopback_pair(room->relay.loop, 0, &room->late, &far)));
    if (!cy_failed(http_server_adopt(room->relay.server, far))) return true;
    stream_close(&room->late);
    return false;
}

/* -- what a stream can wait for ---------------------------------------------------------------------------- */

static void room_window(struct room *room, uint32_t bytes)
{
    h2_peer_setting(&room->relay.peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bytes);
}

/* Its upstream, which has the request and says nothing. */
static struct h2_peer *room_ask(struct room *room, uint32_t id)
{
    unsigned far_count = room->relay.far_count;
    h2_peer_head(&room->relay.peer, PEER_END_STREAM, id, ROOM_GET);
    struct h2_peer *far = h2_relay_far(&room->relay, far_count);
    while (!h2_peer_has(builder_view(&far->received), "\r\n\r\n")) h2_peer_turn(&room->relay.peer);
    return far;
}

static void room_answer(struct room *room, uint32_t id, uint32_t bytes)
{
    struct h2_peer *far = room_ask(room, id);
    struct builder answer;
    builder_init(&answer);
    builder_printf(&answer, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %u\r\n\r\n", bytes);
    for (uint32_t i = 0; i < bytes; i++) builder_u8(&answer, 'x');
    h2_peer_bytes(far, builder_view(&answer));
    room->relay.peer.also = far;
    room_settle(room);
    builder_fini(&answer);
}

static void room_half_a_head(struct room *room)
{
    struct builder block;
    builder_init(&block);
    h2_peer_pack(&block, ROOM_GET);
    h2_peer_frame(&room->relay.peer, PEER_HEADERS, PEER_END_STREAM, 1, builder_view(&block));
    builder_fini(&block);
}
static void room_no_body(struct room *room)
{
    h2_peer_head(&room->relay.peer, 0, 1, ROOM_POST "content-length: 10\n");
    h2_relay_far(&room->relay, 0);
}
static void room_shut_stream(struct room *room)
{
    room_window(room, 0);
    room_answer(room, 1, 20);
}
static void room_shut_connection(struct room *room)
{
    room_window(room, 1 << 20);
    room_answer(room, 1, 300000);
}
static void room_reads_nothing(struct room *room)
{
    room_window(room, 1 << 20);
    h2_peer_u32(&room->relay.peer, PEER_WINDOW, 0, 1 << 20);
    room_settle(room);
    room->relay.peer.stalled = true;
    room_answer(room, 1, 1000);
    room_answer(room, 3, 300000);
}
/* The answer fits the window, but its end comes behind that, and takes a frame of DATA too. */
static void room_shut_end(struct room *room)
{
    room_window(room, 5);
    struct h2_peer *far = room_ask(room, 1);
    h2_peer_bytes(far, CY_BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"));
    room_settle(room);
    h2_peer_bytes(far, CY_BYTES("0\r\n\r\n"));
}
static void room_all_of_them(struct room *room)
{
    room_window(room, 0);
    room_answer(room, 1, 20);
    room_answer(room, 3, 20);
    h2_peer_head(&room->relay.peer, 0, 5, ROOM_POST "content-length: 10\n");
    h2_relay_far(&room->relay, 2);
}
static void room_upstream(struct room *room) { (void)room_ask(room, 1); }
static void room_upstream_and_shut(struct room *room)
{
    room_window(room, 0);
    (void)room_ask(room, 1);
    room_answer(room, 3, 20);
}
static void room_upstream_and_half_a_head(struct room *room)
{
    (void)room_ask(room, 1);
    struct builder block;
    builder_init(&block);
    h2_peer_pack(&block, ROOM_GET);
    h2_peer_frame(&room->relay.peer, PEER_HEADERS, PEER_END_STREAM, 3, builder_view(&block));
    builder_fini(&block);
}

static const struct {
    const char *name;
    void (*begin)(struct room *room);
    bool goes;
} room_rows[] = {
    {"half a head", room_half_a_head, true},
    {"a body that does not come", room_no_body, true},
    {"a stream's window", room_shut_stream, true},
    {"the connection's window", room_shut_connection, true},
    {"a client that reads nothing", room_reads_nothing, true},
    {"an end that no window holds", room_shut_end, true},
    {"several streams", room_all_of_them, true},
    {"an upstream", room_upstream, false},
    {"an upstream, and a window", room_upstream_and_shut, false},
    {"an upstream, and half a head", room_upstream_and_half_a_head, false},
};

START_TEST(test_who_lets_us_wait_makes_room)
{
    for (size_t i = 0; i < CY_COUNT_OF(room_rows); i++) {
        struct room room;
        struct http_server_counters counters;
        room_open(&room);
        room_settle(&room);
        room_rows[i].begin(&room);
        room_settle(&room);
        uint64_t begin_ms = loop_now_ms(room.relay.loop);
        room_pass(&room, LIMIT_HTTP_OWING_MS / 2);
        ck_assert_msg(!room_admits(&room), "%s: closed at once", room_rows[i].name);
        room_pass(&room, LIMIT_HTTP_OWING_MS);
        ck_assert_uint_lt(loop_now_ms(room.relay.loop) - begin_ms, 2 * LIMIT_HTTP_OWING_MS);
        ck_assert_msg(room_admits(&room) == room_rows[i].goes, "%s: stays or goes", room_rows[i].name);
        http_server_read_counters(room.relay.server, &counters);
        ck_assert_uint_eq(counters.evictions, room_rows[i].goes);
        room.relay.peer.stalled = false;
        if (room_rows[i].goes) h2_peer_wait_end(&room.relay.peer);
        room_close(&room);
    }
}
END_TEST

/* Who gives a little from time to time owes again only from then on. */
START_TEST(test_a_client_that_goes_on_stays)
{
    struct room room;
    room_open(&room);
    room_no_body(&room);
    room_settle(&room);
    for (int i = 0; i < 5; i++) {
        room_pass(&room, LIMIT_HTTP_OWING_MS - 50);
        ck_assert(!room_admits(&room));
        h2_peer_frame(&room.relay.peer, PEER_DATA, 0, 1, CY_BYTES("x"));
        room_settle(&room);
    }
    room_pass(&room, LIMIT_HTTP_OWING_MS);
    ck_assert(room_admits(&room));
    room_close(&room);
}
END_TEST

/* Nobody but the client can move a stream whose answer is all here, so it has its time too. */
START_TEST(test_an_end_behind_a_shut_window_has_its_time)
{
    struct room room;
    struct h2_frame frame;
    room_open(&room);
    room_shut_end(&room);
    room_settle(&room);
    uint64_t begin_ms = loop_now_ms(room.relay.loop);
    do {
        for (int i = 0; !h2_peer_next(&room.relay.peer, false, &frame); i++) {
            ck_assert_int_lt(i, 20000);
            ck_assert_uint_lt(loop_now_ms(room.relay.loop) - begin_ms, 10 * ROOM_BODY_MS);
            ck_assert(!cy_failed(loop_turn(room.relay.loop)));
        }
    } while (frame.type != PEER_RST);
    ck_assert_uint_eq(frame.id, 1);
    ck_assert_uint_ge(loop_now_ms(room.relay.loop) - begin_ms, ROOM_BODY_MS - 1);
    room_close(&room);
}
END_TEST

Suite *unit_suite_http_h2_room(void);
Suite *unit_suite_http_h2_room(void)
{
    Suite *suite = suite_create("http_h2_room");
    TCase *cases = tcase_create("h2_room");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, test_who_lets_us_wait_makes_room);
    tcase_add_test(cases, test_a_client_that_goes_on_stays);
    tcase_add_test(cases, test_an_end_behind_a_shut_window_has_its_time);
    suite_add_tcase(suite, cases);
    return suite;
}
