/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_compile.c: crownyc compile, and the filters hanseonc_high and hanseonc_rpn.
 *
 * In:   a source or RPN text. Out: a .toau beside it, at -o, or, of what came from stdin and in the filters, on stdout;
 *       all messages of all files on stderr.
 *       Warnings too, because most people never run `crownyc check`: unless --quiet.
 * Invariant: nothing is written when anything was wrong.
 */
#include "vm/cli/cli.h"

#include "compiler/compiler.h"
#include "compiler/stdlib.h"
#include "vm/code/toau.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cli_compile_to(struct cli_options *options, const char *path, struct builder *toau)
{
    return cli_compile_with(options, path, false, toau);
}

/* `main_text` is NULL, or what stands for the file `path`. */
static int cli_compile_source(struct cli_options *options, const char *path, cy_bytes *main_text, bool tests,
                              struct builder *toau)
{
    struct compile_options compile = {
        .path = path,
        .stdlib = stdlib_modules,
        .stdlib_count = stdlib_module_count,
        .korean = options->korean,
        .json = options->json,
        .color = cli_color(STDERR_FILENO),
        .warnings = options->warnings,
        .tests = tests,
        .read_source = cli_source_read,
        .context = main_text,
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
    err = toau_write(program, toau);
    program_free(&program);
    if (cy_failed(err)) cli_say_error(options, path, err);
    return cy_failed(err) ? EXIT_CODE_INTERNAL : EXIT_CODE_OK;
}

static int cli_compile_stdin(struct cli_options *options, cy_bytes text, bool tests, struct builder *toau)
{
    if (cli_looks_like_rpn(text)) return cli_assemble_text(options, CLI_STDIN_NAME, text, toau);
    return cli_compile_source(options, CLI_STDIN_NAME, &text, tests, toau);
}

int cli_compile_with(struct cli_options *options, const char *path, bool tests, struct builder *toau)
{
    if (options->rpn || cli_ends_with(path, ".rpn")) return cli_assemble_to(options, path, toau);
    if (!cli_is_stdin(path)) return cli_compile_source(options, path, NULL, tests, toau);
    struct builder text;
    builder_init(&text);
    int code = cli_read_stdin(options, &text);
    if (code == EXIT_CODE_OK) code = cli_compile_stdin(options, builder_view(&text), tests, toau);
    builder_fini(&text);
    return code;
}

int cli_toau_of(struct cli_options *options, const char *path, struct builder *toau)
{
    if (cli_is_text(path)) return cli_compile_to(options, path, toau);
    if (!cli_is_stdin(path)) return cli_read_toau(options, path, toau);
    struct builder given;
    builder_init(&given);
    int code = cli_read_stdin(options, &given);
    if (code == EXIT_CODE_OK && toau_begins(builder_view(&given)))
        builder_bytes(toau, builder_view(&given));
    else if (code == EXIT_CODE_OK)
        code = cli_compile_stdin(options, builder_view(&given), false, toau);
    builder_fini(&given);
    return code;
}

int cli_compile(struct cli_options *options, int argc, char **argv)
{
    bool quiet = false;
    const struct cli_flag flags[] = {{.name = "--json", .set_out = &options->json},
                                     {.name = "--quiet", .set_out = &quiet}};
    const char *path = cli_one_file(options, flags, CY_COUNT_OF(flags), argc, argv);
    if (!path) return EXIT_CODE_USAGE;
    options->warnings = !quiet && !options->filter; /* the filters say what older scripts expect */
    if ((options->filter || cli_is_stdin(path)) && isatty(STDOUT_FILENO) && !options->output)
        return cli_write_output(options, "-", CY_BYTES_NONE);
    struct builder toau, output;
    builder_init(&toau);
    builder_init(&output);
    int code = cli_compile_to(options, path, &toau);
    if (code == EXIT_CODE_OK) {
        bool is_rpn = cli_ends_with(path, ".rpn");
        const char *dot = is_rpn ? NULL : strrchr(path, '.'); /* beside X.toau, not over it */
        builder_printf(&output, "%.*s.toau", dot && !strchr(dot, '/') ? (int)(dot - path) : (int)strlen(path),
                       path);
        const char *to = options->output                         ? options->output
                         : options->filter || cli_is_stdin(path) ? "-"
                                                                 : builder_text_view(&output);
        code = cli_write_output(options, to, builder_view(&toau));
    }
    builder_fini(&output);
    builder_fini(&toau);
    return code;
}
