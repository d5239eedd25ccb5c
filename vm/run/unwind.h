/* SPDX-License-Identifier: MIT
 *
 * vm/run/unwind.h: handlers of a frame. Private to vm/run; see unwind.c.
 */
#ifndef CY_RUN_UNWIND_H
#define CY_RUN_UNWIND_H

#include "vm/run/fiber.h"

/* Slot numbers stay below 2^17 (LIMIT_FUNCTION_LOCALS + LIMIT_FUNCTION_STACK). */
void unwind_push_handler(struct frame *frame, cy_value *slot_zero, uint32_t slot, uint32_t target,
                         bool is_defer);
void unwind_pop_handler(struct frame *frame, cy_value *slot_zero, uint32_t slot);

#endif
