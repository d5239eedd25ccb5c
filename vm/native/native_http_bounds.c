/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_http_bounds.c: the numbers among the options of module "http": how long, how much, how fast.
 *
 * In:   a name and a value that a program wrote. Out: a number in a struct of vm/http, found by its row.
 * Invariant: a number outside its row's range is an error that names row and range; nothing is rounded or cut.
 * Not here: options that are no numbers (native_http.c, serve.c).
 */
#include "vm/base/limits.h"
#include "vm/http/server.h"
#include "vm/native/native_bodies.h"
#include "vm/native/native_http.h"
#include "vm/native/runtime_internal.h"

#define BOUND(kind, member) offsetof(struct kind, member), sizeof(((struct kind *)NULL)->member)
#define BOUND_TIME(name, kind, member)                        \
    {                                                         \
        name, BOUND(kind, member), 1, LIMIT_TIMEOUT_MS, false \
    }
#define BOUND_RATE(kind)                                            \
    {                                                               \
        "min_rate", BOUND(kind, min_rate), 0, LIMIT_HTTP_RATE, true \
    }

/* http.upstream, and the beginning of http.proxy */
static const struct native_http_bound native_http_time_rows[] = {
    BOUND_TIME("connect_ms", http_times, connect_ms), BOUND_TIME("first_byte_ms", http_times, first_byte_ms),
    BOUND_TIME("idle_ms", http_times, idle_ms),       BOUND_TIME("keep_alive_ms", http_times, keep_alive_ms),
    BOUND_TIME("tunnel_ms", http_times, tunnel_ms),   BOUND_TIME("total_ms", http_times, total_ms),
};
static const struct native_http_bound native_http_proxy_rows[] = {
    {"body_bytes_max", BOUND(http_proxy_terms, body_bytes_max), 1, INT64_MAX, false},
    BOUND_RATE(http_proxy_terms),
};
/* http.serve and http.bounds */
static const struct native_http_bound native_http_server_rows[] = {
    BOUND_TIME("header_ms", http_server_options, header_timeout_ms),
    BOUND_TIME("keep_alive_ms", http_server_options, keep_alive_ms),
    BOUND_TIME("body_ms", http_server_options, body_idle_timeout_ms),
    {"half_close_ms", BOUND(http_server_options, half_close_ms), 0, LIMIT_TIMEOUT_MS, true},
    BOUND_TIME("min_rate_grace_ms", http_server_options, min_rate_grace_ms),
    BOUND_TIME("stop_ms", http_server_options, stop_ms),
    BOUND_RATE(http_server_options),
    {"head_bytes_max", BOUND(http_server_options, head_bytes_max), 1024, LIMIT_HTTP_HEAD_BYTES, false},
    {"fields_max", BOUND(http_server_options, fields_max), 1, LIMIT_HTTP_FIELDS, false},
};

static enum native_http_taken native_http_take(struct native_call *call, const char *native,
                                               const struct native_http_bound *rows, size_t count,
                                               cy_bytes name, cy_value value, void *into)
{
    const struct native_http_bound *row = rows;
    while (row < rows + count && !cy_bytes_equal(name, cy_bytes_from_text(row->name))) row++;
    if (row == rows + count) return NATIVE_HTTP_UNKNOWN;
    if (value.tag != TAG_INT) {
        native_fail(call, CY_ERR(TYPE), "%s: %s must be %s, not %s", native, row->name, "int",
                    value_kind_text(call->vm, value));
        return NATIVE_HTTP_BAD;
    }
    if (value.as.i < row->min || value.as.i > row->max) {
        native_fail(call, CY_ERR(VALUE), "%s: %s must be %lld..%lld, not %lld", native, row->name,
                    (long long)row->min, (long long)row->max, (long long)value.as.i);
        return NATIVE_HTTP_BAD;
    }
    uint64_t number = (uint64_t)value.as.i;
    if (row->zero_is_none && number == 0) number = HTTP_MIN_RATE_NONE;
    uint32_t half = (uint32_t)number;
    if (row->bytes == sizeof number)
        memcpy((uint8_t *)into + row->offset, &number, sizeof number);
    else
        memcpy((uint8_t *)into + row->offset, &half, sizeof half);
    return NATIVE_HTTP_TAKEN;
}

enum native_http_taken native_http_take_time(struct native_call *call, const char *native, cy_bytes name,
                                             cy_value value, struct http_times *times)
{
    return native_http_take(call, native, native_http_time_rows, CY_COUNT_OF(native_http_time_rows), name,
                            value, times);
}

enum native_http_taken native_http_take_term(struct native_call *call, const char *native, cy_bytes name,
                                             cy_value value, struct http_proxy_terms *terms)
{
    enum native_http_taken taken = native_http_take_time(call, native, name, value, &terms->times);
    if (taken != NATIVE_HTTP_UNKNOWN) return taken;
    if (cy_bytes_equal(name, CY_BYTES("upgrade")) && value.tag == TAG_BOOL) {
        terms->no_upgrade = !value.as.b;
        return NATIVE_HTTP_TAKEN;
    }
    return native_http_take(call, native, native_http_proxy_rows, CY_COUNT_OF(native_http_proxy_rows), name,
                            value, terms);
}

enum native_http_taken native_http_take_bound(struct native_call *call, const char *native, cy_bytes name,
                                              cy_value value, struct http_server_options *bounds)
{
    return native_http_take(call, native, native_http_server_rows, CY_COUNT_OF(native_http_server_rows), name,
                            value, bounds);
}

enum native_outcome native_http_bounds(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    struct configuring *configuring = runtime_configuring(runtime, call->instance);
    if (!configuring) return native_fail(call, CY_ERR(UNSUPPORTED), "http.bounds: only in configure");
    struct http_server_options bounds = runtime->serving.bounds;
    cy_value key, value;
    size_t cursor = 0;
    while (map_next(call->args[0], &cursor, &key, &value)) {
        cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
        enum native_http_taken taken = native_http_take_bound(call, "http.bounds", name, value, &bounds);
        if (taken == NATIVE_HTTP_BAD) return NATIVE_FAIL;
        if (taken == NATIVE_HTTP_UNKNOWN)
            return native_fail(call, CY_ERR(VALUE), "http.bounds: no option \"%.*s\"", CY_BYTES_ARG(name));
    }
    configuring->bounds = bounds;
    configuring->has_bounds = true;
    return NATIVE_DONE;
}

#undef BOUND
#undef BOUND_TIME
#undef BOUND_RATE
