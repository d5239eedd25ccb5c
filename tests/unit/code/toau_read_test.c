/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/toau_read_test.c: proves that no bytes, cut, damaged or made to look huge, are read
 * outside, believed or paid for in memory.
 */
#include "vm/code/toau.h"

#include "tests/unit/code/program_sample.h"
#include "tests/unit/code/program_spoil.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"

#include <check.h>

static struct builder toau_read_test_file(struct program *(*sample)(void))
{
    struct program *program = sample();
    struct builder file;
    builder_init(&file);
    ck_assert_uint_eq(toau_write(program, &file).code, CY_ERR_NONE);
    program_free(&program);
    return file;
}

/* Loads from a block of its own, so that a sanitizer sees the first byte past the end. */
static enum code_rule toau_read_test_load(cy_bytes bytes, cy_err *err_out)
{
    uint8_t *block = mem_alloc(bytes.count);
    if (bytes.count) memcpy(block, bytes.data, bytes.count);
    struct program *program = NULL;
    struct code_failure failure;
    *err_out = toau_load(cy_bytes_of(block, bytes.count), &program, &failure);
    ck_assert_int_eq(cy_failed(*err_out), program == NULL);
    if (cy_failed(*err_out)) ck_assert_uint_eq(err_out->code, CY_ERR_BAD_FORMAT);
    program_free(&program);
    mem_free(block);
    return failure.rule;
}

START_TEST(test_a_file_cut_anywhere_is_refused)
{
    struct builder file = toau_read_test_file(_i ? program_sample_broad : program_sample_smallest);
    cy_err err;
    for (size_t count = 0; count < file.count; count++) {
        enum code_rule rule = toau_read_test_load(cy_bytes_of(file.data, count), &err);
        ck_assert_int_eq(rule, count == 0 ? CODE_RULE_READ_MAGIC : CODE_RULE_READ_LENGTH);
    }
    builder_fini(&file);
}
END_TEST

START_TEST(test_a_changed_byte_is_seen)
{
    struct builder file = toau_read_test_file(program_sample_broad);
    cy_err err;
    for (size_t at = 0; at < file.count; at++) {
        file.data[at] ^= 0x40;
        ck_assert_int_ne(toau_read_test_load(builder_view(&file), &err), CODE_RULE_NONE);
        ck_assert(cy_failed(err));
        file.data[at] ^= 0x40;
    }
    builder_fini(&file);
}
END_TEST

/* Every four bytes in turn become a number that a careless product or allocation would choke on; with the
 * checksum right. */
START_TEST(test_huge_numbers_anywhere)
{
    static const uint32_t numbers[] = {0xffffffff, 0xfffffffe, 0x80000000, 0x7fffffff,
                                       0x40000000, 0x10000000, 0x00010000, 0};
    struct builder file = toau_read_test_file(program_sample_broad);
    for (size_t at = 20; at + 8 <= file.count; at++) {
        uint8_t saved[4];
        memcpy(saved, file.data + at, 4);
        for (size_t k = 0; k < 4; k++) file.data[at + k] = (uint8_t)(numbers[_i] >> (8 * k));
        spoil_repair_checksum(&file);
        cy_err err;
        enum code_rule rule = toau_read_test_load(builder_view(&file), &err);
        if (memcmp(saved, file.data + at, 4) == 0) ck_assert_int_eq(rule, CODE_RULE_NONE);
        memcpy(file.data + at, saved, 4);
    }
    builder_fini(&file);
}
END_TEST

START_TEST(test_memory_is_linear_in_the_file)
{
    /* A table of entries of the least size, and a count one too high for it: refused before anything is
     * allocated. */
    struct builder file = toau_read_test_file(program_sample_smallest);
    uint8_t *count = file.data + 20 + 5;
    *count = 200; /* strings of 4 bytes at least: 200 do not fit into what is left of the section */
    spoil_repair_checksum(&file);
    uint64_t before = mem_allocation_count();
    struct program *program;
    struct code_failure failure;
    ck_assert(cy_failed(toau_read(builder_view(&file), &program, &failure)));
    ck_assert_int_eq(failure.rule, CODE_RULE_READ_COUNT);
    ck_assert_uint_le(mem_allocation_count() - before, 2); /* the program, and the copy of the section */
    builder_fini(&file);
}
END_TEST

START_TEST(test_a_file_past_the_limit_is_not_looked_at)
{
    static const uint8_t magic[] = {0x93, 'T', 'O', 'A', 'U', '\r', '\n', 0x1a};
    struct program *program;
    struct code_failure failure;
    cy_bytes file =
        cy_bytes_of(magic, (size_t)LIMIT_TOAU_BYTES + 1); /* not there: whoever reads on is caught */
    ck_assert_uint_eq(toau_read(file, &program, &failure).code, CY_ERR_BAD_FORMAT);
    ck_assert_int_eq(failure.rule, CODE_RULE_READ_SIZE);
}
END_TEST

START_TEST(test_text_files_are_not_toau)
{
    cy_err err;
    ck_assert_int_eq(toau_read_test_load(CY_BYTES("fn main() { }\n"), &err), CODE_RULE_READ_MAGIC);
    ck_assert_int_eq(toau_read_test_load(CY_BYTES(""), &err), CODE_RULE_READ_MAGIC);
    ck_assert_int_eq(toau_read_test_load(CY_BYTES("\x93TOAU\n\x1a"), &err), CODE_RULE_READ_MAGIC);
}
END_TEST

START_TEST(test_failing_allocations)
{
    struct builder file = toau_read_test_file(program_sample_broad);
    cy_err err = CY_ERR(NO_MEMORY);
    uint64_t n = 0;
    for (; cy_failed(err); n++) {
        struct program *program = NULL;
        struct code_failure failure;
        mem_fail_after(n);
        err = toau_load(builder_view(&file), &program, &failure);
        mem_fail_never();
        ck_assert(!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY));
        program_free(&program);
    }
    ck_assert_uint_gt(n, 3);
    builder_fini(&file);
}
END_TEST

Suite *unit_suite_code_toau_read(void);
Suite *unit_suite_code_toau_read(void)
{
    Suite *suite = suite_create("code/toau_read");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 30);
    tcase_add_loop_test(tests, test_a_file_cut_anywhere_is_refused, 0, 2);
    tcase_add_test(tests, test_a_changed_byte_is_seen);
    tcase_add_loop_test(tests, test_huge_numbers_anywhere, 0, 8);
    tcase_add_test(tests, test_memory_is_linear_in_the_file);
    tcase_add_test(tests, test_a_file_past_the_limit_is_not_looked_at);
    tcase_add_test(tests, test_text_files_are_not_toau);
    tcase_add_test(tests, test_failing_allocations);
    suite_add_tcase(suite, tests);
    return suite;
}
