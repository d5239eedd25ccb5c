/* SPDX-License-Identifier: MIT
 *
 * vm/base/arena.c: chunks that double, and a pointer that moves through the newest.
 *
 *      chunks -> [head|used...|next  free  end] -> [head|full] -> [head|full] -> NULL
 *
 * In:   sizes. Out: 16-byte aligned blocks.
 * Invariant: next and end lie in the newest chunk, or are both NULL when there is none.
 * Under AddressSanitizer the free part of a chunk is poisoned, so that a write past a block is seen although the
 * block's neighbours belong to the same malloc.
 */
#include "vm/base/arena.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <string.h>

enum {
    ARENA_ALIGNMENT = 16,
    ARENA_CHUNK_BYTES_FIRST = 4096 - 32, /* with malloc's own head, one page */
    ARENA_CHUNK_BYTES_MAX = 1 << 20      /* past it doubling only wastes the tail */
};

struct arena_chunk {
    struct arena_chunk *older;
    size_t bytes; /* room behind the head */
    _Alignas(16) uint8_t room[];
};

static size_t arena_round_up(size_t bytes)
{
    return (bytes + (ARENA_ALIGNMENT - 1)) & ~(size_t)(ARENA_ALIGNMENT - 1);
}

static void arena_free_chunk(struct arena_chunk *chunk)
{
    MEM_SHOW(chunk->room, chunk->bytes);
#ifdef CY_DEBUG
    memset(chunk->room, 0xDD, chunk->bytes);
#endif
    mem_free(chunk);
}

/* Makes the whole room of `chunk` free again and points the arena at it. */
static void arena_start_in(struct arena *arena, struct arena_chunk *chunk)
{
#ifdef CY_DEBUG
    MEM_SHOW(chunk->room, chunk->bytes);
    memset(chunk->room, 0xDD, chunk->bytes);
#endif
    MEM_HIDE(chunk->room, chunk->bytes);
    arena->next = chunk->room;
    arena->end = chunk->room + chunk->bytes;
}

static void *arena_refuse(struct arena *arena)
{
    if (arena->exit_when_exhausted) mem_exhausted();
    return NULL;
}

void arena_init(struct arena *arena, size_t used_bytes_max)
{
    *arena = (struct arena){.used_bytes_max = used_bytes_max};
}

size_t arena_memory_bytes(const struct arena *arena)
{
    size_t bytes = 0;
    for (const struct arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->older)
        bytes += sizeof *chunk + chunk->bytes;
    return bytes;
}

void arena_fini(struct arena *arena)
{
    for (struct arena_chunk *chunk = arena->chunks; chunk;) {
        struct arena_chunk *older = chunk->older;
        arena_free_chunk(chunk);
        chunk = older;
    }
    arena->chunks = NULL;
    arena->next = arena->end = NULL;
    arena->used_bytes = 0;
}

void arena_reset(struct arena *arena)
{
    /* The newest is the largest, or as large as the one huge block. */
    struct arena_chunk *kept = arena->chunks;
    arena->used_bytes = 0;
    if (!kept) return;
    for (struct arena_chunk *chunk = kept->older; chunk;) {
        struct arena_chunk *older = chunk->older;
        arena_free_chunk(chunk);
        chunk = older;
    }
    kept->older = NULL;
    arena_start_in(arena, kept);
}

static bool arena_add_chunk(struct arena *arena, size_t bytes_needed)
{
    size_t bytes = arena->chunks ? cy_min_size(arena->chunks->bytes * 2, ARENA_CHUNK_BYTES_MAX)
                                 : ARENA_CHUNK_BYTES_FIRST;
    bytes = arena_round_up(cy_max_size(bytes, bytes_needed));
    struct arena_chunk *chunk = mem_alloc(sizeof *chunk + bytes);
    if (!chunk) return false;
    chunk->older = arena->chunks;
    chunk->bytes = bytes;
    arena->chunks = chunk;
    arena_start_in(arena, chunk);
    return true;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    /* PTRDIFF_MAX first, so that no sum below can wrap. An empty block still gets an address of its own. */
    if (bytes > PTRDIFF_MAX / 2) return arena_refuse(arena);
    size_t taken = arena_round_up(bytes ? bytes : 1);
    if (arena->used_bytes_max &&
        taken > arena->used_bytes_max - cy_min_size(arena->used_bytes, arena->used_bytes_max))
        return arena_refuse(arena);
    if (taken > (size_t)(arena->end - arena->next) && !arena_add_chunk(arena, taken))
        return arena_refuse(arena);

    void *block = arena->next;
    arena->next += taken;
    arena->used_bytes += taken;
    MEM_SHOW(block, bytes);
    return block;
}

void *arena_alloc_zeroed(struct arena *arena, size_t bytes)
{
    void *block = arena_alloc(arena, bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

cy_bytes arena_copy(struct arena *arena, cy_bytes bytes)
{
    size_t bytes_with_nul;
    if (cy_add_overflows(bytes.count, 1, &bytes_with_nul)) return CY_BYTES_NONE;
    uint8_t *copy = arena_alloc(arena, bytes_with_nul);
    if (!copy) return CY_BYTES_NONE;
    if (bytes.count) memcpy(copy, bytes.data, bytes.count);
    copy[bytes.count] = 0;
    return cy_bytes_of(copy, bytes.count);
}

void *arena_grow(struct arena *arena, void *block, size_t old_bytes, size_t new_bytes)
{
    if (!block) return arena_alloc(arena, new_bytes);
    CHECK(new_bytes >= old_bytes);
    size_t old_taken = arena_round_up(old_bytes ? old_bytes : 1);
    if (new_bytes <= old_taken) {
        MEM_SHOW(block, new_bytes);
        return block;
    }
    bool newest = (uint8_t *)block + old_taken == arena->next;
    if (newest && new_bytes - old_taken <= (size_t)(arena->end - arena->next)) {
        /* The bytes behind the newest block continue it exactly: next is its rounded end. */
        if (!arena_alloc(arena, new_bytes - old_taken)) return NULL;
        MEM_SHOW(block, new_bytes);
        return block;
    }
    void *larger = arena_alloc(arena, new_bytes);
    if (larger && old_bytes) memcpy(larger, block, old_bytes);
    return larger;
}
