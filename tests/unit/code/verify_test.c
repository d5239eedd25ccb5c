/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/verify_test.c: proves that every rule of rule.def refuses what breaks it and nothing else
 * (each spoiler of program_spoil.c is met by its own rule), that the samples are accepted, that failures say
 * where, and that a failing allocation is NO_MEMORY and no verdict.
 */
#include "vm/code/verify.h"

#include "tests/unit/code/program_builder.h"
#include "tests/unit/code/program_sample.h"
#include "tests/unit/code/program_spoil.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/toau.h"

#include <check.h>
#include <stdio.h>

typedef struct program *verify_test_sample(void);
static verify_test_sample *const verify_test_samples[] = {program_sample_broad, program_sample_smallest};

static void verify_test_expect(const struct program *program, enum code_rule rule)
{
    struct code_failure failure;
    cy_err err = verify_program(program, &failure);
    ck_assert_str_eq(code_rule_name(failure.rule), code_rule_name(rule));
    ck_assert_uint_eq(err.code, rule ? CY_ERR_BAD_FORMAT : CY_ERR_NONE);
}

START_TEST(test_samples_are_accepted)
{
    verify_test_sample *const samples[] = {program_sample_smallest, program_sample_broad,
                                           program_sample_wide};
    struct program *program = samples[_i]();
    verify_test_expect(program, CODE_RULE_NONE);
    program_free(&program);
}
END_TEST

/* Spoils a fresh sample, as bytes when it can be written, and gives the rule that refused it. */
static bool verify_test_spoil(const struct spoil *spoil, verify_test_sample *sample, uint64_t seed)
{
    struct spoil_random random = {seed};
    struct program *program = sample(), *loaded = NULL;
    struct code_failure failure = {0};
    struct builder file, text;
    builder_init(&file);
    builder_init(&text);
    bool applies = true;
    if (spoil->program) applies = spoil->program(program, &random);
    if (applies && spoil->program) verify_test_expect(program, spoil->rule);
    ck_assert_uint_eq(toau_write(program, &file).code, CY_ERR_NONE);
    if (spoil->file) applies = spoil->file(&file, &random);
    if (applies) {
        if (spoil->rule != CODE_RULE_READ_CHECKSUM) spoil_repair_checksum(&file);
        ck_assert_uint_eq(toau_load(builder_view(&file), &loaded, &failure).code, CY_ERR_BAD_FORMAT);
        ck_assert_str_eq(code_rule_name(failure.rule), code_rule_name(spoil->rule));
        for (int korean = 0; korean < 2; korean++) {
            builder_clear(&text);
            code_failure_describe(&failure, korean, &text);
            ck_assert_ptr_nonnull(strstr(builder_text_view(&text), code_rule_name(spoil->rule)));
            ck_assert_ptr_nonnull(strstr(builder_text_view(&text), code_rule_text(spoil->rule, korean)));
        }
    }
    builder_fini(&text);
    builder_fini(&file);
    program_free(&program);
    return applies;
}

START_TEST(test_each_spoiler_meets_its_rule)
{
    bool met[CODE_RULE_COUNT] = {
        [CODE_RULE_NONE] = true, [CODE_RULE_READ_SIZE] = true /* toau_read_test.c */};
    for (size_t i = 0; spoil_at(i); i++) {
        const struct spoil *spoil = spoil_at(i);
        bool is_large = spoil->rule == CODE_RULE_CODE_SIZE;
        for (size_t sample = 0; sample < CY_COUNT_OF(verify_test_samples); sample++)
            for (uint64_t seed = 0; seed < (is_large ? 1 : 12); seed++)
                if (verify_test_spoil(spoil, verify_test_samples[sample], seed)) met[spoil->rule] = true;
    }
    for (unsigned rule = 0; rule < CODE_RULE_COUNT; rule++)
        ck_assert_msg(met[rule], "no spoiler meets %s", code_rule_name((enum code_rule)rule));
}
END_TEST

START_TEST(test_failures_say_where)
{
    struct program *program = program_sample_broad();
    struct code_failure failure;
    struct builder text;
    builder_init(&text);
    program->functions[1].code[0] = 0xff;
    ck_assert(cy_failed(verify_program(program, &failure)));
    code_failure_describe(&failure, false, &text);
    ck_assert_str_eq(builder_text_view(&text),
                     "rule OPCODE_UNKNOWN: an unknown opcode (function 1 `두배`, code offset 0)");
    builder_clear(&text);
    code_failure_describe(&failure, true, &text);
    ck_assert_str_eq(builder_text_view(&text),
                     "규칙 OPCODE_UNKNOWN: 모르는 명령입니다 (함수 1 `두배`, 코드 위치 0)");

    /* The name outlives the program when the file does. */
    struct builder file;
    struct program *loaded;
    builder_init(&file);
    ck_assert_uint_eq(toau_write(program, &file).code, CY_ERR_NONE);
    program_free(&program);
    ck_assert(cy_failed(toau_load(builder_view(&file), &loaded, &failure)));
    ck_assert(cy_bytes_equal(failure.function_name, CY_BYTES("두배")));
    ck_assert(failure.function_name.data > file.data && failure.function_name.data < file.data + file.count);
    builder_fini(&file);
    builder_fini(&text);
}
END_TEST

START_TEST(test_failing_allocations_are_no_verdict)
{
    struct program *program = program_sample_broad();
    struct code_failure failure;
    cy_err err = CY_ERR(NO_MEMORY);
    uint64_t n = 0;
    for (; cy_failed(err); n++) {
        mem_fail_after(n);
        err = verify_program(program, &failure);
        mem_fail_never();
        ck_assert(!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY));
    }
    ck_assert_uint_gt(n, 5);
    program_free(&program);
}
END_TEST

START_TEST(test_limits_stand_where_they_say)
{
    /* 255 fields, a stack of 65,535 and a name of 4,096 bytes are accepted; one more is a spoiler's
     * business. */
    struct program_builder *b = program_builder_new();
    char names[LIMIT_RECORD_FIELDS][16], long_name[LIMIT_PROGRAM_NAME_BYTES + 1];
    const char *fields[LIMIT_RECORD_FIELDS + 1] = {0};
    for (int i = 0; i < LIMIT_RECORD_FIELDS; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        fields[i] = names[i];
    }
    memset(long_name, 'n', LIMIT_PROGRAM_NAME_BYTES);
    long_name[LIMIT_PROGRAM_NAME_BYTES] = 0;
    pb_module(b, "main", "main.han");
    pb_record(b, "Wide", fields);
    pb_global(b, long_name);
    pb_function(b, "main", 0, 0, 0);
    for (int i = 0; i < LIMIT_FUNCTION_STACK; i++) pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, true);
    ck_assert_uint_eq(program->functions[0].stack_max, LIMIT_FUNCTION_STACK);
    verify_test_expect(program, CODE_RULE_NONE);
    program_free(&program);
}
END_TEST

Suite *unit_suite_code_verify(void);
Suite *unit_suite_code_verify(void)
{
    Suite *suite = suite_create("code/verify");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_samples_are_accepted, 0, 3);
    tcase_add_test(tests, test_each_spoiler_meets_its_rule);
    tcase_add_test(tests, test_failures_say_where);
    tcase_add_test(tests, test_failing_allocations_are_no_verdict);
    tcase_add_test(tests, test_limits_stand_where_they_say);
    suite_add_tcase(suite, tests);
    return suite;
}
