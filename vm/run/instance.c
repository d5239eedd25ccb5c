/* SPDX-License-Identifier: MIT
 *
 * vm/run/instance.c: one program's module variables and its prepared code.
 *
 * In:   a verified program. Out: an instance whose initialisers have run, or an error value that says why
 *       not.
 * Invariant: while `refs` > 0 (hosts, fibers) module variables live. Function values keep the code, not
 *       the variables: a function that outlives its instance cannot be called any more, but nothing dangles.
 */
#include "vm/base/limits.h"
#include "vm/code/opcode.h"
#include "vm/run/fiber.h"
#include "vm/run/instance_internal.h"
#include "vm/run/string.h"

/* -- parts ----------------------------------------------------------------------------------------------- */

/* An array of the instance; NULL without memory. `count` 0 gives a valid pointer. */
static void *instance_array(struct vm *vm, size_t count, size_t item_bytes)
{
    void *array = heap_alloc(vm, count * item_bytes);
    if (array) memset(array, 0, count * item_bytes); /* tag 0 is nil */
    return array;
}

static cy_err instance_make_constants(struct vm *vm, struct instance *instance)
{
    const struct program *program = instance->program;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const struct constant *constant = &program->constants[i];
        cy_value *value = &instance->constants[i];
        if (constant->kind == CONSTANT_INT)
            *value = value_int(constant->as.i);
        else if (constant->kind == CONSTANT_FLOAT)
            *value = value_float(constant->as.f);
        else {
            cy_value text;
            CY_TRY(string_new(vm, program_string(program, constant->as.string), &text));
            *value = text;
        }
    }
    cy_value *own = instance->constants + program->constant_count;
    own[CODE_CONSTANT_NIL] = value_nil();
    own[CODE_CONSTANT_FALSE] = value_bool(false);
    own[CODE_CONSTANT_TRUE] = value_bool(true);
    own[CODE_CONSTANT_ABSENT] = value_absent();
    return CY_OK;
}

/* When all shapes are there: a field may be of a type further down. */
static cy_err instance_make_rules(struct vm *vm, struct instance *instance, uint32_t first)
{
    const struct program *program = instance->program;
    for (uint32_t i = first; i < program->record_count; i++) {
        const struct record_type *type = &program->records[i];
        for (uint32_t k = 0; k < type->field_count; k++) {
            const struct record_field *field = &type->fields[k];
            if (field->kinds == RECORD_FIELD_ANY) continue;
            CY_TRY(record_shape_rule(vm, instance->shapes[i], k, field->kinds,
                                     field->record == PROGRAM_NO_INDEX ? NULL
                                                                       : instance->shapes[field->record]));
        }
    }
    return CY_OK;
}

static cy_err instance_make_shapes(struct vm *vm, struct instance *instance, const struct instance *owner,
                                   uint32_t first)
{
    const struct program *program = instance->program;
    for (uint32_t i = first; i < program->record_count; i++) {
        const struct record_type *type = &program->records[i];
        cy_bytes names[LIMIT_RECORD_FIELDS];
        CHECK(type->field_count <= LIMIT_RECORD_FIELDS);
        for (uint32_t k = 0; k < type->field_count; k++)
            names[k] = program_string(program, type->fields[k].name);
        CY_TRY(record_shape_new(vm, owner, program_string(program, type->name), names, type->field_count,
                                &instance->shapes[i]));
    }
    return instance_make_rules(vm, instance, first);
}

/* Before the functions: preparing looks at which native a row is. */
static void instance_find_natives(struct instance *instance)
{
    const struct program *program = instance->program;
    for (uint32_t i = 0; i < program->native_count; i++) {
        struct native_link *link = &instance->natives[i];
        link->row = native_row_find(program_string(program, program->natives[i].name));
        CHECK(link->row); /* verified */
        link->function = value_nil();
    }
}

static cy_err instance_make_functions(struct instance *instance)
{
    instance_find_natives(instance);
    for (uint32_t i = 0; i < instance->program->function_count; i++)
        CY_TRY(prepare_function(instance, i, &instance->functions[i]));
    return CY_OK;
}

/* "file:line:column" of the first instruction that uses a native; for refusals. */
static void instance_describe_use(const struct program *program, uint32_t import, struct builder *out)
{
    for (uint32_t f = 0; f < program->function_count; f++) {
        const struct function *function = &program->functions[f];
        cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
        struct instruction instruction;
        for (uint32_t offset = 0; offset < code.count && opcode_decode(code, offset, &instruction);
             offset = instruction.next_offset) {
            bool native = instruction.opcode == OP_NATIVE || instruction.opcode == OP_NATIVE_FUNCTION;
            if (!native || instruction.operands[0] != import) continue;
            uint32_t line = 0, column = 0;
            cy_bytes file = program_string(program, program->modules[function->module].file);
            bool placed = function_place(function, offset, &line, &column);
            builder_bytes(out, file);
            if (placed) builder_printf(out, ":%u:%u", line, column);
            return;
        }
    }
    builder_text(out, "?");
}

/* `missing` are the bits it lacks; 0: it is not linked in. */
static bool instance_refuse_native(struct instance *instance, uint32_t import, const struct native_row *row,
                                   uint32_t missing)
{
    struct vm *vm = instance->vm;
    struct builder place;
    builder_init(&place);
    instance_describe_use(instance->program, import, &place);
    const char *text = builder_text_view(&place);
    if (!text) text = "?";
    enum capability first = (enum capability)(missing & -missing);
    if (first & ~capability_granted_mask())
        error_raise(vm, CY_ERR(CAPABILITY), MESSAGE_CAPABILITY_ASKED, row->english, capability_word(first),
                    text, capability_word(first));
    else if (missing) /* --deny took it */
        error_raise(vm, CY_ERR(CAPABILITY), MESSAGE_CAPABILITY, row->english, capability_word(first), text);
    else
        error_raise(vm, CY_ERR(UNSUPPORTED), MESSAGE_NOT_LINKED, row->english, text);
    builder_fini(&place);
    return false;
}

bool instance_link_natives(struct instance *instance)
{
    struct vm *vm = instance->vm;
    const struct program *program = instance->program;
    for (uint32_t i = 0; i < program->native_count; i++) {
        struct native_link *link = &instance->natives[i];
        const struct native_row *row = link->row;
        native_signature_parse(row, &link->signature);
        link->body = vm->options.natives ? vm->options.natives[row->number] : NULL;
        if (!link->body) return instance_refuse_native(instance, i, row, 0);
        uint32_t missing = row->capability & ~vm->options.capabilities;
        if (missing) return instance_refuse_native(instance, i, row, missing);
    }
    return true;
}

/* -- making and freeing ---------------------------------------------------------------------------------- */

static void instance_unref_values(struct vm *vm, cy_value *values, size_t count)
{
    for (size_t i = 0; values && i < count; i++) {
        cy_value value = values[i];
        values[i] = value_nil();
        value_unref(vm, value);
    }
}

/* Lets go of what belongs to a running instance. */
static void instance_shut(struct vm *vm, struct instance *instance)
{
    const struct program *program = instance->program;
    instance->open = false;
    instance->function_count++; /* the values below must not free the instance under us */
    instance_unref_values(vm, instance->globals, program->global_count);
    instance_unref_values(vm, instance->function_values, program->function_count);
    for (uint32_t i = 0; instance->natives && i < program->native_count; i++) {
        value_unref(vm, instance->natives[i].function);
        instance->natives[i].function = value_nil();
    }
    instance->function_count--;
}

void instance_free_parts(struct vm *vm, struct instance *instance, uint32_t shape_first)
{
    const struct program *program = instance->program;
    for (uint32_t i = 0; instance->functions && i < program->function_count; i++)
        prepare_free(vm, &instance->functions[i]);
    for (uint32_t i = shape_first; instance->shapes && i < program->record_count; i++) {
        if (instance->shapes[i])
            instance->shapes[i]->owner = instance->shapes[i]; /* nobody's: no cache may trust it */
        record_shape_unref(vm, instance->shapes[i]);
    }
    instance_unref_values(vm, instance->constants, program->constant_count);
    heap_free(vm, instance->constants, (program->constant_count + CODE_CONSTANTS_OWN) * sizeof(cy_value));
    heap_free(vm, instance->globals, program->global_count * sizeof(cy_value));
    heap_free(vm, instance->function_values, program->function_count * sizeof(cy_value));
    heap_free(vm, instance->functions, program->function_count * sizeof *instance->functions);
    heap_free(vm, instance->shapes, program->record_count * sizeof *instance->shapes);
    heap_free(vm, instance->natives, program->native_count * sizeof *instance->natives);
}

static void instance_free(struct vm *vm, struct instance *instance)
{
    instance_free_parts(vm, instance, 0);
    *instance->link = instance->next;
    if (instance->next) instance->next->link = instance->link;
    heap_free(vm, instance, sizeof *instance);
}

void instance_function_dropped(struct vm *vm, struct instance *instance)
{
    CHECK(instance->function_count > 0);
    if (--instance->function_count == 0 && !instance->open) instance_free(vm, instance);
}

bool instance_is_shared(const struct instance *instance) { return instance->refs > 1; }

struct instance *instance_ref(struct instance *instance)
{
    instance->refs++;
    return instance;
}

void instance_unref(struct vm *vm, struct instance **instance)
{
    struct instance *owned = *instance;
    *instance = NULL;
    if (!owned || --owned->refs > 0) return;
    instance_shut(vm, owned);
    if (owned->function_count == 0) instance_free(vm, owned);
}

void instance_shut_all(struct vm *vm)
{
    for (struct instance *instance = vm->instances; instance; instance = instance->next)
        if (instance->open) instance_shut(vm, instance);
}

void instance_free_all(struct vm *vm)
{
    while (vm->instances) instance_free(vm, vm->instances);
}

static cy_err instance_make(struct vm *vm, const struct program *program, struct instance **instance_out)
{
    struct instance *instance = heap_alloc(vm, sizeof *instance);
    if (!instance) return CY_ERR(NO_MEMORY);
    *instance =
        (struct instance){.refs = 1, .vm = vm, .program = program, .open = true, .next = vm->instances};
    instance->link = &vm->instances;
    if (instance->next) instance->next->link = &instance->next;
    vm->instances = instance;
    *instance_out = instance;
    return instance_make_parts(vm, instance, instance, 0);
}

cy_err instance_make_parts(struct vm *vm, struct instance *instance, const struct instance *owner,
                           uint32_t shape_first)
{
    const struct program *program = instance->program;
    struct record_shape **shapes = instance->shapes; /* the first `shape_first`, from the caller */
    instance->constants = instance_array(vm, program->constant_count + CODE_CONSTANTS_OWN, sizeof(cy_value));
    instance->globals = instance_array(vm, program->global_count, sizeof(cy_value));
    instance->function_values = instance_array(vm, program->function_count, sizeof(cy_value));
    instance->functions = instance_array(vm, program->function_count, sizeof *instance->functions);
    instance->shapes = instance_array(vm, program->record_count, sizeof *instance->shapes);
    instance->natives = instance_array(vm, program->native_count, sizeof *instance->natives);
    if (!instance->constants || !instance->globals || !instance->function_values || !instance->functions ||
        !instance->shapes || !instance->natives)
        return CY_ERR(NO_MEMORY);
    for (uint32_t i = 0; i < shape_first; i++) instance->shapes[i] = shapes[i];
    CY_TRY(instance_make_constants(vm, instance));
    CY_TRY(instance_make_shapes(vm, instance, owner, shape_first));
    return instance_make_functions(instance);
}

/* -- initialisers ---------------------------------------------------------------------------------------- */

struct instance_init {
    bool ended;
    enum call_outcome outcome;
    cy_err stop;
};

static void instance_init_done(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                               cy_err stop)
{
    struct instance_init *init = context;
    init->ended = true;
    init->outcome = outcome;
    init->stop = stop;
    if (outcome == CALL_FAILED) error_raise_value(vm, value_ref(value));
}

/* Runs one initialiser to its end, here and now: it may not wait, and its CPU allowance bounds it. */
static bool instance_run_init(struct instance *instance, uint32_t function)
{
    struct vm *vm = instance->vm;
    cy_value value;
    struct fiber *fiber = NULL;
    cy_err err = function_new(vm, instance, function, false, 0, &value);
    if (cy_failed(err)) return error_raise_plain(vm, err);
    err = fiber_new(vm, instance, &fiber);
    if (!cy_failed(err)) err = fiber_begin(fiber, value, NULL, 0);
    value_unref(vm, value);
    if (cy_failed(err)) {
        if (fiber) fiber_recycle(vm, fiber);
        return error_raise_plain(vm, err);
    }
    struct instance_init init = {false, CALL_RETURNED, CY_OK};
    fiber->initialising = true;
    fiber->done = instance_init_done;
    fiber->context = &init;
    fiber_run_to_end(vm, fiber, &init.ended);
    if (init.outcome == CALL_STOPPED)
        return error_raise(vm, init.stop, MESSAGE_STOPPED, cy_err_text(init.stop, vm_is_korean(vm)));
    return init.outcome == CALL_RETURNED;
}

static bool instance_initialise(struct instance *instance)
{
    const struct program *program = instance->program;
    for (uint32_t i = 0; i < program->module_count; i++) {
        uint32_t function = program->modules[i].init_function;
        if (function != PROGRAM_NO_INDEX && !instance_run_init(instance, function)) return false;
    }
    return true;
}

cy_err instance_new(struct vm *vm, const struct program *program, struct instance **instance_out,
                    cy_value *error_out)
{
    struct instance *instance = NULL;
    *instance_out = NULL;
    CHECK(vm->raised.tag == TAG_NIL);
    cy_err err = instance_make(vm, program, &instance);
    if (cy_failed(err))
        error_raise_plain(vm, err);
    else if (instance_link_natives(instance) && instance_initialise(instance)) {
        *instance_out = instance;
        return CY_OK;
    }
    cy_value error = vm->raised;
    vm->raised = value_nil();
    err = error_reason(vm, error);
    if (instance) instance_unref(vm, &instance);
    if (error_out)
        *error_out = error;
    else
        value_unref(vm, error);
    return err;
}

const struct program *instance_program(const struct instance *instance) { return instance->program; }

cy_err instance_export(struct instance *instance, cy_bytes name, cy_value *function_out)
{
    const struct program *program = instance->program;
    if (program->module_count == 0) return CY_ERR(NOT_FOUND);
    const struct export_entry *entry = program_find_export(program, program->module_count - 1, name);
    if (!entry || entry->kind != EXPORT_FUNCTION) return CY_ERR(NOT_FOUND);
    cy_value *cached = &instance->function_values[entry->index];
    if (cached->tag == TAG_NIL) {
        cy_value made;
        CY_TRY(function_new(instance->vm, instance, entry->index, false, 0, &made));
        *cached = made;
    }
    *function_out = *cached;
    return CY_OK;
}
