/* SPDX-License-Identifier: MIT
 *
 * compiler/check_flow.h: what is known about the kinds of local variables where control stands; shared by check_flow.c,
 * check_kind.c and check_narrow.c.
 *
 * Method: one walk over resolved code. Each local has the set of kinds its value may have here; a branch works on the
 *         same sets and writes down what it changed (the trail), so that it can be undone, and joined with the other
 *         branches.
 *         The walk does not run loops to a fixed point: what a loop assigns is unknown at its head.
 * Invariant: a set holds every kind that the value can have. So a warning about a kind that does not fit is right
 *            whenever control gets there.
 */
#ifndef CY_COMPILER_CHECK_FLOW_H
#define CY_COMPILER_CHECK_FLOW_H

#include "compiler/unit.h"
#include "vm/code/opcode.h"

#define FLOW_KIND(kind) (1u << (kind))
#define FLOW_NIL FLOW_KIND(KIND_NIL)
#define FLOW_ALL ((1u << KIND_COUNT) - 1)
#define FLOW_NUMBER (FLOW_KIND(KIND_INT) | FLOW_KIND(KIND_FLOAT))
/* Beside the kinds: that nil is among them is said by the program or a signature, not only not ruled out. */
#define FLOW_NIL_SAID (1u << 31)

struct flow_change {
    struct symbol *symbol;
    uint32_t before;
};

struct flow_loop {
    bool has_break;
};

struct flow {
    struct compilation *compilation;
    const struct unit *unit;
    struct function_decl *function; /* NULL in initialisers */
    struct flow_change *trail;
    uint32_t trail_count, trail_capacity;
    struct flow_loop *loop;
    bool reachable;
    bool left_softly; /* not by a statement that everybody sees leaving, but by a call that never returns */
    struct span left_span; /* of the statement after which nothing is reached */
    uint32_t stamp;
};

/* check_flow.c */
uint32_t flow_get(const struct symbol *symbol);
void flow_set(struct flow *flow, struct symbol *symbol, uint32_t kinds);
void flow_undo(struct flow *flow, uint32_t mark);
/* Body of a function written here, which sees the variables as they are now. */
void flow_function(struct flow *flow, struct function_decl *function);

/* check_kind.c */
/* The kinds that `node` can have; warns about what is inside. */
uint32_t flow_kinds(struct flow *flow, struct node *node);
uint32_t flow_annotation_kinds(const struct annotation *annotation);
/* Warns when a value of those kinds, that of `node`, does not go with what `user` allows ("`+`", "`f`"). */
void flow_require(struct flow *flow, const struct node *node, uint32_t kinds, uint32_t allowed,
                  cy_bytes user);
/* Kinds of a + b, with warnings; the operands were looked at. */
uint32_t flow_sum(struct flow *flow, const struct node *left_node, uint32_t left,
                  const struct node *right_node, uint32_t right);
/* Whether a call of it never comes back. */
bool flow_never_returns(const struct node *call);
/* "`text`" of a few words, in the arena. */
cy_bytes flow_text(struct flow *flow, const char *korean, const char *english, cy_bytes name);
bool flow_is_korean(const struct flow *flow);

/* check_narrow.c: what holds where the truth of `node` is `when`. */
void flow_narrow(struct flow *flow, struct node *node, bool when);

#endif
