/* SPDX-License-Identifier: MIT
 *
 * vm/run/list.h: the layout of list, private to vm/run.
 *
 * A list knows the kind of its elements and stores them bare: a list of a million ints is 8 MB. Storing
 * another kind promotes: byte -> int -> any, float -> any, bool -> any.
 * Invariant: object.flags is the element kind; LIST_EMPTY only while count is 0 (the first item decides).
 */
#ifndef CY_RUN_LIST_H
#define CY_RUN_LIST_H

#include "vm/run/heap.h"
#include "vm/run/object.h"

/* Bools take a byte each: a sieve of 100,000 flags fits the cache (bench/micro/sieve: 1.6 times as fast). */
enum list_kind { LIST_EMPTY, LIST_BYTE, LIST_BOOL, LIST_INT64, LIST_FLOAT64, LIST_ANY };

struct list {
    struct container container;
    uint32_t count;
    uint32_t capacity;
    union {
        void *memory;
        uint8_t *bytes;
        int64_t *ints;
        double *floats;
        cy_value *any;
    } items;
};

static inline struct list *list_of(cy_value value)
{
    DCHECK(value.tag == TAG_LIST);
    return (struct list *)value.as.object;
}
static inline enum list_kind list_kind_of(const struct list *list)
{
    return (enum list_kind)list->container.head.flags;
}
static inline cy_value list_item(const struct list *list, uint32_t index)
{
    switch (list_kind_of(list)) {
    case LIST_INT64: return value_int(list->items.ints[index]);
    case LIST_FLOAT64: return value_float(list->items.floats[index]);
    case LIST_BYTE: return value_int(list->items.bytes[index]);
    case LIST_BOOL: return value_bool(list->items.bytes[index]);
    default: return list->items.any[index];
    }
}

/* One level deep, room for `more` items behind. */
CY_NODISCARD cy_err list_copy(struct vm *vm, cy_value list, size_t more, cy_value *owned_out);
/* These need the only holder. */
CY_NODISCARD cy_err list_set(struct vm *vm, struct list *unshared, uint32_t index, cy_value owned_item);
CY_NODISCARD cy_err list_push(struct vm *vm, struct list *unshared, cy_value owned_item);
CY_NODISCARD cy_err list_extend(struct vm *vm, struct list *unshared, cy_value more);
/* For heap_drain: takes the last item out (`*item_out`); false when none is left. */
bool list_pop_dead(struct list *list, cy_value *item_out);
void list_free(struct vm *vm, struct list *list);

#endif
