/* SPDX-License-Identifier: MIT
 *
 * vm/sys/thread.h: starting a thread beside the one that runs the VM.
 *
 * In:   what it does. Out: a thread that no signal is delivered to: they are the first thread's alone.
 * Not here: what threads tell each other (helper.c, output.c).
 */
#ifndef CY_SYS_THREAD_H
#define CY_SYS_THREAD_H

#include "vm/base/error.h"

#include <pthread.h>

/* `stack_bytes` 0: the system's usual. `thread_out` NULL: nobody will join it. Never before a fork that goes on without
 * exec. */
CY_NODISCARD cy_err thread_start(void *(*run)(void *context), void *context, size_t stack_bytes,
                                 pthread_t *thread_out);

#endif
