/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/toau_run.h: runs a program of which nothing is known but that the verifier accepted it.
 *
 * In:   a program; bounds of memory, turns and CPU. Time is counted in looks at a clock by hand, so the
 *       same program ends the same way on every machine and under every tool.
 * Out:  how main ended, what it printed, what its error said.
 * Invariant: comes back within the bounds whatever the program does, and leaves nothing behind: vm_free
 *       DCHECKs that the VM's heap is empty, the leak checker of ASan sees the rest.
 * Not here: natives of group FULL. In their place stand bodies that answer nil, or park the task until the
 *       next turn where the row says WAIT, so that programs that use them get further than their first call.
 */
#ifndef CY_TESTS_FUZZ_TOAU_RUN_H
#define CY_TESTS_FUZZ_TOAU_RUN_H

#include "vm/base/builder.h"
#include "vm/code/program.h"

/* What one look at the clock takes. There is one per turn, so LIMIT_DEFER_ALLOWANCE_MS is a handful of them. */
enum { TOAU_RUN_LOOK_MS = 10 };

struct toau_run_bounds {
    uint64_t memory_bytes_max;
    uint32_t turns_max; /* calls of vm_run for one call of a function; then it is cancelled */
    uint64_t cpu_burst_ms;
    bool call_exports; /* after main, every other function its module exports, with arguments of all kinds */
};

enum toau_run_end {
    TOAU_RUN_NO_VM,   /* vm_new, or vm_start of main: no memory */
    TOAU_RUN_REFUSED, /* instance_new: not linked, or an initialiser failed */
    TOAU_RUN_NO_MAIN, /* main is not exported, or takes something else */
    TOAU_RUN_FAILED,  /* main ended with an error */
    TOAU_RUN_STOPPED, /* CPU or task memory used up, or cancelled by us */
    TOAU_RUN_UNENDED, /* did not even end when cancelled */
    TOAU_RUN_RETURNED,
    TOAU_RUN_END_COUNT,
};
const char *toau_run_end_text(enum toau_run_end end);

/* `printed` gets what print wrote, `error` the description of an error or stop; both may be NULL, both are
 * appended to. */
enum toau_run_end toau_run(const struct program *program, const struct toau_run_bounds *bounds,
                           struct builder *printed, struct builder *error);

#endif
