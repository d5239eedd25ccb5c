/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/interp_test.c: proves what instructions do, on hand-built and verified programs:
 * arithmetic, comparing, calls, loops, closures, in-place writes and copies, errors and defers.
 */
#include "tests/unit/run/run_host.h"
#include "vm/run/vm_internal.h"

#include <check.h>
#include <stdio.h>

static struct run_host host;
static struct program_builder *b;

/* Begins a program with one module; the test adds functions. */
static void build_begin(void)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
}
static void build_function(const char *name, uint8_t params, uint16_t locals)
{
    uint32_t index = pb_function(b, name, params, params, locals);
    pb_export(b, name, EXPORT_FUNCTION, index);
    pb_line(b, 10, 5);
}
static void build_open(void) { ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0)); }

static struct run_end run_call(const char *name, const cy_value *args, uint32_t arg_count)
{
    struct run_end end;
    ck_assert(!cy_failed(run_host_start(&host, name, args, arg_count, &end, NULL)));
    while (vm_run(host.vm)) {}
    ck_assert(end.ended);
    return end;
}

/* The result's text, or "kind: message" of the error. */
static const char *run_outcome(struct run_end *end)
{
    static char text[512];
    if (end->outcome == CALL_FAILED) {
        cy_bytes kind = error_kind(host.vm, end->value), message = error_message(host.vm, end->value);
        snprintf(text, sizeof text, "%.*s: %.*s", CY_BYTES_ARG(kind), CY_BYTES_ARG(message));
    } else if (end->outcome == CALL_STOPPED)
        snprintf(text, sizeof text, "stop %u", end->stop.code);
    else
        snprintf(text, sizeof text, "%s", run_host_text(&host, end->value));
    run_end_clear(end);
    return text;
}
static const char *run_text(const char *name, const cy_value *args, uint32_t arg_count)
{
    struct run_end end = run_call(name, args, arg_count);
    return run_outcome(&end);
}

static cy_value text_value(const char *text)
{
    cy_value value;
    ck_assert(!cy_failed(string_new(host.vm, cy_bytes_from_text(text), &value)));
    return value;
}
static cy_value list_value(int64_t first, int64_t second)
{
    cy_value list;
    ck_assert(!cy_failed(list_new(host.vm, 0, &list)));
    ck_assert(!cy_failed(list_append(host.vm, &list, value_int(first))));
    ck_assert(!cy_failed(list_append(host.vm, &list, value_int(second))));
    return list;
}

static uint32_t build_print(void) { return pb_native(b, "print"); }

START_TEST(test_hello)
{
    build_begin();
    uint32_t print = build_print();
    build_function("main", 0, 0);
    pb_op(b, OP_CONST, pb_str(b, "안녕"));
    pb_op(b, OP_INT8, 42);
    pb_op(b, OP_NATIVE, print, 2);
    pb_op(b, OP_RETURN);
    build_open();
    struct run_end end = run_call("main", NULL, 0);
    ck_assert_int_eq(end.outcome, CALL_RETURNED);
    ck_assert_str_eq(run_host_printed(&host), "안녕 42\n");
    run_host_close(&host);
}
END_TEST

static const struct {
    uint8_t opcode;
    const char *name;
} binary_rows[] = {
    {OP_ADD, "add"},        {OP_SUB, "sub"},         {OP_MUL, "mul"},   {OP_DIV, "div"},
    {OP_MOD, "mod"},        {OP_BIT_AND, "and"},     {OP_BIT_OR, "or"}, {OP_BIT_XOR, "xor"},
    {OP_SHIFT_LEFT, "shl"}, {OP_SHIFT_RIGHT, "shr"}, {OP_EQ, "eq"},     {OP_NE, "ne"},
    {OP_LT, "lt"},          {OP_LE, "le"},           {OP_GT, "gt"},     {OP_GE, "ge"},
    {OP_RANGE, "range"},    {OP_INDEX_GET, "index"},
};
static const struct {
    uint8_t opcode;
    const char *name;
} unary_rows[] = {
    {OP_NEG, "neg"}, {OP_BIT_NOT, "inv"}, {OP_NOT, "not"}, {OP_REF, "ref"}, {OP_THROW, "throw"}};

/* One function per operator, twice: operands from locals, and the right one as an int in the code
 * ("add5"). */
static void open_operators(void)
{
    build_begin();
    for (size_t i = 0; i < CY_COUNT_OF(binary_rows); i++) {
        build_function(binary_rows[i].name, 2, 2);
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_LOCAL_GET, 1);
        pb_op(b, binary_rows[i].opcode);
        pb_op(b, OP_RETURN);
        char name[16];
        snprintf(name, sizeof name, "%s5", binary_rows[i].name);
        build_function(name, 1, 2);
        pb_op(b, OP_LOCAL_TAKE, 0);
        pb_op(b, OP_INT8, 5);
        pb_op(b, binary_rows[i].opcode);
        pb_op(b, OP_LOCAL_SET, 1);
        pb_op(b, OP_LOCAL_GET, 1);
        pb_op(b, OP_RETURN);
    }
    for (size_t i = 0; i < CY_COUNT_OF(unary_rows); i++) {
        build_function(unary_rows[i].name, 1, 1);
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, unary_rows[i].opcode);
        if (unary_rows[i].opcode != OP_THROW) pb_op(b, OP_RETURN);
    }
    build_open();
}

static const char *binary(const char *name, cy_value x, cy_value y)
{
    cy_value args[2] = {x, y};
    return run_text(name, args, 2);
}
static const char *unary(const char *name, cy_value x) { return run_text(name, &x, 1); }

START_TEST(test_numbers)
{
    open_operators();
    ck_assert_str_eq(binary("add", value_int(2), value_int(3)), "5");
    ck_assert_str_eq(binary("add", value_int(2), value_float(0.5)), "2.5");
    ck_assert_str_eq(binary("add", value_int(INT64_MAX), value_int(1)),
                     "overflow: '+': the result is outside the range of a 64-bit int");
    ck_assert_str_eq(unary("add5", value_int(INT64_MAX - 4)),
                     "overflow: '+': the result is outside the range of a 64-bit int");
    ck_assert_str_eq(unary("add5", value_float(1.5)), "6.5");
    ck_assert_str_eq(unary("sub5", value_int(3)), "-2");
    ck_assert_str_eq(unary("mul5", value_int(-3)), "-15");
    ck_assert_str_eq(binary("div", value_int(-7), value_int(2)), "-3");
    ck_assert_str_eq(binary("div", value_int(7), value_int(0)), "division: '/': division by zero");
    ck_assert_str_eq(binary("div", value_int(INT64_MIN), value_int(-1)),
                     "overflow: '/': the result is outside the range of a 64-bit int");
    ck_assert_str_eq(binary("div", value_float(1), value_int(4)), "0.25");
    ck_assert_str_eq(unary("div5", value_int(-11)), "-2");
    ck_assert_str_eq(binary("mod", value_int(-7), value_int(3)), "-1");
    ck_assert_str_eq(binary("mod", value_int(INT64_MIN), value_int(-1)), "0");
    ck_assert_str_eq(unary("mod5", value_int(-7)), "-2");
    ck_assert_str_eq(binary("and", value_int(12), value_int(10)), "8");
    ck_assert_str_eq(binary("or", value_int(12), value_int(10)), "14");
    ck_assert_str_eq(binary("xor", value_int(12), value_int(10)), "6");
    ck_assert_str_eq(binary("shl", value_int(1), value_int(63)), "-9223372036854775808");
    ck_assert_str_eq(binary("shr", value_int(-8), value_int(1)), "-4");
    ck_assert_str_eq(binary("shl", value_int(1), value_int(64)),
                     "value: '<<': the shift count must be 0..63, not 64");
    ck_assert_str_eq(unary("neg", value_int(INT64_MIN)),
                     "overflow: '-': the result is outside the range of a 64-bit int");
    ck_assert_str_eq(unary("neg", value_float(2.5)), "-2.5");
    ck_assert_str_eq(unary("inv", value_int(0)), "-1");
    ck_assert_str_eq(unary("inv", value_float(1)), "type: '~' does not work on float");
    run_host_close(&host);
}
END_TEST

START_TEST(test_joining)
{
    open_operators();
    ck_assert_str_eq(binary("add", text_value("a"), text_value("b")), "ab");
    ck_assert_str_eq(binary("add", text_value("a"), value_int(-1)), "a-1");
    ck_assert_str_eq(binary("add", value_float(1.5), text_value("b")), "1.5b");
    ck_assert_str_eq(binary("add", text_value("a"), value_bool(true)), "atrue");
    ck_assert_str_eq(unary("add5", text_value("a")), "a5");
    ck_assert_str_eq(binary("add", text_value("a"), value_nil()),
                     "type: '+' does not work between str and nil");
    ck_assert_str_eq(binary("add", list_value(1, 2), list_value(3, 4)), "[1, 2, 3, 4]");
    ck_assert_str_eq(binary("add", list_value(1, 2), value_int(3)),
                     "type: '+' does not work between list and int");
    ck_assert_str_eq(binary("sub", text_value("a"), text_value("b")),
                     "type: '-' does not work between str and str");
    ck_assert_uint_eq(host.vm->counters.copies,
                      1); /* the left list, whole; of texts only growing in place matters */
    run_host_close(&host);
}
END_TEST

START_TEST(test_comparing)
{
    open_operators();
    ck_assert_str_eq(binary("eq", value_int(1), value_float(1.0)), "true");
    ck_assert_str_eq(binary("ne", text_value("a"), value_int(1)), "true");
    ck_assert_str_eq(unary("eq5", value_int(5)), "true");
    ck_assert_str_eq(unary("eq5", value_float(5.0)), "true");
    ck_assert_str_eq(unary("ne5", text_value("5")), "true");
    ck_assert_str_eq(binary("lt", text_value("a"), text_value("ab")), "true");
    ck_assert_str_eq(binary("lt", value_int(INT64_MAX), value_float(9223372036854775808.0)), "true");
    ck_assert_str_eq(unary("lt5", value_int(5)), "false");
    ck_assert_str_eq(unary("le5", value_float(5.0)), "true");
    ck_assert_str_eq(unary("gt5", value_int(6)), "true");
    ck_assert_str_eq(unary("ge5", value_int(4)), "false");
    ck_assert_str_eq(binary("lt", value_int(1), text_value("a")),
                     "type: '<' does not work between int and str");
    ck_assert_str_eq(binary("le", value_float(0.0 / 0.0), value_int(1)), "false");
    ck_assert_str_eq(unary("not", value_float(0.0)), "true");
    ck_assert_str_eq(unary("not", text_value("")), "false");
    ck_assert_str_eq(unary("not", value_nil()), "true");
    run_host_close(&host);
}
END_TEST

START_TEST(test_indexing)
{
    open_operators();
    ck_assert_str_eq(binary("index", list_value(7, 8), value_int(1)), "8");
    ck_assert_str_eq(binary("index", list_value(7, 8), value_int(2)),
                     "index: index 2 is outside 0..1 of a list of 2");
    ck_assert_str_eq(binary("index", list_value(7, 8), value_int(-1)),
                     "index: index -1 is outside 0..1 of a list of 2");
    ck_assert_str_eq(unary("index5", text_value("abcdef")), "102");
    ck_assert_str_eq(binary("index", value_int(1), value_int(1)), "type: cannot index int");
    ck_assert_str_eq(binary("range", value_int(1), value_float(2)),
                     "type: both ends of a range must be int, not int..float");
    struct run_end end = run_call("range", (cy_value[]){value_int(1), value_int(3)}, 2);
    cy_value range = end.value;
    ck_assert_str_eq(binary("index", text_value("abcd"), value_ref(range)), "bc");
    ck_assert_str_eq(binary("index", list_value(7, 8), value_ref(range)),
                     "index: slice 1..3 is outside 0..2");
    ck_assert_str_eq(binary("index", value_ref(range), value_int(1)), "2");
    run_end_clear(&end);
    run_host_close(&host);
}
END_TEST

START_TEST(test_throwing)
{
    open_operators();
    struct run_end end = run_call("throw", (cy_value[]){list_value(1, 2)}, 1);
    ck_assert_int_eq(end.outcome, CALL_FAILED);
    ck_assert_str_eq(run_host_text(&host, error_data(host.vm, end.value)), "[1, 2]");
    ck_assert_str_eq(run_host_text(&host, error_stack(host.vm, end.value)), "[\"throw (main.han:10:5)\"]");
    builder_clear(&host.output);
    vm_describe_error(host.vm, end.value, &host.output);
    ck_assert_str_eq(run_host_printed(&host), "thrown: [1, 2]\n  at throw (main.han:10:5)\n");
    run_end_clear(&end);
    run_host_close(&host);
}
END_TEST

/* fib: calls of a known function, comparison fused with its jump, the last use of a local. */
static void build_fib(void)
{
    uint32_t fib = pb_function(b, "fib", 1, 1, 1);
    pb_export(b, "fib", EXPORT_FUNCTION, fib);
    uint32_t more = pb_label(b);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_INT8, 2);
    pb_op(b, OP_LT);
    pb_op(b, OP_JUMP_IF_FALSE, more);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_RETURN);
    pb_place(b, more);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_SUB);
    pb_op(b, OP_CALL_FUNCTION, fib, 1);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_INT8, 2);
    pb_op(b, OP_SUB);
    pb_op(b, OP_CALL_FUNCTION, fib, 1);
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN);
}

START_TEST(test_calls)
{
    build_begin();
    build_fib();
    build_open();
    ck_assert_str_eq(run_text("fib", (cy_value[]){value_int(20)}, 1), "6765");
    struct run_end end;
    ck_assert(cy_is(run_host_start(&host, "fib", NULL, 0, &end, NULL), CY_ERR_CALL));
    /* A short call in the steady state allocates nothing: fibers, stacks and frames are used again. */
    struct vm_counters before, after;
    vm_read_counters(host.vm, &before);
    for (int i = 0; i < 100; i++) ck_assert_str_eq(run_text("fib", (cy_value[]){value_int(3)}, 1), "2");
    vm_read_counters(host.vm, &after);
    ck_assert_uint_eq(before.heap_bytes, after.heap_bytes);
    run_host_close(&host);
}
END_TEST

/* A default argument, a call through a value, a closure by value, self, a native as a value. */
START_TEST(test_functions_as_values)
{
    build_begin();
    uint32_t print = build_print();
    uint32_t plus = pb_function(b, "plus", 1, 2, 2);
    uint32_t given = pb_label(b);
    pb_op(b, OP_LOCAL_DEFAULT, 1, given);
    pb_op(b, OP_INT8, 10);
    pb_op(b, OP_LOCAL_SET, 1);
    pb_place(b, given);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN);
    build_function("main", 0, 2);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_CALL_FUNCTION, plus, 1);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_INT8, 2);
    pb_op(b, OP_CALL_FUNCTION, plus, 2);
    pb_op(b, OP_NATIVE, print, 2);
    pb_op(b, OP_POP);
    pb_op(b, OP_INT8, 100);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_CLOSURE, plus + 2); /* the inner function below */
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_INT8, 7);
    pb_op(b, OP_LOCAL_SET, 0); /* after the capture: not seen */
    pb_op(b, OP_NATIVE_FUNCTION, print);
    pb_op(b, OP_LOCAL_TAKE, 1);
    pb_op(b, OP_INT8, 5);
    pb_op(b, OP_CALL, 1);
    pb_op(b, OP_CALL, 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_CLOSURE, plus);
    pb_op(b, OP_CLOSURE, plus);
    pb_op(b, OP_EQ);
    pb_op(b, OP_NATIVE, print, 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_CLOSURE, plus);
    pb_op(b, OP_CALL, 0);
    pb_op(b, OP_RETURN);
    /* x -> x <= 0 ? captured : self(x - 1) + 1 */
    uint32_t inner = pb_function(b, "inner", 1, 1, 1);
    ck_assert_uint_eq(inner, plus + 2);
    pb_parent(b, inner - 1);
    pb_capture(b, true, 0);
    uint32_t deeper = pb_label(b);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_LE);
    pb_op(b, OP_JUMP_IF_FALSE, deeper);
    pb_op(b, OP_CAPTURE_GET, 0);
    pb_op(b, OP_RETURN);
    pb_place(b, deeper);
    pb_op(b, OP_SELF);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_SUB);
    pb_op(b, OP_CALL, 1);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN);
    build_open();
    struct run_end end = run_call("main", NULL, 0);
    ck_assert_str_eq(run_host_printed(&host), "11 3\n105\ntrue\n");
    ck_assert_str_eq(run_outcome(&end), "call: plus takes 1 to 2 arguments, not 0");
    run_host_close(&host);
}
END_TEST

/* Loops over ints, a list, a map by pairs, a str; the list is a snapshot. */
START_TEST(test_loops)
{
    build_begin();
    uint32_t print = build_print();
    build_function("each", 1, 3); /* 0 container, 1 item */
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_ITER_BEGIN);
    uint32_t again = pb_label(b), done = pb_label(b);
    pb_place(b, again);
    pb_op(b, OP_ITER_NEXT, 1, done);
    pb_op(b, OP_NIL);
    pb_op(b, OP_LOCAL_SET, 0); /* the loop holds its own reference */
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_NATIVE, print, 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_LOOP, again);
    pb_place(b, done);
    pb_op(b, OP_ITER_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    build_function("pairs", 1, 3);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_ITER_BEGIN);
    again = pb_label(b), done = pb_label(b);
    pb_place(b, again);
    pb_op(b, OP_ITER_NEXT_PAIR, 1, 2, done);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_LOCAL_GET, 2);
    pb_op(b, OP_NATIVE, print, 2);
    pb_op(b, OP_RETURN); /* out of the loop: its state is let go */
    pb_place(b, done);
    pb_op(b, OP_ITER_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    build_function("sum", 2, 4);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_LOCAL_SET, 3);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_INTLOOP_BEGIN);
    again = pb_label(b), done = pb_label(b);
    pb_place(b, again);
    pb_op(b, OP_INTLOOP_NEXT, 2, done);
    pb_op(b, OP_LOCAL_GET, 2);
    pb_op(b, OP_LOCAL_ADD, 3);
    pb_op(b, OP_LOOP, again);
    pb_place(b, done);
    pb_op(b, OP_INTLOOP_END);
    pb_op(b, OP_LOCAL_GET, 3);
    pb_op(b, OP_RETURN);
    build_open();
    struct run_end end = run_call("each", (cy_value[]){list_value(3, 4)}, 1);
    run_end_clear(&end);
    end = run_call("each", (cy_value[]){text_value("AB")}, 1);
    run_end_clear(&end);
    end = run_call("pairs", (cy_value[]){list_value(3, 4)}, 1);
    run_end_clear(&end);
    ck_assert_str_eq(run_host_printed(&host), "3\n4\n65\n66\n0 3\n");
    ck_assert_str_eq(run_text("each", (cy_value[]){value_int(3)}, 1),
                     "type: cannot loop over int (list, map, range or str)");
    ck_assert_str_eq(run_text("sum", (cy_value[]){value_int(1), value_int(101)}, 2), "5050");
    ck_assert_str_eq(run_text("sum", (cy_value[]){value_int(5), value_int(-5)}, 2), "0");
    /* The last int there is ends the loop instead of overflowing. */
    ck_assert_str_eq(run_text("sum", (cy_value[]){value_int(INT64_MAX - 1), value_int(INT64_MAX)}, 2),
                     "9223372036854775806");
    run_host_close(&host);
}
END_TEST

/* xs = [] ; 10,000 appends and nested writes without a copy; one shared holder costs one copy per level. */
START_TEST(test_copies_are_counted)
{
    static const char *const fields[] = {"f", "g", NULL};
    build_begin();
    uint32_t record = pb_record(b, "Pair", fields);
    build_function("grow", 0, 3);
    pb_op(b, OP_LIST, 0);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_CONST, pb_str(b, "s"));
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_ADD); /* a str that only the local holds */
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_CONST, pb_int(b, 10000));
    pb_op(b, OP_INTLOOP_BEGIN);
    uint32_t again = pb_label(b), done = pb_label(b);
    pb_place(b, again);
    pb_op(b, OP_INTLOOP_NEXT, 2, done);
    pb_op(b, OP_LOCAL_GET, 2);
    pb_op(b, OP_LOCAL_APPEND, 0);
    pb_op(b, OP_CONST, pb_str(b, "x"));
    pb_op(b, OP_LOCAL_ADD, 1);
    pb_op(b, OP_LOOP, again);
    pb_place(b, done);
    pb_op(b, OP_INTLOOP_END);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LIST, 1); /* one shared holder */
    pb_op(b, OP_LOCAL_SET, 2);
    pb_op(b, OP_INT8, -1);
    pb_op(b, OP_LOCAL_APPEND, 0);
    pb_op(b, OP_INT8, -2);
    pb_op(b, OP_LOCAL_APPEND, 0);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_RETURN);
    /* p = [Pair([1], 2)]; p[0].f[0] = 9, in place; then with a second holder of p */
    build_function("nested", 0, 2);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_INT8, 2);
    pb_op(b, OP_RECORD, record, 2);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_LOCAL_SET, 0);
    for (int shared = 0; shared < 2; shared++) {
        pb_op(b, OP_INT8, 0);
        pb_op(b, OP_CONST, pb_str(b, "f"));
        pb_op(b, OP_INT8, 0);
        pb_op(b, OP_INT8, 9 + shared);
        pb_op(b, OP_LOCAL_PATH_SET, 0, 3);
        if (shared) break;
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_LOCAL_SET, 1);
    }
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_LIST, 2);
    pb_op(b, OP_RETURN);
    build_open();
    struct run_end end = run_call("grow", NULL, 0);
    ck_assert_int_eq(end.outcome, CALL_RETURNED);
    ck_assert_uint_eq(string_bytes(end.value).count, 10002);
    ck_assert_uint_eq(host.vm->counters.copies, 1);
    run_end_clear(&end);
    host.vm->counters.copies = 0;
    ck_assert_str_eq(run_text("nested", NULL, 0), "[[Pair(f: [10], g: 2)], [Pair(f: [9], g: 2)]]");
    ck_assert_uint_eq(host.vm->counters.copies, 3); /* the list, the record, the inner list: one level each */
    run_host_close(&host);
}
END_TEST

/* Fields and keys: reading through the cache, writing, and what a wrong name says. */
START_TEST(test_fields)
{
    static const char *const fields[] = {"name", "weight", NULL};
    build_begin();
    uint32_t record = pb_record(b, "Route", fields), name = pb_str(b, "name");
    build_function("name", 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_FIELD_GET, name);
    pb_op(b, OP_RETURN);
    build_function("make", 0, 1);
    pb_op(b, OP_CONST, pb_str(b, "a"));
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_RECORD, record, 2);
    pb_op(b, OP_RETURN);
    build_function("map", 0, 1);
    pb_op(b, OP_CONST, name);
    pb_op(b, OP_CONST, pb_str(b, "m"));
    pb_op(b, OP_INT8, 3);
    pb_op(b, OP_INT8, 4);
    pb_op(b, OP_MAP, 2);
    pb_op(b, OP_RETURN);
    build_function("set", 2, 2); /* 0[1] = 5 */
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_INT8, 5);
    pb_op(b, OP_LOCAL_PATH_SET, 0, 1);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_RETURN);
    build_function("is", 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_IS_RECORD, record);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_IS_KIND, KIND_MAP);
    pb_op(b, OP_LIST, 2);
    pb_op(b, OP_RETURN);
    build_function("check", 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_CHECK_RECORD, record);
    pb_op(b, OP_RETURN);
    build_open();
    struct run_end route = run_call("make", NULL, 0), map = run_call("map", NULL, 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(run_text("name", (cy_value[]){value_ref(route.value)}, 1), "a");
        ck_assert_str_eq(run_text("name", (cy_value[]){value_ref(map.value)}, 1), "m");
    }
    ck_assert_str_eq(run_text("name", (cy_value[]){value_int(1)}, 1), "field: int has no field \"name\"");
    ck_assert_str_eq(binary("set", value_ref(route.value), text_value("weigt")),
                     "field: Route has no field \"weigt\" (did you mean \"weight\"?)");
    ck_assert_str_eq(binary("set", value_ref(route.value), text_value("weight")),
                     "Route(name: \"a\", weight: 5)");
    ck_assert_str_eq(binary("set", value_ref(map.value), value_int(3)), "{\"name\": \"m\", 3: 5}");
    ck_assert_str_eq(binary("set", list_value(1, 2), value_int(2)),
                     "index: index 2 is outside 0..1 of a list of 2");
    ck_assert_str_eq(binary("set", text_value("abc"), value_int(2)), "type: cannot write inside str");
    ck_assert_str_eq(run_text("is", (cy_value[]){value_ref(map.value)}, 1), "[false, true]");
    ck_assert_str_eq(run_text("is", (cy_value[]){value_ref(route.value)}, 1), "[true, false]");
    ck_assert_str_eq(run_text("check", (cy_value[]){value_ref(map.value)}, 1),
                     "type: expected Route, got map");
    run_end_clear(&route);
    run_end_clear(&map);
    run_host_close(&host);
}
END_TEST

START_TEST(test_globals)
{
    build_begin();
    uint32_t count = pb_global(b, "count"), items = pb_global(b, "items");
    build_function("step", 0, 0);
    pb_op(b, OP_INT8, 3);
    pb_op(b, OP_GLOBAL_ADD, count);
    pb_op(b, OP_GLOBAL_GET, count);
    pb_op(b, OP_GLOBAL_APPEND, items);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_GLOBAL_PATH_SET, items, 1);
    pb_op(b, OP_GLOBAL_GET, items);
    pb_op(b, OP_TEXT, 1);
    pb_op(b, OP_RETURN);
    uint32_t init = pb_function(b, "", 0, 0, 0);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_GLOBAL_SET, count);
    pb_op(b, OP_LIST, 0);
    pb_op(b, OP_GLOBAL_SET, items);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_init(b, init);
    build_open();
    ck_assert_str_eq(run_text("step", NULL, 0), "[1]");
    ck_assert_str_eq(run_text("step", NULL, 0), "[1, 6]");
    ck_assert_uint_eq(host.vm->counters.copies, 0);
    run_host_close(&host);
}
END_TEST

/* try { defer { print "d" ; fail "own" } ; fail "first" } catch e { e.message } -- as the compiler lays it
 * out. */
START_TEST(test_try_and_defer)
{
    build_begin();
    uint32_t print = build_print(), fail = pb_native(b, "fail");
    build_function("main", 0, 1);
    uint32_t caught = pb_label(b), defer = pb_label(b), own = pb_label(b);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_DEFER_BEGIN, defer);
    pb_op(b, OP_CONST, pb_str(b, "first"));
    pb_op(b, OP_NATIVE, fail, 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_DEFER_END);
    pb_op(b, OP_TRY_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_place(b, defer);
    pb_op(b, OP_TRY_BEGIN, own);
    pb_op(b, OP_CONST, pb_str(b, "d"));
    pb_op(b, OP_NATIVE, print, 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_CONST, pb_str(b, "own"));
    pb_op(b, OP_NATIVE, fail, 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_TRY_END);
    pb_op(b, OP_RETHROW);
    pb_place(b, own);
    pb_op(b, OP_DEFER_ATTACH);
    pb_op(b, OP_RETHROW);
    pb_place(b, caught);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_FIELD_GET, pb_str(b, "message"));
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_FIELD_GET, pb_str(b, "stack"));
    pb_op(b, OP_LIST, 2);
    pb_op(b, OP_RETURN);
    build_open();
    struct run_end end = run_call("main", NULL, 0);
    ck_assert_str_eq(run_host_printed(&host), "d\n");
    ck_assert_str_eq(run_outcome(&end), "[\"first\", [\"main (main.han:10:5)\", \"defer: value: own\"]]");
    run_host_close(&host);
}
END_TEST

/* What a native is told it got, before its body runs. */
START_TEST(test_native_arguments_are_checked)
{
    build_begin();
    uint32_t fail = pb_native(b, "fail");
    build_function("main", 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_NATIVE, fail, 1);
    pb_op(b, OP_RETURN);
    build_function("value", 0, 0);
    pb_op(b, OP_NATIVE_FUNCTION, fail);
    pb_op(b, OP_CALL, 0);
    pb_op(b, OP_RETURN);
    build_open();
    ck_assert_str_eq(run_text("main", (cy_value[]){value_int(1)}, 1),
                     "type: fail: argument 1 (message) must be str, not int");
    ck_assert_str_eq(run_text("main", (cy_value[]){text_value("m")}, 1), "value: m");
    ck_assert_str_eq(run_text("value", NULL, 0), "call: fail takes 1 to 3 arguments, not 0");
    run_host_close(&host);
}
END_TEST

/* A native that the binary lacks, or that needs what was not granted, is refused when the instance is
 * made. */
START_TEST(test_natives_are_refused_at_load)
{
    build_begin();
    uint32_t read = pb_native(b, "fs.read");
    build_function("main", 0, 0);
    pb_op(b, OP_CONST, pb_str(b, "x"));
    pb_op(b, OP_NATIVE, read, 1);
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, true);
    ck_assert(run_host_open(&host, NULL, 0));
    struct instance *instance;
    cy_value error;
    ck_assert(cy_is(instance_new(host.vm, program, &instance, &error), CY_ERR_UNSUPPORTED));
    cy_bytes message = error_message(host.vm, error);
    ck_assert(cy_bytes_equal(message, CY_BYTES("fs.read is not part of this binary (main.han:10:5)")));
    value_unref(host.vm, error);
    program_free(&program);
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_interp(void);
Suite *unit_suite_run_interp(void)
{
    Suite *suite = suite_create("run_interp");
    TCase *tests = tcase_create("interp");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_hello);
    tcase_add_test(tests, test_numbers);
    tcase_add_test(tests, test_joining);
    tcase_add_test(tests, test_comparing);
    tcase_add_test(tests, test_indexing);
    tcase_add_test(tests, test_throwing);
    tcase_add_test(tests, test_calls);
    tcase_add_test(tests, test_functions_as_values);
    tcase_add_test(tests, test_loops);
    tcase_add_test(tests, test_copies_are_counted);
    tcase_add_test(tests, test_fields);
    tcase_add_test(tests, test_globals);
    tcase_add_test(tests, test_try_and_defer);
    tcase_add_test(tests, test_native_arguments_are_checked);
    tcase_add_test(tests, test_natives_are_refused_at_load);
    suite_add_tcase(suite, tests);
    return suite;
}
