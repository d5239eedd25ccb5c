/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_file.c: reads and writes what commands work on.
 *
 * In:   paths. Out: bytes, checked programs, exit codes; what fails is said on stderr, with the path.
 * Invariant: a binary never goes to a terminal.
 */
#include "vm/cli/cli.h"

#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/code/toau.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_ends_with(const char *text, const char *end)
{
    size_t count = strlen(text), end_count = strlen(end);
    return count >= end_count && memcmp(text + count - end_count, end, end_count) == 0;
}

/* A name with Hangul may reach us decomposed (macOS), so the ending is compared in normal form C. */
bool cli_is_source(const char *path)
{
    struct builder nfc;
    builder_init(&nfc);
    bool source = false;
    if (!cy_failed(text_to_nfc(cy_bytes_from_text(path), &nfc))) {
        const char *text = builder_text_view(&nfc);
        source = text && (cli_ends_with(text, ".han") || cli_ends_with(text, ".한선"));
    }
    builder_fini(&nfc);
    return source;
}

bool cli_is_text(const char *path) { return cli_is_source(path) || cli_ends_with(path, ".rpn"); }
bool cli_color(int descriptor)
{
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    bool refused = (no_color && *no_color) || (terminal && strcmp(terminal, "dumb") == 0);
    return !refused && isatty(descriptor);
}

int cli_read_toau(struct cli_options *options, const char *path, struct builder *toau)
{
    cy_err err = file_read(path, LIMIT_TOAU_BYTES, toau);
    if (!cy_failed(err)) return EXIT_CODE_OK;
    cli_say_error(options, path, err);
    return cy_is(err, CY_ERR_TOO_LARGE) ? EXIT_CODE_BAD_TOAU : EXIT_CODE_USAGE;
}

int cli_load(struct cli_options *options, const char *path, struct builder *toau,
             struct program **program_out)
{
    int code = cli_toau_of(options, path, toau);
    if (code != EXIT_CODE_OK) return code;
    struct code_failure failure = {0};
    cy_err err = toau_load(builder_view(toau), program_out, &failure);
    if (!cy_failed(err)) return EXIT_CODE_OK;
    struct builder text;
    builder_init(&text);
    code_failure_describe(&failure, options->korean, &text);
    fprintf(stderr, "%s: %s: %.*s\n", options->name, cli_shown_name(path), CY_BYTES_ARG(builder_view(&text)));
    builder_fini(&text);
    return EXIT_CODE_BAD_TOAU;
}

int cli_write_output(struct cli_options *options, const char *output, cy_bytes bytes)
{
    bool to_stdout = strcmp(output, "-") == 0;
    if (to_stdout && isatty(STDOUT_FILENO)) {
        return cli_usage(options,
                         options->korean ? "바이너리를 터미널에 쓰지 않습니다; > 파일 로 보내십시오"
                                         : "will not write a binary to a terminal; redirect with > FILE",
                         NULL);
    }
    cy_err err = to_stdout ? file_write_all(STDOUT_FILENO, bytes) : file_write(output, bytes);
    if (!cy_failed(err)) return EXIT_CODE_OK;
    cli_say_error(options, to_stdout ? "stdout" : output, err);
    return EXIT_CODE_PROGRAM;
}
