/* SPDX-License-Identifier: MIT
 *
 * vm/run/task.h: spawned tasks, for the natives of module task. Rows of native.def say what each takes and gives.
 */
#ifndef CY_RUN_TASK_H
#define CY_RUN_TASK_H

#include "vm/run/native_call.h"

/* Bodies. The owner who waits takes the results, once, and the handles are closed then; a borrower leaves them. */
enum native_outcome task_wait(struct native_call *call);
enum native_outcome task_all(struct native_call *call);
enum native_outcome task_race(struct native_call *call);
enum native_outcome task_cancel(struct native_call *call);
enum native_outcome task_deadline(struct native_call *call);
enum native_outcome task_time_left(struct native_call *call);

#endif
