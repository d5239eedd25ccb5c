/* SPDX-License-Identifier: MIT
 *
 * vm/run/instance_internal.h: the parts of an instance, shared by instance.c and instance_extend.c.
 */
#ifndef CY_RUN_INSTANCE_INTERNAL_H
#define CY_RUN_INSTANCE_INTERNAL_H

#include "vm/run/code.h"

/* Makes the arrays of instance->program, new shapes for `owner`. The first `shape_first` shapes are those in
 * instance->shapes, whose array stays the caller's. After a failure, instance_free_parts. */
CY_NODISCARD cy_err instance_make_parts(struct vm *vm, struct instance *instance,
                                        const struct instance *owner, uint32_t shape_first);
/* Frees the arrays, and the constants and the shapes from `shape_first` on; values must be gone. */
void instance_free_parts(struct vm *vm, struct instance *instance, uint32_t shape_first);
/* False with the error raised. */
bool instance_link_natives(struct instance *instance);

#endif
