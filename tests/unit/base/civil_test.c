/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/civil_test.c: proves the calendar against the C library's over 800 years and at the ends of int64,
 * and the texts of RFC 3339 section 5.8, RFC 9110 section 5.6.7, and durations, each with their refusals.
 */
#include "vm/base/civil.h"

#include <check.h>
#include <time.h>

START_TEST(test_every_day_of_eight_hundred_years)
{
    for (int64_t day = -150000; day < 150000; day++) {
        int64_t seconds = day * 86400 + (day & 1 ? 86399 : 12345);
        time_t clock = (time_t)seconds;
        struct tm tm;
        struct civil_parts parts;
        struct civil_instant back, instant = {seconds, 7};
        bool both = gmtime_r(&clock, &tm) && civil_parts_of(instant, 0, &parts);
        if (!both) ck_abort_msg("day %lld", (long long)day);
        bool same = parts.year == tm.tm_year + 1900 && (int)parts.month == tm.tm_mon + 1 &&
                    (int)parts.day == tm.tm_mday && (int)parts.hour == tm.tm_hour &&
                    (int)parts.minute == tm.tm_min && (int)parts.second == tm.tm_sec &&
                    (int)parts.weekday == (tm.tm_wday ? tm.tm_wday : 7) &&
                    (int)parts.day_of_year == tm.tm_yday + 1;
        same = same && civil_instant_from_parts(&parts, &back) && back.seconds == seconds &&
               back.nanoseconds == 7;
        if (!same)
            ck_abort_msg("day %lld", (long long)day); /* an assertion costs a write each, 300,000 times */
    }
}
END_TEST

START_TEST(test_ends_of_the_range)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX, -1, 0};
    for (size_t i = 0; i < CY_COUNT_OF(ends); i++) {
        struct civil_parts parts;
        struct civil_instant back;
        int64_t amount;
        ck_assert(civil_parts_of((struct civil_instant){ends[i], 0}, 0, &parts));
        ck_assert(civil_instant_from_parts(&parts, &back));
        ck_assert(back.seconds == ends[i]);
        for (enum civil_unit unit = CIVIL_SECONDS; unit <= CIVIL_NANOSECONDS; unit++) {
            ck_assert(civil_amount_of(civil_instant_of(ends[i], unit), unit, &amount));
            ck_assert(amount == ends[i]);
        }
    }
    struct civil_parts parts;
    int64_t amount;
    ck_assert(!civil_parts_of((struct civil_instant){INT64_MAX, 0}, 1, &parts));
    ck_assert(!civil_parts_of((struct civil_instant){INT64_MIN, 0}, -1, &parts));
    ck_assert(!civil_amount_of((struct civil_instant){INT64_MAX / 1000 + 1, 0}, CIVIL_MILLISECONDS, &amount));
    struct civil_instant instant;
    parts = (struct civil_parts){.year = INT64_MAX, .month = 1, .day = 1};
    ck_assert(!civil_instant_from_parts(&parts, &instant));
    parts.year = 292277026597; /* one year past */
    ck_assert(!civil_instant_from_parts(&parts, &instant));
}
END_TEST

struct civil_test_row {
    const char *text;
    int64_t milliseconds; /* INT64_MIN: refused */
};
#define REFUSED INT64_MIN

static void civil_test_compare(const struct civil_test_row *row, const char *fault,
                               struct civil_instant instant)
{
    int64_t amount = REFUSED;
    ck_assert_msg((fault != NULL) == (row->milliseconds == REFUSED), "%s: %s", row->text,
                  fault ? fault : "accepted");
    if (!fault) ck_assert(civil_amount_of(instant, CIVIL_MILLISECONDS, &amount));
    ck_assert_msg(amount == row->milliseconds, "%s: %lld", row->text, (long long)amount);
}

START_TEST(test_rfc3339)
{
    static const struct civil_test_row rows[] = {
        {"1985-04-12T23:20:50.52Z", 482196050520}, /* RFC 3339 section 5.8 */
        {"1996-12-19T16:39:57-08:00", 851042397000},
        {"1990-12-31T23:59:60Z", 662688000000},
        {"1990-12-31T15:59:60-08:00", 662688000000},
        {"1937-01-01T12:00:27.87+00:20", -1041337172130},
        {"1970-01-01t00:00:00z", 0},
        {"1970-01-01 00:00:00-00:00", 0},
        {"0000-01-01T00:00:00Z", -62167219200000},
        {"9999-12-31T23:59:59.9999999999Z", 253402300799999},
        {"2000-02-29T00:00:00.123456789999Z", 951782400123},
        {"1969-12-31T23:59:59.9995Z", -1}, /* towards the past */
        {"1900-02-29T00:00:00Z", REFUSED},
        {"1990-12-31T23:58:60Z", REFUSED},
        {"1990-12-30T23:59:60Z", REFUSED},
        {"1990-12-31T23:59:61Z", REFUSED},
        {"1990-00-31T23:59:00Z", REFUSED},
        {"1990-12-00T23:59:00Z", REFUSED},
        {"1990-12-31T24:00:00Z", REFUSED},
        {"1990-12-31T23:60:00Z", REFUSED},
        {"1990-12-31T23:59:00", REFUSED},
        {"1990-12-31T23:59Z", REFUSED},
        {"1990-12-31T23:59:00.Z", REFUSED},
        {"1990-12-31T23:59:00+0900", REFUSED},
        {"1990-12-31T23:59:00+09", REFUSED},
        {"1990-12-31T23:59:00+09:60", REFUSED},
        {"+990-12-31T23:59:00Z", REFUSED},
        {"19990-12-31T23:59:00Z", REFUSED},
        {"1990-12-31", REFUSED},
        {"", REFUSED},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct civil_instant instant;
        int32_t offset;
        const char *fault = civil_parse_rfc3339(cy_bytes_from_text(rows[i].text), &instant, &offset);
        civil_test_compare(&rows[i], fault, instant);
    }
}
END_TEST

/* Now is 2026-11-30T12:00:00Z. */
START_TEST(test_http_dates)
{
    static const struct civil_test_row rows[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777000}, /* RFC 9110 section 5.6.7 */
        {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777000},
        {"Sun Nov  6 08:49:37 1994", 784111777000},
        {"Wed Nov 16 08:49:37 1994", 784975777000},
        {"Monday, 30-Nov-76 12:00:00 GMT", 3373963200000},  /* 2076: 50 years ahead to the second */
        {"Monday, 30-Nov-76 12:00:01 GMT", 218203201000},   /* 1976 */
        {"Monday, 01-Jan-77 00:00:00 GMT", 220924800000},   /* 1977 */
        {"Thursday, 01-Jan-00 00:00:00 GMT", 946684800000}, /* 2000 */
        {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800000},
        {"sun, 06 Nov 1994 08:49:37 GMT", REFUSED},
        {"Sun, 6 Nov 1994 08:49:37 GMT", REFUSED},
        {"Sun, 06 Nov 1994 08:49:37 UTC", REFUSED},
        {"Sun, 06 Nov 1994 08:49:37", REFUSED},
        {"Sun, 06 nov 1994 08:49:37 GMT", REFUSED},
        {"Sun, 31 Nov 1994 08:49:37 GMT", REFUSED},
        {"Sun, 06 Nov 94 08:49:37 GMT", REFUSED},
        {"Sun  Nov  6 08:49:37 1994", REFUSED},
        {"Sun, 06 Nov 1994 08:49:37 GMT ", REFUSED},
        {"", REFUSED},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct civil_instant instant;
        const char *fault = civil_parse_http_date(cy_bytes_from_text(rows[i].text), 1796040000, &instant);
        civil_test_compare(&rows[i], fault, instant);
    }
}
END_TEST

START_TEST(test_writing)
{
    struct builder out;
    builder_init(&out);
    ck_assert(civil_write_http_date(&out, (struct civil_instant){784111777, 999999999}));
    ck_assert_str_eq(builder_text_view(&out), "Sun, 06 Nov 1994 08:49:37 GMT");
    builder_clear(&out);
    ck_assert(civil_write_rfc3339(&out, (struct civil_instant){851042397, 1000}, -480, -1));
    ck_assert_str_eq(builder_text_view(&out), "1996-12-19T16:39:57.000001-08:00");
    builder_clear(&out);
    ck_assert(civil_write_rfc3339(&out, (struct civil_instant){-62167219200, 0}, 0, 2));
    ck_assert_str_eq(builder_text_view(&out), "0000-01-01T00:00:00.00Z");
    ck_assert(!civil_write_rfc3339(&out, (struct civil_instant){253402300800, 0}, 0, 0));
    ck_assert(!civil_write_rfc3339(&out, (struct civil_instant){-62167219201, 0}, 0, 0));
    ck_assert(!civil_write_http_date(&out, (struct civil_instant){INT64_MIN, 0}));
    builder_fini(&out);
}
END_TEST

START_TEST(test_durations)
{
    static const int64_t amounts[] = {0,       1,       999,      1000,      59999,     60000,
                                      3600000, 3723500, 86400000, INT64_MAX, INT64_MIN, -1};
    for (size_t i = 0; i < CY_COUNT_OF(amounts); i++) {
        for (enum civil_unit unit = CIVIL_SECONDS; unit <= CIVIL_NANOSECONDS; unit++) {
            struct builder out;
            int64_t back;
            builder_init(&out);
            civil_write_duration(&out, amounts[i], unit);
            const char *fault = civil_parse_duration(builder_view(&out), unit, &back);
            ck_assert_msg(!fault && back == amounts[i], "%s: %s", builder_text_view(&out), fault);
            builder_fini(&out);
        }
    }
    static const char *const refused[] = {"",
                                          "-",
                                          "1",
                                          "s",
                                          "1s1s",
                                          "1m1h",
                                          "1.5h2m",
                                          "1.s",
                                          ".5s",
                                          "1 s",
                                          "+1s",
                                          "1.5ms",
                                          "1.0000000000000000001s",
                                          "9223372036854775808ms",
                                          "99999999999999999999d"};
    for (size_t i = 0; i < CY_COUNT_OF(refused); i++) {
        int64_t amount;
        const char *fault = civil_parse_duration(cy_bytes_from_text(refused[i]), CIVIL_MILLISECONDS, &amount);
        ck_assert_msg(fault != NULL, "%s", refused[i]);
    }
}
END_TEST
#undef REFUSED

Suite *unit_suite_base_civil(void)
{
    Suite *suite = suite_create("base_civil");
    TCase *tcase = tcase_create("civil");
    tcase_add_test(tcase, test_every_day_of_eight_hundred_years);
    tcase_add_test(tcase, test_ends_of_the_range);
    tcase_add_test(tcase, test_rfc3339);
    tcase_add_test(tcase, test_http_dates);
    tcase_add_test(tcase, test_writing);
    tcase_add_test(tcase, test_durations);
    suite_add_tcase(suite, tcase);
    return suite;
}
