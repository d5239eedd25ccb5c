/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_time.h: what the two files of module time share: the word of a unit.
 */
#ifndef CY_NATIVE_NATIVE_TIME_H
#define CY_NATIVE_NATIVE_TIME_H

#include "vm/base/civil.h"
#include "vm/run/native_call.h"

/* The unit argument at `index`; milliseconds when it is absent. A false result has failed the call. */
CY_NODISCARD bool native_time_unit(struct native_call *call, uint32_t index, const char *native,
                                   enum civil_unit *unit_out);
/* Returns an instant in whole units, or fails: it does not fit. */
enum native_outcome native_time_return(struct native_call *call, const char *native,
                                       struct civil_instant instant, enum civil_unit unit);
/* Fails with "native: expected <what>: "<text>"". */
enum native_outcome native_time_refuse(struct native_call *call, const char *native, const char *expected,
                                       cy_bytes text);

#endif
