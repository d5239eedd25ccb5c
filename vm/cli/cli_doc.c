/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_doc.c: crownyc doc.
 *
 * In:   a source, or a folder of sources. Out: Markdown about each module, in byte order of paths, on stdout or in the
 *       file that -o names.
 * Invariant: a source with mistakes has no page: they are said on stderr, and nothing is written.
 */
#include "vm/cli/cli.h"

#include "compiler/query.h"
#include "compiler/source_file.h"
#include "compiler/stdlib.h"
#include "vm/base/mem.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <unistd.h>

struct cli_doc {
    const struct cli_options *options;
    struct builder page;
    uint32_t failed_count;
};

static void cli_doc_say_errors(const struct cli_doc *run, const struct query *query)
{
    struct arena arena;
    arena_init(&arena, 0);
    arena.exit_when_exhausted = true;
    uint32_t count;
    const struct query_diag *diags = query_diags(query, &arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (diags[i].place.file == QUERY_NO_FILE) {
            fprintf(stderr, "%s: %.*s\n", run->options->name, CY_BYTES_ARG(diags[i].message));
            continue;
        }
        struct query_file file = query_file_at(query, diags[i].place.file);
        uint32_t line = 1;
        for (uint32_t k = 0; k < diags[i].place.start; k++) line += file.text.data[k] == '\n';
        fprintf(stderr, "%.*s:%u: %s: %.*s\n", CY_BYTES_ARG(file.path), line, diags[i].code,
                CY_BYTES_ARG(diags[i].message));
    }
    arena_fini(&arena);
}

static bool cli_doc_visit(void *context, const char *path, cy_err err)
{
    struct cli_doc *run = context;
    if (cy_failed(err)) {
        run->failed_count++;
        cli_say_error(run->options, path, err);
        return true;
    }
    struct compile_options compile = {.path = path,
                                      .stdlib = stdlib_modules,
                                      .stdlib_count = stdlib_module_count,
                                      .korean = run->options->korean,
                                      .read_source = source_file_read};
    struct query *query = query_open(&compile);
    if (query_has_errors(query)) {
        run->failed_count++;
        cli_doc_say_errors(run, query);
    } else {
        if (run->page.count) builder_u8(&run->page, '\n');
        query_write_page(query, 0, run->options->korean, &run->page);
    }
    query_close(&query);
    return true;
}

int cli_doc(struct cli_options *options, int argc, char **argv)
{
    const char *path = cli_one_file(options, NULL, 0, argc, argv);
    if (!path) return EXIT_CODE_USAGE;
    struct cli_doc run = {.options = options};
    builder_init(&run.page);
    if (cli_is_folder(path))
        cli_visit_folder(path, cli_doc_visit, &run);
    else
        (void)cli_doc_visit(&run, path, CY_OK);
    if (run.page.failed) mem_exhausted();
    cy_err err = CY_OK;
    if (!run.failed_count)
        err = options->output ? file_write(options->output, builder_view(&run.page))
                              : file_write_all(STDOUT_FILENO, builder_view(&run.page));
    if (cy_failed(err)) cli_say_error(options, options->output ? options->output : "stdout", err);
    builder_fini(&run.page);
    return run.failed_count || cy_failed(err) ? EXIT_CODE_PROGRAM : EXIT_CODE_OK;
}
