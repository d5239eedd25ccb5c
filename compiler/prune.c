/* SPDX-License-Identifier: MIT
 *
 * compiler/prune.c: takes out of standard modules what the program does not reach.
 *
 * In:   resolved units; for each symbol of a standard module, which others its code names (noted while resolving).
 * Out:  the lists of those units with only what is needed; order without units that are empty then.
 * Invariant: a program's own modules stay whole. A program that uses nothing of a standard module has the same bytes as
 *            one compiled without it.
 * Method: a name counts as a use wherever it stands, so a function that is only mentioned stays too.
 */
#include "compiler/unit.h"

static void prune_push(struct arena *arena, struct symbol_list *list, struct symbol *symbol)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = arena_grow(arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    list->items[list->count++] = symbol;
}

void prune_note_use(struct compilation *compilation, const struct unit *unit, struct symbol *home,
                    struct symbol *symbol)
{
    if (!symbol->unit || !symbol->unit->is_std) return;
    if (!unit->is_std) {
        symbol->needed = true;
        return;
    }
    if (!home || home == symbol) return;
    struct symbol_list uses = {home->uses, home->use_count, home->use_capacity};
    prune_push(&compilation->arena, &uses, symbol);
    home->uses = uses.items;
    home->use_count = uses.count;
    home->use_capacity = uses.capacity;
}

static void prune_mark(struct compilation *compilation)
{
    struct symbol_list reached = {0};
    for (uint32_t i = 0; i < compilation->units.count; i++) {
        const struct unit *unit = compilation->units.items[i];
        for (uint32_t k = 0; unit->is_std && k < unit->symbols.count; k++)
            if (unit->symbols.items[k]->needed)
                prune_push(&compilation->arena, &reached, unit->symbols.items[k]);
    }
    for (uint32_t next = 0; next < reached.count; next++) {
        const struct symbol *symbol = reached.items[next];
        for (uint32_t i = 0; i < symbol->use_count; i++) {
            if (symbol->uses[i]->needed) continue;
            symbol->uses[i]->needed = true;
            prune_push(&compilation->arena, &reached, symbol->uses[i]);
        }
    }
}

static void prune_functions(struct function_list *list)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i]->home && list->items[i]->home->needed) list->items[kept++] = list->items[i];
    list->count = kept;
}

static bool prune_keeps(const struct unit *unit, const struct node *node)
{
    if (node->kind == NODE_LET) return node->as.let.symbol->needed;
    if (node->kind != NODE_RECORD) return true; /* of no effect on what is written */
    const struct map_entry *entry = map_find(&unit->names, node->as.record->name.text);
    return entry && ((const struct symbol *)entry->value.pointer)->needed;
}

/* True when something is left. */
static bool prune_unit(struct unit *unit)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < unit->symbols.count; i++) {
        struct symbol *symbol = unit->symbols.items[i];
        bool written = symbol->kind == SYMBOL_FUNCTION || symbol->kind == SYMBOL_RECORD ||
                       (symbol->kind == SYMBOL_GLOBAL && symbol->needs_global);
        if (written && symbol->needed) unit->symbols.items[kept++] = symbol;
    }
    unit->symbols.count = kept;
    prune_functions(&unit->functions);
    prune_functions(&unit->init_functions);
    uint32_t declarations = 0;
    for (uint32_t i = 0; i < unit->declarations.count; i++)
        if (prune_keeps(unit, unit->declarations.items[i]))
            unit->declarations.items[declarations++] = unit->declarations.items[i];
    unit->declarations.count = declarations;
    return kept > 0;
}

void prune_units(struct compilation *compilation)
{
    prune_mark(compilation);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < compilation->order.count; i++) {
        struct unit *unit = compilation->order.items[i];
        if (!unit->is_std || prune_unit(unit)) compilation->order.items[kept++] = unit;
    }
    compilation->order.count = kept;
}
