/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_help.c: help of crownyc and of each of its commands.
 *
 * In:   rows of command.def, option.def, load_option.def, exit.def and example.def. Out: text on stdout, in Korean or
 *       English.
 */
#include "vm/cli/cli_option.h"

#include <stdio.h>
#include <string.h>

static const struct {
    int code;
    const char *commands, *english, *korean;
} cli_exits[] = {
#define EXIT(code, commands, english, korean) {code, commands, english, korean},
#include "vm/cli/exit.def"
#undef EXIT
};

static const struct {
    const char *command, *words, *english, *korean;
} cli_examples[] = {
#define EXAMPLE(command, words, english, korean) {command, words, english, korean},
#include "vm/cli/example.def"
#undef EXAMPLE
};

static void cli_help_option(const struct cli_option_row *row, bool korean)
{
    enum { COLUMN = 32 };
    struct builder range;
    builder_init(&range);
    cli_range_describe(row, korean, &range);
    int width = printf("  %s%s%s%s%s", row->short_name ? row->short_name : "", row->short_name ? ", " : "",
                       row->name, *row->value ? " " : "", row->value);
    printf("%*s  %s", width < COLUMN ? COLUMN - width : 0, "", korean ? row->korean : row->english);
    if (range.count && row->range.kind != CLI_RANGE_WORDS) printf("; %s", builder_text_view(&range));
    if (!row->initial.text)
        printf(korean ? "; 기본 %llu" : "; default %llu", (unsigned long long)row->initial.number);
    else if (*row->initial.text)
        printf(korean ? "; 기본 %s" : "; default %s", row->initial.text);
    printf("\n");
    builder_fini(&range);
}

/* Those of one command, or, when that is NULL, those that may stand before it. */
static void cli_help_options(const struct cli_command *command, bool korean)
{
    printf(korean ? "\n옵션:\n" : "\noptions:\n");
    for (size_t i = 0; i < cli_option_row_count; i++) {
        const struct cli_option_row *row = &cli_option_rows[i];
        if (command ? cli_names_command(row->commands, command->name) : cli_option_may_lead(row))
            cli_help_option(row, korean);
    }
}

/* One command's, or the first row of each code. */
static void cli_help_exit_codes(const struct cli_command *command, bool korean)
{
    int previous = -1;
    printf(korean ? "\n종료 코드:" : "\nexit codes:");
    for (size_t i = 0; i < CY_COUNT_OF(cli_exits); i++) {
        if (command ? !cli_names_command(cli_exits[i].commands, command->name)
                    : cli_exits[i].code == previous)
            continue;
        printf("%s%d %s", previous < 0 ? " " : ", ", cli_exits[i].code,
               korean ? cli_exits[i].korean : cli_exits[i].english);
        previous = cli_exits[i].code;
    }
    printf("\n");
}

static void cli_help_examples(const struct cli_options *options, const struct cli_command *command)
{
    printf(options->korean ? "\n예:\n" : "\nexamples:\n");
    for (size_t i = 0; i < CY_COUNT_OF(cli_examples); i++) {
        if (strcmp(cli_examples[i].command, command->name) != 0) continue;
        printf("  %s %s%s%s\n      %s\n", options->name, command->name, *cli_examples[i].words ? " " : "",
               cli_examples[i].words, options->korean ? cli_examples[i].korean : cli_examples[i].english);
    }
}

int cli_help(const struct cli_options *options)
{
    printf(options->korean ? "사용법: %s 명령 [옵션] ...\n\n" : "usage: %s COMMAND [OPTIONS] ...\n\n",
           options->name);
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        printf("  %-12s %-36s %s\n", command->name, command->words,
               options->korean ? command->korean : command->english);
    }
    printf(options->korean ? "\n%s 명령 --help: 그 명령의 옵션, 종료 코드, 예\n"
                           : "\n%s COMMAND --help: the options, exit codes and examples of one\n",
           options->name);
    cli_help_options(NULL, options->korean);
    printf(options->korean
               ? "\nhanseonc_high SOURCE > FILE.toau, hanseonc_rpn TEXT > FILE.toau는 거르개로 컴파일한다: "
                 "알림은 "
                 "stderr로,\n실패하면 stdout은 비어 있다.\n"
               : "\nhanseonc_high SOURCE > FILE.toau and hanseonc_rpn TEXT > FILE.toau compile as filters: "
                 "messages on stderr, nothing\non stdout on failure.\n");
    cli_help_exit_codes(NULL, options->korean);
    return EXIT_CODE_OK;
}

int cli_help_of(const struct cli_options *options, const struct cli_command *command)
{
    printf(options->korean ? "사용법: %s %s [옵션]%s%s\n\n  %s\n" : "usage: %s %s [OPTIONS]%s%s\n\n  %s\n",
           options->name, command->name, *command->words ? " " : "", command->words,
           options->korean ? command->korean : command->english);
    cli_help_options(command, options->korean);
    cli_help_exit_codes(command, options->korean);
    cli_help_examples(options, command);
    return EXIT_CODE_OK;
}
