/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_relay.c: see h2_relay.h.
 */
#include "tests/unit/http/h2_relay.h"

#include "tests/support/loop_sim.h"
#include "tests/support/loopback.h"

#include <check.h>
#include <stdio.h>

static void h2_relay_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    struct h2_relay *relay = CY_CONTAINER_OF(accept, struct h2_relay, accept);
    struct loop_socket *socket;
    struct stream *stream;
    if (cy_failed(op->err)) return;
    ck_assert_uint_lt(relay->far_count, H2_RELAY_FAR_MAX);
    ck_assert(!cy_failed(loop_socket_open(relay->loop, accept->descriptor, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(relay->loop, socket, &stream)));
    struct h2_peer *far = &relay->far[relay->far_count++];
    h2_peer_open(far, relay->loop, stream);
    far->also = &relay->peer;
    relay->peer.also = far; /* the newest */
}

static void h2_relay_on_request(void *context, struct http_exchange *exchange)
{
    http_exchange_answer(exchange, ((struct h2_relay *)context)->verdict);
}
static void h2_relay_on_gone(void *context, struct http_exchange *exchange)
{
    (void)context;
    (void)exchange;
}

void h2_relay_open(struct h2_relay *relay, const char *scheme, const char *base, bool simulated)
{
    h2_relay_open_bounded(relay, scheme, base, simulated, &(struct http_server_options){0});
}

void h2_relay_open_bounded(struct h2_relay *relay, const char *scheme, const char *base, bool simulated,
                           const struct http_server_options *bounds)
{
    struct address address;
    struct stream *near, *far;
    char url[64];
    int descriptor;
    memset(relay, 0, sizeof *relay);
    if (simulated) {
        const struct loop_sim_options options = {.seed = 1};
        struct loop_sim *sim;
        ck_assert(!cy_failed(loop_sim_new(&options, &relay->loop, &sim)));
        ck_assert(!cy_failed(address_from_ip(CY_BYTES("127.0.0.1"), 80, &address)));
        descriptor = loop_sim_listen(sim, &address);
    } else {
        ck_assert(!cy_failed(loop_new("poll", &relay->loop)));
        ck_assert(!cy_failed(address_from_ip(CY_BYTES("127.0.0.1"), 0, &address)));
        ck_assert(!cy_failed(listen_open(&address, false, 4, &descriptor)));
        ck_assert(!cy_failed(socket_local_address(descriptor, &address)));
    }
    log_init(&relay->log);
    relay->log.level_min = LOG_ERROR + 1;
    ck_assert(!cy_failed(loop_socket_open(relay->loop, descriptor, &relay->listener)));
    relay->accept.op.done = h2_relay_on_accept;
    loop_accept(relay->listener, &relay->accept);
    snprintf(url, sizeof url, "%s://127.0.0.1:%u%s", scheme, address_port(&address), base);
    const struct http_client_options client = {
        .loop = relay->loop, .log = &relay->log, .first_byte_timeout_ms = 5000, .keep_alive_ms = 20000};
    ck_assert(!cy_failed(http_client_new(&client, &relay->client)));
    ck_assert(!cy_failed(upstream_open(relay->client, cy_bytes_from_text(url), &relay->upstream, NULL)));
    ck_assert(!cy_failed(
        http_verdict_proxy(relay->upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &relay->verdict, NULL)));
    struct http_server_options server = *bounds;
    server.loop = relay->loop;
    server.log = &relay->log;
    server.client = relay->client;
    server.context = relay;
    server.on_request = h2_relay_on_request;
    server.on_gone = h2_relay_on_gone;
    ck_assert(!cy_failed(http_server_new(&server, &relay->server)));
    ck_assert(!cy_failed(loopback_pair(relay->loop, 0, &near, &far)));
    ck_assert(!cy_failed(http_server_adopt(relay->server, far)));
    h2_peer_open(&relay->peer, relay->loop, near);
    h2_peer_greet(&relay->peer);
}

void h2_relay_close(struct h2_relay *relay)
{
    h2_peer_close(&relay->peer);
    for (unsigned i = 0; i < relay->far_count; i++) h2_peer_close(&relay->far[i]);
    loop_socket_close(&relay->listener);
    http_server_free(&relay->server);
    http_verdict_unref(&relay->verdict);
    upstream_unref(&relay->upstream);
    http_client_free(&relay->client);
    ck_assert(!cy_failed(loop_flush(relay->loop)));
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(relay->loop)), 0);
    loop_free(&relay->loop);
}

struct h2_peer *h2_relay_far(struct h2_relay *relay, unsigned index)
{
    /* What comes at once has come after so many turns; a pause of accepting ends by the clock (ACCEPT_PAUSE_MS). */
    for (int i = 0; relay->far_count <= index && i < 1000; i++) h2_peer_turn(&relay->peer);
    while (relay->far_count <= index) ck_assert(!cy_failed(loop_turn(relay->loop)));
    return &relay->far[index];
}
