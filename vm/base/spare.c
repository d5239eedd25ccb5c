/* SPDX-License-Identifier: MIT
 *
 * vm/base/spare.c: see spare.h: the lists that hold more than at rest, and what they give back.
 *
 * Halves, because what lay unused for one interval may be wanted in the next: load that swings a little gives back a
 * little of it, and a burst is forgotten in a few intervals all the same.
 */
#include "vm/base/spare.h"

#include "vm/base/limits.h"

bool spare_begin_watch(struct spare_list *list)
{
    struct spare_watch *watch = list->watch;
    if (!watch) return false;
    list->watched = true;
    list->low = list->count;
    list->next = watch->first;
    watch->first = list;
    if (!list->next) watch->begin(watch);
    return true;
}

static void spare_trim_list(struct spare_list *list)
{
    uint32_t unused = list->low - list->low / 2;
    uint32_t over = list->count > list->rest_count ? list->count - list->rest_count : 0;
    if (unused > over) unused = over;
    if (unused > LIMIT_SPARE_TRIM_BLOCKS) unused = LIMIT_SPARE_TRIM_BLOCKS;
    while (unused-- > 0) mem_free(spare_pop(list));
    list->low = list->count;
}

bool spare_trim(struct spare_watch *watch)
{
    for (struct spare_list **place = &watch->first; *place;) {
        struct spare_list *list = *place;
        spare_trim_list(list);
        if (list->count > list->rest_count) {
            place = &list->next;
            continue;
        }
        *place = list->next;
        list->watched = false;
    }
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
