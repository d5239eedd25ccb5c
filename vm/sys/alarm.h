/* SPDX-License-Identifier: MIT
 *
 * vm/sys/alarm.h: a descriptor that becomes readable at a point of time, to the microsecond: for the few who cannot
 * live with the milliseconds of the loop's timers.
 */
#ifndef CY_SYS_ALARM_H
#define CY_SYS_ALARM_H

#include "vm/base/error.h"

/* Non-blocking, close-on-exec. UNSUPPORTED where the system has none (timerfd). */
CY_NODISCARD cy_err alarm_open(int *descriptor_out);
/* Not readable from now until `at_ns` of the monotonic clock; at once when that is past. Replaces what was set. */
CY_NODISCARD cy_err alarm_set(int descriptor, uint64_t at_ns);

#endif
