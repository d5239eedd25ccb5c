/* SPDX-License-Identifier: MIT
 *
 * vm/native/repl.h: runs one input after another on a program that grows.
 *
 * In:   programs of which each begins like the one before it (compiler/session.h). Out: values and messages.
 * Invariant: an initialiser runs once: when its input is new. An input that is running can be stopped, and its tasks
 *            with it; module variables stay as they are then.
 * Not here: reading lines, compiling (vm/cli/cli_repl.c).
 */
#ifndef CY_NATIVE_REPL_H
#define CY_NATIVE_REPL_H

#include "vm/code/program.h"
#include "vm/native/runtime.h"

struct repl;

enum repl_outcome {
    REPL_DONE,   /* it ran to its end */
    REPL_FAILED, /* an error or a stop, which was said: what it declared must not be seen any more */
    REPL_REFUSED /* it did not begin, which was said: the program is still the one before */
};
enum repl_show { REPL_SHOW_VALUE, REPL_SHOW_KIND };

/* Begins with `owned_program`, whose initialisers do not run. With `interactive`, SIGINT stops what is running, and is
 * blocked otherwise. `options` are borrowed. A failure was said on stderr. */
CY_NODISCARD cy_err repl_open(const struct runtime_options *options, struct program *owned_program,
                              bool interactive, struct repl **repl_out);
void repl_close(struct repl **repl);
/* SIGINT that came until now was meant for what ran before. One that comes between two inputs stops the second. */
void repl_forget_interrupts(struct repl *repl);
/* Goes over to `owned_program`, runs the initialisers of its new modules and then, when main exports a function named
 * `entry`, that one; its value goes to stdout unless it is nil, or its kind does. */
enum repl_outcome repl_run(struct repl *repl, struct program *owned_program, cy_bytes entry,
                           enum repl_show show);

#endif
