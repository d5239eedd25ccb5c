/* SPDX-License-Identifier: MIT
 *
 * vm/base/check.h: assertions about our own code.
 *
 * CHECK stays in release builds: a false condition is a bug in our C, and the process logs, prints its stack and
 * aborts. DCHECK is for costly or hot conditions and exists in DEBUG builds only. Neither ever judges outside input.
 */
#ifndef CY_BASE_CHECK_H
#define CY_BASE_CHECK_H

#include "vm/base/base.h"

CY_NORETURN CY_COLD void check_failed(const char *condition, const char *file, int line);

#define CHECK(condition) (CY_LIKELY(condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__))
#define UNREACHABLE() check_failed("reached a place that cannot be reached", __FILE__, __LINE__)

#ifdef CY_DEBUG
#define DCHECK(condition) CHECK(condition)
#else
#define DCHECK(condition) ((void)sizeof(condition))
#endif

#endif
