/* SPDX-License-Identifier: MIT
 *
 * compiler/fix.h: rewrites what is mechanical in a source of the earlier dialect (crownyc fix, docs/DIALECT.md).
 *
 * In:   a source, and what it imports (read only).
 * Out:  the source with the rows REWRITE of fix.def applied; rows REMAINS, and what the compiler then says, as text.
 * Method: tokens, never a tree: fix.c writes what tokens alone tell; fix_names.c then asks the resolver which names are
 *         unknown, and writes those that exactly one imported module has.
 * Invariant: nothing is guessed. What is not certain stays as it is and is listed. Fixing the result again changes
 *            nothing; space and comments between tokens are kept.
 */
#ifndef CY_COMPILER_FIX_H
#define CY_COMPILER_FIX_H

#include "compiler/stdlib.h"
#include "vm/base/builder.h"

struct fix_options {
    const struct stdlib_module *stdlib;
    size_t stdlib_count;
    bool korean;       /* the language of messages */
    cy_bytes builtins; /* the table of --builtins: lines `NUMBER name` or `"WORD" name`,
                        * others are passed over; count 0: none */
    /* As in struct compile_options. */
    cy_err (*read_source)(void *context, const char *path, struct builder *out);
    void *context;
};

struct fix_counts {
    uint32_t made;
    uint32_t remaining; /* listed, or reported by the compiler; both are in the messages */
};

/* Appends the new text to `out`, and to `messages` a line per row that was applied, and what remains. BAD_FORMAT: it
 * cannot be read as tokens (the reasons are in `messages`); `out` is as it was. */
CY_NODISCARD cy_err fix_source(const char *path, cy_bytes text, const struct fix_options *options,
                               struct builder *out, struct builder *messages, struct fix_counts *counts_out);

#endif
