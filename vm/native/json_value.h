/* SPDX-License-Identifier: MIT
 *
 * vm/native/json_value.h: JSON text to values and back.
 *
 * In:   text or a value, options. Out: an owned value or text; on failure where and why.
 * Invariant: nothing recurses; reading makes each value once, in its place, without a tree between.
 */
#ifndef CY_NATIVE_JSON_VALUE_H
#define CY_NATIVE_JSON_VALUE_H

#include "vm/base/builder.h"
#include "vm/run/object.h"

enum json_duplicates { JSON_DUPLICATES_REFUSED, JSON_DUPLICATES_FIRST, JSON_DUPLICATES_LAST };

struct json_read_options {
    enum json_duplicates duplicates;
    bool big_int_is_float;
};
struct json_write_options {
    uint32_t indent; /* spaces per level; 0: all on one line */
    bool sort_keys;  /* by bytes */
};
/* line 0: no place. The message is for people. */
struct json_value_fault {
    uint32_t line;
    uint32_t column;
    char message[256];
};

/* BAD_FORMAT with a place; else LIMIT (JSON_BYTES), NO_MEMORY. */
CY_NODISCARD cy_err json_value_read(struct vm *vm, cy_bytes text, const struct json_read_options *options,
                                    bool korean, struct json_value_fault *fault_out, cy_value *owned_out);
/* Appends to `out`, whose count_max the caller has set. TYPE, VALUE, BAD_TEXT with a message that names the place
 * inside the value; DEPTH; out's own failure is the caller's to look at. */
CY_NODISCARD cy_err json_value_write(struct vm *vm, cy_value value, const struct json_write_options *options,
                                     struct builder *out, struct json_value_fault *fault_out);

#endif
