/* SPDX-License-Identifier: MIT
 *
 * vm/native/runtime_output.c: where print, print_error and the log go.
 *
 *   before serving: write(2), and the reader is waited for: a program in a pipe is as slow as what reads it
 *   serving:        a thread and a ring (vm/sys/output.h): a reader that stops reading stops no request
 *
 * Invariant: threads are started after the workers were forked, and once.
 */
#include "vm/native/runtime_internal.h"
#include "vm/sys/file.h"

#include <sys/stat.h>
#include <unistd.h>

static bool runtime_output_is_one_file(void)
{
    struct stat out, err;
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
           out.st_ino == err.st_ino;
}

static void runtime_output_log(void *context, cy_bytes line)
{
    struct runtime *runtime = context;
    output_write(runtime->outputs[1], line);
}

void runtime_output_detach(struct runtime *runtime)
{
    if (runtime->outputs[1]) return;
    struct output *messages = NULL, *text = NULL;
    if (cy_failed(output_new(STDERR_FILENO, &messages)))
        return; /* no thread, no memory: written in place, as before */
    if (!runtime_output_is_one_file() && cy_failed(output_new(STDOUT_FILENO, &text))) {
        output_free(&messages);
        return;
    }
    runtime->outputs[1] = messages;
    runtime->outputs[0] = text ? text : messages; /* one file: one thread, so that the order of lines stays */
    runtime->log.put = runtime_output_log;
    runtime->log.context = runtime;
}

cy_err runtime_put(void *host, int descriptor, cy_bytes text)
{
    struct runtime *runtime = host;
    struct output *output = runtime->outputs[descriptor == STDOUT_FILENO ? 0 : 1];
    if (output) {
        output_write(output, text);
        return CY_OK;
    }
    return file_write_all(descriptor, text);
}

uint64_t runtime_output_dropped(struct runtime *runtime)
{
    uint64_t dropped = 0;
    if (runtime->outputs[1]) dropped = output_dropped(runtime->outputs[1]);
    if (runtime->outputs[0] && runtime->outputs[0] != runtime->outputs[1])
        dropped += output_dropped(runtime->outputs[0]);
    return dropped;
}

/* -- repeated log lines ---------------------------------------------------------------------------------- */

static void runtime_output_on_timer(struct timer *timer)
{
    struct runtime *runtime = CY_CONTAINER_OF(timer, struct runtime, repeats_timer);
    uint32_t next_ms = log_tell_repeats(&runtime->log, false);
    if (next_ms > 0) loop_timer_set(runtime->loop, timer, next_ms);
}

void runtime_tell_repeats(struct runtime *runtime)
{
    if (!runtime->log.repeated || timer_is_set(&runtime->repeats_timer)) return;
    runtime->log.repeated = false;
    runtime->repeats_timer.fire = runtime_output_on_timer;
    loop_timer_set(runtime->loop, &runtime->repeats_timer, LIMIT_LOG_REPEAT_MS);
}

void runtime_output_shut(struct runtime *runtime)
{
    log_tell_repeats(&runtime->log, true);
    runtime->log.put = NULL;
    if (runtime->outputs[0] == runtime->outputs[1]) runtime->outputs[0] = NULL;
    output_free(&runtime->outputs[0]);
    output_free(&runtime->outputs[1]);
}
