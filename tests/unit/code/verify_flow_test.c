/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/verify_flow_test.c: proves what the flow of code may be: where handlers arrive, what
 * merges, and that no code makes the verifier slow.
 */
#include "vm/code/verify.h"

#include "tests/unit/code/program_builder.h"
#include "vm/base/limits.h"

#include <check.h>

static struct program_builder *flow_test_begin(uint16_t locals)
{
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    pb_function(b, "main", 0, 0, locals);
    return b;
}

/* Verifies and frees. `offset` counts when a rule is expected. */
static void flow_test_end(struct program_builder *b, enum code_rule rule, uint32_t offset)
{
    struct program *program = program_builder_finish(&b, true);
    struct code_failure failure;
    cy_err err = verify_program(program, &failure);
    ck_assert_str_eq(code_rule_name(failure.rule), code_rule_name(rule));
    ck_assert_int_eq(cy_failed(err), rule != CODE_RULE_NONE);
    if (rule) ck_assert_uint_eq(failure.offset, offset);
    program_free(&program);
}

START_TEST(test_handler_arrives_with_the_height_before_and_one_value)
{
    struct program_builder *b = flow_test_begin(1);
    uint32_t caught = pb_label(b);
    pb_op(b, OP_TRUE);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_NIL);
    pb_op(b, OP_NIL);
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN); /* drops the handler and what is under it */
    pb_place(b, caught); /* TRUE, error */
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN);
    flow_test_end(b, CODE_RULE_NONE, 0);
}
END_TEST

START_TEST(test_pending_cannot_be_touched)
{
    static const uint8_t touching[] = {OP_POP, OP_DUP, OP_RETURN, OP_THROW, OP_TRY_END, OP_NEG, OP_NOT};
    struct program_builder *b = flow_test_begin(1);
    uint32_t pending = pb_label(b);
    pb_op(b, OP_DEFER_BEGIN, pending);
    pb_op(b, OP_DEFER_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_place(b, pending);
    pb_op(b, touching[_i]);
    if (!(opcode_row(touching[_i])->flags & OPF_END)) pb_op(b, OP_RETHROW);
    flow_test_end(b, CODE_RULE_STACK_KIND, 8);
}
END_TEST

START_TEST(test_attach_keeps_what_is_pending)
{
    struct program_builder *b = flow_test_begin(1);
    uint32_t pending = pb_label(b);
    pb_op(b, OP_DEFER_BEGIN, pending);
    pb_op(b, OP_DEFER_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_place(b, pending);
    pb_op(b, OP_NIL);
    pb_op(b, OP_DEFER_ATTACH);
    pb_op(b, OP_RETHROW);
    flow_test_end(b, CODE_RULE_NONE, 0);
}
END_TEST

START_TEST(test_half_a_loop_state_is_never_taken)
{
    /* Two INTLOOPs make four equal slots; whoever ends three loops takes what is not there. */
    struct program_builder *b = flow_test_begin(1);
    for (int i = 0; i < 2; i++) {
        pb_op(b, OP_NIL);
        pb_op(b, OP_NIL);
        pb_op(b, OP_INTLOOP_BEGIN);
    }
    for (int i = 0; i < 3; i++) pb_op(b, OP_INTLOOP_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    flow_test_end(b, CODE_RULE_STACK_UNDERFLOW, 8);
}
END_TEST

START_TEST(test_jump_into_a_loop_body_without_its_state)
{
    struct program_builder *b = flow_test_begin(1);
    uint32_t body = pb_label(b), done = pb_label(b), next = pb_label(b);
    pb_op(b, OP_NIL);
    pb_op(b, OP_JUMP_IF_TRUE, body);
    pb_op(b, OP_NIL);
    pb_op(b, OP_NIL);
    pb_op(b, OP_INTLOOP_BEGIN);
    pb_place(b, next);
    pb_op(b, OP_INTLOOP_NEXT, 0, done);
    pb_place(b, body);
    pb_op(b, OP_LOOP, next);
    pb_place(b, done);
    pb_op(b, OP_INTLOOP_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    flow_test_end(b, CODE_RULE_STACK_MERGE, 16);
}
END_TEST

START_TEST(test_equal_heights_of_other_kinds_do_not_merge)
{
    struct program_builder *b = flow_test_begin(1);
    uint32_t other = pb_label(b), end = pb_label(b);
    pb_op(b, OP_NIL);
    pb_op(b, OP_JUMP_IF_TRUE, other); /* 1 */
    pb_op(b, OP_NIL);                 /* 6 */
    pb_op(b, OP_NIL);
    pb_op(b, OP_INTLOOP_BEGIN);
    pb_op(b, OP_JUMP, end); /* 9 */
    pb_place(b, other);
    pb_op(b, OP_NIL); /* 14 */
    pb_op(b, OP_ITER_BEGIN);
    pb_place(b, end);
    pb_op(b, OP_NIL); /* 16 */
    pb_op(b, OP_RETURN);
    flow_test_end(b, CODE_RULE_STACK_MERGE, 16);
}
END_TEST

START_TEST(test_loop_reached_only_from_behind_is_dead)
{
    struct program_builder *b = flow_test_begin(1);
    uint32_t head = pb_label(b);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_place(b, head);
    pb_op(b, OP_LOOP, head); /* 2: to itself is not back, but dead comes first */
    flow_test_end(b, CODE_RULE_CODE_DEAD, 2);
}
END_TEST

START_TEST(test_stack_max_counts_the_handler_and_the_error)
{
    struct program_builder *b = flow_test_begin(1);
    uint32_t caught = pb_label(b);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_TRY_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_place(b, caught);
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, true);
    ck_assert_uint_eq(program->functions[0].stack_max, 1);
    program_free(&program);
}
END_TEST

/* 1 MiB of code that takes 65,000 slots at once, again and again, from stacks kept alive by jumps. One step
 * for each slot would be 10^10 steps; the time limit of the test is the assertion. */
START_TEST(test_deep_stacks_at_many_targets_are_cheap)
{
    enum { DEPTH = 65000, ROUNDS = 100000 };
    struct program_builder *b = flow_test_begin(1);
    for (int i = 0; i < DEPTH; i++) pb_op(b, OP_NIL);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t next = pb_label(b);
        pb_op(b, OP_DUP);
        pb_op(b, OP_JUMP_IF_TRUE, next);
        pb_op(b, OP_LIST, DEPTH - 1);
        pb_op(b, OP_RETURN);
        pb_place(b, next);
    }
    pb_op(b, OP_RETURN);
    flow_test_end(b, CODE_RULE_NONE, 0);
}
END_TEST

/* The same with kinds that alternate, so that no run is longer than one. */
START_TEST(test_many_different_deep_stacks_are_cheap)
{
    enum { DEPTH = 30000 };
    struct program_builder *b = flow_test_begin(1);
    uint32_t *labels = (uint32_t[DEPTH]){0};
    for (int i = 0; i < DEPTH; i++) {
        labels[i] = pb_label(b);
        pb_op(b, OP_NIL);
        pb_op(b, OP_TRY_BEGIN, labels[i]);
    }
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    for (int i = DEPTH; i-- > 0;) {
        pb_place(b, labels[i]);
        pb_op(b, OP_ADD);
        pb_op(b, OP_RETURN);
    }
    flow_test_end(b, CODE_RULE_NONE, 0);
}
END_TEST

START_TEST(test_code_of_exactly_the_limit)
{
    struct program_builder *b = flow_test_begin(1);
    for (int i = 0; i < LIMIT_FUNCTION_CODE_BYTES - 2; i += 2) {
        pb_op(b, OP_NIL);
        pb_op(b, OP_POP);
    }
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    flow_test_end(b, CODE_RULE_NONE, 0);
}
END_TEST

Suite *unit_suite_code_verify_flow(void);
Suite *unit_suite_code_verify_flow(void)
{
    Suite *suite = suite_create("code/verify_flow");
    TCase *tests = tcase_create("rules");
    tcase_add_test(tests, test_handler_arrives_with_the_height_before_and_one_value);
    tcase_add_loop_test(tests, test_pending_cannot_be_touched, 0, 7);
    tcase_add_test(tests, test_attach_keeps_what_is_pending);
    tcase_add_test(tests, test_half_a_loop_state_is_never_taken);
    tcase_add_test(tests, test_jump_into_a_loop_body_without_its_state);
    tcase_add_test(tests, test_equal_heights_of_other_kinds_do_not_merge);
    tcase_add_test(tests, test_loop_reached_only_from_behind_is_dead);
    tcase_add_test(tests, test_stack_max_counts_the_handler_and_the_error);
    suite_add_tcase(suite, tests);
    TCase *cost = tcase_create("cost");
    tcase_set_timeout(cost, 30); /* sanitizers on a busy machine; quadratic would be hours */
    tcase_add_test(cost, test_deep_stacks_at_many_targets_are_cheap);
    tcase_add_test(cost, test_many_different_deep_stacks_are_cheap);
    tcase_add_test(cost, test_code_of_exactly_the_limit);
    suite_add_tcase(suite, cost);
    return suite;
}
