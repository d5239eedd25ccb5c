/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/shared_test.c: proves that processes see each other's numbers, that each change is whole, that a
 * process which is killed at any instruction keeps nobody from going on, and that a table takes its keys and not one
 * more.
 */
#include "vm/sys/shared.h"

#include "vm/base/limits.h"

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const hash_seed seed = {1, 2};

static cy_bytes key_of(char *room, int number)
{
    return cy_bytes_of(room, (size_t)snprintf(room, 32, "key %d", number));
}

START_TEST(test_keys_and_numbers)
{
    struct shared_table *table;
    int64_t *number, sum;
    ck_assert(!cy_failed(shared_table_new(10, seed, &table)));
    ck_assert_ptr_null(shared_table_find(table, CY_BYTES("a")));
    ck_assert(!cy_failed(shared_table_take(table, CY_BYTES("a"), &number)));
    ck_assert_int_eq(shared_get(number), 0);
    ck_assert(shared_add(number, 5, &sum) && sum == 5);
    ck_assert_ptr_eq(shared_table_find(table, CY_BYTES("a")), number);
    int64_t expected = 4;
    ck_assert(!shared_compare_and_set(number, &expected, 9) && expected == 5);
    ck_assert(shared_compare_and_set(number, &expected, INT64_MAX));
    ck_assert(!shared_add(number, 1, &sum));
    ck_assert_int_eq(shared_get(number), INT64_MAX);
    shared_set(number, INT64_MIN);
    ck_assert(!shared_add(number, -1, &sum));
    ck_assert(cy_is(shared_table_take(table, CY_BYTES_NONE, &number), CY_ERR_VALUE));
    shared_table_free(&table);
}
END_TEST

/* SHARED_KEY_BYTES and the number of keys, at and one past. */
START_TEST(test_bounds)
{
    enum { KEYS = 100 };
    struct shared_table *table;
    int64_t *number;
    char room[LIMIT_SHARED_KEY_BYTES + 1];
    memset(room, 'k', sizeof room);
    ck_assert(!cy_failed(shared_table_new(KEYS, seed, &table)));
    ck_assert(!cy_failed(shared_table_take(table, cy_bytes_of(room, LIMIT_SHARED_KEY_BYTES), &number)));
    ck_assert(cy_is(shared_table_take(table, cy_bytes_of(room, LIMIT_SHARED_KEY_BYTES + 1), &number),
                    CY_ERR_VALUE));
    /* One byte less is another key. */
    ck_assert_ptr_null(shared_table_find(table, cy_bytes_of(room, LIMIT_SHARED_KEY_BYTES - 1)));
    for (int i = 1; i < KEYS; i++) {
        ck_assert(!cy_failed(shared_table_take(table, key_of(room, i), &number)));
        shared_set(number, i);
    }
    ck_assert(cy_is(shared_table_take(table, CY_BYTES("one more"), &number), CY_ERR_TOO_MANY));
    for (int i = 1; i < KEYS; i++) ck_assert_int_eq(shared_get(shared_table_find(table, key_of(room, i))), i);
    uint32_t found = 0;
    for (uint32_t i = 0; i < shared_table_entries(table); i++) {
        uint8_t key[LIMIT_SHARED_KEY_BYTES];
        size_t bytes;
        int64_t value;
        found += shared_table_at(table, i, key, &bytes, &value);
    }
    ck_assert_uint_eq(found, KEYS);
    shared_table_free(&table);
}
END_TEST

/* Adds under many keys, for ever; "done N" counts what it has certainly added. */
static void worker(struct shared_table *table, int keys)
{
    char room[32];
    int64_t *number, *done, sum;
    if (cy_failed(shared_table_take(table, CY_BYTES("done"), &done))) _exit(1);
    for (int i = 0;; i = (i + 7) % keys) {
        if (cy_failed(shared_table_take(table, key_of(room, i), &number))) _exit(2);
        if (!shared_add(number, 1, &sum) || !shared_add(done, 1, &sum)) _exit(3);
    }
}

/* Processes are killed in the middle of taking keys and adding, over and over, while others go on. Afterwards every key
 * is there once, and the sum of all numbers is what was counted, give or take the one step that each was killed in. */
START_TEST(test_killed_processes_hold_nobody_up)
{
    enum { WORKERS = 3, KILLS = 60, KEYS = 5000 };
    struct shared_table *table;
    pid_t pids[WORKERS];
    int64_t goal = 0, *done_number;
    ck_assert(!cy_failed(shared_table_new(KEYS + 1, seed, &table)));
    ck_assert(!cy_failed(shared_table_take(table, CY_BYTES("done"), &done_number)));
    for (int kill_number = 0; kill_number < KILLS; kill_number++) {
        for (int i = 0; i < WORKERS; i++) {
            pids[i] = fork();
            ck_assert_int_ge(pids[i], 0);
            if (pids[i] == 0) worker(table, KEYS);
        }
        /* Where it hits is chance, and that is the point; but each time some work was done before it. */
        goal += 1 + kill_number * 37 % 50 * 100;
        while (shared_get(done_number) < goal) sched_yield();
        for (int i = 0; i < WORKERS; i++) {
            int status;
            ck_assert_int_eq(kill(pids[i], SIGKILL), 0);
            ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
            ck_assert(WIFSIGNALED(status)); /* it had found nothing wrong until then */
        }
    }
    char room[32];
    int64_t total = 0, *number;
    for (int i = 0; i < KEYS; i++) {
        ck_assert(!cy_failed(shared_table_take(table, key_of(room, i), &number)));
        total += shared_get(number);
    }
    int64_t done = shared_get(shared_table_find(table, CY_BYTES("done")));
    ck_assert_int_gt(done, 0);
    ck_assert_int_ge(total, done);
    ck_assert_int_le(total, done + WORKERS * KILLS);
    int64_t in_table = 0;
    for (uint32_t i = 0; i < shared_table_entries(table); i++) {
        uint8_t key[LIMIT_SHARED_KEY_BYTES];
        size_t bytes;
        int64_t value;
        if (shared_table_at(table, i, key, &bytes, &value)) in_table += value;
    }
    ck_assert_int_eq(in_table, total + done); /* no key stands there twice */
    shared_table_free(&table);
}
END_TEST

Suite *unit_suite_sys_shared(void);
Suite *unit_suite_sys_shared(void)
{
    Suite *suite = suite_create("sys_shared");
    TCase *tcase = tcase_create("shared");
    tcase_add_test(tcase, test_keys_and_numbers);
    tcase_add_test(tcase, test_bounds);
    tcase_add_test(tcase, test_killed_processes_hold_nobody_up);
    suite_add_tcase(suite, tcase);
    return suite;
}
