/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/toau_mutate.c: damages .toau files with understanding, and judges what reader and verifier make
 * of them.
 *
 * In:   accepted files. Out: counts.
 * Invariant: lengths and checksum of a mutant are right unless they are what was damaged: most mutants are
 *            damaged as programs and written again, so they reach the verifier.
 *
 * What is asserted of each mutant: a refusal names a rule; an accepted one is canonical (writing it,
 * canonicalising it and writing it again both give its own bytes), gives its own bytes again when written
 * as RPN text and read back, and behaves when run.
 */
#include "tests/fuzz/toau_mutate.h"

#include "tests/unit/code/program_spoil.h"
#include "vm/base/check.h"
#include "vm/code/opcode.h"
#include "vm/code/rpn.h"
#include "vm/code/toau.h"
#include "vm/code/toau_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

struct mutate {
    const struct toau_mutate *plan;
    struct toau_mutate_result *result;
    struct spoil_random random;
    uint64_t number; /* of the mutant, for messages */
    cy_bytes file;   /* its bytes */
};

static uint32_t mutate_below(struct mutate *mutate, size_t end)
{
    return spoil_random_below(&mutate->random, (uint32_t)cy_min_size(end, UINT32_MAX));
}

/* Numbers that stand at edges, near what was there, or anywhere. */
static uint32_t mutate_number(struct mutate *mutate, uint32_t old)
{
    static const uint32_t edges[] = {0,          1,          2,          127,       128,   255,
                                     256,        32767,      32768,      65534,     65535, 65536,
                                     0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    switch (mutate_below(mutate, 4)) {
    case 0: return edges[mutate_below(mutate, CY_COUNT_OF(edges))];
    case 1: return old + 1 + mutate_below(mutate, 3);
    case 2: return old - 1 - mutate_below(mutate, 3);
    default: return old ^ 1u << mutate_below(mutate, 32);
    }
}

/* -- code ---------------------------------------------------------------------------------------------- */

static struct function *mutate_any_function(struct mutate *mutate, struct program *program)
{
    return &program->functions[mutate_below(mutate, program->function_count)];
}

/* A random instruction of a random function. False when the code no longer decodes. */
static bool mutate_any_instruction(struct mutate *mutate, struct program *program,
                                   struct function **function_out, struct instruction *instruction_out)
{
    struct function *function = *function_out = mutate_any_function(mutate, program);
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    uint32_t wanted = mutate_below(mutate, cy_max_size(function->code_bytes, 1));
    for (uint32_t offset = 0; opcode_decode(code, offset, instruction_out);
         offset = instruction_out->next_offset)
        if (instruction_out->next_offset > wanted) return true;
    return false;
}

static void mutate_code_byte(struct mutate *mutate, struct program *program)
{
    struct function *function = mutate_any_function(mutate, program);
    if (function->code_bytes == 0) return;
    function->code[mutate_below(mutate, function->code_bytes)] = (uint8_t)spoil_random_next(&mutate->random);
}

/* Another opcode with the same operands' length, so that what follows still decodes. */
static void mutate_opcode(struct mutate *mutate, struct program *program)
{
    struct function *function;
    struct instruction instruction;
    if (!mutate_any_instruction(mutate, program, &function, &instruction)) return;
    uint8_t bytes = format_row(opcode_row(instruction.opcode)->format)->operand_bytes;
    for (int tries = 0; tries < 64; tries++) {
        const struct opcode_row *row = opcode_row((uint8_t)spoil_random_next(&mutate->random));
        if (!row->name || format_row(row->format)->operand_bytes != bytes) continue;
        function->code[instruction.offset] = row->number;
        return;
    }
}

static void mutate_operand(struct mutate *mutate, struct program *program)
{
    struct function *function;
    struct instruction instruction;
    if (!mutate_any_instruction(mutate, program, &function, &instruction)) return;
    const struct format_row *format = format_row(opcode_row(instruction.opcode)->format);
    if (format->operand_count == 0) return;
    uint8_t which = (uint8_t)mutate_below(mutate, format->operand_count);
    uint8_t *at = function->code + instruction.offset + 1;
    for (uint8_t i = 0; i < which; i++) at += format->operands[i].bytes;
    uint32_t number = mutate_number(mutate, (uint32_t)instruction.operands[which]);
    for (uint8_t i = 0; i < format->operands[which].bytes; i++) at[i] = (uint8_t)(number >> (8 * i));
}

/* A neutral or nearly neutral sequence somewhere: many of these are accepted. */
static void mutate_insert(struct mutate *mutate, struct program *program)
{
    static const struct {
        uint8_t bytes[8];
        uint8_t count;
    } sequences[] = {{{OP_NIL, OP_POP}, 2},
                     {{OP_TRUE, OP_NOT, OP_POP}, 3},
                     {{OP_LIST, 0, 0, OP_POP}, 4},
                     {{OP_SELF, OP_POP}, 2},
                     {{OP_ABSENT, OP_POP}, 2},
                     {{OP_NIL}, 1},
                     {{OP_POP}, 1},
                     {{OP_DUP}, 1},
                     {{OP_LOCAL_GET, 0}, 2},
                     {{OP_NIL, OP_ITER_BEGIN}, 2},
                     {{OP_TRY_END}, 1},
                     {{OP_NIL, OP_CALL, 0, OP_POP}, 4},
                     {{OP_INT8, 5, OP_INT8, 7, OP_ADD, OP_POP}, 6},
                     {{OP_NIL, OP_RETURN}, 2},
                     {{OP_NIL, OP_THROW}, 2}};
    struct function *function;
    struct instruction instruction;
    if (!mutate_any_instruction(mutate, program, &function, &instruction)) return;
    uint32_t which = mutate_below(mutate, CY_COUNT_OF(sequences));
    spoil_insert_code(program, function, instruction.offset,
                      cy_bytes_of(sequences[which].bytes, sequences[which].count));
    if (function->stack_max < UINT16_MAX && mutate_below(mutate, 2)) function->stack_max++;
}

static void mutate_swap_instructions(struct mutate *mutate, struct program *program)
{
    struct function *function;
    struct instruction first, second;
    if (!mutate_any_instruction(mutate, program, &function, &first)) return;
    if (!opcode_decode(cy_bytes_of(function->code, function->code_bytes), first.next_offset, &second)) return;
    uint8_t copy[16];
    uint32_t first_bytes = first.next_offset - first.offset,
             second_bytes = second.next_offset - second.offset;
    memcpy(copy, function->code + first.offset, first_bytes);
    memmove(function->code + first.offset, function->code + second.offset, second_bytes);
    memcpy(function->code + first.offset + second_bytes, copy, first_bytes);
}

static void mutate_cut_code(struct mutate *mutate, struct program *program)
{
    struct function *function = mutate_any_function(mutate, program);
    function->code_bytes = mutate_below(mutate, function->code_bytes + 1);
}

/* -- tables -------------------------------------------------------------------------------------------- */

static void mutate_function_head(struct mutate *mutate, struct program *program)
{
    struct function *function = mutate_any_function(mutate, program);
    uint32_t number = mutate_number(mutate, function->local_count);
    switch (mutate_below(mutate, 8)) {
    case 0: function->name = mutate_number(mutate, function->name); break;
    case 1: function->module = mutate_number(mutate, function->module); break;
    case 2: function->parent = mutate_number(mutate, function->parent); break;
    case 3: function->param_count = (uint8_t)number; break;
    case 4: function->required_count = (uint8_t)number; break;
    case 5: function->local_count = (uint16_t)number; break;
    case 6: function->stack_max = (uint16_t)mutate_number(mutate, function->stack_max); break;
    default:
        if (function->capture_count == 0) return;
        struct capture *capture = &function->captures[mutate_below(mutate, function->capture_count)];
        capture->from_parent_local ^= mutate_below(mutate, 2);
        capture->index = (uint16_t)mutate_number(mutate, capture->index);
    }
}

static void mutate_module(struct mutate *mutate, struct program *program)
{
    struct module *module = &program->modules[mutate_below(mutate, program->module_count)];
    uint32_t *const numbers[] = {&module->name,          &module->file,         &module->init_function,
                                 &module->global_first,  &module->global_count, &module->function_first,
                                 &module->function_count};
    uint32_t which = mutate_below(mutate, CY_COUNT_OF(numbers) + 3);
    if (which < CY_COUNT_OF(numbers)) {
        *numbers[which] = mutate_number(mutate, *numbers[which]);
    } else if (module->export_count) {
        struct export_entry *export = &module->exports[mutate_below(mutate, module->export_count)];
        if (which == CY_COUNT_OF(numbers)) export->name = mutate_number(mutate, export->name);
        if (which == CY_COUNT_OF(numbers) + 1) export->index = mutate_number(mutate, export->index);
        if (which == CY_COUNT_OF(numbers) + 2) export->kind = (uint8_t)mutate_number(mutate, export->kind);
    }
}

static void mutate_record(struct mutate *mutate, struct program *program)
{
    if (program->record_count == 0) return;
    struct record_type *record = &program->records[mutate_below(mutate, program->record_count)];
    if (record->field_count && mutate_below(mutate, 2)) {
        struct record_field *field = &record->fields[mutate_below(mutate, record->field_count)];
        switch (mutate_below(mutate, 4)) {
        case 0: field->name = mutate_number(mutate, field->name); break;
        case 1: field->kinds = mutate_number(mutate, field->kinds); break;
        case 2: field->record = mutate_number(mutate, field->record); break;
        default: /* a kind that the code was not written for */
            field->kinds = 1 + mutate_below(mutate, RECORD_FIELD_KIND(KIND_COUNT) - 2);
            field->record = PROGRAM_NO_INDEX;
            if (field->kinds & RECORD_FIELD_KIND(KIND_RECORD) && mutate_below(mutate, 2))
                field->record = mutate_below(mutate, program->record_count);
        }
        if (mutate_below(mutate, 4) == 0) record->field_count--;
    } else {
        uint32_t *number = mutate_below(mutate, 2) ? &record->name : &record->module;
        *number = mutate_number(mutate, *number);
    }
}

static void mutate_constant(struct mutate *mutate, struct program *program)
{
    if (program->constant_count == 0) return;
    struct constant *constant = &program->constants[mutate_below(mutate, program->constant_count)];
    struct constant *other = &program->constants[mutate_below(mutate, program->constant_count)];
    struct constant copy = *constant;
    switch (mutate_below(mutate, 3)) {
    case 0: constant->as.i ^= (int64_t)(1ull << mutate_below(mutate, 64)); break;
    case 1: constant->kind = (uint8_t)(1 + mutate_below(mutate, 3)); break;
    default: *constant = *other; *other = copy;
    }
}

static void mutate_string(struct mutate *mutate, struct program *program)
{
    if (program->string_count == 0) return;
    cy_bytes *string = &program->strings[mutate_below(mutate, program->string_count)];
    cy_bytes *other = &program->strings[mutate_below(mutate, program->string_count)];
    cy_bytes copy = *string;
    switch (mutate_below(mutate, 4)) {
    case 0:
        *string = *other;
        *other = copy;
        break;
    case 1: string->count = mutate_below(mutate, string->count + 1); break;
    case 2: *string = *other; break;
    default:
        if (string->count == 0) return;
        ((uint8_t *)(uintptr_t)string->data)[mutate_below(mutate, string->count)] =
            (uint8_t)mutate_number(mutate, 'a');
    }
}

static void mutate_small_tables(struct mutate *mutate, struct program *program)
{
    switch (mutate_below(mutate, 5)) {
    case 0: program->capabilities = mutate_number(mutate, program->capabilities); break;
    case 1: program->constant_count -= program->constant_count > 0; break;
    case 2: program->native_count -= program->native_count > 0; break;
    case 3:
        if (program->global_count == 0) return;
        uint32_t *name = &program->globals[mutate_below(mutate, program->global_count)].name;
        *name = mutate_number(mutate, *name);
        break;
    default:
        if (program->native_count == 0) return;
        struct native_import *native = &program->natives[mutate_below(mutate, program->native_count)];
        native->name = mutate_number(mutate, native->name);
    }
}

static void mutate_lines(struct mutate *mutate, struct program *program)
{
    struct function *function = mutate_any_function(mutate, program);
    if (function->line_count == 0) return;
    struct line_entry *line = &function->lines[mutate_below(mutate, function->line_count)];
    switch (mutate_below(mutate, 4)) {
    case 0: line->offset = mutate_number(mutate, line->offset); break;
    case 1: line->line = mutate_number(mutate, line->line); break;
    case 2: line->column = mutate_number(mutate, line->column); break;
    default: function->line_count--;
    }
}

typedef void mutate_program(struct mutate *, struct program *);
static mutate_program *const mutate_programs[] = {
    mutate_code_byte, mutate_opcode,        mutate_opcode,       mutate_operand,
    mutate_operand,   mutate_insert,        mutate_insert,       mutate_swap_instructions,
    mutate_cut_code,  mutate_function_head, mutate_module,       mutate_record,
    mutate_constant,  mutate_string,        mutate_small_tables, mutate_lines,
};

/* -- bytes --------------------------------------------------------------------------------------------- */

/* Damage the program's own structure cannot express. Section lengths stay; the checksum is made right. */
static void mutate_file(struct mutate *mutate, struct builder *file)
{
    size_t body = file->count - TOAU_HEADER_BYTES - TOAU_CHECKSUM_BYTES;
    for (uint32_t n = 1 + mutate_below(mutate, 3); n > 0; n--) {
        uint8_t *at = file->data + TOAU_HEADER_BYTES + mutate_below(mutate, body);
        if (mutate_below(mutate, 2))
            *at = (uint8_t)spoil_random_next(&mutate->random);
        else
            *at ^= (uint8_t)(1u << mutate_below(mutate, 8));
    }
    spoil_repair_checksum(file);
}

/* -- judging ------------------------------------------------------------------------------------------- */

/* Says what is wrong, and keeps the mutant in the current folder. */
static void mutate_complain(struct mutate *mutate, const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "mutant-%" PRIu64 ".toau", mutate->number);
    FILE *kept = fopen(path, "wb");
    if (kept) {
        fwrite(mutate->file.data, 1, mutate->file.count, kept);
        fclose(kept);
    }
    fprintf(stderr, "mutant %" PRIu64 " of seed %" PRIu64 ": %s (%s)\n", mutate->number, mutate->plan->seed,
            what, path);
    mutate->result->failed = true;
}

/* As RPN text, in one of its spellings, and read from there. */
static bool mutate_comes_back(const struct program *program, bool korean, cy_bytes file)
{
    struct rpn_options options = {.file = CY_BYTES("mutant.rpn")};
    struct builder text, messages, again;
    struct program *read = NULL;
    uint32_t unknown_count = 0;
    builder_init(&text), builder_init(&messages), builder_init(&again);
    cy_err err = korean ? rpn_write_korean(program, PROGRAM_NO_INDEX, &text)
                        : rpn_write(program, PROGRAM_NO_INDEX, &text);
    if (!cy_failed(err)) err = rpn_read(&options, builder_view(&text), &read, &messages, &unknown_count);
    if (!cy_failed(err)) err = toau_write(read, &again);
    bool same = !cy_failed(err) && cy_bytes_equal(builder_view(&again), file);
    if (!same) fwrite(messages.data, 1, messages.count, stderr);
    program_free(&read);
    builder_fini(&again), builder_fini(&messages), builder_fini(&text);
    return same;
}

static void mutate_judge_accepted(struct mutate *mutate, struct program *program, cy_bytes file)
{
    struct builder out;
    builder_init(&out);
    if (cy_failed(toau_write(program, &out)) || !cy_bytes_equal(builder_view(&out), file))
        mutate_complain(mutate, "accepted, but written differently");
    builder_clear(&out);
    if (!mutate_comes_back(program, mutate->result->accepted & 1, file))
        mutate_complain(mutate, "accepted, but its RPN text gives other bytes");
    if (mutate->plan->run) {
        mutate->result->run++;
        if (mutate->plan->run(program, mutate->plan->run_context) != 0)
            mutate_complain(mutate, "accepted, but misbehaved when run");
    }
    if (cy_failed(program_canonicalise(program)) || cy_failed(toau_write(program, &out)) ||
        !cy_bytes_equal(builder_view(&out), file))
        mutate_complain(mutate, "accepted, but not canonical");
    builder_fini(&out);
}

static void mutate_judge(struct mutate *mutate, cy_bytes file)
{
    struct toau_mutate_result *result = mutate->result;
    struct program *program = NULL;
    struct code_failure failure;
    mutate->number = result->mutants++;
    mutate->file = file;
    cy_err err = toau_read(file, &program, &failure);
    bool was_read = !cy_failed(err);
    if (was_read) err = verify_program(program, &failure);
    if (!cy_failed(err)) {
        result->accepted++;
        mutate_judge_accepted(mutate, program, file);
    } else {
        *(was_read ? &result->verify_refused : &result->read_refused) += 1;
        result->rules[failure.rule]++;
        if (!cy_is(err, CY_ERR_BAD_FORMAT) || failure.rule == CODE_RULE_NONE)
            mutate_complain(mutate, "refused without a rule");
    }
    program_free(&program);
}

static struct program *mutate_read(cy_bytes file)
{
    struct program *program;
    struct code_failure failure;
    cy_err err = toau_read(file, &program, &failure);
    CHECK(!cy_failed(err)); /* the plan's files are accepted ones */
    return program;
}

/* One mutant of one file: damaged as a program `changes` times, or as bytes. */
static void mutate_once(struct mutate *mutate)
{
    cy_bytes original = mutate->plan->files[mutate_below(mutate, mutate->plan->file_count)];
    struct program *program = mutate_read(original);
    struct builder file;
    builder_init(&file);
    bool as_bytes = mutate_below(mutate, 5) == 0;
    for (uint32_t changes = as_bytes ? 0 : 1 + mutate_below(mutate, 3); changes > 0; changes--)
        if (program->function_count && program->module_count)
            mutate_programs[mutate_below(mutate, CY_COUNT_OF(mutate_programs))](mutate, program);
    cy_err err = toau_write(program, &file);
    CHECK(!cy_failed(err));
    if (as_bytes) mutate_file(mutate, &file);
    mutate_judge(mutate, builder_view(&file));
    builder_fini(&file);
    program_free(&program);
}

/* Every rule's own mutants, from every file: tests/unit/code/verify_test.c proves that they meet their rule. */
static void mutate_spoilers(struct mutate *mutate, cy_bytes original)
{
    for (size_t i = 0; spoil_at(i); i++) {
        const struct spoil *spoil = spoil_at(i);
        struct program *program = mutate_read(original);
        struct builder file;
        builder_init(&file);
        bool applies = !spoil->program || spoil->program(program, &mutate->random);
        cy_err err = toau_write(program, &file);
        CHECK(!cy_failed(err));
        if (applies && spoil->file) applies = spoil->file(&file, &mutate->random);
        if (applies && spoil->rule != CODE_RULE_READ_CHECKSUM) spoil_repair_checksum(&file);
        if (applies) mutate_judge(mutate, builder_view(&file));
        builder_fini(&file);
        program_free(&program);
    }
}

static uint64_t mutate_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void toau_mutate(const struct toau_mutate *plan, struct toau_mutate_result *result_out)
{
    *result_out = (struct toau_mutate_result){0};
    struct mutate mutate = {.plan = plan, .result = result_out, .random = {plan->seed}};
    uint64_t start_ms = mutate_now_ms();
    for (size_t i = 0; i < plan->file_count; i++) mutate_spoilers(&mutate, plan->files[i]);
    for (uint64_t i = 0; i < plan->mutants; i++) {
        if (plan->budget_ms && i % 64 == 0 && mutate_now_ms() - start_ms >= plan->budget_ms) break;
        mutate_once(&mutate);
    }
}
