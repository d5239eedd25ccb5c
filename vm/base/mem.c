/* SPDX-License-Identifier: MIT
 *
 * vm/base/mem.c: malloc behind a door that tests can lock.
 *
 * In:   sizes.
 * Out:  memory or NULL.
 * Invariant: the fault counters belong to one thread, so that a test which starves one thread leaves the others
 *            alone.
 */
#include "vm/base/mem.h"

#include "vm/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <malloc.h>
#endif

/* The one place with mutable state at file level: every allocation passes here without a context argument, and a
 * fault plan has to reach all of them. Thread-local and never read by anything but tests' own thread, it cannot carry
 * state from one VM to another. */
static _Thread_local struct {
    uint64_t request_count, pooled_count, failure_count;
    uint64_t fail_at, fail_end; /* requests with these indices, the end excluded, fail */
    bool armed;
    void (*given_back)(void *context, const void *block, size_t bytes); /* mem_watch */
    void *context;
} mem_faults;

#ifdef CY_DEBUG
void mem_watch(void (*given_back)(void *context, const void *block, size_t bytes), void *context)
{
    mem_faults.given_back = given_back;
    mem_faults.context = context;
}

static void mem_show_given_back(void *block)
{
    if (!block || CY_LIKELY(!mem_faults.given_back)) return;
#ifdef __linux__
    mem_faults.given_back(mem_faults.context, block, malloc_usable_size(block));
#else
    mem_faults.given_back(mem_faults.context, block, 0);
#endif
}
#else
static inline void mem_show_given_back(void *block) { (void)block; }
#endif

static void *mem_counted(void *block)
{
    if (CY_UNLIKELY(!block)) mem_faults.failure_count++;
    return block;
}

static bool mem_must_fail(void)
{
    uint64_t index = mem_faults.request_count++;
    return CY_UNLIKELY(mem_faults.armed) && index >= mem_faults.fail_at && index < mem_faults.fail_end;
}

bool mem_request_fails(void)
{
    mem_faults.pooled_count++;
    if (CY_LIKELY(!mem_must_fail())) return false;
    mem_faults.failure_count++;
    return true;
}

void *mem_alloc(size_t bytes)
{
    return mem_counted(
        mem_must_fail()
            ? NULL
            : malloc(bytes ? bytes : 1)); /* malloc(0) may give NULL, which would look like a failure */
}

void *mem_alloc_zeroed(size_t bytes)
{
    return mem_counted(mem_must_fail() ? NULL : calloc(1, bytes ? bytes : 1));
}

void *mem_resize(void *block, size_t bytes)
{
    mem_show_given_back(block);
    return mem_counted(mem_must_fail() ? NULL
                                       : realloc(block, bytes ? bytes : 1)); /* realloc(p, 0) would free p */
}

void mem_free(void *block)
{
    mem_show_given_back(block);
    free(block);
}

void mem_give_back(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

void mem_forget(void *data, size_t bytes)
{
#ifdef MADV_DONTNEED
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)data + page_bytes - 1) & ~(page_bytes - 1);
    uintptr_t end = ((uintptr_t)data + bytes) & ~(page_bytes - 1);
    /* A refusal (locked pages) costs memory and nothing else. */
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
#else
    (void)data;
    (void)bytes;
#endif
}

void mem_exhausted(void)
{
    fputs("crownyc: out of memory\n", stderr);
    exit(70);
}

void mem_fail_after(uint64_t count)
{
    CHECK(count <= UINT64_MAX - mem_faults.request_count);
    mem_faults.fail_at = mem_faults.request_count + count;
    mem_faults.fail_end = UINT64_MAX;
    mem_faults.armed = true;
}

void mem_fail_once(uint64_t count)
{
    mem_fail_after(count);
    mem_faults.fail_end = mem_faults.fail_at + 1;
}

void mem_fail_never(void) { mem_faults.armed = false; }

uint64_t mem_failure_count(void) { return mem_faults.failure_count; }

uint64_t mem_allocation_count(void) { return mem_faults.request_count - mem_faults.pooled_count; }

uint64_t mem_request_count(void) { return mem_faults.request_count; }
