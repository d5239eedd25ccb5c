/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/spawn_test.c: proves that a program gets its input, arguments and environment and nothing else of
 * ours, that its end is seen, and that ending it ends its whole group.
 */
#include "vm/sys/spawn.h"

#include "vm/base/bytes.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *read_all(int descriptor)
{
    static char text[4096];
    size_t count = 0;
    for (;;) {
        struct pollfd wait = {.fd = descriptor, .events = POLLIN};
        ck_assert_int_eq(poll(&wait, 1, -1), 1);
        ssize_t got = read(descriptor, text + count, sizeof text - 1 - count);
        if (got <= 0) break;
        count += (size_t)got;
    }
    text[count] = 0;
    return text;
}

static int wait_for(struct spawned *spawned)
{
    int code = -1;
    struct pollfd wait = {.fd = spawned->ended, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, -1), 1);
    ck_assert(spawn_reap(spawned, &code));
    return code;
}

START_TEST(test_input_output_and_code)
{
    struct spawned spawned;
    char *const arguments[] = {"sh", "-c", "cat; echo $1 $NAME >&2; exit 7", "sh", "argument", NULL};
    char *const environment[] = {"NAME=value", "PATH=/usr/bin:/bin", NULL};
    ck_assert(!cy_failed(spawn_start(arguments, environment, NULL, &spawned)));
    ck_assert_int_eq(write(spawned.input, "input", 5), 5);
    spawn_close(&spawned.input);
    ck_assert_str_eq(read_all(spawned.output), "input");
    ck_assert_str_eq(read_all(spawned.messages), "argument value\n");
    ck_assert_int_eq(wait_for(&spawned), 7);
    ck_assert(spawn_end(&spawned));
    spawn_close(&spawned.ended);
}
END_TEST

/* Descriptors, close-on-exec or not, blocked and ignored signals stay here. */
START_TEST(test_nothing_of_ours_is_inherited)
{
    struct spawned spawned;
    char *const arguments[] = {"sh", "-c",
                               "ls /proc/self/fd | wc -l; grep -E 'SigBlk|SigIgn' /proc/self/status", NULL};
    int open_one = open("/dev/null", O_RDONLY); /* what was handed to us is such a one */
    unsigned long long blocked, ignored;
    int count;
    sigset_t usr;
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr, NULL);
    signal(SIGPIPE, SIG_IGN);
    ck_assert(!cy_failed(spawn_start(arguments, NULL, NULL, &spawned)));
    spawn_close(&spawned.input);
    ck_assert_int_eq(
        sscanf(read_all(spawned.output), "%d SigBlk: %llx SigIgn: %llx", &count, &blocked, &ignored), 3);
    ck_assert_int_eq(count, 4); /* 0, 1, 2, and the folder that ls reads */
    ck_assert_uint_eq(blocked, 0);
    ck_assert_uint_eq(ignored & 0x7fffffff, 0); /* 32 and 33 are the C library's own */
    ck_assert_int_eq(wait_for(&spawned), 0);
    ck_assert(spawn_end(&spawned));
    spawn_close(&spawned.ended);
    close(open_one);
}
END_TEST

START_TEST(test_what_cannot_be_started)
{
    struct spawned spawned;
    char *const missing[] = {"/no/such/program", NULL}, *const folder[] = {"/tmp", NULL};
    ck_assert(cy_is(spawn_start(missing, NULL, NULL, &spawned), CY_ERR_NOT_FOUND));
    ck_assert(cy_is(spawn_start(folder, NULL, NULL, &spawned), CY_ERR_PERMISSION));
    ck_assert_int_eq(spawned.output, -1);
}
END_TEST

/* A grandchild holds the pipe; it goes with the group, which the end of the pipe shows. */
START_TEST(test_ending_ends_the_group)
{
    struct spawned spawned;
    char *const arguments[] = {"sh", "-c", "sleep 1000 & echo started; wait", NULL};
    ck_assert(!cy_failed(spawn_start(arguments, NULL, NULL, &spawned)));
    struct pollfd wait = {.fd = spawned.output, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, -1), 1);
    int output = dup(spawned.output);
    if (!spawn_end(&spawned)) ck_assert_int_eq(wait_for(&spawned), 128 + SIGKILL);
    ck_assert_int_eq(spawned.pid, 0);
    ck_assert_str_eq(read_all(output), "started\n");
    close(output);
}
END_TEST

START_TEST(test_code_of_a_signal)
{
    struct spawned spawned;
    char *const arguments[] = {"sh", "-c", "kill -TERM $$", NULL};
    ck_assert(!cy_failed(spawn_start(arguments, NULL, NULL, &spawned)));
    ck_assert_int_eq(wait_for(&spawned), 128 + SIGTERM);
    ck_assert(spawn_end(&spawned));
    spawn_close(&spawned.ended);
}
END_TEST

Suite *unit_suite_sys_spawn(void);
Suite *unit_suite_sys_spawn(void)
{
    Suite *suite = suite_create("sys_spawn");
    TCase *tcase = tcase_create("spawn");
    tcase_add_test(tcase, test_input_output_and_code);
    tcase_add_test(tcase, test_nothing_of_ours_is_inherited);
    tcase_add_test(tcase, test_what_cannot_be_started);
    tcase_add_test(tcase, test_ending_ends_the_group);
    tcase_add_test(tcase, test_code_of_a_signal);
    suite_add_tcase(suite, tcase);
    return suite;
}
