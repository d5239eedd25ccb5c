/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1_body.c: the body decoder; its states are drawn in h1_body.h.
 *
 * Invariant: left_bytes is what is still owed of the length or the chunk; it never grows except at a chunk's
 *            size line.
 */
#include "vm/http/h1_body.h"

#include "vm/base/check.h"
#include "vm/http/field.h"

enum h1_body_state {
    H1_BODY_SIZE, /* digits of a chunk size */
    H1_BODY_EXTENSION_NAME_START,
    H1_BODY_EXTENSION_NAME,
    H1_BODY_EXTENSION_VALUE_START,
    H1_BODY_EXTENSION_TOKEN,
    H1_BODY_EXTENSION_QUOTED,
    H1_BODY_EXTENSION_ESCAPE,
    H1_BODY_EXTENSION_QUOTED_END,
    H1_BODY_SIZE_LF,
    H1_BODY_CHUNK,
    H1_BODY_CHUNK_CR,
    H1_BODY_CHUNK_LF,
    H1_BODY_TRAILER_START,
    H1_BODY_TRAILER_NAME,
    H1_BODY_TRAILER_VALUE,
    H1_BODY_TRAILER_LF,
    H1_BODY_END_LF
};

void h1_body_begin(struct h1_body *body, const struct http_framing *framing)
{
    *body = (struct h1_body){.kind = framing->kind, .state = H1_BODY_SIZE};
    if (framing->kind == HTTP_BODY_LENGTH) body->left_bytes = framing->length;
    body->ended =
        framing->kind == HTTP_BODY_NONE || (framing->kind == HTTP_BODY_LENGTH && framing->length == 0);
}

static bool h1_body_refuse(struct h1_body *body, uint8_t fault)
{
    body->fault = fault;
    return false;
}

static bool h1_body_size_digit(struct h1_body *body, uint8_t byte)
{
    uint8_t folded = byte | 0x20;
    unsigned digit;
    if (byte >= '0' && byte <= '9')
        digit = byte - '0';
    else if (folded >= 'a' && folded <= 'f')
        digit = folded - 'a' + 10u;
    else
        digit = 16;
    if (digit < 16) {
        /* 16 digits could say more than INT64_MAX; the first bit must stay free. Leading zeros count as
         * digits. */
        if (body->digits == 16 || body->left_bytes >> 59) return h1_body_refuse(body, H1_FAULT_CHUNK_SIZE);
        body->digits++;
        body->left_bytes = body->left_bytes << 4 | digit;
        return true;
    }
    if (body->digits == 0) return h1_body_refuse(body, H1_FAULT_CHUNK_SIZE);
    if (byte == '\r')
        body->state = H1_BODY_SIZE_LF;
    else if (byte == ';')
        body->state = H1_BODY_EXTENSION_NAME_START;
    else
        return h1_body_refuse(body, H1_FAULT_CHUNK_SIZE);
    return true;
}

/* chunk-ext = *( ";" token [ "=" ( token / quoted-string ) ] ), without the white space that RFC 9112 calls
 * bad. */
static bool h1_body_extension_byte(struct h1_body *body, uint8_t byte)
{
    bool is_token = field_is_token_byte(byte), may_end = false;
    switch (body->state) {
    case H1_BODY_EXTENSION_NAME_START:
        body->state = H1_BODY_EXTENSION_NAME;
        return is_token || h1_body_refuse(body, H1_FAULT_CHUNK_EXTENSION);
    case H1_BODY_EXTENSION_NAME:
        if (is_token) return true;
        may_end = true;
        if (byte == '=') {
            body->state = H1_BODY_EXTENSION_VALUE_START;
            return true;
        }
        break;
    case H1_BODY_EXTENSION_VALUE_START:
        body->state = byte == '"' ? H1_BODY_EXTENSION_QUOTED : H1_BODY_EXTENSION_TOKEN;
        return is_token || byte == '"' || h1_body_refuse(body, H1_FAULT_CHUNK_EXTENSION);
    case H1_BODY_EXTENSION_TOKEN:
        if (is_token) return true;
        may_end = true;
        break;
    case H1_BODY_EXTENSION_QUOTED:
        if (byte == '"')
            body->state = H1_BODY_EXTENSION_QUOTED_END;
        else if (byte == '\\')
            body->state = H1_BODY_EXTENSION_ESCAPE;
        return field_is_value(cy_bytes_of(&byte, 1)) || h1_body_refuse(body, H1_FAULT_CHUNK_EXTENSION);
    case H1_BODY_EXTENSION_ESCAPE:
        body->state = H1_BODY_EXTENSION_QUOTED;
        return field_is_value(cy_bytes_of(&byte, 1)) || h1_body_refuse(body, H1_FAULT_CHUNK_EXTENSION);
    case H1_BODY_EXTENSION_QUOTED_END: may_end = true; break;
    default: UNREACHABLE();
    }
    if (may_end && byte == ';')
        body->state = H1_BODY_EXTENSION_NAME_START;
    else if (may_end && byte == '\r')
        body->state = H1_BODY_SIZE_LF;
    else
        return h1_body_refuse(body, H1_FAULT_CHUNK_EXTENSION);
    return true;
}

static bool h1_body_trailer_byte(struct h1_body *body, uint8_t byte)
{
    switch (body->state) {
    case H1_BODY_TRAILER_START:
        if (byte == '\r') {
            body->state = H1_BODY_END_LF;
            return true;
        }
        body->state = H1_BODY_TRAILER_NAME;
        return field_is_token_byte(byte) || h1_body_refuse(body, H1_FAULT_TRAILER);
    case H1_BODY_TRAILER_NAME:
        if (byte == ':')
            body->state = H1_BODY_TRAILER_VALUE;
        else if (!field_is_token_byte(byte))
            return h1_body_refuse(body, H1_FAULT_TRAILER);
        return true;
    case H1_BODY_TRAILER_VALUE:
        if (byte == '\r')
            body->state = H1_BODY_TRAILER_LF;
        else if (!field_is_value(cy_bytes_of(&byte, 1)))
            return h1_body_refuse(body, H1_FAULT_TRAILER);
        return true;
    case H1_BODY_TRAILER_LF:
        body->state = H1_BODY_TRAILER_START;
        return byte == '\n' || h1_body_refuse(body, H1_FAULT_TRAILER);
    default: UNREACHABLE();
    }
}

/* One byte of anything but data. */
static bool h1_body_line_byte(struct h1_body *body, uint8_t byte)
{
    switch (body->state) {
    case H1_BODY_CHUNK_CR:
        body->state = H1_BODY_CHUNK_LF;
        return byte == '\r' || h1_body_refuse(body, H1_FAULT_CHUNK_END);
    case H1_BODY_CHUNK_LF:
        body->state = H1_BODY_SIZE;
        body->digits = 0;
        body->line_bytes = 0;
        return byte == '\n' || h1_body_refuse(body, H1_FAULT_CHUNK_END);
    case H1_BODY_SIZE_LF:
        if (byte != '\n') return h1_body_refuse(body, H1_FAULT_CHUNK_SIZE);
        body->state = body->left_bytes ? H1_BODY_CHUNK : H1_BODY_TRAILER_START;
        body->line_bytes = 0;
        return true;
    case H1_BODY_END_LF:
        if (byte != '\n') return h1_body_refuse(body, H1_FAULT_TRAILER);
        body->ended = true;
        return true;
    default: break;
    }
    if (body->state >= H1_BODY_TRAILER_START) {
        if (++body->line_bytes > LIMIT_HTTP_TRAILER_BYTES) return h1_body_refuse(body, H1_FAULT_TRAILER_LONG);
        return h1_body_trailer_byte(body, byte);
    }
    if (++body->line_bytes > LIMIT_HTTP_CHUNK_LINE_BYTES)
        return h1_body_refuse(body, H1_FAULT_CHUNK_LINE_LONG);
    return body->state == H1_BODY_SIZE ? h1_body_size_digit(body, byte) : h1_body_extension_byte(body, byte);
}

static bool h1_body_is_in_trailer(const struct h1_body *body)
{
    return body->state >= H1_BODY_TRAILER_START && body->state <= H1_BODY_TRAILER_LF;
}

/* Bytes owed by the length or the chunk. */
static cy_bytes h1_body_take_data(struct h1_body *body, cy_bytes *input)
{
    uint64_t count = body->left_bytes < input->count ? body->left_bytes : input->count;
    cy_bytes piece = cy_bytes_slice(*input, 0, (size_t)count);
    *input = cy_bytes_skip(*input, (size_t)count);
    body->left_bytes -= count;
    return piece;
}

static enum h1_body_step h1_body_step_chunked(struct h1_body *body, cy_bytes *input, cy_bytes *piece_out)
{
    while (input->count > 0) {
        if (body->state == H1_BODY_CHUNK) {
            *piece_out = h1_body_take_data(body, input);
            if (body->left_bytes == 0) body->state = H1_BODY_CHUNK_CR;
            return H1_BODY_DATA;
        }
        bool in_trailer = h1_body_is_in_trailer(body);
        const uint8_t *begin = input->data;
        do {
            if (!h1_body_line_byte(body, input->data[0])) return H1_BODY_FAULT;
            *input = cy_bytes_skip(*input, 1);
            if (body->ended) return H1_BODY_END;
        } while (in_trailer && input->count > 0 && h1_body_is_in_trailer(body));
        size_t count = (size_t)(input->data - begin);
        /* The CR of the closing empty line is no part of the section. */
        if (in_trailer && body->state == H1_BODY_END_LF) count--;
        if (!in_trailer || count == 0) continue;
        *piece_out = cy_bytes_of(begin, count);
        return H1_BODY_TRAILER;
    }
    return H1_BODY_MORE;
}

enum h1_body_step h1_body_step(struct h1_body *body, cy_bytes *input, cy_bytes *piece_out)
{
    if (body->ended) return H1_BODY_END;
    if (body->fault) return H1_BODY_FAULT;
    if (input->count == 0) return H1_BODY_MORE;
    if (body->kind == HTTP_BODY_CHUNKED) return h1_body_step_chunked(body, input, piece_out);
    if (body->kind == HTTP_BODY_UNTIL_CLOSE) {
        *piece_out = *input;
        *input = cy_bytes_skip(*input, input->count);
        return H1_BODY_DATA;
    }
    DCHECK(body->kind == HTTP_BODY_LENGTH);
    *piece_out = h1_body_take_data(body, input);
    if (body->left_bytes == 0) body->ended = true;
    return H1_BODY_DATA;
}

void h1_body_skip(struct h1_body *body, uint64_t count)
{
    CHECK(body->kind == HTTP_BODY_LENGTH && count <= body->left_bytes);
    body->left_bytes -= count;
    if (body->left_bytes == 0) body->ended = true;
}

bool h1_body_end_of_stream(struct h1_body *body)
{
    if (body->kind == HTTP_BODY_UNTIL_CLOSE && !body->fault) body->ended = true;
    return body->ended;
}
