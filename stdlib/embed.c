/* SPDX-License-Identifier: MIT
 *
 * stdlib/embed.c: a tool of the build that turns the standard library into a C file.
 *
 * In:   embed OUTPUT.c stdlib/a.han stdlib/b.han ... (none is allowed)
 * Out:  OUTPUT.c with the rows of compiler/stdlib.h, sorted by module name whatever the order of the arguments.
 * Invariant: the output depends on the names and bytes of the files only.
 * Not here: checking that the modules compile (the test suite does).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct embed_module {
    const char *path;
    const char *name;
    int name_bytes;
};

static void embed_fail(const char *what, const char *path)
{
    fprintf(stderr, "embed: %s: %s\n", path, what);
    exit(1);
}

static struct embed_module embed_module_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || strcmp(dot, ".han") != 0) embed_fail("not a .han file", path);
    return (struct embed_module){path, name, (int)(dot - name)};
}

static int embed_compare(const void *left, const void *right)
{
    const struct embed_module *a = left, *b = right;
    int common = a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
    int order = memcmp(a->name, b->name, (size_t)common);
    return order ? order : a->name_bytes - b->name_bytes;
}

static unsigned long embed_write_bytes(FILE *output, const struct embed_module *module, int index)
{
    FILE *input = fopen(module->path, "rb");
    if (!input) embed_fail("cannot be read", module->path);
    fprintf(output, "static const unsigned char stdlib_source_%d[] = { /* %s */", index, module->name);
    unsigned long count = 0;
    for (int byte; (byte = getc(input)) != EOF; count++)
        fprintf(output, "%s%d,", count % 32 ? "" : "\n    ", byte);
    if (ferror(input)) embed_fail("cannot be read", module->path);
    fclose(input);
    fprintf(output, "\n    0, /* not counted */\n};\n");
    return count;
}

static void embed_write(FILE *output, struct embed_module *modules, unsigned long *source_bytes, int count)
{
    fprintf(output, "/* Written by stdlib/embed.c: do not edit. */\n#include \"compiler/stdlib.h\"\n\n");
    for (int i = 0; i < count; i++) source_bytes[i] = embed_write_bytes(output, &modules[i], i);
    fprintf(output, "const struct stdlib_module stdlib_modules[] = {\n");
    for (int i = 0; i < count; i++)
        fprintf(output, "    {\"%.*s\", stdlib_source_%d, %luul},\n", modules[i].name_bytes, modules[i].name,
                i, source_bytes[i]);
    fprintf(output, "    {0, 0, 0},\n};\nconst unsigned long stdlib_module_count = %d;\n", count);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: embed OUTPUT.c MODULE.han...\n");
        return 2;
    }
    int count = argc - 2;
    struct embed_module *modules = calloc((size_t)count + 1, sizeof *modules);
    unsigned long *source_bytes = calloc((size_t)count + 1, sizeof *source_bytes);
    if (!modules || !source_bytes) embed_fail("out of memory", argv[1]);
    for (int i = 0; i < count; i++) modules[i] = embed_module_of(argv[i + 2]);
    qsort(modules, (size_t)count, sizeof *modules, embed_compare);
    for (int i = 1; i < count; i++)
        if (embed_compare(&modules[i - 1], &modules[i]) == 0)
            embed_fail("two modules of this name", modules[i].path);

    FILE *output = fopen(argv[1], "wb");
    if (!output) embed_fail("cannot be written", argv[1]);
    embed_write(output, modules, source_bytes, count);
    if (ferror(output) || fclose(output) != 0) embed_fail("cannot be written", argv[1]);
    free(modules);
    free(source_bytes);
    return 0;
}
