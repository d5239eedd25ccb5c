/* SPDX-License-Identifier: MIT
 *
 * vm/native/serve_generation.c: the generations a worker serves: the newest one, and at most two before it.
 *
 *   GENERATION n ─► configure ─► adopt: new requests start on it ─► the one before is old ─► idle: let go
 *                      └─ failed, or overtaken by a newer one: refused          └─ third oldest: a grace, then
 *                      cancelled
 *
 * In:   messages of the master. Out: serving->instance and serving->handle.
 * Invariant: generation numbers of adopted instances only rise, however long one configure takes. A request finishes
 *       on the instance it started on; its fiber holds that instance.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"

#include <stdio.h>

#define SERVE_GENERATION_LOOK_MS 1000 /* how often old instances are looked at while there are any */

struct old_instance {
    struct old_instance *next; /* newest first */
    struct instance *instance; /* one reference */
    uint64_t cancel_ms;        /* 0: it may stay */
};

/* -- old instances ----------------------------------------------------------------------------------------- */

/* Lets go of those that nobody uses any more, and cancels those that are too old. */
static void serve_generation_look(struct timer *timer)
{
    struct serving *serving = CY_CONTAINER_OF(timer, struct serving, old_timer);
    struct runtime *runtime = CY_CONTAINER_OF(serving, struct runtime, serving);
    uint64_t now_ms = loop_now_ms(runtime->loop);
    uint32_t position = 0;
    for (struct old_instance **link = &serving->old; *link;) {
        struct old_instance *old = *link;
        if (!instance_is_shared(old->instance)) {
            *link = old->next;
            instance_unref(runtime->vm, &old->instance);
            mem_free(old);
            continue;
        }
        if (++position > LIMIT_OLD_INSTANCES && old->cancel_ms == 0)
            old->cancel_ms = now_ms + LIMIT_OLD_INSTANCE_GRACE_MS;
        if (old->cancel_ms && now_ms >= old->cancel_ms) vm_cancel_instance(runtime->vm, old->instance);
        link = &old->next;
    }
    if (serving->old) loop_timer_set(runtime->loop, &serving->old_timer, SERVE_GENERATION_LOOK_MS);
}

static void serve_generation_retire(struct runtime *runtime, struct instance *owned_instance)
{
    struct serving *serving = &runtime->serving;
    struct old_instance *old = mem_alloc_zeroed(sizeof *old);
    if (!old) { /* its requests hold it; it only cannot be cancelled */
        instance_unref(runtime->vm, &owned_instance);
        return;
    }
    *old = (struct old_instance){serving->old, owned_instance, 0};
    serving->old = old;
    serving->old_timer.fire = serve_generation_look;
    loop_timer_set(runtime->loop, &serving->old_timer, 0);
}

void serve_generation_fini(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    if (runtime->loop) loop_timer_clear(runtime->loop, &serving->old_timer);
    while (serving->old) {
        struct old_instance *old = serving->old;
        serving->old = old->next;
        instance_unref(runtime->vm, &old->instance);
        mem_free(old);
    }
    if (serving->instance) instance_unref(runtime->vm, &serving->instance);
}

/* -- adopting ---------------------------------------------------------------------------------------------- */

/* Makes the configured instance the one that new requests start on. */
static bool serve_generation_adopt(struct configuring *configuring)
{
    struct runtime *runtime = configuring->runtime;
    struct serving *serving = &runtime->serving;
    cy_value handle;
    if (!instance_export(configuring->instance, CY_BYTES("handle"), &handle)) {
        fprintf(stderr, "%s: the program exports no function `handle`, which http.serve calls\n",
                runtime->options->program_name);
        configuring->exit_code = EXIT_CODE_PROGRAM;
        return false;
    }
    if (serving->instance) serve_generation_retire(runtime, serving->instance);
    serving->instance = instance_ref(configuring->instance);
    serving->handle = handle;
    serving->generation_number = configuring->number;
    return true;
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
    struct runtime *runtime = configuring->runtime;
    if (configuring->exit_code == EXIT_CODE_OK && serve_generation_adopt(configuring)) {
        serve_generation_take_banner(runtime, result);
        serve_begin(runtime);
    } else {
        runtime_request_exit(runtime, configuring->exit_code);
    }
    configuring_free(&configuring);
}

static void serve_generation_reload_done(struct configuring *configuring, cy_value result)
{
    (void)result;
    struct runtime *runtime = configuring->runtime;
    if (configuring->number < runtime->serving.generation_number) {
        log_write(&runtime->log, LOG_INFO, "generation %u was overtaken by generation %u",
                  configuring->number, runtime->serving.generation_number);
    } else {
        bool adopted = configuring->exit_code == EXIT_CODE_OK && serve_generation_adopt(configuring);
        log_write(&runtime->log, adopted ? LOG_INFO : LOG_ERROR, "generation %u %s", configuring->number,
                  adopted ? "is serving" : "was refused; the one before it stays");
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
    builder_init(&bytes);
    builder_init(&message);
    cy_err err = runtime->link ? worker_generation(runtime->link, &number, &bytes)
                               : generation_load(&runtime->plan, &bytes, &message);
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

#undef SERVE_GENERATION_LOOK_MS
