/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_run.c: process.run: another program, its input, its output, its end.
 *
 *   start ─► write input ─┐
 *        ├─► read out ────┤
 *        ├─► read err ────┼─► it has ended: read what is still in the pipes ─► {code, out, err}
 *        └─► watch ───────┘      └ timeout, too much output, task stopped: its group is killed, its end awaited
 *                                  by the loop alone
 *
 * What the program left running in the background may hold the pipes open: that is not waited for.
 * Invariant: `pending` counts the loop's operations that have not completed; the memory goes with the last one.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"
#include "vm/sys/spawn.h"

#include <errno.h>
#include <unistd.h>

#define NATIVE_RUN_STEP_BYTES 65536
#define NATIVE_RUN_STEPS 16 /* reads per event, before others get their turn */

enum native_run_end {
    NATIVE_RUN_INPUT,
    NATIVE_RUN_OUTPUT,
    NATIVE_RUN_MESSAGES,
    NATIVE_RUN_ENDED,
    NATIVE_RUN_ENDS
};

struct native_run;
struct native_run_watch {
    struct loop_ready ready;
    struct loop_socket *socket; /* NULL: not watched any more */
    struct native_run *run;
    uint8_t end;
};
struct native_run {
    struct runtime *runtime;
    wait_ticket ticket;
    struct spawned spawned;
    struct native_run_watch watches[NATIVE_RUN_ENDS];
    struct timer timer;
    struct builder input, output[2];
    size_t input_done;
    size_t output_bytes_max;
    struct memory_hold hold; /* what goes in and what came out */
    uint32_t timeout_ms;
    uint32_t pending;
    bool waiting;            /* the task has not been answered */
    bool watched;            /* the loop has the operation on `ended` */
    struct native_run *next; /* in runtime->ending_runs */
    struct builder name;
    char **arguments, **environment; /* texts behind the pointers, in one block */
    char **folder;                   /* the same, one text; NULL: ours */
};

/* -- the end --------------------------------------------------------------------------------------------- */

/* The streams: nobody looks at them once the task is answered, and the VM may go before the program has. */
static void native_run_let_go(struct native_run *run)
{
    builder_fini(&run->input);
    builder_fini(&run->output[0]);
    builder_fini(&run->output[1]);
    memory_hold_end(&run->hold, 0);
}

static void native_run_free(struct native_run *run)
{
    native_run_let_go(run);
    builder_fini(&run->name);
    mem_free(run->arguments);
    mem_free(run->environment);
    mem_free(run->folder);
    mem_free(run);
}

/* The loop must let go of a descriptor before it is closed. */
static int *native_run_descriptor(struct native_run *run, int end)
{
    int *const descriptors[] = {&run->spawned.input, &run->spawned.output, &run->spawned.messages,
                                &run->spawned.ended};
    return descriptors[end];
}
static void native_run_close(struct native_run *run, int end)
{
    if (run->watches[end].socket) loop_socket_close(&run->watches[end].socket);
    spawn_close(native_run_descriptor(run, end));
}

static void native_run_shut(struct native_run *run)
{
    loop_timer_clear(run->runtime->loop, &run->timer);
    for (int end = 0; end < NATIVE_RUN_ENDED; end++)
        if (run->watches[end].socket) loop_socket_close(&run->watches[end].socket);
    bool gone = spawn_end(&run->spawned);
    run->waiting = false;
    native_run_let_go(run);
    if (!gone && run->watched && !run->runtime->closing) {
        run->next = run->runtime->ending_runs;
        run->runtime->ending_runs = run;
        return;
    }
    native_run_close(run, NATIVE_RUN_ENDED);
    if (run->pending == 0) native_run_free(run);
}

void native_run_leave(struct runtime *runtime)
{
    for (struct native_run *run = runtime->ending_runs, *next; run; run = next) {
        next = run->next;
        native_run_close(run, NATIVE_RUN_ENDED); /* its completion frees the run */
    }
    runtime->ending_runs = NULL;
}

/* Of one that was killed: false when it is not gone yet. */
static bool native_run_gone(struct native_run *run, cy_err err)
{
    int code;
    struct native_run **at = &run->runtime->ending_runs;
    if (!cy_failed(err) && !spawn_reap(&run->spawned, &code)) return false;
    while (*at && *at != run) at = &(*at)->next;
    if (*at) *at = run->next;
    native_run_close(run, NATIVE_RUN_ENDED);
    return true;
}

static void native_run_cancel(void *operation) { native_run_shut(operation); }

static void native_run_fail(struct native_run *run, cy_err err, const char *what)
{
    struct builder text;
    char why[128];
    bool korean = vm_korean(run->runtime->vm);
    builder_init(&text);
    builder_printf(&text, "process.run: %.*s: %s%s", CY_BYTES_ARG(builder_view(&run->name)), what,
                   cy_err_describe(err, korean, why, sizeof why));
    if (cy_is(err, CY_ERR_STOP_MEMORY)) {
        builder_printf(&text, " (TASK_MEMORY_BYTES: %d)", LIMIT_TASK_MEMORY_BYTES);
        err = CY_ERR(NO_MEMORY); /* the task has not got it and may go on */
    }
    if (cy_is(err, CY_ERR_TOO_LARGE))
        builder_printf(&text, " (output_bytes_max: %zu)", run->output_bytes_max);
    if (cy_is(err, CY_ERR_TIMEOUT)) builder_printf(&text, " (timeout_ms: %u)", run->timeout_ms);
    vm_complete_failed(run->runtime->vm, run->ticket, err, builder_view(&text));
    builder_fini(&text);
    native_run_shut(run);
}

static cy_err native_run_result(struct native_run *run, int code, cy_value *out)
{
    struct vm *vm = run->runtime->vm;
    cy_value map, text;
    CY_TRY(map_new(vm, 3, &map));
    cy_err err = map_set_text(vm, &map, CY_BYTES("code"), value_int(code));
    for (int i = 0; i < 2 && !cy_failed(err); i++) {
        err = string_new(vm, builder_view(&run->output[i]), &text);
        if (!cy_failed(err)) err = map_set_text(vm, &map, i == 0 ? CY_BYTES("out") : CY_BYTES("err"), text);
    }
    if (cy_failed(err)) value_unref(vm, map);
    *out = map;
    return err;
}

/* -- its three streams ----------------------------------------------------------------------------------- */

/* Takes what is there, at most `steps` pieces. OK with `*open_out`: there may be more later. */
static cy_err native_run_read(struct native_run *run, int end, uint32_t steps, bool *open_out)
{
    struct builder *out = &run->output[end - NATIVE_RUN_OUTPUT];
    *open_out = true;
    for (uint32_t i = 0; i < steps; i++) {
        size_t room_bytes = cy_min_size(NATIVE_RUN_STEP_BYTES, run->output_bytes_max - out->count + 1);
        size_t free_bytes = out->capacity - out->count;
        if (room_bytes > free_bytes)
            CY_TRY(memory_hold_grow(&run->hold, cy_max_size(room_bytes - free_bytes, out->capacity)));
        uint8_t *room = builder_reserve(out, room_bytes);
        if (!room) return CY_ERR(NO_MEMORY);
        ssize_t count = read(*native_run_descriptor(run, end), room, room_bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return CY_OK;
        if (count < 0) return cy_err_from_errno(errno);
        *open_out = count > 0;
        if (count == 0) return CY_OK;
        if ((size_t)count > run->output_bytes_max - out->count) return CY_ERR(TOO_LARGE);
        out->count += (size_t)count;
    }
    return CY_OK;
}

/* A program that does not read its input is no failure: many do not. */
static bool native_run_write(struct native_run *run)
{
    for (uint32_t i = 0; i < NATIVE_RUN_STEPS && run->input_done < run->input.count; i++) {
        cy_bytes rest = cy_bytes_skip(builder_view(&run->input), run->input_done);
        ssize_t count = write(run->spawned.input, rest.data, rest.count);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
        if (count < 0) return false;
        run->input_done += (size_t)count;
    }
    return run->input_done < run->input.count;
}

static void native_run_on_ended(struct native_run *run)
{
    int code;
    cy_value result;
    if (!spawn_reap(&run->spawned, &code)) {
        run->pending++;
        run->watched = true;
        loop_ready(run->watches[NATIVE_RUN_ENDED].socket, &run->watches[NATIVE_RUN_ENDED].ready);
        return;
    }
    cy_err err = CY_OK;
    for (int end = NATIVE_RUN_OUTPUT; end <= NATIVE_RUN_MESSAGES && !cy_failed(err); end++) {
        bool open;
        /* A pipe holds less than this many steps; more is from somebody who goes on writing. */
        if (*native_run_descriptor(run, end) >= 0) err = native_run_read(run, end, NATIVE_RUN_STEPS, &open);
    }
    struct vm_counters before, after;
    vm_read_counters(run->runtime->vm, &before);
    if (!cy_failed(err)) err = memory_hold_grow(&run->hold, run->output[0].count + run->output[1].count);
    if (!cy_failed(err)) err = native_run_result(run, code, &result);
    vm_read_counters(run->runtime->vm, &after);
    if (!cy_failed(err)) memory_hold_end(&run->hold, after.heap_bytes - before.heap_bytes);
    if (cy_failed(err)) {
        native_run_fail(run, err, "");
        return;
    }
    vm_complete(run->runtime->vm, run->ticket, result);
    native_run_shut(run);
}

static void native_run_on_ready(struct loop_op *op)
{
    struct native_run_watch *watch =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct native_run_watch, ready);
    struct native_run *run = watch->run;
    CHECK(run->pending > 0);
    run->pending--;
    if (watch->end == NATIVE_RUN_ENDED) run->watched = false;
    if (!run->waiting) {
        if (watch->end == NATIVE_RUN_ENDED && watch->socket && !native_run_gone(run, op->err)) {
            run->pending++;
            run->watched = true;
            loop_ready(watch->socket, &watch->ready);
            return;
        }
        if (run->pending == 0) native_run_free(run);
        return;
    }
    if (!watch->socket) return; /* closed meanwhile: this is its cancelled completion */
    cy_err err = op->err;
    bool open = true;
    if (watch->end == NATIVE_RUN_ENDED && !cy_failed(err)) {
        native_run_on_ended(run);
        return;
    }
    if (!cy_failed(err) && watch->end == NATIVE_RUN_INPUT) open = native_run_write(run);
    if (!cy_failed(err) && watch->end != NATIVE_RUN_INPUT)
        err = native_run_read(run, watch->end, NATIVE_RUN_STEPS, &open);
    if (cy_failed(err)) {
        native_run_fail(run, err, "");
        return;
    }
    if (!open) {
        native_run_close(run, watch->end);
        return;
    }
    run->pending++;
    loop_ready(watch->socket, &watch->ready);
}

static void native_run_on_timeout(struct timer *timer)
{
    native_run_fail(CY_CONTAINER_OF(timer, struct native_run, timer), CY_ERR(TIMEOUT), "");
}

static cy_err native_run_watch_all(struct native_run *run)
{
    for (int end = 0; end < NATIVE_RUN_ENDS; end++) {
        struct native_run_watch *watch = &run->watches[end];
        watch->run = run;
        watch->end = (uint8_t)end;
        watch->ready.op.done = native_run_on_ready;
        watch->ready.want_read = end != NATIVE_RUN_INPUT;
        watch->ready.want_write = end == NATIVE_RUN_INPUT;
        if (end == NATIVE_RUN_INPUT && run->input.count == 0) {
            native_run_close(run, end);
            continue;
        }
        CY_TRY(loop_socket_watch(run->runtime->loop, *native_run_descriptor(run, end), &watch->socket));
        run->pending++;
        if (end == NATIVE_RUN_ENDED) run->watched = true;
        loop_ready(watch->socket, &watch->ready);
    }
    return CY_OK;
}

/* -- arguments ------------------------------------------------------------------------------------------- */

static bool native_run_is_text(cy_value value)
{
    return value.tag == TAG_STR && !memchr(string_bytes(value).data, 0, string_bytes(value).count);
}

/* `count` texts as the system wants them: pointers, then the bytes. */
static char **native_run_block(const cy_bytes *first, const cy_bytes *second, size_t count)
{
    size_t bytes = (count + 1) * sizeof(char *);
    for (size_t i = 0; i < count; i++) bytes += first[i].count + (second ? second[i].count + 1 : 0) + 1;
    char **block = mem_alloc(bytes);
    if (!block) return NULL;
    char *at = (char *)(block + count + 1);
    for (size_t i = 0; i < count; i++) {
        block[i] = at;
        if (first[i].count) memcpy(at, first[i].data, first[i].count);
        at += first[i].count;
        if (second) {
            *at++ = '=';
            if (second[i].count) memcpy(at, second[i].data, second[i].count);
            at += second[i].count;
        }
        *at++ = 0;
    }
    block[count] = NULL;
    return block;
}

static enum native_outcome native_run_read_arguments(struct native_call *call, struct native_run *run)
{
    size_t count = native_has_arg(call, 1) ? list_count(call->args[1]) : 0;
    if (count > LIMIT_PROCESS_ARGUMENTS)
        return native_fail(call, CY_ERR(LIMIT), "process.run: at most PROCESS_ARGUMENTS = %d arguments",
                           LIMIT_PROCESS_ARGUMENTS);
    cy_bytes *texts = mem_alloc((count + 1) * sizeof *texts);
    if (!texts) return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.run");
    enum native_outcome outcome = NATIVE_DONE;
    texts[0] = string_bytes(call->args[0]);
    if (texts[0].count == 0 || !native_run_is_text(call->args[0]))
        outcome = native_fail(call, CY_ERR(VALUE), "process.run: the program's name is empty or holds a NUL");
    for (size_t i = 0; i < count && outcome == NATIVE_DONE; i++) {
        cy_value item = list_get(call->args[1], i);
        if (native_run_is_text(item))
            texts[i + 1] = string_bytes(item);
        else
            outcome =
                native_fail(call, CY_ERR(TYPE), "process.run: argument %zu is %s, not a str without NUL",
                            i + 1, value_kind_text(call->vm, item));
    }
    if (outcome == NATIVE_DONE) run->arguments = native_run_block(texts, NULL, count + 1);
    mem_free(texts);
    if (outcome == NATIVE_DONE && !run->arguments)
        return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.run");
    return outcome;
}

static enum native_outcome native_run_read_environment(struct native_call *call, struct native_run *run,
                                                       cy_value map)
{
    size_t count = map_object_count(map), cursor = 0, i = 0;
    cy_value key, value;
    if (count > LIMIT_PROCESS_ARGUMENTS)
        return native_fail(call, CY_ERR(LIMIT), "process.run: at most PROCESS_ARGUMENTS = %d variables",
                           LIMIT_PROCESS_ARGUMENTS);
    cy_bytes *texts = mem_alloc((2 * count + 1) * sizeof *texts);
    if (!texts) return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.run");
    enum native_outcome outcome = NATIVE_DONE;
    for (; outcome == NATIVE_DONE && map_next(map, &cursor, &key, &value); i++) {
        bool named = native_run_is_text(key) && string_bytes(key).count > 0 &&
                     cy_bytes_find(string_bytes(key), '=') == string_bytes(key).count;
        if (!named || !native_run_is_text(value)) {
            outcome =
                native_fail(call, CY_ERR(VALUE), "process.run: env maps names (str without \"=\") to str");
        } else {
            texts[i] = string_bytes(key);
            texts[count + i] = string_bytes(value);
        }
    }
    mem_free(run->environment);
    run->environment = outcome == NATIVE_DONE ? native_run_block(texts, texts + count, count) : NULL;
    mem_free(texts);
    if (outcome == NATIVE_DONE && !run->environment)
        return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.run");
    return outcome;
}

static bool native_run_number(cy_value value, int64_t max, int64_t *number_out)
{
    if (value.tag != TAG_INT || value.as.i < 1 || value.as.i > max) return false;
    *number_out = value.as.i;
    return true;
}

static enum native_outcome native_run_read_options(struct native_call *call, struct native_run *run)
{
    cy_value key, value;
    size_t cursor = 0;
    int64_t number;
    while (native_has_arg(call, 2) && map_next(call->args[2], &cursor, &key, &value)) {
        cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
        if (cy_bytes_equal(name, CY_BYTES("input")) && value.tag == TAG_STR) {
            cy_bytes input = string_bytes(value);
            cy_err err = memory_hold_grow(&run->hold, input.count);
            if (cy_is(err, CY_ERR_STOP_MEMORY))
                return native_fail(call, CY_ERR(NO_MEMORY), "process.run: %s (TASK_MEMORY_BYTES: %d)",
                                   cy_err_text(err, vm_korean(call->vm)), LIMIT_TASK_MEMORY_BYTES);
            if (!cy_failed(err)) builder_bytes(&run->input, input);
            if (run->input.count != input.count)
                return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.run");
        } else if (cy_bytes_equal(name, CY_BYTES("env")) && value.tag == TAG_MAP) {
            if (native_run_read_environment(call, run, value) != NATIVE_DONE) return NATIVE_FAIL;
        } else if (cy_bytes_equal(name, CY_BYTES("cwd")) && native_run_is_text(value) &&
                   string_bytes(value).count > 0) {
            cy_bytes folder = string_bytes(value);
            mem_free(run->folder);
            run->folder = native_run_block(&folder, NULL, 1);
            if (!run->folder) return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.run");
        } else if (cy_bytes_equal(name, CY_BYTES("timeout_ms")) &&
                   native_run_number(value, LIMIT_TIMEOUT_MS, &number)) {
            run->timeout_ms = (uint32_t)number;
        } else if (cy_bytes_equal(name, CY_BYTES("output_bytes_max")) &&
                   native_run_number(value, LIMIT_STRING_BYTES, &number)) {
            run->output_bytes_max = (size_t)number;
        } else {
            return native_fail(
                call, CY_ERR(VALUE),
                "process.run: options are input (str), env (map), cwd (str), timeout_ms (1..%d) and "
                "output_bytes_max (1..%d), not \"%.*s\" (%s)",
                LIMIT_TIMEOUT_MS, LIMIT_STRING_BYTES, CY_BYTES_ARG(name), value_kind_text(call->vm, value));
        }
    }
    return NATIVE_DONE;
}

static enum native_outcome native_run_start(struct native_call *call, struct native_run *run)
{
    char why[128];
    cy_err err = runtime_need_loop(run->runtime);
    if (!cy_failed(err))
        err =
            spawn_start(run->arguments, run->environment, run->folder ? run->folder[0] : NULL, &run->spawned);
    if (cy_failed(err)) {
        native_fail(call, err, "process.run: %.*s: %s", CY_BYTES_ARG(string_bytes(call->args[0])),
                    cy_err_describe(err, vm_korean(call->vm), why, sizeof why));
        native_run_free(run);
        return NATIVE_FAIL;
    }
    run->timer.fire = native_run_on_timeout;
    err = native_run_watch_all(run);
    if (cy_failed(err)) {
        native_run_shut(run); /* frees it, or leaves that to the completions that are due */
        return native_fail(call, err, "process.run: %s", cy_err_text(err, vm_korean(call->vm)));
    }
    loop_timer_set(run->runtime->loop, &run->timer, run->timeout_ms);
    run->waiting = true;
    run->ticket = native_wait(call, native_run_cancel, run);
    return NATIVE_WAIT;
}

enum native_outcome native_process_run(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    if (runtime_is_configuring(runtime, call->instance))
        return native_fail(call, CY_ERR(UNSUPPORTED), "process.run: not in configure");
    struct native_run *run = mem_alloc_zeroed(sizeof *run);
    if (!run) return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.run");
    run->runtime = runtime;
    memory_hold_begin(call, &run->hold);
    run->timeout_ms = LIMIT_PROCESS_TIMEOUT_MS;
    run->output_bytes_max = LIMIT_PROCESS_OUTPUT_BYTES;
    builder_init(&run->input);
    builder_init(&run->output[0]);
    builder_init(&run->output[1]);
    builder_init(&run->name);
    builder_bytes(&run->name, cy_bytes_slice(string_bytes(call->args[0]), 0, LIMIT_PATH_BYTES));
    if (native_run_read_arguments(call, run) == NATIVE_DONE &&
        native_run_read_options(call, run) == NATIVE_DONE)
        return native_run_start(call, run);
    native_run_free(run);
    return NATIVE_FAIL;
}

#undef NATIVE_RUN_STEP_BYTES
#undef NATIVE_RUN_STEPS
