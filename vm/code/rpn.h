/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn.h: a program as postfix words, to and fro. docs/RPN.md teaches them.
 *
 * Invariant: what rpn_write wrote of a verified program, rpn_read makes into a program whose .toau has the same bytes.
 */
#ifndef CY_CODE_RPN_H
#define CY_CODE_RPN_H

#include "vm/base/builder.h"
#include "vm/code/program.h"

/* The whole program, or with `function` != PROGRAM_NO_INDEX only that one. The program must be verified. */
CY_NODISCARD cy_err rpn_write(const struct program *program, uint32_t function, struct builder *out);
/* The same with the Korean words. */
CY_NODISCARD cy_err rpn_write_korean(const struct program *program, uint32_t function, struct builder *out);

struct rpn_options {
    cy_bytes file;        /* the text's name, as messages show it */
    cy_bytes module_name; /* of a module that the text does not name: "hello" */
    cy_bytes module_file; /* of a module whose file the text does not name: "hello.rpn" */
    bool korean;          /* the messages */
};
/* Reads, brings into canonical form and verifies. BAD_FORMAT when anything is wrong; NO_MEMORY. `messages` gets every
 * error (as many as LIMIT_COMPILE_ERRORS) and always the line that counts unknown words; that count goes to
 * *unknown_count_out. */
CY_NODISCARD cy_err rpn_read(const struct rpn_options *options, cy_bytes text, struct program **program_out,
                             struct builder *messages, uint32_t *unknown_count_out);

#endif
