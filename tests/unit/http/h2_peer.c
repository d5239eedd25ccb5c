/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_peer.c: see h2_peer.h.
 */
#include "tests/unit/http/h2_peer.h"

#include <check.h>

#define H2_PEER_TURNS_MAX 20000

static void h2_peer_start_write(struct h2_peer *peer)
{
    if (peer->writing || !peer->stream || peer->pending.count == 0) return;
    struct builder spare = peer->sending;
    peer->sending = peer->pending;
    peer->pending = spare;
    builder_clear(&peer->pending);
    peer->writing = true;
    peer->write.send.parts[0] = builder_view(&peer->sending);
    peer->write.send.part_count = 1;
    stream_write_start(peer->stream, &peer->write);
}

static void h2_peer_start_read(struct h2_peer *peer)
{
    if (peer->reading || peer->ended || peer->stalled || !peer->stream) return;
    peer->reading = true;
    stream_read_start(peer->stream, &peer->read);
}

static void h2_peer_on_written(struct stream_write *write)
{
    struct h2_peer *peer = CY_CONTAINER_OF(write, struct h2_peer, write);
    peer->writing = false;
    if (!cy_failed(write->err)) h2_peer_start_write(peer);
}

static void h2_peer_on_read(struct stream_read *read)
{
    struct h2_peer *peer = CY_CONTAINER_OF(read, struct h2_peer, read);
    peer->reading = false;
    if (!read->buffer) {
        peer->ended = true;
        return;
    }
    peer->read_count++;
    peer->received_bytes += read->buffer->end - read->buffer->begin;
    builder_bytes(&peer->received, buffer_view(read->buffer));
    buffer_unref(&read->buffer);
    h2_peer_start_read(peer);
}

void h2_peer_open(struct h2_peer *peer, struct loop *loop, struct stream *owned_stream)
{
    memset(peer, 0, sizeof *peer);
    peer->loop = loop;
    peer->stream = owned_stream;
    peer->read.done = h2_peer_on_read;
    peer->write.done = h2_peer_on_written;
    builder_init(&peer->pending);
    builder_init(&peer->sending);
    builder_init(&peer->received);
    builder_init(&peer->head);
    ck_assert_int_eq(nghttp2_hd_inflate_new(&peer->inflater), 0);
    h2_peer_start_read(peer);
}

void h2_peer_greet(struct h2_peer *peer)
{
    h2_peer_bytes(peer, CY_BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    h2_peer_frame(peer, PEER_SETTINGS, 0, 0, CY_BYTES_NONE);
}

void h2_peer_greet_back(struct h2_peer *peer)
{
    cy_bytes preface = CY_BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    for (int i = 0; peer->received.count < preface.count; i++) {
        ck_assert_int_lt(i, H2_PEER_TURNS_MAX);
        h2_peer_turn(peer);
    }
    ck_assert(cy_bytes_start_with(builder_view(&peer->received), preface));
    peer->parsed = preface.count;
    h2_peer_frame(peer, PEER_SETTINGS, 0, 0, CY_BYTES_NONE);
}

void h2_peer_close(struct h2_peer *peer)
{
    if (peer->stream) stream_close(&peer->stream);
    for (int i = 0; peer->writing || peer->reading; i++) {
        ck_assert_int_lt(i, H2_PEER_TURNS_MAX);
        h2_peer_turn(peer);
    }
    builder_fini(&peer->pending);
    builder_fini(&peer->sending);
    builder_fini(&peer->received);
    builder_fini(&peer->head);
    nghttp2_hd_inflate_del(peer->inflater);
}

/* -- out ------------------------------------------------------------------------------------------------- */

void h2_peer_bytes(struct h2_peer *peer, cy_bytes bytes) { builder_bytes(&peer->pending, bytes); }

static void h2_peer_put_u32(struct builder *out, uint32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8) builder_u8(out, (uint8_t)(number >> shift));
}

void h2_peer_frame(struct h2_peer *peer, uint8_t type, uint8_t flags, uint32_t id, cy_bytes payload)
{
    struct builder *out = &peer->pending;
    for (int shift = 16; shift >= 0; shift -= 8) builder_u8(out, (uint8_t)(payload.count >> shift));
    builder_u8(out, type);
    builder_u8(out, flags);
    h2_peer_put_u32(out, id);
    builder_bytes(out, payload);
}

void h2_peer_u32(struct h2_peer *peer, uint8_t type, uint32_t id, uint32_t number)
{
    uint8_t bytes[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                        (uint8_t)number};
    h2_peer_frame(peer, type, 0, id, cy_bytes_of(bytes, 4));
}

void h2_peer_setting(struct h2_peer *peer, uint16_t setting, uint32_t value)
{
    uint8_t bytes[6] = {(uint8_t)(setting >> 8), (uint8_t)setting,      (uint8_t)(value >> 24),
                        (uint8_t)(value >> 16),  (uint8_t)(value >> 8), (uint8_t)value};
    h2_peer_frame(peer, PEER_SETTINGS, 0, 0, cy_bytes_of(bytes, 6));
}

static void h2_peer_pack_string(struct builder *out, cy_bytes text)
{
    size_t left = text.count;
    if (left < 127) {
        builder_u8(out, (uint8_t)left);
    } else {
        builder_u8(out, 127);
        for (left -= 127; left >= 128; left >>= 7) builder_u8(out, (uint8_t)(left & 127) | 128);
        builder_u8(out, (uint8_t)left);
    }
    builder_bytes(out, text);
}

void h2_peer_pack(struct builder *out, const char *text)
{
    cy_bytes rest = cy_bytes_from_text(text);
    while (rest.count) {
        size_t end = cy_bytes_find(rest, '\n');
        cy_bytes line = cy_bytes_slice(rest, 0, end);
        size_t colon = 1 + cy_bytes_find(cy_bytes_skip(line, 1), ':');
        builder_u8(out, 0); /* literal, not indexed, new name */
        h2_peer_pack_string(out, cy_bytes_slice(line, 0, colon));
        h2_peer_pack_string(out, cy_bytes_skip(line, colon + 2));
        rest = cy_bytes_skip(rest, end + 1);
    }
}

void h2_peer_head(struct h2_peer *peer, uint8_t flags, uint32_t id, const char *text)
{
    struct builder block;
    builder_init(&block);
    h2_peer_pack(&block, text);
    h2_peer_frame(peer, PEER_HEADERS, flags | PEER_END_HEADERS, id, builder_view(&block));
    builder_fini(&block);
}

void h2_peer_get(struct h2_peer *peer, uint32_t id, const char *path)
{
    struct builder text;
    builder_init(&text);
    builder_printf(&text, ":method: GET\n:scheme: http\n:authority: a.example\n:path: %s\n", path);
    h2_peer_head(peer, PEER_END_STREAM, id, builder_text_view(&text));
    builder_fini(&text);
}

/* -- in -------------------------------------------------------------------------------------------------- */

void h2_peer_turn(struct h2_peer *peer)
{
    for (struct h2_peer *end = peer; end; end = end == peer ? peer->also : NULL) {
        h2_peer_start_write(end);
        h2_peer_start_read(end);
    }
    loop_wake(peer->loop);
    ck_assert(!cy_failed(loop_turn(peer->loop)));
}

uint32_t h2_peer_number(cy_bytes payload, size_t offset)
{
    ck_assert_uint_ge(payload.count, offset + 4);
    const uint8_t *at = payload.data + offset;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static cy_bytes h2_peer_unpack(struct h2_peer *peer, cy_bytes block)
{
    builder_clear(&peer->head);
    for (;;) {
        nghttp2_nv pair;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(peer->inflater, &pair, &flags, block.data, block.count, 1);
        ck_assert_int_ge(used, 0);
        block = cy_bytes_skip(block, (size_t)used);
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            builder_bytes(&peer->head, cy_bytes_of(pair.name, pair.namelen));
            builder_text(&peer->head, ": ");
            builder_bytes(&peer->head, cy_bytes_of(pair.value, pair.valuelen));
            builder_text(&peer->head, "\n");
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
    }
    nghttp2_hd_inflate_end_headers(peer->inflater);
    return builder_view(&peer->head);
}

bool h2_peer_next(struct h2_peer *peer, bool all, struct h2_frame *frame_out)
{
    for (;;) {
        cy_bytes rest = cy_bytes_skip(builder_view(&peer->received), peer->parsed);
        if (rest.count < 9) return false;
        size_t count = (size_t)rest.data[0] << 16 | (size_t)rest.data[1] << 8 | rest.data[2];
        if (rest.count < 9 + count) return false;
        peer->parsed += 9 + count;
        *frame_out = (struct h2_frame){rest.data[3], rest.data[4], h2_peer_number(rest, 5),
                                       cy_bytes_slice(rest, 9, 9 + count)};
        if (frame_out->type == PEER_HEADERS) frame_out->payload = h2_peer_unpack(peer, frame_out->payload);
        if (all) return true;
        if (frame_out->type == PEER_SETTINGS || frame_out->type == PEER_WINDOW) continue;
        return true;
    }
}

struct h2_frame h2_peer_wait(struct h2_peer *peer)
{
    struct h2_frame frame;
    for (int i = 0; !h2_peer_next(peer, false, &frame); i++) {
        ck_assert_int_lt(i, H2_PEER_TURNS_MAX);
        ck_assert(!peer->ended);
        h2_peer_turn(peer);
    }
    return frame;
}

void h2_peer_wait_end(struct h2_peer *peer)
{
    for (int i = 0; !peer->ended; i++) {
        ck_assert_int_lt(i, H2_PEER_TURNS_MAX);
        h2_peer_turn(peer);
    }
}

bool h2_peer_has(cy_bytes text, const char *line)
{
    return text.count && memmem(text.data, text.count, line, strlen(line)) != NULL;
}
