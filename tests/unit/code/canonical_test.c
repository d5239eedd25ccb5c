/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/canonical_test.c: proves that what an emitter leaves behind becomes the one form that
 * verify accepts, that jumps and lines follow their instructions, and that doing it twice changes nothing.
 */
#include "vm/code/program.h"

#include "tests/unit/code/program_builder.h"
#include "tests/unit/code/program_sample.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"
#include "vm/code/rpn.h"
#include "vm/code/toau.h"

#include <check.h>
#include <math.h>

static void canonical_test_accepts(const struct program *program)
{
    struct code_failure failure;
    cy_err err = verify_program(program, &failure);
    ck_assert_str_eq(code_rule_name(failure.rule), "NONE");
    ck_assert(!cy_failed(err));
}

static struct program *canonical_test_finish(struct program_builder *b)
{
    struct program *program = program_builder_finish(&b, false);
    ck_assert_uint_eq(program_canonicalise(program).code, CY_ERR_NONE);
    canonical_test_accepts(program);
    return program;
}

START_TEST(test_pools_lose_duplicates_and_what_is_unused)
{
    struct program_builder *b = program_builder_new();
    pb_raw_string(b, CY_BYTES("unused"));
    pb_module(b, "main", "main.han");
    pb_int(b, 12345678); /* unused */
    uint32_t first = pb_raw_constant(b, (struct constant){CONSTANT_INT, {.i = 1000}});
    uint32_t second = pb_raw_constant(b, (struct constant){CONSTANT_INT, {.i = 1000}});
    uint32_t text = pb_raw_string(b, CY_BYTES("main")); /* equals the module's name */
    uint32_t str = pb_raw_constant(b, (struct constant){CONSTANT_STR, {.string = text}});
    uint32_t payload_nan = pb_raw_constant(b, (struct constant){CONSTANT_FLOAT, {.f = nan("77")}});
    uint32_t plain_nan = pb_raw_constant(b, (struct constant){CONSTANT_FLOAT, {.f = -(double)NAN}});
    uint32_t minus_zero = pb_float(b, -0.0), zero = pb_float(b, 0.0);
    pb_native(b, "http.upstream"); /* unused: its capability goes too */
    uint32_t print = pb_native(b, "print");
    pb_function(b, "main", 0, 0, 0);
    const uint32_t constants[] = {second, str, first, payload_nan, plain_nan, zero, minus_zero};
    for (size_t i = 0; i < CY_COUNT_OF(constants); i++) pb_op(b, OP_CONST_WIDE, constants[i]);
    pb_op(b, OP_NATIVE, print, CY_COUNT_OF(constants));
    pb_op(b, OP_RETURN);
    struct program *program = canonical_test_finish(b);
    ck_assert_uint_eq(program->constant_count, 5);
    ck_assert_int_eq(program->constants[0].as.i, 1000);
    ck_assert_uint_eq(program->constants[1].kind, CONSTANT_STR);
    ck_assert_uint_eq(program->native_count, 1);
    ck_assert_uint_eq(program->capabilities, CAPABILITY_NONE);
    ck_assert_uint_eq(program->string_count, 3);
    ck_assert(cy_bytes_equal(program->strings[0], CY_BYTES("main"))); /* the constant comes first */
    ck_assert(cy_bytes_equal(program->strings[1], CY_BYTES("print")));
    ck_assert(cy_bytes_equal(program->strings[2], CY_BYTES("main.han")));
    program_free(&program);
}
END_TEST

START_TEST(test_operands_shrink_and_jumps_and_lines_follow)
{
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    pb_function(b, "main", 1, 1, 2);
    uint32_t again = pb_label(b), end = pb_label(b);
    pb_line(b, 1, 1);
    pb_op(b, OP_LOCAL_GET_WIDE, 0);
    pb_line(b, 1, 1); /* repeats */
    pb_op(b, OP_LOCAL_SET_WIDE, 1);
    pb_place(b, again);
    pb_line(b, 2, 1);
    pb_op(b, OP_LOCAL_GET_WIDE, 1);
    pb_line(b, 2, 9); /* replaced by the next, at the same offset */
    pb_line(b, 2, 5);
    pb_op(b, OP_JUMP_IF_FALSE, end);
    pb_op(b, OP_LOOP, again);
    pb_place(b, end);
    pb_line(b, 3, 1);
    pb_op(b, OP_CONST_WIDE, pb_int(b, -128)); /* INT8's business */
    pb_op(b, OP_RETURN);
    pb_line(b, 9, 9); /* behind the last instruction */
    struct program *program = canonical_test_finish(b);
    const struct function *function = &program->functions[0];
    static const uint8_t expected[] = {OP_LOCAL_GET,
                                       0,
                                       OP_LOCAL_SET,
                                       1,
                                       OP_LOCAL_GET,
                                       1,
                                       OP_JUMP_IF_FALSE,
                                       16,
                                       0,
                                       0,
                                       0,
                                       OP_LOOP,
                                       4,
                                       0,
                                       0,
                                       0,
                                       OP_INT8,
                                       0x80,
                                       OP_RETURN};
    ck_assert_uint_eq(function->code_bytes, sizeof expected);
    ck_assert_mem_eq(function->code, expected, sizeof expected);
    static const struct line_entry lines[] = {{0, 1, 1}, {4, 2, 1}, {6, 2, 5}, {16, 3, 1}};
    ck_assert_uint_eq(function->line_count, CY_COUNT_OF(lines));
    ck_assert_mem_eq(function->lines, lines, sizeof lines);
    ck_assert_uint_eq(function->stack_max, 1);
    ck_assert_uint_eq(program->constant_count, 0);
    program_free(&program);
}
END_TEST

START_TEST(test_a_narrow_operand_grows_when_its_new_number_needs_it)
{
    struct program_builder *b = program_builder_new();
    enum { MANY = 65536 };
    uint32_t late = pb_int(b, 7000000); /* number 0 now, 65536 in first-use order */
    pb_module(b, "main", "main.han");
    pb_function(b, "main", 0, 0, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        pb_op(b, OP_CONST_WIDE, pb_int(b, 1000 + (int64_t)i));
        pb_op(b, OP_POP);
    }
    pb_op(b, OP_CONST, late);
    pb_op(b, OP_RETURN);
    struct program *program = canonical_test_finish(b);
    const struct function *function = &program->functions[0];
    ck_assert_uint_eq(function->code[function->code_bytes - 6], OP_CONST_WIDE);
    ck_assert_uint_eq(function->code_bytes, MANY * 4 + 6);
    program_free(&program);
}
END_TEST

START_TEST(test_twice_is_once)
{
    struct program *(*const samples[])(void) = {program_sample_smallest, program_sample_broad};
    struct program *program = samples[_i]();
    struct builder once, twice;
    builder_init(&once);
    builder_init(&twice);
    ck_assert_uint_eq(toau_write(program, &once).code, CY_ERR_NONE);
    ck_assert_uint_eq(program_canonicalise(program).code, CY_ERR_NONE);
    ck_assert_uint_eq(toau_write(program, &twice).code, CY_ERR_NONE);
    ck_assert(cy_bytes_equal(builder_view(&once), builder_view(&twice)));
    builder_fini(&once);
    builder_fini(&twice);
    program_free(&program);
}
END_TEST

START_TEST(test_what_points_nowhere_is_malformed)
{
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    pb_function(b, "main", 0, 0, 0);
    pb_line(b, 1, 1);
    pb_op(b, OP_CONST, _i == 0 ? 9 : pb_int(b, 1000));
    uint32_t end = pb_label(b);
    pb_op(b, OP_JUMP_IF_TRUE, end);
    pb_place(b, end);
    pb_op(b, OP_NATIVE, _i == 1 ? 9 : pb_native(b, "print"), 0);
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, false);
    switch (_i) {
    case 2: program->functions[0].code[4] += 1; break;   /* a jump into the middle */
    case 3: program->functions[0].code[7] = 0xff; break; /* far outside */
    case 4: program->functions[0].lines[0].offset = 1; break;
    case 5: program->functions[0].code_bytes -= 2; break; /* NATIVE is cut */
    case 6: program->functions[0].name = 99; break;
    case 7: program->modules[0].file = UINT32_MAX; break;
    case 8: program->natives[0].name = 99; break;
    case 9: program->constants[0].kind = 0; break;
    }
    ck_assert_uint_eq(program_canonicalise(program).code, CY_ERR_BAD_FORMAT);
    program_free(&program);
}
END_TEST

START_TEST(test_failing_allocations)
{
    cy_err err = CY_ERR(NO_MEMORY);
    for (uint64_t n = 0; cy_failed(err); n++) {
        struct program *program = program_sample_broad();
        mem_fail_after(n);
        err = program_canonicalise(program);
        mem_fail_never();
        ck_assert(!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY));
        if (!cy_failed(err)) canonical_test_accepts(program);
        program_free(&program);
    }
}
END_TEST

Suite *unit_suite_code_canonical(void);
Suite *unit_suite_code_canonical(void)
{
    Suite *suite = suite_create("code/canonical");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, test_pools_lose_duplicates_and_what_is_unused);
    tcase_add_test(tests, test_operands_shrink_and_jumps_and_lines_follow);
    tcase_add_test(tests, test_a_narrow_operand_grows_when_its_new_number_needs_it);
    tcase_add_loop_test(tests, test_twice_is_once, 0, 2);
    tcase_add_loop_test(tests, test_what_points_nowhere_is_malformed, 0, 10);
    tcase_add_test(tests, test_failing_allocations);
    suite_add_tcase(suite, tests);
    return suite;
}
