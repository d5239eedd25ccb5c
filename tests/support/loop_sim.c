/* SPDX-License-Identifier: MIT
 *
 * tests/support/loop_sim.c: the simulated network behind loop_sim.h.
 *
 * A direction of a connection is a queue of bytes at its receiver:
 *
 *     [ begin ── visible ── end )      sent and arrived | sent, still on its way
 *
 * Each wait lets some of what is on its way arrive. The end of a direction arrives after its last byte, a reset
 * at once, and bytes that had arrived before a reset can still be read, as with TCP.
 *
 * Edges: READ when something new arrived (or a receive left something behind), WRITE when a short send may go on. A
 * listener reports in every wait while somebody waits to be accepted, as the loop's contract wants it.
 */
#include "tests/support/loop_sim.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"

#include <errno.h>

#define LOOP_SIM_ENDS_MAX 4096
#define LOOP_SIM_BACKLOG 512

struct loop_sim_end {
    bool used;
    bool listening;
    int peer;                   /* -1: none, or gone */
    struct loop_socket *socket; /* registered */
    unsigned events;            /* edges not reported yet */
    uint8_t *bytes;             /* window_bytes of room */
    uint32_t begin, visible, end;
    uint32_t held_bytes;        /* of what is on its way: not before more is sent, or FIN (MSG_MORE) */
    bool fin_sent, fin_visible; /* of the direction that ends here */
    bool reset;
    bool connecting;
    bool refused;
    bool send_blocked;
    struct address address;        /* listening */
    int backlog[LOOP_SIM_BACKLOG]; /* listening: ends to hand out */
    uint32_t backlog_count;
};
struct loop_sim {
    struct loop *loop;
    struct loop_sim_options options;
    uint64_t state;
    uint64_t clock_ns;
    bool woken;
    uint32_t end_count;
    uint32_t *order; /* of reports: room for one per end */
    struct loop_sim_end ends[];
};

/* splitmix64: small, and the same everywhere. */
static uint64_t loop_sim_next(struct loop_sim *sim)
{
    uint64_t z = sim->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
uint64_t loop_sim_random(struct loop_sim *sim, uint64_t below)
{
    return below ? loop_sim_next(sim) % below : 0;
}

/* All of it, or with `pieces` a random part that is at least 1. */
static size_t loop_sim_piece(struct loop_sim *sim, size_t bytes)
{
    if (bytes <= 1 || !sim->options.pieces || loop_sim_random(sim, 4) == 0) return bytes;
    size_t below = loop_sim_random(sim, 2) ? cy_min_size(bytes, 16) : bytes; /* often tiny */
    return 1 + (size_t)loop_sim_random(sim, below);
}

static struct loop_sim_end *loop_sim_end_at(struct loop_sim *sim, int descriptor)
{
    CHECK(descriptor >= 0 && (uint32_t)descriptor < sim->end_count && sim->ends[descriptor].used);
    return &sim->ends[descriptor];
}

static int loop_sim_end_new(struct loop_sim *sim)
{
    uint32_t index = 0;
    while (index < sim->end_count && sim->ends[index].used) index++;
    CHECK(index < sim->options.ends_max);
    if (index == sim->end_count) sim->end_count++;
    struct loop_sim_end *end = &sim->ends[index];
    *end = (struct loop_sim_end){.used = true, .peer = -1};
    end->bytes = mem_alloc(sim->options.window_bytes);
    CHECK(end->bytes);
    return (int)index;
}

void loop_sim_pair(struct loop_sim *sim, int *a_out, int *b_out)
{
    *a_out = loop_sim_end_new(sim);
    *b_out = loop_sim_end_new(sim);
    sim->ends[*a_out].peer = *b_out;
    sim->ends[*b_out].peer = *a_out;
}

int loop_sim_listen(struct loop_sim *sim, const struct address *address)
{
    int descriptor = loop_sim_end_new(sim);
    sim->ends[descriptor].listening = true;
    sim->ends[descriptor].address = *address;
    return descriptor;
}

/* -- the back end's calls -------------------------------------------------------------------------------- */

static uint64_t loop_sim_clock_ns(void *state) { return ((struct loop_sim *)state)->clock_ns; }
static int64_t loop_sim_wall_ms(void *state)
{
    return 1700000000000 + (int64_t)(((struct loop_sim *)state)->clock_ns / 1000000);
}
static cy_err loop_sim_adopt(void *state, int descriptor)
{
    loop_sim_end_at(state, descriptor);
    return CY_OK;
}

static cy_err loop_sim_watch(void *state, struct loop_socket *socket)
{
    struct loop_sim_end *end = loop_sim_end_at(state, socket->descriptor);
    end->socket = socket;
    socket->registered = true;
    /* Registering reports what there is. */
    if (end->visible > end->begin || end->fin_visible || end->reset) end->events |= LOOP_EVENT_READ;
    if (!end->connecting) end->events |= LOOP_EVENT_WRITE;
    return CY_OK;
}
static cy_err loop_sim_arm(void *state, struct loop_socket *socket)
{
    (void)state;
    (void)socket;
    return CY_ERR(UNSUPPORTED); /* there are no other readers of simulated descriptors */
}
static void loop_sim_unwatch(void *state, struct loop_socket *socket, bool closing)
{
    (void)closing;
    loop_sim_end_at(state, socket->descriptor)->socket = NULL;
    socket->registered = false;
}

static ssize_t loop_sim_receive(void *state, struct loop_socket *socket, void *room, size_t bytes)
{
    struct loop_sim *sim = state;
    struct loop_sim_end *end = loop_sim_end_at(sim, socket->descriptor);
    uint32_t there = end->visible - end->begin;
    if (there == 0 && end->reset) return -ECONNRESET;
    if (there == 0) return end->fin_visible ? 0 : -EAGAIN;
    size_t count = loop_sim_piece(sim, cy_min_size(there, bytes));
    memcpy(room, end->bytes + end->begin, count);
    end->begin += (uint32_t)count;
    if (count < bytes && end->begin < end->visible)
        end->events |= LOOP_EVENT_READ; /* as if the rest came just now */
    if (end->peer >= 0 && sim->ends[end->peer].send_blocked) sim->ends[end->peer].events |= LOOP_EVENT_WRITE;
    return (ssize_t)count;
}

static ssize_t loop_sim_peek(void *state, struct loop_socket *socket)
{
    struct loop_sim_end *end = loop_sim_end_at(state, socket->descriptor);
    if (end->visible > end->begin) return 1;
    if (end->reset) return -ECONNRESET;
    return end->fin_visible ? 0 : -EAGAIN;
}

static void loop_sim_compact(struct loop_sim_end *end)
{
    memmove(end->bytes, end->bytes + end->begin, end->end - end->begin);
    end->visible -= end->begin;
    end->end -= end->begin;
    end->begin = 0;
}

static ssize_t loop_sim_send(void *state, struct loop_socket *socket, const struct iovec *parts,
                             int part_count, bool more)
{
    struct loop_sim *sim = state;
    struct loop_sim_end *end = loop_sim_end_at(sim, socket->descriptor);
    if (end->reset) return -ECONNRESET;
    if (end->peer < 0) return -EPIPE;
    struct loop_sim_end *to = &sim->ends[end->peer];
    if (to->fin_sent) return -EPIPE; /* after shutdown */
    size_t total = 0, done = 0;
    for (int i = 0; i < part_count; i++) total += parts[i].iov_len;
    loop_sim_compact(to);
    size_t space = sim->options.window_bytes - to->end;
    size_t count = loop_sim_piece(sim, cy_min_size(total, space));
    for (int i = 0; i < part_count && done < count; i++) {
        size_t part = cy_min_size(parts[i].iov_len, count - done);
        memcpy(to->bytes + to->end, parts[i].iov_base, part);
        to->end += (uint32_t)part;
        done += part;
    }
    if (!more)
        to->held_bytes = 0;
    else if (count == total)
        to->held_bytes += (uint32_t)count;
    end->send_blocked = count < total;
    if (end->send_blocked && space > count)
        end->events |= LOOP_EVENT_WRITE; /* short for no reason: go on at once */
    return count == 0 ? -EAGAIN : (ssize_t)count;
}

static int loop_sim_pipe_open(void *state, struct loop_pipe *pipe)
{
    (void)state;
    pipe->bytes = mem_alloc(LIMIT_PIPE_BYTES);
    return pipe->bytes ? 0 : -EMFILE;
}
static void loop_sim_pipe_close(void *state, struct loop_pipe *pipe)
{
    (void)state;
    mem_free(pipe->bytes);
}
static ssize_t loop_sim_pipe_in(void *state, struct loop_socket *from, struct loop_pipe *pipe, size_t bytes)
{
    CHECK(bytes > 0 && bytes <= LIMIT_PIPE_BYTES && pipe->left_bytes == 0);
    pipe->begin = 0;
    return loop_sim_receive(state, from, pipe->bytes, bytes);
}
static ssize_t loop_sim_pipe_out(void *state, struct loop_socket *to, struct loop_pipe *pipe, size_t bytes)
{
    struct iovec part = {.iov_base = pipe->bytes + pipe->begin, .iov_len = bytes};
    ssize_t count = loop_sim_send(state, to, &part, 1, false);
    if (count > 0) pipe->begin += (uint32_t)count;
    return count;
}

static int loop_sim_accept(void *state, struct loop_socket *listener, struct address *peer_out)
{
    struct loop_sim_end *end = loop_sim_end_at(state, listener->descriptor);
    if (end->backlog_count == 0) return -EAGAIN;
    int descriptor = end->backlog[0];
    memmove(end->backlog, end->backlog + 1, --end->backlog_count * sizeof end->backlog[0]);
    cy_err err = address_from_ip(CY_BYTES("192.0.2.1"), (uint16_t)(1024 + descriptor), peer_out);
    CHECK(!cy_failed(err));
    return descriptor;
}

static int loop_sim_connect(void *state, const struct address *to)
{
    struct loop_sim *sim = state;
    int listener = -1;
    for (uint32_t i = 0; i < sim->end_count; i++)
        if (sim->ends[i].used && sim->ends[i].listening && address_equal(&sim->ends[i].address, to))
            listener = (int)i;
    int ours = loop_sim_end_new(sim);
    sim->ends[ours].connecting = true;
    if (listener < 0 || sim->ends[listener].backlog_count == LOOP_SIM_BACKLOG) {
        sim->ends[ours].refused = true;
        return ours;
    }
    int theirs = loop_sim_end_new(sim);
    sim->ends[ours].peer = theirs;
    sim->ends[theirs].peer = ours;
    struct loop_sim_end *end = &sim->ends[listener];
    end->backlog[end->backlog_count++] = theirs;
    return ours;
}

static int loop_sim_connect_result(void *state, struct loop_socket *socket)
{
    struct loop_sim_end *end = loop_sim_end_at(state, socket->descriptor);
    return end->refused ? -ECONNREFUSED : end->reset ? -ECONNRESET : 0;
}

static int loop_sim_shutdown_send(void *state, struct loop_socket *socket)
{
    struct loop_sim *sim = state;
    struct loop_sim_end *end = loop_sim_end_at(sim, socket->descriptor);
    if (end->reset || end->peer < 0) return -ENOTCONN;
    sim->ends[end->peer].fin_sent = true;
    sim->ends[end->peer].held_bytes = 0;
    return 0;
}

static void loop_sim_break(struct loop_sim *sim, struct loop_sim_end *end)
{
    (void)sim;
    end->reset = true;
    end->held_bytes = 0;
    end->end = end->visible; /* what is on its way never arrives */
    end->events |= LOOP_EVENT_READ | LOOP_EVENT_WRITE | LOOP_EVENT_ERROR | LOOP_EVENT_PEER_CLOSED;
}

static void loop_sim_close_end(struct loop_sim *sim, int descriptor, bool abort)
{
    struct loop_sim_end *end = loop_sim_end_at(sim, descriptor);
    for (uint32_t i = 0; i < end->backlog_count; i++) loop_sim_close_end(sim, end->backlog[i], true);
    end->backlog_count = 0;
    if (end->peer >= 0) {
        struct loop_sim_end *peer = &sim->ends[end->peer];
        peer->peer = -1;
        peer->fin_sent = true;
        if (!abort && end->begin == end->end) peer->held_bytes = 0;
        if (abort || end->begin < end->end) loop_sim_break(sim, peer); /* unread bytes: TCP resets too */
    }
    mem_free(end->bytes);
    *end = (struct loop_sim_end){.peer = -1};
}
static void loop_sim_close_descriptor(void *state, struct loop_socket *socket)
{
    loop_sim_close_end(state, socket->descriptor, socket->abort_on_close);
}

/* -- waiting -------------------------------------------------------------------------------------------- */

/* Lets time do its work on one end; true when something moved. */
static bool loop_sim_arrive(struct loop_sim *sim, struct loop_sim_end *end)
{
    bool moved = false;
    if (end->connecting && end->socket) {
        end->connecting = false;
        end->events |= end->refused ? LOOP_EVENT_ERROR : LOOP_EVENT_WRITE;
        moved = true;
    }
    if (end->visible + end->held_bytes < end->end) {
        end->visible += (uint32_t)loop_sim_piece(sim, end->end - end->held_bytes - end->visible);
        end->events |= LOOP_EVENT_READ;
        moved = true;
    } else if (end->fin_sent && !end->fin_visible && !end->reset) {
        end->fin_visible = true;
        end->events |= LOOP_EVENT_READ | LOOP_EVENT_PEER_CLOSED;
        moved = true;
    }
    if (end->peer >= 0 && !end->reset && sim->options.resets_per_million &&
        loop_sim_random(sim, 1000000) < sim->options.resets_per_million) {
        loop_sim_break(sim, &sim->ends[end->peer]);
        loop_sim_break(sim, end);
        moved = true;
    }
    if (end->listening && end->backlog_count) end->events |= LOOP_EVENT_READ;
    return moved;
}

static uint32_t loop_sim_report(struct loop_sim *sim)
{
    static const uint32_t none = UINT32_MAX;
    uint32_t *order = sim->order, count = 0;
    for (uint32_t i = 0; i < sim->end_count; i++)
        if (sim->ends[i].used && sim->ends[i].socket && sim->ends[i].events) order[count++] = i;
    for (uint32_t i = count; sim->options.reorder && i > 1; i--) {
        uint32_t other = (uint32_t)loop_sim_random(sim, i), moved = order[i - 1];
        order[i - 1] = order[other];
        order[other] = moved;
    }
    /* The first always comes, so that every wait gets somewhere. */
    for (uint32_t i = 1; sim->options.reorder && i < count; i++)
        if (loop_sim_random(sim, 4) == 0) order[i] = none;
    uint32_t reported = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (order[i] == none) continue;
        struct loop_sim_end *end = &sim->ends[order[i]];
        if (!end->used || !end->socket) continue;
        unsigned events = end->events;
        end->events = 0;
        reported++;
        loop_on_event(end->socket, events);
    }
    return reported;
}

static cy_err loop_sim_wait(void *state, int timeout_ms)
{
    struct loop_sim *sim = state;
    sim->clock_ns += 1000; /* nothing is free */
    for (;;) {
        bool moved = false;
        for (uint32_t i = 0; i < sim->end_count; i++)
            if (sim->ends[i].used) moved |= loop_sim_arrive(sim, &sim->ends[i]);
        bool woken = sim->woken;
        sim->woken = false;
        if (loop_sim_report(sim) > 0 || woken || timeout_ms == 0) return CY_OK;
        if (moved) continue;
        if (timeout_ms < 0)
            return CY_ERR(TIMEOUT); /* nothing can happen any more: a hang, said instead of hung */
        sim->clock_ns += (uint64_t)timeout_ms * 1000000u;
        return CY_OK;
    }
}

static void loop_sim_wake(void *state) { ((struct loop_sim *)state)->woken = true; }

static cy_err loop_sim_open(struct loop *loop, void *context, void **state_out)
{
    struct loop_sim *sim = context;
    sim->loop = loop;
    *state_out = sim;
    return CY_OK;
}
static void loop_sim_close(void *state)
{
    struct loop_sim *sim = state;
    for (uint32_t i = 0; i < sim->end_count; i++) mem_free(sim->ends[i].bytes);
    mem_free(sim);
}

static const struct loop_backend loop_sim_backend = {
    .name = "simulator",
    .watches_idle = false, /* an event may be on its way: peek, like over a real network */
    .open = loop_sim_open,
    .close = loop_sim_close,
    .clock_ns = loop_sim_clock_ns,
    .wall_ms = loop_sim_wall_ms,
    .adopt = loop_sim_adopt,
    .wait = loop_sim_wait,
    .wake = loop_sim_wake,
    .watch = loop_sim_watch,
    .arm = loop_sim_arm,
    .unwatch = loop_sim_unwatch,
    .receive = loop_sim_receive,
    .peek = loop_sim_peek,
    .send = loop_sim_send,
    .accept = loop_sim_accept,
    .connect = loop_sim_connect,
    .connect_result = loop_sim_connect_result,
    .shutdown_send = loop_sim_shutdown_send,
    .close_descriptor = loop_sim_close_descriptor,
    .pipe_open = loop_sim_pipe_open,
    .pipe_close = loop_sim_pipe_close,
    .pipe_in = loop_sim_pipe_in,
    .pipe_out = loop_sim_pipe_out,
};

cy_err loop_sim_new(const struct loop_sim_options *options, struct loop **loop_out, struct loop_sim **sim_out)
{
    size_t ends_max = options->ends_max ? options->ends_max : LOOP_SIM_ENDS_MAX;
    struct loop_sim *sim =
        mem_alloc_zeroed(sizeof *sim + ends_max * (sizeof *sim->ends + sizeof *sim->order));
    if (!sim) return CY_ERR(NO_MEMORY);
    sim->options = *options;
    sim->options.ends_max = (uint32_t)ends_max;
    sim->order = (uint32_t *)(sim->ends + ends_max);
    if (sim->options.window_bytes == 0) sim->options.window_bytes = 65536;
    sim->state = options->seed;
    sim->clock_ns = 1000000000u; /* one second: time 0 means "not set" to timers */
    cy_err err = loop_new_on(&loop_sim_backend, sim, loop_out);
    if (cy_failed(err)) {
        mem_free(sim);
        return err;
    }
    *sim_out = sim;
    return CY_OK;
}

#undef LOOP_SIM_ENDS_MAX
#undef LOOP_SIM_BACKLOG
