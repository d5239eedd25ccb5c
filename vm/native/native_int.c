/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_int.c: module int: wrapping arithmetic, bits, division that rounds down, text in a base.
 *
 * In:   arguments already checked against native.def. Out: ints, or errors where the result is none.
 * Not here: the operators (vm/run/interp.c), `int(x)` (native_core.c).
 */
#include "vm/code/arith.h"
#include "vm/native/native_bodies.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

static uint64_t native_int_bits(const struct native_call *call, uint32_t index)
{
    return (uint64_t)call->args[index].as.i;
}
static enum native_outcome native_int_return(struct native_call *call, uint64_t bits)
{
    return native_return(call, value_int((int64_t)bits));
}
static enum native_outcome native_int_failed(struct native_call *call, cy_err err, const char *native)
{
    return native_fail_reason(call, err, native);
}

/* -- arithmetic ---------------------------------------------------------------------------------------- */

enum native_outcome native_int_wrapping_add(struct native_call *call)
{
    return native_int_return(call, native_int_bits(call, 0) + native_int_bits(call, 1));
}
enum native_outcome native_int_wrapping_sub(struct native_call *call)
{
    return native_int_return(call, native_int_bits(call, 0) - native_int_bits(call, 1));
}
enum native_outcome native_int_wrapping_mul(struct native_call *call)
{
    return native_int_return(call, native_int_bits(call, 0) * native_int_bits(call, 1));
}

/* The quotient rounded down, and what is left, which has the sign of b. */
static cy_err native_int_floor(int64_t a, int64_t b, int64_t *quotient_out, int64_t *rest_out)
{
    CY_TRY(arith_mod(a, b, rest_out));
    bool down = *rest_out != 0 && (*rest_out < 0) != (b < 0);
    if (down) *rest_out += b;
    if (!quotient_out) return CY_OK;
    CY_TRY(arith_div(a, b, quotient_out));
    if (down) --*quotient_out;
    return CY_OK;
}

enum native_outcome native_int_floor_div(struct native_call *call)
{
    int64_t quotient, rest;
    cy_err err = native_int_floor(call->args[0].as.i, call->args[1].as.i, &quotient, &rest);
    return cy_failed(err) ? native_int_failed(call, err, "int.floor_div")
                          : native_return(call, value_int(quotient));
}
enum native_outcome native_int_floor_mod(struct native_call *call)
{
    int64_t rest;
    cy_err err = native_int_floor(call->args[0].as.i, call->args[1].as.i, NULL, &rest);
    return cy_failed(err) ? native_int_failed(call, err, "int.floor_mod")
                          : native_return(call, value_int(rest));
}
enum native_outcome native_int_divmod(struct native_call *call)
{
    cy_value pair;
    int64_t parts[2], *to;
    cy_err err = native_int_floor(call->args[0].as.i, call->args[1].as.i, &parts[0], &parts[1]);
    if (!cy_failed(err)) err = list_new_ints(call->vm, 2, &pair, &to);
    if (cy_failed(err)) return native_int_failed(call, err, "int.divmod");
    memcpy(to, parts, sizeof parts);
    return native_return(call, pair);
}

enum native_outcome native_int_pow(struct native_call *call)
{
    int64_t base = call->args[0].as.i, exponent = call->args[1].as.i, result = 1;
    if (exponent < 0)
        return native_fail(call, CY_ERR(VALUE), "int.pow: exponent must be 0 or more, not %lld",
                           (long long)exponent);
    cy_err err = CY_OK;
    for (; exponent > 0 && !cy_failed(err); exponent >>= 1) {
        if (exponent & 1) err = arith_mul(result, base, &result);
        if (exponent > 1 && !cy_failed(err)) err = arith_mul(base, base, &base);
    }
    return cy_failed(err) ? native_int_failed(call, err, "int.pow") : native_return(call, value_int(result));
}

/* Without signs, so that MIN has a magnitude. */
static uint64_t native_int_magnitude(int64_t number)
{
    return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

static uint64_t native_int_gcd_of(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

enum native_outcome native_int_gcd(struct native_call *call)
{
    uint64_t gcd =
        native_int_gcd_of(native_int_magnitude(call->args[0].as.i), native_int_magnitude(call->args[1].as.i));
    return gcd > INT64_MAX ? native_int_failed(call, CY_ERR(OVERFLOW), "int.gcd")
                           : native_int_return(call, gcd);
}
enum native_outcome native_int_lcm(struct native_call *call)
{
    uint64_t a = native_int_magnitude(call->args[0].as.i), b = native_int_magnitude(call->args[1].as.i),
             lcm = 0;
    bool past = a && b && (__builtin_mul_overflow(a / native_int_gcd_of(a, b), b, &lcm) || lcm > INT64_MAX);
    return past ? native_int_failed(call, CY_ERR(OVERFLOW), "int.lcm") : native_int_return(call, lcm);
}

/* -- bits ---------------------------------------------------------------------------------------------- */

enum native_outcome native_int_count_ones(struct native_call *call)
{
    return native_int_return(call, (uint64_t)__builtin_popcountll(native_int_bits(call, 0)));
}
enum native_outcome native_int_leading_zeros(struct native_call *call)
{
    uint64_t bits = native_int_bits(call, 0);
    return native_int_return(call, bits ? (uint64_t)__builtin_clzll(bits) : 64);
}
enum native_outcome native_int_trailing_zeros(struct native_call *call)
{
    uint64_t bits = native_int_bits(call, 0);
    return native_int_return(call, bits ? (uint64_t)__builtin_ctzll(bits) : 64);
}
enum native_outcome native_int_rotate_left(struct native_call *call)
{
    uint64_t bits = native_int_bits(call, 0),
             count = native_int_bits(call, 1) & 63; /* -1 is one to the right */
    return native_int_return(call, count ? bits << count | bits >> (64 - count) : bits);
}
enum native_outcome native_int_shift_right_zero(struct native_call *call)
{
    int64_t count = call->args[1].as.i;
    if (count < 0 || count > 63)
        return native_fail(call, CY_ERR(VALUE), "int.shift_right_zero: count must be 0..63, not %lld",
                           (long long)count);
    return native_int_return(call, native_int_bits(call, 0) >> count);
}
enum native_outcome native_int_compare_unsigned(struct native_call *call)
{
    uint64_t a = native_int_bits(call, 0), b = native_int_bits(call, 1);
    return native_return(call, value_int((a > b) - (a < b)));
}

/* -- text in a base ------------------------------------------------------------------------------------------------
 * */

/* args[1] as a base; 0, failed, when there is none such. */
static unsigned native_int_base(struct native_call *call, const char *native)
{
    int64_t base = native_has_arg(call, 1) ? call->args[1].as.i : 10;
    if (base >= 2 && base <= 36) return (unsigned)base;
    (void)native_fail(call, CY_ERR(VALUE), "%s: base must be 2..36, not %lld", native, (long long)base);
    return 0;
}

static unsigned native_int_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'z' ? byte - 'a' + 10u : 36u;
}

/* [+-] digits, all of it. VALUE when it is not that, OVERFLOW when it does not fit. */
static cy_err native_int_read(cy_bytes text, unsigned base, int64_t *number_out)
{
    bool negative = text.count > 0 && text.data[0] == '-', past = false;
    if (negative || (text.count > 0 && text.data[0] == '+')) text = cy_bytes_skip(text, 1);
    uint64_t magnitude = 0, max = negative ? (uint64_t)1 << 63 : INT64_MAX;
    if (text.count == 0) return CY_ERR(VALUE);
    for (size_t i = 0; i < text.count; i++) {
        unsigned digit = native_int_digit(text.data[i]);
        if (digit >= base) return CY_ERR(VALUE);
        past = past || magnitude > (max - digit) / base; /* digit <= 35 < max */
        if (!past) magnitude = magnitude * base + digit;
    }
    *number_out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return past ? CY_ERR(OVERFLOW) : CY_OK;
}

enum native_outcome native_int_parse(struct native_call *call)
{
    cy_bytes text = string_bytes(call->args[0]);
    unsigned base = native_int_base(call, "int.parse");
    if (!base) return NATIVE_FAIL;
    int64_t number;
    native_charge(call, text.count / 100);
    cy_err err = native_int_read(text, base, &number);
    if (!cy_failed(err)) return native_return(call, value_int(number));
    text = cy_bytes_slice(text, 0, 64);
    if (cy_is(err, CY_ERR_OVERFLOW)) return native_int_failed(call, err, "int.parse");
    return native_fail(call, err, "int.parse: \"%.*s\" is no int in base %u", CY_BYTES_ARG(text), base);
}

enum native_outcome native_int_try_parse(struct native_call *call)
{
    cy_bytes text = string_bytes(call->args[0]);
    unsigned base = native_int_base(call, "int.try_parse");
    if (!base) return NATIVE_FAIL;
    int64_t number;
    native_charge(call, text.count / 100);
    cy_err err = native_int_read(text, base, &number);
    return native_return(call, cy_failed(err) ? value_nil() : value_int(number));
}

enum { NATIVE_INT_DIGITS_MAX = 64 };

/* `magnitude` in `base` with at least `digits` digits, behind '-' when it is negative. */
static enum native_outcome native_int_write(struct native_call *call, uint64_t magnitude, bool negative,
                                            unsigned base, int64_t digits, const char *native)
{
    char room[NATIVE_INT_DIGITS_MAX + 1];
    size_t at = sizeof room;
    if (digits < 0 || digits > NATIVE_INT_DIGITS_MAX)
        return native_fail(call, CY_ERR(VALUE), "%s: digits must be 0..%d, not %lld", native,
                           NATIVE_INT_DIGITS_MAX, (long long)digits);
    do {
        room[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[magnitude % base];
        magnitude /= base;
    } while (magnitude || sizeof room - at < (size_t)digits);
    if (negative) room[--at] = '-';
    cy_value text;
    cy_err err = string_new(call->vm, cy_bytes_of(room + at, sizeof room - at), &text);
    return cy_failed(err) ? native_int_failed(call, err, native) : native_return(call, text);
}

enum native_outcome native_int_to_text(struct native_call *call)
{
    unsigned base = native_int_base(call, "int.to_text");
    int64_t number = call->args[0].as.i;
    if (!base) return NATIVE_FAIL;
    return native_int_write(call, native_int_magnitude(number), number < 0, base,
                            native_has_arg(call, 2) ? call->args[2].as.i : 0, "int.to_text");
}
enum native_outcome native_int_to_hex(struct native_call *call)
{
    return native_int_write(call, native_int_bits(call, 0), false, 16,
                            native_has_arg(call, 1) ? call->args[1].as.i : 0, "int.to_hex");
}
