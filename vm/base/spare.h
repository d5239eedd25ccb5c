/* SPDX-License-Identifier: MIT
 *
 * vm/base/spare.h: blocks of one kind that are kept for reuse, about as many as were in use at once of late.
 *
 * In:   blocks from mem_alloc that nobody uses any more, all of one size, at least a pointer's. Out: the same, newest
 *       first, while they are warm in the cache.
 *
 *     put, up to rest_count ──────────────► kept, however long
 *     put, past it ─► the list is watched ─► kept; each spare_trim gives back half of what lay here since the last one
 *
 * A list of large blocks (spare_init_pages) goes one further. Of those at rest, too, what nobody needed loses its
 * pages, half at each trimming, down to a few that stay warm: the block stays, its pages come back when it is used.
 * They are the oldest, so they lie at the bottom, and those that stay there go back too, a few at each trimming:
 *
 *     first ─► needed of late ─► warm ─► cold_count blocks without pages
 *
 * Invariant: the first word of a block that is taken is the list's; the rest is as it was given, and hidden (mem.h)
 *       while it lies here. A list that holds more than rest_count is among its watch's.
 * Bound: what lies here and is in use together is no more than was in use at once since the list was trimmed last, and
 *       a half more for each trimming before (at rest: of large blocks, as many as were in use in the last minute, or
 *       so); so the steady state allocates nothing, and a burst's memory goes back.
 * Cost: three loads and two or three stores each way, and a call of the system's for each block that loses its pages.
 * Not here: when to trim (whoever makes the watch: vm/net/loop.c).
 */
#ifndef CY_BASE_SPARE_H
#define CY_BASE_SPARE_H

#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <string.h>

struct spare_list;

/* The lists that hold more than at rest. */
struct spare_watch {
    struct spare_list *first;
    size_t freed_bytes; /* by trimming, since pages were given back last */
    void (*begin)(
        struct spare_watch *watch); /* the first list has come: trim from time to time, until none is left */
};

struct spare_list {
    void *first; /* whose first word is the next one's place */
    uint32_t count;
    uint32_t low; /* the fewest that lay here since it was trimmed last: those nobody needed */
    uint32_t rest_count;
    uint32_t block_bytes;
    uint32_t head_bytes;       /* that a block keeps when its pages go; 0: they stay */
    uint32_t warm_count;       /* of such a list: so many keep theirs */
    uint32_t cold_count;       /* the lowest min(this, low) have none */
    struct spare_watch *watch; /* NULL: past rest_count a block is freed at once */
    struct spare_list *next;   /* among the watched */
    bool watched;
};

static inline void spare_init(struct spare_list *list, struct spare_watch *watch, size_t block_bytes,
                              uint32_t rest_count)
{
    DCHECK(block_bytes >= sizeof(void *) && block_bytes <= UINT32_MAX);
    *list =
        (struct spare_list){.rest_count = rest_count, .block_bytes = (uint32_t)block_bytes, .watch = watch};
}

/* Of blocks so large that their pages count, a sixteenth of which stay warm. What is behind `head_bytes` is not as it
 * was when a block is taken. */
void spare_init_pages(struct spare_list *list, struct spare_watch *watch, size_t block_bytes,
                      uint32_t rest_count, size_t head_bytes);

/* For spare_put: may the list hold one more than at rest, or keep what it needed? */
bool spare_begin_watch(struct spare_list *list);
/* Gives back half of what nobody needed since the last time, of each list no more than LIMIT_SPARE_TRIM_BLOCKS; and
 * the allocator's pages to the system, when a burst of LIMIT_SPARE_TRIM_BYTES or more has gone so far (mem_give_back).
 * False: no list has more to give any longer, and `begin` is called for the next one that does. */
bool spare_trim(struct spare_watch *watch);
/* Frees what is kept, out of the watch too. */
void spare_fini(struct spare_list *list);

static inline void *spare_pop(struct spare_list *list)
{
    void *block = list->first;
    MEM_SHOW(block, list->block_bytes);
    memcpy(&list->first, block, sizeof list->first);
    list->count--;
    return block;
}

/* NULL: there is none. */
static inline void *spare_take(struct spare_list *list)
{
    if (!list->first) return NULL;
    void *block = spare_pop(list);
    if (list->count < list->low) list->low = list->count;
    return block;
}

static inline uint32_t spare_cold_count(const struct spare_list *list)
{
    return list->low < list->cold_count ? list->low : list->cold_count;
}

/* Has the list, or will it have with one more, what it may have to give back? */
static inline bool spare_has_more(const struct spare_list *list, uint32_t count)
{
    return count > list->rest_count ||
           (list->head_bytes != 0 && count > spare_cold_count(list) + list->warm_count);
}

static inline void spare_put(struct spare_list *list, void *owned_block)
{
    DCHECK(list->block_bytes != 0); /* spare_init */
    if (!list->watched && CY_UNLIKELY(spare_has_more(list, list->count + 1)) && !spare_begin_watch(list)) {
        mem_free(owned_block);
        return;
    }
    memcpy(owned_block, &list->first, sizeof list->first);
    MEM_HIDE((uint8_t *)owned_block + sizeof list->first, list->block_bytes - sizeof list->first);
    list->first = owned_block;
    list->count++;
}

#endif
