/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_spoil_code.c: for each rule about code and line tables, a way to break it.
 *
 * In:   accepted programs. Out: programs that exactly one rule refuses first.
 * Invariant: instructions are put in front of a function's own, so that pools stay used and in order.
 */
#include "tests/unit/code/program_spoil_internal.h"

#include "vm/base/limits.h"
#include "vm/code/native_table.h"
#include "vm/code/opcode.h"

/* -- code ---------------------------------------------------------------------------------------------- */

/* A rule that one sequence in front of any function breaks. */
#define SPOIL_CODE(name, ...)                                                            \
    static bool spoil_##name(struct program *program, struct spoil_random *random)       \
    {                                                                                    \
        return SPOIL_PREPEND(program, spoil_any_function(program, random), __VA_ARGS__); \
    }

SPOIL_CODE(opcode_unknown, OP_NIL, 0xff)
SPOIL_CODE(operand_slot, OP_NIL, OP_LOCAL_ADD, 0xff, 0xff)
SPOIL_CODE(operand_capture, OP_CAPTURE_GET, 0xff, 0xff)
SPOIL_CODE(operand_constant, OP_CONST_WIDE, 0xff, 0xff, 0xff, 0xff)
SPOIL_CODE(operand_global, OP_NIL, OP_GLOBAL_ADD, 0xff, 0xff, 0xff, 0xff)
SPOIL_CODE(operand_function, OP_CLOSURE_WIDE, 0xff, 0xff, 0xff, 0xff)
SPOIL_CODE(operand_native, OP_NATIVE_FUNCTION, 0xff, 0xff)
SPOIL_CODE(operand_record, OP_NIL, OP_IS_RECORD, 0xff, 0xff)
SPOIL_CODE(operand_kind, OP_NIL, OP_CHECK_KIND, KIND_COUNT)
SPOIL_CODE(target_start, OP_JUMP, 6, 0, 0, 0, OP_INT8, 1, OP_POP)
SPOIL_CODE(target_forward_outside, OP_NIL, OP_JUMP_IF_TRUE, 0xff, 0xff, 0xff, 0xff)
SPOIL_CODE(target_forward_back, OP_JUMP, 0, 0, 0, 0)
SPOIL_CODE(target_backward, OP_NIL, OP_JUMP_IF_TRUE, 11, 0, 0, 0, OP_LOOP, 6, 0, 0, 0)
SPOIL_CODE(code_dead, OP_NIL, OP_RETURN)
SPOIL_CODE(stack_underflow, OP_POP)
SPOIL_CODE(stack_underflow_counted, OP_NIL, OP_LIST, 2, 0)
SPOIL_CODE(stack_kind_value, OP_TRY_BEGIN, 6, 0, 0, 0, OP_POP)
SPOIL_CODE(stack_kind_iter, OP_NIL, OP_NIL, OP_INTLOOP_BEGIN, OP_ITER_END)
SPOIL_CODE(stack_kind_under, OP_NIL, OP_NIL, OP_DEFER_ATTACH)
SPOIL_CODE(stack_merge_height, OP_NIL, OP_JUMP_IF_TRUE, 7, 0, 0, 0, OP_NIL)
SPOIL_CODE(stack_merge_kind, OP_TRY_BEGIN, 5, 0, 0, 0)
SPOIL_CODE(stack_merge_back, OP_NIL, OP_JUMP_IF_TRUE, 12, 0, 0, 0, OP_NIL, OP_LOOP, 0, 0, 0, 0)

static bool spoil_stack_kind_top(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_any_function(program, random);
    if (function->local_count == 0) return false;
    return SPOIL_PREPEND(program, function, OP_NIL, OP_ITER_BEGIN, OP_INTLOOP_NEXT, 0, 0, 9, 0, 0, 0);
}

static bool spoil_operand_cut(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_any_function(program, random);
    uint8_t cut[] = {OP_CONST_WIDE, 0, 0, 0};
    spoil_insert_code(program, function, function->code_bytes,
                      cy_bytes_of(cut, 1 + spoil_random_below(random, 4)));
    return true;
}

static bool spoil_operand_name(struct program *program, struct spoil_random *random)
{
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (program->constants[i].kind != CONSTANT_STR)
            return SPOIL_PREPEND(program, spoil_any_function(program, random), OP_NIL, OP_FIELD_GET,
                                 SPOIL_U16(i));
    return false;
}

static bool spoil_shortest_form(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_any_function(program, random);
    if (function->local_count == 0) return false;
    return SPOIL_PREPEND(program, function, OP_LOCAL_GET_WIDE, 0, 0, OP_POP);
}

static bool spoil_call_count_many(struct program *program, struct spoil_random *random)
{
    uint32_t target = spoil_find_function(program, random, false);
    if (target == PROGRAM_NO_INDEX || program->functions[target].param_count == 255) return false;
    return SPOIL_PREPEND(program, spoil_any_function(program, random), OP_CALL_FUNCTION, SPOIL_U16(target),
                         255);
}

static bool spoil_call_count_few(struct program *program, struct spoil_random *random)
{
    uint32_t target = spoil_find_function(program, random, false);
    if (target == PROGRAM_NO_INDEX || program->functions[target].required_count == 0) return false;
    return SPOIL_PREPEND(program, spoil_any_function(program, random), OP_CALL_FUNCTION, SPOIL_U16(target),
                         0);
}

static bool spoil_call_captures(struct program *program, struct spoil_random *random)
{
    uint32_t target = spoil_find_function(program, random, true);
    if (target == PROGRAM_NO_INDEX) return false;
    return SPOIL_PREPEND(program, spoil_any_function(program, random), OP_CALL_FUNCTION, SPOIL_U16(target),
                         0);
}

static bool spoil_closure_parent(struct program *program, struct spoil_random *random)
{
    uint32_t target = spoil_find_function(program, random, true);
    if (target == PROGRAM_NO_INDEX || program->functions[target].parent == 0) return false;
    return SPOIL_PREPEND(program, &program->functions[0], OP_CLOSURE, SPOIL_U16(target));
}

static bool spoil_native_count(struct program *program, struct spoil_random *random)
{
    (void)random;
    if (program->native_count == 0) return false;
    struct native_signature signature;
    native_signature_parse(native_row_find(program_string(program, program->natives[0].name)), &signature);
    if (signature.param_count == NATIVE_ARGS_ANY) return false;
    return SPOIL_PREPEND(program, &program->functions[0], OP_NATIVE, 0, 0,
                         (uint8_t)(signature.param_count + 1));
}

static bool spoil_record_count(struct program *program, struct spoil_random *random)
{
    if (program->record_count == 0) return false;
    uint32_t record = spoil_random_below(random, program->record_count);
    uint8_t count = (uint8_t)(program->records[record].field_count ^ 1);
    return SPOIL_PREPEND(program, spoil_any_function(program, random), OP_RECORD, SPOIL_U16(record), count);
}

static bool spoil_path_count(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_any_function(program, random);
    if (function->local_count == 0) return false;
    return SPOIL_PREPEND(program, function, OP_NIL, OP_LOCAL_PATH_SET, 0, 0, 0);
}

static bool spoil_code_end(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_any_function(program, random);
    uint8_t jump[] = {OP_NIL, OP_JUMP_IF_TRUE, 0, 0, 0, 0}, end[] = {OP_NIL};
    spoil_u32(jump + 2, function->code_bytes + sizeof jump);
    spoil_insert_code(program, function, function->code_bytes, cy_bytes_of(end, sizeof end));
    spoil_insert_code(program, function, 0, cy_bytes_of(jump, sizeof jump));
    return true;
}

static bool spoil_stack_limit(struct program *program, struct spoil_random *random)
{
    uint8_t *deep = spoil_alloc(program, LIMIT_FUNCTION_STACK + 1);
    memset(deep, OP_NIL, LIMIT_FUNCTION_STACK + 1);
    return spoil_prepend(program, spoil_any_function(program, random), deep, LIMIT_FUNCTION_STACK + 1);
}

static bool spoil_stack_max(struct program *program, struct spoil_random *random)
{
    spoil_any_function(program, random)->stack_max ^= (uint16_t)(1u << spoil_random_below(random, 16));
    return true;
}

static bool spoil_code_empty(struct program *program, struct spoil_random *random)
{
    (void)random; /* the first: code of the others would miss what its code used first */
    program->functions[0].code_bytes = 0;
    return true;
}

static bool spoil_code_size(struct program *program, struct spoil_random *random)
{
    (void)random;
    uint8_t *code = spoil_alloc(program, LIMIT_FUNCTION_CODE_BYTES + 1);
    program->functions[0].code = code;
    program->functions[0].code_bytes = LIMIT_FUNCTION_CODE_BYTES + 1;
    return true;
}

/* -- line tables --------------------------------------------------------------------------------------- */

static struct function *spoil_function_with_lines(struct program *program, struct spoil_random *random,
                                                  uint32_t lines)
{
    uint32_t start = spoil_random_below(random, program->function_count);
    for (uint32_t i = 0; i < program->function_count; i++) {
        struct function *function = &program->functions[(start + i) % program->function_count];
        if (function->line_count >= lines) return function;
    }
    return NULL;
}

static bool spoil_line_order(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_function_with_lines(program, random, 2);
    if (!function) return false;
    uint32_t at = 1 + spoil_random_below(random, function->line_count - 1);
    function->lines[at].offset = function->lines[at - 1].offset;
    return true;
}

static bool spoil_line_start(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_function_with_lines(program, random, 1);
    if (!function) return false;
    function->lines[function->line_count - 1].offset = function->code_bytes + spoil_random_below(random, 3);
    return true;
}

static bool spoil_line_place(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_function_with_lines(program, random, 1);
    if (!function) return false;
    struct line_entry *line = &function->lines[spoil_random_below(random, function->line_count)];
    *(spoil_random_below(random, 2) ? &line->line : &line->column) = 0;
    return true;
}

static bool spoil_line_same(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_function_with_lines(program, random, 2);
    if (!function) return false;
    function->lines[1].line = function->lines[0].line;
    function->lines[1].column = function->lines[0].column;
    return true;
}

static const struct spoil spoil_code_rows[] = {
    {CODE_RULE_CODE_EMPTY, spoil_code_empty, NULL},
    {CODE_RULE_CODE_SIZE, spoil_code_size, NULL},
    {CODE_RULE_OPCODE_UNKNOWN, spoil_opcode_unknown, NULL},
    {CODE_RULE_OPERAND_CUT, spoil_operand_cut, NULL},
    {CODE_RULE_OPERAND_SLOT, spoil_operand_slot, NULL},
    {CODE_RULE_OPERAND_CAPTURE, spoil_operand_capture, NULL},
    {CODE_RULE_OPERAND_CONSTANT, spoil_operand_constant, NULL},
    {CODE_RULE_OPERAND_NAME, spoil_operand_name, NULL},
    {CODE_RULE_OPERAND_GLOBAL, spoil_operand_global, NULL},
    {CODE_RULE_OPERAND_FUNCTION, spoil_operand_function, NULL},
    {CODE_RULE_OPERAND_NATIVE, spoil_operand_native, NULL},
    {CODE_RULE_OPERAND_RECORD, spoil_operand_record, NULL},
    {CODE_RULE_OPERAND_KIND, spoil_operand_kind, NULL},
    {CODE_RULE_SHORTEST_FORM, spoil_shortest_form, NULL},
    {CODE_RULE_CALL_COUNT, spoil_call_count_many, NULL},
    {CODE_RULE_CALL_COUNT, spoil_call_count_few, NULL},
    {CODE_RULE_CALL_CAPTURES, spoil_call_captures, NULL},
    {CODE_RULE_CLOSURE_PARENT, spoil_closure_parent, NULL},
    {CODE_RULE_NATIVE_COUNT, spoil_native_count, NULL},
    {CODE_RULE_RECORD_COUNT, spoil_record_count, NULL},
    {CODE_RULE_PATH_COUNT, spoil_path_count, NULL},
    {CODE_RULE_TARGET_START, spoil_target_start, NULL},
    {CODE_RULE_TARGET_FORWARD, spoil_target_forward_outside, NULL},
    {CODE_RULE_TARGET_FORWARD, spoil_target_forward_back, NULL},
    {CODE_RULE_TARGET_BACKWARD, spoil_target_backward, NULL},
    {CODE_RULE_CODE_DEAD, spoil_code_dead, NULL},
    {CODE_RULE_CODE_END, spoil_code_end, NULL},
    {CODE_RULE_STACK_UNDERFLOW, spoil_stack_underflow, NULL},
    {CODE_RULE_STACK_UNDERFLOW, spoil_stack_underflow_counted, NULL},
    {CODE_RULE_STACK_KIND, spoil_stack_kind_value, NULL},
    {CODE_RULE_STACK_KIND, spoil_stack_kind_iter, NULL},
    {CODE_RULE_STACK_KIND, spoil_stack_kind_top, NULL},
    {CODE_RULE_STACK_KIND, spoil_stack_kind_under, NULL},
    {CODE_RULE_STACK_MERGE, spoil_stack_merge_height, NULL},
    {CODE_RULE_STACK_MERGE, spoil_stack_merge_kind, NULL},
    {CODE_RULE_STACK_MERGE, spoil_stack_merge_back, NULL},
    {CODE_RULE_STACK_LIMIT, spoil_stack_limit, NULL},
    {CODE_RULE_STACK_MAX, spoil_stack_max, NULL},
    {CODE_RULE_LINE_ORDER, spoil_line_order, NULL},
    {CODE_RULE_LINE_START, spoil_line_start, NULL},
    {CODE_RULE_LINE_PLACE, spoil_line_place, NULL},
    {CODE_RULE_LINE_SAME, spoil_line_same, NULL},
};

const struct spoil *spoil_code_at(size_t index)
{
    return index < CY_COUNT_OF(spoil_code_rows) ? &spoil_code_rows[index] : NULL;
}
