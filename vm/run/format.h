/* SPDX-License-Identifier: MIT
 *
 * vm/run/format.h: a text made of values, in as many turns as it takes.
 *
 * In:   values that the caller holds until the end, the same ones at each call. Out: a str, or bytes.
 * Invariant: the struct may be moved between two calls. Whatever ends it is one of format_text_end and
 *       format_text_drop.
 * Not here: texts of bounded length (value_format in object.h).
 */
#ifndef CY_RUN_FORMAT_H
#define CY_RUN_FORMAT_H

#include "vm/run/object.h"

struct format_level {
    cy_value container;
    uint32_t index;
    bool first;
};
/* One value on its way to text. */
struct format_walk {
    struct format_level *levels;
    uint32_t depth;
    uint32_t capacity;
    uint32_t ref_depth;
    bool text_quoted;
    cy_value text; /* str being written, borrowed; nil: none */
    size_t text_at;
    cy_value held; /* owned: the content of the cell that is being shown */
    uint64_t contents;
};
struct format_text {
    struct builder out; /* string_build */
    size_t charged_bytes;
    size_t counted_bytes; /* as the heap's, between two turns */
    uint32_t index;       /* of the value under way */
    bool inside;
    struct format_walk walk;
};

/* Texts as they are, one after the other; texts quoted; a line with spaces between. */
enum format_way { FORMAT_PLAIN, FORMAT_QUOTED, FORMAT_LINE };

/* Bounded by LIMIT_FORMAT_BYTES and by what the VM may still allocate. */
void format_text_begin(struct vm *vm, struct format_text *text);
/* False: the task's turn is over, and there is more. */
bool format_text_go(struct vm *vm, struct format_text *text, const cy_value *values, uint32_t count,
                    enum format_way way);
/* TOO_LARGE (FORMAT_BYTES) or NO_MEMORY. */
cy_err format_text_error(const struct format_text *text);
CY_NODISCARD cy_err format_text_end(struct vm *vm, struct format_text *text, cy_value *owned_out);
void format_text_drop(struct vm *vm, void *text);

#endif
