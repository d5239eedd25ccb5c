/* SPDX-License-Identifier: MIT
 *
 * compiler/explain.h: pages that explain the messages of the compiler.
 *
 * In:   a code as messages show it. Out: text in Korean or English.
 */
#ifndef CY_COMPILER_EXPLAIN_H
#define CY_COMPILER_EXPLAIN_H

#include "compiler/diag.h"

/* Appends the page of "E0040" or "W0101" ("e40" and "40" will do). False when no message has that code: W0040 has none.
 */
CY_NODISCARD bool explain_page(cy_bytes code, bool korean, struct builder *out);
/* Every code with its message, a line each. */
void explain_list(bool korean, struct builder *out);

/* The examples of a page. Several files stand behind lines "// file: NAME"; the first is main.han. NULL when the
 * message cannot be shown by a source alone: then `wrong` tells in words how it comes about. */
struct explain_example {
    const char *wrong;
    const char *fixed; /* "": the same as NULL */
};
struct explain_example explain_example_of(enum diag_code code);
/* Compiles such an example, with warnings. Appends what the compiler says to `messages`; returns whether there was no
 * error. */
bool explain_compile(const char *example, bool korean, struct builder *messages);

#endif
