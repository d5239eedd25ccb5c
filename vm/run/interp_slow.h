/* SPDX-License-Identifier: MIT
 *
 * vm/run/interp_slow.h: what the interpreter's steps do when the quick way does not apply. Private to vm/run.
 *
 * In:   `r`, slot 0 of the frame (it does not move), and the step.
 * Out:  the result in its slot and owned operands let go; or false, vm->raised set and every slot still
 *       valid.
 */
#ifndef CY_RUN_INTERP_SLOW_H
#define CY_RUN_INTERP_SLOW_H

#include "vm/run/fiber.h"

/* Puts an owned value into a slot and lets go of what was there. */
static inline void slow_put(struct vm *vm, cy_value *slot, cy_value owned)
{
    cy_value before = *slot;
    *slot = owned;
    value_unref(vm, before);
}
/* Moves the value out of a slot. */
static inline cy_value slow_take(cy_value *slot)
{
    cy_value value = *slot;
    slot->tag = TAG_NIL;
    return value;
}
static inline void slow_clear(struct vm *vm, cy_value *slot) { value_unref(vm, slow_take(slot)); }
/* The step's v (run_op.def), owned. */
static inline cy_value slow_value(cy_value *r, const cy_value *k, const struct run_step *step)
{
    if (step->x & RUN_OWN_C) return slow_take(run_slot(r, step->c));
    if (step->x & RUN_NUMBER_C) return value_int((int32_t)step->c);
    return value_ref(step->x & RUN_CONSTANT_C ? *run_constant(k, step->c) : *run_slot(r, step->c));
}
/* For a step that found no quick way from a cell: the container in its slot, which holds nothing, as an ordinary
 * operand. */
static inline void slow_settle_cell(const cy_value *cell, cy_value *slot)
{
    if (cell != slot) *slot = value_ref(*cell);
}

/* -- interp_slow.c: arithmetic and comparing */
bool slow_arithmetic(struct vm *vm, cy_value *r, const cy_value *k, const struct run_step *step);
bool slow_unary(struct vm *vm, cy_value *r, const struct run_step *step);
/* All comparison steps, also the fused ones; the answer is in `*truth_out`. */
bool slow_compare(struct vm *vm, cy_value *r, const cy_value *k, const struct run_step *step,
                  bool *truth_out);
void slow_is(struct vm *vm, cy_value *r, const struct instance *instance, const struct run_step *step);
bool slow_check(struct vm *vm, cy_value *r, const struct instance *instance, const struct run_step *step);
bool slow_add_in_place(struct vm *vm, cy_value *target, cy_value more);

/* -- interp_collect.c: collections, loops over them, functions as values */
bool slow_list(struct vm *vm, cy_value *r, const struct run_step *step);
bool slow_map(struct vm *vm, cy_value *r, const struct run_step *step);
bool slow_record(struct vm *vm, cy_value *r, const struct instance *instance, const struct run_step *step);
bool slow_range(struct vm *vm, cy_value *r, const struct run_step *step);
bool slow_ref(struct vm *vm, cy_value *r, const struct run_step *step);
bool slow_text(struct fiber *fiber, cy_value *r, const struct run_step *step);
bool slow_iter_begin(struct vm *vm, cy_value *r, const struct run_step *step);
/* The next item of r[b], r[b+1] as an owned key and value (`pair`) or item; false when there is none. */
bool slow_iter_next(cy_value *state, bool pair, cy_value *key_out, cy_value *value_out);
bool slow_closure(struct fiber *fiber, cy_value *r, const struct run_step *step);
bool slow_self(struct fiber *fiber, cy_value *r, const struct run_step *step);
bool slow_native_function(struct fiber *fiber, cy_value *r, const struct run_step *step);
/* A native that is a step of its own, called as any other with r[b] and, when there are two arguments, v; a third
 * is what the next step sets. */
bool slow_native(struct fiber *fiber, cy_value *r, const cy_value *k, const struct run_step *step,
                 uint16_t number, uint32_t arg_count);
bool slow_throw(struct vm *vm, cy_value *slot);
void slow_defer_attach(struct vm *vm, cy_value *pending, cy_value *error);

/* -- path_set.c: reading and writing inside values */
bool slow_index_get(struct vm *vm, cy_value *r, const struct run_step *step);
/* The same from a container that is in no slot. */
bool slow_index_get_from(struct vm *vm, cy_value *r, const struct run_step *step, cy_value container);
bool slow_slice(struct vm *vm, cy_value *r, const struct run_step *step);
bool slow_field_get(struct vm *vm, cy_value *r, const struct instance *instance, struct run_step *step);
bool slow_append(struct vm *vm, cy_value *list, cy_value owned_item);
/* PATH_INDEX, PATH_FIELD: the place inside `*cell`, which nobody else holds from then on; NULL on failure. */
cy_value *slow_enter_index(struct vm *vm, cy_value *r, cy_value *cell, const struct run_step *step);
cy_value *slow_enter_field(struct vm *vm, cy_value *cell, const struct instance *instance,
                           struct run_step *step);
/* INDEX_SET to FIELD_APPEND, and their forms on locals. */
bool slow_index_set(struct vm *vm, cy_value *r, cy_value *cell, const struct run_step *step, cy_value owned);
bool slow_index_add(struct vm *vm, cy_value *r, cy_value *cell, const struct run_step *step, cy_value owned);
bool slow_index_append(struct vm *vm, cy_value *r, cy_value *cell, const struct run_step *step,
                       cy_value owned);
bool slow_field_set(struct vm *vm, cy_value *cell, const struct instance *instance, struct run_step *step,
                    cy_value owned);
bool slow_field_add(struct vm *vm, cy_value *cell, const struct instance *instance, struct run_step *step,
                    cy_value owned);
bool slow_field_append(struct vm *vm, cy_value *cell, const struct instance *instance, struct run_step *step,
                       cy_value owned);

/* Always false: which required argument was passed on without having been given. */
bool slow_absent_argument(struct vm *vm, const struct instance *instance, const struct code_function *callee,
                          const cy_value *args);
/* Always false: which function takes how many arguments. */
bool slow_wrong_count(struct vm *vm, const struct instance *instance, uint32_t function, uint32_t arg_count);

#endif
