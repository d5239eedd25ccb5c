/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/run_source.h: a run_host whose program is compiled from source, for tests of what programs see.
 */
#ifndef CY_TESTS_RUN_RUN_SOURCE_H
#define CY_TESTS_RUN_RUN_SOURCE_H

#include "tests/unit/run/run_host.h"

/* Compiles `source` as main.han and opens the host; fails the test when it does not compile. */
void run_source_open(struct run_host *host, const char *source, uint64_t memory_bytes_max,
                     uint64_t task_memory_bytes_max);
/* Calls the exported function without arguments and runs until nothing is ready. */
void run_source_call(struct run_host *host, const char *name, struct run_end *end);
/* The call has returned this text. */
void run_source_expect(struct run_end *end, const char *text);
/* The call has failed, or was stopped, and its report has these words. */
void run_source_expect_report(struct run_end *end, enum call_outcome outcome, const char *words);

#endif
