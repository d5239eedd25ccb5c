/* SPDX-License-Identifier: MIT
 *
 * vm/run/heap.c: memory of one VM, counted, and the freeing of dead objects without recursion.
 *
 * In:   sizes; dead containers.
 * Out:  memory or NULL.
 * Method: a dead container stays on top of a linked list while its contents are let go one by one;
 *       contents that die go on top of it. The list lives in the objects, so freeing allocates nothing.
 *       One call does a bounded number of steps, the rest waits for the next call, for vm_idle, or for
 *       allocations, each of which pays for twice its own size: a task that never waits has no idle turn.
 * Not here: layouts; each type has a pop_dead (one more content) and a free.
 */
#include "vm/run/heap.h"

#include "vm/base/mem.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/refs.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

/* Contents let go by the write that killed their container; about 50 us. A larger structure is freed over
 * later turns. */
enum { HEAP_DRAIN_STEPS = 4096 };
/* One content is a value of 16 bytes at least, so this frees two bytes for each that is taken. */
enum { HEAP_DEBT_STEPS = 16, HEAP_DEBT_BYTES_PER_STEP = 8 };
/* What one allocation pays at most, about 5 ms: a large one must not free all that is waiting in one go. */
enum { HEAP_DEBT_STEPS_MAX = 1 << 18 };
/* An allocation that may take a task past its soft limit within one turn (memory.c). */
enum { HEAP_LARGE_BYTES = 1 << 20 };

static bool heap_fits(struct vm *vm, size_t bytes)
{
    if (CY_UNLIKELY(bytes >= HEAP_LARGE_BYTES) && vm->running && !memory_may_allocate(vm, bytes))
        return false;
    uint64_t held = atomic_load_explicit(vm->held_bytes, memory_order_relaxed);
    if (bytes <= vm->heap_bytes_max && vm->heap_bytes + held <= vm->heap_bytes_max - bytes) return true;
    if (vm->freeing) return false;
    bool more = vm->dead != NULL;
    while (more && (bytes > vm->heap_bytes_max || vm->heap_bytes + held > vm->heap_bytes_max - bytes))
        more = heap_drain(vm, HEAP_DRAIN_STEPS); /* no more than it takes */
    return bytes <= vm->heap_bytes_max && vm->heap_bytes + held <= vm->heap_bytes_max - bytes;
}

static inline void heap_pay_debt(struct vm *vm, size_t bytes)
{
    if (CY_UNLIKELY(vm->dead) && !vm->freeing) {
        size_t steps = HEAP_DEBT_STEPS + bytes / HEAP_DEBT_BYTES_PER_STEP;
        heap_drain(vm, cy_min_size(steps, HEAP_DEBT_STEPS_MAX));
    }
}

static inline void heap_add(struct vm *vm, size_t bytes)
{
    vm->heap_bytes += bytes;
    if (vm->heap_bytes > vm->heap_bytes_peak) vm->heap_bytes_peak = vm->heap_bytes;
}

/* Under AddressSanitizer each block is one of malloc's: freed ones rest before they come back, and every one that is
 * left tells who made it. */
static inline bool heap_is_small(size_t bytes) { return !MEM_HIDES && bytes <= SMALL_BYTES_MAX; }

static inline void *heap_take(struct vm *vm, size_t bytes)
{
    return heap_is_small(bytes) ? small_take(&vm->small, bytes) : mem_alloc(bytes);
}

static inline void heap_give(struct vm *vm, void *block, size_t bytes)
{
    if (heap_is_small(bytes))
        small_put(&vm->small, block, bytes);
    else
        mem_free(block);
}

void *heap_alloc(struct vm *vm, size_t bytes)
{
    heap_pay_debt(vm, bytes);
    if (!heap_fits(vm, bytes)) return NULL;
    void *block = heap_take(vm, bytes);
    if (block) heap_add(vm, bytes);
    return block;
}

void *heap_alloc_zeroed(struct vm *vm, size_t bytes)
{
    if (heap_is_small(bytes)) {
        void *small = heap_alloc(vm, bytes);
        if (small) memset(small, 0, bytes);
        return small;
    }
    heap_pay_debt(vm, bytes);
    if (!heap_fits(vm, bytes)) return NULL;
    void *block = mem_alloc_zeroed(bytes);
    if (block) heap_add(vm, bytes);
    return block;
}

/* Between sizes one of which is small. */
static void *heap_move(struct vm *vm, void *block, size_t bytes_old, size_t bytes)
{
    if (heap_is_small(bytes) && heap_is_small(bytes_old) && small_class(bytes) == small_class(bytes_old))
        return mem_request_fails() ? NULL : block; /* a shrinking one may fail too, as mem_resize may */
    void *moved = heap_take(vm, bytes);
    if (!moved) return NULL;
    memcpy(moved, block, cy_min_size(bytes_old, bytes));
    heap_give(vm, block, bytes_old);
    return moved;
}

void *heap_resize(struct vm *vm, void *block, size_t bytes_old, size_t bytes)
{
    if (!block) {
        DCHECK(bytes_old == 0);
        return heap_alloc(vm, bytes);
    }
    if (bytes > bytes_old) {
        heap_pay_debt(vm, bytes - bytes_old);
        if (!heap_fits(vm, bytes - bytes_old)) return NULL;
    }
    bool small = heap_is_small(bytes) || heap_is_small(bytes_old);
    void *moved = small ? heap_move(vm, block, bytes_old, bytes) : mem_resize(block, bytes);
    if (!moved) return NULL;
    vm->heap_bytes -= bytes_old;
    heap_add(vm, bytes);
    return moved;
}

void heap_free(struct vm *vm, void *block, size_t bytes)
{
    if (!block) return;
    DCHECK(vm->heap_bytes >= bytes);
    vm->heap_bytes -= bytes;
    heap_give(vm, block, bytes);
}

bool heap_count(struct vm *vm, size_t bytes)
{
    if (!heap_fits(vm, bytes)) return false;
    heap_add(vm, bytes);
    return true;
}

void heap_uncount(struct vm *vm, size_t bytes)
{
    DCHECK(vm->heap_bytes >= bytes);
    vm->heap_bytes -= bytes;
}

void *heap_adopt(struct vm *vm, void *block, size_t bytes)
{
    if (!heap_fits(vm, bytes)) return NULL;
    void *moved = heap_is_small(bytes) ? small_take(&vm->small, bytes) : mem_resize(block, bytes);
    if (!moved) return NULL;
    if (heap_is_small(bytes)) {
        memcpy(moved, block, bytes);
        mem_free(block);
    }
    heap_add(vm, bytes);
    return moved;
}

void *heap_new_object(struct vm *vm, enum value_tag tag, size_t bytes)
{
    struct object *object = heap_alloc(vm, bytes);
    if (!object) return NULL;
    *object = (struct object){.refs = 1, .tag = (uint8_t)tag};
    if (tag != TAG_STR && tag != TAG_RANGE) ((struct container *)object)->search = 0;
    vm->heap_objects++;
    return object;
}

void heap_free_object(struct vm *vm, struct object *object, size_t bytes)
{
    DCHECK(vm->heap_objects > 0);
    vm->heap_objects--;
    heap_free(vm, object, bytes);
}

void heap_bury(struct vm *vm, struct object *object)
{
    struct container *container = (struct container *)object;
    container->dead_next = vm->dead;
    vm->dead = object;
}

/* Takes one content out of a dead container; false when it is empty. */
static bool heap_pop_content(struct object *object, cy_value *content_out)
{
    switch (object->tag) {
    case TAG_LIST: return list_pop_dead((struct list *)object, content_out);
    case TAG_MAP: return map_object_pop_dead((struct map_object *)object, content_out);
    case TAG_RECORD: {
        struct record *record = (struct record *)object;
        if (record->live_count == 0) return false;
        *content_out = record->fields[--record->live_count];
        return true;
    }
    case TAG_FUNCTION: {
        struct function_object *function = (struct function_object *)object;
        if (function->capture_count == 0) return false;
        *content_out = function->captures[--function->capture_count];
        return true;
    }
    case TAG_REF: {
        struct ref *ref = (struct ref *)object;
        if (ref->value.tag == TAG_NIL) return false;
        *content_out = ref->value;
        ref->value = value_nil();
        return true;
    }
    default: return false;
    }
}

static void heap_free_empty(struct vm *vm, struct object *object)
{
    switch (object->tag) {
    case TAG_LIST: list_free(vm, (struct list *)object); return;
    case TAG_MAP: map_object_free(vm, (struct map_object *)object); return;
    case TAG_RECORD: record_free(vm, (struct record *)object); return;
    case TAG_FUNCTION: function_free(vm, (struct function_object *)object); return;
    case TAG_REF: ref_free(vm, (struct ref *)object); return;
    case TAG_OPAQUE: opaque_free(vm, (struct opaque *)object); return;
    default: UNREACHABLE();
    }
}

bool heap_drain(struct vm *vm, size_t steps)
{
    CHECK(!vm->freeing);
    vm->freeing = true;
    for (; vm->dead && steps > 0; steps--) {
        struct object *object = vm->dead;
        cy_value content;
        if (heap_pop_content(object, &content)) {
            value_unref(vm, content); /* what dies here lands on top of `object` */
            continue;
        }
        vm->dead = ((struct container *)object)->dead_next;
        heap_free_empty(vm, object);
    }
    vm->freeing = false;
    return vm->dead != NULL;
}

void value_free(struct vm *vm, cy_value value)
{
    switch (value.tag) {
    case TAG_STR: string_free(vm, string_of(value)); return;
    case TAG_RANGE: heap_free_object(vm, value.as.object, sizeof(struct range)); return;
    default: break;
    }
    if (value.tag == TAG_REF && CY_UNLIKELY(vm->search.watching)) refs_dying(vm, ref_of(value));
    heap_bury(vm, value.as.object);
    if (!vm->freeing) heap_drain(vm, HEAP_DRAIN_STEPS);
}
