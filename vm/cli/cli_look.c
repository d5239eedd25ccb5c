/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_look.c: commands that look at a .toau without running it: verify, rpn, caps.
 *
 * In:   a file, which is checked first. Out: text on stdout.
 */
#include "vm/cli/cli.h"

#include "vm/code/native_table.h"
#include "vm/code/rpn.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <unistd.h>

static int cli_look(struct cli_options *options, int argc, char **argv,
                    int (*show)(const struct program *program))
{
    const char *path = cli_one_file(options, NULL, 0, argc, argv);
    if (!path) return EXIT_CODE_USAGE;
    struct builder toau;
    struct program *program = NULL;
    builder_init(&toau);
    int code = cli_load(options, path, &toau, &program);
    if (code == EXIT_CODE_OK) code = show(program);
    program_free(&program);
    builder_fini(&toau);
    return code;
}

static int cli_show_code(const struct program *program)
{
    struct builder text;
    builder_init(&text);
    cy_err err = rpn_write(program, PROGRAM_NO_INDEX, &text);
    if (!cy_failed(err)) err = file_write_all(STDOUT_FILENO, builder_view(&text));
    builder_fini(&text);
    return cy_failed(err) ? EXIT_CODE_INTERNAL : EXIT_CODE_OK;
}
int cli_rpn(struct cli_options *options, int argc, char **argv)
{
    return cli_look(options, argc, argv, cli_show_code);
}

static int cli_show_caps(const struct program *program)
{
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        if (!(program->capabilities & bit)) continue;
        bool granted = capability_granted_mask() & bit;
        printf("%-6s%s\n", capability_word((enum capability)bit), granted ? "" : " (needs --allow)");
    }
    return EXIT_CODE_OK;
}
int cli_caps(struct cli_options *options, int argc, char **argv)
{
    return cli_look(options, argc, argv, cli_show_caps);
}

static int cli_show_nothing(const struct program *program)
{
    printf("ok: %u functions, %u modules\n", program->function_count, program->module_count);
    return EXIT_CODE_OK;
}
int cli_verify(struct cli_options *options, int argc, char **argv)
{
    return cli_look(options, argc, argv, cli_show_nothing);
}
