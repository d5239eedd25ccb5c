/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_relay.h: the proxy with a client of HTTP/2 in front and servers behind, all by hand, for the tests
 * of it.
 *
 *   peer ── loopback ── server ── proxy ── client ── socket on 127.0.0.1 ── far[0..]
 *
 * A far end is an h2_peer too. Where it speaks HTTP/1 the test uses its `received` and h2_peer_bytes.
 */
#ifndef CY_TESTS_UNIT_HTTP_H2_RELAY_H
#define CY_TESTS_UNIT_HTTP_H2_RELAY_H

#include "tests/unit/http/h2_peer.h"
#include "vm/http/server.h"

#define H2_RELAY_FAR_MAX 4

struct h2_relay {
    struct loop *loop;
    struct log log;
    struct http_client *client;
    struct http_server *server;
    struct upstream *upstream;
    struct http_verdict *verdict;
    struct h2_peer peer, far[H2_RELAY_FAR_MAX];
    unsigned far_count;
    struct loop_socket *listener;
    struct loop_accept accept;
};

/* Everything goes to scheme://127.0.0.1:PORT and `base`, from a client that has sent its preface. `simulated`: on a
 * clock that moves only when everybody waits, instead of sockets of this machine. */
void h2_relay_open(struct h2_relay *relay, const char *scheme, const char *base, bool simulated);
/* The same with a server that has these bounds. */
void h2_relay_open_bounded(struct h2_relay *relay, const char *scheme, const char *base, bool simulated,
                           const struct http_server_options *bounds);
void h2_relay_close(struct h2_relay *relay);
/* Turns until that connection has come. */
struct h2_peer *h2_relay_far(struct h2_relay *relay, unsigned index);

#endif
