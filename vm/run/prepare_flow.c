/* SPDX-License-Identifier: MIT
 *
 * vm/run/prepare_flow.c: preparing a function: jump targets and heights, the walk, and the jumps' distances.
 *
 * In:   a verified function: one height per offset, every instruction reached from before or by fall-through.
 * Out:  struct code_function, memory from the VM's heap.
 * Not here: single instructions (prepare.c).
 */
#include "vm/base/mem.h"
#include "vm/run/prepare_internal.h"
#include "vm/run/vm_internal.h"

static void prepare_flow_arrive(struct prepare *p, uint32_t target, uint32_t height)
{
    CHECK(p->heights[target] == 0 || p->heights[target] == height + 1);
    p->heights[target] = height + 1;
}

/* First pass: which offsets are jumped to, and with which height. */
static void prepare_flow_mark(struct prepare *p)
{
    cy_bytes code = cy_bytes_of(p->source->code, p->source->code_bytes);
    uint32_t height = 0;
    for (uint32_t offset = 0; offset < code.count;) {
        struct instruction instruction;
        CHECK(opcode_decode(code, offset, &instruction));
        const struct opcode_row *row = opcode_row(instruction.opcode);
        const struct format_row *format = format_row((enum operand_format)row->format);
        if (p->heights[offset]) height = p->heights[offset] - 1;
        uint32_t before = height;
        height = height - opcode_pops(&instruction) + opcode_pushes(&instruction);
        bool handler = row->flags & (OPF_EDGE_VALUE | OPF_EDGE_PENDING);
        p->has_handlers |= handler;
        for (int i = 0; i < format->operand_count; i++) {
            uint8_t kind = format->operands[i].kind;
            uint32_t target = (uint32_t)instruction.operands[i];
            if (kind == OPERAND_FORWARD) prepare_flow_arrive(p, target, handler ? before + 1 : height);
            if (kind == OPERAND_BACKWARD) prepare_flow_arrive(p, target, height);
        }
        offset = instruction.next_offset;
    }
}

/* Second pass. */
static void prepare_flow_lower(struct prepare *p)
{
    cy_bytes code = cy_bytes_of(p->source->code, p->source->code_bytes);
    bool reached = true;
    for (uint32_t offset = 0; offset < code.count && !cy_failed(p->err);
         offset = p->instruction.next_offset) {
        CHECK(opcode_decode(code, offset, &p->instruction));
        if (p->heights[offset]) {
            if (reached) prepare_settle_all(p);
            prepare_forget(p, p->heights[offset] - 1);
            p->steps[offset] = p->step_count;
            p->fusable_step = PREPARE_NO_STEP;
        }
        prepare_instruction(p);
        reached = !(opcode_row(p->instruction.opcode)->flags & OPF_END);
    }
}

#define JUMP RUN_FLAG_JUMP
#define INT_C RUN_FLAG_INT_C
#define K_B RUN_FLAG_K_B
#define K_C RUN_FLAG_K_C
#define A RUN_FLAG_A
#define B RUN_FLAG_B
#define C RUN_FLAG_C
#define V RUN_FLAG_V
const uint8_t run_op_flags[RUN_OP_COUNT] = {
#define RUN_OP(name, flags, meaning) [RUN_##name] = flags,
#include "vm/run/run_op.def"
#undef RUN_OP
};
#undef JUMP
#undef INT_C
#undef K_B
#undef K_C
#undef A
#undef B
#undef C
#undef V

/* Whether the step behind is no step but a struct run_cache, or nothing. */
bool prepare_has_cache(enum run_op op)
{
    switch (op) {
    case RUN_SLICE:
    case RUN_FIELD_GET:
    case RUN_FIELD_BORROW:
    case RUN_CELL_FIELD_GET:
    case RUN_CELL_FIELD_BORROW:
    case RUN_PATH_FIELD:
    case RUN_FIELD_SET:
    case RUN_FIELD_ADD:
    case RUN_FIELD_APPEND:
    case RUN_LOCAL_FIELD_SET:
    case RUN_LOCAL_FIELD_ADD:
    case RUN_LOCAL_FIELD_APPEND: return true;
    default: return false;
    }
}

/* Numbers of slots and constants become distances in bytes: at most 131,070 slots, and a constant takes 5 bytes or
 * more of a file below 1 GiB. */
static void prepare_flow_scale(struct run_step *step)
{
    enum { BYTES = sizeof(cy_value) };
    uint32_t flags = run_op_flags[step->op];
    bool number_b = (flags & RUN_FLAG_V) && (step->x & RUN_NUMBER_B);
    bool number_c = (flags & RUN_FLAG_V) && (step->x & RUN_NUMBER_C);
    if (flags & RUN_FLAG_A) step->a *= BYTES;
    if ((flags & (RUN_FLAG_B | RUN_FLAG_K_B)) && !number_b) step->b *= BYTES;
    if ((flags & (RUN_FLAG_C | RUN_FLAG_K_C)) && !number_c) step->c *= BYTES;
}

/* A loop that tests at its top, and ends right behind the jump back to there, tests at its end from the second turn on:
 * one step less (of four in the inner loop of a sieve). False when it is no such loop. */
static bool prepare_flow_invert(struct prepare *p, uint32_t end, uint32_t top)
{
    const struct run_step *test = &p->code[top]; /* already linked and scaled */
    bool compares = test->op >= RUN_UNLESS_EQ && test->op < RUN_UNLESS_EQ + RUN_COMPARE_FORMS;
    if (!compares && test->op != RUN_INTLOOP_NEXT) return false;
    if ((compares && test->x != 0) || top + test->a != end + 1) return false;
    struct run_step *step = &p->code[end];
    *step = *test;
    step->op = compares ? (uint16_t)(test->op - RUN_UNLESS_EQ + RUN_LOOP_EQ) : (uint16_t)RUN_LOOP_INT;
    step->a = top + 1 - end;
    p->offsets[end] = p->offsets[top]; /* what it fails at is the test */
    return true;
}

/* Offsets in the file's code become distances in steps. */
static void prepare_flow_link(struct prepare *p)
{
    struct run_step *code = p->code;
    for (uint32_t i = 0; i < p->step_count; i++) {
        struct run_step *step = &code[i];
        if (run_op_flags[step->op] & RUN_FLAG_JUMP) {
            uint32_t target = p->steps[step->a];
            step->a = target - i; /* as a signed 32-bit distance */
            if (step->op == RUN_LOOP && prepare_flow_invert(p, i, target)) continue;
        }
        prepare_flow_scale(step);
        if (prepare_has_cache((enum run_op)step->op)) i++;
    }
}

static cy_err prepare_flow_publish(struct prepare *p, struct code_function *out)
{
    size_t code_bytes = p->step_count * sizeof *p->code, offset_bytes = p->step_count * sizeof *p->offsets;
    out->code = heap_alloc(p->vm, code_bytes);
    out->offsets = heap_alloc(p->vm, offset_bytes);
    if (!out->code || !out->offsets) {
        heap_free(p->vm, out->code, code_bytes);
        heap_free(p->vm, out->offsets, offset_bytes);
        return CY_ERR(NO_MEMORY);
    }
    memcpy(out->code, p->code, code_bytes);
    memcpy(out->offsets, p->offsets, offset_bytes);
    out->code_count = p->step_count;
    return CY_OK;
}

cy_err prepare_function(struct instance *instance, uint32_t index, struct code_function *out)
{
    const struct function *source = &instance->program->functions[index];
    struct code_function function = {
        .slot_count = (uint32_t)source->local_count + source->stack_max,
        .local_count = source->local_count,
        .call_steps = 1 + ((uint32_t)source->local_count + source->stack_max) / 32,
        .source = source,
        .param_count = source->param_count,
        .required_count = source->required_count,
    };
    struct prepare p = {.vm = instance->vm,
                        .instance = instance,
                        .source = source,
                        .fusable_step = PREPARE_NO_STEP,
                        .slice_offset = UINT32_MAX};
    p.stack = mem_alloc_zeroed(source->stack_max * sizeof *p.stack);
    p.heights = mem_alloc_zeroed(source->code_bytes * sizeof *p.heights);
    p.steps = mem_alloc_zeroed(source->code_bytes * sizeof *p.steps);
    if (!p.stack || !p.heights || !p.steps)
        p.err = CY_ERR(NO_MEMORY);
    else {
        prepare_flow_mark(&p);
        prepare_flow_lower(&p);
    }
    if (!cy_failed(p.err)) {
        prepare_flow_link(&p);
        p.err = prepare_flow_publish(&p, &function);
    }
    if (!cy_failed(p.err)) *out = function;
    mem_free(p.code);
    mem_free(p.offsets);
    mem_free(p.stack);
    mem_free(p.heights);
    mem_free(p.steps);
    return p.err;
}

void prepare_free(struct vm *vm, struct code_function *function)
{
    heap_free(vm, function->code, function->code_count * sizeof *function->code);
    heap_free(vm, function->offsets, function->code_count * sizeof *function->offsets);
    *function = (struct code_function){0};
}
