/* SPDX-License-Identifier: MIT
 *
 * vm/net/master.h: one master, many workers, and the channel between them.
 *
 * In:   how to load a generation (program, configuration, secrets as one block of bytes) and how to check one.
 * Out:  master_run returns in every worker, with a link to the master; in the master it returns when all is over.
 *
 *     signal           what the master does
 *     ---------------  -------------------------------------------------------------------------------
 *     SIGHUP           load, check in a child; accepted: numbered, sealed, sent to every worker;
 *                      refused: the old one stays
 *     SIGTERM, SIGINT  graceful stop: workers finish what they have; the drain time ends them, or a second
 *                      signal (SIGNALS_PAUSE_MS behind the first one at least). Where our workers finish
 *                      already, the first one closes clients between two requests and changes nothing
 *                      else. Workers themselves ignore both
 *     SIGUSR1          workers reopen logs
 *     SIGUSR2          binary upgrade: the command we were started with is started again, the listeners
 *                      in its hands; once it serves, our workers finish what they have and we leave.
 *                      Where it fails we go on, and the log says why
 *
 * Invariant: the master runs no program code after the first fork, holds no loop and no thread, and signals only
 *       processes that it forked and has not reaped. It keeps the listening descriptor of each (address, worker
 *       slot), so that no connection that waits to be accepted is lost when a worker dies.
 * Not here:  what a generation means (vm/native).
 */
#ifndef CY_NET_MASTER_H
#define CY_NET_MASTER_H

#include "vm/base/builder.h"
#include "vm/base/error.h"
#include "vm/base/log.h"
#include "vm/net/address.h"

/* -- the master ------------------------------------------------------------------------------------------ */
enum { MASTER_CHECK_WANTS = 100 };

struct master_options {
    uint32_t worker_count; /* 1..LIMIT_WORKERS */
    const char *user;      /* whom workers and checker become when the master is root; NULL: stay */
    struct log *log;       /* borrowed */
    void *context;
    uint64_t drain_ms; /* time for a graceful stop; 0: LIMIT_WORKER_DRAIN_MS */
    uint64_t check_ms; /* time of one check; 0: LIMIT_GENERATION_CHECK_MS */
    /* argv of this process, for a binary upgrade: its first word is looked up again. NULL: there is no upgrade. */
    const char *const *command;
    struct master_counters *counters; /* NULL: nobody wants to know */
    /* In the master: reads the bytes of a new generation; on failure a message for people. */
    /* `wanted` is what earlier checks of it asked for, one after the other. */
    cy_err (*load_generation)(void *context, cy_bytes wanted, struct builder *bytes_out,
                              struct builder *message_out);
    /* In a child that ends afterwards: 0 when this generation would start, else an exit code. Prints its own
     * message. MASTER_CHECK_WANTS: it cannot be told without more, which `wanted_out` says in words that
     * load_generation understands; it is loaded and checked again, at most LIMIT_GENERATION_ROUNDS times. */
    int (*check)(void *context, cy_bytes generation, struct builder *wanted_out);
    /* In the master, once: every worker is ready. `banner` is what worker 0 said. */
    void (*on_ready)(void *context, cy_bytes banner);
};

/* Written by the master, read by anybody: it lies in memory that all share. */
struct master_counters {
    uint64_t workers_restarted, reloads, reloads_refused, upgrades_failed;
};

struct worker_link;
enum master_role { MASTER_WORKER, MASTER_ENDED };
struct master_result {
    int exit_code;            /* MASTER_ENDED: of the process */
    uint32_t worker_index;    /* MASTER_WORKER */
    struct worker_link *link; /* MASTER_WORKER: owned */
};
/* Call it with one thread, before loop, TLS or JIT exist. The first generation is checked like every other, so that a
 * mistake in it is reported once and not by every worker; its exit code becomes the master's. A worker that ends
 * before it was ready with one of the exit codes 1..5 during the first start ends everything with that code. A worker
 * that ends with 0 is done; when all are, the master ends with 0. Any other end: it is started again, at once the
 * first time, then with pauses that double from 100 ms to LIMIT_WORKER_BACKOFF_MS. */
enum master_role master_run(const struct master_options *options, struct master_result *result_out);

/* -- the worker's end ------------------------------------------------------------------------------------ */
enum worker_message_kind {
    WORKER_MESSAGE_STOP,       /* finish what runs, then exit with 0 */
    WORKER_MESSAGE_GENERATION, /* a new generation: adopt it and answer with worker_adopted */
    WORKER_MESSAGE_REOPEN_LOGS,
    WORKER_MESSAGE_MASTER_GONE, /* stop as with STOP */
};
struct worker_message {
    enum worker_message_kind kind;
    uint32_t generation_number;
    cy_bytes generation; /* borrowed during the call */
    uint32_t idle_ms;    /* STOP: others serve already; clients between two requests may stay so long */
};

void worker_link_free(struct worker_link **link);
/* The generation to start with; appends its bytes to a builder of secrets. Waits for the master; CLOSED when it is
 * gone. The same one again until worker_ready. */
CY_NODISCARD cy_err worker_generation(struct worker_link *link, uint32_t *number_out,
                                      struct builder *bytes_out);
/* A listening descriptor for this worker, opened or kept by the master: "127.0.0.1:80", ":80", "fd@3", "unix:/path".
 * Port 0 becomes one port for all workers. `*actual_out` has the real port. Waits for the master. ADDRESS_IN_USE,
 * PERMISSION, BAD_ADDRESS... Ask with index 0, 1, ... until NOT_FOUND: after an upgrade to fewer workers there may be
 * more than one. */
CY_NODISCARD cy_err worker_listen(struct worker_link *link, cy_bytes text, uint32_t index,
                                  int *owned_descriptor_out, struct address *actual_out);
/* Everything is open and requests are served. At most CHANNEL_MESSAGE_BYTES / 2 of the banner are kept. */
void worker_ready(struct worker_link *link, cy_bytes banner);
/* The answer to WORKER_MESSAGE_GENERATION. */
void worker_adopted(struct worker_link *link, uint32_t generation_number, bool adopted);

/* Watch this in the loop (loop_socket_watch, loop_ready) and call worker_link_receive when it is readable: it hands
 * over every message that is there. Do not free the link from inside on_message. False when the master is gone
 * (MASTER_GONE was the last message): stop watching. */
int worker_link_descriptor(const struct worker_link *link);
CY_NODISCARD bool worker_link_receive(struct worker_link *link,
                                      void (*on_message)(void *context, const struct worker_message *message),
                                      void *context);

#endif
