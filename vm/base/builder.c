/* SPDX-License-Identifier: MIT
 *
 * vm/base/builder.c: one growing block.
 *
 * In:   pieces. Out: the block.
 * Invariant: count <= capacity, and count <= count_max when there is one; a failed builder changes no more.
 */
#include "vm/base/builder.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BUILDER_CAPACITY_FIRST = 64,
    BUILDER_NUMBER_BYTES = 40 /* the longest text of an i64 or a double in %.17g, with room */
};

void builder_init(struct builder *builder) { *builder = (struct builder){0}; }

void builder_init_secret(struct builder *builder) { *builder = (struct builder){.is_secret = true}; }

/* All of the block: readers write past `count` before they know how much it was. */
static void builder_wipe(struct builder *builder)
{
    if (builder->is_secret && builder->data) explicit_bzero(builder->data, builder->capacity);
}

void builder_fini(struct builder *builder)
{
    builder_wipe(builder);
    mem_free(builder->data);
    builder_init(builder);
}

void builder_clear(struct builder *builder)
{
    builder_wipe(builder);
    builder->count = 0;
    builder->failed = builder->past_max = false;
}

/* realloc would leave a copy behind. Past `count` there is nothing that was promised to stay. */
static uint8_t *builder_move_secret(struct builder *builder, size_t capacity)
{
    uint8_t *data = mem_alloc(capacity);
    if (!data) return NULL;
    if (builder->count > 0) memcpy(data, builder->data, builder->count);
    builder_wipe(builder);
    mem_free(builder->data);
    return data;
}

static bool builder_grow(struct builder *builder, size_t count_needed)
{
    size_t capacity = builder->capacity ? builder->capacity : BUILDER_CAPACITY_FIRST;
    while (capacity < count_needed) {
        if (cy_mul_overflows(capacity, 2, &capacity)) return false;
    }
    uint8_t *data =
        builder->is_secret ? builder_move_secret(builder, capacity) : mem_resize(builder->data, capacity);
    if (!data) return false;
    builder->data = data;
    builder->capacity = capacity;
    return true;
}

uint8_t *builder_reserve(struct builder *builder, size_t bytes)
{
    if (builder->failed) return NULL;
    size_t count_needed;
    bool fits = !cy_add_overflows(builder->count, bytes, &count_needed);
    if (fits && builder->count_max && count_needed > builder->count_max) {
        builder->past_max = true;
        fits = false;
    }
    if (fits && (count_needed > builder->capacity || !builder->data))
        fits = builder_grow(builder, count_needed);
    if (!fits) {
        builder->failed = true;
        return NULL;
    }
    DCHECK(builder->count + bytes <= builder->capacity);
    return builder->data + builder->count;
}

void builder_bytes(struct builder *builder, cy_bytes bytes)
{
    if (bytes.count == 0) return;
    uint8_t *room = builder_reserve(builder, bytes.count);
    if (!room) return;
    memcpy(room, bytes.data, bytes.count);
    builder->count += bytes.count;
}

void builder_text(struct builder *builder, const char *text)
{
    builder_bytes(builder, cy_bytes_from_text(text));
}

void builder_u8(struct builder *builder, uint8_t byte)
{
    uint8_t *room = builder_reserve(builder, 1);
    if (!room) return;
    room[0] = byte;
    builder->count++;
}

/* Little-endian on every machine: files and frames are made of these. */
static void builder_little(struct builder *builder, uint64_t number, size_t bytes)
{
    uint8_t *room = builder_reserve(builder, bytes);
    if (!room) return;
    for (size_t i = 0; i < bytes; i++) room[i] = (uint8_t)(number >> (8 * i));
    builder->count += bytes;
}

void builder_u16(struct builder *builder, uint16_t number) { builder_little(builder, number, 2); }
void builder_u32(struct builder *builder, uint32_t number) { builder_little(builder, number, 4); }
void builder_u64(struct builder *builder, uint64_t number) { builder_little(builder, number, 8); }

void builder_i64_text(struct builder *builder, int64_t number)
{
    char text[BUILDER_NUMBER_BYTES];
    size_t at = sizeof text;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do text[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0) text[--at] = '-';
    builder_bytes(builder, cy_bytes_of(text + at, sizeof text - at));
}

/* C writes 1e+300 and 1e-07; the language writes 1e300 and 1e-7. Also adds ".0" where nothing marks a float. */
static void builder_float_digits(struct builder *builder, const char *digits)
{
    const char *exponent = strchr(digits, 'e');
    if (!exponent) {
        builder_text(builder, digits);
        if (!strchr(digits, '.')) builder_text(builder, ".0");
        return;
    }
    builder_bytes(builder, cy_bytes_of(digits, (size_t)(exponent + 1 - digits)));
    const char *number = exponent + 1;
    if (*number == '-') builder_u8(builder, '-');
    if (*number == '-' || *number == '+') number++;
    while (*number == '0' && number[1]) number++;
    builder_text(builder, number);
}

/* Numbers of everyday size with few digits: m / 10^k with m below 2^53 and an exact power is rounded once, so when it
 * gives the number back, its digits (15 at most) are those that %.15g would find. A fifth of the time. */
static bool builder_f64_quickly(struct builder *builder, double number)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                    1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
    double size = fabs(number);
    if (!(size >= 1e-4 && size < 1e15)) return false;
    for (size_t places = 0; places < CY_COUNT_OF(powers) && size * powers[places] < 1e15; places++) {
        uint64_t digits = (uint64_t)(size * powers[places] + 0.5);
        if ((double)digits / powers[places] != size) continue;
        char text[BUILDER_NUMBER_BYTES];
        size_t at = sizeof text, place = 0;
        if (places == 0) text[--at] = '0', text[--at] = '.';
        for (; digits > 0 || place <= places; digits /= 10, place++) {
            if (place == places && places > 0) text[--at] = '.';
            text[--at] = (char)('0' + digits % 10);
        }
        if (number < 0) text[--at] = '-';
        builder_bytes(builder, cy_bytes_of(text + at, sizeof text - at));
        return true;
    }
    return false;
}

void builder_f64_text(struct builder *builder, double number)
{
    if (builder_f64_quickly(builder, number)) return;
    if (isnan(number)) {
        builder_text(builder, "nan"); /* the sign of a NaN means nothing */
        return;
    }
    if (isinf(number)) {
        builder_text(builder, number < 0 ? "-inf" : "inf");
        return;
    }
    /* 15 digits always survive a trip through a normal double and 17 always bring it back; %g drops trailing zeros,
     * so the first that reads back equal is the shortest. Subnormals have fewer significant digits and start at
     * one. */
    int precision = fabs(number) < DBL_MIN && number != 0 ? 1 : 15;
    char text[BUILDER_NUMBER_BYTES];
    for (; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, number);
        if (strtod(text, NULL) == number) break;
    }
    builder_float_digits(builder, text);
}

void builder_vprintf(struct builder *builder, const char *format, va_list arguments)
{
    if (builder->failed) return;
    va_list again;
    va_copy(again, arguments);
    int bytes = vsnprintf(NULL, 0, format, arguments);
    uint8_t *room = NULL;
    if (bytes < 0)
        builder->failed = true;
    else
        room = builder_reserve(builder, (size_t)bytes + 1); /* vsnprintf insists on its NUL */
    if (room) {
        vsnprintf((char *)room, (size_t)bytes + 1, format, again);
        builder->count += (size_t)bytes;
    }
    va_end(again);
}

void builder_printf(struct builder *builder, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    builder_vprintf(builder, format, arguments);
    va_end(arguments);
}

const char *builder_text_view(struct builder *builder)
{
    uint8_t *room = builder_reserve(builder, 1);
    if (!room) return NULL;
    room[0] = 0; /* behind the end, not counted: the next append overwrites it */
    return (const char *)builder->data;
}
