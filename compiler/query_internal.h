/* SPDX-License-Identifier: MIT
 *
 * compiler/query_internal.h: a query, as query*.c see it.
 */
#ifndef CY_COMPILER_QUERY_INTERNAL_H
#define CY_COMPILER_QUERY_INTERNAL_H

#include "compiler/query.h"
#include "compiler/unit.h"

struct query {
    struct compile_options options;
    const struct compile_options *given; /* while it compiles */
    cy_err (*read_source)(void *context, const char *path, struct builder *out);
    void *context;
    struct compilation compilation;
    cy_bytes *paths; /* of the files that were read, in order */
    uint32_t path_count, path_capacity;
    const struct mention **mentions; /* by unit, place, and order of noting; each place once */
    uint32_t mention_count;
};

/* What a mention means; a parameter that an argument names becomes its variable. */
struct query_target query_meaning(const struct mention *mention);
bool query_same(const struct query_target *a, const struct query_target *b);
/* Mentions of one file: [*first_out, *end_out) of query->mentions. */
void query_mentions_of(const struct query *query, uint32_t file, uint32_t *first_out, uint32_t *end_out);
/* query_text.c: how it is declared, as code in one piece: `fn split(text: str) -> list`. */
void query_put_signature(const struct symbol *symbol, struct builder *out);
void query_put_field(const struct unit *unit, const struct field_decl *field, struct builder *out);
/* A comment without the line that gives the Korean name; that name. */
cy_bytes query_doc_text(cy_bytes doc, cy_bytes *korean_out);
cy_bytes query_keep(struct arena *arena, struct builder *text);

#endif
