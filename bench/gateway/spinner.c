/* SPDX-License-Identifier: MIT
 *
 * bench/gateway/spinner.c: takes a part of its CPU away from whatever else runs there: for `bench/gateway/run --share`.
 *
 * In:   spinner SHARE_PERCENT PRIORITY. Out: "ready" on stdout, then so much of the CPU that SHARE_PERCENT of it are
 *       left, until it is ended; exit code 1 with a message where SCHED_FIFO is not allowed.
 *
 *     |<------------- period: 1 ms ------------->|
 *     |#### spins at PRIORITY ####|..  others  ..|
 *
 * It spins in registers, so that it evicts nothing from the caches; but the kernel's way in and out does a little.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Short beside what a proxy's queue holds, so that its batches do not become others than without us; long beside the
 * two switches of a period, a few microseconds. */
#define PERIOD_NS 1000000

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int share = argc == 3 ? atoi(argv[1]) : 0;
    struct sched_param param = {.sched_priority = argc == 3 ? atoi(argv[2]) : 0};
    if (share < 1 || share > 99) {
        fprintf(stderr, "spinner: SHARE_PERCENT (1..99) PRIORITY\n");
        return 2;
    }
    if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
        fprintf(stderr, "spinner: SCHED_FIFO with priority %d: %s\n", param.sched_priority, strerror(errno));
        return 1;
    }
    puts("ready");
    fflush(stdout);
    uint64_t period_begin = now_ns();
    for (;;) {
        uint64_t spin_end = period_begin + (uint64_t)PERIOD_NS / 100 * (uint64_t)(100 - share);
        while (now_ns() < spin_end) {}
        period_begin += PERIOD_NS;
        if (period_begin < now_ns()) period_begin = now_ns(); /* we were kept away: no catching up */
        struct timespec until = {(time_t)(period_begin / 1000000000u), (long)(period_begin % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
    }
}
