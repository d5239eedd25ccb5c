/* SPDX-License-Identifier: MIT
 *
 * vm/run/holds.h: the turns that held the thread longest, and where in the program they ended.
 *
 * In:   turns of fibers, told by fiber.c. Out: a few rows, longest first.
 * Why:  between two looks at the network there is a turn. What makes one long is a single step: a native over tens of
 *       MB, a copy of a million entries. This says which.
 * Invariant: at most HOLDS_ROWS places, each with its longest turn. Costs nothing where no table is given.
 */
#ifndef CY_RUN_HOLDS_H
#define CY_RUN_HOLDS_H

#include "vm/base/builder.h"

struct fiber;

enum { HOLDS_ROWS = 8, HOLDS_PLACE_BYTES = 128 };

struct holds_row {
    uint64_t longest_ns;
    uint64_t count; /* turns of HOLDS_LEAST_NS or more that ended there, since the row is here */
    char place[HOLDS_PLACE_BYTES]; /* "main (main.han:5:43)"; the name of a long one is cut */
};
struct holds {
    struct holds_row rows[HOLDS_ROWS]; /* longest first */
    uint32_t row_count;
    uint64_t longest_ns; /* of all turns, however short */
};

/* Forgets all: a worker begins with its own. */
void holds_clear(struct holds *holds);
/* The longest of all turns, then a line for each row; no turn was long: no row. */
void holds_describe(const struct holds *holds, bool korean, struct builder *out);

/* -- for fiber.c ----------------------------------------------------------------------------------------- */
/* A turn of `fiber` has taken `spent_ns` of CPU. Its place is the step that ran last. */
void holds_turn(struct holds *holds, const struct fiber *fiber, uint64_t spent_ns);

#endif
