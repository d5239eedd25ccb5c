/* SPDX-License-Identifier: MIT
 *
 * compiler/ast.h: a module as a tree, and what resolving finds out about it.
 *
 * In:   the parser builds nodes; resolve fills symbols, slots and captures in; fold turns constant expressions into
 *       literals in place; emit only reads.
 * Invariant: every node keeps its span. Everything lives in the compilation's arena.
 *            Trees are as deep as the source nests (LIMIT_NESTING_DEPTH), except to the left: `a + b + c ...`,
 *            `a.b.c ...` and `f()() ...` may be as long as the file. So passes walk the left spine in a loop
 *            (ast_spine).
 */
#ifndef CY_COMPILER_AST_H
#define CY_COMPILER_AST_H

#include "compiler/source.h"
#include "vm/base/arena.h"
#include "vm/base/map.h"

enum node_kind {
#define EXPRESSION(name, meaning) NODE_##name,
#define STATEMENT(name, meaning) NODE_##name,
#define DECLARATION(name, meaning) NODE_##name,
#include "compiler/ast.def"
#undef EXPRESSION
#undef STATEMENT
#undef DECLARATION
};

struct node;
struct symbol;
struct unit;
struct record_decl;
struct function_decl;
struct native_row;

struct node_list {
    struct node **items;
    uint32_t count;
    uint32_t capacity;
};
struct block {
    struct node_list statements;
    struct span span;
};

/* A word where the source declares or mentions a name. */
struct word {
    cy_bytes text;
    struct span span;
};

/* `: int`, `-> Route`, `module.Route`, `str|nil`. */
struct annotation {
    struct word module;         /* text.count 0 = none */
    struct word name;           /* of a choice: all of it as written */
    struct annotation *choices; /* `a|b`: each of them, linked by `next`; NULL = one kind */
    struct annotation *next;
    /* filled by resolve: */
    bool known;
    uint8_t kind;               /* enum value_kind, when record is NULL; KIND_COUNT for a choice */
    struct record_decl *record; /* NULL: a plain kind, or a choice */
};

struct argument {
    struct word name; /* text.count 0 = by place */
    struct node *value;
};

/* Arguments in the callee's order, as check_call binds them. */
struct call_plan {
    uint32_t count;       /* slots used: the last given parameter + 1; every field for a record */
    struct node **values; /* NULL: not given (a field's default, or ABSENT) */
    bool in_source_order; /* else the emitter evaluates in source order first */
};

struct if_arm {
    struct node *condition;
    struct block block;
};
struct match_arm {
    struct node_list patterns;
    struct block block;
};

enum node_flags {
    NODE_IN_PARENS = 1 << 0,
    NODE_LAST_USE = 1 << 1, /* NAME of a local: nothing reads the slot afterwards */
    NODE_EXPORTED = 1 << 2, /* declarations */
    NODE_IS_CONST = 1 << 3, /* LET written as const */
};

/* How a function reaches the local that a NAME means. */
enum name_access { ACCESS_LOCAL, ACCESS_CAPTURE, ACCESS_SELF };

/* ADD and APPEND: `x = x + e`, with `e` alone as the value. THROUGH_REF: a path whose root this function may not write
 * (captured, const, imported), so it must lead through a ref. */
enum assign_form { ASSIGN_PLAIN, ASSIGN_ADD, ASSIGN_APPEND, ASSIGN_PATH, ASSIGN_THROUGH_REF };

/* `path = path + e`, with `e` alone as the value. */
enum path_form { PATH_SET, PATH_ADD, PATH_APPEND };

struct node {
    uint8_t kind; /* enum node_kind */
    uint8_t op;   /* UNARY, BINARY: the token */
    uint16_t flags;
    struct span span;
    union {
        bool boolean;
        int64_t integer;
        double real;
        cy_bytes text;          /* STR */
        struct node_list items; /* TEXT, LIST, MAP */
        struct {
            cy_bytes text;
            struct symbol *symbol; /* NULL until resolved, or unknown */
            enum name_access access;
            uint16_t capture; /* ACCESS_CAPTURE: its index */
        } name;
        struct {
            struct node *left, *right;
            struct span op_span;
        } binary;             /* BINARY, RANGE */
        struct node *operand; /* UNARY, REF, SPAWN (its call), CALL_ALONE, RETURN (may be NULL), THROW */
        struct {
            struct node *callee;
            struct argument *arguments;
            uint32_t argument_count;
            struct symbol *known;   /* a function, record or native; NULL: whatever callee's value is */
            struct call_plan *plan; /* with `known` */
        } call;
        struct {
            struct node *target;
            struct node *index;
        } index;
        struct {
            struct node *target;
            struct word name;
            struct symbol *member; /* target names a module or a kind: what this is; else NULL */
        } field;
        struct function_decl *function; /* FUNCTION, LOCAL_FN, FN, TEST */
        struct {
            struct word name;
            cy_bytes doc;                  /* at module level */
            struct annotation *annotation; /* NULL = none */
            struct node *value;            /* NULL = nil */
            struct symbol *symbol;
        } let;
        struct {
            struct node *target;
            struct node *value;
            struct span op_span;
            enum assign_form form;
            enum path_form path_form; /* of PATH and THROUGH_REF */
            struct node *probe;       /* path_form ADD, APPEND: read, and let go, before `value`; or NULL */
            struct node *found;       /* the same: map.get of the place, when it may not be there; or NULL */
            struct annotation *check; /* the variable's annotation, when the new value must be checked */
        } assign;
        struct {
            struct if_arm *arms;
            uint32_t arm_count;
            struct block *otherwise; /* NULL = none */
        } branch;                    /* IF */
        struct {
            struct node *condition; /* WHILE; NULL for LOOP */
            struct block block;
        } loop;
        struct {
            struct word names[2]; /* names[1].text.count 0: one variable */
            struct symbol *symbols[2];
            struct node *iterable;
            struct block block;
        } each; /* FOR */
        struct {
            struct node *subject;
            struct match_arm *arms;
            uint32_t arm_count;
            struct block *otherwise;
        } match;
        struct {
            struct block block;
            struct word name; /* of the error; text.count 0 = none */
            struct symbol *symbol;
            struct block catch_block;
        } attempt;          /* TRY */
        struct block block; /* DEFER */
        struct {
            struct word name; /* text.count 0: the last segment of the path */
            struct word path;
            struct unit *unit;      /* filled by module_graph; NULL for a module of natives only */
            cy_bytes native_module; /* count 0: no natives behind it */
        } import;
        struct record_decl *record; /* RECORD */
    } as;
};

struct param {
    struct word name;
    struct annotation *annotation;
    struct node *default_value; /* NULL = required */
    struct symbol *symbol;
};

/* A captured variable, in the order of first use. */
struct captured {
    struct symbol *symbol; /* the variable */
    bool from_parent_local;
    uint16_t index;             /* in the parent's captures, unless from_parent_local */
    struct symbol *parent_slot; /* from_parent_local: whose slot (the variable, or the parent's self) */
};

/* A call that happens when this function runs, for the rule about initialisers. Neither: a spawn. */
struct effect {
    struct function_decl *callee;
    const struct native_row *native;
    struct span span;
};

/* A module variable of its own module that this function reads or changes, for the rule about initialisers. */
struct global_use {
    const struct symbol *symbol;
    struct span span;
};

struct function_decl {
    struct word name; /* text.count 0 = none */
    cy_bytes doc;     /* the `///` lines above it, without marks; count 0 = none */
    struct span span;
    struct param *params;
    uint32_t param_count;
    uint32_t required_count;
    bool broken;               /* its parameters could not be read: calls of it are not judged */
    struct annotation *result; /* NULL = none */
    struct block body;
    /* filled by resolve: */
    struct unit *unit;
    struct function_decl *parent; /* NULL at module level */
    struct symbol *symbol;        /* by which it knows itself; NULL for one without a name */
    struct symbol *home;          /* what of its module it lies in; NULL in a test */
    struct captured *captures;
    uint32_t capture_count, capture_capacity;
    struct symbol
        *self_symbol; /* a hidden local that holds the function, because an inner one captures it; or NULL */
    uint32_t slot_next, slot_count; /* of locals; the emitter's temporaries come behind slot_count */
    bool has_return;                /* written in its own body */
    bool in_test;                   /* checked, but not part of the program */
    struct effect *effects;
    uint32_t effect_count, effect_capacity;
    struct global_use *global_uses; /* each variable once in a row at most; of an initialiser none */
    uint32_t global_use_count, global_use_capacity;
    bool visited; /* by the walk over effects */
    /* filled by emit: */
    uint32_t index; /* in the program */
};

struct field_decl {
    struct word name;
    cy_bytes doc;
    struct annotation *annotation;
    struct node *default_value;
};
struct record_decl {
    struct word name;
    cy_bytes doc;
    struct unit *unit;
    struct field_decl *fields;
    uint32_t field_count;
    uint32_t required_count;
    bool broken;
    uint32_t index; /* in the program; filled by emit */
};

enum symbol_kind {
    SYMBOL_LOCAL,    /* a variable, parameter or function of a function */
    SYMBOL_GLOBAL,   /* a variable of a module */
    SYMBOL_FUNCTION, /* of a module */
    SYMBOL_RECORD,
    SYMBOL_MODULE,
    SYMBOL_NATIVE,
    SYMBOL_KIND, /* a prelude word that is only a kind: list, map, bool */
};
struct symbol {
    uint8_t kind; /* enum symbol_kind */
    bool exported;
    bool constant; /* const, or a function's name */
    bool captured;
    bool ready;            /* GLOBAL: its initialiser was resolved; so an initialiser may read it */
    bool replaced;         /* assigned as a whole, so that the value may be of another record type */
    bool is_ref;           /* known to hold a ref for ever */
    bool needs_global;     /* GLOBAL: not just a literal that is written into its uses */
    bool is_parameter;     /* LOCAL */
    bool is_counter;       /* LOCAL: the variable of a loop over a range */
    bool changed_by_defer; /* LOCAL: so check_flow.c claims nothing about it */
    uint8_t value_kind;    /* KIND, and a NATIVE that shares its word with one; else KIND_COUNT */
    cy_bytes name;
    cy_bytes doc;                    /* the `///` lines above a module's variable, function or record */
    struct span span;                /* of the declaration */
    uint32_t declaration_end;        /* GLOBAL: where its initialiser ends in the source */
    struct unit *unit;               /* where it is declared; NULL for the prelude */
    struct function_decl *owner;     /* LOCAL */
    struct function_decl *function;  /* FUNCTION; LOCAL that is a local function */
    struct record_decl *record;      /* RECORD; else the type of the variable's value, when known for ever */
    struct node *literal;            /* a const whose value is known */
    struct annotation *annotation;   /* LOCAL, GLOBAL; NULL = none */
    const struct native_row *native; /* NATIVE */
    struct node *import;             /* MODULE */
    struct symbol *shadowed;         /* LOCAL: what the name meant outside this scope */
    uint32_t slot;                   /* LOCAL */
    uint32_t scope_start;            /* LOCAL: where its scope begins in the resolver's list */
    uint32_t scope_end;              /* LOCAL: where its scope ends in the source */
    uint32_t index;                  /* GLOBAL, in the program; filled by emit */
    uint32_t loop_depth, handler_depth; /* where it is declared */
    struct node *last_read;             /* NULL: never, or by what cannot be a move */
    uint32_t last_read_loop_depth, last_read_handler_depth;
    uint64_t last_read_serial; /* reads are numbered through the whole compilation */
    uint64_t return_serial;    /* of the last return whose value read it */
    struct span assigned_span; /* end 0: only declared */
    struct span captured_span; /* of the first use by an inner function */
    uint32_t read_count;       /* uses of any kind but being written to; as a callee too */
    uint32_t call_count;       /* those as the callee of a known call */
    uint32_t kinds;      /* LOCAL: what check_flow.c knows about the value where it stands; 0 = nothing yet */
    uint32_t flow_stamp; /* of the join that met it last (check_flow.c) */
    /* Of a standard module: whether the program reaches it, and what of standard modules it reaches itself. */
    bool needed;
    struct symbol **uses;
    uint32_t use_count, use_capacity;
};

struct node *ast_node(struct arena *arena, uint8_t kind, struct span span);
void ast_list_add(struct arena *arena, struct node_list *list, struct node *node);

/* Room for pointers on the way down a left spine. Uses malloc through a builder; fini gives it back. */
struct ast_spine {
    struct node **items;
    uint32_t count;
    uint32_t capacity;
    struct node *inline_items[16];
};
void ast_spine_init(struct ast_spine *spine);
void ast_spine_push(struct ast_spine *spine, struct node *node);
void ast_spine_fini(struct ast_spine *spine);
/* The expression that is evaluated before all else of `node` and may nest deeply: NULL for a leaf. */
struct node *ast_left(const struct node *node);

/* NIL, BOOL, INT, FLOAT, STR. */
bool ast_is_literal(const struct node *node);
/* The enum value_kind of a literal, a list, map, range, text or function; KIND_COUNT when it cannot be told. */
uint8_t ast_value_kind(const struct node *node);
/* Bits 1 << enum value_kind of what a known annotation allows. */
uint32_t annotation_kinds(const struct annotation *annotation);
/* The type of all records that it allows; NULL: it allows any, or none. */
const struct record_decl *annotation_only_record(const struct annotation *annotation);
/* Whether it allows a value of that kind, and, where that is a record, of that type (NULL: of an unknown type). */
bool annotation_allows(const struct annotation *annotation, uint8_t kind, const struct record_decl *record);
/* Whether a literal counts as true. */
bool ast_literal_is_true(const struct node *node);

#endif
