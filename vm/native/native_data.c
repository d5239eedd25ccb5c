/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_data.c: what modules list and map share: how they fail and finish.
 */
#include "vm/base/limits.h"
#include "vm/native/native_data_internal.h"

enum native_outcome native_data_finish(struct native_call *call, cy_err err, cy_value owned_list,
                                       const char *native)
{
    if (!cy_failed(err)) return native_return(call, owned_list);
    value_unref(call->vm, owned_list);
    return native_fail_reason(call, err, native);
}

cy_err native_data_pair(struct vm *vm, cy_value a, cy_value b, cy_value *owned_out)
{
    cy_value pair;
    CY_TRY(list_new(vm, 2, &pair));
    cy_err err = list_append(vm, &pair, value_ref(a));
    if (!cy_failed(err)) err = list_append(vm, &pair, value_ref(b));
    if (cy_failed(err))
        value_unref(vm, pair);
    else
        *owned_out = pair;
    return err;
}

/* Walks charge one step of the budget for each eight contents (vm/run/visited.h). */
cy_err native_data_walked(const struct native_call *call, int64_t budget)
{
    return budget - native_budget(call) > LIMIT_WALK_STEPS / 8 ? CY_ERR(LIMIT) : CY_OK;
}

cy_err native_data_set(struct native_call *call, int64_t budget, cy_value *map, cy_value key, cy_value value)
{
    CY_TRY(map_set(call->vm, map, value_ref(key), value_ref(value)));
    return native_data_walked(call, budget);
}
