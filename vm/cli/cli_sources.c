/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_sources.c: the sources that a command was given: files, and folders of them.
 *
 * Order: that of the words, in folders the byte order of names, so that messages come in the same order everywhere.
 */
#include "vm/cli/cli.h"

#include "vm/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CLI_SOURCES_DEPTH \
    32 /* of folders in folders; links to folders are not followed, so only a made-up tree is deeper */

struct cli_sources {
    const struct cli_options *options;
    void (*on_file)(void *context, const char *path);
    void *context;
    uint32_t failed_count;
};

cy_err cli_replace_file(const char *path, cy_bytes bytes)
{
    char real[PATH_MAX];
    if (!realpath(path, real)) return cy_err_from_errno(errno);
    return file_write(real, bytes);
}

static void cli_sources_folder(struct cli_sources *run, const char *path, uint32_t depth);

/* A folder's sources, below it too; what begins with a dot is left alone, and links to folders are not followed. */
static void cli_sources_entry(struct cli_sources *run, const char *path, uint32_t depth)
{
    struct stat about;
    if (lstat(path, &about) != 0) return;
    if (S_ISDIR(about.st_mode)) cli_sources_folder(run, path, depth + 1);
    if (S_ISREG(about.st_mode) && cli_is_source(path)) run->on_file(run->context, path);
}

/* The names in a folder, one after another, each ending in NUL. */
static cy_err cli_sources_names(const char *path, struct builder *names)
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
static const char *cli_sources_next_name(cy_bytes names, const char *last)
{
    const char *best = NULL;
    for (size_t i = 0; i < names.count; i += strlen((const char *)names.data + i) + 1) {
        const char *name = (const char *)names.data + i;
        if (last && strcmp(name, last) <= 0) continue;
        if (!best || strcmp(name, best) < 0) best = name;
    }
    return best;
}

static void cli_sources_folder(struct cli_sources *run, const char *path, uint32_t depth)
{
    if (depth > CLI_SOURCES_DEPTH) return;
    struct builder names;
    builder_init(&names);
    cy_err err = cli_sources_names(path, &names);
    if (cy_failed(err)) {
        run->failed_count++;
        cli_say_error(run->options, path, err);
    }
    const char *name = NULL;
    while (!cy_failed(err) && (name = cli_sources_next_name(builder_view(&names), name))) {
        struct builder below;
        builder_init(&below);
        builder_printf(&below, "%s/%s", path, name);
        const char *text = builder_text_view(&below);
        if (text) cli_sources_entry(run, text, depth);
        builder_fini(&below);
    }
    builder_fini(&names);
}

uint32_t cli_each_source(const struct cli_options *options, const char *path,
                         void (*on_file)(void *context, const char *path), void *context)
{
    struct cli_sources run = {.options = options, .on_file = on_file, .context = context};
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        cli_sources_folder(&run, path, 0);
    else
        on_file(context, path);
    return run.failed_count;
}

#undef CLI_SOURCES_DEPTH
