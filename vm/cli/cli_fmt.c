/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_fmt.c: crownyc fmt.
 *
 * In:   sources, folders of sources, or `-` for stdin.
 * Out:  the files themselves, formatted; with --check their names only, and exit code 1 when one would change; from
 *       stdin to stdout.
 * Invariant: a file with mistakes is not touched, nor one that is already as it should be.
 */
#include "vm/cli/cli.h"

#include "compiler/fmt.h"
#include "compiler/source_file.h"
#include "vm/base/limits.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct cli_fmt {
    struct cli_options *options;
    struct fmt_options format;
    bool check;
    uint32_t changed_count, failed_count, seen_count;
};

static void cli_fmt_file(void *context, const char *path)
{
    struct cli_fmt *run = context;
    bool from_stdin = cli_is_stdin(path);
    struct builder text, formatted, messages;
    builder_init(&text), builder_init(&formatted), builder_init(&messages);
    run->seen_count++;
    cy_err err = from_stdin ? file_read_stream(STDIN_FILENO, LIMIT_SOURCE_BYTES, &text)
                            : source_file_read(NULL, path, &text);
    const char *name = cli_shown_name(path);
    if (!cy_failed(err))
        err = fmt_source(cy_bytes_from_text(name), builder_view(&text), &run->format, &formatted, &messages);
    bool changed = !cy_failed(err) && !cy_bytes_equal(builder_view(&text), builder_view(&formatted));
    if (changed) run->changed_count++;
    if (changed && run->check) printf("%s\n", name);
    if (!cy_failed(err) && !run->check && from_stdin)
        err = file_write_all(STDOUT_FILENO, builder_view(&formatted));
    else if (changed && !run->check)
        err = cli_replace_file(path, builder_view(&formatted));
    if (messages.count > 0) fwrite(messages.data, 1, messages.count, stderr);
    if (cy_failed(err)) run->failed_count++;
    if (cy_failed(err) && messages.count == 0) cli_say_error(run->options, name, err);
    builder_fini(&messages), builder_fini(&formatted), builder_fini(&text);
}

int cli_fmt(struct cli_options *options, int argc, char **argv)
{
    const char *keywords = NULL;
    struct cli_fmt run = {.options = options, .format.korean = options->korean};
    struct cli_flag flags[] = {
        {.name = "--check", .set_out = &run.check},
        {.name = "--keywords", .value_out = &keywords},
    };
    int word_count = cli_words(options, flags, CY_COUNT_OF(flags), false, argc, argv);
    if (word_count < 0) return EXIT_CODE_USAGE;
    if (word_count == 0)
        return cli_usage(options, options->korean ? "파일 이름이 없습니다" : "a file name is missing", NULL);
    if (keywords)
        run.format.keywords = strcmp(keywords, "ko") == 0 ? FMT_KEYWORDS_KOREAN : FMT_KEYWORDS_ENGLISH;
    for (int i = 0; i < word_count; i++)
        run.failed_count += cli_each_source(options, argv[i], cli_fmt_file, &run);
    if (run.check && run.changed_count > 0)
        fprintf(stderr,
                options->korean ? "%s: 고쳐 쓸 파일 %u개 (전체 %u개)\n" : "%s: %u of %u files would change\n",
                options->name, run.changed_count, run.seen_count);
    return run.failed_count > 0 || (run.check && run.changed_count > 0) ? EXIT_CODE_PROGRAM : EXIT_CODE_OK;
}
