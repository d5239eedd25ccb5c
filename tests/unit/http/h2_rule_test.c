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
    {"4.1: the reserved bit of a stream's number is ignored", PEER_HEADERS, 5, 0x80000003, NULL, H2_WORLD_GET,
     'S', 200},
    {"4.1: flags without a meaning are ignored", PEER_HEADERS, 0xd7, 3, NULL, H2_WORLD_GET, 'S', 200},
    {"4.2: a head past MAX_FRAME_SIZE", PEER_HEADERS, 5, 3, "LONG", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"4.2: SETTINGS past MAX_FRAME_SIZE", PEER_SETTINGS, 0, 0, "LONG", NULL, 'G', NGHTTP2_FRAME_SIZE_ERROR},
    {"4.3: a head that is interrupted", PEER_HEADERS, PEER_END_STREAM, 3, "828684410161", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"4.3.1: a table of HPACK larger than SETTINGS allow", PEER_HEADERS, 5, 3, "3fe2ff03828684410161", NULL,
     'G', NGHTTP2_COMPRESSION_ERROR},
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
    {"6.2: padding longer than the frame", PEER_HEADERS, PEER_PADDED | 5, 3, "7f828684410161", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.2: a padded head", PEER_HEADERS, PEER_PADDED | 5, 3, "03828684410161000000", NULL, 'S', 200},
    {"6.3: PRIORITY is ignored", PEER_PRIORITY, 0, 9, "0000000110", NULL, 'A', 0},
    {"6.3: PRIORITY on stream 0", PEER_PRIORITY, 0, 0, "0000000110", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
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
    {"6.7: an answer to no PING", PEER_PING, PEER_ACK, 0, "0000000000000000", NULL, 'A', 0},
    {"6.8: GOAWAY of the wrong size", PEER_GOAWAY, 0, 0, "00000000000000", NULL, 'G',
     NGHTTP2_FRAME_SIZE_ERROR},
    {"6.8: GOAWAY of a client: its streams go on", PEER_GOAWAY, 0, 0, "0000000000000000", NULL, 'A', 0},
    {"7: an error code that nobody knows", PEER_RST, 0, 1, "deadbeef", NULL, 'A', 0},
    {"6.8: GOAWAY on a stream", PEER_GOAWAY, 0, 1, "0000000000000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of 0 on the connection", PEER_WINDOW, 0, 0, "00000000", NULL, 'G',
     NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of 0 on a stream", PEER_WINDOW, 0, 1, "00000000", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.9: WINDOW_UPDATE of the wrong size", PEER_WINDOW, 0, 1, "000001", NULL, 'G',
     NGHTTP2_FRAME_SIZE_ERROR},
    {"6.9: the reserved bit is ignored", PEER_WINDOW, 0, 1, "80000001", NULL, 'A', 0},
    {"6.10: CONTINUATION on stream 0", PEER_CONTINUATION, 4, 0, "00", NULL, 'G', NGHTTP2_PROTOCOL_ERROR},
    {"6.9.1: a connection window past 2^31-1", PEER_WINDOW, 0, 0, "7fffffff", NULL, 'G',
     NGHTTP2_FLOW_CONTROL_ERROR},
    {"6.9.1: a stream window past 2^31-1", PEER_WINDOW, 0, 1, "7fffffff", NULL, 'R',
     NGHTTP2_FLOW_CONTROL_ERROR},
    /* messages: section 8, on stream 3 */
    {"8.1: a second head without END_STREAM", PEER_HEADERS, 4, 1, NULL, "x-t: 1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.1: a pseudo-field among trailers", PEER_HEADERS, 5, 1, NULL, ":path: /\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.1: an upper-case name among trailers", PEER_HEADERS, 5, 1, NULL, "X-T: 1\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.1: a field of the connection among trailers", PEER_HEADERS, 5, 1, NULL,
     "transfer-encoding: chunked\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a LF in a value", PEER_HEADERS, 5, 3, "82868441016100017803610a62", NULL, 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a NUL in a value", PEER_HEADERS, 5, 3, "82868441016100017803610062", NULL, 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a colon in a name", PEER_HEADERS, 5, 3, "8286844101610003783a790161", NULL, 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a LF in a name", PEER_HEADERS, 5, 3, "8286844101610003780a790161", NULL, 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: an empty name", PEER_HEADERS, 5, 3, "82868441016100000161", NULL, 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a byte past ASCII in a name", PEER_HEADERS, 5, 3, "828684410161000278c30161", NULL, 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a space behind a value", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "x-a: 1 \n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.2.1: a tab in front of a value", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "x-a: \t1\n", 'R',
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
    {"8.3.1: an empty :authority", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: \n:path: /1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: two Hosts", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:path: /1\nhost: a\nhost: a\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: :authority and two Hosts", PEER_HEADERS, 5, 3, NULL, H2_WORLD_GET "host: a\nhost: b\n", 'R',
     NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a space in :path", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a\n:path: /a HTTP/1.1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a whole URL in :path", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a\n:path: http://b/1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a space in :method", PEER_HEADERS, 5, 3, NULL,
     ":method: GET /x\n:scheme: http\n:authority: a\n:path: /1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: an empty :method", PEER_HEADERS, 5, 3, NULL,
     ":method: \n:scheme: http\n:authority: a\n:path: /1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a :scheme that is none", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: ht tp\n:authority: a\n:path: /1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a slash in :authority", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a/b\n:path: /1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.3.1: a space in :authority", PEER_HEADERS, 5, 3, NULL,
     ":method: GET\n:scheme: http\n:authority: a b\n:path: /1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
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
    {"8.1.1: a content-length with a sign", PEER_HEADERS, 4, 3, NULL, H2_WORLD_POST "content-length: +1\n",
     'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.1.1: a content-length with two values", PEER_HEADERS, 4, 3, NULL,
     H2_WORLD_POST "content-length: 1, 1\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.1.1: a content-length past 2^63", PEER_HEADERS, 4, 3, NULL,
     H2_WORLD_POST "content-length: 9223372036854775808\n", 'R', NGHTTP2_PROTOCOL_ERROR},
    {"8.5: CONNECT with a :path", PEER_HEADERS, 5, 3, NULL, ":method: CONNECT\n:authority: a:1\n:path: /\n",
     'R', NGHTTP2_PROTOCOL_ERROR},
    {"8441: CONNECT with a :protocol that SETTINGS did not offer", PEER_HEADERS, 4, 3, NULL,
     ":method: CONNECT\n:protocol: websocket\n:scheme: http\n:authority: a\n:path: /\n", 'R',
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

/* What takes more than one frame: a line TYPE FLAGS STREAM PAYLOAD for each, - for none; stream 1 is open as above. */
static const struct h2_sequence {
    const char *section, *frames;
    char expect;
    uint32_t id, code;
} h2_sequences[] = {
    {"5.1: DATA behind END_STREAM", "1 5 3 828644052f77616974410161\n0 0 3 61\n", 'G', 0,
     NGHTTP2_STREAM_CLOSED},
    {"5.1: a head behind END_STREAM", "1 5 3 828644052f77616974410161\n1 5 3 0001780161\n", 'G', 0,
     NGHTTP2_STREAM_CLOSED},
    {"5.1: a head behind RST_STREAM", "3 0 1 00000008\n1 5 1 0001780161\n", 'G', 0, NGHTTP2_PROTOCOL_ERROR},
    /* nghttp2 drops it, as it drops what crossed a RST_STREAM of ours. */
    {"5.1: DATA behind RST_STREAM", "3 0 1 00000008\n0 0 1 61\n", 'A', 0, 0},
    {"5.1: a head that crossed our RST_STREAM is dropped", "8 0 1 7fffffff\n1 5 1 0001780161\n", 'R', 1,
     NGHTTP2_FLOW_CONTROL_ERROR},
    {"5.1: DATA that crossed our RST_STREAM is dropped", "8 0 1 7fffffff\n0 0 1 61\n0 1 1 61\n", 'R', 1,
     NGHTTP2_FLOW_CONTROL_ERROR},
    {"5.1: WINDOW_UPDATE behind the end is ignored", "3 0 1 00000008\n8 0 1 00000001\n", 'A', 0, 0},
    {"5.1: RST_STREAM behind the end is ignored", "3 0 1 00000008\n3 0 1 00000008\n", 'A', 0, 0},
    {"5.1: PRIORITY behind the end is ignored", "3 0 1 00000008\n2 0 1 0000000010\n", 'A', 0, 0},
    {"5.1.1: a number below one that was used", "1 5 5 828684410161\n1 5 3 828684410161\n", 'G', 0,
     NGHTTP2_PROTOCOL_ERROR},
    {"5.1.1: numbers that were passed over are closed", "1 5 9 828644052f77616974410161\n0 0 5 61\n", 'A', 0,
     0},
    /* The section asks for an error of the connection; nghttp2 resets the streams whose windows would overflow. */
    {"6.9.2: SETTINGS that make a window overflow", "8 0 1 7fff0000\n4 0 0 00047fffffff\n", 'R', 1,
     NGHTTP2_FLOW_CONTROL_ERROR},
    {"6.9.2: SETTINGS that make a window negative", "4 0 0 000400000000\n4 0 0 00040000ffff\n", 'A', 0, 0},
    {"6.10: CONTINUATION of another stream", "1 1 3 828684410161\n9 4 1 00\n", 'G', 0,
     NGHTTP2_PROTOCOL_ERROR},
    {"6.10: CONTINUATION behind END_HEADERS", "1 5 3 828684410161\n9 4 3 00\n", 'G', 0,
     NGHTTP2_PROTOCOL_ERROR},
    {"6.10: a head in pieces", "1 1 3 8286\n9 0 3 -\n9 4 3 84410161\n", 'S', 3, 200},
    {"8.1: trailers behind trailers", "1 5 1 0001780161\n1 5 1 0001780161\n", 'G', 0, NGHTTP2_STREAM_CLOSED},
    {"8.1: DATA behind trailers", "1 5 1 0001780161\n0 1 1 61\n", 'G', 0, NGHTTP2_STREAM_CLOSED},
    {"8.1.1: less than content-length says", "1 4 3 838644052f776169744101610f0d0133\n0 1 3 6161\n", 'R', 3,
     NGHTTP2_PROTOCOL_ERROR},
    {"8.1.1: more than content-length says", "1 4 3 838644052f776169744101610f0d0133\n0 0 3 61616161\n", 'R',
     3, NGHTTP2_PROTOCOL_ERROR},
    {"8.1.1: less, and trailers", "1 4 3 838644052f776169744101610f0d0133\n0 0 3 6161\n1 5 3 0001780161\n",
     'R', 3, NGHTTP2_PROTOCOL_ERROR},
};

static void h2_sequence_send(struct h2_peer *peer, const struct h2_sequence *sequence)
{
    for (const char *at = sequence->frames; *at;) {
        unsigned type, flags, id;
        int used = 0;
        ck_assert_int_eq(sscanf(at, "%u %u %u %n", &type, &flags, &id, &used), 3);
        char payload[64];
        size_t count = 0;
        for (at += used; *at && *at != '\n'; at++)
            if (*at != '-') payload[count++] = *at;
        payload[count] = 0;
        at += *at == '\n';
        const struct h2_rule rule = {
            .type = (uint8_t)type, .flags = (uint8_t)flags, .id = id, .payload = payload};
        h2_rule_send(peer, &rule);
    }
}

START_TEST(test_sequences_of_rfc_9113)
{
    for (size_t i = 0; i < CY_COUNT_OF(h2_sequences); i++) {
        const struct h2_sequence *sequence = &h2_sequences[i];
        const struct h2_rule rule = {.expect = sequence->expect, .id = sequence->id, .code = sequence->code};
        struct h2_world world;
        h2_world_open(&world, NULL, NULL);
        h2_peer_greet(&world.peer);
        h2_peer_head(&world.peer, 0, 1, H2_WORLD_POST);
        h2_sequence_send(&world.peer, sequence);
        ck_assert_msg(h2_rule_holds(&world.peer, &rule), "%s", sequence->section);
        h2_world_close(&world);
    }
}
END_TEST

/* Section 3.4: the first frame is SETTINGS. */
START_TEST(test_the_first_frame_is_settings)
{
    struct h2_world world;
    struct h2_frame frame;
    h2_world_open(&world, NULL, NULL);
    h2_peer_bytes(&world.peer, CY_BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    h2_peer_frame(&world.peer, PEER_PING, 0, 0, CY_BYTES("12345678"));
    do {
        frame = h2_peer_wait(&world.peer);
    } while (frame.type != PEER_GOAWAY);
    ck_assert_uint_eq(h2_peer_number(frame.payload, 4), NGHTTP2_PROTOCOL_ERROR);
    h2_peer_wait_end(&world.peer);
    h2_world_close(&world);
}
END_TEST

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
    tcase_add_test(cases, test_sequences_of_rfc_9113);
    tcase_add_test(cases, test_the_first_frame_is_settings);
    suite_add_tcase(suite, cases);
    return suite;
}
