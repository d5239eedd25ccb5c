/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_folder.c: the sources in a folder and below it.
 *
 * In:   a path. Out: one call for each source, in byte order of names, so that messages come in the same order on every
 *       machine.
 * Invariant: what begins with a dot is left alone, and links to folders are not followed.
 */
#include "vm/cli/cli.h"

#include "vm/base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CLI_FOLDER_DEPTH \
    32 /* of folders in folders; links to folders are not followed, so only a made-up tree is deeper */

struct cli_folder {
    cli_visit visit;
    void *context;
};

static bool cli_folder_walk(const struct cli_folder *walk, const char *path, uint32_t depth);

static bool cli_folder_entry(const struct cli_folder *walk, const char *path, uint32_t depth)
{
    struct stat about;
    if (lstat(path, &about) != 0) return true;
    if (S_ISDIR(about.st_mode)) return cli_folder_walk(walk, path, depth + 1);
    return !S_ISREG(about.st_mode) || !cli_is_source(path) || walk->visit(walk->context, path, CY_OK);
}

/* The names in a folder, one after another, each ending in NUL. */
static cy_err cli_folder_names(const char *path, struct builder *names, size_t *count_out)
{
    *count_out = 0;
    DIR *folder = opendir(path);
    if (!folder) return cy_err_from_errno(errno);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        builder_bytes(names, cy_bytes_of(entry->d_name, strlen(entry->d_name) + 1));
        ++*count_out;
    }
    closedir(folder);
    return names->failed ? CY_ERR(NO_MEMORY) : CY_OK;
}

static int cli_folder_compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static bool cli_folder_sorted(const struct cli_folder *walk, const char *path, cy_bytes names, size_t count,
                              uint32_t depth)
{
    const char **sorted = mem_alloc((count + 1) * sizeof *sorted);
    if (!sorted) mem_exhausted();
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = (const char *)names.data + at;
        at += strlen(sorted[i]) + 1;
    }
    qsort(sorted, count, sizeof *sorted, cli_folder_compare);
    bool more = true;
    for (size_t i = 0; more && i < count; i++) {
        struct builder below;
        builder_init(&below);
        builder_printf(&below, "%s/%s", path, sorted[i]);
        const char *text = builder_text_view(&below);
        if (text) more = cli_folder_entry(walk, text, depth);
        builder_fini(&below);
    }
    mem_free(sorted);
    return more;
}

static bool cli_folder_walk(const struct cli_folder *walk, const char *path, uint32_t depth)
{
    if (depth > CLI_FOLDER_DEPTH) return true;
    struct builder names;
    builder_init(&names);
    size_t count;
    cy_err err = cli_folder_names(path, &names, &count);
    bool more = true;
    if (cy_failed(err))
        more = walk->visit(walk->context, path, err);
    else if (count > 0)
        more = cli_folder_sorted(walk, path, builder_view(&names), count, depth);
    builder_fini(&names);
    return more;
}

bool cli_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

void cli_visit_folder(const char *path, cli_visit visit, void *context)
{
    struct cli_folder walk = {visit, context};
    (void)cli_folder_walk(&walk, path, 0);
}

#undef CLI_FOLDER_DEPTH
