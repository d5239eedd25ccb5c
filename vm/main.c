/* SPDX-License-Identifier: MIT
 *
 * vm/main.c: crownyc under each of its names.
 *
 * In:   argv. Out: the exit code of the command that was named.
 * Invariant: the binary's own name chooses between the commands (crownyc), a filter (hanseonc_high, hanseonc_rpn) and
 *            the commands with the JIT armed (crownyc-jit).
 * Not here: the commands (vm/cli).
 */
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/cli/cli.h"

#include <stdio.h>
#include <string.h>

static bool main_asks_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int main_dispatch(struct cli_options *options, int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-') {
        if (main_asks_help(argv[i])) return cli_help(options);
        if (strcmp(argv[i], "--version") == 0) return cli_version(options, 0, NULL);
        int taken = cli_option_before(options, argc - i, argv + i);
        if (taken < 0) return EXIT_CODE_USAGE;
        i += taken;
    }
    if (i >= argc) {
        cli_usage(options, options->korean ? "명령이 없습니다" : "a command is missing", NULL);
        return EXIT_CODE_USAGE;
    }
    if (strcmp(argv[i], "help") == 0) return cli_help(options);
    struct nearest nearest;
    nearest_init(&nearest, cy_bytes_from_text(argv[i]));
    for (size_t k = 0; k < cli_command_count; k++) {
        nearest_offer(&nearest, cy_bytes_from_text(cli_commands[k].name));
        if (strcmp(argv[i], cli_commands[k].name) != 0) continue;
        if (i + 1 < argc && main_asks_help(argv[i + 1])) return cli_help_of(options, &cli_commands[k]);
        options->running = &cli_commands[k];
        if (!cli_options_belong(options, i - 1, argv + 1)) return EXIT_CODE_USAGE;
        return cli_commands[k].run(options, argc - i - 1, argv + i + 1);
    }
    fprintf(stderr, options->korean ? "%s: 모르는 명령: %s" : "%s: unknown command: %s", options->name,
            argv[i]);
    if (cli_is_text(argv[i]) || strstr(argv[i], ".toau"))
        fprintf(stderr, options->korean ? " (혹시 run %s?)" : " (did you mean run %s?)", argv[i]);
    else if (nearest.best.count > 0)
        fprintf(stderr, options->korean ? " (혹시 %.*s?)" : " (did you mean %.*s?)",
                CY_BYTES_ARG(nearest.best));
    fprintf(stderr, "\n");
    return EXIT_CODE_USAGE;
}

static int main_run(struct cli_options *options, int argc, char **argv)
{
    if (strcmp(options->name, "crownyc-jit") == 0) options->jit_asked = true;
    options->rpn = strcmp(options->name, "hanseonc_rpn") == 0;
    if (!options->rpn && strcmp(options->name, "hanseonc_high") != 0)
        return main_dispatch(options, argc, argv);
    options->filter = true;
    options->running = cli_command_find("compile");
    if (argc > 1 && main_asks_help(argv[1])) {
        printf("usage: %s %s > FILE.toau\n", options->name, options->rpn ? "TEXT.rpn|-" : "SOURCE.han|-");
        return EXIT_CODE_OK;
    }
    return cli_compile(options, argc - 1, argv + 1);
}

/* argv as it is now, words and all, in one block. Commands sort argv and cut its words ("write=DIR" into two), and a
 * binary upgrade must not give the next process other rights than this one has. NULL: no memory, then no upgrade. */
static const char **main_copy_words(int argc, char **argv)
{
    size_t bytes = ((size_t)argc + 1) * sizeof(char *);
    for (int i = 0; i < argc; i++) bytes += strlen(argv[i]) + 1;
    const char **words = mem_alloc_zeroed(bytes);
    char *at = words ? (char *)(words + argc + 1) : NULL;
    for (int i = 0; words && i < argc; i++) {
        size_t count = strlen(argv[i]) + 1;
        words[i] = memcpy(at, argv[i], count);
        at += count;
    }
    return words;
}

int main(int argc, char **argv)
{
    struct cli_options options;
    cli_options_init(&options, argc, argv);
    const char **command = main_copy_words(argc, argv);
    options.command = command;
    int exit_code = main_run(&options, argc, argv);
    mem_free(command);
    return exit_code;
}
