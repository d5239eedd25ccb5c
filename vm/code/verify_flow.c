/* SPDX-License-Identifier: MIT
 *
 * vm/code/verify_flow.c: which kinds of slots lie on the stack at each instruction of one function.
 *
 * In:   the code of one function.
 * Out:  the greatest height, or the rule and offset that refuse it.
 * Invariant: each instruction has one stack, the same on every path that reaches it. Time and memory are
 *            linear in the code: stacks are shared cells of a tree (never copied), an instruction makes at
 *            most three of them, and taking n slots off costs O(log n) however large n is. Without that, 4 MiB
 *            of hostile code could ask for 10^10 steps.
 * Not here: operands that are not jumps (verify_code.c).
 *
 * Because no instruction is reached only from behind, one walk in code order has each stack before it is
 * needed; a jump back then only has to agree.
 */
#include "vm/code/verify_internal.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"

/* INTLOOP and ITER take two slots. Pushed and taken only in pairs, they cannot be split. */
enum { VERIFY_FLOW_LOOP_SLOTS = 2 };

static const struct {
    uint32_t in_flag, out_flag, top_flag, edge_flag;
    enum slot_kind kind;
} verify_flow_kinds[] = {
    {OPF_IN_INTLOOP, OPF_OUT_INTLOOP, OPF_TOP_INTLOOP, 0, SLOT_INTLOOP},
    {OPF_IN_ITER, OPF_OUT_ITER, OPF_TOP_ITER, 0, SLOT_ITER},
    {OPF_IN_HANDLER, OPF_OUT_HANDLER, 0, 0, SLOT_HANDLER},
    {OPF_IN_PENDING, 0, 0, OPF_EDGE_PENDING, SLOT_PENDING},
    {0, 0, 0, OPF_EDGE_VALUE, SLOT_VALUE},
};

void verify_flow_init(struct verify_flow *flow) { *flow = (struct verify_flow){0}; }

void verify_flow_fini(struct verify_flow *flow)
{
    mem_free(flow->cells);
    mem_free(flow->states);
    verify_flow_init(flow);
}

static cy_err verify_flow_refuse(struct verify_fault *fault, enum code_rule rule, uint32_t offset)
{
    *fault = (struct verify_fault){rule, offset};
    return CY_ERR(BAD_FORMAT);
}

cy_err verify_flow_starts(struct verify_flow *flow, const struct function *function,
                          struct verify_fault *fault_out)
{
    uint32_t code_bytes = function->code_bytes;
    if (code_bytes == 0) return verify_flow_refuse(fault_out, CODE_RULE_CODE_EMPTY, 0);
    if (code_bytes > LIMIT_FUNCTION_CODE_BYTES) return verify_flow_refuse(fault_out, CODE_RULE_CODE_SIZE, 0);
    if (code_bytes > flow->state_capacity) {
        uint32_t *states = mem_resize(flow->states, (size_t)code_bytes * sizeof *states);
        if (!states) return CY_ERR(NO_MEMORY);
        flow->states = states;
        flow->state_capacity = code_bytes;
    }
    memset(flow->states, 0, (size_t)code_bytes * sizeof *flow->states);

    cy_bytes code = cy_bytes_of(function->code, code_bytes);
    struct instruction instruction;
    for (uint32_t offset = 0; offset < code_bytes; offset = instruction.next_offset) {
        if (!opcode_row(code.data[offset])->name)
            return verify_flow_refuse(fault_out, CODE_RULE_OPCODE_UNKNOWN, offset);
        if (!opcode_decode(code, offset, &instruction))
            return verify_flow_refuse(fault_out, CODE_RULE_OPERAND_CUT, offset);
        flow->states[offset] = VERIFY_FLOW_START;
    }
    return CY_OK;
}

/* -- stacks -------------------------------------------------------------------------------------------- */

/* Cell 0 is the empty stack. It is nobody's child, so that 0 can mean "none" in child lists. */
static cy_err verify_flow_clear(struct verify_flow *flow)
{
    if (!flow->cells) {
        enum { FIRST_CAPACITY = 64 };
        flow->cells = mem_alloc(FIRST_CAPACITY * sizeof *flow->cells);
        if (!flow->cells) return CY_ERR(NO_MEMORY);
        flow->cell_capacity = FIRST_CAPACITY;
    }
    flow->cells[0] = (struct verify_flow_cell){0};
    flow->cell_count = 1;
    return CY_OK;
}

static cy_err verify_flow_make_room(struct verify_flow *flow)
{
    if (flow->cell_count < flow->cell_capacity) return CY_OK;
    CHECK(flow->cell_capacity <= 4u * LIMIT_FUNCTION_CODE_BYTES); /* three cells an instruction at most */
    uint32_t capacity = flow->cell_capacity * 2;
    struct verify_flow_cell *cells = mem_resize(flow->cells, (size_t)capacity * sizeof *cells);
    if (!cells) return CY_ERR(NO_MEMORY);
    flow->cells = cells;
    flow->cell_capacity = capacity;
    return CY_OK;
}

/* The stack `cell` with one slot more. */
static cy_err verify_flow_push(struct verify_flow *flow, uint32_t cell, enum slot_kind kind,
                               uint32_t *cell_out)
{
    for (uint32_t child = flow->cells[cell].first_child; child; child = flow->cells[child].next_sibling) {
        if (flow->cells[child].kind != kind) continue;
        *cell_out = child;
        return CY_OK;
    }
    CY_TRY(verify_flow_make_room(flow));
    uint32_t made = flow->cell_count++;
    struct verify_flow_cell *below = &flow->cells[cell];
    const struct verify_flow_cell *jump = &flow->cells[below->jump];
    bool equal_strides = below->height - jump->height == jump->height - flow->cells[jump->jump].height;
    flow->cells[made] = (struct verify_flow_cell){
        .parent = cell,
        .jump = equal_strides ? jump->jump : cell,
        .next_sibling = below->first_child,
        .height = below->height + 1,
        .run_count = below->height && below->kind == kind ? below->run_count + 1 : 1,
        .kind = (uint8_t)kind,
    };
    below->first_child = made;
    *cell_out = made;
    return CY_OK;
}

/* The stack `cell` cut down to a height. Jumps have the strides of a skew binary number system (Myers 1983),
 * which makes this O(log height). */
static uint32_t verify_flow_cut(const struct verify_flow *flow, uint32_t cell, uint32_t height)
{
    CHECK(height <= flow->cells[cell].height);
    while (flow->cells[cell].height > height) {
        uint32_t jump = flow->cells[cell].jump;
        cell = flow->cells[jump].height >= height ? jump : flow->cells[cell].parent;
    }
    return cell;
}

/* NONE when the top `count` slots are all of `kind`. */
static enum code_rule verify_flow_top(const struct verify_flow *flow, uint32_t cell, enum slot_kind kind,
                                      uint32_t count)
{
    const struct verify_flow_cell *top = &flow->cells[cell];
    if (count > top->height) return CODE_RULE_STACK_UNDERFLOW;
    if (count > 0 && (top->kind != kind || count > top->run_count)) return CODE_RULE_STACK_KIND;
    return CODE_RULE_NONE;
}

/* -- one instruction ----------------------------------------------------------------------------------- */

/* What the flags of a row say about the slots it takes, leaves, looks at, and hands to its handler. */
struct verify_flow_effect {
    enum slot_kind in, out, edge;
    bool looks; /* the top slots must be of kind `look` */
    enum slot_kind look;
    bool has_edge; /* the FORWARD operand is a handler */
};

static struct verify_flow_effect verify_flow_effect_of(uint32_t flags)
{
    struct verify_flow_effect effect = {.in = SLOT_VALUE, .out = SLOT_VALUE};
    for (size_t i = 0; i < CY_COUNT_OF(verify_flow_kinds); i++) {
        if (flags & verify_flow_kinds[i].in_flag) effect.in = verify_flow_kinds[i].kind;
        if (flags & verify_flow_kinds[i].out_flag) effect.out = verify_flow_kinds[i].kind;
        if (flags & verify_flow_kinds[i].top_flag)
            effect.looks = true, effect.look = verify_flow_kinds[i].kind;
        if (flags & verify_flow_kinds[i].edge_flag)
            effect.has_edge = true, effect.edge = verify_flow_kinds[i].kind;
    }
    return effect;
}

struct verify_flow_step {
    struct verify_flow *flow;
    const struct function *function;
    struct verify_fault *fault;
    uint32_t cell; /* the stack where the walk stands */
    uint32_t height_max;
};

static cy_err verify_flow_note_height(struct verify_flow_step *step, uint32_t cell, uint32_t offset)
{
    uint32_t height = step->flow->cells[cell].height;
    if (height > LIMIT_FUNCTION_STACK) return verify_flow_refuse(step->fault, CODE_RULE_STACK_LIMIT, offset);
    if (height > step->height_max) step->height_max = height;
    return CY_OK;
}

/* Takes and puts what the instruction takes and puts. */
static cy_err verify_flow_apply(struct verify_flow_step *step, const struct instruction *instruction,
                                struct verify_flow_effect effect)
{
    struct verify_flow *flow = step->flow;
    uint32_t flags = opcode_row(instruction->opcode)->flags;
    uint32_t pops = opcode_pops(instruction), pushes = opcode_pushes(instruction);

    enum code_rule rule = verify_flow_top(flow, step->cell, effect.in, pops);
    if (!rule && effect.looks) rule = verify_flow_top(flow, step->cell, effect.look, VERIFY_FLOW_LOOP_SLOTS);
    if (rule) return verify_flow_refuse(step->fault, rule, instruction->offset);
    step->cell = verify_flow_cut(flow, step->cell, flow->cells[step->cell].height - pops);
    if (flags & OPF_ATTACH_PENDING) rule = verify_flow_top(flow, step->cell, SLOT_PENDING, 1);
    if (rule) return verify_flow_refuse(step->fault, rule, instruction->offset);

    for (uint32_t i = 0; i < pushes; i++) CY_TRY(verify_flow_push(flow, step->cell, effect.out, &step->cell));
    return verify_flow_note_height(step, step->cell, instruction->offset);
}

/* Control may go from `instruction` to `target` with the stack `cell`. */
static cy_err verify_flow_arrive(struct verify_flow_step *step, const struct instruction *instruction,
                                 int64_t target, uint32_t cell)
{
    CHECK(target >= 0 && target < step->function->code_bytes);
    uint32_t *state = &step->flow->states[target];
    if (*state == VERIFY_FLOW_NO_START)
        return verify_flow_refuse(step->fault, CODE_RULE_TARGET_START, instruction->offset);
    if (*state == VERIFY_FLOW_START)
        *state = VERIFY_FLOW_CELL + cell;
    else if (*state != VERIFY_FLOW_CELL + cell)
        return verify_flow_refuse(step->fault, CODE_RULE_STACK_MERGE, instruction->offset);
    return CY_OK;
}

static cy_err verify_flow_jump(struct verify_flow_step *step, const struct instruction *instruction,
                               uint32_t before, struct verify_flow_effect effect)
{
    const struct format_row *format = format_row(opcode_row(instruction->opcode)->format);
    for (uint8_t i = 0; i < format->operand_count; i++) {
        int64_t target = instruction->operands[i];
        if (format->operands[i].kind == OPERAND_FORWARD) {
            if (target <= instruction->offset || target >= step->function->code_bytes)
                return verify_flow_refuse(step->fault, CODE_RULE_TARGET_FORWARD, instruction->offset);
            uint32_t cell = step->cell;
            if (effect.has_edge) {
                CY_TRY(verify_flow_push(step->flow, before, effect.edge, &cell));
                CY_TRY(verify_flow_note_height(step, cell, instruction->offset));
            }
            CY_TRY(verify_flow_arrive(step, instruction, target, cell));
        } else if (format->operands[i].kind == OPERAND_BACKWARD) {
            if (target >= instruction->offset)
                return verify_flow_refuse(step->fault, CODE_RULE_TARGET_BACKWARD, instruction->offset);
            CY_TRY(verify_flow_arrive(step, instruction, target, step->cell));
        }
    }
    return CY_OK;
}

/* The stack on entry: from the instruction before, from jumps, or from both when they agree. */
static cy_err verify_flow_enter(struct verify_flow_step *step, uint32_t offset, bool falls_in)
{
    uint32_t *state = &step->flow->states[offset];
    CHECK(*state != VERIFY_FLOW_NO_START);
    if (*state == VERIFY_FLOW_START) {
        if (!falls_in) return verify_flow_refuse(step->fault, CODE_RULE_CODE_DEAD, offset);
        *state = VERIFY_FLOW_CELL + step->cell;
        return CY_OK;
    }
    uint32_t cell = *state - VERIFY_FLOW_CELL;
    if (falls_in && cell != step->cell) return verify_flow_refuse(step->fault, CODE_RULE_STACK_MERGE, offset);
    step->cell = cell;
    return CY_OK;
}

cy_err verify_flow_run(struct verify_flow *flow, const struct function *function, uint16_t *stack_max_out,
                       struct verify_fault *fault_out)
{
    CY_TRY(verify_flow_clear(flow));
    struct verify_flow_step step = {.flow = flow, .function = function, .fault = fault_out};
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    struct instruction instruction = {0};
    bool falls_in = true;
    for (uint32_t offset = 0; offset < function->code_bytes; offset = instruction.next_offset) {
        bool decoded = opcode_decode(code, offset, &instruction);
        CHECK(decoded);
        CY_TRY(verify_flow_enter(&step, offset, falls_in));
        uint32_t before = step.cell;
        uint32_t flags = opcode_row(instruction.opcode)->flags;
        struct verify_flow_effect effect = verify_flow_effect_of(flags);
        CY_TRY(verify_flow_apply(&step, &instruction, effect));
        CY_TRY(verify_flow_jump(&step, &instruction, before, effect));
        falls_in = !(flags & OPF_END);
    }
    if (falls_in) return verify_flow_refuse(fault_out, CODE_RULE_CODE_END, instruction.offset);
    CHECK(step.height_max <= UINT16_MAX);
    *stack_max_out = (uint16_t)step.height_max;
    return CY_OK;
}

cy_err function_stack_max(const struct program *program, const struct function *function,
                          uint16_t *stack_max_out)
{
    CHECK(function >= program->functions && function < program->functions + program->function_count);
    struct verify_flow flow;
    struct verify_fault fault;
    verify_flow_init(&flow);
    cy_err err = verify_flow_starts(&flow, function, &fault);
    if (!cy_failed(err)) err = verify_flow_run(&flow, function, stack_max_out, &fault);
    verify_flow_fini(&flow);
    return err;
}
