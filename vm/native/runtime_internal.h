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

#include "vm/base/limits.h"
#include "vm/base/log.h"
#include "vm/base/map.h"
#include "vm/base/spare.h"
#include "vm/http/client.h"
#include "vm/http/server.h"
#include "vm/native/generation.h"
#include "vm/native/input.h"
#include "vm/native/interrupt.h"
#include "vm/native/old_instances.h"
#include "vm/native/runtime.h"
#include "vm/net/address_range.h"
#include "vm/net/dns.h"
#include "vm/net/loop.h"
#include "vm/net/master.h"
#include "vm/net/tls.h"
#include "vm/net/unix_socket.h"
#include "vm/run/holds.h"
#include "vm/run/vm.h"
#include "vm/sys/output.h"
#include "vm/sys/path_rules.h"
#include "vm/sys/shared.h"

#include <stdatomic.h>

/* What process.workers asked for; the driver carries it out once vm_run has returned. */
struct workers_request {
    bool asked;                        /* once in the life of a process */
    bool pending;                      /* the driver has not done it yet */
    char label[LIMIT_LABEL_BYTES + 1]; /* for the log; empty: none */
    wait_ticket ticket;                /* main, parked */
    uint32_t count;
    uint64_t drain_ms; /* 0: LIMIT_WORKER_DRAIN_MS */
    char *user;        /* owned; NULL: stay who we are */
};

/* One call of configure on its way. Counted by nobody: made by configure_start, freed by its `done`. */
struct configuring {
    struct configuring *next; /* runtime->configuring */
    struct runtime *runtime;
    struct loaded_program *loaded;
    struct instance *instance;         /* one reference */
    uint32_t number;                   /* of the generation */
    int exit_code;                     /* 0: configured */
    struct timer skipped;              /* the program has no configure: done comes from the loop */
    struct http_server_options bounds; /* of http.bounds, for when it is adopted */
    bool has_bounds;
    cy_bytes extras; /* the generation's extra files, an owned copy */
    void (*done)(struct configuring *configuring, cy_value result);
};

/* A program in memory, found again by its bytes. Kept until the process ends: a reload with new code is rare and
 * small. */
struct loaded_program {
    struct loaded_program *next;
    struct program *program;
    cy_bytes bytes; /* owned copy: equal bytes are the same program */
};

/* A listener whose clients come through a load balancer. */
struct serve_proxied {
    char *address;          /* owned: as `listen` has it */
    uint32_t trusted_count; /* 0: everybody */
    struct address_range trusted[LIMIT_PROXY_PROTOCOL_PEERS];
};

/* What a server has beside its listeners: options of http.serve, or of what configure returns. */
struct serve_extra {
    char *log_to;       /* owned: "stdout" or a path; NULL: no access log */
    char *admin;        /* owned: an address; NULL: none */
    uint8_t log_format; /* enum access_log_format */
    uint32_t proxied_count;
    struct serve_proxied *proxied[LIMIT_SERVE_LISTEN]; /* owned */
};

/* A UNIX socket that listens without a master. */
struct serve_socket {
    struct builder path;
    struct unix_socket_file file;
};

/* Where http.serve listens. */
struct serve_address {
    char *text;             /* owned */
    struct tls_server *tls; /* a reference; NULL: plain */
    struct http_listener *listener;
};

/* Those that a generation names. */
struct serve_addresses {
    struct serve_address rows[LIMIT_SERVE_LISTEN];
    uint32_t count;
};

/* The serving side of http.serve. */
struct serving {
    bool active;
    wait_ticket ticket; /* main, parked until the graceful stop */
    struct serve_address listen[LIMIT_SERVE_LISTEN];
    uint32_t listen_count;
    char *banner;                      /* owned, may be NULL */
    struct http_server_options bounds; /* of http.serve; a generation's own go before them */
    struct instance *instance;         /* whose handle is called; swapped on reload */
    cy_value handle;                   /* borrowed from the instance */
    uint32_t generation_number;        /* of the instance */
    struct old_instances old;          /* those before it that requests still run on */
    bool ready;
    bool stopping;
    uint64_t stop_asked_ms;             /* without a master: when the first signal came; 0: none did */
    struct loop_socket *signals_socket; /* without a master: SIGTERM and SIGINT */
    struct loop_ready signals_ready;
    struct timer signals_timer; /* nothing is served any more: until they are given back */
    int signals_descriptor;     /* -1: none */
    struct loop_socket *link_socket;
    struct loop_ready link_ready;
    struct spare_list spare_calls; /* of struct http_call */
    struct serve_extra extra;
    bool extra_by_configure; /* http.serve named none, so generations may change it */
    struct access_log *access_log;
    struct serve_socket sockets[LIMIT_SERVE_LISTEN + 1]; /* and admin */
    uint32_t socket_count;
    struct http_server *admin_server;
    uint32_t undrained_count; /* servers */
};

/* A table of shared.table. */
struct shared_named {
    char *name; /* owned */
    struct shared_table *table;
};

struct helper_pool;

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
    struct worker_link *link;    /* to the master; NULL without one */
    struct timer deadline_timer; /* runs the VM when a task's deadline has come */
    uint64_t deadline_ns;        /* what it is set to; UINT64_MAX: not set */
    struct serving serving;
    struct configuring *configuring;   /* calls of configure on their way */
    struct runtime_checking *checking; /* in the master's checker only */
    struct builder wanted;             /* there: files that configure asked for (generation.h) */
    uint8_t tls_seed[TLS_SEED_BYTES];  /* of session tickets, one for all workers */
    bool has_tls_seed;
    /* -- files (job.c) -- */
    struct path_rules *rules;
    struct helper_pool *helpers; /* NULL until needed */
    struct job_bounds {
        _Atomic uint64_t
            bytes; /* outside of the VM's heap that operations hold: memory_hold; it may outlive the VM */
        atomic_uint waiting; /* jobs whose pipe does not answer, each on a thread */
    } job_bounds;
    bool helpers_hang;  /* at the end: a job still looks at the rules and at us */
    bool deadline_seen; /* some task has, or had, a deadline */
    struct loop_socket *helpers_socket;
    struct loop_ready helpers_ready;
    /* -- output (runtime_output.c) -- */
    struct output *
        outputs[2]; /* of descriptors 1 and 2, one for both where they are one file; NULL: written in place */
    struct timer repeats_timer;
    /* -- shared memory (native_shared.c), made before the workers -- */
    struct serve_metrics *metrics;
    struct shared_table *counters;
    struct shared_named tables[LIMIT_SHARED_TABLES];
    uint32_t table_count;
    struct native_run *ending_runs; /* killed, not gone yet (native_run.c) */
    struct interrupt interrupt;
    struct input input_stream; /* standard input */
    bool closing;
    bool main_ended;
    bool exit_requested;
    int exit_code;
    struct profile *profile; /* NULL without --profile */
    struct holds holds;      /* with --stats */
};

static inline struct runtime *runtime_of(struct vm *vm) { return (struct runtime *)vm_host(vm); }

/* The loop and the HTTP client, made on first use. */
CY_NODISCARD cy_err runtime_need_loop(struct runtime *runtime);
CY_NODISCARD cy_err runtime_need_client(struct runtime *runtime);

/* What main gets: a list of str. */
CY_NODISCARD cy_err runtime_main_args(struct runtime *runtime, cy_value *list_out);

/* Leaves the driver with this code as soon as vm_run returns. The first request wins. */
void runtime_request_exit(struct runtime *runtime, int exit_code);

/* The parts of runtime_run, for the REPL: memory and options; the VM; giving back all of it. */
CY_NODISCARD cy_err runtime_new(const struct runtime_options *options, struct runtime **runtime_out);
/* First: the folders of --allow and --deny are opened before anything runs, and stay the ones that they were then.
 * Which one failed is told. */
CY_NODISCARD cy_err runtime_open_rules(struct runtime *runtime);
CY_NODISCARD cy_err runtime_open(struct runtime *runtime);
void runtime_free(struct runtime **runtime);

/* Runs ready fibers and one loop turn, until `*flag` or an exit request. For the driver and the checker. */
void runtime_drive(struct runtime *runtime, const bool *flag);

/* Writes a program's error for people to stderr: a configuration error as its bare message, others with their stack. */
void runtime_report_error(struct runtime *runtime, cy_value error);

/* "who: stop: why", and where. */
void runtime_report_stop(struct runtime *runtime, const char *who, cy_value record, cy_err stop);
/* Whether this instance's configure has not ended yet: it may not look at the world, so that every worker makes the
 * same of its input as the checker did. */
struct configuring *runtime_configuring(const struct runtime *runtime,
                                        const struct instance *instance); /* or NULL */
bool runtime_is_configuring(const struct runtime *runtime, const struct instance *instance);
/* Made on first use; before the workers, so that each opens the others' tickets. */
CY_NODISCARD cy_err runtime_tls_seed(struct runtime *runtime, const uint8_t **seed_out);

/* -- vm/native/runtime_output.c ---------------------------------------------------------------------------- */

/* What print, print_error and the log write goes to the reader, who is waited for, until the process serves; from
 * then on to threads, and a reader that stops reading loses lines. */
void runtime_output_detach(struct runtime *runtime);
cy_err runtime_put(void *host, int descriptor, cy_bytes text); /* vm_options.put */
uint64_t runtime_output_dropped(struct runtime *runtime);
void runtime_tell_repeats(
    struct runtime *runtime);                      /* after each turn: sees that counted log lines are told */
void native_run_leave(struct runtime *runtime);    /* what was killed and is not gone: no longer waited for */
void runtime_output_shut(struct runtime *runtime); /* writes what is left; may wait as output.h says */

/* -- vm/native/native_shared.c ----------------------------------------------------------------------------- */
CY_NODISCARD cy_err runtime_make_shared(struct runtime *runtime); /* counters, before the workers */
void runtime_free_shared(struct runtime *runtime);

/* -- vm/native/configure.c --------------------------------------------------------------------------------- */

/* The program with these bytes, from memory or loaded now. A refusal is on stderr. */
CY_NODISCARD cy_err configure_load_program(struct runtime *runtime, cy_bytes bytes,
                                           struct loaded_program **loaded_out);
/* An instance of it; a failure is on stderr. */
CY_NODISCARD cy_err configure_new_instance(struct runtime *runtime, struct loaded_program *loaded,
                                           struct instance **instance_out);
void configure_free_programs(struct runtime *runtime); /* after vm_free */
/* Makes an instance of the generation's program and starts its configure. `done` is called once, from the loop, when
 * that ended, and frees its argument with configuring_free. When nothing could be started the error is returned,
 * after a message on stderr. */
CY_NODISCARD cy_err configure_start(struct runtime *runtime, const struct generation *generation,
                                    void (*done)(struct configuring *configuring, cy_value result));
void configuring_free(struct configuring **configuring);

/* -- vm/native/runtime_test.c ------------------------------------------------------------------------------ */

void runtime_test_all(struct runtime *runtime, struct loaded_program *loaded);

/* -- vm/native/runtime_report.c ---------------------------------------------------------------------------- */

CY_NODISCARD cy_err runtime_report_open(struct runtime *runtime); /* before the VM is made */
void runtime_report_worker(struct runtime *runtime);              /* this process became a worker */
void runtime_report_end(struct runtime *runtime);                 /* while the VM is still there */
void runtime_report_fini(struct runtime *runtime);                /* after it */

/* -- vm/native/serve.c ------------------------------------------------------------------------------------- */

enum native_outcome serve_start(struct runtime *runtime, struct native_call *call);
/* The first generation is configured: listen, and say READY. */
void serve_begin(struct runtime *runtime);

/* -- vm/native/serve_listen.c ------------------------------------------------------------------------------ */

/* A list of addresses, or {address, tls} maps, as rows. On failure a text for people. */
CY_NODISCARD cy_err serve_addresses_read(struct vm *vm, cy_value list, struct serve_address *rows,
                                         uint32_t *count_out, struct builder *fault);
void serve_addresses_fini(struct serve_address *rows, uint32_t *count);
/* What configure returned may say where to listen (`count` 0: it does not). False after a message on stderr; all that
 * may fail does so here, before a generation is adopted. */
CY_NODISCARD bool serve_read_result(struct runtime *runtime, cy_value result,
                                    struct serve_addresses *addresses_out);
/* Before the server listens all of it, afterwards what TLS the addresses have. */
void serve_use_addresses(struct runtime *runtime, struct serve_addresses *owned_addresses);
CY_NODISCARD bool serve_listen(struct runtime *runtime);

void serve_fini(struct runtime *runtime);
void serve_free_calls(struct runtime *runtime); /* after vm_free */

/* -- vm/native/serve_address.c ------------------------------------------------------------------------------- */

/* May the program use this UNIX socket? As net.connect: only where it may write. */
CY_NODISCARD cy_err serve_address_may(const struct runtime *runtime, cy_bytes path);
/* Opens what the address names, and gives each descriptor to `take`, which owns it. False after a message and an exit
 * request. */
bool serve_address_open(struct runtime *runtime, const char *text,
                        cy_err (*take)(void *context, int owned_descriptor), void *context);
void serve_addresses_close(struct runtime *runtime); /* removes the files of UNIX sockets */

/* -- vm/native/serve_extra.c --------------------------------------------------------------------------------- */

/* One option. False: the name is none of ours, or its value has the wrong kind. Errors are in `err_out`, and in words
 * in `fault`. */
bool serve_extra_read(struct vm *vm, cy_bytes name, cy_value value, struct serve_extra *extra,
                      struct builder *fault, cy_err *err_out);
void serve_extra_fini(struct serve_extra *extra);
/* NULL: no PROXY protocol there. */
const struct serve_proxied *serve_extra_proxied(const struct serve_extra *extra, const char *address);
/* What configure returned: would it do? For the checker. Messages are on stderr. */
bool serve_extra_check(struct runtime *runtime, cy_value result);
bool serve_extra_begin(struct runtime *runtime, cy_value result);  /* the first generation */
void serve_extra_change(struct runtime *runtime, cy_value result); /* a newer one, adopted */
void serve_extra_reopen(struct runtime *runtime);                  /* SIGUSR1 */
void serve_extra_close(struct runtime *runtime);

/* -- vm/native/serve_generation.c -------------------------------------------------------------------------- */

/* Configures the generation to begin with; serve_begin follows, or an exit request. */
CY_NODISCARD cy_err serve_generation_first(struct runtime *runtime);
/* Configures a newer one beside it. The master hears whether it was adopted. */
void serve_generation_reload(struct runtime *runtime, cy_bytes bytes, uint32_t number);
void serve_generation_fini(struct runtime *runtime);

#endif
