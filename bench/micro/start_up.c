/* SPDX-License-Identifier: MIT
 *
 * bench/micro/start_up.c: what it costs to start a command, from a process that is itself small.
 *
 * In:   start_up COUNT COMMAND [ARGUMENT...]
 * Out:  COUNT lines: nanoseconds from before fork to after wait, user and system microseconds, largest resident KiB.
 *       Exit code 1 when the command cannot be run or fails.
 * Why:  Linux counts the memory a process had before it became another program by exec. Measured from Python, every
 *       command would seem as large as Python; this program is smaller than anything it is asked about.
 * Not here: statistics (measure.py).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t start_up_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static long start_up_us(struct timeval time) { return time.tv_sec * 1000000L + time.tv_usec; }

/* Runs the command once, its output thrown away; false when it failed. */
static int start_up_once(char **command)
{
    const uint64_t begin_ns = start_up_now_ns();
    const pid_t child = fork();
    if (child < 0) return 0;
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(127);
        execvp(command[0], command);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child) return 0;
    const uint64_t end_ns = start_up_now_ns();
    printf("%llu %ld %ld %ld\n", (unsigned long long)(end_ns - begin_ns), start_up_us(usage.ru_utime),
           start_up_us(usage.ru_stime), usage.ru_maxrss);
    fflush(stdout); /* before the next fork, which would write it again */
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    const long count = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
    if (count < 1) {
        fputs("usage: start_up COUNT COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    for (long i = 0; i < count; i++) {
        if (!start_up_once(argv + 2)) {
            fprintf(stderr, "start_up: %s cannot be run, or failed\n", argv[2]);
            return 1;
        }
    }
    return 0;
}
