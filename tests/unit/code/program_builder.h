/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_builder.h: programs by hand, for tests.
 *
 * In:   declarations and instructions in order; jumps name labels.
 * Out:  a program, canonical or exactly as built.
 * Errors: a full table or no memory is a failed CHECK: tests are ours.
 * Not here: the compiler's emitter.
 *
 *      struct program_builder *b = program_builder_new();
 *      pb_module(b, "main", "main.han");
 *      pb_function(b, "main", 1, 1, 2);
 *      pb_op(b, OP_NIL);
 *      pb_op(b, OP_RETURN);
 *      struct program *program = program_builder_finish(&b, true);
 */
#ifndef CY_TESTS_CODE_PROGRAM_BUILDER_H
#define CY_TESTS_CODE_PROGRAM_BUILDER_H

#include "vm/code/opcode.h"
#include "vm/code/program.h"

struct program_builder;

CY_NODISCARD struct program_builder *program_builder_new(void);
/* Gives the program and frees the builder. With `canonical` program_canonicalise ran; else stack_max alone
 * was computed (where the flow allows), and pools are as they were interned. */
CY_NODISCARD struct program *program_builder_finish(struct program_builder **builder, bool canonical);

/* Pools: each gives an index; equal entries are interned unless `pb_raw_` says otherwise. */
uint32_t pb_string(struct program_builder *b, const char *text);
uint32_t pb_bytes(struct program_builder *b, cy_bytes bytes);
uint32_t pb_raw_string(struct program_builder *b, cy_bytes bytes);
uint32_t pb_int(struct program_builder *b, int64_t number);
uint32_t pb_float(struct program_builder *b, double number);
uint32_t pb_str(struct program_builder *b, const char *text);
uint32_t pb_raw_constant(struct program_builder *b, struct constant constant);
uint32_t pb_native(struct program_builder *b, const char *english);

/* Tables. A function, global or record belongs to the module begun last. `fields` is a list closed by NULL. */
uint32_t pb_module(struct program_builder *b, const char *name, const char *file);
uint32_t pb_global(struct program_builder *b, const char *name);
uint32_t pb_record(struct program_builder *b, const char *name, const char *const *fields);
/* Fields take any value until this says otherwise. `type`: a record's index, or PROGRAM_NO_INDEX. */
void pb_field_kinds(struct program_builder *b, uint32_t record, uint32_t field, uint32_t kinds,
                    uint32_t type);
void pb_export(struct program_builder *b, const char *name, enum export_kind kind, uint32_t index);
void pb_init(struct program_builder *b, uint32_t function);

/* A function at module level; what follows goes into it. */
uint32_t pb_function(struct program_builder *b, const char *name, uint8_t required, uint8_t params,
                     uint16_t locals);
void pb_parent(struct program_builder *b, uint32_t parent);
void pb_capture(struct program_builder *b, bool from_parent_local, uint16_t index);
void pb_line(struct program_builder *b, uint32_t line, uint32_t column);

/* Labels: made anywhere in a function, placed once. A FORWARD or BACKWARD operand is a label. */
uint32_t pb_label(struct program_builder *b);
void pb_place(struct program_builder *b, uint32_t label);
void pb_emit(struct program_builder *b, uint8_t opcode, const int64_t *operands, size_t count);
#define pb_op(b, opcode, ...)                                   \
    pb_emit(b, opcode, (const int64_t[]){0, ##__VA_ARGS__} + 1, \
            sizeof((const int64_t[]){0, ##__VA_ARGS__}) / 8 - 1)
void pb_byte(struct program_builder *b, uint8_t byte); /* into the code, whatever it means */

#endif
