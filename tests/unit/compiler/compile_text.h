/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/compile_text.h: compiles sources that lie in memory.
 */
#ifndef CY_TESTS_UNIT_COMPILER_COMPILE_TEXT_H
#define CY_TESTS_UNIT_COMPILER_COMPILE_TEXT_H

#include "compiler/compiler.h"

struct compile_text_file {
    const char *path;
    cy_bytes text;
};
struct compile_text {
    struct compile_text_file files[8]; /* the first one is main */
    size_t file_count;
    bool korean;
    const struct stdlib_module *stdlib;
    size_t stdlib_count;
    /* filled: */
    struct program *program; /* NULL when there were errors */
    struct builder messages;
    uint32_t error_count;
};

/* One file "main.han" with that text. */
void compile_text_init(struct compile_text *test, cy_bytes main_text);
void compile_text_add(struct compile_text *test, const char *path, cy_bytes text);
/* Fails the test when messages and outcome contradict each other. */
void compile_text_run(struct compile_text *test);
void compile_text_fini(struct compile_text *test);

/* Compiles `text` as main and wants exactly these messages, whole. */
void compile_text_expect(const char *text, bool korean, const char *messages);
/* Wraps `body` in main and wants it to compile. */
void compile_text_accept(const char *body);
/* The program as RPN text of one function; the caller frees `out`. */
void compile_text_rpn(const char *text, const char *function, struct builder *out);

#endif
