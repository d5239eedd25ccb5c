/* SPDX-License-Identifier: MIT
 *
 * vm/main.c: the command line of crownyc, under each of its names.
 *
 * In:   argv. Out: exit codes (vm/base/exit_code.h); what was asked for on stdout, all messages on stderr.
 * Invariant: each command is a row of main_commands; help, usage errors and dispatch read that table.
 * Not here: compiling (compiler/compiler.c), running (vm/native/runtime.c).
 */
#include "compiler/compiler.h"
#include "compiler/source_file.h"
#include "compiler/stdlib.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/code/native_table.h"
#include "vm/code/rpn.h"
#include "vm/code/toau.h"
#include "vm/native/runtime.h"
#include "vm/net/loop.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAIN_VERSION "0.1.0"

struct main_options {
    const char *name; /* argv[0] without its folder */
    bool korean;
    bool filter; /* hanseonc_high: one source in, the file on stdout */
    bool jit_asked;
    const char *output;
    uint32_t capabilities;
};

struct main_command {
    const char *name;
    const char *arguments;
    const char *english;
    const char *korean;
    int (*run)(struct main_options *options, int argc, char **argv);
};

static int main_usage(const struct main_options *options, const char *problem, const char *what)
{
    fprintf(stderr, "%s: %s%s%s\n", options->name, problem, what ? ": " : "", what ? what : "");
    fprintf(stderr, options->korean ? "도움말: %s --help\n" : "for help: %s --help\n", options->name);
    return EXIT_CODE_USAGE;
}

static void main_say_error(const struct main_options *options, const char *path, cy_err err)
{
    char why[160];
    fprintf(stderr, "%s: %s: %s\n", options->name, path,
            cy_err_describe(err, options->korean, why, sizeof why));
}

static bool main_ends_with(const char *text, const char *end)
{
    size_t count = strlen(text), end_count = strlen(end);
    return count >= end_count && memcmp(text + count - end_count, end, end_count) == 0;
}

/* A name with Hangul may reach us decomposed (macOS), so the ending is compared in normal form C. */
static bool main_is_source(const char *path)
{
    struct builder nfc;
    builder_init(&nfc);
    bool source = false;
    if (!cy_failed(text_to_nfc(cy_bytes_from_text(path), &nfc))) {
        const char *text = builder_text_view(&nfc);
        source = text && (main_ends_with(text, ".han") || main_ends_with(text, ".한선"));
    }
    builder_fini(&nfc);
    return source;
}

/* -- options shared by commands -------------------------------------------------------------------------- */
static bool main_capability_words(struct main_options *options, const char *words, bool allow)
{
    cy_bytes rest = cy_bytes_from_text(words);
    while (rest.count > 0) {
        size_t end = cy_bytes_find(rest, ',');
        cy_bytes word = cy_bytes_slice(rest, 0, end);
        cy_bytes name = cy_bytes_slice(word, 0, cy_bytes_find(word, '='));
        enum capability capability;
        if (!capability_find(name, &capability) || capability == CAPABILITY_NONE) {
            fprintf(stderr, "%s: \"%.*s\" is no capability; there are net, read, env, write, run and ffi\n",
                    options->name, CY_BYTES_ARG(word));
            return false;
        }
        if (allow && !(capability_granted_mask() & (uint32_t)capability)) {
            fprintf(stderr, "%s: --allow %.*s: no native needs this yet\n", options->name,
                    CY_BYTES_ARG(word));
            return false;
        }
        if (allow) options->capabilities |= (uint32_t)capability;
        if (!allow) options->capabilities &= ~(uint32_t)capability;
        rest = cy_bytes_skip(rest, end + 1);
    }
    return true;
}

/* Reads one option at argv[0]. Returns how many words it took, 0 when argv[0] is no option of ours, -1 after a
 * message. */
static int main_option(struct main_options *options, int argc, char **argv)
{
    static const char *const with_value[] = {"--lang", "--allow", "--deny", "-o", "--output"};
    if (strcmp(argv[0], "--jit") == 0) {
        options->jit_asked = true;
        return 1;
    }
    for (size_t i = 0; i < CY_COUNT_OF(with_value); i++) {
        if (strcmp(argv[0], with_value[i]) != 0) continue;
        if (argc < 2) {
            main_usage(options, "this option needs a value", argv[0]);
            return -1;
        }
        if (i == 0 && strcmp(argv[1], "ko") != 0 && strcmp(argv[1], "en") != 0) {
            main_usage(options, "--lang is ko or en, not", argv[1]);
            return -1;
        }
        if (i == 0) options->korean = strcmp(argv[1], "ko") == 0;
        if ((i == 1 || i == 2) && !main_capability_words(options, argv[1], i == 1)) return -1;
        if (i >= 3) options->output = argv[1];
        return 2;
    }
    return 0;
}

/* Options first, then exactly one file; `*rest` is the index behind it. NULL after a message. */
static const char *main_one_file(struct main_options *options, int argc, char **argv, int *rest)
{
    const char *file = NULL;
    int i = 0;
    while (i < argc) {
        int taken = argv[i][0] == '-' && argv[i][1] ? main_option(options, argc - i, argv + i) : 0;
        if (taken < 0) return NULL;
        if (taken == 0 && argv[i][0] == '-' && argv[i][1]) {
            main_usage(options, options->korean ? "모르는 옵션" : "unknown option", argv[i]);
            return NULL;
        }
        if (taken == 0 && file) break;
        if (taken == 0) {
            file = argv[i];
            taken = 1;
            if (rest) {
                i += taken;
                break;
            }
        }
        i += taken;
    }
    if (!file) main_usage(options, options->korean ? "파일 이름이 없습니다" : "a file name is missing", NULL);
    if (!file) return NULL;
    if (rest) *rest = i;
    if (!rest && i < argc) {
        main_usage(options, options->korean ? "남는 인자" : "one word too many", argv[i]);
        return NULL;
    }
    return file;
}

/* -- compile --------------------------------------------------------------------------------------------- */
static int main_compile_to(struct main_options *options, const char *path, struct builder *toau)
{
    if (main_ends_with(path, ".rpn")) {
        fprintf(stderr, "%s: %s: reading RPN text is not there yet\n", options->name, path);
        return EXIT_CODE_PROGRAM;
    }
    struct compile_options compile = {
        .path = path,
        .stdlib = stdlib_modules,
        .stdlib_count = stdlib_module_count,
        .korean = options->korean,
        .read_source = source_file_read,
    };
    struct program *program = NULL;
    struct builder messages;
    uint32_t error_count = 0;
    builder_init(&messages);
    cy_err err = compile_program(&compile, &program, &messages, &error_count);
    if (messages.count > 0) fwrite(messages.data, 1, messages.count, stderr);
    if (cy_failed(err) && messages.count == 0) main_say_error(options, path, err);
    builder_fini(&messages);
    if (cy_failed(err)) return EXIT_CODE_PROGRAM;
    err = toau_write(program, toau);
    program_free(&program);
    if (cy_failed(err)) main_say_error(options, path, err);
    return cy_failed(err) ? EXIT_CODE_INTERNAL : EXIT_CODE_OK;
}

static int main_write_output(struct main_options *options, const char *output, cy_bytes bytes)
{
    bool to_stdout = strcmp(output, "-") == 0;
    if (to_stdout && isatty(STDOUT_FILENO)) {
        return main_usage(options,
                          options->korean ? "바이너리를 터미널에 쓰지 않습니다; > 파일 로 보내십시오"
                                          : "will not write a binary to a terminal; redirect with > FILE",
                          NULL);
    }
    cy_err err = to_stdout ? file_write_all(STDOUT_FILENO, bytes) : file_write(output, bytes);
    if (!cy_failed(err)) return EXIT_CODE_OK;
    main_say_error(options, to_stdout ? "stdout" : output, err);
    return EXIT_CODE_PROGRAM;
}

static int main_compile(struct main_options *options, int argc, char **argv)
{
    const char *path = main_one_file(options, argc, argv, NULL);
    if (!path) return EXIT_CODE_USAGE;
    if (options->filter && isatty(STDOUT_FILENO) && !options->output)
        return main_write_output(options, "-", CY_BYTES_NONE);
    struct builder toau, output;
    builder_init(&toau);
    builder_init(&output);
    int code = main_compile_to(options, path, &toau);
    if (code == EXIT_CODE_OK) {
        const char *dot = strrchr(path, '.');
        builder_printf(&output, "%.*s.toau", dot && !strchr(dot, '/') ? (int)(dot - path) : (int)strlen(path),
                       path);
        const char *to = options->output   ? options->output
                         : options->filter ? "-"
                                           : builder_text_view(&output);
        code = main_write_output(options, to, builder_view(&toau));
    }
    builder_fini(&output);
    builder_fini(&toau);
    return code;
}

/* -- run ------------------------------------------------------------------------------------------------- */
static int main_read_toau(struct main_options *options, const char *path, struct builder *toau)
{
    cy_err err = file_read(path, LIMIT_TOAU_BYTES, toau);
    if (!cy_failed(err)) return EXIT_CODE_OK;
    main_say_error(options, path, err);
    return cy_is(err, CY_ERR_TOO_LARGE) ? EXIT_CODE_BAD_TOAU : EXIT_CODE_USAGE;
}

static int main_run(struct main_options *options, int argc, char **argv)
{
    int rest = 0;
    const char *io = getenv("CROWNY_IO");
    if (io && !loop_backend_exists(io)) return main_usage(options, "CROWNY_IO is epoll or poll, not", io);
    const char *path = main_one_file(options, argc, argv, &rest);
    if (!path) return EXIT_CODE_USAGE;
    if (options->jit_asked) {
        fprintf(stderr,
                options->korean ? "%s: JIT는 아직 없습니다; 해석해서 실행합니다\n"
                                : "%s: there is no JIT yet; running interpreted\n",
                options->name);
    }
    struct builder toau;
    builder_init(&toau);
    bool source = main_is_source(path);
    int code = source ? main_compile_to(options, path, &toau) : main_read_toau(options, path, &toau);
    if (code == EXIT_CODE_OK) {
        struct runtime_options runtime = {
            .program_name = options->name,
            .program_path = source ? NULL : path,
            .program = builder_view(&toau),
            .args = (const char *const *)argv + rest,
            .arg_count = argc - rest,
            .capabilities = options->capabilities,
            .io = io,
            .korean = options->korean,
        };
        code = runtime_run(&runtime);
    }
    builder_fini(&toau);
    return code;
}

/* -- looking at files ------------------------------------------------------------------------------------ */
static int main_load(struct main_options *options, const char *path, struct builder *toau,
                     struct program **program_out)
{
    int code = main_read_toau(options, path, toau);
    if (code != EXIT_CODE_OK) return code;
    struct code_failure failure = {0};
    cy_err err = toau_load(builder_view(toau), program_out, &failure);
    if (!cy_failed(err)) return EXIT_CODE_OK;
    struct builder text;
    builder_init(&text);
    code_failure_describe(&failure, options->korean, &text);
    fprintf(stderr, "%s: %s: %.*s\n", options->name, path, CY_BYTES_ARG(builder_view(&text)));
    builder_fini(&text);
    return EXIT_CODE_BAD_TOAU;
}

static int main_look(struct main_options *options, int argc, char **argv,
                     int (*show)(const struct program *program))
{
    const char *path = main_one_file(options, argc, argv, NULL);
    if (!path) return EXIT_CODE_USAGE;
    struct builder toau;
    struct program *program = NULL;
    builder_init(&toau);
    int code = main_load(options, path, &toau, &program);
    if (code == EXIT_CODE_OK) code = show(program);
    program_free(&program);
    builder_fini(&toau);
    return code;
}

static int main_show_code(const struct program *program)
{
    struct builder text;
    builder_init(&text);
    cy_err err = rpn_write(program, PROGRAM_NO_INDEX, &text);
    if (!cy_failed(err)) err = file_write_all(STDOUT_FILENO, builder_view(&text));
    builder_fini(&text);
    return cy_failed(err) ? EXIT_CODE_INTERNAL : EXIT_CODE_OK;
}
static int main_disassemble(struct main_options *options, int argc, char **argv)
{
    return main_look(options, argc, argv, main_show_code);
}

static int main_show_caps(const struct program *program)
{
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        if (!(program->capabilities & bit)) continue;
        bool granted = capability_granted_mask() & bit;
        printf("%-6s%s\n", capability_word((enum capability)bit), granted ? "" : " (needs --allow)");
    }
    return EXIT_CODE_OK;
}
static int main_caps(struct main_options *options, int argc, char **argv)
{
    return main_look(options, argc, argv, main_show_caps);
}

static int main_show_nothing(const struct program *program)
{
    printf("ok: %u functions, %u modules\n", program->function_count, program->module_count);
    return EXIT_CODE_OK;
}
static int main_verify(struct main_options *options, int argc, char **argv)
{
    return main_look(options, argc, argv, main_show_nothing);
}

static int main_version(struct main_options *options, int argc, char **argv)
{
    (void)options, (void)argc, (void)argv;
    printf("crownyc %s (.toau version %d)\n", MAIN_VERSION, TOAU_VERSION);
    return EXIT_CODE_OK;
}

/* -- the table ------------------------------------------------------------------------------------------- */
static const struct main_command main_commands[] = {
    {"compile", "SOURCE.han [-o FILE.toau]", "compile a program (default: beside the source)",
     "프로그램을 컴파일한다", main_compile},
    {"run", "FILE.toau|SOURCE.han [ARGUMENTS...]", "run a program", "프로그램을 실행한다", main_run},
    {"verify", "FILE.toau", "check a file without running it", "실행하지 않고 검사한다", main_verify},
    {"rpn", "FILE.toau", "write the program as RPN text", "프로그램을 RPN 글로 쓴다", main_disassemble},
    {"disassemble", "FILE.toau", "the same", "위와 같다", main_disassemble},
    {"caps", "FILE.toau", "list the capabilities a program needs", "프로그램이 필요로 하는 권한", main_caps},
    {"version", "", "print the version", "버전", main_version},
};

static int main_help(const struct main_options *options)
{
    printf(options->korean ? "사용법: %s 명령 [옵션] ...\n\n" : "usage: %s COMMAND [OPTIONS] ...\n\n",
           options->name);
    for (size_t i = 0; i < CY_COUNT_OF(main_commands); i++) {
        const struct main_command *command = &main_commands[i];
        printf("  %-12s %-36s %s\n", command->name, command->arguments,
               options->korean ? command->korean : command->english);
    }
    printf("\n  --lang ko|en              language of messages (default: from LC_ALL, LC_MESSAGES or LANG)\n"
           "  --deny net,read,env       take something away\n"
           "\nhanseonc_high SOURCE > FILE.toau compiles as a filter: messages on stderr, nothing on stdout "
           "on failure.\n"
           "exit codes: 0 ok, 1 compile or program error, 2 usage, 3 bad .toau, 4 configuration, 5 cannot "
           "listen, 70 internal\n");
    return EXIT_CODE_OK;
}

static const char *main_language(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < CY_COUNT_OF(variables); i++) {
        const char *text = getenv(variables[i]);
        if (text && *text) return text;
    }
    return "";
}

static int main_dispatch(struct main_options *options, int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-') {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return main_help(options);
        if (strcmp(argv[i], "--version") == 0) return main_version(options, 0, NULL);
        int taken = main_option(options, argc - i, argv + i);
        if (taken < 0) return EXIT_CODE_USAGE;
        if (taken == 0)
            return main_usage(options, options->korean ? "모르는 옵션" : "unknown option", argv[i]);
        i += taken;
    }
    if (i >= argc) {
        main_usage(options, options->korean ? "명령이 없습니다" : "a command is missing", NULL);
        return EXIT_CODE_USAGE;
    }
    if (strcmp(argv[i], "help") == 0) return main_help(options);
    struct nearest nearest;
    nearest_init(&nearest, cy_bytes_from_text(argv[i]));
    for (size_t k = 0; k < CY_COUNT_OF(main_commands); k++) {
        nearest_offer(&nearest, cy_bytes_from_text(main_commands[k].name));
        if (strcmp(argv[i], main_commands[k].name) != 0) continue;
        if (i + 1 < argc && (strcmp(argv[i + 1], "--help") == 0 || strcmp(argv[i + 1], "-h") == 0))
            return main_help(options);
        return main_commands[k].run(options, argc - i - 1, argv + i + 1);
    }
    fprintf(stderr, options->korean ? "%s: 모르는 명령: %s" : "%s: unknown command: %s", options->name,
            argv[i]);
    if (nearest.best.count > 0)
        fprintf(stderr, options->korean ? " (혹시 %.*s?)" : " (did you mean %.*s?)",
                CY_BYTES_ARG(nearest.best));
    fprintf(stderr, "\n");
    return EXIT_CODE_USAGE;
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    struct main_options options = {
        .name = slash      ? slash + 1
                : argc > 0 ? argv[0]
                           : "crownyc",
        .korean = strncmp(main_language(), "ko", 2) == 0,
        .capabilities = capability_granted_mask(),
    };
    const char *jit = getenv("CROWNY_JIT");
    options.jit_asked = strcmp(options.name, "crownyc-jit") == 0 || (jit && strcmp(jit, "1") == 0);
    if (strcmp(options.name, "hanseonc_rpn") == 0) {
        fprintf(stderr, "hanseonc_rpn: reading RPN text is not there yet\n");
        return EXIT_CODE_PROGRAM;
    }
    if (strcmp(options.name, "hanseonc_high") != 0) return main_dispatch(&options, argc, argv);
    options.filter = true;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf("usage: hanseonc_high SOURCE.han > FILE.toau\n");
        return EXIT_CODE_OK;
    }
    return main_compile(&options, argc - 1, argv + 1);
}
