/* SPDX-License-Identifier: MIT
 *
 * vm/code/verify.c: the proof, step by step; records, modules and the heads of functions.
 *
 * In:   a program, trusted in nothing but that its arrays have the lengths it says.
 * Out:  accepted, or the rule, function and offset that refuse it.
 * Invariant: strings are used in the order of the steps below, which is the order of the sections of the
 *            file; so "first-use order" needs one number.
 * Not here: pools (verify_pool.c), code (verify_code.c, verify_flow.c).
 */
#include "vm/code/verify_internal.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"

cy_err verify_refuse_in(struct verify *verify, enum code_rule rule, enum code_place place, uint32_t function,
                        uint32_t offset)
{
    CHECK(rule != CODE_RULE_NONE);
    const struct program *program = verify->program;
    *verify->failure =
        (struct code_failure){.rule = rule, .place = place, .function = function, .offset = offset};
    if (function == PROGRAM_NO_INDEX) return CY_ERR(BAD_FORMAT);
    /* The name is a courtesy: it may not have been verified yet, or be what is wrong. */
    uint32_t name = program->functions[function].name;
    bool can_show =
        name < program->string_count && (verify->string_checks[name] || program->strings[name].count == 0);
    if (can_show) verify->failure->function_name = program->strings[name];
    return CY_ERR(BAD_FORMAT);
}

cy_err verify_refuse(struct verify *verify, enum code_rule rule, enum code_place place, uint32_t offset)
{
    return verify_refuse_in(verify, rule, place, place == CODE_PLACE_FUNCTION ? offset : PROGRAM_NO_INDEX,
                            offset);
}

/* -- records ------------------------------------------------------------------------------------------- */

/* One encoding of one meaning: some kinds and not all of them, or ANY; only kind record goes with a record type. */
static cy_err verify_field_kind(struct verify *verify, const struct record_field *field, uint32_t index)
{
    enum code_rule rule = CODE_RULE_NONE;
    uint32_t all = RECORD_FIELD_KIND(KIND_COUNT) - 1;
    bool any = field->kinds == RECORD_FIELD_ANY;
    if (!any && (field->kinds == 0 || field->kinds >= all))
        rule = CODE_RULE_RECORD_FIELD_KIND;
    else if (field->record != PROGRAM_NO_INDEX && (any || !(field->kinds & RECORD_FIELD_KIND(KIND_RECORD))))
        rule = CODE_RULE_RECORD_FIELD_TYPE;
    else if (field->record != PROGRAM_NO_INDEX && field->record >= verify->program->record_count)
        rule = CODE_RULE_RECORD_FIELD_RECORD;
    return rule ? verify_refuse(verify, rule, CODE_PLACE_RECORD, index) : CY_OK;
}

static cy_err verify_record(struct verify *verify, uint32_t index)
{
    const struct record_type *record = &verify->program->records[index];
    CY_TRY(verify_pool_name(verify, record->name, false, CODE_PLACE_RECORD, index));
    if (record->module >= verify->program->module_count)
        return verify_refuse(verify, CODE_RULE_RECORD_MODULE, CODE_PLACE_RECORD, index);
    if (record->field_count > LIMIT_RECORD_FIELDS)
        return verify_refuse(verify, CODE_RULE_RECORD_FIELDS, CODE_PLACE_RECORD, index);
    verify_pool_open_scope(verify);
    for (uint32_t i = 0; i < record->field_count; i++) {
        CY_TRY(verify_pool_name(verify, record->fields[i].name, false, CODE_PLACE_RECORD, index));
        if (!verify_pool_declare(verify, record->fields[i].name))
            return verify_refuse(verify, CODE_RULE_RECORD_FIELD_TWICE, CODE_PLACE_RECORD, index);
        CY_TRY(verify_field_kind(verify, &record->fields[i], index));
    }
    return CY_OK;
}

/* -- modules ------------------------------------------------------------------------------------------- */

static bool verify_in_range(uint32_t index, uint32_t first, uint32_t count)
{
    return index >= first && index - first < count;
}

/* What the host may call by itself: at module level, so without captures. */
static bool verify_is_top_function(const struct program *program, const struct module *module, uint32_t index)
{
    if (!verify_in_range(index, module->function_first, module->function_count)) return false;
    return program->functions[index].parent == PROGRAM_NO_INDEX;
}

static cy_err verify_export(struct verify *verify, uint32_t module_index, const struct export_entry *export)
{
    const struct program *program = verify->program;
    const struct module *module = &program->modules[module_index];
    CY_TRY(verify_pool_name(verify, export->name, false, CODE_PLACE_MODULE, module_index));
    if (!verify_pool_declare(verify, export->name))
        return verify_refuse(verify, CODE_RULE_EXPORT_DUPLICATE, CODE_PLACE_MODULE, module_index);
    bool is_own;
    switch (export->kind) {
    case EXPORT_FUNCTION: is_own = verify_is_top_function(program, module, export->index); break;
    case EXPORT_GLOBAL:
        is_own = verify_in_range(export->index, module->global_first, module->global_count);
        break;
    case EXPORT_RECORD:
        is_own =
            export->index < program->record_count && program->records[export->index].module == module_index;
        break;
    default: return verify_refuse(verify, CODE_RULE_EXPORT_KIND, CODE_PLACE_MODULE, module_index);
    }
    return is_own ? CY_OK : verify_refuse(verify, CODE_RULE_EXPORT_INDEX, CODE_PLACE_MODULE, module_index);
}

static cy_err verify_module(struct verify *verify, uint32_t index)
{
    const struct program *program = verify->program;
    const struct module *module = &program->modules[index];
    CY_TRY(verify_pool_path(verify, module->name, CODE_PLACE_MODULE, index));
    CY_TRY(verify_pool_path(verify, module->file, CODE_PLACE_MODULE, index));
    if (module->init_function != PROGRAM_NO_INDEX) {
        bool fits = verify_is_top_function(program, module, module->init_function) &&
                    program->functions[module->init_function].param_count == 0;
        if (!fits) return verify_refuse(verify, CODE_RULE_MODULE_INIT, CODE_PLACE_MODULE, index);
    }
    verify_pool_open_scope(verify);
    for (uint32_t i = 0; i < module->export_count; i++)
        CY_TRY(verify_export(verify, index, &module->exports[i]));
    return CY_OK;
}

/* The ranges stand in a row from 0 to the end. Before anything trusts a range. */
static cy_err verify_module_ranges(struct verify *verify)
{
    const struct program *program = verify->program;
    if (program->module_count == 0)
        return verify_refuse(verify, CODE_RULE_MODULE_NONE, CODE_PLACE_PROGRAM, 0);
    uint32_t globals_left = program->global_count, functions_left = program->function_count;
    for (uint32_t i = 0; i < program->module_count; i++) {
        const struct module *module = &program->modules[i];
        bool is_last = i + 1 == program->module_count;
        bool globals_fit = module->global_first == program->global_count - globals_left &&
                           module->global_count <= globals_left &&
                           (!is_last || module->global_count == globals_left);
        if (!globals_fit) return verify_refuse(verify, CODE_RULE_MODULE_GLOBALS, CODE_PLACE_MODULE, i);
        bool functions_fit = module->function_first == program->function_count - functions_left &&
                             module->function_count <= functions_left &&
                             (!is_last || module->function_count == functions_left);
        if (!functions_fit) return verify_refuse(verify, CODE_RULE_MODULE_FUNCTIONS, CODE_PLACE_MODULE, i);
        globals_left -= module->global_count;
        functions_left -= module->function_count;
    }
    return CY_OK;
}

static cy_err verify_modules(struct verify *verify)
{
    const struct program *program = verify->program;
    for (uint32_t i = 0; i < program->module_count; i++) CY_TRY(verify_module(verify, i));
    /* Names again, in a scope of their own: exports had theirs in between. */
    verify_pool_open_scope(verify);
    for (uint32_t i = 0; i < program->module_count; i++)
        if (!verify_pool_declare(verify, program->modules[i].name))
            return verify_refuse(verify, CODE_RULE_MODULE_DUPLICATE, CODE_PLACE_MODULE, i);
    return CY_OK;
}

/* -- functions ----------------------------------------------------------------------------------------- */

static cy_err verify_captures(struct verify *verify, uint32_t index)
{
    const struct program *program = verify->program;
    const struct function *function = &program->functions[index];
    if (function->capture_count == 0) return CY_OK;
    if (function->parent == PROGRAM_NO_INDEX)
        return verify_refuse(verify, CODE_RULE_CAPTURE_LEVEL, CODE_PLACE_FUNCTION, index);
    const struct function *parent = &program->functions[function->parent];
    for (uint32_t i = 0; i < function->capture_count; i++) {
        struct capture capture = function->captures[i];
        if (capture.index >= (capture.from_parent_local ? parent->local_count : parent->capture_count))
            return verify_refuse(verify, CODE_RULE_CAPTURE_RANGE, CODE_PLACE_FUNCTION, index);
    }
    return CY_OK;
}

static cy_err verify_function_head(struct verify *verify, uint32_t module, uint32_t index)
{
    const struct program *program = verify->program;
    const struct function *function = &program->functions[index];
    CY_TRY(verify_pool_name(verify, function->name, true, CODE_PLACE_FUNCTION, index));
    if (function->module != module)
        return verify_refuse(verify, CODE_RULE_FUNCTION_MODULE, CODE_PLACE_FUNCTION, index);
    /* The module's range begins at or before `index`, so an earlier function inside it is of this module. */
    bool parent_fits =
        function->parent == PROGRAM_NO_INDEX ||
        (function->parent < index && function->parent >= program->modules[module].function_first);
    if (!parent_fits) return verify_refuse(verify, CODE_RULE_FUNCTION_PARENT, CODE_PLACE_FUNCTION, index);
    if (function->required_count > function->param_count || function->param_count > function->local_count)
        return verify_refuse(verify, CODE_RULE_FUNCTION_PARAMS, CODE_PLACE_FUNCTION, index);
    return verify_captures(verify, index);
}

static cy_err verify_functions(struct verify *verify)
{
    const struct program *program = verify->program;
    for (uint32_t m = 0; m < program->module_count; m++) {
        const struct module *module = &program->modules[m];
        for (uint32_t i = 0; i < module->function_count; i++)
            CY_TRY(verify_function_head(verify, m, module->function_first + i));
    }
    if (verify->refused) { /* the order of use means nothing once a part was not looked at */
        verify->constants_used = program->constant_count;
        verify->natives_used = program->native_count;
    }
    for (uint32_t i = 0; i < program->function_count; i++) {
        cy_err err = verify_code_function(verify, i);
        if (!verify->refused || !cy_is(err, CY_ERR_BAD_FORMAT)) {
            CY_TRY(err);
            continue;
        }
        verify->refused(verify->failure, verify->refused_context);
        verify->went_on = true;
    }
    return verify->went_on ? CY_ERR(BAD_FORMAT) : CY_OK;
}

/* -- the whole ----------------------------------------------------------------------------------------- */

static cy_err verify_steps(struct verify *verify)
{
    const struct program *program = verify->program;
    CY_TRY(verify_module_ranges(verify));
    CY_TRY(verify_pool_duplicates(verify));
    CY_TRY(verify_pool_constants(verify));
    CY_TRY(verify_pool_natives(verify));
    for (uint32_t i = 0; i < program->record_count; i++) CY_TRY(verify_record(verify, i));
    CY_TRY(verify_modules(verify));
    for (uint32_t i = 0; i < program->global_count; i++)
        CY_TRY(verify_pool_name(verify, program->globals[i].name, false, CODE_PLACE_GLOBAL, i));
    CY_TRY(verify_functions(verify));
    return verify_pool_unused(verify);
}

static cy_err verify_run(struct verify *verify)
{
    const struct program *program = verify->program;
    *verify->failure = (struct code_failure){.function = PROGRAM_NO_INDEX};
    verify->string_checks = mem_alloc_zeroed(program->string_count);
    verify->string_scopes = mem_alloc_zeroed((size_t)program->string_count * sizeof *verify->string_scopes);
    verify->natives = mem_alloc_zeroed((size_t)program->native_count * sizeof *verify->natives);
    verify_flow_init(&verify->flow);
    bool has_memory = verify->string_checks && verify->string_scopes && verify->natives;
    cy_err err = has_memory ? verify_steps(verify) : CY_ERR(NO_MEMORY);
    verify_flow_fini(&verify->flow);
    mem_free(verify->natives);
    mem_free(verify->string_scopes);
    mem_free(verify->string_checks);
    return err;
}

cy_err verify_program(const struct program *program, struct code_failure *failure_out)
{
    struct verify verify = {.program = program, .failure = failure_out};
    return verify_run(&verify);
}

cy_err verify_program_each(const struct program *program, verify_refused *refused, void *context)
{
    struct code_failure failure;
    struct verify verify = {
        .program = program, .failure = &failure, .refused = refused, .refused_context = context};
    cy_err err = verify_run(&verify);
    if (cy_is(err, CY_ERR_BAD_FORMAT) && !verify.went_on) refused(&failure, context);
    return err;
}
