/* SPDX-License-Identifier: MIT
 *
 * compiler/query.h: questions about a program being written: what stands here, where does it come from, who uses it.
 *
 * In:   compile_options; `path` and `read_source` give main and its imports, perhaps from an editor's buffers.
 * Out:  the messages as data, and answers about places. Places are bytes of a file of the program.
 * Invariant: sources may be half-typed: what could be read is answered about, the rest is silence. Nothing is
 *            written, nothing recurses deeper than the parser. Answers live in the arena that the caller gives.
 * Not here: protocols and editors (vm/cli), laying out (fmt.h).
 */
#ifndef CY_COMPILER_QUERY_H
#define CY_COMPILER_QUERY_H

#include "compiler/compiler.h"
#include "compiler/diag.h"
#include "vm/base/arena.h"

struct query;

#define QUERY_NO_FILE UINT32_MAX

/* A file of the program, in load order: main is 0. Views into the query. */
struct query_file {
    cy_bytes path; /* as read_source was given it; "std:list" for a standard module */
    cy_bytes text;
    cy_bytes name; /* of the module: "main", "routes/table", "std:list" */
    bool is_std;
};
struct query_place {
    uint32_t file;
    uint32_t start, end; /* bytes */
};

/* Compiles what `options` name, with warnings, and keeps it. `options` may go; `context` must stay. Never NULL. */
struct query *query_open(const struct compile_options *options);
void query_close(struct query **query);

uint32_t query_file_count(const struct query *query);
struct query_file query_file_at(const struct query *query, uint32_t file);

/* -- messages ------------------------------------------------------------------------------------------------------ */

struct query_diag {
    struct query_place place; /* file QUERY_NO_FILE: about the program */
    bool warning, unused;     /* unused: an editor may show the place faded */
    char code[DIAG_CODE_TEXT_BYTES];
    cy_bytes message; /* with its hint in a second line */
    cy_bytes label;   /* count 0: there is no second place */
    struct query_place label_place;
};
/* Every error, or when there is none every warning, in order. */
const struct query_diag *query_diags(const struct query *query, struct arena *arena, uint32_t *count_out);
bool query_has_errors(const struct query *query);

/* -- names --------------------------------------------------------------------------------------------------------- */

/* What a name means. The members are the query's own. */
struct query_target {
    struct symbol *symbol;          /* or */
    const struct field_decl *field; /* a record's field */
    const struct unit *field_unit;
};

/* The name at `offset` (its end counts) and where exactly it stands. */
CY_NODISCARD bool query_target_at(const struct query *query, uint32_t file, uint32_t offset,
                                  struct query_target *target_out, struct query_place *place_out);
/* The name that is declared at `start` of a file. */
CY_NODISCARD bool query_target_declared(const struct query *query, uint32_t file, uint32_t start,
                                        struct query_target *target_out);
/* Where it is declared; for a module the start of its file. False for natives and kinds, which have no source. */
CY_NODISCARD bool query_definition(const struct query *query, const struct query_target *target,
                                   struct query_place *place_out);
/* Where its name is declared, for a module too: what a rename begins with. */
CY_NODISCARD bool query_declaration(const struct query *query, const struct query_target *target,
                                    struct query_place *place_out);
/* Every place, in order, the declaration among them. */
const struct query_place *query_references(const struct query *query, const struct query_target *target,
                                           struct arena *arena, uint32_t *count_out);
/* Markdown: how it is declared, and its documentation. */
void query_hover(const struct query *query, const struct query_target *target, struct builder *out);

/* Why a name cannot be changed. */
enum query_fixed {
    QUERY_FREE,
    QUERY_FIXED_STD,   /* of the standard library, or a kind */
    QUERY_FIXED_FIELD, /* fields are found by name at run time too */
    QUERY_FIXED_ENTRY, /* the runtime finds it by name */
};
enum query_fixed query_fixed(const struct query *query, const struct query_target *target);
/* A module that is named by its path: there the new name is inserted, as `name = `, and no word replaced. */
bool query_is_import_path(const struct query *query, const struct query_target *target,
                          const struct query_place *place);
/* Whether a program may give this name to something: an identifier in normal form C, no keyword. */
bool query_is_name(cy_bytes word);

/* -- what may be written here -------------------------------------------------------------------------------------- */

enum query_item_kind {
    QUERY_ITEM_KEYWORD,
    QUERY_ITEM_VARIABLE,
    QUERY_ITEM_CONSTANT,
    QUERY_ITEM_FUNCTION,
    QUERY_ITEM_RECORD,
    QUERY_ITEM_MODULE,
    QUERY_ITEM_FIELD,
    QUERY_ITEM_KIND,
    QUERY_ITEM_TEST,
};
struct query_item {
    cy_bytes name;
    enum query_item_kind kind;
    cy_bytes detail;     /* its signature; may be empty */
    cy_bytes doc;        /* may be empty */
    bool other_spelling; /* the file is written in the other language */
};
/* The names that may stand at `offset`, whatever is typed of one already, each once: keywords in the spelling that the
 * file uses, names in scope, members behind a dot. None inside strings and comments. */
const struct query_item *query_complete(const struct query *query, uint32_t file, uint32_t offset,
                                        struct arena *arena, uint32_t *count_out);

/* -- what a file declares ------------------------------------------------------------------------------------------ */

struct query_outline {
    cy_bytes name;
    enum query_item_kind kind;
    struct query_place whole, word;
    uint32_t depth; /* 1: a field of the record before it */
};
const struct query_outline *query_outline(const struct query *query, uint32_t file, struct arena *arena,
                                          uint32_t *count_out);
/* Appends a page about the module in Markdown: what it exports, and what else has a comment. */
void query_write_page(const struct query *query, uint32_t file, bool korean, struct builder *out);

#endif
