/* SPDX-License-Identifier: MIT
 *
 * vm/run/vm_internal.h: struct vm and what hangs from it. Private to vm/run.
 *
 * Not here: layouts of values (string.h, list.h, map_object.h, record.h), prepared code (code.h), fibers
 *       (fiber.h).
 */
#ifndef CY_RUN_VM_INTERNAL_H
#define CY_RUN_VM_INTERNAL_H

#include "vm/base/limits.h"
#include "vm/base/small.h"
#include "vm/run/heap.h"
#include "vm/run/object.h"
#include "vm/run/record.h"
#include "vm/run/refs.h"
#include "vm/run/vm.h"

#include <stdatomic.h>

struct fiber;
struct handle_slot;
struct value_walk;

struct vm {
    struct vm_options options;

    /* heap.c */
    uint64_t heap_bytes;
    uint64_t heap_bytes_peak;
    uint64_t heap_bytes_max;
    uint64_t heap_bytes_high; /* most at the end of a turn since memory was given back to the system */
    uint64_t heap_objects;
    struct small_pool small; /* blocks of up to SMALL_BYTES_MAX */
    struct object *dead;     /* containers whose contents are still to be freed, by container.dead_next */
    bool freeing;
    struct ref *refs; /* all live cells */
    uint64_t ref_count;
    struct refs_search search; /* refs.c */

    /* errors */
    struct record_shape *error_shape;
    uint64_t shape_serial; /* of the last shape made */
    cy_value memory_error; /* made in advance: an error for when nothing can be made */
    cy_value raised;       /* owned; set by whoever fails, taken by unwind */

    /* fibers */
    struct fiber **fibers; /* by index; NULL or pooled entries are not alive */
    uint32_t fiber_count;  /* entries in use in `fibers` */
    uint32_t fiber_capacity;
    uint32_t fiber_live_count;
    struct fiber *pool; /* ended fibers kept for the next call, by fiber.next */
    uint32_t pool_count;
    uint64_t fiber_serial;                           /* of the fiber made last */
    uint64_t tasks_cancelled[LIMIT_TASKS_CANCELLED]; /* the handles of the last ones, in a ring (task.c) */
    uint32_t tasks_cancelled_next;
    uint64_t circle_search;    /* of the search for a circle of waits made last (task_join.c) */
    struct fiber *group_first; /* groups with a ready fiber, by group_next */
    struct fiber *group_last;
    uint32_t group_count;
    struct fiber *running;
    int64_t budget;   /* of the running fiber */
    bool step_paused; /* the running step is not done: it is run again in the fiber's next turn */
    uint64_t burst_ns_max;

    /* memory.c */
    uint64_t turn_heap_bytes; /* heap_bytes when the running fiber got its turn */
    uint64_t task_memory_bytes_max;
    _Atomic uint64_t *held_bytes; /* outside the heap, of operations; helper threads add to it too */
    _Atomic uint64_t held_bytes_own;
    struct fiber *garbage_group; /* whose garbage waits to be freed, when its serial still is: */
    uint64_t garbage_serial;

    /* deadline.c: a heap by deadline_ns, earliest first */
    struct fiber **deadlines;
    uint32_t deadline_count;
    uint32_t deadline_capacity;
    struct value_walk *compare; /* the == under way: keys of its maps are compared inside it */
    bool in_run;
    bool ready_told; /* on_ready was called and vm_run has not run since */

    /* handle.c */
    struct handle_slot *handles;
    uint32_t handle_count;
    uint32_t handle_capacity;
    uint32_t handle_free; /* index + 1 of the first free one */

    uint64_t
        prepare_looks; /* entries that preparing looked at, for the test that this is linear in the code */
    struct instance *instances;  /* all, by instance.next */
    struct vm_counters counters; /* heap_* are filled when read */
};

static inline bool vm_is_korean(const struct vm *vm) { return vm->options.korean; }

uint64_t vm_cpu_ns(struct vm *vm);
uint64_t vm_clock_ns(struct vm *vm);

/* memory.c: whether the running task's group may have so many more; asks it to stop when not. */
bool memory_may_allocate(struct vm *vm, size_t bytes);
/* heap_drain outside of any turn: what it frees is credited to the group that left it. */
bool memory_drain_later(struct vm *vm, size_t steps);

/* Work inside one step counts like steps, so that the budget bounds time: about one for 100 bytes or 8 values. The
 * interpreter looks at the budget behind every step that may have charged. */
static inline void vm_charge(struct vm *vm, uint64_t steps)
{
    int64_t most = steps < INT32_MAX ? (int64_t)steps : INT32_MAX;
    if (vm->budget > INT64_MIN / 2) vm->budget -= most;
}
static inline void vm_charge_bytes(struct vm *vm, size_t bytes) { vm_charge(vm, bytes / 100); }
static inline void vm_charge_items(struct vm *vm, size_t items) { vm_charge(vm, items / 8); }

/* Before a cell's content is read to be kept, or written. */
static inline struct ref *ref_touch(struct vm *vm, cy_value cell)
{
    struct ref *ref = ref_of(cell);
    if (CY_UNLIKELY(vm->search.watching)) refs_touched(vm, ref);
    return ref;
}
/* The same for writing. */
static inline struct ref *ref_touch_to_write(struct vm *vm, cy_value cell)
{
    vm->search.credit += REF_CREDIT;
    return ref_touch(vm, cell);
}

/* -- messages: one table for both languages -------------------------------------------------------------- */
enum vm_message {
#define MESSAGE(name, korean, english) MESSAGE_##name,
#include "vm/run/message.def"
#undef MESSAGE
    MESSAGE_COUNT
};
const char *vm_message_text(enum vm_message message, bool korean);

/* -- errors ---------------------------------------------------------------------------------------------- */
/* Makes the error and leaves it in vm->raised; always returns false, so that `return error_raise(...)`
 * reads well. */
bool error_raise(struct vm *vm, cy_err reason, enum vm_message message, ...);
bool error_raise_data(struct vm *vm, cy_err reason, cy_value owned_data, enum vm_message message, ...);
/* For a failed allocation or bound: the row's own text. */
bool error_raise_plain(struct vm *vm, cy_err reason);
/* The same, naming the row of limits.def that was met. */
bool error_raise_limit(struct vm *vm, cy_err reason, const char *limit_name);
/* For what == or hashing a key met. */
bool error_raise_walk(struct vm *vm, cy_err reason);
/* Leaves an owned error in vm->raised. */
bool error_raise_value(struct vm *vm, cy_value owned_error);
/* Never fails: without memory it is the one made in advance. */
cy_value error_make(struct vm *vm, cy_err reason, cy_bytes message, cy_value owned_data);

/* Turns the places of an error record, kept as numbers, into its list of texts; anything else is left alone. Before
 * anybody looks into a record. Without memory for them there are fewer, or nil instead. */
void error_settle_places(struct vm *vm, cy_value record);

/* Index of fields in an error record. */
enum { ERROR_FIELD_KIND, ERROR_FIELD_MESSAGE, ERROR_FIELD_DATA, ERROR_FIELD_STACK, ERROR_FIELD_COUNT };

/* -- handles --------------------------------------------------------------------------------------------- */
void handle_close_all(struct vm *vm, struct fiber *owner);
void handle_move(struct vm *vm, cy_value handle, struct fiber *from, struct fiber *to);
bool handle_get_field(struct vm *vm, cy_value handle, cy_bytes name, cy_value *owned_out, cy_err *err_out);
void handle_table_free(struct vm *vm);

#endif
