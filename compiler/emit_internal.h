/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_internal.h: the state of code generation, shared by emit*.c.
 *
 * Method: stack code in one walk. Operands are written in their widest form and strings interned as they come;
 *         program_canonicalise shortens and orders afterwards.
 * Invariant: nothing is written where control cannot come (`reachable`), because the verifier refuses dead code.
 *            `height` is the number of values on the stack before the next instruction.
 */
#ifndef CY_COMPILER_EMIT_INTERNAL_H
#define CY_COMPILER_EMIT_INTERNAL_H

#include "compiler/unit.h"
#include "vm/code/opcode.h"

struct emitter {
    struct compilation *compilation;
    struct program *program;
    struct map strings;   /* entry index = string index */
    struct map constants; /* key: kind and value; entry index = constant index */
    struct map natives;   /* key: English name */
};

/* A forward target. Uses are chained through the operands that will be patched. */
struct label {
    uint32_t last_use; /* offset of the operand, PROGRAM_NO_INDEX: none */
    uint32_t height;
};

/* What lies between a statement and the way out: innermost first. */
enum unwind_kind { UNWIND_LOOP, UNWIND_INTLOOP, UNWIND_ITER, UNWIND_TRY, UNWIND_DEFER };
struct unwind {
    struct unwind *outer;
    enum unwind_kind kind;
    uint32_t top;         /* loops: where continue goes */
    struct label *exit;   /* loops: where break goes */
    struct node *defer;   /* DEFER */
    struct label handler; /* DEFER */
};

struct code {
    struct emitter *emitter;
    struct unit *unit;
    struct function_decl *function;
    struct builder bytes;
    struct line_entry *lines;
    uint32_t line_count, line_capacity;
    uint32_t height, height_max;
    bool reachable;
    bool too_large;                 /* reported; nothing more is written */
    const struct span *fixed_place; /* of a call, while a record's defaults from elsewhere are written */
    uint32_t temp_next, local_count;
    struct unwind *unwind;
};

/* emit_pool.c */
uint32_t emit_string(struct emitter *emitter, cy_bytes text);
uint32_t emit_constant_int(struct emitter *emitter, int64_t integer);
uint32_t emit_constant_real(struct emitter *emitter, double real);
uint32_t emit_constant_text(struct emitter *emitter, cy_bytes text);
uint32_t emit_native(struct emitter *emitter, const struct native_row *row);

/* emit_code.c: instructions */
void emit_op(struct code *code, struct span span, uint8_t opcode);
void emit_op_a(struct code *code, struct span span, uint8_t opcode, int64_t a);
void emit_op_ab(struct code *code, struct span span, uint8_t opcode, int64_t a, int64_t b);
/* With a forward label as the last operand; `a` and `b` are the ones before it, as far as the format has them. */
void emit_jump(struct code *code, struct span span, uint8_t opcode, int64_t a, int64_t b,
               struct label *label);
void emit_label_init(struct label *label);
void emit_bind(struct code *code, struct label *label);
uint32_t emit_here(const struct code *code);
uint32_t emit_temp(struct code *code, struct span span); /* given back by restoring temp_next */
void emit_local_get(struct code *code, struct span span, uint32_t slot, bool last_use);
void emit_local_set(struct code *code, struct span span, uint32_t slot);

/* emit_expr.c */
void emit_expression(struct code *code, struct node *node);
/* Goes to `label` when the truth of `node` is `when`, else falls through. */
void emit_condition(struct code *code, struct node *node, struct label *label, bool when);
void emit_check(struct code *code, const struct annotation *annotation, const struct node *value,
                struct span span);
void emit_symbol(struct code *code, const struct symbol *symbol, struct span span);
void emit_name(struct code *code, const struct node *node);

/* emit_call.c */
bool emit_call_is_direct(const struct node *call);    /* needs no callee value below the arguments */
void emit_call(struct code *code, struct node *call); /* everything */
void emit_call_arguments(struct code *code, struct node *call); /* behind the callee's value, with CALL */
void emit_spawn(struct code *code, struct node *node);

/* emit_stmt.c, emit_assign.c, emit_unwind.c */
void emit_block(struct code *code, struct block *block);
void emit_assign(struct code *code, struct node *node);
void emit_let(struct code *code, struct node *node);
void emit_try(struct code *code, struct node *node);
void emit_defer(struct code *code, struct node *node);
void emit_close_defers(struct code *code, struct unwind *until);
void emit_return(struct code *code, struct node *node);
void emit_leave_loop(struct code *code, struct node *node);

/* emit_function.c */
CY_NODISCARD cy_err emit_function(struct emitter *emitter, struct function_decl *function,
                                  struct function *out);
CY_NODISCARD cy_err emit_init(struct emitter *emitter, struct unit *unit, struct function *out);

#endif
