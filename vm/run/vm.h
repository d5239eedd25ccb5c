/* SPDX-License-Identifier: MIT
 *
 * vm/run/vm.h: one VM: a heap, fibers, handles and the program instances that run in it. One per worker.
 *
 * In:   verified programs; native bodies; a host that runs vm_run when told that fibers are ready.
 * Out:  calls into bytecode whose results come back through a callback.
 * Invariant: bytecode runs inside vm_run and nowhere else; no C recursion for calls, so a fiber may be parked at any
 *       native. Nothing here knows sockets, HTTP or processes.
 */
#ifndef CY_RUN_VM_H
#define CY_RUN_VM_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/base/hash.h"
#include "vm/base/log.h"
#include "vm/code/program.h"
#include "vm/run/native_call.h"
#include "vm/run/value.h"

struct holds;
struct profile;

struct vm_options {
    const native_body
        *natives; /* by native number, NATIVE_NUMBER_END entries; NULL entries are not linked in */
    uint64_t memory_bytes_max; /* 0: LIMIT_VM_MEMORY_BYTES */
    /* What one task and all it spawns may hold; past it they are stopped. 0: LIMIT_TASK_MEMORY_BYTES, UINT64_MAX: no
     * limit. The main task itself has none: who else would need the memory. */
    uint64_t task_memory_bytes_max;
    /* Where the bytes are counted that operations hold outside of the heap. Given by a host whose operations may
     * outlive the VM, on a helper thread for example. NULL: the VM's own. */
    _Atomic uint64_t *held_bytes;
    uint32_t capabilities; /* granted bits; a program that needs more is refused by instance_new */
    hash_seed seed;        /* random where map keys come from peers */
    bool korean;           /* language of messages */
    struct log *log;       /* borrowed */
    void *host;            /* for natives: vm_host(vm) */
    /* Takes what print (descriptor 1) and print_error (2) write, whole lines. NULL: they write and wait for the
     * reader. */
    cy_err (*put)(void *host, int descriptor, cy_bytes text);
    /* Some fiber became ready while vm_run was not running: run it soon. Called at most once until vm_run ran. */
    void (*on_ready)(void *host);
    uint64_t (*clock_ns)(void *host); /* monotonic, for deadlines; NULL: the system's */
    /* The earliest deadline of all tasks moved to this time of clock_ns: run vm_run then. NULL when the host runs it
     * again and again anyway. Never told when it moves away. */
    void (*on_deadline)(void *host, uint64_t at_ns);
    /* CPU used by this thread, for the allowance of tasks; NULL: the system's clock of the thread. Wall time would
     * punish a task for what other processes do. Asked only from a task's second turn on. */
    uint64_t (*cpu_ns)(void *host);
    uint64_t
        cpu_burst_ms; /* allowance of a task but main between two waits; 0: LIMIT_CPU_BURST_MS, UINT64_MAX: none */
    /* Borrowed; NULL: none. It must not outlive the programs that ran. Turns end at its samples. */
    struct profile *profile;
    struct holds *holds; /* borrowed; NULL: none. Every turn is then measured. */
};

CY_NODISCARD cy_err vm_new(const struct vm_options *options, struct vm **vm_out);
/* Cancels every fiber, frees everything. The host must not complete waits afterwards. */
void vm_free(struct vm **vm);
void *vm_host(struct vm *vm);
struct log *vm_log(struct vm *vm);
bool vm_korean(struct vm *vm);
/* options.put, or write(2) until all is written. */
CY_NODISCARD cy_err vm_put(struct vm *vm, int descriptor, cy_bytes text);
/* Bytes that the VM may still allocate, at most `bytes_max`: bounds scratch memory outside its heap. */
size_t vm_memory_left(const struct vm *vm, size_t bytes_max);

/* Charges the running task for work done outside of a native_call: as native_charge. */
void vm_work(struct vm *vm, uint64_t steps);

/* -- instances: one program's module variables ----------------------------------------------------------- */
/* Prepares the program's code and runs its initialisers (they cannot wait). The program is borrowed and must outlive
 * the instance. On failure `error_out` (may be NULL) is an owned error value, and what is returned its
 * error_reason: CAPABILITY (names native and place) only when we refused one, never for a program's own `fail`. */
CY_NODISCARD cy_err instance_new(struct vm *vm, const struct program *program, struct instance **instance_out,
                                 cy_value *error_out);
struct instance *instance_ref(struct instance *instance);
/* Whether anybody but the caller holds it: a fiber that still runs on it. */
bool instance_is_shared(const struct instance *instance);
void instance_unref(struct vm *vm, struct instance **instance); /* fibers hold references of their own */
const struct program *instance_program(const struct instance *instance);
/* The function that main exports under `name`, borrowed. Errors: NOT_FOUND; NO_MEMORY, for it is made on first use. */
CY_NODISCARD cy_err instance_export(struct instance *instance, cy_bytes name, cy_value *function_out);

/* For a program that grows (compiler/session.h): from now on the instance runs `program`, which begins like the one
 * before it. Variables, function values, records and errors go on; the old program may be freed afterwards. Nobody but
 * the caller may hold the instance. New modules' initialisers have not run: instance_start_initialiser. On failure
 * nothing has changed: BAD_FORMAT when it does not begin like the old one; else as instance_new. */
CY_NODISCARD cy_err instance_extend(struct vm *vm, struct instance *instance, const struct program *program,
                                    cy_value *error_out);

/* -- calls ----------------------------------------------------------------------------------------------- */
enum call_outcome { CALL_RETURNED, CALL_FAILED, CALL_STOPPED };
/* `value` is the result, or the error; for a stop an error record that says why and where (nil without memory; `stop`
 * has the reason too). Borrowed during the callback. */
typedef void (*call_done)(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                          cy_err stop);

/* Starts a task: calls `function` with the arguments (references are taken from the caller on success only) in a new
 * fiber. `done` is called from vm_run when it has ended, never from here. `fiber_out` may be NULL; it is valid until
 * done. */
CY_NODISCARD cy_err vm_start(struct vm *vm, struct instance *instance, cy_value function,
                             const cy_value *args, uint32_t arg_count, call_done done, void *context,
                             struct fiber **fiber_out);
/* Starts a module's initialisers as a task, which may wait. `*started_out` is false when it has none. */
CY_NODISCARD cy_err instance_start_initialiser(struct vm *vm, struct instance *instance, uint32_t module,
                                               call_done done, void *context, struct fiber **fiber_out,
                                               bool *started_out);
/* Asks a fiber to stop; its defers run; `done` gets CALL_STOPPED. Harmless on one that is ending. */
void vm_cancel(struct vm *vm, struct fiber *fiber);
/* The same for every fiber of an instance: a generation that is too old. */
void vm_cancel_instance(struct vm *vm, struct instance *instance);
/* Makes a fiber the program's main task: natives with the flag MAIN work in it and in no other, and it has no allowance
 * of CPU or memory of its own: who else would need them. What it spawns has. */
void vm_mark_main(struct vm *vm, struct fiber *fiber);

/* Gives every group that is ready (a task of the host or of main, with what it spawned) one turn of about a budget. A
 * task that spawns a million others delays nobody but itself. True when some are still ready (call again after looking
 * at the network). */
bool vm_run(struct vm *vm);
/* Frees a slice of what is waiting to be freed, or looks for cells that only hold each other. True when there is
 * more. */
bool vm_idle(struct vm *vm);
/* Fibers alive; those parked count. */
uint32_t vm_fiber_count(const struct vm *vm);

/* -- waking ---------------------------------------------------------------------------------------------- */
/* A stale ticket is ignored (the value is let go). */
void vm_complete(struct vm *vm, wait_ticket ticket, cy_value owned_result);
void vm_complete_error(struct vm *vm, wait_ticket ticket, cy_value owned_error);
/* The same with an error made here, which also without memory is one. */
void vm_complete_failed(struct vm *vm, wait_ticket ticket, cy_err reason, cy_bytes message);

/* -- reports --------------------------------------------------------------------------------------------- */
struct vm_counters {
    uint64_t copies;          /* containers copied: a write met a shared one, or + made a new list of one */
    uint64_t heap_bytes;      /* now */
    uint64_t heap_bytes_peak; /* the most there ever was */
    uint64_t heap_objects;    /* now */
    uint64_t cells;           /* of `ref`, now */
    uint64_t cells_found;     /* freed because they only held each other */
    uint64_t searches;        /* for such cells, ended */
    uint64_t instructions;    /* budget steps taken, about */
    uint64_t fibers_started;  /* calls of the host, tasks and initialisers */
    uint64_t tasks_started;   /* by spawn */
};
void vm_read_counters(const struct vm *vm, struct vm_counters *counters_out);

/* "kind: message\n  at name (file:line:column)\n ..." one line for each place. For logs. */
void vm_describe_error(struct vm *vm, cy_value error, struct builder *out);

#endif
