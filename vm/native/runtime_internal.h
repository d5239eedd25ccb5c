/* SPDX-License-Identifier: MIT
 *
 * vm/native/runtime_internal.h: what natives reach through vm_host(): the process around one VM.
 *
 * Life of a runtime: main runs with no loop yet ─► process.workers parks main; the driver, outside of vm_run, becomes
 * master or worker ─► the first native that needs the network makes the loop ─► http.serve parks main; a generation's
 * instance is configured, listeners open, the worker says READY ─► requests ─► graceful stop wakes main ─► exit.
 *
 * Invariant: bytecode runs only inside runtime.c's driver (vm_run), so a process is only ever forked outside of it.
 */
#ifndef CY_NATIVE_RUNTIME_INTERNAL_H
#define CY_NATIVE_RUNTIME_INTERNAL_H

#include "vm/base/log.h"
#include "vm/base/map.h"
#include "vm/http/client.h"
#include "vm/http/server.h"
#include "vm/native/generation.h"
#include "vm/native/runtime.h"
#include "vm/net/dns.h"
#include "vm/net/loop.h"
#include "vm/net/master.h"
#include "vm/run/vm.h"

#define RUNTIME_LISTEN_MAX 16

/* What process.workers asked for; the driver carries it out once vm_run has returned. */
struct workers_request {
    bool asked;         /* once in the life of a process */
    bool pending;       /* the driver has not done it yet */
    char label[48];     /* for the log; empty: none */
    wait_ticket ticket; /* main, parked */
    uint32_t count;
    char *user; /* owned; NULL: stay who we are */
};

/* One call of configure on its way. Counted by nobody: made by runtime_configure, freed by its `done`. */
struct configuring {
    struct runtime *runtime;
    struct loaded_program *loaded;
    struct instance *instance; /* one reference */
    uint32_t number;           /* of the generation */
    int exit_code;             /* 0: configured */
    struct timer skipped;      /* the program has no configure: done comes from the loop */
    void (*done)(struct configuring *configuring, cy_value result);
};

/* A program in memory, found again by its bytes. Kept until the process ends: a reload with new code is rare and
 * small. */
struct loaded_program {
    struct loaded_program *next;
    struct program *program;
    cy_bytes bytes; /* owned copy: equal bytes are the same program */
};

/* The serving side of http.serve. */
struct serving {
    bool active;
    wait_ticket ticket;               /* main, parked until the graceful stop */
    char *listen[RUNTIME_LISTEN_MAX]; /* owned texts */
    uint32_t listen_count;
    char *banner;              /* owned, may be NULL */
    struct instance *instance; /* whose handle is called; swapped on reload */
    cy_value handle;           /* borrowed from the instance */
    bool ready;
    bool stopping;
    struct loop_socket *signals_socket; /* without a master: SIGTERM and SIGINT */
    struct loop_ready signals_ready;
    int signals_descriptor;
    struct loop_socket *link_socket;
    struct loop_ready link_ready;
    struct http_call *free_calls;
};

struct runtime {
    const struct runtime_options *options;
    struct log log;
    struct vm *vm;
    struct loaded_program *programs; /* all that were ever loaded; a reload with new code adds one */
    struct instance *instance;       /* main runs here */
    struct loop *loop;               /* NULL until needed */
    struct dns *dns;
    struct http_client *client;
    struct http_server *server;
    struct map literal_upstreams; /* URL text to struct upstream, one reference each */
    struct generation_plan plan;  /* what a generation is made of, set by process.workers */
    cy_value input;               /* the map that main gave, owned */
    struct workers_request workers;
    uint32_t worker_index;
    struct worker_link *link; /* to the master; NULL without one */
    struct serving serving;
    struct runtime_checking *checking; /* in the master's checker only */
    bool main_ended;
    bool exit_requested;
    int exit_code;
};

static inline struct runtime *runtime_of(struct vm *vm) { return (struct runtime *)vm_host(vm); }

/* The loop and the HTTP client, made on first use. */
CY_NODISCARD cy_err runtime_need_loop(struct runtime *runtime);
CY_NODISCARD cy_err runtime_need_client(struct runtime *runtime);

/* Leaves the driver with this code as soon as vm_run returns. The first request wins. */
void runtime_request_exit(struct runtime *runtime, int exit_code);

/* Makes an instance of the generation's program and starts its configure. `done` is called once, from vm_run, when
 * that ended, and frees its argument with runtime_configuring_free. When nothing could be started the error is
 * returned, after a message on stderr. */
CY_NODISCARD cy_err runtime_configure(struct runtime *runtime, const struct generation *generation,
                                      void (*done)(struct configuring *configuring, cy_value result));
void runtime_configuring_free(struct configuring **configuring);

/* Runs ready fibers and one loop turn, until `*flag` or an exit request. For the driver and the checker. */
void runtime_drive(struct runtime *runtime, const bool *flag);

/* Writes a program's error for people to stderr: a configuration error as its bare message, others with their stack.
 * */
void runtime_report_error(struct runtime *runtime, cy_value error);

/* vm/native/serve.c */
enum native_outcome serve_start(struct runtime *runtime, struct native_call *call);
void serve_fini(struct runtime *runtime);
void serve_free_calls(struct runtime *runtime); /* after vm_free */

#endif
