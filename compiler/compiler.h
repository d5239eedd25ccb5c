/* SPDX-License-Identifier: MIT
 *
 * compiler/compiler.h: from Hanseon source to a program.
 *
 * In:   the path of a main file, the standard library, and a function that reads files.
 * Out:  a canonical, verified program, or all diagnostics of all files as text.
 * Invariant: the same sources give the same program on every machine: nothing in it depends on where the files lie, on
 *            the order of a hash table, or on the time.
 * Not here: the command line (vm/cli), writing the file (vm/code/toau.h).
 */
#ifndef CY_COMPILER_COMPILER_H
#define CY_COMPILER_COMPILER_H

#include "compiler/stdlib.h"
#include "vm/base/builder.h"
#include "vm/code/program.h"

struct compile_session; /* session.h */

struct compile_options {
    const char *path; /* the main file; imports are looked up beside the file that names them */
    const struct stdlib_module *stdlib;
    size_t stdlib_count;
    bool korean;   /* the language of messages */
    bool json;     /* messages as JSON objects, one per line (docs/DIAGNOSTICS.md) */
    bool color;    /* text for a terminal */
    bool warnings; /* look for them: `messages` may then hold some although the program is good */
    bool module;   /* main may be missing: a file that others import is looked at by itself */
    uint32_t *warning_count_out; /* NULL: not wanted */
    /* Test blocks of the main file become exported functions without parameters, named `test "NAME"`, and main need not
     * be there. Otherwise they are checked and left out. */
    bool tests;
    const struct compile_session *session; /* NULL; or main is an input behind others, as in a REPL */
    /* Appends the bytes of the file at `path` to `out`. NOT_FOUND makes the compiler try the other spelling of the
     * name; every other failure is reported where the file was named. source_file_read (source_file.h) reads the
     * disk. */
    cy_err (*read_source)(void *context, const char *path, struct builder *out);
    void *context;
};

#define TEST_NAME_PREFIX "test " /* of the functions that test blocks become */

/* OK with *program_out (the caller frees it; with `module` it may be NULL), or BAD_FORMAT with every message appended
 * to `messages` and their number in `*error_count_out` (at most LIMIT_COMPILE_ERRORS are shown, all are counted).
 * Warnings are shown when there is no error. NO_MEMORY does not come back: a
 * compiler that has no memory left says so and exits with 70 (mem.h). */
CY_NODISCARD cy_err compile_program(const struct compile_options *options, struct program **program_out,
                                    struct builder *messages, uint32_t *error_count_out);

#endif
