/* SPDX-License-Identifier: MIT
 *
 * vm/sys/signals.c: signals as something to read.
 *
 * In:   signal numbers. Out: a descriptor that a loop can watch.
 * Invariant: no handler runs, so no code has to be safe inside one. Linux: signalfd. BSD and macOS: a kqueue with
 *       signal filters (which see a signal also while it is ignored), so that no file-level variable is needed for a
 *       pipe.
 */
#include "vm/sys/process.h"

#include "vm/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/signalfd.h>

cy_err signals_open(const int *signals, size_t count, int *descriptor_out)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) CHECK(sigaddset(&set, signals[i]) == 0);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) return cy_err_from_errno(errno);
    int descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0) {
        cy_err err = cy_err_from_errno(errno);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        return err;
    }
    *descriptor_out = descriptor;
    return CY_OK;
}

int signals_next(int descriptor)
{
    struct signalfd_siginfo info;
    ssize_t count;
    while ((count = read(descriptor, &info, sizeof info)) < 0 && errno == EINTR) {}
    return count == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
#else
#include <sys/event.h>

cy_err signals_open(const int *signals, size_t count, int *descriptor_out)
{
    int descriptor = kqueue();
    if (descriptor < 0) return cy_err_from_errno(errno);
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) {
        CHECK(sigaddset(&set, signals[i]) == 0);
        struct kevent change;
        EV_SET(&change, signals[i], EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
        if (kevent(descriptor, &change, 1, NULL, 0, NULL) != 0) {
            cy_err err = cy_err_from_errno(errno);
            close(descriptor);
            return err;
        }
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    *descriptor_out = descriptor;
    return CY_OK;
}

int signals_next(int descriptor)
{
    struct kevent event;
    struct timespec now = {0, 0};
    return kevent(descriptor, NULL, 0, &event, 1, &now) == 1 ? (int)event.ident : 0;
}
#endif

void signals_reset(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
