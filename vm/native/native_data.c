/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_data.c: modules list and map.
 *
 * In:   arguments already checked against native.def. Out: new values; an argument that nobody else holds
 *       is changed in place.
 * Invariant: work that grows with its input charges the budget.
 */
#include "vm/base/limits.h"
#include "vm/code/arith.h"
#include "vm/native/native_bodies.h"
#include "vm/run/heap.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

static enum native_outcome native_data_failed(struct native_call *call, cy_err err, const char *native)
{
    const char *why = cy_err_text(err, vm_korean(call->vm));
    if (!cy_is(err, CY_ERR_LIMIT)) return native_fail(call, err, "%s: %s", native, why);
    return native_fail(call, err, "%s: %s (WALK_STEPS: %d)", native, why, LIMIT_WALK_STEPS);
}

/* -- list ------------------------------------------------------------------------------------------------ */

enum native_outcome native_list_contains(struct native_call *call)
{
    int64_t index;
    native_charge(call, list_count(call->args[0]) / 16);
    cy_err err = list_find(call->vm, call->args[0], call->args[1], &index);
    if (cy_failed(err)) return native_data_failed(call, err, "list.contains");
    return native_return(call, value_bool(index >= 0));
}
enum native_outcome native_list_index(struct native_call *call)
{
    int64_t index;
    native_charge(call, list_count(call->args[0]) / 16);
    cy_err err = list_find(call->vm, call->args[0], call->args[1], &index);
    if (cy_failed(err)) return native_data_failed(call, err, "list.find");
    return native_return(call, value_int(index));
}

/* A list of `count` borrowed values, each referenced: `items`, or without them those of args[0] from the last on. */
static enum native_outcome native_data_return_list(struct native_call *call, const cy_value *items,
                                                   size_t count, const char *native)
{
    cy_value list;
    cy_err err = list_new(call->vm, 0, &list);
    if (cy_failed(err)) return native_data_failed(call, err, native);
    for (size_t i = 0; i < count && !cy_failed(err); i++)
        err = list_append(call->vm, &list,
                          value_ref(items ? items[i] : list_get(call->args[0], count - 1 - i)));
    if (!cy_failed(err)) return native_return(call, list);
    value_unref(call->vm, list);
    return native_data_failed(call, err, native);
}

enum native_outcome native_list_reverse(struct native_call *call)
{
    size_t count = list_count(call->args[0]);
    native_charge(call, count / 8);
    return native_data_return_list(call, NULL, count, "list.reverse");
}

/* Whether b comes before a. Both are numbers but NaN, or both are str. `*steps` counts comparisons and long texts. */
static bool native_data_is_before(cy_value b, cy_value a, uint64_t *steps)
{
    ++*steps;
    if (a.tag == TAG_STR) {
        if (a.as.object == b.as.object) return false;
        cy_bytes a_text = string_bytes(a), b_text = string_bytes(b);
        *steps += cy_min_size(a_text.count, b_text.count) / 16;
        return cy_bytes_compare(b_text, a_text) < 0;
    }
    if (a.tag == TAG_INT && b.tag == TAG_INT) return b.as.i < a.as.i;
    if (a.tag == TAG_FLOAT && b.tag == TAG_FLOAT) return b.as.f < a.as.f;
    if (b.tag == TAG_INT) return arith_compare_int_float(b.as.i, a.as.f) < 0;
    return arith_compare_int_float(a.as.i, b.as.f) > 0;
}

/* Merges runs of doubling width between two halves of `items`; stable. Gives the half with the result; LIMIT when the
 * same long texts stand there so often that comparing them would never end. */
static cy_err native_data_merge_sort(struct native_call *call, cy_value *items, size_t count,
                                     cy_value **sorted_out)
{
    cy_value *from = items, *to = items + count;
    uint64_t steps = 0;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t left = begin, middle = cy_min_size(begin + width, count), right = middle;
            size_t end = cy_min_size(begin + 2 * width, count);
            for (size_t out = begin; out < end && steps <= LIMIT_WALK_STEPS; out++) {
                bool take_right =
                    right < end && (left == middle || native_data_is_before(from[right], from[left], &steps));
                to[out] = take_right ? from[right++] : from[left++];
            }
        }
        cy_value *swap = from;
        from = to;
        to = swap;
    }
    native_charge(call, steps / 8);
    *sorted_out = from;
    return steps <= LIMIT_WALK_STEPS ? CY_OK : CY_ERR(LIMIT);
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
    size_t scratch_bytes = 2 * count * sizeof(cy_value); /* the second half is for merging */
    cy_value *items = heap_alloc(call->vm, scratch_bytes);
    if (!items) return native_data_failed(call, CY_ERR(NO_MEMORY), "list.sort");
    for (size_t i = 0; i < count; i++) items[i] = list_get(call->args[0], i);
    cy_value *sorted;
    cy_err err = native_data_merge_sort(call, items, count, &sorted);
    enum native_outcome outcome = cy_failed(err) ? native_data_failed(call, err, "list.sort")
                                                 : native_data_return_list(call, sorted, count, "list.sort");
    heap_free(call->vm, items, scratch_bytes);
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

/* What cannot be a key is not there; any other failure must not read as "not there": policies ask has. */
static cy_err native_data_get(struct native_call *call, bool *found_out, cy_value *value_out)
{
    cy_err err = map_get(call->vm, call->args[0], call->args[1], found_out, value_out);
    return cy_is(err, CY_ERR_KEY) ? CY_OK : err;
}

enum native_outcome native_map_has(struct native_call *call)
{
    bool found;
    cy_value value;
    cy_err err = native_data_get(call, &found, &value);
    return cy_failed(err) ? native_data_failed(call, err, "map.has") : native_return(call, value_bool(found));
}

enum native_outcome native_map_get(struct native_call *call)
{
    bool found;
    cy_value value;
    cy_err err = native_data_get(call, &found, &value);
    if (cy_failed(err)) return native_data_failed(call, err, "map.get");
    if (found) return native_return(call, value_ref(value));
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
