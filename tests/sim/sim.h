/* SPDX-License-Identifier: MIT
 *
 * tests/sim/sim.h: a world of simulated clients and upstreams around one http_server, all in one loop on the simulated
 * network, and what each message must be.
 *
 *   sim_client ──► http_server ──► sim_handler: RESPOND, FAIL, or
 *                                  PROXY ──► http_client ──► sim_upstream (three of them)
 *
 * In:   a seed and a row of options. Out: nothing, or sim_fail, which says what was wrong and how to see it again.
 * The plan (sim_plan.c) is drawn first and whole: who asks what, when, how it is answered, what goes wrong. Clients,
 * handler and upstreams carry it out, know each message by the number in its target, and compare what they read with
 * the plan. What an upstream did wrong it writes into the request's `want`; the client judges by that.
 * Invariant: same seed, same row: same run.
 */
#ifndef CY_TESTS_SIM_H
#define CY_TESTS_SIM_H

#include "tests/support/http_model.h"
#include "tests/support/loop_sim.h"
#include "vm/http/server.h"

#define SIM_CLIENTS_MAX 5
#define SIM_CLIENT_REQUESTS_MAX 7
#define SIM_REQUESTS_MAX (SIM_CLIENTS_MAX * SIM_CLIENT_REQUESTS_MAX)
#define SIM_UPSTREAMS 3

/* One line of sim_rows (sim_plan.c): what may happen in its schedules. */
struct sim_row {
    const char *name;
    unsigned share;       /* of 100 schedules */
    bool pieces, reorder; /* loop_sim_options */
    uint32_t resets_per_million, window_bytes;
    bool upstream_faults; /* answers that are cut, late, malformed, or do not come */
    bool idle_closes;     /* upstreams hang up idle connections whenever they like */
    bool client_faults;   /* clients go away, stop reading or sending */
    bool stray;           /* bytes behind an answer, which nobody asked for */
    bool server_ends;     /* the server drains, or is cut off, in the middle */
};
extern const struct sim_row sim_rows[]; /* closed by a NULL name */

enum sim_verdict { SIM_RESPOND, SIM_PROXY, SIM_FAIL };
enum sim_body { SIM_BODY_NONE, SIM_BODY_LENGTH, SIM_BODY_CHUNKED, SIM_BODY_UNTIL_CLOSE };
enum sim_fault {
    SIM_FAULT_NONE,
    SIM_FAULT_CLOSE,      /* the request was read: no answer */
    SIM_FAULT_RESET,      /* at the request's head */
    SIM_FAULT_CUT_HEAD,   /* the connection ends inside the answer's head */
    SIM_FAULT_CUT_BODY,   /* ... or body; reset where FIN would be the body's end */
    SIM_FAULT_STALL_HEAD, /* nothing more, and the connection stays */
    SIM_FAULT_STALL_BODY,
    SIM_FAULT_BAD_HEAD,
    SIM_FAULT_BAD_CHUNK,
    SIM_FAULT_STRAY /* a whole answer too much */
};
enum sim_client_fault {
    SIM_CLIENT_WELL,
    SIM_CLIENT_HALF_CLOSE,  /* FIN behind the last request: answers are still wanted */
    SIM_CLIENT_LEAVES_SENT, /* closes or resets after so many bytes sent */
    SIM_CLIENT_LEAVES_READ, /* ... received */
    SIM_CLIENT_STALLS_SENDING,
    SIM_CLIENT_STALLS_READING
};
/* What became of a request; of `want`, the first four, or SHORT. */
enum sim_outcome { SIM_EXACT, SIM_500, SIM_502, SIM_504, SIM_408, SIM_SHORT, SIM_NO_ANSWER, SIM_OUTCOMES };

struct sim_request {
    /* the plan: what is asked */
    uint32_t id;
    const char *method;
    bool is_head, is_idempotent;
    bool keeps;   /* as the client's Connection says, or its version */
    uint8_t body; /* enum sim_body */
    uint32_t body_bytes;
    bool has_trailer, expects, claims, lists_hop;
    uint32_t patience_ms; /* with Expect: sends the body after that, come what may; 0: waits */
    uint32_t pause_ms;    /* before it is sent */
    /* the plan: what is answered */
    uint8_t verdict; /* enum sim_verdict */
    uint32_t think_ms;
    uint32_t upstream;
    unsigned status;
    uint8_t answer_body; /* enum sim_body: how the upstream frames it */
    uint32_t answer_bytes;
    bool answer_trailer, answer_old, answer_closes, early, sends_continue;
    unsigned interims; /* 102, 103 */
    unsigned slices;   /* writes of the answer, `gap_ms` apart */
    uint32_t gap_ms;
    uint8_t fault;       /* enum sim_fault */
    uint32_t fault_part; /* per thousand of where it strikes */
    bool fault_resets;
    /* what happened */
    uint8_t minor_version;
    struct sim_client *client;
    bool started;                   /* a byte of it was sent */
    bool whole;                     /* all of it */
    unsigned handled;               /* on_request */
    bool given_up;                  /* on_gone */
    bool answered_late;             /* by the handler, while the server drained */
    struct http_exchange *exchange; /* while the handler thinks */
    struct timer think;
    struct sim_world *world;
    unsigned arrivals, executions, answers; /* at upstreams: heads, whole requests, whole answers written */
    unsigned interims_sent, continues_sent;
    uint8_t want, outcome; /* enum sim_outcome */
    uint8_t also;          /* bits 1 << enum sim_outcome: as good, where a race decides */
};

enum sim_ending {
    SIM_ENDS_LATER,
    SIM_ENDED_ITSELF,
    SIM_ENDED_BY_ANSWER,
    SIM_ENDED_BY_FIN,
    SIM_ENDED_BY_RESET
};

struct sim_client {
    struct sim_world *world;
    uint32_t index;
    /* the plan */
    uint8_t minor_version;
    uint8_t fault; /* enum sim_client_fault */
    uint64_t fault_bytes;
    bool fault_resets;
    uint32_t depth; /* requests that may be unanswered at once */
    uint32_t slow_reads, slow_ms;
    uint32_t start_ms, linger_ms;
    uint32_t request_count;
    struct sim_request *requests[SIM_CLIENT_REQUESTS_MAX];
    /* what happens */
    struct loop_connect connect;
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct timer timer, read_timer;
    struct http_model model;
    struct builder out; /* what is being written */
    uint32_t sending, answered;
    bool head_sent;                   /* of requests[sending] */
    bool may_send_body, sending_body; /* behind Expect: a write of its own */
    uint64_t sent_bytes, received_bytes;
    uint64_t body_bytes; /* of the answer that is being read */
    bool is_ours;        /* the answer that is being read is the plan's, not the server's own */
    unsigned interims, continues;
    bool reading, writing, waiting, stalled, write_failed, closing, overfull;
    uint8_t ending; /* enum sim_ending */
    bool done;
};

struct sim_upstream_connection {
    struct sim_upstream_connection *next;
    struct sim_world *world;
    uint32_t upstream;
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct timer timer;
    struct http_model model;
    struct sim_request *request; /* being read or answered */
    uint64_t body_bytes;         /* of the request */
    struct builder out;
    size_t out_begin;
    unsigned slices_left;
    unsigned served;
    bool strayed;    /* has sent an answer too much */
    bool continuing; /* 100 is what is being written */
    bool request_whole, answering, answered, ends_after, resets_after, stalls_after, lingering;
    bool reading, writing;
};

struct sim_upstream {
    struct sim_world *world;
    uint32_t index;
    struct loop_socket *listener;
    struct loop_accept accept;
    struct upstream *upstream;
    struct http_verdict *verdict;
};

struct sim_stats {
    uint64_t schedules, requests, outcomes[SIM_OUTCOMES], retries, hangups, interims, continues, reused,
        turns, simulated_ms;
};

struct sim_world {
    const struct sim_row *row;
    uint64_t seed, state; /* of the plan's random numbers */
    bool trace;
    struct loop *loop;
    struct loop_sim *sim;
    struct log log;
    struct http_client *client;
    struct http_server *server;
    struct address server_address;
    struct sim_upstream upstreams[SIM_UPSTREAMS];
    struct sim_upstream_connection *connections;
    struct sim_client clients[SIM_CLIENTS_MAX];
    uint32_t client_count, done_count;
    struct sim_request requests[SIM_REQUESTS_MAX];
    uint32_t request_count, handled_count, gone_count;
    struct timer end_timer;
    uint32_t end_ms; /* the server ends then; 0: not before its clients */
    bool drains;     /* the row whose server drains while every client has a request on its way */
    bool end_cuts, draining, drained, cut;
    struct sim_stats *stats;
};

/* -- sim_main.c -- */
_Noreturn void sim_fail(const struct sim_world *world, const char *format, ...) CY_PRINTF(2, 3);
void sim_trace(const struct sim_world *world, const char *format, ...) CY_PRINTF(2, 3);
#define SIM_CHECK(world, condition)                                                     \
    do {                                                                                \
        if (!(condition)) sim_fail(world, "%s:%d: %s", __FILE__, __LINE__, #condition); \
    } while (0)

/* -- sim_plan.c -- */
uint64_t sim_random(struct sim_world *world, uint64_t below);
bool sim_chance(struct sim_world *world, unsigned percent);
void sim_plan(struct sim_world *world);
/* `count` bytes of a body from `offset` on; requests' and answers' differ in every request. */
void sim_put_body(struct builder *out, uint32_t id, bool is_answer, uint64_t offset, size_t count);
bool sim_is_body(cy_bytes bytes, uint32_t id, bool is_answer, uint64_t offset);
struct sim_request *sim_find_request(struct sim_world *world, cy_bytes target);
/* Whole, with all that frames it. */
void sim_put_chunks(struct sim_world *world, struct builder *out, uint32_t id, bool is_answer, uint32_t count,
                    bool has_trailer);
/* Is an answer to this HEAD, or with this status, without a body? */
bool sim_answer_is_bare(const struct sim_request *request);
/* Does the request's head say that nothing follows? */
bool sim_is_bodyless(const struct sim_request *request);

/* -- sim_client.c -- */
void sim_client_start(struct sim_client *client);
void sim_client_free(struct sim_client *client);
const char *sim_outcome_name(unsigned outcome);

/* -- sim_upstream.c -- */
void sim_upstream_start(struct sim_upstream *upstream);
void sim_upstream_stop(struct sim_upstream *upstream);
void sim_upstream_free_connections(struct sim_world *world);

/* -- sim_world.c -- */
void sim_run(struct sim_world *world);

#endif
