/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli.c: the table of commands, what holds before any option is read, usage errors.
 *
 * In:   the environment. Out: options; messages.
 * Not here: options (cli_option.c), help (cli_help.c).
 */
#include "vm/cli/cli.h"

#include "vm/base/text.h"
#include "vm/code/native_table.h"
#include "vm/code/toau.h"
#include "vm/sys/crypto.h"
#include "vm/sys/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct cli_command cli_commands[] = {
#define COMMAND(function, name, words, english, korean) {name, words, english, korean, function},
#include "vm/cli/command.def"
#undef COMMAND
};
const size_t cli_command_count = CY_COUNT_OF(cli_commands);

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < CY_COUNT_OF(cli_commands); i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}

int cli_usage(const struct cli_options *options, const char *problem, const char *what)
{
    fprintf(stderr, "%s: %s%s%s\n", options->name, problem, what ? ": " : "", what ? what : "");
    const struct cli_command *command = options->filter ? NULL : options->running;
    fprintf(stderr, options->korean ? "도움말: %s%s%s --help\n" : "for help: %s%s%s --help\n", options->name,
            command ? " " : "", command ? command->name : "");
    return EXIT_CODE_USAGE;
}

void cli_say_error(const struct cli_options *options, const char *path, cy_err err)
{
    char why[160];
    const char *text = cy_err_describe(err, options->korean, why, sizeof why);
    fprintf(stderr, "%s: %s: %s\n", options->name, path, text);
}

/* -- options --------------------------------------------------------------------------------------------- */
static const char *cli_language(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < CY_COUNT_OF(variables); i++) {
        const char *text = getenv(variables[i]);
        if (text && *text) return text;
    }
    return "";
}

void cli_options_init(struct cli_options *options, int argc, char **argv)
{
    (void)crypto_use_mem(); /* this comes before anything else, so nothing has used OpenSSL yet */
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *jit = getenv("CROWNY_JIT");
    process_fill_standard_descriptors();
    *options = (struct cli_options){
        .name = slash      ? slash + 1
                : argc > 0 ? argv[0]
                           : "crownyc",
        .korean = strncmp(cli_language(), "ko", 2) == 0,
        .jit_asked = jit && strcmp(jit, "1") == 0,
        .capabilities = capability_granted_mask(),
    };
}

int cli_version(struct cli_options *options, int argc, char **argv)
{
    int word_count = cli_words(options, NULL, 0, false, argc, argv);
    if (word_count < 0) return EXIT_CODE_USAGE;
    if (word_count > 0)
        return cli_usage(options, options->korean ? "남는 인자" : "one word too many", argv[0]);
    printf("crownyc %s (.toau version %d)\n", CLI_VERSION, TOAU_VERSION);
    return EXIT_CODE_OK;
}
