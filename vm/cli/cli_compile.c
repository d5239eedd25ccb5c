/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_compile.c: crownyc compile, and the filters hanseonc_high and hanseonc_rpn.
 *
 * In:   a source or RPN text. Out: a .toau beside it, at -o, or on stdout; all messages of all files on stderr.
 * Invariant: nothing is written when anything was wrong.
 */
#include "vm/cli/cli.h"

#include "compiler/compiler.h"
#include "compiler/source_file.h"
#include "compiler/stdlib.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/code/rpn.h"
#include "vm/code/toau.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int cli_write_program(struct cli_options *options, const char *path, struct program **owned_program,
                             struct builder *toau)
{
    cy_err err = toau_write(*owned_program, toau);
    program_free(owned_program);
    if (cy_failed(err)) cli_say_error(options, path, err);
    return cy_failed(err) ? EXIT_CODE_INTERNAL : EXIT_CODE_OK;
}

/* "a/b/hello.rpn" is the file hello.rpn with the module hello. */
static int cli_assemble_text(struct cli_options *options, const char *path, cy_bytes text,
                             struct builder *toau)
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
    return cy_failed(err) ? EXIT_CODE_PROGRAM : cli_write_program(options, path, &program, toau);
}

static int cli_assemble_to(struct cli_options *options, const char *path, struct builder *toau)
{
    struct builder text;
    builder_init(&text);
    bool from_stdin = strcmp(path, "-") == 0;
    cy_err err = from_stdin ? file_read_stream(STDIN_FILENO, LIMIT_RPN_BYTES, &text)
                            : file_read(path, LIMIT_RPN_BYTES, &text);
    if (cy_failed(err)) cli_say_error(options, path, err);
    int code = cy_failed(err)
                   ? EXIT_CODE_PROGRAM
                   : cli_assemble_text(options, from_stdin ? "main.rpn" : path, builder_view(&text), toau);
    builder_fini(&text);
    return code;
}

int cli_compile_to(struct cli_options *options, const char *path, struct builder *toau)
{
    if (options->rpn || cli_ends_with(path, ".rpn")) return cli_assemble_to(options, path, toau);
    struct compile_options compile = {
        .path = path,
        .stdlib = stdlib_modules,
        .stdlib_count = stdlib_module_count,
        .korean = options->korean,
        .read_source = source_file_read,
    };
    struct program *program = NULL;
    struct builder messages;
    uint32_t error_count = 0;
    builder_init(&messages);
    cy_err err = compile_program(&compile, &program, &messages, &error_count);
    if (messages.count > 0) fwrite(messages.data, 1, messages.count, stderr);
    if (cy_failed(err) && messages.count == 0) cli_say_error(options, path, err);
    builder_fini(&messages);
    if (cy_failed(err)) return EXIT_CODE_PROGRAM;
    return cli_write_program(options, path, &program, toau);
}

int cli_compile(struct cli_options *options, int argc, char **argv)
{
    const char *path = cli_one_file(options, NULL, 0, argc, argv);
    if (!path) return EXIT_CODE_USAGE;
    if (options->filter && isatty(STDOUT_FILENO) && !options->output)
        return cli_write_output(options, "-", CY_BYTES_NONE);
    struct builder toau, output;
    builder_init(&toau);
    builder_init(&output);
    int code = cli_compile_to(options, path, &toau);
    if (code == EXIT_CODE_OK) {
        const char *dot =
            cli_ends_with(path, ".rpn") ? NULL : strrchr(path, '.'); /* beside X.toau, not over it */
        builder_printf(&output, "%.*s.toau", dot && !strchr(dot, '/') ? (int)(dot - path) : (int)strlen(path),
                       path);
        const char *to = options->output   ? options->output
                         : options->filter ? "-"
                                           : builder_text_view(&output);
        code = cli_write_output(options, to, builder_view(&toau));
    }
    builder_fini(&output);
    builder_fini(&toau);
    return code;
}
