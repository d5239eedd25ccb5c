/* SPDX-License-Identifier: MIT
 *
 * compiler/diag.h: messages of the compiler, collected first and shown in one go.
 *
 * In:   a row of diag.def, a place, arguments. All of it lives as long as the arena.
 * Out:  text like
 *
 *           main.han:3:9: error E0040: unknown name `rout`
 *               print(rout)
 *                     ^^^^
 *             hint: did you mean `route`?
 *           1 error
 *
 * Invariant: the text depends on the sources only: messages are sorted by file, place and number, equal ones shown
 *            once.
 */
#ifndef CY_COMPILER_DIAG_H
#define CY_COMPILER_DIAG_H

#include "compiler/source.h"
#include "vm/base/arena.h"
#include "vm/base/builder.h"

enum diag_code {
#define DIAG(name, number, korean, english, korean_hint, english_hint) DIAG_##name,
#include "compiler/diag.def"
#undef DIAG
    DIAG_CODE_COUNT
};

#define DIAG_ARGUMENTS_MAX 3

struct diag {
    enum diag_code code;
    const struct source *source; /* NULL: about the program, not a place */
    struct span span;
    cy_bytes arguments[DIAG_ARGUMENTS_MAX];
    cy_bytes nearest; /* the name that was perhaps meant; count 0 = none */
    uint32_t order;   /* of reporting */
};

struct diag_list {
    struct arena *arena;
    bool korean;
    struct diag *items;
    uint32_t count; /* at most LIMIT_COMPILE_ERRORS */
    uint32_t capacity;
    uint32_t dropped_count; /* past the limit: counted, not kept */
    struct diag dropped;    /* where those are written */
};

void diag_init(struct diag_list *list, struct arena *arena, bool korean);
/* Never NULL; the caller may set `nearest`. Arguments not needed are CY_BYTES_NONE. */
struct diag *diag_report(struct diag_list *list, const struct source *source, struct span span,
                         enum diag_code code, cy_bytes argument_0, cy_bytes argument_1, cy_bytes argument_2);
/* Shorthands for the usual numbers of arguments. */
struct diag *diag_report_0(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code);
struct diag *diag_report_1(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code, cy_bytes argument);
struct diag *diag_report_2(struct diag_list *list, const struct source *source, struct span span,
                           enum diag_code code, cy_bytes argument_0, cy_bytes argument_1);
/* A number as an argument. */
cy_bytes diag_number(struct diag_list *list, int64_t number);
/* True when looking for a nearest name is still worth its time. */
bool diag_wants_nearest(const struct diag_list *list);

/* Appends every message and the line that counts them; nothing when there are none. Sorts the list. Returns the
 * count. */
uint32_t diag_render(struct diag_list *list, struct builder *out);

#endif
