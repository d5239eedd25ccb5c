/* SPDX-License-Identifier: MIT
 *
 * tests/support/unit_main.h: the table that the Makefile writes from the list of test files.
 *
 * In:   tests/unit/LAYER/MODULE_test.c, each with `Suite *unit_suite_LAYER_MODULE(void)`.
 * Out:  rows, closed by a NULL name.
 */
#ifndef CY_TESTS_SUPPORT_UNIT_MAIN_H
#define CY_TESTS_SUPPORT_UNIT_MAIN_H

#include <check.h>

struct unit_suite {
    const char *name; /* "base_bytes" */
    Suite *(*create)(void);
};
extern const struct unit_suite unit_suites[];

#endif
