/* SPDX-License-Identifier: MIT
 *
 * vm/http/load_internal.h: the parts of the load generator among themselves. For vm/http/load*.c and h2_load.c only.
 *
 *   load.c             phases, when a request is due, what is counted
 *   load_connection.c  connections: opened, ready, lost, closed
 *   load_request.c     what is sent: judged, and made once
 *   load_h1.c          a protocol: bytes of requests, answers read and judged
 *   h2_load.c          the other one
 *   load_mix.c         which request comes next
 *
 * A *slot* is room for one request on a connection: HTTP/1 has one, HTTP/2 as many as there are streams at once.
 */
#ifndef CY_HTTP_LOAD_INTERNAL_H
#define CY_HTTP_LOAD_INTERNAL_H

#include "vm/http/h1_body.h"
#include "vm/http/load.h"

struct load_connection;
struct h2_load;
struct h2_load_stream;

/* -- load_mix.c ------------------------------------------------------------------------------------------ */
/* Choices by weight at the same cost for any number of them (Walker's alias method). */
struct load_mix {
    uint32_t count;
    struct load_mix_place {
        uint32_t threshold; /* of 2^32: below it the place itself, else its alias */
        uint32_t alias;
    } * places;
    uint64_t state;
};
CY_NODISCARD cy_err load_mix_init(struct load_mix *mix, const struct load_row *rows, uint32_t count,
                                  uint64_t seed);
void load_mix_fini(struct load_mix *mix);
uint32_t load_mix_next(struct load_mix *mix);

/* -- protocols ------------------------------------------------------------------------------------------- */
struct load_slot {
    struct load_slot *next; /* in the queue of free ones */
    struct load_connection *connection;
    struct h2_load_stream *h2_stream; /* HTTP/2: that carries its request; NULL: none */
    struct timer timer;
    uint64_t due_ns;
    uint64_t body_bytes; /* of the answer, so far */
    uint32_t crc32c;
    uint32_t row;
    uint16_t status; /* of the answer; 0: none yet */
    bool busy;
    bool queued;
};

struct load_protocol {
    const char *name;
    cy_bytes alpn;    /* what a secure stream must have agreed on; nothing agreed is HTTP/1 */
    bool has_streams; /* several requests at once on a connection: options.streams */
    /* Once, before any connection: the bytes of all requests. `fini` (NULL: nothing) also after it failed. */
    cy_err (*prepare)(struct load *load, struct builder *fault);
    void (*fini)(struct load *load);
    /* Takes connection->stream, also on failure, and sets connection->carried: load_connection_opened,
     * load_connection_ended and load_connection_released tell the rest. NULL: the connection reads and writes itself,
     * through `on_read` and `on_end`. */
    cy_err (*start)(struct load_connection *connection);
    void (*close)(struct load_connection *connection, bool reset); /* what `start` took */
    /* May an open connection take another request? NULL: always. */
    bool (*has_room)(const struct load_connection *connection);
    void (*send)(
        struct load_slot *slot); /* on an open connection with room and, HTTP/1, no write outstanding */
    void (*drop)(
        struct load_slot *slot); /* before load_slot_end, where its connection is lost; NULL: nothing to do */
    void (*on_timeout)(struct load_slot *slot); /* a busy one, on an open connection */
    /* Takes the buffer. Ends slots (load_slot_end) or the connection (load_connection_lose). */
    void (*on_read)(struct load_connection *connection, struct buffer *owned_buffer);
    void (*on_end)(struct load_connection *connection); /* the server's end of the stream */
};

/* -- load_request.c -------------------------------------------------------------------------------------- */
bool load_request_has_field(const struct load_options *options, const char *name);
/* Judges rows and fields (VALUE: what is wrong in `fault`), then fills load->requests and load->body. */
CY_NODISCARD cy_err load_request_make(struct load *load,
                                      void (*write_head)(const struct load_options *options,
                                                         const struct load_row *row, struct builder *out),
                                      struct builder *fault);

/* -- connections ----------------------------------------------------------------------------------------- */
enum load_connection_state {
    LOAD_CONNECTION_CLOSED,
    LOAD_CONNECTION_CONNECTING,
    LOAD_CONNECTION_READYING,
    LOAD_CONNECTION_OPEN,
    LOAD_CONNECTION_CLOSING, /* completions are still to come */
    LOAD_CONNECTION_PAUSED   /* after a failure, until the timer */
};

struct load_connection {
    struct load *load;
    struct load_slot *slots;
    struct stream *stream; /* READYING, OPEN */
    struct timer timer;    /* of connecting and of the pause */
    uint8_t state;
    bool connecting, readying, reading, writing; /* outstanding */
    bool carried;        /* the protocol's own: load_connection_released is still to come */
    bool has_failed;     /* pause before the next try */
    uint16_t local_port; /* of the last one that was connected; with on_failure only */
    uint64_t began_ns;   /* when connecting began; the same */
    /* HTTP/1 */
    bool in_body, keeps;
    struct h1_body body;
    struct buffer *input; /* of a head that is not complete */
    struct loop_connect connect;
    struct stream_ready ready;
    struct stream_read read;
    struct stream_write write;
};

void load_connection_open(struct load_connection *connection);
/* load_on_closed again after LIMIT_LOAD_PAUSE_MS. */
void load_connection_pause(struct load_connection *connection);
/* Closes; load_on_closed follows, at once or when the last completion is in. Slots must not be busy. */
void load_connection_close(struct load_connection *connection, bool reset);
/* The same in the middle of things: what is under way on it ends with `fault`. */
void load_connection_lose(struct load_connection *connection, enum load_fault fault);
/* Sends what stands in connection->write.send. */
void load_connection_write(struct load_connection *connection);
/* For protocols that carry connections themselves: requests may be sent; it is closed (`err`: why, where it never was
 * open); nothing of it is outstanding any more. */
void load_connection_opened(struct load_connection *connection);
void load_connection_ended(struct load_connection *connection, cy_err err);
void load_connection_released(struct load_connection *connection);

/* -- the run --------------------------------------------------------------------------------------------- */
enum load_phase {
    LOAD_PHASE_NEW,
    LOAD_PHASE_OPENING,
    LOAD_PHASE_WARM_UP,
    LOAD_PHASE_MEASURING,
    LOAD_PHASE_DRAINING,
    LOAD_PHASE_STOPPING,
    LOAD_PHASE_ENDED
};

/* A row as it is sent, and what its answers must be like. */
struct load_request {
    cy_bytes head; /* as the protocol has it: text, or records (h2_head.h) */
    struct load_expectation expect;
    bool is_head;
};

struct load {
    struct load_options options; /* with defaults filled in */
    const struct load_protocol *protocol;
    uint32_t slot_count; /* per connection */
    struct h2_load *h2;  /* NULL: HTTP/1 */
    struct load_mix mix;
    struct load_request *requests;
    struct builder bytes; /* that `requests` and `body` point into */
    cy_bytes body;
    bool wants_crc32c;
    struct load_connection *connections;
    struct load_slot *slots;
    struct load_slot *free_first, *free_last; /* open loop: the longest unused one first */
    uint8_t phase;                            /* enum load_phase */
    uint32_t open_count, busy_count;
    uint32_t opening_next, opening_count; /* connections not yet tried; under way */
    uint32_t answered_idle;
    uint32_t unclosed_count;
    uint64_t finished_count;
    struct timer timer; /* of the phase */
    /* the schedule */
    uint64_t schedule_begin_ns, schedule_index, next_due_ns;
    uint64_t begin_ns, end_ns; /* of the measurement: due in [begin, end) */
    uint64_t measured_started_count;
    bool starved; /* a request is due and no slot was free */
    uint64_t sample_ns;
    struct cpu_usage self_begin, watched_begin;
    /* waking at due times */
    struct timer pace_timer;
    struct loop_socket *alarm;
    struct loop_ready alarm_ready;
    uint64_t alarm_ns; /* what it is set to; 0: nothing */
    int alarm_descriptor;
    bool alarm_outstanding;
    struct http_field
        fields[LIMIT_HTTP_FIELDS]; /* of the head that is being read; heads are read at one go */
    struct load_result result;
};

void load_on_open(struct load_connection *connection);
void load_on_closed(struct load_connection *connection);
/* Before the slots of the connection learn of it. May end the run, and with it this connection. */
void load_on_connect_failed(struct load_connection *connection, enum load_fault fault, cy_err err);
/* The request of a slot is over; `fault` NONE: a whole answer is in, and is compared with what is expected. */
void load_slot_end(struct load_slot *slot, enum load_fault fault);
/* The slot can take the next request (its connection is open and stays). */
void load_slot_free(struct load_slot *slot);
void load_count_received(struct load *load, size_t count);

#endif
