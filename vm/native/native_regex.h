/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_regex.h: what the files of module regex share: one call's pattern and its walk over a text.
 */
#ifndef CY_NATIVE_NATIVE_REGEX_H
#define CY_NATIVE_NATIVE_REGEX_H

#include "vm/base/check.h"
#include "vm/native/regex.h"
#include "vm/run/native_call.h"
#include "vm/run/object.h"

/* A call whose arguments 0 and 1 are a pattern and a text. */
struct native_regex_use {
    const char *native;
    struct regex *regex;
    struct regex *owned; /* NULL unless it was compiled for this call */
    struct regex_search search;
};
/* False results have failed the call. native_regex_end follows a begin that was good. */
CY_NODISCARD bool native_regex_begin(struct native_call *call, const char *native,
                                     struct native_regex_use *use);
void native_regex_end(struct native_call *call, struct native_regex_use *use);
CY_NODISCARD bool native_regex_next(struct native_call *call, struct native_regex_use *use, size_t from,
                                    enum regex_mode mode, bool *found_out);

/* All matches in turn, none over another; {0} at the start. */
struct native_regex_walk {
    size_t begin, end; /* of the last match */
    size_t from;
    bool after_empty;
};
CY_NODISCARD bool native_regex_each(struct native_call *call, struct native_regex_use *use,
                                    struct native_regex_walk *walk, bool *found_out);

CY_NODISCARD bool native_regex_count(struct native_call *call, uint32_t index, const char *native,
                                     const char *name, int64_t *count_out);

#endif
