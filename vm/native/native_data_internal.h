/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_data_internal.h: what the files of modules list and map share.
 */
#ifndef CY_NATIVE_NATIVE_DATA_INTERNAL_H
#define CY_NATIVE_NATIVE_DATA_INTERNAL_H

#include "vm/native/native_bodies.h"
#include "vm/run/heap.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

/* The list on success, else lets it go and fails. For a list that was begun. */
enum native_outcome native_data_finish(struct native_call *call, cy_err err, cy_value owned_list,
                                       const char *native);
/* A list of two items. */
CY_NODISCARD cy_err native_data_pair(struct vm *vm, cy_value a, cy_value b, cy_value *owned_out);
/* map_set of borrowed values. LIMIT once the keys that this call looked at, since it had `budget` left, have more
 * contents than LIMIT_WALK_STEPS, all together: each alone is bounded by map_set. */
CY_NODISCARD cy_err native_data_set(struct native_call *call, int64_t budget, cy_value *map, cy_value key,
                                    cy_value value);
CY_NODISCARD cy_err native_data_walked(const struct native_call *call, int64_t budget);

#endif
