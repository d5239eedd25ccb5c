/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_assemble.c: RPN text to a .toau, for every command that takes text.
 *
 * In:   a file, or "-" for standard input. Out: bytes; messages and the count of unknown words on stderr.
 */
#include "vm/cli/cli.h"

#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/code/rpn.h"
#include "vm/code/toau.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "a/b/hello.rpn" is the file hello.rpn with the module hello. */
int cli_assemble_text(struct cli_options *options, const char *path, cy_bytes text, struct builder *toau)
{
    struct builder file, messages;
    struct program *program = NULL;
    const char *slash = strrchr(path, '/');
    uint32_t unknown_count;
    builder_init(&file);
    builder_init(&messages);
    cy_err err = text_to_nfc(cy_bytes_from_text(slash ? slash + 1 : path), &file);
    cy_bytes name = builder_view(&file);
    struct rpn_options rpn = {
        .file = cy_bytes_from_text(path),
        .module_name =
            cy_bytes_slice(name, 0, name.count - (name.count > 4 && cli_ends_with(path, ".rpn") ? 4 : 0)),
        .module_file = name,
        .korean = options->korean,
    };
    if (!cy_failed(err)) err = rpn_read(&rpn, text, &program, &messages, &unknown_count);
    if (messages.count > 0) fwrite(messages.data, 1, messages.count, stderr);
    if (cy_failed(err) && !cy_is(err, CY_ERR_BAD_FORMAT)) cli_say_error(options, path, err);
    builder_fini(&messages);
    builder_fini(&file);
    if (cy_failed(err)) return EXIT_CODE_PROGRAM;
    err = toau_write(program, toau);
    program_free(&program);
    if (cy_failed(err)) cli_say_error(options, path, err);
    return cy_failed(err) ? EXIT_CODE_INTERNAL : EXIT_CODE_OK;
}

int cli_assemble_to(struct cli_options *options, const char *path, struct builder *toau)
{
    struct builder text;
    builder_init(&text);
    bool from_stdin = cli_is_stdin(path);
    cy_err err = from_stdin ? file_read_stream(STDIN_FILENO, LIMIT_RPN_BYTES, &text)
                            : file_read(path, LIMIT_RPN_BYTES, &text);
    if (cy_failed(err)) cli_say_error(options, cli_shown_name(path), err);
    int code = cy_failed(err) ? EXIT_CODE_PROGRAM
                              : cli_assemble_text(options, from_stdin ? CLI_STDIN_NAME : path,
                                                  builder_view(&text), toau);
    builder_fini(&text);
    return code;
}
