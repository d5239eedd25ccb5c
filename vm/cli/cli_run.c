/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_run.c: crownyc run.
 *
 * In:   a .toau, a source or RPN text, then the program's own arguments. Out: the program's exit code.
 */
#include "vm/cli/cli_option.h"

#include "vm/native/runtime.h"
#include "vm/net/loop.h"

#include <stdio.h>
#include <stdlib.h>

int cli_run(struct cli_options *options, int argc, char **argv)
{
    const char *io = getenv("CROWNY_IO");
    if (io && !loop_backend_exists(io)) return cli_usage(options, "CROWNY_IO is epoll or poll, not", io);
    const char *cpu = NULL, *profile_path = NULL;
    uint64_t cpu_ms = 0;
    bool profile_steps = false, stats = false;
    struct cli_flag flags[] = {{.name = "--cpu-ms", .value_out = &cpu},
                               {.name = "--profile", .value_out = &profile_path},
                               {.name = "--profile-steps", .set_out = &profile_steps},
                               {.name = "--stats", .set_out = &stats}};
    int word_count = cli_words(options, flags, CY_COUNT_OF(flags), true, argc, argv);
    if (word_count < 0) return EXIT_CODE_USAGE;
    if (cpu) cpu_ms = cli_option_count(options->running, "--cpu-ms", cpu);
    if (cpu && cpu_ms == 0) cpu_ms = UINT64_MAX;
    if (word_count == 0)
        return cli_usage(options, options->korean ? "파일 이름이 없습니다" : "a file name is missing", NULL);
    const char *path = argv[0];
    if (options->jit_asked) {
        fprintf(stderr,
                options->korean ? "%s: JIT는 아직 없습니다; 해석해서 실행합니다\n"
                                : "%s: there is no JIT yet; running interpreted\n",
                options->name);
    }
    struct builder toau;
    builder_init(&toau);
    bool reloadable = !cli_is_text(path) && !cli_is_stdin(path);
    int code = cli_toau_of(options, path, &toau);
    if (code == EXIT_CODE_OK) {
        struct runtime_options runtime = {
            .program_name = options->name,
            .program_path = reloadable ? path : NULL,
            .program = builder_view(&toau),
            .command = options->command,
            .args = (const char *const *)argv + 1,
            .arg_count = word_count - 1,
            .capabilities = options->capabilities,
            .cpu_burst_ms = cpu_ms,
            .path_rules = options->rules,
            .path_rule_count = options->rule_count,
            .io = io,
            .korean = options->korean,
            .profile_path = profile_path,
            .profile_steps = profile_steps,
            .stats = stats,
        };
        code = runtime_run(&runtime);
    }
    builder_fini(&toau);
    return code;
}
