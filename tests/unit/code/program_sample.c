/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_sample.c: programs that tests start from.
 *
 * In:   nothing. Out: programs. Not here: anything that is refused.
 */
#include "tests/unit/code/program_sample.h"

#include "tests/unit/code/program_builder.h"

#include <math.h>
#include <stdio.h>

struct program *program_sample_smallest(void)
{
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    uint32_t function = pb_function(b, "main", 0, 1, 1);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_export(b, "main", EXPORT_FUNCTION, function);
    return program_builder_finish(&b, true);
}

static void sample_library(struct program_builder *b)
{
    pb_module(b, "std:http", "std:http");
    uint32_t table = pb_global(b, "표");
    uint32_t init = pb_function(b, "", 0, 0, 0);
    pb_line(b, 1, 1);
    pb_op(b, OP_LIST, 0);
    pb_op(b, OP_GLOBAL_SET, table);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_init(b, init);

    uint32_t twice = pb_function(b, "두배", 1, 2, 2);
    uint32_t given = pb_label(b);
    pb_line(b, 4, 5);
    pb_op(b, OP_LOCAL_DEFAULT, 1, given);
    pb_op(b, OP_CONST, pb_int(b, 1000));
    pb_op(b, OP_LOCAL_SET, 1);
    pb_place(b, given);
    pb_line(b, 5, 12);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_MUL);
    pb_op(b, OP_RETURN);
    pb_export(b, "두배", EXPORT_FUNCTION, twice);
    pb_export(b, "표", EXPORT_GLOBAL, table);
}

/* Every opcode that takes two values and leaves one, and so on: no meaning, full coverage. */
static void sample_operators(struct program_builder *b)
{
    static const uint8_t binary[] = {
        OP_ADD,         OP_SUB, OP_MUL, OP_DIV, OP_MOD, OP_BIT_AND, OP_BIT_OR, OP_BIT_XOR, OP_SHIFT_LEFT,
        OP_SHIFT_RIGHT, OP_EQ,  OP_NE,  OP_LT,  OP_LE,  OP_GT,      OP_GE,     OP_RANGE,   OP_INDEX_GET};
    static const uint8_t unary[] = {OP_NEG, OP_BIT_NOT, OP_NOT, OP_REF};
    pb_function(b, "연산", 2, 2, 300);
    for (size_t i = 0; i < sizeof binary; i++) {
        pb_line(b, 100 + (uint32_t)i, 9);
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_LOCAL_GET_WIDE, 256 + (int64_t)i);
        pb_op(b, binary[i]);
        pb_op(b, OP_LOCAL_SET_WIDE, 299);
    }
    pb_op(b, OP_LOCAL_TAKE_WIDE, 299);
    for (size_t i = 0; i < sizeof unary; i++) pb_op(b, unary[i]);
    pb_op(b, OP_DUP);
    pb_op(b, OP_POP);
    pb_op(b, OP_CHECK_KIND, KIND_INT);
    pb_op(b, OP_IS_KIND, KIND_STR);
    pb_op(b, OP_RETURN);
}

static void sample_loops(struct program_builder *b)
{
    pb_function(b, "돌기", 1, 1, 5);
    uint32_t done = pb_label(b), again = pb_label(b);
    pb_op(b, OP_INT8, -128);
    pb_op(b, OP_INT8, 127);
    pb_op(b, OP_INTLOOP_BEGIN);
    pb_place(b, again);
    pb_op(b, OP_INTLOOP_NEXT, 1, done);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_LOCAL_ADD, 2);
    pb_op(b, OP_LOOP, again);
    pb_place(b, done);
    pb_op(b, OP_INTLOOP_END);

    uint32_t items_done = pb_label(b), items = pb_label(b), skip = pb_label(b);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_ITER_BEGIN);
    pb_place(b, items);
    pb_op(b, OP_ITER_NEXT, 3, items_done);
    pb_op(b, OP_LOCAL_GET, 3);
    pb_op(b, OP_JUMP_IF_FALSE, skip);
    pb_op(b, OP_LOCAL_GET, 3);
    pb_op(b, OP_LOCAL_APPEND, 2);
    pb_place(b, skip);
    pb_op(b, OP_LOOP, items);
    pb_place(b, items_done);
    pb_op(b, OP_ITER_END);

    uint32_t pairs_done = pb_label(b), pairs = pb_label(b);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_ITER_BEGIN);
    pb_place(b, pairs);
    pb_op(b, OP_ITER_NEXT_PAIR, 3, 4, pairs_done);
    pb_op(b, OP_LOCAL_GET, 3);
    pb_op(b, OP_LOCAL_GET, 4);
    pb_op(b, OP_LOCAL_PATH_SET, 2, 1);
    pb_op(b, OP_LOCAL_GET, 3);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_LOCAL_PATH_ADD, 2, 1);
    pb_op(b, OP_LOCAL_GET, 3);
    pb_op(b, OP_LOCAL_GET, 3);
    pb_op(b, OP_LOCAL_GET, 4);
    pb_op(b, OP_LOCAL_PATH_APPEND, 2, 2);
    pb_op(b, OP_LOOP, pairs);
    pb_place(b, pairs_done);
    pb_op(b, OP_ITER_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
}

/* try { defer { } ... } catch e { }, as the compiler lays it out. */
static void sample_handlers(struct program_builder *b)
{
    pb_function(b, "다루기", 1, 1, 2);
    uint32_t caught = pb_label(b), unwinding = pb_label(b), end = pb_label(b), attach = pb_label(b);
    pb_line(b, 40, 3);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_DEFER_BEGIN, unwinding);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_THROW);
    pb_place(b, unwinding); /* handler(try) pending */
    pb_line(b, 42, 3);
    pb_op(b, OP_TRY_BEGIN, attach);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_CALL, 0);
    pb_op(b, OP_POP);
    pb_op(b, OP_TRY_END);
    pb_op(b, OP_RETHROW);
    pb_place(b, attach);
    pb_op(b, OP_DEFER_ATTACH);
    pb_op(b, OP_RETHROW);
    pb_place(b, caught);
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_DEFER_BEGIN, end);
    pb_op(b, OP_DEFER_END);
    pb_op(b, OP_TRUE);
    pb_op(b, OP_RETURN);
    pb_place(b, end);
    pb_op(b, OP_RETHROW);
}

static void sample_closures(struct program_builder *b, uint32_t twice)
{
    uint32_t outer = pb_function(b, "바깥", 1, 1, 2);
    pb_op(b, OP_CLOSURE, outer + 1);
    pb_op(b, OP_SPAWN, 0);
    pb_op(b, OP_RETURN);
    pb_function(b, "안", 0, 0, 0);
    pb_parent(b, outer);
    pb_capture(b, true, 0);
    pb_capture(b, true, 1);
    pb_op(b, OP_CAPTURE_GET, 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_CLOSURE, outer + 2);
    pb_op(b, OP_RETURN);
    pb_function(b, "", 1, 3, 3);
    pb_parent(b, outer + 1);
    pb_capture(b, false, 0);
    pb_op(b, OP_SELF);
    pb_op(b, OP_CAPTURE_GET, 0);
    pb_op(b, OP_ABSENT);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_CALL, 3);
    pb_op(b, OP_CALL_FUNCTION, twice, 1);
    pb_op(b, OP_RETURN);
}

static void sample_main(struct program_builder *b, uint32_t routes, uint32_t route)
{
    uint32_t index = pb_function(b, "handle", 1, 1, 2);
    uint32_t found = pb_label(b), end = pb_label(b);
    pb_line(b, 12, 5);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_FIELD_GET, pb_str(b, "host"));
    pb_op(b, OP_CONST, pb_str(b, "bench.local"));
    pb_op(b, OP_EQ);
    pb_op(b, OP_JUMP_IF_TRUE, found);
    pb_line(b, 13, 9);
    pb_op(b, OP_CONST, pb_int(b, 404));
    pb_op(b, OP_CONST, pb_str(b, "no route for \"\xeb\xb0\xb0\xed\x8f\xac\"\n\x01\xff"));
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_TEXT, 2);
    pb_op(b, OP_NATIVE, pb_native(b, "http.respond"), 2);
    pb_op(b, OP_JUMP, end);
    pb_place(b, found);
    pb_line(b, 15, 5);
    pb_op(b, OP_CONST, pb_str(b, "name"));
    pb_op(b, OP_CONST, pb_float(b, 0.1));
    pb_op(b, OP_RECORD, route, 2);
    pb_op(b, OP_CHECK_RECORD, route);
    pb_op(b, OP_DUP);
    pb_op(b, OP_IS_RECORD, route);
    pb_op(b, OP_CONST, pb_float(b, -0.0));
    pb_op(b, OP_CONST, pb_float(b, (double)NAN));
    pb_op(b, OP_CONST, pb_float(b, (double)-INFINITY));
    pb_op(b, OP_CONST, pb_int(b, INT64_MIN));
    pb_op(b, OP_MAP, 2);
    pb_op(b, OP_GLOBAL_ADD, routes);
    pb_op(b, OP_GLOBAL_APPEND, routes);
    pb_op(b, OP_FALSE);
    pb_op(b, OP_DUP);
    pb_op(b, OP_DUP);
    pb_op(b, OP_DUP);
    pb_op(b, OP_DUP);
    pb_op(b, OP_GLOBAL_PATH_ADD, routes, 1);
    pb_op(b, OP_GLOBAL_PATH_APPEND, routes, 1);
    pb_op(b, OP_GLOBAL_PATH_SET, routes, 1);
    pb_op(b, OP_NATIVE_FUNCTION, pb_native(b, "env.get"));
    pb_place(b, end);
    pb_op(b, OP_RETURN);
    pb_export(b, "handle", EXPORT_FUNCTION, index);

    uint32_t start = pb_function(b, "main", 1, 1, 1);
    pb_line(b, 30, 5);
    pb_op(b, OP_GLOBAL_GET, routes);
    pb_op(b, OP_NATIVE, pb_native(b, "print"), 1);
    pb_op(b, OP_RETURN);
    pb_export(b, "main", EXPORT_FUNCTION, start);
}

struct program *program_sample_broad(void)
{
    static const char *const fields[] = {"name", "무게", NULL};
    static const char *const pair[] = {"left", "right", "rest", NULL};
    struct program_builder *b = program_builder_new();
    sample_library(b);
    pb_module(b, "프로그램/main", "프로그램/main.han");
    uint32_t routes = pb_global(b, "routes");
    uint32_t route = pb_record(b, "Route", fields);
    pb_field_kinds(b, route, 0, RECORD_FIELD_KIND(KIND_STR), PROGRAM_NO_INDEX);
    pb_field_kinds(b, route, 1, RECORD_FIELD_KIND(KIND_FLOAT), PROGRAM_NO_INDEX);
    pb_export(b, "Route", EXPORT_RECORD, route);
    uint32_t two = pb_record(b, "Pair", pair);
    pb_field_kinds(b, two, 0, RECORD_FIELD_KIND(KIND_RECORD), route);
    pb_field_kinds(b, two, 1, RECORD_FIELD_KIND(KIND_RECORD), PROGRAM_NO_INDEX);
    pb_field_kinds(b, two, 2, RECORD_FIELD_KIND(KIND_NIL) | RECORD_FIELD_KIND(KIND_RECORD), route);
    sample_operators(b);
    sample_loops(b);
    sample_handlers(b);
    sample_closures(b, 1);
    sample_main(b, routes, route);
    return program_builder_finish(&b, true);
}

struct program *program_sample_wide(void)
{
    enum { MANY = 65537 };
    struct program_builder *b = program_builder_new();
    char name[16];
    pb_module(b, "main", "main.han");
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "g%u", i);
        pb_global(b, name);
    }
    pb_function(b, "main", 0, 1, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        pb_op(b, OP_CONST_WIDE, pb_int(b, 1000 + i));
        pb_op(b, OP_POP);
    }
    pb_op(b, OP_GLOBAL_GET_WIDE, MANY - 1);
    pb_op(b, OP_FIELD_GET_WIDE, pb_str(b, "field"));
    pb_op(b, OP_GLOBAL_SET_WIDE, MANY - 1);
    pb_op(b, OP_CALL_FUNCTION_WIDE, MANY - 1, 0);
    pb_op(b, OP_POP);
    pb_op(b, OP_CLOSURE_WIDE, MANY - 1);
    pb_op(b, OP_RETURN);
    for (uint32_t i = 1; i < MANY; i++) {
        pb_function(b, "", 0, 0, 0);
        pb_op(b, OP_NIL);
        pb_op(b, OP_RETURN);
    }
    return program_builder_finish(&b, true);
}
