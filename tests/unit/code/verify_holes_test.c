/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/verify_holes_test.c: proves that the holes once found in the bytecode loaders of others are closed
 * here: one test for each, named after what was trusted there.
 *
 * Lua (5.2 on x64): hidden typed slots of loops, and descriptors of captured variables. QuickJS: the declared stack
 * size, code of length zero, operands across the end, raw indices of names, products of sizes, objects freed half
 * built.
 * Janet: captures that are not the function's, debug tables, counts times size, `i > len - n`.
 * What cannot be written here at all: a number of captures beside the function's own (CLOSURE has none), a slot index
 * in a debug table (there is none), a jump that turns into another instruction (specialised opcodes are in no file).
 */
#include "tests/unit/code/program_builder.h"
#include "tests/unit/code/program_spoil.h"
#include "vm/base/limits.h"
#include "vm/code/toau.h"
#include "vm/code/toau_internal.h"
#include "vm/code/verify.h"

#include <check.h>
#include <string.h>

static struct program_builder *holes_test_begin(uint16_t locals)
{
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    pb_function(b, "main", 0, 0, locals);
    return b;
}

static void holes_test_refused(struct program *program, enum code_rule rule)
{
    struct code_failure failure;
    ck_assert(cy_failed(verify_program(program, &failure)));
    ck_assert_str_eq(code_rule_name(failure.rule), code_rule_name(rule));
    program_free(&program);
}

/* Some valid program as a file: a closure, a loop, a record, a native, lines. */
static void holes_test_file(struct builder *file)
{
    static const char *const fields[] = {"x", NULL};
    struct program_builder *b = holes_test_begin(2);
    uint32_t start = pb_label(b), end = pb_label(b);
    pb_record(b, "Point", fields);
    pb_global(b, "count");
    pb_line(b, 1, 1);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_INT8, 3);
    pb_op(b, OP_INTLOOP_BEGIN);
    pb_place(b, start);
    pb_op(b, OP_INTLOOP_NEXT, 0, end);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_NATIVE, pb_native(b, "print"), 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_LOOP, start);
    pb_place(b, end);
    pb_op(b, OP_INTLOOP_END);
    pb_op(b, OP_CONST, pb_str(b, "text"));
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, true);
    struct code_failure failure;
    ck_assert(!cy_failed(verify_program(program, &failure)));
    ck_assert(!cy_failed(toau_write(program, file)));
    program_free(&program);
}

/* Lua: a jump into a loop made the loop's control slots out of what the program had pushed. */
START_TEST(test_loop_state_made_of_values)
{
    static const uint8_t next[] = {OP_INTLOOP_NEXT, OP_ITER_NEXT};
    struct program_builder *b = holes_test_begin(1);
    uint32_t end = pb_label(b);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_INT8, 3);
    pb_op(b, next[_i], 0, end);
    pb_place(b, end);
    pb_op(b, OP_RETURN);
    holes_test_refused(program_builder_finish(&b, true), CODE_RULE_STACK_KIND);
}
END_TEST

START_TEST(test_loop_state_of_another_loop)
{
    struct program_builder *b = holes_test_begin(1);
    uint32_t end = pb_label(b);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_INT8, 3);
    pb_op(b, OP_INTLOOP_BEGIN);
    pb_op(b, OP_ITER_NEXT, 0, end);
    pb_place(b, end);
    pb_op(b, OP_ITER_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    holes_test_refused(program_builder_finish(&b, true), CODE_RULE_STACK_KIND);
}
END_TEST

/* Lua: one byte of a descriptor made a closure's variable out of another slot. Janet: out of no slot at all. */
START_TEST(test_capture_outside_the_parent)
{
    static const struct {
        bool from_local;
        uint16_t index;
    } outside[] = {{true, 2}, {true, UINT16_MAX}, {false, 0}, {false, UINT16_MAX}};
    struct program_builder *b = holes_test_begin(2);
    pb_op(b, OP_CLOSURE, 1);
    pb_op(b, OP_RETURN);
    pb_function(b, "", 0, 0, 0);
    pb_parent(b, 0);
    pb_capture(b, outside[_i].from_local, outside[_i].index);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    holes_test_refused(program_builder_finish(&b, true), CODE_RULE_CAPTURE_RANGE);
}
END_TEST

/* Janet: a closure made by a function that is not its parent has captures from a frame of another shape. */
START_TEST(test_closure_made_by_a_stranger)
{
    struct program_builder *b = holes_test_begin(1);
    pb_op(b, OP_CLOSURE, 1);
    pb_op(b, OP_RETURN);
    pb_function(b, "", 0, 0, 0);
    pb_parent(b, 0);
    pb_capture(b, true, 0);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_function(b, "stranger", 0, 0, 0);
    pb_op(b, OP_CLOSURE, 1);
    pb_op(b, OP_RETURN);
    holes_test_refused(program_builder_finish(&b, true), CODE_RULE_CLOSURE_PARENT);
}
END_TEST

/* QuickJS: the declared stack size was believed, and each push past it wrote outside. Too large is refused as well.
 *          */
START_TEST(test_declared_stack_size)
{
    struct program_builder *b = holes_test_begin(0);
    pb_op(b, OP_NIL);
    pb_op(b, OP_NIL);
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, true);
    program->functions[0].stack_max = (uint16_t)(program->functions[0].stack_max + (_i ? 1 : -1));
    holes_test_refused(program, CODE_RULE_STACK_MAX);
}
END_TEST

START_TEST(test_code_of_length_zero)
{
    struct program_builder *b = holes_test_begin(0);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, true);
    program->functions[0].code_bytes = 0;
    program->functions[0].line_count = 0;
    holes_test_refused(program, CODE_RULE_CODE_EMPTY);
}
END_TEST

/* QuickJS, Janet (`i > len - n` below zero): every opcode as the last one, with its operands cut off. */
START_TEST(test_operands_across_the_end)
{
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        if (!opcode_row((uint8_t)opcode)->name) continue;
        for (size_t kept = 0; kept < 12; kept++) {
            uint8_t code[16] = {OP_NIL, (uint8_t)opcode};
            struct instruction instruction;
            bool whole = opcode_decode(cy_bytes_of(code, 2 + kept), 1, &instruction);
            ck_assert(!whole || instruction.next_offset <= 2 + kept);
            if (whole) break;
            struct program_builder *b = holes_test_begin(0);
            pb_op(b, OP_NIL);
            pb_byte(b, (uint8_t)opcode);
            for (size_t i = 0; i < kept; i++) pb_byte(b, 0);
            holes_test_refused(program_builder_finish(&b, false), CODE_RULE_OPERAND_CUT);
        }
    }
}
END_TEST

/* QuickJS: an index of a name came straight from the file. */
START_TEST(test_index_of_a_name)
{
    struct program_builder *b = holes_test_begin(0);
    uint32_t number = pb_int(b, 1000);
    pb_op(b, OP_NIL);
    pb_op(b, OP_FIELD_GET, _i == 0 ? number : 65535);
    pb_op(b, OP_RETURN);
    holes_test_refused(program_builder_finish(&b, false),
                       _i == 0 ? CODE_RULE_OPERAND_NAME : CODE_RULE_OPERAND_CONSTANT);
}
END_TEST

/* QuickJS, Janet: count times size wrapped around. Every count of every section, at values whose products wrap. */
START_TEST(test_counts_whose_products_wrap)
{
    static const uint32_t counts[] = {UINT32_MAX,  0x80000000u, 0x40000000u,
                                      0x20000001u, 0x15555556u, 0x10000000u};
    for (uint8_t id = 1; id < TOAU_SECTION_END; id++) {
        for (size_t i = 0; i < CY_COUNT_OF(counts); i++) {
            if (id == TOAU_SECTION_CAPABILITIES) continue; /* a mask, no count */
            struct builder file;
            builder_init(&file);
            holes_test_file(&file);
            size_t at = TOAU_HEADER_BYTES;
            for (uint8_t k = 1; k < id; k++)
                at += TOAU_SECTION_HEADER_BYTES + cy_load_u32(file.data + at + 1);
            for (unsigned k = 0; k < 4; k++)
                file.data[at + TOAU_SECTION_HEADER_BYTES + k] = (uint8_t)(counts[i] >> 8 * k);
            spoil_repair_checksum(&file);
            struct program *program = NULL;
            struct code_failure failure;
            ck_assert(cy_failed(toau_load(builder_view(&file), &program, &failure)));
            ck_assert_msg(failure.rule == CODE_RULE_READ_COUNT, "section %u: %s", id,
                          code_rule_name(failure.rule));
            ck_assert_ptr_null(program);
            builder_fini(&file);
        }
    }
}
END_TEST

/* QuickJS: what had been built before the fault was freed as if whole. Every length, with a checksum that fits, and
 * each byte turned over: nothing leaks and nothing is freed twice (the sanitizers and the program's arena watch). */
START_TEST(test_half_built_programs_are_freed)
{
    struct builder whole, part;
    builder_init(&whole);
    holes_test_file(&whole);
    for (size_t count = 0; count < whole.count; count++) {
        builder_init(&part);
        builder_bytes(&part, cy_bytes_of(whole.data, count));
        if (count >= 4) spoil_repair_checksum(&part);
        struct program *program = NULL;
        struct code_failure failure;
        ck_assert(cy_failed(toau_load(builder_view(&part), &program, &failure)));
        ck_assert_ptr_null(program);
        builder_fini(&part);
    }
    for (size_t at = 0; at + 4 < whole.count; at++) {
        struct program *program = NULL;
        struct code_failure failure;
        whole.data[at] ^= 0xff;
        spoil_repair_checksum(&whole);
        bool accepted = !cy_failed(toau_load(builder_view(&whole), &program, &failure));
        ck_assert_int_eq(accepted, program != NULL);
        program_free(&program);
        whole.data[at] ^= 0xff;
    }
    builder_fini(&whole);
}
END_TEST

/* Janet: debug tables were trusted. */
START_TEST(test_line_table_outside_the_code)
{
    struct program_builder *b = holes_test_begin(0);
    pb_line(b, 1, 1);
    pb_op(b, OP_NIL);
    pb_line(b, 2, 1);
    pb_op(b, OP_RETURN);
    struct program *program = program_builder_finish(&b, true);
    static const uint32_t offsets[] = {2, 1000, UINT32_MAX, 0};
    program->functions[0].lines[1].offset = offsets[_i];
    holes_test_refused(program, _i == 3 ? CODE_RULE_LINE_ORDER : CODE_RULE_LINE_START);
}
END_TEST

Suite *unit_suite_code_verify_holes(void);
Suite *unit_suite_code_verify_holes(void)
{
    Suite *suite = suite_create("code/verify_holes");
    TCase *tests = tcase_create("holes of others");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_loop_state_made_of_values, 0, 2);
    tcase_add_test(tests, test_loop_state_of_another_loop);
    tcase_add_loop_test(tests, test_capture_outside_the_parent, 0, 4);
    tcase_add_test(tests, test_closure_made_by_a_stranger);
    tcase_add_loop_test(tests, test_declared_stack_size, 0, 2);
    tcase_add_test(tests, test_code_of_length_zero);
    tcase_add_test(tests, test_operands_across_the_end);
    tcase_add_loop_test(tests, test_index_of_a_name, 0, 2);
    tcase_add_test(tests, test_counts_whose_products_wrap);
    tcase_add_test(tests, test_half_built_programs_are_freed);
    tcase_add_loop_test(tests, test_line_table_outside_the_code, 0, 4);
    suite_add_tcase(suite, tests);
    return suite;
}
