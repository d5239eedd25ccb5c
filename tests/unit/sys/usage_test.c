/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/usage_test.c: proves that CPU time is read of this process and of another one, and that an alarm is
 * readable from its time on, and not before.
 */
#include "vm/sys/alarm.h"
#include "vm/sys/clock.h"
#include "vm/sys/usage.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Uses CPU until this process has had `us` more of it. */
static void usage_burn(uint64_t us)
{
    uint64_t until_ns = clock_thread_cpu_ns() + us * 1000;
    while (clock_thread_cpu_ns() < until_ns) {}
}

static uint64_t usage_sum(const struct cpu_usage *usage) { return usage->user_us + usage->system_us; }

START_TEST(test_of_self)
{
    struct cpu_usage before, after, by_number;
    ck_assert(!cy_failed(usage_of_self(&before)));
    usage_burn(50000);
    ck_assert(!cy_failed(usage_of_self(&after)));
    ck_assert_uint_ge(usage_sum(&after) - usage_sum(&before), 49000);
    /* The same by number, in ticks of 10 ms, each of both rounded down. */
    ck_assert(!cy_failed(usage_of_process(getpid(), &by_number)));
    ck_assert_uint_ge(usage_sum(&by_number) + 20000, usage_sum(&after));
}
END_TEST

START_TEST(test_of_another_process)
{
    int ready[2];
    char byte;
    struct cpu_usage usage;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        usage_burn(60000);
        byte = (char)write(ready[1], "x", 1);
        pause();
        _exit(byte);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    cy_err err = usage_of_process(child, &usage);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!cy_failed(err));
    ck_assert_uint_ge(usage_sum(&usage), 40000);
    ck_assert(cy_is(usage_of_process(child, &usage), CY_ERR_NOT_FOUND)); /* it is gone */
    close(ready[0]);
    close(ready[1]);
}
END_TEST

START_TEST(test_an_alarm)
{
    int descriptor;
    ck_assert(!cy_failed(alarm_open(&descriptor)));
    struct pollfd look = {.fd = descriptor, .events = POLLIN};
    ck_assert_int_eq(poll(&look, 1, 0), 0); /* not set */
    uint64_t at_ns = clock_monotonic_ns() + 3000000;
    ck_assert(!cy_failed(alarm_set(descriptor, at_ns)));
    ck_assert_int_eq(poll(&look, 1, -1), 1);
    ck_assert_uint_ge(clock_monotonic_ns(), at_ns);
    /* Set anew it is quiet until then; a time that is past counts at once. */
    ck_assert(!cy_failed(alarm_set(descriptor, clock_monotonic_ns() + 3600000000000ull)));
    ck_assert_int_eq(poll(&look, 1, 0), 0);
    ck_assert(!cy_failed(alarm_set(descriptor, 0)));
    ck_assert_int_eq(poll(&look, 1, -1), 1);
    close(descriptor);
}
END_TEST

Suite *unit_suite_sys_usage(void);
Suite *unit_suite_sys_usage(void)
{
    Suite *suite = suite_create("sys_usage");
    TCase *tests = tcase_create("usage");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_of_self);
    tcase_add_test(tests, test_of_another_process);
    tcase_add_test(tests, test_an_alarm);
    suite_add_tcase(suite, tests);
    return suite;
}
