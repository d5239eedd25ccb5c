/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_text_form.c: module text: how numbers and values are written.
 *
 * In:   arguments already checked against native.def. Out: new str values.
 * Not here: reading ints with a base (native_int.c), the text of any value (`str`, native_core.c).
 */
#include "vm/base/limits.h"
#include "vm/native/native_text_internal.h"
#include "vm/run/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    NATIVE_TEXT_FORM_DECIMALS_MAX = 100,
    /* The largest double has 309 digits before the point. */
    NATIVE_TEXT_FORM_DIGITS = 309 + NATIVE_TEXT_FORM_DECIMALS_MAX + 8
};

/* The number without a sign, with its decimals: "1234.50". */
static int native_text_form_digits(cy_value number, int decimals, char digits[NATIVE_TEXT_FORM_DIGITS])
{
    if (number.tag == TAG_FLOAT)
        return snprintf(digits, NATIVE_TEXT_FORM_DIGITS, "%.*f", decimals, fabs(number.as.f));
    uint64_t magnitude = number.as.i < 0 ? 0 - (uint64_t)number.as.i : (uint64_t)number.as.i;
    return snprintf(digits, NATIVE_TEXT_FORM_DIGITS, decimals ? "%" PRIu64 ".%0*d" : "%" PRIu64, magnitude,
                    decimals, 0);
}

/* Whether any digit is not 0: -0.001 with two decimals is 0.00, without a sign. */
static bool native_text_form_is_zero(const char *digits)
{
    for (; *digits; digits++)
        if (*digits >= '1' && *digits <= '9') return false;
    return true;
}

enum native_outcome native_text_number(struct native_call *call)
{
    cy_value number = call->args[0];
    int64_t decimals = native_has_arg(call, 1) ? call->args[1].as.i : 0;
    cy_bytes separator = native_has_arg(call, 2) ? native_text_arg(call, 2) : CY_BYTES_NONE;
    char digits[NATIVE_TEXT_FORM_DIGITS];
    if (decimals < 0 || decimals > NATIVE_TEXT_FORM_DECIMALS_MAX)
        return native_fail(call, CY_ERR(VALUE), "text.number: decimals must be 0..%d, not %lld",
                           NATIVE_TEXT_FORM_DECIMALS_MAX, (long long)decimals);
    if (number.tag == TAG_FLOAT && !isfinite(number.as.f))
        return native_fail(call, CY_ERR(VALUE), "text.number: NaN and infinity have no digits");
    int count = native_text_form_digits(number, (int)decimals, digits);
    CHECK(count > 0 && count < NATIVE_TEXT_FORM_DIGITS);
    bool negative = number.tag == TAG_FLOAT ? number.as.f < 0 : number.as.i < 0;
    size_t whole = cy_bytes_find(cy_bytes_from_text(digits), '.');
    struct builder built;
    native_text_build(call, &built);
    if (negative && !native_text_form_is_zero(digits)) builder_u8(&built, '-');
    for (size_t i = 0; i < (size_t)count; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0) builder_bytes(&built, separator);
        builder_u8(&built, (uint8_t)digits[i]);
    }
    return native_text_return_built(call, &built, "text.number");
}

enum native_outcome native_text_quote(struct native_call *call)
{
    struct format_text text;
    cy_value quoted;
    if (!native_resume(call, &text, sizeof text)) format_text_begin(call->vm, &text);
    if (!format_text_go(call->vm, &text, call->args, 1, FORMAT_QUOTED))
        return native_pause(call, &text, sizeof text, format_text_drop, "text.quote");
    cy_err err = format_text_end(call->vm, &text, &quoted);
    return cy_failed(err) ? native_fail_reason(call, err, "text.quote") : native_return(call, quoted);
}
