/* SPDX-License-Identifier: MIT
 *
 * vm/sys/signals.c: signals as something to read.
 *
 * In:   signal numbers. Out: a descriptor that a loop can watch.
 * Method: Linux: signalfd. BSD and macOS: a kqueue with signal filters, which see a signal also while it is ignored or
 *       caught. So no file-level variable is needed for a pipe.
 * Invariant: signals_open runs no handler. Those of signals_catch change dispositions and send; what they have to
 *       remember is the disposition itself:
 *
 *       first ─► told on the descriptor ─► further ones do nothing (SIGNALS_PAUSE_MS) ─► then what the system does
 *
 *       The pause is for senders that send twice for once.
 *       SIGINT and SIGTERM are one in this: either is the first, the other the second.
 */
#include "vm/sys/process.h"

#include "vm/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static void signals_first(int number);

/* Gives SIGINT and SIGTERM another handler where they have this one: one that was ignored stays it. */
static void signals_exchange(void (*from)(int), void (*to)(int))
{
    static const int both[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < CY_COUNT_OF(both); i++) {
        struct sigaction action;
        if (sigaction(both[i], NULL, &action) != 0 || action.sa_handler != from) continue;
        action.sa_handler = to;
        sigaction(both[i], &action, NULL);
    }
}

static void signals_do_nothing(int number) { (void)number; }

/* SIGALRM: the pause is over. */
static void signals_pause_ends(int number)
{
    (void)number;
    signals_exchange(signals_do_nothing, SIG_DFL);
}

/* Every handler waits for the end of the others. */
static bool signals_handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGALRM);
    return sigaction(number, &action, NULL) == 0;
}

static void signals_pause_begins(void)
{
    struct itimerval pause = {.it_value = {.tv_usec = SIGNALS_PAUSE_MS * 1000}};
    signals_exchange(signals_first, signals_do_nothing);
    bool begun = signals_handle(SIGALRM, signals_pause_ends) && setitimer(ITIMER_REAL, &pause, NULL) == 0;
    if (!begun) signals_exchange(signals_do_nothing, SIG_DFL);
}

static cy_err signals_handle_all(const int *signals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!signals_handle(signals[i], signals_first)) return cy_err_from_errno(errno);
    return CY_OK;
}

#ifdef __linux__
#include <sys/signalfd.h>

/* What the handler sends to the descriptor: the first real-time signal, with the number of the one that came. */
static void signals_first(int number)
{
    int error_number = errno;
    signals_pause_begins();
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = number});
    errno = error_number;
}

cy_err signals_catch(const int *signals, size_t count, int *descriptor_out)
{
    const int told = SIGRTMIN;
    CY_TRY(signals_open(&told, 1, descriptor_out));
    return signals_handle_all(signals, count);
}

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
    if (count != (ssize_t)sizeof info) return 0;
    return (int)info.ssi_signo == SIGRTMIN ? info.ssi_int : (int)info.ssi_signo;
}
#else
#include <sys/event.h>

static void signals_first(int number)
{
    (void)number; /* the kqueue has seen it */
    signals_pause_begins();
}

static cy_err signals_watch(const int *signals, size_t count, int *descriptor_out)
{
    int descriptor = kqueue();
    if (descriptor < 0) return cy_err_from_errno(errno);
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    for (size_t i = 0; i < count; i++) {
        struct kevent change;
        EV_SET(&change, signals[i], EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
        if (kevent(descriptor, &change, 1, NULL, 0, NULL) != 0) {
            cy_err err = cy_err_from_errno(errno);
            close(descriptor);
            return err;
        }
    }
    *descriptor_out = descriptor;
    return CY_OK;
}

cy_err signals_catch(const int *signals, size_t count, int *descriptor_out)
{
    CY_TRY(signals_watch(signals, count, descriptor_out));
    return signals_handle_all(signals, count);
}

cy_err signals_open(const int *signals, size_t count, int *descriptor_out)
{
    CY_TRY(signals_watch(signals, count, descriptor_out));
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) CHECK(sigaddset(&set, signals[i]) == 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return CY_OK;
}

int signals_next(int descriptor)
{
    struct kevent event;
    struct timespec now = {0, 0};
    if (kevent(descriptor, NULL, 0, &event, 1, &now) != 1) return 0;
    /* The kqueue only looks: where the signal is blocked it is still pending, and would come again with
     * signals_unblock. */
    sigset_t pending, one;
    int number = (int)event.ident, taken;
    sigemptyset(&one);
    sigaddset(&one, number);
    if (sigpending(&pending) == 0 && sigismember(&pending, number) == 1) sigwait(&one, &taken);
    return number;
}
#endif

void signals_uncatch(int *descriptor, bool blocked)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (blocked) sigprocmask(SIG_BLOCK, &set, NULL);
    signals_exchange(signals_first, SIG_DFL);
    int number = signals_next(*descriptor);
    close(*descriptor);
    *descriptor = -1;
    if (number != 0) raise(number); /* came just now: for the next owner, or as the system does it */
}

void signals_unblock(const int *signals, size_t count)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) CHECK(sigaddset(&set, signals[i]) == 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void signals_reset(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
