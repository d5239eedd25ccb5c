/* SPDX-License-Identifier: MIT
 *
 * vm/http/carrier.h: what an exchange needs of whatever carries it: an HTTP/1 connection (server_connection.c) or
 * an HTTP/2 stream (h2_server.c). For vm/http only.
 *
 *   carrier ──exchange_begin, exchange_on_input, exchange_on_written, exchange_on_timeout, exchange_client_gone──►
 *   exchange carrier ◄──────────── the fields and the calls below
 *   ─────────────────────────────────────────────────────── exchange
 *
 * What happens for every request is a field that is read directly (the bytes that wait, the parts of the next write,
 * the timer); what differs between protocols is a call through `type`.
 *
 * Ownership: the carrier frees the exchange (exchange_free), at its end or, where a write of it is outstanding, after
 *       that write's completion.
 * Invariant: at most one write outstanding; its parts and what `hold` holds stay until exchange_on_written.
 */
#ifndef CY_HTTP_CARRIER_H
#define CY_HTTP_CARRIER_H

#include "vm/http/head_write.h"
#include "vm/http/message.h"
#include "vm/http/relay.h"

struct http_exchange;
struct http_tunnel;
struct http_server;
struct exchange_carrier;

/* What the carrier's one timer watches. */
enum carrier_timer {
    CARRIER_TIMER_NONE, /* may still run; does nothing */
    CARRIER_TIMER_BODY,
    CARRIER_TIMER_WRITE,
    CARRIER_TIMER_CONTINUE,
    CARRIER_TIMER_TUNNEL,
    CARRIER_TIMER_OWN /* this and all above: the carrier's own */
};

/* How an exchange leaves its carrier. */
enum carrier_end {
    CARRIER_END_KEPT,         /* answered, the request was read to its end: on to the next */
    CARRIER_END_LAST,         /* answered, and nothing more is to come on this carrier */
    CARRIER_END_LAST_SENDING, /* the same while the client may still be sending: it must not lose the answer */
    CARRIER_END_SHORT, /* the answer ends before the length or last chunk that it promised, which the client sees */
    CARRIER_END_ABORT /* the client must not take what it has for complete */
};

struct exchange_carrier_type {
    const char *name;
    /* Are its bytes a socket's own, so that they may come from and go to pipes (loop.h)? NULL: never. */
    bool (*takes_pipes)(const struct exchange_carrier *carrier);
    bool takes_trailers; /* without chunks: `trailer` is sent behind the answer */
    /* Goes on receiving, unless bytes wait, a read is outstanding, or the client has finished. */
    void (*want_input)(struct exchange_carrier *carrier);
    /* Sends carrier->send, which has parts. The first `head_bytes` of them are a head (0: all is body), in the form
     * that put_* gave it; `last`: nothing of this answer follows. HTTP/1 needs neither. */
    void (*write)(struct exchange_carrier *carrier, size_t head_bytes, bool last);
    /* May the carrier stay after this exchange's answer? */
    bool (*may_keep)(const struct exchange_carrier *carrier, bool length_known);
    void (*end)(struct exchange_carrier *carrier, enum carrier_end end);
    /* No more is sent: the client sees the end of what was. `abort`: it must not take it for complete when the carrier
     * ends. For tunnels; NULL where none can be. */
    void (*shutdown)(struct exchange_carrier *carrier, bool abort);
    cy_bytes (*peer_text)(struct exchange_carrier *carrier);    /* "127.0.0.1": logs, X-Forwarded-For */
    struct stream *(*stream)(struct exchange_carrier *carrier); /* that carries it, for who is at its ends */
    /* The head of an answer, in this order. put_field NULL: the text form of HTTP/1. */
    void (*put_status)(struct exchange_carrier *carrier, struct head_writer *writer, uint16_t status,
                       cy_bytes reason);
    void (*put_field)(struct exchange_carrier *carrier, struct head_writer *writer, cy_bytes name,
                      cy_bytes value);
    void (*put_end)(struct exchange_carrier *carrier, struct head_writer *writer, bool interim);
};

struct exchange_carrier {
    const struct exchange_carrier_type *type;
    struct http_server *server;
    struct http_exchange *exchange; /* NULL between requests */
    struct http_tunnel *tunnel;     /* instead of an exchange, from a 101 to the end */
    struct buffer *input;   /* of the request's body (HTTP/1: and what follows it); NULL rather than empty */
    struct loop_send *send; /* parts of the next write */
    struct relay_hold hold; /* what they point at */
    /* Lines "name: value" CR LF; NULL: none. Good with `input_ended`; set before the last write, or the end. */
    struct buffer *input_trailer, *trailer;
    struct timer timer;
    uint64_t timer_since_ms; /* when it was set, */
    uint32_t timer_after_ms; /* and for how long: bounds may change meanwhile */
    /* Set before want_input: so many bytes of the body may come in a pipe. Good for the read that it begins, if it
     * does. */
    uint32_t pipe_bytes_max;
    uint64_t checked_bytes; /* of the outstanding write: what had gone when the timer last looked */
    uint8_t timer_kind;     /* enum carrier_timer */
    bool writing;
    bool input_ended; /* the client will send no more */
};

static inline void carrier_want_input(struct exchange_carrier *carrier)
{
    if (!carrier->input) carrier->type->want_input(carrier);
}
static inline void carrier_end(struct exchange_carrier *carrier, enum carrier_end end)
{
    carrier->type->end(carrier, end);
}
static inline cy_bytes carrier_peer_text(struct exchange_carrier *carrier)
{
    return carrier->type->peer_text(carrier);
}
/* Consumed bytes leave the input. */
static inline void carrier_drop_empty_input(struct exchange_carrier *carrier)
{
    if (carrier->input && carrier->input->begin == carrier->input->end) buffer_unref(&carrier->input);
}
/* In the server's loop; one timer, so the last call counts. */
void carrier_set_timer(struct exchange_carrier *carrier, unsigned kind, uint32_t after_ms);
/* It may still run, to no effect: a timer costs more to clear than to let pass. */
static inline void carrier_clear_timer(struct exchange_carrier *carrier)
{
    carrier->timer_kind = CARRIER_TIMER_NONE;
}
/* Starts the write, watched by the timer. */
void carrier_write(struct exchange_carrier *carrier, size_t head_bytes, bool last);

/* What a field may take beyond its name and value: ": " and CR LF, or the lengths in front of an HPACK literal. */
#define CARRIER_FIELD_EXTRA_BYTES 12
static inline void carrier_put_field(struct exchange_carrier *carrier, struct head_writer *writer,
                                     cy_bytes name, cy_bytes value)
{
    if (CY_LIKELY(!carrier->type->put_field))
        head_put_field(writer, name, value);
    else
        carrier->type->put_field(carrier, writer, name, value);
}
static inline void carrier_put_length(struct exchange_carrier *carrier, struct head_writer *writer,
                                      uint64_t length)
{
    uint8_t digits[HEAD_DIGITS_MAX];
    carrier_put_field(carrier, writer, CY_BYTES("Content-Length"), head_format_u64(digits, length));
}

#endif
