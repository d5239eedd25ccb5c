/* SPDX-License-Identifier: MIT
 *
 * vm/net/loop_epoll.c: the Linux back end.
 *
 * In:   sockets to watch. Out: events.
 * Invariant: a stream socket is registered once, edge-triggered, for everything, and never changed: the steady state
 *       makes no epoll_ctl call. Closing a descriptor removes it; where another process still holds a copy an event
 *       may arrive for a socket that is gone, so an event carries index and generation, not a pointer.
 */
#ifdef __linux__

#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOP_EPOLL_EVENTS 512      /* per wait; the rest comes with the next one */
#define LOOP_EPOLL_WAKE UINT64_MAX /* the eventfd's mark */

struct loop_epoll {
    struct loop *loop;
    int epoll;
    int wake;
    struct epoll_event events[LOOP_EPOLL_EVENTS];
};

static cy_err loop_epoll_control(struct loop_epoll *self, int action, int descriptor, uint32_t events,
                                 uint64_t mark)
{
    struct epoll_event event = {.events = events, .data.u64 = mark};
    self->loop->counters.controls++;
    return epoll_ctl(self->epoll, action, descriptor, &event) == 0 ? CY_OK : cy_err_from_errno(errno);
}

static uint64_t loop_epoll_mark(const struct loop_socket *socket)
{
    return (uint64_t)socket->generation << 32 | socket->index;
}

static void loop_epoll_close(void *state)
{
    struct loop_epoll *self = state;
    if (self->wake >= 0) close(self->wake);
    if (self->epoll >= 0) close(self->epoll);
    mem_free(self);
}

static cy_err loop_epoll_open(struct loop *loop, void *context, void **state_out)
{
    (void)context;
    struct loop_epoll *self = mem_alloc(sizeof *self);
    if (!self) return CY_ERR(NO_MEMORY);
    self->loop = loop;
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    self->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    cy_err err = self->epoll < 0 || self->wake < 0 ? cy_err_from_errno(errno) : CY_OK;
    /* Edge-triggered, so that the counter need not be read: each write is an edge. */
    if (!cy_failed(err))
        err = loop_epoll_control(self, EPOLL_CTL_ADD, self->wake, EPOLLIN | EPOLLET, LOOP_EPOLL_WAKE);
    if (cy_failed(err)) {
        loop_epoll_close(self);
        return err;
    }
    *state_out = self;
    return CY_OK;
}

static cy_err loop_epoll_watch(void *state, struct loop_socket *socket)
{
    struct loop_epoll *self = state;
    DCHECK(!socket->registered);
    /* A listener that several processes share (fd@N, UNIX sockets, all of them during a binary upgrade) wakes them all.
     * EPOLLEXCLUSIVE would wake one, and a client would wait for the next one to come when that one closes it, or dies,
     * before it accepts. */
    uint32_t events = socket->accept ? EPOLLIN : EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    cy_err err = loop_epoll_control(self, EPOLL_CTL_ADD, socket->descriptor, events, loop_epoll_mark(socket));
    socket->registered = !cy_failed(err);
    return err;
}

static cy_err loop_epoll_arm(void *state, struct loop_socket *socket)
{
    struct loop_epoll *self = state;
    uint32_t events = EPOLLONESHOT;
    if (socket->ready->want_read) events |= EPOLLIN | EPOLLRDHUP;
    if (socket->ready->want_write) events |= EPOLLOUT;
    int action = socket->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    cy_err err = loop_epoll_control(self, action, socket->descriptor, events, loop_epoll_mark(socket));
    if (!cy_failed(err)) socket->registered = true;
    return err;
}

static void loop_epoll_unwatch(void *state, struct loop_socket *socket, bool closing)
{
    /* Close does it, but for a listener that other processes have open too: its clients would wake us for ever. */
    if (closing && socket->owned && !socket->listener) return;
    cy_err err = loop_epoll_control(state, EPOLL_CTL_DEL, socket->descriptor, 0, 0);
    (void)
        err; /* the owner of a watched descriptor may have closed it already: then nothing is left to remove */
    socket->registered = false;
}

static unsigned loop_epoll_translate(uint32_t events)
{
    unsigned result = 0;
    if (events & EPOLLIN) result |= LOOP_EVENT_READ;
    if (events & EPOLLOUT) result |= LOOP_EVENT_WRITE;
    if (events & EPOLLRDHUP) result |= LOOP_EVENT_PEER_CLOSED;
    if (events & (EPOLLERR | EPOLLHUP)) result |= LOOP_EVENT_ERROR;
    return result;
}

static cy_err loop_epoll_wait(void *state, int timeout_ms)
{
    struct loop_epoll *self = state;
    int count = epoll_wait(self->epoll, self->events, LOOP_EPOLL_EVENTS, timeout_ms);
    if (count < 0) return errno == EINTR ? CY_OK : cy_err_from_errno(errno);
    for (int i = 0; i < count; i++) {
        uint64_t mark = self->events[i].data.u64;
        if (mark == LOOP_EPOLL_WAKE) continue;
        struct loop_socket *socket = loop_socket_at(self->loop, (uint32_t)mark, (uint32_t)(mark >> 32));
        if (socket) loop_on_event(socket, loop_epoll_translate(self->events[i].events));
    }
    return CY_OK;
}

static void loop_epoll_wake(void *state)
{
    struct loop_epoll *self = state;
    uint64_t one = 1;
    int saved_errno = errno; /* a signal handler must leave it as it was */
    ssize_t count = write(self->wake, &one, sizeof one);
    (void)count; /* full only after 2^64 - 2 wakes */
    errno = saved_errno;
}

const struct loop_backend loop_backend_epoll = {
    .name = "epoll",
    .watches_idle = true,
    .open = loop_epoll_open,
    .close = loop_epoll_close,
    .wait = loop_epoll_wait,
    .wake = loop_epoll_wake,
    .watch = loop_epoll_watch,
    .arm = loop_epoll_arm,
    .unwatch = loop_epoll_unwatch,
    LOOP_SYSTEM_CALLS,
};

#undef LOOP_EPOLL_EVENTS
#undef LOOP_EPOLL_WAKE

#endif
