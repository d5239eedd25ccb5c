/* SPDX-License-Identifier: MIT
 *
 * vm/run/heap.h: sized allocation under the VM's memory limit, and the queue of what waits to be freed.
 *
 * In:   sizes; the caller remembers them and gives them back when freeing.
 * Out:  memory, or NULL past the limit or without memory. NULL becomes an error in the fiber, never an abort.
 * Invariant: vm->heap_bytes is the sum of what is given out. Objects with contents are freed through
 *       heap_bury, which works off a list instead of recursing.
 */
#ifndef CY_RUN_HEAP_H
#define CY_RUN_HEAP_H

#include "vm/run/value.h"

/* Head of every object that can hold other values or whose freeing runs foreign code. */
struct container {
    struct object head;
    union {
        struct object *dead_next; /* once it is dead: the next one to free */
        uint64_t search;          /* before: what refs.c notes about it; 0 in a new one */
    };
};

CY_NODISCARD void *heap_alloc(struct vm *vm, size_t bytes);
CY_NODISCARD void *heap_alloc_zeroed(struct vm *vm,
                                     size_t bytes); /* a large one costs nothing until it is used */
/* On failure the old block is untouched. */
CY_NODISCARD void *heap_resize(struct vm *vm, void *block, size_t bytes_old, size_t bytes);
void heap_free(struct vm *vm, void *block, size_t bytes);
/* Memory of mem.h that is kept over turns counts as the heap's meanwhile. False when it does not fit. */
CY_NODISCARD bool heap_count(struct vm *vm, size_t bytes);
void heap_uncount(struct vm *vm, size_t bytes);
/* A block of mem.h becomes one of the heap, cut to `bytes`. On failure it stays what and whose it was. */
CY_NODISCARD void *heap_adopt(struct vm *vm, void *block, size_t bytes);

/* An object with one reference; only the head is set. */
CY_NODISCARD void *heap_new_object(struct vm *vm, enum value_tag tag, size_t bytes);
void heap_free_object(struct vm *vm, struct object *object, size_t bytes);

/* Queues a dead container. */
void heap_bury(struct vm *vm, struct object *object);
/* Frees queued objects for at most `steps` items. True when some are left. */
bool heap_drain(struct vm *vm, size_t steps);

#endif
