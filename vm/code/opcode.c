/* SPDX-License-Identifier: MIT
 *
 * vm/code/opcode.c: the rows of opcode.def, format.def and kind.def as tables, and the decoder that reads
 * them.
 *
 * In:   an opcode number, a name, or code bytes at an offset.
 * Out:  rows; one decoded instruction.
 * Invariant: what an opcode pops and pushes is computed from the expressions in its row and nowhere else.
 * Not here: whether operands make sense (verify_code.c).
 */
#include "vm/code/opcode.h"

#include "vm/base/check.h"

static const struct format_row opcode_formats[FORMAT_COUNT] = {
#define FORMAT(name, a, a_bytes, b, b_bytes, c, c_bytes)                               \
    [FORMAT_##name] = {#name,                                                          \
                       (OPERAND_##a != OPERAND_NONE) + (OPERAND_##b != OPERAND_NONE) + \
                           (OPERAND_##c != OPERAND_NONE),                              \
                       (a_bytes) + (b_bytes) + (c_bytes),                              \
                       {{OPERAND_##a, a_bytes}, {OPERAND_##b, b_bytes}, {OPERAND_##c, c_bytes}}},
#include "vm/code/format.def"
#undef FORMAT
};

static const struct opcode_row opcode_rows[256] = {
#define OP(name, number, format, pops, pushes, flags, jit, meaning) \
    [number] = {#name, number, FORMAT_##format, JIT_##jit, flags, meaning},
#include "vm/code/opcode.def"
#undef OP
};

static const struct {
    const char *english;
    const char *korean;
} opcode_kinds[KIND_COUNT] = {
#define KIND(name, number, english, korean) [number] = {english, korean},
#include "vm/code/kind.def"
#undef KIND
};

const struct opcode_row *opcode_row(uint8_t number) { return &opcode_rows[number]; }

const struct opcode_row *opcode_find(cy_bytes name)
{
    for (size_t i = 0; i < CY_COUNT_OF(opcode_rows); i++) {
        const struct opcode_row *row = &opcode_rows[i];
        if (row->name && cy_bytes_equal(cy_bytes_from_text(row->name), name)) return row;
    }
    return NULL;
}

const struct format_row *format_row(enum operand_format format)
{
    CHECK((unsigned)format < FORMAT_COUNT);
    return &opcode_formats[format];
}

const struct opcode_row *opcode_narrow(const struct opcode_row *row)
{
    if (!(row->flags & OPF_WIDE)) return NULL;
    const struct opcode_row *narrow = &opcode_rows[row->number - 1];
    CHECK(narrow->name && !(narrow->flags & OPF_WIDE));
    return narrow;
}

const struct opcode_row *opcode_wide(const struct opcode_row *row)
{
    if (row->number == 0xff || !(opcode_rows[row->number + 1].flags & OPF_WIDE)) return NULL;
    CHECK(!(row->flags & OPF_WIDE));
    return &opcode_rows[row->number + 1];
}

bool opcode_first_operand_fits(const struct opcode_row *row, int64_t operand)
{
    uint8_t bytes = opcode_formats[row->format].operands[0].bytes;
    return operand >= 0 && operand >> (8 * bytes) == 0;
}

/* The parameters are named as the expressions of opcode.def name them. */
static uint32_t opcode_pops_of(uint8_t opcode, uint32_t A, uint32_t B)
{
    switch (opcode) {
#define OP(name, number, format, pops, pushes, flags, jit, meaning) \
    case number:                                                    \
        return (uint32_t)(pops);
#include "vm/code/opcode.def"
#undef OP
    }
    UNREACHABLE();
}

static uint32_t opcode_pushes_of(uint8_t opcode, uint32_t A, uint32_t B)
{
    (void)A, (void)B; /* today every row pushes a fixed number */
    switch (opcode) {
#define OP(name, number, format, pops, pushes, flags, jit, meaning) \
    case number:                                                    \
        return (uint32_t)(pushes);
#include "vm/code/opcode.def"
#undef OP
    }
    UNREACHABLE();
}

uint32_t opcode_pops(const struct instruction *instruction)
{
    return opcode_pops_of(instruction->opcode, (uint32_t)instruction->operands[0],
                          (uint32_t)instruction->operands[1]);
}

uint32_t opcode_pushes(const struct instruction *instruction)
{
    return opcode_pushes_of(instruction->opcode, (uint32_t)instruction->operands[0],
                            (uint32_t)instruction->operands[1]);
}

static int64_t opcode_load_operand(const uint8_t *at, uint8_t kind, uint8_t bytes)
{
    if (kind == OPERAND_IMMEDIATE) {
        CHECK(bytes == 1);
        return (int8_t)at[0];
    }
    switch (bytes) {
    case 1: return at[0];
    case 2: return cy_load_u16(at);
    case 4: return cy_load_u32(at);
    }
    UNREACHABLE();
}

bool opcode_decode(cy_bytes code, uint32_t offset, struct instruction *instruction_out)
{
    if (offset >= code.count) return false;
    const struct opcode_row *row = &opcode_rows[code.data[offset]];
    if (!row->name) return false;
    const struct format_row *format = &opcode_formats[row->format];
    if (format->operand_bytes > code.count - offset - 1) return false;

    *instruction_out = (struct instruction){.opcode = row->number, .offset = offset};
    const uint8_t *at = code.data + offset + 1;
    for (uint8_t i = 0; i < format->operand_count; i++) {
        instruction_out->operands[i] =
            opcode_load_operand(at, format->operands[i].kind, format->operands[i].bytes);
        at += format->operands[i].bytes;
    }
    instruction_out->next_offset = offset + 1 + format->operand_bytes;
    return true;
}

const char *kind_name(enum value_kind kind, bool korean)
{
    CHECK((unsigned)kind < KIND_COUNT);
    return korean ? opcode_kinds[kind].korean : opcode_kinds[kind].english;
}

bool kind_find(cy_bytes name, enum value_kind *kind_out)
{
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        if (!cy_bytes_equal(cy_bytes_from_text(opcode_kinds[i].english), name) &&
            !cy_bytes_equal(cy_bytes_from_text(opcode_kinds[i].korean), name))
            continue;
        *kind_out = (enum value_kind)i;
        return true;
    }
    return false;
}
