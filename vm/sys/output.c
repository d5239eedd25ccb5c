/* SPDX-License-Identifier: MIT
 *
 * vm/sys/output.c: see output.h.
 *
 *   output_write ─► ring ─► thread ─► write(2), which may wait
 *                    └ no room: dropped, counted ─► "N lines were dropped ..." before what comes next
 *
 * A thread and not a non-blocking descriptor: the descriptor's flags are shared with whoever gave it to us, a
 * terminal's with the shell, and they must not find it changed.
 *
 * Invariant: the thread writes from a copy that it took under the lock, so a writer never waits for more than memcpy.
 */
#include "vm/sys/output.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/sys/thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_STEP_BYTES 16384 /* taken out of the ring for one write */

struct output {
    pthread_mutex_t lock;
    pthread_cond_t more, progress;
    pthread_t thread;
    int descriptor;
    size_t step_bytes;       /* at most in one write */
    size_t begin, count;     /* in the ring */
    uint64_t dropped;        /* pieces, ever */
    uint64_t dropped_untold; /* of them, not yet told */
    uint64_t written_bytes;  /* ever: shows whether the reader reads */
    bool ending;             /* stop once the ring is empty */
    bool giving_up;          /* stop now */
    bool broken;             /* nobody will ever read: what comes is dropped */
    bool ended;              /* the thread is gone, or about to be */
    uint8_t ring[LIMIT_OUTPUT_RING_BYTES];
};

static void output_lock(struct output *output) { CHECK(pthread_mutex_lock(&output->lock) == 0); }
static void output_unlock(struct output *output) { CHECK(pthread_mutex_unlock(&output->lock) == 0); }

/* A pipe that may be written to takes PIPE_BUF bytes without a wait (POSIX, poll and pipe(7)). */
bool output_try(int descriptor, cy_bytes text)
{
    while (text.count > 0) {
        struct pollfd room = {.fd = descriptor, .events = POLLOUT};
        if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT)) return false;
        ssize_t count = write(descriptor, text.data, cy_min_size(text.count, PIPE_BUF));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        text = cy_bytes_skip(text, (size_t)count);
    }
    return true;
}

/* A descriptor that its owner made non-blocking is waited for; we have nothing else to do. */
static bool output_write_out(struct output *output, const char *text, size_t count)
{
    while (count > 0) {
        ssize_t written = write(output->descriptor, text, count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            struct pollfd wait = {.fd = output->descriptor, .events = POLLOUT};
            poll(&wait, 1, -1);
            continue;
        }
        if (written < 0) return false;
        text += written;
        count -= (size_t)written;
        output_lock(output);
        output->written_bytes += (uint64_t)written;
        pthread_cond_broadcast(&output->progress);
        output_unlock(output);
    }
    return true;
}

/* Several processes may write to one file: what one write takes ends with a line where it can. */
static size_t output_whole_lines(const char *text, size_t count)
{
    for (size_t end = count; end > 0; end--)
        if (text[end - 1] == '\n') return end;
    return count;
}

/* Under the lock: the next bytes to write. A loss is told as soon as there is room again, before what came after it. */
static size_t output_take(struct output *output, char *room)
{
    size_t count = cy_min_size(output->count, output->step_bytes);
    size_t first = cy_min_size(count, sizeof output->ring - output->begin);
    memcpy(room, output->ring + output->begin, first);
    memcpy(room + first, output->ring, count - first);
    if (count < output->count) count = output_whole_lines(room, count);
    output->count -= count;
    /* An empty ring begins anew: of one that is read at once only the first pages are touched, not, over hours, all. */
    output->begin = output->count ? (output->begin + count) % sizeof output->ring : 0;
    return count;
}

static void *output_thread(void *context)
{
    struct output *output = context;
    char room[OUTPUT_STEP_BYTES];
    output_lock(output);
    while (!output->giving_up && !(output->ending && output->count == 0 && output->dropped_untold == 0)) {
        size_t count = 0;
        if (output->count > 0) {
            count = output_take(output, room);
        } else if (output->dropped_untold > 0) {
            count = (size_t)snprintf(room, sizeof room, OUTPUT_LOSS_FORMAT,
                                     (unsigned long long)output->dropped_untold);
            output->dropped_untold = 0;
        } else {
            pthread_cond_wait(&output->more, &output->lock);
            continue;
        }
        output_unlock(output);
        bool ok = output_write_out(output, room, count);
        output_lock(output);
        if (ok) continue;
        output->broken = true;
        output->begin = output->count = 0;
        output->dropped_untold = 0;
    }
    output->ended = true;
    pthread_cond_broadcast(&output->progress);
    output_unlock(output);
    return NULL;
}

static void output_fini(struct output *output)
{
    pthread_mutex_destroy(&output->lock);
    pthread_cond_destroy(&output->more);
    pthread_cond_destroy(&output->progress);
    mem_free(output);
}

cy_err output_new(int descriptor, struct output **output_out)
{
    struct output *output = mem_alloc(sizeof *output);
    if (!output) return CY_ERR(NO_MEMORY);
    memset(output, 0, offsetof(struct output, ring));
    output->descriptor = descriptor;
    struct stat file; /* a pipe takes no more than PIPE_BUF bytes without another's between them */
    bool is_pipe = fstat(descriptor, &file) == 0 && S_ISFIFO(file.st_mode);
    output->step_bytes = is_pipe ? PIPE_BUF : OUTPUT_STEP_BYTES;
    pthread_condattr_t monotonic;
    CHECK(pthread_condattr_init(&monotonic) == 0);
#ifndef __APPLE__
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
#endif
    CHECK(pthread_mutex_init(&output->lock, NULL) == 0);
    CHECK(pthread_cond_init(&output->more, NULL) == 0);
    CHECK(pthread_cond_init(&output->progress, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
    cy_err err = thread_start(output_thread, output, 0, &output->thread);
    if (cy_failed(err)) {
        output_fini(output);
        return err;
    }
    *output_out = output;
    return CY_OK;
}

bool output_write(struct output *output, cy_bytes text)
{
    output_lock(output);
    /* While a loss is not told everything is dropped: a line after it would stand before the line that tells of it. */
    bool fits =
        !output->broken && output->dropped_untold == 0 && text.count <= sizeof output->ring - output->count;
    if (fits) {
        size_t end = (output->begin + output->count) % sizeof output->ring;
        size_t first = cy_min_size(text.count, sizeof output->ring - end);
        if (first) memcpy(output->ring + end, text.data, first);
        if (text.count > first) memcpy(output->ring, text.data + first, text.count - first);
        output->count += text.count;
    } else {
        output->dropped++;
        if (!output->broken) output->dropped_untold++;
    }
    pthread_cond_signal(&output->more);
    output_unlock(output);
    return fits;
}

uint64_t output_dropped(struct output *output)
{
    output_lock(output);
    uint64_t dropped = output->dropped;
    output_unlock(output);
    return dropped;
}

static struct timespec output_deadline(void)
{
    struct timespec until;
#ifdef __APPLE__
    clock_gettime(CLOCK_REALTIME, &until);
#else
    clock_gettime(CLOCK_MONOTONIC, &until);
#endif
    until.tv_sec += LIMIT_OUTPUT_FLUSH_MS / 1000;
    until.tv_nsec += (long)(LIMIT_OUTPUT_FLUSH_MS % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    return until;
}

void output_free(struct output **output_pointer)
{
    struct output *output = *output_pointer;
    *output_pointer = NULL;
    if (!output) return;
    output_lock(output);
    output->ending = true;
    pthread_cond_signal(&output->more);
    while (!output->ended) {
        struct timespec until = output_deadline();
        uint64_t before = output->written_bytes;
        int result = 0;
        while (!output->ended && output->written_bytes == before && result != ETIMEDOUT)
            result = pthread_cond_timedwait(&output->progress, &output->lock, &until);
        if (!output->ended && output->written_bytes == before) break;
    }
    bool ended = output->ended;
    output->giving_up = true;
    output_unlock(output);
    if (!ended) {
        /* It hangs in write, and nobody can make it return: its memory is the process's, which is about to end. */
        pthread_detach(output->thread);
        return;
    }
    pthread_join(output->thread, NULL);
    output_fini(output);
}

#undef OUTPUT_STEP_BYTES
