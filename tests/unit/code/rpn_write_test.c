/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/rpn_write_test.c: pins the text of programs as postfix words.
 */
#include "vm/code/rpn.h"

#include "tests/unit/code/program_builder.h"
#include "tests/unit/code/program_sample.h"
#include "vm/base/mem.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

START_TEST(test_a_whole_program)
{
    static const char *const fields[] = {"name", "weight", NULL};
    struct program_builder *b = program_builder_new();
    pb_module(b, "std:text", "std:text");
    pb_function(b, "trim", 1, 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_RETURN);
    pb_export(b, "trim", EXPORT_FUNCTION, 0);
    pb_module(b, "main", "main.han");
    uint32_t global = pb_global(b, "경로");
    uint32_t record = pb_record(b, "Route", fields);
    pb_field_kinds(b, record, 0, RECORD_FIELD_KIND(KIND_STR), PROGRAM_NO_INDEX);
    pb_field_kinds(b, record, 1, RECORD_FIELD_KIND(KIND_RECORD), record);
    uint32_t init = pb_function(b, "", 0, 0, 0);
    pb_init(b, init);
    pb_op(b, OP_INT8, -1);
    pb_op(b, OP_GLOBAL_SET, global);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    uint32_t outer = pb_function(b, "main", 1, 2, 300);
    uint32_t otherwise = pb_label(b), again = pb_label(b), end = pb_label(b);
    pb_line(b, 3, 5);
    pb_place(b, again);
    pb_op(b, OP_LOCAL_GET_WIDE, 299);
    pb_op(b, OP_FIELD_GET, pb_str(b, "host"));
    pb_op(b, OP_IS_KIND, KIND_STR);
    pb_op(b, OP_JUMP_IF_FALSE, otherwise);
    pb_op(b, OP_LOOP, again);
    pb_place(b, otherwise);
    pb_line(b, 4, 1);
    pb_op(b, OP_LOCAL_DEFAULT, 1, end);
    pb_op(b, OP_CONST, pb_float(b, 0.1));
    pb_op(b, OP_POP);
    pb_place(b, end);
    pb_op(b, OP_CONST, pb_str(b, "a \"b\"\\\n\xff\xe2\x80\xae"));
    pb_op(b, OP_CALL_FUNCTION, 0, 1);
    pb_op(b, OP_CONST, pb_int(b, 1000));
    pb_op(b, OP_RECORD, record, 2);
    pb_op(b, OP_NATIVE, pb_native(b, "print"), 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_CLOSURE, outer + 1);
    pb_op(b, OP_RETURN);
    pb_export(b, "main", EXPORT_FUNCTION, outer);
    pb_export(b, "Route", EXPORT_RECORD, record);
    pb_export(b, "경로", EXPORT_GLOBAL, global);
    pb_function(b, "안", 0, 0, 0);
    pb_parent(b, outer);
    pb_capture(b, true, 1);
    pb_op(b, OP_CAPTURE_GET, 0);
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, true);
    struct builder text;
    builder_init(&text);
    ck_assert_uint_eq(rpn_write(program, PROGRAM_NO_INDEX, &text).code, CY_ERR_NONE);
    ck_assert_str_eq(builder_text_view(&text),
                     "toau 1\n"
                     "module 0 \"std:text\" file \"std:text\"\n"
                     "    export \"trim\" f0\n"
                     "module 1 \"main\" file \"main.han\" init f1\n"
                     "    global g0 \"경로\"\n"
                     "    export \"main\" f2\n"
                     "    export \"Route\" r0\n"
                     "    export \"경로\" g0\n"
                     "record r0 module 1 \"Route\" field \"name\" of str field \"weight\" of r0\n"
                     "function f0 \"trim\" module 0 params 1 required 1 locals 1\n"
                     "    0 LOCAL_GET\n"
                     "    RETURN\n"
                     "end\n"
                     "function f1 \"\" module 1 params 0 required 0 locals 0\n"
                     "    -1 INT8\n"
                     "    g0 GLOBAL_SET # 경로\n"
                     "    NIL\n"
                     "    RETURN\n"
                     "end\n"
                     "function f2 \"main\" module 1 params 2 required 1 locals 300\n"
                     "L1:\n"
                     "    @3:5\n"
                     "    299 LOCAL_GET\n"
                     "    \"host\" FIELD_GET\n"
                     "    str IS_KIND\n"
                     "    L2 JUMP_IF_FALSE\n"
                     "    L1 LOOP\n"
                     "L2:\n"
                     "    @4:1\n"
                     "    1 L3 LOCAL_DEFAULT\n"
                     "    0x1.999999999999ap-4 CONST\n"
                     "    POP\n"
                     "L3:\n"
                     "    \"a \\\"b\\\"\\\\\\n\\xff\\xe2\\x80\\xae\" CONST\n"
                     "    f0 1 CALL_FUNCTION # trim\n"
                     "    1000 CONST\n"
                     "    r0 2 RECORD # Route\n"
                     "    print 1 NATIVE\n"
                     "    POP\n"
                     "    f3 CLOSURE # 안\n"
                     "    RETURN\n"
                     "end\n"
                     "function f3 \"안\" module 1 params 0 required 0 locals 0 parent f2 capture local 1\n"
                     "    0 CAPTURE_GET\n"
                     "    RETURN\n"
                     "end\n");

    /* One function alone is the same part of that text. */
    struct builder one;
    builder_init(&one);
    ck_assert_uint_eq(rpn_write(program, 3, &one).code, CY_ERR_NONE);
    ck_assert_ptr_nonnull(strstr(builder_text_view(&text), builder_text_view(&one)));
    builder_fini(&one);
    builder_fini(&text);
    program_free(&program);
}
END_TEST

START_TEST(test_floats_in_hex)
{
    static const struct {
        double number;
        const char *text;
    } rows[] = {{0.0, "0x0p+0"},
                {-0.0, "-0x0p+0"},
                {1.0, "0x1p+0"},
                {-1.5, "-0x1.8p+0"},
                {0.0625, "0x1p-4"},
                {1e300, "0x1.7e43c8800759cp+996"},
                {5e-324, "0x0.0000000000001p-1022"},
                {DBL_MIN, "0x1p-1022"},
                {DBL_MAX, "0x1.fffffffffffffp+1023"},
                {-(double)INFINITY, "-inf"},
                {(double)INFINITY, "inf"},
                {(double)NAN, "nan"}};
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct program_builder *b = program_builder_new();
        pb_module(b, "main", "main.han");
        pb_function(b, "main", 0, 0, 0);
        pb_op(b, OP_CONST, pb_float(b, rows[i].number));
        pb_op(b, OP_RETURN);
        struct program *program = program_builder_finish(&b, true);
        struct builder text;
        char expected[64];
        builder_init(&text);
        ck_assert_uint_eq(rpn_write(program, 0, &text).code, CY_ERR_NONE);
        snprintf(expected, sizeof expected, "    %s CONST\n", rows[i].text);
        ck_assert_ptr_nonnull(strstr(builder_text_view(&text), expected));
        builder_fini(&text);
        program_free(&program);
    }
}
END_TEST

START_TEST(test_failing_allocations)
{
    struct program *program = program_sample_broad();
    cy_err err = CY_ERR(NO_MEMORY);
    for (uint64_t n = 0; cy_failed(err); n++) {
        struct builder text;
        builder_init(&text);
        mem_fail_after(n);
        err = rpn_write(program, PROGRAM_NO_INDEX, &text);
        mem_fail_never();
        ck_assert(!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY));
        builder_fini(&text);
    }
    program_free(&program);
}
END_TEST

Suite *unit_suite_code_rpn_write(void);
Suite *unit_suite_code_rpn_write(void)
{
    Suite *suite = suite_create("code/rpn_write");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_a_whole_program);
    tcase_add_test(tests, test_floats_in_hex);
    tcase_add_test(tests, test_failing_allocations);
    suite_add_tcase(suite, tests);
    return suite;
}
