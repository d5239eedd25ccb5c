/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli.h: what the commands of crownyc share: their table, options, loading of programs, messages.
 *
 * In:   argv. Out: exit codes (vm/base/exit_code.h); what was asked for on stdout, all messages on stderr.
 * Invariant: a command is a row of command.def and a function; help, usage errors and dispatch read that table.
 * Not here: the names of the binary (vm/main.c), compiling (compiler/compiler.h), running (vm/native/runtime.h).
 */
#ifndef CY_CLI_CLI_H
#define CY_CLI_CLI_H

#include "vm/base/builder.h"
#include "vm/base/exit_code.h"
#include "vm/base/limits.h"
#include "vm/code/program.h"
#include "vm/sys/path_rules.h"

#define CLI_VERSION "0.1.0"

struct cli_options {
    const char *name; /* argv[0] without its folder */
    bool korean;
    bool filter; /* hanseonc_high, hanseonc_rpn: one text in, the file on stdout */
    bool rpn;    /* hanseonc_rpn: the text is RPN, whatever it is called */
    bool jit_asked;
    bool warnings; /* of the compiler: shown with what compiles */
    bool json;     /* its messages as JSON lines */
    const char *output;
    uint32_t capabilities;                        /* granted bits */
    uint32_t denied;                              /* bits that no --allow gives back */
    struct path_rule rules[2 * LIMIT_PATH_RULES]; /* --allow and --deny with a folder; texts lie in argv */
    uint32_t rule_count;
    const char *const *command;        /* argv, as it was */
    const struct cli_command *running; /* NULL before it is known */
};

struct cli_command {
    const char *name;
    const char *words; /* that are no options */
    const char *english;
    const char *korean;
    int (*run)(struct cli_options *options, int argc, char **argv);
};
#define COMMAND(function, name, words, english, korean) \
    int function(struct cli_options *options, int argc, char **argv);
#include "vm/cli/command.def"
#undef COMMAND
extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;
const struct cli_command *cli_command_find(const char *name); /* NULL: there is none */

/* Where an option goes (option.def) that one command understands. Exactly one of the three is not NULL: with a value,
 * without one, or with a value and allowed several times: then `texts_out` has room for as many as there are words. */
struct cli_flag {
    const char *name; /* "--keywords": the long name of a row for the command that runs */
    const char **value_out;
    bool *set_out;
    const char **texts_out;
    uint32_t *text_count_out;
};

/* -- options --------------------------------------------------------------------------------------------- */
/* First of all: it also makes sure that descriptors 0 to 2 are open. */
void cli_options_init(struct cli_options *options, int argc, char **argv);
/* Reads the option at argv[0], before the command. Returns how many words it took, -1 after a message. */
int cli_option_before(struct cli_options *options, int argc, char **argv);
/* Whether the command that runs takes all of these, which were read before it was known; false after a message. */
bool cli_options_belong(struct cli_options *options, int argc, char **argv);
/* Takes all options out of argv, those of the command that runs, and leaves the other words in order, argv[0..count).
 * Returns their count, -1 after a message. "--" ends the options; "-" is a word. With `stop_at_word`, what follows the
 * first word is left alone and stands behind it (arguments of a program). */
int cli_words(struct cli_options *options, const struct cli_flag *flags, size_t flag_count, bool stop_at_word,
              int argc, char **argv);
/* The one file a command works on; NULL after a message. */
const char *cli_one_file(struct cli_options *options, const struct cli_flag *flags, size_t flag_count,
                         int argc, char **argv);

/* -- messages -------------------------------------------------------------------------------------------- */
/* Returns EXIT_CODE_USAGE. `what` may be NULL. */
int cli_usage(const struct cli_options *options, const char *problem, const char *what);
void cli_say_error(const struct cli_options *options, const char *path, cy_err err);
int cli_help(const struct cli_options *options);
int cli_help_of(const struct cli_options *options, const struct cli_command *command);

/* -- files ----------------------------------------------------------------------------------------------- */
bool cli_ends_with(const char *text, const char *end);
bool cli_is_source(const char *path);
bool cli_is_folder(const char *path);
/* Called for each source of a folder, in order, with OK, and for a folder that cannot be read with the reason. False
 * ends the walk. */
typedef bool (*cli_visit)(void *context, const char *path, cy_err err);
void cli_visit_folder(const char *path, cli_visit visit, void *context);
/* Calls on_file for the file `path`, or for each source in the folder of that name and below it; what begins with a dot
 * is left alone. Returns how many folders could not be read; messages are out. */
uint32_t cli_each_source(const struct cli_options *options, const char *path,
                         void (*on_file)(void *context, const char *path), void *context);
/* Behind a link, the file it names is replaced and not the link. */
CY_NODISCARD cy_err cli_replace_file(const char *path, cy_bytes bytes);
#define CLI_STDIN_NAME "<stdin>"
/* "-" */
bool cli_is_stdin(const char *path);
/* As messages name the file: <stdin> for "-". */
const char *cli_shown_name(const char *path);
/* Appends all of standard input. Returns an exit code; messages are out. */
int cli_read_stdin(const struct cli_options *options, struct builder *out);
bool cli_looks_like_rpn(cy_bytes text);
/* For struct compile_options: files of the disk; with a context, which is a cy_bytes *, its bytes are <stdin>. */
CY_NODISCARD cy_err cli_source_read(void *context, const char *path, struct builder *out);
/* True for what must be compiled first: a source, or RPN text (.rpn). */
bool cli_is_text(const char *path);
/* Whether what is written to the descriptor may have colours: a terminal that can, and NO_COLOR is not set. */
bool cli_color(int descriptor);
/* Appends the .toau of a source (.han, .한선) or RPN text (.rpn) to `toau`; of "-" of either, from standard input.
 * Returns an exit code; messages are out. */
int cli_compile_to(struct cli_options *options, const char *path, struct builder *toau);
/* The same with the test blocks of the source in it. */
int cli_compile_with(struct cli_options *options, const char *path, bool tests, struct builder *toau);
/* The same of RPN text, whatever it is called; "-" is standard input. */
int cli_assemble_to(struct cli_options *options, const char *path, struct builder *toau);
/* The same of RPN text in memory that came from `path`. */
int cli_assemble_text(struct cli_options *options, const char *path, cy_bytes text, struct builder *toau);
/* Appends the .toau that a file is or gives: a .toau as it is, unchecked; text compiled. */
int cli_toau_of(struct cli_options *options, const char *path, struct builder *toau);
/* Appends the bytes of a .toau, unchecked. */
int cli_read_toau(struct cli_options *options, const char *path, struct builder *toau);
/* Reads, checks and verifies a .toau, compiled first when the file is text; `toau` holds its bytes. */
int cli_load(struct cli_options *options, const char *path, struct builder *toau,
             struct program **program_out);
/* "-" is stdout, refused when that is a terminal and `bytes` are a binary. */
int cli_write_output(struct cli_options *options, const char *output, cy_bytes bytes);

#endif
