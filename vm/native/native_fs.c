/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_fs.c: the module "fs".
 *
 * In:   paths, which the rules of the command line put below a folder (vm/sys/path_rules.h). Out: contents, names,
 * states. Each native is a row of native_fs_operations; all of them are one struct of arguments, a call on a helper
 * thread, and a value made of what it found.
 * Invariant: a job owns all that its thread looks at; the rules it points into live as long as the process.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/path.h"
#include "vm/native/job.h"
#include "vm/native/native_bodies.h"
#include "vm/run/object.h"
#include "vm/sys/file.h"
#include "vm/sys/file_below.h"
#include "vm/sys/path_rules.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#define NATIVE_FS_POLL_MS 20 /* until a stopped task gives its thread back */

struct native_fs_job {
    struct job job; /* first */
    const struct native_fs_operation *operation;
    const struct beneath_root *root, *read_root, *to_root;
    struct builder below, read_below, to_below; /* the paths below them */
    struct builder shown;   /* as the program wrote it: for messages and for the path of a temporary file */
    struct builder content; /* what is written, or was read; names */
    size_t count;           /* of names */
    size_t bytes_max;
    size_t bytes_left; /* of the VM, or the task, when it began */
    bool waiting;      /* counted there */
    bool flag;
    struct file_status status;
    cy_err err;
};
struct native_fs_operation {
    const char *name;
    enum path_access access;
    cy_err (*work)(struct native_fs_job *job);
    /* NULL: nil. */
    cy_err (*result)(struct native_fs_job *job, struct vm *vm, cy_value *owned_out);
};

static const struct native_fs_operation native_fs_undone = {"fs", PATH_WRITE, NULL, NULL};

static const char *native_fs_path(struct native_fs_job *job) { return (const char *)job->below.data; }

/* -- on the helper thread -------------------------------------------------------------------------------- */

/* All that operations hold together stays within what the VM, and this task, had left. */
static cy_err native_fs_grow(void *context, size_t bytes)
{
    struct native_fs_job *job = context;
    return memory_hold_grow_beside(&job->job.hold, bytes, job->bytes_left);
}

/* A pipe may never answer: some threads are kept for files, and a task that was stopped gives its own back. */
static cy_err native_fs_wait(void *context, int descriptor, bool to_write)
{
    struct native_fs_job *job = context;
    struct job_bounds *bounds = &job->job.runtime->job_bounds;
    struct pollfd wait = {.fd = descriptor, .events = to_write ? POLLOUT : POLLIN};
    unsigned before = job->waiting ? 0 : atomic_fetch_add(&bounds->waiting, 1);
    job->waiting = true;
    if (before >= LIMIT_HELPER_WAITING) return CY_ERR_DETAIL(TOO_MANY, LIMIT_HELPER_WAITING);
    for (;;) {
        int result = poll(&wait, 1, NATIVE_FS_POLL_MS);
        if (result > 0) return CY_OK;
        if (result < 0 && errno != EINTR) return cy_err_from_errno(errno);
        if (job->job.abandoned) return CY_ERR(CANCELLED);
    }
}

static struct file_patience native_fs_patience(struct native_fs_job *job)
{
    return (struct file_patience){job, native_fs_grow, native_fs_wait};
}

/* "f/" names a folder, which is no file to read or write. */
static bool native_fs_names_folder(const struct native_fs_job *job)
{
    return job->shown.count > 0 && job->shown.data[job->shown.count - 1] == '/';
}

static cy_err native_fs_work_read(struct native_fs_job *job)
{
    if (native_fs_names_folder(job)) {
        CY_TRY(file_below_stat(job->root, native_fs_path(job), &job->status));
        return job->status.kind == FILE_KIND_FOLDER ? CY_ERR(IS_FOLDER) : CY_ERR(NOT_FOLDER);
    }
    struct file_patience patience = native_fs_patience(job);
    return file_below_read(job->root, native_fs_path(job), job->bytes_max, &patience, &job->content);
}
static cy_err native_fs_work_write(struct native_fs_job *job)
{
    if (native_fs_names_folder(job)) return CY_ERR(IS_FOLDER);
    struct file_patience patience = native_fs_patience(job);
    return file_below_write(job->root, native_fs_path(job), builder_view(&job->content), FILE_WRITE_REPLACE,
                            &patience);
}
static cy_err native_fs_work_append(struct native_fs_job *job)
{
    if (native_fs_names_folder(job)) return CY_ERR(IS_FOLDER);
    struct file_patience patience = native_fs_patience(job);
    return file_below_write(job->root, native_fs_path(job), builder_view(&job->content), FILE_WRITE_APPEND,
                            &patience);
}
static cy_err native_fs_work_write_atomic(struct native_fs_job *job)
{
    if (native_fs_names_folder(job)) return CY_ERR(IS_FOLDER);
    return file_below_write_atomic(job->root, native_fs_path(job), builder_view(&job->content));
}
static cy_err native_fs_work_exists(struct native_fs_job *job)
{
    job->flag = !cy_failed(file_below_stat(job->root, native_fs_path(job), &job->status));
    return CY_OK;
}
static cy_err native_fs_work_stat(struct native_fs_job *job)
{
    return file_below_stat(job->root, native_fs_path(job), &job->status);
}
static cy_err native_fs_work_list(struct native_fs_job *job)
{
    return file_below_list(job->root, native_fs_path(job), LIMIT_FOLDER_ENTRIES, &job->content, &job->count);
}
static cy_err native_fs_work_make_folder(struct native_fs_job *job)
{
    return file_below_make_folder(job->root, native_fs_path(job), job->flag);
}
static cy_err native_fs_work_remove(struct native_fs_job *job)
{
    return file_below_remove(job->root, native_fs_path(job));
}
static cy_err native_fs_work_rename(struct native_fs_job *job)
{
    return file_below_rename(job->root, native_fs_path(job), job->read_root,
                             (const char *)job->read_below.data, job->to_root,
                             (const char *)job->to_below.data);
}
static cy_err native_fs_work_temporary_file(struct native_fs_job *job)
{
    return file_below_temporary(job->root, native_fs_path(job), false, &job->content);
}
static cy_err native_fs_work_temporary_folder(struct native_fs_job *job)
{
    return file_below_temporary(job->root, native_fs_path(job), true, &job->content);
}

/* -- results --------------------------------------------------------------------------------------------- */

static cy_err native_fs_result_content(struct native_fs_job *job, struct vm *vm, cy_value *out)
{
    return string_new(vm, builder_view(&job->content), out);
}
static cy_err native_fs_result_flag(struct native_fs_job *job, struct vm *vm, cy_value *out)
{
    (void)vm;
    *out = value_bool(job->flag);
    return CY_OK;
}
static cy_err native_fs_result_status(struct native_fs_job *job, struct vm *vm, cy_value *out)
{
    static const char *const kinds[] = {"file", "folder", "other"};
    cy_value map, kind;
    CY_TRY(map_new(vm, 3, &map));
    cy_err err = map_set_text(vm, &map, CY_BYTES("size"), value_int(job->status.bytes));
    if (!cy_failed(err))
        err = map_set_text(vm, &map, CY_BYTES("modified_ms"), value_int(job->status.modified_ms));
    if (!cy_failed(err)) err = string_new(vm, cy_bytes_from_text(kinds[job->status.kind]), &kind);
    if (!cy_failed(err)) err = map_set_text(vm, &map, CY_BYTES("kind"), kind);
    if (cy_failed(err)) value_unref(vm, map);
    *out = map;
    return err;
}

static int native_fs_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b); /* strcmp is by unsigned bytes */
}

static cy_err native_fs_result_names(struct native_fs_job *job, struct vm *vm, cy_value *out)
{
    const char **names = mem_alloc(job->count * sizeof *names);
    const char *at = (const char *)job->content.data;
    cy_value list, text;
    if (!names) return CY_ERR(NO_MEMORY);
    for (size_t i = 0; i < job->count; i++, at += strlen(at) + 1) names[i] = at;
    qsort(names, job->count, sizeof *names, native_fs_compare);
    cy_err err = list_new(vm, job->count, &list);
    if (!cy_failed(err)) {
        for (size_t i = 0; i < job->count && !cy_failed(err); i++) {
            err = string_new(vm, cy_bytes_from_text(names[i]), &text);
            if (!cy_failed(err)) err = list_append(vm, &list, text);
        }
        if (cy_failed(err)) value_unref(vm, list);
    }
    mem_free(names);
    *out = list;
    return err;
}

static cy_err native_fs_result_temporary(struct native_fs_job *job, struct vm *vm, cy_value *out)
{
    struct builder path;
    builder_init(&path);
    path_join(builder_view(&job->shown), builder_view(&job->content), &path);
    cy_err err = builder_error(&path);
    if (!cy_failed(err)) err = string_new(vm, builder_view(&path), out);
    builder_fini(&path);
    return err;
}

/* What was made for a task that is gone, or that has no memory for the name. The name is ours and unguessable, so
 * nobody else's is removed. Allocates nothing: native_fs_temporary has made room. */
static void native_fs_undo(struct native_fs_job *job)
{
    if (cy_failed(job->err) || job->operation->result != native_fs_result_temporary) return;
    path_join(builder_view(&job->below), builder_view(&job->content), &job->to_below);
    const char *text = builder_text_view(&job->to_below);
    if (text) job->err = file_below_remove(job->root, text);
    job->operation = &native_fs_undone;
}

/* -- jobs ------------------------------------------------------------------------------------------------ */

static void native_fs_work(struct job *base)
{
    struct native_fs_job *job = (struct native_fs_job *)base;
    job->err = job->operation->work(job);
    if (job->waiting) atomic_fetch_sub(&job->job.runtime->job_bounds.waiting, 1);
    job->waiting = false;
    /* Nobody will learn the name. */
    if (job->job.abandoned) native_fs_undo(job);
}

/* The path, with a NUL as the language writes it. */
static void native_fs_show(struct builder *out, cy_bytes path)
{
    for (size_t at = 0; at <= path.count;) {
        cy_bytes part = cy_bytes_slice(path, at, at + cy_bytes_find(cy_bytes_skip(path, at), '\0'));
        builder_bytes(out, part);
        at += part.count + 1;
        if (at <= path.count) builder_text(out, "\\u{0}");
    }
}

static void native_fs_describe(struct builder *out, const char *name, cy_bytes path, cy_err err, bool korean)
{
    char why[128];
    builder_printf(out, "%s: ", name);
    native_fs_show(out, cy_bytes_slice(path, 0, LIMIT_PATH_BYTES));
    builder_printf(out, ": %s", cy_err_describe(err, korean, why, sizeof why));
    if (cy_is(err, CY_ERR_VALUE) && path.count == 0)
        builder_text(out, korean ? " (빈 경로)" : " (an empty path)");
    if (cy_is(err, CY_ERR_VALUE) && path.count > 0)
        builder_text(out, korean ? " (경로에는 NUL을 쓸 수 없습니다)" : " (a path holds no NUL)");
    if (cy_is(err, CY_ERR_PERMISSION) && err.detail == 0)
        builder_text(out,
                     korean ? " (--allow read=폴더, write=폴더 참고)" : " (see --allow read=DIR, write=DIR)");
    if (cy_is(err, CY_ERR_STOP_MEMORY))
        builder_printf(out, " (TASK_MEMORY_BYTES: %d)", LIMIT_TASK_MEMORY_BYTES);
    if (cy_is(err, CY_ERR_LIMIT) && err.detail == LIMIT_FOLDER_ENTRIES)
        builder_printf(out, " (FOLDER_ENTRIES: %d)", LIMIT_FOLDER_ENTRIES);
    if (cy_is(err, CY_ERR_TOO_MANY) && err.detail == LIMIT_HELPER_WAITING)
        builder_printf(out, " (HELPER_WAITING: %d)", LIMIT_HELPER_WAITING);
    if (cy_is(err, CY_ERR_LIMIT) && err.detail == LIMIT_PATH_BYTES)
        builder_printf(out, " (PATH_BYTES: %d)", LIMIT_PATH_BYTES);
    if (cy_is(err, CY_ERR_LIMIT) && err.detail == LIMIT_PATH_DEPTH)
        builder_printf(out, " (PATH_DEPTH: %d)", LIMIT_PATH_DEPTH);
}

/* With what was described; without memory for that, the lack of it is what has to be said. */
static enum native_outcome native_fs_fail(struct native_call *call, const char *name, cy_err err,
                                          struct builder *owned_text)
{
    if (owned_text->failed)
        native_fail_reason(call, CY_ERR(NO_MEMORY), name);
    else
        native_fail(call, err, "%.*s", CY_BYTES_ARG(builder_view(owned_text)));
    builder_fini(owned_text);
    return NATIVE_FAIL;
}

static cy_err native_fs_finish(struct job *base, cy_value *owned_out, struct builder *message)
{
    struct native_fs_job *job = (struct native_fs_job *)base;
    struct vm *vm = base->runtime->vm;
    cy_err err = job->err;
    *owned_out = value_nil();
    if (!cy_failed(err) && job->operation->result) {
        struct vm_counters before, after;
        vm_read_counters(vm, &before);
        err = memory_hold_grow(&base->hold, job->content.count); /* the value's copy */
        if (!cy_failed(err)) err = job->operation->result(job, vm, owned_out);
        vm_read_counters(vm, &after);
        memory_hold_end(&base->hold, cy_failed(err) ? 0 : after.heap_bytes - before.heap_bytes);
    }
    if (cy_failed(err)) {
        native_fs_describe(message, job->operation->name, builder_view(&job->shown), err, vm_korean(vm));
        native_fs_undo(job);
    }
    if (cy_is(err, CY_ERR_STOP_MEMORY)) err = CY_ERR(NO_MEMORY); /* the task goes on: it has not got it */
    return err;
}

static void native_fs_release(struct job *base)
{
    struct native_fs_job *job = (struct native_fs_job *)base;
    if (job->job.abandoned) native_fs_undo(job);
    memory_hold_end(&job->job.hold, 0);
    builder_fini(&job->below);
    builder_fini(&job->read_below);
    builder_fini(&job->to_below);
    builder_fini(&job->shown);
    builder_fini(&job->content);
    mem_free(job);
}

/* A job for the first argument's path; NULL after a failure. */
static struct native_fs_job *native_fs_open(struct native_call *call,
                                            const struct native_fs_operation *operation, cy_bytes path)
{
    struct runtime *runtime = runtime_of(call->vm);
    if (runtime_is_configuring(runtime, call->instance)) {
        native_fail(call, CY_ERR(UNSUPPORTED),
                    "%s: not in configure; name the file in process.workers' files", operation->name);
        return NULL;
    }
    struct native_fs_job *job = mem_alloc_zeroed(sizeof *job);
    if (!job) {
        native_fail_reason(call, CY_ERR(NO_MEMORY), operation->name);
        return NULL;
    }
    job->job.work = native_fs_work;
    job->job.finish = native_fs_finish;
    job->job.release = native_fs_release;
    job->operation = operation;
    job->err = CY_ERR(CANCELLED); /* until it ran */
    job->job.runtime = runtime;
    memory_hold_begin(call, &job->job.hold);
    job->bytes_left = memory_hold_left(&job->job.hold);
    builder_init(&job->below);
    builder_init(&job->read_below);
    builder_init(&job->to_below);
    builder_init(&job->shown);
    builder_init(&job->content);
    cy_err err = path_rules_find(runtime->rules, operation->access, path, &job->root, &job->below);
    builder_bytes(&job->shown, path);
    if (!cy_failed(err)) err = builder_error(&job->shown);
    if (!cy_failed(err)) return job;
    struct builder text;
    builder_init(&text);
    native_fs_describe(&text, operation->name, path, err, vm_korean(call->vm));
    native_fs_fail(call, operation->name, err, &text);
    native_fs_release(&job->job);
    return NULL;
}

static enum native_outcome native_fs_simple(struct native_call *call,
                                            const struct native_fs_operation *operation)
{
    struct native_fs_job *job = native_fs_open(call, operation, string_bytes(call->args[0]));
    return job ? job_start(call, &job->job) : NATIVE_FAIL;
}

/* -- the natives ----------------------------------------------------------------------------------------- */

enum native_outcome native_fs_read(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.read", PATH_READ, native_fs_work_read,
                                                         native_fs_result_content};
    struct native_fs_job *job = native_fs_open(call, &operation, string_bytes(call->args[0]));
    if (!job) return NATIVE_FAIL;
    job->bytes_max = vm_memory_left(call->vm, LIMIT_STRING_BYTES);
    return job_start(call, &job->job);
}

/* The content is copied: the thread must not look at a value. */
static enum native_outcome native_fs_with_content(struct native_call *call,
                                                  const struct native_fs_operation *operation)
{
    cy_bytes content = string_bytes(call->args[1]);
    struct native_fs_job *job = native_fs_open(call, operation, string_bytes(call->args[0]));
    if (!job) return NATIVE_FAIL;
    cy_err err = memory_hold_grow(&job->job.hold, content.count);
    if (!cy_failed(err)) {
        builder_bytes(&job->content, content);
        err = builder_error(&job->content);
    }
    native_charge(call, 1 + content.count / 1024);
    if (!cy_failed(err)) return job_start(call, &job->job);
    struct builder text;
    builder_init(&text);
    native_fs_describe(&text, operation->name, builder_view(&job->shown), err, vm_korean(call->vm));
    native_fs_release(&job->job);
    return native_fs_fail(call, operation->name, CY_ERR(NO_MEMORY), &text);
}

enum native_outcome native_fs_write(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.write", PATH_WRITE, native_fs_work_write, NULL};
    return native_fs_with_content(call, &operation);
}
enum native_outcome native_fs_append(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.append", PATH_WRITE, native_fs_work_append,
                                                         NULL};
    return native_fs_with_content(call, &operation);
}
enum native_outcome native_fs_write_atomic(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.write_atomic", PATH_WRITE,
                                                         native_fs_work_write_atomic, NULL};
    return native_fs_with_content(call, &operation);
}
enum native_outcome native_fs_exists(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.exists", PATH_READ, native_fs_work_exists,
                                                         native_fs_result_flag};
    return native_fs_simple(call, &operation);
}
enum native_outcome native_fs_stat(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.stat", PATH_READ, native_fs_work_stat,
                                                         native_fs_result_status};
    return native_fs_simple(call, &operation);
}
enum native_outcome native_fs_list(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.list", PATH_READ, native_fs_work_list,
                                                         native_fs_result_names};
    return native_fs_simple(call, &operation);
}
enum native_outcome native_fs_make_folder(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.make_folder", PATH_WRITE,
                                                         native_fs_work_make_folder, NULL};
    struct native_fs_job *job = native_fs_open(call, &operation, string_bytes(call->args[0]));
    if (!job) return NATIVE_FAIL;
    job->flag = native_has_arg(call, 1) && call->args[1].as.b;
    return job_start(call, &job->job);
}
enum native_outcome native_fs_remove(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.remove", PATH_WRITE, native_fs_work_remove,
                                                         NULL};
    return native_fs_simple(call, &operation);
}

enum native_outcome native_fs_rename(struct native_call *call)
{
    static const struct native_fs_operation operation = {"fs.rename", PATH_WRITE, native_fs_work_rename,
                                                         NULL};
    struct native_fs_job *job = native_fs_open(call, &operation, string_bytes(call->args[0]));
    if (!job) return NATIVE_FAIL;
    const struct path_rules *rules = runtime_of(call->vm)->rules;
    cy_bytes to = string_bytes(call->args[1]);
    cy_err err =
        path_rules_find(rules, PATH_READ, string_bytes(call->args[0]), &job->read_root, &job->read_below);
    if (!cy_failed(err)) err = path_rules_find(rules, PATH_WRITE, to, &job->to_root, &job->to_below);
    builder_text(&job->shown, " -> ");
    builder_bytes(&job->shown, to);
    if (!cy_failed(err)) return job_start(call, &job->job);
    struct builder text;
    builder_init(&text);
    native_fs_describe(&text, operation.name, builder_view(&job->shown), err, vm_korean(call->vm));
    native_fs_fail(call, operation.name, err, &text);
    native_fs_release(&job->job);
    return NATIVE_FAIL;
}

static enum native_outcome native_fs_temporary(struct native_call *call,
                                               const struct native_fs_operation *operation)
{
    cy_bytes folder = native_has_arg(call, 0) ? string_bytes(call->args[0]) : CY_BYTES(".");
    struct native_fs_job *job = native_fs_open(call, operation, folder);
    if (!job) return NATIVE_FAIL;
    /* For native_fs_undo: the folder, a slash, the name, NUL. */
    if (builder_reserve(&job->to_below, job->below.count + sizeof(beneath_name) + 2))
        return job_start(call, &job->job);
    native_fs_release(&job->job);
    return native_fail_reason(call, CY_ERR(NO_MEMORY), operation->name);
}
enum native_outcome native_fs_temporary_file(struct native_call *call)
{
    static const struct native_fs_operation operation = {
        "fs.temporary_file", PATH_WRITE, native_fs_work_temporary_file, native_fs_result_temporary};
    return native_fs_temporary(call, &operation);
}
enum native_outcome native_fs_temporary_folder(struct native_call *call)
{
    static const struct native_fs_operation operation = {
        "fs.temporary_folder", PATH_WRITE, native_fs_work_temporary_folder, native_fs_result_temporary};
    return native_fs_temporary(call, &operation);
}

#undef NATIVE_FS_POLL_MS
