/* SPDX-License-Identifier: MIT
 *
 * compiler/session.h: a program that grows input by input, as in a REPL.
 *
 * An input is a module that sees the names of the inputs before it, the last one first. It is one run of declarations,
 * or one statement; an expression may be a statement, and is then its value. A text with several is several inputs:
 * each compilation gives where the next one begins.
 *
 * In:   the inputs so far, main (compile_options.path) as the new one.
 * Out:  a program that begins like the one before it: its modules, functions, variables, records and natives have the
 *       same numbers, so that a running instance can go over to it (instance_extend, vm/run/vm.h). Main exports a
 *       statement as a function without parameters under main's own name.
 * Differs from a program: nothing is pruned, main is not asked for, initialisers may wait (whoever runs them says).
 */
#ifndef CY_COMPILER_SESSION_H
#define CY_COMPILER_SESSION_H

#include "compiler/compiler.h"

enum session_kind { SESSION_NOTHING, SESSION_DECLARATIONS, SESSION_STATEMENT };

struct session_input {
    cy_bytes name; /* of the module; no two have one name */
    cy_bytes text;
    uint32_t skip_bytes; /* where it begins in the text */
    bool hidden;         /* it failed: its code stays, its names are not seen */
};

struct session_result {
    enum session_kind kind;
    uint32_t end_bytes; /* where the next input of the same text begins; the text's end when there is none */
};

struct compile_session {
    const struct session_input *inputs; /* those before main */
    uint32_t input_count;
    uint32_t skip_bytes; /* of main */
    struct session_result *result_out;
};

/* Whether a text ends inside brackets, a block or a raw string, so that another line belongs to it. */
bool session_is_open(cy_bytes text);

#endif
