/* SPDX-License-Identifier: MIT
 *
 * vm/sys/helper.h: threads for calls that the kernel makes us wait for: files, fsync.
 *
 * In:   jobs, each a struct in the memory of whoever submits it. Out: the same jobs, in a list to be taken when the
 *       descriptor is readable.
 * Ownership: from submit until it is taken or cancelled a job belongs to the pool. `run` is called on a helper
 *       thread; it sees the job's own memory and nothing of a VM or a loop.
 * Invariant: threads are started by the first submit, so never before a fork that goes on without exec; signals stay
 *       with the thread that had them.
 */
#ifndef CY_SYS_HELPER_H
#define CY_SYS_HELPER_H

#include "vm/base/error.h"

struct helper_job {
    void (*run)(struct helper_job *job);
    /* private to the pool */
    struct helper_job *next;
    bool running;
};
struct helper_pool;

CY_NODISCARD cy_err helper_pool_new(struct helper_pool **pool_out);
/* Starts nothing more, and waits up to `wait_ms` for the jobs that run. They can then be taken. */
void helper_pool_drain(struct helper_pool *pool, uint32_t wait_ms);
/* Drains without waiting. While a thread still runs its pool's memory stays: the process is about to end. Jobs that
 * wait, or were not taken, are forgotten: their owner frees them. */
/* False: a job still runs; the pool and what the job looks at stay until the process ends. */
bool helper_pool_free(struct helper_pool **pool);
/* Readable while there are finished jobs. Borrowed. */
int helper_pool_descriptor(const struct helper_pool *pool);
/* TOO_MANY past LIMIT_HELPER_JOBS waiting; SYSTEM when no thread can be started. */
CY_NODISCARD cy_err helper_pool_submit(struct helper_pool *pool, struct helper_job *job);
/* True when it had not begun: it is yours again and will not run. Else it is running or done and will be taken. */
bool helper_pool_cancel(struct helper_pool *pool, struct helper_job *job);
/* All finished jobs, linked by `next`, oldest first; NULL: none. */
struct helper_job *helper_pool_take(struct helper_pool *pool);

#endif
