/* SPDX-License-Identifier: MIT
 *
 * vm/run/list.c: list values with typed storage.
 *
 * In:   items. Out: owned list values.
 * Invariant: see list.h. Functions that write need the only holder and CHECK it where a value is passed.
 */
#include "vm/run/list.h"

#include "vm/base/limits.h"
#include "vm/run/vm_internal.h"

static size_t list_item_bytes(enum list_kind kind)
{
    switch (kind) {
    case LIST_BYTE:
    case LIST_BOOL: return 1;
    case LIST_INT64:
    case LIST_FLOAT64: return 8;
    default: return sizeof(cy_value);
    }
}

/* Capacity counts items of the current kind; an empty list counts in values, the largest. */
static size_t list_memory_bytes(const struct list *list)
{
    return list->capacity * list_item_bytes(list_kind_of(list));
}

static void list_set_kind(struct list *list, enum list_kind kind)
{
    list->container.head.flags = (uint8_t)kind;
}

/* The narrowest kind that holds what `kind` holds and `item` too. Bytes are only what list_new_bytes made. */
static enum list_kind list_kind_with(enum list_kind kind, cy_value item)
{
    bool is_int = item.tag == TAG_INT;
    switch (kind) {
    case LIST_EMPTY:
        if (item.tag == TAG_BOOL) return LIST_BOOL;
        return is_int ? LIST_INT64 : item.tag == TAG_FLOAT ? LIST_FLOAT64 : LIST_ANY;
    case LIST_BYTE:
        if (!is_int) return LIST_ANY;
        return item.as.i >= 0 && item.as.i <= 255 ? LIST_BYTE : LIST_INT64;
    case LIST_BOOL: return item.tag == TAG_BOOL ? LIST_BOOL : LIST_ANY;
    case LIST_INT64: return is_int ? LIST_INT64 : LIST_ANY;
    case LIST_FLOAT64: return item.tag == TAG_FLOAT ? LIST_FLOAT64 : LIST_ANY;
    default: return LIST_ANY;
    }
}

static cy_err list_make_with(struct vm *vm, enum list_kind kind, size_t capacity,
                             void *(*get)(struct vm *vm, size_t bytes), struct list **list_out)
{
    if (capacity > LIMIT_LIST_ITEMS) return CY_ERR_DETAIL(TOO_LARGE, LIMIT_LIST_ITEMS);
    struct list *list = heap_new_object(vm, TAG_LIST, sizeof *list);
    if (!list) return CY_ERR(NO_MEMORY);
    list_set_kind(list, kind);
    list->count = 0;
    list->capacity = (uint32_t)capacity;
    list->items.memory = NULL;
    if (capacity > 0) {
        list->items.memory = get(vm, list_memory_bytes(list));
        if (!list->items.memory) {
            heap_free_object(vm, &list->container.head, sizeof *list);
            return CY_ERR(NO_MEMORY);
        }
    }
    *list_out = list;
    return CY_OK;
}

static inline cy_err list_make(struct vm *vm, enum list_kind kind, size_t capacity, struct list **list_out)
{
    return list_make_with(vm, kind, capacity, heap_alloc, list_out);
}

static cy_value list_value(struct list *list) { return value_object(TAG_LIST, &list->container.head); }

cy_err list_new(struct vm *vm, size_t capacity, cy_value *owned_out)
{
    struct list *list;
    CY_TRY(list_make(vm, LIST_EMPTY, capacity, &list));
    *owned_out = list_value(list);
    return CY_OK;
}

cy_err list_new_bytes(struct vm *vm, cy_bytes bytes, cy_value *owned_out)
{
    struct list *list;
    CY_TRY(list_make(vm, bytes.count ? LIST_BYTE : LIST_EMPTY, bytes.count, &list));
    if (bytes.count) memcpy(list->items.bytes, bytes.data, bytes.count);
    list->count = (uint32_t)bytes.count;
    *owned_out = list_value(list);
    return CY_OK;
}

void list_free(struct vm *vm, struct list *list)
{
    heap_free(vm, list->items.memory, list_memory_bytes(list));
    heap_free_object(vm, &list->container.head, sizeof *list);
}

bool list_pop_dead(struct list *list, cy_value *item_out)
{
    if (list_kind_of(list) != LIST_ANY || list->count == 0) return false;
    *item_out = list->items.any[--list->count];
    return true;
}

size_t list_count(cy_value list)
{
    CHECK(list.tag == TAG_LIST);
    return list_of(list)->count;
}

cy_value list_get(cy_value list, size_t index)
{
    CHECK(list.tag == TAG_LIST);
    CHECK(index < list_of(list)->count);
    return list_item(list_of(list), (uint32_t)index);
}

/* Widens the items in place, from the last to the first, since the new ones are larger. */
static void list_widen_items(struct list *list, enum list_kind kind)
{
    for (uint32_t i = list->count; i-- > 0;) {
        cy_value item = list_item(list, i);
        if (kind == LIST_INT64)
            list->items.ints[i] = item.as.i;
        else
            list->items.any[i] = item;
    }
}

/* Room for `capacity` items of `kind`, which holds at least what the present kind does. */
static cy_err list_reshape(struct vm *vm, struct list *list, enum list_kind kind, size_t capacity)
{
    enum list_kind kind_old = list_kind_of(list);
    if (capacity > LIMIT_LIST_ITEMS) return CY_ERR_DETAIL(TOO_LARGE, LIMIT_LIST_ITEMS);
    size_t bytes = capacity * list_item_bytes(kind), bytes_old = list_memory_bytes(list);
    if (bytes != bytes_old) {
        void *memory = list->items.memory ? heap_resize(vm, list->items.memory, bytes_old, bytes)
                                          : heap_alloc(vm, bytes);
        if (!memory) return CY_ERR(NO_MEMORY);
        list->items.memory = memory;
    }
    list->capacity = (uint32_t)capacity;
    vm_charge_items(vm, list->count); /* moved, or widened */
    if (kind != kind_old && list->count > 0) list_widen_items(list, kind);
    list_set_kind(list, kind);
    return CY_OK;
}

static cy_err list_make_room(struct vm *vm, struct list *list, enum list_kind kind, size_t count)
{
    if (CY_LIKELY(kind == list_kind_of(list) && count <= list->capacity)) return CY_OK;
    size_t capacity = list->capacity;
    if (count > capacity)
        capacity = cy_max_size(count, cy_min_size(capacity + capacity / 2 + 4, LIMIT_LIST_ITEMS));
    return list_reshape(vm, list, kind, capacity);
}

static void list_store(struct list *list, uint32_t index, cy_value owned_item)
{
    switch (list_kind_of(list)) {
    case LIST_BYTE:
    case LIST_BOOL: list->items.bytes[index] = (uint8_t)owned_item.as.i; return;
    case LIST_INT64: list->items.ints[index] = owned_item.as.i; return;
    case LIST_FLOAT64: list->items.floats[index] = owned_item.as.f; return;
    default: list->items.any[index] = owned_item; return;
    }
}

cy_err list_push(struct vm *vm, struct list *unshared, cy_value owned_item)
{
    cy_err err = list_make_room(vm, unshared, list_kind_with(list_kind_of(unshared), owned_item),
                                (size_t)unshared->count + 1);
    if (cy_failed(err)) {
        value_unref(vm, owned_item);
        return err;
    }
    list_store(unshared, unshared->count++, owned_item);
    return CY_OK;
}

cy_err list_set(struct vm *vm, struct list *unshared, uint32_t index, cy_value owned_item)
{
    CHECK(index < unshared->count);
    cy_err err =
        list_make_room(vm, unshared, list_kind_with(list_kind_of(unshared), owned_item), unshared->count);
    if (cy_failed(err)) {
        value_unref(vm, owned_item);
        return err;
    }
    cy_value before = list_item(unshared, index);
    list_store(unshared, index, owned_item);
    value_unref(vm, before);
    return CY_OK;
}

cy_err list_append(struct vm *vm, cy_value *list, cy_value owned_item)
{
    CHECK(list->tag == TAG_LIST);
    if (!value_is_unshared(*list)) {
        cy_value copy;
        cy_err err = list_copy(vm, *list, 1, &copy);
        if (cy_failed(err)) {
            value_unref(vm, owned_item);
            return err;
        }
        vm->counters.copies++;
        value_unref(vm, *list);
        *list = copy;
    }
    return list_push(vm, list_of(*list), owned_item);
}

/* Items [begin, end) of `from` behind those of `to`, which has room and the same kind. */
static void list_copy_items(struct vm *vm, struct list *to, const struct list *from, size_t begin, size_t end)
{
    vm_charge_items(vm, end - begin);
    size_t item_bytes = list_item_bytes(list_kind_of(from));
    uint8_t *target = (uint8_t *)to->items.memory + to->count * item_bytes;
    if (end > begin)
        memcpy(target, (const uint8_t *)from->items.memory + begin * item_bytes, (end - begin) * item_bytes);
    if (list_kind_of(from) == LIST_ANY)
        for (size_t i = begin; i < end; i++) value_ref(from->items.any[i]);
    to->count += (uint32_t)(end - begin);
}

cy_err list_slice(struct vm *vm, cy_value list, size_t begin, size_t end, cy_value *owned_out)
{
    const struct list *from = list_of(list);
    CHECK(begin <= end && end <= from->count);
    struct list *slice;
    CY_TRY(list_make(vm, end > begin ? list_kind_of(from) : LIST_EMPTY, end - begin, &slice));
    if (end > begin) list_copy_items(vm, slice, from, begin, end);
    *owned_out = list_value(slice);
    return CY_OK;
}

cy_err list_copy(struct vm *vm, cy_value list, size_t more, cy_value *owned_out)
{
    const struct list *from = list_of(list);
    size_t capacity;
    if (cy_add_overflows(from->count, more, &capacity)) return CY_ERR_DETAIL(TOO_LARGE, LIMIT_LIST_ITEMS);
    struct list *copy;
    CY_TRY(list_make(vm, from->count ? list_kind_of(from) : LIST_EMPTY, capacity, &copy));
    if (from->count) list_copy_items(vm, copy, from, 0, from->count);
    *owned_out = list_value(copy);
    return CY_OK;
}

static enum list_kind list_kind_joined(const struct list *a, const struct list *b)
{
    if (a->count == 0) return list_kind_of(b);
    enum list_kind x = list_kind_of(a), y = list_kind_of(b);
    if (x == y) return x;
    bool ints = (x == LIST_BYTE || x == LIST_INT64) && (y == LIST_BYTE || y == LIST_INT64);
    return ints ? LIST_INT64 : LIST_ANY;
}

cy_err list_extend(struct vm *vm, struct list *unshared, cy_value more)
{
    const struct list *from = list_of(more);
    CHECK(from != unshared);
    if (from->count == 0) return CY_OK;
    size_t count = (size_t)unshared->count + from->count;
    CY_TRY(list_make_room(vm, unshared, list_kind_joined(unshared, from), count));
    if (list_kind_of(unshared) == list_kind_of(from)) {
        list_copy_items(vm, unshared, from, 0, from->count);
        return CY_OK;
    }
    vm_charge_items(vm, from->count);
    for (uint32_t i = 0; i < from->count; i++)
        list_store(unshared, unshared->count++, value_ref(list_item(from, i)));
    return CY_OK;
}

/* -- for natives ----------------------------------------------------------------------------------------- */

/* A list of `count` items of one kind, not yet filled. */
static cy_err list_new_filled(struct vm *vm, enum list_kind kind, size_t count, cy_value *owned_out,
                              struct list **list_out)
{
    CY_TRY(list_make(vm, count ? kind : LIST_EMPTY, count, list_out));
    vm_charge_items(vm, count);
    (*list_out)->count = (uint32_t)count;
    *owned_out = list_value(*list_out);
    return CY_OK;
}

cy_err list_new_ints(struct vm *vm, size_t count, cy_value *owned_out, int64_t **data_out)
{
    struct list *list;
    CY_TRY(list_new_filled(vm, LIST_INT64, count, owned_out, &list));
    *data_out = list->items.ints;
    return CY_OK;
}

cy_err list_new_floats(struct vm *vm, size_t count, cy_value *owned_out, double **data_out)
{
    struct list *list;
    CY_TRY(list_new_filled(vm, LIST_FLOAT64, count, owned_out, &list));
    *data_out = list->items.floats;
    return CY_OK;
}

cy_err list_new_values(struct vm *vm, size_t count, cy_value *owned_out, cy_value **data_out)
{
    struct list *list;
    CY_TRY(list_make_with(vm, count ? LIST_ANY : LIST_EMPTY, count, heap_alloc_zeroed, &list));
    vm_charge_items(vm, count);
    list->count = (uint32_t)count;
    *owned_out = list_value(list);
    *data_out = list->items.any;
    return CY_OK;
}

const int64_t *list_ints(cy_value list)
{
    CHECK(list.tag == TAG_LIST);
    return list_kind_of(list_of(list)) == LIST_INT64 ? list_of(list)->items.ints : NULL;
}

const double *list_floats(cy_value list)
{
    CHECK(list.tag == TAG_LIST);
    return list_kind_of(list_of(list)) == LIST_FLOAT64 ? list_of(list)->items.floats : NULL;
}

const cy_value *list_values(cy_value list)
{
    CHECK(list.tag == TAG_LIST);
    return list_kind_of(list_of(list)) == LIST_ANY ? list_of(list)->items.any : NULL;
}

cy_err list_own(struct vm *vm, cy_value *list, size_t more)
{
    CHECK(list->tag == TAG_LIST);
    struct list *own = list_of(*list);
    if (value_is_unshared(*list)) return list_make_room(vm, own, list_kind_of(own), own->count + more);
    cy_value copy;
    CY_TRY(list_copy(vm, *list, more, &copy));
    vm->counters.copies++;
    value_unref(vm, *list);
    *list = copy;
    return CY_OK;
}

cy_err list_append_all(struct vm *vm, cy_value *list, cy_value more)
{
    cy_value held = value_ref(more); /* it may be the list itself */
    cy_err err = list_own(vm, list, list_count(more));
    if (!cy_failed(err)) err = list_extend(vm, list_of(*list), held);
    value_unref(vm, held);
    return err;
}

/* Moves items [from, count) to `to`, inside the list's memory. */
static void list_move(struct vm *vm, struct list *list, size_t from, size_t to)
{
    size_t item_bytes = list_item_bytes(list_kind_of(list));
    uint8_t *memory = list->items.memory;
    vm_charge_items(vm, list->count - from);
    memmove(memory + to * item_bytes, memory + from * item_bytes, (list->count - from) * item_bytes);
}

cy_err list_remove_at(struct vm *vm, cy_value *list, size_t index)
{
    CY_TRY(list_own(vm, list, 0));
    struct list *own = list_of(*list);
    CHECK(index < own->count);
    cy_value item = list_item(own, (uint32_t)index);
    list_move(vm, own, index + 1, index);
    own->count--;
    value_unref(vm, item);
    return CY_OK;
}

cy_err list_insert(struct vm *vm, cy_value *list, size_t index, cy_value owned_item)
{
    CY_TRY(list_append(vm, list, owned_item)); /* finds the kind and the room */
    struct list *own = list_of(*list);
    CHECK(index < own->count);
    own->count--;
    cy_value item = list_item(own, own->count);
    list_move(vm, own, index, index + 1);
    own->count++;
    list_store(own, (uint32_t)index, item);
    return CY_OK;
}
