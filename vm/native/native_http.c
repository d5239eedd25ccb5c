/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_http.c: the natives of the module "http" that build verdicts and read requests.
 *
 * In:   values whose kinds were checked. Out: opaque values (verdict, upstream), strs.
 * Invariant: nothing here sends a byte; serve.c hands a verdict to vm/http when the handler has returned.
 */
#include "vm/native/native_http.h"

#include "vm/base/limits.h"
#include "vm/http/server.h"
#include "vm/native/native_bodies.h"
#include "vm/native/native_tls.h"
#include "vm/native/runtime_internal.h"

static void native_http_verdict_free(struct vm *vm, void *payload)
{
    (void)vm;
    struct http_verdict *verdict = payload;
    http_verdict_unref(&verdict);
}
static void native_http_upstream_free(struct vm *vm, void *payload)
{
    (void)vm;
    struct upstream *upstream = payload;
    upstream_unref(&upstream);
}
static bool native_http_upstream_field(struct vm *vm, void *payload, cy_bytes name, cy_value *owned_out,
                                       cy_err *err_out)
{
    if (!cy_bytes_equal(name, CY_BYTES("address"))) return false;
    *err_out = string_new(vm, upstream_text(payload), owned_out);
    return true;
}

const struct opaque_type native_http_verdict_type = {"verdict", native_http_verdict_free, NULL};
const struct opaque_type native_http_upstream_type = {"upstream", native_http_upstream_free,
                                                      native_http_upstream_field};

/* -- request ----------------------------------------------------------------------------------------------------- */
static cy_err native_http_client_text(struct vm *vm, const struct http_request *request, cy_value *owned_out)
{
    struct builder text;
    builder_init(&text);
    address_format(&request->client, false, &text);
    cy_err err = text.failed ? CY_ERR(NO_MEMORY) : string_new(vm, builder_view(&text), owned_out);
    builder_fini(&text);
    return err;
}

static bool native_http_request_field(struct vm *vm, void *object, cy_bytes name, cy_value *owned_out,
                                      cy_err *err_out)
{
    const struct http_request *request = http_exchange_request(object);
    const struct {
        cy_bytes name;
        cy_bytes value;
    } texts[] = {
        {CY_BYTES("host"), request->host},     {CY_BYTES("path"), request->path},
        {CY_BYTES("method"), request->method}, {CY_BYTES("target"), request->target},
        {CY_BYTES("query"), request->query},
    };
    *err_out = CY_OK;
    for (size_t i = 0; i < CY_COUNT_OF(texts); i++) {
        if (!cy_bytes_equal(name, texts[i].name)) continue;
        *err_out = string_new(vm, texts[i].value, owned_out);
        return true;
    }
    if (cy_bytes_equal(name, CY_BYTES("client"))) {
        *err_out = native_http_client_text(vm, request, owned_out);
    } else if (cy_bytes_equal(name, CY_BYTES("port"))) {
        *owned_out = value_int(request->port);
    } else if (cy_bytes_equal(name, CY_BYTES("secure"))) {
        *owned_out = value_bool(request->secure);
    } else {
        return false;
    }
    return true;
}

const struct handle_type native_http_request_type = {"request", NULL, native_http_request_field};

enum native_outcome native_http_field(struct native_call *call)
{
    struct http_exchange *exchange = handle_object(call->vm, call->args[0], &native_http_request_type);
    if (!exchange) return native_fail(call, CY_ERR(CLOSED), "http.field: the request is closed");
    const struct http_request *request = http_exchange_request(exchange);
    cy_bytes name = string_bytes(call->args[1]);
    struct builder joined;
    builder_init(&joined);
    uint32_t found = 0;
    for (uint32_t i = 0; i < request->field_count; i++) {
        if (!cy_bytes_equal_nocase(request->fields[i].name, name)) continue;
        if (found++ > 0) builder_text(&joined, ", ");
        builder_bytes(&joined, request->fields[i].value);
    }
    cy_value result = value_nil();
    cy_err err = builder_error(&joined);
    if (found > 0 && !cy_failed(err)) err = string_new(call->vm, builder_view(&joined), &result);
    builder_fini(&joined);
    if (cy_failed(err)) return native_fail_reason(call, err, "http.field");
    return native_return(call, result);
}

/* -- verdicts ---------------------------------------------------------------------------------------------------- */
enum native_outcome native_http_read_fields(struct native_call *call, const char *what, cy_value map,
                                            struct http_verdict_field *fields, uint32_t *count_out)
{
    cy_value key, value;
    uint32_t count = 0;
    for (size_t i = 0; map_entry_at(map, i, &key, &value); i++) {
        if (count == LIMIT_HTTP_VERDICT_FIELDS) {
            return native_fail(call, CY_ERR(LIMIT), "%s: at most HTTP_VERDICT_FIELDS = %d fields", what,
                               LIMIT_HTTP_VERDICT_FIELDS);
        }
        if (key.tag != TAG_STR || value.tag != TAG_STR) {
            return native_fail(call, CY_ERR(TYPE), "%s: field names and values must be str, not %s: %s", what,
                               value_kind_text(call->vm, key), value_kind_text(call->vm, value));
        }
        fields[count++] = (struct http_verdict_field){string_bytes(key), string_bytes(value)};
    }
    *count_out = count;
    return NATIVE_DONE;
}

static enum native_outcome native_http_finish(struct native_call *call, const char *what, cy_err err,
                                              cy_bytes fault, struct http_verdict *verdict)
{
    cy_value result;
    if (cy_failed(err)) {
        if (cy_is(err, CY_ERR_TOO_LARGE)) {
            return native_fail(call, err, "%s: the body is longer than HTTP_RESPOND_BODY_BYTES = %d bytes",
                               what, LIMIT_HTTP_RESPOND_BODY_BYTES);
        }
        return native_fail(call, err, "%s: %s: \"%.*s\"", what, cy_err_text(err, vm_korean(call->vm)),
                           CY_BYTES_ARG(fault));
    }
    size_t verdict_bytes = http_verdict_memory_bytes(verdict);
    native_charge(call, verdict_bytes / 100);
    err = opaque_new(call->vm, &native_http_verdict_type, verdict, verdict_bytes, &result);
    if (cy_failed(err)) return native_fail_reason(call, err, what);
    return native_return(call, result);
}

enum native_outcome native_http_respond(struct native_call *call)
{
    int64_t status = call->args[0].as.i;
    if (status < 200 || status > 599) {
        return native_fail(call, CY_ERR(VALUE), "http.respond: the status must be 200..599, not %lld",
                           (long long)status);
    }
    struct http_verdict_field fields[LIMIT_HTTP_VERDICT_FIELDS];
    uint32_t field_count = 0;
    if (native_has_arg(call, 2) &&
        native_http_read_fields(call, "http.respond", call->args[2], fields, &field_count) != NATIVE_DONE) {
        return NATIVE_FAIL;
    }
    struct http_verdict *verdict = NULL;
    cy_bytes body = native_has_arg(call, 1) ? string_bytes(call->args[1]) : CY_BYTES_NONE,
             fault = CY_BYTES_NONE;
    cy_err err = http_verdict_respond((uint16_t)status, body, fields, field_count, &verdict, &fault);
    return native_http_finish(call, "http.respond", err, fault, verdict);
}

enum native_outcome native_http_redirect(struct native_call *call)
{
    int64_t status = native_has_arg(call, 1) ? call->args[1].as.i : 308;
    if (status != 301 && status != 302 && status != 303 && status != 307 && status != 308) {
        return native_fail(call, CY_ERR(VALUE),
                           "http.redirect: the status must be 301, 302, 303, 307 or 308, not %lld",
                           (long long)status);
    }
    struct http_verdict_field location = {CY_BYTES("Location"), string_bytes(call->args[0])};
    struct http_verdict *verdict = NULL;
    cy_bytes fault = CY_BYTES_NONE;
    cy_err err = http_verdict_respond((uint16_t)status, CY_BYTES_NONE, &location, 1, &verdict, &fault);
    return native_http_finish(call, "http.redirect", err, fault, verdict);
}

static cy_err native_http_may_open(const struct runtime *runtime, cy_bytes url, const char **fault_out)
{
    cy_bytes unix_prefix = CY_BYTES("http://unix:");
    if (!cy_bytes_start_with(url, unix_prefix)) return CY_OK;
    cy_bytes path = cy_bytes_skip(url, unix_prefix.count);
    cy_err err = serve_address_may(runtime, cy_bytes_slice(path, 0, cy_bytes_find(path, ':')));
    if (cy_failed(err)) *fault_out = "a UNIX socket needs --allow write for its folder";
    return err;
}

static cy_err native_http_open_upstream(struct native_call *call, cy_bytes url,
                                        struct upstream **upstream_out, const char **fault_out)
{
    struct runtime *runtime = runtime_of(call->vm);
    *fault_out = NULL;
    CY_TRY(runtime_need_client(runtime));
    CY_TRY(native_http_may_open(runtime, url, fault_out));
    return upstream_open(runtime->client, url, upstream_out, fault_out);
}

static enum native_outcome native_http_bad_url(struct native_call *call, const char *what, cy_err err,
                                               cy_bytes url, const char *fault)
{
    return native_fail(call, err, "%s: \"%.*s\": %s", what, CY_BYTES_ARG(url),
                       fault ? vm_text(call->vm, fault) : cy_err_text(err, vm_korean(call->vm)));
}

static enum native_outcome native_http_read_upstream(struct native_call *call, cy_value map,
                                                     struct http_times *times, struct tls_client **trust_out,
                                                     cy_bytes *name_out, uint8_t *proxy_protocol_out)
{
    cy_value key, value;
    for (size_t i = 0; map_entry_at(map, i, &key, &value); i++) {
        cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
        cy_bytes word = value.tag == TAG_STR ? string_bytes(value) : CY_BYTES_NONE;
        bool is_v1 = cy_bytes_equal(word, CY_BYTES("v1")), is_v2 = cy_bytes_equal(word, CY_BYTES("v2"));
        if (cy_bytes_equal(name, CY_BYTES("proxy_protocol")) && (is_v1 || is_v2)) {
            *proxy_protocol_out = is_v1 ? 1 : 2;
            continue;
        }
        bool is_trust = cy_bytes_equal(name, CY_BYTES("trust")),
             is_name = cy_bytes_equal(name, CY_BYTES("name"));
        if ((is_trust || is_name) && value.tag == TAG_NIL) continue;
        struct tls_client *trust = is_trust ? opaque_payload(value, &native_tls_client_type) : NULL;
        if (trust) {
            *trust_out = trust;
            continue;
        }
        if (is_name && value.tag == TAG_STR) {
            *name_out = string_bytes(value);
            continue;
        }
        enum native_http_taken taken = native_http_take_time(call, "http.upstream", name, value, times);
        if (taken == NATIVE_HTTP_BAD) return NATIVE_FAIL;
        if (taken == NATIVE_HTTP_UNKNOWN)
            return native_fail(
                call, CY_ERR(VALUE),
                "http.upstream: options are connect_ms, first_byte_ms, idle_ms, keep_alive_ms, "
                "tunnel_ms, total_ms, trust (http.trust), name (str) and "
                "proxy_protocol (\"v1\" or \"v2\"), not \"%.*s\" (%s)",
                CY_BYTES_ARG(name), value_kind_text(call->vm, value));
    }
    return NATIVE_DONE;
}

enum native_outcome native_http_upstream(struct native_call *call)
{
    cy_bytes url = string_bytes(call->args[0]), name = CY_BYTES_NONE;
    struct upstream *upstream = NULL;
    struct tls_client *trust = NULL;
    const char *fault = NULL;
    cy_value result;
    uint8_t proxy_protocol = 0;
    struct http_times times = {0};
    if (native_has_arg(call, 1) &&
        native_http_read_upstream(call, call->args[1], &times, &trust, &name, &proxy_protocol) != NATIVE_DONE)
        return NATIVE_FAIL;
    cy_err err = runtime_need_client(runtime_of(call->vm));
    if (!cy_failed(err)) err = native_http_may_open(runtime_of(call->vm), url, &fault);
    if (!cy_failed(err))
        err = upstream_open_tls(runtime_of(call->vm)->client, url, trust, name, &upstream, &fault);
    if (cy_failed(err)) return native_http_bad_url(call, "http.upstream", err, url, fault);
    err = upstream_set_proxy_protocol(upstream, proxy_protocol);
    if (cy_failed(err)) {
        upstream_unref(&upstream);
        return native_fail(call, err, "http.upstream: no proxy_protocol for HTTP/2 and https");
    }
    upstream_set_times(upstream, &times);
    err =
        opaque_new(call->vm, &native_http_upstream_type, upstream, upstream_memory_bytes(upstream), &result);
    if (cy_failed(err)) return native_fail_reason(call, err, "http.upstream");
    return native_return(call, result);
}

/* A literal URL is taken apart once per runtime and kept; past the bound a program has to make upstreams itself. */
static enum native_outcome native_http_literal(struct native_call *call, cy_bytes url,
                                               struct upstream **upstream_out)
{
    struct runtime *runtime = runtime_of(call->vm);
    const char *fault = NULL;
    struct map_entry *entry = map_find(&runtime->literal_upstreams, url);
    if (entry) {
        *upstream_out = entry->value.pointer;
        return NATIVE_DONE;
    }
    if (runtime->literal_upstreams.count == LIMIT_LITERAL_UPSTREAMS) {
        return native_fail(call, CY_ERR(LIMIT),
                           "http.proxy: more than LITERAL_UPSTREAMS = %d different URLs; make them with "
                           "http.upstream in configure",
                           LIMIT_LITERAL_UPSTREAMS);
    }
    cy_err err = native_http_open_upstream(call, url, upstream_out, &fault);
    if (cy_failed(err)) return native_http_bad_url(call, "http.proxy", err, url, fault);
    entry = map_insert(&runtime->literal_upstreams, url, NULL);
    if (!entry) {
        upstream_unref(upstream_out);
        return native_fail_reason(call, CY_ERR(NO_MEMORY), "http.proxy");
    }
    entry->value.pointer = *upstream_out;
    return NATIVE_DONE;
}

/* options: set, remove, host, and terms; anything else is an error that names it. */
struct native_http_proxy_options {
    struct http_proxy_terms terms;
    struct http_verdict_field set[LIMIT_HTTP_VERDICT_FIELDS];
    uint32_t set_count;
    cy_bytes remove[LIMIT_HTTP_VERDICT_FIELDS];
    uint32_t remove_count;
    cy_bytes host;
};
static enum native_outcome native_http_read_options(struct native_call *call, cy_value map,
                                                    struct native_http_proxy_options *options)
{
    cy_value key, value;
    for (size_t i = 0; map_entry_at(map, i, &key, &value); i++) {
        cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
        enum native_http_taken taken =
            native_http_take_term(call, "http.proxy", name, value, &options->terms);
        if (taken == NATIVE_HTTP_BAD) return NATIVE_FAIL;
        if (taken == NATIVE_HTTP_TAKEN) continue;
        if (cy_bytes_equal(name, CY_BYTES("set")) && value.tag == TAG_MAP) {
            if (native_http_read_fields(call, "http.proxy: set", value, options->set, &options->set_count) !=
                NATIVE_DONE) {
                return NATIVE_FAIL;
            }
        } else if (cy_bytes_equal(name, CY_BYTES("remove")) && value.tag == TAG_LIST) {
            if (list_count(value) > LIMIT_HTTP_VERDICT_FIELDS)
                return native_fail(call, CY_ERR(LIMIT),
                                   "http.proxy: remove: at most HTTP_VERDICT_FIELDS = %d names",
                                   LIMIT_HTTP_VERDICT_FIELDS);
            for (size_t k = 0; k < list_count(value); k++) {
                cy_value item = list_get(value, k);
                if (item.tag != TAG_STR)
                    return native_fail(call, CY_ERR(TYPE), "http.proxy: remove: names must be str");
                options->remove[options->remove_count++] = string_bytes(item);
            }
        } else if (cy_bytes_equal(name, CY_BYTES("host")) && value.tag == TAG_STR) {
            options->host = string_bytes(value);
        } else {
            return native_fail(call, CY_ERR(VALUE),
                               "http.proxy: options are set (map), remove (list), host (str), upgrade "
                               "(bool), numbers for connect_ms, "
                               "first_byte_ms, idle_ms, keep_alive_ms, tunnel_ms, total_ms, body_bytes_max, "
                               "min_rate; not \"%.*s\" (%s)",
                               CY_BYTES_ARG(name), value_kind_text(call->vm, value));
        }
    }
    return NATIVE_DONE;
}

enum native_outcome native_http_proxy(struct native_call *call)
{
    struct upstream *upstream;
    if (call->args[0].tag == TAG_STR) {
        if (native_http_literal(call, string_bytes(call->args[0]), &upstream) != NATIVE_DONE)
            return NATIVE_FAIL;
    } else {
        upstream = opaque_payload(call->args[0], &native_http_upstream_type);
        if (!upstream) {
            return native_fail(call, CY_ERR(TYPE),
                               "http.proxy: argument 1 must be an upstream or a URL, not %s",
                               value_kind_text(call->vm, call->args[0]));
        }
    }
    struct http_verdict *verdict = NULL;
    cy_bytes fault = CY_BYTES_NONE;
    if (!native_has_arg(call, 1)) {
        cy_err err = http_verdict_proxy(upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &verdict, &fault);
        return native_http_finish(call, "http.proxy", err, fault, verdict);
    }
    struct native_http_proxy_options options;
    options.set_count = options.remove_count = 0;
    options.host = CY_BYTES_NONE;
    options.terms = (struct http_proxy_terms){0};
    if (native_http_read_options(call, call->args[1], &options) != NATIVE_DONE) return NATIVE_FAIL;
    cy_err err = http_verdict_proxy(upstream, options.set, options.set_count, options.remove,
                                    options.remove_count, options.host, &verdict, &fault);
    if (!cy_failed(err)) http_verdict_set_terms(verdict, &options.terms);
    return native_http_finish(call, "http.proxy", err, fault, verdict);
}

enum native_outcome native_http_serve(struct native_call *call)
{
    return serve_start(runtime_of(call->vm), call);
}
