/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/run_host.h: a host for tests of the VM: natives that record what happens, a clock by
 * hand, one call at a time.
 *
 * In:   a hand-built program (tests/unit/code/program_builder.h); it is verified before it runs.
 * Out:  what was printed, how calls ended.
 * Natives: print (into `output`), fail, task.wait as in the product; task.sleep parks until the test
 *       completes `ticket`.
 */
#ifndef CY_TESTS_RUN_RUN_HOST_H
#define CY_TESTS_RUN_RUN_HOST_H

#include "tests/unit/code/program_builder.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

enum { RUN_HOST_TICKETS = 1024 };
struct run_host {
    struct vm *vm;
    struct instance *instance;
    struct program *program;
    struct builder output;
    struct builder stopped; /* how the last stopped call was reported */
    uint64_t now_ns;
    uint64_t tick_ns;     /* added at every look at the clock */
    uint64_t wall_ns;     /* of deadlines; moved by hand */
    uint64_t deadline_ns; /* told last */
    uint32_t ready_count; /* times on_ready was called */
    /* the wait begun last */
    wait_ticket ticket;
    wait_ticket tickets[RUN_HOST_TICKETS]; /* the last ones */
    uint32_t wait_count;
    uint32_t cancel_count;
};

/* How one call ended; `value` is owned by the record, nil for a stop. */
struct run_end {
    struct run_host *host;
    bool ended;
    enum call_outcome outcome;
    cy_value value;
    cy_err stop;
};

/* `owned_program` may be NULL for tests of values alone. False when there was no memory (fault tests). */
bool run_host_open(struct run_host *host, struct program *owned_program, uint64_t memory_bytes_max);
/* The same with a soft limit for each task. */
bool run_host_open_limited(struct run_host *host, struct program *owned_program, uint64_t memory_bytes_max,
                           uint64_t task_memory_bytes_max);
/* Ends every task.sleep that still waits. */
void run_host_wake_all(struct run_host *host);
/* Frees everything and CHECKs that the VM's heap is empty. */
void run_host_close(struct run_host *host);

/* Starts exported function `name`; the end is recorded in `end`. */
CY_NODISCARD cy_err run_host_start(struct run_host *host, const char *name, const cy_value *args,
                                   uint32_t arg_count, struct run_end *end, struct fiber **fiber_out);
/* Starts `main` without arguments and runs until nothing is ready. */
void run_host_main(struct run_host *host, struct run_end *end);
void run_end_clear(struct run_end *end);

/* For expectations: the text of a value, borrowed until the next call. */
const char *run_host_text(struct run_host *host, cy_value value);
const char *run_host_printed(struct run_host *host);

#endif
