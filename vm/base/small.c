/* SPDX-License-Identifier: MIT
 *
 * vm/base/small.c: see small.h: pages and segments.
 *
 * A page is aligned to its size, so that a block's address tells its page. Pages that were never needed are not
 * touched: an owner of few blocks has few pages resident.
 */
#include "vm/base/small.h"

enum { SMALL_LINE_BYTES = 64 };
_Static_assert(sizeof(struct small_page) <= SMALL_LINE_BYTES, "blocks begin on the second line of a page");

struct small_segment {
    struct small_segment *next, *previous; /* among those with free pages */
    struct small_page *free;               /* pages that came back, by `next` */
    uint8_t *fresh;                        /* pages that were never needed: from here */
    uint32_t fresh_count;
    uint32_t used_count;
};

void small_init(struct small_pool *pool, uint64_t bytes_max)
{
    *pool = (struct small_pool){.bytes_max = bytes_max};
}

/* -- segments -------------------------------------------------------------------------------------------- */

static bool small_segment_has_pages(const struct small_segment *segment)
{
    return segment->free || segment->fresh_count > 0;
}

static void small_link_segment(struct small_pool *pool, struct small_segment *segment)
{
    segment->previous = NULL;
    segment->next = pool->segments;
    if (segment->next) segment->next->previous = segment;
    pool->segments = segment;
}

static void small_unlink_segment(struct small_pool *pool, struct small_segment *segment)
{
    if (segment->next) segment->next->previous = segment->previous;
    if (segment->previous)
        segment->previous->next = segment->next;
    else
        pool->segments = segment->next;
}

static void small_free_segment(struct small_pool *pool, struct small_segment *segment)
{
    MEM_SHOW(segment, SMALL_SEGMENT_BYTES);
    pool->bytes -= SMALL_SEGMENT_BYTES;
    mem_free(segment);
}

static bool small_add_segment(struct small_pool *pool)
{
    struct small_segment *segment = pool->spare_segment;
    pool->spare_segment = NULL;
    if (!segment) {
        if (pool->bytes_max < SMALL_SEGMENT_BYTES || pool->bytes > pool->bytes_max - SMALL_SEGMENT_BYTES)
            return false;
        segment = mem_alloc(SMALL_SEGMENT_BYTES);
        if (!segment) return false;
        pool->bytes += SMALL_SEGMENT_BYTES;
        uint8_t *begin = (uint8_t *)segment, *end = begin + SMALL_SEGMENT_BYTES;
        uintptr_t behind = (uintptr_t)(begin + sizeof *segment);
        uint8_t *fresh = begin + sizeof *segment + (-behind & (SMALL_PAGE_BYTES - 1));
        *segment = (struct small_segment){
            .fresh = fresh, .fresh_count = (uint32_t)((size_t)(end - fresh) / SMALL_PAGE_BYTES)};
    }
    small_link_segment(pool, segment);
    return true;
}

/* -- pages ----------------------------------------------------------------------------------------------- */

static void small_link_page(struct small_pool *pool, struct small_page *page)
{
    page->previous = NULL;
    page->next = pool->pages[page->class];
    if (page->next) page->next->previous = page;
    pool->pages[page->class] = page;
}

static void small_unlink_page(struct small_pool *pool, struct small_page *page)
{
    if (page->next) page->next->previous = page->previous;
    if (page->previous)
        page->previous->next = page->next;
    else
        pool->pages[page->class] = page->next;
}

/* All blocks, in the order of their addresses. */
static void small_cut_page(struct small_page *page, uint32_t class, struct small_segment *segment)
{
    MEM_SHOW(page, SMALL_PAGE_BYTES);
    size_t bytes = small_class_bytes(class);
    uint8_t *first = (uint8_t *)page + SMALL_LINE_BYTES;
    size_t count = (SMALL_PAGE_BYTES - SMALL_LINE_BYTES) / bytes;
    *page = (struct small_page){.free = first, .segment = segment, .class = class};
    for (size_t i = 0; i < count; i++) {
        void *next = i + 1 < count ? first + (i + 1) * bytes : NULL;
        memcpy(first + i * bytes, &next, sizeof next);
    }
    MEM_HIDE(first, SMALL_PAGE_BYTES - SMALL_LINE_BYTES);
}

bool small_add_page(struct small_pool *pool, uint32_t class)
{
    struct small_page *page = pool->spare[class];
    pool->spare[class] = NULL;
    if (!page) {
        if (!pool->segments && !small_add_segment(pool)) return false;
        struct small_segment *segment = pool->segments;
        page = segment->free;
        if (page)
            segment->free = page->next;
        else {
            page = (struct small_page *)(void *)segment->fresh;
            segment->fresh += SMALL_PAGE_BYTES;
            segment->fresh_count--;
        }
        segment->used_count++;
        if (!small_segment_has_pages(segment)) small_unlink_segment(pool, segment);
        small_cut_page(page, class, segment);
    }
    small_link_page(pool, page);
    return true;
}

static void small_give_page(struct small_pool *pool, struct small_page *page)
{
    struct small_segment *segment = page->segment;
    if (!small_segment_has_pages(segment)) small_link_segment(pool, segment);
    page->next = segment->free;
    segment->free = page;
    if (--segment->used_count > 0) return;
    small_unlink_segment(pool, segment);
    if (pool->spare_segment)
        small_free_segment(pool, segment);
    else
        pool->spare_segment = segment;
}

void small_page_changed(struct small_pool *pool, struct small_page *page, bool was_full)
{
    if (was_full) small_link_page(pool, page);
    if (page->used_count > 0) return;
    if (pool->pages[page->class] == page && !page->next) return; /* the last one with free blocks stays */
    small_unlink_page(pool, page);
    if (pool->spare[page->class])
        small_give_page(pool, page);
    else
        pool->spare[page->class] = page;
}

void small_fini(struct small_pool *pool)
{
    for (uint32_t class = 0; class < SMALL_CLASSES; class ++) {
        struct small_page *page = pool->pages[class];
        if (page) {
            DCHECK(page->used_count == 0 && !page->next); /* else a block has not come back */
            small_unlink_page(pool, page);
            small_give_page(pool, page);
        }
        if (pool->spare[class]) small_give_page(pool, pool->spare[class]);
        pool->spare[class] = NULL;
    }
    if (pool->spare_segment) small_free_segment(pool, pool->spare_segment);
    pool->spare_segment = NULL;
    DCHECK(pool->bytes == 0);
}
