/* SPDX-License-Identifier: MIT
 *
 * vm/native/serve_generation.c: the generations a worker serves: the newest one, and what becomes of those before it.
 *
 *   GENERATION n ─► configure ─► adopt: new requests start on it ─► the one before is old (old_instances.c)
 *                      └─ failed, or overtaken by a newer one: refused
 *
 * In:   messages of the master. Out: serving->instance and serving->handle.
 * Invariant: generation numbers of adopted instances only rise, however long one configure takes. A request finishes
 *       on the instance it started on; its fiber holds that instance.
 */
#include "vm/base/mem.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"

#include <stdio.h>

void serve_generation_fini(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    old_instances_fini(&serving->old);
    if (serving->instance) instance_unref(runtime->vm, &serving->instance);
}

/* -- adopting ---------------------------------------------------------------------------------------------- */

/* Makes the configured instance the one that new requests start on. */
static bool serve_generation_adopt(struct configuring *configuring)
{
    struct runtime *runtime = configuring->runtime;
    struct serving *serving = &runtime->serving;
    cy_value handle;
    cy_err err = instance_export(configuring->instance, CY_BYTES("handle"), &handle);
    if (cy_failed(err)) {
        const char *why = runtime->options->korean
                              ? "프로그램이 http.serve가 부르는 함수 `handle`을 내보내지 않습니다"
                              : "the program exports no function `handle`, which http.serve calls";
        if (!cy_is(err, CY_ERR_NOT_FOUND)) why = cy_err_text(err, runtime->options->korean);
        fprintf(stderr, "%s: %s\n", runtime->options->program_name, why);
        configuring->exit_code = EXIT_CODE_PROGRAM;
        return false;
    }
    if (!serving->old.loop) old_instances_init(&serving->old, runtime->loop, runtime->vm);
    if (serving->instance) old_instances_add(&serving->old, serving->instance);
    serving->instance = instance_ref(configuring->instance);
    serving->handle = handle;
    serving->generation_number = configuring->number;
    if (runtime->server)
        http_server_set_bounds(runtime->server,
                               configuring->has_bounds ? &configuring->bounds : &serving->bounds);
    return true;
}

/* What may fail comes before the first change: a generation that is refused has left nothing behind. */
static bool serve_generation_take(struct configuring *configuring, cy_value result)
{
    struct runtime *runtime = configuring->runtime;
    struct serve_addresses addresses = {.count = 0};
    if (configuring->exit_code == EXIT_CODE_OK && !serve_read_result(runtime, result, &addresses))
        configuring->exit_code = EXIT_CODE_PROGRAM;
    bool adopted = configuring->exit_code == EXIT_CODE_OK && serve_generation_adopt(configuring);
    if (adopted) serve_use_addresses(runtime, &addresses);
    serve_addresses_fini(addresses.rows, &addresses.count);
    return adopted;
}

static void serve_generation_take_banner(struct runtime *runtime, cy_value result)
{
    struct serving *serving = &runtime->serving;
    cy_value text;
    if (result.tag != TAG_MAP || !map_get_text(runtime->vm, result, CY_BYTES("banner"), &text) ||
        text.tag != TAG_STR)
        return;
    mem_free(serving->banner);
    cy_bytes bytes = string_bytes(text);
    serving->banner = mem_alloc(bytes.count + 1);
    if (serving->banner) memcpy(serving->banner, bytes.data, bytes.count + 1);
}

static void serve_generation_first_done(struct configuring *configuring, cy_value result)
{
    if (configuring->runtime->serving.stopping) { /* main goes on, and nothing may begin behind its back */
        configuring_free(&configuring);
        return;
    }
    struct runtime *runtime = configuring->runtime;
    if (serve_generation_take(configuring, result)) {
        serve_generation_take_banner(runtime, result);
        if (serve_extra_begin(runtime, result))
            serve_begin(runtime);
        else
            runtime_request_exit(runtime, EXIT_CODE_CONFIGURATION);
    } else {
        runtime_request_exit(runtime, configuring->exit_code);
    }
    configuring_free(&configuring);
}

static void serve_generation_reload_done(struct configuring *configuring, cy_value result)
{
    struct runtime *runtime = configuring->runtime;
    if (configuring->number < runtime->serving.generation_number) {
        log_write(&runtime->log, LOG_INFO, "generation %u was overtaken by generation %u",
                  configuring->number, runtime->serving.generation_number);
    } else {
        bool adopted = serve_generation_take(configuring, result);
        log_write(&runtime->log, adopted ? LOG_INFO : LOG_ERROR, "generation %u %s", configuring->number,
                  adopted ? "is serving" : "was refused; the one before it stays");
        if (adopted) serve_extra_change(runtime, result);
        if (runtime->link) worker_adopted(runtime->link, configuring->number, adopted);
    }
    configuring_free(&configuring);
}

static cy_err serve_generation_start(struct runtime *runtime, cy_bytes bytes, uint32_t number,
                                     void (*done)(struct configuring *configuring, cy_value result))
{
    struct generation generation = {0};
    CY_TRY(generation_parse(bytes, &generation));
    generation.number = number;
    return configure_start(runtime, &generation, done);
}

cy_err serve_generation_first(struct runtime *runtime)
{
    struct builder bytes, message;
    uint32_t number = 0;
    builder_init_secret(&bytes);
    builder_init(&message);
    cy_err err = runtime->link ? worker_generation(runtime->link, &number, &bytes)
                               : generation_load(&runtime->plan, CY_BYTES_NONE, &bytes, &message);
    if (message.count > 0) fprintf(stderr, "%.*s\n", CY_BYTES_ARG(builder_view(&message)));
    if (!cy_failed(err))
        err = serve_generation_start(runtime, builder_view(&bytes), number, serve_generation_first_done);
    builder_fini(&message);
    builder_fini(&bytes);
    return err;
}

void serve_generation_reload(struct runtime *runtime, cy_bytes bytes, uint32_t number)
{
    cy_err err = serve_generation_start(runtime, bytes, number, serve_generation_reload_done);
    if (!cy_failed(err)) return;
    log_write(&runtime->log, LOG_ERROR, "generation %u was refused: %s", number, cy_err_text(err, false));
    worker_adopted(runtime->link, number, false);
}
