/* SPDX-License-Identifier: MIT
 *
 * docs/editors/gen_grammar.c: a tool of the build that writes the TextMate grammar of Hanseon (`make docs`).
 *
 * In:   compiler/token.def and vm/code/kind.def. Out: hanseon.tmLanguage.json on standard output.
 * Invariant: links against nothing of the product. No spelling stands here: a keyword of token.def that `gen_scopes`
 *            does not know is coloured as control flow.
 */
#include <stdio.h>
#include <string.h>

struct gen_keyword {
    const char *name, *spellings[3];
};
static const struct gen_keyword gen_keywords[] = {
#define KEYWORD(name, english, korean, korean_2) {#name, {english, korean, korean_2}},
#define MARK(name, text)
#include "compiler/token.def"
#undef KEYWORD
#undef MARK
};
static const struct gen_keyword gen_kinds[] = {
#define KIND(name, number, english, korean) {#name, {english, korean, ""}},
#include "vm/code/kind.def"
#undef KIND
};
enum {
    GEN_KEYWORD_COUNT = sizeof gen_keywords / sizeof gen_keywords[0],
    GEN_KIND_COUNT = sizeof gen_kinds / sizeof gen_kinds[0]
};

/* The first scope whose names, each between spaces, have the token's. */
static const struct {
    const char *scope, *names;
} gen_scopes[] = {
    {"storage.type.hanseon", " LET CONST FN RECORD "},
    {"keyword.other.hanseon", " IMPORT EXPORT TEST REF SPAWN "},
    {"keyword.operator.word.hanseon", " AND OR NOT "},
    {"constant.language.hanseon", " TRUE FALSE NIL "},
    {"keyword.control.hanseon", ""},
};
enum { GEN_SCOPE_COUNT = sizeof gen_scopes / sizeof gen_scopes[0] };

static int gen_scope_of(const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    for (int i = 0; i < GEN_SCOPE_COUNT - 1; i++)
        if (strstr(gen_scopes[i].names, word)) return i;
    return GEN_SCOPE_COUNT - 1;
}

static void gen_words(const struct gen_keyword *words, int count, int scope)
{
    int some = 0;
    for (int i = 0; i < count; i++) {
        if (scope >= 0 && gen_scope_of(words[i].name) != scope) continue;
        for (int k = 0; k < 3; k++)
            if (words[i].spellings[k][0]) printf("%s%s", some++ ? "|" : "", words[i].spellings[k]);
    }
}

/* Behind a dot and before a colon every word is a name; behind `..` it is not. */
static void gen_rule(const char *scope, const struct gen_keyword *words, int count, int which,
                     int before_colon)
{
    printf("    {\"name\": \"%s\", \"match\": "
           "\"(?<![\\\\p{L}\\\\p{M}\\\\p{N}_])(?:(?<=\\\\.\\\\.)|(?<!\\\\.))(?:",
           scope);
    gen_words(words, count, which);
    printf(")(?![\\\\p{L}\\\\p{M}\\\\p{N}_])%s\"},\n", before_colon ? "" : "(?!\\\\s*:)");
}

/* Function names are coloured where they are declared. */
static void gen_declared(const char *token, const char *scope)
{
    for (int i = 0; i < GEN_KEYWORD_COUNT; i++) {
        if (strcmp(gen_keywords[i].name, token) != 0) continue;
        printf("    {\"match\": \"(?<![\\\\p{L}\\\\p{M}\\\\p{N}_.])(");
        gen_words(&gen_keywords[i], 1, -1);
        printf(")\\\\s+([\\\\p{L}_][\\\\p{L}\\\\p{M}\\\\p{N}_]*)\", \"captures\": {\"1\": {\"name\": "
               "\"storage.type.hanseon\"}, \"2\": {\"name\": \"%s\"}}},\n",
               scope);
    }
}

int main(void)
{
    puts("{\n  \"name\": \"Hanseon\",\n  \"scopeName\": \"source.hanseon\",\n  \"fileTypes\": [\"han\", "
         "\"한선\"],");
    puts("  \"patterns\": [{\"include\": \"#code\"}],\n  \"repository\": {\n   \"code\": {\"patterns\": [");
    puts("    {\"name\": \"comment.line.documentation.hanseon\", \"match\": \"///(?!/).*$\"},");
    puts("    {\"name\": \"comment.line.double-slash.hanseon\", \"match\": \"//.*$\"},");
    puts("    {\"name\": \"string.quoted.other.raw.hanseon\", \"begin\": \"`\", \"end\": \"`\"},");
    puts("    {\"name\": \"string.quoted.double.hanseon\", \"begin\": \"\\\"\", \"end\": \"\\\"|$\", "
         "\"patterns\": [");
    puts("      {\"name\": \"meta.interpolation.hanseon\", \"begin\": \"\\\\\\\\\\\\(\", \"end\": \"\\\\)\", "
         "\"beginCaptures\": {\"0\": "
         "{\"name\": \"punctuation.section.interpolation.begin.hanseon\"}}, \"endCaptures\": {\"0\": "
         "{\"name\": "
         "\"punctuation.section.interpolation.end.hanseon\"}}, \"patterns\": [{\"include\": "
         "\"#parentheses\"}, {\"include\": "
         "\"#code\"}]},");
    puts("      {\"name\": \"constant.character.escape.hanseon\", \"match\": "
         "\"\\\\\\\\(?:u\\\\{[0-9A-Fa-f]+\\\\}|.)\"}]},");
    puts("    {\"name\": \"constant.numeric.hanseon\", \"match\": "
         "\"(?<![\\\\p{L}\\\\p{N}_])(?:0x[0-9A-Fa-f_]+|0b[01_]+|[0-9][0-9_]*(?:\\\\."
         "[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?)\"},");
    gen_declared("FN", "entity.name.function.hanseon");
    gen_declared("RECORD", "entity.name.type.hanseon");
    for (int i = 0; i < GEN_SCOPE_COUNT; i++)
        gen_rule(gen_scopes[i].scope, gen_keywords, GEN_KEYWORD_COUNT, i, 0);
    gen_rule("support.type.hanseon", gen_kinds, GEN_KIND_COUNT, -1, 1);
    puts("    {\"name\": \"keyword.operator.hanseon\", \"match\": "
         "\"->|\\\\.\\\\.|==|!=|<=|>=|<<|>>|&&|\\\\|\\\\||[-+*/%&|^~<>=!]\"}");
    puts("   ]},\n   \"parentheses\": {\"begin\": \"\\\\(\", \"end\": \"\\\\)\", \"patterns\": "
         "[{\"include\": \"#parentheses\"}, {\"include\": "
         "\"#code\"}]}\n  }\n}");
    return 0;
}
