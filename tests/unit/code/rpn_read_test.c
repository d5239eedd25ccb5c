/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/rpn_read_test.c: proves that RPN text comes back to the same bytes, and that a wrong one is refused
 * with all its faults. tests/rpn has whole texts, tests/fuzz/rpn_mutate.c damaged ones.
 */
#include "vm/code/rpn.h"

#include "tests/unit/code/program_sample.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/rpn_lex.h"
#include "vm/code/toau.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>

/* What rpn_read made of a text. */
struct outcome {
    cy_err err;
    struct program *program;
    struct builder messages;
    uint32_t unknown_count;
};

static struct outcome read_text(cy_bytes text)
{
    struct outcome outcome = {0};
    struct rpn_options options = {
        .file = CY_BYTES("t.rpn"), .module_name = CY_BYTES("t"), .module_file = CY_BYTES("t.rpn")};
    builder_init(&outcome.messages);
    outcome.err = rpn_read(&options, text, &outcome.program, &outcome.messages, &outcome.unknown_count);
    return outcome;
}

static void forget(struct outcome *outcome)
{
    program_free(&outcome->program);
    builder_fini(&outcome->messages);
}

static void expect_same_bytes(const struct program *program, bool korean)
{
    struct builder text, before, after;
    builder_init(&text), builder_init(&before), builder_init(&after);
    ck_assert(!cy_failed(toau_write(program, &before)));
    ck_assert(!cy_failed(korean ? rpn_write_korean(program, PROGRAM_NO_INDEX, &text)
                                : rpn_write(program, PROGRAM_NO_INDEX, &text)));
    struct outcome outcome = read_text(builder_view(&text));
    ck_assert_msg(!cy_failed(outcome.err), "%s", builder_text_view(&outcome.messages));
    ck_assert_str_eq(builder_text_view(&outcome.messages), "미인식 단어: 0건 (unknown words: 0)\n");
    ck_assert(!cy_failed(toau_write(outcome.program, &after)));
    ck_assert(cy_bytes_equal(builder_view(&before), builder_view(&after)));
    forget(&outcome);
    builder_fini(&after), builder_fini(&before), builder_fini(&text);
}

/* Every opcode, every table, and (sample_wide) indexes that need the wide twins. */
START_TEST(test_samples_come_back)
{
    struct program *(*const samples[])(void) = {program_sample_smallest, program_sample_broad,
                                                program_sample_wide};
    for (size_t i = 0; i < CY_COUNT_OF(samples); i++) {
        struct program *program = samples[i]();
        expect_same_bytes(program, false);
        if (samples[i] != program_sample_wide) expect_same_bytes(program, true); /* 8 MB of text */
        program_free(&program);
    }
}
END_TEST

/* Strings of all bytes, and floats at the edges. */
START_TEST(test_constants_come_back)
{
    static const double floats[] = {0.0,     -0.0,    1.0,      0.1,  5e-324,  -5e-324,
                                    DBL_MIN, DBL_MAX, -DBL_MAX, 1e22, 1.0 / 3, 2.2250738585072e-308};
    for (size_t i = 0; i < CY_COUNT_OF(floats); i++) {
        char word[64];
        double back = 1;
        bool exact;
        snprintf(word, sizeof word, "%a", floats[i]);
        ck_assert_int_eq(rpn_number_float(cy_bytes_from_text(word), &back, &exact), RPN_NUMBER_OK);
        ck_assert(memcmp(&back, &floats[i], sizeof back) == 0);
        snprintf(word, sizeof word, "%.17g", floats[i]);
        if (!strpbrk(word, ".e")) snprintf(word, sizeof word, "%.1f", floats[i]);
        ck_assert_int_eq(rpn_number_float(cy_bytes_from_text(word), &back, &exact), RPN_NUMBER_OK);
        ck_assert(memcmp(&back, &floats[i], sizeof back) == 0);
    }
}
END_TEST

START_TEST(test_numbers)
{
    static const struct {
        const char *word;
        enum rpn_number result;
        bool exact;
    } floats[] = {{"0.5", RPN_NUMBER_OK, true},
                  {"0.1", RPN_NUMBER_OK, false},
                  {"1e3", RPN_NUMBER_OK, true},
                  {"100.250", RPN_NUMBER_OK, true},
                  {"1e23", RPN_NUMBER_OK, false},
                  {"0.0", RPN_NUMBER_OK, true},
                  {"-inf", RPN_NUMBER_OK, true},
                  {"nan", RPN_NUMBER_OK, true},
                  {"1e400", RPN_NUMBER_PAST_RANGE, 0},
                  {"0x1p1024", RPN_NUMBER_PAST_RANGE, 0},
                  {"0x1.fffffffffffffp+1023", RPN_NUMBER_OK, true},
                  {"0x1.00000000000001p0", RPN_NUMBER_TOO_PRECISE, 0},
                  {"0x20000000000001p0", RPN_NUMBER_TOO_PRECISE, 0},
                  {"0x1p-1074", RPN_NUMBER_OK, true},
                  {"0x1p-1075", RPN_NUMBER_TOO_PRECISE, 0},
                  {"0x1p-99999999999", RPN_NUMBER_TOO_PRECISE, 0},
                  {"0x1p", RPN_NUMBER_MALFORMED, 0},
                  {"0xp1", RPN_NUMBER_MALFORMED, 0},
                  {"1.2.3", RPN_NUMBER_MALFORMED, 0},
                  {"1e", RPN_NUMBER_MALFORMED, 0},
                  {"--1.0", RPN_NUMBER_MALFORMED, 0},
                  {"1.0f", RPN_NUMBER_MALFORMED, 0}};
    for (size_t i = 0; i < CY_COUNT_OF(floats); i++) {
        double real;
        bool exact = false;
        enum rpn_number result = rpn_number_float(cy_bytes_from_text(floats[i].word), &real, &exact);
        ck_assert_msg(result == floats[i].result, "%s: %d", floats[i].word, result);
        if (result == RPN_NUMBER_OK) ck_assert_msg(exact == floats[i].exact, "%s", floats[i].word);
    }
    static const struct {
        const char *word;
        enum rpn_number result;
        int64_t value;
    } ints[] = {{"9223372036854775807", RPN_NUMBER_OK, INT64_MAX},
                {"-9223372036854775808", RPN_NUMBER_OK, INT64_MIN},
                {"9223372036854775808", RPN_NUMBER_PAST_RANGE, 0},
                {"-9223372036854775809", RPN_NUMBER_PAST_RANGE, 0},
                {"99999999999999999999999", RPN_NUMBER_PAST_RANGE, 0},
                {"0x7fffffffffffffff", RPN_NUMBER_OK, INT64_MAX},
                {"0x8000000000000000", RPN_NUMBER_PAST_RANGE, 0},
                {"-0x10", RPN_NUMBER_OK, -16},
                {"+5", RPN_NUMBER_OK, 5},
                {"0x", RPN_NUMBER_MALFORMED, 0},
                {"5a", RPN_NUMBER_MALFORMED, 0},
                {"-", RPN_NUMBER_MALFORMED, 0}};
    for (size_t i = 0; i < CY_COUNT_OF(ints); i++) {
        int64_t value = 0;
        enum rpn_number result = rpn_number_int(cy_bytes_from_text(ints[i].word), &value);
        ck_assert_msg(result == ints[i].result && value == ints[i].value, "%s: %d", ints[i].word, result);
    }
}
END_TEST

static void put_unknown_words(struct builder *text, unsigned count)
{
    builder_text(text, "export main\nfunction main params 1\n");
    for (unsigned i = 0; i < count; i++) builder_printf(text, "    %u LOCAL_GETT%u\n", i, i);
    builder_text(text, "    NIL RETURN\nend\n");
}

static unsigned count_of(const char *text, const char *part)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) count++;
    return count;
}

/* 74 words once became 0 in silence. Here each is named, and counted. */
START_TEST(test_unknown_words_are_listed_and_counted)
{
    static const unsigned counts[] = {1, 74, LIMIT_COMPILE_ERRORS, LIMIT_COMPILE_ERRORS + 1, 1000};
    for (size_t i = 0; i < CY_COUNT_OF(counts); i++) {
        unsigned shown = counts[i] < LIMIT_COMPILE_ERRORS ? counts[i] : LIMIT_COMPILE_ERRORS;
        struct builder text, closing;
        builder_init(&text), builder_init(&closing);
        put_unknown_words(&text, counts[i]);
        struct outcome outcome = read_text(builder_view(&text));
        const char *messages = builder_text_view(&outcome.messages);
        ck_assert(cy_is(outcome.err, CY_ERR_BAD_FORMAT));
        ck_assert_uint_eq(outcome.unknown_count, counts[i]);
        ck_assert_uint_eq(count_of(messages, "unknown word `LOCAL_GETT"), shown);
        builder_printf(&closing, "%u error%s\n미인식 단어: %u건 (unknown words: %u)\n", counts[i],
                       counts[i] == 1 ? "" : "s", counts[i], counts[i]);
        ck_assert_str_eq(messages + outcome.messages.count - closing.count, builder_text_view(&closing));
        ck_assert_uint_eq(count_of(messages, "are not shown"), counts[i] > shown);
        forget(&outcome);
        builder_fini(&closing), builder_fini(&text);
    }
}
END_TEST

/* Address space without memory behind it: nothing of it may be read. */
START_TEST(test_a_text_past_the_limit_is_not_looked_at)
{
    size_t bytes = (size_t)LIMIT_RPN_BYTES + 1;
    void *large = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(large, MAP_FAILED);
    struct outcome outcome = read_text(cy_bytes_of(large, bytes));
    munmap(large, bytes);
    ck_assert(cy_is(outcome.err, CY_ERR_BAD_FORMAT));
    ck_assert_ptr_nonnull(strstr(builder_text_view(&outcome.messages), "RPN_BYTES (1073741824 bytes)"));
    forget(&outcome);
}
END_TEST

START_TEST(test_failing_allocations)
{
    struct program *program = program_sample_smallest();
    struct builder text;
    builder_init(&text);
    ck_assert(!cy_failed(rpn_write(program, PROGRAM_NO_INDEX, &text)));
    program_free(&program);
    struct outcome outcome = {.err = CY_ERR(NO_MEMORY)};
    /* The dictionary makes one allocation a word; steps that get larger go through it and everything behind it. */
    for (uint64_t n = 0; cy_failed(outcome.err); n += 1 + n / 64) {
        mem_fail_after(n);
        outcome = read_text(builder_view(&text));
        mem_fail_never();
        ck_assert(!cy_failed(outcome.err) || cy_is(outcome.err, CY_ERR_NO_MEMORY));
        forget(&outcome);
    }
    builder_fini(&text);
}
END_TEST

/* The last allocations one by one: what is behind the dictionary. */
START_TEST(test_failing_last_allocations)
{
    static const char text[] =
        "export main global g record R field a of int\nfunction main param x\n"
        "again: \"a\\n\" CONST POP 1.5 CONST POP x LOCAL_GET print 1 NATIVE RETURN end\n"
        "function inner parent main capture local x 0 CAPTURE_GET RETURN end\n";
    uint64_t before = mem_allocation_count();
    struct outcome outcome = read_text(cy_bytes_from_text(text));
    uint64_t count = mem_allocation_count() - before;
    ck_assert_msg(!cy_failed(outcome.err), "%s", builder_text_view(&outcome.messages));
    forget(&outcome);
    for (uint64_t n = count > 200 ? count - 200 : 0; n < count; n++) {
        mem_fail_after(n);
        outcome = read_text(cy_bytes_from_text(text));
        mem_fail_never();
        ck_assert(cy_failed(outcome.err));
        ck_assert(cy_is(outcome.err, CY_ERR_NO_MEMORY));
        forget(&outcome);
    }
}
END_TEST

/* Hostile shapes: deep, long, empty. Each ends soon, with a reason. */
START_TEST(test_hostile_texts)
{
    static const char *const parts[] = {
        "function ",        "(",  "\"",   "0 ",      "L1: ",      "@1:1 ", "module ",   "record ", "#",
        "capture local 1 ", "x ", "NIL ", "export ", "global g ", "\\",    "function f"};
    for (size_t i = 0; i < CY_COUNT_OF(parts); i++) {
        struct builder text;
        builder_init(&text);
        builder_text(&text, "function f0 ");
        for (unsigned n = 0; n < 20000; n++) builder_text(&text, parts[i]);
        struct outcome outcome = read_text(builder_view(&text));
        ck_assert(cy_is(outcome.err, CY_ERR_BAD_FORMAT));
        ck_assert_uint_lt(outcome.messages.count, 400000);
        forget(&outcome);
        builder_fini(&text);
    }
    struct outcome nothing = read_text(CY_BYTES_NONE);
    ck_assert(cy_is(nothing.err, CY_ERR_BAD_FORMAT));
    ck_assert_ptr_nonnull(strstr(builder_text_view(&nothing.messages), "MODULE_NONE"));
    forget(&nothing);
}
END_TEST

Suite *unit_suite_code_rpn_read(void);
Suite *unit_suite_code_rpn_read(void)
{
    Suite *suite = suite_create("code/rpn_read");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_samples_come_back);
    tcase_add_test(tests, test_constants_come_back);
    tcase_add_test(tests, test_numbers);
    tcase_add_test(tests, test_unknown_words_are_listed_and_counted);
    tcase_add_test(tests, test_a_text_past_the_limit_is_not_looked_at);
    tcase_add_test(tests, test_failing_allocations);
    tcase_add_test(tests, test_failing_last_allocations);
    tcase_add_test(tests, test_hostile_texts);
    suite_add_tcase(suite, tests);
    return suite;
}
