/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_check.c: crownyc check, crownyc explain.
 *
 * In:   sources; the code of a message. Out: on stdout, because they are what was asked for, the messages of the
 *       compiler; a page that explains one.
 * Invariant: check does all that compile does, and writes no file. A file without main is taken as a module.
 */
#include "vm/cli/cli.h"

#include "compiler/compiler.h"
#include "compiler/explain.h"
#include "compiler/stdlib.h"

#include <stdio.h>
#include <unistd.h>

/* Returns the errors and warnings of one file; `main_text` is NULL, or what stands for it. */
static uint32_t cli_check_source(const struct cli_options *options, const char *path, cy_bytes *main_text,
                                 bool deny_warnings)
{
    uint32_t error_count = 0, warning_count = 0;
    struct compile_options compile = {
        .path = path,
        .stdlib = stdlib_modules,
        .stdlib_count = stdlib_module_count,
        .korean = options->korean,
        .json = options->json,
        .color = !options->json && cli_color(STDOUT_FILENO),
        .warnings = true,
        .module = true,
        .warning_count_out = &warning_count,
        .read_source = cli_source_read,
        .context = main_text,
    };
    struct program *program = NULL;
    struct builder messages;
    builder_init(&messages);
    cy_err err = compile_program(&compile, &program, &messages, &error_count);
    if (messages.count > 0) fwrite(messages.data, 1, messages.count, stdout);
    if (cy_failed(err) && messages.count == 0) cli_say_error(options, path, err);
    builder_fini(&messages);
    program_free(&program);
    return (cy_failed(err) && error_count == 0) + error_count + (deny_warnings ? warning_count : 0);
}

static uint32_t cli_check_file(const struct cli_options *options, const char *path, bool deny_warnings)
{
    if (!cli_is_stdin(path)) return cli_check_source(options, path, NULL, deny_warnings);
    struct builder text;
    builder_init(&text);
    uint32_t failed_count = 1;
    if (cli_read_stdin(options, &text) == EXIT_CODE_OK) {
        cy_bytes main_text = builder_view(&text);
        failed_count = cli_check_source(options, CLI_STDIN_NAME, &main_text, deny_warnings);
    }
    builder_fini(&text);
    return failed_count;
}

int cli_check(struct cli_options *options, int argc, char **argv)
{
    bool deny_warnings = false;
    const struct cli_flag flags[] = {{.name = "--json", .set_out = &options->json},
                                     {.name = "--deny-warnings", .set_out = &deny_warnings}};
    int count = cli_words(options, flags, CY_COUNT_OF(flags), false, argc, argv);
    if (count < 0) return EXIT_CODE_USAGE;
    if (count == 0)
        return cli_usage(options, options->korean ? "파일 이름이 없습니다" : "a file name is missing", NULL);
    bool good = true;
    for (int i = 0; i < count; i++) good = cli_check_file(options, argv[i], deny_warnings) == 0 && good;
    return good ? EXIT_CODE_OK : EXIT_CODE_PROGRAM;
}

static int cli_explain_unknown(const struct cli_options *options, const char *word)
{
    enum diag_code nearest;
    char meant[DIAG_CODE_TEXT_BYTES];
    struct builder what;
    builder_init(&what);
    builder_text(&what, word);
    if (diag_code_nearest(cy_bytes_from_text(word), &nearest)) {
        diag_code_text(nearest, meant);
        builder_printf(&what, options->korean ? " (혹시 %s?)" : " (did you mean %s?)", meant);
    } else {
        builder_text(&what, options->korean ? " (E0040이나 W0101처럼 씁니다)"
                                            : " (codes are written as E0040 or W0101)");
    }
    int code =
        cli_usage(options, options->korean ? "그런 번호의 알림은 없습니다" : "no message has this code",
                  builder_text_view(&what));
    builder_fini(&what);
    return code;
}

int cli_explain(struct cli_options *options, int argc, char **argv)
{
    int count = cli_words(options, NULL, 0, false, argc, argv);
    if (count < 0) return EXIT_CODE_USAGE;
    if (count > 1) return cli_usage(options, options->korean ? "남는 인자" : "one word too many", argv[1]);
    struct builder page;
    builder_init(&page);
    bool found = true;
    if (count == 0)
        explain_list(options->korean, &page);
    else
        found = explain_page(cy_bytes_from_text(argv[0]), options->korean, &page);
    if (found) fwrite(page.data, 1, page.count, stdout);
    builder_fini(&page);
    if (found) return EXIT_CODE_OK;
    return cli_explain_unknown(options, argv[0]);
}
