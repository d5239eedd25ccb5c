/* SPDX-License-Identifier: MIT
 *
 * tests/support/unit_main.c: runs the unit tests.
 *
 * In:   unit_tests [--list] [SUITE...]; a SUITE is a name of the table ("base_bytes"), none means all.
 * Out:  Check's report; exit code 1 when a test failed, 2 for an unknown suite.
 * Invariant: each test runs in a process of its own unless CK_FORK=no, so a crash is one failure and not the end.
 */
#include "tests/support/unit_main.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_PLACES = 16 }; /* more assertions than a loop of a test and its helpers have */

/* Check's own one, which the Makefile renames in tests. */
#undef _mark_point
void _mark_point(const char *file, int line);

/* Check writes a message to a file for each assertion that holds, and the parent reads them all: 7.3 million in
 * http_bulk. Places told of lately are not told again, so where a test died is the last new place of its loop. */
void unit_mark_point(const char *file, int line)
{
    static _Thread_local struct place {
        const char *file;
        int line;
    } lately[UNIT_PLACES];
    static _Thread_local size_t next_index;
    for (size_t i = 0; i < UNIT_PLACES; i++)
        if (lately[i].line == line && lately[i].file == file) return;
    lately[next_index] = (struct place){file, line};
    next_index = (next_index + 1) % UNIT_PLACES;
    _mark_point(file, line);
}

static bool unit_is_wanted(const char *name, int argc, char **argv)
{
    if (argc < 2) return true;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return false;
}

static bool unit_is_known(const char *name)
{
    for (const struct unit_suite *row = unit_suites; row->name; row++)
        if (strcmp(row->name, name) == 0) return true;
    return false;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const struct unit_suite *row = unit_suites; row->name; row++) puts(row->name);
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        if (unit_is_known(argv[i])) continue;
        fprintf(stderr, "unit_tests: no suite is named %s (--list shows them)\n", argv[i]);
        return 2;
    }
    SRunner *runner = srunner_create(NULL);
    for (const struct unit_suite *row = unit_suites; row->name; row++)
        if (unit_is_wanted(row->name, argc, argv)) srunner_add_suite(runner, row->create());
    srunner_run_all(runner, CK_ENV);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count ? EXIT_FAILURE : EXIT_SUCCESS;
}
