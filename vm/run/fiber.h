/* SPDX-License-Identifier: MIT
 *
 * vm/run/fiber.h: one task: a value stack, frames, what it waits for and what it owns. Private to vm/run.
 *
 *              vm_start, SPAWN                 budget used up
 *   POOLED ------------------> READY <---------------------------- RUNNING
 *     ^                          |  ----------------------------->   |  |
 *     |                          ^ vm_complete, cancel     WAIT      |  | last frame returned, error or stop
 *     |                          +------------- WAITING <------------+  v
 *     +--------------------------------------------------------- ENDING (joins its children, then tells)
 *
 * Invariant: a fiber is in the ready queue exactly when READY. Its stack holds no heap value at or above
 *       the frame on top.
 */
#ifndef CY_RUN_FIBER_H
#define CY_RUN_FIBER_H

#include "vm/run/code.h"
#include "vm/run/vm_internal.h"

struct frame {
    const struct run_step *step; /* the running step: for a caller, the call */
    const struct code_function *function;
    struct function_object *closure; /* borrowed from the slot below the frame; NULL for a direct call */
    uint32_t base;                   /* index of slot 0 in the stack */
    uint32_t handler;                /* slot + 1 of the innermost handler, 0 when there is none */
};

enum fiber_state { FIBER_POOLED, FIBER_READY, FIBER_RUNNING, FIBER_WAITING, FIBER_ENDING };
/* How a fiber goes on when it gets its turn. */
enum fiber_resume { RESUME_STEP, RESUME_RESULT, RESUME_ERROR };

struct task;

struct fiber {
    struct fiber *next; /* in the ready queue or the pool */
    struct vm *vm;
    struct instance *instance; /* counted */
    uint32_t index;
    uint32_t generation; /* moves on at every wake-up and end */
    uint8_t state;       /* enum fiber_state */
    uint8_t resume;      /* enum fiber_resume */
    bool initialising;   /* runs initialisers: may not wait */
    bool is_main;        /* natives with the flag MAIN work here */
    bool yielded;        /* used up a budget since the last wait: its CPU time is measured */
    bool unwinding_hard; /* the defer allowance is used up as well: no handler runs any more */

    cy_value *stack;
    cy_value *stack_end;
    struct frame *frames;
    struct frame *frames_end;
    struct frame *frame; /* on top; frames - 1 never stands here while it runs */

    void (*cancel)(void *operation);
    void *operation;
    cy_value resume_value; /* owned */

    uint32_t stop_wanted; /* enum cy_err_code asked for and not yet begun, or 0 */
    uint32_t stop;        /* the stop under way, or 0 */
    uint64_t burst_ns;    /* CPU since the last wait */
    uint64_t burst_ns_max;

    enum call_outcome outcome;
    cy_value result; /* owned: result or error, once ENDING */
    call_done done;
    void *context;

    uint32_t handle_first; /* index + 1 of the handles it owns */
    struct task *task;     /* what others know of it when it was spawned */
    struct task *children; /* spawned by it and not yet waited for */
    uint32_t child_running_count;
};

/* A spawned fiber as its parent sees it. Lives until somebody took the result or the parent has ended. */
struct task {
    struct task *previous; /* in parent->children */
    struct task *next;
    struct fiber *parent;
    struct fiber *fiber; /* NULL once it has ended */
    cy_value handle;
    enum call_outcome outcome;
    cy_value result; /* owned */
    bool waited;
    wait_ticket waiter;
};

/* -- fiber.c */
CY_NODISCARD cy_err fiber_new(struct vm *vm, struct instance *instance, struct fiber **fiber_out);
void fiber_recycle(struct vm *vm, struct fiber *fiber);
void fiber_table_free(struct vm *vm);
/* Room for a frame of `slot_count` slots that begins at `base`; DEPTH or NO_MEMORY. The stack may move. */
CY_NODISCARD cy_err fiber_reserve(struct fiber *fiber, cy_value *base, uint32_t slot_count);
CY_NODISCARD cy_err fiber_grow_frames(struct fiber *fiber);
/* Sets up the first frame from stack[0] = function and its arguments behind it. CALL when the count is
 * wrong. */
CY_NODISCARD cy_err fiber_begin(struct fiber *fiber, cy_value function, const cy_value *args,
                                uint32_t arg_count);
void fiber_make_ready(struct vm *vm, struct fiber *fiber);
void fiber_let_go(struct vm *vm, cy_value *from, cy_value *to);
/* Runs until it yields, waits or ends; then does what follows from that. */
void fiber_turn(struct vm *vm, struct fiber *fiber);
void fiber_wake(struct vm *vm, struct fiber *fiber, enum fiber_resume resume, cy_value owned_value);
/* Called when a fiber has ended and all children too. */
void fiber_finish(struct vm *vm, struct fiber *fiber);
/* vm.c: asks this fiber alone; its children are asked by whoever knows the tree (task_cancel_children). */
void vm_ask_to_stop(struct vm *vm, struct fiber *fiber);
/* vm.c: gives an initialiser every turn until `*ended`: it may not wait or spawn. */
void fiber_run_to_end(struct vm *vm, struct fiber *fiber, const bool *ended);
static inline uint64_t fiber_ms(uint64_t ms) { return ms * 1000000u; }

/* -- task.c */
bool task_spawn(struct fiber *fiber, cy_value *window, uint32_t arg_count);
void task_ended(struct vm *vm, struct fiber *fiber); /* the fiber behind fiber->task has its outcome */
void task_cancel_children(struct vm *vm, struct fiber *fiber);
void task_join_children(struct vm *vm, struct fiber *fiber); /* all ended: takes over an error nobody saw */

/* -- interp.c */
enum interp_outcome { INTERP_YIELDED, INTERP_WAITING, INTERP_ENDED };
enum interp_outcome interp_run(struct vm *vm, struct fiber *fiber);

/* -- native_invoke.c */
enum invoke_outcome { INVOKE_DONE, INVOKE_FAIL, INVOKE_WAIT };
enum invoke_outcome native_invoke(struct fiber *fiber, uint32_t import, const cy_value *args,
                                  uint32_t arg_count, cy_value *owned_out);

/* -- unwind.c */
/* Takes vm->raised or the fiber's stop to the nearest handler. False when no frame is left: fiber->outcome
 * and result are set. */
bool unwind(struct vm *vm, struct fiber *fiber);

#endif
