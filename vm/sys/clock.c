/* SPDX-License-Identifier: MIT
 *
 * vm/sys/clock.c: the clocks of the operating system.
 *
 * Invariant: none of these can fail on a system that has the clock at all, so a failure is a CHECK.
 */
#include "vm/sys/clock.h"

#include "vm/base/check.h"

#include <time.h>

static uint64_t clock_read_ns(clockid_t clock)
{
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void) { return clock_read_ns(CLOCK_MONOTONIC); }
int64_t clock_wall_ns(void) { return (int64_t)clock_read_ns(CLOCK_REALTIME); }
int64_t clock_wall_ms(void) { return (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000000u); }
uint64_t clock_thread_cpu_ns(void) { return clock_read_ns(CLOCK_THREAD_CPUTIME_ID); }
