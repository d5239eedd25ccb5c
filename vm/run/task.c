/* SPDX-License-Identifier: MIT
 *
 * vm/run/task.c: spawned fibers as their parent sees them.
 *
 * In:   SPAWN, the end of fibers.
 * Out:  results and errors, for whoever waits (task_join.c) or for the parent.
 * Invariant: a task's parent is whom its handle belongs to. A task is in parent->children while it runs, and in the
 *       list of ended ones until its result was taken, or nobody can take it any more, or the parent has ended: none
 *       is dropped, and a parent with too many may not spawn more of them. A parent ends after all of its children. An
 *       error that nobody waited for becomes the parent's.
 */
#include "vm/run/task.h"

#include "vm/base/limits.h"
#include "vm/run/fiber.h"
#include "vm/run/handle.h"
#include "vm/run/interp_slow.h"

/* Of the budget, for one spawn: what making a fiber takes. */
enum { TASK_SPAWN_STEPS = 20 };

static void task_handle_closed(struct vm *vm, void *object)
{
    (void)vm;
    ((struct task *)object)->handle = value_nil();
}
static const struct handle_type task_handle_type = {.name = "task", .close = task_handle_closed};

struct task *task_of_handle(struct vm *vm, cy_value handle)
{
    return handle_object(vm, handle, &task_handle_type);
}

bool task_was_cancelled(const struct vm *vm, cy_value handle)
{
    if (handle.tag != TAG_HANDLE) return false;
    for (uint32_t i = 0; i < LIMIT_TASKS_CANCELLED; i++) /* no handle is 0: generations begin at 1 */
        if (vm->tasks_cancelled[i] == handle.as.handle) return true;
    return false;
}

/* -- the two lists of a parent --------------------------------------------------------------------------- */

static void task_link_running(struct task *task, struct fiber *parent)
{
    task->parent = parent;
    task->previous = NULL;
    task->next = parent->children;
    if (task->next) task->next->previous = task;
    parent->children = task;
}

static void task_link_ended(struct task *task, struct fiber *parent)
{
    task->parent = parent;
    task->next = NULL;
    task->previous = parent->ended_last;
    if (task->previous)
        task->previous->next = task;
    else
        parent->ended_first = task;
    parent->ended_last = task;
    parent->ended_count++;
}

/* From the list that it is in: running while it has its fiber. */
static void task_unlink(struct task *task)
{
    struct fiber *parent = task->parent;
    bool running = task->fiber != NULL;
    if (task->next)
        task->next->previous = task->previous;
    else if (!running)
        parent->ended_last = task->previous;
    if (task->previous)
        task->previous->next = task->next;
    else if (running)
        parent->children = task->next;
    else
        parent->ended_first = task->next;
    if (!running) parent->ended_count--;
}

void task_free(struct vm *vm, struct task *task)
{
    CHECK(!task->fiber && !task->join_first);
    task_unlink(task);
    if (task->unwanted && task->handle.tag == TAG_HANDLE) {
        vm->tasks_cancelled[vm->tasks_cancelled_next] = task->handle.as.handle;
        vm->tasks_cancelled_next = (vm->tasks_cancelled_next + 1) % LIMIT_TASKS_CANCELLED;
    }
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

/* The fiber and the handle of a new task; what was made is taken back on failure. */
static cy_err task_make(struct fiber *fiber, struct task *task, const cy_value *window, uint32_t arg_count,
                        const char **limit_out)
{
    struct vm *vm = fiber->vm;
    struct fiber *child = NULL;
    *task = (struct task){.handle = value_nil(), .result = value_nil()};
    *limit_out = "HANDLES";
    cy_err err = handle_open(vm, &task_handle_type, task, fiber, &task->handle);
    if (!cy_failed(err)) *limit_out = "TASKS";
    if (!cy_failed(err)) err = fiber_new(vm, fiber->instance, &child);
    if (!cy_failed(err)) err = fiber_begin(child, window[0], window + 1, arg_count);
    if (!cy_failed(err)) err = deadline_set(vm, child, fiber->deadline_ns);
    if (!cy_failed(err)) {
        task->fiber = child;
        return CY_OK;
    }
    handle_close(vm, task->handle);
    if (child) fiber_recycle(vm, child);
    return err;
}

/* A handle that the spawner owns moves to the child; a task goes along with its handle, for who can wait for it must
 * be who ends after it. */
static void task_move_argument(struct vm *vm, cy_value handle, struct fiber *from, struct fiber *to)
{
    struct task *moved = task_of_handle(vm, handle);
    handle_move(vm, handle, from, to);
    if (!moved || moved->parent != from || moved->fiber == to) return;
    task_unlink(moved);
    if (!moved->fiber) {
        task_link_ended(moved, to);
        return;
    }
    task_link_running(moved, to);
    from->child_running_count--;
    to->child_running_count++;
}

bool task_spawn(struct fiber *fiber, cy_value *window, const struct run_step *step)
{
    struct vm *vm = fiber->vm;
    uint32_t arg_count = step->x;
    if (fiber->initialising) return error_raise(vm, CY_ERR(UNSUPPORTED), MESSAGE_INIT_WAIT, "spawn");
    bool unnamed = step[1].op == RUN_DROP && step[1].b == step->b;
    if (!unnamed && fiber->ended_count >= LIMIT_TASK_RESULTS)
        return error_raise(vm, CY_ERR(LIMIT), MESSAGE_TASK_RESULTS, (long long)LIMIT_TASK_RESULTS);
    struct task *task = heap_alloc(vm, sizeof *task);
    if (!task) return error_raise_plain(vm, CY_ERR(NO_MEMORY));
    const char *limit;
    cy_err err = task_make(fiber, task, window, arg_count, &limit);
    if (cy_failed(err)) {
        heap_free(vm, task, sizeof *task);
        if (cy_is(err, CY_ERR_TOO_MANY)) return error_raise_limit(vm, err, limit);
        return task_spawn_failed(vm, err, window, arg_count);
    }
    struct fiber *child = task->fiber;
    task->unnamed = unnamed;
    task->spawn_function = (uint32_t)(fiber->frame->function - fiber->instance->functions);
    task->spawn_step = (uint32_t)(step - fiber->frame->function->code);
    task_link_running(task, fiber);
    fiber->child_running_count++;
    child->task = task;
    vm->counters.tasks_started++;
    if (!fiber->is_main) child->group = fiber->group;
    for (uint32_t i = 1; i <= arg_count; i++) {
        if (window[i].tag == TAG_HANDLE) task_move_argument(vm, window[i], fiber, child);
        slow_clear(vm, &window[i]);
    }
    slow_put(vm, &window[0], task->handle);
    vm_charge(vm, TASK_SPAWN_STEPS);
    fiber_make_ready(vm, child);
    return true;
}

/* -- the end of a task ----------------------------------------------------------------------------------- */

/* How a stopped task fails whoever waits for it. */
static cy_err task_stop_reason(enum cy_err_code stop)
{
    switch (stop) {
    case CY_ERR_STOP_DEADLINE: return CY_ERR(TIMEOUT);
    case CY_ERR_STOP_CPU: return CY_ERR(LIMIT);
    case CY_ERR_STOP_MEMORY: return CY_ERR(NO_MEMORY);
    default: return CY_ERR(CANCELLED);
    }
}

static cy_value task_stopped_error(struct vm *vm, cy_value record)
{
    bool is_told = value_is_error(vm, record);
    cy_err stop = is_told ? error_reason(vm, record) : CY_ERR(STOP_CANCELLED);
    cy_bytes why = is_told ? error_message(vm, record) : CY_BYTES_NONE;
    if (why.count == 0) why = cy_bytes_from_text(cy_err_text(stop, vm_is_korean(vm)));
    struct builder text;
    builder_init(&text);
    builder_printf(&text, vm_message_text(MESSAGE_TASK_STOPPED, vm_is_korean(vm)), CY_BYTES_ARG(why));
    cy_value error =
        error_make(vm, task_stop_reason((enum cy_err_code)stop.code), builder_view(&text), value_nil());
    builder_fini(&text);
    if (value_is_error(vm, record) && value_is_unshared(error))
        slow_put(vm, &record_of(error)->fields[ERROR_FIELD_STACK],
                 value_ref(record_of(record)->fields[ERROR_FIELD_STACK]));
    return error;
}

enum fiber_resume task_take_result(struct vm *vm, struct task *task, struct fiber *waiter,
                                   cy_value *owned_out)
{
    cy_value value = task->result;
    task->result = value_nil();
    if (task->outcome == CALL_STOPPED) {
        *owned_out = task_stopped_error(vm, value);
        value_unref(vm, value);
    } else
        *owned_out = value;
    if (task->outcome == CALL_RETURNED) return RESUME_RESULT;
    places_cross(vm, *owned_out, task->parent->instance, task->spawn_function, task->spawn_step, waiter);
    return RESUME_ERROR;
}

enum fiber_resume task_read_result(struct vm *vm, struct task *task, cy_value *owned_out)
{
    task->heard = true;
    /* Places are not crossed: the record is the owner's too. */
    *owned_out =
        task->outcome == CALL_STOPPED ? task_stopped_error(vm, task->result) : value_ref(task->result);
    return task->outcome == CALL_RETURNED ? RESUME_RESULT : RESUME_ERROR;
}

/* Nobody will ask for it. An error stays with the parent; a stop counts like one: a check in a child that ran out of
 * CPU must not pass for one that passed. */
static void task_forget(struct vm *vm, struct task *task)
{
    struct fiber *parent = task->parent;
    bool failed = task->outcome != CALL_RETURNED && !task->unwanted && !task->heard;
    if (failed && parent->child_error.tag == TAG_NIL)
        (void)task_take_result(vm, task, NULL, &parent->child_error);
    task_free(vm, task);
}

void task_ended(struct vm *vm, struct fiber *fiber)
{
    struct task *task = fiber->task;
    struct fiber *parent = task->parent;
    task_unlink(task);
    task->fiber = NULL;
    task->outcome = fiber->outcome;
    task->result = fiber->result;
    fiber->result = value_nil();
    task_link_ended(task, parent);
    if (task->join_first)
        task_join_note(vm, task);
    else if (task->unnamed || task->unwanted)
        task_forget(vm, task);
}

void task_join_children(struct vm *vm, struct fiber *fiber)
{
    CHECK(!fiber->children);
    while (fiber->ended_first) task_forget(vm, fiber->ended_first);
    cy_value error = fiber->child_error;
    fiber->child_error = value_nil();
    if (error.tag == TAG_NIL) return;
    if (fiber->outcome != CALL_RETURNED) {
        value_unref(vm, error); /* its own end says more */
        return;
    }
    fiber->outcome = CALL_FAILED;
    value_unref(vm, fiber->result);
    fiber->result = error;
}

void task_abandon(struct vm *vm, struct fiber *fiber)
{
    while (fiber->children) {
        struct task *task = fiber->children;
        task_unlink(task);
        task->fiber->task = NULL;
        task->fiber = NULL;
        task_link_ended(task, fiber);
    }
    while (fiber->ended_first) task_free(vm, fiber->ended_first);
}

/* Asks the whole tree at once: a child that is asked only when its parent has ended has spawned another one by then,
 * and a task that spawns itself would outrun every cancel. */
void task_stop_children(struct vm *vm, struct fiber *fiber, enum cy_err_code reason)
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
        vm_ask_to_stop(vm, child, reason);
        if (child->children) {
            fiber = child;
            task = child->children;
            continue;
        }
        task = task->next;
    }
}
