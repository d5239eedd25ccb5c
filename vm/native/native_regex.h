/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_regex.h: what the files of module regex share: one call's pattern, its walk over a text, and
 * what it keeps while others run.
 */
#ifndef CY_NATIVE_NATIVE_REGEX_H
#define CY_NATIVE_NATIVE_REGEX_H

#include "vm/base/check.h"
#include "vm/native/regex.h"
#include "vm/run/native_call.h"
#include "vm/run/object.h"

/* All matches in turn, none over another; {0} at the start. */
struct native_regex_walk {
    size_t begin, end; /* of the last match */
    size_t from;
    bool after_empty;
};

/* A call whose arguments 0 and 1 are a pattern and a text: all that it keeps from one turn to the next. */
struct native_regex_work {
    const char *native;
    struct regex *regex;
    struct regex *owned; /* NULL unless it was compiled for this call */
    struct regex_search search;
    struct native_regex_walk walk;
    bool began;      /* for the body: nothing is to be checked or made again */
    int64_t left;    /* matches that are still wanted; INT64_MAX: all */
    size_t copied;   /* of the text, into the result */
    cy_value result; /* owned */
    /* A text that grows, in the VM's memory: a task may be parked with it. */
    uint8_t *out;
    size_t out_count, out_capacity;
    cy_err out_err;
};

/* Called again from where it was, when it returned AGAIN. */
typedef enum native_outcome (*native_regex_body)(struct native_call *call, struct native_regex_work *work);
/* Runs the body in pieces, between which the task's turn may end. */
enum native_outcome native_regex_run(struct native_call *call, const char *native, int64_t left,
                                     native_regex_body body);

enum native_regex_step {
    NATIVE_REGEX_FOUND,
    NATIVE_REGEX_NONE,
    NATIVE_REGEX_AGAIN, /* the piece is over: the body returns NATIVE_AGAIN and then asks for the same */
    NATIVE_REGEX_FAILED /* the call has */
};
CY_NODISCARD enum native_regex_step native_regex_each(struct native_call *call,
                                                      struct native_regex_work *work);

CY_NODISCARD bool native_regex_count(struct native_call *call, uint32_t index, const char *native,
                                     const char *name, int64_t *count_out);

#endif
