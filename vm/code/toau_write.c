/* SPDX-License-Identifier: MIT
 *
 * vm/code/toau_write.c: a program as the bytes of a .toau file.
 *
 * In:   a canonical program.
 * Out:  header, nine sections in fixed order, CRC32C. The bytes depend on the program only.
 * Invariant: toau_read gives back the same program; lengths are patched in when they are known.
 */
#include "vm/code/toau.h"

#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/base/limits.h"
#include "vm/code/toau_internal.h"

static void toau_write_u32_at(struct builder *out, size_t at, size_t number)
{
    if (out->failed) return;
    CHECK(number <= UINT32_MAX);
    CHECK(at + 4 <= out->count);
    for (size_t i = 0; i < 4; i++) out->data[at + i] = (uint8_t)(number >> (8 * i));
}

static void toau_write_strings(const struct program *program, struct builder *out)
{
    builder_u32(out, program->string_count);
    for (uint32_t i = 0; i < program->string_count; i++) {
        CHECK(program->strings[i].count <= UINT32_MAX);
        builder_u32(out, (uint32_t)program->strings[i].count);
        builder_bytes(out, program->strings[i]);
    }
}

static void toau_write_constants(const struct program *program, struct builder *out)
{
    builder_u32(out, program->constant_count);
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const struct constant *constant = &program->constants[i];
        uint64_t bits;
        builder_u8(out, constant->kind);
        switch (constant->kind) {
        case CONSTANT_INT: builder_u64(out, (uint64_t)constant->as.i); break;
        case CONSTANT_FLOAT:
            memcpy(&bits, &constant->as.f, sizeof bits);
            builder_u64(out, bits);
            break;
        case CONSTANT_STR: builder_u32(out, constant->as.string); break;
        default: UNREACHABLE();
        }
    }
}

static void toau_write_natives(const struct program *program, struct builder *out)
{
    builder_u32(out, program->native_count);
    for (uint32_t i = 0; i < program->native_count; i++) builder_u32(out, program->natives[i].name);
}

static void toau_write_capabilities(const struct program *program, struct builder *out)
{
    builder_u32(out, program->capabilities);
}

static void toau_write_records(const struct program *program, struct builder *out)
{
    builder_u32(out, program->record_count);
    for (uint32_t i = 0; i < program->record_count; i++) {
        const struct record_type *record = &program->records[i];
        builder_u32(out, record->name);
        builder_u32(out, record->module);
        builder_u32(out, record->field_count);
        for (uint32_t k = 0; k < record->field_count; k++) {
            builder_u32(out, record->fields[k].name);
            builder_u32(out, record->fields[k].kinds);
            builder_u32(out, record->fields[k].record);
        }
    }
}

static void toau_write_modules(const struct program *program, struct builder *out)
{
    builder_u32(out, program->module_count);
    for (uint32_t i = 0; i < program->module_count; i++) {
        const struct module *module = &program->modules[i];
        builder_u32(out, module->name);
        builder_u32(out, module->file);
        builder_u32(out, module->init_function);
        builder_u32(out, module->global_first);
        builder_u32(out, module->global_count);
        builder_u32(out, module->function_first);
        builder_u32(out, module->function_count);
        builder_u32(out, module->export_count);
        for (uint32_t k = 0; k < module->export_count; k++) {
            builder_u32(out, module->exports[k].name);
            builder_u8(out, module->exports[k].kind);
            builder_u32(out, module->exports[k].index);
        }
    }
}

static void toau_write_globals(const struct program *program, struct builder *out)
{
    builder_u32(out, program->global_count);
    for (uint32_t i = 0; i < program->global_count; i++) builder_u32(out, program->globals[i].name);
}

static void toau_write_functions(const struct program *program, struct builder *out)
{
    builder_u32(out, program->function_count);
    for (uint32_t i = 0; i < program->function_count; i++) {
        const struct function *function = &program->functions[i];
        builder_u32(out, function->name);
        builder_u32(out, function->module);
        builder_u32(out, function->parent);
        builder_u8(out, function->param_count);
        builder_u8(out, function->required_count);
        builder_u16(out, function->local_count);
        builder_u16(out, function->stack_max);
        builder_u16(out, function->capture_count);
        for (uint32_t k = 0; k < function->capture_count; k++) {
            builder_u8(out, function->captures[k].from_parent_local);
            builder_u16(out, function->captures[k].index);
        }
        builder_u32(out, function->code_bytes);
        builder_bytes(out, cy_bytes_of(function->code, function->code_bytes));
    }
}

/* One table per function; their number is that of the functions. */
static void toau_write_lines(const struct program *program, struct builder *out)
{
    for (uint32_t i = 0; i < program->function_count; i++) {
        const struct function *function = &program->functions[i];
        builder_u32(out, function->line_count);
        for (uint32_t k = 0; k < function->line_count; k++) {
            builder_u32(out, function->lines[k].offset);
            builder_u32(out, function->lines[k].line);
            builder_u32(out, function->lines[k].column);
        }
    }
}

typedef void toau_write_section(const struct program *, struct builder *);
static toau_write_section *const toau_write_sections[TOAU_SECTION_END] = {
    [TOAU_SECTION_STRINGS] = toau_write_strings, [TOAU_SECTION_CONSTANTS] = toau_write_constants,
    [TOAU_SECTION_NATIVES] = toau_write_natives, [TOAU_SECTION_CAPABILITIES] = toau_write_capabilities,
    [TOAU_SECTION_RECORDS] = toau_write_records, [TOAU_SECTION_MODULES] = toau_write_modules,
    [TOAU_SECTION_GLOBALS] = toau_write_globals, [TOAU_SECTION_FUNCTIONS] = toau_write_functions,
    [TOAU_SECTION_LINES] = toau_write_lines,
};

cy_err toau_write(const struct program *program, struct builder *out)
{
    size_t start = out->count;
    builder_bytes(out, TOAU_MAGIC);
    builder_u16(out, TOAU_VERSION);
    builder_u16(out, 0);
    builder_u32(out, 0); /* no features yet */
    builder_u32(out, 0); /* file bytes */

    for (uint8_t id = 1; id < TOAU_SECTION_END; id++) {
        builder_u8(out, id);
        builder_u32(out, 0);
        size_t section_start = out->count;
        toau_write_sections[id](program, out);
        if (out->failed) return CY_ERR(NO_MEMORY);
        if (out->count - start > LIMIT_TOAU_BYTES - TOAU_CHECKSUM_BYTES) return CY_ERR(TOO_LARGE);
        toau_write_u32_at(out, section_start - 4, out->count - section_start);
    }

    toau_write_u32_at(out, start + TOAU_FILE_BYTES_OFFSET, out->count - start + TOAU_CHECKSUM_BYTES);
    builder_u32(out, crc32c(0, cy_bytes_skip(builder_view(out), start)));
    return builder_error(out);
}
