/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_number.c: the numbers of RPN text.
 *
 * In:   a word that begins like a number. Out: its value, or what is wrong with it.
 * Invariant: hex floats are never rounded: a digit too many is an error. Decimal ones are, as in every language.
 */
#include "vm/code/rpn_lex.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RPN_NUMBER_WORD_MAX = 400, /* longer decimals are refused */
    /* The exact decimal digits of a double: 767 at most. */
    RPN_NUMBER_DIGITS_MAX = 767,
};

static cy_bytes rpn_number_sign(cy_bytes word, bool *negative_out)
{
    *negative_out = word.count && word.data[0] == '-';
    bool has_sign = word.count && (word.data[0] == '-' || word.data[0] == '+');
    return cy_bytes_skip(word, has_sign);
}

static bool rpn_number_is_hex(cy_bytes digits)
{
    return digits.count > 2 && digits.data[0] == '0' && (digits.data[1] | 0x20) == 'x';
}

static int rpn_number_hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool rpn_number_is_named(cy_bytes word)
{
    bool negative;
    return cy_bytes_equal(rpn_number_sign(word, &negative), CY_BYTES("inf")) ||
           cy_bytes_equal(word, CY_BYTES("nan"));
}

bool rpn_number_is_float(cy_bytes word)
{
    bool negative;
    cy_bytes digits = rpn_number_sign(word, &negative);
    if (rpn_number_is_named(word)) return true;
    if (rpn_number_is_hex(digits))
        return cy_bytes_find(digits, 'p') < digits.count || cy_bytes_find(digits, 'P') < digits.count;
    for (size_t i = 0; i < digits.count; i++)
        if (digits.data[i] == '.' || (digits.data[i] | 0x20) == 'e') return true;
    return false;
}

enum rpn_number rpn_number_int(cy_bytes word, int64_t *integer_out)
{
    bool negative, is_digit = true;
    cy_bytes digits = rpn_number_sign(word, &negative);
    uint64_t magnitude = 0, base = rpn_number_is_hex(digits) ? 16 : 10;
    bool past = false;
    if (base == 16) digits = cy_bytes_skip(digits, 2);
    for (size_t i = 0; i < digits.count && is_digit; i++) {
        int digit = rpn_number_hex_digit(digits.data[i]);
        is_digit = digit >= 0 && (uint64_t)digit < base;
        past = past || magnitude > (UINT64_MAX - 15) / base;
        if (is_digit && !past) magnitude = magnitude * base + (uint64_t)digit;
    }
    if (!is_digit || !digits.count) return RPN_NUMBER_MALFORMED;
    uint64_t max = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    if (past || magnitude > max) return RPN_NUMBER_PAST_RANGE;
    *integer_out = negative ? (int64_t)(UINT64_C(0) - magnitude) : (int64_t)magnitude;
    return RPN_NUMBER_OK;
}

/* -- hex floats ------------------------------------------------------------------------------------------ */

/* The exponent behind p, bounded to what cannot overflow an int. False when malformed. */
static bool rpn_number_exponent(cy_bytes digits, int64_t *exponent_out)
{
    enum { FAR = 1000000 };
    bool negative;
    cy_bytes rest = rpn_number_sign(digits, &negative);
    int64_t exponent = 0;
    for (size_t i = 0; i < rest.count; i++) {
        if (rest.data[i] < '0' || rest.data[i] > '9') return false;
        exponent = exponent > FAR ? exponent : exponent * 10 + (rest.data[i] - '0');
    }
    *exponent_out = negative ? -exponent : exponent;
    return rest.count > 0;
}

/* Digits with at most one point as an odd integer times a power of two. False when malformed. */
static bool rpn_number_mantissa(cy_bytes digits, uint64_t *mantissa_out, int64_t *exponent_out,
                                bool *too_long_out)
{
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    bool point = false, any = false;
    *too_long_out = false;
    for (size_t i = 0; i < digits.count; i++) {
        if (digits.data[i] == '.' && !point) {
            point = true;
            continue;
        }
        int digit = rpn_number_hex_digit(digits.data[i]);
        if (digit < 0) return false;
        any = true;
        if (mantissa >> 60) {
            if (digit) *too_long_out = true;
            exponent += point ? 0 : 4;
            continue;
        }
        mantissa = mantissa << 4 | (uint64_t)digit;
        exponent -= point ? 4 : 0;
    }
    for (; mantissa && !(mantissa & 1); mantissa >>= 1) exponent++;
    *mantissa_out = mantissa;
    *exponent_out = exponent;
    return any;
}

static enum rpn_number rpn_number_hex_float(cy_bytes digits, double *real_out)
{
    enum { DOUBLE_BITS = 53, FAR = 100000 };
    digits = cy_bytes_skip(digits, 2);
    size_t p = cy_min_size(cy_bytes_find(digits, 'p'), cy_bytes_find(digits, 'P'));
    uint64_t mantissa;
    int64_t shift, exponent;
    bool too_long;
    if (!rpn_number_mantissa(cy_bytes_slice(digits, 0, p), &mantissa, &shift, &too_long))
        return RPN_NUMBER_MALFORMED;
    if (!rpn_number_exponent(cy_bytes_skip(digits, p + 1), &exponent)) return RPN_NUMBER_MALFORMED;
    *real_out = 0;
    if (!mantissa) return RPN_NUMBER_OK;
    exponent += shift;
    if (too_long || mantissa >> DOUBLE_BITS) return RPN_NUMBER_TOO_PRECISE;
    if (exponent > FAR || exponent < -FAR)
        return exponent > 0 ? RPN_NUMBER_PAST_RANGE : RPN_NUMBER_TOO_PRECISE;
    *real_out = ldexp((double)mantissa, (int)exponent);
    if (isinf(*real_out)) return RPN_NUMBER_PAST_RANGE;
    int power;
    double fraction = frexp(*real_out, &power);
    bool exact = *real_out != 0 && ldexp(fraction, power - (int)exponent) == (double)mantissa;
    return exact ? RPN_NUMBER_OK : RPN_NUMBER_TOO_PRECISE; /* below the smallest step of a double */
}

/* -- decimal floats -------------------------------------------------------------------------------------- */

/* "-12.50e3" as the digits 125 and the exponent of the first, so that equal numbers have equal parts. False when
 * malformed. */
static bool rpn_number_decimal_parts(const char *word, char *digits_out, size_t digits_max,
                                     int64_t *exponent_out)
{
    size_t count = 0;
    int64_t exponent = -1, written = 0;
    bool point = false, any = false;
    for (; *word && (*word | 0x20) != 'e'; word++) {
        if (*word == '.' && !point) {
            point = true;
            continue;
        }
        if (*word < '0' || *word > '9') return false;
        any = true;
        if (count || *word != '0') {
            if (count + 1 < digits_max) digits_out[count] = *word;
            count++;
            if (!point) exponent++;
        } else if (point) {
            exponent--;
        }
    }
    if (*word && !rpn_number_exponent(cy_bytes_from_text(word + 1), &written)) return false;
    count = cy_min_size(count, digits_max - 1);
    while (count && digits_out[count - 1] == '0') count--;
    digits_out[count] = 0;
    *exponent_out = count ? exponent + written : 0;
    return any;
}

static enum rpn_number rpn_number_decimal(cy_bytes word, double *real_out, bool *exact_out)
{
    char text[RPN_NUMBER_WORD_MAX + 1], digits[RPN_NUMBER_WORD_MAX + 1];
    if (word.count > RPN_NUMBER_WORD_MAX) return RPN_NUMBER_TOO_PRECISE;
    memcpy(text, word.data, word.count);
    text[word.count] = 0;
    int64_t exponent, real_exponent;
    if (!rpn_number_decimal_parts(text, digits, sizeof digits, &exponent)) return RPN_NUMBER_MALFORMED;
    *real_out = strtod(text, NULL); /* the locale is C: nothing of ours sets another */
    if (isinf(*real_out)) return RPN_NUMBER_PAST_RANGE;

    char exact[RPN_NUMBER_DIGITS_MAX + 32], exact_digits[RPN_NUMBER_DIGITS_MAX + 32];
    snprintf(exact, sizeof exact, "%.*e", RPN_NUMBER_DIGITS_MAX, *real_out);
    bool parts = rpn_number_decimal_parts(exact, exact_digits, sizeof exact_digits, &real_exponent);
    *exact_out = parts && real_exponent == exponent && strcmp(digits, exact_digits) == 0;
    return RPN_NUMBER_OK;
}

enum rpn_number rpn_number_float(cy_bytes word, double *real_out, bool *exact_out)
{
    bool negative;
    cy_bytes digits = rpn_number_sign(word, &negative);
    enum rpn_number result = RPN_NUMBER_OK;
    *exact_out = true;
    if (cy_bytes_equal(digits, CY_BYTES("inf"))) {
        *real_out = (double)INFINITY;
    } else if (cy_bytes_equal(word, CY_BYTES("nan"))) {
        *real_out = (double)NAN;
    } else if (rpn_number_is_hex(digits)) {
        result = rpn_number_hex_float(digits, real_out);
    } else {
        result = rpn_number_decimal(digits, real_out, exact_out);
    }
    if (result == RPN_NUMBER_OK && negative) *real_out = -*real_out;
    return result;
}
