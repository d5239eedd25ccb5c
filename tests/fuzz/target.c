/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target.c: the table of targets, and what several of them do.
 */
#include "tests/fuzz/target.h"

#include "tests/fuzz/toau_run.h"
#include "vm/base/check.h"
#include "vm/base/hash.h"

#include <string.h>

const struct fuzz_target fuzz_targets[] = {
#define TARGET(name, bytes_max, meaning) {#name, bytes_max, meaning, fuzz_target_##name},
#include "tests/fuzz/target.def"
#undef TARGET
};
const size_t fuzz_target_count = CY_COUNT_OF(fuzz_targets);

const struct fuzz_target *fuzz_target_find(const char *name)
{
    for (size_t i = 0; i < fuzz_target_count; i++)
        if (strcmp(fuzz_targets[i].name, name) == 0) return &fuzz_targets[i];
    return NULL;
}

void fuzz_run_program(const struct program *program)
{
    static const struct toau_run_bounds bounds = {
        .memory_bytes_max = 1 << 20, .turns_max = 16, .cpu_burst_ms = 30, .call_exports = true};
    struct builder error;
    builder_init(&error);
    enum toau_run_end end = toau_run(program, &bounds, NULL, &error);
    CHECK(end != TOAU_RUN_UNENDED);
    CHECK(end != TOAU_RUN_FAILED || error.count > 0);
    builder_fini(&error);
}
