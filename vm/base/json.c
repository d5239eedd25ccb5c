/* SPDX-License-Identifier: MIT
 *
 * vm/base/json.c: a strict reader of JSON that goes through the text once.
 *
 * In, Out, Invariant: json.h.
 * States: what may stand next. A value closes to AFTER; AFTER looks at the level to know what a comma means.
 *
 *      VALUE ──value──► AFTER ──','──► VALUE or KEY          KEY ── "…" ':' ──► VALUE
 *      '[' ──► FIRST_ITEM (value or ']')                     '{' ──► FIRST_KEY (key or '}')
 *
 * Spec: RFC 8259. Where it leaves a choice we take the strict one: integers are exact or refused, numbers that overflow
 *       a double are refused, strings are UTF-8, no byte order mark.
 */
#include "vm/base/json.h"

#include "vm/base/check.h"
#include "vm/base/text.h"

#include <math.h>
#include <stdlib.h>

enum { JSON_VALUE, JSON_FIRST_ITEM, JSON_FIRST_KEY, JSON_NEXT_KEY, JSON_COLON, JSON_AFTER };

static const struct {
    const char *korean, *english;
} json_faults[JSON_FAULT_COUNT] = {
    [JSON_FAULT_NONE] = {"", ""},
#define JSON_FAULT(name, korean, english) [JSON_FAULT_##name] = {korean, english},
#include "vm/base/json_fault.def"
#undef JSON_FAULT
};

const char *json_fault_text(enum json_fault fault, bool korean)
{
    CHECK(fault < JSON_FAULT_COUNT);
    return korean ? json_faults[fault].korean : json_faults[fault].english;
}

void json_reader_init(struct json_reader *reader, cy_bytes input)
{
    *reader = (struct json_reader){.input = input, .limit = input.count, .expect = JSON_VALUE};
}

static enum json_event json_fail(struct json_reader *reader, enum json_fault fault, size_t offset)
{
    reader->fault = fault;
    reader->offset = offset;
    return JSON_FAILED;
}

static inline bool json_in_map(const struct json_reader *reader)
{
    uint32_t level = reader->depth - 1;
    return reader->depth > 0 && (reader->is_map[level / 64] >> (level % 64) & 1);
}

/* The next byte that is no white space; 0 at the end, where no token begins either, and where it pauses. */
static inline uint8_t json_skip_space(struct json_reader *reader)
{
    size_t begin = reader->at;
    while (reader->at < reader->input.count) {
        uint8_t byte = reader->input.data[reader->at];
        if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') return byte;
        if (CY_UNLIKELY(reader->at >= reader->limit) && reader->at > begin) {
            reader->paused = true;
            return 0;
        }
        reader->at++;
    }
    return 0;
}

/* -- strings ------------------------------------------------------------------------------------------------ */

#define JSON_EACH(byte) (0x0101010101010101u * (uint64_t)(byte))
#define JSON_HAS_ZERO(word) (((word)-JSON_EACH(1)) & ~(word)&JSON_EACH(0x80))

/* Whether all of 8 bytes are plain: ASCII, no control, no quote, no backslash. */
static inline bool json_all_plain(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    uint64_t special = JSON_HAS_ZERO(word ^ JSON_EACH('"')) | JSON_HAS_ZERO(word ^ JSON_EACH('\\')) |
                       ((word - JSON_EACH(0x20)) & ~word & JSON_EACH(0x80)) | (word & JSON_EACH(0x80));
    return special == 0;
}

/* Length of the UTF-8 sequence at `bytes`, whose first byte is 0x80 or more; 0 when it is malformed. Table 3-7 of the
 * Unicode standard: no overlong form, no surrogate, nothing past U+10FFFF. */
static size_t json_sequence(const uint8_t *bytes, size_t left)
{
    uint8_t first = bytes[0];
    if (first < 0xc2 || first > 0xf4) return 0;
    size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (left < length) return 0;
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (bytes[1] < low || bytes[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80) return 0;
    return length;
}

static int json_hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Four hex digits at `at`; -1 when they are not there. */
static int32_t json_hex4(cy_bytes input, size_t at)
{
    int32_t unit = 0;
    if (input.count < 4 || at > input.count - 4) return -1;
    for (size_t i = 0; i < 4; i++) {
        int digit = json_hex_digit(input.data[at + i]);
        if (digit < 0) return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* The code point of an escape \uXXXX or a pair of them, whose first backslash is at `at`. */
static enum json_fault json_unicode(cy_bytes input, size_t at, uint32_t *code_point_out, size_t *length_out)
{
    int32_t unit = json_hex4(input, at + 2);
    if (unit < 0) return JSON_FAULT_HEX;
    *code_point_out = (uint32_t)unit;
    *length_out = 6;
    if (unit < 0xd800 || unit > 0xdfff) return JSON_FAULT_NONE;
    if (unit >= 0xdc00 || input.count - at < 8 || input.data[at + 6] != '\\' || input.data[at + 7] != 'u')
        return JSON_FAULT_SURROGATE;
    int32_t low = json_hex4(input, at + 8);
    if (low < 0) return JSON_FAULT_HEX;
    if (low < 0xdc00 || low > 0xdfff) return JSON_FAULT_SURROGATE;
    *code_point_out = 0x10000 + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
    *length_out = 12;
    return JSON_FAULT_NONE;
}

static size_t json_encoded_count(uint32_t code_point)
{
    return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

/* The byte an escape of two characters means; 0 when there is no such escape. */
static uint8_t json_escaped_byte(uint8_t letter)
{
    switch (letter) {
    case '"':
    case '\\':
    case '/': return letter;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return 0;
    }
}

/* An escape at `at`: how long it is, and how many bytes it decodes to. */
static enum json_fault json_escape(cy_bytes input, size_t at, size_t *length_out, size_t *decoded_out)
{
    uint8_t letter = at + 1 < input.count ? input.data[at + 1] : 0;
    *length_out = 2;
    *decoded_out = 1;
    if (letter != 'u') return json_escaped_byte(letter) ? JSON_FAULT_NONE : JSON_FAULT_ESCAPE;
    uint32_t code_point;
    enum json_fault fault = json_unicode(input, at, &code_point, length_out);
    if (!fault) *decoded_out = json_encoded_count(code_point);
    return fault;
}

/* A string whose opening quote is at reader->at. Sets raw and decoded_count, and goes behind its closing quote. */
static enum json_event json_string(struct json_reader *reader, enum json_event event)
{
    const cy_bytes input = reader->input;
    size_t begin = reader->at + 1, at = begin, saved = 0;
    if (CY_UNLIKELY(reader->inside)) {
        at = reader->text_at;
        saved = reader->text_saved;
        reader->inside = 0;
    }
    size_t limit = cy_min_size(input.count, cy_max_size(reader->limit, at + 8));
    for (;;) {
        while (at < limit && limit - at >= 8 && json_all_plain(input.data + at)) at += 8;
        if (at >= input.count) return json_fail(reader, JSON_FAULT_OPEN_TEXT, input.count);
        if (CY_UNLIKELY(at >= limit)) {
            reader->inside = (uint8_t)event;
            reader->text_at = at;
            reader->text_saved = saved;
            return JSON_PAUSED;
        }
        uint8_t byte = input.data[at];
        if (byte == '"') break;
        if (byte < 0x20) return json_fail(reader, JSON_FAULT_CONTROL, at);
        if (byte == '\\') {
            size_t length, decoded;
            enum json_fault fault = json_escape(input, at, &length, &decoded);
            if (fault) return json_fail(reader, fault, at);
            at += length;
            saved += length - decoded;
        } else if (byte < 0x80) {
            at++;
        } else {
            size_t length = json_sequence(input.data + at, input.count - at);
            if (length == 0) return json_fail(reader, JSON_FAULT_UTF8, at);
            at += length;
        }
    }
    reader->offset = begin - 1;
    reader->raw = cy_bytes_of(input.data + begin, at - begin);
    reader->decoded_count = reader->raw.count - saved;
    reader->at = at + 1;
    return event;
}

static uint8_t *json_encode(uint32_t code_point, uint8_t *to)
{
    if (code_point < 0x80) {
        *to++ = (uint8_t)code_point;
        return to;
    }
    size_t more = json_encoded_count(code_point) - 1;
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (uint8_t)(heads[more] | code_point >> (6 * more));
    while (more-- > 0) *to++ = (uint8_t)(0x80 | (code_point >> (6 * more) & 0x3f));
    return to;
}

size_t json_decode_piece(const struct json_reader *reader, size_t *raw_at, size_t bytes, uint8_t *to)
{
    cy_bytes raw = reader->raw;
    uint8_t *start = to;
    size_t at = *raw_at, end = bytes < raw.count - at ? at + bytes : raw.count;
    while (at < end) {
        const uint8_t *slash = memchr(raw.data + at, '\\', end - at);
        size_t plain = slash ? (size_t)(slash - raw.data) - at : end - at;
        memcpy(to, raw.data + at, plain);
        to += plain;
        at += plain;
        if (!slash) break;
        if (raw.data[at + 1] != 'u') {
            *to++ = json_escaped_byte(raw.data[at + 1]);
            at += 2;
            continue;
        }
        uint32_t code_point;
        size_t length;
        CHECK(json_unicode(raw, at, &code_point, &length) == JSON_FAULT_NONE); /* json_string has looked */
        to = json_encode(code_point, to);
        at += length;
    }
    *raw_at = at;
    return (size_t)(to - start);
}

void json_decode(const struct json_reader *reader, uint8_t *to)
{
    size_t at = 0;
    CHECK(json_decode_piece(reader, &at, reader->raw.count, to) == reader->decoded_count);
}

/* -- numbers ------------------------------------------------------------------------------------------------ */

struct json_number {
    uint64_t mantissa; /* the first 19 significant digits */
    int64_t exponent;  /* value = mantissa * 10^exponent, when no digit was left out */
    bool negative;
    bool inexact; /* digits did not fit into the mantissa */
    bool is_float;
};

/* Powers that are exact doubles. */
static const double json_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A double is decided by its first 767 significant digits and whether anything but zeros follows: the rest of a longer
 * number becomes one digit, and strtod never sees more than fits here. */
enum { JSON_DIGITS_KEPT = 780, JSON_STRTOD_BYTES = JSON_DIGITS_KEPT + 32 };

static double json_float_slowly(cy_bytes text, int64_t exponent_written)
{
    char room[JSON_STRTOD_BYTES];
    size_t count = 0, kept = 0;
    int64_t exponent = exponent_written;
    bool behind_point = false, sticky = false;
    for (size_t i = 0; i < text.count && (text.data[i] | 0x20) != 'e'; i++) {
        uint8_t byte = text.data[i];
        if (byte == '-') {
            room[count++] = '-';
        } else if (byte == '.') {
            behind_point = true;
        } else if (kept == 0 && byte == '0') {
            exponent -= behind_point;
        } else if (kept < JSON_DIGITS_KEPT) {
            room[count++] = (char)byte;
            kept++;
            exponent -= behind_point;
        } else {
            sticky |= byte != '0';
            exponent += !behind_point;
        }
    }
    if (kept == 0) return count > 0 ? -0.0 : 0.0; /* what was written is the sign */
    if (sticky) room[count - 1] = (char)(room[count - 1] == '0' ? '1' : room[count - 1]);
    char digits[24];
    size_t digit_count = 0;
    uint64_t rest = exponent < 0 ? 0 - (uint64_t)exponent : (uint64_t)exponent;
    do digits[digit_count++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    room[count++] = 'e';
    room[count++] = exponent < 0 ? '-' : '+';
    while (digit_count > 0) room[count++] = digits[--digit_count];
    room[count] = 0;
    return strtod(room, NULL);
}

/* Clinger's fast path: mantissa and power are exact doubles, so one operation rounds once, correctly. */
static bool json_float_quickly(const struct json_number *number, double *float_out)
{
    if (number->inexact || number->mantissa > (uint64_t)1 << 53) return false;
    if (number->exponent < -22 || number->exponent > 22) return false;
    double value = (double)number->mantissa;
    if (number->exponent < 0)
        value /= json_powers[-number->exponent];
    else
        value *= json_powers[number->exponent];
    *float_out = number->negative ? -value : value;
    return true;
}

static inline bool json_is_digit(const struct json_reader *reader, size_t at)
{
    return at < reader->input.count && (uint8_t)(reader->input.data[at] - '0') < 10;
}

/* One byte further than a number may reach. */
static inline size_t json_number_end(const struct json_reader *reader)
{
    return cy_min_size(reader->input.count, reader->offset + LIMIT_JSON_NUMBER_BYTES + 1);
}

/* Digits at `at` into the mantissa; gives where they end. */
static size_t json_digits(const struct json_reader *reader, size_t at, bool behind_point,
                          struct json_number *number)
{
    size_t end = json_number_end(reader);
    for (; at < end && json_is_digit(reader, at); at++) {
        uint64_t digit = (uint64_t)(reader->input.data[at] - '0');
        if (number->mantissa < (UINT64_MAX - 9) / 10) {
            number->mantissa = number->mantissa * 10 + digit;
            number->exponent -= behind_point;
        } else {
            number->inexact = true;
        }
    }
    return at;
}

/* The exponent behind e, clamped: no double needs more, and a sum with a count of digits still fits. */
static size_t json_exponent(const struct json_reader *reader, size_t at, int64_t *exponent_out)
{
    bool negative = reader->input.data[at] == '-';
    if (reader->input.data[at] == '-' || reader->input.data[at] == '+') at++;
    int64_t exponent = 0;
    size_t end = json_number_end(reader);
    for (; at < end && json_is_digit(reader, at); at++)
        if (exponent < (int64_t)1 << 40) exponent = exponent * 10 + (reader->input.data[at] - '0');
    *exponent_out = negative ? -exponent : exponent;
    return at;
}

static enum json_event json_int(struct json_reader *reader, const struct json_number *number, cy_bytes text)
{
    uint64_t most = (uint64_t)INT64_MAX + number->negative;
    if (!number->inexact && number->mantissa <= most) {
        reader->int_value = (int64_t)(number->negative ? 0 - number->mantissa : number->mantissa);
        return JSON_INT;
    }
    if (!reader->big_int_is_float) return json_fail(reader, JSON_FAULT_BIG_INT, reader->offset);
    reader->float_value = json_float_slowly(text, 0);
    if (isinf(reader->float_value)) return json_fail(reader, JSON_FAULT_BIG_FLOAT, reader->offset);
    return JSON_FLOAT;
}

static enum json_event json_number(struct json_reader *reader)
{
    struct json_number number = {0};
    const cy_bytes input = reader->input;
    size_t at = reader->at;
    int64_t exponent_written = 0;
    reader->offset = at;
    if (input.data[at] == '-') {
        number.negative = true;
        at++;
    }
    if (!json_is_digit(reader, at)) return json_fail(reader, JSON_FAULT_DIGIT, at);
    if (input.data[at] == '0' && json_is_digit(reader, at + 1))
        return json_fail(reader, JSON_FAULT_LEADING_ZERO, at);
    at = json_digits(reader, at, false, &number);
    if (at < input.count && input.data[at] == '.') {
        number.is_float = true;
        if (!json_is_digit(reader, ++at)) return json_fail(reader, JSON_FAULT_DIGIT, at);
        at = json_digits(reader, at, true, &number);
    }
    if (at < input.count && (input.data[at] | 0x20) == 'e') {
        number.is_float = true;
        size_t digit = at + 1;
        if (digit < input.count && (input.data[digit] == '-' || input.data[digit] == '+')) digit++;
        if (!json_is_digit(reader, digit)) return json_fail(reader, JSON_FAULT_DIGIT, digit);
        at = json_exponent(reader, at + 1, &exponent_written);
        number.exponent += exponent_written;
    }
    if (at - reader->offset > LIMIT_JSON_NUMBER_BYTES)
        return json_fail(reader, JSON_FAULT_LONG_NUMBER, reader->offset + LIMIT_JSON_NUMBER_BYTES);
    reader->at = at;
    cy_bytes text = cy_bytes_slice(input, reader->offset, at);
    if (!number.is_float) return json_int(reader, &number, text);
    if (!json_float_quickly(&number, &reader->float_value))
        reader->float_value = json_float_slowly(text, exponent_written);
    if (isinf(reader->float_value)) return json_fail(reader, JSON_FAULT_BIG_FLOAT, reader->offset);
    return JSON_FLOAT;
}

/* -- structure ---------------------------------------------------------------------------------------------- */

static enum json_event json_open(struct json_reader *reader, bool is_map)
{
    reader->offset = reader->at;
    if (reader->depth == LIMIT_JSON_DEPTH) return json_fail(reader, JSON_FAULT_DEPTH, reader->at);
    uint64_t bit = (uint64_t)1 << (reader->depth % 64);
    if (is_map)
        reader->is_map[reader->depth / 64] |= bit;
    else
        reader->is_map[reader->depth / 64] &= ~bit;
    reader->depth++;
    reader->at++;
    reader->expect = is_map ? JSON_FIRST_KEY : JSON_FIRST_ITEM;
    return is_map ? JSON_MAP_BEGIN : JSON_LIST_BEGIN;
}

static enum json_event json_close(struct json_reader *reader, enum json_event event)
{
    reader->offset = reader->at++;
    reader->depth--;
    reader->expect = JSON_AFTER;
    return event;
}

static enum json_event json_word(struct json_reader *reader, const char *word, enum json_event event)
{
    cy_bytes rest = cy_bytes_skip(reader->input, reader->at), expected = cy_bytes_from_text(word);
    if (!cy_bytes_start_with(rest, expected)) return json_fail(reader, JSON_FAULT_WORD, reader->at);
    reader->offset = reader->at;
    reader->at += expected.count;
    return event;
}

static enum json_event json_value(struct json_reader *reader, uint8_t byte)
{
    uint8_t expect = reader->expect;
    reader->expect = JSON_AFTER;
    switch (byte) {
    case '"': return json_string(reader, JSON_TEXT);
    case '{': return json_open(reader, true);
    case '[': return json_open(reader, false);
    case 't': return json_word(reader, "true", JSON_TRUE);
    case 'f': return json_word(reader, "false", JSON_FALSE);
    case 'n': return json_word(reader, "null", JSON_NULL);
    case '-': return json_number(reader);
    default: break;
    }
    if ((uint8_t)(byte - '0') < 10) return json_number(reader);
    if (reader->at >= reader->input.count) return json_fail(reader, JSON_FAULT_EMPTY, reader->at);
    if (reader->at == 0 && cy_bytes_start_with(reader->input, CY_BYTES("\xef\xbb\xbf")))
        return json_fail(reader, JSON_FAULT_MARK, 0);
    return json_fail(reader, expect == JSON_FIRST_ITEM ? JSON_FAULT_VALUE_OR_END : JSON_FAULT_VALUE,
                     reader->at);
}

static enum json_event json_colon(struct json_reader *reader, uint8_t byte)
{
    if (CY_UNLIKELY(reader->paused)) {
        reader->paused = false;
        reader->expect = JSON_COLON;
        return JSON_PAUSED;
    }
    if (byte != ':') return json_fail(reader, JSON_FAULT_COLON, reader->at);
    reader->at++;
    reader->expect = JSON_VALUE;
    return JSON_KEY;
}

static enum json_event json_key(struct json_reader *reader, uint8_t byte)
{
    if (byte != '"')
        return json_fail(reader, reader->expect == JSON_FIRST_KEY ? JSON_FAULT_KEY_OR_END : JSON_FAULT_KEY,
                         reader->at);
    enum json_event event = json_string(reader, JSON_KEY);
    return CY_LIKELY(event == JSON_KEY) ? json_colon(reader, json_skip_space(reader)) : event;
}

/* Behind a value: the end of its level, a comma and what follows it, or the end of the text. */
static enum json_event json_after(struct json_reader *reader, uint8_t byte)
{
    if (reader->depth == 0) {
        if (reader->at < reader->input.count) return json_fail(reader, JSON_FAULT_BEHIND, reader->at);
        reader->offset = reader->at;
        return JSON_END;
    }
    bool in_map = json_in_map(reader);
    if (byte == ',') {
        reader->at++;
        byte = json_skip_space(reader);
        reader->expect = in_map ? JSON_NEXT_KEY : JSON_VALUE;
        if (CY_UNLIKELY(reader->paused)) {
            reader->paused = false;
            return JSON_PAUSED;
        }
        return in_map ? json_key(reader, byte) : json_value(reader, byte);
    }
    if (byte == (in_map ? '}' : ']')) return json_close(reader, in_map ? JSON_MAP_END : JSON_LIST_END);
    return json_fail(reader, in_map ? JSON_FAULT_MAP_NEXT : JSON_FAULT_LIST_NEXT, reader->at);
}

enum json_event json_next(struct json_reader *reader)
{
    if (CY_UNLIKELY(reader->fault)) return JSON_FAILED;
    if (CY_UNLIKELY(reader->inside))
        return reader->inside == JSON_KEY ? json_key(reader, '"') : json_string(reader, JSON_TEXT);
    uint8_t byte = json_skip_space(reader);
    if (reader->expect == JSON_COLON) return json_colon(reader, byte);
    if (CY_UNLIKELY(reader->paused)) {
        reader->paused = false;
        return JSON_PAUSED;
    }
    switch (reader->expect) {
    case JSON_AFTER: return json_after(reader, byte);
    case JSON_FIRST_ITEM:
        if (byte == ']') return json_close(reader, JSON_LIST_END);
        return json_value(reader, byte);
    case JSON_FIRST_KEY:
        if (byte == '}') return json_close(reader, JSON_MAP_END);
        return json_key(reader, byte);
    case JSON_NEXT_KEY: return json_key(reader, byte);
    default: return json_value(reader, byte);
    }
}

void json_place(cy_bytes input, size_t offset, uint32_t *line_out, uint32_t *column_out)
{
    cy_bytes before = cy_bytes_slice(input, 0, offset);
    uint32_t line = 1;
    size_t line_begin = 0;
    for (size_t i = 0; i < before.count; i++) {
        if (before.data[i] != '\n') continue;
        line++;
        line_begin = i + 1;
    }
    *line_out = line;
    *column_out = (uint32_t)text_code_point_count(cy_bytes_skip(before, line_begin)) + 1;
}

void json_place_advance(cy_bytes input, size_t to, struct json_place *place)
{
    for (; place->offset < to && place->offset < input.count; place->offset++) {
        uint8_t byte = input.data[place->offset];
        place->column += (byte & 0xc0) != 0x80;
        if (byte != '\n') continue;
        place->line++;
        place->column = 1;
    }
}

/* -- writing ------------------------------------------------------------------------------------------------ */

/* Appends one byte that must be escaped. */
static void json_write_escape(struct builder *out, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    builder_u8(out, '\\');
    if (byte == '"' || byte == '\\') {
        builder_u8(out, byte);
    } else if (byte < sizeof letters && letters[byte]) {
        builder_u8(out, (uint8_t)letters[byte]);
    } else {
        builder_text(out, "u00");
        builder_u8(out, (uint8_t)hex[byte >> 4]);
        builder_u8(out, (uint8_t)hex[byte & 15]);
    }
}

bool json_write_piece(struct builder *out, cy_bytes text, size_t *at_place, size_t end)
{
    size_t at = *at_place, from = at;
    while (at < end) {
        if (text.count - at >= 8 && json_all_plain(text.data + at)) {
            at += 8;
            continue;
        }
        uint8_t byte = text.data[at];
        if (byte >= 0x80) {
            size_t length = json_sequence(text.data + at, text.count - at);
            if (length == 0) {
                *at_place = at;
                return false;
            }
            at += length;
        } else if (byte < 0x20 || byte == '"' || byte == '\\') {
            builder_bytes(out, cy_bytes_slice(text, from, at));
            json_write_escape(out, byte);
            from = ++at;
        } else {
            at++;
        }
    }
    builder_bytes(out, cy_bytes_slice(text, from, at));
    *at_place = at;
    return true;
}

bool json_write_text(struct builder *out, cy_bytes text, size_t *bad_offset_out)
{
    *bad_offset_out = 0;
    builder_u8(out, '"');
    if (!json_write_piece(out, text, bad_offset_out, text.count)) return false;
    builder_u8(out, '"');
    return true;
}

#undef JSON_EACH
#undef JSON_HAS_ZERO
