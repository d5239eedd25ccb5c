/* SPDX-License-Identifier: MIT
 *
 * vm/run/deadline.c: until when tasks may run.
 *
 * In:   deadlines in nanoseconds of the host's clock. Out: STOP_DEADLINE for a task, and whatever it spawned, when its
 *       time has come; the host hears the earliest time.
 * Method: a binary heap of fibers; each knows its slot. The clock is read once per vm_run, and not at all while nobody
 *       has a deadline.
 * Invariant: a fiber's deadline only ever moves to an earlier time; a child begins with its parent's.
 */
#include "vm/base/limits.h"
#include "vm/run/fiber.h"
#include "vm/run/task.h"

static void deadline_place(struct vm *vm, uint32_t slot, struct fiber *fiber)
{
    vm->deadlines[slot] = fiber;
    fiber->deadline_slot = slot + 1;
}

static void deadline_up(struct vm *vm, uint32_t slot)
{
    struct fiber *fiber = vm->deadlines[slot];
    for (; slot > 0; slot = (slot - 1) / 2) {
        struct fiber *above = vm->deadlines[(slot - 1) / 2];
        if (above->deadline_ns <= fiber->deadline_ns) break;
        deadline_place(vm, slot, above);
    }
    deadline_place(vm, slot, fiber);
}

static void deadline_down(struct vm *vm, uint32_t slot)
{
    struct fiber *fiber = vm->deadlines[slot];
    for (uint32_t below = 2 * slot + 1; below < vm->deadline_count; below = 2 * slot + 1) {
        if (below + 1 < vm->deadline_count &&
            vm->deadlines[below + 1]->deadline_ns < vm->deadlines[below]->deadline_ns)
            below++;
        if (fiber->deadline_ns <= vm->deadlines[below]->deadline_ns) break;
        deadline_place(vm, slot, vm->deadlines[below]);
        slot = below;
    }
    deadline_place(vm, slot, fiber);
}

static cy_err deadline_add(struct vm *vm, struct fiber *fiber)
{
    if (vm->deadline_count == vm->deadline_capacity) {
        uint32_t capacity = vm->deadline_capacity ? vm->deadline_capacity * 2 : 16;
        struct fiber **more =
            heap_resize(vm, vm->deadlines, vm->deadline_capacity * sizeof *more, capacity * sizeof *more);
        if (!more) return CY_ERR(NO_MEMORY);
        vm->deadlines = more;
        vm->deadline_capacity = capacity;
    }
    deadline_place(vm, vm->deadline_count++, fiber);
    return CY_OK;
}

cy_err deadline_set(struct vm *vm, struct fiber *fiber, uint64_t at_ns)
{
    if (at_ns >= fiber->deadline_ns) return CY_OK;
    uint64_t first_ns = vm->deadline_count ? vm->deadlines[0]->deadline_ns : UINT64_MAX;
    if (!fiber->deadline_slot) CY_TRY(deadline_add(vm, fiber));
    fiber->deadline_ns = at_ns;
    deadline_up(vm, fiber->deadline_slot - 1);
    if (at_ns < first_ns && vm->options.on_deadline) vm->options.on_deadline(vm->options.host, at_ns);
    return CY_OK;
}

static void deadline_remove(struct vm *vm, struct fiber *fiber)
{
    uint32_t slot = fiber->deadline_slot - 1;
    struct fiber *last = vm->deadlines[--vm->deadline_count];
    fiber->deadline_slot = 0;
    if (last == fiber) return;
    deadline_place(vm, slot, last);
    deadline_up(vm, slot);
    deadline_down(vm, last->deadline_slot - 1);
}

void deadline_clear(struct vm *vm, struct fiber *fiber)
{
    if (fiber->deadline_slot) deadline_remove(vm, fiber);
}

void deadline_expire(struct vm *vm)
{
    uint64_t now_ns = vm_clock_ns(vm);
    while (vm->deadline_count > 0 && vm->deadlines[0]->deadline_ns <= now_ns) {
        struct fiber *fiber = vm->deadlines[0];
        deadline_remove(vm, fiber); /* its deadline_ns stays: it is not to get another one */
        vm_stop_tree(vm, fiber, CY_ERR_STOP_DEADLINE);
    }
    if (vm->deadline_count > 0 && vm->options.on_deadline)
        vm->options.on_deadline(vm->options.host, vm->deadlines[0]->deadline_ns);
}

void deadline_table_free(struct vm *vm)
{
    CHECK(vm->deadline_count == 0);
    heap_free(vm, vm->deadlines, vm->deadline_capacity * sizeof *vm->deadlines);
    vm->deadlines = NULL;
    vm->deadline_capacity = 0;
}

/* -- natives --------------------------------------------------------------------------------------------- */

static enum native_outcome deadline_no_task(struct native_call *call, bool ended)
{
    const char *text = vm_message_text(ended ? MESSAGE_TASK_ENDED : MESSAGE_TASK_OWN, vm_is_korean(call->vm));
    return native_fail(call, CY_ERR(CLOSED), text, "task.deadline");
}

enum native_outcome task_deadline(struct native_call *call)
{
    struct vm *vm = call->vm;
    struct fiber *fiber = call->fiber;
    int64_t ms = call->args[0].as.i;
    if (ms < 0 || ms > LIMIT_TIMEOUT_MS)
        return native_fail(call, CY_ERR(VALUE), vm_message_text(MESSAGE_TASK_TIME, vm_is_korean(vm)),
                           "task.deadline", (long long)LIMIT_TIMEOUT_MS, (long long)ms);
    if (native_has_arg(call, 1)) {
        struct task *task = task_of_handle(vm, call->args[1]);
        if (!task || !task->fiber) return deadline_no_task(call, task != NULL);
        fiber = task->fiber;
    }
    cy_err err = deadline_set(vm, fiber, vm_clock_ns(vm) + fiber_ms((uint64_t)ms));
    if (!cy_failed(err)) return NATIVE_DONE;
    return native_fail(call, err, "task.deadline: %s", cy_err_text(err, vm_is_korean(vm)));
}

enum native_outcome task_time_left(struct native_call *call)
{
    uint64_t at_ns = call->fiber->deadline_ns, now_ns = vm_clock_ns(call->vm);
    if (at_ns == UINT64_MAX) return NATIVE_DONE;
    return native_return(call, value_int(at_ns > now_ns ? (int64_t)((at_ns - now_ns) / fiber_ms(1)) : 0));
}
