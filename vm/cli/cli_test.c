/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_test.c: crownyc test.
 *
 * In:   sources with test blocks. Out: a line for each test, then `N passed, N failed`; exit code 1 when one failed or
 *       a file did not compile.
 * Invariant: what one file does, no other one sees: each runs in a runtime of its own.
 */
#include "vm/cli/cli.h"

#include "compiler/compiler.h"
#include "vm/native/runtime.h"

#include <stdio.h>

int cli_test(struct cli_options *options, int argc, char **argv)
{
    struct runtime_tests tests = {.name_prefix = TEST_NAME_PREFIX};
    struct cli_flag flags[] = {{.name = "--filter", .value_out = &tests.filter}};
    int word_count = cli_words(options, flags, CY_COUNT_OF(flags), false, argc, argv);
    if (word_count < 0) return EXIT_CODE_USAGE;
    if (word_count == 0)
        return cli_usage(options, options->korean ? "파일 이름이 없습니다" : "a file name is missing", NULL);
    uint32_t broken_count = 0;
    for (int i = 0; i < word_count; i++) {
        struct builder toau;
        builder_init(&toau);
        int code = cli_compile_with(options, argv[i], true, &toau);
        struct runtime_options runtime = {
            .program_name = options->name,
            .program = builder_view(&toau),
            .capabilities = options->capabilities,
            .path_rules = options->rules,
            .path_rule_count = options->rule_count,
            .korean = options->korean,
            .tests = &tests,
        };
        if (word_count > 1) printf("%s\n", argv[i]);
        if (code != EXIT_CODE_OK) broken_count++;
        if (code == EXIT_CODE_OK) code = runtime_run(&runtime);
        if (code != EXIT_CODE_OK && code != EXIT_CODE_PROGRAM) broken_count++;
        builder_fini(&toau);
    }
    if (tests.passed_count + tests.failed_count == 0 && tests.skipped_count > 0)
        return cli_usage(options,
                         options->korean ? "이 이름의 시험이 없습니다" : "no test has this in its name",
                         tests.filter);
    printf("%u passed, %u failed\n", tests.passed_count, tests.failed_count);
    return tests.failed_count + broken_count > 0 ? EXIT_CODE_PROGRAM : EXIT_CODE_OK;
}
