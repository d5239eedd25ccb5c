/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_diff.c: crownyc diff.
 *
 * In:   two .toau files, or texts, which are compiled first.
 * Out:  0 and "equal", or 1 and where they differ first; with --all everywhere.
 */
#include "vm/cli/cli.h"

#include "vm/code/toau_diff.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <unistd.h>

struct cli_diff_file {
    const char *path;
    struct builder toau;
    struct program *program;
};

static int cli_diff_show(const struct cli_options *options, const struct cli_diff_file *files, bool all)
{
    struct toau_diff_options diff = {.name_a = cy_bytes_from_text(files[0].path),
                                     .name_b = cy_bytes_from_text(files[1].path),
                                     .korean = options->korean,
                                     .all = all};
    cy_bytes a = builder_view(&files[0].toau), b = builder_view(&files[1].toau);
    bool equal = cy_bytes_equal(a, b);
    uint32_t count = 0;
    struct builder out;
    builder_init(&out);
    cy_err err = CY_OK;
    if (equal) {
        builder_text(&out, options->korean ? "같음\n" : "equal\n");
    } else {
        toau_diff_bytes(a, b, options->korean, &out);
        err = toau_diff(&diff, files[0].program, files[1].program, &out, &count);
    }
    if (!cy_failed(err) && !equal && !count)
        builder_text(&out,
                     options->korean ? "내용은 같고 순서만 다름\n" : "the same contents in another order\n");
    if (!cy_failed(err) && !equal && all)
        builder_printf(&out, options->korean ? "다른 곳 %u건\n" : "%u differences\n", count);
    if (!cy_failed(err)) err = file_write_all(STDOUT_FILENO, builder_view(&out));
    builder_fini(&out);
    if (cy_failed(err)) cli_say_error(options, "diff", err);
    return cy_failed(err) ? EXIT_CODE_INTERNAL : equal ? EXIT_CODE_OK : EXIT_CODE_PROGRAM;
}

int cli_diff(struct cli_options *options, int argc, char **argv)
{
    bool all = false;
    const struct cli_flag flags[] = {{.name = "--all", .set_out = &all}};
    int word_count = cli_words(options, flags, CY_COUNT_OF(flags), false, argc, argv);
    if (word_count < 0) return EXIT_CODE_USAGE;
    if (word_count != 2)
        return cli_usage(options, options->korean ? "파일 둘이 필요합니다" : "two files are needed", NULL);
    struct cli_diff_file files[2] = {{.path = argv[0]}, {.path = argv[1]}};
    int code = EXIT_CODE_OK;
    for (int i = 0; i < 2; i++) builder_init(&files[i].toau);
    for (int i = 0; i < 2 && code == EXIT_CODE_OK; i++)
        code = cli_load(options, files[i].path, &files[i].toau, &files[i].program);
    if (code == EXIT_CODE_OK) code = cli_diff_show(options, files, all);
    for (int i = 0; i < 2; i++) {
        program_free(&files[i].program);
        builder_fini(&files[i].toau);
    }
    return code;
}
