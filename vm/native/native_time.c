/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_time.c: module time: texts, calendar parts and durations. What needs a clock is in native_clock.c.
 *
 * In:   instants as ints since 1970 UTC in a unit that is named ("s", "ms", "us", "ns"). Out: texts, maps, ints.
 */
#include "vm/native/native_time.h"

#include "vm/native/native_bodies.h"
#include "vm/native/option.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

bool native_time_unit(struct native_call *call, uint32_t index, const char *native, enum civil_unit *unit_out)
{
    static const char *const words[] = {"s", "ms", "us", "ns", NULL};
    uint32_t unit = CIVIL_MILLISECONDS;
    if (!option_word(call, index, native, "unit", words, &unit)) return false;
    *unit_out = (enum civil_unit)unit;
    return true;
}

enum native_outcome native_time_return(struct native_call *call, const char *native,
                                       struct civil_instant instant, enum civil_unit unit)
{
    int64_t amount;
    if (civil_amount_of(instant, unit, &amount)) return native_return(call, value_int(amount));
    return native_fail(call, CY_ERR(OVERFLOW), "%s: the instant does not fit in an int of this unit", native);
}

enum native_outcome native_time_refuse(struct native_call *call, const char *native, const char *expected,
                                       cy_bytes text)
{
    text = cy_bytes_slice(text, 0, 48);
    return native_fail(call, CY_ERR(BAD_FORMAT), "%s: expected %s: \"%.*s\"", native,
                       vm_text(call->vm, expected), CY_BYTES_ARG(text));
}

static enum native_outcome native_time_text(struct native_call *call, const char *native,
                                            struct builder *text)
{
    cy_value value;
    cy_err err = builder_error(text);
    if (!cy_failed(err)) err = string_new(call->vm, builder_view(text), &value);
    builder_fini(text);
    if (cy_failed(err)) return native_fail_reason(call, err, native);
    return native_return(call, value);
}

/* The offset argument at `index`, 0 when it is absent. */
static bool native_time_offset(struct native_call *call, uint32_t index, const char *native,
                               int32_t *offset_out)
{
    int64_t offset = native_has_arg(call, index) ? call->args[index].as.i : 0;
    if (offset < -CIVIL_OFFSET_MINUTES_MAX || offset > CIVIL_OFFSET_MINUTES_MAX) {
        native_fail(call, CY_ERR(VALUE), "%s: offset_minutes must be -1439..1439, not %lld", native,
                    (long long)offset);
        return false;
    }
    *offset_out = (int32_t)offset;
    return true;
}

enum native_outcome native_time_parse(struct native_call *call)
{
    enum civil_unit unit;
    struct civil_instant instant;
    int32_t offset;
    if (!native_time_unit(call, 1, "time.parse", &unit)) return NATIVE_FAIL;
    cy_bytes text = string_bytes(call->args[0]);
    const char *fault = civil_parse_rfc3339(text, &instant, &offset);
    native_charge(call, text.count / 100);
    if (fault) return native_time_refuse(call, "time.parse", fault, text);
    return native_time_return(call, "time.parse", instant, unit);
}

enum native_outcome native_time_format(struct native_call *call)
{
    enum civil_unit unit;
    int32_t offset;
    int64_t digits = native_has_arg(call, 3) ? call->args[3].as.i : -1;
    if (!native_time_unit(call, 1, "time.format", &unit)) return NATIVE_FAIL;
    if (!native_time_offset(call, 2, "time.format", &offset)) return NATIVE_FAIL;
    if (digits < -1 || digits > 9)
        return native_fail(call, CY_ERR(VALUE), "time.format: digits must be -1..9, not %lld",
                           (long long)digits);
    struct builder text;
    builder_init(&text);
    if (civil_write_rfc3339(&text, civil_instant_of(call->args[0].as.i, unit), offset, (int)digits))
        return native_time_text(call, "time.format", &text);
    builder_fini(&text);
    return native_fail(call, CY_ERR(VALUE), "time.format: RFC 3339 writes the years 0000 to 9999 only");
}

enum native_outcome native_time_http_date(struct native_call *call)
{
    enum civil_unit unit;
    if (!native_time_unit(call, 1, "time.http_date", &unit)) return NATIVE_FAIL;
    struct builder text;
    builder_init(&text);
    if (civil_write_http_date(&text, civil_instant_of(call->args[0].as.i, unit)))
        return native_time_text(call, "time.http_date", &text);
    builder_fini(&text);
    return native_fail(call, CY_ERR(VALUE), "time.http_date: HTTP writes the years 0000 to 9999 only");
}

/* -- calendar parts ----------------------------------------------------------------------------------------- */

enum {
    NATIVE_TIME_YEAR,
    NATIVE_TIME_MONTH,
    NATIVE_TIME_DAY,
    NATIVE_TIME_HOUR,
    NATIVE_TIME_MINUTE,
    NATIVE_TIME_SECOND,
    NATIVE_TIME_NANOSECOND,
    NATIVE_TIME_OFFSET,
    NATIVE_TIME_WEEKDAY,
    NATIVE_TIME_DAY_OF_YEAR,
    NATIVE_TIME_PART_COUNT
};
static const struct option_row native_time_parts_rows[NATIVE_TIME_PART_COUNT] = {
    [NATIVE_TIME_YEAR] = {.name = "year", .kind = OPTION_INT, .min = INT64_MIN, .max = INT64_MAX},
    [NATIVE_TIME_MONTH] = {.name = "month", .kind = OPTION_INT, .min = 1, .max = 12},
    [NATIVE_TIME_DAY] = {.name = "day", .kind = OPTION_INT, .min = 1, .max = 31},
    [NATIVE_TIME_HOUR] = {.name = "hour", .kind = OPTION_INT, .min = 0, .max = 23},
    [NATIVE_TIME_MINUTE] = {.name = "minute", .kind = OPTION_INT, .min = 0, .max = 59},
    [NATIVE_TIME_SECOND] = {.name = "second", .kind = OPTION_INT, .min = 0, .max = 59},
    [NATIVE_TIME_NANOSECOND] = {.name = "nanosecond", .kind = OPTION_INT, .min = 0, .max = 999999999},
    [NATIVE_TIME_OFFSET] = {.name = "offset_minutes", .kind = OPTION_INT, .min = -1439, .max = 1439},
    [NATIVE_TIME_WEEKDAY] = {.name = "weekday", .kind = OPTION_INT, .min = 1, .max = 7},
    [NATIVE_TIME_DAY_OF_YEAR] = {.name = "day_of_year", .kind = OPTION_INT, .min = 1, .max = 366},
};

enum native_outcome native_time_parts(struct native_call *call)
{
    enum civil_unit unit;
    int32_t offset;
    struct civil_parts parts;
    cy_value map;
    if (!native_time_unit(call, 1, "time.parts", &unit)) return NATIVE_FAIL;
    if (!native_time_offset(call, 2, "time.parts", &offset)) return NATIVE_FAIL;
    if (!civil_parts_of(civil_instant_of(call->args[0].as.i, unit), offset, &parts))
        return native_fail(call, CY_ERR(OVERFLOW), "time.parts: the offset leads out of range");
    const int64_t numbers[NATIVE_TIME_PART_COUNT] = {
        [NATIVE_TIME_YEAR] = parts.year,
        [NATIVE_TIME_MONTH] = parts.month,
        [NATIVE_TIME_DAY] = parts.day,
        [NATIVE_TIME_HOUR] = parts.hour,
        [NATIVE_TIME_MINUTE] = parts.minute,
        [NATIVE_TIME_SECOND] = parts.second,
        [NATIVE_TIME_NANOSECOND] = parts.nanosecond,
        [NATIVE_TIME_OFFSET] = parts.offset_minutes,
        [NATIVE_TIME_WEEKDAY] = parts.weekday,
        [NATIVE_TIME_DAY_OF_YEAR] = parts.day_of_year,
    };
    cy_err err = map_new(call->vm, NATIVE_TIME_PART_COUNT, &map);
    if (cy_failed(err))
        return native_fail(call, err, "time.parts: %s", cy_err_text(err, vm_korean(call->vm)));
    for (size_t i = 0; i < NATIVE_TIME_PART_COUNT && !cy_failed(err); i++)
        err = map_set_text(call->vm, &map, cy_bytes_from_text(native_time_parts_rows[i].name),
                           value_int(numbers[i]));
    if (!cy_failed(err)) return native_return(call, map);
    value_unref(call->vm, map);
    return native_fail(call, err, "time.parts: %s", cy_err_text(err, vm_korean(call->vm)));
}

static int64_t native_time_part(const cy_value *given, size_t part, int64_t absent)
{
    return given[part].tag == TAG_INT ? given[part].as.i : absent;
}

enum native_outcome native_time_from_parts(struct native_call *call)
{
    enum civil_unit unit;
    cy_value given[NATIVE_TIME_PART_COUNT];
    struct civil_instant instant;
    if (!native_time_unit(call, 1, "time.from_parts", &unit)) return NATIVE_FAIL;
    if (!option_read(call, 0, "time.from_parts", native_time_parts_rows, NATIVE_TIME_PART_COUNT, given))
        return NATIVE_FAIL;
    if (given[NATIVE_TIME_YEAR].tag != TAG_INT)
        return native_fail(call, CY_ERR(VALUE), "time.from_parts: year is missing");
    struct civil_parts parts = {
        .year = given[NATIVE_TIME_YEAR].as.i,
        .month = (uint32_t)native_time_part(given, NATIVE_TIME_MONTH, 1),
        .day = (uint32_t)native_time_part(given, NATIVE_TIME_DAY, 1),
        .hour = (uint32_t)native_time_part(given, NATIVE_TIME_HOUR, 0),
        .minute = (uint32_t)native_time_part(given, NATIVE_TIME_MINUTE, 0),
        .second = (uint32_t)native_time_part(given, NATIVE_TIME_SECOND, 0),
        .nanosecond = (uint32_t)native_time_part(given, NATIVE_TIME_NANOSECOND, 0),
        .offset_minutes = (int32_t)native_time_part(given, NATIVE_TIME_OFFSET, 0),
    };
    if (parts.day > civil_month_days(parts.year, parts.month))
        return native_fail(call, CY_ERR(VALUE), "time.from_parts: month %u of %lld has no day %u",
                           parts.month, (long long)parts.year, parts.day);
    if (!civil_instant_from_parts(&parts, &instant))
        return native_fail(call, CY_ERR(OVERFLOW), "time.from_parts: the year is out of range");
    return native_time_return(call, "time.from_parts", instant, unit);
}

/* -- durations ---------------------------------------------------------------------------------------------- */

enum native_outcome native_time_format_duration(struct native_call *call)
{
    enum civil_unit unit;
    if (!native_time_unit(call, 1, "time.format_duration", &unit)) return NATIVE_FAIL;
    struct builder text;
    builder_init(&text);
    civil_write_duration(&text, call->args[0].as.i, unit);
    return native_time_text(call, "time.format_duration", &text);
}

enum native_outcome native_time_parse_duration(struct native_call *call)
{
    enum civil_unit unit;
    int64_t amount;
    if (!native_time_unit(call, 1, "time.parse_duration", &unit)) return NATIVE_FAIL;
    cy_bytes text = string_bytes(call->args[0]);
    const char *fault = civil_parse_duration(text, unit, &amount);
    if (fault) return native_time_refuse(call, "time.parse_duration", fault, text);
    return native_return(call, value_int(amount));
}
