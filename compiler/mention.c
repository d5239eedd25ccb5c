/* SPDX-License-Identifier: MIT
 *
 * compiler/mention.c: where names stand, noted while they are resolved.
 *
 * Resolving is the only time at which every use is seen: afterwards constants are literals in the tree, and `x = x + e`
 * has lost its second x. So tools get a list of places, and walk no tree.
 *
 * In:   a place, and what its name means. Out: compilation->mentions.
 * Invariant: nothing is noted, and nothing costs, unless `mentions.wanted` was set before resolving.
 * Not here: questions about the list (query.c).
 */
#include "compiler/unit.h"

static void mention_add(struct compilation *compilation, struct mention mention)
{
    struct mention_list *list = &compilation->mentions;
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 256;
        list->items = arena_grow(&compilation->arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    list->items[list->count++] = mention;
}

void mention_symbol(struct compilation *compilation, const struct unit *unit, struct span span,
                    struct symbol *symbol, bool declares)
{
    if (!compilation->mentions.wanted || span.end <= span.start) return;
    mention_add(compilation,
                (struct mention){.unit = unit, .span = span, .symbol = symbol, .declares = declares});
}

void mention_field(struct compilation *compilation, const struct unit *unit, struct span span,
                   const struct record_decl *record, uint32_t field_index, bool declares)
{
    if (!compilation->mentions.wanted || span.end <= span.start) return;
    mention_add(compilation, (struct mention){.unit = unit,
                                              .span = span,
                                              .field = &record->fields[field_index],
                                              .field_unit = record->unit,
                                              .declares = declares});
}

void mention_param(struct compilation *compilation, const struct unit *unit, struct span span,
                   const struct param *param)
{
    if (!compilation->mentions.wanted || span.end <= span.start) return;
    mention_add(compilation, (struct mention){.unit = unit, .span = span, .param = param});
}
