/* SPDX-License-Identifier: MIT
 *
 * vm/http/server.h: listeners whose requests become exchanges; an exchange is answered with a verdict.
 *
 *   head complete ─► on_request(exchange) ─► ... the handler thinks as long as it likes ... ─► answer(verdict)
 *        │                                                                                           │
 *        └ head bad: answered here (400, 414, 431, 501, 505) and closed               C moves the bytes
 *
 * Invariant: every on_request is followed by exactly one http_exchange_answer or http_exchange_fail, unless
 *            on_gone told the handler first that the client went away; after that the exchange must not be
 *            touched.
 * Not here:  choosing (policy), TLS (a stream), workers.
 */
#ifndef CY_HTTP_SERVER_H
#define CY_HTTP_SERVER_H

#include "vm/base/error.h"
#include "vm/base/log.h"
#include "vm/http/client.h"
#include "vm/http/message.h"
#include "vm/http/metrics.h"
#include "vm/http/verdict.h"
#include "vm/net/stream.h"

struct http_server;
struct http_exchange;
struct access_log;
struct http_listener;
struct tls_server;
struct address_range;

#define HTTP_HALF_CLOSE_NONE HTTP_MIN_RATE_NONE

struct http_server_options {
    struct loop *loop;
    struct log *log;
    struct http_client *client; /* carries out PROXY verdicts */
    void *context;
    /* A request head is complete and its framing decided. May answer at once or later. */
    void (*on_request)(void *context, struct http_exchange *exchange);
    /* The client is gone before an answer was given: forget the exchange. */
    void (*on_gone)(void *context, struct http_exchange *exchange);
    uint32_t header_timeout_ms;    /* from the first byte of a head to its end; 0: 30,000 */
    uint32_t keep_alive_ms;        /* idle between requests; 0: 75,000 */
    uint32_t body_idle_timeout_ms; /* 0: 60,000 */
    /* From a client's FIN behind its whole request to its answer's beginning: it has left then; 0:
     * LIMIT_HTTP_HALF_CLOSE_MS, HTTP_HALF_CLOSE_NONE: it has left at once. HTTP/1 alone: HTTP/2 tells the two apart. */
    uint32_t half_close_ms;
    uint32_t connections_max;   /* 0: LIMIT_CONNECTIONS */
    bool refuses_http2;         /* its preface is a malformed request then, and TLS does not offer it */
    uint32_t min_rate;          /* bytes per second that a client must send of its body, or read of an answer;
                                    * 0: LIMIT_HTTP_MIN_RATE, HTTP_MIN_RATE_NONE: none */
    uint32_t min_rate_grace_ms; /* 0: LIMIT_HTTP_MIN_RATE_GRACE_MS */
    uint32_t head_bytes_max;    /* 431 past it; 0 or more: LIMIT_HTTP_HEAD_BYTES */
    uint32_t fields_max;        /* 431 past it; 0 or more: LIMIT_HTTP_FIELDS */
    uint32_t stop_ms; /* after http_server_drain, until what still runs is cut off; 0: LIMIT_HTTP_STOP_MS */
    struct http_server_counters *counters; /* borrowed; counted on. NULL: the server has its own */
    struct access_log *access_log;         /* borrowed; NULL: none */
};

CY_NODISCARD cy_err http_server_new(const struct http_server_options *options,
                                    struct http_server **server_out);
/* Accepts on a listening descriptor. */
CY_NODISCARD cy_err http_server_listen(struct http_server *server, int owned_descriptor);
/* The same behind TLS (a reference is taken; NULL: plain). The listener is the server's own. */
CY_NODISCARD cy_err http_server_listen_tls(struct http_server *server, int owned_descriptor,
                                           struct tls_server *tls, struct http_listener **listener_out);
/* What new connections get from now on (NULL: plain); those there are keep what they have. Where clients have to show
 * something else than before (tls_server_asks_the_same), nothing new begins on connections that the listener let in:
 * those between two requests are closed, the others after what runs, as when the server drains. Gives their number. */
uint32_t http_listener_set_tls(struct http_listener *listener, struct tls_server *tls);
/* Its connections begin with a PROXY protocol header, which says who the client is: behind a load balancer.
 * `trusted_count` 0: every peer may say so; else others are closed. TOO_MANY past PROXY_PROTOCOL_PEERS. */
CY_NODISCARD cy_err http_listener_want_header(struct http_listener *listener,
                                              const struct address_range *trusted, uint32_t trusted_count);
/* Another descriptor of the same address: http_listener_set_tls on the later one is for both. */
void http_listener_join(struct http_listener *listener, struct http_listener *before);
/* One connection from elsewhere: tests run a whole request over a loopback stream. Who the client is, and whether it
 * is secure, its stream_info says. */
CY_NODISCARD cy_err http_server_adopt(struct http_server *server, struct stream *owned_stream);
/* From now on; connections that exist keep a time that already runs. Of the options only those that say how long and
 * how much: from header_timeout_ms on, without connections_max. */
void http_server_set_bounds(struct http_server *server, const struct http_server_options *options);
/* Stops accepting, closes idle connections, lets running exchanges finish (answering them with Connection:
 * close) and tunnels go on, for stop_ms, then cuts off what is left; then calls `drained` from the loop. */
void http_server_drain(struct http_server *server, void (*drained)(void *context));
/* While it drains: the time for that is over now. */
void http_server_stop_now(struct http_server *server);
/* The same where others serve already: clients between two requests may send another one, answered with Connection:
 * close, for `idle_ms`. */
void http_server_hand_over(struct http_server *server, uint32_t idle_ms, void (*drained)(void *context));
/* While it hands over: the time of clients between two requests is over now; what runs keeps its own. */
void http_server_end_idle(struct http_server *server);
/* From the next request on. NULL: none. */
void http_server_set_access_log(struct http_server *server, struct access_log *access_log);
/* Cuts everything off. on_gone is called for exchanges that wait for an answer. Operations of the loop are
 * still on their way: memory goes when the loop has delivered their cancellations, which the next turn does
 * (loop_wake before it, lest it waits for events when there was nothing to cancel). */
void http_server_free(struct http_server **server);

const struct http_request *http_exchange_request(const struct http_exchange *exchange);
/* Carries out the verdict (takes a reference of its own). */
void http_exchange_answer(struct http_exchange *exchange, struct http_verdict *verdict);
/* Fails closed: 500 without details for the client; `reason` goes to the log. */
void http_exchange_fail(struct http_exchange *exchange, cy_bytes reason);
/* For the handler's own use, NULL at first. */
void http_exchange_set_context(struct http_exchange *exchange, void *handler_context);
void *http_exchange_context(const struct http_exchange *exchange);

void http_server_read_counters(const struct http_server *server, struct http_server_counters *counters_out);

#endif
