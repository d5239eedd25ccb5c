/* SPDX-License-Identifier: MIT
 *
 * vm/base/spare.h: blocks of one kind that are kept for reuse, no more than a bound.
 *
 * In:   blocks from mem_alloc that nobody uses any more, all of one size, at least a pointer's. Out: the same, newest
 *       first, while they are warm in the cache.
 * Invariant: the first word of a block that is taken is the list's; the rest is as it was given. What a burst needed
 *       goes back to the allocator: at most `count_max` lie here, however many were in use at once.
 * Cost: two loads and two stores or three each way; past the bound what malloc and free cost.
 */
#ifndef CY_BASE_SPARE_H
#define CY_BASE_SPARE_H

#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <string.h>

struct spare_list {
    void *first; /* whose first word is the next one's place */
    uint32_t count;
    uint32_t block_bytes; /* of each */
};

/* NULL: there is none. */
static inline void *spare_take(struct spare_list *list)
{
    void *block = list->first;
    if (!block) return NULL;
    MEM_SHOW(block, list->block_bytes);
    memcpy(&list->first, block, sizeof list->first);
    list->count--;
    return block;
}

/* `owned_block`: of its own type, whose size is the list's. Whoever still looks at it is caught where memory can be
 * hidden (mem.h), as with one that was freed. */
#define spare_put(list, owned_block, count_max) \
    spare_put_bytes(list, owned_block, sizeof *(owned_block), count_max)
static inline void spare_put_bytes(struct spare_list *list, void *owned_block, uint32_t block_bytes,
                                   uint32_t count_max)
{
    DCHECK(list->count == 0 || list->block_bytes == block_bytes);
    if (list->count >= count_max) {
        mem_free(owned_block);
        return;
    }
    memcpy(owned_block, &list->first, sizeof list->first);
    list->first = owned_block;
    list->block_bytes = block_bytes;
    list->count++;
    MEM_HIDE(owned_block, block_bytes);
}

static inline void spare_fini(struct spare_list *list)
{
    for (void *block = spare_take(list); block; block = spare_take(list)) mem_free(block);
}

#endif
