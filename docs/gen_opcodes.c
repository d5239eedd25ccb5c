/* SPDX-License-Identifier: MIT
 *
 * docs/gen_opcodes.c: a tool of the build that writes docs/OPCODES.md from the tables (`make docs`).
 *
 * In:   the .def files of vm/code, as text: expressions like "B + 1" and "OPF_TRAP | OPF_WAIT" are printed as
 *       written.
 * Out:  Markdown on standard output.
 * Invariant: links against nothing of the product, so it also works while the product does not build.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gen_format {
    const char *name;
    const char *kinds[3];
    int bytes[3];
};
static const struct gen_format gen_formats[] = {
#define FORMAT(name, a, a_bytes, b, b_bytes, c, c_bytes) {#name, {#a, #b, #c}, {a_bytes, b_bytes, c_bytes}},
#include "vm/code/format.def"
#undef FORMAT
};

struct gen_opcode {
    const char *name;
    int number;
    const char *format, *pops, *pushes, *flags, *jit, *meaning;
};
static const struct gen_opcode gen_opcodes[] = {
#define OP(name, number, format, pops, pushes, flags, jit, meaning) \
    {#name, number, #format, #pops, #pushes, #flags, #jit, meaning},
#include "vm/code/opcode.def"
#undef OP
};

struct gen_native {
    const char *group;
    int number;
    const char *english, *korean, *signature, *capability, *flags, *meaning;
};
static const struct gen_native gen_natives[] = {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    {#group, number, english, korean, signature, #capability, #flags, meaning},
#include "vm/code/native.def"
#undef NATIVE
};

struct gen_word {
    const char *name, *korean;
};
static const struct gen_word gen_opcode_words[] = {
#define RPN_OPCODE(name, korean) {#name, korean},
#include "vm/code/rpn_word.def"
#undef RPN_OPCODE
};
static const struct gen_word gen_section_words[] = {
#define RPN_WORD(name, english, korean) {english, korean},
#include "vm/code/rpn_word.def"
#undef RPN_WORD
};

/* The Korean word of RPN text; empty for a wide twin, which is written as its narrow one. */
static const char *gen_korean(const char *opcode)
{
    for (size_t i = 0; i < sizeof gen_opcode_words / sizeof gen_opcode_words[0]; i++)
        if (strcmp(gen_opcode_words[i].name, opcode) == 0) return gen_opcode_words[i].korean;
    return "";
}

/* '|' would end a table cell, '<' would begin a tag. */
static void gen_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            fputs("\\|", stdout);
        else if (*text == '<')
            fputs("&lt;", stdout);
        else
            putchar(*text);
    }
}

/* "OPF_TRAP | OPF_WAIT" as "TRAP WAIT"; 0 as nothing. */
static void gen_flags(const char *flags)
{
    if (strcmp(flags, "0") == 0) return;
    while (*flags) {
        if (strncmp(flags, "OPF_", 4) == 0) flags += 4;
        if (*flags == '|') {
            flags += flags[1] == ' ' ? 2 : 1;
            continue;
        }
        putchar(*flags++);
    }
}

static void gen_operands(const char *format_name)
{
    for (size_t i = 0; i < sizeof gen_formats / sizeof gen_formats[0]; i++) {
        const struct gen_format *format = &gen_formats[i];
        if (strcmp(format->name, format_name) != 0) continue;
        static const char letters[] = "ABC";
        for (int operand = 0; operand < 3 && format->bytes[operand]; operand++)
            printf("%s%c %s %c%d", operand ? ", " : "", letters[operand], format->kinds[operand],
                   strcmp(format->kinds[operand], "IMMEDIATE") ? 'u' : 'i', 8 * format->bytes[operand]);
        return;
    }
    fprintf(stderr, "gen_opcodes: no format is named %s\n", format_name);
    exit(1);
}

static void gen_opcode_table(void)
{
    printf("## Opcodes\n\n"
           "An instruction is one opcode byte and its operands, little-endian, of the widths shown. `pops` "
           "and `pushes` are\n"
           "expressions over the operands A and B. `vm/code/opcode.def` explains the flags.\n\n"
           "| number | opcode | Korean | operands | pops | pushes | flags | JIT | meaning "
           "|\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof gen_opcodes / sizeof gen_opcodes[0]; i++) {
        const struct gen_opcode *row = &gen_opcodes[i];
        printf("| 0x%02x | `%s` | %s | ", row->number, row->name, gen_korean(row->name));
        gen_operands(row->format);
        printf(" | %s | %s | ", row->pops, row->pushes);
        gen_flags(row->flags);
        printf(" | %s | ", row->jit);
        gen_cell(row->meaning);
        puts(" |");
    }
}

static void gen_native_table(void)
{
    printf("\n## Natives\n\n"
           "A program names a native by its English name; the number appears in no file. A name without a "
           "dot is in the\n"
           "prelude. CORE natives need libc only; FULL ones are in the complete binary.\n\n"
           "| number | name | Korean | signature | capability | flags | group | meaning "
           "|\n|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof gen_natives / sizeof gen_natives[0]; i++) {
        const struct gen_native *row = &gen_natives[i];
        printf("| 0x%04x | `%s` | %s | `", row->number, row->english, row->korean);
        for (const char *p = row->signature; *p; p++) printf(*p == '|' ? "\\%c" : "%c", *p);
        printf("` | %s | ", strcmp(row->capability, "NONE") ? row->capability : "");
        gen_flags(row->flags);
        printf(" | %s | ", row->group);
        gen_cell(row->meaning);
        puts(" |");
    }
}

static void gen_small_tables(void)
{
    printf("\n## Words of RPN text\n\n"
           "Opcodes are spelled as above, in either column. `docs/RPN.md` shows the words around them.\n\n"
           "| word | Korean |\n|---|---|\n");
    for (size_t i = 0; i < sizeof gen_section_words / sizeof gen_section_words[0]; i++)
        printf("| `%s` | %s |\n", gen_section_words[i].name, gen_section_words[i].korean);
    printf("\n## Kinds\n\n| number | kind | Korean |\n|---|---|---|\n");
#define KIND(name, number, english, korean) printf("| %d | `%s` | %s |\n", number, english, korean);
#include "vm/code/kind.def"
#undef KIND
    printf(
        "\n## Capabilities\n\n| bit | word | given by declaring it | what it allows |\n|---|---|---|---|\n");
#define CAPABILITY(name, bit, word, granted, meaning) \
    printf("| %d | `%s` | %s | %s |\n", bit, word, granted ? "yes" : "no", meaning);
#include "vm/code/capability.def"
#undef CAPABILITY
    printf("\n## Rules\n\nWhat `crownyc` names when it refuses a `.toau`.\n\n| rule | meaning | Korean "
           "|\n|---|---|---|\n");
#define RULE(name, korean, english) printf("| `%s` | %s | %s |\n", #name, english, korean);
#include "vm/code/rule.def"
#undef RULE
}

int main(void)
{
    printf("# Opcodes, natives, kinds, capabilities, rules\n\n"
           "Written by `make docs` from the tables in `vm/code`; do not edit. `docs/TOAU.md` describes the "
           "file around them.\n\n");
    gen_opcode_table();
    gen_native_table();
    gen_small_tables();
    if (ferror(stdout) || fflush(stdout) != 0) return 1;
    return 0;
}
