/* SPDX-License-Identifier: MIT
 *
 * vm/run/visited.h: what one walk over values has seen of objects, so that shared parts are walked once.
 *
 * In:   objects that stay alive during the walk. Out: a number remembered for each.
 * Why:  `x = [x, x]` sixty times over is 61 lists and 2^60 paths: == and hashing must count the lists.
 * Invariant: memory comes from the VM's heap, nothing of it before the walk is VISITED_STEPS_FIRST steps long.
 */
#ifndef CY_RUN_VISITED_H
#define CY_RUN_VISITED_H

#include "vm/base/limits.h"
#include "vm/run/vm_internal.h"

/* Ordinary values end before it and pay for no table. */
enum { VISITED_STEPS_FIRST = 1000 };

struct visited_entry {
    const struct object *object; /* NULL: free */
    uint64_t number;
};
struct visited {
    struct visited_entry *entries;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t count;
};

void visited_fini(struct vm *vm, struct visited *visited); /* empty again, and can go on */
/* The number of an object, writable until the next visited_put; NULL when it was not put there. */
uint64_t *visited_find(const struct visited *visited, const struct object *object);
/* `object` is not in it. */
CY_NODISCARD cy_err visited_put(struct vm *vm, struct visited *visited, const struct object *object,
                                uint64_t number);

/* Union-find over objects: `*same_out` says that they were one class already; they are afterwards. With it == walks
 * at most as many pairs as there are objects. */
CY_NODISCARD cy_err visited_join(struct vm *vm, struct visited *visited, const struct object *a,
                                 const struct object *b, bool *same_out);

/* One more step of a walk: charges the budget; LIMIT past LIMIT_WALK_STEPS. */
static inline cy_err visited_step(struct vm *vm, uint64_t *steps)
{
    ++*steps;
    if ((*steps & 7) == 0) vm_charge(vm, 1);
    return *steps > LIMIT_WALK_STEPS ? CY_ERR(LIMIT) : CY_OK;
}

#endif
