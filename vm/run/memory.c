/* SPDX-License-Identifier: MIT
 *
 * vm/run/memory.c: what a group of tasks may hold: the soft limit that ends a memory bomb, and nobody else.
 *
 * In:   the VM's count of bytes before and after a turn. Out: STOP_MEMORY for a group past its limit.
 * Method: no allocation is charged by itself. What the VM's heap grew or shrank by during a turn is the group's; so
 *       is what is freed later of the garbage that it left. One allocation of HEAP_LARGE_BYTES or more is looked at
 *       before it is made, so that a doubling string does not get to the VM's limit within one step.
 *       What a native's operation gathers outside the heap while its task waits is held: counted as the group's and as
 *       the VM's before it is allocated, and refused, not stopped, past either limit (memory_hold_grow). There is one
 *       count of it for the VM, which the heap looks at too. What an opaque value owns counts as the heap's (record.c).
 * Known: a container that is handed to another task moves no charge: who made it pays, who lets go of it last gains.
 *       The count is therefore a bound, not a balance, and a group is stopped only when the whole VM holds more than
 *       the group's limit as well.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"

enum {
    MEMORY_STOPPING_BYTES = 16 << 20, /* what defers of a stopped group may take beyond the limit */
    MEMORY_DRAIN_STEPS = 65536,       /* about a millisecond */
    MEMORY_BYTES_PER_STEP = 256,      /* a step of looking for cycles costs less than making so much did */
};

static void memory_stop(struct vm *vm, struct fiber *group) { vm_stop_tree(vm, group, CY_ERR_STOP_MEMORY); }

bool memory_may_allocate(struct vm *vm, size_t bytes)
{
    struct fiber *group = vm->running->group;
    if (group->memory_bytes_max == UINT64_MAX || vm->running->initialising) return true;
    int64_t held = group->memory_bytes + (int64_t)(vm->heap_bytes - vm->turn_heap_bytes) + (int64_t)bytes;
    bool stopping = group->stop || group->stop_wanted;
    int64_t most = (int64_t)group->memory_bytes_max + (stopping ? MEMORY_STOPPING_BYTES : 0);
    if (held <= most || vm->heap_bytes + bytes <= (uint64_t)most) return true;
    if (!stopping) memory_stop(vm, group);
    return false;
}

uint64_t memory_turn_begin(struct vm *vm)
{
    vm->turn_heap_bytes = vm->heap_bytes;
    return vm->heap_bytes;
}

static void memory_look(struct vm *vm, struct fiber *group)
{
    bool stopping = group->stop || group->stop_wanted;
    int64_t most = (int64_t)group->memory_bytes_max + (stopping ? MEMORY_STOPPING_BYTES : 0);
    if (CY_LIKELY(group->memory_bytes <= most)) return;
    /* Garbage that waits to be freed is not held. */
    uint64_t before = vm->heap_bytes;
    if (vm->dead) heap_drain(vm, MEMORY_DRAIN_STEPS);
    group->memory_bytes += (int64_t)(vm->heap_bytes - before);
    if (vm->dead || group->memory_bytes <= most || vm->heap_bytes <= (uint64_t)most) return;
    /* Nor are cells that only hold each other: a search gets some turns to find them. */
    if (!stopping && vm->search.group == group && vm->refs && group->memory_bytes <= most + most / 2) {
        if (vm->search.phase == REFS_RESTING) refs_begin(vm);
        return;
    }
    if (stopping)
        group->unwinding_hard = true;
    else
        memory_stop(vm, group);
}

/* What an ended group leaves may be cells that only hold each other: a search is worth more, the more it is. Without
 * this, few cells with large contents would lie there until thousands of turns had paid for looking at them. */
static void memory_left(struct vm *vm, int64_t bytes)
{
    if (vm->refs && bytes > 0) vm->search.credit += (uint64_t)bytes / MEMORY_BYTES_PER_STEP;
}

void memory_turn_end(struct vm *vm, struct fiber *group, uint64_t serial, uint64_t heap_bytes_before)
{
    if (group->serial != serial) return;
    if (group->state == FIBER_POOLED) { /* all of it has ended */
        memory_left(vm, group->memory_bytes + (int64_t)(vm->heap_bytes - heap_bytes_before));
        return;
    }
    group->memory_bytes += (int64_t)(vm->heap_bytes - heap_bytes_before);
    if (CY_UNLIKELY(vm->dead != NULL)) {
        vm->garbage_group = group;
        vm->garbage_serial = serial;
    }
    if (group->memory_bytes_max != UINT64_MAX && group->state != FIBER_ENDING) memory_look(vm, group);
}

/* -- what operations hold -------------------------------------------------------------------------------- */

void memory_hold_begin(struct native_call *call, struct memory_hold *hold)
{
    struct fiber *group = call->fiber->group;
    *hold = (struct memory_hold){
        .vm = call->vm, .held_bytes = call->vm->held_bytes, .group = group, .group_serial = group->serial};
}

void memory_hold_begin_for_vm(struct vm *vm, struct memory_hold *hold)
{
    *hold = (struct memory_hold){.vm = vm, .held_bytes = vm->held_bytes};
}

static struct fiber *memory_hold_group(const struct memory_hold *hold)
{
    struct fiber *group = hold->group;
    return group && group->serial == hold->group_serial && group->state != FIBER_POOLED ? group : NULL;
}

/* What the group has left; its account learns of a turn's heap only when the turn ends. */
static uint64_t memory_hold_group_left(const struct memory_hold *hold)
{
    const struct vm *vm = hold->vm;
    const struct fiber *group = memory_hold_group(hold);
    if (!group || group->memory_bytes_max == UINT64_MAX) return UINT64_MAX;
    int64_t bytes = group->memory_bytes;
    if (vm->running && vm->running->group == group) bytes += (int64_t)(vm->heap_bytes - vm->turn_heap_bytes);
    if (bytes < 0) bytes = 0;
    return (uint64_t)bytes < group->memory_bytes_max ? group->memory_bytes_max - (uint64_t)bytes : 0;
}

size_t memory_hold_left(const struct memory_hold *hold)
{
    uint64_t left = memory_hold_group_left(hold);
    return vm_memory_left(hold->vm, left < SIZE_MAX ? (size_t)left : SIZE_MAX);
}

/* During a turn, what is freed is seen when it ends. */
static bool memory_hold_drain(struct vm *vm)
{
    if (vm->freeing) return false;
    return vm->running ? heap_drain(vm, MEMORY_DRAIN_STEPS) : memory_drain_later(vm, MEMORY_DRAIN_STEPS);
}

cy_err memory_hold_grow(struct memory_hold *hold, size_t bytes)
{
    struct vm *vm = hold->vm;
    if (bytes == 0) return CY_OK;
    while (bytes > memory_hold_left(hold) && memory_hold_drain(vm)) {}
    if (bytes > vm_memory_left(vm, SIZE_MAX)) return CY_ERR(NO_MEMORY);
    if (bytes > memory_hold_group_left(hold)) return CY_ERR(STOP_MEMORY);
    struct fiber *group = memory_hold_group(hold);
    if (group) {
        group->memory_bytes += (int64_t)bytes;
        hold->group_bytes += bytes;
    }
    atomic_fetch_add(hold->held_bytes, bytes);
    hold->bytes += bytes;
    return CY_OK;
}

cy_err memory_hold_grow_beside(struct memory_hold *hold, size_t bytes, size_t bytes_max)
{
    uint64_t before = atomic_fetch_add(hold->held_bytes, bytes);
    hold->bytes += bytes;
    return before + bytes > bytes_max ? CY_ERR(NO_MEMORY) : CY_OK;
}

void memory_hold_leave_task(struct memory_hold *hold)
{
    struct fiber *group = memory_hold_group(hold);
    if (group) group->memory_bytes -= (int64_t)hold->group_bytes;
    hold->group = NULL;
    hold->group_bytes = 0;
}

void memory_hold_end(struct memory_hold *hold, uint64_t result_bytes)
{
    struct fiber *group = memory_hold_group(hold);
    if (group && !hold->vm->running) group->memory_bytes += (int64_t)result_bytes;
    memory_hold_leave_task(hold);
    uint64_t before = atomic_fetch_sub(hold->held_bytes, hold->bytes);
    CHECK(before >= hold->bytes);
    hold->bytes = 0;
}

bool memory_drain_later(struct vm *vm, size_t steps)
{
    uint64_t before = vm->heap_bytes;
    bool more = heap_drain(vm, steps);
    struct fiber *group = vm->garbage_group;
    if (group && group->serial == vm->garbage_serial)
        group->memory_bytes -= (int64_t)(before - vm->heap_bytes);
    return more;
}
