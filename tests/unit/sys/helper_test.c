/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/helper_test.c: proves that jobs run on other threads and come back once, in a descriptor's event, that
 * what was cancelled in time never runs, and that the number of threads and of waiting jobs is bounded.
 */
#include "vm/sys/helper.h"

#include "vm/base/limits.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct test_job {
    struct helper_job job; /* first */
    pthread_t ran_on;
    int runs;
    int gate; /* waits until this pipe has a byte; -1: does not */
};

static void run(struct helper_job *job)
{
    struct test_job *test = (struct test_job *)job;
    char byte;
    test->ran_on = pthread_self();
    if (test->gate >= 0) ck_assert_int_eq(read(test->gate, &byte, 1), 1);
    test->runs++;
}

/* Takes until `count` have come. */
static void take(struct helper_pool *pool, int count)
{
    while (count > 0) {
        struct pollfd wait = {.fd = helper_pool_descriptor(pool), .events = POLLIN};
        ck_assert_int_eq(poll(&wait, 1, -1), 1);
        struct helper_job *job = helper_pool_take(pool);
        ck_assert_ptr_nonnull(job); /* readable means that there are some */
        for (; job; job = job->next) count--;
    }
    ck_assert_int_eq(count, 0);
}

START_TEST(test_jobs_run_elsewhere_and_come_back_once)
{
    enum { COUNT = 200 };
    struct helper_pool *pool;
    static struct test_job jobs[COUNT];
    ck_assert(!cy_failed(helper_pool_new(&pool)));
    for (int i = 0; i < COUNT; i++) {
        jobs[i] = (struct test_job){.job.run = run, .gate = -1};
        ck_assert(!cy_failed(helper_pool_submit(pool, &jobs[i].job)));
    }
    take(pool, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(jobs[i].runs, 1);
        ck_assert(!pthread_equal(jobs[i].ran_on, pthread_self()));
    }
    struct pollfd wait = {.fd = helper_pool_descriptor(pool), .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, 0), 0);
    ck_assert_ptr_null(helper_pool_take(pool));
    helper_pool_drain(pool, 10000);
    helper_pool_free(&pool);
}
END_TEST

/* All threads are held at a gate: as many jobs run as there are HELPER_THREADS, what waits can be cancelled, and
 * HELPER_JOBS may wait but not one more. */
START_TEST(test_bounds_and_cancelling)
{
    struct helper_pool *pool;
    int gate[2];
    static struct test_job running[LIMIT_HELPER_THREADS], waiting[LIMIT_HELPER_JOBS], past;
    ck_assert_int_eq(pipe(gate), 0);
    ck_assert(!cy_failed(helper_pool_new(&pool)));
    for (int i = 0; i < LIMIT_HELPER_THREADS; i++) {
        running[i] = (struct test_job){.job.run = run, .gate = gate[0]};
        ck_assert(!cy_failed(helper_pool_submit(pool, &running[i].job)));
    }
    /* They run when none of them can be cancelled any more. */
    for (int i = 0; i < LIMIT_HELPER_THREADS; i++)
        while (helper_pool_cancel(pool, &running[i].job)) {
            ck_assert(!cy_failed(helper_pool_submit(pool, &running[i].job)));
            struct pollfd pause = {.fd = -1};
            poll(&pause, 1, 1);
        }
    for (int i = 0; i < LIMIT_HELPER_JOBS; i++) {
        waiting[i] = (struct test_job){.job.run = run, .gate = -1};
        ck_assert(!cy_failed(helper_pool_submit(pool, &waiting[i].job)));
    }
    past = (struct test_job){.job.run = run, .gate = -1};
    cy_err err = helper_pool_submit(pool, &past.job);
    ck_assert(cy_is(err, CY_ERR_TOO_MANY) && err.detail == LIMIT_HELPER_JOBS);
    ck_assert(helper_pool_cancel(pool, &waiting[0].job));
    ck_assert(helper_pool_cancel(pool, &waiting[LIMIT_HELPER_JOBS - 1].job));
    ck_assert(helper_pool_cancel(pool, &waiting[7].job));
    ck_assert(!helper_pool_cancel(pool, &waiting[7].job));
    ck_assert(!cy_failed(helper_pool_submit(pool, &past.job)));
    for (int i = 0; i < LIMIT_HELPER_THREADS; i++) ck_assert_int_eq(write(gate[1], "", 1), 1);
    take(pool, LIMIT_HELPER_THREADS + LIMIT_HELPER_JOBS - 3 + 1);
    ck_assert_int_eq(waiting[0].runs + waiting[7].runs + waiting[LIMIT_HELPER_JOBS - 1].runs, 0);
    ck_assert_int_eq(waiting[1].runs, 1);
    ck_assert_int_eq(past.runs, 1);
    helper_pool_drain(pool, 10000);
    helper_pool_free(&pool);
    close(gate[0]);
    close(gate[1]);
}
END_TEST

/* The process ends while a job hangs: freeing does not wait for it. */
START_TEST(test_a_job_that_hangs_holds_nobody_up)
{
    struct helper_pool *pool;
    int gate[2];
    static struct test_job job;
    ck_assert_int_eq(pipe(gate), 0);
    ck_assert(!cy_failed(helper_pool_new(&pool)));
    job = (struct test_job){.job.run = run, .gate = gate[0]};
    ck_assert(!cy_failed(helper_pool_submit(pool, &job.job)));
    while (helper_pool_cancel(pool, &job.job)) ck_assert(!cy_failed(helper_pool_submit(pool, &job.job)));
    helper_pool_free(&pool);
    ck_assert_int_eq(job.runs, 0);
}
END_TEST

Suite *unit_suite_sys_helper(void);
Suite *unit_suite_sys_helper(void)
{
    Suite *suite = suite_create("sys_helper");
    TCase *tcase = tcase_create("helper");
    tcase_add_test(tcase, test_jobs_run_elsewhere_and_come_back_once);
    tcase_add_test(tcase, test_bounds_and_cancelling);
    tcase_add_test(tcase, test_a_job_that_hangs_holds_nobody_up);
    suite_add_tcase(suite, tcase);
    return suite;
}
