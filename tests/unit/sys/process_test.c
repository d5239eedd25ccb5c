/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/process_test.c: proves that packets keep their borders and carry one descriptor, that the other
 * end's death is seen by both directions, that signals arrive as something to read, and that clocks and random
 * bytes behave.
 */
#include "vm/sys/clock.h"
#include "vm/sys/process.h"
#include "vm/sys/random.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(test_channel)
{
    int a, b, ends[2], descriptor;
    uint8_t room[CHANNEL_MESSAGE_BYTES];
    size_t count;
    ck_assert(!cy_failed(channel_pair(&a, &b)));
    ck_assert_int_ne(fcntl(a, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!cy_failed(channel_send(a, CY_BYTES("first"), -1)));
    ck_assert(!cy_failed(channel_send(a, CY_BYTES("second"), ends[0])));
    ck_assert(!cy_failed(channel_receive(b, room, sizeof room, &count, &descriptor)));
    ck_assert(cy_bytes_equal(cy_bytes_of(room, count), CY_BYTES("first")));
    ck_assert_int_eq(descriptor, -1);
    ck_assert(!cy_failed(channel_receive(b, room, sizeof room, &count, &descriptor)));
    ck_assert(cy_bytes_equal(cy_bytes_of(room, count), CY_BYTES("second")));
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_ne(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    ck_assert_int_eq(read(descriptor, room, 1), 1); /* it is the same pipe */
    close(descriptor);
    /* Longer than the room: refused, and its descriptor does not leak. */
    ck_assert(!cy_failed(channel_send(a, CY_BYTES("0123456789"), ends[0])));
    ck_assert(cy_is(channel_receive(b, room, 4, &count, &descriptor), CY_ERR_BAD_FORMAT));
    ck_assert_int_eq(descriptor, -1);
    /* The last packet is read before the end is seen. */
    ck_assert(!cy_failed(channel_send(a, CY_BYTES("last"), -1)));
    close(a);
    ck_assert(!cy_failed(channel_receive(b, room, sizeof room, &count, &descriptor)));
    ck_assert(cy_is(channel_receive(b, room, sizeof room, &count, &descriptor), CY_ERR_CLOSED));
    ck_assert_uint_eq(count, 0);
    ck_assert(cy_is(channel_send(b, CY_BYTES("x"), -1), CY_ERR_RESET));
    close(b);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(test_signals)
{
    static const int signals[] = {SIGUSR1, SIGTERM};
    int descriptor;
    ck_assert(!cy_failed(signals_open(signals, CY_COUNT_OF(signals), &descriptor)));
    ck_assert_int_eq(signals_next(descriptor), 0);
    kill(getpid(), SIGTERM); /* would end the test if it were delivered */
    struct pollfd entry = {.fd = descriptor, .events = POLLIN};
    ck_assert_int_eq(poll(&entry, 1, 5000), 1);
    ck_assert_int_eq(signals_next(descriptor), SIGTERM);
    ck_assert_int_eq(signals_next(descriptor), 0);
    pid_t child = fork();
    if (child == 0) {
        signals_reset();
        kill(getpid(), SIGTERM);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    close(descriptor);
}
END_TEST

/* In a child, whose end tells. */
static int process_child_catches(bool second)
{
    static const int signals[] = {SIGINT, SIGTERM};
    int descriptor = -1;
    if (cy_failed(signals_catch(signals, CY_COUNT_OF(signals), &descriptor))) return 1;
    if (signals_next(descriptor) != 0) return 2;
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGTERM); /* for the same one, as timeout(1) does it */
    struct pollfd entry = {.fd = descriptor, .events = POLLIN};
    if (poll(&entry, 1, 5000) != 1 || signals_next(descriptor) != SIGTERM || signals_next(descriptor) != 0)
        return 3;
    while (second) kill(getpid(), SIGINT); /* until the pause is over */
    signals_uncatch(&descriptor, false);
    return descriptor == -1 ? 0 : 4;
}

START_TEST(test_a_caught_signal_is_told_and_the_next_one_ends)
{
    for (int second = 0; second < 2; second++) {
        pid_t child = fork();
        if (child == 0) _exit(process_child_catches(second == 1));
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        if (second)
            ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
        else
            ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}
END_TEST

/* One that came and was not read waits for who opens the signals next. */
START_TEST(test_a_caught_signal_is_handed_over)
{
    static const int signals[] = {SIGINT, SIGTERM};
    pid_t child = fork();
    if (child == 0) {
        int descriptor = -1, next = -1;
        if (cy_failed(signals_catch(signals, CY_COUNT_OF(signals), &descriptor))) _exit(1);
        kill(getpid(), SIGINT);
        signals_uncatch(&descriptor, true);
        if (cy_failed(signals_open(signals, CY_COUNT_OF(signals), &next))) _exit(2);
        _exit(signals_next(next) == SIGINT ? 0 : 3);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(test_drop_to)
{
    if (geteuid() != 0) {
        ck_assert(cy_failed(process_drop_to("root")));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        bool dropped = !cy_failed(process_drop_to("65534"));
        bool stays =
            geteuid() == 65534 && getegid() != 0 && setuid(0) != 0 && cy_failed(process_drop_to("root"));
        _exit(dropped && stays ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert(cy_is(process_drop_to("no-such-user-here"), CY_ERR_NOT_FOUND));
    ck_assert_int_eq(geteuid(), 0);
}
END_TEST

START_TEST(test_clock_random_cpus)
{
    uint64_t before_ns = clock_monotonic_ns(), cpu_ns = clock_thread_cpu_ns();
    hash_seed a, b;
    ck_assert(!cy_failed(random_hash_seed(&a)));
    ck_assert(!cy_failed(random_hash_seed(&b)));
    ck_assert(a.k0 != b.k0 && a.k0 != a.k1);
    uint8_t bytes[1000] = {0}; /* more than one getentropy call gives */
    ck_assert(!cy_failed(random_bytes(bytes, sizeof bytes)));
    int zero_count = 0;
    for (size_t i = sizeof bytes - 100; i < sizeof bytes; i++) zero_count += bytes[i] == 0;
    ck_assert_int_lt(zero_count, 20);
    ck_assert_uint_ge(clock_monotonic_ns(), before_ns);
    ck_assert_uint_ge(clock_thread_cpu_ns(), cpu_ns);
    ck_assert_int_gt(clock_wall_ms(), 1600000000000);
    ck_assert_uint_ge(process_cpu_count(), 1);
}
END_TEST

Suite *unit_suite_sys_process(void);
Suite *unit_suite_sys_process(void)
{
    Suite *suite = suite_create("sys/process");
    TCase *tests = tcase_create("processes");
    tcase_add_test(tests, test_channel);
    tcase_add_test(tests, test_signals);
    tcase_add_test(tests, test_a_caught_signal_is_told_and_the_next_one_ends);
    tcase_add_test(tests, test_a_caught_signal_is_handed_over);
    tcase_add_test(tests, test_drop_to);
    tcase_add_test(tests, test_clock_random_cpus);
    suite_add_tcase(suite, tests);
    return suite;
}
