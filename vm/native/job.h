/* SPDX-License-Identifier: MIT
 *
 * vm/native/job.h: natives whose work the kernel makes us wait for: on a helper thread once a loop turns, in place
 * before (nothing else runs then, and a process that will fork has no threads yet).
 *
 *   native ─► job_start ─► work, on a thread ─► the loop ─► finish ─► the fiber goes on
 *                └ no loop yet: work and finish at once
 */
#ifndef CY_NATIVE_JOB_H
#define CY_NATIVE_JOB_H

#include "vm/base/builder.h"
#include "vm/native/runtime_internal.h"
#include "vm/sys/helper.h"

#include <stdatomic.h>

struct job {
    struct helper_job helper; /* first */
    struct runtime *runtime;
    wait_ticket ticket;
    struct memory_hold hold; /* begun and ended by who makes the job and frees it */
    atomic_bool abandoned;   /* the task was stopped: only `release` follows; the work may look at it */
    /* On any thread: sees the job and nothing else. */
    void (*work)(struct job *job);
    /* On the VM's thread: the result, or an error with its text in `message`. */
    cy_err (*finish)(struct job *job, cy_value *owned_out, struct builder *message);
    void (*release)(struct job *job); /* frees it */
};
/* Takes the job. */
enum native_outcome job_start(struct native_call *call, struct job *owned_job);
void job_shut(struct runtime *runtime); /* before the loop goes */

#endif
