/* SPDX-License-Identifier: MIT
 *
 * vm/native/runtime.h: runs one program from start to exit code.
 *
 * In:   the bytes of a .toau, arguments, granted capabilities.
 * Out:  an exit code (0 ok, 1 program error, 3 bad .toau, 4 configuration, 5 cannot listen, 70 internal).
 *       Messages for people are on stderr by then.
 * Not here: command lines (vm/cli), natives' bodies.
 */
#ifndef CY_NATIVE_RUNTIME_H
#define CY_NATIVE_RUNTIME_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/base/exit_code.h"

struct path_rule; /* vm/sys/path_rules.h */

/* Runs the test functions that main exports instead of main itself (runtime_test.c). Counts are added to. */
struct runtime_tests {
    const char *name_prefix; /* of exported functions that are tests */
    const char *filter;      /* only tests with this in their name; NULL: all */
    uint32_t passed_count, failed_count, skipped_count;
};

struct runtime_options {
    const char *program_name; /* for messages */
    const char
        *program_path; /* read again on reload; NULL: `program` is all there is (it was compiled in memory) */
    cy_bytes program;  /* the .toau, borrowed for the whole run */
    const char *const
        *command; /* argv of this process, ended by NULL, for binary upgrades; NULL: there are none */
    const char *const *args;
    int arg_count;
    uint32_t capabilities;              /* granted bits of enum capability */
    const struct path_rule *path_rules; /* of --allow and --deny, borrowed for the run */
    uint32_t path_rule_count;
    uint64_t
        cpu_burst_ms; /* allowance of a task but main between two waits; 0: LIMIT_CPU_BURST_MS, UINT64_MAX: none */
    const char *io; /* loop back end, NULL: the best */
    bool korean;
    struct runtime_tests *tests; /* NULL: main runs */
    /* Where the profile goes at the end: folded stacks, or an SVG when the name ends in .svg; a worker's number is put
     * in. NULL: none. */
    const char *profile_path;
    bool profile_steps; /* samples weigh budget steps instead of CPU time: the same on every run */
    bool stats;         /* what the heap holds at the end, on stderr */
};
int runtime_run(const struct runtime_options *options);

#endif
