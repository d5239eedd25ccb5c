/* SPDX-License-Identifier: MIT
 *
 * vm/code/canonical.c: one program, one encoding.
 *
 * In:   a program as an emitter left it.
 * Out:  the same program with canonical pools, operands and line tables (program.h says what that is).
 * Invariant: applied to its own result it changes nothing. New tables are made in the arena; the old ones
 *            are left there.
 * Not here: judging the program. What points nowhere is BAD_FORMAT without a reason; verify.c gives reasons.
 *
 * Constants and natives are numbered as the code of the functions, in order, meets them; then strings, as
 * the tables that follow them in the file name them. Only then are operand widths known; jumps are of fixed
 * width, so one walk places all instructions and a second writes them.
 */
#include "vm/base/check.h"
#include "vm/base/map.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"
#include "vm/code/opcode.h"
#include "vm/code/program.h"
#include "vm/code/verify.h"

#include <math.h>

/* A pool being renumbered: old index -> new index, and the new entries' old indexes in order. */
struct canonical_pool {
    uint32_t *new_index; /* PROGRAM_NO_INDEX: not used yet */
    uint32_t *old_index;
    uint32_t old_count;
    uint32_t new_count;
};
struct canonical {
    struct program *program;
    struct canonical_pool strings, constants, natives;
    uint32_t *string_first;   /* the first of equal strings */
    uint32_t *constant_first; /* the first of equal constants */
    uint32_t *native_first;
};

static cy_err canonical_pool_init(struct canonical_pool *pool, uint32_t count)
{
    pool->old_count = count;
    pool->new_index = mem_alloc((size_t)count * sizeof *pool->new_index);
    pool->old_index = mem_alloc((size_t)count * sizeof *pool->old_index);
    if (!pool->new_index || !pool->old_index) return CY_ERR(NO_MEMORY);
    for (uint32_t i = 0; i < count; i++) pool->new_index[i] = PROGRAM_NO_INDEX;
    return CY_OK;
}

static void canonical_pool_fini(struct canonical_pool *pool)
{
    mem_free(pool->new_index);
    mem_free(pool->old_index);
}

/* The new number of `index`, given now when this is its first use. `first` leads to the first of equals. */
static cy_err canonical_use(struct canonical_pool *pool, const uint32_t *first, int64_t index,
                            uint32_t *new_out)
{
    if (index < 0 || index >= pool->old_count) return CY_ERR(BAD_FORMAT);
    uint32_t representative = first[index];
    if (pool->new_index[representative] == PROGRAM_NO_INDEX) {
        pool->new_index[representative] = pool->new_count;
        pool->old_index[pool->new_count++] = representative;
    }
    *new_out = pool->new_index[representative];
    return CY_OK;
}

/* -- equals -------------------------------------------------------------------------------------------- */

static cy_err canonical_first_of(struct map *map, cy_bytes key, uint32_t index, uint32_t *first_out)
{
    bool inserted;
    struct map_entry *entry = map_insert(map, key, &inserted);
    if (!entry) return CY_ERR(NO_MEMORY);
    if (inserted) entry->value.number = index;
    *first_out = (uint32_t)entry->value.number;
    return CY_OK;
}

static cy_err canonical_equal_strings(struct canonical *canonical, struct map *map)
{
    const struct program *program = canonical->program;
    for (uint32_t i = 0; i < program->string_count; i++)
        CY_TRY(canonical_first_of(map, program->strings[i], i, &canonical->string_first[i]));
    return CY_OK;
}

static cy_err canonical_equal_constants(struct canonical *canonical, struct map *map)
{
    struct program *program = canonical->program;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        struct constant *constant = &program->constants[i];
        uint64_t bits = 0;
        switch (constant->kind) {
        case CONSTANT_INT: bits = (uint64_t)constant->as.i; break;
        case CONSTANT_FLOAT:
            memcpy(&bits, &constant->as.f, sizeof bits);
            if (isnan(constant->as.f)) bits = CONSTANT_NAN_BITS;
            memcpy(&constant->as.f, &bits, sizeof bits);
            break;
        case CONSTANT_STR:
            if (constant->as.string >= program->string_count) return CY_ERR(BAD_FORMAT);
            bits = canonical->string_first[constant->as.string];
            break;
        default: return CY_ERR(BAD_FORMAT);
        }
        uint8_t key[1 + sizeof bits] = {constant->kind};
        memcpy(key + 1, &bits, sizeof bits);
        CY_TRY(canonical_first_of(map, cy_bytes_of(key, sizeof key), i, &canonical->constant_first[i]));
    }
    return CY_OK;
}

static cy_err canonical_equal_natives(struct canonical *canonical, struct map *map)
{
    const struct program *program = canonical->program;
    for (uint32_t i = 0; i < program->native_count; i++) {
        if (program->natives[i].name >= program->string_count) return CY_ERR(BAD_FORMAT);
        cy_bytes name = program_string(program, program->natives[i].name);
        CY_TRY(canonical_first_of(map, name, i, &canonical->native_first[i]));
    }
    return CY_OK;
}

typedef cy_err canonical_equal(struct canonical *, struct map *);
static canonical_equal *const canonical_equals[] = {canonical_equal_strings, canonical_equal_constants,
                                                    canonical_equal_natives};

static cy_err canonical_find_equals(struct canonical *canonical)
{
    for (size_t i = 0; i < CY_COUNT_OF(canonical_equals); i++) {
        struct map map;
        map_init(&map, (hash_seed){0x63616e6f6e,
                                   0x6963616c}); /* fixed: what comes out must not depend on the run */
        cy_err err = canonical_equals[i](canonical, &map);
        map_fini(&map);
        CY_TRY(err);
    }
    return CY_OK;
}

/* -- code ---------------------------------------------------------------------------------------------- */

/* An int that INT8 can hold is no constant. */
static bool canonical_is_small_int(const struct canonical *canonical, const struct instruction *instruction)
{
    if (instruction->opcode != OP_CONST && instruction->opcode != OP_CONST_WIDE) return false;
    if (instruction->operands[0] >= canonical->program->constant_count) return false;
    const struct constant *constant = &canonical->program->constants[instruction->operands[0]];
    return constant->kind == CONSTANT_INT && constant->as.i >= INT8_MIN && constant->as.i <= INT8_MAX;
}

/* Renumbers what names a pool entry. */
static cy_err canonical_operands(struct canonical *canonical, struct instruction *instruction)
{
    const struct format_row *format = format_row(opcode_row(instruction->opcode)->format);
    for (uint8_t i = 0; i < format->operand_count; i++) {
        uint32_t index = 0;
        switch ((enum operand_kind)format->operands[i].kind) {
        case OPERAND_CONSTANT:
        case OPERAND_NAME:
            CY_TRY(canonical_use(&canonical->constants, canonical->constant_first, instruction->operands[i],
                                 &index));
            break;
        case OPERAND_NATIVE:
            CY_TRY(canonical_use(&canonical->natives, canonical->native_first, instruction->operands[i],
                                 &index));
            break;
        default: continue;
        }
        instruction->operands[i] = index;
    }
    return CY_OK;
}

/* The instruction in its final form; jump targets are still the old ones. The same each time it is asked. */
static cy_err canonical_instruction(struct canonical *canonical, struct instruction *instruction)
{
    if (canonical_is_small_int(canonical, instruction)) {
        instruction->operands[0] = canonical->program->constants[instruction->operands[0]].as.i;
        instruction->opcode = OP_INT8;
        return CY_OK;
    }
    CY_TRY(canonical_operands(canonical, instruction));
    const struct opcode_row *row = opcode_row(instruction->opcode);
    const struct opcode_row *narrow = opcode_narrow(row), *wide = opcode_wide(row);
    if (narrow && opcode_first_operand_fits(narrow, instruction->operands[0])) row = narrow;
    if (wide && !opcode_first_operand_fits(row, instruction->operands[0])) row = wide;
    const struct format_row *format = format_row(row->format);
    bool is_index = format->operand_count > 0 && format->operands[0].kind != OPERAND_IMMEDIATE;
    if (is_index && !opcode_first_operand_fits(row, instruction->operands[0])) return CY_ERR(BAD_FORMAT);
    instruction->opcode = row->number;
    return CY_OK;
}

/* new_offsets[old offset] for each instruction, PROGRAM_NO_INDEX elsewhere; [code_bytes] is the new length. */
static cy_err canonical_place_code(struct canonical *canonical, const struct function *function,
                                   uint32_t *new_offsets)
{
    for (uint32_t i = 0; i < function->code_bytes; i++) new_offsets[i] = PROGRAM_NO_INDEX;
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    struct instruction instruction;
    uint64_t new_offset = 0;
    for (uint32_t offset = 0; offset < function->code_bytes; offset = instruction.next_offset) {
        if (!opcode_decode(code, offset, &instruction)) return CY_ERR(BAD_FORMAT);
        new_offsets[offset] = (uint32_t)new_offset;
        CY_TRY(canonical_instruction(canonical, &instruction));
        new_offset += 1u + format_row(opcode_row(instruction.opcode)->format)->operand_bytes;
        if (new_offset >= PROGRAM_NO_INDEX) return CY_ERR(TOO_LARGE);
    }
    new_offsets[function->code_bytes] = (uint32_t)new_offset;
    return CY_OK;
}

static uint8_t *canonical_put(uint8_t *at, int64_t number, uint8_t bytes)
{
    for (uint8_t i = 0; i < bytes; i++) *at++ = (uint8_t)((uint64_t)number >> (8 * i));
    return at;
}

static cy_err canonical_write_code(struct canonical *canonical, struct function *function,
                                   const uint32_t *new_offsets)
{
    uint32_t new_bytes = new_offsets[function->code_bytes];
    uint8_t *new_code = arena_alloc(&canonical->program->arena, new_bytes);
    if (!new_code) return CY_ERR(NO_MEMORY);
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    struct instruction instruction;
    uint8_t *at = new_code;
    for (uint32_t offset = 0; offset < code.count; offset = instruction.next_offset) {
        bool decoded = opcode_decode(code, offset, &instruction);
        CHECK(decoded);
        CHECK(at == new_code + new_offsets[offset]);
        CY_TRY(canonical_instruction(canonical, &instruction));
        *at++ = instruction.opcode;
        const struct format_row *format = format_row(opcode_row(instruction.opcode)->format);
        for (uint8_t i = 0; i < format->operand_count; i++) {
            uint8_t kind = format->operands[i].kind;
            int64_t operand = instruction.operands[i];
            if (kind == OPERAND_FORWARD || kind == OPERAND_BACKWARD) {
                if (operand >= function->code_bytes || new_offsets[operand] == PROGRAM_NO_INDEX)
                    return CY_ERR(BAD_FORMAT);
                operand = new_offsets[operand];
            }
            at = canonical_put(at, operand, format->operands[i].bytes);
        }
    }
    CHECK(at == new_code + new_bytes);
    function->code = new_code;
    function->code_bytes = new_bytes;
    return CY_OK;
}

/* Of entries at one offset the last counts; one at the end of the code belongs to no instruction; one that
 * repeats the place before says nothing. */
static cy_err canonical_write_lines(struct canonical *canonical, struct function *function,
                                    uint32_t old_code_bytes, const uint32_t *new_offsets)
{
    if (function->line_count == 0) return CY_OK;
    struct line_entry *lines =
        arena_alloc(&canonical->program->arena, (size_t)function->line_count * sizeof *lines);
    if (!lines) return CY_ERR(NO_MEMORY);
    uint32_t count = 0;
    for (uint32_t i = 0; i < function->line_count; i++) {
        struct line_entry line = function->lines[i];
        if (i && line.offset < function->lines[i - 1].offset) return CY_ERR(BAD_FORMAT);
        if (line.offset > old_code_bytes || new_offsets[line.offset] == PROGRAM_NO_INDEX)
            return CY_ERR(BAD_FORMAT);
        if (line.offset == old_code_bytes) break;
        line.offset = new_offsets[line.offset];
        if (count && lines[count - 1].offset == line.offset) count--;
        if (count && lines[count - 1].line == line.line && lines[count - 1].column == line.column) continue;
        lines[count++] = line;
    }
    function->lines = lines;
    function->line_count = count;
    return CY_OK;
}

static cy_err canonical_function(struct canonical *canonical, struct function *function)
{
    uint32_t old_code_bytes = function->code_bytes;
    uint32_t *new_offsets = mem_alloc(((size_t)old_code_bytes + 1) * sizeof *new_offsets);
    if (!new_offsets) return CY_ERR(NO_MEMORY);
    cy_err err = canonical_place_code(canonical, function, new_offsets);
    if (!cy_failed(err)) err = canonical_write_code(canonical, function, new_offsets);
    if (!cy_failed(err)) err = canonical_write_lines(canonical, function, old_code_bytes, new_offsets);
    mem_free(new_offsets);
    CY_TRY(err);

    uint16_t stack_max;
    err = function_stack_max(canonical->program, function, &stack_max);
    if (!cy_failed(err)) function->stack_max = stack_max;
    return cy_is(err, CY_ERR_BAD_FORMAT) ? CY_OK : err; /* verify says what is wrong with the flow */
}

/* -- pools --------------------------------------------------------------------------------------------- */

static cy_err canonical_use_string(struct canonical *canonical, uint32_t *string)
{
    return canonical_use(&canonical->strings, canonical->string_first, *string, string);
}

static cy_err canonical_write_constants(struct canonical *canonical)
{
    struct program *program = canonical->program;
    uint32_t count = canonical->constants.new_count;
    struct constant *constants = arena_alloc_zeroed(&program->arena, (size_t)count * sizeof *constants);
    if (!constants) return CY_ERR(NO_MEMORY);
    for (uint32_t i = 0; i < count; i++) {
        constants[i] = program->constants[canonical->constants.old_index[i]];
        if (constants[i].kind == CONSTANT_STR)
            CY_TRY(canonical_use_string(canonical, &constants[i].as.string));
    }
    program->constants = constants;
    program->constant_count = count;
    return CY_OK;
}

static cy_err canonical_write_natives(struct canonical *canonical)
{
    struct program *program = canonical->program;
    uint32_t count = canonical->natives.new_count;
    struct native_import *natives = arena_alloc_zeroed(&program->arena, (size_t)count * sizeof *natives);
    if (!natives) return CY_ERR(NO_MEMORY);
    for (uint32_t i = 0; i < count; i++) {
        natives[i] = program->natives[canonical->natives.old_index[i]];
        CY_TRY(canonical_use_string(canonical, &natives[i].name));
    }
    program->natives = natives;
    program->native_count = count;
    return CY_OK;
}

static cy_err canonical_record_strings(struct canonical *canonical)
{
    struct program *program = canonical->program;
    for (uint32_t i = 0; i < program->record_count; i++) {
        struct record_type *record = &program->records[i];
        CY_TRY(canonical_use_string(canonical, &record->name));
        for (uint32_t k = 0; k < record->field_count; k++)
            CY_TRY(canonical_use_string(canonical, &record->fields[k].name));
    }
    return CY_OK;
}

static cy_err canonical_module_strings(struct canonical *canonical)
{
    struct program *program = canonical->program;
    for (uint32_t i = 0; i < program->module_count; i++) {
        struct module *module = &program->modules[i];
        CY_TRY(canonical_use_string(canonical, &module->name));
        CY_TRY(canonical_use_string(canonical, &module->file));
        for (uint32_t k = 0; k < module->export_count; k++)
            CY_TRY(canonical_use_string(canonical, &module->exports[k].name));
    }
    return CY_OK;
}

static cy_err canonical_write_strings(struct canonical *canonical)
{
    struct program *program = canonical->program;
    uint32_t count = canonical->strings.new_count;
    cy_bytes *strings = arena_alloc_zeroed(&program->arena, (size_t)count * sizeof *strings);
    if (!strings) return CY_ERR(NO_MEMORY);
    for (uint32_t i = 0; i < count; i++) strings[i] = program->strings[canonical->strings.old_index[i]];
    program->strings = strings;
    program->string_count = count;
    return CY_OK;
}

/* The order of the walk is that of the file's sections; verify.c walks the same way. */
static cy_err canonical_steps(struct canonical *canonical)
{
    struct program *program = canonical->program;
    CY_TRY(canonical_find_equals(canonical));
    for (uint32_t i = 0; i < program->function_count; i++)
        CY_TRY(canonical_function(canonical, &program->functions[i]));
    CY_TRY(canonical_write_constants(canonical));
    CY_TRY(canonical_write_natives(canonical));
    CY_TRY(canonical_record_strings(canonical));
    CY_TRY(canonical_module_strings(canonical));
    for (uint32_t i = 0; i < program->global_count; i++)
        CY_TRY(canonical_use_string(canonical, &program->globals[i].name));
    for (uint32_t i = 0; i < program->function_count; i++)
        CY_TRY(canonical_use_string(canonical, &program->functions[i].name));
    CY_TRY(canonical_write_strings(canonical));
    program->capabilities = program_capabilities(program);
    return CY_OK;
}

static uint32_t *canonical_numbers(uint32_t count) { return mem_alloc((size_t)count * sizeof(uint32_t)); }

cy_err program_canonicalise(struct program *program)
{
    struct canonical canonical = {.program = program};
    cy_err err = canonical_pool_init(&canonical.strings, program->string_count);
    if (!cy_failed(err)) err = canonical_pool_init(&canonical.constants, program->constant_count);
    if (!cy_failed(err)) err = canonical_pool_init(&canonical.natives, program->native_count);
    canonical.string_first = canonical_numbers(program->string_count);
    canonical.constant_first = canonical_numbers(program->constant_count);
    canonical.native_first = canonical_numbers(program->native_count);
    if (!canonical.string_first || !canonical.constant_first || !canonical.native_first)
        err = CY_ERR(NO_MEMORY);
    if (!cy_failed(err)) err = canonical_steps(&canonical);
    mem_free(canonical.native_first);
    mem_free(canonical.constant_first);
    mem_free(canonical.string_first);
    canonical_pool_fini(&canonical.natives);
    canonical_pool_fini(&canonical.constants);
    canonical_pool_fini(&canonical.strings);
    return err;
}
