/* SPDX-License-Identifier: MIT
 *
 * vm/base/civil.c: instants and calendar parts.
 *
 * In, Out, Invariant: civil.h.
 * Method: years begin in March, so that the leap day is the last of a year and months have a regular pattern (153 days
 *       in 5 months); 400 years are 146,097 days. All divisions round towards the past.
 * Not here: texts (civil_text.c).
 */
#include "vm/base/civil.h"

#include "vm/base/check.h"

enum {
    CIVIL_DAY_SECONDS = 86400,
    CIVIL_ERA_YEARS = 400,
    CIVIL_ERA_DAYS = 146097,
    CIVIL_DAYS_TO_1970 = 719468 /* from 0000-03-01 */
};
/* Beyond these no instant of 64 bits lies; well inside what the arithmetic below bears. */
#define CIVIL_YEAR_MAX INT64_C(300000000000)

static const int64_t civil_per_second[] = {
    [CIVIL_SECONDS] = 1,
    [CIVIL_MILLISECONDS] = 1000,
    [CIVIL_MICROSECONDS] = 1000000,
    [CIVIL_NANOSECONDS] = 1000000000,
};

/* Quotient rounded towards the past; the rest is 0..divisor-1. */
static int64_t civil_floor(int64_t number, int64_t divisor, int64_t *rest_out)
{
    int64_t quotient = number / divisor, rest = number % divisor;
    if (rest < 0) {
        rest += divisor;
        quotient--;
    }
    *rest_out = rest;
    return quotient;
}

struct civil_instant civil_instant_of(int64_t amount, enum civil_unit unit)
{
    int64_t per_second = civil_per_second[unit], rest;
    int64_t seconds = civil_floor(amount, per_second, &rest);
    return (struct civil_instant){seconds, (uint32_t)(rest * (1000000000 / per_second))};
}

bool civil_amount_of(struct civil_instant instant, enum civil_unit unit, int64_t *amount_out)
{
    int64_t per_second = civil_per_second[unit];
    int64_t rest = instant.nanoseconds / (1000000000 / per_second), amount;
    /* Just before the smallest amount the product alone may not fit: count back from the next second. */
    if (instant.seconds < 0 && rest > 0) {
        if (__builtin_mul_overflow(instant.seconds + 1, per_second, &amount)) return false;
        return !__builtin_add_overflow(amount, rest - per_second, amount_out);
    }
    if (__builtin_mul_overflow(instant.seconds, per_second, &amount)) return false;
    return !__builtin_add_overflow(amount, rest, amount_out);
}

static bool civil_is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

uint32_t civil_month_days(int64_t year, uint32_t month)
{
    static const uint8_t days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month < 1 || month > 12) return 0;
    return days[month] + (month == 2 && civil_is_leap(year));
}

/* Days since 1970-01-01. */
static int64_t civil_days(int64_t year, uint32_t month, uint32_t day)
{
    int64_t year_of_era, march_year = year - (month <= 2);
    int64_t era = civil_floor(march_year, CIVIL_ERA_YEARS, &year_of_era);
    int64_t march_month = (month + 9) % 12;
    int64_t day_of_year = (153 * march_month + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * CIVIL_ERA_DAYS + day_of_era - CIVIL_DAYS_TO_1970;
}

static void civil_date(int64_t days, struct civil_parts *parts)
{
    int64_t day_of_era, era = civil_floor(days + CIVIL_DAYS_TO_1970, CIVIL_ERA_DAYS, &day_of_era);
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t march_month = (5 * day_of_year + 2) / 153;
    parts->day = (uint32_t)(day_of_year - (153 * march_month + 2) / 5 + 1);
    parts->month = (uint32_t)(march_month < 10 ? march_month + 3 : march_month - 9);
    parts->year = era * CIVIL_ERA_YEARS + year_of_era + (parts->month <= 2);
}

bool civil_parts_of(struct civil_instant instant, int32_t offset_minutes, struct civil_parts *parts_out)
{
    CHECK(instant.nanoseconds < 1000000000);
    CHECK(offset_minutes >= -CIVIL_OFFSET_MINUTES_MAX && offset_minutes <= CIVIL_OFFSET_MINUTES_MAX);
    int64_t local, second_of_day, weekday;
    if (__builtin_add_overflow(instant.seconds, (int64_t)offset_minutes * 60, &local)) return false;
    int64_t days = civil_floor(local, CIVIL_DAY_SECONDS, &second_of_day);
    *parts_out = (struct civil_parts){.nanosecond = instant.nanoseconds, .offset_minutes = offset_minutes};
    civil_date(days, parts_out);
    parts_out->hour = (uint32_t)(second_of_day / 3600);
    parts_out->minute = (uint32_t)(second_of_day / 60 % 60);
    parts_out->second = (uint32_t)(second_of_day % 60);
    (void)civil_floor(days + 3, 7, &weekday); /* 1970-01-01 was a Thursday */
    parts_out->weekday = (uint32_t)weekday + 1;
    parts_out->day_of_year = (uint32_t)(days - civil_days(parts_out->year, 1, 1)) + 1;
    return true;
}

bool civil_instant_from_parts(const struct civil_parts *parts, struct civil_instant *instant_out)
{
    if (parts->year < -CIVIL_YEAR_MAX || parts->year > CIVIL_YEAR_MAX) return false;
    if (parts->day < 1 || parts->day > civil_month_days(parts->year, parts->month)) return false;
    if (parts->hour > 23 || parts->minute > 59 || parts->second > 59 || parts->nanosecond > 999999999)
        return false;
    if (parts->offset_minutes < -CIVIL_OFFSET_MINUTES_MAX || parts->offset_minutes > CIVIL_OFFSET_MINUTES_MAX)
        return false;
    int64_t second_of_day = (int64_t)parts->hour * 3600 + parts->minute * 60 + parts->second;
    second_of_day -= (int64_t)parts->offset_minutes * 60;
    int64_t days = civil_days(parts->year, parts->month, parts->day), seconds;
    if (days <
        0) { /* counted back from the next day, so that the very first instants do not overflow on the way */
        days++;
        second_of_day -= CIVIL_DAY_SECONDS;
    }
    if (__builtin_mul_overflow(days, (int64_t)CIVIL_DAY_SECONDS, &seconds)) return false;
    if (__builtin_add_overflow(seconds, second_of_day, &seconds)) return false;
    *instant_out = (struct civil_instant){seconds, parts->nanosecond};
    return true;
}

#undef CIVIL_YEAR_MAX
