/* SPDX-License-Identifier: MIT
 *
 * vm/run/refs.h: the search for cycles through cells (`ref`). Private to vm/run.
 *
 * Who reads or writes a cell's content calls refs_touch first; value_free tells of a cell that dies. See refs.c.
 */
#ifndef CY_RUN_REFS_H
#define CY_RUN_REFS_H

#include "vm/run/record.h"

enum refs_phase { REFS_RESTING, REFS_COUNTING, REFS_CHECKING, REFS_FREEING, REFS_RELEASING };

/* A container whose contents are looked at, from `index` on. */
struct refs_work {
    struct object *object;
    uint32_t index;
};

struct refs_search {
    enum refs_phase phase;
    bool watching;  /* COUNTING or CHECKING: cells that are read or written, or die, matter */
    uint32_t epoch; /* of this search, in container.search */
    struct ref *cursor;
    struct refs_work *stack;
    uint32_t stack_count, stack_capacity;
    cy_value *held; /* owned: contents that touched cells had */
    uint32_t held_count, held_capacity;
    uint32_t held_marked; /* of `held`, how many are done */
    uint64_t steps;       /* of this search */
    uint64_t steps_last;  /* of the one before */
    uint64_t credit;      /* steps that what happened since then is worth */
    uint64_t credit_seen; /* when the slice before was done */
    uint64_t heap_bytes_last;
    uint64_t found_count; /* cells freed by all searches */
    uint64_t search_count;
    struct fiber *group; /* who made a cell last: what is freed is credited to it */
    uint64_t group_serial;
};

void refs_begin(struct vm *vm);
/* About `steps` of the search under way. False when there is none (any more). */
bool refs_slice(struct vm *vm, size_t steps);
/* Begins a search when enough has happened, and does a slice of one. True when there is more. `idle`: nobody waits. */
bool refs_work(struct vm *vm, bool idle);
/* At the end of the VM. */
void refs_abort(struct vm *vm);

void refs_touched(struct vm *vm, struct ref *ref);
void refs_dying(struct vm *vm, struct ref *ref);

#endif
