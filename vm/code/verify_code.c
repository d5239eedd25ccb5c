/* SPDX-License-Identifier: MIT
 *
 * vm/code/verify_code.c: the operands and the line table of one function.
 *
 * In:   a function whose header was verified.
 * Out:  accepted, or a rule and an offset.
 * Invariant: operands are judged by their kind in format.def, never by opcode, so a new row of opcode.def is
 *            verified the day it is written. What a COUNT means follows from the kind of the operand before
 *            it: SLOT, GLOBAL: steps of a path; FUNCTION, NATIVE: arguments of a call; RECORD: fields. A
 *            FUNCTION that no COUNT follows becomes a value.
 */
#include "vm/code/verify_internal.h"

#include "vm/base/check.h"
#include "vm/code/native_table.h"

/* Where we are. */
struct verify_code {
    struct verify *verify;
    const struct program *program;
    const struct function *function;
    uint32_t function_index;
    struct instruction instruction;
};

static cy_err verify_code_refuse(struct verify_code *code, enum code_rule rule)
{
    return verify_refuse_in(code->verify, rule, CODE_PLACE_CODE, code->function_index,
                            code->instruction.offset);
}

/* Pools are in first-use order: an index is one used before, or the next one. */
static bool verify_code_use(uint32_t *used, int64_t index)
{
    if (index < *used) return true;
    if (index > *used) return false;
    (*used)++;
    return true;
}

static cy_err verify_code_constant(struct verify_code *code, int64_t index, bool is_name)
{
    if (index >= code->program->constant_count) return verify_code_refuse(code, CODE_RULE_OPERAND_CONSTANT);
    if (is_name && code->program->constants[index].kind != CONSTANT_STR)
        return verify_code_refuse(code, CODE_RULE_OPERAND_NAME);
    if (!verify_code_use(&code->verify->constants_used, index))
        return verify_code_refuse(code, CODE_RULE_CONSTANT_ORDER);
    return CY_OK;
}

static cy_err verify_code_native(struct verify_code *code, int64_t index)
{
    if (index >= code->program->native_count) return verify_code_refuse(code, CODE_RULE_OPERAND_NATIVE);
    if (!verify_code_use(&code->verify->natives_used, index))
        return verify_code_refuse(code, CODE_RULE_NATIVE_ORDER);
    return CY_OK;
}

static cy_err verify_code_function_operand(struct verify_code *code, int64_t index, bool is_call)
{
    if (index >= code->program->function_count) return verify_code_refuse(code, CODE_RULE_OPERAND_FUNCTION);
    const struct function *target = &code->program->functions[index];
    if (target->capture_count == 0) return CY_OK;
    if (is_call) return verify_code_refuse(code, CODE_RULE_CALL_CAPTURES);
    if (target->parent != code->function_index) return verify_code_refuse(code, CODE_RULE_CLOSURE_PARENT);
    return CY_OK;
}

/* `owner` is the operand before the count, already verified. */
static cy_err verify_code_count(struct verify_code *code, enum operand_kind owner_kind, int64_t owner,
                                int64_t count)
{
    const struct program *program = code->program;
    switch (owner_kind) {
    case OPERAND_SLOT:
    case OPERAND_GLOBAL: return count >= 1 ? CY_OK : verify_code_refuse(code, CODE_RULE_PATH_COUNT);
    case OPERAND_FUNCTION: {
        const struct function *target = &program->functions[owner];
        bool fits = count >= target->required_count && count <= target->param_count;
        return fits ? CY_OK : verify_code_refuse(code, CODE_RULE_CALL_COUNT);
    }
    case OPERAND_NATIVE: {
        struct verify_native native = code->verify->natives[owner];
        bool fits = count >= native.required_count &&
                    (native.param_count == NATIVE_ARGS_ANY || count <= native.param_count);
        return fits ? CY_OK : verify_code_refuse(code, CODE_RULE_NATIVE_COUNT);
    }
    case OPERAND_RECORD:
        return count == program->records[owner].field_count
                   ? CY_OK
                   : verify_code_refuse(code, CODE_RULE_RECORD_COUNT);
    case OPERAND_NONE:
        return CY_OK;       /* the count comes first: values on the stack, which verify_flow.c demands */
    default: UNREACHABLE(); /* a new shape in format.def: say here what its count means */
    }
}

static cy_err verify_code_operand(struct verify_code *code, const struct format_row *format, uint8_t at)
{
    const struct program *program = code->program;
    int64_t operand = code->instruction.operands[at];
    bool is_last = at + 1 == format->operand_count;
    switch ((enum operand_kind)format->operands[at].kind) {
    case OPERAND_COUNT: {
        enum operand_kind owner_kind = at ? (enum operand_kind)format->operands[at - 1].kind : OPERAND_NONE;
        return verify_code_count(code, owner_kind, at ? code->instruction.operands[at - 1] : 0, operand);
    }
    case OPERAND_SLOT:
        return operand < code->function->local_count ? CY_OK
                                                     : verify_code_refuse(code, CODE_RULE_OPERAND_SLOT);
    case OPERAND_CAPTURE:
        return operand < code->function->capture_count ? CY_OK
                                                       : verify_code_refuse(code, CODE_RULE_OPERAND_CAPTURE);
    case OPERAND_CONSTANT: return verify_code_constant(code, operand, false);
    case OPERAND_NAME: return verify_code_constant(code, operand, true);
    case OPERAND_GLOBAL:
        return operand < program->global_count ? CY_OK : verify_code_refuse(code, CODE_RULE_OPERAND_GLOBAL);
    case OPERAND_FUNCTION: return verify_code_function_operand(code, operand, !is_last);
    case OPERAND_NATIVE: return verify_code_native(code, operand);
    case OPERAND_RECORD:
        return operand < program->record_count ? CY_OK : verify_code_refuse(code, CODE_RULE_OPERAND_RECORD);
    case OPERAND_KIND: return operand < KIND_COUNT ? CY_OK : verify_code_refuse(code, CODE_RULE_OPERAND_KIND);
    case OPERAND_IMMEDIATE:
    case OPERAND_FORWARD:  /* verify_flow.c */
    case OPERAND_BACKWARD: /* verify_flow.c */
    case OPERAND_NONE: return CY_OK;
    }
    UNREACHABLE();
}

static cy_err verify_code_operands(struct verify_code *code)
{
    cy_bytes bytes = cy_bytes_of(code->function->code, code->function->code_bytes);
    for (uint32_t offset = 0; offset < bytes.count; offset = code->instruction.next_offset) {
        bool decoded = opcode_decode(bytes, offset, &code->instruction);
        CHECK(decoded);
        const struct opcode_row *row = opcode_row(code->instruction.opcode);
        const struct format_row *format = format_row(row->format);
        for (uint8_t at = 0; at < format->operand_count; at++) CY_TRY(verify_code_operand(code, format, at));
        const struct opcode_row *narrow = opcode_narrow(row);
        if (narrow && opcode_first_operand_fits(narrow, code->instruction.operands[0]))
            return verify_code_refuse(code, CODE_RULE_SHORTEST_FORM);
    }
    return CY_OK;
}

static cy_err verify_code_lines(struct verify_code *code)
{
    const struct function *function = code->function;
    for (uint32_t i = 0; i < function->line_count; i++) {
        const struct line_entry *line = &function->lines[i];
        const struct line_entry *before = i ? line - 1 : NULL;
        enum code_rule rule = CODE_RULE_NONE;
        if (before && line->offset <= before->offset)
            rule = CODE_RULE_LINE_ORDER;
        else if (line->offset >= function->code_bytes ||
                 code->verify->flow.states[line->offset] == VERIFY_FLOW_NO_START)
            rule = CODE_RULE_LINE_START;
        else if (line->line == 0 || line->column == 0)
            rule = CODE_RULE_LINE_PLACE;
        else if (before && line->line == before->line && line->column == before->column)
            rule = CODE_RULE_LINE_SAME;
        if (rule) return verify_refuse_in(code->verify, rule, CODE_PLACE_LINE, code->function_index, i);
    }
    return CY_OK;
}

/* Passes a fault of verify_flow.c on with the function's name. */
static cy_err verify_code_flow_result(struct verify_code *code, cy_err err, struct verify_fault fault)
{
    if (!cy_is(err, CY_ERR_BAD_FORMAT)) return err;
    return verify_refuse_in(code->verify, fault.rule, CODE_PLACE_CODE, code->function_index, fault.offset);
}

cy_err verify_code_function(struct verify *verify, uint32_t function)
{
    struct verify_code code = {.verify = verify, .program = verify->program, .function_index = function};
    code.function = &verify->program->functions[function];
    struct verify_fault fault = {0};
    cy_err err = verify_flow_starts(&verify->flow, code.function, &fault);
    CY_TRY(verify_code_flow_result(&code, err, fault));
    CY_TRY(verify_code_operands(&code));

    uint16_t stack_max = 0;
    err = verify_flow_run(&verify->flow, code.function, &stack_max, &fault);
    CY_TRY(verify_code_flow_result(&code, err, fault));
    if (stack_max != code.function->stack_max)
        return verify_refuse_in(verify, CODE_RULE_STACK_MAX, CODE_PLACE_FUNCTION, function, function);
    return verify_code_lines(&code);
}
