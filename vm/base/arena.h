/* SPDX-License-Identifier: MIT
 *
 * vm/base/arena.h: memory that is given back all at once.
 *
 * In:   sizes; alignment is 16.
 * Out:  blocks that live until arena_reset or arena_fini.
 * Invariant: a block is never moved. In DEBUG builds freed arenas are poisoned.
 */
#ifndef CY_BASE_ARENA_H
#define CY_BASE_ARENA_H

#include "vm/base/base.h"
#include "vm/base/bytes.h"

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks; /* newest first */
    uint8_t *next;              /* free space in the newest chunk */
    uint8_t *end;
    size_t used_bytes;        /* given out since init or reset */
    size_t used_bytes_max;    /* 0 = no limit; past it allocation gives NULL */
    bool exit_when_exhausted; /* compile-time arenas: mem_exhausted() instead of NULL */
};

void arena_init(struct arena *arena, size_t used_bytes_max);
void arena_fini(struct arena *arena);
/* Gives everything back but keeps one chunk for the next round. */
void arena_reset(struct arena *arena);

/* What it has taken, with what is not given out yet. */
size_t arena_memory_bytes(const struct arena *arena);

CY_NODISCARD void *arena_alloc(struct arena *arena, size_t bytes);
CY_NODISCARD void *arena_alloc_zeroed(struct arena *arena, size_t bytes);
/* A copy in the arena with a NUL behind it (not counted). data is NULL when there was no memory. */
CY_NODISCARD cy_bytes arena_copy(struct arena *arena, cy_bytes bytes);
/* Grows a block: in place when it is the newest one, else by copy. The old block must not be used afterwards. */
CY_NODISCARD void *arena_grow(struct arena *arena, void *block, size_t old_bytes, size_t new_bytes);

#endif
