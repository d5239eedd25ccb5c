/* SPDX-License-Identifier: MIT
 *
 * vm/run/schedule.c: whose turn it is.
 *
 *   vm->group_first ─► group ─► group ─► ...        each group: ready_first ─► fiber ─► fiber
 *
 * In:   fibers that became ready. Out: turns, first in, first out, in two levels.
 * Why:  with one queue, a handler that spawns a hundred thousand tasks would let every other request wait for all of
 *       them. A group gets one budget per round, however many fibers it has.
 * Invariant: a group is in the queue when one of its fibers is ready, or it is having its turn just now.
 */
#include "vm/base/limits.h"
#include "vm/run/fiber.h"

/* What a turn costs beside its steps, so that a hundred fibers that only wake and wait are a slice too. */
enum { SCHEDULE_TURN_STEPS = 100 };

static void schedule_queue_group(struct vm *vm, struct fiber *group)
{
    group->group_queued = true;
    group->group_next = NULL;
    if (vm->group_last)
        vm->group_last->group_next = group;
    else
        vm->group_first = group;
    vm->group_last = group;
    vm->group_count++;
}

void fiber_make_ready(struct vm *vm, struct fiber *fiber)
{
    struct fiber *group = fiber->group;
    fiber->state = FIBER_READY;
    fiber->next = NULL;
    if (group->ready_last)
        group->ready_last->next = fiber;
    else
        group->ready_first = fiber;
    group->ready_last = fiber;
    if (!group->group_queued) schedule_queue_group(vm, group);
    if (!vm->in_run && !vm->ready_told && vm->options.on_ready) {
        vm->ready_told = true;
        vm->options.on_ready(vm->options.host);
    }
}

static struct fiber *schedule_next_fiber(struct fiber *group)
{
    struct fiber *fiber = group->ready_first;
    group->ready_first = fiber->next;
    if (!group->ready_first) group->ready_last = NULL;
    return fiber;
}

void schedule_group_turn(struct vm *vm)
{
    struct fiber *group = vm->group_first;
    vm->group_first = group->group_next;
    if (!vm->group_first) vm->group_last = NULL;
    vm->group_count--;
    uint64_t serial = group->serial, steps_before = vm->counters.instructions, spent = 0;
    while (group->ready_first && spent < LIMIT_BUDGET_STEPS) {
        struct fiber *fiber = schedule_next_fiber(group);
        fiber_turn(vm, fiber);
        if (group->serial != serial || group->state == FIBER_POOLED)
            return; /* it ended, and is perhaps another */
        spent = vm->counters.instructions - steps_before;
        steps_before -= SCHEDULE_TURN_STEPS;
    }
    group->group_queued = false;
    if (group->ready_first) schedule_queue_group(vm, group);
}

void schedule_forget_all(struct vm *vm)
{
    vm->group_first = vm->group_last = NULL;
    vm->group_count = 0;
}
