/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_spoil.c: for each rule about tables and bytes, a way to break it.
 *
 * In:   accepted programs. Out: programs that exactly one rule refuses first.
 * Not here: code and line tables (program_spoil_code.c).
 */
#include "tests/unit/code/program_spoil_internal.h"

#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/base/limits.h"
#include "vm/code/native_table.h"
#include "vm/code/opcode.h"
#include "vm/code/toau_internal.h"

uint64_t spoil_random_next(struct spoil_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint32_t spoil_random_below(struct spoil_random *random, uint32_t end)
{
    CHECK(end > 0);
    return (uint32_t)(spoil_random_next(random) % end);
}

void *spoil_alloc(struct program *program, size_t bytes)
{
    void *memory = arena_alloc_zeroed(&program->arena, bytes);
    CHECK(memory);
    return memory;
}

void spoil_copy(void *to, const void *from, size_t bytes)
{
    if (bytes) memcpy(to, from, bytes);
}

void spoil_u32(uint8_t *at, uint32_t number)
{
    for (size_t i = 0; i < 4; i++) at[i] = (uint8_t)(number >> (8 * i));
}

/* -- what both files use ------------------------------------------------------------------------------- */

struct function *spoil_any_function(struct program *program, struct spoil_random *random)
{
    return &program->functions[spoil_random_below(random, program->function_count)];
}

uint32_t spoil_find_function(struct program *program, struct spoil_random *random, bool captures)
{
    uint32_t start = spoil_random_below(random, program->function_count);
    for (uint32_t i = 0; i < program->function_count && i < 0xffff; i++) {
        uint32_t index = (start + i) % program->function_count;
        if ((program->functions[index].capture_count > 0) == captures && index <= 0xffff) return index;
    }
    return PROGRAM_NO_INDEX;
}

void spoil_insert_code(struct program *program, struct function *function, uint32_t at, cy_bytes bytes)
{
    CHECK(at <= function->code_bytes);
    uint32_t added = (uint32_t)bytes.count, old_bytes = function->code_bytes;
    uint8_t *code = spoil_alloc(program, old_bytes + added);
    spoil_copy(code, function->code, at);
    spoil_copy(code + at, bytes.data, added);
    spoil_copy(code + at + added, function->code + at, old_bytes - at);
    struct instruction instruction;
    for (uint32_t offset = 0; offset < old_bytes; offset = instruction.next_offset) {
        if (!opcode_decode(cy_bytes_of(function->code, old_bytes), offset, &instruction)) break;
        const struct format_row *format = format_row(opcode_row(instruction.opcode)->format);
        uint8_t *operand = code + (offset >= at ? offset + added : offset) + 1;
        for (uint8_t i = 0; i < format->operand_count; operand += format->operands[i++].bytes) {
            bool is_target =
                format->operands[i].kind == OPERAND_FORWARD || format->operands[i].kind == OPERAND_BACKWARD;
            if (is_target && instruction.operands[i] >= at)
                spoil_u32(operand, (uint32_t)instruction.operands[i] + added);
        }
    }
    for (uint32_t i = 0; i < function->line_count; i++)
        if (function->lines[i].offset >= at) function->lines[i].offset += added;
    function->code = code;
    function->code_bytes = old_bytes + added;
}

bool spoil_prepend(struct program *program, struct function *function, const uint8_t *bytes, size_t count)
{
    spoil_insert_code(program, function, 0, cy_bytes_of(bytes, count));
    return true;
}
/* -- strings ------------------------------------------------------------------------------------------- */

typedef void spoil_visit(uint32_t *string, uint32_t a, uint32_t b);

/* Every place that names a string. */
static void spoil_each_string(struct program *program, spoil_visit *visit, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (program->constants[i].kind == CONSTANT_STR) visit(&program->constants[i].as.string, a, b);
    for (uint32_t i = 0; i < program->native_count; i++) visit(&program->natives[i].name, a, b);
    for (uint32_t i = 0; i < program->record_count; i++) {
        visit(&program->records[i].name, a, b);
        for (uint32_t k = 0; k < program->records[i].field_count; k++)
            visit(&program->records[i].fields[k].name, a, b);
    }
    for (uint32_t i = 0; i < program->module_count; i++) {
        struct module *module = &program->modules[i];
        visit(&module->name, a, b);
        visit(&module->file, a, b);
        for (uint32_t k = 0; k < module->export_count; k++) visit(&module->exports[k].name, a, b);
    }
    for (uint32_t i = 0; i < program->global_count; i++) visit(&program->globals[i].name, a, b);
    for (uint32_t i = 0; i < program->function_count; i++) visit(&program->functions[i].name, a, b);
}

static void spoil_visit_swap(uint32_t *string, uint32_t a, uint32_t b)
{
    *string = *string == a ? b : *string == b ? a : *string;
}

static void spoil_visit_shift(uint32_t *string, uint32_t from, uint32_t by)
{
    if (*string >= from) *string += by;
}

static void spoil_put_string(struct program *program, uint32_t at, cy_bytes string)
{
    cy_bytes *strings = spoil_alloc(program, ((size_t)program->string_count + 1) * sizeof *strings);
    spoil_copy(strings, program->strings, at * sizeof *strings);
    spoil_copy(strings + at + 1, program->strings + at, (program->string_count - at) * sizeof *strings);
    strings[at] = string;
    program->strings = strings;
    program->string_count++;
}

static bool spoil_has_string(const struct program *program, cy_bytes string)
{
    for (uint32_t i = 0; i < program->string_count; i++)
        if (cy_bytes_equal(program->strings[i], string)) return true;
    return false;
}

static bool spoil_string_index(struct program *program, struct spoil_random *random)
{
    uint32_t out = program->string_count + spoil_random_below(random, 3) * 1000000000u;
    switch (spoil_random_below(random, 3)) {
    case 0: program->modules[0].file = out; break;
    case 1: spoil_any_function(program, random)->name = out; break;
    default:
        if (program->native_count == 0) return false;
        program->natives[0].name = out;
        program->capabilities = 0;
    }
    return true;
}

static bool spoil_string_duplicate(struct program *program, struct spoil_random *random)
{
    if (program->string_count < 2) return false;
    uint32_t a = spoil_random_below(random, program->string_count);
    program->strings[a] = program->strings[(a + 1) % program->string_count];
    return true;
}

static bool spoil_string_unused(struct program *program, struct spoil_random *random)
{
    (void)random;
    if (spoil_has_string(program, CY_BYTES("not used"))) return false;
    spoil_put_string(program, program->string_count, CY_BYTES("not used"));
    return true;
}

static bool spoil_string_order(struct program *program, struct spoil_random *random)
{
    if (program->string_count < 2) return false;
    uint32_t a = spoil_random_below(random, program->string_count - 1);
    spoil_each_string(program, spoil_visit_swap, a, a + 1);
    return true;
}

/* Main's file name is a name and a path, and nothing else in most programs. */
static bool spoil_file_name(struct program *program, cy_bytes name)
{
    if (spoil_has_string(program, name)) return false;
    program->strings[program->modules[program->module_count - 1].file] = name;
    return true;
}

static bool spoil_name_empty(struct program *program, struct spoil_random *random)
{
    (void)random;
    return spoil_file_name(program, CY_BYTES(""));
}

static bool spoil_name_length(struct program *program, struct spoil_random *random)
{
    uint32_t bytes = LIMIT_PROGRAM_NAME_BYTES + 1 + spoil_random_below(random, 1000);
    uint8_t *name = spoil_alloc(program, bytes);
    memset(name, 'n', bytes);
    return spoil_file_name(program, cy_bytes_of(name, bytes));
}

static bool spoil_name_text(struct program *program, struct spoil_random *random)
{
    /* Not UTF-8, decomposed, escape, NUL, C1, right-to-left override. */
    static const cy_bytes names[] = {
        {(const uint8_t *)"a\xff", 2},     {(const uint8_t *)"e\xcc\x81", 3},
        {(const uint8_t *)"a\x1b", 2},     {(const uint8_t *)"a\0b", 3},
        {(const uint8_t *)"a\xc2\x85", 3}, {(const uint8_t *)"a\xe2\x80\xae", 4}};
    return spoil_file_name(program, names[spoil_random_below(random, CY_COUNT_OF(names))]);
}

static bool spoil_name_path(struct program *program, struct spoil_random *random)
{
    static const char *const paths[] = {"/main.han", "a//b.han", "../a.han", "a/../b.han",
                                        "./a.han",   "a/",       "std:",     "/"};
    return spoil_file_name(program,
                           cy_bytes_from_text(paths[spoil_random_below(random, CY_COUNT_OF(paths))]));
}

/* -- constants and natives ----------------------------------------------------------------------------- */

static struct constant *spoil_find_constant(struct program *program, uint8_t kind)
{
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (program->constants[i].kind == kind) return &program->constants[i];
    return NULL;
}

/* As bytes: a program with such a kind cannot even be written. */
static bool spoil_constant_kind(struct builder *file, struct spoil_random *random)
{
    size_t at =
        TOAU_HEADER_BYTES + TOAU_SECTION_HEADER_BYTES + cy_load_u32(file->data + TOAU_HEADER_BYTES + 1);
    if (cy_load_u32(file->data + at + TOAU_SECTION_HEADER_BYTES) == 0) return false;
    file->data[at + TOAU_SECTION_HEADER_BYTES + 4] = (uint8_t)(4 + spoil_random_below(random, 252));
    return true;
}

static bool spoil_constant_small(struct program *program, struct spoil_random *random)
{
    struct constant *constant = spoil_find_constant(program, CONSTANT_INT);
    if (constant) constant->as.i = (int64_t)spoil_random_below(random, 256) - 128;
    return constant;
}

static bool spoil_constant_nan(struct program *program, struct spoil_random *random)
{
    uint64_t bits = (CONSTANT_NAN_BITS | (uint64_t)spoil_random_below(random, 2) << 63) + 1;
    struct constant *constant = spoil_find_constant(program, CONSTANT_FLOAT);
    if (constant) memcpy(&constant->as.f, &bits, sizeof bits);
    return constant;
}

static bool spoil_constant_duplicate(struct program *program, struct spoil_random *random)
{
    struct constant *first = spoil_find_constant(program, 1 + (uint8_t)spoil_random_below(random, 3));
    if (!first) return false;
    for (struct constant *c = first + 1; c < program->constants + program->constant_count; c++)
        if (c->kind == first->kind) {
            *c = *first;
            return true;
        }
    return false;
}

static bool spoil_constant_unused(struct program *program, struct spoil_random *random)
{
    struct constant *constants =
        spoil_alloc(program, ((size_t)program->constant_count + 1) * sizeof *constants);
    spoil_copy(constants, program->constants, program->constant_count * sizeof *constants);
    constants[program->constant_count].kind = CONSTANT_INT;
    constants[program->constant_count++].as.i = (int64_t)(spoil_random_next(random) | 1ull << 40);
    program->constants = constants;
    return true;
}

static bool spoil_constant_order(struct program *program, struct spoil_random *random)
{
    if (program->constant_count < 2) return false;
    uint32_t index = 1 + spoil_random_below(random, cy_min_size(program->constant_count, 0x10000) - 1);
    return SPOIL_PREPEND(program, &program->functions[0], OP_CONST, SPOIL_U16(index), OP_POP);
}

static bool spoil_native_unknown(struct program *program, struct spoil_random *random)
{
    if (program->native_count == 0) return false;
    uint32_t index = spoil_random_below(random, program->native_count);
    program->strings[program->natives[index].name] = CY_BYTES("http.no_such_native");
    return true;
}

static bool spoil_native_duplicate(struct program *program, struct spoil_random *random)
{
    (void)random;
    if (program->native_count < 2) return false;
    program->natives[1].name = program->natives[0].name;
    return true;
}

static bool spoil_native_unused(struct program *program, struct spoil_random *random)
{
    cy_bytes name = cy_bytes_from_text(native_row_at(spoil_random_below(random, 20))->english);
    if (spoil_has_string(program, name)) return false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (program->constants[i].kind == CONSTANT_STR && program->constants[i].as.string >= at)
            at = program->constants[i].as.string + 1;
    for (uint32_t i = 0; i < program->native_count; i++)
        if (program->natives[i].name >= at) at = program->natives[i].name + 1;
    spoil_each_string(program, spoil_visit_shift, at, 1);
    spoil_put_string(program, at, name);
    struct native_import *natives =
        spoil_alloc(program, ((size_t)program->native_count + 1) * sizeof *natives);
    spoil_copy(natives, program->natives, program->native_count * sizeof *natives);
    natives[program->native_count++].name = at;
    program->natives = natives;
    program->capabilities = program_capabilities(program);
    return true;
}

static bool spoil_native_order(struct program *program, struct spoil_random *random)
{
    if (program->native_count < 2) return false;
    uint32_t index = 1 + spoil_random_below(random, program->native_count - 1);
    return SPOIL_PREPEND(program, &program->functions[0], OP_NATIVE_FUNCTION, SPOIL_U16(index), OP_POP);
}

static bool spoil_capabilities(struct program *program, struct spoil_random *random)
{
    program->capabilities ^= 1u << spoil_random_below(random, 32);
    return true;
}

/* -- records, modules, heads of functions -------------------------------------------------------------- */

static struct record_type *spoil_any_record(struct program *program, struct spoil_random *random)
{
    return program->record_count ? &program->records[spoil_random_below(random, program->record_count)]
                                 : NULL;
}

static struct module *spoil_any_module(struct program *program, struct spoil_random *random)
{
    return &program->modules[spoil_random_below(random, program->module_count)];
}

static bool spoil_record_module(struct program *program, struct spoil_random *random)
{
    struct record_type *record = spoil_any_record(program, random);
    if (record) record->module = program->module_count + spoil_random_below(random, 3);
    return record;
}

static bool spoil_record_fields(struct program *program, struct spoil_random *random)
{
    struct record_type *record = spoil_any_record(program, random);
    if (!record) return false;
    record->field_count = LIMIT_RECORD_FIELDS + 1 + spoil_random_below(random, 70000);
    record->fields = spoil_alloc(program, record->field_count * sizeof *record->fields);
    return true;
}

static bool spoil_record_field_twice(struct program *program, struct spoil_random *random)
{
    struct record_type *record = spoil_any_record(program, random);
    if (!record || record->field_count < 2) return false;
    record->fields[1] = record->fields[0];
    return true;
}

/* A field of any record; NULL when there is none. */
static struct record_field *spoil_any_field(struct program *program, struct spoil_random *random)
{
    struct record_type *record = spoil_any_record(program, random);
    if (!record || record->field_count == 0) return NULL;
    return &record->fields[spoil_random_below(random, record->field_count)];
}

/* No kind, every kind, one that is not there, and one beside those that are. */
static bool spoil_field_kind(struct program *program, struct spoil_random *random)
{
    const uint32_t bad[] = {0,
                            RECORD_FIELD_KIND(KIND_COUNT) - 1,
                            RECORD_FIELD_KIND(KIND_COUNT),
                            RECORD_FIELD_KIND(31) | 1,
                            RECORD_FIELD_ANY - 1,
                            RECORD_FIELD_ANY >> 1};
    struct record_field *field = spoil_any_field(program, random);
    if (field) field->kinds = bad[spoil_random_below(random, CY_COUNT_OF(bad))];
    return field;
}

static bool spoil_field_type(struct program *program, struct spoil_random *random)
{
    struct record_field *field = spoil_any_field(program, random);
    if (!field) return false;
    uint32_t kinds = 1 + spoil_random_below(random, RECORD_FIELD_KIND(KIND_COUNT) - 2);
    kinds &= ~RECORD_FIELD_KIND(KIND_RECORD);
    field->kinds = kinds ? kinds : RECORD_FIELD_ANY;
    field->record = spoil_random_below(random, PROGRAM_NO_INDEX); /* also one that is there */
    return true;
}

static bool spoil_field_record(struct program *program, struct spoil_random *random)
{
    struct record_field *field = spoil_any_field(program, random);
    if (!field) return false;
    field->kinds = RECORD_FIELD_KIND(KIND_RECORD) | spoil_random_below(random, 16);
    field->record = program->record_count + spoil_random_below(random, 3);
    return true;
}

static bool spoil_module_none(struct program *program, struct spoil_random *random)
{
    (void)random;
    program->module_count = 0;
    return true;
}

/* The last module is named as the first is; the name it had, used nowhere else in our samples, goes. */
static bool spoil_module_duplicate(struct program *program, struct spoil_random *random)
{
    (void)random;
    struct module *last = &program->modules[program->module_count - 1];
    if (program->module_count < 2) return false;
    uint32_t old = last->name;
    last->name = program->modules[0].name;
    spoil_each_string(program, spoil_visit_shift, old, UINT32_MAX); /* by -1 */
    program->string_count--;
    memmove(&program->strings[old], &program->strings[old + 1],
            (program->string_count - old) * sizeof(cy_bytes));
    return true;
}

static bool spoil_module_globals(struct program *program, struct spoil_random *random)
{
    struct module *module = spoil_any_module(program, random);
    *(spoil_random_below(random, 2) ? &module->global_first : &module->global_count) +=
        1 + spoil_random_below(random, 9);
    return true;
}

static bool spoil_module_functions(struct program *program, struct spoil_random *random)
{
    struct module *module = spoil_any_module(program, random);
    *(spoil_random_below(random, 2) ? &module->function_first : &module->function_count) -=
        1u << spoil_random_below(random, 31);
    return true;
}

static bool spoil_module_init(struct program *program, struct spoil_random *random)
{
    struct module *module = spoil_any_module(program, random);
    uint32_t function = spoil_random_below(random, program->function_count + 2);
    bool is_own =
        function >= module->function_first && function - module->function_first < module->function_count;
    if (is_own && program->functions[function].parent == PROGRAM_NO_INDEX &&
        program->functions[function].param_count == 0)
        return false;
    module->init_function = function;
    return true;
}

static struct module *spoil_module_with_exports(struct program *program, uint32_t count)
{
    for (uint32_t i = 0; i < program->module_count; i++)
        if (program->modules[i].export_count >= count) return &program->modules[i];
    return NULL;
}

static bool spoil_export_kind(struct program *program, struct spoil_random *random)
{
    struct module *module = spoil_module_with_exports(program, 1);
    if (module)
        module->exports[0].kind =
            (uint8_t)(spoil_random_below(random, 2) ? 0 : 4 + spoil_random_below(random, 252));
    return module;
}

static bool spoil_export_index(struct program *program, struct spoil_random *random)
{
    struct module *module = spoil_module_with_exports(program, 1);
    if (!module) return false;
    struct export_entry *export = &module->exports[spoil_random_below(random, module->export_count)];
    bool is_function = export->kind == EXPORT_FUNCTION &&
                       module->function_first + module->function_count < program->function_count;
    export->index = is_function ? module->function_first + module->function_count : UINT32_MAX - 1;
    return true;
}

static bool spoil_export_duplicate(struct program *program, struct spoil_random *random)
{
    (void)random;
    struct module *module = spoil_module_with_exports(program, 2);
    if (module) module->exports[1].name = module->exports[0].name;
    return module;
}

static bool spoil_function_module(struct program *program, struct spoil_random *random)
{
    spoil_any_function(program, random)->module += 1 + spoil_random_below(random, 3);
    return true;
}

static bool spoil_function_parent(struct program *program, struct spoil_random *random)
{
    uint32_t function = spoil_random_below(random, program->function_count);
    for (uint32_t m = 0; m < program->module_count; m++) {
        struct module *module = &program->modules[m];
        for (uint32_t k = 0; k < module->export_count; k++)
            if (module->exports[k].kind == EXPORT_FUNCTION && module->exports[k].index == function)
                return false;
        if (module->init_function == function) return false;
    }
    program->functions[function].parent = function + spoil_random_below(random, 5);
    return true;
}

static bool spoil_function_params(struct program *program, struct spoil_random *random)
{
    struct function *function = spoil_any_function(program, random);
    if (spoil_random_below(random, 2)) {
        if (function->param_count == 255) return false;
        function->required_count = (uint8_t)(function->param_count + 1);
    } else {
        if (function->param_count == 0) return false;
        function->local_count = (uint16_t)(function->param_count - 1);
    }
    return true;
}

static bool spoil_capture_level(struct program *program, struct spoil_random *random)
{
    uint32_t function = spoil_find_function(program, random, true);
    if (function == PROGRAM_NO_INDEX) return false;
    program->functions[function].parent = PROGRAM_NO_INDEX;
    return true;
}

static bool spoil_capture_range(struct program *program, struct spoil_random *random)
{
    uint32_t index = spoil_find_function(program, random, true);
    if (index == PROGRAM_NO_INDEX) return false;
    struct function *function = &program->functions[index];
    struct capture *capture = &function->captures[spoil_random_below(random, function->capture_count)];
    const struct function *parent = &program->functions[function->parent];
    capture->index = capture->from_parent_local ? parent->local_count : parent->capture_count;
    return true;
}

/* -- bytes --------------------------------------------------------------------------------------------- */

void spoil_repair_checksum(struct builder *file)
{
    size_t end = file->count - TOAU_CHECKSUM_BYTES;
    spoil_u32(file->data + end, crc32c(0, cy_bytes_of(file->data, end)));
}

static bool spoil_read_magic(struct builder *file, struct spoil_random *random)
{
    file->data[spoil_random_below(random, 8)] ^= (uint8_t)(1u << spoil_random_below(random, 8));
    return true;
}

static bool spoil_read_version(struct builder *file, struct spoil_random *random)
{
    file->data[8 + spoil_random_below(random, 2)] += (uint8_t)(1 + spoil_random_below(random, 255));
    return true;
}

static bool spoil_read_zero(struct builder *file, struct spoil_random *random)
{
    file->data[10 + spoil_random_below(random, 2)] += (uint8_t)(1 + spoil_random_below(random, 255));
    return true;
}

static bool spoil_read_features(struct builder *file, struct spoil_random *random)
{
    file->data[12 + spoil_random_below(random, 4)] += (uint8_t)(1 + spoil_random_below(random, 255));
    return true;
}

static bool spoil_read_length(struct builder *file, struct spoil_random *random)
{
    if (spoil_random_below(random, 2)) {
        builder_u8(file, 0);
        CHECK(!file->failed);
    } else {
        file->count -= 1 + spoil_random_below(random, (uint32_t)file->count - TOAU_HEADER_BYTES);
    }
    return true;
}

static bool spoil_read_checksum(struct builder *file, struct spoil_random *random)
{
    size_t body = file->count - TOAU_HEADER_BYTES;
    file->data[TOAU_HEADER_BYTES + spoil_random_below(random, (uint32_t)body)] ^=
        (uint8_t)(1u << spoil_random_below(random, 8));
    return true;
}

/* Where section `id` begins. */
static uint8_t *spoil_section(struct builder *file, uint8_t id)
{
    size_t at = TOAU_HEADER_BYTES;
    for (uint8_t i = 1; i < id; i++) at += TOAU_SECTION_HEADER_BYTES + cy_load_u32(file->data + at + 1);
    return file->data + at;
}

static bool spoil_read_section(struct builder *file, struct spoil_random *random)
{
    uint8_t *section = spoil_section(file, (uint8_t)(1 + spoil_random_below(random, TOAU_SECTION_END - 1)));
    if (spoil_random_below(random, 2))
        section[0] += (uint8_t)(1 + spoil_random_below(random, 255));
    else
        spoil_u32(section + 1, cy_load_u32(section + 1) + 0x40000000); /* past the end of the file */
    return true;
}

static bool spoil_read_count(struct builder *file, struct spoil_random *random)
{
    static const uint8_t counted[] = {TOAU_SECTION_STRINGS,   TOAU_SECTION_CONSTANTS, TOAU_SECTION_NATIVES,
                                      TOAU_SECTION_RECORDS,   TOAU_SECTION_MODULES,   TOAU_SECTION_GLOBALS,
                                      TOAU_SECTION_FUNCTIONS, TOAU_SECTION_LINES};
    uint8_t id = counted[spoil_random_below(random, CY_COUNT_OF(counted))];
    spoil_u32(spoil_section(file, id) + TOAU_SECTION_HEADER_BYTES,
              UINT32_MAX - spoil_random_below(random, 0x40000000));
    return true;
}

static const struct spoil spoil_rows[] = {
    {CODE_RULE_READ_MAGIC, NULL, spoil_read_magic},
    {CODE_RULE_READ_VERSION, NULL, spoil_read_version},
    {CODE_RULE_READ_VALUE, NULL, spoil_read_zero},
    {CODE_RULE_READ_FEATURES, NULL, spoil_read_features},
    {CODE_RULE_READ_LENGTH, NULL, spoil_read_length},
    {CODE_RULE_READ_CHECKSUM, NULL, spoil_read_checksum},
    {CODE_RULE_READ_SECTION, NULL, spoil_read_section},
    {CODE_RULE_READ_COUNT, NULL, spoil_read_count},
    {CODE_RULE_CONSTANT_KIND, NULL, spoil_constant_kind},
    {CODE_RULE_STRING_INDEX, spoil_string_index, NULL},
    {CODE_RULE_STRING_DUPLICATE, spoil_string_duplicate, NULL},
    {CODE_RULE_STRING_UNUSED, spoil_string_unused, NULL},
    {CODE_RULE_STRING_ORDER, spoil_string_order, NULL},
    {CODE_RULE_NAME_EMPTY, spoil_name_empty, NULL},
    {CODE_RULE_NAME_LENGTH, spoil_name_length, NULL},
    {CODE_RULE_NAME_TEXT, spoil_name_text, NULL},
    {CODE_RULE_NAME_PATH, spoil_name_path, NULL},
    {CODE_RULE_CONSTANT_SMALL, spoil_constant_small, NULL},
    {CODE_RULE_CONSTANT_NAN, spoil_constant_nan, NULL},
    {CODE_RULE_CONSTANT_DUPLICATE, spoil_constant_duplicate, NULL},
    {CODE_RULE_CONSTANT_UNUSED, spoil_constant_unused, NULL},
    {CODE_RULE_CONSTANT_ORDER, spoil_constant_order, NULL},
    {CODE_RULE_NATIVE_UNKNOWN, spoil_native_unknown, NULL},
    {CODE_RULE_NATIVE_DUPLICATE, spoil_native_duplicate, NULL},
    {CODE_RULE_NATIVE_UNUSED, spoil_native_unused, NULL},
    {CODE_RULE_NATIVE_ORDER, spoil_native_order, NULL},
    {CODE_RULE_CAPABILITIES, spoil_capabilities, NULL},
    {CODE_RULE_RECORD_MODULE, spoil_record_module, NULL},
    {CODE_RULE_RECORD_FIELDS, spoil_record_fields, NULL},
    {CODE_RULE_RECORD_FIELD_TWICE, spoil_record_field_twice, NULL},
    {CODE_RULE_RECORD_FIELD_KIND, spoil_field_kind, NULL},
    {CODE_RULE_RECORD_FIELD_TYPE, spoil_field_type, NULL},
    {CODE_RULE_RECORD_FIELD_RECORD, spoil_field_record, NULL},
    {CODE_RULE_MODULE_NONE, spoil_module_none, NULL},
    {CODE_RULE_MODULE_DUPLICATE, spoil_module_duplicate, NULL},
    {CODE_RULE_MODULE_GLOBALS, spoil_module_globals, NULL},
    {CODE_RULE_MODULE_FUNCTIONS, spoil_module_functions, NULL},
    {CODE_RULE_MODULE_INIT, spoil_module_init, NULL},
    {CODE_RULE_EXPORT_KIND, spoil_export_kind, NULL},
    {CODE_RULE_EXPORT_INDEX, spoil_export_index, NULL},
    {CODE_RULE_EXPORT_DUPLICATE, spoil_export_duplicate, NULL},
    {CODE_RULE_FUNCTION_MODULE, spoil_function_module, NULL},
    {CODE_RULE_FUNCTION_PARENT, spoil_function_parent, NULL},
    {CODE_RULE_FUNCTION_PARAMS, spoil_function_params, NULL},
    {CODE_RULE_CAPTURE_LEVEL, spoil_capture_level, NULL},
    {CODE_RULE_CAPTURE_RANGE, spoil_capture_range, NULL},
};

const struct spoil *spoil_at(size_t index)
{
    if (index < CY_COUNT_OF(spoil_rows)) return &spoil_rows[index];
    return spoil_code_at(index - CY_COUNT_OF(spoil_rows));
}
