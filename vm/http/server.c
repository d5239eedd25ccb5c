/* SPDX-License-Identifier: MIT
 *
 * vm/http/server.c: listeners, lists and counters of an HTTP server; its begin and its end.
 *
 * In:   descriptors that listen, streams from tests. Out: connections (server_connection.c).
 * End:  http_server_free cuts everything off at once, but the loop still holds operations: memory goes with
 *       the last completion, one turn of the loop later.
 */
#include "vm/http/h2.h"
#include "vm/http/server_internal.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/net/tls.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SERVER_HEADER_TIMEOUT_MS 30000
#define SERVER_KEEP_ALIVE_MS 75000
#define SERVER_BODY_IDLE_MS 60000

static void server_default(uint32_t *value, uint32_t when_zero)
{
    if (*value == 0) *value = when_zero;
}

static void server_on_drain_timer(struct timer *timer);
static void server_on_idle_timer(struct timer *timer);
static void server_on_stop_timer(struct timer *timer);

static void server_default_bounds(struct http_server_options *options)
{
    server_default(&options->header_timeout_ms, SERVER_HEADER_TIMEOUT_MS);
    server_default(&options->keep_alive_ms, SERVER_KEEP_ALIVE_MS);
    server_default(&options->body_idle_timeout_ms, SERVER_BODY_IDLE_MS);
    server_default(&options->half_close_ms, LIMIT_HTTP_HALF_CLOSE_MS);
    server_default(&options->min_rate, LIMIT_HTTP_MIN_RATE);
    server_default(&options->min_rate_grace_ms, LIMIT_HTTP_MIN_RATE_GRACE_MS);
    server_default(&options->stop_ms, LIMIT_HTTP_STOP_MS);
    if (options->head_bytes_max == 0 || options->head_bytes_max > LIMIT_HTTP_HEAD_BYTES)
        options->head_bytes_max = LIMIT_HTTP_HEAD_BYTES;
    if (options->fields_max == 0 || options->fields_max > LIMIT_HTTP_FIELDS)
        options->fields_max = LIMIT_HTTP_FIELDS;
}

void http_server_set_bounds(struct http_server *server, const struct http_server_options *options)
{
    struct http_server_options bounds = *options;
    server_default_bounds(&bounds);
    server->options.header_timeout_ms = bounds.header_timeout_ms;
    server->options.keep_alive_ms = bounds.keep_alive_ms;
    server->options.body_idle_timeout_ms = bounds.body_idle_timeout_ms;
    server->options.half_close_ms = bounds.half_close_ms;
    server->options.min_rate = bounds.min_rate;
    server->options.min_rate_grace_ms = bounds.min_rate_grace_ms;
    server->options.head_bytes_max = bounds.head_bytes_max;
    server->options.fields_max = bounds.fields_max;
    server->options.stop_ms = bounds.stop_ms;
}

cy_err http_server_new(const struct http_server_options *options, struct http_server **server_out)
{
    CHECK(options->loop && options->log && options->on_request && options->on_gone);
    struct http_server *server = mem_alloc_zeroed(sizeof *server);
    if (!server) return CY_ERR(NO_MEMORY);
    server->options = *options;
    server_default_bounds(&server->options);
    server_default(&server->options.connections_max, LIMIT_CONNECTIONS);
    struct spare_watch *watch = loop_spares(server->options.loop);
    spare_init_pages(&server->spare_exchanges, watch, sizeof(struct http_exchange), LIMIT_HTTP_SPARE,
                     sizeof(void *));
    spare_init(&server->spare_connections, watch, sizeof(struct http_connection), LIMIT_HTTP_SPARE);
    spare_init(&server->spare_writes, watch, sizeof(struct connection_write), LIMIT_HTTP_SPARE);
    tunnel_init_spares(&server->spare_tunnels, watch);
    server->date_second = INT64_MIN;
    server->drain_timer.fire = server_on_drain_timer;
    server->idle_timer.fire = server_on_idle_timer;
    server->counters = options->counters ? options->counters : &server->own_counters;
    http_counters_restart(server->counters);
    server->stop_timer.fire = server_on_stop_timer;
    *server_out = server;
    return CY_OK;
}

/* -- small services for the other files ------------------------------------------------------------------ */

struct buffer_pool *server_buffers(struct http_server *server) { return loop_buffers(server->options.loop); }
struct log *server_log(struct http_server *server) { return server->options.log; }

/* Written by hand: strftime speaks the locale's language. */
cy_bytes server_date(struct http_server *server)
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t now = loop_wall_seconds(server->options.loop);
    if (now != server->date_second) {
        time_t seconds = (time_t)now;
        struct tm tm;
        if (!gmtime_r(&seconds, &tm)) memset(&tm, 0, sizeof tm);
        snprintf(server->date, sizeof server->date, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                 days + 3 * tm.tm_wday, (unsigned)tm.tm_mday % 100u, months + 3 * tm.tm_mon,
                 (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)tm.tm_hour % 100u,
                 (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u);
        server->date_second = now;
    }
    return cy_bytes_of(server->date, SERVER_DATE_BYTES);
}

void http_server_read_counters(const struct http_server *server, struct http_server_counters *counters_out)
{
    *counters_out = *server->counters;
}

void server_link(struct http_server *server, struct server_connection *connection)
{
    connection->previous = NULL;
    connection->next = server->connections;
    if (connection->next) connection->next->previous = connection;
    server->connections = connection;
}

void server_unlink(struct http_server *server, struct server_connection *connection)
{
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next) connection->next->previous = connection->previous;
}

uint8_t server_format_peer(struct stream *stream, char text[SERVER_PEER_TEXT_BYTES])
{
    struct builder builder;
    builder_init(&builder);
    if (stream) address_format(&stream_info(stream)->peer, false, &builder);
    cy_bytes view = builder_view(&builder);
    if (view.count > 2 && view.data[0] == '[') view = cy_bytes_slice(view, 1, view.count - 1);
    if (builder.failed || view.count == 0 || view.count >= SERVER_PEER_TEXT_BYTES) view = CY_BYTES("unknown");
    memcpy(text, view.data, view.count);
    builder_fini(&builder);
    return (uint8_t)view.count;
}

/* `why` is also what lines are counted by: that nobody could go must not hide that others did. */
static void server_make_room(struct http_server *server, const char *why)
{
    static const char nobody[] = "nobody let us wait";
    uint32_t count = connection_evict(server);
    unsigned before = (unsigned)server->counters->connections_open + count;
    if (count)
        log_write_keyed(server_log(server), LOG_WARN, why,
                        "%s: %u of them; closed %u that let us wait the longest", why, before, count);
    else
        log_write_keyed(server_log(server), LOG_WARN, nobody,
                        "%s: %u of them; %s for long enough to be closed", why, before, nobody);
}

static const char server_full_text[] = "as many clients as may be",
                  server_early_text[] = "almost as many clients as may be";

bool server_has_room(struct http_server *server)
{
    uint64_t max = server->options.connections_max;
    if (server->counters->connections_open >= max) server_make_room(server, server_full_text);
    return server->counters->connections_open < max;
}

void server_client_left(struct http_server *server)
{
    CHECK(server->counters->connections_open > 0);
    server->counters->connections_open--;
    if (!server->full || server->counters->connections_open >= server->options.connections_max) return;
    server->full = false;
    for (struct http_listener *listener = server->listeners; listener; listener = listener->next)
        if (listener->socket) loop_accept_again(listener->socket);
}

/* -- listening ------------------------------------------------------------------------------------------- */

void server_serve(struct http_listener *listener, struct stream *owned_stream)
{
    struct http_server *server = listener->server;
    if (listener->tls &&
        cy_failed(tls_server_stream(listener->tls, connection_alpn(server), owned_stream, &owned_stream)))
        return;
    connection_start(server, listener, owned_stream);
}

/* Places for who waits. Whoever holds a body or an answer may stay for LIMIT_HTTP_OWING_MS, so a table that is full may
 * have nobody in it who can go: a few places are kept free before that, and where there is none newcomers wait in the
 * kernel's queue rather than be reset. */
static uint32_t server_on_room(struct loop_accept *accept)
{
    struct http_server *server = CY_CONTAINER_OF(accept, struct http_listener, accept)->server;
    uint64_t max = server->options.connections_max, now_ms = loop_now_ms(server->options.loop);
    uint64_t reserve = max / LIMIT_HTTP_RESERVE_PART, open = server->counters->connections_open;
    if (reserve > LIMIT_HTTP_EVICT_BATCH) reserve = LIMIT_HTTP_EVICT_BATCH;
    if (open >= max) {
        server_make_room(server, server_full_text);
    } else if (open + reserve > max && now_ms >= server->evict_early_ms) {
        uint32_t count = connection_evict(server);
        if (count)
            log_write_keyed(server_log(server), LOG_WARN, server_early_text,
                            "%s: %u of %u; closed %u that let us wait the longest", server_early_text,
                            (unsigned)open, (unsigned)max, count);
        if (count < reserve) server->evict_early_ms = now_ms + LIMIT_HTTP_EVICT_PAUSE_MS;
    }
    open = server->counters->connections_open;
    server->full = open >= max;
    return server->full ? 0 : (uint32_t)(max - open);
}

static void server_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    struct http_listener *listener = CY_CONTAINER_OF(accept, struct http_listener, accept);
    struct http_server *server = listener->server;
    if (cy_failed(op->err)) { /* the last one */
        if (listener->socket) {
            char text[128];
            log_write(server_log(server), LOG_ERROR, "accepting ended: %s",
                      cy_err_describe(op->err, false, text, sizeof text));
            loop_socket_close(&listener->socket);
            server->listening_count--;
        }
        server_release(server);
        return;
    }
    struct loop_socket *socket;
    struct stream *stream;
    if (cy_failed(loop_socket_open_accepted(server->options.loop, accept->descriptor, &socket))) return;
    if (cy_failed(stream_tcp_new(server->options.loop, socket, &stream))) return;
    stream_set_addresses(stream, &accept->peer, NULL);
    if (listener->wants_proxy_protocol)
        intake_start(listener, stream);
    else
        server_serve(listener, stream);
}

/* The next try to accept comes by itself, a little later. What idles towards upstreams goes before any client does. */
static void server_on_starved(struct loop_accept *accept)
{
    struct http_server *server = CY_CONTAINER_OF(accept, struct http_listener, accept)->server;
    struct http_client *client = server->options.client;
    if (client && pool_make_room(client, LIMIT_HTTP_EVICT_BATCH)) return;
    server_make_room(server, "descriptors ran out with clients waiting");
}

cy_err http_server_listen(struct http_server *server, int owned_descriptor)
{
    return http_server_listen_tls(server, owned_descriptor, NULL, NULL);
}

static uint32_t server_retire(const struct http_listener *listener)
{
    uint32_t count = 0;
    for (struct server_connection *one = listener->server->connections, *next; one; one = next) {
        next = one->next;
        if (one->listener != listener || one->retires) continue;
        one->retires = true;
        count++;
        one->type->drain(one);
    }
    return count;
}

uint32_t http_listener_set_tls(struct http_listener *listener, struct tls_server *tls)
{
    uint32_t retired_count = 0;
    for (; listener; listener = listener->sibling) {
        struct tls_server *before = listener->tls;
        listener->tls = tls ? tls_server_ref(tls) : NULL;
        if (!tls_server_asks_the_same(before, tls)) retired_count += server_retire(listener);
        tls_server_unref(&before);
    }
    return retired_count;
}

cy_err http_server_listen_tls(struct http_server *server, int owned_descriptor, struct tls_server *tls,
                              struct http_listener **listener_out)
{
    struct http_listener *listener = mem_alloc_zeroed(sizeof *listener);
    struct loop_socket *socket = NULL;
    cy_err err = loop_socket_open(server->options.loop, owned_descriptor, &socket);
    if (!cy_failed(err) && !listener) {
        loop_socket_close(&socket);
        err = CY_ERR(NO_MEMORY);
    }
    if (cy_failed(err)) {
        mem_free(listener);
        return err;
    }
    listener->server = server;
    listener->socket = socket;
    listener->accept.op.done = server_on_accept;
    listener->tls = tls ? tls_server_ref(tls) : NULL;
    if (listener_out) *listener_out = listener;
    listener->accept.room = server_on_room;
    listener->accept.starved = server_on_starved;
    listener->next = server->listeners;
    server->listeners = listener;
    server->live_count++;
    server->listening_count++;
    loop_accept(socket, &listener->accept);
    return CY_OK;
}

cy_err http_listener_want_header(struct http_listener *listener, const struct address_range *trusted,
                                 uint32_t trusted_count)
{
    if (trusted_count > LIMIT_PROXY_PROTOCOL_PEERS) return CY_ERR(TOO_MANY);
    listener->wants_proxy_protocol = true;
    listener->trusted_count = trusted_count;
    if (trusted_count) memcpy(listener->trusted, trusted, trusted_count * sizeof *trusted);
    return CY_OK;
}

void http_listener_join(struct http_listener *listener, struct http_listener *before)
{
    listener->sibling = before;
}

cy_err http_server_adopt(struct http_server *server, struct stream *owned_stream)
{
    if (server->draining) {
        stream_close(&owned_stream);
        return CY_ERR(CLOSED);
    }
    return connection_start(server, NULL, owned_stream) ? CY_OK : CY_ERR(TOO_MANY);
}

/* -- the end --------------------------------------------------------------------------------------------- */

static void server_close_listeners(struct http_server *server)
{
    for (struct http_listener *listener = server->listeners; listener; listener = listener->next) {
        if (!listener->socket) continue;
        loop_socket_close(&listener->socket);
        server->listening_count--;
    }
}

static void server_free_memory(struct http_server *server)
{
    loop_timer_clear(server->options.loop, &server->drain_timer);
    loop_timer_clear(server->options.loop, &server->idle_timer);
    loop_timer_clear(server->options.loop, &server->stop_timer);
    while (server->listeners) {
        struct http_listener *listener = server->listeners;
        server->listeners = listener->next;
        tls_server_unref(&listener->tls);
        mem_free(listener);
    }
    h2_server_fini(server);
    spare_fini(&server->spare_exchanges);
    spare_fini(&server->spare_connections);
    spare_fini(&server->spare_writes);
    spare_fini(&server->spare_tunnels);
    mem_free(server);
}

void server_release(struct http_server *server)
{
    CHECK(server->live_count > 0);
    if (--server->live_count == 0 && server->freed) server_free_memory(server);
}

static void server_cut_off(struct http_server *server)
{
    for (struct server_connection *connection = server->connections, *next; connection; connection = next) {
        next = connection->next;
        connection->type->lose(connection, CY_ERR(CANCELLED));
    }
}

void http_server_free(struct http_server **server_pointer)
{
    struct http_server *server = *server_pointer;
    if (!server) return;
    *server_pointer = NULL;
    server->live_count++; /* keeps the memory while connections are closed */
    server->draining = true;
    server->drained = NULL;
    server_close_listeners(server);
    server_cut_off(server);
    server->freed = true;
    server_release(server);
}

static void server_on_drain_timer(struct timer *timer)
{
    struct http_server *server = CY_CONTAINER_OF(timer, struct http_server, drain_timer);
    void (*drained)(void *) = server->drained;
    server->drained = NULL;
    loop_timer_clear(server->options.loop, &server->idle_timer);
    loop_timer_clear(server->options.loop, &server->stop_timer);
    if (drained) drained(server->options.context);
}

void http_server_stop_now(struct http_server *server)
{
    CHECK(server->draining);
    loop_timer_set(server->options.loop, &server->stop_timer, 0);
}

static void server_on_stop_timer(struct timer *timer)
{
    struct http_server *server = CY_CONTAINER_OF(timer, struct http_server, stop_timer);
    if (!server->connections) return; /* the last one has just left */
    log_write(server_log(server), LOG_WARN,
              "the time to stop is over: %u connections are cut off, %u of them tunnels",
              (unsigned)server->counters->connections_open, (unsigned)server->counters->tunnels_open);
    server_cut_off(server);
}

/* `drained` comes from a timer, so that the program is never called from inside a call of its own. */
void server_check_drained(struct http_server *server)
{
    if (!server->draining || !server->drained || server->counters->connections_open > 0) return;
    if (!timer_is_set(&server->drain_timer)) loop_timer_set(server->options.loop, &server->drain_timer, 0);
}

static void server_close_idle(struct http_server *server)
{
    for (struct server_connection *connection = server->connections, *next; connection; connection = next) {
        next = connection->next;
        connection->type->drain(connection);
    }
}

void http_server_drain(struct http_server *server, void (*drained)(void *context))
{
    server->draining = true;
    server->drained = drained;
    server_close_listeners(server);
    server_close_idle(server);
    loop_timer_set(server->options.loop, &server->stop_timer, server->options.stop_ms);
    server_check_drained(server);
}

static void server_on_idle_timer(struct timer *timer)
{
    server_close_idle(CY_CONTAINER_OF(timer, struct http_server, idle_timer));
}

void http_server_hand_over(struct http_server *server, uint32_t idle_ms, void (*drained)(void *context))
{
    server->draining = true;
    server->drained = drained;
    server_close_listeners(server);
    loop_timer_set(server->options.loop, &server->idle_timer, idle_ms);
    loop_timer_set(server->options.loop, &server->stop_timer, server->options.stop_ms);
    server_check_drained(server);
}

void http_server_end_idle(struct http_server *server)
{
    CHECK(server->draining);
    loop_timer_set(server->options.loop, &server->idle_timer, 0);
}

void http_server_set_access_log(struct http_server *server, struct access_log *access_log)
{
    server->options.access_log = access_log;
}

#undef SERVER_HEADER_TIMEOUT_MS
#undef SERVER_KEEP_ALIVE_MS
#undef SERVER_BODY_IDLE_MS
