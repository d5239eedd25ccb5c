/* SPDX-License-Identifier: MIT
 *
 * compiler/unit.h: one module being compiled, and the compilation it belongs to.
 *
 * Invariant: everything lives in the compilation's arena, except the maps, which compilation_fini gives back.
 */
#ifndef CY_COMPILER_UNIT_H
#define CY_COMPILER_UNIT_H

#include "compiler/ast.h"
#include "compiler/compiler.h"
#include "compiler/diag.h"
#include "vm/code/opcode.h"

struct symbol_list {
    struct symbol **items;
    uint32_t count;
    uint32_t capacity;
};
struct function_list {
    struct function_decl **items;
    uint32_t count;
    uint32_t capacity;
};

enum unit_visit { UNIT_NEW, UNIT_OPEN, UNIT_DONE };

struct unit {
    struct source source;
    cy_bytes name; /* "main", "routes/table", "std:http" */
    bool is_std;
    uint32_t kind_words; /* bit 1 << enum value_kind: `list.` stands somewhere, so that std:list is needed */
    cy_bytes doc; /* the `///` lines at the file's start that belong to no declaration; count 0 = none */
    struct node_list declarations;
    struct map names;               /* of the module's own scope: struct symbol * */
    struct symbol_list symbols;     /* the same in source order */
    struct function_list functions; /* every function, a function before those inside it */
    struct function_decl *init;     /* holds what the initialisers need; always there, in `functions` never */
    struct function_list init_functions; /* functions written inside initialisers */
    enum unit_visit visit;
    /* In a session (session.h): */
    bool in_session;
    bool hidden;                 /* its names are not to be seen */
    uint32_t skip_bytes;         /* what stands before this offset belongs to earlier inputs */
    struct unit *session_before; /* the input before this one */
};

struct unit_list {
    struct unit **items;
    uint32_t count;
    uint32_t capacity;
};

/* A place in a source where a name is declared or used, for tools that ask about places (query.h). */
struct mention {
    const struct unit *unit; /* where it stands */
    struct span span;
    /* What it means, exactly one of these: a name, a record's field, a parameter that an argument names. */
    struct symbol *symbol;
    const struct field_decl *field;
    const struct param *param;
    const struct unit *field_unit; /* of `field`: where it is declared */
    bool declares;
};
struct mention_list {
    bool wanted; /* else nothing is noted */
    struct mention *items;
    uint32_t count;
    uint32_t capacity;
};

struct compilation {
    const struct compile_options *options;
    struct arena arena;
    struct diag_list diags; /* errors */
    struct diag_list
        warnings; /* filled whether they are wanted or not by resolving, shown when there are no errors */
    struct map keywords;
    struct map prelude;    /* word to struct symbol *, made on first use */
    struct map unit_names; /* to struct unit * */
    struct unit
        *kind_units[KIND_COUNT];  /* std:list behind the word `list`; NULL when none, or not asked for */
    struct unit_list units;       /* in load order: main first */
    struct unit_list order;       /* imported ones first, main last */
    struct mention_list mentions; /* in the order of resolving; a place may stand twice */
    bool outside;    /* a module looked at by itself imports from outside its folder: no program */
    bool read_whole; /* loading reported nothing, so what is missing is really missing */
};

/* `options` are borrowed. compilation_fini frees all that the compilation and its units hold. */
void compilation_init(struct compilation *compilation, const struct compile_options *options);
void compilation_fini(struct compilation *compilation);
/* Fills unit->declarations from unit->source. Errors are reported; what could be read is there. */
void parse_unit(struct compilation *compilation, struct unit *unit);
/* All passes but showing messages: they are in compilation->diags and warnings. As compile_program. */
CY_NODISCARD cy_err compilation_run(struct compilation *compilation, struct program **program_out,
                                    struct builder *messages);
/* mention.c: notes a place, when places are wanted. */
void mention_symbol(struct compilation *compilation, const struct unit *unit, struct span span,
                    struct symbol *symbol, bool declares);
void mention_field(struct compilation *compilation, const struct unit *unit, struct span span,
                   const struct record_decl *record, uint32_t field_index, bool declares);
void mention_param(struct compilation *compilation, const struct unit *unit, struct span span,
                   const struct param *param);
/* Loads main and all it imports, parses them, and puts them in order. False when main could not be read. */
CY_NODISCARD bool module_graph_load(struct compilation *compilation);
/* NULL when the standard library has no source of that name. */
const struct stdlib_module *module_graph_find_std(const struct compilation *compilation, cy_bytes name);
/* Korean names of what a standard module exports; reports names that its natives have too. Behind declaring. */
void std_module_declare(struct compilation *compilation, struct unit *unit);
/* Notes that the code being resolved reaches `symbol`: `home` is what it lies in, of `unit`. */
void prune_note_use(struct compilation *compilation, const struct unit *unit, struct symbol *home,
                    struct symbol *symbol);
/* Takes out of standard modules what the program does not reach, and the modules that are empty then. */
void prune_units(struct compilation *compilation);
/* session.c: before a unit is parsed; the entry of a word in the names of a unit, or, in a session, of the inputs
 * before it. NULL when it is in none. */
void session_adopt(struct compilation *compilation, struct unit *unit);
struct map_entry *session_find(const struct unit *unit, cy_bytes word);
/* Names, slots, captures, calls, constants of every unit. */
void resolve_units(struct compilation *compilation);
/* Flow of control and of kinds: warnings. Only after resolving reported nothing. */
void check_flow_units(struct compilation *compilation);
/* The program. Only after everything before it reported nothing. */
CY_NODISCARD cy_err emit_units(struct compilation *compilation, struct program **program_out);

#endif
