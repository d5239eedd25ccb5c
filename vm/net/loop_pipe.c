/* SPDX-License-Identifier: MIT
 *
 * vm/net/loop_pipe.c: pipes of the kernel's, in which a body's bytes pass from one socket to another without coming
 * into our memory.
 *
 * In:   receives that allow a pipe, sends that have one. Out: pipes of the loop's pool, each behind a struct buffer
 *       that has a length and no bytes.
 * Ownership: the buffer's. Its last unref gives the pipe back; one that still has bytes in it (a connection that
 *       broke) is closed instead, for nobody else may get them.
 * Invariant: a pipe in the pool is empty. lent + pooled <= pipe_count_max <= LIMIT_PIPES; where there is none (the
 *       bound, descriptors) a receive takes an ordinary buffer.
 * Not here:  when a pipe is worth it (vm/http), and the calls (loop_system.c, the simulator).
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"

/* What a piped buffer's `data` points at: nobody may read it. */
static const uint8_t loop_pipe_no_bytes[1];

bool loop_has_pipes(const struct loop *loop) { return loop->backend->pipe_in != NULL; }

void loop_set_pipes_max(struct loop *loop, uint32_t count)
{
    loop->pipe_count_max = count < LIMIT_PIPES ? count : LIMIT_PIPES;
}

static void loop_pipe_free(struct loop_pipe *pipe)
{
    struct loop *loop = pipe->loop;
    loop->backend->pipe_close(loop->state, pipe);
    CHECK(loop->pipe_count > 0);
    loop->pipe_count--;
    mem_free(pipe);
}

struct loop_pipe *loop_pipe_take(struct loop *loop)
{
    struct loop_pipe *pipe = loop->free_pipes;
    if (pipe) {
        loop->free_pipes = pipe->next;
        loop->free_pipe_count--;
        return pipe;
    }
    if (loop->pipe_count >= loop->pipe_count_max || loop->now_ms < loop->pipes_paused_ms) return NULL;
    pipe = mem_alloc_zeroed(sizeof *pipe);
    if (!pipe) return NULL;
    pipe->loop = loop;
    if (loop->backend->pipe_open(loop->state, pipe) < 0) {
        mem_free(pipe);
        loop->pipes_paused_ms = loop->now_ms + LIMIT_PIPES_PAUSE_MS; /* not once per receive */
        return NULL;
    }
    loop->pipe_count++;
    return pipe;
}

void loop_pipe_give(struct loop_pipe *pipe)
{
    struct loop *loop = pipe->loop;
    if (pipe->left_bytes > 0 || loop->free_pipe_count >= LIMIT_PIPES_FREE) {
        loop_pipe_free(pipe);
        return;
    }
    pipe->next = loop->free_pipes;
    loop->free_pipes = pipe;
    loop->free_pipe_count++;
}

static void loop_pipes_empty_pool(struct loop *loop)
{
    while (loop->free_pipes) {
        struct loop_pipe *pipe = loop->free_pipes;
        loop->free_pipes = pipe->next;
        loop->free_pipe_count--;
        loop_pipe_free(pipe);
    }
}

bool loop_pipes_spare(struct loop *loop)
{
    if (!loop->free_pipes) return false;
    loop_pipes_empty_pool(loop);
    loop->pipes_paused_ms = loop->now_ms + LIMIT_PIPES_PAUSE_MS;
    return true;
}

void loop_pipes_free(struct loop *loop)
{
    loop_pipes_empty_pool(loop);
    CHECK(loop->pipe_count == 0);
}

static void loop_pipe_release(struct buffer *buffer) { loop_pipe_give(buffer->context); }

struct buffer *loop_pipe_wrap(struct loop_pipe *pipe)
{
    return buffer_wrap(pipe->loop->buffers, loop_pipe_no_bytes, pipe->left_bytes, loop_pipe_release, pipe);
}

bool loop_buffer_is_piped(const struct buffer *buffer) { return buffer->release == loop_pipe_release; }

struct loop_pipe *loop_pipe_of(const struct buffer *buffer)
{
    CHECK(loop_buffer_is_piped(buffer));
    return buffer->context;
}
