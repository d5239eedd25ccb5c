/* SPDX-License-Identifier: MIT
 *
 * vm/run/interp_slow.c: arithmetic and comparing of anything but two ints or two floats, and their errors.
 *
 * In:   slots. Out: see interp_slow.h.
 * Rules: docs/LANGUAGE.md: + joins strings with str, int, float, bool and concatenates lists; == takes any kinds; <
 *       needs two numbers or two strings.
 */
#include "vm/run/interp_slow.h"

#include "vm/base/limits.h"
#include "vm/code/arith.h"
#include "vm/code/opcode.h"
#include "vm/run/list.h"
#include "vm/run/string.h"

#include <math.h>

/* The comparison under a step's forms: RUN_EQ .. RUN_GE. */
static enum run_op slow_compare_of(enum run_op op)
{
    return (enum run_op)(RUN_EQ + (op - RUN_EQ) % RUN_COMPARE_COUNT);
}

/* By enum run_op: what an error shows of an operation; NULL for the rest. */
static const char *slow_sign(enum run_op op)
{
    static const char *const comparisons[RUN_COMPARE_COUNT] = {"==", "!=", "<", "<=", ">", ">="};
    static const char *const signs[RUN_OP_COUNT] = {
        [RUN_ADD] = "+",
        [RUN_ADD_INT] = "+",
        [RUN_ADD_CONSTANT] = "+",
        [RUN_LOCAL_ADD] = "+",
        [RUN_LOCAL_ADD_INT] = "+",
        [RUN_GLOBAL_ADD] = "+",
        [RUN_SUB] = "-",
        [RUN_SUB_INT] = "-",
        [RUN_SUB_CONSTANT] = "-",
        [RUN_CONSTANT_SUB] = "-",
        [RUN_NEG] = "-",
        [RUN_MUL] = "*",
        [RUN_MUL_INT] = "*",
        [RUN_MUL_CONSTANT] = "*",
        [RUN_DIV] = "/",
        [RUN_DIV_INT] = "/",
        [RUN_DIV_CONSTANT] = "/",
        [RUN_CONSTANT_DIV] = "/",
        [RUN_MOD] = "%",
        [RUN_MOD_INT] = "%",
        [RUN_BIT_AND] = "&",
        [RUN_BIT_AND_INT] = "&",
        [RUN_BIT_OR] = "|",
        [RUN_BIT_OR_INT] = "|",
        [RUN_BIT_XOR] = "^",
        [RUN_BIT_XOR_INT] = "^",
        [RUN_BIT_NOT] = "~",
        [RUN_SHIFT_LEFT] = "<<",
        [RUN_SHIFT_LEFT_INT] = "<<",
        [RUN_SHIFT_RIGHT] = ">>",
        [RUN_SHIFT_RIGHT_INT] = ">>",
    };
    if (op >= RUN_EQ && op < RUN_EQ + 4 * RUN_COMPARE_FORMS) return comparisons[slow_compare_of(op) - RUN_EQ];
    return signs[op];
}

/* The step's sides as values. */
static cy_value slow_left(cy_value *r, const cy_value *k, const struct run_step *step)
{
    return run_op_flags[step->op] & RUN_FLAG_K_B ? *run_constant(k, step->b) : *run_slot(r, step->b);
}
static cy_value slow_right(cy_value *r, const cy_value *k, const struct run_step *step)
{
    uint32_t flags = run_op_flags[step->op];
    if (flags & RUN_FLAG_INT_C) return value_int((int32_t)step->c);
    return flags & RUN_FLAG_K_C ? *run_constant(k, step->c) : *run_slot(r, step->c);
}

static void slow_let_go(struct vm *vm, cy_value *r, const struct run_step *step)
{
    if (step->x & RUN_OWN_B) slow_clear(vm, run_slot(r, step->b));
    if (step->x & RUN_OWN_C) slow_clear(vm, run_slot(r, step->c));
}

static bool slow_operands_refused(struct vm *vm, const char *sign, cy_value b, cy_value c)
{
    return error_raise(vm, CY_ERR(TYPE), MESSAGE_OPERANDS, sign, value_kind_text(vm, b),
                       value_kind_text(vm, c));
}

static bool slow_number_failed(struct vm *vm, cy_err err, const char *sign, int64_t count)
{
    if (cy_is(err, CY_ERR_OVERFLOW)) return error_raise(vm, err, MESSAGE_OVERFLOW, sign);
    if (cy_is(err, CY_ERR_DIVISION)) return error_raise(vm, err, MESSAGE_DIVISION, sign);
    return error_raise(vm, err, MESSAGE_SHIFT, sign, (long long)count);
}

/* -- ints and floats ------------------------------------------------------------------------------------- */

static cy_err slow_ints(const char *sign, int64_t b, int64_t c, int64_t *out)
{
    switch (sign[0]) {
    case '+': return arith_add(b, c, out);
    case '-': return arith_sub(b, c, out);
    case '*': return arith_mul(b, c, out);
    case '/': return arith_div(b, c, out);
    case '%': return arith_mod(b, c, out);
    case '&': *out = b & c; return CY_OK;
    case '|': *out = b | c; return CY_OK;
    case '^': *out = b ^ c; return CY_OK;
    case '<': return arith_shift_left(b, c, out);
    default: return arith_shift_right(b, c, out);
    }
}

static cy_err slow_floats(const char *sign, double b, double c, double *out)
{
    switch (sign[0]) {
    case '+': *out = b + c; return CY_OK;
    case '-': *out = b - c; return CY_OK;
    case '*': *out = b * c; return CY_OK;
    case '/':
        if (c == 0.0) return CY_ERR(DIVISION);
        *out = b / c;
        return CY_OK;
    default:
        if (c == 0.0) return CY_ERR(DIVISION);
        *out = fmod(b, c);
        return CY_OK;
    }
}

static inline bool slow_is_number(cy_value value) { return value.tag == TAG_INT || value.tag == TAG_FLOAT; }
static double slow_as_float(cy_value value) { return value.tag == TAG_INT ? (double)value.as.i : value.as.f; }

/* -- strings and lists ----------------------------------------------------------------------------------- */

static bool slow_failed_growth(struct vm *vm, cy_err err, bool list)
{
    if (cy_is(err, CY_ERR_TOO_LARGE)) return error_raise_limit(vm, err, list ? "LIST_ITEMS" : "STRING_BYTES");
    return error_raise_plain(vm, err);
}

/* b + c for lists and texts, in a new value. */
static bool slow_join(struct vm *vm, cy_value b, cy_value c, cy_value *owned_out)
{
    char left_room[STRING_NUMBER_BYTES], right_room[STRING_NUMBER_BYTES];
    cy_bytes left, right;
    cy_err err;
    if (b.tag == TAG_LIST && c.tag == TAG_LIST) {
        err = list_copy(vm, b, list_of(c)->count, owned_out);
        if (cy_failed(err)) return slow_failed_growth(vm, err, true);
        vm->counters.copies++; /* whoever builds a list this way pays for all of it each time */
        err = list_extend(vm, list_of(*owned_out), c);
        if (!cy_failed(err)) return true;
        value_unref(vm, *owned_out);
        return slow_failed_growth(vm, err, true);
    }
    bool text = (b.tag == TAG_STR || c.tag == TAG_STR) && string_text_of(b, left_room, &left) &&
                string_text_of(c, right_room, &right);
    if (!text) return slow_operands_refused(vm, "+", b, c);
    err = string_join(vm, left, right, owned_out);
    return cy_failed(err) ? slow_failed_growth(vm, err, false) : true;
}

/* Extends a list or str that nobody else holds. False without an error when the kinds do not fit. */
static bool slow_extend(struct vm *vm, cy_value *unshared, cy_value more, cy_err *err_out)
{
    char room[STRING_NUMBER_BYTES];
    cy_bytes text;
    *err_out = CY_OK;
    if (unshared->tag == TAG_LIST && more.tag == TAG_LIST)
        *err_out = list_extend(vm, list_of(*unshared), more);
    else if (unshared->tag == TAG_STR && string_text_of(more, room, &text))
        *err_out = string_append(vm, unshared, text);
    else
        return false;
    return true;
}

/* target = target + more, in place when target is the only holder. `more` is borrowed and held by somebody
 * else. */
bool slow_add_in_place(struct vm *vm, cy_value *target, cy_value more)
{
    cy_err err;
    if (slow_is_number(*target) && slow_is_number(more)) {
        cy_value sum = value_float(slow_as_float(*target) + slow_as_float(more));
        if (target->tag == TAG_INT && more.tag == TAG_INT) {
            sum = value_int(0);
            err = arith_add(target->as.i, more.as.i, &sum.as.i);
            if (cy_failed(err)) return slow_number_failed(vm, err, "+", 0);
        }
        *target = sum;
        return true;
    }
    if (value_is_unshared(*target) && slow_extend(vm, target, more, &err))
        return cy_failed(err) ? slow_failed_growth(vm, err, target->tag == TAG_LIST) : true;
    cy_value joined;
    if (!slow_join(vm, *target, more, &joined)) return false;
    slow_put(vm, target, joined);
    return true;
}

/* b + c for strings and lists. An owned left side that nobody else holds is extended instead of copied. */
static bool slow_add(struct vm *vm, cy_value *r, const struct run_step *step, cy_value b, cy_value c)
{
    cy_value sum;
    cy_err err;
    /* Swapped, slot b holds what stands at the right. */
    bool grows = (step->x & RUN_OWN_B) && !(step->x & RUN_SWAPPED);
    if (grows && value_is_unshared(b) && slow_extend(vm, run_slot(r, step->b), c, &err)) {
        if (cy_failed(err)) return slow_failed_growth(vm, err, b.tag == TAG_LIST);
        sum = slow_take(run_slot(r, step->b));
    } else if (!slow_join(vm, b, c, &sum))
        return false;
    slow_let_go(vm, r, step);
    slow_put(vm, run_slot(r, step->a), sum);
    return true;
}

bool slow_arithmetic(struct vm *vm, cy_value *r, const cy_value *k, const struct run_step *step)
{
    const char *sign = slow_sign((enum run_op)step->op);
    cy_value b = slow_left(r, k, step), c = slow_right(r, k, step), result;
    if (step->x & RUN_SWAPPED) {
        result = b;
        b = c;
        c = result;
    }
    bool numbers = slow_is_number(b) && slow_is_number(c), bits = strchr("&|^<>", sign[0]) != NULL;
    if (!numbers && sign[0] == '+') return slow_add(vm, r, step, b, c);
    if (!numbers) return slow_operands_refused(vm, sign, b, c);
    cy_err err;
    if (b.tag == TAG_INT && c.tag == TAG_INT) {
        result = value_int(0);
        err = slow_ints(sign, b.as.i, c.as.i, &result.as.i);
    } else if (bits)
        return slow_operands_refused(vm, sign, b, c);
    else {
        result = value_float(0);
        err = slow_floats(sign, slow_as_float(b), slow_as_float(c), &result.as.f);
    }
    if (cy_failed(err)) return slow_number_failed(vm, err, sign, c.as.i);
    slow_put(vm, run_slot(r, step->a), result);
    return true;
}

bool slow_unary(struct vm *vm, cy_value *r, const struct run_step *step)
{
    cy_value b = *run_slot(r, step->b), result;
    if (step->op == RUN_NOT) {
        result = value_bool(!value_truthy(b));
        slow_let_go(vm, r, step);
    } else if (step->op == RUN_NEG && b.tag == TAG_FLOAT)
        result = value_float(-b.as.f);
    else if (b.tag != TAG_INT) {
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_OPERAND, slow_sign((enum run_op)step->op),
                           value_kind_text(vm, b));
    } else if (step->op == RUN_BIT_NOT)
        result = value_int(~b.as.i);
    else {
        if (b.as.i == INT64_MIN) return slow_number_failed(vm, CY_ERR(OVERFLOW), "-", 0);
        result = value_int(-b.as.i);
    }
    slow_put(vm, run_slot(r, step->a), result);
    return true;
}

/* -- comparing ------------------------------------------------------------------------------------------- */

/* -1, 0, 1, or 2 when a NaN is among them; false when the kinds have no order. */
static bool slow_order(struct vm *vm, cy_value b, cy_value c, int *order_out)
{
    if (b.tag == TAG_STR && c.tag == TAG_STR) {
        vm_charge_bytes(vm, cy_min_size(string_of(b)->count, string_of(c)->count));
        int order = cy_bytes_compare(string_bytes(b), string_bytes(c));
        *order_out = (order > 0) - (order < 0);
        return true;
    }
    if (!slow_is_number(b) || !slow_is_number(c)) return false;
    if (b.tag == TAG_INT && c.tag == TAG_INT)
        *order_out = (b.as.i > c.as.i) - (b.as.i < c.as.i);
    else if (b.tag == TAG_INT)
        *order_out = arith_compare_int_float(b.as.i, c.as.f);
    else if (c.tag == TAG_INT) {
        int order = arith_compare_int_float(c.as.i, b.as.f);
        *order_out = order == 2 ? 2 : -order;
    } else
        *order_out = isnan(b.as.f) || isnan(c.as.f) ? 2 : (b.as.f > c.as.f) - (b.as.f < c.as.f);
    return true;
}

bool slow_compare(struct vm *vm, cy_value *r, const cy_value *k, const struct run_step *step, bool *truth_out)
{
    enum run_op form = (enum run_op)step->op, op = slow_compare_of(form);
    cy_value b = *run_slot(r, step->b), c = slow_right(r, k, step);
    int order;
    if (op == RUN_EQ || op == RUN_NE) {
        bool equal, paused;
        cy_err err = value_compare_or_pause(vm, b, c, &equal, &paused);
        if (cy_failed(err)) return error_raise_walk(vm, err);
        if (CY_UNLIKELY(paused)) {
            vm->step_paused = true;
            return false;
        }
        *truth_out = equal == (op == RUN_EQ);
    } else if (!slow_order(vm, b, c, &order))
        return slow_operands_refused(vm, slow_sign(form), b, c);
    else if (op == RUN_LT)
        *truth_out = order == -1;
    else if (op == RUN_LE)
        *truth_out = order == -1 || order == 0;
    else if (op == RUN_GT)
        *truth_out = order == 1;
    else
        *truth_out = order == 1 || order == 0;
    slow_let_go(vm, r, step);
    return true;
}

static bool slow_is_of(const struct instance *instance, cy_value value, const struct run_step *step)
{
    if (step->op == RUN_IS_KIND || step->op == RUN_CHECK_KIND) return value_kind_by_tag[value.tag] == step->c;
    return value.tag == TAG_RECORD && record_of(value)->shape == instance->shapes[step->c];
}

void slow_is(struct vm *vm, cy_value *r, const struct instance *instance, const struct run_step *step)
{
    bool is = slow_is_of(instance, *run_slot(r, step->b), step);
    slow_let_go(vm, r, step);
    slow_put(vm, run_slot(r, step->a), value_bool(is));
}

bool slow_check(struct vm *vm, cy_value *r, const struct instance *instance, const struct run_step *step)
{
    if (slow_is_of(instance, *run_slot(r, step->b), step)) return true;
    const char *wanted = step->op == RUN_CHECK_KIND
                             ? kind_name((enum value_kind)step->c, false)
                             : (const char *)string_of(instance->shapes[step->c]->name)->data;
    return error_raise(vm, CY_ERR(TYPE), MESSAGE_KIND, wanted, value_kind_text(vm, *run_slot(r, step->b)));
}
