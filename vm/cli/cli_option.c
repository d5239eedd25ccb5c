/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_option.c: the options: their rows, and reading them from a command line.
 *
 * In:   argv. Out: filled options; words that are no options.
 * Invariant: an option that is no row of the command is a usage error, never a file name; a value outside of its row's
 *            range never reaches the command.
 * Not here:  what help makes of the rows (cli_help.c).
 */
#include "vm/cli/cli_option.h"

#include "vm/base/check.h"
#include "vm/base/text.h"
#include "vm/cli/cli_load.h"
#include "vm/code/native_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY                                \
    {                                      \
        .kind = CLI_RANGE_ANY, .limit = "" \
    }
#define WORDS                                \
    {                                        \
        .kind = CLI_RANGE_WORDS, .limit = "" \
    }
#define COUNT(from, to, limit_name)                                                         \
    {                                                                                       \
        .kind = CLI_RANGE_COUNT, .smallest = (from), .largest = (to), .limit = (limit_name) \
    }
#define REAL(from, to, limit_name)                                                                   \
    {                                                                                                \
        .kind = CLI_RANGE_REAL, .real_smallest = (from), .real_largest = (to), .limit = (limit_name) \
    }
#define NONE  \
    {         \
        "", 0 \
    }
#define TEXT(text) \
    {              \
        text, 0    \
    }
#define NUMBER(number) \
    {                  \
        NULL, number   \
    }
const struct cli_option_row cli_option_rows[] = {
#define LOAD_VALUE(field, short_name, name, value, range, initial, english, korean) \
    {"load", short_name, name, value, range, initial, english, korean},
#define LOAD_TEXTS LOAD_VALUE
#define LOAD_SWITCH(field, short_name, name, english, korean) \
    {"load", short_name, name, "", ANY, NONE, english, korean},
#include "vm/cli/load_option.def"
#undef LOAD_VALUE
#undef LOAD_TEXTS
#undef LOAD_SWITCH
#define OPTION(commands, short_name, name, value, range, initial, english, korean) \
    {commands, short_name, name, value, range, initial, english, korean},
#include "vm/cli/option.def"
#undef OPTION
};
#undef ANY
#undef WORDS
#undef COUNT
#undef REAL
#undef NONE
#undef TEXT
#undef NUMBER
const size_t cli_option_row_count = CY_COUNT_OF(cli_option_rows);

/* -- rows ------------------------------------------------------------------------------------------------ */

/* Whether `word` stands in `words`, between separators. */
static bool cli_option_has_word(const char *words, char separator, const char *word)
{
    size_t count = strlen(word);
    if (strchr(word, separator)) return false;
    for (const char *at = words; at; at = strchr(at, separator), at += at != NULL)
        if (strncmp(at, word, count) == 0 && (at[count] == 0 || at[count] == separator)) return true;
    return false;
}

bool cli_names_command(const char *commands, const char *command)
{
    return strcmp(commands, "*") == 0 || cli_option_has_word(commands, ' ', command);
}

const struct cli_option_row *cli_option_find(const struct cli_command *command, const char *word)
{
    for (size_t i = 0; i < CY_COUNT_OF(cli_option_rows); i++) {
        const struct cli_option_row *row = &cli_option_rows[i];
        bool named = strcmp(row->name, word) == 0 || (row->short_name && strcmp(row->short_name, word) == 0);
        if (named && (!command || cli_names_command(row->commands, command->name))) return row;
    }
    return NULL;
}

uint64_t cli_option_count(const struct cli_command *command, const char *name, const char *text)
{
    const struct cli_option_row *row = cli_option_find(command, name);
    CHECK(row && row->range.kind == CLI_RANGE_COUNT);
    uint64_t number = row->initial.number;
    if (text) CHECK(cy_bytes_parse_u64(cy_bytes_from_text(text), row->range.largest, &number));
    return number;
}

double cli_option_real(const struct cli_command *command, const char *name, const char *text)
{
    const struct cli_option_row *row = cli_option_find(command, name);
    CHECK(row && row->range.kind == CLI_RANGE_REAL);
    if (!text) text = row->initial.text;
    return text ? strtod(text, NULL) : (double)row->initial.number;
}

void cli_range_describe(const struct cli_option_row *row, bool korean, struct builder *out)
{
    const struct cli_range *range = &row->range;
    const char *form = korean ? "%s부터 %s까지" : "%s to %s";
    char from[32], to[32];
    switch (range->kind) {
    case CLI_RANGE_ANY: return;
    case CLI_RANGE_WORDS:
        for (const char *at = row->value; *at; at++) {
            if (*at == '|')
                builder_text(out, korean ? " 또는 " : " or ");
            else
                builder_u8(out, (uint8_t)*at);
        }
        return;
    case CLI_RANGE_COUNT:
        (void)snprintf(from, sizeof from, "%llu", (unsigned long long)range->smallest);
        (void)snprintf(to, sizeof to, "%llu", (unsigned long long)range->largest);
        break;
    case CLI_RANGE_REAL:
        (void)snprintf(from, sizeof from, "%.10g", range->real_smallest);
        (void)snprintf(to, sizeof to, "%.10g", range->real_largest);
        break;
    }
    builder_printf(out, form, from, to);
    if (*range->limit) builder_printf(out, " (%s)", range->limit);
}

/* -- values ---------------------------------------------------------------------------------------------- */

static bool cli_option_fits(const struct cli_option_row *row, const char *text)
{
    const struct cli_range *range = &row->range;
    uint64_t number;
    char *end;
    switch (range->kind) {
    case CLI_RANGE_ANY: return true;
    case CLI_RANGE_WORDS: return *text && cli_option_has_word(row->value, '|', text);
    case CLI_RANGE_COUNT:
        return cy_bytes_parse_u64(cy_bytes_from_text(text), range->largest, &number) &&
               number >= range->smallest;
    case CLI_RANGE_REAL: {
        double real = strtod(text, &end);
        /* false for nan */
        return end != text && !*end && real >= range->real_smallest && real <= range->real_largest;
    }
    }
    return false;
}

static void cli_option_refuse(const struct cli_options *options, const struct cli_option_row *row,
                              const char *text)
{
    struct builder range;
    builder_init(&range);
    cli_range_describe(row, options->korean, &range);
    bool number = row->range.kind != CLI_RANGE_WORDS;
    const char *form = options->korean ? (number ? "%s: %s는 %s의 수입니다: %s\n" : "%s: %s: %s입니다: %s\n")
                       : number ? "%s: %s is a number from %s, not %s\n"
                                : "%s: %s is %s, not %s\n";
    fprintf(stderr, form, options->name, row->name, builder_text_view(&range), text);
    builder_fini(&range);
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

/* What an option means that several commands take, and `crownyc` itself before the command. */
static bool cli_option_common(struct cli_options *options, const struct cli_option_row *row, char *value)
{
    if (strcmp(row->name, "--lang") == 0)
        options->korean = strcmp(value, "ko") == 0;
    else if (strcmp(row->name, "--allow") == 0 || strcmp(row->name, "--deny") == 0)
        return cli_capability_words(options, value, row->name[2] == 'a');
    else if (strcmp(row->name, "--output") == 0)
        options->output = value;
    else if (strcmp(row->name, "--jit") == 0)
        options->jit_asked = true;
    else
        CHECK(!"an option in the table that its command does not know");
    return true;
}

static bool cli_option_take(struct cli_options *options, const struct cli_option_row *row,
                            const struct cli_flag *flags, size_t flag_count, char *value)
{
    for (size_t i = 0; i < flag_count; i++) {
        const struct cli_flag *flag = &flags[i];
        if (strcmp(row->name, flag->name) != 0) continue;
        CHECK(!*row->value == !!flag->set_out);
        if (flag->set_out)
            *flag->set_out = true;
        else if (flag->texts_out)
            flag->texts_out[(*flag->text_count_out)++] = value;
        else
            *flag->value_out = value;
        return true;
    }
    return cli_option_common(options, row, value);
}

static void cli_option_unknown(const struct cli_options *options, const char *word)
{
    const char *problem = options->korean ? "모르는 옵션" : "unknown option";
    struct nearest nearest;
    nearest_init(&nearest, cy_bytes_from_text(word));
    for (size_t i = 0; i < CY_COUNT_OF(cli_option_rows); i++)
        if (!options->running || cli_names_command(cli_option_rows[i].commands, options->running->name))
            nearest_offer(&nearest, cy_bytes_from_text(cli_option_rows[i].name));
    struct builder what;
    builder_init(&what);
    builder_text(&what, word);
    if (nearest.best.count)
        builder_printf(&what, options->korean ? " (혹시 %.*s?)" : " (did you mean %.*s?)",
                       CY_BYTES_ARG(nearest.best));
    (void)cli_usage(options, problem, builder_text_view(&what));
    builder_fini(&what);
}

/* Reads the option at argv[0]. Returns how many words it took, -1 after a message. */
static int cli_option_read(struct cli_options *options, const struct cli_flag *flags, size_t flag_count,
                           int argc, char **argv)
{
    const struct cli_option_row *row = cli_option_find(options->running, argv[0]);
    if (!row) {
        cli_option_unknown(options, argv[0]);
        return -1;
    }
    if (!*row->value) return cli_option_take(options, row, flags, flag_count, NULL) ? 1 : -1;
    if (argc < 2) {
        cli_usage(options, options->korean ? "이 옵션에는 값이 필요합니다" : "this option needs a value",
                  argv[0]);
        return -1;
    }
    if (!cli_option_fits(row, argv[1])) {
        cli_option_refuse(options, row, argv[1]);
        return -1;
    }
    return cli_option_take(options, row, flags, flag_count, argv[1]) ? 2 : -1;
}

/* -- command lines --------------------------------------------------------------------------------------- */

bool cli_option_may_lead(const struct cli_option_row *row)
{
    static const char *const names[] = {"--lang", "--allow", "--deny", "--output", "--jit"};
    for (size_t i = 0; i < CY_COUNT_OF(names); i++)
        if (strcmp(row->name, names[i]) == 0) return true;
    return false;
}

int cli_option_before(struct cli_options *options, int argc, char **argv)
{
    const struct cli_option_row *row = cli_option_find(NULL, argv[0]);
    if (!row || cli_option_may_lead(row)) return cli_option_read(options, NULL, 0, argc, argv);
    (void)cli_usage(options,
                    options->korean ? "이 옵션은 명령 뒤에 씁니다" : "this option stands behind the command",
                    argv[0]);
    return -1;
}

bool cli_options_belong(struct cli_options *options, int argc, char **argv)
{
    for (int i = 0; i < argc;) {
        const struct cli_option_row *row = cli_option_find(options->running, argv[i]);
        if (!row) {
            (void)cli_usage(options,
                            options->korean ? "이 명령에는 없는 옵션" : "not an option of this command",
                            argv[i]);
            return false;
        }
        i += *row->value ? 2 : 1;
    }
    return true;
}

int cli_words(struct cli_options *options, const struct cli_flag *flags, size_t flag_count, bool stop_at_word,
              int argc, char **argv)
{
    int word_count = 0, i = 0;
    bool words_only = false;
    for (size_t k = 0; k < flag_count; k++) CHECK(cli_option_find(options->running, flags[k].name));
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
        int taken = cli_option_read(options, flags, flag_count, argc - i, argv + i);
        if (taken < 0) return -1;
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
