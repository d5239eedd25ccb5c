/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1_body.h: finds the end of a body, and its bytes on the way there.
 *
 * In:   the framing that was decided, then bytes as they come; may end anywhere.
 * Out:  views into those bytes. Allocates nothing, keeps no byte: the state between two inputs is in struct
 *       h1_body.
 * Spec: RFC 9112 section 7.1. Stricter: no white space in a chunk line, hexadecimal digits at most 16, lines
 *       end in CR LF.
 *
 *   SIZE ─digits─► SIZE ─';'─► EXTENSION... ─CR─► SIZE_LF ─LF─► CHUNK ─► CHUNK_CR ─► CHUNK_LF ─► SIZE
 *                                                    │ size 0
 *       end ◄─LF─ END_LF ◄─CR─ TRAILER_START ◄───────┘
 *                                │ name       ▲
 *                                ▼            └────────────── LF ── TRAILER_LF
 *                              TRAILER_NAME ─':'─► TRAILER_VALUE ── CR ──┘
 */
#ifndef CY_HTTP_H1_BODY_H
#define CY_HTTP_H1_BODY_H

#include "vm/http/h1_fault.h"
#include "vm/http/message.h"

enum h1_body_step {
    H1_BODY_MORE,    /* the input is used up and the body goes on */
    H1_BODY_DATA,    /* `piece` is data */
    H1_BODY_TRAILER, /* `piece` is a part of the trailer section; sound as a whole once H1_BODY_END comes */
    H1_BODY_END,     /* the body is complete; the rest of the input belongs to the next message */
    H1_BODY_FAULT
};

struct h1_body {
    uint64_t left_bytes; /* of the length, or of the current chunk */
    uint32_t line_bytes; /* of the current chunk line, or of the trailer section */
    uint8_t kind;        /* enum http_body_kind */
    uint8_t state;
    uint8_t digits;
    uint8_t fault; /* enum h1_fault, with H1_BODY_FAULT */
    bool ended;
};

void h1_body_begin(struct h1_body *body, const struct http_framing *framing);
/* Takes from the front of `*input`. After END it gives END again and takes nothing. */
enum h1_body_step h1_body_step(struct h1_body *body, cy_bytes *input, cy_bytes *piece_out);
/* Of a body with a length: `count` bytes of it, at most left_bytes, have been taken where nobody looks at them. */
void h1_body_skip(struct h1_body *body, uint64_t count);
/* The stream has ended. True when that is where the body ends too. */
bool h1_body_end_of_stream(struct h1_body *body);

#endif
