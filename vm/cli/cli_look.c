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
#include <string.h>
#include <unistd.h>

static int cli_look_at(struct cli_options *options, const char *path,
                       int (*show)(const struct program *program))
{
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

static int cli_look(struct cli_options *options, int argc, char **argv,
                    int (*show)(const struct program *program))
{
    return cli_look_at(options, cli_one_file(options, NULL, 0, argc, argv), show);
}

static int cli_show_code_in(const struct program *program, bool korean)
{
    struct builder text;
    builder_init(&text);
    cy_err err = korean ? rpn_write_korean(program, PROGRAM_NO_INDEX, &text)
                        : rpn_write(program, PROGRAM_NO_INDEX, &text);
    if (!cy_failed(err)) err = file_write_all(STDOUT_FILENO, builder_view(&text));
    builder_fini(&text);
    return cy_failed(err) ? EXIT_CODE_INTERNAL : EXIT_CODE_OK;
}
static int cli_show_code(const struct program *program) { return cli_show_code_in(program, false); }
static int cli_show_korean_code(const struct program *program) { return cli_show_code_in(program, true); }

/* The words are English unless asked for: the text must not depend on who wrote it. */
int cli_rpn(struct cli_options *options, int argc, char **argv)
{
    const char *keywords = "en";
    const struct cli_flag flags[] = {{.name = "--keywords", .value_out = &keywords}};
    const char *path = cli_one_file(options, flags, CY_COUNT_OF(flags), argc, argv);
    bool korean = strcmp(keywords, "ko") == 0;
    return cli_look_at(options, path, korean ? cli_show_korean_code : cli_show_code);
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
