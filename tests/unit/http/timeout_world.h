/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/timeout_world.h: clients, a server, its proxy and an upstream on a simulated clock, for the tests of
 * what happens when, each of which has a world of its own.
 *
 *   clients (timeout_peer) ── server ── proxy ── upstream (`back`, bytes written by hand)
 *
 * The clock moves only when everybody waits: a machine that is busy changes nothing.
 */
#ifndef CY_TESTS_UNIT_HTTP_TIMEOUT_WORLD_H
#define CY_TESTS_UNIT_HTTP_TIMEOUT_WORLD_H

#include "tests/support/loop_sim.h"
#include "vm/base/builder.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/server.h"

#include <check.h>
#include <stdio.h>

enum { HEADER_MS = 3000, KEEP_ALIVE_MS = 5000, BODY_MS = 7000, FIRST_BYTE_MS = 11000, IDLE_MS = 13000 };
enum { HALF_CLOSE_MS = 900 };
enum { MIN_RATE = 1000, GRACE_MS = 2000, TUNNEL_MS = 90000, TOTAL_MS = 6000, HAND_OVER_MS = 2000 };
enum { TIMEOUT_TURNS_MAX = 200000 };

/* One end of a connection, ours. */
struct timeout_peer {
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct builder received;
    uint64_t last_ms;                 /* when something came last, the end included */
    bool ended, clean, writing, deaf; /* deaf: does not read on */
};

static struct loop *loop;
static struct loop_sim *sim;
static struct log logger;
static struct http_client *client;
static struct http_server *server;
static struct upstream *upstream;
static struct http_verdict *proxy, *bounded, *answer, *large;
static struct loop_socket *listener;
static struct loop_accept listener_accept;
static struct timeout_peer back; /* the upstream's last connection */
static unsigned back_count, gone_count;

/* -- ends ------------------------------------------------------------------------------------------------ */

static inline void timeout_on_read(struct stream_read *read)
{
    struct timeout_peer *peer = CY_CONTAINER_OF(read, struct timeout_peer, read);
    peer->last_ms = loop_now_ms(loop);
    if (!read->buffer) {
        peer->ended = true;
        peer->clean = !cy_failed(read->err);
        return;
    }
    builder_bytes(&peer->received, buffer_view(read->buffer));
    buffer_unref(&read->buffer);
    if (!peer->deaf) stream_read_start(peer->stream, &peer->read);
}

static inline void timeout_on_written(struct stream_write *write)
{
    CY_CONTAINER_OF(write, struct timeout_peer, write)->writing = false;
}

static inline void timeout_peer_open(struct timeout_peer *peer, int owned_descriptor)
{
    struct loop_socket *socket;
    *peer = (struct timeout_peer){.read.done = timeout_on_read, .write.done = timeout_on_written};
    builder_init(&peer->received);
    ck_assert(!cy_failed(loop_socket_open(loop, owned_descriptor, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(loop, socket, &peer->stream)));
    stream_read_start(peer->stream, &peer->read);
}

static inline void timeout_turn(unsigned *turns)
{
    ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert_uint_lt((*turns)++, TIMEOUT_TURNS_MAX);
}

static inline void timeout_peer_close(struct timeout_peer *peer)
{
    if (!peer->stream) return;
    stream_close(&peer->stream);
    for (unsigned turns = 0; peer->writing || !peer->ended;) {
        loop_wake(loop);
        timeout_turn(&turns);
    }
    builder_fini(&peer->received);
}

static inline void timeout_send(struct timeout_peer *peer, const char *text)
{
    peer->write.send = (struct loop_send){.parts = {cy_bytes_from_text(text)}, .part_count = 1};
    peer->writing = true;
    stream_write_start(peer->stream, &peer->write);
    for (unsigned turns = 0; peer->writing;) timeout_turn(&turns);
}

/* Turns until the text has been received, and takes all up to its end. */
static inline void timeout_await(struct timeout_peer *peer, const char *text)
{
    cy_bytes wanted = cy_bytes_from_text(text);
    for (unsigned turns = 0;;) {
        const uint8_t *at = peer->stream && peer->received.count
                                ? memmem(peer->received.data, peer->received.count, wanted.data, wanted.count)
                                : NULL;
        if (at) {
            size_t used = (size_t)(at - peer->received.data) + wanted.count;
            memmove(peer->received.data, peer->received.data + used, peer->received.count -= used);
            return;
        }
        ck_assert_msg(!peer->ended, "it ended instead of: %s", text);
        timeout_turn(&turns);
    }
}

static inline void timeout_await_end(struct timeout_peer *peer)
{
    for (unsigned turns = 0; !peer->ended;) timeout_turn(&turns);
}

/* The clock of the simulator gives each wait a microsecond, which may carry into one more millisecond. */
static inline void timeout_expect_after(const struct timeout_peer *peer, uint64_t begin_ms, uint64_t ms)
{
    ck_assert_uint_ge(peer->last_ms - begin_ms, ms);
    ck_assert_uint_le(peer->last_ms - begin_ms, ms + 1);
}

/* -- the world ------------------------------------------------------------------------------------------- */

static inline void timeout_on_request(void *context, struct http_exchange *exchange)
{
    (void)context;
    cy_bytes path = http_exchange_request(exchange)->path;
    struct http_verdict *verdict = proxy;
    if (cy_bytes_equal(path, CY_BYTES("/here"))) verdict = answer;
    if (cy_bytes_equal(path, CY_BYTES("/large"))) verdict = large;
    if (cy_bytes_equal(path, CY_BYTES("/bounded"))) verdict = bounded;
    if (cy_bytes_equal(path, CY_BYTES("/never"))) return;
    http_exchange_answer(exchange, verdict);
}

static inline void timeout_on_gone(void *context, struct http_exchange *exchange)
{
    (void)context;
    (void)exchange;
    gone_count++;
}

static inline void timeout_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    if (accept->descriptor < 0) return;
    timeout_peer_close(&back);
    timeout_peer_open(&back, accept->descriptor);
    back_count++;
}

static const struct http_server_options timeout_bounds = {.header_timeout_ms = HEADER_MS,
                                                          .keep_alive_ms = KEEP_ALIVE_MS,
                                                          .body_idle_timeout_ms = BODY_MS,
                                                          .half_close_ms = HALF_CLOSE_MS,
                                                          .min_rate = MIN_RATE,
                                                          .min_rate_grace_ms = GRACE_MS};

static inline void timeout_open_for(uint32_t connections_max)
{
    const struct loop_sim_options options = {.seed = 5};
    struct address address;
    log_init(&logger);
    logger.level_min = LOG_ERROR + 1;
    back = (struct timeout_peer){0};
    back_count = gone_count = 0;
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), 80, &address)));
    ck_assert(!cy_failed(loop_socket_open(loop, loop_sim_listen(sim, &address), &listener)));
    listener_accept = (struct loop_accept){.op.done = timeout_on_accept};
    loop_accept(listener, &listener_accept);
    const struct http_client_options client_options = {.loop = loop,
                                                       .log = &logger,
                                                       .first_byte_timeout_ms = FIRST_BYTE_MS,
                                                       .idle_timeout_ms = IDLE_MS,
                                                       .tunnel_timeout_ms = TUNNEL_MS};
    ck_assert(!cy_failed(http_client_new(&client_options, &client)));
    ck_assert(!cy_failed(upstream_open(client, CY_BYTES("http://10.0.0.1"), &upstream, NULL)));
    ck_assert(!cy_failed(http_verdict_proxy(upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &proxy, NULL)));
    ck_assert(!cy_failed(http_verdict_respond(200, CY_BYTES("x\n"), NULL, 0, &answer, NULL)));
    ck_assert(!cy_failed(http_verdict_proxy(upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &bounded, NULL)));
    const struct http_proxy_terms terms = {.times = {.first_byte_ms = 1500, .total_ms = TOTAL_MS},
                                           .min_rate = HTTP_MIN_RATE_NONE};
    http_verdict_set_terms(bounded, &terms);
    static uint8_t many[600000];
    ck_assert(!cy_failed(http_verdict_respond(200, cy_bytes_of(many, sizeof many), NULL, 0, &large, NULL)));
    struct http_server_options server_options = timeout_bounds;
    server_options.loop = loop;
    server_options.log = &logger;
    server_options.client = client;
    server_options.on_request = timeout_on_request;
    server_options.on_gone = timeout_on_gone;
    server_options.connections_max = connections_max;
    ck_assert(!cy_failed(http_server_new(&server_options, &server)));
}

static inline void timeout_open(void) { timeout_open_for(0); }

static inline void timeout_close(void)
{
    timeout_peer_close(&back);
    http_server_free(&server);
    http_verdict_unref(&proxy);
    http_verdict_unref(&answer);
    http_verdict_unref(&bounded);
    http_verdict_unref(&large);
    upstream_unref(&upstream);
    http_client_free(&client);
    loop_socket_close(&listener);
    ck_assert(!cy_failed(loop_flush(loop)));
    loop_free(&loop); /* CHECKs that nothing is left */
}

/* False: the server had no room. */
static inline bool timeout_try_connect(struct timeout_peer *peer)
{
    struct loop_socket *socket;
    struct stream *far;
    struct address address;
    int a, b;
    loop_sim_pair(sim, &a, &b);
    timeout_peer_open(peer, a);
    ck_assert(!cy_failed(loop_socket_open(loop, b, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(loop, socket, &far)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.2"), 1, &address)));
    stream_set_addresses(far, &address, NULL);
    return !cy_failed(http_server_adopt(server, far));
}

static inline void timeout_connect(struct timeout_peer *peer) { ck_assert(timeout_try_connect(peer)); }

/* Moves the clock: a moment in which nothing happens. */
static inline void timeout_on_pause(struct timer *timer) { timer->fire = NULL; }
static inline void timeout_pause(uint32_t ms)
{
    struct timer timer = {.fire = timeout_on_pause};
    loop_timer_set(loop, &timer, ms);
    for (unsigned turns = 0; timer.fire;) timeout_turn(&turns);
}

#endif
