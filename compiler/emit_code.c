/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_code.c: instructions, jumps, heights and line entries of one function.
 *
 * In:   opcodes and operands. Out: bytes.
 * Invariant: what an instruction does to the stack is read from opcode.def, never stated here.
 */
#include "compiler/emit_internal.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"

static void emit_code_report_limit(struct code *code, struct span span, const char *limit, int64_t value)
{
    struct diag_list *diags = &code->emitter->compilation->diags;
    if (!code->too_large)
        (void)diag_report_2(diags, &code->unit->source, span, DIAG_LIMIT, cy_bytes_from_text(limit),
                            diag_number(diags, value));
    code->too_large = true;
    code->reachable = false;
}

static void emit_code_place(struct code *code, struct span span, uint32_t flags)
{
    bool first = code->line_count == 0; /* so that every place in a function has a line */
    if (!first && !(flags & (OPF_TRAP | OPF_WAIT))) return;
    if (code->fixed_place) span = *code->fixed_place;
    const struct line_entry *last = code->line_count ? &code->lines[code->line_count - 1] : NULL;
    if (last && last->line == span.line && last->column == span.column) return;
    if (code->line_count == code->line_capacity) {
        uint32_t capacity = code->line_capacity ? code->line_capacity * 2 : 16;
        code->lines = arena_grow(&code->emitter->compilation->arena, code->lines,
                                 code->line_capacity * sizeof *code->lines, capacity * sizeof *code->lines);
        code->line_capacity = capacity;
    }
    code->lines[code->line_count++] =
        (struct line_entry){(uint32_t)code->bytes.count, span.line, span.column};
}

static void emit_code_operand(struct code *code, uint8_t bytes, int64_t operand)
{
    for (uint8_t i = 0; i < bytes; i++) builder_u8(&code->bytes, (uint8_t)((uint64_t)operand >> (8 * i)));
}

/* Writes the instruction and moves the height. Returns the offset of its last operand. */
static uint32_t emit_code_write(struct code *code, struct span span, uint8_t opcode, const int64_t *operands)
{
    const struct opcode_row *row = opcode_row(opcode);
    const struct format_row *format = format_row(row->format);
    struct instruction instruction = {.opcode = opcode, .offset = (uint32_t)code->bytes.count};
    emit_code_place(code, span, row->flags);
    builder_u8(&code->bytes, opcode);
    uint32_t last_operand = (uint32_t)code->bytes.count;
    for (uint8_t i = 0; i < format->operand_count; i++) {
        last_operand = (uint32_t)code->bytes.count;
        instruction.operands[i] = operands[i];
        emit_code_operand(code, format->operands[i].bytes, operands[i]);
    }
    uint32_t pops = opcode_pops(&instruction);
    CHECK(pops <= code->height);
    code->height = code->height - pops + opcode_pushes(&instruction);
    if (code->height > code->height_max) code->height_max = code->height;
    if (code->height > LIMIT_FUNCTION_STACK)
        emit_code_report_limit(code, span, "FUNCTION_STACK", LIMIT_FUNCTION_STACK);
    if (code->bytes.count > LIMIT_FUNCTION_CODE_BYTES)
        emit_code_report_limit(code, span, "FUNCTION_CODE_BYTES", LIMIT_FUNCTION_CODE_BYTES);
    if (row->flags & OPF_END) code->reachable = false;
    return last_operand;
}

void emit_op(struct code *code, struct span span, uint8_t opcode) { emit_op_ab(code, span, opcode, 0, 0); }
void emit_op_a(struct code *code, struct span span, uint8_t opcode, int64_t a)
{
    emit_op_ab(code, span, opcode, a, 0);
}
void emit_op_ab(struct code *code, struct span span, uint8_t opcode, int64_t a, int64_t b)
{
    if (!code->reachable) return;
    const int64_t operands[OPERANDS_MAX] = {a, b, 0};
    (void)emit_code_write(code, span, opcode, operands);
}

/* -- labels -------------------------------------------------------------------------------------------------------- */

void emit_label_init(struct label *label) { *label = (struct label){PROGRAM_NO_INDEX, 0}; }

void emit_jump(struct code *code, struct span span, uint8_t opcode, int64_t a, int64_t b, struct label *label)
{
    if (!code->reachable) return;
    const struct opcode_row *row = opcode_row(opcode);
    uint8_t count = format_row(row->format)->operand_count;
    int64_t operands[OPERANDS_MAX] = {a, b, 0};
    operands[count - 1] = label->last_use;
    uint32_t height_before = code->height;
    uint32_t use = emit_code_write(code, span, opcode, operands);
    /* A handler is entered with the height before its instruction and one slot more; other jumps with the height
     * behind. */
    bool edge = (row->flags & (OPF_EDGE_VALUE | OPF_EDGE_PENDING)) != 0;
    uint32_t height = edge ? height_before + 1 : code->height;
    CHECK(label->last_use == PROGRAM_NO_INDEX || label->height == height);
    label->last_use = use;
    label->height = height;
    if (height > code->height_max) code->height_max = height;
}

void emit_bind(struct code *code, struct label *label)
{
    if (label->last_use == PROGRAM_NO_INDEX || code->too_large) return;
    CHECK(!code->reachable || code->height == label->height);
    code->height = label->height;
    code->reachable = true;
    uint32_t here = emit_here(code);
    if (code->bytes.failed) return; /* said at the end of the function */
    for (uint32_t use = label->last_use; use != PROGRAM_NO_INDEX;) {
        uint8_t *operand = code->bytes.data + use;
        use = cy_load_u32(operand);
        for (int i = 0; i < 4; i++) operand[i] = (uint8_t)(here >> (8 * i));
    }
    label->last_use = PROGRAM_NO_INDEX;
}

uint32_t emit_here(const struct code *code) { return (uint32_t)code->bytes.count; }

/* -- slots --------------------------------------------------------------------------------------------------------- */

uint32_t emit_temp(struct code *code, struct span span)
{
    if (code->temp_next == LIMIT_FUNCTION_LOCALS) {
        emit_code_report_limit(code, span, "FUNCTION_LOCALS", LIMIT_FUNCTION_LOCALS);
        return 0;
    }
    uint32_t slot = code->temp_next++;
    if (code->temp_next > code->local_count) code->local_count = code->temp_next;
    return slot;
}

void emit_local_get(struct code *code, struct span span, uint32_t slot, bool last_use)
{
    emit_op_a(code, span, last_use ? OP_LOCAL_TAKE_WIDE : OP_LOCAL_GET_WIDE, slot);
}
void emit_local_set(struct code *code, struct span span, uint32_t slot)
{
    emit_op_a(code, span, OP_LOCAL_SET_WIDE, slot);
}
