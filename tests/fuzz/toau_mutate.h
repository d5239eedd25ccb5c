/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/toau_mutate.h: damages .toau files with understanding, and judges what reader and verifier make
 * of them.
 *
 * In:   accepted files, a seed, a number of mutants.
 * Out:  counts. The same seed and files give the same mutants.
 * Not here: how accepted mutants are run (toau_run.h); `run` says it.
 */
#ifndef CY_TESTS_FUZZ_TOAU_MUTATE_H
#define CY_TESTS_FUZZ_TOAU_MUTATE_H

#include "vm/base/bytes.h"
#include "vm/code/verify.h"

struct toau_mutate {
    const cy_bytes *files; /* each accepted by toau_load */
    size_t file_count;
    uint64_t seed;
    uint64_t mutants;   /* random ones; each rule's own come on top */
    uint64_t budget_ms; /* random mutants stop then; 0 = no limit */
    /* Runs an accepted mutant within a budget of its own. 0 when it behaved, whatever it answered. NULL:
     * none are run. */
    int (*run)(const struct program *program, void *run_context);
    void *run_context;
};
struct toau_mutate_result {
    uint64_t mutants, read_refused, verify_refused, accepted, run;
    uint64_t rules[CODE_RULE_COUNT]; /* refusals by rule */
    bool failed;                     /* a mutant was judged wrongly: stderr says which */
};

void toau_mutate(const struct toau_mutate *plan, struct toau_mutate_result *result_out);

#endif
