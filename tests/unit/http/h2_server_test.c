/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_server_test.c: proves that a server speaks HTTP/2 as RFC 9113 says: what it answers, what it
 * refuses and with which code, that bodies arrive whole through any windows, and that floods end in GOAWAY. The client
 * is h2_peer.c, frame by frame.
 */
#include "tests/support/loopback.h"
#include "tests/unit/http/h2_peer.h"
#include "vm/base/mem.h"
#include "vm/http/server.h"

#include <check.h>
#include <stdio.h>

struct h2_world {
    struct loop *loop;
    struct log log;
    struct http_server *server;
    struct h2_peer peer;
    struct http_exchange *waiting[LIMIT_HTTP2_STREAMS]; /* requests for /wait */
    unsigned request_count, gone_count, waiting_count;
    struct builder seen; /* of the last request: method, host, path, fields */
    uint8_t *body;
    struct http_verdict *verdict; /* answers everything, when there is one */
    bool drained;
};

#define H2_WORLD_BODY_BYTES 300000

static void h2_world_respond(struct h2_world *world, struct http_exchange *exchange, uint16_t status, size_t bytes)
{
    struct http_verdict *verdict;
    ck_assert(!cy_failed(
        http_verdict_respond(status, cy_bytes_of(world->body, bytes), NULL, 0, &verdict, NULL)));
    http_exchange_answer(exchange, verdict);
    http_verdict_unref(&verdict);
}

static void h2_world_on_request(void *context, struct http_exchange *exchange)
{
    struct h2_world *world = context;
    const struct http_request *request = http_exchange_request(exchange);
    uint64_t number = 5;
    world->request_count++;
    if (world->verdict) {
        http_exchange_answer(exchange, world->verdict);
        return;
    }
    builder_clear(&world->seen);
    builder_printf(&world->seen, "%.*s %.*s %.*s\n", CY_BYTES_ARG(request->method), CY_BYTES_ARG(request->host),
                   CY_BYTES_ARG(request->path));
    for (uint32_t i = 0; i < request->field_count; i++)
        builder_printf(&world->seen, "%.*s: %.*s\n", CY_BYTES_ARG(request->fields[i].name),
                       CY_BYTES_ARG(request->fields[i].value));
    if (cy_bytes_equal(request->path, CY_BYTES("/wait"))) {
        ck_assert_uint_lt(world->waiting_count, LIMIT_HTTP2_STREAMS);
        world->waiting[world->waiting_count++] = exchange;
    } else if (cy_bytes_equal(request->path, CY_BYTES("/204"))) {
        h2_world_respond(world, exchange, 204, 0);
    } else if (cy_bytes_equal(request->path, CY_BYTES("/304"))) {
        h2_world_respond(world, exchange, 304, 0);
    } else {
        (void)!cy_bytes_parse_u64(cy_bytes_skip(request->path, 1), H2_WORLD_BODY_BYTES, &number);
        h2_world_respond(world, exchange, 200, (size_t)number);
    }
}

static void h2_world_on_gone(void *context, struct http_exchange *exchange)
{
    struct h2_world *world = context;
    world->gone_count++;
    for (unsigned i = 0; i < world->waiting_count; i++)
        if (world->waiting[i] == exchange) world->waiting[i] = world->waiting[--world->waiting_count];
}

static void h2_world_on_drained(void *context) { ((struct h2_world *)context)->drained = true; }

static void h2_world_connect(struct h2_world *world, const struct stream_info *info, size_t read_bytes_max)
{
    struct stream *near, *far;
    ck_assert(!cy_failed(loopback_pair(world->loop, read_bytes_max, &near, &far)));
    if (info) loopback_set_info(far, info);
    ck_assert(!cy_failed(http_server_adopt(world->server, far)));
    h2_peer_open(&world->peer, world->loop, near);
}

static void h2_world_open(struct h2_world *world)
{
    memset(world, 0, sizeof *world);
    ck_assert(!cy_failed(loop_new("poll", &world->loop)));
    log_init(&world->log);
    world->log.level_min = LOG_ERROR + 1;
    builder_init(&world->seen);
    world->body = mem_alloc(H2_WORLD_BODY_BYTES);
    for (uint32_t i = 0; i < H2_WORLD_BODY_BYTES; i++) world->body[i] = (uint8_t)('a' + i % 26 + i / 1000 % 3);
    const struct http_server_options options = {.loop = world->loop,
                                                .log = &world->log,
                                                .context = world,
                                                .on_request = h2_world_on_request,
                                                .on_gone = h2_world_on_gone};
    ck_assert(!cy_failed(http_server_new(&options, &world->server)));
    h2_world_connect(world, NULL, 0);
}

static void h2_world_close(struct h2_world *world)
{
    h2_peer_close(&world->peer);
    http_server_free(&world->server);
    ck_assert(!cy_failed(loop_flush(world->loop)));
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(world->loop)), 0);
    loop_free(&world->loop);
    builder_fini(&world->seen);
    mem_free(world->body);
}

/* -- answers --------------------------------------------------------------------------------------------- */

START_TEST(test_a_request_is_answered)
{
    struct h2_world world;
    h2_world_open(&world);
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
    h2_world_open(&world);
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
    h2_peer_bytes(&world.peer, CY_BYTES("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
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
    h2_world_open(&world);
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
    h2_world_open(&world);
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
    h2_world_open(&world);
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

/* -- the rules of RFC 9113 ------------------------------------------------------------------------------- */

/* What the client does, as a small script: words of letters take the rest up to ';'.
 *   H<id> text  a head with END_STREAM      h<id> text  without      F type flags id hex   any frame
 * and what must follow. */
struct h2_rule {
    const char *section; /* and what it says */
    uint8_t type, flags;
    uint32_t id;
    const char *payload; /* hexadecimal; NULL: `head` */
    const char *head;    /* on stream 1, flags as given */
    char expect;         /* G: GOAWAY, R: RST_STREAM, S: status, A: alive */
    uint32_t code;
};

#define H2_RULE_GET ":method: GET\n:scheme: http\n:authority: a\n:path: /1\n"
#define H2_RULE_POST ":method: POST\n:scheme: http\n:authority: a\n:path: /wait\n"

static const struct h2_rule h2_rules[] = {
    /* frames: sections 4 and 6. Stream 1 has an open POST when they come. */
    {"4.1: unknown frame types are ignored", 0x5f, 0xff, 1, "0102", NULL, 'A', 0},
    {"4.2: a frame past MAX_FRAME_SIZE", PEER_DATA, 0, 1, "LONG", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"4.3: a head that HPACK cannot read", PEER_HEADERS, 5, 3, "ff8080808080808080", NULL, 'G',
     NGHTTP2_COMPRESSION_ERROR},
    {"5.1: DATA on an idle stream", PEER_DATA, 0, 5, "61", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"5.1: WINDOW_UPDATE on an idle stream", PEER_WINDOW, 0, 7, "00000001", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"5.1: RST_STREAM on an idle stream", PEER_RST, 0, 7, "00000008", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"5.1: CONTINUATION without a head", PEER_CONTINUATION, 4, 1, "00", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"5.1.1: an even stream from a client", PEER_HEADERS, 5, 4, NULL, H2_RULE_GET, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.1: DATA on stream 0", PEER_DATA, 0, 0, "61", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.1: padding longer than the frame", PEER_DATA, PEER_PADDED, 1, "0561", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.2: HEADERS on stream 0", PEER_HEADERS, 5, 0, NULL, H2_RULE_GET, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.3: PRIORITY of the wrong size", PEER_PRIORITY, 0, 1, "00000000", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"6.4: RST_STREAM on stream 0", PEER_RST, 0, 0, "00000008", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.4: RST_STREAM of the wrong size", PEER_RST, 0, 1, "000008", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"6.5: SETTINGS on a stream", PEER_SETTINGS, 0, 1, "", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.5: an acknowledgement with a payload", PEER_SETTINGS, PEER_ACK, 0, "000300000001", NULL, 'G',
     NGHTTP2_FRAME_SIZE_ERROR},
    {"6.5: SETTINGS of the wrong size", PEER_SETTINGS, 0, 0, "0003000000", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"6.5.2: ENABLE_PUSH other than 0 and 1", PEER_SETTINGS, 0, 0, "000200000002", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.5.2: INITIAL_WINDOW_SIZE past 2^31-1", PEER_SETTINGS, 0, 0, "000480000000", NULL, 'G',
     NGHTTP2_FLOW_CONTROL_ERROR},
    {"6.5.2: MAX_FRAME_SIZE below 16384", PEER_SETTINGS, 0, 0, "000500003fff", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.5.2: MAX_FRAME_SIZE past 2^24-1", PEER_SETTINGS, 0, 0, "000501000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.5.2: unknown settings are ignored", PEER_SETTINGS, 0, 0, "ff0000000001", NULL, 'A', 0},
    {"6.6: PUSH_PROMISE from a client", PEER_PUSH, 4, 1, "0000000282", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.7: PING on a stream", PEER_PING, 0, 1, "0000000000000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.7: PING of the wrong size", PEER_PING, 0, 0, "00000000000000", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"6.8: GOAWAY on a stream", PEER_GOAWAY, 0, 1, "0000000000000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of 0 on the connection", PEER_WINDOW, 0, 0, "00000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of 0 on a stream", PEER_WINDOW, 0, 1, "00000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of the wrong size", PEER_WINDOW, 0, 1, "000001", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"6.9.1: a connection window past 2^31-1", PEER_WINDOW, 0, 0, "7fffffff", NULL, 'G', NGHTTP2_FLOW_CONTROL_ERROR},
    {"6.9.1: a stream window past 2^31-1", PEER_WINDOW, 0, 1, "7fffffff", NULL, 'R', NGHTTP2_FLOW_CONTROL_ERROR},
    /* messages: section 8, on stream 3 */
    {"8.1: a second head without END_STREAM", PEER_HEADERS, 4, 1, NULL, "x-t: 1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.1: a pseudo-field among trailers", PEER_HEADERS, 5, 1, NULL, ":path: /\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: an upper-case name", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "X-A: 1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a space in a name", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "x a: 1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a CR in a value", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "x-a: 1\r2\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a space in front of a value", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "x-a:  1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: connection", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "connection: close\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: keep-alive", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "keep-alive: 1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: proxy-connection", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "proxy-connection: close\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: transfer-encoding", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "transfer-encoding: chunked\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: upgrade", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "upgrade: h2c\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: te other than trailers", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "te: gzip\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: te: trailers", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "te: trailers\n", 'S', 200},
    {"8.3: an unknown pseudo-field", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET ":x: 1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3: one of an answer", PEER_HEADERS, 5, 3, NULL, ":status: 200\n" H2_RULE_GET, 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3: one behind a field", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\nx-a: 1\n:authority: a\n:path: /\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3: one twice", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET ":path: /2\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: no :method", PEER_HEADERS, 5, 3, NULL, ":scheme: http\n:authority: a\n:path: /\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: no :scheme", PEER_HEADERS, 5, 3, NULL, ":method: GET\n:authority: a\n:path: /\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: no :path", PEER_HEADERS, 5, 3, NULL, ":method: GET\n:scheme: http\n:authority: a\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: an empty :path", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a\n:path: \n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a :path that begins with no slash", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a\n:path: a/b\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: * for OPTIONS", PEER_HEADERS, 5, 3, NULL,
     ":method: OPTIONS\n:scheme: http\n:authority: a\n:path: *\n", 'S', 200},
    {"8.3.1: * for GET", PEER_HEADERS, 5, 3, NULL, ":method: GET\n:scheme: http\n:authority: a\n:path: *\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a fragment", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a\n:path: /a#b\n", 'S', 400},
    {"8.3.1: Host instead of :authority", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:path: /1\nhost: a\n", 'S', 200},
    {"8.3.1: neither", PEER_HEADERS, 5, 3, NULL, ":method: GET\n:scheme: http\n:path: /1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: Host that says something else", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "host: b\n", 'S', 400},
    {"8.3.1: user information in :authority", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: u@a\n:path: /1\n", 'S', 400},
    {"9110: a malformed escape in the path", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a\n:path: /%zz\n", 'S', 400},
    {"9110: an expectation nobody knows", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "expect: x\n", 'S', 417},
    {"8.1.1: content-length without a body", PEER_HEADERS, 5, 3, NULL, H2_RULE_POST "content-length: 3\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.1.1: content-length twice", PEER_HEADERS, 5, 3, NULL,
     H2_RULE_GET "content-length: 0\ncontent-length: 0\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.1.1: a content-length that is none", PEER_HEADERS, 5, 3, NULL, H2_RULE_GET "content-length: 1x\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.5: CONNECT", PEER_HEADERS, 5, 3, NULL, ":method: CONNECT\n:authority: a:1\n", 'S', 501},
};

static void h2_rule_send(struct h2_peer *peer, const struct h2_rule *rule)
{
    if (rule->head) {
        h2_peer_head(peer, rule->flags, rule->id, rule->head);
        return;
    }
    struct builder payload;
    builder_init(&payload);
    if (strcmp(rule->payload, "LONG") == 0) {
        for (int i = 0; i < 16385; i++) builder_u8(&payload, 'x');
    } else {
        for (const char *at = rule->payload; *at; at += 2) {
            unsigned byte;
            ck_assert_int_eq(sscanf(at, "%2x", &byte), 1);
            builder_u8(&payload, (uint8_t)byte);
        }
    }
    h2_peer_frame(peer, rule->type, rule->flags, rule->id, builder_view(&payload));
    builder_fini(&payload);
}

static bool h2_rule_holds(struct h2_peer *peer, const struct h2_rule *rule)
{
    static const uint8_t ping[8] = "rfc-9113";
    h2_peer_frame(peer, PEER_PING, 0, 0, cy_bytes_of(ping, 8));
    for (;;) {
        struct h2_frame frame = h2_peer_wait(peer);
        switch (frame.type) {
        case PEER_GOAWAY:
            if (rule->expect != 'G' || h2_peer_number(frame.payload, 4) != rule->code) return false;
            h2_peer_wait_end(peer);
            return true;
        case PEER_RST:
            if (frame.id != rule->id) return false;
            return rule->expect == 'R' && h2_peer_number(frame.payload, 0) == rule->code;
        case PEER_HEADERS: {
            char status[32];
            snprintf(status, sizeof status, ":status: %u\n", rule->code);
            return rule->expect == 'S' && h2_peer_has(frame.payload, status);
        }
        case PEER_PING:
            if (rule->expect == 'A') return memcmp(frame.payload.data, ping, 8) == 0;
            break; /* acknowledged before the answer */
        default: break;
        }
    }
}

START_TEST(test_rules_of_rfc_9113)
{
    for (size_t i = 0; i < CY_COUNT_OF(h2_rules); i++) {
        const struct h2_rule *rule = &h2_rules[i];
        struct h2_world world;
        h2_world_open(&world);
        h2_peer_greet(&world.peer);
        h2_peer_head(&world.peer, 0, 1, H2_RULE_POST); /* stream 1 is open and waits */
        h2_rule_send(&world.peer, rule);
        ck_assert_msg(h2_rule_holds(&world.peer, rule), "%s", rule->section);
        h2_world_close(&world);
    }
}
END_TEST

/* -- ends ------------------------------------------------------------------------------------------------ */

START_TEST(test_a_stream_that_the_client_resets_is_gone)
{
    struct h2_world world;
    h2_world_open(&world);
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
    h2_world_open(&world);
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
    h2_world_open(&world);
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
    h2_world_open(&world);
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

START_TEST(test_a_name_that_the_connection_is_not_for)
{
    struct h2_world world;
    struct stream_info info = {.descriptor = -1, .secure = true, .alpn = CY_BYTES("h2"), .sni = CY_BYTES("a.example")};
    h2_world_open(&world);
    h2_peer_close(&world.peer);
    h2_world_connect(&world, &info, 0);
    h2_peer_greet(&world.peer);
    h2_peer_head(&world.peer, PEER_END_STREAM, 1, ":method: GET\n:scheme: https\n:authority: b.example\n:path: /1\n");
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
        h2_world_open(&world);
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

/* A client that opens no window: nothing but heads, and its memory is one slice's parts, not the body. */
START_TEST(test_a_window_that_stays_shut)
{
    struct h2_world world;
    struct h2_frame frame;
    h2_world_open(&world);
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

/* -- limits and floods ----------------------------------------------------------------------------------- */

static void h2_world_expect_calm(struct h2_world *world)
{
    struct h2_frame frame;
    do {
        frame = h2_peer_wait(&world->peer);
    } while (frame.type != PEER_GOAWAY);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 4), NGHTTP2_ENHANCE_YOUR_CALM);
    h2_peer_wait_end(&world->peer);
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
        h2_world_open(&world);
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
        h2_world_open(&world);
        h2_peer_greet(&world.peer);
        h2_peer_frame(&world.peer, PEER_SETTINGS, PEER_ACK, 0, CY_BYTES_NONE);
        while (world.peer.received.count == 0) h2_peer_turn(&world.peer);
        for (uint32_t i = 0; i <= streams; i++) h2_peer_head(&world.peer, 0, 2 * i + 1, H2_RULE_POST);
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
    for (uint32_t i = 0; i < count; i++)
        h2_peer_frame(&world->peer, PEER_PING, 0, 0, CY_BYTES("12345678"));
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
    h2_peer_head(&world->peer, 0, 1, H2_RULE_POST);
    for (uint32_t i = 0; i < count; i++) h2_peer_frame(&world->peer, PEER_DATA, 0, 1, CY_BYTES_NONE);
}
static void h2_flood_padding(struct h2_world *world, uint32_t count)
{
    h2_peer_head(&world->peer, 0, 1, H2_RULE_POST);
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
        h2_world_open(&world);
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

/* A head in LIMIT_HTTP2_CONTINUATIONS pieces more than the first, and in one more. */
START_TEST(test_continuations_at_and_past_the_limit)
{
    for (uint32_t past = 0; past < 2; past++) {
        struct h2_world world;
        struct builder block;
        h2_world_open(&world);
        h2_peer_greet(&world.peer);
        builder_init(&block);
        h2_peer_pack(&block, H2_RULE_GET);
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
    h2_world_open(&world);
    h2_peer_greet(&world.peer);
    builder_init(&text);
    builder_text(&text, H2_RULE_GET);
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
        if (i == 0) h2_peer_pack(&text, H2_RULE_GET);
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

/* Requests in the steady state take their memory from pools, nghttp2's too. */
START_TEST(test_a_request_allocates_nothing)
{
    struct h2_world world;
    h2_world_open(&world);
    h2_peer_greet(&world.peer);
    struct builder block;
    builder_init(&block);
    h2_peer_pack(&block, H2_RULE_GET "user-agent: test\naccept: */*\n");
    ck_assert(!cy_failed(
        http_verdict_respond(200, cy_bytes_of(world.body, 5000), NULL, 0, &world.verdict, NULL)));
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
            h2_peer_frame(&world.peer, PEER_HEADERS, PEER_END_STREAM | PEER_END_HEADERS, id, builder_view(&block));
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
    tcase_add_test(cases, test_rules_of_rfc_9113);
    tcase_add_test(cases, test_a_stream_that_the_client_resets_is_gone);
    tcase_add_test(cases, test_a_closed_connection_ends_all_its_streams);
    tcase_add_test(cases, test_a_request_still_under_way_is_stopped_after_its_answer);
    tcase_add_test(cases, test_draining_finishes_what_runs);
    tcase_add_test(cases, test_a_name_that_the_connection_is_not_for);
    tcase_add_test(cases, test_bodies_through_random_windows);
    tcase_add_test(cases, test_a_window_that_stays_shut);
    tcase_add_test(cases, test_streams_at_and_past_the_limit);
    tcase_add_test(cases, test_windows_at_and_past_the_limits);
    tcase_add_test(cases, test_floods_end_in_goaway);
    tcase_add_test(cases, test_continuations_at_and_past_the_limit);
    tcase_add_test(cases, test_heads_past_the_limits_are_431);
    tcase_add_test(cases, test_a_request_allocates_nothing);
    suite_add_tcase(suite, cases);
    return suite;
}
