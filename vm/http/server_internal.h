/* SPDX-License-Identifier: MIT
 *
 * vm/http/server_internal.h: the exchange, a proxied exchange's state, and the HTTP/1 connection that carries
 * exchanges. For vm/http only.
 *
 *   connection (server_connection.c)       exchange (exchange.c)                 carried out by
 *     IDLE ──first byte──────────────────►   HEAD ──complete──► THINKING           respond.c
 *      ▲                                      │ bad                 │ verdict      proxy.c, proxy_response.c
 *      │                                      └──────────► ANSWERING ◄┘
 *      └──keep-alive──◄── DRAINING ◄──answer sent──────────────┘
 *                                              └──close──► LINGERING or closed
 *
 * Invariants:
 *   - The exchange, respond.c and proxy*.c know their carrier only as carrier.h has it.
 *   - One exchange per connection at a time. Bytes of later requests wait in the carrier's input, and while any
 *     wait the connection is not read: a client can make us hold one buffer, not more.
 *   - While nothing waits a read is outstanding, so that a client that goes away is seen: at once, or where it may only
 *     have finished sending (FIN behind an HTTP/1 request), when its answer has not begun after half_close_ms.
 *   - An exchange's memory stays until no write that points into it is outstanding.
 */
#ifndef CY_HTTP_SERVER_INTERNAL_H
#define CY_HTTP_SERVER_INTERNAL_H

#include "vm/base/spare.h"
#include "vm/http/carrier.h"
#include "vm/http/client_internal.h"
#include "vm/http/h1.h"
#include "vm/http/head_write.h"
#include "vm/http/server.h"
#include "vm/net/address_range.h"

/* -- a proxied exchange: proxy.c ------------------------------------------------------------------------- */
struct http_proxy {
    struct http_connector *connector;  /* while a connection is made */
    struct upstream_carrier *upstream; /* from then until the response is complete */
    struct relay response;
    struct http_response answer;
    uint8_t interim_count;
    bool active;          /* a verdict says so, and it has not come to its end */
    bool request_sent;    /* all of it is with the kernel */
    bool request_stopped; /* no more of the body will be sent: a final answer came first, or sending failed */
    bool received_any;    /* of a response, on this carrier */
    bool head_complete;   /* of the final response */
    bool stream_ended;    /* the server will send no more */
    bool retried;
    bool body_lost;      /* more of the request's body was taken than `kept` holds */
    struct buffer *kept; /* what the first of it was taken from, at kept_begin; until an answer begins */
    uint32_t kept_begin;
    uint64_t start_ns, head_ns; /* when it began, and when the head of the final response came; 0: not yet */
    bool counts_forwards;       /* OPTIONS or TRACE with Max-Forwards: the upstream gets `forwards_left` */
    uint32_t forwards_left;
    bool upgrade_sent;        /* the request asks for another protocol, so a 101 may come */
    uint64_t sent_bytes;      /* of the request, on this carrier */
    struct timer total_timer; /* set only where the verdict bounds the whole */
    cy_err stream_err;        /* with stream_ended: why */
};

enum exchange_phase { EXCHANGE_HEAD, EXCHANGE_THINKING, EXCHANGE_ANSWERING, EXCHANGE_DRAINING };
/* What the carrier's outstanding write is. */
enum exchange_write {
    EXCHANGE_WRITE_NONE,
    EXCHANGE_WRITE_INTERIM,
    EXCHANGE_WRITE_RESPOND,
    EXCHANGE_WRITE_PROXY,
    EXCHANGE_WRITE_SWITCH /* a 101: the tunnel begins behind it */
};

#define EXCHANGE_SPACE_BYTES 1024

struct http_exchange {
    struct exchange_carrier *carrier;
    void *handler_context;
    struct http_verdict *verdict;
    struct buffer *head_buffer;  /* what the request's views point into */
    struct buffer *space_buffer; /* normal forms too large for `space` */
    struct relay request_body;
    size_t head_bytes; /* of the request's head, as a bound for the one that we write */
    uint64_t drained_bytes;
    uint64_t start_ns;       /* when its head was there; 0: never */
    uint64_t sent_bytes;     /* given to the carrier for the client, heads included */
    uint32_t slack_ms;       /* how long we would still wait for it; more with each byte */
    size_t body_offset;      /* of a RESPOND body: what has been written */
    uint16_t status;         /* of the final answer; 0: none begun */
    uint16_t pending_status; /* answered once the interim write is done */
    const char *pending_text;
    uint8_t phase;
    uint8_t write;
    bool client_keeps;     /* the client and we would go on with its carrier after this exchange */
    bool keep_alive;       /* as the answer's head says */
    bool continue_waiting; /* the client waits for 100 before it sends its body */
    bool client_gone;      /* before its end */
    bool wants_upgrade;    /* the client asks for another protocol behind a 101 */
    bool slack_given;

    struct http_proxy proxy;
    struct h1_head h1_head; /* the carrier's own, while it reads the head: nobody else looks at it */
    struct http_request request;
    struct http_field response_fields[LIMIT_HTTP_FIELDS];
    uint8_t space[EXCHANGE_SPACE_BYTES];
};

#define SERVER_PEER_TEXT_BYTES 48

enum connection_timer {
    CONNECTION_TIMER_IDLE = CARRIER_TIMER_OWN,
    CONNECTION_TIMER_HEAD,
    CONNECTION_TIMER_LINGER
};

/* What an HTTP/1 connection has for an exchange's sake, its write above all: half of it all, so idle ones have none. */
struct connection_write {
    struct stream_write write;
    struct http_connection *connection;
    struct timer half_close_timer; /* set by a FIN before the answer began; may run into it, to no effect */
};

/* What the server knows of a connection, whatever is spoken on it, and before anything is: a place in its list, and how
 * to end it. */
struct server_connection;
struct server_connection_type {
    void (*lose)(struct server_connection *connection, cy_err err); /* closes; its exchanges are told why */
    void (*drain)(struct server_connection *connection);            /* closes when its exchanges have ended */
    /* Since when its client has let us wait, so that it may go for another one's sake; UINT64_MAX: it must stay. */
    uint64_t (*waits_since)(const struct server_connection *connection, uint64_t now_ms);
    /* The stream whose bytes it is about to take. NULL: it takes none now. */
    struct stream *(*awaits)(const struct server_connection *connection);
};
struct server_connection {
    const struct server_connection_type *type;
    struct server_connection *next, *previous;
    const struct http_listener
        *listener; /* that let it in, for the server lives as long; NULL: it came otherwise */
    bool retires;  /* nothing new begins on it */
};

/* The HTTP/1 carrier. */
struct http_connection {
    struct exchange_carrier carrier; /* first: a carrier of type HTTP/1 is this one too */
    struct server_connection listed;
    struct stream *stream; /* NULL: closed, completions may still come */
    union {
        struct stream_ready ready; /* until it is done */
        struct stream_read read;   /* from then on */
    };
    struct connection_write *write; /* with an exchange, and until the write is complete */
    uint64_t lingered_bytes;
    uint64_t quiet_since_ms; /* while it is between requests, inside a head, or lingering */
    uint8_t peer_text_bytes; /* 0: not made yet */
    bool preparing, reading; /* `ready`, `read` are outstanding; the write's is carrier.writing */
    bool lingering;
    bool has_served;                        /* a request was begun: what comes now is no HTTP/2 preface */
    char peer_text[SERVER_PEER_TEXT_BYTES]; /* "127.0.0.1", for X-Forwarded-For */
};

struct http_listener {
    struct http_listener *next;
    struct http_server *server;
    struct loop_socket *socket; /* NULL: closed */
    struct loop_accept accept;
    struct tls_server *tls;        /* a reference; NULL: plain */
    struct http_listener *sibling; /* of the same address; NULL: none */
    bool wants_proxy_protocol;
    uint32_t trusted_count; /* 0: every peer */
    struct address_range trusted[LIMIT_PROXY_PROTOCOL_PEERS];
};

#define SERVER_DATE_BYTES 29

struct http_server {
    struct http_server_options options;
    struct http_listener *listeners;
    struct server_connection *connections;
    struct h2_server *h2; /* NULL: nobody has spoken HTTP/2 yet */
    struct spare_list spare_exchanges, spare_connections, spare_writes, spare_tunnels;
    struct http_server_counters *counters; /* `own_counters`, or memory that other processes read */
    struct http_server_counters own_counters;
    struct timer drain_timer, stop_timer; /* nothing is left; what is left is cut off */
    struct timer idle_timer;              /* those between two requests go too */
    void (*drained)(void *context);
    int64_t date_second;
    uint32_t live_count; /* connections, intakes and listeners whose completions may still come */
    uint32_t listening_count;
    uint64_t evict_early_ms; /* quiet clients are not looked for before, while places are free */
    bool full;               /* newcomers are kept waiting in the kernel's queue until a place is free */
    bool draining;
    bool freed; /* by its owner: memory goes with the last completion */
    char date[SERVER_DATE_BYTES + 1];
};

/* -- server.c -- */
cy_bytes server_date(struct http_server *server); /* IMF-fixdate, made once per second */
struct buffer_pool *server_buffers(struct http_server *server);
struct log *server_log(struct http_server *server);
void server_release(struct http_server *server); /* one live thing less */
void server_check_drained(struct http_server *server);
/* One client less: its place is free for whoever waits. */
void server_client_left(struct http_server *server);
void server_link(struct http_server *server, struct server_connection *connection);
void server_unlink(struct http_server *server, struct server_connection *connection);
/* "127.0.0.1"; gives the number of bytes. */
uint8_t server_format_peer(struct stream *stream, char text[SERVER_PEER_TEXT_BYTES]);
/* May another client come? Closes quiet ones for it, where it must, and says so in the log (rate limited). */
bool server_has_room(struct http_server *server);

/* An accepted connection whose client is known by now. */
void server_serve(struct http_listener *listener, struct stream *owned_stream);

/* -- server_intake.c -- */
void intake_start(struct http_listener *listener, struct stream *owned_stream);

/* -- server_connection.c -- */
/* False when there was no room for it, or no memory: it is closed then. `listener` NULL: none let it in. */
bool connection_start(struct http_server *server, const struct http_listener *listener,
                      struct stream *owned_stream);
/* The protocols that it speaks, for tls_server_stream. */
cy_bytes connection_alpn(const struct http_server *server);
void connection_close(struct http_connection *connection);
/* The client is gone, or must go, whatever it was in the middle of. */
void connection_lose(struct http_connection *connection, cy_err err);
/* Closes those clients that let us wait the longest: at most LIMIT_HTTP_EVICT_BATCH. Gives their number. */
uint32_t connection_evict(struct http_server *server);

/* -- exchange.c: for carriers -- */
struct http_exchange *exchange_new(struct exchange_carrier *carrier);
void exchange_free(struct http_exchange *exchange);
/* Judges h1_head, whoever filled it, into `request`. Returns enum h1_fault. */
uint8_t exchange_judge(struct http_exchange *exchange, struct h1_request *wishes_out);
/* The request is there, judged: `request`, `head_bytes`, `client_keeps` and `continue_waiting` are filled in. Asks
 * the handler. */
void exchange_begin(struct http_exchange *exchange);
/* There is more of the request's body, or (carrier->input_ended) there will be no more. */
void exchange_on_input(struct http_exchange *exchange);
void exchange_on_written(struct http_exchange *exchange);
/* The client is gone (err) before the exchange's end. The carrier is ended by this. */
void exchange_client_gone(struct http_exchange *exchange, cy_err err);
/* One of carrier.h's kinds. */
void exchange_on_timeout(struct http_exchange *exchange, unsigned kind);

/* Of the final answer; an interim one promises nothing. */
static inline bool exchange_answer_has_begun(const struct http_exchange *exchange)
{
    return exchange->status != 0 || exchange->pending_status != 0;
}

/* -- exchange_record.c -- */
/* Its end: time and, where there is a log, its line. */
void exchange_record(struct http_exchange *exchange);

/* -- exchange.c: for respond.c and proxy*.c -- */
/* The client owes more of its body: waits for it, no longer than its least rate allows. */
void exchange_await_body(struct http_exchange *exchange);
/* The last byte of the answer is with the kernel. */
void exchange_answered(struct http_exchange *exchange);
/* Answers from here: a fault, a timeout, a failed upstream. The carrier ends afterwards unless `keep`. */
void exchange_refuse(struct http_exchange *exchange, uint16_t status, const char *text, bool keep);

/* -- respond.c -- */
void respond_verdict(struct http_exchange *exchange);
void respond_continue(struct http_exchange *exchange); /* the next slice, or the end */
/* A short text answer. False when there is no memory for it. */
CY_NODISCARD bool respond_text(struct http_exchange *exchange, uint16_t status, const char *text);
CY_NODISCARD bool respond_interim(struct http_exchange *exchange, uint16_t status, cy_bytes reason,
                                  const struct http_field *fields, uint32_t field_count);

/* -- proxy.c: the request's way -- */
void proxy_start(struct http_exchange *exchange);
/* False when that ended the exchange. */
bool proxy_pump_request(struct http_exchange *exchange);
/* What the next read of this body, coming from one and going to the other of the exchange's carriers, may bring in a
 * pipe. */
uint32_t proxy_pipe_bytes(const struct http_exchange *exchange, const struct relay *relay);
/* It has come to its end. */
void proxy_done(struct http_exchange *exchange);
/* Lets go of the upstream without an answer. */
void proxy_cancel(struct http_exchange *exchange);
/* The upstream failed. Answers 502 or 504, or breaks the client's connection when an answer has begun. `err` stands in
 * the log behind `cause`; OK where that says everything. */
void proxy_fail(struct http_exchange *exchange, uint16_t status, const char *cause, cy_err err);
/* True when there is no answer and the request goes out again on a new connection. */
bool proxy_retry(struct http_exchange *exchange);

/* -- tunnel.c -- */
/* The 101 is with the kernel: bytes flow from here on. Takes the upstream's carrier; the exchange is freed. */
void tunnel_start(struct http_exchange *exchange);
/* The list of the tunnels that a server keeps for its next ones. */
void tunnel_init_spares(struct spare_list *tunnels, struct spare_watch *watch);
/* What the client's carrier tells. `err`: it is gone; CANCELLED: by us. */
void tunnel_on_input(struct http_tunnel *tunnel);
void tunnel_on_written(struct http_tunnel *tunnel);
void tunnel_on_timeout(struct http_tunnel *tunnel);
void tunnel_client_gone(struct http_tunnel *tunnel, cy_err err);

/* -- proxy_head.c -- */
CY_NODISCARD struct buffer *proxy_write_switch_head(struct http_exchange *exchange);
CY_NODISCARD struct buffer *proxy_write_request_head(struct http_exchange *exchange);
CY_NODISCARD struct buffer *proxy_write_response_head(struct http_exchange *exchange);

/* -- proxy_response.c: the response's way -- */
void proxy_on_read(void *owner, struct buffer *owned_buffer, cy_err err);
void proxy_pump_response(struct http_exchange *exchange);
void proxy_on_client_written(struct http_exchange *exchange);

#endif
