/* SPDX-License-Identifier: MIT
 *
 * vm/base/spare.h: blocks of one kind that are kept for reuse, no more than a bound.
 *
 * In:   blocks from mem_alloc that nobody uses any more, all of one size, at least a pointer's. Out: the same, newest
 *       first, while they are warm in the cache.
 * Invariant: the first word of a block that is taken is the list's; the rest is as it was given. What a burst needed
 *       goes back to the allocator: at most `count_max` lie here, however many were in use at once.
 * Cost: two loads and two stores each way; past the bound what malloc and free cost.
 */
#ifndef CY_BASE_SPARE_H
#define CY_BASE_SPARE_H

#include "vm/base/mem.h"

#include <string.h>

struct spare_list {
    void *first; /* whose first word is the next one's place */
    uint32_t count;
};

/* NULL: there is none. */
static inline void *spare_take(struct spare_list *list)
{
    void *block = list->first;
    if (!block) return NULL;
    memcpy(&list->first, block, sizeof list->first);
    list->count--;
    return block;
}

static inline void spare_put(struct spare_list *list, void *owned_block, uint32_t count_max)
{
    if (list->count >= count_max) {
        mem_free(owned_block);
        return;
    }
    memcpy(owned_block, &list->first, sizeof list->first);
    list->first = owned_block;
    list->count++;
}

static inline void spare_fini(struct spare_list *list)
{
    for (void *block = spare_take(list); block; block = spare_take(list)) mem_free(block);
}

#endif
