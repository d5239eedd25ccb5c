/* SPDX-License-Identifier: MIT
 *
 * vm/code/toau_read.c: the bytes of a .toau file as a program.
 *
 * In:   bytes from anywhere.
 * Out:  a program whose tables have the lengths they say, or the rule and file offset that refuse it.
 * Invariant: nothing is allocated before its count was compared with the bytes left in its section, so
 *            memory is linear in the file; strings and code are copied, the file may go away.
 * Not here: what the numbers mean (verify.c).
 *
 *      header 20 | id 1, length 4, content | ... nine sections ... | CRC32C 4
 */
#include "vm/code/toau.h"

#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/base/limits.h"
#include "vm/code/toau_internal.h"

/* One section is read at a time; `reader.input` ends where the section ends, so no field can reach into the
 * next. */
struct toau_read {
    cy_bytes file;
    struct byte_reader reader;
    struct program *program;
    struct code_failure *failure;
};

static cy_err toau_read_refuse_at(struct toau_read *read, enum code_rule rule, size_t offset)
{
    *read->failure = (struct code_failure){.rule = rule,
                                           .place = CODE_PLACE_FILE,
                                           .function = PROGRAM_NO_INDEX,
                                           .offset = (uint32_t)cy_min_size(offset, UINT32_MAX)};
    return CY_ERR(BAD_FORMAT);
}

static cy_err toau_read_refuse(struct toau_read *read, enum code_rule rule)
{
    return toau_read_refuse_at(read, rule, read->reader.offset);
}

/* A failed field read leaves the reader where it failed. */
static cy_err toau_read_fields_held(struct toau_read *read)
{
    return read->reader.failed ? toau_read_refuse(read, CODE_RULE_READ_SECTION) : CY_OK;
}

/* Zeroed room for `count` entries of a table whose entries take at least `entry_bytes_min` in the file. */
static cy_err toau_read_table(struct toau_read *read, uint32_t count, size_t entry_bytes_min,
                              size_t struct_bytes, void **table_out)
{
    CY_TRY(toau_read_fields_held(read));
    if (count > byte_reader_left(&read->reader) / entry_bytes_min)
        return toau_read_refuse_at(read, CODE_RULE_READ_COUNT, read->reader.offset);
    size_t bytes;
    if (cy_mul_overflows(count, struct_bytes, &bytes)) return CY_ERR(NO_MEMORY);
    *table_out = count ? arena_alloc_zeroed(&read->program->arena, bytes) : NULL;
    return count && !*table_out ? CY_ERR(NO_MEMORY) : CY_OK;
}

static cy_err toau_read_strings(struct toau_read *read)
{
    struct program *program = read->program;
    /* One copy of the file up to the end of this section, which is its first; the strings are views into it. */
    cy_bytes copy = arena_copy(&program->arena, read->reader.input);
    if (!copy.data) return CY_ERR(NO_MEMORY);

    uint32_t count = byte_reader_u32(&read->reader);
    void *table;
    CY_TRY(toau_read_table(read, count, TOAU_STRING_BYTES_MIN, sizeof *program->strings, &table));
    program->strings = table;
    for (; program->string_count < count; program->string_count++) {
        uint32_t bytes = byte_reader_u32(&read->reader);
        if (bytes > byte_reader_left(&read->reader)) return toau_read_refuse(read, CODE_RULE_READ_COUNT);
        size_t start = read->reader.offset;
        cy_bytes string = byte_reader_take(&read->reader, bytes);
        CY_TRY(toau_read_fields_held(read));
        program->strings[program->string_count] = cy_bytes_of(copy.data + start, string.count);
    }
    return CY_OK;
}

static cy_err toau_read_constants(struct toau_read *read)
{
    struct program *program = read->program;
    uint32_t count = byte_reader_u32(&read->reader);
    void *table;
    CY_TRY(toau_read_table(read, count, TOAU_CONSTANT_BYTES_MIN, sizeof *program->constants, &table));
    program->constants = table;
    for (; program->constant_count < count; program->constant_count++) {
        struct constant *constant = &program->constants[program->constant_count];
        uint64_t bits;
        size_t start = read->reader.offset;
        constant->kind = byte_reader_u8(&read->reader);
        switch (constant->kind) {
        case CONSTANT_INT: constant->as.i = (int64_t)byte_reader_u64(&read->reader); break;
        case CONSTANT_FLOAT:
            bits = byte_reader_u64(&read->reader);
            memcpy(&constant->as.f, &bits, sizeof bits);
            break;
        case CONSTANT_STR: constant->as.string = byte_reader_u32(&read->reader); break;
        default:
            CY_TRY(toau_read_fields_held(read));
            return toau_read_refuse_at(read, CODE_RULE_CONSTANT_KIND, start); /* how long would it be? */
        }
        CY_TRY(toau_read_fields_held(read));
    }
    return CY_OK;
}

static cy_err toau_read_natives(struct toau_read *read)
{
    struct program *program = read->program;
    program->native_count = byte_reader_u32(&read->reader);
    void *table;
    CY_TRY(toau_read_table(read, program->native_count, TOAU_NATIVE_BYTES, sizeof *program->natives, &table));
    program->natives = table;
    for (uint32_t i = 0; i < program->native_count; i++)
        program->natives[i].name = byte_reader_u32(&read->reader);
    return CY_OK;
}

static cy_err toau_read_capabilities(struct toau_read *read)
{
    read->program->capabilities = byte_reader_u32(&read->reader);
    return CY_OK;
}

static cy_err toau_read_records(struct toau_read *read)
{
    struct program *program = read->program;
    uint32_t count = byte_reader_u32(&read->reader);
    void *table;
    CY_TRY(toau_read_table(read, count, TOAU_RECORD_BYTES_MIN, sizeof *program->records, &table));
    program->records = table;
    for (; program->record_count < count; program->record_count++) {
        struct record_type *record = &program->records[program->record_count];
        record->name = byte_reader_u32(&read->reader);
        record->module = byte_reader_u32(&read->reader);
        record->field_count = byte_reader_u32(&read->reader);
        CY_TRY(toau_read_table(read, record->field_count, TOAU_FIELD_BYTES, sizeof *record->fields, &table));
        record->fields = table;
        for (uint32_t i = 0; i < record->field_count; i++) {
            record->fields[i].name = byte_reader_u32(&read->reader);
            record->fields[i].kinds = byte_reader_u32(&read->reader);
            record->fields[i].record = byte_reader_u32(&read->reader);
        }
    }
    return CY_OK;
}

static cy_err toau_read_exports(struct toau_read *read, struct module *module)
{
    void *table;
    CY_TRY(toau_read_table(read, module->export_count, TOAU_EXPORT_BYTES, sizeof *module->exports, &table));
    module->exports = table;
    for (uint32_t i = 0; i < module->export_count; i++) {
        module->exports[i].name = byte_reader_u32(&read->reader);
        module->exports[i].kind = byte_reader_u8(&read->reader);
        module->exports[i].index = byte_reader_u32(&read->reader);
    }
    return CY_OK;
}

static cy_err toau_read_modules(struct toau_read *read)
{
    struct program *program = read->program;
    uint32_t count = byte_reader_u32(&read->reader);
    void *table;
    CY_TRY(toau_read_table(read, count, TOAU_MODULE_BYTES_MIN, sizeof *program->modules, &table));
    program->modules = table;
    for (; program->module_count < count; program->module_count++) {
        struct module *module = &program->modules[program->module_count];
        module->name = byte_reader_u32(&read->reader);
        module->file = byte_reader_u32(&read->reader);
        module->init_function = byte_reader_u32(&read->reader);
        module->global_first = byte_reader_u32(&read->reader);
        module->global_count = byte_reader_u32(&read->reader);
        module->function_first = byte_reader_u32(&read->reader);
        module->function_count = byte_reader_u32(&read->reader);
        module->export_count = byte_reader_u32(&read->reader);
        CY_TRY(toau_read_exports(read, module));
    }
    return CY_OK;
}

static cy_err toau_read_globals(struct toau_read *read)
{
    struct program *program = read->program;
    program->global_count = byte_reader_u32(&read->reader);
    void *table;
    CY_TRY(toau_read_table(read, program->global_count, TOAU_GLOBAL_BYTES, sizeof *program->globals, &table));
    program->globals = table;
    for (uint32_t i = 0; i < program->global_count; i++)
        program->globals[i].name = byte_reader_u32(&read->reader);
    return CY_OK;
}

static cy_err toau_read_captures(struct toau_read *read, struct function *function)
{
    void *table;
    CY_TRY(toau_read_table(read, function->capture_count, TOAU_CAPTURE_BYTES, sizeof *function->captures,
                           &table));
    function->captures = table;
    for (uint32_t i = 0; i < function->capture_count; i++) {
        uint8_t from_parent_local = byte_reader_u8(&read->reader);
        if (from_parent_local > 1)
            return toau_read_refuse_at(read, CODE_RULE_READ_VALUE, read->reader.offset - 1);
        function->captures[i].from_parent_local = from_parent_local == 1;
        function->captures[i].index = byte_reader_u16(&read->reader);
    }
    return CY_OK;
}

static cy_err toau_read_code(struct toau_read *read, struct function *function)
{
    uint32_t code_bytes = byte_reader_u32(&read->reader);
    CY_TRY(toau_read_fields_held(read));
    if (code_bytes > byte_reader_left(&read->reader)) return toau_read_refuse(read, CODE_RULE_READ_COUNT);
    cy_bytes code = byte_reader_take(&read->reader, code_bytes);
    if (code_bytes == 0) return CY_OK;
    function->code = arena_alloc(&read->program->arena, code_bytes);
    if (!function->code) return CY_ERR(NO_MEMORY);
    memcpy(function->code, code.data, code_bytes);
    function->code_bytes = code_bytes;
    return CY_OK;
}

static cy_err toau_read_functions(struct toau_read *read)
{
    struct program *program = read->program;
    uint32_t count = byte_reader_u32(&read->reader);
    void *table;
    CY_TRY(toau_read_table(read, count, TOAU_FUNCTION_BYTES_MIN, sizeof *program->functions, &table));
    program->functions = table;
    for (; program->function_count < count; program->function_count++) {
        struct function *function = &program->functions[program->function_count];
        function->name = byte_reader_u32(&read->reader);
        function->module = byte_reader_u32(&read->reader);
        function->parent = byte_reader_u32(&read->reader);
        function->param_count = byte_reader_u8(&read->reader);
        function->required_count = byte_reader_u8(&read->reader);
        function->local_count = byte_reader_u16(&read->reader);
        function->stack_max = byte_reader_u16(&read->reader);
        function->capture_count = byte_reader_u16(&read->reader);
        CY_TRY(toau_read_captures(read, function));
        CY_TRY(toau_read_code(read, function));
    }
    return CY_OK;
}

static cy_err toau_read_lines(struct toau_read *read)
{
    struct program *program = read->program;
    for (uint32_t i = 0; i < program->function_count; i++) {
        struct function *function = &program->functions[i];
        function->line_count = byte_reader_u32(&read->reader);
        void *table;
        CY_TRY(toau_read_table(read, function->line_count, TOAU_LINE_BYTES, sizeof *function->lines, &table));
        function->lines = table;
        for (uint32_t k = 0; k < function->line_count; k++) {
            function->lines[k].offset = byte_reader_u32(&read->reader);
            function->lines[k].line = byte_reader_u32(&read->reader);
            function->lines[k].column = byte_reader_u32(&read->reader);
        }
    }
    return CY_OK;
}

typedef cy_err toau_read_section(struct toau_read *);
static toau_read_section *const toau_read_sections[TOAU_SECTION_END] = {
    [TOAU_SECTION_STRINGS] = toau_read_strings, [TOAU_SECTION_CONSTANTS] = toau_read_constants,
    [TOAU_SECTION_NATIVES] = toau_read_natives, [TOAU_SECTION_CAPABILITIES] = toau_read_capabilities,
    [TOAU_SECTION_RECORDS] = toau_read_records, [TOAU_SECTION_MODULES] = toau_read_modules,
    [TOAU_SECTION_GLOBALS] = toau_read_globals, [TOAU_SECTION_FUNCTIONS] = toau_read_functions,
    [TOAU_SECTION_LINES] = toau_read_lines,
};

/* Version before length: a later version may have a longer header, and "cannot be read" is then the better
 * message. */
static cy_err toau_read_header(struct toau_read *read)
{
    cy_bytes file = read->file;
    if (file.count > LIMIT_TOAU_BYTES)
        return toau_read_refuse_at(read, CODE_RULE_READ_SIZE, LIMIT_TOAU_BYTES);
    cy_bytes magic = cy_bytes_slice(file, 0, TOAU_MAGIC.count);
    if (!cy_bytes_equal(magic, cy_bytes_slice(TOAU_MAGIC, 0, magic.count)) || magic.count == 0)
        return toau_read_refuse_at(read, CODE_RULE_READ_MAGIC, 0);
    if (file.count < TOAU_HEADER_BYTES + TOAU_CHECKSUM_BYTES)
        return toau_read_refuse_at(read, CODE_RULE_READ_LENGTH, file.count);

    struct byte_reader reader = {.input = file, .offset = TOAU_MAGIC.count};
    size_t at = reader.offset;
    uint16_t version = byte_reader_u16(&reader);
    if (version != TOAU_VERSION) return toau_read_refuse_at(read, CODE_RULE_READ_VERSION, at);
    at = reader.offset;
    if (byte_reader_u16(&reader) != 0) return toau_read_refuse_at(read, CODE_RULE_READ_VALUE, at);
    at = reader.offset;
    if (byte_reader_u32(&reader) != 0) return toau_read_refuse_at(read, CODE_RULE_READ_FEATURES, at);
    at = reader.offset;
    if (byte_reader_u32(&reader) != file.count) return toau_read_refuse_at(read, CODE_RULE_READ_LENGTH, at);
    CHECK(reader.offset == TOAU_HEADER_BYTES);

    size_t sum_offset = file.count - TOAU_CHECKSUM_BYTES;
    if (crc32c(0, cy_bytes_slice(file, 0, sum_offset)) != cy_load_u32(file.data + sum_offset))
        return toau_read_refuse_at(read, CODE_RULE_READ_CHECKSUM, sum_offset);
    read->reader =
        (struct byte_reader){.input = cy_bytes_slice(file, 0, sum_offset), .offset = TOAU_HEADER_BYTES};
    return CY_OK;
}

/* The reader is limited to the section while its function runs. Views keep offsets of the file, so refusals
 * name them. */
static cy_err toau_read_one_section(struct toau_read *read, uint8_t id)
{
    cy_bytes whole = read->reader.input;
    size_t at = read->reader.offset;
    uint8_t id_found = byte_reader_u8(&read->reader);
    uint32_t bytes = byte_reader_u32(&read->reader);
    CY_TRY(toau_read_fields_held(read));
    if (id_found != id || bytes > byte_reader_left(&read->reader))
        return toau_read_refuse_at(read, CODE_RULE_READ_SECTION, at);

    size_t end = read->reader.offset + bytes;
    read->reader.input = cy_bytes_slice(whole, 0, end);
    CY_TRY(toau_read_sections[id](read));
    CY_TRY(toau_read_fields_held(read));
    if (read->reader.offset != end) return toau_read_refuse(read, CODE_RULE_READ_SECTION);
    read->reader.input = whole;
    return CY_OK;
}

static cy_err toau_read_all(struct toau_read *read)
{
    CY_TRY(toau_read_header(read));
    for (uint8_t id = 1; id < TOAU_SECTION_END; id++) CY_TRY(toau_read_one_section(read, id));
    if (byte_reader_left(&read->reader) != 0) return toau_read_refuse(read, CODE_RULE_READ_LENGTH);
    return CY_OK;
}

bool toau_is_named(cy_bytes bytes) { return cy_bytes_start_with(bytes, cy_bytes_slice(TOAU_MAGIC, 0, 5)); }
bool toau_begins(cy_bytes bytes) { return cy_bytes_start_with(bytes, cy_bytes_slice(TOAU_MAGIC, 0, 1)); }

cy_err toau_read(cy_bytes file, struct program **program_out, struct code_failure *failure_out)
{
    *failure_out = (struct code_failure){.function = PROGRAM_NO_INDEX};
    struct toau_read read = {.file = file, .failure = failure_out};
    CY_TRY(program_new(&read.program));
    cy_err err = toau_read_all(&read);
    if (cy_failed(err)) {
        program_free(&read.program);
        return err;
    }
    *program_out = read.program;
    return CY_OK;
}

/* The string `index` as the file holds it; for messages that outlive the program. The file was read once
 * already. */
static cy_bytes toau_read_file_string(cy_bytes file, uint32_t index)
{
    struct byte_reader reader = {.input = file, .offset = TOAU_HEADER_BYTES + TOAU_SECTION_HEADER_BYTES + 4};
    for (uint32_t i = 0; i < index && !reader.failed; i++)
        (void)byte_reader_take(&reader, byte_reader_u32(&reader));
    return byte_reader_take(&reader, byte_reader_u32(&reader));
}

cy_err toau_load(cy_bytes file, struct program **program_out, struct code_failure *failure_out)
{
    struct program *program;
    CY_TRY(toau_read(file, &program, failure_out));
    cy_err err = verify_program(program, failure_out);
    if (!cy_failed(err)) {
        *program_out = program;
        return CY_OK;
    }
    if (failure_out->function_name.count)
        failure_out->function_name =
            toau_read_file_string(file, program->functions[failure_out->function].name);
    program_free(&program);
    return err;
}
