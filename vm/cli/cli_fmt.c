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

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLI_FMT_FOLDER_DEPTH \
    32 /* of folders in folders; links to folders are not followed, so only a made-up tree is deeper */

struct cli_fmt {
    struct cli_options *options;
    struct fmt_options format;
    bool check;
    uint32_t changed_count, failed_count, seen_count;
};

/* Behind a link, the file it names is replaced and not the link. */
static cy_err cli_fmt_replace(const char *path, cy_bytes bytes)
{
    char real[PATH_MAX];
    if (!realpath(path, real)) return cy_err_from_errno(errno);
    return file_write(real, bytes);
}

static void cli_fmt_file(struct cli_fmt *run, const char *path)
{
    bool from_stdin = strcmp(path, "-") == 0;
    struct builder text, formatted, messages;
    builder_init(&text), builder_init(&formatted), builder_init(&messages);
    run->seen_count++;
    cy_err err = from_stdin ? file_read_stream(STDIN_FILENO, LIMIT_SOURCE_BYTES, &text)
                            : source_file_read(NULL, path, &text);
    const char *name = from_stdin ? "<stdin>" : path;
    if (!cy_failed(err))
        err = fmt_source(cy_bytes_from_text(name), builder_view(&text), &run->format, &formatted, &messages);
    bool changed = !cy_failed(err) && !cy_bytes_equal(builder_view(&text), builder_view(&formatted));
    if (changed) run->changed_count++;
    if (changed && run->check) printf("%s\n", name);
    if (!cy_failed(err) && !run->check && from_stdin)
        err = file_write_all(STDOUT_FILENO, builder_view(&formatted));
    else if (changed && !run->check)
        err = cli_fmt_replace(path, builder_view(&formatted));
    if (messages.count > 0) fwrite(messages.data, 1, messages.count, stderr);
    if (cy_failed(err)) run->failed_count++;
    if (cy_failed(err) && messages.count == 0) cli_say_error(run->options, name, err);
    builder_fini(&messages), builder_fini(&formatted), builder_fini(&text);
}

static void cli_fmt_folder(struct cli_fmt *run, const char *path, uint32_t depth);

/* A folder's sources, below it too; what begins with a dot is left alone, and links to folders are not followed. */
static void cli_fmt_entry(struct cli_fmt *run, const char *path, uint32_t depth)
{
    struct stat about;
    if (lstat(path, &about) != 0) return;
    if (S_ISDIR(about.st_mode)) cli_fmt_folder(run, path, depth + 1);
    if (S_ISREG(about.st_mode) && cli_is_source(path)) cli_fmt_file(run, path);
}

/* The names in a folder, one after another, each ending in NUL. */
static cy_err cli_fmt_names(const char *path, struct builder *names)
{
    DIR *folder = opendir(path);
    if (!folder) return cy_err_from_errno(errno);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            builder_bytes(names, cy_bytes_of(entry->d_name, strlen(entry->d_name) + 1));
    closedir(folder);
    return names->failed ? CY_ERR(NO_MEMORY) : CY_OK;
}

/* In byte order, so that messages come in the same order everywhere: always the least name above the last one. */
static const char *cli_fmt_next_name(cy_bytes names, const char *last)
{
    const char *best = NULL;
    for (size_t i = 0; i < names.count; i += strlen((const char *)names.data + i) + 1) {
        const char *name = (const char *)names.data + i;
        if (last && strcmp(name, last) <= 0) continue;
        if (!best || strcmp(name, best) < 0) best = name;
    }
    return best;
}

static void cli_fmt_folder(struct cli_fmt *run, const char *path, uint32_t depth)
{
    if (depth > CLI_FMT_FOLDER_DEPTH) return;
    struct builder names;
    builder_init(&names);
    cy_err err = cli_fmt_names(path, &names);
    if (cy_failed(err)) {
        run->failed_count++;
        cli_say_error(run->options, path, err);
    }
    const char *name = NULL;
    while (!cy_failed(err) && (name = cli_fmt_next_name(builder_view(&names), name))) {
        struct builder below;
        builder_init(&below);
        builder_printf(&below, "%s/%s", path, name);
        const char *text = builder_text_view(&below);
        if (text) cli_fmt_entry(run, text, depth);
        builder_fini(&below);
    }
    builder_fini(&names);
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
    if (keywords && strcmp(keywords, "ko") != 0 && strcmp(keywords, "en") != 0)
        return cli_usage(options,
                         options->korean ? "--keywords는 ko나 en입니다" : "--keywords is ko or en, not",
                         keywords);
    if (keywords)
        run.format.keywords = strcmp(keywords, "ko") == 0 ? FMT_KEYWORDS_KOREAN : FMT_KEYWORDS_ENGLISH;
    for (int i = 0; i < word_count; i++) {
        struct stat about;
        if (stat(argv[i], &about) == 0 && S_ISDIR(about.st_mode))
            cli_fmt_folder(&run, argv[i], 0);
        else
            cli_fmt_file(&run, argv[i]);
    }
    if (run.check && run.changed_count > 0)
        fprintf(stderr,
                options->korean ? "%s: 고쳐 쓸 파일 %u개 (전체 %u개)\n" : "%s: %u of %u files would change\n",
                options->name, run.changed_count, run.seen_count);
    return run.failed_count > 0 || (run.check && run.changed_count > 0) ? EXIT_CODE_PROGRAM : EXIT_CODE_OK;
}
