/* SPDX-License-Identifier: MIT
 *
 * vm/native/serve_metrics.c: see serve_metrics.h; http.metrics; the admin listener.
 *
 * In:   numbers that workers and master count. Out: their sums, as a map and as Prometheus text.
 * Not here: what is counted (vm/http/metrics.def).
 */
#include "vm/native/serve_metrics.h"

#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"
#include "vm/sys/shared.h"

#define SERVE_METRICS_PREFIX "crownyc_"

static size_t serve_metrics_bytes(uint64_t worker_count)
{
    return sizeof(struct serve_metrics) + worker_count * sizeof(struct http_server_counters);
}

cy_err serve_metrics_new(struct runtime *runtime, uint32_t worker_count)
{
    void *memory;
    if (runtime->metrics) return CY_OK;
    CY_TRY(shared_memory_new(serve_metrics_bytes(worker_count), &memory));
    runtime->metrics = memory;
    runtime->metrics->worker_count = worker_count;
    return CY_OK;
}

void serve_metrics_free(struct runtime *runtime)
{
    if (runtime->metrics)
        shared_memory_free(runtime->metrics, serve_metrics_bytes(runtime->metrics->worker_count));
    runtime->metrics = NULL;
}

struct http_server_counters *serve_metrics_own(struct runtime *runtime)
{
    CHECK(runtime->metrics && runtime->worker_index < runtime->metrics->worker_count);
    return &runtime->metrics->workers[runtime->worker_index];
}

static void serve_metrics_sum(const struct serve_metrics *metrics, struct http_server_counters *sum)
{
    memset(sum, 0, sizeof *sum);
    for (uint64_t i = 0; i < metrics->worker_count; i++) http_counters_sum(sum, &metrics->workers[i]);
}

/* -- as text --------------------------------------------------------------------------------------------- */

static void serve_metrics_write_master(const struct serve_metrics *metrics, struct builder *out)
{
    const struct {
        const char *name, *type, *meaning;
        uint64_t value;
    } rows[] = {
        {"workers", "gauge", "worker processes", metrics->worker_count},
        {"workers_restarted_total", "counter", "workers that ended and were started again",
         metrics->master.workers_restarted},
        {"reloads_total", "counter", "generations accepted after the first", metrics->master.reloads},
        {"reloads_refused_total", "counter", "generations refused", metrics->master.reloads_refused},
        {"upgrades_failed_total", "counter", "new binaries that did not take over",
         metrics->master.upgrades_failed},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++)
        builder_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n%s%s %llu\n", SERVE_METRICS_PREFIX, rows[i].name,
                       rows[i].meaning, SERVE_METRICS_PREFIX, rows[i].name, rows[i].type,
                       SERVE_METRICS_PREFIX, rows[i].name, (unsigned long long)rows[i].value);
}

static void serve_metrics_write(const struct serve_metrics *metrics, struct builder *out)
{
    struct http_server_counters sum;
    serve_metrics_sum(metrics, &sum);
    serve_metrics_write_master(metrics, out);
    http_counters_write(&sum, SERVE_METRICS_PREFIX, out);
}

/* -- the admin listener ---------------------------------------------------------------------------------- */

static void serve_admin_answer(struct http_exchange *exchange, uint16_t status, cy_bytes body)
{
    struct http_verdict_field type = {CY_BYTES("Content-Type"),
                                      CY_BYTES("text/plain; version=0.0.4; charset=utf-8")};
    struct http_verdict *verdict = NULL;
    cy_err err = http_verdict_respond(status, body, &type, 1, &verdict, NULL);
    if (cy_failed(err)) {
        http_exchange_fail(exchange, cy_bytes_from_text(cy_err_text(err, false)));
        return;
    }
    http_exchange_answer(exchange, verdict);
    http_verdict_unref(&verdict);
}

static void serve_admin_on_request(void *context, struct http_exchange *exchange)
{
    struct runtime *runtime = context;
    const struct http_request *request = http_exchange_request(exchange);
    bool is_get = request->is_head || cy_bytes_equal(request->method, CY_BYTES("GET"));
    if (!cy_bytes_equal(request->path, CY_BYTES("/metrics"))) {
        serve_admin_answer(exchange, 404, CY_BYTES("only /metrics is here\n"));
    } else if (!is_get) {
        serve_admin_answer(exchange, 405, CY_BYTES("GET or HEAD\n"));
    } else {
        struct builder text;
        builder_init(&text);
        serve_metrics_write(runtime->metrics, &text);
        if (text.failed)
            http_exchange_fail(exchange, CY_BYTES("out of memory"));
        else
            serve_admin_answer(exchange, 200, builder_view(&text));
        builder_fini(&text);
    }
}

static void serve_admin_on_gone(void *context, struct http_exchange *exchange)
{
    (void)context;
    (void)exchange; /* answered at once, always */
}

cy_err serve_admin_open(struct runtime *runtime)
{
    struct http_server_options options = {
        .loop = runtime->loop,
        .log = &runtime->log,
        .client = runtime->client,
        .context = runtime,
        .on_request = serve_admin_on_request,
        .on_gone = serve_admin_on_gone,
        .connections_max = LIMIT_ADMIN_CONNECTIONS,
    };
    return http_server_new(&options, &runtime->serving.admin_server);
}

cy_err serve_admin_listen(struct runtime *runtime, int owned_descriptor)
{
    return http_server_listen(runtime->serving.admin_server, owned_descriptor);
}

/* -- for programs ---------------------------------------------------------------------------------------- */

static cy_err native_metrics_set(struct vm *vm, cy_value *map, const char *name, uint64_t value)
{
    return map_set_text(vm, map, cy_bytes_from_text(name), value_int((int64_t)value));
}

static cy_err native_metrics_fill(struct vm *vm, const struct serve_metrics *metrics, cy_value *map)
{
    static const char *const classes[] = {
        NULL, "responses_1xx", "responses_2xx", "responses_3xx", "responses_4xx", "responses_5xx"};
    struct http_server_counters sum;
    serve_metrics_sum(metrics, &sum);
    CY_TRY(native_metrics_set(vm, map, "workers", metrics->worker_count));
    CY_TRY(native_metrics_set(vm, map, "workers_restarted", metrics->master.workers_restarted));
    CY_TRY(native_metrics_set(vm, map, "reloads", metrics->master.reloads));
    CY_TRY(native_metrics_set(vm, map, "reloads_refused", metrics->master.reloads_refused));
    CY_TRY(native_metrics_set(vm, map, "upgrades_failed", metrics->master.upgrades_failed));
#define HTTP_COUNTER(name, kind, meaning) CY_TRY(native_metrics_set(vm, map, #name, sum.name));
#include "vm/http/metrics.def"
#undef HTTP_COUNTER
    for (size_t i = 1; i < CY_COUNT_OF(classes); i++)
        CY_TRY(native_metrics_set(vm, map, classes[i], sum.responses_by_class[i]));
    CY_TRY(native_metrics_set(vm, map, "latency_us_sum", sum.latency_us_sum));
    cy_value latency;
    CY_TRY(map_new(vm, 16, &latency));
    cy_err err = CY_OK;
    for (uint32_t i = 0; i < HTTP_LATENCY_SLOTS && !cy_failed(err); i++) {
        uint64_t upper_us = http_latency_upper_us(i);
        if (sum.latency[i] == 0) continue;
        err = map_set(vm, &latency, value_int(upper_us > INT64_MAX ? INT64_MAX : (int64_t)upper_us),
                      value_int((int64_t)sum.latency[i]));
    }
    if (cy_failed(err)) {
        value_unref(vm, latency);
        return err;
    }
    return map_set_text(vm, map, CY_BYTES("latency_us"), latency);
}

enum native_outcome native_http_metrics(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    cy_value map;
    cy_err err = serve_metrics_new(runtime, 1);
    native_charge(call, HTTP_LATENCY_SLOTS);
    if (!cy_failed(err)) err = map_new(call->vm, 32, &map);
    if (cy_failed(err)) return native_fail_reason(call, err, "http.metrics");
    err = native_metrics_fill(call->vm, runtime->metrics, &map);
    if (!cy_failed(err)) return native_return(call, map);
    value_unref(call->vm, map);
    return native_fail_reason(call, err, "http.metrics");
}

enum native_outcome native_http_metrics_text(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    struct builder text;
    cy_value result;
    builder_init(&text);
    cy_err err = serve_metrics_new(runtime, 1);
    native_charge(call, HTTP_LATENCY_SLOTS);
    if (!cy_failed(err)) serve_metrics_write(runtime->metrics, &text);
    if (!cy_failed(err)) err = builder_error(&text);
    if (!cy_failed(err)) err = string_new(call->vm, builder_view(&text), &result);
    builder_fini(&text);
    if (cy_failed(err)) return native_fail_reason(call, err, "http.metrics_text");
    return native_return(call, result);
}

#undef SERVE_METRICS_PREFIX
