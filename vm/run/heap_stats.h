/* SPDX-License-Identifier: MIT
 *
 * vm/run/heap_stats.h: what the heap of a VM holds, by kind, found by walking it.
 *
 * In:   a VM between two turns. Out: a table for people, or rows for a program.
 * Method: walks all that instances, fibers, tasks and errors reach, each object once. Nothing is kept for it while
 *       programs run. What is on the heap but not reached is a remainder: cycles through refs, values that natives hold
 *       (in verdicts, regexes), and what waits to be freed.
 */
#ifndef CY_RUN_HEAP_STATS_H
#define CY_RUN_HEAP_STATS_H

#include "vm/base/builder.h"
#include "vm/base/error.h"

struct vm;

struct heap_stats_row {
    char name[64]; /* "str", "list of int", "record Route"; a longer name is cut */
    const void *key;
    uint64_t count;
    uint64_t bytes;
};
struct heap_stats {
    struct heap_stats_row *rows; /* largest first */
    uint32_t row_count;
    uint32_t row_capacity;
    uint64_t object_count; /* reached */
    uint64_t object_bytes;
    uint64_t heap_objects; /* all */
    uint64_t heap_bytes;
};

/* NO_MEMORY leaves nothing to free. */
CY_NODISCARD cy_err heap_stats_collect(struct vm *vm, struct heap_stats *stats_out);
void heap_stats_fini(struct heap_stats *stats);
/* The rows, the remainder and the VM's counters, a line each. */
void heap_stats_describe(struct vm *vm, const struct heap_stats *stats, bool korean, struct builder *out);

#endif
