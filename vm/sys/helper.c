/* SPDX-License-Identifier: MIT
 *
 * vm/sys/helper.c: see helper.h.
 *
 *   submit ─► waiting ─► run, on one of LIMIT_HELPER_THREADS threads ─► finished ─► one byte in the pipe ─► take
 *
 * Invariant: the pipe holds a byte exactly while `finished` is not empty, so it never fills up.
 */
#include "vm/sys/helper.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/sys/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define HELPER_STACK_BYTES (256 << 10) /* paths of a walk are the largest things on it */

struct helper_list {
    struct helper_job *first, *last;
    uint32_t count;
};
struct helper_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    struct helper_list waiting, finished;
    uint32_t thread_count, running_count, sleeping_count;
    bool stopping;
    int pipe[2];
};

static void helper_put(struct helper_list *list, struct helper_job *job)
{
    job->next = NULL;
    if (list->last)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
    list->count++;
}

static struct helper_job *helper_get(struct helper_list *list)
{
    struct helper_job *job = list->first;
    list->first = job->next;
    if (!list->first) list->last = NULL;
    list->count--;
    return job;
}

static void helper_lock(struct helper_pool *pool) { CHECK(pthread_mutex_lock(&pool->lock) == 0); }
static void helper_unlock(struct helper_pool *pool) { CHECK(pthread_mutex_unlock(&pool->lock) == 0); }

static void helper_tell(struct helper_pool *pool)
{
    while (write(pool->pipe[1], "", 1) < 0 && errno == EINTR) {}
}

static void *helper_thread(void *context)
{
    struct helper_pool *pool = context;
    helper_lock(pool);
    while (!pool->stopping) {
        if (pool->waiting.count == 0) {
            pool->sleeping_count++;
            pthread_cond_wait(&pool->work, &pool->lock);
            pool->sleeping_count--;
            continue;
        }
        struct helper_job *job = helper_get(&pool->waiting);
        job->running = true;
        pool->running_count++;
        helper_unlock(pool);
        job->run(job);
        helper_lock(pool);
        pool->running_count--;
        helper_put(&pool->finished, job);
        if (pool->finished.count == 1) helper_tell(pool);
    }
    pool->thread_count--;
    pthread_cond_broadcast(&pool->idle);
    helper_unlock(pool);
    return NULL;
}

static cy_err helper_start_thread(struct helper_pool *pool)
{
    CY_TRY(thread_start(helper_thread, pool, HELPER_STACK_BYTES, NULL));
    pool->thread_count++;
    return CY_OK;
}

static cy_err helper_open_pipe(int ends[2])
{
    if (pipe(ends) != 0) return cy_err_from_errno(errno);
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    return CY_OK;
}

cy_err helper_pool_new(struct helper_pool **pool_out)
{
    struct helper_pool *pool = mem_alloc_zeroed(sizeof *pool);
    if (!pool) return CY_ERR(NO_MEMORY);
    cy_err err = helper_open_pipe(pool->pipe);
    if (cy_failed(err)) {
        mem_free(pool);
        return err;
    }
    pthread_condattr_t monotonic;
    CHECK(pthread_condattr_init(&monotonic) == 0);
#ifndef __APPLE__
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
#endif
    CHECK(pthread_mutex_init(&pool->lock, NULL) == 0);
    CHECK(pthread_cond_init(&pool->work, NULL) == 0);
    CHECK(pthread_cond_init(&pool->idle, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
    *pool_out = pool;
    return CY_OK;
}

int helper_pool_descriptor(const struct helper_pool *pool) { return pool->pipe[0]; }

cy_err helper_pool_submit(struct helper_pool *pool, struct helper_job *job)
{
    cy_err err = CY_OK;
    helper_lock(pool);
    CHECK(!pool->stopping);
    if (pool->waiting.count >= LIMIT_HELPER_JOBS) err = CY_ERR_DETAIL(TOO_MANY, LIMIT_HELPER_JOBS);
    if (!cy_failed(err) && pool->sleeping_count <= pool->waiting.count &&
        pool->thread_count < LIMIT_HELPER_THREADS) {
        err = helper_start_thread(pool);
        if (pool->thread_count > 0) err = CY_OK; /* one thread is enough to go on */
    }
    if (!cy_failed(err)) {
        job->running = false;
        helper_put(&pool->waiting, job);
        pthread_cond_signal(&pool->work);
    }
    helper_unlock(pool);
    return err;
}

bool helper_pool_cancel(struct helper_pool *pool, struct helper_job *job)
{
    bool found = false;
    helper_lock(pool);
    struct helper_job *previous = NULL;
    for (struct helper_job *at = pool->waiting.first; at && !found && !job->running; at = at->next) {
        found = at == job;
        if (found && previous) previous->next = at->next;
        if (found && !previous) pool->waiting.first = at->next;
        if (found && !at->next) pool->waiting.last = previous;
        if (found) pool->waiting.count--;
        previous = at;
    }
    helper_unlock(pool);
    return found;
}

struct helper_job *helper_pool_take(struct helper_pool *pool)
{
    char byte;
    helper_lock(pool);
    struct helper_job *first = pool->finished.first;
    if (first)
        while (read(pool->pipe[0], &byte, 1) < 0 && errno == EINTR) {}
    pool->finished = (struct helper_list){0};
    helper_unlock(pool);
    return first;
}

static struct timespec helper_deadline(uint32_t wait_ms)
{
    struct timespec until;
#ifdef __APPLE__
    clock_gettime(CLOCK_REALTIME, &until);
#else
    clock_gettime(CLOCK_MONOTONIC, &until);
#endif
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    return until;
}

void helper_pool_drain(struct helper_pool *pool, uint32_t wait_ms)
{
    struct timespec until = helper_deadline(wait_ms);
    int result = 0;
    helper_lock(pool);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    while (pool->thread_count > 0 && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&pool->idle, &pool->lock, &until);
    helper_unlock(pool);
}

bool helper_pool_free(struct helper_pool **pool_pointer)
{
    struct helper_pool *pool = *pool_pointer;
    *pool_pointer = NULL;
    if (!pool) return true;
    helper_pool_drain(pool, 0);
    helper_lock(pool);
    bool done = pool->thread_count == 0;
    helper_unlock(pool);
    if (!done) return false;
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->idle);
    pthread_mutex_destroy(&pool->lock);
    close(pool->pipe[0]);
    close(pool->pipe[1]);
    mem_free(pool);
    return true;
}

#undef HELPER_STACK_BYTES
