/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_option.h: rows of the tables of options, for reading a command line and for help.
 *
 * In:   names of commands and options. Out: rows, borrowed, for the life of the process.
 * Invariant: what a command takes is what its help shows: both read these rows, and no others.
 */
#ifndef CY_CLI_CLI_OPTION_H
#define CY_CLI_CLI_OPTION_H

#include "vm/cli/cli.h"

enum cli_range_kind {
    CLI_RANGE_ANY,
    CLI_RANGE_WORDS, /* one of those that stand in `value`, apart by | */
    CLI_RANGE_COUNT,
    CLI_RANGE_REAL,
};

/* What may stand as the value of an option. */
struct cli_range {
    enum cli_range_kind kind;
    uint64_t smallest, largest; /* COUNT */
    double real_smallest, real_largest;
    const char *limit; /* the row of limits.def that `largest` is, or "" */
};

/* What holds without the option: `text`, or a number when that is NULL; "" is nothing. */
struct cli_initial {
    const char *text;
    uint64_t number;
};

struct cli_option_row {
    const char *commands;   /* "run test", or "*" */
    const char *short_name; /* or NULL */
    const char *name;
    const char *value; /* "" for a switch */
    struct cli_range range;
    struct cli_initial initial;
    const char *english, *korean;
};
extern const struct cli_option_row cli_option_rows[];
extern const size_t cli_option_row_count;

/* Whether `command` is a word of `commands`, or that is "*". */
bool cli_names_command(const char *commands, const char *command);
/* The option that `word` is, by either of its names, of this command, or of any when that is NULL; NULL: none. */
const struct cli_option_row *cli_option_find(const struct cli_command *command, const char *word);
/* Whether crownyc takes it before the command: what more than one command understands, and --jit. */
bool cli_option_may_lead(const struct cli_option_row *row);
/* What was written as the value, already found to be in range, or what holds without the option when `text` is NULL
 * (0: nothing does). */
uint64_t cli_option_count(const struct cli_command *command, const char *name, const char *text);
double cli_option_real(const struct cli_command *command, const char *name, const char *text);
/* Appends "1 to 4096 (LOAD_CONNECTIONS)" or "ko or en"; nothing when everything is allowed. */
void cli_range_describe(const struct cli_option_row *row, bool korean, struct builder *out);

#endif
