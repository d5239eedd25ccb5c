/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_process.c: process.workers.
 *
 * In:   a count and options. Out: main is parked; the driver (runtime.c), outside of bytecode, becomes master or
 *       worker and wakes main in each worker with its index.
 * Not here: what a master does (vm/net/master.c).
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"

#include <stdio.h>

#define NATIVE_PROCESS_INPUT_DEPTH 32 /* a configuration's shape; the walk recurses */

static char *native_process_copy(cy_bytes text)
{
    char *copy = mem_alloc(text.count + 1);
    if (copy) memcpy(copy, text.data, text.count + 1);
    return copy;
}

static enum native_outcome native_process_read_files(struct native_call *call, struct generation_plan *plan,
                                                     cy_value files)
{
    cy_value key, value;
    for (size_t i = 0; map_entry_at(files, i, &key, &value); i++) {
        if (key.tag != TAG_STR || value.tag != TAG_STR || string_bytes(value).count == 0 ||
            memchr(string_bytes(value).data, 0, string_bytes(value).count)) {
            return native_fail(call, CY_ERR(VALUE), "process.workers: files maps names to paths, both str");
        }
        if (plan->source_count == LIMIT_GENERATION_FILES) {
            return native_fail(call, CY_ERR(LIMIT), "process.workers: at most GENERATION_FILES = %d files",
                               LIMIT_GENERATION_FILES);
        }
        struct generation_source *source = &plan->sources[plan->source_count];
        source->name = native_process_copy(string_bytes(key));
        source->path = native_process_copy(string_bytes(value));
        plan->source_count++; /* counted first, so that a half copy is freed with the plan */
        if (!source->name || !source->path)
            return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.workers");
    }
    return NATIVE_DONE;
}

/* What configure gets must not tie a new program to an old one: no functions, records, refs or handles. */
static const char *native_process_foreign(struct vm *vm, cy_value value, uint32_t depth)
{
    cy_value key, item;
    if (depth > NATIVE_PROCESS_INPUT_DEPTH) return "something nested too deep";
    switch (value.tag) {
    case TAG_NIL:
    case TAG_BOOL:
    case TAG_INT:
    case TAG_FLOAT:
    case TAG_STR: return NULL;
    case TAG_LIST:
        for (size_t i = 0; i < list_count(value); i++) {
            const char *what = native_process_foreign(vm, list_get(value, i), depth + 1);
            if (what) return what;
        }
        return NULL;
    case TAG_MAP:
        for (size_t i = 0; map_entry_at(value, i, &key, &item); i++) {
            const char *what = native_process_foreign(vm, key, depth + 1);
            if (!what) what = native_process_foreign(vm, item, depth + 1);
            if (what) return what;
        }
        return NULL;
    default: return value_kind_text(vm, value);
    }
}

static enum native_outcome native_process_read_options(struct native_call *call, struct runtime *runtime,
                                                       cy_value options)
{
    cy_value key, value;
    for (size_t i = 0; map_entry_at(options, i, &key, &value); i++) {
        cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
        if (cy_bytes_equal(name, CY_BYTES("files")) && value.tag == TAG_MAP) {
            if (native_process_read_files(call, &runtime->plan, value) != NATIVE_DONE) return NATIVE_FAIL;
        } else if (cy_bytes_equal(name, CY_BYTES("input")) && value.tag == TAG_MAP) {
            const char *what = native_process_foreign(call->vm, value, 0);
            if (what)
                return native_fail(
                    call, CY_ERR(VALUE),
                    "process.workers: input holds nil, bool, int, float, str, list and map, not %s", what);
            value_unref(call->vm, runtime->input);
            runtime->input = value_ref(value);
        } else if (cy_bytes_equal(name, CY_BYTES("user")) && (value.tag == TAG_STR || value.tag == TAG_NIL)) {
            if (value.tag == TAG_NIL || string_bytes(value).count == 0) continue;
            runtime->workers.user = native_process_copy(string_bytes(value));
            if (!runtime->workers.user) return native_fail_reason(call, CY_ERR(NO_MEMORY), "process.workers");
        } else if (cy_bytes_equal(name, CY_BYTES("label")) && value.tag == TAG_STR) {
            cy_bytes label = string_bytes(value);
            if (label.count >= sizeof runtime->workers.label)
                return native_fail(call, CY_ERR(VALUE),
                                   "process.workers: label is longer than %d bytes (LABEL_BYTES)",
                                   LIMIT_LABEL_BYTES);
            memcpy(runtime->workers.label, label.data, label.count);
            runtime->workers.label[label.count] = 0;
        } else if (cy_bytes_equal(name, CY_BYTES("drain_ms")) && value.tag == TAG_INT) {
            if (value.as.i < 1 || value.as.i > LIMIT_TIMEOUT_MS)
                return native_fail(call, CY_ERR(VALUE), "%s: %s must be %lld..%lld, not %lld",
                                   "process.workers", "drain_ms", 1ll, (long long)LIMIT_TIMEOUT_MS,
                                   (long long)value.as.i);
            runtime->workers.drain_ms = (uint64_t)value.as.i;
        } else {
            return native_fail(call, CY_ERR(VALUE),
                               "process.workers: options are files (map), input (map), user (str), label "
                               "(str) and drain_ms (int), not \"%.*s\" (%s)",
                               CY_BYTES_ARG(name), value_kind_text(call->vm, value));
        }
    }
    return NATIVE_DONE;
}

static void native_process_never(void *operation) { (void)operation; }

enum native_outcome native_process_workers(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    int64_t count = call->args[0].as.i;
    if (runtime->workers.asked)
        return native_fail(call, CY_ERR(UNSUPPORTED), "process.workers: may be called once");
    if (runtime->loop || vm_fiber_count(call->vm) > 1) {
        return native_fail(call, CY_ERR(UNSUPPORTED),
                           "process.workers: must come before any task, timer, upstream or server exists");
    }
    if (count < 1 || count > LIMIT_WORKERS) {
        return native_fail(call, CY_ERR(VALUE),
                           "process.workers: the count must be 1..%d (WORKERS), not %lld", LIMIT_WORKERS,
                           (long long)count);
    }
    if (native_has_arg(call, 1) && native_process_read_options(call, runtime, call->args[1]) != NATIVE_DONE)
        return NATIVE_FAIL;
    runtime->workers.asked = runtime->workers.pending = true;
    runtime->workers.count = (uint32_t)count;
    runtime->workers.ticket = native_wait(call, native_process_never, NULL);
    return NATIVE_WAIT;
}

#undef NATIVE_PROCESS_INPUT_DEPTH
