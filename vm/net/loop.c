/* SPDX-License-Identifier: MIT
 *
 * vm/net/loop.c: turns, timers and the delivery of completions.
 *
 * In:   a back end's events (through loop_op.c). Out: calls of `done`, timers and the hook.
 *
 *     turn:  wait ──► (deliver ──► send), up to LIMIT_LOOP_ROUNDS rounds ──► fire timers ──► hook ──► send
 *
 * A round delivers what was complete when it began. What its `done` functions submit may complete at once (a send
 * that fits, a receive of data that is already there) and is delivered in the next round; what is left after the last
 * round waits for the next turn, which then does not wait for events. So a request passes through in one turn, and a
 * peer that always has data cannot keep the others and the timers from their turn.
 *
 * Invariant: user code runs only in the last three phases, never inside a submitting call or the wait.
 * Not here:  operations and sockets (loop_op.c), system calls (loop_system.c and the back ends).
 */
#include "vm/net/loop.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"

static const struct loop_backend *const loop_backends[] = {
/* the best first */
#ifdef __linux__
    &loop_backend_epoll,
#endif
    &loop_backend_poll,
};

static void loop_read_clocks(struct loop *loop)
{
    loop->turn_ns = loop_now_ns(loop);
    loop->now_ms = loop->turn_ns / 1000000u;
    loop->wall_seconds = loop->backend->wall_ms(loop->state) / 1000;
}

/* -- spare memory ------------------------------------------------------------------------------------------- */

static void loop_on_spares(struct spare_watch *watch)
{
    struct loop *loop = CY_CONTAINER_OF(watch, struct loop, spares);
    if (!timer_is_set(&loop->spares_timer)) loop_timer_set(loop, &loop->spares_timer, LIMIT_SPARE_TRIM_MS);
}

static void loop_on_spares_timer(struct timer *timer)
{
    struct loop *loop = CY_CONTAINER_OF(timer, struct loop, spares_timer);
    if (spare_trim(&loop->spares)) loop_timer_set(loop, timer, LIMIT_SPARE_TRIM_MS);
}

/* -- the loop ------------------------------------------------------------------------------------------------ */

cy_err loop_new_on(const struct loop_backend *backend, void *context, struct loop **loop_out)
{
    struct loop *loop = mem_alloc_zeroed(sizeof *loop);
    if (!loop) return CY_ERR(NO_MEMORY);
    loop->backend = backend;
    loop->pipe_count_max = LIMIT_PIPES;
    cy_err err = backend->open(loop, context, &loop->state);
    if (cy_failed(err)) {
        mem_free(loop);
        return err;
    }
    loop_read_clocks(loop);
    loop->spares.begin = loop_on_spares;
    loop->spares_timer.fire = loop_on_spares_timer;
    err = buffer_pool_new(LIMIT_BUFFERS_FREE, &loop->spares, &loop->buffers);
    loop->wheel = timer_wheel_new(loop->now_ms);
    loop->unhurried_timer.fire = loop_on_unhurried;
    if (!cy_failed(err) && !loop->wheel) err = CY_ERR(NO_MEMORY);
    if (cy_failed(err)) {
        loop_free(&loop);
        return err;
    }
    *loop_out = loop;
    return CY_OK;
}

bool loop_backend_exists(const char *name)
{
    for (size_t i = 0; i < CY_COUNT_OF(loop_backends); i++)
        if (strcmp(loop_backends[i]->name, name) == 0) return true;
    return false;
}

cy_err loop_new(const char *name, struct loop **loop_out)
{
    if (!name) return loop_new_on(loop_backends[0], NULL, loop_out);
    for (size_t i = 0; i < CY_COUNT_OF(loop_backends); i++)
        if (strcmp(loop_backends[i]->name, name) == 0) return loop_new_on(loop_backends[i], NULL, loop_out);
    return CY_ERR(UNSUPPORTED);
}

void loop_free(struct loop **loop_pointer)
{
    struct loop *loop = *loop_pointer;
    if (!loop) return;
    *loop_pointer = NULL;
    CHECK(!loop->in_turn);
    CHECK(loop->open_count == 0); /* a socket is open, or a completion was not delivered */
    CHECK(!loop->complete_first);
    for (uint32_t i = 0; i < loop->slot_count; i++) mem_free(loop->slots[i]);
    mem_free(loop->slots);
    while (loop->free_blocks) {
        struct loop_block *block = loop->free_blocks;
        loop->free_blocks = block->next;
        mem_free(block);
    }
    loop_pipes_free(loop);
    mem_free(loop->stream_info);
    if (loop->wheel) {
        timer_wheel_clear(loop->wheel, &loop->unhurried_timer);
        timer_wheel_clear(loop->wheel, &loop->spares_timer);
    }
    timer_wheel_free(&loop->wheel);
    buffer_pool_free(&loop->buffers);
    CHECK(!loop->spares.first); /* a list of somebody who is still there */
    loop->backend->close(loop->state);
    mem_free(loop);
}

cy_err loop_flush(struct loop *loop)
{
    CHECK(!loop->hook);
    do {
        loop_wake(loop);
        CY_TRY(loop_turn(loop));
    } while (loop->complete_first);
    return CY_OK;
}

uint64_t loop_now_ms(const struct loop *loop) { return loop->now_ms; }
uint64_t loop_turn_ns(const struct loop *loop) { return loop->turn_ns; }
uint64_t loop_now_ns(const struct loop *loop)
{
    return loop->backend->clock_ns(loop->state) + loop->skipped_ns;
}
void loop_skip_ms(struct loop *loop, uint64_t ms)
{
    CHECK(!loop->in_turn);
    loop->skipped_ns += ms * 1000000u;
    loop_read_clocks(loop);
}
int64_t loop_wall_seconds(const struct loop *loop) { return loop->wall_seconds; }
struct buffer_pool *loop_buffers(struct loop *loop) { return loop->buffers; }
struct spare_watch *loop_spares(struct loop *loop) { return &loop->spares; }
void loop_read_counters(const struct loop *loop, struct loop_counters *counters_out)
{
    *counters_out = loop->counters;
}

void loop_stop(struct loop *loop) { loop->stopping = true; }
void loop_wake(struct loop *loop) { loop->backend->wake(loop->state); }
void loop_set_hook(struct loop *loop, bool (*hook)(void *context), void *context)
{
    loop->hook = hook;
    loop->hook_context = context;
}

void loop_timer_set(struct loop *loop, struct timer *timer, uint64_t after_ms)
{
    uint64_t due_ms = after_ms > UINT64_MAX - loop->now_ms ? UINT64_MAX : loop->now_ms + after_ms;
    timer_wheel_set(loop->wheel, timer, due_ms);
}
void loop_timer_clear(struct loop *loop, struct timer *timer) { timer_wheel_clear(loop->wheel, timer); }

void *loop_block_take(struct loop *loop)
{
    struct loop_block *block = loop->free_blocks;
    if (!block) return mem_alloc(LOOP_BLOCK_BYTES);
    loop->free_blocks = block->next;
    return block;
}

void loop_block_give(struct loop *loop, void *block)
{
#ifdef CY_DEBUG
    memset(block, 0xdb, LOOP_BLOCK_BYTES);
#endif
    struct loop_block *free_block = block;
    free_block->next = loop->free_blocks;
    loop->free_blocks = free_block;
}

/* How long the wait may take. The clock is read again: a turn may have lasted longer than the timer has left. */
static int loop_timeout_ms(const struct loop *loop)
{
    if (loop->complete_first || loop->turn_again) return 0;
    uint64_t next_ms = timer_wheel_next_ms(loop->wheel);
    if (next_ms == UINT64_MAX) return -1;
    uint64_t now_ms = loop_now_ns(loop) / 1000000u;
    if (next_ms <= now_ms) return 0;
    return next_ms - now_ms > INT32_MAX ? INT32_MAX : (int)(next_ms - now_ms);
}

static void loop_deliver(struct loop *loop)
{
    for (int round = 0; round < LIMIT_LOOP_ROUNDS && loop->complete_first; round++) {
        struct loop_op *last = loop->complete_last; /* what completes from here on is behind it */
        for (bool more = true; more;) {
            struct loop_op *op = loop->complete_first;
            more = op != last;
            loop->complete_first = op->next;
            if (!loop->complete_first) loop->complete_last = NULL;
            loop_op_deliver(loop, op);
        }
        loop_send_batch(loop);
    }
}

cy_err loop_turn(struct loop *loop)
{
    CHECK(!loop->in_turn);
    loop->in_turn = true;
    loop_send_batch(loop); /* what was submitted between two turns */
    int timeout_ms = loop_timeout_ms(loop);
    loop->turn_again = false;
    loop->counters.waits++;
    cy_err err = loop->backend->wait(loop->state, timeout_ms);
    loop_read_clocks(loop);
    loop_deliver(loop);
    timer_wheel_advance(loop->wheel, loop->now_ms);
    if (loop->hook && loop->hook(loop->hook_context)) loop->turn_again = true;
    loop_send_batch(loop);
    loop->in_turn = false;
    return err;
}

cy_err loop_run(struct loop *loop)
{
    while (!loop->stopping) CY_TRY(loop_turn(loop));
    loop->stopping = false; /* a stop before the run counts; a run after this one starts anew */
    return CY_OK;
}
