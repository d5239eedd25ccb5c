/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_peer.h: the other end of an HTTP/2 connection, frame by frame and by hand, so that a test can say
 * what no library would: frames are bytes that the test writes, and it sees each frame that comes.
 *
 * In:   a stream. Out: frames received, in their order; heads as text "name: value\n".
 * Its heads go out as literals without index; those that come in are unpacked by nghttp2's HPACK alone.
 */
#ifndef CY_TESTS_UNIT_HTTP_H2_PEER_H
#define CY_TESTS_UNIT_HTTP_H2_PEER_H

#include "vm/base/builder.h"
#include "vm/net/stream.h"

#include <nghttp2/nghttp2.h>

enum h2_peer_type {
    PEER_DATA,
    PEER_HEADERS,
    PEER_PRIORITY,
    PEER_RST,
    PEER_SETTINGS,
    PEER_PUSH,
    PEER_PING,
    PEER_GOAWAY,
    PEER_WINDOW,
    PEER_CONTINUATION
};
#define PEER_END_STREAM 1u
#define PEER_ACK 1u
#define PEER_END_HEADERS 4u
#define PEER_PADDED 8u

struct h2_frame {
    uint8_t type, flags;
    uint32_t id;
    cy_bytes payload; /* of a head: its text */
};

struct h2_peer {
    struct loop *loop;
    struct h2_peer *also; /* another end, which goes on with this one's turns */
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct builder pending, sending; /* to be written */
    struct builder received;
    size_t parsed; /* of received */
    struct builder head;
    nghttp2_hd_inflater *inflater;
    bool writing, reading, ended, stalled; /* stalled: does not read */
    unsigned read_count;
    uint64_t received_bytes;
};

void h2_peer_open(struct h2_peer *peer, struct loop *loop, struct stream *owned_stream);
/* Preface and empty SETTINGS. */
void h2_peer_greet(struct h2_peer *peer);
/* As a server: waits for the client's preface, then empty SETTINGS. */
void h2_peer_greet_back(struct h2_peer *peer);
void h2_peer_close(struct h2_peer *peer);
void h2_peer_bytes(struct h2_peer *peer, cy_bytes bytes);
void h2_peer_frame(struct h2_peer *peer, uint8_t type, uint8_t flags, uint32_t id, cy_bytes payload);
void h2_peer_u32(struct h2_peer *peer, uint8_t type, uint32_t id, uint32_t number);
void h2_peer_setting(struct h2_peer *peer, uint16_t setting, uint32_t value);
/* `text`: lines "name: value\n"; flags get END_HEADERS. */
void h2_peer_head(struct h2_peer *peer, uint8_t flags, uint32_t id, const char *text);
void h2_peer_pack(struct builder *out, const char *text);
/* GET of a path, for a.example. */
void h2_peer_get(struct h2_peer *peer, uint32_t id, const char *path);
/* A turn of the loop. */
void h2_peer_turn(struct h2_peer *peer);
/* The next frame, SETTINGS and WINDOW_UPDATE passed over unless `all`; false when there is none yet. */
bool h2_peer_next(struct h2_peer *peer, bool all, struct h2_frame *frame_out);
/* Turns until there is one; fails the test when the connection ends first. */
struct h2_frame h2_peer_wait(struct h2_peer *peer);
void h2_peer_wait_end(struct h2_peer *peer);
uint32_t h2_peer_number(cy_bytes payload, size_t offset);
bool h2_peer_has(cy_bytes text, const char *line);

#endif
