/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target.h: fuzz targets, each called with bytes of which nothing is known.
 *
 * Invariant: a target keeps nothing between calls and comes back within bounds of its own; what it finds wrong is a
 *            CHECK that fails, besides what sanitizers see.
 * Not here: libFuzzer (fuzz_libfuzzer.c), replaying files in the test suite (fuzz_replay.c).
 */
#ifndef CY_TESTS_FUZZ_TARGET_H
#define CY_TESTS_FUZZ_TARGET_H

#include "vm/base/bytes.h"
#include "vm/code/program.h"

struct fuzz_target {
    const char *name;
    size_t bytes_max;
    const char *meaning;
    void (*call)(cy_bytes input);
};
extern const struct fuzz_target fuzz_targets[];
extern const size_t fuzz_target_count;
/* NULL when there is none. */
const struct fuzz_target *fuzz_target_find(const char *name);

/* Runs a program that was accepted, within bounds that suit thousands of runs in a second. */
void fuzz_run_program(const struct program *program);
/* A trailing checksum that fits, for mutated .toau files. False when the file is too short to have one. */
bool fuzz_toau_repair(uint8_t *file, size_t count);

#define TARGET(name, bytes_max, meaning) void fuzz_target_##name(cy_bytes input);
#include "tests/fuzz/target.def"
#undef TARGET

#endif
