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
 * A *group* is a task that the host or the main task started, with everything it spawns: what gets turns (schedule.c),
 * what memory is charged to (memory.c). A request is one.
 *
 * Invariant: a fiber is in its group's ready queue exactly when READY. Its stack holds no heap value at or above
 *       the frame on top. A group's first task ends last.
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
    struct fiber *next; /* in its group's ready queue or the pool */
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
    cy_value stop_record; /* owned: reason and place of the stop under way, as an error; nil without memory */
    uint64_t burst_ns;    /* CPU since the last wait */
    uint64_t burst_ns_max;
    uint64_t deadline_ns;   /* of the host's clock; UINT64_MAX: none */
    uint32_t deadline_slot; /* index + 1 in vm->deadlines, 0 when it is not there */

    struct fiber *group; /* its first task; itself, or an ancestor */
    uint64_t serial;     /* tells it from an earlier or later fiber in the same memory */
    /* of the group, in its first task: */
    struct fiber *group_next; /* in the queue of groups that have a ready fiber */
    bool group_queued;
    struct fiber *ready_first;
    struct fiber *ready_last;
    int64_t memory_bytes; /* allocated minus freed while it ran */
    uint64_t memory_bytes_max;

    /* A step that takes several turns keeps its state here (native_work, ==). */
    void *work;
    void (*work_free)(struct vm *vm, void *work);

    enum call_outcome outcome;
    cy_value result; /* owned: result or error, once ENDING */
    call_done done;
    void *context;

    uint32_t handle_first; /* index + 1 of the handles it owns */
    struct task *task;     /* what others know of it when it was spawned */
    struct task *children; /* running, spawned by it or given to it */
    uint32_t child_running_count;
    struct task *ended_first; /* ended, oldest first, and not waited for */
    struct task *ended_last;
    uint32_t ended_count;
    /* task_join.c, while it looks for a circle: in which search this fiber was found, and the next one to look at. */
    uint64_t circle_search;
    struct fiber *circle_next;
    cy_value
        child_error; /* owned: the first one that nobody waited for and whose task is forgotten; or nil */
};

/* A spawned fiber as its parent sees it. Lives until somebody took the result or the parent has ended. The parent is
 * whom its handle belongs to. */
struct task {
    struct task *previous; /* in parent->children, or in the list that begins at parent->ended_first */
    struct task *next;
    struct fiber *parent;
    struct fiber *fiber; /* NULL once it has ended */
    cy_value handle;
    enum call_outcome outcome;
    cy_value result;                   /* owned */
    struct task_join_item *join_first; /* who waits for it, in the order of asking (task_join.c) */
    struct task_join_item *join_last;
    bool unnamed;  /* spawned as a statement: nobody has its handle */
    bool heard;    /* a task that does not own it has waited for it: an error is not the owner's any more */
    bool unwanted; /* task.cancel, task.race: how it ends is nobody's business any more */
    uint32_t spawn_function;
    uint32_t spawn_step;
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
void fiber_let_go(struct vm *vm, cy_value *from, cy_value *to);
/* Runs until it yields, waits or ends; then does what follows from that. */
void fiber_turn(struct vm *vm, struct fiber *fiber);
void fiber_wake(struct vm *vm, struct fiber *fiber, enum fiber_resume resume, cy_value owned_value);
/* Called when a fiber has ended and all children too. */
void fiber_finish(struct vm *vm, struct fiber *fiber);
/* Frees the state of a step that took several turns. */
void fiber_drop_work(struct vm *vm, struct fiber *fiber);
/* Turns a stop that was asked for into one under way, with its place. */
void fiber_begin_stop(struct vm *vm, struct fiber *fiber);
/* vm.c: asks this fiber alone; its children are asked by whoever knows the tree (task_stop_children). */
void vm_ask_to_stop(struct vm *vm, struct fiber *fiber, enum cy_err_code reason);
/* vm.c: asks it and everything below it. */
void vm_stop_tree(struct vm *vm, struct fiber *fiber, enum cy_err_code reason);
/* vm.c: gives an initialiser every turn until `*ended`: it may not wait or spawn. */
void fiber_run_to_end(struct vm *vm, struct fiber *fiber, const bool *ended);
static inline uint64_t fiber_ms(uint64_t ms) { return ms * 1000000u; }

/* -- schedule.c */
void fiber_make_ready(struct vm *vm, struct fiber *fiber);
/* One slice of one group: its ready fibers in turn, until a budget is spent. */
void schedule_group_turn(struct vm *vm);
void schedule_forget_all(struct vm *vm); /* at the end of the VM */

/* -- memory.c */
/* Around a fiber's turn: charges its group, and stops a group that is past its limit. */
uint64_t memory_turn_begin(struct vm *vm);
void memory_turn_end(struct vm *vm, struct fiber *group, uint64_t serial, uint64_t heap_bytes_before);

/* -- deadline.c */
/* The earlier of what it has and `at_ns` (UINT64_MAX: none). NO_MEMORY leaves it as it was. */
CY_NODISCARD cy_err deadline_set(struct vm *vm, struct fiber *fiber, uint64_t at_ns);
void deadline_clear(struct vm *vm, struct fiber *fiber);
void deadline_expire(struct vm *vm); /* stops every fiber whose time has come */
void deadline_table_free(struct vm *vm);

/* -- task.c */
bool task_spawn(struct fiber *fiber, cy_value *window, const struct run_step *step);
void task_ended(struct vm *vm, struct fiber *fiber); /* the fiber behind fiber->task has its outcome */
void task_stop_children(struct vm *vm, struct fiber *fiber, enum cy_err_code reason);
void task_join_children(struct vm *vm, struct fiber *fiber); /* all ended: takes over an error nobody saw */
void task_abandon(struct vm *vm, struct fiber *fiber);       /* the VM ends: nothing is told to anybody */
void task_free(struct vm *vm, struct task *task);
/* The task of a handle; NULL when it is none, or its result was taken. */
struct task *task_of_handle(struct vm *vm, cy_value handle);
/* Whether a closed handle was that of a task that was cancelled, one of the last TASKS_CANCELLED. */
bool task_was_cancelled(const struct vm *vm, cy_value handle);
/* What a waiter gets: the result, or an error with the places of spawning and, unless `waiter` is NULL, of waiting. */
enum fiber_resume task_take_result(struct vm *vm, struct task *task, struct fiber *waiter,
                                   cy_value *owned_out);
/* The same for who does not own the task: the result stays for the owner. */
enum fiber_resume task_read_result(struct vm *vm, struct task *task, cy_value *owned_out);

/* -- task_join.c: the task has ended; the join, and with its last one the task, may be gone afterwards */
void task_join_note(struct vm *vm, struct task *task);

/* -- places.c */
/* Notes the places of all frames in an error that has none yet. */
void places_note(struct vm *vm, struct fiber *fiber, cy_value error);
/* For holds.h: the place of the step that ended the turn. */
void places_describe_turn(const struct fiber *fiber, struct builder *out);
/* An error passes from a task to the one that waits: where it was spawned, and the waiter's frames (NULL: none). */
void places_cross(struct vm *vm, cy_value error, struct instance *instance, uint32_t function, uint32_t step,
                  struct fiber *waiter);

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
