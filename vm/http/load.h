/* SPDX-License-Identifier: MIT
 *
 * vm/http/load.h: sends many requests to one address and measures how they are answered.
 *
 * In:   an address, requests to choose from, how many connections, and how: closed loop (each connection sends its next
 *       request when it has the answer) or open loop (requests are due at a fixed rate, whatever the server does).
 * Out:  counts, faults by kind, and a histogram of latencies; `done` once, from the loop.
 *
 * No coordinated omission: in the open loop latency runs from the moment at which a request was *due*, also when no
 * connection was free to send it, and what is still waiting when the run ends is counted with the time it has waited.
 * In the closed loop latency runs from the sending, and a server that stalls delays the next request: so say that
 * beside its percentiles.
 *
 *   load_new ─ load_start ─► OPENING ─► WARM_UP ─► MEASURING ─► DRAINING ─► STOPPING ─► done ─ load_free
 *
 * What carries the requests is a struct load_protocol (HTTP/1, HTTP/2) over whatever stream `make_stream` gives, plain
 * TCP by default.
 */
#ifndef CY_HTTP_LOAD_H
#define CY_HTTP_LOAD_H

#include "vm/base/builder.h"
#include "vm/base/histogram.h"
#include "vm/http/message.h"
#include "vm/net/stream.h"
#include "vm/sys/usage.h"

enum load_fault {
    LOAD_FAULT_NONE,
#define LOAD_FAULT(name, word, english, korean) LOAD_FAULT_##name,
#include "vm/http/load_fault.def"
#undef LOAD_FAULT
    LOAD_FAULT_COUNT
};
const char *load_fault_word(unsigned fault);
const char *load_fault_text(unsigned fault, bool korean);

/* What an answer must be like. */
struct load_expectation {
    uint16_t status; /* 0: 200..399 */
    bool has_length, has_crc32c;
    uint64_t length;
    uint32_t crc32c; /* of the body as sent, chunk lines removed */
};

/* One of the requests to choose from. Views are copied. */
struct load_row {
    cy_bytes method;    /* a token; empty: GET */
    cy_bytes authority; /* Host */
    cy_bytes target;    /* "/path?query"; empty: "/" */
    uint32_t weight;    /* how often, relative to the others; at least 1 */
    struct load_expectation expect;
};
struct load_field {
    cy_bytes name, value;
};

/* One request that failed, or a connection that could not be opened. */
struct load_failure {
    enum load_fault fault;
    uint16_t status;     /* of the answer; 0: none came */
    uint16_t local_port; /* of the connection that it was on; 0: on none */
    uint64_t began_ns;   /* when that connection was begun, by the loop's clock; 0: on none */
    uint64_t failed_ns;
};

struct load_protocol;
extern const struct load_protocol load_http1, load_http2;

enum load_keeping {
    LOAD_KEEP, /* HTTP/1.1, or HTTP/1.0 with Connection: Keep-Alive */
    LOAD_NEW   /* a connection per request: Connection: close; ours is reset once it has the whole answer */
};

struct load_options {
    struct loop *loop;
    struct address address;
    const struct load_protocol *protocol; /* NULL: load_http1 */
    /* Makes the stream of a new connection (TLS ...). Takes the socket, also on failure. NULL: plain TCP. */
    cy_err (*make_stream)(void *context, struct loop *loop, struct loop_socket *owned_socket,
                          struct stream **stream_out);
    void *make_stream_context;
    /* Of a stream that make_stream made, once ready: did it resume a session? NULL: nobody counts handshakes. */
    bool (*is_resumed)(struct stream *stream);
    const struct load_row *rows;
    uint32_t row_count;
    const struct load_field *fields; /* of every request */
    uint32_t field_count;
    cy_bytes body; /* of every request; not empty: with Content-Length */
    uint32_t connections;
    uint32_t streams; /* HTTP/2: requests at once on each connection; 0: 1, as elsewhere and with LOAD_NEW */
    bool http10;
    uint8_t keeping;   /* enum load_keeping */
    bool same_body;    /* each request's answers must have the body of its first answer */
    bool idle;         /* one request on each connection; then they are held open for duration_ms */
    bool fine_pacing;  /* open loop: due times to the microsecond (needs alarm.h); else to the millisecond */
    double rate_per_s; /* > 0: open loop */
    uint32_t warm_up_ms;        /* traffic that is not counted */
    uint32_t duration_ms;       /* of what is counted; 0: until request_count_max */
    uint64_t request_count_max; /* 0: until duration_ms; both: what comes first */
    /* Of connecting (HTTP/2: until the first SETTINGS), and of one request from its sending; 0: 10,000. */
    uint32_t timeout_ms;
    uint32_t drain_ms;    /* after the end, for answers that are on their way; 0: 2,000 */
    uint64_t seed;        /* of the choice among rows */
    const pid_t *watched; /* processes whose CPU time is read at both ends of the measurement */
    uint32_t watched_count;
    void *owner;
    void (*on_idle)(void *owner); /* may be NULL; with `idle`: all have had their answer */
    /* May be NULL. Once for each that `faults` counts, and for those outside of the measurement. From inside the run:
     * it may note, not stop. */
    void (*on_failure)(void *owner, const struct load_failure *failure);
    void (*done)(void *owner);
};

struct load_result {
    cy_err err; /* why nothing could be measured: connecting failed while connections were opened */
    uint64_t elapsed_ns;
    uint64_t answered_count; /* well, within the elapsed time: for requests per second and per CPU second */
    uint64_t measured_count; /* requests that were due within the measurement, well answered or not */
    uint64_t
        well_count; /* of these; their latencies are in the histogram, and those of TIMEOUT and UNANSWERED */
    uint64_t received_bytes; /* heads and bodies of HTTP, within the elapsed time */
    uint64_t opened_count;   /* connections, of the whole run */
    uint64_t handshake_count,
        resumed_count;     /* with is_resumed: handshakes of the whole run; those that resumed */
    uint64_t goaway_count; /* HTTP/2: connections, of the whole run, that the server ended with GOAWAY */
    uint32_t
        streams_allowed; /* HTTP/2: the least SETTINGS_MAX_CONCURRENT_STREAMS that a server said; 0: none yet */
    uint64_t queued_count; /* open loop: due when no connection was free */
    uint64_t faults[LOAD_FAULT_COUNT];
    uint64_t statuses[600];   /* of the answers that were due within the measurement */
    struct histogram latency; /* ns */
    struct histogram lag;     /* ns; open loop: how late we sent while a connection was free: our own fault */
    struct cpu_usage self;    /* within the elapsed time */
    struct cpu_usage watched; /* the sum */
    bool has_watched;         /* false also when one of them could not be read */
};

struct load;
/* Are these connections times streams (0: one) within LOAD_SLOTS? */
bool load_slots_fit(uint64_t connections, uint64_t streams);
/* VALUE: `fault` (may be NULL) says in English what cannot stand in a request; TOO_MANY: which limit was passed. */
CY_NODISCARD cy_err load_new(const struct load_options *options, struct load **load_out,
                             struct builder *fault);
void load_start(struct load *load);
/* Ends it early, as if the time were up. `done` follows. */
void load_stop(struct load *load);
/* Counts so far, for progress; all of it once `done` was called. Borrowed. */
const struct load_result *load_read(const struct load *load);
uint64_t load_finished_count(const struct load *load); /* requests that ended in any way since the start */
uint32_t load_open_count(const struct load *load);     /* connections that are open now */
bool load_is_measuring(const struct load *load);
/* Only before load_start or after `done`, and not from inside it. */
void load_free(struct load **load);

#endif
