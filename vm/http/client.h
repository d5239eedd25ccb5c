/* SPDX-License-Identifier: MIT
 *
 * vm/http/client.h: upstreams and their pools of kept-alive connections.
 *
 * One http_client per worker. An upstream is counted; the pool behind it is shared by all upstreams with the
 * same host, port and TLS policy, and lives on while connections or counters do: pools belong to the worker.
 */
#ifndef CY_HTTP_CLIENT_H
#define CY_HTTP_CLIENT_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/base/log.h"
#include "vm/net/loop.h"

struct http_client;
struct upstream;
struct dns;
struct tls_client;

/* How long each part of a proxied exchange may take, in milliseconds. 0: as whoever comes next says: a verdict, its
 * upstream, the client's options. */
struct http_times {
    uint32_t connect_ms;
    uint32_t first_byte_ms; /* from the end of the request to the first byte of the answer */
    uint32_t idle_ms;       /* between bytes of the answer */
    uint32_t keep_alive_ms; /* an idle pooled connection */
    uint32_t tunnel_ms;     /* silence in both directions of a tunnel */
    uint32_t total_ms;      /* from the verdict to the answer's last byte; 0 everywhere: no such bound */
};

struct http_client_options {
    struct loop *loop;
    struct dns **dns; /* made on the first name that needs it; owned by the caller */
    struct log *log;
    uint32_t connect_timeout_ms;    /* 0: LIMIT_CONNECT_TIMEOUT_MS */
    uint32_t first_byte_timeout_ms; /* 0: 60,000 */
    uint32_t idle_timeout_ms;       /* between bytes of a message; 0: 60,000 */
    uint32_t keep_alive_ms;         /* an idle pooled connection; 0: 4,000, below common servers' 5 s */
    uint32_t tunnel_timeout_ms;     /* 0: LIMIT_HTTP_TUNNEL_IDLE_MS */
    uint32_t pool_idle_max;         /* idle connections per pool; 0: 512 */
};
CY_NODISCARD cy_err http_client_new(const struct http_client_options *options,
                                    struct http_client **client_out);
/* Closes idle connections; exchanges must have ended. Memory goes with the last upstream and, as with
 * http_server_free, the next turn of the loop. */
void http_client_free(struct http_client **client);

/* "http[s]://host[:port][/base/path]", "h2c://..." for HTTP/2 with prior knowledge, "h2://..." for HTTP/2 over TLS (a
 * server that does not agree on it is none: TLS_NO_PROTOCOL), or
 * "http://unix:/path/of/socket[:/base/path]". BAD_ADDRESS for anything else
 * (`fault_out`, may be NULL: a static text that says what is wrong, in English). The URL's base path is put before the
 * request's path. TLS: whom the system trusts. */
CY_NODISCARD cy_err upstream_open(struct http_client *client, cy_bytes url, struct upstream **upstream_out,
                                  const char **fault_out);
/* The same for https and h2 with a policy of its own (`trust` NULL: the system's), for a certificate that is for `name`
 * (empty: the URL's host). Either with a URL without TLS: BAD_ADDRESS. */
CY_NODISCARD cy_err upstream_open_tls(struct http_client *client, cy_bytes url, struct tls_client *trust,
                                      cy_bytes name, struct upstream **upstream_out, const char **fault_out);
/* Every connection begins with a PROXY protocol header of that version (1 or 2), which says who the client is; so each
 * request gets a connection of its own. UNSUPPORTED where HTTP/2 or TLS is spoken. */
CY_NODISCARD cy_err upstream_set_proxy_protocol(struct upstream *upstream, uint8_t version);
/* Before it is given to others: verdicts copy its times. */
void upstream_set_times(struct upstream *upstream, const struct http_times *times);
struct upstream *upstream_ref(struct upstream *upstream);
void upstream_unref(struct upstream **upstream);
/* What it holds, its pool with it although others may share that: for whoever counts memory. */
size_t upstream_memory_bytes(const struct upstream *upstream);
cy_bytes upstream_text(const struct upstream *upstream); /* "127.0.0.1:9000": for logs; borrowed */

#endif
