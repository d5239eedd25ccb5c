/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_fix.c: crownyc fix.
 *
 * In:   sources of the earlier dialect, folders of them, or `-` for stdin; a table of builtins.
 * Out:  the files themselves, rewritten; with --check nothing is written, with --diff the lines that differ are shown
 *       instead; from stdin to stdout. What was done and what remains goes to stderr, closed by a count.
 * Invariant: exit code 0 only when nothing remains (and, with --check or --diff, nothing would change).
 */
#include "vm/cli/cli.h"

#include "compiler/fix.h"
#include "compiler/source_file.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How far a changed part is looked through for a line that both texts have. A longer one is all old, all new. */
#define CLI_FIX_WINDOW 200

struct cli_fix {
    struct cli_options *options;
    struct fix_options fix;
    bool check, diff;
    uint32_t changed_count, failed_count, remaining_count;
};

/* -- --diff -------------------------------------------------------------------------------------------------------- */

/* The line at `offset`, with its end. */
static cy_bytes cli_fix_line(cy_bytes text, size_t offset)
{
    cy_bytes rest = cy_bytes_skip(text, offset);
    size_t end = cy_bytes_find(rest, '\n');
    return cy_bytes_slice(rest, 0, end < rest.count ? end + 1 : end);
}

static void cli_fix_show(char mark, cy_bytes line)
{
    bool ended = line.count > 0 && line.data[line.count - 1] == '\n';
    printf("%c%.*s%s", mark, CY_BYTES_ARG(line), ended ? "" : "\n");
}

/* How many lines from `offset` on until one equals `line`, at most `window`; `window` when none does. */
static uint32_t cli_fix_find(cy_bytes text, size_t offset, cy_bytes line, uint32_t window)
{
    uint32_t count = 0;
    while (count < window && offset < text.count) {
        cy_bytes here = cli_fix_line(text, offset);
        if (cy_bytes_equal(here, line)) return count;
        offset += here.count;
        count++;
    }
    return window;
}

static size_t cli_fix_show_lines(char mark, cy_bytes text, size_t offset, uint32_t count)
{
    for (; count > 0 && offset < text.count; count--) {
        cy_bytes line = cli_fix_line(text, offset);
        cli_fix_show(mark, line);
        offset += line.count;
    }
    return offset;
}

/* Nothing but the changed lines, each part below the number of its first old line. */
static void cli_fix_diff(const char *name, cy_bytes old, cy_bytes fresh)
{
    size_t a = 0, b = 0;
    uint32_t line = 1;
    printf("--- %s\n+++ %s\n", name, name);
    while (a < old.count || b < fresh.count) {
        cy_bytes left = cli_fix_line(old, a), right = cli_fix_line(fresh, b);
        if (a < old.count && b < fresh.count && cy_bytes_equal(left, right)) {
            a += left.count, b += right.count, line++;
            continue;
        }
        printf("@@ %u @@\n", line);
        /* The old line that comes back first in the new text, and how many of each are before it. */
        uint32_t removed = 0, added = CLI_FIX_WINDOW;
        for (size_t at = a; removed < CLI_FIX_WINDOW && at < old.count; removed++) {
            cy_bytes candidate = cli_fix_line(old, at);
            added = cli_fix_find(fresh, b, candidate, CLI_FIX_WINDOW);
            if (added < CLI_FIX_WINDOW && candidate.count > 1) break;
            added = CLI_FIX_WINDOW;
            at += candidate.count;
        }
        size_t start = a;
        a = cli_fix_show_lines('-', old, a, removed);
        b = cli_fix_show_lines('+', fresh, b, added);
        for (size_t i = start; i < a; i++) line += old.data[i] == '\n';
    }
}

/* -- files --------------------------------------------------------------------------------------------------------- */

static cy_err cli_fix_write(struct cli_fix *run, const char *path, const char *name, cy_bytes old,
                            cy_bytes fresh)
{
    bool from_stdin = cli_is_stdin(path), changed = !cy_bytes_equal(old, fresh);
    if (changed) run->changed_count++;
    if (changed && run->diff) cli_fix_diff(name, old, fresh);
    if (changed && run->check && !run->diff) printf("%s\n", name);
    if (run->check || run->diff) return CY_OK;
    if (from_stdin) return file_write_all(STDOUT_FILENO, fresh);
    return changed ? cli_replace_file(path, fresh) : CY_OK;
}

static void cli_fix_file(void *context, const char *path)
{
    struct cli_fix *run = context;
    bool from_stdin = cli_is_stdin(path);
    const char *name = cli_shown_name(path);
    struct builder text, fixed, messages;
    struct fix_counts counts = {0};
    builder_init(&text), builder_init(&fixed), builder_init(&messages);
    cy_err err = from_stdin ? file_read_stream(STDIN_FILENO, LIMIT_SOURCE_BYTES, &text)
                            : source_file_read(NULL, path, &text);
    if (!cy_failed(err)) err = fix_source(name, builder_view(&text), &run->fix, &fixed, &messages, &counts);
    if (messages.count > 0) fwrite(messages.data, 1, messages.count, stderr);
    if (!cy_failed(err)) err = cli_fix_write(run, path, name, builder_view(&text), builder_view(&fixed));
    run->remaining_count += counts.remaining;
    if (cy_failed(err)) run->failed_count++;
    if (cy_failed(err) && messages.count == 0) cli_say_error(run->options, name, err);
    builder_fini(&messages), builder_fini(&fixed), builder_fini(&text);
}

int cli_fix(struct cli_options *options, int argc, char **argv)
{
    const char *table = NULL;
    struct cli_fix run = {.options = options,
                          .fix = {.stdlib = stdlib_modules,
                                  .stdlib_count = stdlib_module_count,
                                  .korean = options->korean,
                                  .read_source = source_file_read}};
    struct cli_flag flags[] = {
        {.name = "--check", .set_out = &run.check},
        {.name = "--diff", .set_out = &run.diff},
        {.name = "--builtins", .value_out = &table},
    };
    int word_count = cli_words(options, flags, CY_COUNT_OF(flags), false, argc, argv);
    if (word_count < 0) return EXIT_CODE_USAGE;
    if (word_count == 0)
        return cli_usage(options, options->korean ? "파일 이름이 없습니다" : "a file name is missing", NULL);
    struct builder rows;
    builder_init(&rows);
    cy_err err = table ? source_file_read(NULL, table, &rows) : CY_OK;
    if (cy_failed(err)) {
        cli_say_error(options, table, err);
        builder_fini(&rows);
        return EXIT_CODE_PROGRAM;
    }
    run.fix.builtins = builder_view(&rows);
    for (int i = 0; i < word_count; i++)
        run.failed_count += cli_each_source(options, argv[i], cli_fix_file, &run);
    builder_fini(&rows);
    fprintf(stderr, options->korean ? "%s: 손으로 고칠 곳 %u군데\n" : "%s: %u left to do by hand\n",
            options->name, run.remaining_count);
    bool would_change = (run.check || run.diff) && run.changed_count > 0;
    return run.failed_count > 0 || run.remaining_count > 0 || would_change ? EXIT_CODE_PROGRAM : EXIT_CODE_OK;
}

#undef CLI_FIX_WINDOW
