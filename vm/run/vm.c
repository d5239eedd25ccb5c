/* SPDX-License-Identifier: MIT
 *
 * vm/run/vm.c: one VM: making and ending it, the ready queue, calls from the host, waking.
 *
 * In:   options, programs' functions, completions. Out: callbacks from vm_run.
 * Not here: whose turn it is (schedule.c).
 */
#include "vm/run/vm.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/opcode.h"
#include "vm/run/fiber.h"
#include "vm/run/handle.h"
#include "vm/run/list.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/* A fall of the heap that is worth giving pages back for: the end of a bomb, not of a usual request. */
#define VM_GIVE_BACK_BYTES (UINT64_C(64) << 20)
/* What pages of small blocks may take beside twice the heap's limit: two of each size. */
#define VM_SMALL_BYTES (UINT64_C(256) << 10)

uint64_t vm_cpu_ns(struct vm *vm)
{
    if (vm->options.cpu_ns) return vm->options.cpu_ns(vm->options.host);
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t vm_clock_ns(struct vm *vm)
{
    if (vm->options.clock_ns) return vm->options.clock_ns(vm->options.host);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void *vm_host(struct vm *vm) { return vm->options.host; }

cy_err vm_put(struct vm *vm, int descriptor, cy_bytes text)
{
    if (vm->options.put) return vm->options.put(vm->options.host, descriptor, text);
    while (text.count > 0) {
        ssize_t written = write(descriptor, text.data, text.count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return cy_err_from_errno(errno);
        text = cy_bytes_skip(text, (size_t)written);
    }
    return CY_OK;
}

struct log *vm_log(struct vm *vm) { return vm->options.log; }
bool vm_korean(struct vm *vm) { return vm->options.korean; }
size_t vm_memory_left(const struct vm *vm, size_t bytes_max)
{
    uint64_t used = vm->heap_bytes + atomic_load_explicit(vm->held_bytes, memory_order_relaxed);
    uint64_t left = used < vm->heap_bytes_max ? vm->heap_bytes_max - used : 0;
    return left < bytes_max ? (size_t)left : bytes_max;
}
void vm_work(struct vm *vm, uint64_t steps) { vm_charge(vm, steps); }
uint32_t vm_fiber_count(const struct vm *vm) { return vm->fiber_live_count; }

void vm_read_counters(const struct vm *vm, struct vm_counters *counters_out)
{
    *counters_out = vm->counters;
    counters_out->heap_bytes = vm->heap_bytes;
    counters_out->heap_bytes_peak = vm->heap_bytes_peak;
    counters_out->heap_objects = vm->heap_objects;
    counters_out->cells = vm->ref_count;
    counters_out->cells_found = vm->search.found_count;
    counters_out->searches = vm->search.search_count;
}

/* -- making and ending ----------------------------------------------------------------------------------- */

cy_err vm_new(const struct vm_options *options, struct vm **vm_out)
{
    struct vm *vm = mem_alloc_zeroed(sizeof *vm);
    if (!vm) return CY_ERR(NO_MEMORY);
    vm->options = *options;
    vm->held_bytes = options->held_bytes ? options->held_bytes : &vm->held_bytes_own;
    uint64_t burst_ms = options->cpu_burst_ms ? options->cpu_burst_ms : LIMIT_CPU_BURST_MS;
    vm->burst_ns_max = burst_ms > UINT64_MAX / 1000000u ? UINT64_MAX : fiber_ms(burst_ms);
    vm->heap_bytes_max = options->memory_bytes_max ? options->memory_bytes_max : LIMIT_VM_MEMORY_BYTES;
    /* Full pages take less than twice what is counted of their blocks. More than that and a page or two of each size is
     * what a program left nearly empty. */
    uint64_t pages_max =
        vm->heap_bytes_max > UINT64_MAX / 4 ? UINT64_MAX : 2 * vm->heap_bytes_max + VM_SMALL_BYTES;
    small_init(&vm->small, pages_max);
    vm->task_memory_bytes_max =
        options->task_memory_bytes_max ? options->task_memory_bytes_max : LIMIT_TASK_MEMORY_BYTES;
    static const char *const names[ERROR_FIELD_COUNT] = {"kind", "message", "data", "stack"};
    cy_bytes fields[ERROR_FIELD_COUNT];
    for (int i = 0; i < ERROR_FIELD_COUNT; i++) fields[i] = cy_bytes_from_text(names[i]);
    cy_err err = record_shape_new(vm, NULL, CY_BYTES("error"), fields, ERROR_FIELD_COUNT, &vm->error_shape);
    static const uint32_t kinds[ERROR_FIELD_COUNT] = {1u << KIND_STR, 1u << KIND_STR, RECORD_FIELD_ANY,
                                                      1u << KIND_LIST};
    for (uint32_t i = 0; i < ERROR_FIELD_COUNT && !cy_failed(err); i++)
        err = record_shape_rule(vm, vm->error_shape, i, kinds[i], NULL);
    cy_bytes text = cy_bytes_from_text(cy_err_text(CY_ERR(NO_MEMORY), options->korean));
    if (!cy_failed(err)) err = error_new(vm, CY_ERR(NO_MEMORY), text, value_nil(), &vm->memory_error);
    if (cy_failed(err)) {
        vm_free(&vm);
        return err;
    }
    *vm_out = vm;
    return CY_OK;
}

/* Ends a fiber without running any of its code. */
static void vm_end_fiber(struct vm *vm, struct fiber *fiber)
{
    if (fiber->state == FIBER_WAITING && fiber->cancel) fiber->cancel(fiber->operation);
    handle_close_all(vm, fiber);
}

static void vm_end_fibers(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->fiber_count; i++)
        if (vm->fibers[i]->state != FIBER_POOLED) vm_end_fiber(vm, vm->fibers[i]);
    /* Now nothing outside points at any of them. Tasks go with their parents. */
    for (uint32_t i = 0; i < vm->fiber_count; i++)
        if (vm->fibers[i]->state != FIBER_POOLED) task_abandon(vm, vm->fibers[i]);
    for (uint32_t i = 0; i < vm->fiber_count; i++)
        if (vm->fibers[i]->state != FIBER_POOLED) fiber_recycle(vm, vm->fibers[i]);
    schedule_forget_all(vm);
}

/* Cells may hold each other: emptying them all breaks every cycle. */
static void vm_empty_cells(struct vm *vm)
{
    /* A dead cell that waits to be freed is still among vm->refs and must not be taken for a living one. */
    while (heap_drain(vm, 1 << 20)) {}
    struct ref *ref = vm->refs;
    if (ref) value_ref(value_object(TAG_REF, &ref->container.head));
    while (ref) {
        struct ref *next = ref->next;
        if (next) value_ref(value_object(TAG_REF, &next->container.head));
        cy_value held = ref->value;
        ref->value = value_nil();
        value_unref(vm, held);
        value_unref(vm, value_object(TAG_REF, &ref->container.head));
        while (heap_drain(vm, 1 << 20)) {}
        ref = next;
    }
}

void vm_free(struct vm **vm_pointer)
{
    struct vm *vm = *vm_pointer;
    *vm_pointer = NULL;
    if (!vm) return;
    CHECK(!vm->running);
    vm_end_fibers(vm);
    handle_table_free(vm);
    refs_abort(vm);
    instance_shut_all(vm);
    vm_empty_cells(vm);
    while (heap_drain(vm, 1 << 20)) {}
    instance_free_all(vm);
    fiber_table_free(vm);
    deadline_table_free(vm);
    value_unref(vm, vm->memory_error);
    value_unref(vm, vm->raised);
    record_shape_unref(vm, vm->error_shape);
    while (heap_drain(vm, 1 << 20)) {}
    DCHECK(vm->heap_objects == 0); /* else the host still holds values */
    DCHECK(vm->heap_bytes == 0);
    small_fini(&vm->small);
    mem_free(vm);
}

/* -- calls ----------------------------------------------------------------------------------------------- */

cy_err vm_start(struct vm *vm, struct instance *instance, cy_value function, const cy_value *args,
                uint32_t arg_count, call_done done, void *context, struct fiber **fiber_out)
{
    struct fiber *fiber;
    CY_TRY(fiber_new(vm, instance, &fiber));
    cy_err err = fiber_begin(fiber, function, args, arg_count);
    if (cy_failed(err)) {
        fiber_recycle(vm, fiber);
        return err;
    }
    for (uint32_t i = 0; i < arg_count; i++) value_unref(vm, args[i]); /* the stack holds them now */
    fiber->done = done;
    fiber->context = context;
    if (fiber_out) *fiber_out = fiber;
    fiber_make_ready(vm, fiber);
    return CY_OK;
}

void vm_ask_to_stop(struct vm *vm, struct fiber *fiber, enum cy_err_code reason)
{
    if (fiber->state == FIBER_POOLED || fiber->state == FIBER_ENDING) return;
    if (fiber->stop || fiber->stop_wanted) return;
    fiber->stop_wanted = reason;
    if (fiber == vm->running) vm->budget = 0; /* it stops at its next call or back edge */
    if (fiber->state != FIBER_WAITING) return;
    void (*cancel)(void *operation) = fiber->cancel;
    void *operation = fiber->operation;
    fiber_wake(vm, fiber, RESUME_STEP, value_nil());
    if (cancel) cancel(operation);
}

void vm_stop_tree(struct vm *vm, struct fiber *fiber, enum cy_err_code reason)
{
    if (fiber->state == FIBER_POOLED) return;
    vm_ask_to_stop(vm, fiber, reason);
    task_stop_children(vm, fiber, reason);
}

void vm_cancel(struct vm *vm, struct fiber *fiber) { vm_stop_tree(vm, fiber, CY_ERR_STOP_CANCELLED); }

void vm_cancel_instance(struct vm *vm, struct instance *instance)
{
    /* Cancelling an operation may end others and make fibers, never move one to another instance. */
    for (uint32_t i = 0; i < vm->fiber_count; i++)
        if (vm->fibers[i]->state != FIBER_POOLED && vm->fibers[i]->instance == instance)
            vm_cancel(vm, vm->fibers[i]);
}

void vm_mark_main(struct vm *vm, struct fiber *fiber)
{
    CHECK(fiber->vm == vm && fiber->state != FIBER_POOLED);
    fiber->is_main = true;
    fiber->memory_bytes_max = UINT64_MAX;
    fiber->burst_ns_max = UINT64_MAX;
}

bool vm_run(struct vm *vm)
{
    CHECK(!vm->in_run);
    vm->in_run = true;
    vm->ready_told = false;
    if (CY_UNLIKELY(vm->deadline_count > 0)) deadline_expire(vm);
    for (uint32_t turns = vm->group_count; turns > 0 && vm->group_first; turns--) schedule_group_turn(vm);
    vm->in_run = false;
    if (vm->heap_bytes > vm->heap_bytes_high) vm->heap_bytes_high = vm->heap_bytes;
    if (CY_UNLIKELY(vm->refs != NULL)) {
        vm->search.credit++;
        (void)refs_work(vm, false);
    }
    return vm->group_first != NULL;
}

void fiber_run_to_end(struct vm *vm, struct fiber *fiber, const bool *ended)
{
    while (!*ended) fiber_turn(vm, fiber);
}

bool vm_idle(struct vm *vm)
{
    if (vm->dead && memory_drain_later(vm, 4096)) return true;
    bool more = vm->refs && refs_work(vm, true);
    if (more || vm->dead) return true;
    if (CY_UNLIKELY(vm->heap_bytes_high > vm->heap_bytes + VM_GIVE_BACK_BYTES)) {
        vm->heap_bytes_high = vm->heap_bytes;
        mem_give_back();
    }
    return false;
}

/* -- waking ---------------------------------------------------------------------------------------------- */

static void vm_complete_with(struct vm *vm, wait_ticket ticket, enum fiber_resume resume,
                             cy_value owned_value)
{
    CHECK(ticket.fiber_index < vm->fiber_count);
    struct fiber *fiber = vm->fibers[ticket.fiber_index];
    if (fiber->generation != ticket.generation) {
        value_unref(vm, owned_value);
        return;
    }
    CHECK(fiber->state == FIBER_WAITING &&
          fiber != vm->running); /* else the native completed before it returned */
    fiber_wake(vm, fiber, resume, owned_value);
}

void vm_complete(struct vm *vm, wait_ticket ticket, cy_value owned_result)
{
    vm_complete_with(vm, ticket, RESUME_RESULT, owned_result);
}

void vm_complete_error(struct vm *vm, wait_ticket ticket, cy_value owned_error)
{
    vm_complete_with(vm, ticket, RESUME_ERROR, owned_error);
}

void vm_complete_failed(struct vm *vm, wait_ticket ticket, cy_err reason, cy_bytes message)
{
    if (message.count == 0) message = cy_bytes_from_text(cy_err_text(reason, vm_is_korean(vm)));
    vm_complete_error(vm, ticket, error_make(vm, reason, message, value_nil()));
}

#undef VM_GIVE_BACK_BYTES
#undef VM_SMALL_BYTES
