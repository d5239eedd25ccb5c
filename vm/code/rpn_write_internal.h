/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_write_internal.h: parts of the RPN writer that others show.
 */
#ifndef CY_CODE_RPN_WRITE_INTERNAL_H
#define CY_CODE_RPN_WRITE_INTERNAL_H

#include "vm/base/builder.h"
#include "vm/code/opcode.h"
#include "vm/code/program.h"

/* Bytes in quotes, with escapes. */
void rpn_write_string(cy_bytes text, struct builder *out);
/* One instruction in English words, without indent or line end. `labels` by code offset. */
void rpn_write_one(const struct program *program, const uint32_t *labels,
                   const struct instruction *instruction, struct builder *out);
/* labels[offset] numbers the targets of jumps from 1 in code order; 0 elsewhere. `labels` is zeroed. */
void rpn_write_number_labels(const struct function *function, uint32_t *labels);

#endif
