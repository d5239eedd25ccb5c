/* SPDX-License-Identifier: MIT
 *
 * vm/http/verdict.h: what shall happen to a request. Built by policy, carried out by C.
 *
 * Invariant: immutable once built; counted. Building one sends nothing.
 */
#ifndef CY_HTTP_VERDICT_H
#define CY_HTTP_VERDICT_H

#include "vm/base/arena.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/http/client.h"

enum http_verdict_kind { HTTP_VERDICT_RESPOND, HTTP_VERDICT_PROXY };

struct http_verdict_field {
    cy_bytes name;
    cy_bytes value;
};
/* Under which terms a request is proxied. */
struct http_proxy_terms {
    struct http_times times; /* 0: as the upstream's; in a verdict all but total_ms are set */
    uint64_t body_bytes_max; /* of the request's body: 413 past it; 0: no bound */
    uint32_t min_rate;       /* bytes per second that a client must send or read; 0: as the server's */
    bool no_upgrade;         /* a wish for another protocol is not passed on */
};
#define HTTP_MIN_RATE_NONE UINT32_MAX

struct http_verdict {
    uint32_t refs;
    uint8_t kind; /* enum http_verdict_kind */
    /* RESPOND */
    uint16_t status; /* 200..599 */
    cy_bytes body;
    /* RESPOND: fields of the response. PROXY: fields set on the request (replacing those of the same
     * name). */
    uint32_t field_count;
    struct http_verdict_field *fields;
    /* PROXY */
    struct upstream *upstream; /* holds a reference */
    struct http_proxy_terms terms;
    uint32_t remove_count;
    cy_bytes *remove;   /* names of request fields that are not forwarded */
    cy_bytes host;      /* replaces Host when count > 0 */
    struct arena arena; /* everything above, copied */
};

/* Copies all they are given. VALUE when the status is outside 200..599, a field name is no token, a value has
 * control bytes, a framing or connection field is named (Content-Length, Transfer-Encoding, Connection, ...),
 * or a body stands beside 204 or 304. `fault_out` (may be NULL) borrows the part that is wrong from the
 * arguments. TOO_LARGE for the body. */
CY_NODISCARD cy_err http_verdict_respond(uint16_t status, cy_bytes body,
                                         const struct http_verdict_field *fields, uint32_t field_count,
                                         struct http_verdict **verdict_out, cy_bytes *fault_out);
/* Takes a reference to the upstream. */
CY_NODISCARD cy_err http_verdict_proxy(struct upstream *upstream, const struct http_verdict_field *set,
                                       uint32_t set_count, const cy_bytes *remove, uint32_t remove_count,
                                       cy_bytes host, struct http_verdict **verdict_out, cy_bytes *fault_out);
/* Right after http_verdict_proxy, which begins with the upstream's times and allows upgrades. */
void http_verdict_set_terms(struct http_verdict *verdict, const struct http_proxy_terms *terms);
/* What it holds, for whoever counts memory. */
size_t http_verdict_memory_bytes(const struct http_verdict *verdict);
struct http_verdict *http_verdict_ref(struct http_verdict *verdict);
void http_verdict_unref(struct http_verdict **verdict);

#endif
