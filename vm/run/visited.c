/* SPDX-License-Identifier: MIT
 *
 * vm/run/visited.c: a table from objects to numbers, and classes of equal objects in it.
 *
 * In:   objects. Out: numbers. Open addressing, at most half full.
 * Invariant: for visited_join the number of an object is the address of another one of its class, its own for the
 *       class's root.
 */
#include "vm/run/visited.h"

static uint32_t visited_slot(const struct visited *visited, const struct object *object)
{
    uint64_t hash = ((uint64_t)(uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u;
    uint32_t mask = visited->capacity - 1, slot = (uint32_t)(hash >> 32) & mask;
    while (visited->entries[slot].object && visited->entries[slot].object != object) slot = (slot + 1) & mask;
    return slot;
}

void visited_fini(struct vm *vm, struct visited *visited)
{
    heap_free(vm, visited->entries, visited->capacity * sizeof *visited->entries);
    *visited = (struct visited){0};
}

static cy_err visited_grow(struct vm *vm, struct visited *visited)
{
    if (visited->capacity > UINT32_MAX / 2) return CY_ERR(NO_MEMORY);
    struct visited more = {.capacity = visited->capacity ? visited->capacity * 2 : 256,
                           .count = visited->count};
    more.entries = heap_alloc(vm, more.capacity * sizeof *more.entries);
    if (!more.entries) return CY_ERR(NO_MEMORY);
    memset(more.entries, 0, more.capacity * sizeof *more.entries);
    for (uint32_t i = 0; i < visited->capacity; i++)
        if (visited->entries[i].object)
            more.entries[visited_slot(&more, visited->entries[i].object)] = visited->entries[i];
    visited_fini(vm, visited);
    *visited = more;
    return CY_OK;
}

uint64_t *visited_find(const struct visited *visited, const struct object *object)
{
    if (visited->capacity == 0) return NULL;
    struct visited_entry *entry = &visited->entries[visited_slot(visited, object)];
    return entry->object ? &entry->number : NULL;
}

cy_err visited_put(struct vm *vm, struct visited *visited, const struct object *object, uint64_t number)
{
    if (visited->count >= visited->capacity / 2) CY_TRY(visited_grow(vm, visited));
    visited->entries[visited_slot(visited, object)] = (struct visited_entry){object, number};
    visited->count++;
    return CY_OK;
}

/* The root of an object's class, which has only itself when it is new. Paths are halved on the way. */
static cy_err visited_root(struct vm *vm, struct visited *visited, const struct object *object,
                           const struct object **root_out)
{
    uint64_t *number = visited_find(visited, object);
    *root_out = object;
    if (!number) return visited_put(vm, visited, object, (uint64_t)(uintptr_t)object);
    while (*number != (uint64_t)(uintptr_t)object) {
        const struct object *up = (const struct object *)(uintptr_t)*number;
        uint64_t *up_number = visited_find(visited, up);
        *number = *up_number;
        object = up;
        number = up_number;
    }
    *root_out = object;
    return CY_OK;
}

cy_err visited_join(struct vm *vm, struct visited *visited, const struct object *a, const struct object *b,
                    bool *same_out)
{
    const struct object *a_root, *b_root;
    CY_TRY(visited_root(vm, visited, a, &a_root));
    CY_TRY(visited_root(vm, visited, b, &b_root));
    *same_out = a_root == b_root;
    if (!*same_out) *visited_find(visited, a_root) = (uint64_t)(uintptr_t)b_root;
    return CY_OK;
}
