/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_clock.c: module time: what needs a clock.
 *
 * Not here: arithmetic and texts (native_time.c), sleeping (task.sleep).
 */
#include "vm/native/native_bodies.h"
#include "vm/native/native_time.h"
#include "vm/run/object.h"
#include "vm/sys/clock.h"

enum native_outcome native_time_now_ms(struct native_call *call)
{
    return native_return(call, value_int(clock_wall_ms()));
}

enum native_outcome native_time_now_ns(struct native_call *call)
{
    return native_return(call, value_int(clock_wall_ns()));
}

enum native_outcome native_time_monotonic_ms(struct native_call *call)
{
    return native_return(call, value_int((int64_t)(clock_monotonic_ns() / 1000000)));
}

enum native_outcome native_time_monotonic_ns(struct native_call *call)
{
    return native_return(call, value_int((int64_t)clock_monotonic_ns()));
}

enum native_outcome native_time_parse_http_date(struct native_call *call)
{
    enum civil_unit unit;
    struct civil_instant instant;
    if (!native_time_unit(call, 1, "time.parse_http_date", &unit)) return NATIVE_FAIL;
    cy_bytes text = string_bytes(call->args[0]);
    const char *fault = civil_parse_http_date(text, clock_wall_ms() / 1000, &instant);
    if (fault) return native_time_refuse(call, "time.parse_http_date", fault, text);
    return native_time_return(call, "time.parse_http_date", instant, unit);
}
