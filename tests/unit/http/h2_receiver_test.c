/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_receiver_test.c: proves that what honest ends of HTTP/2 say beside requests and bodies is no
 * flood, of clients and of upstreams: windows updated in small steps, at once or late, priorities, grease, empty ends,
 * resets. And that each of these is paid for: past what requests and DATA earned the connection ends as in any flood.
 */
#include "tests/unit/http/h2_relay.h"
#include "tests/unit/http/h2_world.h"
#include "vm/base/mem.h"

#include <check.h>

#define RECEIVER_STREAMS 4
#define RECEIVER_TURNS_MAX 400000
#define RECEIVER_WINDOW_BYTES \
    65535 /* of a connection, and of a stream without SETTINGS (RFC 9113 section 6.9.2) */

/* How an end takes bodies: both windows are updated for each `step_bytes`, once `late_bytes` have come. */
struct receiver_habit {
    const char *name;
    uint32_t window_bytes; /* of each stream; the connection has as much for every one */
    uint32_t step_bytes, late_bytes;
    bool pings; /* measures round trips with a PING for each DATA, as gRPC does */
};

static const struct receiver_habit receiver_habits[] = {
    {"both windows for each 4 KiB", RECEIVER_WINDOW_BYTES, 4096, 0, false},
    {"both windows for each 512 bytes", RECEIVER_WINDOW_BYTES, 512, 0, false},
    {"both windows and a PING", RECEIVER_WINDOW_BYTES, 4096, 0, true},
    {"large windows, read late in small pieces", 4 << 20, 4096, 3 << 20, false},
};

struct receiver {
    struct h2_peer *peer;
    const struct receiver_habit *habit;
    uint64_t body_bytes, update_count;
    uint32_t unread_bytes[RECEIVER_STREAMS]; /* not yet given back to the windows */
    uint32_t ids[RECEIVER_STREAMS];
    unsigned stream_count, ended_count;
    bool is_server; /* answers what has ended */
};

static void receiver_begin(struct receiver *receiver)
{
    const struct receiver_habit *habit = receiver->habit;
    h2_peer_setting(receiver->peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, habit->window_bytes);
    if (habit->window_bytes > RECEIVER_WINDOW_BYTES)
        h2_peer_u32(receiver->peer, PEER_WINDOW, 0, RECEIVER_STREAMS * habit->window_bytes);
}

static unsigned receiver_place(struct receiver *receiver, uint32_t id)
{
    unsigned place = 0;
    while (place < receiver->stream_count && receiver->ids[place] != id) place++;
    if (place == receiver->stream_count) {
        ck_assert_uint_lt(place, RECEIVER_STREAMS);
        receiver->ids[receiver->stream_count++] = id;
    }
    return place;
}

static void receiver_update(struct receiver *receiver, unsigned place)
{
    while (receiver->unread_bytes[place] > 0) {
        uint32_t step = receiver->unread_bytes[place];
        if (step > receiver->habit->step_bytes) step = receiver->habit->step_bytes;
        receiver->unread_bytes[place] -= step;
        h2_peer_u32(receiver->peer, PEER_WINDOW, 0, step);
        h2_peer_u32(receiver->peer, PEER_WINDOW, receiver->ids[place], step);
        receiver->update_count += 2;
    }
}

static void receiver_on_end(struct receiver *receiver, uint32_t id)
{
    receiver->ended_count++;
    if (receiver->is_server) h2_peer_head(receiver->peer, PEER_END_STREAM, id, ":status: 200\n");
}

static void receiver_take(struct receiver *receiver)
{
    struct h2_peer *peer = receiver->peer;
    struct h2_frame frame;
    while (h2_peer_next(peer, true, &frame)) {
        ck_assert_msg(frame.type != PEER_GOAWAY && frame.type != PEER_RST, "%s: cut off after %llu bytes",
                      receiver->habit->name, (unsigned long long)receiver->body_bytes);
        if (frame.type == PEER_DATA && frame.payload.count > 0) {
            unsigned place = receiver_place(receiver, frame.id);
            receiver->body_bytes += frame.payload.count;
            receiver->unread_bytes[place] += (uint32_t)frame.payload.count;
            bool is_late = receiver->unread_bytes[place] >= receiver->habit->late_bytes;
            if (is_late || (frame.flags & PEER_END_STREAM)) receiver_update(receiver, place);
            if (receiver->habit->pings) h2_peer_frame(peer, PEER_PING, 0, 0, CY_BYTES("12345678"));
        }
        if ((frame.type == PEER_DATA || frame.type == PEER_HEADERS) && (frame.flags & PEER_END_STREAM))
            receiver_on_end(receiver, frame.id);
    }
    if (peer->parsed == peer->received.count) {
        builder_clear(&peer->received);
        peer->parsed = 0;
    }
}

/* Clients that download from us. */
START_TEST(test_clients_update_their_windows_in_small_steps)
{
    const size_t body_bytes = 8 << 20;
    uint8_t *body = mem_alloc_zeroed(body_bytes);
    struct http_verdict *verdict;
    ck_assert(!cy_failed(http_verdict_respond(200, cy_bytes_of(body, body_bytes), NULL, 0, &verdict, NULL)));
    for (size_t i = 0; i < CY_COUNT_OF(receiver_habits); i++) {
        struct h2_world world;
        struct receiver receiver = {.peer = &world.peer, .habit = &receiver_habits[i]};
        h2_world_open(&world, NULL, NULL);
        world.verdict = verdict;
        h2_peer_greet(&world.peer);
        receiver_begin(&receiver);
        for (uint32_t k = 0; k < RECEIVER_STREAMS; k++) h2_peer_get(&world.peer, 2 * k + 1, "/");
        for (int turns = 0; receiver.ended_count < RECEIVER_STREAMS; turns++) {
            ck_assert_int_lt(turns, RECEIVER_TURNS_MAX);
            h2_peer_turn(&world.peer);
            receiver_take(&receiver);
        }
        ck_assert_uint_eq(receiver.body_bytes, RECEIVER_STREAMS * body_bytes);
        ck_assert_uint_ge(receiver.update_count, 2 * receiver.body_bytes / receiver.habit->step_bytes);
        h2_world_close(&world);
    }
    http_verdict_unref(&verdict);
    mem_free(body);
}
END_TEST

/* A client that sends as much as the windows allow. */
struct receiver_upload {
    struct h2_peer *peer;
    uint64_t left_bytes[RECEIVER_STREAMS];
    int64_t windows[RECEIVER_STREAMS], window;
    unsigned answered_count;
};

static void receiver_upload_send(struct receiver_upload *upload)
{
    static const uint8_t bytes[16384];
    for (uint32_t i = 0; i < RECEIVER_STREAMS; i++) {
        while (upload->left_bytes[i] > 0) {
            int64_t count = sizeof bytes;
            if ((uint64_t)count > upload->left_bytes[i]) count = (int64_t)upload->left_bytes[i];
            if (count > upload->windows[i]) count = upload->windows[i];
            if (count > upload->window) count = upload->window;
            if (count <= 0) break;
            upload->left_bytes[i] -= (uint64_t)count;
            upload->windows[i] -= count;
            upload->window -= count;
            h2_peer_frame(upload->peer, PEER_DATA, upload->left_bytes[i] ? 0 : PEER_END_STREAM, 2 * i + 1,
                          cy_bytes_of(bytes, (size_t)count));
        }
    }
}

static void receiver_upload_take(struct receiver_upload *upload, const char *habit)
{
    struct h2_frame frame;
    while (h2_peer_next(upload->peer, true, &frame)) {
        ck_assert_msg(frame.type != PEER_RST && frame.type != PEER_GOAWAY, "%s", habit);
        if (frame.type == PEER_WINDOW && frame.id == 0)
            upload->window += h2_peer_number(frame.payload, 0);
        else if (frame.type == PEER_WINDOW)
            upload->windows[frame.id / 2] += h2_peer_number(frame.payload, 0);
        if (frame.type != PEER_HEADERS) continue;
        ck_assert_msg(h2_peer_has(frame.payload, ":status: 200\n"), "%s: %.*s", habit,
                      CY_BYTES_ARG(frame.payload));
        upload->answered_count++;
    }
}

/* Upstreams that take what clients upload: streams of one connection, which ends for all of them or for none. */
START_TEST(test_upstreams_update_their_windows_in_small_steps)
{
    const size_t body_bytes = 8 << 20;
    for (size_t i = 0; i < CY_COUNT_OF(receiver_habits); i++) {
        struct h2_relay relay;
        struct receiver receiver = {.habit = &receiver_habits[i], .is_server = true};
        struct receiver_upload upload = {.peer = &relay.peer, .window = RECEIVER_WINDOW_BYTES};
        h2_relay_open(&relay, "h2c", "", false);
        for (uint32_t k = 0; k < RECEIVER_STREAMS; k++) {
            h2_peer_head(&relay.peer, 0, 2 * k + 1, H2_WORLD_POST);
            upload.windows[k] = LIMIT_HTTP2_STREAM_WINDOW_BYTES;
            upload.left_bytes[k] = body_bytes;
        }
        receiver.peer = h2_relay_far(&relay, 0);
        h2_peer_greet_back(receiver.peer);
        receiver_begin(&receiver);
        for (int turns = 0; upload.answered_count < RECEIVER_STREAMS; turns++) {
            ck_assert_int_lt(turns, RECEIVER_TURNS_MAX);
            receiver_upload_send(&upload);
            h2_peer_turn(&relay.peer);
            receiver_take(&receiver);
            receiver_upload_take(&upload, receiver.habit->name);
        }
        ck_assert_uint_eq(receiver.body_bytes, RECEIVER_STREAMS * body_bytes);
        ck_assert_uint_ge(receiver.update_count, 2 * receiver.body_bytes / receiver.habit->step_bytes);
        ck_assert_uint_eq(relay.far_count, 1);
        h2_relay_close(&relay);
    }
}
END_TEST

/* One request with `extra_count` frames beside its head, the last of them its end. */
static void receiver_ask(struct h2_peer *peer, uint32_t id, uint32_t extra_count)
{
    h2_peer_head(peer, extra_count ? 0 : PEER_END_STREAM, id,
                 ":method: POST\n:scheme: http\n:authority: a.example\n:path: /204\n");
    for (uint32_t i = 1; i < extra_count; i++) {
        switch (i % 3) {
        case 1: h2_peer_u32(peer, PEER_WINDOW, id, 1 << 20); break;
        case 2: h2_peer_frame(peer, PEER_PRIORITY, 0, id, CY_BYTES("\x00\x00\x00\x00\x10")); break;
        default: h2_peer_frame(peer, 0x10, 0, 0, CY_BYTES("\x00\x00\x00\x01u=1")); break;
        }
    }
    if (extra_count) h2_peer_frame(peer, PEER_DATA, PEER_END_STREAM, id, CY_BYTES_NONE);
}

/* Browsers: each request has a window of its own, a priority that changes, a frame that nobody knows, an empty end. */
START_TEST(test_stream_frames_at_and_past_the_limit)
{
    struct h2_world world;
    struct h2_frame frame;
    uint32_t id = 1;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    for (uint32_t i = 0; i < 2 * LIMIT_HTTP2_IDLE_FRAMES; i++, id += 2) {
        receiver_ask(&world.peer, id, LIMIT_HTTP2_STREAM_FRAMES - 1);
        frame = h2_peer_wait(&world.peer);
        ck_assert_msg(frame.type == PEER_HEADERS && frame.id == id, "request %u: a frame of type %u", i,
                      frame.type);
    }
    for (uint32_t i = 0; frame.type == PEER_HEADERS; i++, id += 2) {
        ck_assert_uint_lt(i, LIMIT_HTTP2_IDLE_FRAMES);
        receiver_ask(&world.peer, id, LIMIT_HTTP2_STREAM_FRAMES + 3);
        frame = h2_peer_wait(&world.peer);
    }
    ck_assert_uint_eq(frame.type, PEER_GOAWAY);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 4), NGHTTP2_ENHANCE_YOUR_CALM);
    h2_world_close(&world);
}
END_TEST

/* What was sent is answered with as many updates as it earned, and those that nothing accounts for; then with more. */
START_TEST(test_update_bytes_at_and_past_the_limit)
{
    struct h2_world world;
    struct h2_frame frame;
    uint32_t earned_count = 0;
    h2_world_open(&world, NULL, NULL);
    h2_peer_greet(&world.peer);
    h2_peer_setting(&world.peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20);
    h2_peer_u32(&world.peer, PEER_WINDOW, 0, 1 << 20);
    h2_peer_get(&world.peer, 1, "/300000");
    do {
        frame = h2_peer_wait(&world.peer);
        if (frame.type != PEER_DATA) continue;
        uint32_t count = (uint32_t)frame.payload.count;
        earned_count += 2 * ((count + LIMIT_HTTP2_UPDATE_BYTES - 1) / LIMIT_HTTP2_UPDATE_BYTES);
    } while (!(frame.flags & PEER_END_STREAM));
    ck_assert_uint_ge(earned_count, 2 * 300000 / LIMIT_HTTP2_UPDATE_BYTES);
    for (uint32_t i = 0; i < earned_count + LIMIT_HTTP2_IDLE_FRAMES - 20; i++)
        h2_peer_u32(&world.peer, PEER_WINDOW, 0, 1);
    h2_peer_get(&world.peer, 3, "/204");
    ck_assert_uint_eq(h2_peer_wait(&world.peer).type, PEER_HEADERS);
    for (uint32_t i = 0; i < 3 * LIMIT_HTTP2_IDLE_FRAMES; i++) h2_peer_u32(&world.peer, PEER_WINDOW, 0, 1);
    frame = h2_peer_wait(&world.peer);
    ck_assert_uint_eq(frame.type, PEER_GOAWAY);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 4), NGHTTP2_ENHANCE_YOUR_CALM);
    h2_world_close(&world);
}
END_TEST

/* A proxy in front of us, some of whose clients leave: so many answers allow for one stream that is reset. Who resets
 * more is cut off, whatever it asks for between. */
START_TEST(test_resets_beside_answers)
{
    for (uint32_t answers = LIMIT_HTTP2_RESET_ANSWERS; answers; answers -= LIMIT_HTTP2_RESET_ANSWERS / 2) {
        struct h2_world world;
        uint32_t id = 1, resets = 0;
        bool cut_off = false;
        h2_world_open(&world, NULL, NULL);
        h2_peer_greet(&world.peer);
        for (; resets < 3 * LIMIT_HTTP2_RESETS && !cut_off; resets++) {
            h2_peer_get(&world.peer, id, "/wait");
            h2_peer_u32(&world.peer, PEER_RST, id, NGHTTP2_CANCEL);
            id += 2;
            for (uint32_t i = 0; i < answers && !cut_off; i++, id += 2) {
                h2_peer_get(&world.peer, id, "/204");
                struct h2_frame frame = h2_peer_wait(&world.peer);
                cut_off = frame.type == PEER_GOAWAY;
                if (!cut_off) ck_assert_uint_eq(frame.id, id);
            }
        }
        if (answers == LIMIT_HTTP2_RESET_ANSWERS)
            ck_assert_msg(!cut_off, "cut off after %u resets", resets);
        else
            ck_assert_msg(cut_off, "%u resets went through", resets);
        h2_world_close(&world);
    }
}
END_TEST

/* An upstream that opens a window for each stream and wants no more of its request; or that refuses all of them. */
START_TEST(test_upstreams_reset_what_they_are_asked)
{
    for (int refuses = 0; refuses < 2; refuses++) {
        struct h2_relay relay;
        h2_relay_open(&relay, "h2c", "", false);
        for (uint32_t i = 0, id = 1; i < 2 * LIMIT_HTTP2_IDLE_FRAMES; i++, id += 2) {
            h2_peer_head(&relay.peer, PEER_END_STREAM, id, H2_WORLD_POST);
            struct h2_peer *far = h2_relay_far(&relay, 0);
            if (i == 0) h2_peer_greet_back(far);
            struct h2_frame frame = h2_peer_wait(far);
            ck_assert_msg(frame.type == PEER_HEADERS, "request %u: a frame of type %u", i, frame.type);
            h2_peer_u32(far, PEER_WINDOW, frame.id, 1 << 20);
            h2_peer_u32(far, PEER_WINDOW, 0, 1);
            if (!refuses) h2_peer_head(far, PEER_END_STREAM, frame.id, ":status: 204\n");
            h2_peer_u32(far, PEER_RST, frame.id, refuses ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_NO_ERROR);
            do {
                frame = h2_peer_wait(&relay.peer);
            } while (frame.type != PEER_HEADERS);
            ck_assert_uint_eq(frame.id, id);
            ck_assert(h2_peer_has(frame.payload, refuses ? ":status: 502\n" : ":status: 204\n"));
        }
        ck_assert_uint_eq(relay.far_count, 1);
        h2_relay_close(&relay);
    }
}
END_TEST

Suite *unit_suite_http_h2_receiver(void);
Suite *unit_suite_http_h2_receiver(void)
{
    Suite *suite = suite_create("http_h2_receiver");
    TCase *cases = tcase_create("h2_receiver");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, test_clients_update_their_windows_in_small_steps);
    tcase_add_test(cases, test_upstreams_update_their_windows_in_small_steps);
    tcase_add_test(cases, test_stream_frames_at_and_past_the_limit);
    tcase_add_test(cases, test_update_bytes_at_and_past_the_limit);
    tcase_add_test(cases, test_resets_beside_answers);
    tcase_add_test(cases, test_upstreams_reset_what_they_are_asked);
    suite_add_tcase(suite, cases);
    return suite;
}
