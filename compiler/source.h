/* SPDX-License-Identifier: MIT
 *
 * compiler/source.h: a source file in memory, and places in it.
 */
#ifndef CY_COMPILER_SOURCE_H
#define CY_COMPILER_SOURCE_H

#include "vm/base/bytes.h"

struct source {
    cy_bytes file; /* as messages show it: relative to main's folder, or "std:http" */
    cy_bytes text;
    uint32_t index; /* in load order, main is 0: the order of messages */
};

/* Bytes [start, end) of a source, and where start is for people. */
struct span {
    uint32_t start;
    uint32_t end;
    uint32_t line;   /* from 1 */
    uint32_t column; /* from 1, in code points */
};

static inline cy_bytes source_slice(const struct source *source, struct span span)
{
    return cy_bytes_slice(source->text, span.start, span.end);
}
/* From the start of `first` to the end of `last`. */
static inline struct span span_join(struct span first, struct span last)
{
    if (last.end > first.end) first.end = last.end;
    return first;
}

#endif
