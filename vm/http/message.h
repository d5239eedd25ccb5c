/* SPDX-License-Identifier: MIT
 *
 * vm/http/message.h: a request or response head, as everybody above the wire sees it.
 *
 * Lifetime: all views point into buffers held by the exchange (or client call) that owns the message and are
 *       good until it ends.
 * Invariant: framing was decided before a message is shown: `body` says how the body's end is known, once.
 */
#ifndef CY_HTTP_MESSAGE_H
#define CY_HTTP_MESSAGE_H

#include "vm/base/bytes.h"
#include "vm/base/limits.h"
#include "vm/net/address.h"

struct http_field {
    cy_bytes name;  /* as received */
    cy_bytes value; /* without white space around it */
    uint8_t known;  /* enum http_field_id of field.def, 0: no row has this name */
    bool hop;       /* the message's Connection field names it: it goes no further than here */
};

enum http_protocol { HTTP_1_0, HTTP_1_1, HTTP_2 };

enum http_body_kind { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_UNTIL_CLOSE };

struct http_framing {
    uint8_t kind;    /* enum http_body_kind */
    uint64_t length; /* HTTP_BODY_LENGTH only */
};

struct http_request {
    cy_bytes method;
    cy_bytes target;    /* as received; this is what is forwarded (absolute-form: reduced to origin-form) */
    cy_bytes authority; /* Host as received (or the absolute-form's), may be empty with HTTP/1.0 */
    cy_bytes
        host; /* of authority: lower case, without port and without one trailing dot; v6 keeps its brackets */
    uint16_t port; /* of authority, 0 when not written */
    cy_bytes path; /* normalised copy for routing: dot segments removed, unreserved decoded, %XX upper case */
    cy_bytes query;   /* behind '?', as received; without the '?' */
    uint8_t protocol; /* enum http_protocol: what the client speaks */
    bool is_head;
    bool secure; /* came over TLS */
    struct http_framing body;
    struct address client;
    uint32_t field_count;
    struct http_field fields[LIMIT_HTTP_FIELDS];
};

/* A server's answer, interim or final. */
struct http_response {
    uint16_t status;
    bool has_date;
    cy_bytes reason; /* may be empty; HTTP/2 has none */
    struct http_framing body;
    cy_bytes declared_length; /* digits of Content-Length beside a body that is not sent (HEAD, 304) */
    size_t head_bytes;        /* as received: a bound for the head that we write */
    uint32_t field_count;
    const struct http_field *fields;
};

/* RFC 9110 section 9.2.2: such a request may be sent twice. */
bool http_method_is_idempotent(cy_bytes method);
/* First field of that name (any case), NULL when absent. */
const struct http_field *http_find_field(const struct http_field *fields, uint32_t count, cy_bytes name);

#endif
