/* SPDX-License-Identifier: MIT
 *
 * vm/code/verify.h: proves that a program can run without touching memory it should not.
 *
 * In:   a program, trusted in nothing but that its arrays have the lengths it says.
 * Out:  accepted, or the rule, function and code offset that refuse it.
 * Method: one pass per function, in code order, with one vector of slot kinds per instruction (docs/TOAU.md).
 *         Time and memory are linear in the code.
 */
#ifndef CY_CODE_VERIFY_H
#define CY_CODE_VERIFY_H

#include "vm/base/builder.h"
#include "vm/code/program.h"

enum code_rule {
    CODE_RULE_NONE = 0,
#define RULE(name, korean, english) CODE_RULE_##name,
#include "vm/code/rule.def"
#undef RULE
    CODE_RULE_COUNT
};

/* What `offset` counts. */
enum code_place {
    CODE_PLACE_FILE,   /* bytes of the file */
    CODE_PLACE_CODE,   /* bytes of the code of `function` */
    CODE_PLACE_LINE,   /* entries of the line table of `function` */
    CODE_PLACE_STRING, /* entries of that table, as the rest */
    CODE_PLACE_CONSTANT,
    CODE_PLACE_NATIVE,
    CODE_PLACE_RECORD,
    CODE_PLACE_MODULE,
    CODE_PLACE_GLOBAL,
    CODE_PLACE_FUNCTION, /* equals `function` */
    CODE_PLACE_PROGRAM,  /* nothing: the program as a whole */
};
struct code_failure {
    enum code_rule rule;
    enum code_place place;
    uint32_t function; /* PROGRAM_NO_INDEX: not inside a function */
    uint32_t offset;
    cy_bytes
        function_name; /* borrowed: from the program after verify_program, from the file after toau_load */
};

const char *code_rule_name(enum code_rule rule);
const char *code_rule_text(enum code_rule rule, bool korean);
/* "rule READ_MAGIC: not a .toau file (at byte 0)", "rule STACK_MAX: ... (function 3 `handle`, code offset
 * 12)". */
void code_failure_describe(const struct code_failure *failure, bool korean, struct builder *out);

/* BAD_FORMAT with `failure_out` filled, NO_MEMORY, or OK. */
CY_NODISCARD cy_err verify_program(const struct program *program, struct code_failure *failure_out);

/* For messages about a program that verify_program refused: calls `refused` for the first fault of each function's code
 * instead of stopping at the first function, or once for what is wrong before that. */
typedef void verify_refused(const struct code_failure *failure, void *context);
CY_NODISCARD cy_err verify_program_each(const struct program *program, verify_refused *refused,
                                        void *context);

/* The greatest height the stack of one function reaches, as verify_program will demand it. BAD_FORMAT when
 * the flow of its code does not hold; verify_program then says why. `function` is one of the program's. */
CY_NODISCARD cy_err function_stack_max(const struct program *program, const struct function *function,
                                       uint16_t *stack_max_out);

#endif
