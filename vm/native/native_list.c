/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_list.c: module list: looking, parts, and lists made of lists.
 *
 * In:   arguments already checked against native.def. Out: new values; an argument that nobody else holds is changed
 *       in place.
 * Invariant: work that grows with its input charges the budget. Items that are stored bare stay so.
 * Not here: order (native_list_sort.c), what takes functions (stdlib/list.han).
 */
#include "vm/base/limits.h"
#include "vm/code/arith.h"
#include "vm/native/native_data_internal.h"

/* -- looking ------------------------------------------------------------------------------------------- */

static enum native_outcome native_list_look(struct native_call *call, const char *native, int64_t *index_out)
{
    bool paused;
    cy_err err = list_find(call->vm, call->args[0], call->args[1], index_out, &paused);
    if (cy_failed(err)) return native_fail_reason(call, err, native);
    return paused ? NATIVE_AGAIN : NATIVE_DONE;
}
enum native_outcome native_list_contains(struct native_call *call)
{
    int64_t index;
    enum native_outcome outcome = native_list_look(call, "list.contains", &index);
    return outcome == NATIVE_DONE ? native_return(call, value_bool(index >= 0)) : outcome;
}
enum native_outcome native_list_index(struct native_call *call)
{
    int64_t index;
    enum native_outcome outcome = native_list_look(call, "list.find", &index);
    return outcome == NATIVE_DONE ? native_return(call, value_int(index)) : outcome;
}

static enum native_outcome native_list_end(struct native_call *call, bool last)
{
    size_t count = list_count(call->args[0]);
    if (count > 0) return native_return(call, value_ref(list_get(call->args[0], last ? count - 1 : 0)));
    return native_return(call, native_has_arg(call, 1) ? value_ref(call->args[1]) : value_nil());
}
enum native_outcome native_list_first(struct native_call *call) { return native_list_end(call, false); }
enum native_outcome native_list_last(struct native_call *call) { return native_list_end(call, true); }

enum native_outcome native_list_sum(struct native_call *call)
{
    cy_value items = call->args[0];
    int64_t total = 0;
    double real = 0;
    bool is_real = false;
    native_charge(call, list_count(items) / 16);
    for (size_t i = 0; i < list_count(items); i++) {
        cy_value item = list_get(items, i);
        if (item.tag != TAG_INT && item.tag != TAG_FLOAT)
            return native_fail(call, CY_ERR(TYPE), "list.sum: item %zu must be a number, not %s", i,
                               value_kind_text(call->vm, item));
        if (!is_real && item.tag == TAG_FLOAT) {
            is_real = true;
            real = (double)total;
        }
        if (is_real)
            real += item.tag == TAG_INT ? (double)item.as.i : item.as.f;
        else if (cy_failed(arith_add(total, item.as.i, &total)))
            return native_fail(call, CY_ERR(OVERFLOW), "list.sum: %s",
                               cy_err_text(CY_ERR(OVERFLOW), vm_korean(call->vm)));
    }
    return native_return(call, is_real ? value_float(real) : value_int(total));
}

/* -- parts --------------------------------------------------------------------------------------------- */

/* args[1] as a count of items, at most all of them; false, failed, when it is negative. */
static bool native_list_count_arg(struct native_call *call, const char *native, size_t *count_out)
{
    int64_t count = call->args[1].as.i;
    *count_out = cy_min_size(count < 0 ? 0 : (size_t)count, list_count(call->args[0]));
    if (count >= 0) return true;
    (void)native_fail(call, CY_ERR(VALUE), "%s: count must be 0 or more, not %lld", native, (long long)count);
    return false;
}

static enum native_outcome native_list_part(struct native_call *call, size_t begin, size_t end,
                                            const char *native)
{
    if (begin == 0 && end == list_count(call->args[0])) return native_return(call, native_take_arg(call, 0));
    cy_value part;
    cy_err err = list_slice(call->vm, call->args[0], begin, end, &part);
    return cy_failed(err) ? native_fail_reason(call, err, native) : native_return(call, part);
}
enum native_outcome native_list_take(struct native_call *call)
{
    size_t count;
    if (!native_list_count_arg(call, "list.take", &count)) return NATIVE_FAIL;
    return native_list_part(call, 0, count, "list.take");
}
enum native_outcome native_list_drop(struct native_call *call)
{
    size_t count;
    if (!native_list_count_arg(call, "list.drop", &count)) return NATIVE_FAIL;
    return native_list_part(call, count, list_count(call->args[0]), "list.drop");
}
enum native_outcome native_list_take_last(struct native_call *call)
{
    size_t count, all = list_count(call->args[0]);
    if (!native_list_count_arg(call, "list.take_last", &count)) return NATIVE_FAIL;
    return native_list_part(call, all - count, all, "list.take_last");
}
enum native_outcome native_list_drop_last(struct native_call *call)
{
    size_t count, all = list_count(call->args[0]);
    if (!native_list_count_arg(call, "list.drop_last", &count)) return NATIVE_FAIL;
    return native_list_part(call, 0, all - count, "list.drop_last");
}

/* args[1] as an index of 0..end-1; false, failed, outside. */
static bool native_list_index_arg(struct native_call *call, size_t end, const char *native)
{
    int64_t index = call->args[1].as.i;
    if (index >= 0 && (uint64_t)index < end) return true;
    (void)native_fail(call, CY_ERR(INDEX), "%s: index %lld is outside 0..%zu", native, (long long)index, end);
    return false;
}

enum native_outcome native_list_insert(struct native_call *call)
{
    if (!native_list_index_arg(call, list_count(call->args[0]) + 1, "list.insert")) return NATIVE_FAIL;
    cy_value list = native_take_arg(call, 0);
    cy_err err = list_insert(call->vm, &list, (size_t)call->args[1].as.i, value_ref(call->args[2]));
    return native_data_finish(call, err, list, "list.insert");
}

enum native_outcome native_list_remove_at(struct native_call *call)
{
    if (!native_list_index_arg(call, list_count(call->args[0]), "list.remove_at")) return NATIVE_FAIL;
    cy_value list = native_take_arg(call, 0);
    cy_err err = list_remove_at(call->vm, &list, (size_t)call->args[1].as.i);
    return native_data_finish(call, err, list, "list.remove_at");
}

enum native_outcome native_list_chunk(struct native_call *call)
{
    size_t count = list_count(call->args[0]);
    int64_t size = call->args[1].as.i;
    if (size < 1)
        return native_fail(call, CY_ERR(VALUE), "list.chunk: size must be 1 or more, not %lld",
                           (long long)size);
    size_t step = cy_min_size((size_t)size, cy_max_size(count, 1));
    cy_value chunks, *places;
    cy_err err = list_new_values(call->vm, (count + step - 1) / step, &chunks, &places);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.chunk");
    for (size_t begin = 0; begin < count && !cy_failed(err); begin += step) {
        cy_value chunk;
        err = list_slice(call->vm, call->args[0], begin, cy_min_size(begin + step, count), &chunk);
        if (!cy_failed(err)) *places++ = chunk;
    }
    return native_data_finish(call, err, chunks, "list.chunk");
}

/* -- made of lists ------------------------------------------------------------------------------------- */

enum native_outcome native_list_reverse(struct native_call *call)
{
    cy_value items = call->args[0], reversed, *values;
    size_t count = list_count(items);
    const int64_t *ints = list_ints(items);
    const double *floats = list_floats(items);
    int64_t *ints_to;
    double *floats_to;
    cy_err err = ints     ? list_new_ints(call->vm, count, &reversed, &ints_to)
                 : floats ? list_new_floats(call->vm, count, &reversed, &floats_to)
                          : list_new_values(call->vm, count, &reversed, &values);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.reverse");
    native_charge(call, count / 8);
    for (size_t i = 0; i < count; i++) {
        if (ints)
            ints_to[i] = ints[count - 1 - i];
        else if (floats)
            floats_to[i] = floats[count - 1 - i];
        else
            values[i] = value_ref(list_get(items, count - 1 - i));
    }
    return native_return(call, reversed);
}

enum native_outcome native_list_flatten(struct native_call *call)
{
    cy_value items = call->args[0], flat;
    cy_err err = list_new(call->vm, 0, &flat);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.flatten");
    for (size_t i = 0; i < list_count(items) && !cy_failed(err); i++) {
        cy_value item = list_get(items, i);
        if (item.tag != TAG_LIST) {
            value_unref(call->vm, flat);
            return native_fail(call, CY_ERR(TYPE), "list.flatten: item %zu must be list, not %s", i,
                               value_kind_text(call->vm, item));
        }
        err = list_append_all(call->vm, &flat, item);
    }
    return native_data_finish(call, err, flat, "list.flatten");
}

enum native_outcome native_list_zip(struct native_call *call)
{
    cy_value a = call->args[0], b = call->args[1], pairs, *places;
    size_t count = cy_min_size(list_count(a), list_count(b));
    cy_err err = list_new_values(call->vm, count, &pairs, &places);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.zip");
    native_charge(call, count / 4);
    for (size_t i = 0; i < count && !cy_failed(err); i++)
        err = native_data_pair(call->vm, list_get(a, i), list_get(b, i), &places[i]);
    return native_data_finish(call, err, pairs, "list.zip");
}

enum native_outcome native_list_enumerate(struct native_call *call)
{
    cy_value items = call->args[0], pairs, *places;
    size_t count = list_count(items);
    int64_t from = native_has_arg(call, 1) ? call->args[1].as.i : 0, end;
    if (cy_failed(arith_add(from, (int64_t)count, &end)))
        return native_fail_reason(call, CY_ERR(OVERFLOW), "list.enumerate");
    cy_err err = list_new_values(call->vm, count, &pairs, &places);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.enumerate");
    native_charge(call, count / 4);
    for (size_t i = 0; i < count && !cy_failed(err); i++)
        err = native_data_pair(call->vm, value_int(from + (int64_t)i), list_get(items, i), &places[i]);
    return native_data_finish(call, err, pairs, "list.enumerate");
}

enum native_outcome native_list_unique(struct native_call *call)
{
    cy_value items = call->args[0], unique = value_nil(), seen;
    cy_err err = map_new(call->vm, 0, &seen);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.unique");
    err = list_new(call->vm, 0, &unique);
    native_charge(call, list_count(items) / 4);
    int64_t budget = native_budget(call);
    for (size_t i = 0; i < list_count(items) && !cy_failed(err); i++) {
        cy_value item = list_get(items, i);
        size_t before = map_object_count(seen);
        err = native_data_set(call, budget, &seen, item, value_nil());
        if (!cy_failed(err) && map_object_count(seen) > before)
            err = list_append(call->vm, &unique, value_ref(item));
        if (!cy_is(err, CY_ERR_KEY)) continue;
        value_unref(call->vm, unique);
        value_unref(call->vm, seen);
        return native_fail(call, err, "list.unique: item %zu, a %s, cannot be a key", i,
                           value_kind_text(call->vm, item));
    }
    value_unref(call->vm, seen);
    return native_data_finish(call, err, unique, "list.unique");
}

enum native_outcome native_list_pick(struct native_call *call)
{
    cy_value items = call->args[0], indices = call->args[1], picked;
    size_t count = list_count(indices), all = list_count(items);
    cy_err err = list_new(call->vm, all ? count : 0, &picked);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.pick");
    native_charge(call, count / 8);
    for (size_t i = 0; i < count && !cy_failed(err); i++) {
        cy_value index = list_get(indices, i);
        if (index.tag != TAG_INT || index.as.i < 0 || (uint64_t)index.as.i >= all) {
            value_unref(call->vm, picked);
            return native_fail(call, CY_ERR(INDEX), "list.pick: item %zu of the indices is no int of 0..%zu",
                               i, all);
        }
        err = list_append(call->vm, &picked, value_ref(list_get(items, (size_t)index.as.i)));
    }
    return native_data_finish(call, err, picked, "list.pick");
}

/* -- made of less -------------------------------------------------------------------------------------- */

enum native_outcome native_list_fill(struct native_call *call)
{
    cy_value item = call->args[0], filled;
    int64_t count = call->args[1].as.i;
    if (count < 0)
        return native_fail(call, CY_ERR(VALUE), "list.fill: count must be 0 or more, not %lld",
                           (long long)count);
    cy_err err = CY_ERR_DETAIL(TOO_LARGE, LIMIT_LIST_ITEMS);
    if (count > LIMIT_LIST_ITEMS) return native_fail_reason(call, err, "list.fill");
    int64_t *ints = NULL;
    double *floats = NULL;
    cy_value *values = NULL;
    if (item.tag == TAG_INT)
        err = list_new_ints(call->vm, (size_t)count, &filled, &ints);
    else if (item.tag == TAG_FLOAT)
        err = list_new_floats(call->vm, (size_t)count, &filled, &floats);
    else
        err = list_new_values(call->vm, (size_t)count, &filled, &values);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.fill");
    native_charge(call, (uint64_t)count / 8);
    for (int64_t i = 0; i < count; i++) {
        if (item.tag == TAG_INT)
            ints[i] = item.as.i;
        else if (item.tag == TAG_FLOAT)
            floats[i] = item.as.f;
        else
            values[i] = value_ref(item);
    }
    return native_return(call, filled);
}

enum native_outcome native_list_from_range(struct native_call *call)
{
    int64_t step = native_has_arg(call, 1) ? call->args[1].as.i : 1, *to;
    if (step < 1)
        return native_fail(call, CY_ERR(VALUE), "list.from_range: step must be 1 or more, not %lld",
                           (long long)step);
    uint64_t all = range_item_count(call->args[0]),
             count = all / (uint64_t)step + (all % (uint64_t)step != 0);
    if (count > LIMIT_LIST_ITEMS)
        return native_fail_reason(call, CY_ERR_DETAIL(TOO_LARGE, LIMIT_LIST_ITEMS), "list.from_range");
    cy_value list;
    cy_err err = list_new_ints(call->vm, (size_t)count, &list, &to);
    if (cy_failed(err)) return native_fail_reason(call, err, "list.from_range");
    native_charge(call, count / 16);
    uint64_t first = (uint64_t)range_first(call->args[0]);
    for (uint64_t i = 0; i < count; i++) to[i] = (int64_t)(first + i * (uint64_t)step);
    return native_return(call, list);
}
