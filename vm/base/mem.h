/* SPDX-License-Identifier: MIT
 *
 * vm/base/mem.h: the only door to malloc.
 *
 * In:   sizes. Size 0 is allowed and gives a unique pointer.
 * Out:  memory, or NULL when there is none; the caller turns NULL into CY_ERR(NO_MEMORY).
 * Faults: mem_fail_after(n) makes the n-th allocation from now (0 = the next) and all later ones of this thread fail,
 *         until mem_fail_never(). mem_fail_once(n) makes the n-th alone fail, so that handlers find memory again. Tests
 *         walk n upwards until an action succeeds. A pool whose takers must be able to fail as if each block came from
 *         here asks mem_request_fails for each; n counts those too.
 * Not here: arenas (arena.h), buffers (vm/net/buffer.h).
 */
#ifndef CY_BASE_MEM_H
#define CY_BASE_MEM_H

#include "vm/base/base.h"

CY_NODISCARD void *mem_alloc(size_t bytes);
CY_NODISCARD void *mem_alloc_zeroed(size_t bytes);
/* On failure the old block is untouched and still yours. */
CY_NODISCARD void *mem_resize(void *block, size_t bytes);
void mem_free(void *block); /* NULL is allowed */
/* Returns pages that nothing lies on to the system, where the allocator keeps them otherwise. Takes milliseconds when
 * there is much: for after a large fall, not for every free. */
void mem_give_back(void);

/* What lies in these bytes is needed no more, the bytes are: pages that are wholly among them go back to the system
 * until somebody writes there, and hold anything until then. A call of the system's. */
void mem_forget(void *data, size_t bytes);

/* Memory that is ours and that nobody may touch now: the free part of an arena, a buffer in a pool's free list. Under
 * AddressSanitizer reading or writing it is an error at once; MEM_HIDES says whether that is so. Show it before it is
 * freed. */
#if defined(__SANITIZE_ADDRESS__)
#define MEM_HIDES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEM_HIDES 1
#endif
#endif
#ifdef MEM_HIDES
#include <sanitizer/asan_interface.h>
#define MEM_HIDE(data, bytes) ASAN_POISON_MEMORY_REGION(data, bytes)
#define MEM_SHOW(data, bytes) ASAN_UNPOISON_MEMORY_REGION(data, bytes)
#else
#define MEM_HIDES 0
#define MEM_HIDE(data, bytes) ((void)(data), (void)(bytes))
#define MEM_SHOW(data, bytes) ((void)(data), (void)(bytes))
#endif

/* For a tool that has nothing better to do than stop (the compiler): says so on stderr and exits with 70. */
CY_NORETURN CY_COLD void mem_exhausted(void);

void mem_fail_after(uint64_t count);
void mem_fail_once(uint64_t count);
void mem_fail_never(void);
/* For pools: counts a block that is taken, and says whether it is one that must fail. */
CY_NODISCARD bool mem_request_fails(void);
/* Allocations made by this thread so far, failed ones included. For tests that count. */
uint64_t mem_allocation_count(void);
/* The same and what was taken from pools that ask: the last n that mem_fail_after can mean. */
uint64_t mem_request_count(void);
#ifdef CY_DEBUG
/* From now on `given_back` sees each block of this thread before it is freed, or perhaps moved by a resize, with all of
 * its bytes: for tests that look at what is left in it. NULL: nobody looks. `bytes` is 0 where the C library does not
 * say how many there are. */
void mem_watch(void (*given_back)(void *context, const void *block, size_t bytes), void *context);
#endif
/* Allocations of this thread that failed so far. For callers of libraries that do not tell why they failed. */
uint64_t mem_failure_count(void);

#endif
