/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_map.c: module map.
 *
 * In:   arguments already checked against native.def. Out: new values; an argument that nobody else holds is changed
 *       in place.
 * Invariant: work that grows with its input charges the budget. What cannot be a key is not there; any other failure
 *            of a look-up is an error, never "not there".
 */
#include "vm/native/native_data_internal.h"

static enum native_outcome native_map_parts(struct native_call *call, bool keys, const char *native)
{
    cy_value list, key, value, entries = call->args[0];
    size_t at = 0;
    /* All ints, as counts or ids often are, are stored bare: list_append finds that out. */
    cy_err err = list_new(call->vm, 0, &list);
    if (cy_failed(err)) return native_fail_reason(call, err, native);
    native_charge(call, map_object_count(entries) / 16);
    while (!cy_failed(err) && map_next(entries, &at, &key, &value))
        err = list_append(call->vm, &list, value_ref(keys ? key : value));
    return native_data_finish(call, err, list, native);
}
enum native_outcome native_map_keys(struct native_call *call)
{
    return native_map_parts(call, true, "map.keys");
}
enum native_outcome native_map_values(struct native_call *call)
{
    return native_map_parts(call, false, "map.values");
}

static cy_err native_map_look_up(struct native_call *call, bool *found_out, cy_value *value_out)
{
    cy_err err = map_get(call->vm, call->args[0], call->args[1], found_out, value_out);
    return cy_is(err, CY_ERR_KEY) ? CY_OK : err;
}

enum native_outcome native_map_has(struct native_call *call)
{
    bool found;
    cy_value value;
    cy_err err = native_map_look_up(call, &found, &value);
    return cy_failed(err) ? native_fail_reason(call, err, "map.has") : native_return(call, value_bool(found));
}

enum native_outcome native_map_get(struct native_call *call)
{
    bool found;
    cy_value value;
    cy_err err = native_map_look_up(call, &found, &value);
    if (cy_failed(err)) return native_fail_reason(call, err, "map.get");
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
    return native_fail_reason(call, err, "map.remove");
}

enum native_outcome native_map_entries(struct native_call *call)
{
    cy_value list, *places, key, value, entries = call->args[0];
    size_t at = 0;
    cy_err err = list_new_values(call->vm, map_object_count(entries), &list, &places);
    if (cy_failed(err)) return native_fail_reason(call, err, "map.entries");
    native_charge(call, map_object_count(entries) / 8);
    while (!cy_failed(err) && map_next(entries, &at, &key, &value))
        err = native_data_pair(call->vm, key, value, places++);
    return native_data_finish(call, err, list, "map.entries");
}

/* "map.from_entries: item 3: no such key": which one, and why. */
static enum native_outcome native_map_bad_key(struct native_call *call, cy_err err, cy_value owned_map,
                                              size_t index, const char *native)
{
    value_unref(call->vm, owned_map);
    if (!cy_is(err, CY_ERR_KEY)) return native_fail_reason(call, err, native);
    return native_fail(call, err, "%s: item %zu cannot be a key", native, index);
}

enum native_outcome native_map_from_entries(struct native_call *call)
{
    cy_value map, pairs = call->args[0];
    size_t count = list_count(pairs);
    cy_err err = map_new(call->vm, count, &map);
    if (cy_failed(err)) return native_fail_reason(call, err, "map.from_entries");
    native_charge(call, count / 4);
    int64_t budget = native_budget(call);
    for (size_t i = 0; i < count; i++) {
        cy_value pair = list_get(pairs, i);
        if (pair.tag != TAG_LIST || list_count(pair) != 2) {
            value_unref(call->vm, map);
            return native_fail(call, CY_ERR(TYPE),
                               "map.from_entries: item %zu is no list of a key and a value", i);
        }
        err = native_data_set(call, budget, &map, list_get(pair, 0), list_get(pair, 1));
        if (cy_failed(err)) return native_map_bad_key(call, err, map, i, "map.from_entries");
    }
    return native_return(call, map);
}

enum native_outcome native_map_from_keys(struct native_call *call)
{
    cy_value map, keys = call->args[0], value = native_has_arg(call, 1) ? call->args[1] : value_bool(true);
    size_t count = list_count(keys);
    cy_err err = map_new(call->vm, count, &map);
    if (cy_failed(err)) return native_fail_reason(call, err, "map.from_keys");
    native_charge(call, count / 4);
    int64_t budget = native_budget(call);
    for (size_t i = 0; i < count; i++) {
        err = native_data_set(call, budget, &map, list_get(keys, i), value);
        if (cy_failed(err)) return native_map_bad_key(call, err, map, i, "map.from_keys");
    }
    return native_return(call, map);
}

enum native_outcome native_map_merge(struct native_call *call)
{
    cy_value map = native_take_arg(call, 0), more = call->args[1], key, value;
    size_t at = 0;
    cy_err err = CY_OK;
    native_charge(call, map_object_count(more) / 4);
    int64_t budget = native_budget(call);
    while (!cy_failed(err) && map_next(more, &at, &key, &value))
        err = native_data_set(call, budget, &map, key, value);
    return native_data_finish(call, err, map, "map.merge");
}

enum native_outcome native_map_invert(struct native_call *call)
{
    cy_value inverted, entries = call->args[0], key, value;
    size_t at = 0, count = map_object_count(entries);
    cy_err err = map_new(call->vm, count, &inverted);
    if (cy_failed(err)) return native_fail_reason(call, err, "map.invert");
    native_charge(call, count / 4);
    int64_t budget = native_budget(call);
    for (size_t i = 0; map_next(entries, &at, &key, &value); i++) {
        err = native_data_set(call, budget, &inverted, value, key);
        if (cy_failed(err)) return native_map_bad_key(call, err, inverted, i, "map.invert");
    }
    return native_return(call, inverted);
}

enum native_outcome native_map_pick(struct native_call *call)
{
    cy_value picked, keys = call->args[1], value;
    bool found;
    cy_err err = map_new(call->vm, 0, &picked);
    if (cy_failed(err)) return native_fail_reason(call, err, "map.pick");
    native_charge(call, list_count(keys) / 4);
    int64_t budget = native_budget(call);
    for (size_t i = 0; i < list_count(keys) && !cy_failed(err); i++) {
        err = map_get(call->vm, call->args[0], list_get(keys, i), &found, &value);
        if (!cy_failed(err) && found) err = native_data_set(call, budget, &picked, list_get(keys, i), value);
        if (cy_is(err, CY_ERR_KEY)) err = CY_OK; /* what cannot be a key is not there */
    }
    return native_data_finish(call, err, picked, "map.pick");
}

enum native_outcome native_map_omit(struct native_call *call)
{
    cy_value map = native_take_arg(call, 0), keys = call->args[1];
    bool removed;
    cy_err err = CY_OK;
    native_charge(call, list_count(keys) / 4);
    int64_t budget = native_budget(call);
    for (size_t i = 0; i < list_count(keys) && !cy_failed(err); i++) {
        err = map_remove(call->vm, &map, list_get(keys, i), &removed);
        if (!cy_failed(err)) err = native_data_walked(call, budget);
        if (cy_is(err, CY_ERR_KEY)) err = CY_OK; /* what cannot be a key is not there */
    }
    return native_data_finish(call, err, map, "map.omit");
}
