/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_read.c: RPN text to a program.
 *
 * In:   text from anywhere; rpn_write.c has the grammar, docs/RPN.md what may be left out.
 * Out:  a canonical, verified program, or every message at its line.
 *
 *      heads ─► names ─► numbers ─► bodies ─► program ─► program_canonicalise ─► verify_program
 *
 * Invariant: nothing is built after a message. What the verifier refuses is shown at the line of the text, since
 *            canonical.c keeps the number and order of instructions.
 */
#include "vm/code/rpn_read_internal.h"

#include "vm/base/limits.h"
#include "vm/code/verify.h"

#include <stdio.h>

/* -- tables ---------------------------------------------------------------------------------------------- */

void *rpn_table_at(const struct rpn_table *table, uint32_t index)
{
    CHECK(index < table->count);
    return table->bytes.data + (size_t)index * table->entry_bytes;
}

uint32_t rpn_table_push(struct rpn_read *read, struct rpn_table *table, const void *entry)
{
    builder_bytes(&table->bytes, cy_bytes_of(entry, table->entry_bytes));
    if (table->bytes.failed || table->count == RPN_NONE - 1) {
        read->no_memory = true;
        return RPN_NONE;
    }
    return table->count++;
}

uint32_t rpn_string(struct rpn_read *read, cy_bytes text)
{
    bool is_new;
    struct map_entry *entry = map_insert(&read->string_numbers, text, &is_new);
    if (entry && is_new) {
        cy_bytes copy = arena_copy(&read->program->arena, text);
        entry->value.number = copy.data ? rpn_table_push(read, &read->strings, &copy) : RPN_NONE;
    }
    bool failed = !entry || entry->value.number == RPN_NONE;
    if (failed) read->no_memory = true;
    return failed ? 0 : (uint32_t)entry->value.number;
}

void rpn_report(struct rpn_read *read, struct rpn_place place, enum rpn_fault fault, cy_bytes argument_0,
                cy_bytes argument_1, cy_bytes argument_2)
{
    rpn_fault_report(&read->faults, place, fault, argument_0, argument_1, argument_2, CY_BYTES_NONE);
}

/* -- names ----------------------------------------------------------------------------------------------- */

static uint32_t rpn_read_module_of(struct rpn_read *read, const struct rpn_token *token, uint32_t above)
{
    uint32_t module =
        token->kind == RPN_TOKEN_END ? above : rpn_name_resolve(read, RPN_MODULE, 0, token, true);
    return module == RPN_NONE ? 0 : module;
}

static void rpn_read_declare_names(struct rpn_read *read)
{
    for (uint32_t i = 0; i < read->modules.count; i++)
        rpn_name_declare(read, RPN_MODULE, 0, rpn_module_at(read, i)->name, i);
    for (uint32_t i = 0; i < read->globals.count; i++) {
        const struct rpn_global *global = rpn_table_at(&read->globals, i);
        rpn_name_declare(read, RPN_GLOBAL, global->module, global->name, i);
    }
    for (uint32_t i = 0; i < read->records.count; i++) {
        struct rpn_record *record = rpn_table_at(&read->records, i);
        record->module = rpn_read_module_of(read, &record->module_token, record->module);
        rpn_name_declare(read, RPN_RECORD, record->module, record->name, i);
    }
    for (uint32_t i = 0; i < read->functions.count; i++) {
        struct rpn_function *function = rpn_function_at(read, i);
        function->module = rpn_read_module_of(read, &function->module_token, function->module);
        rpn_name_declare(read, RPN_FUNCTION, function->module, function->name, i);
    }
}

static void rpn_read_judge_strays(struct rpn_read *read)
{
    for (uint32_t i = 0; i < read->strays.count; i++) {
        const struct rpn_stray *stray = rpn_table_at(&read->strays, i);
        if (rpn_name_is_unknown(read, 0, &stray->token))
            rpn_name_report_unknown(read, &stray->token, RPN_SCOPE_COUNT, NULL);
        else if (stray->is_first && stray->token.kind != RPN_TOKEN_BAD)
            rpn_report(read, stray->token.place, RPN_FAULT_TOP, stray->token.raw, CY_BYTES_NONE,
                       CY_BYTES_NONE);
    }
}

/* Variables and functions stand in the order of their modules in a file, whatever the order of the text. */
static void rpn_read_number(struct rpn_read *read)
{
    for (uint32_t i = 0; i < read->globals.count; i++)
        rpn_module_at(read, ((struct rpn_global *)rpn_table_at(&read->globals, i))->module)->global_count++;
    for (uint32_t i = 0; i < read->functions.count; i++)
        rpn_module_at(read, rpn_function_at(read, i)->module)->function_count++;
    uint32_t globals = 0, functions = 0;
    for (uint32_t i = 0; i < read->modules.count; i++) {
        struct rpn_module *module = rpn_module_at(read, i);
        module->global_first = globals;
        module->function_first = functions;
        globals += module->global_count;
        functions += module->function_count;
        module->global_count = module->function_count = 0;
    }
    for (uint32_t i = 0; i < read->globals.count; i++) {
        struct rpn_global *global = rpn_table_at(&read->globals, i);
        struct rpn_module *module = rpn_module_at(read, global->module);
        global->final = module->global_first + module->global_count++;
    }
    for (uint32_t i = 0; i < read->functions.count; i++) {
        struct rpn_function *function = rpn_function_at(read, i);
        struct rpn_module *module = rpn_module_at(read, function->module);
        function->final = module->function_first + module->function_count++;
    }
}

/* -- the program: tables --------------------------------------------------------------------------------- */

static void *rpn_read_new_table(struct rpn_read *read, uint32_t count, size_t entry_bytes)
{
    void *table = arena_alloc_zeroed(&read->program->arena, (size_t)count * entry_bytes);
    if (!table) read->no_memory = true;
    return table;
}

static uint32_t rpn_read_final_function(struct rpn_read *read, uint32_t module, const struct rpn_token *token)
{
    uint32_t index = rpn_name_resolve(read, RPN_FUNCTION, module, token, true);
    return index == RPN_NONE ? PROGRAM_NO_INDEX : rpn_function_at(read, index)->final;
}

static void rpn_read_build_globals(struct rpn_read *read)
{
    struct program *program = read->program;
    program->globals = rpn_read_new_table(read, read->globals.count, sizeof *program->globals);
    if (!program->globals) return;
    program->global_count = read->globals.count;
    for (uint32_t i = 0; i < read->globals.count; i++) {
        const struct rpn_global *global = rpn_table_at(&read->globals, i);
        program->globals[global->final].name = rpn_string(read, global->name);
    }
}

static void rpn_read_build_field(struct rpn_read *read, const struct rpn_record *record,
                                 const struct rpn_field *field, struct record_field *field_out)
{
    bool typed = field->of.kind != RPN_TOKEN_END && field->of.kind != RPN_TOKEN_BAD;
    uint32_t all = RECORD_FIELD_KIND(KIND_COUNT) - 1;
    *field_out = (struct record_field){rpn_string(read, field->name), RECORD_FIELD_ANY, PROGRAM_NO_INDEX};
    if (field->kinds && field->kinds != all) field_out->kinds = field->kinds;
    if (!typed) return;
    uint32_t index = rpn_name_resolve(read, RPN_RECORD, record->module, &field->of, true);
    if (field->kinds & RECORD_FIELD_KIND(KIND_RECORD)) return; /* `of record of Place`: any record */
    if (index != RPN_NONE) field_out->record = index;
    field_out->kinds = field->kinds | RECORD_FIELD_KIND(KIND_RECORD);
    /* Every kind, one of them of one type only, is a set that has no form in a file: refused by the verifier. */
}

static void rpn_read_build_records(struct rpn_read *read)
{
    struct program *program = read->program;
    program->records = rpn_read_new_table(read, read->records.count, sizeof *program->records);
    if (!program->records) return;
    program->record_count = read->records.count;
    for (uint32_t i = 0; i < read->records.count; i++) {
        const struct rpn_record *from = rpn_table_at(&read->records, i);
        struct record_type *record = &program->records[i];
        record->name = rpn_string(read, from->name);
        record->module = from->module;
        record->fields = rpn_read_new_table(read, from->field_count, sizeof *record->fields);
        if (!record->fields) return;
        record->field_count = from->field_count;
        for (uint32_t k = 0; k < from->field_count; k++)
            rpn_read_build_field(read, from, rpn_table_at(&read->fields, from->field_first + k),
                                 &record->fields[k]);
    }
}

/* What an export names: by its letter when it is a number, else a function, a variable or a record, in that order. */
static void rpn_read_build_export(struct rpn_read *read, const struct rpn_export *from,
                                  struct export_entry *export)
{
    static const struct {
        enum rpn_scope scope;
        enum export_kind kind;
    } scopes[] = {{RPN_FUNCTION, EXPORT_FUNCTION}, {RPN_GLOBAL, EXPORT_GLOBAL}, {RPN_RECORD, EXPORT_RECORD}};
    const struct rpn_token *target = from->target.kind == RPN_TOKEN_END ? &from->name_token : &from->target;
    export->name = rpn_string(read, from->name);
    for (size_t i = 0; i < CY_COUNT_OF(scopes); i++) {
        uint32_t index = rpn_name_resolve(read, scopes[i].scope, from->module, target, false);
        if (index == RPN_NONE) continue;
        export->kind = (uint8_t)scopes[i].kind;
        export->index = index;
        if (scopes[i].scope == RPN_FUNCTION) export->index = rpn_function_at(read, index)->final;
        if (scopes[i].scope == RPN_GLOBAL)
            export->index = ((struct rpn_global *)rpn_table_at(&read->globals, index))->final;
        return;
    }
    (void)rpn_name_resolve(read, RPN_FUNCTION, from->module, target, true);
}

static void rpn_read_build_modules(struct rpn_read *read)
{
    struct program *program = read->program;
    program->modules = rpn_read_new_table(read, read->modules.count, sizeof *program->modules);
    if (!program->modules) return;
    program->module_count = read->modules.count;
    for (uint32_t i = 0; i < read->exports.count; i++)
        program->modules[((struct rpn_export *)rpn_table_at(&read->exports, i))->module].export_count++;
    for (uint32_t i = 0; i < read->modules.count; i++) {
        const struct rpn_module *from = rpn_module_at(read, i);
        struct module *module = &program->modules[i];
        module->name = rpn_string(read, from->name);
        module->file = rpn_string(read, from->file);
        module->init_function = PROGRAM_NO_INDEX;
        if (from->init.kind == RPN_TOKEN_WORD || from->init.kind == RPN_TOKEN_STRING)
            module->init_function = rpn_read_final_function(read, i, &from->init);
        module->global_first = from->global_first;
        module->global_count = from->global_count;
        module->function_first = from->function_first;
        module->function_count = from->function_count;
        module->exports = rpn_read_new_table(read, module->export_count, sizeof *module->exports);
        if (!module->exports) return;
        module->export_count = 0;
    }
    for (uint32_t i = 0; i < read->exports.count; i++) {
        const struct rpn_export *from = rpn_table_at(&read->exports, i);
        struct module *module = &program->modules[from->module];
        rpn_read_build_export(read, from, &module->exports[module->export_count++]);
    }
}

/* -- the program: functions ------------------------------------------------------------------------------ */

/* A local by its number or name in the parent; a number only when it comes from the parent's captures. */
static uint16_t rpn_read_capture_index(struct rpn_read *read, const struct rpn_capture *capture,
                                       uint32_t parent)
{
    const struct rpn_token *token = &capture->index;
    if (token->kind == RPN_TOKEN_INT && token->integer >= 0 && token->integer < LIMIT_FUNCTION_LOCALS)
        return (uint16_t)token->integer;
    uint32_t slot;
    bool named = token->kind != RPN_TOKEN_INT && capture->from_parent_local && parent != RPN_NONE &&
                 rpn_name_find_local(read, parent, token->value, &slot);
    if (named) return (uint16_t)slot;
    if (token->kind == RPN_TOKEN_INT)
        rpn_report(read, token->place, RPN_FAULT_NUMBER_RANGE, token->raw, CY_BYTES("0..65534"),
                   CY_BYTES_NONE);
    else
        rpn_name_report_unknown(read, token, RPN_SCOPE_COUNT, NULL);
    return 0;
}

static void rpn_read_build_captures(struct rpn_read *read, const struct rpn_function *from, uint32_t parent,
                                    struct function *function)
{
    if (from->capture_count > LIMIT_FUNCTION_CAPTURES) {
        rpn_report(read, from->place, RPN_FAULT_TOO_MANY, CY_BYTES("capture"), CY_BYTES("65535"),
                   CY_BYTES_NONE);
        return;
    }
    function->captures = rpn_read_new_table(read, from->capture_count, sizeof *function->captures);
    if (!function->captures) return;
    function->capture_count = (uint16_t)from->capture_count;
    for (uint32_t i = 0; i < from->capture_count; i++) {
        const struct rpn_capture *capture = rpn_table_at(&read->captures, from->capture_first + i);
        struct capture *to = &function->captures[i];
        to->from_parent_local = capture->from_parent_local;
        to->index = rpn_read_capture_index(read, capture, parent);
        if (!to->from_parent_local || parent == RPN_NONE) continue;
        struct rpn_function *holder = rpn_function_at(read, parent);
        if (holder->slots_used < to->index + 1u) holder->slots_used = to->index + 1u;
    }
}

/* As the text says, or from what the code uses. */
static uint16_t rpn_read_local_count(struct rpn_read *read, const struct rpn_function *from)
{
    uint32_t params = rpn_function_params(from), count = params + from->named_locals;
    if (from->named_params > params)
        rpn_report(read, from->place, RPN_FAULT_TOO_MANY, CY_BYTES("param"), CY_BYTES("params"),
                   CY_BYTES_NONE);
    if (from->slots_used > count) count = from->slots_used;
    if (from->locals != RPN_NONE) count = from->locals;
    return (uint16_t)(count < LIMIT_FUNCTION_LOCALS ? count : LIMIT_FUNCTION_LOCALS);
}

/* A text that is not a complete one gives its own lines as places, so that errors at run time lead to it. */
static void rpn_read_build_lines(struct rpn_read *read, const struct rpn_function *from,
                                 struct function *function)
{
    bool own = from->has_lines || read->is_complete;
    uint32_t count = own ? from->line_count : from->step_count;
    function->lines = rpn_read_new_table(read, count, sizeof *function->lines);
    if (!function->lines) return;
    function->line_count = count;
    struct instruction instruction = {0};
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct line_entry *line = &function->lines[i];
        if (own) {
            *line = *(struct line_entry *)rpn_table_at(&read->lines, from->line_first + i);
            continue;
        }
        const struct rpn_place *place = rpn_table_at(&read->steps, from->step_first + i);
        bool decoded = opcode_decode(code, instruction.next_offset, &instruction);
        CHECK(decoded);
        *line = (struct line_entry){instruction.offset, place->line, place->column};
    }
}

static void rpn_read_build_function(struct rpn_read *read, uint32_t index)
{
    const struct rpn_function *from = rpn_function_at(read, index);
    struct function *function = &read->program->functions[from->final];
    uint32_t parent = RPN_NONE;
    if (from->parent.kind == RPN_TOKEN_WORD || from->parent.kind == RPN_TOKEN_STRING)
        parent = rpn_name_resolve(read, RPN_FUNCTION, from->module, &from->parent, true);
    function->name = rpn_string(read, from->name);
    function->module = from->module;
    function->parent = parent == RPN_NONE ? PROGRAM_NO_INDEX : rpn_function_at(read, parent)->final;
    function->param_count = (uint8_t)rpn_function_params(from);
    function->required_count = (uint8_t)rpn_function_required(from);
    rpn_read_build_captures(read, from, parent, function);
    function->code = arena_alloc(&read->program->arena, from->code_bytes);
    if (!function->code) read->no_memory = true;
    if (!function->code || read->code.failed || read->no_memory) return;
    if (from->code_bytes) memcpy(function->code, read->code.data + from->code_start, from->code_bytes);
    function->code_bytes = (uint32_t)from->code_bytes;
    if (!read->faults.error_count) rpn_read_build_lines(read, from, function);
}

static void rpn_read_build_functions(struct rpn_read *read)
{
    struct program *program = read->program;
    program->functions = rpn_read_new_table(read, read->functions.count, sizeof *program->functions);
    if (!program->functions) return;
    program->function_count = read->functions.count;
    for (uint32_t i = 0; i < read->functions.count && !read->no_memory; i++) rpn_read_build_function(read, i);
    for (uint32_t i = 0; i < read->functions.count; i++) {
        const struct rpn_function *from = rpn_function_at(read, i);
        program->functions[from->final].local_count = rpn_read_local_count(read, from);
    }
}

static void *rpn_read_keep(struct rpn_read *read, const struct rpn_table *table)
{
    cy_bytes copy = arena_copy(&read->program->arena, builder_view(&table->bytes));
    if (!copy.data) read->no_memory = true;
    return (void *)(uintptr_t)copy.data;
}

static void rpn_read_build(struct rpn_read *read)
{
    struct program *program = read->program;
    rpn_read_build_functions(read);
    if (!read->no_memory) rpn_read_build_records(read);
    if (!read->no_memory) rpn_read_build_modules(read);
    if (!read->no_memory) rpn_read_build_globals(read);
    if (read->no_memory || read->faults.error_count) return;
    program->strings = rpn_read_keep(read, &read->strings);
    program->string_count = read->strings.count;
    program->constants = rpn_read_keep(read, &read->constants);
    program->constant_count = read->constants.count;
    program->natives = rpn_read_keep(read, &read->natives);
    program->native_count = read->natives.count;
}

/* -- what the verifier says ------------------------------------------------------------------------------ */

static const struct rpn_function *rpn_read_function_with(const struct rpn_read *read, uint32_t final)
{
    for (uint32_t i = 0; i < read->functions.count; i++)
        if (rpn_function_at(read, i)->final == final) return rpn_function_at(read, i);
    UNREACHABLE();
}

/* The text of the instruction at a code offset; of the function's head when none is there. */
static struct rpn_place rpn_read_place_of_code(const struct rpn_read *read, uint32_t final, uint32_t offset)
{
    const struct rpn_function *from = rpn_read_function_with(read, final);
    const struct function *function = &read->program->functions[final];
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    struct instruction instruction = {0};
    for (uint32_t step = 0; step < from->step_count; step++) {
        if (!opcode_decode(code, instruction.next_offset, &instruction)) break;
        if (instruction.offset == offset)
            return *(struct rpn_place *)rpn_table_at(&read->steps, from->step_first + step);
    }
    return from->place;
}

static struct rpn_place rpn_read_place_of(const struct rpn_read *read, const struct code_failure *failure)
{
    const struct program *program = read->program;
    switch (failure->place) {
    case CODE_PLACE_CODE: return rpn_read_place_of_code(read, failure->function, failure->offset);
    case CODE_PLACE_LINE:
        return rpn_read_place_of_code(read, failure->function,
                                      program->functions[failure->function].lines[failure->offset].offset);
    case CODE_PLACE_FUNCTION: return rpn_read_function_with(read, failure->function)->place;
    case CODE_PLACE_RECORD:
        return ((struct rpn_record *)rpn_table_at(&read->records, failure->offset))->place;
    case CODE_PLACE_MODULE:
        if (failure->offset < read->modules.count) return rpn_module_at(read, failure->offset)->place;
        break;
    case CODE_PLACE_GLOBAL:
        for (uint32_t i = 0; i < read->globals.count; i++) {
            const struct rpn_global *global = rpn_table_at(&read->globals, i);
            if (global->final == failure->offset) return global->place;
        }
        break;
    case CODE_PLACE_FILE:
    case CODE_PLACE_STRING:
    case CODE_PLACE_CONSTANT:
    case CODE_PLACE_NATIVE:
    case CODE_PLACE_PROGRAM: break;
    }
    return (struct rpn_place){0};
}

static void rpn_read_refused(const struct code_failure *failure, void *context)
{
    struct rpn_read *read = context;
    struct builder where;
    bool shown = read->faults.kept_count < LIMIT_COMPILE_ERRORS; /* finding a place takes time */
    struct rpn_place place = shown ? rpn_read_place_of(read, failure) : (struct rpn_place){0};
    builder_init(&where);
    if (failure->function_name.count)
        builder_printf(&where, read->options->korean ? " (함수 `%.*s`)" : " (function `%.*s`)",
                       CY_BYTES_ARG(failure->function_name));
    rpn_report(read, place, RPN_FAULT_RULE, cy_bytes_from_text(code_rule_name(failure->rule)),
               cy_bytes_from_text(code_rule_text(failure->rule, read->options->korean)),
               builder_view(&where));
    builder_fini(&where);
}

/* -- the whole ------------------------------------------------------------------------------------------- */

static cy_err rpn_read_state(const struct rpn_read *read)
{
    if (read->no_memory || read->faults.no_memory || read->code.failed) return CY_ERR(NO_MEMORY);
    return read->faults.error_count ? CY_ERR(BAD_FORMAT) : CY_OK;
}

static cy_err rpn_read_text(struct rpn_read *read, cy_bytes text)
{
    if (text.count > LIMIT_RPN_BYTES) {
        struct builder number;
        builder_init(&number);
        builder_i64_text(&number, LIMIT_RPN_BYTES);
        rpn_report(read, (struct rpn_place){0}, RPN_FAULT_TEXT_SIZE, builder_view(&number), CY_BYTES_NONE,
                   CY_BYTES_NONE);
        builder_fini(&number);
        return CY_ERR(BAD_FORMAT);
    }
    CY_TRY(rpn_dictionary_init(&read->dictionary));
    CY_TRY(program_new(&read->program));
    rpn_lexer_init(&read->lexer, text, &read->faults, &read->program->arena, &read->no_memory);
    rpn_read_heads(read);
    rpn_read_declare_names(read);
    if (read->no_memory) return CY_ERR(NO_MEMORY);
    rpn_read_judge_strays(read);
    rpn_read_number(read);
    for (uint32_t i = 0; i < read->functions.count && !read->no_memory; i++) rpn_read_body(read, i);
    if (!read->no_memory) rpn_read_build(read);
    CY_TRY(rpn_read_state(read));

    CY_TRY(program_canonicalise(read->program));
    struct code_failure failure;
    cy_err err = verify_program(read->program, &failure);
    if (!cy_is(err, CY_ERR_BAD_FORMAT)) return err;
    err = verify_program_each(read->program, rpn_read_refused, read);
    return cy_failed(err) ? err : CY_ERR(BAD_FORMAT);
}

static void rpn_read_init(struct rpn_read *read, const struct rpn_options *options, cy_bytes text)
{
    *read = (struct rpn_read){.options = options, .module = RPN_NONE};
    rpn_faults_init(&read->faults, options->file, text, options->korean);
    builder_init(&read->code);
    map_init(&read->string_numbers, (hash_seed){0x737472, 0x696e67});
    map_init(&read->native_numbers, (hash_seed){0x6e6174, 0x697665});
    map_init(&read->names, (hash_seed){0x6e616d, 0x6573});
    read->modules.entry_bytes = sizeof(struct rpn_module);
    read->globals.entry_bytes = sizeof(struct rpn_global);
    read->exports.entry_bytes = sizeof(struct rpn_export);
    read->records.entry_bytes = sizeof(struct rpn_record);
    read->fields.entry_bytes = sizeof(struct rpn_field);
    read->functions.entry_bytes = sizeof(struct rpn_function);
    read->captures.entry_bytes = sizeof(struct rpn_capture);
    read->strays.entry_bytes = sizeof(struct rpn_stray);
    read->steps.entry_bytes = sizeof(struct rpn_place);
    read->lines.entry_bytes = sizeof(struct line_entry);
    read->strings.entry_bytes = sizeof(cy_bytes);
    read->constants.entry_bytes = sizeof(struct constant);
    read->natives.entry_bytes = sizeof(struct native_import);
}

static void rpn_read_fini(struct rpn_read *read)
{
    struct rpn_table *const tables[] = {&read->modules, &read->globals,   &read->exports,  &read->records,
                                        &read->fields,  &read->functions, &read->captures, &read->strays,
                                        &read->steps,   &read->lines,     &read->strings,  &read->constants,
                                        &read->natives};
    for (size_t i = 0; i < CY_COUNT_OF(tables); i++) builder_fini(&tables[i]->bytes);
    map_fini(&read->names);
    map_fini(&read->string_numbers);
    map_fini(&read->native_numbers);
    rpn_dictionary_fini(&read->dictionary);
    builder_fini(&read->code);
    rpn_faults_fini(&read->faults);
    program_free(&read->program);
}

cy_err rpn_read(const struct rpn_options *options, cy_bytes text, struct program **program_out,
                struct builder *messages, uint32_t *unknown_count_out)
{
    struct rpn_read read;
    rpn_read_init(&read, options, text);
    cy_err err = rpn_read_text(&read, text);
    *unknown_count_out = read.faults.unknown_count;
    if (cy_is(err, CY_ERR_BAD_FORMAT) && !read.faults.error_count)
        err = CY_ERR(VALUE); /* not ours to explain */
    if (!read.faults.no_memory) rpn_faults_render(&read.faults, messages);
    if (!cy_failed(err)) err = builder_error(messages);
    if (!cy_failed(err)) {
        *program_out = read.program;
        read.program = NULL;
    }
    rpn_read_fini(&read);
    return err;
}
