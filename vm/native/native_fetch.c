/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_fetch.c: http.request and http.get: a program's own requests.
 *
 * In:   a method, a URL or an upstream, options. Out: {status, fields, body}.
 * Invariant: a fetch is freed where its task is answered or stopped.
 * Not here: sending and receiving (vm/http/fetch.c).
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/fetch.h"
#include "vm/http/uri.h"
#include "vm/native/native_bodies.h"
#include "vm/native/native_http.h"
#include "vm/native/runtime_internal.h"

#define NATIVE_FETCH_TIMEOUT_MS 60000

struct native_fetch {
    struct runtime *runtime;
    wait_ticket ticket;
    struct http_fetch *fetch;
    size_t body_bytes_max;
    struct memory_hold hold; /* what is sent, and what has come until it is a value */
    struct builder what;     /* "GET http://host:port/path", for messages */
};

static void native_fetch_free(struct native_fetch *one)
{
    http_fetch_free(&one->fetch);
    memory_hold_end(&one->hold, 0);
    builder_fini(&one->what);
    mem_free(one);
}
static void native_fetch_cancel(void *operation) { native_fetch_free(operation); }

/* -- the answer as a value ------------------------------------------------------------------------------- */

/* Lower case, as HTTP/2 has names anyway. */
static cy_err native_fetch_name(struct vm *vm, cy_bytes name, cy_value *out)
{
    uint8_t *data;
    CY_TRY(string_new_blank(vm, name.count, out, &data));
    for (size_t i = 0; i < name.count; i++)
        data[i] = name.data[i] >= 'A' && name.data[i] <= 'Z' ? (uint8_t)(name.data[i] + 32) : name.data[i];
    return CY_OK;
}

/* Cookies hold commas, so they cannot be joined. */
static cy_err native_fetch_add_cookie(struct vm *vm, cy_value *map, cy_bytes value)
{
    cy_value list = value_nil(), text;
    cy_value before;
    if (map_get_text(vm, *map, CY_BYTES("set-cookie"), &before))
        list = value_ref(before);
    else
        CY_TRY(list_new(vm, 1, &list));
    cy_err err = string_new(vm, value, &text);
    if (!cy_failed(err)) err = list_append(vm, &list, text);
    if (cy_failed(err)) {
        value_unref(vm, list);
        return err;
    }
    return map_set_text(vm, map, CY_BYTES("set-cookie"), list);
}

static cy_err native_fetch_add_field(struct vm *vm, cy_value *map, const struct http_field *field)
{
    cy_value name, before, text;
    struct builder joined;
    bool found;
    if (cy_bytes_equal_nocase(field->name, CY_BYTES("set-cookie")))
        return native_fetch_add_cookie(vm, map, field->value);
    CY_TRY(native_fetch_name(vm, field->name, &name));
    cy_err err = map_get(vm, *map, name, &found, &before);
    builder_init(&joined);
    if (!cy_failed(err) && found) {
        builder_bytes(&joined, string_bytes(before));
        builder_text(&joined, ", ");
    }
    builder_bytes(&joined, field->value);
    if (!cy_failed(err)) err = builder_error(&joined);
    if (!cy_failed(err)) err = string_new(vm, builder_view(&joined), &text);
    builder_fini(&joined);
    if (cy_failed(err)) {
        value_unref(vm, name);
        return err;
    }
    return map_set(vm, map, name, text);
}

static cy_err native_fetch_result(struct vm *vm, const struct http_fetch *fetch, cy_value *out)
{
    const struct http_response *response = http_fetch_response(fetch);
    cy_value map, fields, body;
    CY_TRY(map_new(vm, 3, &map));
    cy_err err = map_set_text(vm, &map, CY_BYTES("status"), value_int(response->status));
    if (!cy_failed(err)) err = map_new(vm, response->field_count, &fields);
    if (!cy_failed(err)) {
        for (uint32_t i = 0; i < response->field_count && !cy_failed(err); i++)
            err = native_fetch_add_field(vm, &fields, &response->fields[i]);
        if (cy_failed(err))
            value_unref(vm, fields);
        else
            err = map_set_text(vm, &map, CY_BYTES("fields"), fields);
    }
    if (!cy_failed(err)) err = string_new(vm, http_fetch_body(fetch), &body);
    if (!cy_failed(err)) err = map_set_text(vm, &map, CY_BYTES("body"), body);
    if (cy_failed(err)) value_unref(vm, map);
    *out = map;
    return err;
}

static void native_fetch_describe(struct native_fetch *one, cy_err err, struct builder *text)
{
    char why[128];
    builder_printf(text, "http.request: %.*s: %s", CY_BYTES_ARG(builder_view(&one->what)),
                   cy_err_describe(err, vm_korean(one->runtime->vm), why, sizeof why));
    if (cy_is(err, CY_ERR_STOP_MEMORY))
        builder_printf(text, " (TASK_MEMORY_BYTES: %d)", LIMIT_TASK_MEMORY_BYTES);
    if (cy_is(err, CY_ERR_TOO_LARGE)) builder_printf(text, " (body_bytes_max: %zu)", one->body_bytes_max);
}

static cy_err native_fetch_on_grow(void *owner, size_t bytes)
{
    struct native_fetch *one = owner;
    return memory_hold_grow(&one->hold, bytes);
}

static void native_fetch_done(void *owner, cy_err err)
{
    struct native_fetch *one = owner;
    struct vm *vm = one->runtime->vm;
    cy_value result;
    struct vm_counters before, after;
    vm_read_counters(vm, &before);
    if (!cy_failed(err))
        err = native_fetch_on_grow(one, http_fetch_body(one->fetch).count); /* the value's copy */
    if (!cy_failed(err)) err = native_fetch_result(vm, one->fetch, &result);
    vm_read_counters(vm, &after);
    memory_hold_end(&one->hold, cy_failed(err) ? 0 : after.heap_bytes - before.heap_bytes);
    if (!cy_failed(err)) {
        vm_complete(vm, one->ticket, result);
    } else {
        struct builder text;
        builder_init(&text);
        native_fetch_describe(one, err, &text);
        /* The task has not got that memory, so it may go on; it is no stop. */
        if (text.failed || cy_is(err, CY_ERR_STOP_MEMORY)) err = CY_ERR(NO_MEMORY);
        vm_complete_failed(vm, one->ticket, err, text.failed ? CY_BYTES_NONE : builder_view(&text));
        builder_fini(&text);
    }
    native_fetch_free(one);
}

/* -- the request ----------------------------------------------------------------------------------------- */

/* "http://host:port" and "/path?query" of a URL. */
static void native_fetch_split(cy_bytes url, cy_bytes *server_out, cy_bytes *target_out)
{
    bool secure;
    cy_bytes authority, rest;
    *server_out = url;
    *target_out = CY_BYTES_NONE;
    if (!uri_split_absolute(url, &secure, &authority, &rest)) return;
    rest = cy_bytes_slice(rest, 0, cy_bytes_find(rest, '#'));
    *server_out = cy_bytes_slice(url, 0, (size_t)(authority.data - url.data) + authority.count);
    *target_out = rest;
}

/* A URL for messages: passwords stand before '@', tokens behind '?', and errors end up in logs. */
static void native_fetch_show(cy_bytes url, struct builder *out)
{
    size_t start = 0, end = 0;
    for (size_t i = 0; i + 3 <= url.count && start == 0 && url.data[i] != '?'; i++)
        if (memcmp(url.data + i, "://", 3) == 0) start = i + 3;
    while (end < url.count && url.data[end] != '?' && url.data[end] != '#') end++;
    start = cy_min_size(start, end);
    cy_bytes rest = cy_bytes_slice(url, start, end);
    size_t path = cy_bytes_find(rest, '/'), user = 0;
    for (size_t i = 0; i < path; i++)
        if (rest.data[i] == '@') user = i + 1;
    builder_bytes(out, cy_bytes_slice(url, 0, start));
    builder_bytes(out, cy_bytes_slice(cy_bytes_skip(rest, user), 0, 1024));
}

static enum native_outcome native_fetch_upstream(struct native_call *call, cy_value target,
                                                 struct http_fetch_options *options)
{
    struct runtime *runtime = runtime_of(call->vm);
    const char *fault = NULL;
    cy_err err = runtime_need_client(runtime);
    if (target.tag != TAG_STR) {
        struct upstream *upstream = opaque_payload(target, &native_http_upstream_type);
        if (!upstream)
            return native_fail(call, CY_ERR(TYPE),
                               "http.request: the target must be a URL or an upstream, not %s",
                               value_kind_text(call->vm, target));
        options->upstream = upstream_ref(upstream);
        return cy_failed(err) ? native_fail_reason(call, err, "http.request") : NATIVE_DONE;
    }
    cy_bytes url = string_bytes(target), server;
    native_fetch_split(url, &server, &options->target);
    if (!cy_failed(err)) err = upstream_open(runtime->client, server, &options->upstream, &fault);
    if (!cy_failed(err)) return NATIVE_DONE;
    struct builder shown;
    builder_init(&shown);
    native_fetch_show(url, &shown);
    native_fail(call, err, "http.request: \"%.*s\": %s", CY_BYTES_ARG(builder_view(&shown)),
                fault ? vm_text(call->vm, fault) : cy_err_text(err, vm_korean(call->vm)));
    builder_fini(&shown);
    return NATIVE_FAIL;
}

static enum native_outcome native_fetch_options(struct native_call *call, cy_value map, bool is_upstream,
                                                struct http_fetch_options *options,
                                                struct http_verdict_field *fields)
{
    cy_value key, value;
    size_t cursor = 0;
    while (map_next(map, &cursor, &key, &value)) {
        cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
        bool positive = value.tag == TAG_INT && value.as.i >= 1;
        if (cy_bytes_equal(name, CY_BYTES("fields")) && value.tag == TAG_MAP) {
            if (native_http_read_fields(call, "http.request: fields", value, fields, &options->field_count) !=
                NATIVE_DONE)
                return NATIVE_FAIL;
        } else if (cy_bytes_equal(name, CY_BYTES("body")) && value.tag == TAG_STR) {
            options->body = string_bytes(value);
        } else if (cy_bytes_equal(name, CY_BYTES("path")) && value.tag == TAG_STR && is_upstream) {
            options->target = string_bytes(value);
        } else if (cy_bytes_equal(name, CY_BYTES("host")) && value.tag == TAG_STR) {
            options->host = string_bytes(value);
        } else if (cy_bytes_equal(name, CY_BYTES("timeout_ms")) && positive &&
                   value.as.i <= LIMIT_TIMEOUT_MS) {
            options->timeout_ms = (uint32_t)value.as.i;
        } else if (cy_bytes_equal(name, CY_BYTES("body_bytes_max")) && positive &&
                   value.as.i <= LIMIT_STRING_BYTES) {
            options->body_bytes_max = (size_t)value.as.i;
        } else {
            return native_fail(
                call, CY_ERR(VALUE),
                "http.request: options are fields (map), body, host, path with an upstream (str), "
                "timeout_ms (1..%d) and body_bytes_max (1..%d), not \"%.*s\" (%s)",
                LIMIT_TIMEOUT_MS, LIMIT_STRING_BYTES, CY_BYTES_ARG(name), value_kind_text(call->vm, value));
        }
    }
    return NATIVE_DONE;
}

static enum native_outcome native_fetch_send(struct native_call *call, struct http_fetch_options *options)
{
    struct runtime *runtime = runtime_of(call->vm);
    struct native_fetch *one = mem_alloc_zeroed(sizeof *one);
    cy_bytes fault = CY_BYTES_NONE;
    if (!one) return native_fail_reason(call, CY_ERR(NO_MEMORY), "http.request");
    one->runtime = runtime;
    one->body_bytes_max = options->body_bytes_max;
    builder_init(&one->what);
    builder_printf(&one->what, "%.*s http://%.*s", CY_BYTES_ARG(options->method),
                   CY_BYTES_ARG(upstream_text(options->upstream)));
    native_fetch_show(options->target, &one->what);
    options->owner = one;
    options->done = native_fetch_done;
    options->on_grow = native_fetch_on_grow;
    memory_hold_begin(call, &one->hold);
    native_charge(call, 1 + options->body.count / 1024);
    cy_err err = http_fetch_start(runtime->client, options, &one->fetch, &fault);
    if (cy_failed(err)) {
        struct builder shown;
        builder_init(&shown);
        if (fault.count == 0) { /* no part of it is wrong: there is no memory for it */
            native_fetch_describe(one, err, &shown);
            native_fetch_free(one);
            native_fail(call, cy_is(err, CY_ERR_STOP_MEMORY) ? CY_ERR(NO_MEMORY) : err, "%.*s",
                        CY_BYTES_ARG(builder_view(&shown)));
            builder_fini(&shown);
            return NATIVE_FAIL;
        }
        native_fetch_show(fault, &shown);
        native_fetch_free(one);
        native_fail(call, err, "http.request: %s: \"%.*s\"", cy_err_text(err, vm_korean(call->vm)),
                    CY_BYTES_ARG(builder_view(&shown)));
        builder_fini(&shown);
        return NATIVE_FAIL;
    }
    one->ticket = native_wait(call, native_fetch_cancel, one);
    return NATIVE_WAIT;
}

static enum native_outcome native_fetch_start(struct native_call *call, cy_bytes method, uint32_t first)
{
    struct http_verdict_field fields[LIMIT_HTTP_VERDICT_FIELDS];
    cy_bytes url_target;
    struct http_fetch_options options = {
        .method = method,
        .fields = fields,
        .timeout_ms = NATIVE_FETCH_TIMEOUT_MS,
        .body_bytes_max = LIMIT_FETCH_BODY_BYTES,
    };
    if (runtime_is_configuring(runtime_of(call->vm), call->instance))
        return native_fail(call, CY_ERR(UNSUPPORTED), "http.request: not in configure");
    enum native_outcome outcome = native_fetch_upstream(call, call->args[first], &options);
    /* "?a=b" without a path is what browsers send as "/?a=b". */
    struct builder target;
    builder_init(&target);
    if (outcome == NATIVE_DONE && options.target.count > 0 && options.target.data[0] == '?') {
        builder_u8(&target, '/');
        builder_bytes(&target, options.target);
        if (target.failed) outcome = native_fail_reason(call, CY_ERR(NO_MEMORY), "http.request");
        url_target = builder_view(&target);
        options.target = url_target;
    }
    if (outcome == NATIVE_DONE && native_has_arg(call, first + 1))
        outcome = native_fetch_options(call, call->args[first + 1], call->args[first].tag != TAG_STR,
                                       &options, fields);
    if (outcome == NATIVE_DONE) outcome = native_fetch_send(call, &options);
    if (options.upstream) upstream_unref(&options.upstream);
    builder_fini(&target);
    return outcome;
}

enum native_outcome native_http_request(struct native_call *call)
{
    return native_fetch_start(call, string_bytes(call->args[0]), 1);
}
enum native_outcome native_http_get(struct native_call *call)
{
    return native_fetch_start(call, CY_BYTES("GET"), 0);
}

#undef NATIVE_FETCH_TIMEOUT_MS
