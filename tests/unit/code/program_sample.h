/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_sample.h: programs that tests start from.
 *
 * Out:  verified, canonical programs. Together they use every opcode and every table.
 */
#ifndef CY_TESTS_CODE_PROGRAM_SAMPLE_H
#define CY_TESTS_CODE_PROGRAM_SAMPLE_H

#include "vm/code/program.h"

/* main(args) { return nil }. */
CY_NODISCARD struct program *program_sample_smallest(void);
/* Two modules; all opcodes but the wide twins of constants, globals and functions, which need 65,537
 * entries. */
CY_NODISCARD struct program *program_sample_broad(void);
/* Those wide twins. About 2 MiB. */
CY_NODISCARD struct program *program_sample_wide(void);

#endif
