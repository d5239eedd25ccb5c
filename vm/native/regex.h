/* SPDX-License-Identifier: MIT
 *
 * vm/native/regex.h: regular expressions over bytes, bounded in steps, depth, memory and time, and made in pieces.
 * pcre2 stands behind this file and nowhere else.
 *
 * In:   a pattern that a program wrote, a text from anywhere. Out: offsets of bytes.
 * Invariant: a call ends within LIMIT_REGEX_CALL_MS of CPU (and LIMIT_REGEX_MATCH_US for each match), whatever pattern
 *       and text are; the thread is given back every LIMIT_REGEX_PIECE_US. What takes no pause is one look along the
 *       text: for one item of a pattern (`.*`), or for where a match may begin.
 * Text: UTF-8. Bytes that are not match nothing, so a hostile text is no error.
 */
#ifndef CY_NATIVE_REGEX_H
#define CY_NATIVE_REGEX_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

struct regex;

/* Where memory comes from; {0}: mem.h. */
struct regex_memory {
    void *(*alloc)(size_t bytes, void *context);
    void (*free)(void *block, void *context);
    void *context;
};
struct regex_options {
    bool ignore_case;
    bool multi_line; /* ^ and $ at each line */
    bool dot_all;    /* . matches a line feed too */
    bool extended;   /* white space and # comments in the pattern mean nothing */
    bool unicode;    /* \w \d \s \b know all of Unicode, not ASCII alone */
};
struct regex_fault {
    size_t offset; /* in the pattern */
    char message[128];
};

/* BAD_FORMAT with a fault; LIMIT (REGEX_PATTERN_BYTES); NO_MEMORY. */
CY_NODISCARD cy_err regex_new(cy_bytes pattern, const struct regex_options *options,
                              const struct regex_memory *memory, struct regex **regex_out,
                              struct regex_fault *fault_out);
void regex_free(struct regex **regex);

/* Groups of the pattern; 0, the whole match, is not counted. */
uint32_t regex_group_count(const struct regex *regex);
/* The `index`-th name and its group; false past the last. */
CY_NODISCARD bool regex_name_at(const struct regex *regex, uint32_t index, cy_bytes *name_out,
                                uint32_t *group_out);

/* One call of a native: its text, and what time is left of it. */
struct regex_search {
    struct regex *regex;
    cy_bytes text;
    void *match_data;    /* private, as the rest */
    void *match_context; /* of pcre2 */
    const void *code;
    bool is_utf8;
    size_t checked_count; /* bytes of the text known to be UTF-8 */
    /* -- time -- */
    uint64_t piece_started_ns, piece_deadline_ns;
    uint64_t cpu_started_ns; /* of the piece; 0 in the first one */
    uint64_t used_ns, allowed_ns;
    uint32_t ticks, ticks_per_look;
    /* -- a match on a stack of its own -- */
    bool in_pieces;
    bool under_way;
    bool ending; /* it is to give up */
    struct coroutine *coroutine;
    size_t from;
    uint32_t mode_bits;
    int result; /* of pcre2 */
};
/* The first piece begins. */
CY_NODISCARD cy_err regex_search_init(struct regex_search *search, struct regex *regex, cy_bytes text);
void regex_search_fini(struct regex_search *search); /* also of one that is not over */
/* Ends this piece: nanoseconds that it took. Others may run, until the next one begins. */
uint64_t regex_search_end_piece(struct regex_search *search);
void regex_search_begin_piece(struct regex_search *search);

enum regex_mode {
    REGEX_FIND,          /* at or behind `from` */
    REGEX_WHOLE,         /* the whole text */
    REGEX_NOT_EMPTY_HERE /* exactly at `from`, and not empty: what follows an empty match */
};
/* What stopped a search that is bounded. */
enum regex_bound {
    REGEX_BOUND_NONE,
    REGEX_BOUND_STEPS,
    REGEX_BOUND_DEPTH,
    REGEX_BOUND_HEAP,
    REGEX_BOUND_TIME
};

/* LIMIT with `*bound_out`, NO_MEMORY. `from` is where a letter begins (regex_is_boundary) or where a match ended; in a
 * text that is not UTF-8 the two differ. When `*over_out` is false the piece is: call again in the next one, with the
 * same arguments. The search may be moved in memory before its second piece, and not later. */
CY_NODISCARD cy_err regex_search_step(struct regex_search *search, size_t from, enum regex_mode mode,
                                      bool *over_out, bool *found_out, enum regex_bound *bound_out);
/* The same in one go, for those whom nobody waits for. */
CY_NODISCARD cy_err regex_search_next(struct regex_search *search, size_t from, enum regex_mode mode,
                                      bool *found_out, enum regex_bound *bound_out);
/* Of the last match. False when the group took no part. */
CY_NODISCARD bool regex_search_group(const struct regex_search *search, uint32_t group, size_t *begin_out,
                                     size_t *end_out);
/* Whether a letter begins at `offset`, or the text ends there. */
bool regex_is_boundary(cy_bytes text, size_t offset);

#endif
