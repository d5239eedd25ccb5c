/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_data.c: modules list and map.
 *
 * In:   arguments already checked against native.def. Out: new values; an argument that nobody else holds
 *       is changed in place.
 * Invariant: work that grows with its input charges the budget.
 */
#include "vm/base/mem.h"
#include "vm/code/arith.h"
#include "vm/native/native_bodies.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

static enum native_outcome native_data_failed(struct native_call *call, cy_err err, const char *native)
{
    return native_fail(call, err, "%s: %s", native, cy_err_text(err, vm_korean(call->vm)));
}

/* -- list ------------------------------------------------------------------------------------------------ */

/* The index of the first item that equals args[1], or -1. NO_MEMORY when they could not be compared. */
static cy_err native_data_find(struct native_call *call, int64_t *index_out)
{
    cy_value items = call->args[0];
    size_t count = list_count(items);
    native_charge(call, count / 16);
    for (size_t i = 0; i < count; i++) {
        bool equal;
        CY_TRY(value_compare(call->vm, list_get(items, i), call->args[1], &equal));
        *index_out = (int64_t)i;
        if (equal) return CY_OK;
    }
    *index_out = -1;
    return CY_OK;
}

enum native_outcome native_list_contains(struct native_call *call)
{
    int64_t index;
    cy_err err = native_data_find(call, &index);
    if (cy_failed(err)) return native_data_failed(call, err, "list.contains");
    return native_return(call, value_bool(index >= 0));
}
enum native_outcome native_list_index(struct native_call *call)
{
    int64_t index;
    cy_err err = native_data_find(call, &index);
    if (cy_failed(err)) return native_data_failed(call, err, "list.find");
    return native_return(call, value_int(index));
}

/* A list of borrowed values, each referenced. */
static enum native_outcome native_data_return_list(struct native_call *call, const cy_value *items,
                                                   size_t count, bool reverse, const char *native)
{
    cy_value list;
    cy_err err = list_new(call->vm, 0, &list);
    if (cy_failed(err)) return native_data_failed(call, err, native);
    for (size_t i = 0; i < count && !cy_failed(err); i++)
        err = list_append(call->vm, &list, value_ref(items[reverse ? count - 1 - i : i]));
    if (!cy_failed(err)) return native_return(call, list);
    value_unref(call->vm, list);
    return native_data_failed(call, err, native);
}

/* The list's items as values; NULL without memory. */
static cy_value *native_data_items(cy_value list, size_t count)
{
    cy_value *items = mem_alloc(2 * count * sizeof *items); /* the second half is for sorting */
    for (size_t i = 0; items && i < count; i++) items[i] = list_get(list, i);
    return items;
}

enum native_outcome native_list_reverse(struct native_call *call)
{
    size_t count = list_count(call->args[0]);
    cy_value *items = native_data_items(call->args[0], count);
    if (!items) return native_data_failed(call, CY_ERR(NO_MEMORY), "list.reverse");
    native_charge(call, count / 16);
    enum native_outcome outcome = native_data_return_list(call, items, count, true, "list.reverse");
    mem_free(items);
    return outcome;
}

/* Whether b comes before a. Both are numbers but NaN, or both are str. */
static bool native_data_is_before(cy_value b, cy_value a)
{
    if (a.tag == TAG_STR) return cy_bytes_compare(string_bytes(b), string_bytes(a)) < 0;
    if (a.tag == TAG_INT && b.tag == TAG_INT) return b.as.i < a.as.i;
    if (a.tag == TAG_FLOAT && b.tag == TAG_FLOAT) return b.as.f < a.as.f;
    if (b.tag == TAG_INT) return arith_compare_int_float(b.as.i, a.as.f) < 0;
    return arith_compare_int_float(a.as.i, b.as.f) > 0;
}

/* Merges runs of doubling width between two halves of `items`; stable. Returns the half with the result. */
static cy_value *native_data_merge_sort(cy_value *items, size_t count)
{
    cy_value *from = items, *to = items + count;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t left = begin, middle = cy_min_size(begin + width, count), right = middle;
            size_t end = cy_min_size(begin + 2 * width, count);
            for (size_t out = begin; out < end; out++) {
                bool take_right =
                    right < end && (left == middle || native_data_is_before(from[right], from[left]));
                to[out] = take_right ? from[right++] : from[left++];
            }
        }
        cy_value *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

static bool native_data_sortable(struct native_call *call, cy_value first, cy_value item, size_t index)
{
    bool numbers = first.tag == TAG_INT || first.tag == TAG_FLOAT;
    bool fits = numbers ? item.tag == TAG_INT || item.tag == TAG_FLOAT : item.tag == TAG_STR;
    if (fits && (item.tag != TAG_FLOAT || item.as.f == item.as.f)) return true;
    const char *kind = fits ? "NaN" : value_kind_text(call->vm, item);
    native_fail(call, CY_ERR(TYPE), "list.sort: item %zu is %s; all items must be numbers, or all str", index,
                kind);
    return false;
}

enum native_outcome native_list_sort(struct native_call *call)
{
    size_t count = list_count(call->args[0]);
    for (size_t i = 0; i < count; i++)
        if (!native_data_sortable(call, list_get(call->args[0], 0), list_get(call->args[0], i), i))
            return NATIVE_FAIL;
    cy_value *items = native_data_items(call->args[0], count);
    if (!items) return native_data_failed(call, CY_ERR(NO_MEMORY), "list.sort");
    uint64_t levels = 1;
    while ((size_t)1 << levels < count) levels++;
    native_charge(call, count * levels / 16);
    cy_value *sorted = native_data_merge_sort(items, count);
    enum native_outcome outcome = native_data_return_list(call, sorted, count, false, "list.sort");
    mem_free(items);
    return outcome;
}

/* -- map ------------------------------------------------------------------------------------------------- */

static enum native_outcome native_data_parts(struct native_call *call, bool keys, const char *native)
{
    cy_value list, key, value, entries = call->args[0];
    size_t count = map_object_count(entries), at = 0;
    cy_err err = list_new(call->vm, 0, &list);
    if (cy_failed(err)) return native_data_failed(call, err, native);
    native_charge(call, count / 16);
    while (map_next(entries, &at, &key, &value) && !cy_failed(err))
        err = list_append(call->vm, &list, value_ref(keys ? key : value));
    if (!cy_failed(err)) return native_return(call, list);
    value_unref(call->vm, list);
    return native_data_failed(call, err, native);
}

enum native_outcome native_map_keys(struct native_call *call)
{
    return native_data_parts(call, true, "map.keys");
}
enum native_outcome native_map_values(struct native_call *call)
{
    return native_data_parts(call, false, "map.values");
}

enum native_outcome native_map_has(struct native_call *call)
{
    cy_value value;
    return native_return(call, value_bool(map_get(call->vm, call->args[0], call->args[1], &value)));
}

enum native_outcome native_map_get(struct native_call *call)
{
    cy_value value;
    if (map_get(call->vm, call->args[0], call->args[1], &value)) return native_return(call, value_ref(value));
    return native_return(call, native_has_arg(call, 2) ? value_ref(call->args[2]) : value_nil());
}

enum native_outcome native_map_remove(struct native_call *call)
{
    bool removed;
    cy_value map = native_take_arg(call, 0);
    cy_err err = map_remove(call->vm, &map, call->args[1], &removed);
    if (cy_is(err, CY_ERR_KEY)) err = CY_OK; /* what cannot be a key is not there */
    if (!cy_failed(err)) return native_return(call, map);
    value_unref(call->vm, map);
    return native_data_failed(call, err, "map.remove");
}
