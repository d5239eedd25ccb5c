/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/log_test.c: proves that one call is one line in the documented shape, that a peer's bytes cannot
 * forge a second one, and that a long line is cut at a letter.
 */
#include "vm/base/log.h"

#include "vm/base/limits.h"
#include "vm/base/text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where a test's lines go: a pipe holds a whole line without a reader. */
struct log_test {
    struct log log;
    int read_end;
    char text[LIMIT_LOG_LINE_BYTES + 1];
};

static void log_test_open(struct log_test *test)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    log_init(&test->log);
    test->log.descriptor = ends[1];
    test->read_end = ends[0];
}

static size_t log_test_close(struct log_test *test)
{
    close(test->log.descriptor);
    ssize_t count = read(test->read_end, test->text, sizeof test->text - 1);
    ck_assert_int_ge(count, 0);
    test->text[count] = 0;
    close(test->read_end);
    return (size_t)count;
}

static void log_test_take(void *context, cy_bytes line)
{
    memcpy(context, line.data, line.count);
    ((char *)context)[line.count] = 0;
}

START_TEST(test_shape_of_a_line)
{
    struct log_test test;
    log_test_open(&test);
    memcpy(test.log.label, "b1/0", 5);
    log_write(&test.log, LOG_WARN, "route %d: %s", 3, "길");
    log_test_close(&test);
    /* 2026-11-30T10:00:00.123Z warn [b1/0] text */
    ck_assert_int_eq(test.text[4], '-');
    ck_assert_int_eq(test.text[10], 'T');
    ck_assert_int_eq(test.text[19], '.');
    ck_assert_str_eq(test.text + 23, "Z warn [b1/0] route 3: 길\n");
}
END_TEST

START_TEST(test_level_below_the_minimum_is_silent)
{
    struct log_test test;
    log_test_open(&test);
    log_write(&test.log, LOG_DEBUG, "unseen");
    ck_assert_uint_eq(log_test_close(&test), 0);
}
END_TEST

START_TEST(test_control_bytes_are_spelled_out)
{
    struct log_test test;
    log_test_open(&test);
    log_write(&test.log, LOG_INFO, "%s", "a\nb\r\x1b[31m\x7f\xc2\x9b\xc2\x85\xe2\x80\xa8\xe2\x80\xa9가");
    log_test_close(&test);
    ck_assert_ptr_nonnull(
        strstr(test.text, " a\\x0ab\\x0d\\x1b[31m\\x7f\\xc2\\x9b\\xc2\\x85\\xe2\\x80\\xa8\\xe2\\x80\\xa9"));
    ck_assert_ptr_eq(strchr(test.text, '\n'), test.text + strlen(test.text) - 1);
    ck_assert_ptr_null(strstr(test.text, "\xc2\x9b"));
    ck_assert_ptr_nonnull(strstr(test.text, "가\n"));
}
END_TEST

/* Every alignment of the cut against a three-byte letter. */
START_TEST(test_long_line_is_cut_at_a_letter)
{
    static const char prefix[] = "xxx";
    struct log_test test;
    struct builder builder;
    builder_init(&builder);
    builder_bytes(&builder, cy_bytes_of(prefix, (size_t)_i));
    while (builder.count < 2 * LIMIT_LOG_LINE_BYTES) builder_text(&builder, "가");
    log_test_open(&test);
    log_write(&test.log, LOG_INFO, "%s", builder_text_view(&builder));
    size_t count = log_test_close(&test);
    builder_fini(&builder);
    ck_assert_uint_le(count, LIMIT_LOG_LINE_BYTES);
    ck_assert_uint_gt(count, LIMIT_LOG_LINE_BYTES - 8);
    ck_assert_str_eq(test.text + count - 4, "...\n");
    ck_assert(text_is_utf8(cy_bytes_of(test.text, count), NULL));
}
END_TEST

START_TEST(test_closed_descriptor_loses_the_line_and_nothing_else)
{
    struct log log;
    log_init(&log);
    log.descriptor = -1;
    log_write(&log, LOG_ERROR, "nobody hears this");
}
END_TEST

/* The same text within LOG_REPEAT_MS is one line and one count; another level or another text is another line. */
START_TEST(test_repeated_lines_are_counted)
{
    struct log_test test;
    log_test_open(&test);
    for (int i = 0; i < 1000; i++) log_write(&test.log, LOG_WARN, "upstream is down");
    log_write(&test.log, LOG_ERROR, "upstream is down");
    for (int i = 0; i < 5; i++) log_write_keyed(&test.log, LOG_WARN, "upstream b: refused", "GET /%d", i);
    ck_assert(test.log.repeated);
    log_tell_repeats(&test.log, true);
    log_tell_repeats(&test.log, true); /* nothing is told twice */
    log_test_close(&test);
    static const char *const wanted[] = {"warn upstream is down\n", "error upstream is down\n",
                                         "warn GET /0\n", "warn upstream is down (999 more in ",
                                         "warn upstream b: refused (4 more in "};
    const char *at = test.text;
    for (size_t i = 0; i < CY_COUNT_OF(wanted); i++) {
        ck_assert_ptr_nonnull(at = strstr(at, wanted[i]));
        at = strchr(at, '\n') + 1;
    }
    ck_assert_str_eq(at, "");
}
END_TEST

START_TEST(test_a_repeat_is_told_when_its_time_is_over)
{
    struct log_test test;
    log_test_open(&test);
    log_write(&test.log, LOG_INFO, "tick");
    ck_assert_uint_eq(log_tell_repeats(&test.log, false), 0); /* said once: nothing to tell */
    log_write(&test.log, LOG_INFO, "tick");
    uint32_t left_ms = log_tell_repeats(&test.log, false);
    ck_assert_uint_ge(left_ms, 1);
    ck_assert_uint_le(left_ms, LIMIT_LOG_REPEAT_MS);
    test.log.repeats[0].since_ms -= LIMIT_LOG_REPEAT_MS; /* as if it were over */
    log_write(&test.log, LOG_INFO, "tick");
    log_test_close(&test);
    const char *told = strstr(test.text, "info tick (1 more in ");
    ck_assert_ptr_nonnull(told);
    ck_assert_ptr_nonnull(strstr(told, "info tick\n")); /* and the new one stands in full */
}
END_TEST

/* LOG_REPEAT_TEXTS: that many texts are remembered; one more lets the oldest go, and tells of it. */
START_TEST(test_texts_remembered)
{
    struct log_test test;
    log_test_open(&test);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < LIMIT_LOG_REPEAT_TEXTS; i++) {
            log_write(&test.log, LOG_INFO, "text %02d", i);
            test.log.repeats[i].since_ms -= round == 0 ? (uint64_t)(LIMIT_LOG_REPEAT_TEXTS - i) : 0;
        }
    }
    log_write(&test.log, LOG_INFO, "one more");
    log_test_close(&test);
    ck_assert_ptr_nonnull(strstr(test.text, "text 00 (1 more in "));
    ck_assert_ptr_null(strstr(test.text, "text 01 (1 more in "));
}
END_TEST

START_TEST(test_lines_can_go_elsewhere)
{
    struct log log;
    char taken[256] = "";
    log_init(&log);
    log.put = log_test_take;
    log.context = taken;
    log_write(&log, LOG_INFO, "there");
    ck_assert_str_eq(taken + 23, "Z info there\n");
}
END_TEST

Suite *unit_suite_base_log(void);
Suite *unit_suite_base_log(void)
{
    Suite *suite = suite_create("base/log");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_shape_of_a_line);
    tcase_add_test(tests, test_repeated_lines_are_counted);
    tcase_add_test(tests, test_a_repeat_is_told_when_its_time_is_over);
    tcase_add_test(tests, test_texts_remembered);
    tcase_add_test(tests, test_lines_can_go_elsewhere);
    tcase_add_test(tests, test_level_below_the_minimum_is_silent);
    tcase_add_test(tests, test_control_bytes_are_spelled_out);
    tcase_add_loop_test(tests, test_long_line_is_cut_at_a_letter, 0, 4);
    tcase_add_test(tests, test_closed_descriptor_loses_the_line_and_nothing_else);
    suite_add_tcase(suite, tests);
    return suite;
}
