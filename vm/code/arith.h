/* SPDX-License-Identifier: MIT
 *
 * vm/code/arith.h: exact integer arithmetic, shared by the constant folder, the interpreter and the JIT's
 * slow paths.
 *
 * Out: the result, or OVERFLOW, DIVISION or VALUE (shift count). 64-bit two's complement.
 */
#ifndef CY_CODE_ARITH_H
#define CY_CODE_ARITH_H

#include "vm/base/error.h"

static inline cy_err arith_add(int64_t a, int64_t b, int64_t *result_out)
{
    return __builtin_add_overflow(a, b, result_out) ? CY_ERR(OVERFLOW) : CY_OK;
}
static inline cy_err arith_sub(int64_t a, int64_t b, int64_t *result_out)
{
    return __builtin_sub_overflow(a, b, result_out) ? CY_ERR(OVERFLOW) : CY_OK;
}
static inline cy_err arith_mul(int64_t a, int64_t b, int64_t *result_out)
{
    return __builtin_mul_overflow(a, b, result_out) ? CY_ERR(OVERFLOW) : CY_OK;
}
static inline cy_err arith_div(int64_t a, int64_t b, int64_t *result_out)
{
    if (b == 0) return CY_ERR(DIVISION);
    if (a == INT64_MIN && b == -1) return CY_ERR(OVERFLOW);
    *result_out = a / b;
    return CY_OK;
}
/* The sign of the dividend; MIN % -1 is 0. */
static inline cy_err arith_mod(int64_t a, int64_t b, int64_t *result_out)
{
    if (b == 0) return CY_ERR(DIVISION);
    *result_out = b == -1 ? 0 : a % b;
    return CY_OK;
}
static inline cy_err arith_shift_left(int64_t a, int64_t count, int64_t *result_out)
{
    if (count < 0 || count > 63) return CY_ERR(VALUE);
    *result_out = (int64_t)((uint64_t)a << count);
    return CY_OK;
}
static inline cy_err arith_shift_right(int64_t a, int64_t count, int64_t *result_out)
{
    if (count < 0 || count > 63) return CY_ERR(VALUE);
    *result_out = a >> count; /* gcc and clang: arithmetic */
    return CY_OK;
}

/* -1, 0, 1; exact for every pair, without turning the int into a float that is not equal to it. 2 when f is
 * NaN. */
int arith_compare_int_float(int64_t i, double f);
/* The int a float truncates to; VALUE for NaN, OVERFLOW when out of range. */
CY_NODISCARD cy_err arith_float_to_int(double f, int64_t *result_out);

#endif
