/* SPDX-License-Identifier: MIT
 *
 * compiler/check_unused.c: warnings about names: what nothing reads, and what hides something else.
 *
 * In:   symbols with the counts that resolving made. Out: warnings.
 * Rule:  a name that begins with `_` is meant to be unused. A parameter is judged only where its function chose it:
 *        not in exported functions (a contract with others), not in functions without a name or used as values
 *        (whoever calls them says how many arguments there are).
 * Not here: code that is never reached (check_flow.c).
 */
#include "compiler/resolve_internal.h"

static bool check_unused_is_meant(cy_bytes name) { return name.count == 0 || name.data[0] == '_'; }

static struct diag *check_unused_warn(struct resolver *resolver, const struct symbol *symbol,
                                      enum diag_code code)
{
    return diag_report_1(&resolver->compilation->warnings, &symbol->unit->source, symbol->span, code,
                         symbol->name);
}

void check_unused_local(struct resolver *resolver, struct symbol *symbol)
{
    if (symbol->read_count > 0 || symbol->is_counter || resolver->unit->is_std ||
        check_unused_is_meant(symbol->name))
        return;
    struct symbol_list *list = &resolver->unread;
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = arena_grow(resolver->arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    list->items[list->count++] = symbol;
}

void check_unused_shadow(struct resolver *resolver, const struct symbol *symbol)
{
    const struct symbol *hidden = symbol->shadowed;
    if (resolver->unit->is_std || check_unused_is_meant(symbol->name)) return;
    if (!hidden) {
        const struct map_entry *entry = map_find(&resolver->unit->names, symbol->name);
        hidden = entry ? entry->value.pointer : NULL;
    }
    if (!hidden || !hidden->unit) return;
    struct diag *diag = check_unused_warn(resolver, symbol, WARNING_SHADOWS);
    diag_add_label(diag, DIAG_LABEL_HIDDEN, &hidden->unit->source, hidden->span);
}

/* Whether whoever calls the function decides how many parameters it has. */
static bool check_unused_is_contract(const struct function_decl *function)
{
    const struct symbol *symbol = function->symbol;
    return !symbol || symbol->exported || symbol->read_count > symbol->call_count;
}

static void check_unused_report_local(struct resolver *resolver, const struct symbol *symbol)
{
    if (symbol->is_parameter && check_unused_is_contract(symbol->owner)) return;
    (void)check_unused_warn(resolver, symbol,
                            symbol->assigned_span.end ? WARNING_NEVER_READ
                            : symbol->is_parameter    ? WARNING_UNUSED_PARAMETER
                                                      : WARNING_UNUSED_VARIABLE);
}

static void check_unused_report_global(struct resolver *resolver, const struct symbol *symbol)
{
    if (symbol->read_count > 0 || symbol->exported || check_unused_is_meant(symbol->name)) return;
    if (symbol->kind == SYMBOL_MODULE) {
        struct diag *diag = check_unused_warn(resolver, symbol, WARNING_UNUSED_IMPORT);
        diag->span = symbol->import->span;
    } else {
        (void)check_unused_warn(resolver, symbol,
                                symbol->assigned_span.end ? WARNING_NEVER_READ : WARNING_UNUSED_DECLARATION);
    }
}

void check_unused_units(struct resolver *resolver)
{
    const struct unit_list *units = &resolver->compilation->units;
    for (uint32_t i = 0; i < resolver->unread.count; i++)
        check_unused_report_local(resolver, resolver->unread.items[i]);
    for (uint32_t i = 0; i < units->count; i++) {
        const struct unit *unit = units->items[i];
        for (uint32_t k = 0; k < unit->symbols.count && !unit->is_std; k++)
            check_unused_report_global(resolver, unit->symbols.items[k]);
    }
}
