/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/coroutine_portable_test.c: proves of the switch for other processors, swapcontext, what
 * coroutine_test.c proves of ours: the same tests over the same file, compiled again.
 *
 * Not here: AddressSanitizer, which warns of swapcontext on stderr.
 */
#if !defined(__SANITIZE_ADDRESS__)

#define COROUTINE_PORTABLE 1
#define coroutine_bytes portable_coroutine_bytes
#define coroutine_stack_bytes portable_coroutine_stack_bytes
#define coroutine_begin portable_coroutine_begin
#define coroutine_resume portable_coroutine_resume
#define coroutine_pause portable_coroutine_pause
#define unit_suite_sys_coroutine unit_suite_sys_coroutine_portable
#include "vm/sys/coroutine.c"

#include "tests/unit/sys/coroutine_test.c"

#else

#include <check.h>

Suite *unit_suite_sys_coroutine_portable(void);
Suite *unit_suite_sys_coroutine_portable(void) { return suite_create("sys_coroutine_portable"); }

#endif
