/* SPDX-License-Identifier: MIT
 *
 * vm/base/civil.h: instants and the calendar: own arithmetic, no time zone data, no locale, no mktime.
 *
 * In:   seconds since 1970 UTC without leap seconds (POSIX), or texts. Out: calendar parts, or texts.
 * Invariant: the whole range of int64 seconds is right (the Gregorian calendar goes on in both directions), and nothing
 *       overflows: what does not fit is refused.
 * Leap seconds: 23:59:60 UTC on the last day of a month is read as the first second of the next day, because POSIX time
 *       has no number of its own for it. It is never written.
 */
#ifndef CY_BASE_CIVIL_H
#define CY_BASE_CIVIL_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"

/* seconds + nanoseconds / 10^9; nanoseconds is 0..999,999,999, also before 1970. */
struct civil_instant {
    int64_t seconds;
    uint32_t nanoseconds;
};

enum civil_unit { CIVIL_SECONDS, CIVIL_MILLISECONDS, CIVIL_MICROSECONDS, CIVIL_NANOSECONDS };

struct civil_parts {
    int64_t year;   /* astronomical: 0 is 1 BC */
    uint32_t month; /* 1..12 */
    uint32_t day;   /* 1..31 */
    uint32_t hour, minute, second;
    uint32_t nanosecond;
    int32_t offset_minutes; /* east of UTC, within a day */
    uint32_t weekday;       /* 1 Monday .. 7 Sunday (ISO 8601) */
    uint32_t day_of_year;   /* 1..366 */
};
enum { CIVIL_OFFSET_MINUTES_MAX = 24 * 60 - 1 };

struct civil_instant civil_instant_of(int64_t amount, enum civil_unit unit);
/* Whole units, rounded towards the past. False when they do not fit. */
CY_NODISCARD bool civil_amount_of(struct civil_instant instant, enum civil_unit unit, int64_t *amount_out);

/* False when the offset leads out of range. */
CY_NODISCARD bool civil_parts_of(struct civil_instant instant, int32_t offset_minutes,
                                 struct civil_parts *parts_out);
/* From year .. nanosecond and offset; weekday and day_of_year are not looked at. False when a part is out of its range
 * or the instant is. */
CY_NODISCARD bool civil_instant_from_parts(const struct civil_parts *parts,
                                           struct civil_instant *instant_out);
/* 28..31; 0 when there is no such month. */
uint32_t civil_month_days(int64_t year, uint32_t month);

/* RFC 3339: "1985-04-12T23:20:50.52Z", "…+09:00". 't', 'z' and a space for the T are read too. Digits of the fraction
 * behind the ninth are dropped. NULL on success, else what was expected. */
const char *civil_parse_rfc3339(cy_bytes text, struct civil_instant *instant_out,
                                int32_t *offset_minutes_out);
/* `digits` of the fraction 0..9, or -1 for 0, 3, 6 or 9, as few as lose nothing. False outside of the years 0..9999. */
CY_NODISCARD bool civil_write_rfc3339(struct builder *out, struct civil_instant instant,
                                      int32_t offset_minutes, int digits);

/* RFC 9110 section 5.6.7: all three forms. Two digits of a year mean the year nearest to `now_seconds` that is at most
 * 50 years after it. The name of the day must be one, but is not compared with the date. NULL on success. */
const char *civil_parse_http_date(cy_bytes text, int64_t now_seconds, struct civil_instant *instant_out);
/* "Sun, 06 Nov 1994 08:49:37 GMT". False outside of the years 0..9999. */
CY_NODISCARD bool civil_write_http_date(struct builder *out, struct civil_instant instant);

/* "1h2m3.5s", "250ms", "1.5us", "0s", "-2d": days, hours, minutes, seconds; below a second one unit with a fraction. */
void civil_write_duration(struct builder *out, int64_t amount, enum civil_unit unit);
/* The same, each unit at most once and in that order (also ms, us, ns), a fraction on the last one. NULL on success; a
 * part finer than the unit is refused. */
const char *civil_parse_duration(cy_bytes text, enum civil_unit unit, int64_t *amount_out);

#endif
