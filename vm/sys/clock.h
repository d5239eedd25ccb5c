/* SPDX-License-Identifier: MIT
 *
 * vm/sys/clock.h: what time it is.
 */
#ifndef CY_SYS_CLOCK_H
#define CY_SYS_CLOCK_H

#include "vm/base/base.h"

uint64_t clock_monotonic_ns(void);  /* never goes back */
int64_t clock_wall_ns(void);        /* since 1970 UTC; until 2262 */
int64_t clock_wall_ms(void);        /* since 1970 UTC */
uint64_t clock_thread_cpu_ns(void); /* CPU this thread has used */

#endif
