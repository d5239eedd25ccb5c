/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_date.c: times as texts: HTTP dates, RFC 3339, durations.
 *
 * Promise: a text is an instant, or what was expected is said; an instant, taken apart and put together, or written
 *          and read again, is the same instant. The years that RFC 3339 and HTTP have are 0 to 9999; an offset or a
 *          leap second may lead past them, and then nothing is written.
 */
#include "tests/fuzz/target.h"
#include "vm/base/check.h"
#include "vm/base/civil.h"

#define FUZZ_DATE_NOW 1796083200 /* 2026-12-01: what years of two digits are near to */

static bool fuzz_date_equal(struct civil_instant a, struct civil_instant b)
{
    return a.seconds == b.seconds && a.nanoseconds == b.nanoseconds;
}

/* Whether a text can say it: the year, at that offset, has four digits. */
static bool fuzz_date_parts(struct civil_instant instant, int32_t offset_minutes)
{
    struct civil_parts parts;
    struct civil_instant again;
    if (!civil_parts_of(instant, offset_minutes, &parts)) return false;
    CHECK(parts.month >= 1 && parts.month <= 12 && parts.day >= 1);
    CHECK(parts.day <= civil_month_days(parts.year, parts.month));
    CHECK(parts.hour < 24 && parts.minute < 60 && parts.second < 60 && parts.nanosecond < 1000000000);
    CHECK(parts.weekday >= 1 && parts.weekday <= 7 && parts.day_of_year >= 1 && parts.day_of_year <= 366);
    CHECK(civil_instant_from_parts(&parts, &again) && fuzz_date_equal(instant, again));
    return parts.year >= 0 && parts.year <= 9999;
}

static void fuzz_date_http(cy_bytes text)
{
    struct civil_instant instant, again;
    struct builder written;
    const char *expected = civil_parse_http_date(text, FUZZ_DATE_NOW, &instant);
    if (expected) {
        CHECK(expected[0]);
        return;
    }
    CHECK(instant.nanoseconds == 0);
    builder_init(&written);
    CHECK(civil_write_http_date(&written, instant) == fuzz_date_parts(instant, 0));
    if (written.count > 0) {
        CHECK(!civil_parse_http_date(builder_view(&written), FUZZ_DATE_NOW, &again));
        CHECK(fuzz_date_equal(instant, again));
    }
    builder_fini(&written);
}

static void fuzz_date_rfc3339(cy_bytes text)
{
    struct civil_instant instant, again;
    int32_t offset, offset_again;
    struct builder written;
    const char *expected = civil_parse_rfc3339(text, &instant, &offset);
    if (expected) {
        CHECK(expected[0]);
        return;
    }
    CHECK(instant.nanoseconds < 1000000000);
    CHECK(offset >= -CIVIL_OFFSET_MINUTES_MAX && offset <= CIVIL_OFFSET_MINUTES_MAX);
    for (int digits = -1; digits <= 9; digits++) {
        builder_init(&written);
        CHECK(civil_write_rfc3339(&written, instant, offset, digits) == fuzz_date_parts(instant, offset));
        if (written.count > 0) {
            CHECK(!civil_parse_rfc3339(builder_view(&written), &again, &offset_again));
            CHECK(offset == offset_again && instant.seconds == again.seconds);
            if (digits < 0 || digits == 9) CHECK(instant.nanoseconds == again.nanoseconds);
        }
        builder_fini(&written);
    }
}

static void fuzz_date_duration(cy_bytes text)
{
    for (int unit = CIVIL_SECONDS; unit <= CIVIL_NANOSECONDS; unit++) {
        int64_t amount, again;
        struct builder written;
        const char *expected = civil_parse_duration(text, (enum civil_unit)unit, &amount);
        if (expected) {
            CHECK(expected[0]);
            continue;
        }
        builder_init(&written);
        civil_write_duration(&written, amount, (enum civil_unit)unit);
        CHECK(!civil_parse_duration(builder_view(&written), (enum civil_unit)unit, &again));
        CHECK(amount == again);
        struct civil_instant instant = civil_instant_of(amount, (enum civil_unit)unit);
        CHECK(instant.nanoseconds < 1000000000);
        CHECK(civil_amount_of(instant, (enum civil_unit)unit, &again) && amount == again);
        builder_fini(&written);
    }
}

void fuzz_target_date(cy_bytes input)
{
    fuzz_date_http(input);
    fuzz_date_rfc3339(input);
    fuzz_date_duration(input);
}
