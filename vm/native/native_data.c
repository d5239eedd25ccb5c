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
    bool key = err.detail == LIMIT_KEY_STEPS;
    return native_fail(call, err, "%s: %s (%s: %d)", native, why, key ? "KEY_STEPS" : "WALK_STEPS",
                       key ? LIMIT_KEY_STEPS : LIMIT_WALK_STEPS);
}

/* -- list ------------------------------------------------------------------------------------------------ */

static enum native_outcome native_data_find(struct native_call *call, const char *native, int64_t *index_out)
{
    bool paused;
    cy_err err = list_find(call->vm, call->args[0], call->args[1], index_out, &paused);
    if (cy_failed(err)) return native_data_failed(call, err, native);
    return paused ? NATIVE_AGAIN : NATIVE_DONE;
}

enum native_outcome native_list_contains(struct native_call *call)
{
    int64_t index;
    enum native_outcome outcome = native_data_find(call, "list.contains", &index);
    return outcome == NATIVE_DONE ? native_return(call, value_bool(index >= 0)) : outcome;
}
enum native_outcome native_list_index(struct native_call *call)
{
    int64_t index;
    enum native_outcome outcome = native_data_find(call, "list.find", &index);
    return outcome == NATIVE_DONE ? native_return(call, value_int(index)) : outcome;
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
