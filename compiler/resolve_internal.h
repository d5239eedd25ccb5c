/* SPDX-License-Identifier: MIT
 *
 * compiler/resolve_internal.h: the state of resolving, shared by resolve*.c and check.c.
 *
 * Method: one walk in evaluation order. Names become symbols, locals get slots, inner functions list what they capture,
 *         constant expressions become literals, calls of known functions are bound to their parameters.
 *
 * Last uses: reads of a local are seen in evaluation order. The last one may move the value out (NODE_LAST_USE) when
 *         - it lies in the same loops as the declaration (else the next round would read the slot again), and
 *         - no handler was opened since the declaration (a catch or defer could still read the slot).
 *         Inside `return e` the loops do not matter; inside `x = e` the slot is overwritten anyway, so there the
 *         last read within e may move.
 */
#ifndef CY_COMPILER_RESOLVE_INTERNAL_H
#define CY_COMPILER_RESOLVE_INTERNAL_H

#include "compiler/unit.h"

struct resolver_read {
    struct symbol *symbol;
    struct node *node; /* NULL: captured by a closure */
};

struct resolver {
    struct compilation *compilation;
    struct arena *arena;
    struct diag_list *diags;
    struct unit *unit;
    struct function_decl *function; /* unit->init in initialisers */
    struct symbol *home;            /* what of the module we are inside of; NULL in a test */
    struct map locals;              /* word to the struct symbol * it means here, or NULL */
    struct symbol **scope;          /* locals in sight, innermost last */
    uint32_t scope_count, scope_capacity;
    uint32_t scope_start;               /* first of the innermost scope */
    uint32_t loop_depth, handler_depth; /* inside `function` */
    uint32_t defer_depth;               /* defers we are inside of */
    uint32_t defer_loop_depth;          /* loops around the innermost of those */
    uint64_t read_serial;
    uint64_t call_serial; /* calls seen that may run program code or let other tasks run */
    uint64_t return_serial;
    struct resolver_read *reads; /* inside returns' values; each return looks at those behind its start */
    uint32_t read_count, read_capacity;
    uint32_t return_nesting; /* returns whose value we are inside of, also through inner functions */
    /* FIELD nodes, and ASSIGN nodes to a path, of variables whose record type holds if nothing else is assigned */
    struct node **field_checks;
    uint32_t field_check_count, field_check_capacity;
    struct map captures; /* by function and variable: its index in the function's captures */
    bool locals_limit_reported;
    struct symbol_list
        unread; /* locals that nothing reads: warned of when all uses of their functions were seen */
};

/* resolve.c */
struct diag *resolve_report(struct resolver *resolver, struct span span, enum diag_code code, cy_bytes a,
                            cy_bytes b);
struct symbol *resolve_declare_local(struct resolver *resolver, struct word word);
uint32_t resolve_open_scope(struct resolver *resolver); /* returns what close needs */
/* `source_end`: where the scope ends in the source. */
void resolve_close_scope(struct resolver *resolver, uint32_t outer_start, uint32_t first_slot,
                         uint32_t source_end);
/* What a word means here, NULL when nothing. Finds captures only in resolve_use_local. */
struct symbol *resolve_find(struct resolver *resolver, cy_bytes word);
/* The same where a module cannot stand: `list` means the kind also when "list" is imported. */
struct symbol *resolve_find_in_pattern(struct resolver *resolver, cy_bytes word);
/* Notes that `span` of the module being resolved means `symbol`. */
static inline void resolve_mention(struct resolver *resolver, struct span span, struct symbol *symbol)
{
    mention_symbol(resolver->compilation, resolver->unit, span, symbol, false);
}
void resolve_report_unknown(struct resolver *resolver, const struct word *word);
/* An exported thing of a module, or a native of it. NULL, reported, when there is none. */
struct symbol *resolve_member(struct resolver *resolver, struct symbol *module, const struct word *member);
/* Parameters and body, in a scope of their own. */
void resolve_function(struct resolver *resolver, struct function_decl *function, struct symbol *symbol);
void resolve_annotation(struct resolver *resolver, struct annotation *annotation);

/* resolve_expr.c */
void resolve_expression(struct resolver *resolver, struct node *node);
/* A NAME that is a local or module variable, or a function, as something that is reached and not moved (a target). */
void resolve_access(struct resolver *resolver, struct node *node, struct symbol *symbol);
/* `target.member` where target is a module or a kind word: the member's symbol, else NULL with *is_member false. */
struct symbol *resolve_static_member(struct resolver *resolver, struct node *field, bool *is_member_out);
/* To be looked at again when the whole module has been seen. */
void resolve_check_later(struct resolver *resolver, struct node *node);

/* resolve_stmt.c */
void resolve_block(struct resolver *resolver, struct block *block);
void resolve_statements(struct resolver *resolver, struct node_list *statements);
void resolve_let_facts(struct symbol *symbol, const struct node *let);

/* check.c */
void check_call(struct resolver *resolver, struct node *call);
void check_unused(struct resolver *resolver, const struct node *call);
void check_field(struct resolver *resolver, const struct record_decl *record, const struct word *field);
/* `path = value` against the fields on the path. */
void check_path(struct resolver *resolver, const struct record_decl *record, const struct node *assign);
/* A literal, or a record just built, where an annotation stands. */
void check_literal(struct resolver *resolver, const struct annotation *annotation, const struct node *value);
void check_constant(struct resolver *resolver, const struct node *node);
void check_initialisers(struct compilation *compilation);
void check_main(struct compilation *compilation);

/* check_unused.c: warnings. A local whose scope ends; a local that was just declared; and all the rest. */
void check_unused_local(struct resolver *resolver, struct symbol *symbol);
void check_unused_shadow(struct resolver *resolver, const struct symbol *symbol);
void check_unused_units(struct resolver *resolver);

/* check_certain.c: warnings. An expression that fails with `err` whenever it is reached (CY_OK: it does not); an item
 * that a literal has not; a key that a literal map has twice. */
void check_certain(struct resolver *resolver, const struct node *node, cy_err err);
void check_certain_item(struct resolver *resolver, const struct node *node);
void check_certain_keys(struct resolver *resolver, const struct node *map);

/* fold.c: a node whose children are folded becomes a literal when its value is known. The error is what it fails with,
 * whatever the values in it that are not known; the node is left as it is then. */
CY_NODISCARD cy_err fold_node(struct arena *arena, struct node *node);

#endif
