/* SPDX-License-Identifier: MIT
 *
 * vm/code/verify_internal.h: what the files of the verifier share.
 *
 *      verify.c       records, modules, functions without their code; the order of all steps
 *      verify_pool.c  strings, constants, natives: pools without duplicates or unused entries, in first-use
 *      order verify_code.c  operands and line table of one function
 *      verify_flow.c  stack slots and jumps of one function
 */
#ifndef CY_CODE_VERIFY_INTERNAL_H
#define CY_CODE_VERIFY_INTERNAL_H

#include "vm/code/opcode.h"
#include "vm/code/verify.h"

/* -- verify_flow.c ------------------------------------------------------------------------------------- */

/* A stack of slot kinds is a path in a tree of cells: pushing the same kind on the same stack gives the same
 * cell, so that equal stacks are equal numbers, whatever their height, and copying one costs nothing. */
struct verify_flow_cell {
    uint32_t parent;      /* the stack without its top */
    uint32_t jump;        /* some stack further down; see verify_flow_cut */
    uint32_t first_child; /* stacks with one slot more; 0 = none */
    uint32_t next_sibling;
    uint32_t height;
    uint32_t run_count; /* slots of the top's kind in a row, counted from the top */
    uint8_t kind;       /* enum slot_kind of the top */
};
struct verify_flow {
    struct verify_flow_cell *cells;
    uint32_t cell_count;
    uint32_t cell_capacity;
    uint32_t *states; /* by code offset: enum verify_flow_state, or VERIFY_FLOW_CELL + the cell on entry */
    uint32_t state_capacity;
};
enum verify_flow_state {
    VERIFY_FLOW_NO_START, /* inside an instruction */
    VERIFY_FLOW_START,    /* an instruction that nothing has reached yet */
    VERIFY_FLOW_CELL,
};
/* Rule and code offset of a refusal inside one function. */
struct verify_fault {
    enum code_rule rule;
    uint32_t offset;
};

void verify_flow_init(struct verify_flow *flow);
void verify_flow_fini(struct verify_flow *flow);
/* Finds where instructions start. OPCODE_UNKNOWN, OPERAND_CUT, CODE_EMPTY, CODE_SIZE. */
CY_NODISCARD cy_err verify_flow_starts(struct verify_flow *flow, const struct function *function,
                                       struct verify_fault *fault_out);
/* After verify_flow_starts. The rules TARGET_, CODE_DEAD, CODE_END and STACK_ but STACK_MAX. */
CY_NODISCARD cy_err verify_flow_run(struct verify_flow *flow, const struct function *function,
                                    uint16_t *stack_max_out, struct verify_fault *fault_out);

/* -- all files ----------------------------------------------------------------------------------------- */

struct verify_native {
    uint8_t required_count;
    uint8_t param_count; /* NATIVE_ARGS_ANY: no upper bound */
};
struct verify {
    const struct program *program;
    struct code_failure *failure;
    uint8_t *string_checks;  /* by string: enum verify_string_check */
    uint32_t *string_scopes; /* by string: the last scope that declared it */
    uint32_t scope;
    struct verify_native *natives;
    uint32_t strings_used; /* [0, n) were used so far, in order */
    uint32_t constants_used;
    uint32_t natives_used;
    struct verify_flow flow;
    verify_refused *refused; /* NULL: stop at the first fault */
    void *refused_context;
    bool went_on; /* past a fault */
};

cy_err verify_refuse(struct verify *verify, enum code_rule rule, enum code_place place, uint32_t offset);
cy_err verify_refuse_in(struct verify *verify, enum code_rule rule, enum code_place place, uint32_t function,
                        uint32_t offset);

/* -- verify_pool.c ------------------------------------------------------------------------------------- */

CY_NODISCARD cy_err verify_pool_duplicates(struct verify *verify);
CY_NODISCARD cy_err verify_pool_constants(struct verify *verify);
CY_NODISCARD cy_err verify_pool_natives(struct verify *verify);
/* After everything that uses them. */
CY_NODISCARD cy_err verify_pool_unused(struct verify *verify);
/* The string exists and is used in order. `place` and `offset` say who uses it. */
CY_NODISCARD cy_err verify_pool_string(struct verify *verify, uint32_t string, enum code_place place,
                                       uint32_t offset);
/* And it is a name, or (path) a path. */
CY_NODISCARD cy_err verify_pool_name(struct verify *verify, uint32_t string, bool empty_allowed,
                                     enum code_place place, uint32_t offset);
CY_NODISCARD cy_err verify_pool_path(struct verify *verify, uint32_t string, enum code_place place,
                                     uint32_t offset);
/* A new set of names that must differ; declares one in it, false when it was there. */
void verify_pool_open_scope(struct verify *verify);
CY_NODISCARD bool verify_pool_declare(struct verify *verify, uint32_t string);

/* -- verify_code.c ------------------------------------------------------------------------------------- */

CY_NODISCARD cy_err verify_code_function(struct verify *verify, uint32_t function);

#endif
