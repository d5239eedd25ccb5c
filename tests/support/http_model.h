/* SPDX-License-Identifier: MIT
 *
 * tests/support/http_model.h: HTTP/1 messages as RFC 9112 has them, read strictly and written plainly.
 *
 * In:   bytes in pieces of any size. Out: steps: a head, body bytes, the end, or a fault with its words.
 * What it is for: to judge what vm/http sends. It shares no line with vm/http, knows less and forgives nothing: a
 *       sender's MUST (RFC 9112 sections 3 to 7) that is broken is a fault here, even where a reader may be lenient.
 * Not here: names and values beyond their alphabet, obs-fold, transfer codings but chunked, CONNECT.
 */
#ifndef CY_TESTS_HTTP_MODEL_H
#define CY_TESTS_HTTP_MODEL_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"

#define HTTP_MODEL_FIELDS_MAX 64

enum http_model_step { HTTP_MODEL_MORE, HTTP_MODEL_HEAD, HTTP_MODEL_DATA, HTTP_MODEL_END, HTTP_MODEL_FAULT };
enum http_model_body {
    HTTP_MODEL_BODY_NONE,
    HTTP_MODEL_BODY_LENGTH,
    HTTP_MODEL_BODY_CHUNKED,
    HTTP_MODEL_BODY_UNTIL_CLOSE
};

struct http_model_field {
    cy_bytes name, value;
};

/* Reads one message after the other. Views are good until the next message begins. */
struct http_model {
    bool is_response;
    bool answers_head; /* of a response: to HEAD */
    uint8_t state;
    const char *fault;
    struct builder head, trailer, line;
    /* from HTTP_MODEL_HEAD on */
    cy_bytes method, target; /* a request's */
    unsigned status;         /* a response's */
    unsigned minor_version;
    uint32_t field_count;
    struct http_model_field fields[HTTP_MODEL_FIELDS_MAX];
    enum http_model_body body;
    uint64_t left_bytes; /* of the length, or of the chunk */
    bool has_length;     /* Content-Length stands there: also where no body follows */
    uint64_t length;
    bool closes; /* the sender goes away after this message */
};

void http_model_init(struct http_model *model, bool is_response);
void http_model_fini(struct http_model *model);
/* The next message. `answers_head` may be set later, until the head is there. */
void http_model_begin(struct http_model *model);
/* Takes bytes off `rest`. DATA: `piece_out` is body. END: the message is complete, http_model_begin comes next. */
enum http_model_step http_model_step(struct http_model *model, cy_bytes *rest, cy_bytes *piece_out);
/* The stream ended cleanly here. True when no message is cut off by that: nothing of one is there, or its body ends
 * with the stream. */
bool http_model_may_end(const struct http_model *model);
bool http_model_has_begun(const struct http_model *model);
/* The value of a field that stands there once; CY_BYTES_NONE when it does not, or not once. */
cy_bytes http_model_field(const struct http_model *model, const char *name, uint32_t *count_out);

/* -- writing ------------------------------------------------------------------------------------------------ */
void http_model_put_chunk(struct builder *out, cy_bytes bytes); /* nothing for none: that would be the last */
/* `trailer` are whole field lines, or nothing. */
void http_model_put_last_chunk(struct builder *out, cy_bytes trailer);

#endif
