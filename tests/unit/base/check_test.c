/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/check_test.c: proves that a false condition ends the process by SIGABRT and names itself on stderr,
 * and that a true one costs nothing visible.
 */
#include "vm/base/check.h"

#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(test_true_condition_passes)
{
    CHECK(1 + 1 == 2);
    DCHECK(true);
}
END_TEST

START_TEST(test_false_condition_aborts) { CHECK(1 + 1 == 3); }
END_TEST

START_TEST(test_unreachable_aborts) { UNREACHABLE(); }
END_TEST

START_TEST(test_message_names_condition_and_place)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        check_failed("frames_count > 0", "vm/run/fiber.c", 77);
    }
    close(ends[1]);
    char text[512];
    ssize_t count = read(ends[0], text, sizeof text - 1);
    ck_assert_int_gt(count, 0);
    text[count] = 0;
    close(ends[0]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_ptr_nonnull(strstr(text, "frames_count > 0"));
    ck_assert_ptr_nonnull(strstr(text, "vm/run/fiber.c:77"));
}
END_TEST

Suite *unit_suite_base_check(void);
Suite *unit_suite_base_check(void)
{
    Suite *suite = suite_create("base/check");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_true_condition_passes);
    tcase_add_test_raise_signal(tests, test_false_condition_aborts, SIGABRT);
    tcase_add_test_raise_signal(tests, test_unreachable_aborts, SIGABRT);
    tcase_add_test(tests, test_message_names_condition_and_place);
    suite_add_tcase(suite, tests);
    return suite;
}
