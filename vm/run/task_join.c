/* SPDX-License-Identifier: MIT
 *
 * vm/run/task_join.c: waiting for tasks: task.wait, task.all, task.race, task.cancel.
 *
 * In:   handles of tasks. Out: results, or the error that decided; the others are then stopped and waited for, so that
 *       nothing goes on behind the waiter's back.
 * Invariant: a result is taken the moment its task ends, by all who wait, the owner last: then the task is freed, and
 *       else it stays for the owner. So a join holds running tasks only. When the waiter is stopped meanwhile, what
 *       it took goes with it, and its places in the lists of the tasks.
 */
#include "vm/run/task.h"

#include "vm/base/limits.h"
#include "vm/run/fiber.h"
#include "vm/run/list.h"

enum task_join_kind { TASK_JOIN_WAIT, TASK_JOIN_ALL, TASK_JOIN_RACE, TASK_JOIN_CANCEL };

/* One task of a join, and its place among those who wait for that task. */
struct task_join_item {
    struct task_join *join;
    struct task *task; /* NULL once it has ended */
    cy_value result;   /* owned */
    struct task_join_item *previous, *next;
};

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
    struct task_join_item items[];
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

static void task_join_link(struct task_join_item *item, struct task *task)
{
    item->task = task;
    item->previous = task->join_last;
    item->next = NULL;
    *(item->previous ? &item->previous->next : &task->join_first) = item;
    task->join_last = item;
}

static void task_join_unlink(struct task_join_item *item)
{
    struct task *task = item->task;
    *(item->previous ? &item->previous->next : &task->join_first) = item->next;
    *(item->next ? &item->next->previous : &task->join_last) = item->previous;
    item->task = NULL;
}

static void task_join_free(struct task_join *join)
{
    struct vm *vm = join->vm;
    for (uint32_t i = 0; i < join->count; i++) {
        if (join->items[i].task) task_join_unlink(&join->items[i]);
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

/* The task of the item has ended. Returns whether that freed it: the owner gets the value itself; who only borrows the
 * handle leaves it to the owner, who may have asked for nothing but the end. */
static bool task_join_take(struct task_join_item *item)
{
    struct task_join *join = item->join;
    struct vm *vm = join->vm;
    struct task *task = item->task;
    bool owner = join->waiter == task->parent;
    cy_value value;
    enum fiber_resume resume =
        owner ? task_take_result(vm, task, join->waiter, &value) : task_read_result(vm, task, &value);
    task_join_unlink(item);
    join->left--;
    bool freed = owner || (task->unwanted && !task->join_first);
    if (freed) task_free(vm, task);
    if (join->decided)
        value_unref(vm, value);
    else if (resume == RESUME_ERROR || join->kind != TASK_JOIN_ALL)
        task_join_decide(join, resume, value);
    else
        item->result = value;
    return freed;
}

static void task_join_complete(struct task_join *join)
{
    struct vm *vm = join->vm;
    cy_value value;
    enum fiber_resume resume = task_join_outcome(join, &value);
    wait_ticket ticket = join->ticket;
    task_join_free(join);
    if (resume == RESUME_RESULT)
        vm_complete(vm, ticket, value);
    else
        vm_complete_error(vm, ticket, value);
}

/* Who is told next: in the order of asking, the owner last, because the task goes with it. */
static struct task_join_item *task_join_next(const struct task *task)
{
    struct task_join_item *item = task->join_first;
    return item && item->next && item->join->waiter == task->parent ? item->next : item;
}

/* A decided race stops others, and these may wait here as well: the list is looked at anew for each. */
void task_join_note(struct vm *vm, struct task *task)
{
    bool freed = false;
    for (struct task_join_item *item; !freed && (item = task_join_next(task));) {
        struct task_join *join = item->join;
        freed = task_join_take(item);
        if (join->waiting && join->left == 0) task_join_complete(join);
    }
    if (!freed && task->unwanted) task_free(vm, task);
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
    return native_fail(call, err, vm_message_text(message, vm_is_korean(call->vm)), task_join_name(kind));
}

/* -- circles --------------------------------------------------------------------------------------------- */

/* Whether nothing but its own running keeps the task from its end, as with a child just spawned, the usual case. */
static bool task_join_is_free(const struct fiber *fiber)
{
    return !fiber->children && !(fiber->state == FIBER_WAITING && fiber->cancel == task_join_cancelled);
}

static void task_join_found(struct vm *vm, struct fiber *fiber, struct fiber **last)
{
    if (fiber->circle_search == vm->circle_search) return;
    fiber->circle_search = vm->circle_search;
    fiber->circle_next = NULL;
    (*last)->circle_next = fiber;
    *last = fiber;
}

/* Marks every fiber that cannot end before the calling one: its parent, who waits for it, and theirs in turn. Each
 * once, and charged, so that the turn ends behind a long search; the memory of a group bounds how many there are. */
static void task_join_mark_dependents(struct native_call *call)
{
    struct vm *vm = call->vm;
    struct fiber *last = call->fiber;
    uint64_t steps = 0;
    last->circle_search = ++vm->circle_search;
    last->circle_next = NULL;
    for (struct fiber *at = call->fiber; at; at = at->circle_next) {
        steps++;
        if (!at->task) continue;
        task_join_found(vm, at->task->parent, &last);
        for (struct task_join_item *item = at->task->join_first; item; item = item->next, steps++)
            task_join_found(vm, item->join->waiter, &last);
    }
    native_charge(call, steps);
}

/* Whether the wait would never end, because a task of the join cannot end before the one that waits. A race counts like
 * the others: such a task cannot win it. As every wait is looked at when it begins, no circle ever stands, and the one
 * that would close it is the one that is told. */
static bool task_join_closes_circle(struct native_call *call, const struct task_join *join)
{
    bool marked = false;
    for (uint32_t i = 0; i < join->count; i++) {
        const struct task *task = join->items[i].task;
        if (!task || !task->fiber || task_join_is_free(task->fiber)) continue;
        if (!marked) task_join_mark_dependents(call);
        marked = true;
        if (task->fiber->circle_search == call->vm->circle_search) return true;
    }
    return false;
}

/* -- natives --------------------------------------------------------------------------------------------- */

/* Puts a task into the join; NATIVE_FAIL when it cannot be waited for. */
static enum native_outcome task_join_add(struct native_call *call, struct task_join *join, cy_value handle)
{
    struct task *task = task_of_handle(call->vm, handle);
    if (!task && task_was_cancelled(call->vm, handle))
        return task_join_refuse(call, CY_ERR(CANCELLED), join->kind, MESSAGE_TASK_CANCELLED);
    if (!task) return task_join_refuse(call, CY_ERR(CLOSED), join->kind, MESSAGE_TASK_OWN);
    if (task->join_last && task->join_last->join == join)
        return task_join_refuse(call, CY_ERR(VALUE), join->kind, MESSAGE_TASK_TWICE);
    if (task->fiber && task_join_is_above(call->fiber, task))
        return task_join_refuse(call, CY_ERR(VALUE), join->kind, MESSAGE_TASK_SELF);
    struct task_join_item *item = &join->items[join->count++];
    *item = (struct task_join_item){.join = join, .result = value_nil()};
    task_join_link(item, task);
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
    /* First: what the cancelled task waited for does not count. */
    if (join->kind == TASK_JOIN_CANCEL) task_join_decide(join, RESUME_RESULT, value_nil());
    if (task_join_closes_circle(call, join)) {
        enum task_join_kind kind = join->kind;
        task_join_free(join);
        return task_join_refuse(call, CY_ERR(VALUE), kind, MESSAGE_TASK_CIRCLE);
    }
    for (uint32_t i = 0; i < join->count; i++)
        if (join->items[i].task && !join->items[i].task->fiber) (void)task_join_take(&join->items[i]);
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
    for (uint32_t i = 0; i < join->count; i++) task_join_unlink(&join->items[i]);
    heap_free(call->vm, join, task_join_bytes(count));
    return NATIVE_FAIL;
}

enum native_outcome task_wait(struct native_call *call) { return task_join_one(call, TASK_JOIN_WAIT); }
enum native_outcome task_all(struct native_call *call) { return task_join_list(call, TASK_JOIN_ALL); }
enum native_outcome task_race(struct native_call *call) { return task_join_list(call, TASK_JOIN_RACE); }
enum native_outcome task_cancel(struct native_call *call) { return task_join_one(call, TASK_JOIN_CANCEL); }
