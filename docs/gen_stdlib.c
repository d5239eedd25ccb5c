/* SPDX-License-Identifier: MIT
 *
 * docs/gen_stdlib.c: a tool of the build that writes docs/STDLIB.md (`make docs`).
 *
 * In:   native.def and native_example.def; the .han files of stdlib as arguments.
 * Out:  Markdown on standard output: per module its natives in table order, then what its file exports.
 * Invariant: links against nothing of the product. A doc comment it cannot read is an error, not a gap in the page.
 *
 * The doc comment of an exported function (docs/decisions/0025-std-modules.md):
 *
 *      /// 한국어: 고르기
 *      /// The items for which keep(item) is true, in order.
 *      /// list.filter([1, 2, 3], fn (n) { return n > 1 }) → [2, 3]
 *      export fn filter(items: list, keep: function) -> list {
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GEN_ENTRIES_MAX = 4000, GEN_MODULES_MAX = 200, GEN_EXAMPLES_MAX = 8000, GEN_DOC_LINES_MAX = 40 };

struct gen_entry {
    const char *module; /* "" is the prelude */
    const char *member, *korean, *signature, *meaning;
    const char *needs; /* capability, "" for none */
    bool waits;
    const char *native; /* C name, NULL for an export of a file */
};
struct gen_example {
    const struct gen_entry *entry;
    const char *expression;
    const char *result; /* NULL: shown only */
    bool fails;
};
struct gen_state {
    struct gen_entry entries[GEN_ENTRIES_MAX];
    int entry_count;
    struct gen_example examples[GEN_EXAMPLES_MAX];
    int example_count;
    const char *modules[GEN_MODULES_MAX];
    int module_count;
};

static const struct {
    const char *name, *english, *korean, *signature, *capability, *flags, *meaning;
} gen_natives[] = {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    {#name, english, korean, signature, #capability, #flags, meaning},
#include "vm/code/native.def"
#undef NATIVE
};
/* A row of an example whose native does not exist does not compile. */
enum gen_native_name {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) GEN_NATIVE_##name,
#include "vm/code/native.def"
#undef NATIVE
};
static const struct {
    int native;
    const char *name, *expression, *result;
    bool fails;
} gen_native_examples[] = {
#define MODULE(name, meaning)
#define EXAMPLE(native, expression, result) {GEN_NATIVE_##native, #native, expression, result, false},
#define EXAMPLE_FAILS(native, expression, kind) {GEN_NATIVE_##native, #native, expression, kind, true},
#define EXAMPLE_SHOWN(native, code) {GEN_NATIVE_##native, #native, code, NULL, false},
#include "vm/code/native_example.def"
#undef EXAMPLE_SHOWN
#undef EXAMPLE_FAILS
#undef EXAMPLE
#undef MODULE
};
static const struct {
    const char *name, *meaning;
} gen_modules[] = {
#define MODULE(name, meaning) {name, meaning},
#define EXAMPLE(native, expression, result)
#define EXAMPLE_FAILS(native, expression, kind)
#define EXAMPLE_SHOWN(native, code)
#include "vm/code/native_example.def"
#undef EXAMPLE_SHOWN
#undef EXAMPLE_FAILS
#undef EXAMPLE
#undef MODULE
};

static void gen_fail(const char *where, const char *what)
{
    fprintf(stderr, "gen_stdlib: %s: %s\n", where, what);
    exit(1);
}

static const char *gen_copy(const char *text, size_t count)
{
    char *copy = malloc(count + 1);
    if (!copy) gen_fail("memory", "none left");
    memcpy(copy, text, count);
    copy[count] = 0;
    return copy;
}

static const char *gen_module(struct gen_state *state, const char *name, size_t count)
{
    for (int i = 0; i < state->module_count; i++)
        if (strlen(state->modules[i]) == count && memcmp(state->modules[i], name, count) == 0)
            return state->modules[i];
    if (state->module_count == GEN_MODULES_MAX) gen_fail(name, "too many modules");
    return state->modules[state->module_count++] = gen_copy(name, count);
}

static struct gen_entry *gen_add_entry(struct gen_state *state)
{
    if (state->entry_count == GEN_ENTRIES_MAX) gen_fail("entries", "too many");
    return &state->entries[state->entry_count++];
}

static struct gen_example *gen_add_example(struct gen_state *state)
{
    if (state->example_count == GEN_EXAMPLES_MAX) gen_fail("examples", "too many");
    return &state->examples[state->example_count++];
}

static void gen_add_natives(struct gen_state *state)
{
    for (size_t i = 0; i < sizeof gen_natives / sizeof gen_natives[0]; i++) {
        struct gen_entry *entry = gen_add_entry(state);
        const char *dot = strchr(gen_natives[i].english, '.');
        entry->module =
            gen_module(state, gen_natives[i].english, dot ? (size_t)(dot - gen_natives[i].english) : 0);
        entry->member = dot ? dot + 1 : gen_natives[i].english;
        entry->korean = gen_natives[i].korean;
        entry->signature = gen_natives[i].signature;
        entry->meaning = gen_natives[i].meaning;
        entry->needs = strcmp(gen_natives[i].capability, "NONE") ? gen_natives[i].capability : "";
        entry->waits = strstr(gen_natives[i].flags, "WAIT") != NULL;
        entry->native = gen_natives[i].name;
    }
    for (size_t i = 0; i < sizeof gen_native_examples / sizeof gen_native_examples[0]; i++)
        *gen_add_example(state) = (struct gen_example){
            .entry = &state->entries[gen_native_examples[i].native],
            .expression = gen_native_examples[i].expression,
            .result = gen_native_examples[i].result,
            .fails = gen_native_examples[i].fails,
        };
}

/* -- files --------------------------------------------------------------------------------------------------------- */

static char *gen_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) gen_fail(path, "cannot be read");
    size_t count = 0, room = 1 << 20;
    char *text = malloc(room + 1);
    if (!text) gen_fail(path, "no memory");
    count = fread(text, 1, room, file);
    if (count == room || ferror(file)) gen_fail(path, "cannot be read, or above 1 MiB");
    fclose(file);
    text[count] = 0;
    return text;
}

struct gen_doc {
    const char *lines[GEN_DOC_LINES_MAX];
    int count;
};

static const char *gen_after(const char *text, const char *start)
{
    size_t count = strlen(start);
    return strncmp(text, start, count) == 0 ? text + count : NULL;
}

/* Takes a doc comment apart: the name, examples, and the rest joined into one meaning. */
static void gen_use_doc(struct gen_state *state, const char *path, const struct gen_doc *doc,
                        struct gen_entry *entry)
{
    static const char arrow[] = " → ";
    char meaning[4096] = "";
    for (int i = 0; i < doc->count; i++) {
        const char *line = doc->lines[i], *korean = gen_after(line, "한국어: "), *at = strstr(line, arrow);
        if (korean) {
            entry->korean = korean;
        } else if (at) {
            const char *result = at + strlen(arrow), *kind = gen_after(result, "fails ");
            *gen_add_example(state) = (struct gen_example){.entry = entry,
                                                           .expression = gen_copy(line, (size_t)(at - line)),
                                                           .result = kind ? kind : result,
                                                           .fails = kind != NULL};
        } else {
            size_t used = strlen(meaning), room = sizeof meaning - used;
            if (strlen(line) + 2 > room) gen_fail(path, "a doc comment is too long");
            snprintf(meaning + used, room, "%s%s", used ? " " : "", line);
        }
    }
    entry->meaning = gen_copy(meaning, strlen(meaning));
    if (!entry->korean || !*meaning)
        gen_fail(entry->member, "needs `/// 한국어: NAME` and a meaning above it");
}

/* What stands behind `export fn` or `export const`. */
static void gen_add_export(struct gen_state *state, const char *path, const char *module,
                           const char *declaration, bool is_function, const struct gen_doc *doc)
{
    size_t name_bytes = strcspn(declaration, is_function ? "(" : " ");
    const char *end = is_function ? strrchr(declaration, '{') : declaration + strlen(declaration);
    if (!declaration[name_bytes] || !end)
        gen_fail(path, "an export must begin and open its block in one line");
    struct gen_entry *entry = gen_add_entry(state);
    entry->module = module;
    entry->member = gen_copy(declaration, name_bytes);
    while (end[-1] == ' ') end--;
    entry->signature = gen_copy(declaration + name_bytes, (size_t)(end - declaration) - name_bytes);
    entry->needs = "";
    gen_use_doc(state, path, doc, entry);
}

static void gen_add_file(struct gen_state *state, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *module = gen_module(state, name, strcspn(name, "."));
    struct gen_doc doc = {.count = 0};
    for (char *line = gen_read(path), *next; *line; line = next) {
        size_t count = strcspn(line, "\n");
        next = line + count + (line[count] == '\n');
        line[count] = 0;
        const char *documentation = gen_after(line, "/// "), *function = gen_after(line, "export fn "),
                   *constant = gen_after(line, "export const ");
        if (documentation) {
            if (doc.count == GEN_DOC_LINES_MAX) gen_fail(path, "a doc comment has too many lines");
            doc.lines[doc.count++] = documentation;
            continue;
        }
        if (function) gen_add_export(state, path, module, function, true, &doc);
        if (constant) gen_add_export(state, path, module, constant, false, &doc);
        doc.count = 0;
    }
}

/* -- the page ------------------------------------------------------------------------------------------------------ */

static int gen_compare_modules(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* '<' would begin a tag. */
static void gen_text(const char *text)
{
    for (; *text; text++) *text == '<' ? (void)fputs("&lt;", stdout) : (void)putchar(*text);
}

static void gen_print_entry(const struct gen_state *state, const struct gen_entry *entry)
{
    const char *dot = *entry->module ? "." : "";
    printf("\n### `%s%s%s` · `%s%s%s`\n\n", entry->module, dot, entry->member, entry->module, dot,
           entry->korean);
    printf("`%s%s`", entry->member, entry->signature);
    if (*entry->needs) printf(" · needs %s", entry->needs);
    if (entry->waits) printf(" · waits");
    if (!entry->native) printf(" · in Hanseon");
    printf("\n\n");
    gen_text(entry->meaning);
    bool open = false;
    for (int i = 0; i < state->example_count; i++) {
        const struct gen_example *example = &state->examples[i];
        if (example->entry != entry) continue;
        printf("%s%s", open ? "" : "\n\n```text\n", example->expression);
        if (example->result) printf(" → %s%s", example->fails ? "fails " : "", example->result);
        printf("\n");
        open = true;
    }
    puts(open ? "```" : "");
}

static void gen_print_module(const struct gen_state *state, const char *module)
{
    printf("\n## %s\n", *module ? module : "prelude");
    if (!*module) printf("\nThese need no import, and can be shadowed.\n");
    for (size_t i = 0; i < sizeof gen_modules / sizeof gen_modules[0]; i++)
        if (strcmp(gen_modules[i].name, module) == 0) printf("\n%s\n", gen_modules[i].meaning);
    for (int i = 0; i < state->entry_count; i++)
        if (state->entries[i].module == module) gen_print_entry(state, &state->entries[i]);
}

int main(int argc, char **argv)
{
    struct gen_state *state = calloc(1, sizeof *state);
    if (!state) gen_fail("memory", "none left");
    (void)gen_module(state, "", 0);
    gen_add_natives(state);
    for (int i = 1; i < argc; i++) gen_add_file(state, argv[i]);
    qsort(state->modules, (size_t)state->module_count, sizeof state->modules[0], gen_compare_modules);
    printf("# The standard library\n\n"
           "Written by `make docs` from `vm/code/native.def`, `vm/code/native_example.def` and "
           "`stdlib/*.han`; do not "
           "edit.\nEvery name has an English and a Korean spelling. `import \"text\"` gives a module; the "
           "words of kinds "
           "(`list`, `map`,\n`int` ...) are modules without an import. `A → B`: A gives B; `A → fails KIND`: "
           "A fails with an "
           "error of that kind. The\ntests run them all; lines without an arrow are compiled only.\n");
    for (int i = 0; i < state->module_count; i++) gen_print_module(state, state->modules[i]);
    if (ferror(stdout) || fflush(stdout) != 0) return 1;
    return 0;
}
