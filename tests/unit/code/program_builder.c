/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_builder.c: programs by hand, for tests.
 *
 * In:   declarations and instructions.
 * Out:  tables grown by doubling while building, copied into the program's arena at the end.
 * Invariant: labels are per function and all placed when the next function begins.
 */
#include "tests/unit/code/program_builder.h"

#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/map.h"
#include "vm/base/mem.h"
#include "vm/code/verify.h"

struct program_builder {
    struct program *program;
    struct map string_map, constant_map, native_map;
    /* The tables, as raw structs in a row. */
    struct builder strings, constants, natives, records, modules, globals, functions, exports, captures,
        lines, code;
    struct builder labels; /* u32 each: its code offset */
    struct builder fixes;  /* struct program_builder_fix each */
};
struct program_builder_fix {
    uint32_t offset; /* of the 4 operand bytes */
    uint32_t label;
};
#define PB_HAS(b, table, type) ((uint32_t)((b)->table.count / sizeof(type)))
#define PB_LAST(b, table, type) ((type *)(void *)(b)->table.data + PB_HAS(b, table, type) - 1)
#define PB_ADD(b, table, ...) program_builder_add(&(b)->table, &(__VA_ARGS__), sizeof(__VA_ARGS__))

static void program_builder_add(struct builder *table, const void *entry, size_t bytes)
{
    builder_bytes(table, cy_bytes_of(entry, bytes));
    CHECK(!table->failed);
}

static void *program_builder_copy(struct program_builder *b, const struct builder *table)
{
    if (table->count == 0) return NULL;
    cy_bytes copy = arena_copy(&b->program->arena, builder_view(table));
    CHECK(copy.data);
    return (void *)(uintptr_t)copy.data;
}

struct program_builder *program_builder_new(void)
{
    struct program_builder *b = mem_alloc_zeroed(sizeof *b);
    CHECK(b);
    cy_err err = program_new(&b->program);
    CHECK(!cy_failed(err));
    return b;
}

/* Index of `key` in a table of `count` entries, or `count` when it is new. */
static uint32_t program_builder_intern(struct map *map, cy_bytes key, uint32_t count)
{
    bool inserted;
    struct map_entry *entry = map_insert(map, key, &inserted);
    CHECK(entry);
    if (inserted) entry->value.number = count;
    return (uint32_t)entry->value.number;
}

uint32_t pb_raw_string(struct program_builder *b, cy_bytes bytes)
{
    cy_bytes copy = arena_copy(&b->program->arena, bytes);
    CHECK(copy.data);
    PB_ADD(b, strings, copy);
    return PB_HAS(b, strings, cy_bytes) - 1;
}

uint32_t pb_bytes(struct program_builder *b, cy_bytes bytes)
{
    uint32_t index = program_builder_intern(&b->string_map, bytes, PB_HAS(b, strings, cy_bytes));
    return index < PB_HAS(b, strings, cy_bytes) ? index : pb_raw_string(b, bytes);
}

uint32_t pb_string(struct program_builder *b, const char *text)
{
    return pb_bytes(b, cy_bytes_from_text(text));
}

uint32_t pb_raw_constant(struct program_builder *b, struct constant constant)
{
    PB_ADD(b, constants, constant);
    return PB_HAS(b, constants, struct constant) - 1;
}

static uint32_t program_builder_constant(struct program_builder *b, struct constant constant)
{
    uint8_t key[1 + sizeof constant.as] = {constant.kind};
    memcpy(key + 1, &constant.as,
           constant.kind == CONSTANT_STR ? sizeof constant.as.string : sizeof constant.as);
    uint32_t count = PB_HAS(b, constants, struct constant);
    uint32_t index = program_builder_intern(&b->constant_map, cy_bytes_of(key, sizeof key), count);
    return index < count ? index : pb_raw_constant(b, constant);
}

uint32_t pb_int(struct program_builder *b, int64_t number)
{
    return program_builder_constant(b, (struct constant){.kind = CONSTANT_INT, .as.i = number});
}

uint32_t pb_float(struct program_builder *b, double number)
{
    return program_builder_constant(b, (struct constant){.kind = CONSTANT_FLOAT, .as.f = number});
}

uint32_t pb_str(struct program_builder *b, const char *text)
{
    return program_builder_constant(b,
                                    (struct constant){.kind = CONSTANT_STR, .as.string = pb_string(b, text)});
}

uint32_t pb_native(struct program_builder *b, const char *english)
{
    uint32_t count = PB_HAS(b, natives, struct native_import);
    uint32_t index = program_builder_intern(&b->native_map, cy_bytes_from_text(english), count);
    if (index == count) PB_ADD(b, natives, (struct native_import){pb_string(b, english)});
    return index;
}

/* -- tables -------------------------------------------------------------------------------------------- */

static struct module *program_builder_module(struct program_builder *b)
{
    CHECK(b->modules.count);
    return PB_LAST(b, modules, struct module);
}

static void program_builder_end_exports(struct program_builder *b)
{
    if (b->modules.count == 0) return;
    struct module *module = program_builder_module(b);
    module->export_count = PB_HAS(b, exports, struct export_entry);
    module->exports = program_builder_copy(b, &b->exports);
    builder_clear(&b->exports);
}

static void program_builder_end_function(struct program_builder *b)
{
    if (b->functions.count == 0) return;
    struct function *function = PB_LAST(b, functions, struct function);
    if (function->code) return;
    const struct program_builder_fix *fixes = (const void *)b->fixes.data;
    const uint32_t *labels = (const void *)b->labels.data;
    for (size_t i = 0; i < PB_HAS(b, fixes, struct program_builder_fix); i++) {
        uint32_t target = labels[fixes[i].label];
        CHECK(target != PROGRAM_NO_INDEX);
        for (size_t k = 0; k < 4; k++) b->code.data[fixes[i].offset + k] = (uint8_t)(target >> (8 * k));
    }
    function->code_bytes = (uint32_t)b->code.count;
    function->code = program_builder_copy(b, &b->code);
    function->capture_count = (uint16_t)PB_HAS(b, captures, struct capture);
    function->captures = program_builder_copy(b, &b->captures);
    function->line_count = PB_HAS(b, lines, struct line_entry);
    function->lines = program_builder_copy(b, &b->lines);
    builder_clear(&b->code);
    builder_clear(&b->captures);
    builder_clear(&b->lines);
    builder_clear(&b->labels);
    builder_clear(&b->fixes);
}

uint32_t pb_module(struct program_builder *b, const char *name, const char *file)
{
    program_builder_end_function(b);
    program_builder_end_exports(b);
    struct module module = {.name = pb_string(b, name),
                            .file = pb_string(b, file),
                            .init_function = PROGRAM_NO_INDEX,
                            .global_first = PB_HAS(b, globals, struct global),
                            .function_first = PB_HAS(b, functions, struct function)};
    PB_ADD(b, modules, module);
    return PB_HAS(b, modules, struct module) - 1;
}

uint32_t pb_global(struct program_builder *b, const char *name)
{
    PB_ADD(b, globals, (struct global){pb_string(b, name)});
    program_builder_module(b)->global_count++;
    return PB_HAS(b, globals, struct global) - 1;
}

uint32_t pb_record(struct program_builder *b, const char *name, const char *const *fields)
{
    struct record_type record = {.name = pb_string(b, name), .module = PB_HAS(b, modules, struct module) - 1};
    while (fields[record.field_count]) record.field_count++;
    record.fields = arena_alloc_zeroed(&b->program->arena, record.field_count * sizeof *record.fields);
    CHECK(record.fields);
    for (uint32_t i = 0; i < record.field_count; i++)
        record.fields[i] = (struct record_field){pb_string(b, fields[i]), RECORD_FIELD_ANY, PROGRAM_NO_INDEX};
    PB_ADD(b, records, record);
    return PB_HAS(b, records, struct record_type) - 1;
}

void pb_field_kinds(struct program_builder *b, uint32_t record, uint32_t field, uint32_t kinds, uint32_t type)
{
    CHECK(record < PB_HAS(b, records, struct record_type));
    struct record_type *records = (struct record_type *)(void *)b->records.data;
    CHECK(field < records[record].field_count);
    records[record].fields[field].kinds = kinds;
    records[record].fields[field].record = type;
}

void pb_export(struct program_builder *b, const char *name, enum export_kind kind, uint32_t index)
{
    PB_ADD(b, exports,
           (struct export_entry){.name = pb_string(b, name), .kind = (uint8_t)kind, .index = index});
}

void pb_init(struct program_builder *b, uint32_t function)
{
    program_builder_module(b)->init_function = function;
}

uint32_t pb_function(struct program_builder *b, const char *name, uint8_t required, uint8_t params,
                     uint16_t locals)
{
    program_builder_end_function(b);
    struct function function = {.name = pb_string(b, name),
                                .module = PB_HAS(b, modules, struct module) - 1,
                                .parent = PROGRAM_NO_INDEX,
                                .param_count = params,
                                .required_count = required,
                                .local_count = locals};
    PB_ADD(b, functions, function);
    program_builder_module(b)->function_count++;
    return PB_HAS(b, functions, struct function) - 1;
}

void pb_parent(struct program_builder *b, uint32_t parent)
{
    PB_LAST(b, functions, struct function)->parent = parent;
}

void pb_capture(struct program_builder *b, bool from_parent_local, uint16_t index)
{
    PB_ADD(b, captures, (struct capture){.from_parent_local = from_parent_local, .index = index});
}

/* -- code ---------------------------------------------------------------------------------------------- */

void pb_line(struct program_builder *b, uint32_t line, uint32_t column)
{
    PB_ADD(b, lines, (struct line_entry){.offset = (uint32_t)b->code.count, .line = line, .column = column});
}

uint32_t pb_label(struct program_builder *b)
{
    PB_ADD(b, labels, (uint32_t){PROGRAM_NO_INDEX});
    return PB_HAS(b, labels, uint32_t) - 1;
}

void pb_place(struct program_builder *b, uint32_t label)
{
    uint32_t *labels = (uint32_t *)(void *)b->labels.data;
    CHECK(label < PB_HAS(b, labels, uint32_t) && labels[label] == PROGRAM_NO_INDEX);
    labels[label] = (uint32_t)b->code.count;
}

void pb_emit(struct program_builder *b, uint8_t opcode, const int64_t *operands, size_t count)
{
    const struct format_row *format = format_row(opcode_row(opcode)->format);
    CHECK(opcode_row(opcode)->name && count == format->operand_count);
    builder_u8(&b->code, opcode);
    for (size_t i = 0; i < count; i++) {
        uint8_t kind = format->operands[i].kind;
        if (kind == OPERAND_FORWARD || kind == OPERAND_BACKWARD) {
            struct program_builder_fix fix = {(uint32_t)b->code.count, (uint32_t)operands[i]};
            PB_ADD(b, fixes, fix);
        }
        for (size_t k = 0; k < format->operands[i].bytes; k++)
            builder_u8(&b->code, (uint8_t)((uint64_t)operands[i] >> (8 * k)));
    }
    CHECK(!b->code.failed);
}

void pb_byte(struct program_builder *b, uint8_t byte) { builder_u8(&b->code, byte); }

/* -- the end ------------------------------------------------------------------------------------------- */

static void program_builder_tables(struct program_builder *b)
{
    struct program *program = b->program;
    program->string_count = PB_HAS(b, strings, cy_bytes);
    program->strings = program_builder_copy(b, &b->strings);
    program->constant_count = PB_HAS(b, constants, struct constant);
    program->constants = program_builder_copy(b, &b->constants);
    program->native_count = PB_HAS(b, natives, struct native_import);
    program->natives = program_builder_copy(b, &b->natives);
    program->record_count = PB_HAS(b, records, struct record_type);
    program->records = program_builder_copy(b, &b->records);
    program->module_count = PB_HAS(b, modules, struct module);
    program->modules = program_builder_copy(b, &b->modules);
    program->global_count = PB_HAS(b, globals, struct global);
    program->globals = program_builder_copy(b, &b->globals);
    program->function_count = PB_HAS(b, functions, struct function);
    program->functions = program_builder_copy(b, &b->functions);
    program->capabilities = program_capabilities(program);
}

struct program *program_builder_finish(struct program_builder **builder, bool canonical)
{
    struct program_builder *b = *builder;
    struct program *program = b->program;
    program_builder_end_function(b);
    program_builder_end_exports(b);
    program_builder_tables(b);
    for (uint32_t i = 0; i < program->function_count; i++) {
        cy_err err = function_stack_max(program, &program->functions[i], &program->functions[i].stack_max);
        CHECK(!cy_is(err, CY_ERR_NO_MEMORY)); /* code that does not hold is what the test wants */
    }
    if (canonical) {
        cy_err err = program_canonicalise(program);
        CHECK(!cy_failed(err));
    }
    struct builder *tables[] = {&b->strings, &b->constants, &b->natives, &b->records,  &b->modules,
                                &b->globals, &b->functions, &b->exports, &b->captures, &b->lines,
                                &b->code,    &b->labels,    &b->fixes};
    for (size_t i = 0; i < CY_COUNT_OF(tables); i++) builder_fini(tables[i]);
    map_fini(&b->string_map);
    map_fini(&b->constant_map);
    map_fini(&b->native_map);
    mem_free(b);
    *builder = NULL;
    return program;
}
