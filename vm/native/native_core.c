/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_core.c: the prelude: printing, kinds, conversions, fail; and the tasks of vm/run.
 *
 * In:   arguments already checked against native.def. Out: results or errors.
 * Invariant: one print is one line, written whole before it returns: what a program printed is never lost
 *       in a buffer.
 */
#include "vm/base/limits.h"
#include "vm/code/arith.h"
#include "vm/native/native_bodies.h"
#include "vm/run/format.h"
#include "vm/run/object.h"
#include "vm/run/task.h"
#include "vm/run/vm.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* -- output ---------------------------------------------------------------------------------------------- */

static enum native_outcome native_core_format_failed(struct native_call *call, cy_err err, const char *name)
{
    const char *why = cy_err_text(err, vm_korean(call->vm));
    if (!cy_is(err, CY_ERR_TOO_LARGE)) return native_fail(call, err, "%s: %s", name, why);
    return native_fail(call, err, "%s: %s (FORMAT_BYTES: %d)", name, why, LIMIT_FORMAT_BYTES);
}

static enum native_outcome native_core_print(struct native_call *call, int descriptor, const char *name)
{
    struct format_text text;
    if (!native_resume(call, &text, sizeof text)) format_text_begin(call->vm, &text);
    if (!format_text_go(call->vm, &text, call->args, call->arg_count, FORMAT_LINE))
        return native_pause(call, &text, sizeof text, format_text_drop, name);
    cy_err err = format_text_error(&text);
    if (cy_failed(err)) {
        format_text_drop(call->vm, &text);
        return native_core_format_failed(call, err, name);
    }
    err = vm_put(call->vm, descriptor, string_build_view(&text.out));
    format_text_drop(call->vm, &text);
    if (!cy_failed(err)) return NATIVE_DONE;
    char reason[128];
    return native_fail(call, err, "%s: %s", name,
                       cy_err_describe(err, vm_korean(call->vm), reason, sizeof reason));
}

enum native_outcome native_print(struct native_call *call)
{
    return native_core_print(call, STDOUT_FILENO, "print");
}
enum native_outcome native_print_error(struct native_call *call)
{
    return native_core_print(call, STDERR_FILENO, "print_error");
}

/* -- kinds and conversions ------------------------------------------------------------------------------- */

static enum native_outcome native_core_return_text(struct native_call *call, cy_bytes text)
{
    cy_value value;
    cy_err err = string_new(call->vm, text, &value);
    if (cy_failed(err)) return native_fail(call, err, "%s", cy_err_text(err, vm_korean(call->vm)));
    return native_return(call, value);
}

enum native_outcome native_kind_of(struct native_call *call)
{
    return native_core_return_text(call, cy_bytes_from_text(value_kind_text(call->vm, call->args[0])));
}

enum native_outcome native_to_str(struct native_call *call)
{
    if (call->args[0].tag == TAG_STR) return native_return(call, native_take_arg(call, 0));
    struct format_text text;
    cy_value made;
    if (!native_resume(call, &text, sizeof text)) format_text_begin(call->vm, &text);
    if (!format_text_go(call->vm, &text, call->args, 1, FORMAT_PLAIN))
        return native_pause(call, &text, sizeof text, format_text_drop, "str");
    cy_err err = format_text_end(call->vm, &text, &made);
    return cy_failed(err) ? native_core_format_failed(call, err, "str") : native_return(call, made);
}

/* "int: "12x" is not a number" with the text cut to a readable length. */
static enum native_outcome native_core_no_number(struct native_call *call, const char *native)
{
    cy_value value = call->args[0];
    if (value.tag != TAG_STR)
        return native_fail(call, CY_ERR(TYPE), "%s: %s is not a number", native,
                           value_kind_text(call->vm, value));
    cy_bytes text = cy_bytes_slice(string_bytes(value), 0, 64);
    return native_fail(call, CY_ERR(VALUE), "%s: \"%.*s\" is not a number", native, CY_BYTES_ARG(text));
}

enum native_outcome native_to_int(struct native_call *call)
{
    cy_value value = call->args[0];
    int64_t number;
    cy_err err;
    switch (value.tag) {
    case TAG_INT: return native_return(call, value);
    case TAG_BOOL: return native_return(call, value_int(value.as.b));
    case TAG_FLOAT:
        err = arith_float_to_int(value.as.f, &number);
        if (cy_failed(err))
            return native_fail(call, err, "int: %g is outside the range of an int", value.as.f);
        return native_return(call, value_int(number));
    case TAG_STR:
        if (cy_bytes_parse_i64(string_bytes(value), &number)) return native_return(call, value_int(number));
        return native_core_no_number(call, "int");
    default: return native_core_no_number(call, "int");
    }
}

static size_t native_core_digits(cy_bytes text, size_t from)
{
    size_t end = from;
    while (end < text.count && text.data[end] >= '0' && text.data[end] <= '9') end++;
    return end - from;
}

/* [-] digits [. digits] [e [+-] digits], all of it. */
static bool native_core_is_decimal(cy_bytes text)
{
    size_t at = text.count > 0 && text.data[0] == '-', digits = native_core_digits(text, at);
    if (digits == 0) return false;
    at += digits;
    if (at < text.count && text.data[at] == '.') {
        digits = native_core_digits(text, at + 1);
        if (digits == 0) return false;
        at += 1 + digits;
    }
    if (at < text.count && (text.data[at] == 'e' || text.data[at] == 'E')) {
        at++;
        if (at < text.count && (text.data[at] == '+' || text.data[at] == '-')) at++;
        digits = native_core_digits(text, at);
        if (digits == 0) return false;
        at += digits;
    }
    return at == text.count;
}

enum native_outcome native_to_float(struct native_call *call)
{
    cy_value value = call->args[0];
    double number;
    switch (value.tag) {
    case TAG_FLOAT: return native_return(call, value);
    case TAG_INT: return native_return(call, value_float((double)value.as.i));
    case TAG_STR:
        /* A NUL stands behind a str's bytes, and the text has none inside once it is decimal. */
        if (!native_core_is_decimal(string_bytes(value))) return native_core_no_number(call, "float");
        number = strtod((const char *)string_bytes(value).data, NULL);
        if (!isinf(number)) return native_return(call, value_float(number));
        return native_fail(call, CY_ERR(VALUE), "float: \"%.*s\" is outside the range of a float",
                           CY_BYTES_ARG(cy_bytes_slice(string_bytes(value), 0, 64)));
    default: return native_core_no_number(call, "float");
    }
}

enum native_outcome native_length(struct native_call *call)
{
    cy_value value = call->args[0];
    switch (value.tag) {
    case TAG_STR: return native_return(call, value_int((int64_t)string_bytes(value).count));
    case TAG_LIST: return native_return(call, value_int((int64_t)list_count(value)));
    case TAG_MAP: return native_return(call, value_int((int64_t)map_object_count(value)));
    default: {
        uint64_t count = range_item_count(value);
        if (count > INT64_MAX)
            return native_fail(call, CY_ERR(OVERFLOW), "len: the range has more ints than an int can count");
        return native_return(call, value_int((int64_t)count));
    }
    }
}

enum native_outcome native_raise(struct native_call *call)
{
    cy_bytes kind = native_has_arg(call, 1) ? string_bytes(call->args[1]) : CY_BYTES("thrown");
    cy_value data = native_has_arg(call, 2) ? value_ref(call->args[2]) : value_nil();
    cy_err err = error_new_of_kind(call->vm, kind, string_bytes(call->args[0]), data, &call->error);
    if (cy_failed(err)) return native_fail(call, err, "fail: %s", cy_err_text(err, vm_korean(call->vm)));
    return NATIVE_FAIL;
}

/* -- tasks and reports ----------------------------------------------------------------------------------- */

enum native_outcome native_task_wait(struct native_call *call) { return task_wait(call); }
enum native_outcome native_task_all(struct native_call *call) { return task_all(call); }
enum native_outcome native_task_race(struct native_call *call) { return task_race(call); }
enum native_outcome native_task_cancel(struct native_call *call) { return task_cancel(call); }
enum native_outcome native_task_deadline(struct native_call *call) { return task_deadline(call); }
enum native_outcome native_task_time_left(struct native_call *call) { return task_time_left(call); }

enum native_outcome native_env_language(struct native_call *call)
{
    cy_value result;
    cy_err err = string_new(call->vm, vm_korean(call->vm) ? CY_BYTES("ko") : CY_BYTES("en"), &result);
    return cy_failed(err) ? native_fail_reason(call, err, "env.language") : native_return(call, result);
}

enum native_outcome native_debug_cells(struct native_call *call)
{
    struct vm_counters counters;
    vm_read_counters(call->vm, &counters);
    return native_return(call, value_int((int64_t)counters.cells));
}

enum native_outcome native_debug_copies(struct native_call *call)
{
    struct vm_counters counters;
    vm_read_counters(call->vm, &counters);
    return native_return(call, value_int((int64_t)counters.copies));
}
