/* SPDX-License-Identifier: MIT
 *
 * vm/sys/thread.c: see thread.h.
 *
 * Invariant: the caller's signal mask is as it was.
 */
#include "vm/sys/thread.h"

#include "vm/base/check.h"

#include <signal.h>

cy_err thread_start(void *(*run)(void *context), void *context, size_t stack_bytes, pthread_t *thread_out)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) return CY_ERR(NO_MEMORY);
    if (stack_bytes > 0) CHECK(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
    if (!thread_out) CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error_number = pthread_create(&thread, &attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error_number == 0 && thread_out) *thread_out = thread;
    return cy_err_from_errno(error_number);
}
