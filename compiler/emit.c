/* SPDX-License-Identifier: MIT
 *
 * compiler/emit.c: the program's tables: modules, variables, records, functions, exports, pools.
 *
 * In:   resolved units in start order. Out: a program that compiler.c still has to bring into canonical form and prove.
 * Order: per module its initialiser, its functions as the source has them, then the functions inside the
 *        initialisers; a function always before those inside it. Numbers are given before any code is written,
 *        because calls may look ahead.
 */
#include "compiler/emit_internal.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/program.h"

static void *emit_array(struct emitter *emitter, size_t count, size_t item_bytes)
{
    void *array = arena_alloc_zeroed(&emitter->program->arena, count * item_bytes);
    if (!array) mem_exhausted();
    return array;
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

static bool emit_needs_init(const struct unit *unit)
{
    for (uint32_t i = 0; i < unit->declarations.count; i++) {
        const struct node *node = unit->declarations.items[i];
        if (node->kind == NODE_LET && node->as.let.symbol->needs_global) return true;
    }
    return false;
}

static void emit_number_unit(struct program *program, struct unit *unit)
{
    if (emit_needs_init(unit)) unit->init->index = program->function_count++;
    for (uint32_t i = 0; i < unit->functions.count; i++)
        unit->functions.items[i]->index = program->function_count++;
    for (uint32_t i = 0; i < unit->init_functions.count; i++)
        unit->init_functions.items[i]->index = program->function_count++;
    for (uint32_t i = 0; i < unit->declarations.count; i++) {
        struct node *node = unit->declarations.items[i];
        if (node->kind == NODE_RECORD) node->as.record->index = program->record_count++;
        if (node->kind == NODE_LET && node->as.let.symbol->needs_global)
            node->as.let.symbol->index = program->global_count++;
    }
}

/* -- tables -------------------------------------------------------------------------------------------------------- */

static void emit_record(struct emitter *emitter, const struct record_decl *record, uint32_t module)
{
    struct record_type *type = &emitter->program->records[record->index];
    type->name = emit_string(emitter, record->name.text);
    type->module = module;
    type->field_count = record->field_count;
    type->fields = emit_array(emitter, record->field_count, sizeof *type->fields);
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct annotation *annotation = record->fields[i].annotation;
        struct record_field *field = &type->fields[i];
        *field = (struct record_field){emit_string(emitter, record->fields[i].name.text), RECORD_FIELD_ANY,
                                       PROGRAM_NO_INDEX};
        if (!annotation) continue;
        CHECK(annotation->known);
        const struct record_decl *only = annotation_only_record(annotation);
        field->kinds = annotation_kinds(annotation);
        if (field->kinds == RECORD_FIELD_KIND(KIND_COUNT) - 1) field->kinds = RECORD_FIELD_ANY;
        if (only && field->kinds != RECORD_FIELD_ANY) field->record = only->index;
    }
}

static void emit_exports(struct emitter *emitter, const struct unit *unit, struct module *module)
{
    module->exports = emit_array(emitter, unit->symbols.count, sizeof *module->exports);
    for (uint32_t i = 0; i < unit->symbols.count; i++) {
        const struct symbol *symbol = unit->symbols.items[i];
        if (!symbol->exported) continue;
        if (symbol->kind == SYMBOL_GLOBAL && !symbol->needs_global) continue; /* std: written into its uses */
        struct export_entry *entry = &module->exports[module->export_count++];
        entry->name = emit_string(emitter, symbol->name);
        entry->kind = symbol->kind == SYMBOL_FUNCTION ? EXPORT_FUNCTION
                      : symbol->kind == SYMBOL_GLOBAL ? EXPORT_GLOBAL
                                                      : EXPORT_RECORD;
        entry->index = symbol->kind == SYMBOL_FUNCTION ? symbol->function->index
                       : symbol->kind == SYMBOL_GLOBAL ? symbol->index
                                                       : symbol->record->index;
    }
}

static void emit_declarations(struct emitter *emitter, const struct unit *unit, uint32_t module_index,
                              uint32_t *next_global)
{
    struct module *module = &emitter->program->modules[module_index];
    module->global_first = *next_global;
    for (uint32_t i = 0; i < unit->declarations.count; i++) {
        const struct node *node = unit->declarations.items[i];
        if (node->kind == NODE_RECORD) emit_record(emitter, node->as.record, module_index);
        if (node->kind != NODE_LET || !node->as.let.symbol->needs_global) continue;
        CHECK(node->as.let.symbol->index == *next_global);
        emitter->program->globals[(*next_global)++].name = emit_string(emitter, node->as.let.name.text);
    }
    module->global_count = *next_global - module->global_first;
}

static cy_err emit_function_list(struct emitter *emitter, const struct function_list *list, uint32_t module,
                                 uint32_t *next_function)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct function *function = &emitter->program->functions[*next_function];
        CHECK(list->items[i]->index == *next_function);
        function->module = module;
        CY_TRY(emit_function(emitter, list->items[i], function));
        ++*next_function;
    }
    return CY_OK;
}

static cy_err emit_unit(struct emitter *emitter, struct unit *unit, uint32_t module_index,
                        uint32_t *next_function, uint32_t *next_global)
{
    struct module *module = &emitter->program->modules[module_index];
    module->name = emit_string(emitter, unit->name);
    module->file = emit_string(emitter, unit->source.file);
    module->init_function = PROGRAM_NO_INDEX;
    module->function_first = *next_function;
    emit_declarations(emitter, unit, module_index, next_global);
    emit_exports(emitter, unit, module);
    if (emit_needs_init(unit)) {
        module->init_function = *next_function;
        struct function *function = &emitter->program->functions[(*next_function)++];
        function->module = module_index;
        CY_TRY(emit_init(emitter, unit, function));
    }
    CY_TRY(emit_function_list(emitter, &unit->functions, module_index, next_function));
    CY_TRY(emit_function_list(emitter, &unit->init_functions, module_index, next_function));
    module->function_count = *next_function - module->function_first;
    return CY_OK;
}

/* -- pools --------------------------------------------------------------------------------------------------------- */

static void emit_pools(struct emitter *emitter)
{
    struct program *program = emitter->program;
    program->string_count = emitter->strings.count;
    program->strings = emit_array(emitter, program->string_count, sizeof *program->strings);
    for (uint32_t i = 0; i < program->string_count; i++) {
        program->strings[i] = arena_copy(&program->arena, emitter->strings.entries[i].key);
        if (!program->strings[i].data) mem_exhausted();
    }
    program->constant_count = emitter->constants.count;
    program->constants = emit_array(emitter, program->constant_count, sizeof *program->constants);
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const uint8_t *key = emitter->constants.entries[i].key.data;
        struct constant *constant = &program->constants[i];
        uint64_t bits = cy_load_u64(key + 1);
        constant->kind = key[0];
        if (constant->kind == CONSTANT_STR)
            constant->as.string = (uint32_t)bits;
        else if (constant->kind == CONSTANT_INT)
            constant->as.i = (int64_t)bits;
        else
            memcpy(&constant->as.f, &bits, sizeof bits);
    }
    program->native_count = emitter->natives.count;
    program->natives = emit_array(emitter, program->native_count, sizeof *program->natives);
    /* The names are in `strings` already: emit_tables put them there. */
    for (uint32_t i = 0; i < program->native_count; i++)
        program->natives[i].name = emit_string(emitter, emitter->natives.entries[i].key);
    CHECK(emitter->strings.count == program->string_count);
}

static void emit_number(struct emitter *emitter)
{
    struct program *program = emitter->program;
    struct compilation *compilation = emitter->compilation;
    for (uint32_t i = 0; i < compilation->order.count; i++)
        emit_number_unit(program, compilation->order.items[i]);
    program->module_count = compilation->order.count;
    program->modules = emit_array(emitter, program->module_count, sizeof *program->modules);
    program->globals = emit_array(emitter, program->global_count, sizeof *program->globals);
    program->records = emit_array(emitter, program->record_count, sizeof *program->records);
    program->functions = emit_array(emitter, program->function_count, sizeof *program->functions);
}

static cy_err emit_tables(struct emitter *emitter)
{
    struct compilation *compilation = emitter->compilation;
    uint32_t next_function = 0, next_global = 0;
    for (uint32_t i = 0; i < compilation->order.count; i++)
        CY_TRY(emit_unit(emitter, compilation->order.items[i], i, &next_function, &next_global));
    CHECK(next_function == emitter->program->function_count && next_global == emitter->program->global_count);
    for (uint32_t i = 0; i < emitter->natives.count; i++)
        (void)emit_string(emitter, emitter->natives.entries[i].key);
    return CY_OK;
}

cy_err emit_units(struct compilation *compilation, struct program **program_out)
{
    struct emitter emitter = {.compilation = compilation};
    CY_TRY(program_new(&emitter.program));
    map_init(&emitter.strings, (hash_seed){0, 0});
    map_init(&emitter.constants, (hash_seed){0, 0});
    map_init(&emitter.natives, (hash_seed){0, 0});
    emit_number(&emitter);
    cy_err err = emit_tables(&emitter);
    if (!cy_failed(err)) {
        emit_pools(&emitter);
        emitter.program->capabilities = program_capabilities(emitter.program);
    }
    map_fini(&emitter.strings);
    map_fini(&emitter.constants);
    map_fini(&emitter.natives);
    if (cy_failed(err)) program_free(&emitter.program);
    *program_out = emitter.program;
    return err;
}
