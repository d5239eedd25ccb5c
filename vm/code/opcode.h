/* SPDX-License-Identifier: MIT
 *
 * vm/code/opcode.h: what opcode.def, format.def and kind.def say, as C.
 *
 * Invariant: nothing else states an opcode's operands, effect or name.
 */
#ifndef CY_CODE_OPCODE_H
#define CY_CODE_OPCODE_H

#include "vm/base/bytes.h"

enum opcode {
#define OP(name, number, format, pops, pushes, flags, jit, meaning) OP_##name = number,
#include "vm/code/opcode.def"
#undef OP
};

enum opcode_flags {
    OPF_TRAP = 1 << 0,
    OPF_WAIT = 1 << 1,
    OPF_END = 1 << 2,
    OPF_SAFE = 1 << 3,
    OPF_WIDE = 1 << 4,
    OPF_IN_INTLOOP = 1 << 5,
    OPF_IN_ITER = 1 << 6,
    OPF_IN_HANDLER = 1 << 7,
    OPF_IN_PENDING = 1 << 8,
    OPF_OUT_INTLOOP = 1 << 9,
    OPF_OUT_ITER = 1 << 10,
    OPF_OUT_HANDLER = 1 << 11,
    OPF_TOP_INTLOOP = 1 << 12,
    OPF_TOP_ITER = 1 << 13,
    OPF_EDGE_VALUE = 1 << 14,
    OPF_EDGE_PENDING = 1 << 15,
    OPF_ATTACH_PENDING = 1 << 16, /* under the popped VALUE lies a PENDING, which stays */
};

/* What the verifier proves about each stack slot at each instruction. */
enum slot_kind { SLOT_VALUE, SLOT_INTLOOP, SLOT_ITER, SLOT_HANDLER, SLOT_PENDING };

enum operand_kind {
    OPERAND_NONE,
    OPERAND_COUNT,
    OPERAND_IMMEDIATE,
    OPERAND_SLOT,
    OPERAND_CAPTURE,
    OPERAND_CONSTANT,
    OPERAND_NAME,
    OPERAND_GLOBAL,
    OPERAND_FUNCTION,
    OPERAND_NATIVE,
    OPERAND_RECORD,
    OPERAND_KIND,
    OPERAND_FORWARD,
    OPERAND_BACKWARD,
};

enum operand_format {
#define FORMAT(name, a, a_bytes, b, b_bytes, c, c_bytes) FORMAT_##name,
#include "vm/code/format.def"
#undef FORMAT
    FORMAT_COUNT
};

enum jit_class { JIT_INLINE, JIT_HELPER, JIT_NEVER };

enum value_kind {
#define KIND(name, number, english, korean) KIND_##name = number,
#include "vm/code/kind.def"
#undef KIND
    KIND_COUNT
};

#define OPERANDS_MAX 3

struct format_row {
    const char *name;
    uint8_t operand_count;
    uint8_t operand_bytes; /* all of them together */
    struct {
        uint8_t kind; /* enum operand_kind */
        uint8_t bytes;
    } operands[OPERANDS_MAX];
};

struct opcode_row {
    const char *name; /* NULL: no such opcode */
    uint8_t number;
    uint8_t format; /* enum operand_format */
    uint8_t jit;
    uint32_t flags;
    const char *meaning;
};

/* One decoded instruction. `operands` are as written, IMMEDIATE sign-extended. */
struct instruction {
    uint8_t opcode;
    uint32_t offset;      /* of the opcode byte */
    uint32_t next_offset; /* of the instruction behind it */
    int64_t operands[OPERANDS_MAX];
};

/* The row of a number; `name` is NULL when there is none. Never fails. */
const struct opcode_row *opcode_row(uint8_t number);
/* NULL when no opcode bears that name. */
const struct opcode_row *opcode_find(cy_bytes name);
const struct format_row *format_row(enum operand_format format);

/* For a row flagged WIDE its narrow twin, else NULL. */
const struct opcode_row *opcode_narrow(const struct opcode_row *row);
/* For a row that has a wide twin that twin, else NULL. */
const struct opcode_row *opcode_wide(const struct opcode_row *row);
/* True when `operand` fits the first operand of `row`, which is not a signed one. */
bool opcode_first_operand_fits(const struct opcode_row *row, int64_t operand);

uint32_t opcode_pops(const struct instruction *instruction);
uint32_t opcode_pushes(const struct instruction *instruction);

/* Decodes at `offset`. False when the opcode is unknown or its operands pass the end; then nothing is
 * written. */
CY_NODISCARD bool opcode_decode(cy_bytes code, uint32_t offset, struct instruction *instruction_out);

const char *kind_name(enum value_kind kind, bool korean);
/* The kind that either spelling names; false when none. */
CY_NODISCARD bool kind_find(cy_bytes name, enum value_kind *kind_out);

#endif
