/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_math.c: module math.
 *
 * In:   numbers. Out: numbers; ints where the result is whole by nature.
 * Invariant: a function that has no value for an argument (the square root of -1) fails with "value"; none makes a
 *            NaN of arguments that are none.
 * Not here: constants and what is made of these (stdlib/math.han).
 */
#include "vm/code/arith.h"
#include "vm/native/native_bodies.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

#include <math.h>

static double native_math_arg(const struct native_call *call, uint32_t index)
{
    cy_value number = call->args[index];
    return number.tag == TAG_INT ? (double)number.as.i : number.as.f;
}

/* NaN out of numbers that are none: outside of what the function is defined for. */
static enum native_outcome native_math_return(struct native_call *call, double result, const char *native)
{
    if (!isnan(result)) return native_return(call, value_float(result));
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (native_has_arg(call, i) && isnan(native_math_arg(call, i)))
            return native_return(call, value_float(result));
    return native_fail(call, CY_ERR(VALUE), "%s: no result for %g", native, native_math_arg(call, 0));
}

/* -- functions of the C library ------------------------------------------------------------------------ */

#define NATIVE_MATH_1(name, function)                                                       \
    enum native_outcome native_math_##name(struct native_call *call)                        \
    {                                                                                       \
        return native_math_return(call, function(native_math_arg(call, 0)), "math." #name); \
    }
NATIVE_MATH_1(sqrt, sqrt)
NATIVE_MATH_1(cbrt, cbrt)
NATIVE_MATH_1(exp, exp)
NATIVE_MATH_1(sin, sin)
NATIVE_MATH_1(cos, cos)
NATIVE_MATH_1(tan, tan)
NATIVE_MATH_1(asin, asin)
NATIVE_MATH_1(acos, acos)
NATIVE_MATH_1(atan, atan)
NATIVE_MATH_1(sinh, sinh)
NATIVE_MATH_1(cosh, cosh)
NATIVE_MATH_1(tanh, tanh)
#undef NATIVE_MATH_1

#define NATIVE_MATH_2(name, function)                                                                 \
    enum native_outcome native_math_##name(struct native_call *call)                                  \
    {                                                                                                 \
        return native_math_return(call, function(native_math_arg(call, 0), native_math_arg(call, 1)), \
                                  "math." #name);                                                     \
    }
NATIVE_MATH_2(pow, pow)
NATIVE_MATH_2(atan2, atan2)
NATIVE_MATH_2(hypot, hypot)
#undef NATIVE_MATH_2

/* log of 0 is -infinity in C; here it is no result, as division by zero is none. */
enum native_outcome native_math_log(struct native_call *call)
{
    double x = native_math_arg(call, 0), base = native_has_arg(call, 1) ? native_math_arg(call, 1) : 0;
    if (x == 0 || (native_has_arg(call, 1) && (base <= 0 || base == 1)))
        return native_fail(call, CY_ERR(VALUE), "math.log: no result for %g%s", x,
                           native_has_arg(call, 1) ? " in that base" : "");
    if (!native_has_arg(call, 1)) return native_math_return(call, log(x), "math.log");
    /* Exact for powers of 2 and 10, which log(x) / log(base) is not. */
    double result = base == 2 ? log2(x) : base == 10 ? log10(x) : log(x) / log(base);
    return native_math_return(call, result, "math.log");
}

/* -- whole numbers -------------------------------------------------------------------------------------------------
 * */

static enum native_outcome native_math_whole(struct native_call *call, double (*to_whole)(double),
                                             const char *native)
{
    int64_t whole;
    if (call->args[0].tag == TAG_INT) return native_return(call, call->args[0]);
    cy_err err = arith_float_to_int(to_whole(call->args[0].as.f), &whole);
    if (cy_failed(err)) return native_fail(call, err, "%s: %g is no int", native, call->args[0].as.f);
    return native_return(call, value_int(whole));
}
enum native_outcome native_math_floor(struct native_call *call)
{
    return native_math_whole(call, floor, "math.floor");
}
enum native_outcome native_math_ceil(struct native_call *call)
{
    return native_math_whole(call, ceil, "math.ceil");
}
enum native_outcome native_math_round(struct native_call *call)
{
    return native_math_whole(call, round, "math.round");
}
enum native_outcome native_math_trunc(struct native_call *call)
{
    return native_math_whole(call, trunc, "math.trunc");
}

enum native_outcome native_math_abs(struct native_call *call)
{
    cy_value number = call->args[0];
    if (number.tag == TAG_FLOAT) return native_return(call, value_float(fabs(number.as.f)));
    if (number.as.i == INT64_MIN)
        return native_fail(call, CY_ERR(OVERFLOW), "math.abs: %s",
                           cy_err_text(CY_ERR(OVERFLOW), vm_korean(call->vm)));
    return native_return(call, value_int(number.as.i < 0 ? -number.as.i : number.as.i));
}

enum native_outcome native_math_sign(struct native_call *call)
{
    cy_value number = call->args[0];
    if (number.tag == TAG_FLOAT && isnan(number.as.f))
        return native_fail(call, CY_ERR(VALUE), "math.sign: NaN has no sign");
    int sign =
        number.tag == TAG_INT ? (number.as.i > 0) - (number.as.i < 0) : (number.as.f > 0) - (number.as.f < 0);
    return native_return(call, value_int(sign));
}

/* -- order
 * ----------------------------------------------------------------------------------------------------------- */

/* <0, 0, >0, exact also for an int beside a float; 2 when one is NaN. */
static int native_math_compare(cy_value a, cy_value b)
{
    if (a.tag == TAG_INT && b.tag == TAG_INT) return (a.as.i > b.as.i) - (a.as.i < b.as.i);
    if (a.tag == TAG_INT) return arith_compare_int_float(a.as.i, b.as.f);
    if (b.tag == TAG_FLOAT) return isunordered(a.as.f, b.as.f) ? 2 : (a.as.f > b.as.f) - (a.as.f < b.as.f);
    int order = arith_compare_int_float(b.as.i, a.as.f);
    return order == 2 ? 2 : -order;
}

static enum native_outcome native_math_extreme(struct native_call *call, bool largest, const char *native)
{
    cy_value best = call->args[0];
    for (uint32_t i = 0; i < call->arg_count; i++) {
        cy_value number = call->args[i];
        if (number.tag != TAG_INT && number.tag != TAG_FLOAT)
            return native_fail(call, CY_ERR(TYPE), "%s: argument %u must be a number, not %s", native, i + 1,
                               value_kind_text(call->vm, number));
        int order = native_math_compare(number, best);
        if (order == 2) return native_fail(call, CY_ERR(VALUE), "%s: NaN has no order", native);
        if (largest ? order > 0 : order < 0) best = number;
    }
    return native_return(call, best);
}
enum native_outcome native_math_min(struct native_call *call)
{
    return native_math_extreme(call, false, "math.min");
}
enum native_outcome native_math_max(struct native_call *call)
{
    return native_math_extreme(call, true, "math.max");
}

enum native_outcome native_math_clamp(struct native_call *call)
{
    cy_value number = call->args[0], low = call->args[1], high = call->args[2];
    int below = native_math_compare(number, low), above = native_math_compare(number, high);
    int range = native_math_compare(low, high);
    if (below == 2 || above == 2 || range > 0)
        return native_fail(call, CY_ERR(VALUE), "math.clamp: low is above high, or one of the three is NaN");
    return native_return(call, below < 0 ? low : above > 0 ? high : number);
}

/* -- what doubles are
 * ---------------------------------------------------------------------------------------------------- */

enum native_outcome native_math_is_nan(struct native_call *call)
{
    return native_return(call, value_bool(isnan(native_math_arg(call, 0)) != 0));
}
enum native_outcome native_math_is_finite(struct native_call *call)
{
    return native_return(call, value_bool(isfinite(native_math_arg(call, 0)) != 0));
}
enum native_outcome native_math_to_bits(struct native_call *call)
{
    double number = native_math_arg(call, 0);
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return native_return(call, value_int(bits));
}
enum native_outcome native_math_from_bits(struct native_call *call)
{
    double number;
    memcpy(&number, &call->args[0].as.i, sizeof number);
    return native_return(call, value_float(number));
}
