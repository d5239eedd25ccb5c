/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_sources.c: the sources that a command was given: files, and folders of them.
 *
 * Order: that of the words, in folders the byte order of names, so that messages come in the same order everywhere.
 * Not here: the walk through folders (cli_folder.c).
 */
#include "vm/cli/cli.h"

#include "vm/sys/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

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

static bool cli_sources_visit(void *context, const char *path, cy_err err)
{
    struct cli_sources *run = context;
    if (cy_failed(err)) {
        run->failed_count++;
        cli_say_error(run->options, path, err);
    } else {
        run->on_file(run->context, path);
    }
    return true;
}

uint32_t cli_each_source(const struct cli_options *options, const char *path,
                         void (*on_file)(void *context, const char *path), void *context)
{
    struct cli_sources run = {.options = options, .on_file = on_file, .context = context};
    if (cli_is_folder(path))
        cli_visit_folder(path, cli_sources_visit, &run);
    else
        on_file(context, path);
    return run.failed_count;
}
