/* SPDX-License-Identifier: MIT
 *
 * vm/run/memory.c: what a group of tasks may hold: the soft limit that ends a memory bomb, and nobody else.
 *
 * In:   the VM's count of bytes before and after a turn. Out: STOP_MEMORY for a group past its limit.
 * Method: no allocation is charged by itself. What the VM's heap grew or shrank by during a turn is the group's; so
 *       is what is freed later of the garbage that it left. One allocation of HEAP_LARGE_BYTES or more is looked at
 *       before it is made, so that a doubling string does not get to the VM's limit within one step.
 *       What a native's operation gathers outside the heap while its task waits is held: counted as the group's and as
 *       the VM's before it is allocated, and refused, not stopped, past either limit (memory_hold_grow).
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
    *hold = (struct memory_hold){.vm = call->vm, .group = group, .group_serial = group->serial};
}

static struct fiber *memory_hold_group(const struct memory_hold *hold)
{
    return hold->group->serial == hold->group_serial && hold->group->state != FIBER_POOLED ? hold->group
                                                                                           : NULL;
}

cy_err memory_hold_grow(struct memory_hold *hold, size_t bytes)
{
    struct vm *vm = hold->vm;
    struct fiber *group = memory_hold_group(hold);
    if (bytes == 0) return CY_OK;
    while (bytes > vm_memory_left(vm, SIZE_MAX) && memory_drain_later(vm, MEMORY_DRAIN_STEPS)) {}
    if (bytes > vm_memory_left(vm, SIZE_MAX)) return CY_ERR(NO_MEMORY);
    if (group && group->memory_bytes_max != UINT64_MAX &&
        group->memory_bytes + (int64_t)bytes > (int64_t)group->memory_bytes_max)
        return CY_ERR(STOP_MEMORY);
    if (group) group->memory_bytes += (int64_t)bytes;
    vm->held_bytes += bytes;
    hold->bytes += bytes;
    return CY_OK;
}

void memory_hold_end(struct memory_hold *hold, uint64_t result_bytes)
{
    struct fiber *group = memory_hold_group(hold);
    CHECK(hold->vm->held_bytes >= hold->bytes);
    hold->vm->held_bytes -= hold->bytes;
    if (group) group->memory_bytes += (int64_t)result_bytes - (int64_t)hold->bytes;
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
