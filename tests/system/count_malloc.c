/* SPDX-License-Identifier: MIT
 *
 * tests/system/count_malloc.c: counts every allocation of a process, whoever in it asks: a library for LD_PRELOAD.
 *
 * In:   COUNT_MALLOC_FOLDER, which exists. Out: in it a file for each process, named by its PID: how many calls of
 *       malloc, calloc, realloc, posix_memalign, memalign and aligned_alloc it has made (64 bits, native order), then
 *       the last COUNT_CALLERS of them: the calling address and the size. It may be read while the process runs.
 * Method: glibc's own entry points do the work. The file is mapped when a process allocates first, again after a fork.
 * Not counted: mmap and brk that are called directly; the pages that malloc takes from the system.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT_CALLERS = 64 };

struct count_file {
    _Atomic uint64_t count;
    struct {
        uint64_t caller, bytes;
    } calls[COUNT_CALLERS];
};

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static struct count_file *count_file;
static _Atomic pid_t count_pid; /* whose the file is */

static void count_open(pid_t pid)
{
    const char *folder = getenv("COUNT_MALLOC_FOLDER");
    char path[4096];
    atomic_store(&count_pid, pid);
    count_file = NULL;
    if (!folder || snprintf(path, sizeof path, "%s/%d", folder, (int)pid) >= (int)sizeof path) return;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    if (ftruncate(file, sizeof *count_file) == 0) {
        void *mapped = mmap(NULL, sizeof *count_file, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED) count_file = mapped;
    }
    close(file);
}

static void count_call(void *caller, size_t bytes)
{
    int error = errno;
    pid_t pid = getpid();
    if (atomic_load(&count_pid) != pid) count_open(pid);
    errno = error;
    if (!count_file) return;
    uint64_t at = atomic_fetch_add(&count_file->count, 1) % COUNT_CALLERS;
    count_file->calls[at].caller = (uint64_t)(uintptr_t)caller;
    count_file->calls[at].bytes = bytes;
}

void *malloc(size_t bytes)
{
    count_call(__builtin_return_address(0), bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    count_call(__builtin_return_address(0), count * bytes);
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    count_call(__builtin_return_address(0), bytes);
    return __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    count_call(__builtin_return_address(0), bytes);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count_call(__builtin_return_address(0), bytes);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block_out, size_t alignment, size_t bytes)
{
    count_call(__builtin_return_address(0), bytes);
    void *block = __libc_memalign(alignment, bytes);
    if (!block) return ENOMEM;
    *block_out = block;
    return 0;
}
