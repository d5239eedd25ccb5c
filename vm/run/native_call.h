/* SPDX-License-Identifier: MIT
 *
 * vm/run/native_call.h: the native ABI.
 *
 * A native gets a window of the caller's stack and leaves a result, or an error, or an operation to wait for. It
 * never runs bytecode, never blocks the thread, and never keeps `args` past its return (take a reference with
 * value_ref).
 *
 *   DONE  result is set (owned by the caller from then on; nil by default)
 *   FAIL  native_fail* was called
 *   AGAIN the turn is over and there is more to do: the body is called again in the task's next turn, with the same
 *         arguments, which it must not have moved out. What it has done so far is its work (native_keep_work).
 *   WAIT  native_wait was called; the fiber is parked until vm_complete* with the ticket. Cancelling the fiber calls
 *         `cancel` once, after which the operation must not complete it (a late completion is ignored: its generation
 *         is old). A native that can answer at once returns DONE instead; vm_complete* before the native returned is
 *         a bug.
 */
#ifndef CY_RUN_NATIVE_CALL_H
#define CY_RUN_NATIVE_CALL_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/run/value.h"

struct fiber;
struct instance;

enum native_outcome { NATIVE_DONE, NATIVE_FAIL, NATIVE_WAIT, NATIVE_AGAIN };

/* Names one wait of one fiber. A fiber's generation moves on at every wake-up. */
typedef struct wait_ticket {
    uint32_t fiber_index;
    uint32_t generation;
} wait_ticket;

struct native_call {
    struct vm *vm;
    struct fiber *fiber;       /* the caller */
    struct instance *instance; /* the program instance the caller belongs to */
    const cy_value *args;      /* borrowed; kinds already checked against the signature */
    uint32_t arg_count;        /* required_count..param_count; skipped middle ones are TAG_ABSENT */
    cy_value result;
    cy_value error; /* set by native_fail* */
    /* set by native_wait */
    void (*cancel)(void *operation);
    void *operation;
};

typedef enum native_outcome (*native_body)(struct native_call *call);

/* -- vm/run/memory.c: memory outside the heap, of an operation --------------------------------------------- */

/* Bytes that count as the VM's and as those of the task (with all it spawned). Lies in the operation. */
struct memory_hold {
    struct vm *vm;
    _Atomic uint64_t *held_bytes; /* of struct vm_options */
    struct fiber *group;          /* NULL: of the VM alone */
    uint64_t group_serial;
    size_t bytes;
    size_t group_bytes; /* of them, what the task is charged for */
};
void memory_hold_begin(struct native_call *call, struct memory_hold *hold);
/* For what belongs to no task, such as a buffer of the runtime. */
void memory_hold_begin_for_vm(struct vm *vm, struct memory_hold *hold);
/* What may be held in addition: the least of what the VM and the task have left. */
size_t memory_hold_left(const struct memory_hold *hold);
/* Before `bytes` more are allocated. NO_MEMORY past what the VM may have, STOP_MEMORY past what the task may have
 * (which goes on: it has not got them); nothing more is held then. */
CY_NODISCARD cy_err memory_hold_grow(struct memory_hold *hold, size_t bytes);
/* The same on another thread than the VM's, which cannot ask the task's account nor the heap's: they are counted as the
 * VM's at once, and `bytes_max` (memory_hold_left where the operation began) bounds what all such holds of the VM have
 * together. One thread at a time uses a hold. */
CY_NODISCARD cy_err memory_hold_grow_beside(struct memory_hold *hold, size_t bytes, size_t bytes_max);
/* The task is gone; what the operation still holds is the VM's alone. Afterwards the VM may go before the hold ends. */
void memory_hold_leave_task(struct memory_hold *hold);
/* All of it is given back. `result_bytes` of the heap that were made of it are the task's instead; during a turn they
 * are so already. */
void memory_hold_end(struct memory_hold *hold, uint64_t result_bytes);

static inline bool native_has_arg(const struct native_call *call, uint32_t index)
{
    return index < call->arg_count && call->args[index].tag != TAG_ABSENT;
}
/* Moves an argument out of the window: a body that changes a container then works in place when nobody else holds
 * it. */
static inline cy_value native_take_arg(struct native_call *call, uint32_t index)
{
    cy_value *slot = (cy_value *)&call->args[index]; /* the window is the VM's own memory */
    cy_value value = *slot;
    *slot = value_nil();
    return value;
}
static inline enum native_outcome native_return(struct native_call *call, cy_value owned_result)
{
    call->result = owned_result;
    return NATIVE_DONE;
}
/* Fails with the row's kind and a message; all return NATIVE_FAIL. The format is a row of native_message.def when it
 * has words, and is Korean where the run is. */
enum native_outcome native_fail(struct native_call *call, cy_err reason, const char *format, ...)
    CY_PRINTF(3, 4);
/* Fails with what the row says: "text.repeat: too large (STRING_BYTES: 1073741824)". Where it is a limit that was met,
 * and the reason tells which, its name and value stand behind; for memory those of the VM's. */
enum native_outcome native_fail_reason(struct native_call *call, cy_err reason, const char *native);
/* With data that the program reads as error.data. */
enum native_outcome native_fail_data(struct native_call *call, cy_err reason, cy_value owned_data,
                                     const char *format, ...) CY_PRINTF(4, 5);

/* `english` in the language of the run, when native_message.def has it; for parts of a message. native_fail does it for
 * its format. */
const char *vm_text(struct vm *vm, const char *english) __attribute__((format_arg(2)));
/* NULL when the table has no row of it. */
const char *native_message_korean(const char *english);

/* Prepares to return NATIVE_WAIT. `cancel` gets `operation`. */
wait_ticket native_wait(struct native_call *call, void (*cancel)(void *operation), void *operation);
/* What an earlier call of this body kept, NULL in the first one. */
void *native_work(const struct native_call *call);
/* `free` gets it when the body has returned DONE or FAIL, or when the task is stopped. */
void native_keep_work(struct native_call *call, void *owned_work, void (*free)(struct vm *vm, void *work));
/* The same for a body whose state is a struct on its C stack: `native_resume` fills it with what an earlier call has
 * left, or says false in the first one. `native_pause` keeps it and returns AGAIN, or without memory drops it and
 * fails. `drop` (may be NULL) frees what a state owns, when the task is stopped meanwhile. */
bool native_resume(struct native_call *call, void *state_out, size_t bytes);
enum native_outcome native_pause(struct native_call *call, void *state, size_t bytes,
                                 void (*drop)(struct vm *vm, void *state), const char *native);
/* The task's turn is over: a body that can go on later returns AGAIN. */
bool native_turn_over(const struct native_call *call);
/* Charges `steps` of the budget for long native work (about one per 100 bytes or items). */
void native_charge(struct native_call *call, uint64_t steps);
/* What is left of the budget, below 0 once it is used up. What calls of object.h charged is the difference of two of
 * these; a body that makes many bounds it. */
int64_t native_budget(const struct native_call *call);

#endif
