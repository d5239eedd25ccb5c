/* SPDX-License-Identifier: MIT
 *
 * vm/run/task_join.c: waiting for tasks: task.wait, task.all, task.race, task.cancel.
 *
 * In:   handles of tasks. Out: results, or the error that decided; the others are then stopped and waited for, so that
 *       nothing goes on behind the waiter's back.
 * Invariant: one waiter per task at a time. A result is taken the moment its task ends; when the owner took it the task
 *       is freed then, else it stays for the owner. So a join holds running tasks only. When the waiter is
 *       stopped meanwhile, what it took goes with it.
 */
#include "vm/run/task.h"

#include "vm/base/limits.h"
#include "vm/run/fiber.h"
#include "vm/run/list.h"

enum task_join_kind { TASK_JOIN_WAIT, TASK_JOIN_ALL, TASK_JOIN_RACE, TASK_JOIN_CANCEL };

struct task_join {
    struct vm *vm;
    struct fiber *waiter;
    wait_ticket ticket;
    enum task_join_kind kind;
    bool waiting; /* the waiter is parked; else the native has not returned yet */
    bool decided; /* `value` is the outcome, once the others have ended */
    enum fiber_resume resume;
    cy_value value; /* owned */
    uint32_t count;
    uint32_t left;
    struct {
        struct task *task; /* NULL once it has ended */
        cy_value result;   /* owned */
    } items[];
};

static const char *task_join_name(enum task_join_kind kind)
{
    static const char *const names[] = {"task.wait", "task.all", "task.race", "task.cancel"};
    return names[kind];
}

static size_t task_join_bytes(uint32_t count)
{
    struct task_join *join;
    return sizeof *join + count * sizeof join->items[0];
}

static void task_join_free(struct task_join *join)
{
    struct vm *vm = join->vm;
    for (uint32_t i = 0; i < join->count; i++) {
        if (join->items[i].task) join->items[i].task->join = NULL;
        value_unref(vm, join->items[i].result);
    }
    value_unref(vm, join->value);
    heap_free(vm, join, task_join_bytes(join->count));
}

static void task_join_cancelled(void *operation) { task_join_free(operation); }

/* -- what an end means ----------------------------------------------------------------------------------- */

/* Settles the outcome; the tasks still running are told to stop, and how they end does not matter. */
static void task_join_decide(struct task_join *join, enum fiber_resume resume, cy_value owned_value)
{
    join->decided = true;
    join->resume = resume;
    join->value = owned_value;
    for (uint32_t i = 0; i < join->count; i++) {
        struct task *task = join->items[i].task;
        if (!task || task->unwanted) continue;
        task->unwanted = true;
        if (task->fiber) vm_stop_tree(join->vm, task->fiber, CY_ERR_STOP_CANCELLED);
    }
}

/* The value that the waiter gets, or its error. */
static enum fiber_resume task_join_outcome(struct task_join *join, cy_value *owned_out)
{
    struct vm *vm = join->vm;
    *owned_out = join->value;
    join->value = value_nil();
    if (join->decided || join->kind != TASK_JOIN_ALL) return join->decided ? join->resume : RESUME_RESULT;
    cy_err err = list_new(vm, join->count, owned_out);
    for (uint32_t i = 0; i < join->count && !cy_failed(err); i++) {
        err = list_append(vm, owned_out, join->items[i].result);
        join->items[i].result = value_nil();
    }
    if (!cy_failed(err)) return RESUME_RESULT;
    value_unref(vm, *owned_out);
    *owned_out = error_make(vm, err, cy_bytes_from_text(cy_err_text(err, vm_is_korean(vm))), value_nil());
    return RESUME_ERROR;
}

static void task_join_take(struct task_join *join, uint32_t index)
{
    struct task *task = join->items[index].task;
    bool unwanted = task->unwanted;
    cy_value value;
    /* Who only borrows the handle gets the value and leaves it to the owner. */
    bool taken = join->waiter == task->parent || unwanted;
    enum fiber_resume resume = taken ? task_take_result(join->vm, task, join->waiter, &value)
                                     : task_read_result(join->vm, task, &value);
    task->join = NULL;
    join->items[index].task = NULL;
    join->left--;
    if (taken) task_free(join->vm, task);
    if (join->decided || unwanted)
        value_unref(join->vm, value);
    else if (resume == RESUME_ERROR || join->kind != TASK_JOIN_ALL)
        task_join_decide(join, resume, value);
    else
        join->items[index].result = value;
}

void task_join_note(struct vm *vm, struct task *task)
{
    struct task_join *join = task->join;
    task_join_take(join, task->join_index);
    if (!join->waiting || join->left > 0) return;
    cy_value value;
    enum fiber_resume resume = task_join_outcome(join, &value);
    wait_ticket ticket = join->ticket;
    task_join_free(join);
    if (resume == RESUME_RESULT)
        vm_complete(vm, ticket, value);
    else
        vm_complete_error(vm, ticket, value);
}

/* -- beginning to wait ----------------------------------------------------------------------------------- */

static bool task_join_is_above(const struct fiber *fiber, const struct task *task)
{
    /* Who is above was made before: a parent that waits for its child, the usual case, looks at nobody (fiber_ring, a
     * chain of 100 tasks: 2.3 times as fast). */
    if (task->fiber->serial > fiber->serial) return false;
    for (const struct fiber *at = fiber; at; at = at->task ? at->task->parent : NULL)
        if (task->fiber == at) return true;
    return false;
}

static enum native_outcome task_join_refuse(struct native_call *call, cy_err err, enum task_join_kind kind,
                                            enum vm_message message)
{
    const char *text = vm_message_text(message, vm_is_korean(call->vm));
    struct builder words;
    builder_init(&words);
    if (message == MESSAGE_TASK_OWN)
        builder_printf(&words, text, task_join_name(kind), (long long)LIMIT_TASK_RESULTS);
    else
        builder_printf(&words, text, task_join_name(kind));
    native_fail(call, err, "%.*s", CY_BYTES_ARG(builder_view(&words)));
    builder_fini(&words);
    return NATIVE_FAIL;
}

/* Puts a task into the join; NATIVE_FAIL when it cannot be waited for. */
static enum native_outcome task_join_add(struct native_call *call, struct task_join *join, cy_value handle)
{
    struct task *task = task_of_handle(call->vm, handle);
    if (!task) return task_join_refuse(call, CY_ERR(CLOSED), join->kind, MESSAGE_TASK_OWN);
    if (task->join == join) return task_join_refuse(call, CY_ERR(VALUE), join->kind, MESSAGE_TASK_TWICE);
    if (task->fiber && task_join_is_above(call->fiber, task))
        return task_join_refuse(call, CY_ERR(VALUE), join->kind, MESSAGE_TASK_SELF);
    if (task->join) return task_join_refuse(call, CY_ERR(VALUE), join->kind, MESSAGE_TASK_WAITED);
    task->join = join;
    task->join_index = join->count;
    join->items[join->count].task = task;
    join->items[join->count++].result = value_nil();
    join->left++;
    return NATIVE_DONE;
}

static enum native_outcome task_join_new(struct native_call *call, enum task_join_kind kind, uint32_t count,
                                         struct task_join **join_out)
{
    struct task_join *join = heap_alloc(call->vm, task_join_bytes(count));
    if (!join)
        return native_fail(call, CY_ERR(NO_MEMORY), "%s: %s", task_join_name(kind),
                           cy_err_text(CY_ERR(NO_MEMORY), vm_is_korean(call->vm)));
    *join = (struct task_join){
        .vm = call->vm, .waiter = call->fiber, .kind = kind, .value = value_nil(), .count = 0};
    *join_out = join;
    return NATIVE_DONE;
}

/* Looks at what has ended already, then waits for the rest. */
static enum native_outcome task_join_begin(struct native_call *call, struct task_join *join)
{
    if (join->kind == TASK_JOIN_CANCEL) task_join_decide(join, RESUME_RESULT, value_nil());
    for (uint32_t i = 0; i < join->count; i++)
        if (join->items[i].task && !join->items[i].task->fiber) task_join_take(join, i);
    if (join->left > 0) {
        join->waiting = true;
        join->ticket = native_wait(call, task_join_cancelled, join);
        return NATIVE_WAIT;
    }
    cy_value value;
    enum fiber_resume resume = task_join_outcome(join, &value);
    task_join_free(join);
    if (resume == RESUME_RESULT) return native_return(call, value);
    call->error = value;
    return NATIVE_FAIL;
}

static enum native_outcome task_join_one(struct native_call *call, enum task_join_kind kind)
{
    struct task_join *join = NULL;
    if (task_join_new(call, kind, 1, &join) == NATIVE_FAIL) return NATIVE_FAIL;
    if (task_join_add(call, join, call->args[0]) == NATIVE_DONE) return task_join_begin(call, join);
    join->count = join->left = 0;
    heap_free(call->vm, join, task_join_bytes(1));
    return NATIVE_FAIL;
}

static enum native_outcome task_join_list(struct native_call *call, enum task_join_kind kind)
{
    struct task_join *join = NULL;
    uint32_t count = (uint32_t)list_count(call->args[0]);
    native_charge(call, count / 4);
    if (count == 0 && kind == TASK_JOIN_RACE)
        return task_join_refuse(call, CY_ERR(VALUE), kind, MESSAGE_TASK_NONE);
    if (task_join_new(call, kind, count, &join) == NATIVE_FAIL) return NATIVE_FAIL;
    enum native_outcome outcome = NATIVE_DONE;
    for (uint32_t i = 0; i < count && outcome == NATIVE_DONE; i++) {
        cy_value item = list_get(call->args[0], i);
        if (item.tag == TAG_HANDLE) {
            outcome = task_join_add(call, join, item);
        } else {
            outcome =
                native_fail(call, CY_ERR(TYPE), vm_message_text(MESSAGE_TASK_ITEM, vm_is_korean(call->vm)),
                            task_join_name(kind), i + 1, value_kind_text(call->vm, item));
        }
    }
    if (outcome == NATIVE_DONE) return task_join_begin(call, join);
    for (uint32_t i = 0; i < join->count; i++) join->items[i].task->join = NULL;
    heap_free(call->vm, join, task_join_bytes(count));
    return NATIVE_FAIL;
}

enum native_outcome task_wait(struct native_call *call) { return task_join_one(call, TASK_JOIN_WAIT); }
enum native_outcome task_all(struct native_call *call) { return task_join_list(call, TASK_JOIN_ALL); }
enum native_outcome task_race(struct native_call *call) { return task_join_list(call, TASK_JOIN_RACE); }
enum native_outcome task_cancel(struct native_call *call) { return task_join_one(call, TASK_JOIN_CANCEL); }
