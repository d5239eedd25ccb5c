/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli.c: the table of commands, options that all of them take, help and usage errors.
 *
 * In:   argv. Out: filled options; words that are no options.
 * Invariant: an option that is not known is a usage error, never a file name.
 */
#include "vm/cli/cli.h"

#include "vm/base/text.h"
#include "vm/code/native_table.h"
#include "vm/code/toau.h"
#include "vm/sys/crypto.h"
#include "vm/sys/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct cli_command cli_commands[] = {
#define COMMAND(function, name, arguments, english, korean) {name, arguments, english, korean, function},
#include "vm/cli/command.def"
#undef COMMAND
};
const size_t cli_command_count = CY_COUNT_OF(cli_commands);

int cli_usage(const struct cli_options *options, const char *problem, const char *what)
{
    fprintf(stderr, "%s: %s%s%s\n", options->name, problem, what ? ": " : "", what ? what : "");
    fprintf(stderr, options->korean ? "도움말: %s --help\n" : "for help: %s --help\n", options->name);
    return EXIT_CODE_USAGE;
}

void cli_say_error(const struct cli_options *options, const char *path, cy_err err)
{
    char why[160];
    struct stat status;
    const char *text = cy_err_describe(err, options->korean, why, sizeof why);
    if (cy_is(err, CY_ERR_BAD_FORMAT) && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        text = options->korean ? "폴더입니다" : "is a folder";
    fprintf(stderr, "%s: %s: %s\n", options->name, path, text);
}

static void cli_help_common(bool korean)
{
    printf(
        korean
            ? "\n  --lang ko|en              알림 글의 언어 (기본: LC_ALL, LC_MESSAGES, LANG)\n"
              "  --allow write,run,ffi     이 폴더 아래에 쓰기, 프로그램 실행, C 함수 호출을 허락한다\n"
              "  --allow write=DIR,read=DIR  DIR 아래에 쓰기. DIR 아래만 읽기. 거듭 쓸 수 있다\n"
              "  --deny net,read,env,...   무엇을 빼앗는다. read=DIR, write=DIR: 폴더 하나\n"
            : "\n  --lang ko|en              language of messages (default: from LC_ALL, LC_MESSAGES or "
              "LANG)\n"
              "  --allow write,run,ffi     let the program write below this folder, start programs, call C "
              "functions\n"
              "  --allow write=DIR,read=DIR  write below DIR; read below DIR only. May be repeated\n"
              "  --deny net,read,env,...   take something away; read=DIR, write=DIR: a folder\n");
}

static void cli_help_exit_codes(bool korean)
{
    printf(
        korean
            ? "종료 코드: 0 성공, 1 컴파일 오류나 프로그램 오류, 2 사용법, 3 잘못된 .toau, 4 설정, 5 대기할 "
              "수 "
              "없음, 70 내부 오류, 130과 143 Ctrl-C와 SIGTERM\n"
            : "exit codes: 0 ok, 1 compile or program error, 2 usage, 3 bad .toau, 4 configuration, 5 cannot "
              "listen, 70 internal, 130 and 143 Ctrl-C and SIGTERM\n");
}

int cli_help(const struct cli_options *options)
{
    printf(options->korean ? "사용법: %s 명령 [옵션] ...\n\n" : "usage: %s COMMAND [OPTIONS] ...\n\n",
           options->name);
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        printf("  %-12s %-36s %s\n", command->name, command->arguments,
               options->korean ? command->korean : command->english);
    }
    cli_help_common(options->korean);
    printf(options->korean
               ? "\nhanseonc_high SOURCE > FILE.toau, hanseonc_rpn TEXT > FILE.toau는 거르개로 컴파일한다: "
                 "알림은 "
                 "stderr로,\n실패하면 stdout은 비어 있다.\n"
               : "\nhanseonc_high SOURCE > FILE.toau and hanseonc_rpn TEXT > FILE.toau compile as filters: "
                 "messages on stderr, nothing\non stdout on failure.\n");
    cli_help_exit_codes(options->korean);
    return EXIT_CODE_OK;
}

int cli_help_of(const struct cli_options *options, const struct cli_command *command)
{
    printf(options->korean ? "사용법: %s %s %s\n\n  %s\n" : "usage: %s %s %s\n\n  %s\n", options->name,
           command->name, command->arguments, options->korean ? command->korean : command->english);
    if (command->run == cli_http_load) cli_load_help(options->korean);
    cli_help_common(options->korean);
    cli_help_exit_codes(options->korean);
    return EXIT_CODE_OK;
}

/* -- options --------------------------------------------------------------------------------------------- */
static const char *cli_language(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < CY_COUNT_OF(variables); i++) {
        const char *text = getenv(variables[i]);
        if (text && *text) return text;
    }
    return "";
}

void cli_options_init(struct cli_options *options, int argc, char **argv)
{
    (void)crypto_use_mem(); /* this comes before anything else, so nothing has used OpenSSL yet */
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *jit = getenv("CROWNY_JIT");
    process_fill_standard_descriptors();
    *options = (struct cli_options){
        .name = slash      ? slash + 1
                : argc > 0 ? argv[0]
                           : "crownyc",
        .korean = strncmp(cli_language(), "ko", 2) == 0,
        .jit_asked = jit && strcmp(jit, "1") == 0,
        .capabilities = capability_granted_mask(),
    };
}

/* read=DIR, write=DIR. The folder ends at the comma or the end; a comma inside a name cannot be said. */
static bool cli_path_rule(struct cli_options *options, char *word, char *folder, enum capability capability,
                          bool allow)
{
    if (folder && capability != CAPABILITY_READ && capability != CAPABILITY_WRITE) {
        fprintf(stderr, "%s: %s=%s: only read and write take a folder\n", options->name, word, folder);
        return false;
    }
    if (folder && !*folder) {
        fprintf(stderr, "%s: %s=: a folder is missing\n", options->name, word);
        return false;
    }
    if (!folder && !(allow && capability == CAPABILITY_WRITE)) return true;
    if (options->rule_count == CY_COUNT_OF(options->rules)) {
        fprintf(stderr, "%s: at most PATH_RULES = %d folders of --allow and --deny each\n", options->name,
                LIMIT_PATH_RULES);
        return false;
    }
    uint8_t access = capability == CAPABILITY_READ ? PATH_READ : PATH_WRITE;
    options->rules[options->rule_count++] = (struct path_rule){allow, access, folder};
    return true;
}

static bool cli_capability_word(struct cli_options *options, char *word, bool allow)
{
    enum capability capability;
    char *folder = strchr(word, '=');
    if (folder) *folder++ = 0;
    if (!capability_find(cy_bytes_from_text(word), &capability) || capability == CAPABILITY_NONE) {
        fprintf(stderr, "%s: \"%s\" is no capability; there are net, read, env, write, run and ffi\n",
                options->name, word);
        return false;
    }
    if (!cli_path_rule(options, word, folder, capability, allow)) return false;
    if (allow) options->capabilities |= (uint32_t)capability;
    if (!allow && !folder) options->denied |= (uint32_t)capability;
    options->capabilities &= ~options->denied; /* whichever came first */
    return true;
}

/* "read=DIR,write=DIR,run": argv's own memory is cut at the commas, so that folders are texts. */
static bool cli_capability_words(struct cli_options *options, char *words, bool allow)
{
    for (char *word = words, *comma; word; word = comma) {
        comma = strchr(word, ',');
        if (comma) *comma++ = 0;
        if (!cli_capability_word(options, word, allow)) return false;
    }
    return true;
}

int cli_option(struct cli_options *options, int argc, char **argv)
{
    static const char *const with_value[] = {"--lang", "--allow", "--deny", "-o", "--output"};
    if (strcmp(argv[0], "--jit") == 0) {
        options->jit_asked = true;
        return 1;
    }
    for (size_t i = 0; i < CY_COUNT_OF(with_value); i++) {
        if (strcmp(argv[0], with_value[i]) != 0) continue;
        if (argc < 2) {
            cli_usage(options, options->korean ? "이 옵션에는 값이 필요합니다" : "this option needs a value",
                      argv[0]);
            return -1;
        }
        if (i == 0 && strcmp(argv[1], "ko") != 0 && strcmp(argv[1], "en") != 0) {
            cli_usage(options, "--lang is ko or en, not", argv[1]);
            return -1;
        }
        if (i == 0) options->korean = strcmp(argv[1], "ko") == 0;
        if ((i == 1 || i == 2) && !cli_capability_words(options, argv[1], i == 1)) return -1;
        if (i >= 3) options->output = argv[1];
        return 2;
    }
    return 0;
}

/* As cli_option, for the options of one command. */
static int cli_own_flag(struct cli_options *options, const struct cli_flag *flags, size_t flag_count,
                        int argc, char **argv)
{
    for (size_t i = 0; i < flag_count; i++) {
        if (strcmp(argv[0], flags[i].name) != 0) continue;
        if (flags[i].set_out) {
            *flags[i].set_out = true;
            return 1;
        }
        if (argc < 2) {
            cli_usage(options, options->korean ? "이 옵션에는 값이 필요합니다" : "this option needs a value",
                      argv[0]);
            return -1;
        }
        if (flags[i].texts_out)
            flags[i].texts_out[(*flags[i].text_count_out)++] = argv[1];
        else
            *flags[i].value_out = argv[1];
        return 2;
    }
    return 0;
}

int cli_words(struct cli_options *options, const struct cli_flag *flags, size_t flag_count, bool stop_at_word,
              int argc, char **argv)
{
    int word_count = 0, i = 0;
    bool words_only = false;
    while (i < argc) {
        bool is_option = !words_only && argv[i][0] == '-' && argv[i][1];
        if (is_option && strcmp(argv[i], "--") == 0) {
            words_only = true;
            i++;
            continue;
        }
        if (!is_option) {
            argv[word_count++] = argv[i++];
            if (stop_at_word) words_only = true;
            continue;
        }
        int taken = cli_own_flag(options, flags, flag_count, argc - i, argv + i);
        if (taken == 0) taken = cli_option(options, argc - i, argv + i);
        if (taken == 0) cli_usage(options, options->korean ? "모르는 옵션" : "unknown option", argv[i]);
        if (taken <= 0) return -1;
        i += taken;
    }
    return word_count;
}

const char *cli_one_file(struct cli_options *options, const struct cli_flag *flags, size_t flag_count,
                         int argc, char **argv)
{
    int word_count = cli_words(options, flags, flag_count, false, argc, argv);
    if (word_count < 0) return NULL;
    if (word_count == 0)
        cli_usage(options, options->korean ? "파일 이름이 없습니다" : "a file name is missing", NULL);
    if (word_count > 1) cli_usage(options, options->korean ? "남는 인자" : "one word too many", argv[1]);
    return word_count == 1 ? argv[0] : NULL;
}

int cli_version(struct cli_options *options, int argc, char **argv)
{
    (void)options, (void)argc, (void)argv;
    printf("crownyc %s (.toau version %d)\n", CLI_VERSION, TOAU_VERSION);
    return EXIT_CODE_OK;
}
