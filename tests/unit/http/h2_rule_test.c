/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_rule_test.c: proves that a server holds its clients to RFC 9113: for each rule what a client sends
 * that breaks it, and the error, with its code, that must follow. The client is h2_peer.c, frame by frame.
 */
#include "tests/unit/http/h2_world.h"

#include <check.h>
#include <stdio.h>

struct h2_rule {
    const char *section; /* and what it says */
    uint8_t type, flags;
    uint32_t id;
    const char *payload; /* hexadecimal; NULL: `head` */
    const char *head;    /* on stream 1, flags as given */
    char expect;         /* G: GOAWAY, R: RST_STREAM, S: status, A: alive */
    uint32_t code;
};

static const struct h2_rule h2_rules[] = {
    /* frames: sections 4 and 6. Stream 1 has an open POST when they come. */
    {"4.1: unknown frame types are ignored", 0x5f, 0xff, 1, "0102", NULL, 'A', 0},
    {"4.2: a frame past MAX_FRAME_SIZE", PEER_DATA, 0, 1, "LONG", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"4.3: a head that HPACK cannot read", PEER_HEADERS, 5, 3, "ff8080808080808080", NULL, 'G',
     NGHTTP2_COMPRESSION_ERROR},
    {"5.1: DATA on an idle stream", PEER_DATA, 0, 5, "61", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"5.1: WINDOW_UPDATE on an idle stream", PEER_WINDOW, 0, 7, "00000001", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"5.1: RST_STREAM on an idle stream", PEER_RST, 0, 7, "00000008", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"5.1: CONTINUATION without a head", PEER_CONTINUATION, 4, 1, "00", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"5.1.1: an even stream from a client", PEER_HEADERS, 5, 4, NULL, H2_WORLD_GET, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.1: DATA on stream 0", PEER_DATA, 0, 0, "61", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.1: padding longer than the frame", PEER_DATA, PEER_PADDED, 1, "0561", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.2: HEADERS on stream 0", PEER_HEADERS, 5, 0, NULL, H2_WORLD_GET, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.3: PRIORITY of the wrong size", PEER_PRIORITY, 0, 1, "00000000", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"6.4: RST_STREAM on stream 0", PEER_RST, 0, 0, "00000008", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.4: RST_STREAM of the wrong size", PEER_RST, 0, 1, "000008", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"6.5: SETTINGS on a stream", PEER_SETTINGS, 0, 1, "", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.5: an acknowledgement with a payload", PEER_SETTINGS, PEER_ACK, 0, "000300000001", NULL, 'G',
     NGHTTP2_FRAME_SIZE_ERROR},
    {"6.5: SETTINGS of the wrong size", PEER_SETTINGS, 0, 0, "0003000000", NULL, 'G',
     NGHTTP2_FRAME_SIZE_ERROR},
    {"6.5.2: ENABLE_PUSH other than 0 and 1", PEER_SETTINGS, 0, 0, "000200000002", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.5.2: INITIAL_WINDOW_SIZE past 2^31-1", PEER_SETTINGS, 0, 0, "000480000000", NULL, 'G',
     NGHTTP2_FLOW_CONTROL_ERROR},
    {"6.5.2: MAX_FRAME_SIZE below 16384", PEER_SETTINGS, 0, 0, "000500003fff", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.5.2: MAX_FRAME_SIZE past 2^24-1", PEER_SETTINGS, 0, 0, "000501000000", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.5.2: unknown settings are ignored", PEER_SETTINGS, 0, 0, "ff0000000001", NULL, 'A', 0},
    {"6.6: PUSH_PROMISE from a client", PEER_PUSH, 4, 1, "0000000282", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.7: PING on a stream", PEER_PING, 0, 1, "0000000000000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.7: PING of the wrong size", PEER_PING, 0, 0, "00000000000000", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"6.8: GOAWAY on a stream", PEER_GOAWAY, 0, 1, "0000000000000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of 0 on the connection", PEER_WINDOW, 0, 0, "00000000", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of 0 on a stream", PEER_WINDOW, 0, 1, "00000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of the wrong size", PEER_WINDOW, 0, 1, "000001", NULL, 'G',
     NGHTTP2_FRAME_SIZE_ERROR},
    {"6.9.1: a connection window past 2^31-1", PEER_WINDOW, 0, 0, "7fffffff", NULL, 'G',
     NGHTTP2_FLOW_CONTROL_ERROR},
    {"6.9.1: a stream window past 2^31-1", PEER_WINDOW, 0, 1, "7fffffff", NULL, 'R',
     NGHTTP2_FLOW_CONTROL_ERROR},
    /* messages: section 8, on stream 3 */
    {"8.1: a second head without END_STREAM", PEER_HEADERS, 4, 1, NULL, "x-t: 1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.1: a pseudo-field among trailers", PEER_HEADERS, 5, 1, NULL, ":path: /\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: an upper-case name", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "X-A: 1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a space in a name", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "x a: 1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a CR in a value", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "x-a: 1\r2\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a space in front of a value", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "x-a:  1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: connection", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "connection: close\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: keep-alive", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "keep-alive: 1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: proxy-connection", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "proxy-connection: close\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: transfer-encoding", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "transfer-encoding: chunked\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: upgrade", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "upgrade: h2c\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: te other than trailers", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "te: gzip\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.2: te: trailers", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "te: trailers\n", 'S', 200},
    {"8.3: an unknown pseudo-field", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET ":x: 1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3: one of an answer", PEER_HEADERS, 5, 3, NULL, ":status: 200\n" H2_WORLD_GET, 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3: one behind a field", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\nx-a: 1\n:authority: a\n:path: /\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3: one twice", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET ":path: /2\n", 'R', NGHTTP2_PROTOCOL_ERROR},
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
    {"8.3.1: * for GET", PEER_HEADERS, 5, 3, NULL, ":method: GET\n:scheme: http\n:authority: a\n:path: *\n",
     'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a fragment", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a\n:path: /a#b\n", 'S', 400},
    {"8.3.1: Host instead of :authority", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:path: /1\nhost: a\n", 'S', 200},
    {"8.3.1: neither", PEER_HEADERS, 5, 3, NULL, ":method: GET\n:scheme: http\n:path: /1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: Host that says something else", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "host: b\n", 'S', 400},
    {"8.3.1: user information in :authority", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: u@a\n:path: /1\n", 'S', 400},
    {"9110: a malformed escape in the path", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a\n:path: /%zz\n", 'S', 400},
    {"9110: an expectation nobody knows", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "expect: x\n", 'S', 417},
    {"8.1.1: content-length without a body", PEER_HEADERS, 5, 3, NULL, H2_WORLD_POST "content-length: 3\n",
     'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.1.1: content-length twice", PEER_HEADERS, 5, 3, NULL,
     H2_WORLD_GET "content-length: 0\ncontent-length: 0\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.1.1: a content-length that is none", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "content-length: 1x\n",
     'R', NGHTTP2_PROTOCOL_ERROR},
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
        h2_world_open(&world, NULL, NULL);
        h2_peer_greet(&world.peer);
        h2_peer_head(&world.peer, 0, 1, H2_WORLD_POST); /* stream 1 is open and waits */
        h2_rule_send(&world.peer, rule);
        ck_assert_msg(h2_rule_holds(&world.peer, rule), "%s", rule->section);
        h2_world_close(&world);
    }
}
END_TEST

Suite *unit_suite_http_h2_rule(void);
Suite *unit_suite_http_h2_rule(void)
{
    Suite *suite = suite_create("http_h2_rule");
    TCase *cases = tcase_create("h2_rule");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, test_rules_of_rfc_9113);
    suite_add_tcase(suite, cases);
    return suite;
}
