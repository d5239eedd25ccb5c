/* SPDX-License-Identifier: MIT
 *
 * vm/http/relay.c: one write's worth of a body at a time.
 *
 * A body of known length may come in pipes (loop.h): such a buffer has a length only, and is a write of its own.
 *
 * Parts: [head] [size line] data ... data [CR LF] [0 CR LF] [trailers] [CR LF]
 */
#include "vm/http/relay.h"

#include "vm/base/check.h"
#include "vm/http/field.h"

/* Room behind the data for the parts that end a chunked body. */
#define RELAY_TAIL_PARTS 3
/* Pieces up to this size are moved together. */
#define RELAY_SMALL_PIECE_BYTES 512
/* Bodies up to this size are cheaper copied than gathered. */
#define RELAY_JOIN_BYTES 1024

void relay_begin(struct relay *relay, const struct http_framing *framing, bool chunked_out)
{
    h1_body_begin(&relay->body, framing);
    relay->chunked_out = chunked_out;
    relay->trailers_out = false;
    relay->ended = framing->kind == HTTP_BODY_NONE;
    relay->piped = relay->moved = false;
    relay->trailer = NULL;
    relay->passed_bytes = 0;
}

void relay_end(struct relay *relay) { buffer_unref(&relay->trailer); }

void relay_hold_add(struct relay_hold *hold, struct buffer *owned_buffer)
{
    for (int i = 0; i < RELAY_HOLD_BUFFERS; i++) {
        if (hold->buffers[i]) continue;
        hold->buffers[i] = owned_buffer;
        return;
    }
    UNREACHABLE();
}

void relay_hold_release(struct relay_hold *hold)
{
    for (int i = 0; i < RELAY_HOLD_BUFFERS; i++) buffer_unref(&hold->buffers[i]);
}

static void relay_add_part(struct loop_send *send, cy_bytes part)
{
    CHECK(send->part_count < LOOP_SEND_PARTS_MAX);
    send->parts[send->part_count++] = part;
}

/* Pieces lie in one buffer, each behind the one before, so a small one can slide down to it if the buffer is ours. */
static void relay_add_piece(struct relay *relay, struct loop_send *send, uint32_t first_piece, cy_bytes piece,
                            bool may_move)
{
    if (may_move && send->part_count > first_piece && piece.count <= RELAY_SMALL_PIECE_BYTES) {
        cy_bytes *before = &send->parts[send->part_count - 1];
        memmove((uint8_t *)(uintptr_t)before->data + before->count, piece.data, piece.count);
        before->count += piece.count;
        relay->moved = true;
        return;
    }
    relay_add_part(send, piece);
}

/* Without memory for them trailers are dropped, which RFC 9110 section 6.5.1 allows any hop. */
static void relay_keep_trailer(struct relay *relay, struct buffer_pool *pool, cy_bytes piece)
{
    if (!relay->chunked_out && !relay->trailers_out) return;
    if (!relay->trailer) relay->trailer = buffer_take(pool);
    struct buffer *trailer = relay->trailer;
    if (!trailer) return;
    CHECK(buffer_space(trailer) >= piece.count); /* LIMIT_HTTP_TRAILER_BYTES <= LIMIT_BUFFER_BYTES */
    memcpy(trailer->data + trailer->end, piece.data, piece.count);
    trailer->end += (uint32_t)piece.count;
}

/* Drops, in place, the lines that a trailer must not set (RFC 9110 section 6.5.1). */
static void relay_filter_trailer(struct buffer *trailer)
{
    const unsigned dropped_flags = HTTP_FIELD_FLAG_FORBIDDEN | HTTP_FIELD_FLAG_HEAD_ONLY;
    cy_bytes section = buffer_view(trailer);
    uint32_t kept = 0;
    while (section.count > 0) {
        size_t line_bytes = cy_min_size(cy_bytes_find(section, '\n') + 1, section.count);
        cy_bytes line = cy_bytes_slice(section, 0, line_bytes);
        cy_bytes name = cy_bytes_slice(line, 0, cy_bytes_find(line, ':'));
        uint8_t id = field_identify(name);
        section = cy_bytes_skip(section, line_bytes);
        if ((field_flags(id) & dropped_flags) || field_is_for_one_hop(name, id)) continue;
        if (field_is_forwarding(name, id)) continue;
        memmove(trailer->data + kept, line.data, line.count);
        kept += (uint32_t)line.count;
    }
    trailer->end = kept;
}

static void relay_add_tail(struct relay *relay, struct loop_send *send, struct relay_hold *hold,
                           bool behind_data)
{
    cy_bytes end = behind_data ? CY_BYTES("\r\n0\r\n\r\n") : CY_BYTES("0\r\n\r\n");
    if (!relay->trailer) {
        relay_add_part(send, end);
        return;
    }
    relay_filter_trailer(relay->trailer);
    end.count -= 2;
    relay_add_part(send, end);
    relay_add_part(send, buffer_view(relay->trailer));
    relay_add_part(send, CY_BYTES("\r\n"));
    relay_hold_add(hold, relay->trailer);
    relay->trailer = NULL;
}

static void relay_format_line(char line[20], size_t chunk_bytes, cy_bytes *line_out)
{
    static const char digits[] = "0123456789abcdef";
    size_t begin = 18;
    line[18] = '\r';
    line[19] = '\n';
    do {
        line[--begin] = digits[chunk_bytes & 15];
        chunk_bytes >>= 4;
    } while (chunk_bytes);
    *line_out = cy_bytes_of(line + begin, 20 - begin);
}

uint32_t relay_pipe_bytes(const struct relay *relay)
{
    const struct h1_body *body = &relay->body;
    if (relay->chunked_out || body->kind != HTTP_BODY_LENGTH) return 0;
    if (body->left_bytes < LIMIT_PIPE_BODY_BYTES && !relay->piped) return 0;
    return (uint32_t)(body->left_bytes < LIMIT_PIPE_BYTES ? body->left_bytes : LIMIT_PIPE_BYTES);
}

static enum relay_result relay_fill_piped(struct relay *relay, struct buffer *input, struct loop_send *send)
{
    CHECK(send->part_count == 0 && !relay->chunked_out);
    cy_bytes all = buffer_view(input);
    h1_body_skip(&relay->body, all.count);
    relay->passed_bytes += all.count;
    relay_add_part(send, all);
    send->pipe = input;
    input->begin = input->end;
    relay->piped = true;
    relay->ended = relay->body.ended;
    return relay->ended ? RELAY_ENDED : RELAY_GOES_ON;
}

enum relay_result relay_fill(struct relay *relay, struct buffer *input, struct loop_send *send,
                             struct relay_hold *hold)
{
    if (CY_UNLIKELY(loop_buffer_is_piped(input))) return relay_fill_piped(relay, input, send);
    uint32_t line_part = send->part_count;
    uint32_t first_piece = line_part + relay->chunked_out;
    send->part_count = first_piece;
    cy_bytes rest = buffer_view(input), piece;
    size_t data_bytes = 0;
    bool full = false;
    while (!full) {
        enum h1_body_step step = h1_body_step(&relay->body, &rest, &piece);
        if (step == H1_BODY_FAULT) return RELAY_FAULT;
        if (step == H1_BODY_MORE || step == H1_BODY_END) break;
        if (step == H1_BODY_TRAILER) {
            relay_keep_trailer(relay, input->pool, piece);
            continue;
        }
        relay_add_piece(relay, send, first_piece, piece, !buffer_is_foreign(input));
        data_bytes += piece.count;
        full = send->part_count + RELAY_TAIL_PARTS >= LOOP_SEND_PARTS_MAX;
    }
    input->begin = input->end - (uint32_t)rest.count;
    relay->ended = relay->body.ended;
    relay->passed_bytes += data_bytes;
    if (relay->chunked_out) {
        if (data_bytes)
            relay_format_line(hold->line, data_bytes, &send->parts[line_part]);
        else
            send->part_count = line_part;
        if (relay->ended)
            relay_add_tail(relay, send, hold, data_bytes > 0);
        else if (data_bytes)
            relay_add_part(send, CY_BYTES("\r\n"));
    }
    return relay->ended ? RELAY_ENDED : RELAY_GOES_ON;
}

void relay_join_small(struct loop_send *send, struct buffer *head)
{
    size_t bytes = 0;
    for (uint32_t i = 1; i < send->part_count; i++) bytes += send->parts[i].count;
    if (bytes == 0 || bytes > RELAY_JOIN_BYTES || bytes > buffer_space(head)) return;
    for (uint32_t i = 1; i < send->part_count; i++) {
        if (send->parts[i].count) memcpy(head->data + head->end, send->parts[i].data, send->parts[i].count);
        head->end += (uint32_t)send->parts[i].count;
    }
    send->parts[0] = buffer_view(head);
    send->part_count = 1;
}

bool relay_finish(struct relay *relay, struct loop_send *send, struct relay_hold *hold)
{
    if (!h1_body_end_of_stream(&relay->body)) return false;
    if (!relay->ended && relay->chunked_out) relay_add_tail(relay, send, hold, false);
    relay->ended = true;
    return true;
}

void relay_give_trailer(struct relay *relay, struct buffer *owned_trailer)
{
    if (!owned_trailer) return;
    if (relay->ended || (!relay->chunked_out && !relay->trailers_out)) {
        buffer_unref(&owned_trailer);
        return;
    }
    buffer_unref(&relay->trailer);
    relay->trailer = owned_trailer;
}

struct buffer *relay_take_trailer(struct relay *relay)
{
    struct buffer *trailer = relay->trailer;
    if (!trailer || !relay->trailers_out) return NULL;
    relay->trailer = NULL;
    relay_filter_trailer(trailer);
    if (trailer->begin == trailer->end) buffer_unref(&trailer);
    return trailer;
}

#undef RELAY_TAIL_PARTS
#undef RELAY_SMALL_PIECE_BYTES
#undef RELAY_JOIN_BYTES
