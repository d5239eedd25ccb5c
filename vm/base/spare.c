/* SPDX-License-Identifier: MIT
 *
 * vm/base/spare.c: see spare.h: the lists that have something to give back, and how.
 *
 * Halves, because what lay unused for one interval may be wanted in the next: load that swings a little gives back a
 * little of it, and a burst is forgotten in a few intervals all the same.
 */
#include "vm/base/spare.h"

#include "vm/base/limits.h"

#define SPARE_WARM_PART 16u
#define SPARE_BURST_PART 16u
#define SPARE_COLD_PART 32u

void spare_init_pages(struct spare_list *list, struct spare_watch *watch, size_t block_bytes,
                      uint32_t rest_count, size_t head_bytes)
{
    DCHECK(head_bytes >= sizeof(void *) && head_bytes < block_bytes);
    spare_init(list, watch, block_bytes, rest_count);
    if (!watch) return;
    list->head_bytes = (uint32_t)head_bytes;
    list->warm_count = rest_count / SPARE_WARM_PART;
}

bool spare_begin_watch(struct spare_list *list)
{
    struct spare_watch *watch = list->watch;
    if (!watch) return false;
    list->watched = true;
    list->cold_count = spare_cold_count(list);
    /* What was used just before this may have its pages: the first interval takes none. */
    list->low = list->head_bytes ? list->cold_count : list->count;
    list->next = watch->first;
    watch->first = list;
    if (!list->next) watch->begin(watch);
    return true;
}

/* The allocator keeps what it writes at a block's ends, on pages that are not wholly inside. */
static void spare_forget_pages(const struct spare_list *list, void *block)
{
    if (list->head_bytes)
        mem_forget((uint8_t *)block + list->head_bytes, list->block_bytes - list->head_bytes);
}

/* A part of those that have lain without pages: from the bottom, so it walks over all. */
static void spare_free_cold(struct spare_list *list)
{
    uint32_t count = (list->cold_count + SPARE_COLD_PART - 1) / SPARE_COLD_PART;
    if (count == 0) return;
    list->count -= count;
    list->cold_count -= count;
    list->watch->freed_bytes += (size_t)count * list->block_bytes;
    void *last = list->first, *block = list->first;
    if (list->count == 0) {
        list->first = NULL;
    } else {
        void *end = NULL;
        for (uint32_t above = list->count - 1; above > 0; above--) memcpy(&last, last, sizeof last);
        memcpy(&block, last, sizeof block);
        memcpy(last, &end, sizeof end);
    }
    for (; count > 0; count--) {
        void *next;
        memcpy(&next, block, sizeof next);
        MEM_SHOW(block, list->block_bytes);
        mem_free(block);
        block = next;
    }
}

/* The upper ones of those that nobody needed and that have their pages. Walks over those above. */
static void spare_cool(struct spare_list *list, uint32_t unused_count)
{
    uint32_t warm_end = list->count - list->warm_count; /* so many may be cold */
    uint32_t end = unused_count < warm_end ? unused_count : warm_end;
    if (end <= list->cold_count) return;
    uint32_t count = end - list->cold_count - (end - list->cold_count) / 2;
    void *block = list->first;
    for (uint32_t above = list->count - list->cold_count - count; above > 0; above--)
        memcpy(&block, block, sizeof block);
    list->cold_count += count;
    for (; count > 0; count--) {
        spare_forget_pages(list, block);
        memcpy(&block, block, sizeof block);
    }
}

static void spare_trim_list(struct spare_list *list)
{
    uint32_t unused = list->low - list->low / 2;
    uint32_t over = list->count > list->rest_count ? list->count - list->rest_count : 0;
    uint32_t most = list->head_bytes ? LIMIT_SPARE_TRIM_LARGE_BLOCKS : LIMIT_SPARE_TRIM_BLOCKS;
    list->cold_count = spare_cold_count(list);
    if (unused > over) unused = over;
    if (unused > most) unused = most;
    list->watch->freed_bytes += (size_t)unused * list->block_bytes;
    for (; unused > 0; unused--) {
        void *block = spare_pop(list);
        spare_forget_pages(list, block);
        mem_free(block);
    }
    if (over == 0) { /* at rest, so that there are few to walk over */
        if (list->head_bytes && list->count > list->warm_count) spare_cool(list, list->low);
        spare_free_cold(list);
    }
    list->low = list->count;
}

/* The allocator keeps what was freed, and looks at all of it to give pages back: once for each burst, when the halves
 * have become small. */
static void spare_give_back(struct spare_watch *watch, size_t freed_now_bytes)
{
    if (watch->freed_bytes < LIMIT_SPARE_TRIM_BYTES) return;
    if (watch->first && freed_now_bytes > watch->freed_bytes / SPARE_BURST_PART) return;
    watch->freed_bytes = 0;
    mem_give_back();
}

bool spare_trim(struct spare_watch *watch)
{
    size_t freed_before_bytes = watch->freed_bytes;
    for (struct spare_list **place = &watch->first; *place;) {
        struct spare_list *list = *place;
        spare_trim_list(list);
        if (spare_has_more(list, list->count) || list->cold_count > 0) {
            place = &list->next;
            continue;
        }
        *place = list->next;
        list->watched = false;
    }
    spare_give_back(watch, watch->freed_bytes - freed_before_bytes);
    return watch->first != NULL;
}

void spare_fini(struct spare_list *list)
{
    if (list->watched) {
        struct spare_list **place = &list->watch->first;
        while (*place != list) place = &(*place)->next;
        *place = list->next;
        list->watched = false;
    }
    while (list->first) mem_free(spare_pop(list));
}
