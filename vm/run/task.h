/* SPDX-License-Identifier: MIT
 *
 * vm/run/task.h: spawned tasks, for the natives of module task.
 */
#ifndef CY_RUN_TASK_H
#define CY_RUN_TASK_H

#include "vm/run/native_call.h"

/* The body of task.wait: args[0] is a task's handle. Takes the result once; the handle is closed then. */
enum native_outcome task_wait(struct native_call *call);

#endif
