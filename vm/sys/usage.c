/* SPDX-License-Identifier: MIT
 *
 * vm/sys/usage.c: see usage.h.
 *
 * In:   a process number. Out: user and system time, from getrusage or /proc/PID/stat.
 */
#include "vm/sys/usage.h"

#include "vm/base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define USAGE_STAT_BYTES 1024 /* 52 numbers and a name of 16 bytes are 400 */

cy_err usage_of_self(struct cpu_usage *usage_out)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return cy_err_from_errno(errno);
    usage_out->user_us = (uint64_t)usage.ru_utime.tv_sec * 1000000u + (uint64_t)usage.ru_utime.tv_usec;
    usage_out->system_us = (uint64_t)usage.ru_stime.tv_sec * 1000000u + (uint64_t)usage.ru_stime.tv_usec;
    return CY_OK;
}

#ifdef __linux__

/* The 14th and 15th word are ticks of user and system time; the 2nd, the name, may have blanks and brackets in it. */
static cy_err usage_parse_stat(cy_bytes stat, uint64_t ticks_per_s, struct cpu_usage *usage_out)
{
    size_t after_name = stat.count;
    while (after_name > 0 && stat.data[after_name - 1] != ')') after_name--;
    cy_bytes rest = cy_bytes_skip(stat, after_name + 1); /* from the 3rd word */
    uint64_t ticks[2] = {0, 0};
    for (unsigned word = 3; word <= 15; word++) {
        size_t end = cy_bytes_find(rest, ' ');
        cy_bytes digits = cy_bytes_slice(rest, 0, end);
        if (word >= 14 && !cy_bytes_parse_u64(digits, UINT64_MAX / 1000000u, &ticks[word - 14]))
            return CY_ERR(BAD_FORMAT);
        rest = cy_bytes_skip(rest, end + 1);
    }
    usage_out->user_us = ticks[0] * 1000000u / ticks_per_s;
    usage_out->system_us = ticks[1] * 1000000u / ticks_per_s;
    return CY_OK;
}

cy_err usage_of_process(pid_t pid, struct cpu_usage *usage_out)
{
    char path[64], text[USAGE_STAT_BYTES];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return errno == ENOENT ? CY_ERR(NOT_FOUND) : cy_err_from_errno(errno);
    ssize_t count = read(descriptor, text, sizeof text);
    int read_errno = errno;
    close(descriptor);
    if (count < 0) return read_errno == ESRCH ? CY_ERR(NOT_FOUND) : cy_err_from_errno(read_errno);
    long ticks_per_s = sysconf(_SC_CLK_TCK);
    if (ticks_per_s <= 0) return CY_ERR(UNSUPPORTED);
    return usage_parse_stat(cy_bytes_of(text, (size_t)count), (uint64_t)ticks_per_s, usage_out);
}

#else

cy_err usage_of_process(pid_t pid, struct cpu_usage *usage_out)
{
    (void)pid, (void)usage_out;
    return CY_ERR(UNSUPPORTED);
}

#endif

#undef USAGE_STAT_BYTES
