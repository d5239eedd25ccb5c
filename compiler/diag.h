/* SPDX-License-Identifier: MIT
 *
 * compiler/diag.h: messages of the compiler, collected first and shown in one go.
 *
 * In:   a row of diag.def, a place, arguments. All of it lives as long as the arena.
 * Out:  text like
 *
 *           main.han:3:9: error E0043: `x` is already declared in line 2
 *               let x = 2
 *                   ^
 *             main.han:2:9: declared here
 *               let x = 1
 *                   -
 *           1 error
 *
 *       or one JSON object per message and line (diag_json.c says which members).
 * Invariant: the text depends on the sources and on how main's path was written only: messages are sorted by file,
 *            place and number, equal ones shown once.
 */
#ifndef CY_COMPILER_DIAG_H
#define CY_COMPILER_DIAG_H

#include "compiler/source.h"
#include "vm/base/arena.h"
#include "vm/base/builder.h"

enum diag_code {
#define DIAG(name, number, korean, english, korean_hint, english_hint) DIAG_##name,
#define WARNING(name, number, korean, english, korean_hint, english_hint) WARNING_##name,
#include "compiler/diag.def"
#undef DIAG
#undef WARNING
    DIAG_CODE_COUNT
};

/* What a second place has to do with the first. */
enum diag_label {
    DIAG_LABEL_NONE,
#define LABEL(name, korean, english) DIAG_LABEL_##name,
#include "compiler/diag_label.def"
#undef LABEL
};

#define DIAG_ARGUMENTS_MAX 3

struct diag {
    enum diag_code code;
    const struct source *source; /* NULL: about the program, not a place */
    struct span span;
    cy_bytes arguments[DIAG_ARGUMENTS_MAX];
    cy_bytes nearest;      /* the name that was perhaps meant; count 0 = none */
    enum diag_label label; /* NONE: there is no second place */
    const struct source *label_source;
    struct span label_span;
    uint32_t order; /* of reporting */
};

/* How messages are written. */
struct diag_style {
    bool korean;
    bool json;
    bool color;
    cy_bytes
        folder; /* of main, as the user wrote it: "" or ending in '/'; stands before the names of files */
};

struct diag_list {
    struct arena *arena;
    struct diag *items;
    uint32_t count; /* at most LIMIT_COMPILE_ERRORS */
    uint32_t capacity;
    uint32_t dropped_count; /* past the limit: counted, not kept */
    struct diag dropped;    /* where those are written */
};

void diag_init(struct diag_list *list, struct arena *arena);
/* Never NULL; the caller may set `nearest`, and give a label. Arguments not needed are CY_BYTES_NONE. */
struct diag *diag_report(struct diag_list *list, const struct source *source, struct span span,
                         enum diag_code code, cy_bytes argument_0, cy_bytes argument_1, cy_bytes argument_2);
/* Shorthands for the usual numbers of arguments. */
struct diag *diag_report_0(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code);
struct diag *diag_report_1(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code, cy_bytes argument);
struct diag *diag_report_2(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code, cy_bytes argument_0, cy_bytes argument_1);
void diag_add_label(struct diag *diag, enum diag_label label, const struct source *source, struct span span);
/* A number as an argument. */
cy_bytes diag_number(struct diag_list *list, int64_t number);
/* True when looking for a nearest name is still worth its time. */
bool diag_wants_nearest(const struct diag_list *list);

/* "E0040", "W0101": five bytes and a NUL. */
#define DIAG_CODE_TEXT_BYTES 8
void diag_code_text(enum diag_code code, char text_out[DIAG_CODE_TEXT_BYTES]);
/* The code that "E0040", "e40" or "40" names; false when none. A letter must be the code's own: no error has the number
 * of a warning. */
CY_NODISCARD bool diag_code_find(cy_bytes text, enum diag_code *code_out);
/* For a text that names none: the one that was perhaps meant, which has the number under the other letter, or else the
 * nearest number under this letter. False when the text is no letter and number. */
CY_NODISCARD bool diag_code_nearest(cy_bytes text, enum diag_code *code_out);
bool diag_is_warning(enum diag_code code);
/* The row's words, with ... where arguments would stand. */
void diag_write_subject(enum diag_code code, bool korean, struct builder *out);

/* Puts the list in the order in which it is shown, and takes out what stands twice. */
void diag_settle(struct diag_list *list);
/* How many were shown or counted. */
struct diag_counts {
    uint32_t errors;
    uint32_t warnings;
};
/* Appends every error, or, when there are none, every warning, and for text the line that counts them; nothing when
 * there are none at all. Sorts the lists. */
struct diag_counts diag_render(struct diag_list *errors, struct diag_list *warnings,
                               const struct diag_style *style, struct builder *out);

#endif
