/* SPDX-License-Identifier: MIT
 *
 * vm/sys/usage.h: how much CPU a process has used.
 */
#ifndef CY_SYS_USAGE_H
#define CY_SYS_USAGE_H

#include "vm/base/error.h"

#include <sys/types.h>

/* All threads, those that have ended included; without children. */
struct cpu_usage {
    uint64_t user_us;
    uint64_t system_us;
};

/* Of this process, exact to a microsecond. */
CY_NODISCARD cy_err usage_of_self(struct cpu_usage *usage_out);
/* Of another one, exact to a clock tick (10 ms): procfs knows no better. NOT_FOUND when there is none of that number,
 * UNSUPPORTED where there is no procfs. */
CY_NODISCARD cy_err usage_of_process(pid_t pid, struct cpu_usage *usage_out);

#endif
