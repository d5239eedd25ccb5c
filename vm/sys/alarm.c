/* SPDX-License-Identifier: MIT
 *
 * vm/sys/alarm.c: see alarm.h.
 *
 * In:   points of time. Out: a timerfd that is readable from then on.
 */
#include "vm/sys/alarm.h"

#ifdef __linux__

#include <errno.h>
#include <sys/timerfd.h>

cy_err alarm_open(int *descriptor_out)
{
    *descriptor_out = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return *descriptor_out < 0 ? cy_err_from_errno(errno) : CY_OK;
}

cy_err alarm_set(int descriptor, uint64_t at_ns)
{
    if (at_ns == 0) at_ns = 1; /* 0 would switch it off */
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at_ns / 1000000000u), .tv_nsec = (long)(at_ns % 1000000000u)}};
    return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &when, NULL) != 0 ? cy_err_from_errno(errno)
                                                                            : CY_OK;
}

#else

cy_err alarm_open(int *descriptor_out)
{
    *descriptor_out = -1;
    return CY_ERR(UNSUPPORTED);
}

cy_err alarm_set(int descriptor, uint64_t at_ns)
{
    (void)descriptor, (void)at_ns;
    return CY_ERR(UNSUPPORTED);
}

#endif
