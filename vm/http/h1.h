/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1.h: what a parsed HTTP/1 head means: framing, persistence, target, host.
 *
 * In:   a complete struct h1_head.
 * Out:  one decision, or one fault. Any doubt about where a body ends is a fault: a peer that reads it
 *       otherwise could be made to see a request that we did not (RFC 9112 sections 6 and 11.2).
 * Not here: reading the body (h1_body.h), sending anything.
 */
#ifndef CY_HTTP_H1_H
#define CY_HTTP_H1_H

#include "vm/http/h1_parse.h"

/* Marks the fields that Connection names as going no further (the judges do it themselves; for interim responses,
 * which nobody judges). Host can not be named away. */
void h1_mark_listed(const struct h1_head *head);

/* What a request says of its connection. */
struct h1_request {
    bool keep_alive; /* the client may send another one on it */
    bool expects_continue;
    bool
        wants_upgrade; /* another protocol, one that may go through here, on this connection from the answer on */
};
/* Is `protocol` among those of the request's Upgrade fields? For the server's choice in a 101. */
bool h1_upgrade_lists(const struct http_field *fields, uint32_t count, cy_bytes protocol);
/* Fills everything of `request` but fields (which is the head's table, where those that Connection names are marked),
 * client and secure. `space` is memory for normal forms that differ from what was received, h1_space_needed(head)
 * bytes; it must live as long as the request. Returns enum h1_fault. */
uint8_t h1_judge_request(const struct h1_head *head, uint8_t *space, struct http_request *request,
                         struct h1_request *connection_out);
size_t h1_space_needed(const struct h1_head *head);

struct h1_response {
    struct http_framing body;
    bool keep_alive; /* the connection can carry another request after this body */
    bool has_date;
    cy_bytes declared_length; /* digits of Content-Length beside a body that is not sent (HEAD, 304) */
    uint32_t keep_alive_s;    /* Keep-Alive: timeout=N; 0: not said */
};
/* Status and the request's method decide first (RFC 9112 section 6.3). Marks the fields that Connection names.
 * Returns enum h1_fault. */
uint8_t h1_judge_response(const struct h1_head *head, bool request_is_head, struct h1_response *response_out);

#endif
