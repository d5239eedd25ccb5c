/* SPDX-License-Identifier: MIT
 *
 * vm/run/task.c: spawned fibers as their parent sees them.
 *
 * In:   SPAWN, task.wait, the end of fibers.
 * Out:  results and errors to whoever waits.
 * Invariant: a task is in parent->children until its result was taken or the parent has ended; a parent
 *       ends after all of its children. An error that nobody waited for becomes the parent's.
 */
#include "vm/run/task.h"

#include "vm/run/fiber.h"
#include "vm/run/handle.h"
#include "vm/run/interp_slow.h"

static void task_handle_closed(struct vm *vm, void *object)
{
    (void)vm;
    ((struct task *)object)->handle = value_nil();
}
static const struct handle_type task_handle_type = {.name = "task", .close = task_handle_closed};

static void task_unlink(struct task *task)
{
    if (task->next) task->next->previous = task->previous;
    if (task->previous)
        task->previous->next = task->next;
    else
        task->parent->children = task->next;
}

static void task_free(struct vm *vm, struct task *task)
{
    CHECK(!task->fiber);
    task_unlink(task);
    handle_close(vm, task->handle);
    value_unref(vm, task->result);
    heap_free(vm, task, sizeof *task);
}

/* -- spawn ----------------------------------------------------------------------------------------------- */

static bool task_spawn_failed(struct vm *vm, cy_err err, const cy_value *window, uint32_t arg_count)
{
    cy_value function = window[0];
    if (cy_is(err, CY_ERR_TYPE))
        return error_raise(vm, CY_ERR(CALL), MESSAGE_NOT_CALLABLE, value_kind_text(vm, function));
    if (!cy_is(err, CY_ERR_CALL)) return error_raise_plain(vm, err);
    struct function_object *object = function_of(function);
    if (object->native) return error_raise(vm, err, MESSAGE_NOT_CALLABLE, "native (spawn)");
    if (object->instance != vm->running->instance) return error_raise(vm, err, MESSAGE_OTHER_INSTANCE);
    const struct code_function *callee = &object->instance->functions[object->index];
    if (arg_count >= callee->required_count && arg_count <= callee->param_count)
        return slow_absent_argument(vm, object->instance, callee, window + 1);
    return slow_wrong_count(vm, object->instance, object->index, arg_count);
}

bool task_spawn(struct fiber *fiber, cy_value *window, uint32_t arg_count)
{
    struct vm *vm = fiber->vm;
    if (fiber->initialising) return error_raise(vm, CY_ERR(UNSUPPORTED), MESSAGE_INIT_WAIT, "spawn");
    struct task *task = heap_alloc(vm, sizeof *task);
    if (!task) return error_raise_plain(vm, CY_ERR(NO_MEMORY));
    struct fiber *child = NULL;
    cy_value handle = value_nil();
    cy_err err = handle_open(vm, &task_handle_type, task, fiber, &handle);
    if (!cy_failed(err)) err = fiber_new(vm, fiber->instance, &child);
    if (!cy_failed(err)) err = fiber_begin(child, window[0], window + 1, arg_count);
    if (cy_failed(err)) {
        *task = (struct task){.handle = value_nil()};
        handle_close(vm, handle);
        if (child) fiber_recycle(vm, child);
        heap_free(vm, task, sizeof *task);
        if (cy_is(err, CY_ERR_TOO_MANY))
            return error_raise_limit(vm, err, handle.tag == TAG_NIL ? "HANDLES" : "TASKS");
        return task_spawn_failed(vm, err, window, arg_count);
    }
    *task = (struct task){
        .parent = fiber, .fiber = child, .handle = handle, .result = value_nil(), .next = fiber->children};
    if (task->next) task->next->previous = task;
    fiber->children = task;
    fiber->child_running_count++;
    child->task = task;
    vm->counters.tasks_started++;
    for (uint32_t i = 1; i <= arg_count; i++) {
        if (window[i].tag == TAG_HANDLE) handle_move(vm, window[i], fiber, child);
        slow_clear(vm, &window[i]);
    }
    slow_put(vm, &window[0], handle);
    fiber_make_ready(vm, child);
    return true;
}

/* -- waiting and ending ---------------------------------------------------------------------------------- */

/* What a waiter gets: the result, or an error. */
static enum fiber_resume task_take_result(struct vm *vm, struct task *task, cy_value *owned_out)
{
    if (task->outcome == CALL_STOPPED) {
        struct builder text;
        builder_init(&text);
        const char *reason = cy_err_text((cy_err){(uint32_t)task->result.as.i, 0}, vm_is_korean(vm));
        builder_printf(&text, vm_message_text(MESSAGE_TASK_STOPPED, vm_is_korean(vm)), reason);
        *owned_out = error_make(vm, CY_ERR(CANCELLED), builder_view(&text), value_nil());
        builder_fini(&text);
        return RESUME_ERROR;
    }
    *owned_out = task->result;
    task->result = value_nil();
    return task->outcome == CALL_RETURNED ? RESUME_RESULT : RESUME_ERROR;
}

void task_ended(struct vm *vm, struct fiber *fiber)
{
    struct task *task = fiber->task;
    task->fiber = NULL;
    task->outcome = fiber->outcome;
    task->result = fiber->result;
    fiber->result = value_nil();
    if (task->outcome == CALL_STOPPED) task->result = value_int(fiber->stop);
    if (!task->waited) return;
    cy_value value;
    enum fiber_resume resume = task_take_result(vm, task, &value);
    struct fiber *waiter = vm->fibers[task->waiter.fiber_index];
    CHECK(waiter->state == FIBER_WAITING && waiter->generation == task->waiter.generation);
    fiber_wake(vm, waiter, resume, value);
    task_free(vm, task);
}

static void task_wait_cancelled(void *operation) { ((struct task *)operation)->waited = false; }

enum native_outcome task_wait(struct native_call *call)
{
    struct vm *vm = call->vm;
    bool korean = vm_is_korean(vm);
    struct task *task = handle_object(vm, call->args[0], &task_handle_type);
    if (!task) return native_fail(call, CY_ERR(CLOSED), "%s", vm_message_text(MESSAGE_TASK_OWN, korean));
    if (task->fiber == call->fiber)
        return native_fail(call, CY_ERR(VALUE), "%s", vm_message_text(MESSAGE_TASK_SELF, korean));
    if (task->waited)
        return native_fail(call, CY_ERR(VALUE), "%s", vm_message_text(MESSAGE_TASK_WAITED, korean));
    if (!task->fiber) {
        cy_value value;
        enum fiber_resume resume = task_take_result(vm, task, &value);
        task_free(vm, task);
        if (resume == RESUME_RESULT) return native_return(call, value);
        call->error = value;
        return NATIVE_FAIL;
    }
    task->waited = true;
    task->waiter = native_wait(call, task_wait_cancelled, task);
    return NATIVE_WAIT;
}

void task_join_children(struct vm *vm, struct fiber *fiber)
{
    while (fiber->children) {
        struct task *task = fiber->children;
        /* A stop counts like an error: a check in a child that ran out of CPU must not pass for one that passed. */
        if (task->outcome != CALL_RETURNED && fiber->outcome == CALL_RETURNED) {
            cy_value error;
            (void)task_take_result(vm, task, &error);
            fiber->outcome = CALL_FAILED;
            value_unref(vm, fiber->result);
            fiber->result = error;
        }
        task_free(vm, task);
    }
}

/* Asks the whole tree at once: a child that is asked only when its parent has ended has spawned another one by then,
 * and a task that spawns itself would outrun every cancel. */
void task_cancel_children(struct vm *vm, struct fiber *fiber)
{
    struct task *task = fiber->children;
    struct fiber *top = fiber;
    while (task || fiber != top) {
        if (!task) {
            struct task *up = fiber->task;
            fiber = up->parent;
            task = up->next;
            continue;
        }
        struct fiber *child = task->fiber;
        if (child) vm_ask_to_stop(vm, child);
        if (child && child->children) {
            fiber = child;
            task = child->children;
            continue;
        }
        task = task->next;
    }
}
