/* SPDX-License-Identifier: MIT
 *
 * vm/base/civil_text.c: instants as RFC 3339 and HTTP write them, and durations.
 *
 * In, Out: civil.h. What went wrong is a short text: what was expected.
 * Invariant: a text is accepted whole or not at all; nothing is repaired.
 */
#include "vm/base/check.h"
#include "vm/base/civil.h"

static const char civil_text_months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char civil_text_days[] = "MonTueWedThuFriSatSun";
static const char *const civil_text_long_days[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                   "Friday", "Saturday", "Sunday"};

/* -- reading pieces ----------------------------------------------------------------------------------------- */

struct civil_text {
    cy_bytes rest;
    const char *fault; /* the first */
};

static void civil_text_fail(struct civil_text *text, const char *expected)
{
    if (!text->fault) text->fault = expected;
}

/* Exactly `count` digits. */
static uint32_t civil_text_digits(struct civil_text *text, size_t count, const char *expected)
{
    uint64_t number = 0;
    cy_bytes digits = cy_bytes_slice(text->rest, 0, count);
    if (digits.count < count || !cy_bytes_parse_u64(digits, UINT32_MAX, &number))
        civil_text_fail(text, expected);
    text->rest = cy_bytes_skip(text->rest, count);
    return (uint32_t)number;
}

static void civil_text_literal(struct civil_text *text, const char *literal, const char *expected)
{
    cy_bytes wanted = cy_bytes_from_text(literal);
    if (!cy_bytes_start_with(text->rest, wanted)) civil_text_fail(text, expected);
    text->rest = cy_bytes_skip(text->rest, wanted.count);
}

static uint8_t civil_text_byte(struct civil_text *text)
{
    uint8_t byte = text->rest.count ? text->rest.data[0] : 0;
    text->rest = cy_bytes_skip(text->rest, 1);
    return byte;
}

/* The 1-based number of a three-letter name. */
static uint32_t civil_text_name(struct civil_text *text, const char *names, const char *expected)
{
    for (uint32_t i = 0; names[3 * i]; i++) {
        if (!cy_bytes_start_with(text->rest, cy_bytes_of(names + 3 * i, 3))) continue;
        text->rest = cy_bytes_skip(text->rest, 3);
        return i + 1;
    }
    civil_text_fail(text, expected);
    return 1;
}

static void civil_text_clock(struct civil_text *text, struct civil_parts *parts)
{
    parts->hour = civil_text_digits(text, 2, "two digits of an hour");
    civil_text_literal(text, ":", "':' behind the hour");
    parts->minute = civil_text_digits(text, 2, "two digits of a minute");
    civil_text_literal(text, ":", "':' behind the minute");
    parts->second = civil_text_digits(text, 2, "two digits of a second");
}

/* The instant of parts whose second may be 60. */
static const char *civil_text_finish(struct civil_text *text, struct civil_parts *parts,
                                     struct civil_instant *instant_out)
{
    bool leap = parts->second == 60;
    if (leap) parts->second = 59;
    if (text->rest.count > 0) civil_text_fail(text, "nothing behind it");
    if (text->fault) return text->fault;
    if (parts->day < 1 || parts->day > civil_month_days(parts->year, parts->month))
        return "a day that exists";
    if (!civil_instant_from_parts(parts, instant_out)) return "a time of day";
    if (!leap) return NULL;
    struct civil_parts utc;
    instant_out->seconds++;
    instant_out->nanoseconds = 0;
    if (!civil_parts_of(*instant_out, 0, &utc)) return "a time of day";
    return utc.day == 1 && utc.hour == 0 && utc.minute == 0 ? NULL
                                                            : "second 60 only at the end of a month in UTC";
}

/* -- RFC 3339 ----------------------------------------------------------------------------------------------- */

/* The fraction behind '.', as nanoseconds. */
static uint32_t civil_text_fraction(struct civil_text *text)
{
    uint32_t nanoseconds = 0, scale = 100000000;
    size_t count = 0;
    while (count < text->rest.count && (uint8_t)(text->rest.data[count] - '0') < 10) {
        nanoseconds += scale * (uint32_t)(text->rest.data[count] - '0');
        scale /= 10;
        count++;
    }
    if (count == 0) civil_text_fail(text, "a digit behind '.'");
    text->rest = cy_bytes_skip(text->rest, count);
    return nanoseconds;
}

static int32_t civil_text_offset(struct civil_text *text)
{
    uint8_t sign = civil_text_byte(text);
    if (sign == 'Z' || sign == 'z') return 0;
    if (sign != '+' && sign != '-') civil_text_fail(text, "Z or an offset like +09:00");
    uint32_t hours = civil_text_digits(text, 2, "two digits of an offset's hours");
    civil_text_literal(text, ":", "':' inside the offset");
    uint32_t minutes = civil_text_digits(text, 2, "two digits of an offset's minutes");
    if (hours > 23 || minutes > 59) civil_text_fail(text, "an offset within a day");
    int32_t offset = (int32_t)(hours * 60 + minutes);
    return sign == '-' ? -offset : offset;
}

const char *civil_parse_rfc3339(cy_bytes input, struct civil_instant *instant_out,
                                int32_t *offset_minutes_out)
{
    struct civil_text text = {input, NULL};
    struct civil_parts parts = {0};
    parts.year = civil_text_digits(&text, 4, "four digits of a year");
    civil_text_literal(&text, "-", "'-' behind the year");
    parts.month = civil_text_digits(&text, 2, "two digits of a month");
    civil_text_literal(&text, "-", "'-' behind the month");
    parts.day = civil_text_digits(&text, 2, "two digits of a day");
    uint8_t separator = civil_text_byte(&text);
    if (separator != 'T' && separator != 't' && separator != ' ') civil_text_fail(&text, "T behind the date");
    civil_text_clock(&text, &parts);
    if (text.rest.count > 0 && text.rest.data[0] == '.') {
        text.rest = cy_bytes_skip(text.rest, 1);
        parts.nanosecond = civil_text_fraction(&text);
    }
    parts.offset_minutes = civil_text_offset(&text);
    if (!text.fault && (parts.month < 1 || parts.month > 12)) text.fault = "a month 01..12";
    *offset_minutes_out = text.fault ? 0 : parts.offset_minutes;
    return civil_text_finish(&text, &parts, instant_out);
}

bool civil_write_rfc3339(struct builder *out, struct civil_instant instant, int32_t offset_minutes,
                         int digits)
{
    struct civil_parts parts;
    CHECK(digits >= -1 && digits <= 9);
    if (!civil_parts_of(instant, offset_minutes, &parts) || parts.year < 0 || parts.year > 9999) return false;
    builder_printf(out, "%04d-%02u-%02uT%02u:%02u:%02u", (int)parts.year, parts.month, parts.day, parts.hour,
                   parts.minute, parts.second);
    uint32_t fraction = parts.nanosecond;
    if (digits < 0) digits = fraction == 0 ? 0 : fraction % 1000000 == 0 ? 3 : fraction % 1000 == 0 ? 6 : 9;
    for (int i = digits; i < 9; i++) fraction /= 10;
    if (digits > 0) builder_printf(out, ".%0*u", digits, fraction);
    uint32_t offset = (uint32_t)(offset_minutes < 0 ? -offset_minutes : offset_minutes);
    if (offset_minutes == 0)
        builder_u8(out, 'Z');
    else
        builder_printf(out, "%c%02u:%02u", offset_minutes < 0 ? '-' : '+', offset / 60, offset % 60);
    return true;
}

/* -- HTTP dates --------------------------------------------------------------------------------------------- */

/* "06 Nov 1994 08:49:37 GMT", behind "Sun, ". */
static void civil_text_fixdate(struct civil_text *text, struct civil_parts *parts)
{
    parts->day = civil_text_digits(text, 2, "two digits of a day");
    civil_text_literal(text, " ", "a space behind the day");
    parts->month = civil_text_name(text, civil_text_months, "the name of a month");
    civil_text_literal(text, " ", "a space behind the month");
    parts->year = civil_text_digits(text, 4, "four digits of a year");
    civil_text_literal(text, " ", "a space behind the year");
    civil_text_clock(text, parts);
    civil_text_literal(text, " GMT", "GMT");
}

/* Whether the parts are more than 50 years ahead of now. */
static bool civil_text_is_far(const struct civil_parts *parts, const struct civil_parts *now)
{
    int64_t year = parts->year - 50;
    if (year != now->year) return year > now->year;
    if (parts->month != now->month) return parts->month > now->month;
    if (parts->day != now->day) return parts->day > now->day;
    uint32_t clock = parts->hour * 3600 + parts->minute * 60 + parts->second;
    return clock > now->hour * 3600 + now->minute * 60 + now->second;
}

/* "06-Nov-94 08:49:37 GMT", behind "Sunday, ". */
static void civil_text_rfc850(struct civil_text *text, struct civil_parts *parts, int64_t now_seconds)
{
    parts->day = civil_text_digits(text, 2, "two digits of a day");
    civil_text_literal(text, "-", "'-' behind the day");
    parts->month = civil_text_name(text, civil_text_months, "the name of a month");
    civil_text_literal(text, "-", "'-' behind the month");
    uint32_t two = civil_text_digits(text, 2, "two digits of a year");
    civil_text_literal(text, " ", "a space behind the year");
    civil_text_clock(text, parts);
    civil_text_literal(text, " GMT", "GMT");
    struct civil_parts now;
    if (!civil_parts_of((struct civil_instant){now_seconds, 0}, 0, &now))
        now = (struct civil_parts){.year = 1970};
    parts->year = now.year - now.year % 100 + two + 100;
    while (civil_text_is_far(parts, &now)) parts->year -= 100;
}

/* "Nov  6 08:49:37 1994", behind "Sun ". */
static void civil_text_asctime(struct civil_text *text, struct civil_parts *parts)
{
    parts->month = civil_text_name(text, civil_text_months, "the name of a month");
    civil_text_literal(text, " ", "a space behind the month");
    if (text->rest.count && text->rest.data[0] == ' ') {
        text->rest = cy_bytes_skip(text->rest, 1);
        parts->day = civil_text_digits(text, 1, "a digit of a day");
    } else {
        parts->day = civil_text_digits(text, 2, "two digits of a day");
    }
    civil_text_literal(text, " ", "a space behind the day");
    civil_text_clock(text, parts);
    civil_text_literal(text, " ", "a space behind the second");
    parts->year = civil_text_digits(text, 4, "four digits of a year");
}

const char *civil_parse_http_date(cy_bytes input, int64_t now_seconds, struct civil_instant *instant_out)
{
    struct civil_text text = {input, NULL};
    struct civil_parts parts = {0};
    for (size_t i = 0; i < CY_COUNT_OF(civil_text_long_days); i++) {
        cy_bytes name = cy_bytes_from_text(civil_text_long_days[i]);
        if (!cy_bytes_start_with(input, name)) continue;
        text.rest = cy_bytes_skip(input, name.count);
        civil_text_literal(&text, ", ", "', ' behind the name of the day");
        civil_text_rfc850(&text, &parts, now_seconds);
        return civil_text_finish(&text, &parts, instant_out);
    }
    civil_text_name(&text, civil_text_days, "the name of a day");
    if (text.rest.count && text.rest.data[0] == ',') {
        civil_text_literal(&text, ", ", "', ' behind the name of the day");
        civil_text_fixdate(&text, &parts);
    } else {
        civil_text_literal(&text, " ", "', ' or a space behind the name of the day");
        civil_text_asctime(&text, &parts);
    }
    return civil_text_finish(&text, &parts, instant_out);
}

bool civil_write_http_date(struct builder *out, struct civil_instant instant)
{
    struct civil_parts parts;
    if (!civil_parts_of(instant, 0, &parts) || parts.year < 0 || parts.year > 9999) return false;
    builder_printf(out, "%.3s, %02u %.3s %04d %02u:%02u:%02u GMT", civil_text_days + 3 * (parts.weekday - 1),
                   parts.day, civil_text_months + 3 * (parts.month - 1), (int)parts.year, parts.hour,
                   parts.minute, parts.second);
    return true;
}

/* -- durations ---------------------------------------------------------------------------------------------- */

/* From the largest; each stands at most once in a text, in this order. */
static const struct {
    const char *word;
    uint64_t nanoseconds;
} civil_text_spans[] = {
    {"d", 86400000000000}, {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
    {"ms", 1000000},       {"us", 1000},         {"ns", 1},
};
enum { CIVIL_TEXT_SPAN_SECONDS = 3 };

static const uint64_t civil_text_unit_nanoseconds[] = {
    [CIVIL_SECONDS] = 1000000000,
    [CIVIL_MILLISECONDS] = 1000000,
    [CIVIL_MICROSECONDS] = 1000,
    [CIVIL_NANOSECONDS] = 1,
};

/* "12.345" for an amount of nanoseconds in units of `scale`, a power of ten. */
static void civil_text_decimal(struct builder *out, uint64_t nanoseconds, uint64_t scale)
{
    builder_printf(out, "%llu", (unsigned long long)(nanoseconds / scale));
    uint64_t rest = nanoseconds % scale;
    if (rest > 0) builder_u8(out, '.');
    while (rest > 0) {
        scale /= 10;
        builder_u8(out, (uint8_t)('0' + rest / scale));
        rest %= scale;
    }
}

void civil_write_duration(struct builder *out, int64_t amount, enum civil_unit unit)
{
    uint64_t size = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;
    uint64_t per_second = 1000000000 / civil_text_unit_nanoseconds[unit];
    uint64_t seconds = size / per_second, nanoseconds = size % per_second * civil_text_unit_nanoseconds[unit];
    if (amount < 0) builder_u8(out, '-');
    if (seconds == 0 && nanoseconds > 0) {
        size_t span = CIVIL_TEXT_SPAN_SECONDS + 1;
        while (nanoseconds < civil_text_spans[span].nanoseconds) span++;
        civil_text_decimal(out, nanoseconds, civil_text_spans[span].nanoseconds);
        builder_text(out, civil_text_spans[span].word);
        return;
    }
    bool any = false;
    for (size_t span = 0; span < CIVIL_TEXT_SPAN_SECONDS; span++) {
        uint64_t span_seconds = civil_text_spans[span].nanoseconds / 1000000000;
        if (seconds < span_seconds) continue;
        builder_printf(out, "%llu%s", (unsigned long long)(seconds / span_seconds),
                       civil_text_spans[span].word);
        seconds %= span_seconds;
        any = true;
    }
    if (any && seconds == 0 && nanoseconds == 0) return;
    civil_text_decimal(out, seconds * 1000000000 + nanoseconds, 1000000000);
    builder_u8(out, 's');
}

/* One "12.5h": its nanoseconds, added. `*span` is the first that may stand here. */
static const char *civil_text_span(struct civil_text *text, size_t *span, bool *last, __int128 *sum)
{
    size_t count = 0;
    __int128 whole = 0, fraction = 0, scale = 1;
    for (; count < text->rest.count && (uint8_t)(text->rest.data[count] - '0') < 10; count++) {
        if (whole > INT64_MAX) return "an amount that fits";
        whole = whole * 10 + (text->rest.data[count] - '0');
    }
    if (count == 0) return "a digit";
    text->rest = cy_bytes_skip(text->rest, count);
    if (text->rest.count && text->rest.data[0] == '.') {
        *last = true;
        for (count = 1; count < text->rest.count && (uint8_t)(text->rest.data[count] - '0') < 10; count++) {
            if (count > 18) return "at most 18 digits behind '.'";
            fraction = fraction * 10 + (text->rest.data[count] - '0');
            scale *= 10;
        }
        if (count == 1) return "a digit behind '.'";
        text->rest = cy_bytes_skip(text->rest, count);
    }
    size_t letters = 0;
    while (letters < text->rest.count && text->rest.data[letters] >= 'a' && text->rest.data[letters] <= 'z')
        letters++;
    cy_bytes word = cy_bytes_slice(text->rest, 0, letters);
    text->rest = cy_bytes_skip(text->rest, letters);
    for (; *span < CY_COUNT_OF(civil_text_spans); ++*span) {
        if (!cy_bytes_equal(word, cy_bytes_from_text(civil_text_spans[*span].word))) continue;
        __int128 unit = civil_text_spans[(*span)++].nanoseconds;
        if (fraction * unit % scale != 0) return "nothing finer than a nanosecond";
        *sum += whole * unit + fraction * unit / scale;
        return NULL;
    }
    return "d, h, m, s, ms, us or ns, each once and in this order";
}

const char *civil_parse_duration(cy_bytes input, enum civil_unit unit, int64_t *amount_out)
{
    struct civil_text text = {input, NULL};
    bool negative = input.count > 0 && input.data[0] == '-', last = false;
    size_t span = 0;
    __int128 sum = 0; /* seven terms below 2^68 * 2^47 */
    if (negative) text.rest = cy_bytes_skip(input, 1);
    do {
        if (last) return "a fraction only in the last part";
        const char *fault = civil_text_span(&text, &span, &last, &sum);
        if (fault) return fault;
    } while (text.rest.count > 0);
    if (negative) sum = -sum;
    __int128 per = (__int128)civil_text_unit_nanoseconds[unit];
    if (sum % per != 0) return "nothing finer than the unit";
    sum /= per;
    if (sum > INT64_MAX || sum < INT64_MIN) return "an amount that fits";
    *amount_out = (int64_t)sum;
    return NULL;
}
