/* SPDX-License-Identifier: MIT
 *
 * vm/native/serve.c: http.serve: options, listeners, and one call of `handle` per request.
 *
 *   http.serve ─► configure (serve_generation.c) ─► listen ─► READY ─► requests ─► STOP or signal ─► drain ─► main
 *   goes on
 *
 * In:   the options map, requests of vm/http. Out: calls of `handle`, verdicts for vm/http.
 * Invariant: every exchange that on_request shows is answered once, or was taken back by on_gone. Without a master the
 *       signals are ours from the call until nothing is served any more, and the program's before and after.
 * Not here: workers and restarts (vm/net/master.c), carrying verdicts out (vm/http).
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_http.h"
#include "vm/native/runtime_internal.h"
#include "vm/native/serve_metrics.h"
#include "vm/sys/process.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define SERVE_DESCRIPTORS_OWN 24 /* the loop's, listeners, the channel, c-ares, stdio */
#define SERVE_PIPE_PART \
    16 /* one pipe for so many descriptors: an eighth of them; bodies beyond that are copied */

/* One request inside the handler. Pooled: the steady state allocates nothing here. */
struct http_call {
    struct runtime *runtime;
    struct http_exchange *exchange; /* NULL: the client is gone */
    struct fiber *fiber;
    cy_value handle;
};

/* -- one request ------------------------------------------------------------------------------------------------- */
static struct http_call *serve_take_call(struct runtime *runtime)
{
    struct http_call *call = spare_take(&runtime->serving.spare_calls);
    return call ? call : mem_alloc(sizeof *call);
}
static void serve_put_call(struct runtime *runtime, struct http_call *call)
{
    spare_put(&runtime->serving.spare_calls, call);
}

static void serve_answer_failure(struct runtime *runtime, struct http_exchange *exchange,
                                 enum call_outcome outcome, cy_value value, cy_err stop)
{
    struct builder reason;
    builder_init(&reason);
    if (outcome == CALL_FAILED) {
        vm_describe_error(runtime->vm, value, &reason);
    } else if (outcome == CALL_STOPPED) {
        builder_text(&reason, "handle was stopped: ");
        if (value_is_error(runtime->vm, value))
            vm_describe_error(runtime->vm, value, &reason);
        else
            builder_text(&reason, cy_err_text(stop, vm_korean(runtime->vm)));
    } else {
        builder_printf(&reason, "handle returned %s, not a verdict", value_kind_text(runtime->vm, value));
    }
    http_exchange_fail(exchange, builder_view(&reason));
    builder_fini(&reason);
}

static void serve_handle_done(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                              cy_err stop)
{
    struct http_call *call = context;
    struct runtime *runtime = call->runtime;
    handle_close(vm, call->handle);
    if (call->exchange) {
        struct http_verdict *verdict =
            outcome == CALL_RETURNED ? opaque_payload(value, &native_http_verdict_type) : NULL;
        http_exchange_set_context(call->exchange, NULL);
        if (verdict) {
            http_exchange_answer(call->exchange, verdict);
        } else {
            serve_answer_failure(runtime, call->exchange, outcome, value, stop);
        }
    }
    serve_put_call(runtime, call);
}

static void serve_on_request(void *context, struct http_exchange *exchange)
{
    struct runtime *runtime = context;
    struct http_call *call = serve_take_call(runtime);
    if (!call) {
        http_exchange_fail(exchange, CY_BYTES("out of memory"));
        return;
    }
    call->runtime = runtime;
    call->exchange = exchange;
    call->fiber = NULL;
    call->handle = value_nil();
    cy_err err = handle_open(runtime->vm, &native_http_request_type, exchange, NULL, &call->handle);
    if (!cy_failed(err)) {
        http_exchange_set_context(exchange, call);
        err = vm_start(runtime->vm, runtime->serving.instance, runtime->serving.handle, &call->handle, 1,
                       serve_handle_done, call, &call->fiber);
        if (cy_failed(err)) {
            http_exchange_set_context(exchange, NULL);
            handle_close(runtime->vm, call->handle);
        } else {
            handle_give(runtime->vm, call->handle, call->fiber); /* so that spawn can move it on */
        }
    }
    if (cy_failed(err)) {
        serve_put_call(runtime, call);
        http_exchange_fail(exchange, cy_bytes_from_text(cy_err_text(err, vm_korean(runtime->vm))));
    }
}

static void serve_on_gone(void *context, struct http_exchange *exchange)
{
    struct runtime *runtime = context;
    struct http_call *call = http_exchange_context(exchange);
    if (!call) return;
    call->exchange = NULL;
    handle_close(runtime->vm, call->handle);
    vm_cancel(runtime->vm, call->fiber);
}

/* -- the end ------------------------------------------------------------------------------------------------------ */

static void serve_close_signals(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    if (serving->signals_socket) loop_socket_close(&serving->signals_socket);
    if (serving->signals_descriptor >= 0) close(serving->signals_descriptor);
    serving->signals_descriptor = -1;
}

static void serve_give_back_signals(struct runtime *runtime)
{
    serve_close_signals(runtime);
    interrupt_take_back(runtime);
}

static void serve_on_signals_timer(struct timer *timer)
{
    serve_give_back_signals(CY_CONTAINER_OF(timer, struct runtime, serving.signals_timer));
}

/* Nothing is served any more, and what main still does must end with a signal. A second one that was sent with the
 * first is for the server, though nothing may be left of that. */
static void serve_leave_signals(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    uint64_t asked_ms = serving->stop_asked_ms, past_ms = loop_now_ms(runtime->loop) - asked_ms;
    if (runtime->link) return;
    if (asked_ms != 0 && past_ms < SIGNALS_PAUSE_MS)
        loop_timer_set(runtime->loop, &serving->signals_timer, SIGNALS_PAUSE_MS - past_ms);
    else
        serve_give_back_signals(runtime);
}

static void serve_finish(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    serve_leave_signals(runtime);
    if (!serving->active) return;
    serving->active = false;
    vm_complete(runtime->vm, serving->ticket, value_nil());
}
static void serve_drained(void *context)
{
    if (--((struct runtime *)context)->serving.undrained_count == 0) serve_finish(context);
}

/* `idle_ms` 0: clients between two requests are closed now, also where an earlier stop left them more time. */
static void serve_stop(struct runtime *runtime, uint32_t idle_ms)
{
    struct serving *serving = &runtime->serving;
    if (serving->stopping) {
        if (idle_ms == 0 && serving->undrained_count > 0) http_server_end_idle(runtime->server);
        return;
    }
    serving->stopping = true;
    if (runtime->server && serving->ready) {
        serving->undrained_count = serving->admin_server ? 2 : 1;
        if (idle_ms)
            http_server_hand_over(runtime->server, idle_ms, serve_drained);
        else
            http_server_drain(runtime->server, serve_drained);
        if (serving->admin_server) http_server_drain(serving->admin_server, serve_drained);
    } else {
        serve_finish(runtime);
    }
}

void serve_begin(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    CHECK(!serving->stopping);
    if (!serve_listen(runtime)) return;
    serving->ready = true;
    runtime_output_detach(runtime);
    cy_bytes banner = serving->banner ? cy_bytes_from_text(serving->banner) : CY_BYTES_NONE;
    if (runtime->link) {
        worker_ready(runtime->link, banner);
    } else if (banner.count > 0) {
        printf("%.*s\n", CY_BYTES_ARG(banner));
        fflush(stdout);
    }
}

/* -- what wakes a server ---------------------------------------------------------------------------------- */

static void serve_on_message(void *context, const struct worker_message *message)
{
    struct runtime *runtime = context;
    switch (message->kind) {
    case WORKER_MESSAGE_STOP:
    case WORKER_MESSAGE_MASTER_GONE: serve_stop(runtime, message->idle_ms); break;
    case WORKER_MESSAGE_GENERATION:
        serve_generation_reload(runtime, message->generation, message->generation_number);
        break;
    case WORKER_MESSAGE_REOPEN_LOGS: serve_extra_reopen(runtime); break; /* stderr is never ours to reopen */
    }
}

static void serve_link_ready(struct loop_op *op)
{
    struct runtime *runtime =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct runtime, serving.link_ready);
    if (cy_failed(op->err)) return;
    if (worker_link_receive(runtime->link, serve_on_message, runtime)) {
        loop_ready(runtime->serving.link_socket, &runtime->serving.link_ready);
    }
}

/* The second one is for who does not want to wait, as with a master. */
static void serve_on_signal(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    uint64_t now_ms = loop_now_ms(runtime->loop);
    if (serving->stop_asked_ms == 0) {
        serving->stop_asked_ms = now_ms;
        serve_stop(runtime, 0);
    } else if (now_ms - serving->stop_asked_ms >= SIGNALS_PAUSE_MS && serving->undrained_count > 0) {
        http_server_stop_now(runtime->server);
        if (serving->admin_server) http_server_stop_now(serving->admin_server);
    }
}

static void serve_signal_ready(struct loop_op *op)
{
    struct runtime *runtime =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct runtime, serving.signals_ready);
    if (cy_failed(op->err)) return;
    while (signals_next(runtime->serving.signals_descriptor) != 0) serve_on_signal(runtime);
    loop_ready(runtime->serving.signals_socket, &runtime->serving.signals_ready);
}

/* What may fail of being woken. */
static cy_err serve_watch(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    if (runtime->link)
        return loop_socket_watch(runtime->loop, worker_link_descriptor(runtime->link), &serving->link_socket);
    serving->signals_timer.fire = serve_on_signals_timer;
    interrupt_hand_over(runtime);
    static const int signals[] = {SIGTERM, SIGINT};
    CY_TRY(signals_open(signals, CY_COUNT_OF(signals), &serving->signals_descriptor));
    return loop_socket_watch(runtime->loop, serving->signals_descriptor, &serving->signals_socket);
}

/* Not before the call cannot fail any more: what is outstanding ends with a turn of the loop, and a program that
 * catches the failure may call again before that. */
static void serve_await_orders(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    serving->link_ready.op.done = serve_link_ready;
    serving->signals_ready.op.done = serve_signal_ready;
    serving->link_ready.want_read = serving->signals_ready.want_read = true;
    if (runtime->link)
        loop_ready(serving->link_socket, &serving->link_ready);
    else
        loop_ready(serving->signals_socket, &serving->signals_ready);
}

/* -- http.serve ------------------------------------------------------------------------------------------ */
static bool serve_read_listen(struct serving *serving, struct native_call *call, cy_value list)
{
    struct builder fault;
    builder_init(&fault);
    cy_err err = serve_addresses_read(call->vm, list, serving->listen, &serving->listen_count, &fault);
    if (cy_failed(err)) native_fail(call, err, "http.serve: %.*s", CY_BYTES_ARG(builder_view(&fault)));
    builder_fini(&fault);
    return !cy_failed(err);
}

/* False: the name is no such option. */
static bool serve_read_extra(struct runtime *runtime, struct native_call *call, cy_bytes name, cy_value value,
                             bool *taken_out)
{
    struct builder fault;
    cy_err err;
    builder_init(&fault);
    bool ours = serve_extra_read(call->vm, name, value, &runtime->serving.extra, &fault, &err);
    *taken_out = ours && !cy_failed(err);
    if (cy_failed(err)) native_fail(call, err, "http.serve: %.*s", CY_BYTES_ARG(builder_view(&fault)));
    builder_fini(&fault);
    return ours;
}

static enum native_outcome serve_read_options(struct runtime *runtime, struct native_call *call)
{
    cy_value key, value;
    if (!native_has_arg(call, 0)) return NATIVE_DONE;
    bool extra_taken;
    for (size_t i = 0; map_entry_at(call->args[0], i, &key, &value); i++) {
        cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
        enum native_http_taken taken =
            native_http_take_bound(call, "http.serve", name, value, &runtime->serving.bounds);
        if (taken == NATIVE_HTTP_BAD) return NATIVE_FAIL;
        if (taken == NATIVE_HTTP_TAKEN) continue;
        if (cy_bytes_equal(name, CY_BYTES("listen")) && value.tag == TAG_LIST) {
            if (!serve_read_listen(&runtime->serving, call, value)) return NATIVE_FAIL;
        } else if (cy_bytes_equal(name, CY_BYTES("banner")) && value.tag == TAG_STR) {
            cy_bytes text = string_bytes(value);
            runtime->serving.banner = mem_alloc(text.count + 1);
            if (!runtime->serving.banner) return native_fail_reason(call, CY_ERR(NO_MEMORY), "http.serve");
            memcpy(runtime->serving.banner, text.data, text.count + 1);
        } else if (cy_bytes_equal(name, CY_BYTES("http2")) && value.tag == TAG_BOOL) {
            runtime->serving.bounds.refuses_http2 = !value.as.b;
        } else if (serve_read_extra(runtime, call, name, value, &extra_taken)) {
            if (!extra_taken) return NATIVE_FAIL;
        } else {
            return native_fail(
                call, CY_ERR(VALUE),
                "http.serve: options are listen (list), banner (str), http2 (bool), access_log (map), "
                "proxy_protocol (map), admin (str), numbers for header_ms, keep_alive_ms, "
                "body_ms, half_close_ms, min_rate, min_rate_grace_ms, head_bytes_max, fields_max, stop_ms; "
                "not "
                "\"%.*s\" (%s)",
                CY_BYTES_ARG(name), value_kind_text(call->vm, value));
        }
    }
    return NATIVE_DONE;
}

static void serve_forget_options(struct serving *serving)
{
    serve_addresses_fini(serving->listen, &serving->listen_count);
    mem_free(serving->banner);
    serving->banner = NULL;
    serve_extra_fini(&serving->extra);
    serving->bounds = (struct http_server_options){0};
}

/* Shares the descriptors out: a part for pipes, and half of the rest for clients, so that each finds one for its
 * upstream. Who was let in must not be told 502 because others idle or read slowly. Gives how many clients. */
static uint32_t serve_share_descriptors(struct loop *loop)
{
    uint32_t descriptors = process_raise_descriptors();
    uint32_t left = descriptors > SERVE_DESCRIPTORS_OWN ? descriptors - SERVE_DESCRIPTORS_OWN : 0;
    uint32_t pipes = left / SERVE_PIPE_PART < LIMIT_PIPES ? left / SERVE_PIPE_PART : LIMIT_PIPES;
    loop_set_pipes_max(loop, pipes);
    uint32_t clients = (left - 2 * pipes) / 2;
    if (clients == 0) return 1;
    return clients < LIMIT_CONNECTIONS ? clients : LIMIT_CONNECTIONS;
}

static cy_err serve_open_server(struct runtime *runtime)
{
    CY_TRY(runtime_need_client(runtime));
    CY_TRY(serve_metrics_new(runtime, 1));
    runtime->serving.extra_by_configure = !runtime->serving.extra.log_to && !runtime->serving.extra.admin;
    struct http_server_options options = runtime->serving.bounds;
    options.loop = runtime->loop;
    options.log = &runtime->log;
    options.client = runtime->client;
    options.context = runtime;
    options.on_request = serve_on_request;
    options.on_gone = serve_on_gone;
    options.connections_max = serve_share_descriptors(runtime->loop);
    options.counters = serve_metrics_own(runtime);
    CY_TRY(http_server_new(&options, &runtime->server));
    if (!runtime->serving.spare_calls.block_bytes) /* a program may serve once more after a failure */
        spare_init(&runtime->serving.spare_calls, loop_spares(runtime->loop), sizeof(struct http_call),
                   LIMIT_HTTP_SPARE);
    return serve_watch(runtime);
}

/* The call fails: nothing of it may be left, for a program may catch that and call again, or do without. */
static void serve_undo(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    http_server_free(&runtime->server);
    if (serving->link_socket) loop_socket_close(&serving->link_socket);
    if (runtime->loop) serve_leave_signals(runtime);
    serve_forget_options(serving);
}

static void serve_cancelled(void *operation) { ((struct runtime *)operation)->serving.active = false; }

enum native_outcome serve_start(struct runtime *runtime, struct native_call *call)
{
    if (runtime->server) {
        return native_fail(call, CY_ERR(UNSUPPORTED), "http.serve: this process serves already");
    }
    if (serve_read_options(runtime, call) != NATIVE_DONE) {
        serve_forget_options(&runtime->serving);
        return NATIVE_FAIL;
    }
    cy_err err = serve_open_server(runtime);
    if (!cy_failed(err)) err = serve_generation_first(runtime);
    if (cy_failed(err)) {
        serve_undo(runtime);
        return native_fail(call, err, "http.serve: %s", cy_err_text(err, vm_korean(call->vm)));
    }
    serve_await_orders(runtime);
    runtime->serving.active = true;
    runtime->serving.ticket = native_wait(call, serve_cancelled, runtime);
    return NATIVE_WAIT;
}

void serve_fini(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    http_server_free(&runtime->server);
    http_server_free(&serving->admin_server);
    if (serving->link_socket) loop_socket_close(&serving->link_socket);
    if (runtime->loop) loop_timer_clear(runtime->loop, &serving->signals_timer);
    serve_close_signals(runtime);
    serve_generation_fini(runtime);
    serve_addresses_close(runtime);
    struct serve_extra extra = serving->extra; /* the log is still written to: serve_extra_close */
    serving->extra = (struct serve_extra){.log_to = NULL};
    serve_forget_options(serving);
    serving->extra = extra;
}

/* The calls themselves outlive the VM's last callbacks. */
void serve_free_calls(struct runtime *runtime) { spare_fini(&runtime->serving.spare_calls); }

#undef SERVE_DESCRIPTORS_OWN
#undef SERVE_PIPE_PART
