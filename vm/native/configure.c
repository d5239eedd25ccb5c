/* SPDX-License-Identifier: MIT
 *
 * vm/native/configure.c: programs in memory, their instances, and the call of configure that makes one ready to
 * serve.
 *
 * In:   a generation. Out: a configured instance through a callback, or an exit code after a message on stderr.
 * Invariant: `done` comes from the loop, never from inside configure_start.
 * Not here: what is done with the instance (serve_generation.c), the checker (runtime.c).
 */
#include "vm/base/mem.h"
#include "vm/code/toau.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"

#include <stdio.h>

/* -- programs -------------------------------------------------------------------------------------------- */
/* Finds the program with these bytes or loads it. */
cy_err configure_load_program(struct runtime *runtime, cy_bytes bytes, struct loaded_program **loaded_out)
{
    for (struct loaded_program *known = runtime->programs; known; known = known->next) {
        if (!cy_bytes_equal(known->bytes, bytes)) continue;
        *loaded_out = known;
        return CY_OK;
    }
    struct code_failure failure = {0};
    struct program *program = NULL;
    cy_err err = toau_load(bytes, &program, &failure);
    if (cy_is(err, CY_ERR_NO_MEMORY)) return err; /* nothing is wrong with the file */
    if (cy_failed(err)) {
        struct builder text;
        builder_init(&text);
        code_failure_describe(&failure, runtime->options->korean, &text);
        const char *path = runtime->options->program_path;
        fprintf(stderr, "%s: %s%s%.*s\n", runtime->options->program_name, path ? path : "", path ? ": " : "",
                CY_BYTES_ARG(builder_view(&text)));
        builder_fini(&text);
        return err;
    }
    struct loaded_program *loaded = mem_alloc_zeroed(sizeof *loaded);
    uint8_t *copy = mem_alloc(bytes.count);
    if (!loaded || !copy) {
        mem_free(loaded);
        mem_free(copy);
        program_free(&program);
        return CY_ERR(NO_MEMORY);
    }
    memcpy(copy, bytes.data, bytes.count);
    *loaded = (struct loaded_program){runtime->programs, program, {copy, bytes.count}};
    runtime->programs = loaded;
    *loaded_out = loaded;
    return CY_OK;
}

void configure_free_programs(struct runtime *runtime)
{
    for (struct loaded_program *loaded = runtime->programs, *next; loaded; loaded = next) {
        next = loaded->next;
        program_free(&loaded->program);
        mem_free((void *)(uintptr_t)loaded->bytes.data);
        mem_free(loaded);
    }
    runtime->programs = NULL;
}

/* An instance, or its failure on stderr. */
cy_err configure_new_instance(struct runtime *runtime, struct loaded_program *loaded,
                              struct instance **instance_out)
{
    cy_value error = value_nil();
    cy_err err = instance_new(runtime->vm, loaded->program, instance_out, &error);
    if (!cy_failed(err)) return err;
    if (error.tag == TAG_NIL) {
        fprintf(stderr, "%s: %s\n", runtime->options->program_name,
                cy_err_text(err, runtime->options->korean));
    } else {
        runtime_report_error(runtime, error);
    }
    value_unref(runtime->vm, error);
    return err;
}

/* -- configure ------------------------------------------------------------------------------------------- */
static void configure_ended(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                            cy_err stop)
{
    struct configuring *configuring = context;
    configuring->exit_code = EXIT_CODE_OK;
    if (outcome == CALL_FAILED) {
        runtime_report_error(configuring->runtime, value);
        bool configuration = cy_is(error_reason(vm, value), CY_ERR_CONFIGURATION);
        configuring->exit_code = configuration ? EXIT_CODE_CONFIGURATION : EXIT_CODE_PROGRAM;
    } else if (outcome == CALL_STOPPED) {
        runtime_report_stop(configuring->runtime, "configure", value, stop);
        configuring->exit_code = EXIT_CODE_PROGRAM;
    }
    configuring->done(configuring, value);
}

static void configure_skipped(struct timer *timer)
{
    struct configuring *configuring = CY_CONTAINER_OF(timer, struct configuring, skipped);
    configuring->done(configuring, value_nil());
}

/* {files: {name: {path, text}}, input: what main gave, checking: whether this is the master's checker} */
static cy_err configure_make_input(struct runtime *runtime, const struct generation *generation,
                                   cy_value *input_out)
{
    struct vm *vm = runtime->vm;
    cy_value input, files, file, text;
    CY_TRY(map_new(vm, 2, &files));
    for (uint32_t i = 0; i < generation->file_count; i++) {
        const struct generation_file *from = &generation->files[i];
        cy_err err = map_new(vm, 2, &file);
        if (!cy_failed(err)) {
            err = string_new(vm, from->path, &text);
            if (!cy_failed(err)) err = map_set_text(vm, &file, CY_BYTES("path"), text);
            if (!cy_failed(err)) err = string_new(vm, from->content, &text);
            if (!cy_failed(err)) err = map_set_text(vm, &file, CY_BYTES("text"), text);
            if (cy_failed(err)) value_unref(vm, file);
            if (!cy_failed(err)) err = map_set_text(vm, &files, from->name, file);
        }
        if (cy_failed(err)) {
            value_unref(vm, files);
            return err;
        }
    }
    cy_err err = map_new(vm, 2, &input);
    if (cy_failed(err)) {
        value_unref(vm, files);
        return err;
    }
    err = map_set_text(vm, &input, CY_BYTES("files"), files);
    if (!cy_failed(err)) err = map_set_text(vm, &input, CY_BYTES("input"), value_ref(runtime->input));
    if (!cy_failed(err))
        err = map_set_text(vm, &input, CY_BYTES("checking"), value_bool(runtime->checking != NULL));
    if (cy_failed(err)) {
        value_unref(vm, input);
        return err;
    }
    *input_out = input;
    return CY_OK;
}

/* A handler that cannot be called with one argument would make every request a 500: refuse it where the checker
 * sees. */
static cy_err configure_check_export(struct configuring *configuring, const char *name)
{
    const struct program *program = configuring->loaded->program;
    const struct export_entry *entry =
        program_find_export(program, program->module_count - 1, cy_bytes_from_text(name));
    if (!entry || entry->kind != EXPORT_FUNCTION) return CY_OK;
    const struct function *function = &program->functions[entry->index];
    if (function->required_count <= 1 && function->param_count >= 1) return CY_OK;
    fprintf(stderr,
            configuring->runtime->options->korean ? "%s: %s: 인자 하나를 받아야 합니다\n"
                                                  : "%s: %s must take one argument\n",
            configuring->runtime->options->program_name, name);
    return CY_ERR(CALL);
}

static cy_err configure_start_call(struct configuring *configuring, const struct generation *generation)
{
    struct runtime *runtime = configuring->runtime;
    cy_value function, input;
    cy_err err = instance_export(configuring->instance, CY_BYTES("configure"), &function);
    if (cy_is(err, CY_ERR_NOT_FOUND)) {
        configuring->skipped.fire = configure_skipped; /* done must not be called from inside the caller */
        loop_timer_set(runtime->loop, &configuring->skipped, 0);
        return CY_OK;
    }
    if (cy_failed(err)) return err;
    CY_TRY(configure_make_input(runtime, generation, &input));
    err =
        vm_start(runtime->vm, configuring->instance, function, &input, 1, configure_ended, configuring, NULL);
    if (cy_failed(err)) value_unref(runtime->vm, input);
    return err;
}

static cy_err configure_copy_extras(struct configuring *configuring, cy_bytes extras)
{
    if (extras.count == 0) return CY_OK;
    uint8_t *copy = mem_alloc(extras.count);
    if (!copy) return CY_ERR(NO_MEMORY);
    memcpy(copy, extras.data, extras.count);
    configuring->extras = cy_bytes_of(copy, extras.count);
    return CY_OK;
}

cy_err configure_start(struct runtime *runtime, const struct generation *generation,
                       void (*done)(struct configuring *configuring, cy_value result))
{
    CY_TRY(runtime_need_loop(runtime));
    struct configuring *configuring = mem_alloc_zeroed(sizeof *configuring);
    if (!configuring) return CY_ERR(NO_MEMORY);
    configuring->runtime = runtime;
    configuring->next = runtime->configuring;
    runtime->configuring = configuring;
    configuring->number = generation->number;
    configuring->done = done;
    cy_err err = configure_copy_extras(configuring, generation->extras);
    if (!cy_failed(err)) err = configure_load_program(runtime, generation->program, &configuring->loaded);
    if (!cy_failed(err)) err = configure_new_instance(runtime, configuring->loaded, &configuring->instance);
    if (!cy_failed(err)) err = configure_check_export(configuring, "configure");
    if (!cy_failed(err)) err = configure_check_export(configuring, "handle");
    if (!cy_failed(err)) err = configure_start_call(configuring, generation);
    if (cy_failed(err))
        configuring_free(&configuring);
    else
        loop_wake(runtime->loop); /* the caller may stand outside of a turn, as the checker does */
    return err;
}

void configuring_free(struct configuring **configuring)
{
    struct configuring *gone = *configuring;
    *configuring = NULL;
    struct configuring **link = &gone->runtime->configuring;
    while (*link != gone) link = &(*link)->next;
    *link = gone->next;
    if (gone->instance) instance_unref(gone->runtime->vm, &gone->instance);
    if (gone->extras.data) explicit_bzero((void *)(uintptr_t)gone->extras.data, gone->extras.count);
    mem_free((void *)(uintptr_t)gone->extras.data);
    mem_free(gone);
}

struct configuring *runtime_configuring(const struct runtime *runtime, const struct instance *instance)
{
    for (struct configuring *at = runtime->configuring; at; at = at->next)
        if (at->instance == instance) return at;
    return NULL;
}
bool runtime_is_configuring(const struct runtime *runtime, const struct instance *instance)
{
    return runtime_configuring(runtime, instance) != NULL;
}
