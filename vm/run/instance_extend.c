/* SPDX-License-Identifier: MIT
 *
 * vm/run/instance_extend.c: an instance goes over to a longer program of which its own is the beginning.
 *
 * In:   the instance, held by the caller alone, and the longer program.
 * Out:  the same instance: whatever points at it (functions, errors' places) goes on meaning the same code, because
 *       numbers of functions and natives, and the steps that code is prepared into, are those of the beginning.
 * Invariant: all or nothing. What is the beginning is compared, not believed.
 */
#include "vm/run/fiber.h"
#include "vm/run/instance_internal.h"

/* -- the beginning --------------------------------------------------------------------------------------- */

static bool instance_extend_same_text(const struct program *a, uint32_t a_string, const struct program *b,
                                      uint32_t b_string)
{
    return cy_bytes_equal(program_string(a, a_string), program_string(b, b_string));
}

/* Constants and natives are pools in first-use order, so code that is the same names the same numbers. */
static bool instance_extend_same_pools(const struct program *a, const struct program *b)
{
    if (a->constant_count > b->constant_count || a->native_count > b->native_count) return false;
    for (uint32_t i = 0; i < a->constant_count; i++) {
        const struct constant *x = &a->constants[i], *y = &b->constants[i];
        if (x->kind != y->kind) return false;
        bool same = x->kind == CONSTANT_STR ? instance_extend_same_text(a, x->as.string, b, y->as.string)
                                            : x->as.i == y->as.i;
        if (!same) return false;
    }
    for (uint32_t i = 0; i < a->native_count; i++)
        if (!instance_extend_same_text(a, a->natives[i].name, b, b->natives[i].name)) return false;
    return true;
}

static bool instance_extend_same_modules(const struct program *a, const struct program *b)
{
    if (a->module_count > b->module_count || a->global_count > b->global_count) return false;
    for (uint32_t i = 0; i < a->module_count; i++) {
        const struct module *x = &a->modules[i], *y = &b->modules[i];
        bool same = instance_extend_same_text(a, x->name, b, y->name) && x->global_first == y->global_first &&
                    x->global_count == y->global_count && x->function_first == y->function_first &&
                    x->function_count == y->function_count;
        if (!same) return false;
    }
    return true;
}

static bool instance_extend_same_records(const struct program *a, const struct program *b)
{
    if (a->record_count > b->record_count) return false;
    for (uint32_t i = 0; i < a->record_count; i++) {
        const struct record_type *x = &a->records[i], *y = &b->records[i];
        if (x->field_count != y->field_count || !instance_extend_same_text(a, x->name, b, y->name))
            return false;
        for (uint32_t k = 0; k < x->field_count; k++) {
            const struct record_field *f = &x->fields[k], *g = &y->fields[k];
            if (f->kinds != g->kinds || f->record != g->record ||
                !instance_extend_same_text(a, f->name, b, g->name))
                return false;
        }
    }
    return true;
}

static bool instance_extend_same_functions(const struct program *a, const struct program *b)
{
    if (a->function_count > b->function_count) return false;
    for (uint32_t i = 0; i < a->function_count; i++) {
        const struct function *x = &a->functions[i], *y = &b->functions[i];
        bool same = x->param_count == y->param_count && x->required_count == y->required_count &&
                    x->local_count == y->local_count && x->capture_count == y->capture_count &&
                    x->code_bytes == y->code_bytes && memcmp(x->code, y->code, x->code_bytes) == 0;
        if (!same) return false;
    }
    return true;
}

/* -- going over ------------------------------------------------------------------------------------------ */

static void instance_extend_move_values(cy_value *from, cy_value *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        to[i] = from[i];
        from[i] = value_nil();
    }
}

static void instance_extend_switch(struct vm *vm, struct instance *instance, struct instance *longer)
{
    const struct program *old = instance->program;
    instance_extend_move_values(instance->globals, longer->globals, old->global_count);
    instance_extend_move_values(instance->function_values, longer->function_values, old->function_count);
    for (uint32_t i = 0; i < old->native_count; i++)
        instance_extend_move_values(&instance->natives[i].function, &longer->natives[i].function, 1);
    struct instance parts = *instance;
    instance->program = longer->program;
    instance->constants = longer->constants;
    instance->globals = longer->globals;
    instance->function_values = longer->function_values;
    instance->functions = longer->functions;
    instance->shapes = longer->shapes;
    instance->natives = longer->natives;
    instance_free_parts(vm, &parts, old->record_count); /* the shapes went over */
}

cy_err instance_extend(struct vm *vm, struct instance *instance, const struct program *program,
                       cy_value *error_out)
{
    const struct program *old = instance->program;
    CHECK(!instance_is_shared(instance) && vm->raised.tag == TAG_NIL);
    if (error_out) *error_out = value_nil();
    if (!instance_extend_same_pools(old, program) || !instance_extend_same_modules(old, program) ||
        !instance_extend_same_records(old, program) || !instance_extend_same_functions(old, program))
        return CY_ERR(BAD_FORMAT);
    struct instance longer = {.vm = vm, .program = program, .open = true, .shapes = instance->shapes};
    cy_err err = instance_make_parts(vm, &longer, instance, old->record_count);
    if (cy_failed(err)) error_raise_plain(vm, err);
    if (!cy_failed(err) && instance_link_natives(&longer)) {
        instance_extend_switch(vm, instance, &longer);
        return CY_OK;
    }
    cy_value error = vm->raised;
    vm->raised = value_nil();
    err = error_reason(vm, error);
    instance_free_parts(vm, &longer, old->record_count);
    if (error_out)
        *error_out = error;
    else
        value_unref(vm, error);
    return err;
}

cy_err instance_start_initialiser(struct vm *vm, struct instance *instance, uint32_t module, call_done done,
                                  void *context, struct fiber **fiber_out, bool *started_out)
{
    CHECK(module < instance->program->module_count);
    uint32_t function = instance->program->modules[module].init_function;
    *started_out = function != PROGRAM_NO_INDEX;
    if (!*started_out) return CY_OK;
    cy_value value;
    CY_TRY(function_new(vm, instance, function, false, 0, &value));
    cy_err err = vm_start(vm, instance, value, NULL, 0, done, context, fiber_out);
    value_unref(vm, value);
    return err;
}
