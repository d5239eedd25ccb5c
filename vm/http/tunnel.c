/* SPDX-License-Identifier: MIT
 *
 * vm/http/tunnel.c: two carriers that have left HTTP behind: bytes, both ways, until both sides have finished.
 *
 *   client carrier ──input──► upstream's write ... ──input──► client's write
 *                   ◄──────── upstream carrier
 *
 * In:   an exchange whose 101 has gone out, with what either side has already sent behind its head.
 * Out:  the same bytes on the other side; its end as its end (FIN), its reset as a reset.
 * Back-pressure: a side is read again only when what it sent before is with the kernel, so each direction holds one
 *       buffer, and none while it is silent.
 * Time: silence in both directions for tunnel_ms ends it; where one side has finished, LIMIT_HTTP_TUNNEL_HALF_MS do.
 *       The timer looks at the time of the last byte; no byte sets a timer.
 * Invariant: the exchange, its verdict and its program's instance are gone: a tunnel holds two connections and this
 *       struct, whatever becomes of the generation that began it.
 */
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/http/server_internal.h"

struct http_tunnel {
    struct http_server *server;
    struct exchange_carrier *carrier;
    struct upstream_carrier *upstream;
    uint64_t active_ms; /* when the last byte came or went */
    uint32_t idle_ms;
    bool upstream_ended; /* it will send no more */
    bool told_upstream;  /* that the client has finished */
    bool told_client;    /* that the upstream has */
};

static void tunnel_on_read(void *owner, struct buffer *owned_buffer, cy_err err);
static void tunnel_on_upstream_written(void *owner, cy_err err, size_t sent_bytes);
static void tunnel_on_upstream_timeout(void *owner);
static const struct upstream_events tunnel_events = {tunnel_on_read, tunnel_on_upstream_written,
                                                     tunnel_on_upstream_timeout};

/* -- the end --------------------------------------------------------------------------------------------- */

/* `abort`: neither side may take what it has for all there was. */
static void tunnel_end(struct http_tunnel *tunnel, bool abort)
{
    struct http_server *server = tunnel->server;
    struct exchange_carrier *carrier = tunnel->carrier;
    if (abort) tunnel->upstream->type->shutdown(tunnel->upstream, true);
    tunnel->upstream->type->close(&tunnel->upstream);
    carrier->tunnel = NULL;
    CHECK(server->counters->tunnels_open > 0);
    server->counters->tunnels_open--;
    spare_put(&server->spare_tunnels, tunnel);
    carrier_end(carrier, abort ? CARRIER_END_ABORT : CARRIER_END_LAST);
}

static void tunnel_break(struct http_tunnel *tunnel, const char *who, cy_err err)
{
    char text[128];
    log_write(server_log(tunnel->server), LOG_INFO, "tunnel of %.*s ended: %s (%s)",
              CY_BYTES_ARG(carrier_peer_text(tunnel->carrier)), who,
              cy_err_describe(err, false, text, sizeof text));
    tunnel_end(tunnel, true);
}

void tunnel_client_gone(struct http_tunnel *tunnel, cy_err err)
{
    tunnel_break(tunnel, cy_is(err, CY_ERR_CANCELLED) ? "stopped" : "the client is gone", err);
}

/* -- time ------------------------------------------------------------------------------------------------ */

static uint32_t tunnel_limit_ms(const struct http_tunnel *tunnel)
{
    if (!tunnel->told_upstream && !tunnel->told_client) return tunnel->idle_ms;
    return tunnel->idle_ms < LIMIT_HTTP_TUNNEL_HALF_MS ? tunnel->idle_ms : LIMIT_HTTP_TUNNEL_HALF_MS;
}

static void tunnel_touch(struct http_tunnel *tunnel)
{
    tunnel->active_ms = loop_now_ms(tunnel->server->options.loop);
}

void tunnel_on_timeout(struct http_tunnel *tunnel)
{
    uint64_t silent_ms = loop_now_ms(tunnel->server->options.loop) - tunnel->active_ms;
    uint32_t limit_ms = tunnel_limit_ms(tunnel);
    if (silent_ms < limit_ms)
        carrier_set_timer(tunnel->carrier, CARRIER_TIMER_TUNNEL, (uint32_t)(limit_ms - silent_ms));
    else
        tunnel_break(tunnel, "silent for too long", CY_ERR(TIMEOUT));
}

/* One side has finished: the shorter time holds from here. */
static void tunnel_on_half(struct http_tunnel *tunnel)
{
    tunnel_touch(tunnel);
    carrier_set_timer(tunnel->carrier, CARRIER_TIMER_TUNNEL, tunnel_limit_ms(tunnel));
}

/* -- both ways ------------------------------------------------------------------------------------------- */

/* The received buffer is what is sent: no byte is copied. */
static void tunnel_load(struct loop_send *send, struct relay_hold *hold, struct buffer **input)
{
    send->parts[0] = buffer_view(*input);
    send->part_count = 1;
    send->more = false;
    relay_hold_add(hold, *input);
    *input = NULL;
}

/* False when that ended the tunnel. */
static bool tunnel_pump_up(struct http_tunnel *tunnel)
{
    struct exchange_carrier *carrier = tunnel->carrier;
    struct upstream_carrier *upstream = tunnel->upstream;
    if (upstream->writing) return true;
    if (carrier->input) {
        tunnel_load(upstream->send, &upstream->hold, &carrier->input);
        upstream->type->write(upstream, 0, false);
        return true;
    }
    if (!carrier->input_ended) {
        carrier_want_input(carrier);
        return true;
    }
    if (tunnel->told_upstream) return true;
    tunnel->told_upstream = true;
    if (tunnel->told_client) {
        tunnel_end(tunnel, false);
        return false;
    }
    upstream->type->shutdown(upstream, false);
    tunnel_on_half(tunnel);
    return true;
}

static void tunnel_pump_down(struct http_tunnel *tunnel)
{
    struct exchange_carrier *carrier = tunnel->carrier;
    struct upstream_carrier *upstream = tunnel->upstream;
    if (carrier->writing) return;
    if (upstream->input) {
        tunnel_load(carrier->send, &carrier->hold, &upstream->input);
        carrier->writing = true; /* not carrier_write: the tunnel's timer goes on */
        carrier->type->write(carrier, 0, false);
        return;
    }
    if (!tunnel->upstream_ended) {
        upstream->type->want_input(upstream);
        return;
    }
    if (tunnel->told_client) return;
    tunnel->told_client = true;
    if (tunnel->told_upstream) {
        tunnel_end(tunnel, false);
        return;
    }
    carrier->type->shutdown(carrier, false);
    tunnel_on_half(tunnel);
}

void tunnel_on_input(struct http_tunnel *tunnel)
{
    tunnel_touch(tunnel);
    tunnel_pump_up(tunnel);
}

void tunnel_on_written(struct http_tunnel *tunnel)
{
    tunnel_touch(tunnel);
    tunnel_pump_down(tunnel);
}

static void tunnel_on_read(void *owner, struct buffer *owned_buffer, cy_err err)
{
    struct http_tunnel *tunnel = owner;
    if (cy_failed(err)) {
        tunnel_break(tunnel, "the upstream broke off", err);
        return;
    }
    tunnel_touch(tunnel);
    DCHECK(!tunnel->upstream->input);
    if (owned_buffer)
        tunnel->upstream->input = owned_buffer;
    else
        tunnel->upstream_ended = true;
    tunnel_pump_down(tunnel);
}

static void tunnel_on_upstream_written(void *owner, cy_err err, size_t sent_bytes)
{
    struct http_tunnel *tunnel = owner;
    (void)sent_bytes;
    if (cy_failed(err)) {
        tunnel_break(tunnel, "the upstream broke off", err);
        return;
    }
    tunnel_touch(tunnel);
    tunnel_pump_up(tunnel);
}

/* Its timer was cleared when the tunnel began. */
static void tunnel_on_upstream_timeout(void *owner) { (void)owner; }

/* -- the beginning --------------------------------------------------------------------------------------- */

void tunnel_init_spares(struct spare_list *tunnels, struct spare_watch *watch)
{
    spare_init(tunnels, watch, sizeof(struct http_tunnel), LIMIT_HTTP_SPARE);
}

static struct http_tunnel *tunnel_new(struct http_server *server)
{
    struct http_tunnel *tunnel = spare_take(&server->spare_tunnels);
    if (!tunnel) tunnel = mem_alloc(sizeof *tunnel);
    if (tunnel) memset(tunnel, 0, sizeof *tunnel);
    return tunnel;
}

void tunnel_start(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_server *server = carrier->server;
    struct http_tunnel *tunnel = tunnel_new(server);
    server->counters->responses_by_class[1]++;
    if (!tunnel) {
        exchange_client_gone(exchange, CY_ERR(NO_MEMORY));
        return;
    }
    tunnel->server = server;
    tunnel->carrier = carrier;
    tunnel->upstream = exchange->proxy.upstream;
    tunnel->upstream->owner = tunnel;
    tunnel->upstream->events = &tunnel_events;
    tunnel->upstream_ended = exchange->proxy.stream_ended;
    tunnel->idle_ms = exchange->verdict->terms.times.tunnel_ms;
    exchange->proxy.upstream = NULL;
    proxy_done(exchange);
    exchange_free(exchange);
    carrier->exchange = NULL;
    carrier->tunnel = tunnel;
    server->counters->tunnels++;
    server->counters->tunnels_open++;
    tunnel_touch(tunnel);
    carrier_set_timer(carrier, CARRIER_TIMER_TUNNEL, tunnel_limit_ms(tunnel));
    if (tunnel_pump_up(tunnel)) tunnel_pump_down(tunnel);
}
