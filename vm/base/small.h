/* SPDX-License-Identifier: MIT
 *
 * vm/base/small.h: small blocks of all sizes, many to a page, for one owner that frees what it took.
 *
 * In:   sizes up to SMALL_BYTES_MAX, in steps of SMALL_STEP; blocks back, with their size.
 * Out:  blocks, the one that came back last first; NULL when there is no memory.
 *
 *     mem_alloc ─► segment (64 KiB) ─► pages (4 KiB, aligned), each cut into blocks of one size when it is first needed
 *     block back ─► its page's list; page empty ─► its segment; segment empty ─► mem_free, one excepted
 *
 * Invariant: a page is listed among those of its size while, and only while, it has a free block. Blocks that are free
 *       are hidden (mem.h), whole.
 * Bound: segments take no more than bytes_max, so what lies in pages that are nearly empty is bounded too. At rest one
 *       page of each size and one segment stay, so that a block more or less costs no page, and no segment.
 * Cost: some eight instructions each way, and no lock. A page's blocks begin on a line of the cache.
 * Faults: taking one counts as a request (mem_request_fails), not as an allocation.
 */
#ifndef CY_BASE_SMALL_H
#define CY_BASE_SMALL_H

#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <string.h>

enum {
    SMALL_STEP = 16,
    SMALL_BYTES_MAX = 256,
    SMALL_CLASSES = SMALL_BYTES_MAX / SMALL_STEP,
    SMALL_PAGE_BYTES = 4096,
    SMALL_SEGMENT_BYTES = 65536 - 64, /* with what malloc adds, no more than 64 KiB */
};

struct small_segment;

struct small_page {
    void *free; /* the first free block, whose first word is the next one's place; NULL: all are in use */
    struct small_page *next, *previous; /* among those of its size that have free blocks */
    struct small_segment *segment;
    uint32_t used_count;
    uint32_t class;
};

struct small_pool {
    struct small_page *pages[SMALL_CLASSES]; /* with free blocks */
    struct small_page *spare[SMALL_CLASSES]; /* one that is empty, beside those */
    struct small_segment *segments;          /* with free pages */
    struct small_segment *spare_segment;     /* one that is empty, beside those */
    uint64_t bytes, bytes_max;
};

void small_init(struct small_pool *pool, uint64_t bytes_max);
/* Every block has come back. */
void small_fini(struct small_pool *pool);

/* For small_take and small_put. */
CY_NODISCARD bool small_add_page(struct small_pool *pool, uint32_t class);
void small_page_changed(struct small_pool *pool, struct small_page *page, bool was_full);

static inline uint32_t small_class(size_t bytes)
{
    return bytes == 0 ? 0 : (uint32_t)((bytes - 1) / SMALL_STEP);
}

static inline size_t small_class_bytes(uint32_t class) { return ((size_t) class + 1) * SMALL_STEP; }

CY_NODISCARD static inline void *small_take(struct small_pool *pool, size_t bytes)
{
    DCHECK(bytes <= SMALL_BYTES_MAX);
    if (CY_UNLIKELY(mem_request_fails())) return NULL;
    uint32_t class = small_class(bytes);
    if (CY_UNLIKELY(!pool->pages[class]) && !small_add_page(pool, class)) return NULL;
    struct small_page *page = pool->pages[class];
    void *block = page->free;
    MEM_SHOW(block, sizeof page->free);
    memcpy(&page->free, block, sizeof page->free);
    page->used_count++;
    if (CY_UNLIKELY(!page->free)) { /* it is the first of its list */
        pool->pages[class] = page->next;
        if (page->next) page->next->previous = NULL;
    }
    MEM_SHOW(block, bytes); /* what is behind is nobody's */
    return block;
}

static inline void small_put(struct small_pool *pool, void *block, size_t bytes)
{
    struct small_page *page = (struct small_page *)((uintptr_t)block & ~(uintptr_t)(SMALL_PAGE_BYTES - 1));
    DCHECK(page->class == small_class(bytes) && page->used_count > 0);
    (void)bytes;
    void *next = page->free;
    MEM_SHOW(block, sizeof next);
    memcpy(block, &next, sizeof next);
    MEM_HIDE(block, small_class_bytes(page->class));
    page->free = block;
    if (CY_UNLIKELY(--page->used_count == 0 || !next)) small_page_changed(pool, page, !next);
}

#endif
