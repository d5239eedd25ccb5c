/* SPDX-License-Identifier: MIT
 *
 * vm/native/yaml_walk.h: one YAML document as a row of events that know their place.
 *
 * In:   the whole text, UTF-8; a byte order mark at its start is skipped.
 * Out:  one call of on_event per scalar and per begin and end of a list or map, in the order of the text. Between
 *       MAP_BEGIN and MAP_END key and value nodes alternate. An empty document gives no event.
 * Refused, each with its place: a second document, anchors, aliases, tags, %TAG directives, text that is not UTF-8,
 *       and whatever libyaml refuses.
 * Method: long documents are walked in pieces of some events (yaml_walk_go), between which others may have a turn.
 * Bounds: LIMIT_YAML_BYTES, LIMIT_YAML_DEPTH, LIMIT_YAML_NODES, and LIMIT_YAML_PIECE_BYTES for what one event reads:
 *       libyaml cannot be stopped inside a scalar.
 * Not here: values of the VM (native_yaml.c), duplicate keys and meaning (the program, which knows both places).
 */
#ifndef CY_NATIVE_YAML_WALK_H
#define CY_NATIVE_YAML_WALK_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"

enum yaml_walk_kind {
    YAML_WALK_SCALAR,
    YAML_WALK_LIST_BEGIN,
    YAML_WALK_LIST_END,
    YAML_WALK_MAP_BEGIN,
    YAML_WALK_MAP_END
};

struct yaml_walk_event {
    enum yaml_walk_kind kind;
    uint32_t line;   /* from 1 */
    uint32_t column; /* from 1, in code points */
    cy_bytes text;   /* SCALAR: its text, borrowed during the call */
    bool quoted;     /* SCALAR: in quotes or a block scalar, so that null and "null" can be told apart */
};

/* What was wrong and where; `message` is text for people without file and place. */
struct yaml_walk_fault {
    uint32_t line;
    uint32_t column;
    struct builder message; /* made by yaml_walk_fault_init */
};
void yaml_walk_fault_init(struct yaml_walk_fault *fault);
void yaml_walk_fault_fini(struct yaml_walk_fault *fault);

struct yaml_walk_options {
    bool korean; /* the language of messages */
    /* An error ends the walk and is what yaml_walk returns, without a fault. */
    cy_err (*on_event)(void *context, const struct yaml_walk_event *event);
    void *context;
};

/* A walk under way. */
struct yaml_walk;

/* LIMIT with `fault` filled in, NO_MEMORY. The text and the fault outlive the walk. */
CY_NODISCARD cy_err yaml_walk_new(cy_bytes text, const struct yaml_walk_options *options,
                                  struct yaml_walk_fault *fault, struct yaml_walk **walk_out);
/* The next piece; `*steps_out` is its price in steps of the budget, without what on_event does, and `*more_out` is
 * false when the document has ended. BAD_FORMAT or LIMIT with `fault` filled in, NO_MEMORY, or what on_event returned:
 * then the walk goes on no more. */
CY_NODISCARD cy_err yaml_walk_go(struct yaml_walk *walk, uint64_t *steps_out, bool *more_out);
void yaml_walk_free(struct yaml_walk **walk);
/* What a walk holds between two pieces, about, most of it in libyaml, which counts with no heap. */
enum { YAML_WALK_HELD_BYTES = 80 << 10 };

/* All of it in one go. */
CY_NODISCARD cy_err yaml_walk(cy_bytes text, const struct yaml_walk_options *options,
                              struct yaml_walk_fault *fault);

#endif
