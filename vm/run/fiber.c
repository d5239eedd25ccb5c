/* SPDX-License-Identifier: MIT
 *
 * vm/run/fiber.c: making, growing, running and ending fibers.
 *
 * In:   calls from vm.c and task.c. Out: outcomes.
 * Invariant: see fiber.h. An ended fiber keeps its stack and frames in the pool, so that the next short
 *       call allocates nothing.
 * Not here: what a step does (interp.c), spawned tasks as others see them (task.c), whose turn it is (schedule.c).
 */
#include "vm/run/fiber.h"

#include "vm/base/limits.h"
#include "vm/run/holds.h"
#include "vm/run/profile.h"
#include "vm/run/vm_internal.h"

enum {
    FIBER_SLOTS_FIRST = 64, /* 1 KiB: most handlers never need more */
    FIBER_FRAMES_FIRST = 8,
    FIBER_POOL_SLOTS_MAX =
        4096,              /* a pooled fiber with a larger stack gives it back: one deep call must not stay */
    FIBER_POOL_MAX = 1024, /* pooled ones that keep their stacks: a crowd of tasks must not stay either */
};

static size_t fiber_stack_bytes(const struct fiber *fiber)
{
    return (size_t)(fiber->stack_end - fiber->stack) * sizeof(cy_value);
}
static size_t fiber_frame_bytes(const struct fiber *fiber)
{
    return (size_t)(fiber->frames_end - fiber->frames) * sizeof(struct frame);
}

/* -- storage --------------------------------------------------------------------------------------------- */

static cy_err fiber_resize_stack(struct fiber *fiber, size_t slot_count)
{
    size_t bytes_old = fiber_stack_bytes(fiber), slots_old = bytes_old / sizeof(cy_value);
    cy_value *stack = heap_resize(fiber->vm, fiber->stack, bytes_old, slot_count * sizeof *stack);
    if (!stack) return CY_ERR(NO_MEMORY);
    for (size_t i = slots_old; i < slot_count; i++) stack[i] = value_nil();
    fiber->stack = stack;
    fiber->stack_end = stack + slot_count;
    return CY_OK;
}

static cy_err fiber_resize_frames(struct fiber *fiber, size_t frame_count)
{
    ptrdiff_t top = fiber->frame ? fiber->frame - fiber->frames : -1;
    struct frame *frames =
        heap_resize(fiber->vm, fiber->frames, fiber_frame_bytes(fiber), frame_count * sizeof *frames);
    if (!frames) return CY_ERR(NO_MEMORY);
    fiber->frames = frames;
    fiber->frames_end = frames + frame_count;
    fiber->frame = top >= 0 ? frames + top : NULL;
    return CY_OK;
}

cy_err fiber_grow_frames(struct fiber *fiber)
{
    size_t count = (size_t)(fiber->frames_end - fiber->frames);
    if (count >= LIMIT_CALL_DEPTH) return CY_ERR(DEPTH);
    return fiber_resize_frames(fiber, cy_min_size(count * 2, LIMIT_CALL_DEPTH));
}

cy_err fiber_reserve(struct fiber *fiber, cy_value *base, uint32_t slot_count)
{
    size_t needed = (size_t)(base - fiber->stack) + slot_count,
           count = (size_t)(fiber->stack_end - fiber->stack);
    if (needed <= count) return CY_OK;
    size_t count_max = LIMIT_FIBER_STACK_BYTES / sizeof(cy_value);
    if (needed > count_max) return CY_ERR(TOO_LARGE);
    return fiber_resize_stack(fiber, cy_min_size(cy_max_size(needed, count * 2), count_max));
}

void fiber_let_go(struct vm *vm, cy_value *from, cy_value *to)
{
    for (cy_value *slot = from; slot < to; slot++) {
        cy_value value = *slot;
        slot->tag = TAG_NIL;
        value_unref(vm, value);
    }
}

/* -- making and pooling ---------------------------------------------------------------------------------- */

static cy_err fiber_add_to_table(struct vm *vm, struct fiber *fiber)
{
    if (vm->fiber_count == LIMIT_TASKS) return CY_ERR(TOO_MANY);
    if (vm->fiber_count == vm->fiber_capacity) {
        uint32_t capacity = vm->fiber_capacity ? vm->fiber_capacity * 2 : 16;
        struct fiber **fibers =
            heap_resize(vm, vm->fibers, vm->fiber_capacity * sizeof *fibers, capacity * sizeof *fibers);
        if (!fibers) return CY_ERR(NO_MEMORY);
        vm->fibers = fibers;
        vm->fiber_capacity = capacity;
    }
    fiber->index = vm->fiber_count++;
    vm->fibers[fiber->index] = fiber;
    return CY_OK;
}

static cy_err fiber_make(struct vm *vm, struct fiber **fiber_out)
{
    struct fiber *fiber = heap_alloc(vm, sizeof *fiber);
    if (!fiber) return CY_ERR(NO_MEMORY);
    *fiber = (struct fiber){.vm = vm,
                            .result = value_nil(),
                            .resume_value = value_nil(),
                            .stop_record = value_nil(),
                            .child_error = value_nil()};
    cy_err err = fiber_add_to_table(vm, fiber);
    if (cy_failed(err)) {
        heap_free(vm, fiber, sizeof *fiber);
        return err;
    }
    *fiber_out = fiber;
    return CY_OK;
}

static void fiber_put_in_pool(struct vm *vm, struct fiber *fiber)
{
    fiber->state = FIBER_POOLED;
    fiber->next = vm->pool;
    vm->pool = fiber;
    vm->pool_count++;
}

cy_err fiber_new(struct vm *vm, struct instance *instance, struct fiber **fiber_out)
{
    struct fiber *fiber = vm->pool;
    if (fiber) {
        vm->pool = fiber->next;
        vm->pool_count--;
    } else
        CY_TRY(fiber_make(vm, &fiber));
    cy_err err = fiber->stack ? CY_OK : fiber_resize_stack(fiber, FIBER_SLOTS_FIRST);
    if (!cy_failed(err) && !fiber->frames) err = fiber_resize_frames(fiber, FIBER_FRAMES_FIRST);
    if (cy_failed(err)) {
        fiber_put_in_pool(vm, fiber);
        return err;
    }
    *fiber = (struct fiber){
        .vm = vm,
        .instance = instance_ref(instance),
        .index = fiber->index,
        .generation = fiber->generation,
        .state = FIBER_RUNNING, /* until the caller makes it ready */
        .stack = fiber->stack,
        .stack_end = fiber->stack_end,
        .frames = fiber->frames,
        .frames_end = fiber->frames_end,
        .resume_value = value_nil(),
        .result = value_nil(),
        .stop_record = value_nil(),
        .child_error = value_nil(),
        .burst_ns_max = vm->burst_ns_max,
        .deadline_ns = UINT64_MAX,
        .group = fiber,
        .serial = ++vm->fiber_serial,
        .memory_bytes_max = vm->task_memory_bytes_max,
    };
    vm->fiber_live_count++;
    vm->counters.fibers_started++;
    *fiber_out = fiber;
    return CY_OK;
}

static void fiber_free_stack(struct vm *vm, struct fiber *fiber)
{
    heap_free(vm, fiber->stack, fiber_stack_bytes(fiber));
    heap_free(vm, fiber->frames, fiber_frame_bytes(fiber));
    fiber->stack = fiber->stack_end = NULL;
    fiber->frames = fiber->frames_end = NULL;
}

/* Back to the pool. The stack is let go of first: slot 0 holds the called function. */
void fiber_recycle(struct vm *vm, struct fiber *fiber)
{
    fiber_let_go(vm, fiber->stack, fiber->frame || !fiber->stack ? fiber->stack_end : fiber->stack + 1);
    fiber->frame = NULL;
    value_unref(vm, fiber->result);
    value_unref(vm, fiber->resume_value);
    value_unref(vm, fiber->stop_record);
    value_unref(vm, fiber->child_error);
    fiber->result = fiber->resume_value = fiber->stop_record = fiber->child_error = value_nil();
    fiber_drop_work(vm, fiber);
    deadline_clear(vm, fiber);
    fiber->generation++;
    bool large = fiber->stack_end - fiber->stack > FIBER_POOL_SLOTS_MAX;
    if (large || vm->pool_count >= FIBER_POOL_MAX) fiber_free_stack(vm, fiber);
    fiber_put_in_pool(vm, fiber);
    vm->fiber_live_count--;
    instance_unref(vm, &fiber->instance); /* last: it may free the instance */
}

void fiber_table_free(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->fiber_count; i++) {
        CHECK(vm->fibers[i]->state == FIBER_POOLED);
        fiber_free_stack(vm, vm->fibers[i]);
        heap_free(vm, vm->fibers[i], sizeof(struct fiber));
    }
    heap_free(vm, vm->fibers, vm->fiber_capacity * sizeof *vm->fibers);
    vm->fibers = NULL;
    vm->fiber_count = vm->fiber_capacity = 0;
    vm->pool = NULL;
    vm->pool_count = 0;
}

cy_err fiber_begin(struct fiber *fiber, cy_value function, const cy_value *args, uint32_t arg_count)
{
    if (function.tag != TAG_FUNCTION) return CY_ERR(TYPE);
    struct function_object *object = function_of(function);
    if (object->native || object->instance != fiber->instance) return CY_ERR(CALL);
    const struct code_function *code = &fiber->instance->functions[object->index];
    if (arg_count < code->required_count || arg_count > code->param_count) return CY_ERR(CALL);
    for (uint32_t i = 0; i < code->required_count; i++)
        if (args[i].tag == TAG_ABSENT) return CY_ERR(CALL);
    CY_TRY(fiber_reserve(fiber, fiber->stack + 1, cy_max_size(code->slot_count, 1)));
    fiber->stack[0] = value_ref(function);
    cy_value *base = fiber->stack + 1;
    for (uint32_t i = 0; i < arg_count; i++) base[i] = value_ref(args[i]);
    for (uint32_t i = arg_count; i < code->local_count; i++)
        base[i] = i < code->param_count ? value_absent() : value_nil();
    fiber->frame = fiber->frames;
    *fiber->frame = (struct frame){code->code, code, object, 1, 0};
    fiber->resume = RESUME_STEP;
    return CY_OK;
}

/* -- running --------------------------------------------------------------------------------------------- */

void fiber_wake(struct vm *vm, struct fiber *fiber, enum fiber_resume resume, cy_value owned_value)
{
    CHECK(fiber->state == FIBER_WAITING);
    fiber->generation++;
    fiber->cancel = NULL;
    fiber->operation = NULL;
    fiber->resume = (uint8_t)resume;
    fiber->resume_value = owned_value;
    fiber_make_ready(vm, fiber);
}

/* Ends one fiber and tells. Returns the parent when it was waiting for this child as its last. */
static struct fiber *fiber_finish_one(struct vm *vm, struct fiber *fiber)
{
    task_join_children(vm, fiber);
    handle_close_all(vm, fiber);
    struct fiber *parent = NULL;
    if (fiber->task) {
        parent = fiber->task->parent;
        task_ended(vm, fiber);
    } else if (fiber->done) {
        cy_err stop = {fiber->outcome == CALL_STOPPED ? fiber->stop : 0, 0};
        fiber->done(vm, fiber->context, fiber->outcome, fiber->result, stop);
    }
    fiber_recycle(vm, fiber);
    if (!parent) return NULL;
    parent->child_running_count--;
    return parent->state == FIBER_ENDING && parent->child_running_count == 0 ? parent : NULL;
}

void fiber_finish(struct vm *vm, struct fiber *fiber)
{
    while (fiber) fiber = fiber_finish_one(vm, fiber);
}

void fiber_drop_work(struct vm *vm, struct fiber *fiber)
{
    void *work = fiber->work;
    fiber->work = NULL;
    if (work) fiber->work_free(vm, work);
}

/* Why, with the limit that applied to this task: the host may have set another one than limits.def has. */
static void fiber_stop_text(struct vm *vm, const struct fiber *fiber, cy_err reason, struct builder *out)
{
    const char *plain = cy_err_text(reason, vm_is_korean(vm)),
               *form = vm_message_text(MESSAGE_LIMIT, vm_is_korean(vm));
    if (cy_is(reason, CY_ERR_STOP_CPU))
        builder_printf(out, form, plain, "CPU_BURST_MS", (long long)(fiber->burst_ns_max / fiber_ms(1)),
                       "ms");
    else if (cy_is(reason, CY_ERR_STOP_MEMORY))
        builder_printf(out, form, plain, "TASK_MEMORY_BYTES", (long long)fiber->group->memory_bytes_max,
                       "bytes");
    else
        builder_text(out, plain);
}

void fiber_begin_stop(struct vm *vm, struct fiber *fiber)
{
    if (fiber->stop) return;
    fiber->stop = fiber->stop_wanted;
    cy_err reason = {fiber->stop, 0};
    struct builder text;
    builder_init(&text);
    fiber_stop_text(vm, fiber, reason, &text);
    cy_bytes message = builder_view(&text);
    if (text.failed) message = cy_bytes_from_text(cy_err_text(reason, vm_is_korean(vm)));
    fiber->burst_ns = 0;
    fiber->burst_ns_max = fiber_ms(LIMIT_DEFER_ALLOWANCE_MS);
    fiber->stop_record = error_make(vm, reason, message, value_nil());
    builder_fini(&text);
    places_note(vm, fiber, fiber->stop_record);
}

static void fiber_ended(struct vm *vm, struct fiber *fiber)
{
    fiber->state = FIBER_ENDING;
    if (fiber->stop) {
        /* Whatever the defers did: the task was stopped. */
        fiber->outcome = CALL_STOPPED;
        value_unref(vm, fiber->result);
        fiber->result = fiber->stop_record;
        fiber->stop_record = value_nil();
    }
    if (fiber->outcome != CALL_RETURNED) task_stop_children(vm, fiber, CY_ERR_STOP_CANCELLED);
    if (fiber->child_running_count == 0) fiber_finish(vm, fiber);
}

/* A turn that was not measured but charged for much more than its budget counts for what that takes at least: 100 bytes
 * copied, or 8 values. */
enum { FIBER_CHARGED_STEP_NS = 10 };

/* The budget is used up: the CPU allowance is looked at here and nowhere else. */
static void fiber_yielded(struct vm *vm, struct fiber *fiber, uint64_t spent_ns)
{
    fiber->yielded = true;
    fiber->burst_ns += spent_ns;
    if (fiber->burst_ns > fiber->burst_ns_max) {
        if (fiber->stop)
            fiber->unwinding_hard = true;
        else if (!fiber->stop_wanted)
            fiber->stop_wanted = CY_ERR_STOP_CPU;
    }
    if (fiber->initialising)
        fiber->state = FIBER_READY; /* fiber_run_to_end goes on with it at once */
    else
        fiber_make_ready(vm, fiber);
}

void fiber_turn(struct vm *vm, struct fiber *fiber)
{
    struct fiber *outer = vm->running; /* an instance may be made inside a native */
    int64_t outer_budget = vm->budget;
    uint64_t outer_heap_bytes = vm->turn_heap_bytes, serial = fiber->group->serial;
    struct fiber *group = fiber->group;
    struct profile *profile = vm->options.profile;
    int64_t budget = profile ? profile_budget(profile) : LIMIT_BUDGET_STEPS;
    vm->running = fiber;
    vm->budget = budget;
    uint64_t heap_bytes = memory_turn_begin(vm);
    fiber->state = FIBER_RUNNING;
    /* The first turn of a burst is not measured: a short call must not pay for two system calls. */
    struct holds *holds = vm->options.holds;
    bool measured = fiber->yielded || holds || (profile && profile_wants_time(profile));
    uint64_t start_ns = measured ? vm_cpu_ns(vm) : 0;
    enum interp_outcome outcome = interp_run(vm, fiber);
    uint64_t steps = vm->budget < budget ? (uint64_t)(budget - vm->budget) : 0;
    uint64_t spent_ns = measured                         ? vm_cpu_ns(vm) - start_ns
                        : steps > 2 * LIMIT_BUDGET_STEPS ? steps * FIBER_CHARGED_STEP_NS
                                                         : 0;
    vm->counters.instructions += steps;
    if (profile) profile_turn(profile, fiber, steps, spent_ns);
    if (holds) holds_turn(holds, fiber, spent_ns);
    vm->running = outer;
    vm->budget = outer_budget;
    switch (outcome) {
    case INTERP_YIELDED: fiber_yielded(vm, fiber, spent_ns); break;
    case INTERP_WAITING:
        fiber->burst_ns = 0;
        fiber->yielded = false;
        fiber->state = FIBER_WAITING;
        break;
    case INTERP_ENDED: fiber_ended(vm, fiber); break;
    }
    memory_turn_end(vm, group, serial, heap_bytes);
    vm->turn_heap_bytes = outer_heap_bytes;
}
