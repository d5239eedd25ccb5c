/* SPDX-License-Identifier: MIT
 *
 * vm/http/fetch.h: one request of a program's own, and its whole answer.
 *
 * In:   an upstream, a request with a body in memory. Out: one call of `done`, never from inside http_fetch_start;
 *       then the head and the body, in memory and bounded.
 * Connections come from and go back to the pools that proxying uses (client.h). Redirects are not followed: the caller
 * sees them. Interim answers are passed over.
 */
#ifndef CY_HTTP_FETCH_H
#define CY_HTTP_FETCH_H

#include "vm/http/client.h"
#include "vm/http/message.h"
#include "vm/http/verdict.h"

struct http_fetch;

struct http_fetch_options {
    struct upstream *upstream; /* a reference is taken */
    cy_bytes method;           /* a token; CONNECT is refused */
    cy_bytes target;           /* "/path?query", put behind the upstream's base path; empty: "/" */
    const struct http_verdict_field *fields;
    uint32_t field_count;
    cy_bytes host; /* replaces Host when not empty */
    cy_bytes body; /* copied */
    size_t body_bytes_max;
    uint32_t timeout_ms; /* for all of it */
    void *owner;
    /* Asked before the request, its body, or the body of the answer takes `bytes` more of memory; its error ends the
     * fetch. NULL: nobody counts. */
    cy_err (*on_grow)(void *owner, size_t bytes);
    /* HTTP_EARLY_END, HTTP_SYNTAX, HTTP_TOO_LONG, TIMEOUT, TOO_LARGE (the body), and what connecting and names fail
     * with. The fetch is still the owner's. */
    void (*done)(void *owner, cy_err err);
};
/* VALUE for what cannot stand in a request: `fault_out` borrows it from the options. */
CY_NODISCARD cy_err http_fetch_start(struct http_client *client, const struct http_fetch_options *options,
                                     struct http_fetch **fetch_out, cy_bytes *fault_out);
/* Of a fetch that is done with CY_OK, good until it is freed. */
const struct http_response *http_fetch_response(const struct http_fetch *fetch);
cy_bytes http_fetch_body(const struct http_fetch *fetch);
/* Also ends one that is not done: `done` is then not called. */
void http_fetch_free(struct http_fetch **fetch);

#endif
