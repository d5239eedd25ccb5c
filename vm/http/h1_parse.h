/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1_parse.h: finds the parts of an HTTP/1 head without copying, as its bytes come in.
 *
 * In:   all bytes of the head received so far; may end anywhere; on later calls longer, and possibly moved.
 * Out:  views into those bytes (struct h1_head). Allocates nothing, never waits.
 * Cost: every complete line is looked at once; of the last, incomplete one only new bytes are searched for
 *       its end.
 * Spec: RFC 9112 sections 2 to 5. Stricter than the RFC: bare CR, bare LF, obs-fold and white space before
 *       ':' are refused, because peers disagree about them.
 *
 * Invariant: every view lies inside input[0, used_bytes).
 * Not here:  body framing and what fields mean (h1.h), field names (field.h), the parts of a target (uri.h).
 */
#ifndef CY_HTTP_H1_PARSE_H
#define CY_HTTP_H1_PARSE_H

#include "vm/http/h1_fault.h"
#include "vm/http/message.h"

enum h1_parse_result { H1_PARSE_MORE, H1_PARSE_DONE, H1_PARSE_FAULT };

struct h1_head {
    cy_bytes method; /* request */
    cy_bytes target;
    cy_bytes reason; /* response: may be empty */
    uint16_t status;
    uint8_t minor_version;
    bool is_response;
    uint8_t fault; /* enum h1_fault, with H1_PARSE_FAULT */
    /* Bounds: begun with LIMIT_HTTP_FIELDS and LIMIT_HTTP_HEAD_BYTES, which the owner may lower. */
    uint32_t fields_max, bytes_max;
    uint32_t field_count;
    struct http_field *fields; /* the caller's table of LIMIT_HTTP_FIELDS */
    size_t used_bytes;         /* with H1_PARSE_DONE: the head with its empty line */
    /* progress, private */
    const uint8_t *base; /* where the input lay at the last call */
    size_t line_begin;
    size_t searched;
    uint8_t state;
};

void h1_parse_begin_request(struct h1_head *head, struct http_field *fields);
void h1_parse_begin_response(struct h1_head *head, struct http_field *fields);
enum h1_parse_result h1_parse_head(struct h1_head *head, cy_bytes input);

/* Method and target as a request line may have them. For heads that came in another form. Returns enum h1_fault. */
uint8_t h1_check_request_line(cy_bytes method, cy_bytes target);

#endif
