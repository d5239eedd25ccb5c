/* SPDX-License-Identifier: MIT
 *
 * vm/code/toau_diff.h: where two programs differ, in the terms of those who wrote them.
 *
 * In:   two verified programs. Out: text.
 * Invariant: functions are paired by module, name and their order among those; names are compared, not numbers, so
 *            that one function more does not make all the others differ.
 */
#ifndef CY_CODE_TOAU_DIFF_H
#define CY_CODE_TOAU_DIFF_H

#include "vm/base/builder.h"
#include "vm/code/program.h"

struct toau_diff_options {
    cy_bytes name_a, name_b; /* as messages show them */
    bool korean;
    bool all; /* every difference instead of the first */
};

/* Appends what differs; *count_out is the number of differences found (without `all` at most 1). */
CY_NODISCARD cy_err toau_diff(const struct toau_diff_options *options, const struct program *a,
                              const struct program *b, struct builder *out, uint32_t *count_out);

/* Appends which section, and which entry of it, holds the first byte in which two files differ. */
void toau_diff_bytes(cy_bytes a, cy_bytes b, bool korean, struct builder *out);

#endif
