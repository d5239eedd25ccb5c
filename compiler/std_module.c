/* SPDX-License-Identifier: MIT
 *
 * compiler/std_module.c: the second spelling of what a standard module exports.
 *
 * In:   the declarations and the text of a module of stdlib/.
 * Out:  the Korean names in unit->names, beside the English ones and for the same symbols.
 * Format (docs/decisions/0025-std-modules.md): the comment above an export says `/// 한국어: NAME`.
 * Invariant: natives and exports of one module are one name space; a name that stands twice is reported.
 * Not here: documentation (docs/gen_stdlib.c reads the same comments).
 */
#include "compiler/unit.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"

/* The line that ends at `end`, a line's start; empty before the first. */
static cy_bytes std_module_line_above(cy_bytes text, size_t end)
{
    if (end == 0) return CY_BYTES_NONE;
    size_t start = end - 1;
    while (start > 0 && text.data[start - 1] != '\n') start--;
    return cy_bytes_slice(text, start, end - 1);
}

/* NAME of the comment lines right above the line in which `declared` stands; empty when there is none. */
static cy_bytes std_module_korean(const struct source *source, struct span declared)
{
    static const char directive[] = "/// 한국어: ";
    size_t start = declared.start;
    while (start > 0 && source->text.data[start - 1] != '\n') start--;
    for (;;) {
        cy_bytes line = std_module_line_above(source->text, start);
        if (cy_bytes_start_with(line, cy_bytes_from_text(directive)))
            return cy_bytes_skip(line, sizeof directive - 1);
        if (!cy_bytes_start_with(line, CY_BYTES("///"))) return CY_BYTES_NONE;
        start -= line.count + 1;
    }
}

static void std_module_check(struct compilation *compilation, const struct unit *unit, struct span span,
                             cy_bytes name, bool taken)
{
    cy_bytes module = cy_bytes_skip(unit->name, sizeof "std:" - 1);
    if (taken || native_row_find_member(module, name))
        (void)diag_report_2(&compilation->diags, &unit->source, span, DIAG_STD_CLASH, module, name);
}

void std_module_declare(struct compilation *compilation, struct unit *unit)
{
    for (uint32_t i = 0; i < unit->symbols.count; i++) {
        struct symbol *symbol = unit->symbols.items[i];
        if (!symbol->exported) continue;
        std_module_check(compilation, unit, symbol->span, symbol->name, false);
        cy_bytes korean = std_module_korean(&unit->source, symbol->span);
        if (!korean.count) continue;
        bool inserted;
        struct map_entry *entry = map_insert(&unit->names, korean, &inserted);
        if (!entry) mem_exhausted();
        std_module_check(compilation, unit, symbol->span, korean, !inserted);
        if (inserted) entry->value.pointer = symbol;
    }
}
