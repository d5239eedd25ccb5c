/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn.h: a program as postfix words.
 *
 * Out: text that is complete: reading it back gives the same bytes (the reader follows).
 */
#ifndef CY_CODE_RPN_H
#define CY_CODE_RPN_H

#include "vm/base/builder.h"
#include "vm/code/program.h"

/* The whole program, or with `function` != PROGRAM_NO_INDEX only that one. The program must be verified. */
CY_NODISCARD cy_err rpn_write(const struct program *program, uint32_t function, struct builder *out);

#endif
