/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_stdin.c: a program from standard input, wherever a command takes a file: "-".
 *
 * In:   bytes until the end of the stream: a .toau, RPN text, or a source; their first bytes say which.
 * Out:  the same as a file would give. Messages call it <stdin>; imports lie below the working folder.
 * Invariant: nothing of this machine comes into the program: main is the module <stdin>.
 *            The stream is read once and whole, so the program that runs finds it at its end.
 */
#include "vm/cli/cli.h"

#include "compiler/compiler.h"
#include "compiler/source_file.h"
#include "vm/base/limits.h"
#include "vm/code/toau.h"
#include "vm/sys/file.h"

#include <string.h>
#include <unistd.h>

bool cli_is_stdin(const char *path) { return strcmp(path, "-") == 0; }
const char *cli_shown_name(const char *path) { return cli_is_stdin(path) ? CLI_STDIN_NAME : path; }

int cli_read_stdin(const struct cli_options *options, struct builder *out)
{
    cy_err err = file_read_stream(STDIN_FILENO, LIMIT_TOAU_BYTES, out);
    if (cy_failed(err)) cli_say_error(options, CLI_STDIN_NAME, err);
    return cy_failed(err) ? EXIT_CODE_PROGRAM : EXIT_CODE_OK;
}

/* rpn_write begins with `toau 1`, which no source can: its top level only declares. What is written by hand and begins
 * otherwise goes through hanseonc_rpn. */
bool cli_looks_like_rpn(cy_bytes text) { return cy_bytes_start_with(text, CY_BYTES("toau ")); }

cy_err cli_source_read(void *context, const char *path, struct builder *out)
{
    const cy_bytes *main_text = context;
    if (!main_text || strcmp(path, CLI_STDIN_NAME) != 0) return source_file_read(NULL, path, out);
    builder_bytes(out, *main_text);
    return out->failed ? CY_ERR(NO_MEMORY) : CY_OK;
}
