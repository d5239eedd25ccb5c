/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_http.h: the opaque and handle types of the module "http", for serve.c.
 */
#ifndef CY_NATIVE_NATIVE_HTTP_H
#define CY_NATIVE_NATIVE_HTTP_H

#include "vm/http/server.h"
#include "vm/http/verdict.h"
#include "vm/run/handle.h"
#include "vm/run/native_call.h"
#include "vm/run/object.h"

extern const struct opaque_type native_http_verdict_type;  /* payload: struct http_verdict, one reference */
extern const struct opaque_type native_http_upstream_type; /* payload: struct upstream, one reference */
extern const struct handle_type
    native_http_request_type; /* object: struct http_exchange, owned by its server */

/* -- numbers among options: native_http_bounds.c -- */
struct native_http_bound {
    const char *name;
    size_t offset, bytes; /* in the struct that is filled */
    int64_t min, max;
    bool zero_is_none; /* 0 is HTTP_MIN_RATE_NONE, HTTP_HALF_CLOSE_NONE: one number */
};
enum native_http_taken { NATIVE_HTTP_TAKEN, NATIVE_HTTP_UNKNOWN, NATIVE_HTTP_BAD /* the call has failed */ };
enum native_http_taken native_http_take_time(struct native_call *call, const char *native, cy_bytes name,
                                             cy_value value, struct http_times *times);
/* A time, or body_bytes_max, min_rate, upgrade. */
enum native_http_taken native_http_take_term(struct native_call *call, const char *native, cy_bytes name,
                                             cy_value value, struct http_proxy_terms *terms);
enum native_http_taken native_http_take_bound(struct native_call *call, const char *native, cy_bytes name,
                                              cy_value value, struct http_server_options *bounds);

/* A map of str to str as rows that borrow from it; `fields` has room for LIMIT_HTTP_VERDICT_FIELDS. */
enum native_outcome native_http_read_fields(struct native_call *call, const char *what, cy_value map,
                                            struct http_verdict_field *fields, uint32_t *count_out);

#endif
