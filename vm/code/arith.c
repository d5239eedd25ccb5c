/* SPDX-License-Identifier: MIT
 *
 * vm/code/arith.c: the two conversions between ints and floats that are easy to get wrong.
 *
 * In:   an int and a float.
 * Out:  their exact order; the int a float truncates to.
 * Invariant: no int is ever turned into a float that is not equal to it, and no float outside the range of
 *            int64_t is cast (which would be undefined).
 */
#include "vm/code/arith.h"

#include <math.h>

/* 2^63 is a float; INT64_MAX is not. */
static const double arith_int_end = 9223372036854775808.0;

int arith_compare_int_float(int64_t i, double f)
{
    if (isnan(f)) return 2;
    if (f >= arith_int_end) return -1;
    if (f < -arith_int_end) return 1;
    int64_t whole = (int64_t)f; /* toward zero, exact: |f| < 2^63 or f == -2^63 */
    if (i != whole) return i < whole ? -1 : 1;
    double fraction = f - (double)whole; /* exact: a float with a fraction is below 2^53 */
    return fraction > 0 ? -1 : fraction < 0;
}

cy_err arith_float_to_int(double f, int64_t *result_out)
{
    if (isnan(f)) return CY_ERR(VALUE);
    double whole = trunc(f);
    if (whole >= arith_int_end || whole < -arith_int_end) return CY_ERR(OVERFLOW);
    *result_out = (int64_t)whole;
    return CY_OK;
}
