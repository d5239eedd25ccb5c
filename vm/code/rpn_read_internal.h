/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_read_internal.h: what the files of the RPN reader share.
 *
 *      rpn_lex.c, rpn_number.c   text as tokens
 *      rpn_read_head.c           what is declared: modules, records, variables, heads of functions
 *      rpn_read_name.c           names and numbers to declarations
 *      rpn_read_code.c           bodies of functions to code
 *      rpn_read.c                the order of all steps; the program; what the verifier says, at its line
 *
 * Invariant: memory is linear in the text; nothing recurses; loops end because every token takes a byte.
 */
#ifndef CY_CODE_RPN_READ_INTERNAL_H
#define CY_CODE_RPN_READ_INTERNAL_H

#include "vm/base/check.h"
#include "vm/code/rpn.h"
#include "vm/code/rpn_lex.h"
#include "vm/code/rpn_word.h"

#define RPN_NONE UINT32_MAX

/* What names and numbers can stand for. */
enum rpn_scope { RPN_MODULE, RPN_FUNCTION, RPN_GLOBAL, RPN_RECORD, RPN_SCOPE_COUNT };

/* Tables that grow; entries are copied by value. */
struct rpn_table {
    struct builder bytes;
    uint32_t count;
    uint32_t entry_bytes;
};

struct rpn_module {
    cy_bytes name, file;
    struct rpn_token init; /* kind END: none */
    struct rpn_place place;
    uint32_t global_first, global_count, function_first, function_count;
};
struct rpn_global {
    cy_bytes name;
    struct rpn_place place;
    uint32_t module, final;
};
struct rpn_export {
    cy_bytes name;
    struct rpn_token name_token, target; /* kind END: what has that name */
    uint32_t module;
};
struct rpn_field {
    cy_bytes name;
    uint32_t kinds;      /* those that were named by their words */
    struct rpn_token of; /* a record type; kind END: none */
};
struct rpn_record {
    cy_bytes name;
    struct rpn_token module_token; /* kind END: the module above */
    struct rpn_place place;
    uint32_t module, field_first, field_count;
};
struct rpn_capture {
    bool from_parent_local;
    struct rpn_token index;
};
struct rpn_function {
    cy_bytes name;
    struct rpn_token module_token, parent; /* kind END: the module above, none */
    struct rpn_place place;
    uint32_t module, final;
    uint32_t params, required, locals; /* RPN_NONE: not said */
    uint32_t named_params, named_locals;
    uint32_t capture_first, capture_count;
    struct rpn_lexer body; /* where it begins */
    size_t body_end;       /* offset of what ends it */
    uint32_t slots_used;   /* by the code, by captures of functions inside */
    size_t code_start, code_bytes;
    uint32_t step_first, step_count; /* into steps */
    uint32_t line_first, line_count;
    bool has_lines;
};

/* A token outside of functions that begins nothing; judged when all names are known. */
struct rpn_stray {
    struct rpn_token token;
    bool is_first; /* the ones behind it follow from the same mistake unless they are unknown words */
};

struct rpn_read {
    const struct rpn_options *options;
    struct program *program;
    struct rpn_faults faults;
    struct rpn_dictionary dictionary;
    struct rpn_lexer lexer; /* stands before `next` */
    struct rpn_token next;  /* looked at without reporting; numbers have no value yet */
    bool no_memory;
    bool is_complete; /* "toau 1" was there: line tables are not made up */
    uint32_t module;  /* the one above; RPN_NONE before the first */
    struct rpn_table modules, globals, exports, records, fields, functions, captures;
    struct rpn_table strays;    /* struct rpn_stray */
    struct rpn_table steps;     /* struct rpn_place: of each instruction's opcode */
    struct rpn_table lines;     /* struct line_entry */
    struct rpn_table strings;   /* cy_bytes */
    struct rpn_table constants; /* struct constant */
    struct rpn_table natives;   /* struct native_import */
    struct map string_numbers;
    struct map
        native_numbers; /* by English name: an opcode can name 65,536 natives, but they may be called more often */
    struct map names; /* rpn_read_name.c */
    struct builder code;
};

/* -- rpn_read.c ------------------------------------------------------------------------------------------ */

/* The entry `index`; borrowed until the table grows. */
void *rpn_table_at(const struct rpn_table *table, uint32_t index);
/* Appends a copy; the new index, RPN_NONE without memory. */
uint32_t rpn_table_push(struct rpn_read *read, struct rpn_table *table, const void *entry);
/* A string of the program, the same number for equal ones. */
uint32_t rpn_string(struct rpn_read *read, cy_bytes text);
void rpn_report(struct rpn_read *read, struct rpn_place place, enum rpn_fault fault, cy_bytes argument_0,
                cy_bytes argument_1, cy_bytes argument_2);
static inline struct rpn_module *rpn_module_at(const struct rpn_read *read, uint32_t index)
{
    return rpn_table_at(&read->modules, index);
}
static inline struct rpn_function *rpn_function_at(const struct rpn_read *read, uint32_t index)
{
    return rpn_table_at(&read->functions, index);
}

static inline uint32_t rpn_function_params(const struct rpn_function *function)
{
    return function->params != RPN_NONE ? function->params : function->named_params;
}
static inline uint32_t rpn_function_required(const struct rpn_function *function)
{
    return function->required != RPN_NONE ? function->required : rpn_function_params(function);
}

/* -- rpn_read_head.c ------------------------------------------------------------------------------------- */

/* Everything but bodies, which are skipped. */
void rpn_read_heads(struct rpn_read *read);

/* -- rpn_read_name.c ------------------------------------------------------------------------------------- */

/* False when it was there already. */
bool rpn_name_declare_id(struct rpn_read *read, enum rpn_scope scope, cy_bytes id, uint32_t index);
void rpn_name_declare(struct rpn_read *read, enum rpn_scope scope, uint32_t module, cy_bytes name,
                      uint32_t index);
/* Locals of one function. False when it was there already. */
bool rpn_name_declare_local(struct rpn_read *read, uint32_t function, cy_bytes name, uint32_t slot);
bool rpn_name_find_local(const struct rpn_read *read, uint32_t function, cy_bytes name, uint32_t *slot_out);
/* True for "f3" (by scope: m f g r): a letter and digits. */
bool rpn_name_is_id(enum rpn_scope scope, cy_bytes word);
/* What the token names, seen from `module`: its index in the table of that scope. RPN_NONE when nothing; then, with
 * `report`, it was reported. */
uint32_t rpn_name_resolve(struct rpn_read *read, enum rpn_scope scope, uint32_t module,
                          const struct rpn_token *token, bool report);
/* The word means nothing at all, whatever is needed where it stands. */
bool rpn_name_is_unknown(struct rpn_read *read, uint32_t module, const struct rpn_token *token);
/* Reports an unknown word. `scope` RPN_SCOPE_COUNT: any; `prefer` is looked through first, may be NULL. */
void rpn_name_report_unknown(struct rpn_read *read, const struct rpn_token *token, enum rpn_scope scope,
                             const struct map *prefer);

/* -- rpn_read_code.c ------------------------------------------------------------------------------------- */

void rpn_read_body(struct rpn_read *read, uint32_t function);

#endif
