/* SPDX-License-Identifier: MIT
 *
 * vm/native/option.h: reading a map of options strictly: an unknown name, or a value of another kind, is an error that
 * names it.
 */
#ifndef CY_NATIVE_OPTION_H
#define CY_NATIVE_OPTION_H

#include "vm/run/native_call.h"
#include "vm/run/object.h"

enum option_kind {
    OPTION_BOOL,
    OPTION_INT,
    OPTION_INT_OR_NIL,
    OPTION_STR,
    OPTION_STR_OR_NIL,
    OPTION_STR_OR_LIST,
    OPTION_LIST,
    OPTION_WORD
};

struct option_row {
    const char *name;
    enum option_kind kind;
    /* INT: bounds. WORD: the words allowed, NULL behind the last; the value is then the index as an int. */
    int64_t min, max;
    const char *const *words;
};

/* Reads the map that is argument `index` (absent: nothing given). values[i] belongs to rows[i] and is borrowed; nil
 * where it was not given. A false result has failed the call. */
CY_NODISCARD bool option_read(struct native_call *call, uint32_t index, const char *native,
                              const struct option_row *rows, size_t row_count, cy_value *values);

/* The same for one word given as an argument of its own: its index among `words`, `*index_out` unchanged when
 * absent. */
CY_NODISCARD bool option_word(struct native_call *call, uint32_t index, const char *native, const char *what,
                              const char *const *words, uint32_t *index_out);

#endif
