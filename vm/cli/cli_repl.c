/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_repl.c: crownyc repl.
 *
 * In:   lines from a terminal or a pipe. Out: values on stdout, messages on stderr.
 * Method: lines are gathered until brackets and blocks are closed. Such a text is one or several inputs; each is
 *         compiled behind all inputs before it (compiler/session.h) and run by vm/native/repl.h, in order, until one
 *         fails.
 * Invariant: what was accepted is never run again: it is compiled each time, and its code keeps its numbers.
 */
#include "vm/cli/cli.h"

#include "compiler/session.h"
#include "compiler/source_file.h"
#include "compiler/stdlib.h"
#include "vm/base/limits.h"
#include "vm/base/map.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/cli/line_edit.h"
#include "vm/native/repl.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cli_repl {
    struct cli_options *options;
    struct runtime_options runtime;
    bool terminal;
    bool ended;
    bool failed;                  /* some input was not good */
    uint32_t text_count;          /* texts read so far: their numbers are the modules' names */
    struct session_input *inputs; /* LIMIT_REPL_INPUTS of them; texts and names live in `arena` */
    uint32_t input_count;
    struct arena arena;
    struct map files; /* path to text: an import means the same in every compilation of a session */
    cy_bytes main_name, main_text; /* of the input being compiled */
    struct repl *repl;
};

/* -- compiling ------------------------------------------------------------------------------------------- */

static cy_err cli_repl_read_source(void *context, const char *path, struct builder *out)
{
    struct cli_repl *repl = context;
    cy_bytes name = cy_bytes_from_text(path);
    if (cy_bytes_equal(name, repl->main_name)) {
        builder_bytes(out, repl->main_text);
        return builder_error(out);
    }
    struct map_entry *entry = map_find(&repl->files, name);
    if (!entry) {
        size_t start = out->count;
        CY_TRY(source_file_read(NULL, path, out));
        entry = map_insert(&repl->files, arena_copy(&repl->arena, name), NULL);
        if (!entry) return CY_ERR(NO_MEMORY);
        cy_bytes *kept = arena_alloc(&repl->arena, sizeof *kept);
        *kept = arena_copy(&repl->arena, cy_bytes_skip(builder_view(out), start));
        entry->value.pointer = kept;
        return CY_OK;
    }
    builder_bytes(out, *(const cy_bytes *)entry->value.pointer);
    return builder_error(out);
}

/* NULL after the messages. */
static struct program *cli_repl_compile(struct cli_repl *repl, uint32_t skip_bytes,
                                        struct session_result *result)
{
    struct compile_session session = {.inputs = repl->inputs,
                                      .input_count = repl->input_count,
                                      .skip_bytes = skip_bytes,
                                      .result_out = result};
    struct builder name, messages;
    builder_init(&name);
    builder_init(&messages);
    builder_bytes(&name, repl->main_name);
    const char *path = builder_text_view(&name);
    if (!path) mem_exhausted();
    struct compile_options compile = {.path = path,
                                      .stdlib = stdlib_modules,
                                      .stdlib_count = stdlib_module_count,
                                      .korean = repl->options->korean,
                                      .color = repl->terminal && isatty(STDERR_FILENO) && !getenv("NO_COLOR"),
                                      .session = &session,
                                      .read_source = cli_repl_read_source,
                                      .context = repl};
    struct program *program = NULL;
    uint32_t error_count = 0;
    cy_err err = compile_program(&compile, &program, &messages, &error_count);
    fflush(stdout);
    if (messages.count > 0) fwrite(messages.data, 1, messages.count, stderr);
    if (cy_failed(err) && messages.count == 0) cli_say_error(repl->options, path, err);
    builder_fini(&name);
    builder_fini(&messages);
    return program;
}

/* The name of the next module; several inputs of one text differ in what is behind it. */
static cy_bytes cli_repl_name(struct cli_repl *repl, uint32_t part, const char *file)
{
    struct builder name;
    builder_init(&name);
    builder_printf(&name, "[%u", repl->text_count);
    if (part > 0) builder_printf(&name, ".%u", part);
    builder_printf(&name, "]%s%s", file ? " " : "", file ? file : "");
    if (name.failed) mem_exhausted();
    cy_bytes kept = arena_copy(&repl->arena, builder_view(&name));
    builder_fini(&name);
    return kept;
}

static bool cli_repl_begin(struct cli_repl *repl)
{
    struct session_result result;
    repl->main_name = cli_repl_name(repl, 0, NULL);
    repl->main_text = CY_BYTES_NONE;
    struct program *program = cli_repl_compile(repl, 0, &result);
    if (!program) return false;
    repl->inputs[repl->input_count++] = (struct session_input){.name = repl->main_name};
    return !cy_failed(repl_open(&repl->runtime, program, repl->terminal, &repl->repl));
}

/* One input of the text; gives where the next begins, and false when the rest is not to be run. */
static bool cli_repl_input(struct cli_repl *repl, uint32_t *skip_bytes, enum repl_show show)
{
    struct session_result result = {0};
    struct program *program = cli_repl_compile(repl, *skip_bytes, &result);
    if (!program) return false;
    if (result.kind == SESSION_NOTHING) {
        program_free(&program);
        *skip_bytes = result.end_bytes;
        return true;
    }
    if (repl->input_count == LIMIT_REPL_INPUTS) {
        program_free(&program);
        fprintf(stderr,
                repl->options->korean ? "한도 REPL_INPUTS (%d)에 닿았습니다; :reset 으로 새로 시작하십시오\n"
                                      : "the limit REPL_INPUTS (%d) is reached; :reset begins anew\n",
                LIMIT_REPL_INPUTS);
        return false;
    }
    enum repl_outcome outcome = repl_run(repl->repl, program, repl->main_name, show);
    if (outcome == REPL_REFUSED) return false;
    repl->inputs[repl->input_count++] = (struct session_input){.name = repl->main_name,
                                                               .text = repl->main_text,
                                                               .skip_bytes = *skip_bytes,
                                                               .hidden = outcome != REPL_DONE};
    *skip_bytes = result.end_bytes;
    return outcome == REPL_DONE;
}

static void cli_repl_text(struct cli_repl *repl, cy_bytes text, const char *file, enum repl_show show)
{
    repl->text_count++;
    repl_forget_interrupts(repl->repl);
    repl->main_text = arena_copy(&repl->arena, text);
    uint32_t skip_bytes = 0, part = 0;
    bool good = true;
    do {
        repl->main_name = cli_repl_name(repl, part++, file);
        good = cli_repl_input(repl, &skip_bytes, show);
    } while (good && skip_bytes < text.count);
    if (!good) repl->failed = true;
}

/* -- commands -------------------------------------------------------------------------------------------- */

#define REPL_COMMAND(function, name, korean_name, argument, english, korean) \
    static void function(struct cli_repl *repl, const char *text);
#include "vm/cli/repl_command.def"
#undef REPL_COMMAND

static const struct {
    const char *name, *korean_name, *argument, *english, *korean;
    void (*run)(struct cli_repl *repl, const char *text);
} cli_repl_commands[] = {
#define REPL_COMMAND(function, name, korean_name, argument, english, korean) \
    {name, korean_name, argument, english, korean, function},
#include "vm/cli/repl_command.def"
#undef REPL_COMMAND
};

static void cli_repl_help(struct cli_repl *repl, const char *text)
{
    (void)text;
    bool korean = repl->options->korean;
    printf(korean
               ? "선언, 문장, 식. 식의 값을 보여 줍니다. 괄호나 블록이 열려 있으면 다음 줄로 이어집니다.\n"
               : "Declarations, statements, expressions; the value of an expression is shown. A text goes on "
                 "while a bracket or block is open.\n");
    for (size_t i = 0; i < CY_COUNT_OF(cli_repl_commands); i++) {
        const char *name = korean ? cli_repl_commands[i].korean_name : cli_repl_commands[i].name;
        const char *argument = cli_repl_commands[i].argument;
        size_t width = text_width(cy_bytes_from_text(name)) + 1 + strlen(argument);
        printf("  %s %s%*s%s\n", name, argument, (int)(width < 22 ? 22 - width : 1), "",
               korean ? cli_repl_commands[i].korean : cli_repl_commands[i].english);
    }
}

static void cli_repl_type(struct cli_repl *repl, const char *text)
{
    if (*text)
        cli_repl_text(repl, cy_bytes_from_text(text), NULL, REPL_SHOW_KIND);
    else
        fprintf(stderr, ":type EXPRESSION\n");
}

static void cli_repl_load(struct cli_repl *repl, const char *text)
{
    struct builder source;
    builder_init(&source);
    cy_err err = *text ? file_read(text, LIMIT_SOURCE_BYTES, &source) : CY_ERR(NOT_FOUND);
    const char *slash = strrchr(text, '/');
    if (cy_failed(err)) {
        cli_say_error(repl->options, *text ? text : ":load FILE", err);
        repl->failed = true;
    } else {
        cli_repl_text(repl, builder_view(&source), slash ? slash + 1 : text, REPL_SHOW_VALUE);
    }
    builder_fini(&source);
}

static void cli_repl_forget(struct cli_repl *repl)
{
    repl_close(&repl->repl);
    map_fini(&repl->files);
    arena_fini(&repl->arena);
    repl->input_count = 0;
}

static void cli_repl_remember_nothing(struct cli_repl *repl)
{
    arena_init(&repl->arena, 0);
    repl->arena.exit_when_exhausted = true;
    map_init(&repl->files, (hash_seed){0, 0});
}

static void cli_repl_reset(struct cli_repl *repl, const char *text)
{
    (void)text;
    cli_repl_forget(repl);
    cli_repl_remember_nothing(repl);
    if (!cli_repl_begin(repl)) repl->ended = repl->failed = true;
}

static void cli_repl_quit(struct cli_repl *repl, const char *text)
{
    (void)text;
    repl->ended = true;
}

static void cli_repl_command(struct cli_repl *repl, const char *line)
{
    size_t count = strcspn(line, " \t");
    cy_bytes word = cy_bytes_of(line, count);
    const char *rest = line + count + strspn(line + count, " \t");
    struct nearest nearest;
    nearest_init(&nearest, word);
    for (size_t i = 0; i < CY_COUNT_OF(cli_repl_commands); i++) {
        cy_bytes name = cy_bytes_from_text(cli_repl_commands[i].name);
        cy_bytes korean_name = cy_bytes_from_text(cli_repl_commands[i].korean_name);
        nearest_offer(&nearest, name);
        nearest_offer(&nearest, korean_name);
        if (!cy_bytes_equal(word, name) && !cy_bytes_equal(word, korean_name)) continue;
        cli_repl_commands[i].run(repl, rest);
        return;
    }
    repl->failed = true;
    fprintf(stderr, repl->options->korean ? "모르는 명령: %.*s" : "unknown command: %.*s",
            CY_BYTES_ARG(word));
    if (nearest.best.count > 0)
        fprintf(stderr, repl->options->korean ? " (혹시 %.*s?)" : " (did you mean %.*s?)",
                CY_BYTES_ARG(nearest.best));
    fprintf(stderr, repl->options->korean ? "; :도움말\n" : "; :help\n");
}

/* -- lines ----------------------------------------------------------------------------------------------- */

/* Gathers lines into `text` until it is whole; false at the end of the input with nothing left to run. */
static bool cli_repl_gather(struct cli_repl *repl, struct line_edit *edit, struct builder *text)
{
    struct builder line;
    builder_init(&line);
    builder_clear(text);
    enum line_outcome outcome;
    do {
        outcome = line_edit_read(edit, text->count > 0 ? ".. " : "> ", &line);
        if (outcome == LINE_INTERRUPTED) {
            printf("\n");
            builder_clear(text);
            continue;
        }
        if (outcome == LINE_END) break;
        line_edit_remember(edit, builder_view(&line));
        if (text->count > 0) builder_u8(text, '\n');
        builder_bytes(text, builder_view(&line));
        bool is_command = text->count > 0 && text->data[0] == ':';
        if (is_command || !session_is_open(builder_view(text))) break;
    } while (!text->failed && text->count <= LIMIT_SOURCE_BYTES);
    builder_fini(&line);
    if (outcome == LINE_END && repl->terminal) printf("\n");
    return outcome != LINE_END || text->count > 0;
}

static void cli_repl_loop(struct cli_repl *repl, struct line_edit *edit)
{
    struct builder text;
    builder_init(&text);
    while (!repl->ended && cli_repl_gather(repl, edit, &text)) {
        const char *line = builder_text_view(&text);
        if (!line) mem_exhausted();
        if (line[0] == ':')
            cli_repl_command(repl, line);
        else
            cli_repl_text(repl, builder_view(&text), NULL, REPL_SHOW_VALUE);
        fflush(stdout);
    }
    builder_fini(&text);
}

/* $XDG_STATE_HOME/crownyc/history, or ~/.local/state/crownyc/history; its folders are made. False when there is no
 * place for it. */
static bool cli_repl_history_path(struct builder *path)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/')
        builder_text(path, state);
    else if (home && home[0] == '/')
        builder_printf(path, "%s/.local/state", home);
    else
        return false;
    builder_text(path, "/crownyc/history");
    char *text = (char *)(uintptr_t)builder_text_view(path);
    for (char *slash = text ? strchr(text + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(text, 0700); /* there already, or the file will not be written: no reason to end */
        *slash = '/';
    }
    return text != NULL;
}

static int cli_repl_run(struct cli_repl *repl, bool history)
{
    struct builder path;
    struct line_edit *edit = NULL;
    builder_init(&path);
    bool has_path = repl->terminal && history && cli_repl_history_path(&path);
    cy_err err = line_edit_open(repl->options->name, repl->terminal,
                                has_path ? builder_text_view(&path) : NULL, &edit);
    builder_fini(&path);
    if (cy_failed(err)) {
        cli_say_error(repl->options, "repl", err);
        return EXIT_CODE_INTERNAL;
    }
    if (repl->terminal)
        printf(repl->options->korean ? "crownyc %s  :도움말  Ctrl-D로 끝\n"
                                     : "crownyc %s  :help  Ctrl-D ends\n",
               CLI_VERSION);
    bool begun = cli_repl_begin(repl);
    if (begun) cli_repl_loop(repl, edit);
    line_edit_close(&edit);
    if (!begun) return EXIT_CODE_INTERNAL;
    return repl->failed && !repl->terminal ? EXIT_CODE_PROGRAM : EXIT_CODE_OK;
}

int cli_repl(struct cli_options *options, int argc, char **argv)
{
    bool no_history = false;
    struct cli_flag flags[] = {{.name = "--no-history", .set_out = &no_history}};
    int word_count = cli_words(options, flags, CY_COUNT_OF(flags), false, argc, argv);
    if (word_count < 0) return EXIT_CODE_USAGE;
    if (word_count > 0)
        return cli_usage(options, options->korean ? "남는 인자" : "one word too many", argv[0]);
    struct cli_repl repl = {.options = options,
                            .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
                            .runtime = {.program_name = options->name,
                                        .capabilities = options->capabilities,
                                        .path_rules = options->rules,
                                        .path_rule_count = options->rule_count,
                                        .korean = options->korean,
                                        .cpu_burst_ms = UINT64_MAX}}; /* Ctrl-C is the allowance */
    repl.inputs = mem_alloc(LIMIT_REPL_INPUTS * sizeof *repl.inputs);
    if (!repl.inputs) mem_exhausted();
    cli_repl_remember_nothing(&repl);
    int code = cli_repl_run(&repl, !no_history);
    cli_repl_forget(&repl);
    mem_free(repl.inputs);
    return code;
}
