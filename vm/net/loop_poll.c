/* SPDX-License-Identifier: MIT
 *
 * vm/net/loop_poll.c: the back end for every system that has poll(2).
 *
 * In:   sockets to watch. Out: events.
 * Invariant: the table holds exactly the registered sockets; each wait asks only for what an operation waits for, so
 *       a socket that nobody reads does not end the wait. Costs O(registered) per wait: this is the portable one, not
 *       the fast one.
 */
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#ifdef POLLRDHUP
#define LOOP_POLL_RDHUP POLLRDHUP
#else
#define LOOP_POLL_RDHUP 0 /* the end is then found by the receive that returns 0 */
#endif

struct loop_poll_mark {
    uint32_t index;
    uint32_t generation;
};
struct loop_poll {
    struct loop *loop;
    int wake_read;
    int wake_write;
    struct loop_socket **watched;
    uint32_t watched_count;
    struct pollfd *entries; /* room for all that is watched and the wake pipe */
    struct loop_poll_mark *marks;
    uint32_t capacity;
};

static void loop_poll_close(void *state)
{
    struct loop_poll *self = state;
    if (self->wake_read >= 0) close(self->wake_read);
    if (self->wake_write >= 0) close(self->wake_write);
    mem_free(self->watched);
    mem_free(self->entries);
    mem_free(self->marks);
    mem_free(self);
}

static bool loop_poll_resize(void *block_pointer, size_t capacity, size_t item_bytes)
{
    void **block = block_pointer;
    size_t bytes;
    if (cy_mul_overflows(capacity, item_bytes, &bytes)) return false;
    void *resized = mem_resize(*block, bytes);
    if (resized) *block = resized;
    return resized != NULL;
}

static cy_err loop_poll_grow(struct loop_poll *self)
{
    uint32_t capacity = self->capacity ? self->capacity * 2 : 64;
    if (capacity < self->capacity) return CY_ERR(TOO_MANY);
    if (!loop_poll_resize(&self->watched, capacity, sizeof *self->watched) ||
        !loop_poll_resize(&self->entries, capacity, sizeof *self->entries) ||
        !loop_poll_resize(&self->marks, capacity, sizeof *self->marks))
        return CY_ERR(NO_MEMORY);
    self->capacity = capacity;
    return CY_OK;
}

static cy_err loop_poll_open(struct loop *loop, void *context, void **state_out)
{
    (void)context;
    struct loop_poll *self = mem_alloc_zeroed(sizeof *self);
    if (!self) return CY_ERR(NO_MEMORY);
    self->loop = loop;
    self->wake_read = self->wake_write = -1;
    int ends[2];
    cy_err err = loop_poll_grow(self);
    if (!cy_failed(err) && pipe(ends) != 0) err = cy_err_from_errno(errno);
    if (!cy_failed(err)) {
        self->wake_read = ends[0];
        self->wake_write = ends[1];
        err = loop_system_prepare(self->wake_read);
        if (!cy_failed(err)) err = loop_system_prepare(self->wake_write);
    }
    if (cy_failed(err)) {
        loop_poll_close(self);
        return err;
    }
    *state_out = self;
    return CY_OK;
}

static cy_err loop_poll_watch(void *state, struct loop_socket *socket)
{
    struct loop_poll *self = state;
    DCHECK(!socket->registered);
    if (self->watched_count + 1 >= self->capacity)
        CY_TRY(loop_poll_grow(self)); /* one entry more for the wake pipe */
    socket->backend_index = self->watched_count;
    self->watched[self->watched_count++] = socket;
    socket->registered = true;
    self->loop->counters.controls++;
    return CY_OK;
}

static cy_err loop_poll_arm(void *state, struct loop_socket *socket)
{
    return socket->registered ? CY_OK : loop_poll_watch(state, socket);
}

static void loop_poll_unwatch(void *state, struct loop_socket *socket, bool closing)
{
    (void)closing;
    struct loop_poll *self = state;
    DCHECK(self->watched[socket->backend_index] == socket);
    struct loop_socket *last = self->watched[--self->watched_count];
    self->watched[socket->backend_index] = last;
    last->backend_index = socket->backend_index;
    socket->registered = false;
    self->loop->counters.controls++;
}

/* Operations that are complete and only wait for delivery do not count. */
static short loop_poll_interest(const struct loop_socket *socket)
{
    short events = 0;
    if (socket->receive && !socket->receive->op.queued) events |= POLLIN | LOOP_POLL_RDHUP;
    if (socket->accept && !socket->accept->op.queued) events |= POLLIN;
    if (socket->send && !socket->send->op.queued) events |= POLLOUT;
    if (socket->connect && !socket->connect->op.queued) events |= POLLOUT;
    if (socket->ready && !socket->ready->op.queued) {
        if (socket->ready->want_read) events |= POLLIN | LOOP_POLL_RDHUP;
        if (socket->ready->want_write) events |= POLLOUT;
    }
    return events;
}

static unsigned loop_poll_translate(short events)
{
    unsigned result = 0;
    if (events & POLLIN) result |= LOOP_EVENT_READ;
    if (events & POLLOUT) result |= LOOP_EVENT_WRITE;
    if (LOOP_POLL_RDHUP && (events & LOOP_POLL_RDHUP)) result |= LOOP_EVENT_PEER_CLOSED;
    if (events & (POLLERR | POLLHUP | POLLNVAL)) result |= LOOP_EVENT_ERROR;
    return result;
}

static void loop_poll_empty_pipe(struct loop_poll *self)
{
    uint8_t bytes[64];
    while (read(self->wake_read, bytes, sizeof bytes) == (ssize_t)sizeof bytes) {}
}

static cy_err loop_poll_wait(void *state, int timeout_ms)
{
    struct loop_poll *self = state;
    nfds_t count = 0;
    for (uint32_t i = 0; i < self->watched_count; i++) {
        struct loop_socket *socket = self->watched[i];
        short events = loop_poll_interest(socket);
        if (events == 0) continue;
        self->entries[count] = (struct pollfd){.fd = socket->descriptor, .events = events};
        self->marks[count++] = (struct loop_poll_mark){socket->index, socket->generation};
    }
    nfds_t wake_index = count;
    self->entries[count++] = (struct pollfd){.fd = self->wake_read, .events = POLLIN};
    int ready_count = poll(self->entries, count, timeout_ms);
    if (ready_count < 0) return errno == EINTR ? CY_OK : cy_err_from_errno(errno);
    if (ready_count == 0) return CY_OK;
    if (self->entries[wake_index].revents) loop_poll_empty_pipe(self);
    for (nfds_t i = 0; i < wake_index; i++) {
        if (self->entries[i].revents == 0) continue;
        struct loop_socket *socket =
            loop_socket_at(self->loop, self->marks[i].index, self->marks[i].generation);
        if (socket) loop_on_event(socket, loop_poll_translate(self->entries[i].revents));
    }
    return CY_OK;
}

static void loop_poll_wake(void *state)
{
    struct loop_poll *self = state;
    int saved_errno = errno; /* a signal handler must leave it as it was */
    ssize_t count = write(self->wake_write, "", 1);
    (void)count; /* a full pipe wakes as well */
    errno = saved_errno;
}

const struct loop_backend loop_backend_poll = {
    .name = "poll",
    .watches_idle = false,
    .open = loop_poll_open,
    .close = loop_poll_close,
    .wait = loop_poll_wait,
    .wake = loop_poll_wake,
    .watch = loop_poll_watch,
    .arm = loop_poll_arm,
    .unwatch = loop_poll_unwatch,
    LOOP_SYSTEM_CALLS,
};

#undef LOOP_POLL_RDHUP
