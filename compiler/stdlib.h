/* SPDX-License-Identifier: MIT
 *
 * compiler/stdlib.h: the standard library's sources, as the build embeds them.
 *
 * Out: a table sorted by name, closed by a row of zeros. stdlib/embed.c writes it, so this header needs nothing else.
 */
#ifndef CY_COMPILER_STDLIB_H
#define CY_COMPILER_STDLIB_H

struct stdlib_module {
    const char *name; /* "http": what `import "http"` names */
    const unsigned char *source;
    unsigned long source_bytes;
};

extern const struct stdlib_module stdlib_modules[];
extern const unsigned long stdlib_module_count;

#endif
