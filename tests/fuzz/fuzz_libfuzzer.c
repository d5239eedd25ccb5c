/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_libfuzzer.c: the target named by FUZZ_TARGET, under libFuzzer (make fuzz).
 *
 * In:   inputs of libFuzzer. Out: nothing; libFuzzer writes what it found.
 * Not here: how long, which corpus, what is reported (run_fuzz.py).
 */
#include "tests/fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct fuzz_target *fuzz_libfuzzer_target; /* set once, before the first input */

size_t LLVMFuzzerMutate(uint8_t *data, size_t count, size_t count_max);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t count, size_t count_max, unsigned seed);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *name = getenv("FUZZ_TARGET");
    fuzz_libfuzzer_target = name ? fuzz_target_find(name) : NULL;
    if (!fuzz_libfuzzer_target) {
        fprintf(stderr, "FUZZ_TARGET names none of:");
        for (size_t i = 0; i < fuzz_target_count; i++) fprintf(stderr, " %s", fuzz_targets[i].name);
        fprintf(stderr, "\n");
        exit(2);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count)
{
    fuzz_libfuzzer_target->call(cy_bytes_of(data, count));
    return 0;
}

/* A wrong checksum is found once and then hides everything behind it: one mutant in 64 keeps it. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t count, size_t count_max, unsigned seed)
{
    count = LLVMFuzzerMutate(data, count, count_max);
    if (strcmp(fuzz_libfuzzer_target->name, "toau") == 0 && seed % 64 != 0)
        (void)fuzz_toau_repair(data, count);
    return count;
}
