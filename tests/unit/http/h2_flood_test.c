/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_flood_test.c: proves the bounds of HTTP/2 towards clients: at each and past it, and that floods of
 * frames end in GOAWAY with ENHANCE_YOUR_CALM. The client is h2_peer.c, frame by frame.
 */
#include "tests/unit/http/h2_world.h"

#include <check.h>
#include <stdio.h>

/* Gives the last stream that was looked at. */
static uint32_t h2_world_expect_calm(struct h2_world *world)
{
    struct h2_frame frame;
    do {
        frame = h2_peer_wait(&world->peer);
    } while (frame.type != PEER_GOAWAY);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 4), NGHTTP2_ENHANCE_YOUR_CALM);
    uint32_t last_id = h2_peer_number(frame.payload, 0);
    h2_peer_wait_end(&world->peer);
    return last_id;
}

static void h2_world_expect_alive(struct h2_world *world, uint32_t id, const char *what)
{
    h2_peer_get(&world->peer, id, "/1");
    for (;;) {
        struct h2_frame frame = h2_peer_wait(&world->peer);
        ck_assert_msg(frame.type != PEER_GOAWAY, "%s", what);
        if (frame.type == PEER_HEADERS && frame.id == id) return;
    }
}

/* LIMIT_HTTP2_STREAMS at once; one more, from a client that cannot know that yet, is refused and may be sent again; one
 * that knows breaks the protocol. */
START_TEST(test_streams_at_and_past_the_limit)
{
    for (int knows = 0; knows < 2; knows++) {
        struct h2_world world;
        struct h2_frame frame;
        h2_world_open(&world, NULL, NULL);
        h2_peer_greet(&world.peer);
        if (knows) h2_peer_frame(&world.peer, PEER_SETTINGS, PEER_ACK, 0, CY_BYTES_NONE);
        while (world.peer.received.count == 0) h2_peer_turn(&world.peer);
        for (uint32_t i = 0; i < LIMIT_HTTP2_STREAMS; i++) h2_peer_get(&world.peer, 2 * i + 1, "/wait");
        while (world.waiting_count < LIMIT_HTTP2_STREAMS) h2_peer_turn(&world.peer);
        ck_assert(!h2_peer_next(&world.peer, false, &frame));
        h2_peer_get(&world.peer, 2 * LIMIT_HTTP2_STREAMS + 1, "/wait");
        frame = h2_peer_wait(&world.peer);
        ck_assert_uint_eq(frame.type, knows ? PEER_GOAWAY : PEER_RST);
        ck_assert_uint_eq(h2_peer_number(frame.payload, knows ? 4 : 0),
                          knows ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_REFUSED_STREAM);
        h2_world_close(&world);
    }
}
END_TEST

/* LIMIT_HTTP2_STREAM_WINDOW_BYTES that nobody reads, and LIMIT_HTTP2_CONNECTION_WINDOW_BYTES of them; a byte more of
 * either is an error of flow control (RFC 9113 section 6.9.1). */
START_TEST(test_windows_at_and_past_the_limits)
{
    const uint32_t streams = LIMIT_HTTP2_CONNECTION_WINDOW_BYTES / LIMIT_HTTP2_STREAM_WINDOW_BYTES;
    static const uint8_t bytes[16384];
    for (int past = 0; past < 2; past++) {
        struct h2_world world;
        struct h2_frame frame;
        h2_world_open(&world, NULL, NULL);
        h2_peer_greet(&world.peer);
        h2_peer_frame(&world.peer, PEER_SETTINGS, PEER_ACK, 0, CY_BYTES_NONE);
        while (world.peer.received.count == 0) h2_peer_turn(&world.peer);
        for (uint32_t i = 0; i <= streams; i++) h2_peer_head(&world.peer, 0, 2 * i + 1, H2_WORLD_POST);
        for (uint32_t i = 0; i < (past ? streams : 1); i++)
            for (size_t k = 0; k < LIMIT_HTTP2_STREAM_WINDOW_BYTES; k += sizeof bytes)
                h2_peer_frame(&world.peer, PEER_DATA, 0, 2 * i + 1, cy_bytes_of(bytes, sizeof bytes));
        h2_peer_frame(&world.peer, PEER_PING, 0, 0, CY_BYTES("12345678"));
        ck_assert_uint_eq(h2_peer_wait(&world.peer).type, PEER_PING);
        ck_assert_uint_eq(world.waiting_count, streams + 1);
        h2_peer_frame(&world.peer, PEER_DATA, 0, past ? 2 * streams + 1 : 1, CY_BYTES("x"));
        frame = h2_peer_wait(&world.peer);
        ck_assert_uint_eq(frame.type, past ? PEER_GOAWAY : PEER_RST);
        ck_assert_uint_eq(h2_peer_number(frame.payload, past ? 4 : 0), NGHTTP2_FLOW_CONTROL_ERROR);
        h2_world_close(&world);
    }
}
END_TEST

/* CVE-2023-44487: LIMIT_HTTP2_RESETS streams that are reset as soon as they were begun, and one more. */
static void h2_flood_resets(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        h2_peer_get(&world->peer, 2 * i + 1, "/wait");
        h2_peer_u32(&world->peer, PEER_RST, 2 * i + 1, NGHTTP2_CANCEL);
    }
}
static void h2_flood_pings(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) h2_peer_frame(&world->peer, PEER_PING, 0, 0, CY_BYTES("12345678"));
}
static void h2_flood_settings(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) h2_peer_frame(&world->peer, PEER_SETTINGS, 0, 0, CY_BYTES_NONE);
}
static void h2_flood_priorities(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        h2_peer_frame(&world->peer, PEER_PRIORITY, 0, 1, CY_BYTES("\x00\x00\x00\x00\x10"));
}
static void h2_flood_windows(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) h2_peer_u32(&world->peer, PEER_WINDOW, 0, 1);
}
static void h2_flood_empty_data(struct h2_world *world, uint32_t count)
{
    h2_peer_head(&world->peer, 0, 1, H2_WORLD_POST);
    for (uint32_t i = 0; i < count; i++) h2_peer_frame(&world->peer, PEER_DATA, 0, 1, CY_BYTES_NONE);
}
static void h2_flood_padding(struct h2_world *world, uint32_t count)
{
    h2_peer_head(&world->peer, 0, 1, H2_WORLD_POST);
    for (uint32_t i = 0; i < count; i++)
        h2_peer_frame(&world->peer, PEER_DATA, PEER_PADDED, 1, CY_BYTES("\x03\x00\x00\x00"));
}
static void h2_flood_unknown(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) h2_peer_frame(&world->peer, 0x77, 0, 0, CY_BYTES("x"));
}
/* The client breaks a rule of its stream, so that the server does the resetting (CVE-2025-8671). */
static void h2_flood_made_resets(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        h2_peer_get(&world->peer, 2 * i + 1, "/wait");
        h2_peer_u32(&world->peer, PEER_WINDOW, 2 * i + 1, 0x7fffffff);
    }
}

/* The same with more DATA than content-length says, which only the last frame shows. */
static void h2_flood_lengths(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        h2_peer_head(&world->peer, 0, 2 * i + 1, H2_WORLD_POST "content-length: 1\n");
        h2_peer_frame(&world->peer, PEER_DATA, i % 2 ? PEER_END_STREAM : 0, 2 * i + 1, CY_BYTES("ab"));
    }
}
static void h2_flood_short_lengths(struct h2_world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        h2_peer_head(&world->peer, 0, 2 * i + 1, H2_WORLD_POST "content-length: 2\n");
        h2_peer_frame(&world->peer, PEER_DATA, PEER_END_STREAM, 2 * i + 1, CY_BYTES("a"));
    }
}

struct h2_flood {
    const char *name;
    void (*send)(struct h2_world *world, uint32_t count);
    uint32_t harmless, too_many;
    uint32_t next_id; /* a stream that is free afterwards */
};

START_TEST(test_floods_end_in_goaway)
{
    const uint32_t frames = LIMIT_HTTP2_IDLE_FRAMES, resets = LIMIT_HTTP2_RESETS;
    /* A few frames of every connection count too, and a test that takes a second earns a tenth of the budget. */
    const struct h2_flood floods[] = {
        {"resets", h2_flood_resets, resets - 1, 2 * resets, 2 * resets + 1},
        {"made resets", h2_flood_made_resets, resets - 1, 2 * resets, 2 * resets + 1},
        {"lengths", h2_flood_lengths, resets - 1, 3 * resets, 2 * resets + 1},
        {"short lengths", h2_flood_short_lengths, resets - 1, 3 * resets, 2 * resets + 1},
        {"pings", h2_flood_pings, frames - 10, 3 * frames, 1},
        {"settings", h2_flood_settings, frames - 10, 3 * frames, 1},
        {"priorities", h2_flood_priorities, frames - 10, 3 * frames, 3},
        {"windows", h2_flood_windows, frames - 10, 3 * frames, 1},
        {"empty data", h2_flood_empty_data, frames - 10, 3 * frames, 3},
        {"padding", h2_flood_padding, frames - 10, 3 * frames, 3},
        {"unknown", h2_flood_unknown, frames - 10, 3 * frames, 1},
    };
    for (size_t i = 0; i < CY_COUNT_OF(floods); i++) {
        struct h2_world world;
        h2_world_open(&world, NULL, NULL);
        h2_peer_greet(&world.peer);
        floods[i].send(&world, floods[i].harmless);
        h2_world_expect_alive(&world, floods[i].next_id, floods[i].name);
        h2_peer_close(&world.peer);
        h2_world_connect(&world, NULL, 0);
        h2_peer_greet(&world.peer);
        floods[i].send(&world, floods[i].too_many);
        h2_world_expect_calm(&world);
        ck_assert_uint_eq(world.waiting_count, 0);
        h2_world_close(&world);
    }
}
END_TEST

/* What came in the same read behind the frame that was too many is not looked at. */
START_TEST(test_a_flood_ends_at_once)
{
    struct h2_world world;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_flood_resets(&world, LIMIT_HTTP2_RESETS);
    h2_peer_turn(&world.peer);
    for (int i = 0; world.peer.writing || world.peer.pending.count; i++) {
        ck_assert_int_lt(i, 1000);
        h2_peer_turn(&world.peer);
    }
    for (uint32_t i = LIMIT_HTTP2_RESETS; i < LIMIT_HTTP2_RESETS + 200; i++) {
        h2_peer_get(&world.peer, 2 * i + 1, "/wait");
        h2_peer_u32(&world.peer, PEER_RST, 2 * i + 1, NGHTTP2_CANCEL);
    }
    ck_assert_uint_le(h2_world_expect_calm(&world), 2 * (LIMIT_HTTP2_RESETS + 50) + 1);
    h2_world_close(&world);
}
END_TEST

/* A head in LIMIT_HTTP2_CONTINUATIONS pieces more than the first, and in one more. */
START_TEST(test_continuations_at_and_past_the_limit)
{
    for (uint32_t past = 0; past < 2; past++) {
        struct h2_world world;
        struct builder block;
        h2_world_open(&world, NULL, NULL);
        h2_peer_greet(&world.peer);
        builder_init(&block);
        h2_peer_pack(&block, H2_WORLD_GET);
        h2_peer_frame(&world.peer, PEER_HEADERS, PEER_END_STREAM, 1, builder_view(&block));
        uint32_t count = LIMIT_HTTP2_CONTINUATIONS + past;
        for (uint32_t i = 0; i < count; i++) {
            builder_clear(&block);
            h2_peer_pack(&block, "x-a: 1\n");
            h2_peer_frame(&world.peer, PEER_CONTINUATION, i + 1 == count ? PEER_END_HEADERS : 0, 1,
                          builder_view(&block));
        }
        builder_fini(&block);
        if (past)
            h2_world_expect_calm(&world);
        else
            ck_assert(h2_peer_has(h2_peer_wait(&world.peer).payload, ":status: 200\n"));
        h2_world_close(&world);
    }
}
END_TEST

/* LIMIT_HTTP_FIELDS and LIMIT_HTTP_HEAD_BYTES: 431, and the connection goes on. */
START_TEST(test_heads_past_the_limits_are_431)
{
    struct h2_world world;
    struct builder text;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    builder_init(&text);
    builder_text(&text, H2_WORLD_GET);
    for (int i = 0; i < LIMIT_HTTP_FIELDS - 1; i++) builder_text(&text, "a: b\n"); /* one place is Host's */
    h2_peer_head(&world.peer, PEER_END_STREAM, 1, builder_text_view(&text));
    ck_assert(h2_peer_has(h2_peer_wait(&world.peer).payload, ":status: 200\n"));
    (void)h2_peer_wait(&world.peer);
    builder_text(&text, "a: b\n");
    h2_peer_head(&world.peer, PEER_END_STREAM, 3, builder_text_view(&text));
    ck_assert(h2_peer_has(h2_peer_wait(&world.peer).payload, ":status: 431\n"));
    (void)h2_peer_wait(&world.peer);
    /* 5 fields of 15,000 bytes, which come as indices into the table of HPACK no cheaper here: in CONTINUATION */
    for (uint32_t i = 0; i < 5; i++) {
        builder_clear(&text);
        if (i == 0) h2_peer_pack(&text, H2_WORLD_GET);
        builder_u8(&text, 0);
        builder_u8(&text, 1);
        builder_u8(&text, 'x');
        const uint8_t length[3] = {127, (15000 - 127) % 128 + 128, (15000 - 127) / 128};
        builder_bytes(&text, cy_bytes_of(length, 3));
        for (int k = 0; k < 15000; k++) builder_u8(&text, 'v');
        h2_peer_frame(&world.peer, i ? PEER_CONTINUATION : PEER_HEADERS,
                      (i ? 0 : PEER_END_STREAM) | (i == 4 ? PEER_END_HEADERS : 0), 5, builder_view(&text));
    }
    ck_assert(h2_peer_has(h2_peer_wait(&world.peer).payload, ":status: 431\n"));
    (void)h2_peer_wait(&world.peer);
    h2_world_expect_alive(&world, 7, "long heads");
    builder_fini(&text);
    h2_world_close(&world);
}
END_TEST

Suite *unit_suite_http_h2_flood(void);
Suite *unit_suite_http_h2_flood(void)
{
    Suite *suite = suite_create("http_h2_flood");
    TCase *cases = tcase_create("h2_flood");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, test_streams_at_and_past_the_limit);
    tcase_add_test(cases, test_windows_at_and_past_the_limits);
    tcase_add_test(cases, test_floods_end_in_goaway);
    tcase_add_test(cases, test_a_flood_ends_at_once);
    tcase_add_test(cases, test_continuations_at_and_past_the_limit);
    tcase_add_test(cases, test_heads_past_the_limits_are_431);
    suite_add_tcase(suite, cases);
    return suite;
}
