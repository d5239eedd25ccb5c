/* SPDX-License-Identifier: MIT
 *
 * compiler/fix_names.c: merged imports: names that the resolver does not know, and exactly one imported module has.
 *
 * In:   the source as fix_tokens.c and fix_main.c left it, and, through the compiler, the modules it imports.
 * Out:  `name` becomes `module.name`; 긍정, 보류, 부정 become trits; imports are mended and added.
 * Method: load and resolve, edit what is reported of this file, and again until nothing is. So scopes are the
 *         compiler's own, and a name that a variable has is never touched.
 * Invariant: each round makes a message go away for ever, and FIX_NAMES_ROUNDS bounds them.
 */
#include "compiler/fix_internal.h"
#include "compiler/foreign.h"
#include "compiler/unit.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"

/* A round can mend LIMIT_COMPILE_ERRORS places; a file with more than rounds * that many is mended in two runs. */
#define FIX_NAMES_ROUNDS 64

static cy_err fix_names_read(void *context, const char *path, struct builder *out)
{
    const struct fix *fix = context;
    if (strcmp(path, fix->path) != 0) return fix->options->read_source(fix->options->context, path, out);
    builder_bytes(out, fix->source.text);
    return builder_error(out);
}

/* -- one name ------------------------------------------------------------------------------------------------------ */

/* The word that has `module` here is only ever used as a module, so that no variable of that name can hide it. */
static bool fix_names_is_clear(const struct fix *fix, cy_bytes module)
{
    for (uint32_t i = 0; i < fix->token_count; i++) {
        const struct token *token = &fix->tokens[i];
        if (token->kind != TOKEN_NAME || !cy_bytes_equal(token->text, module)) continue;
        bool member = i > 0 && fix->tokens[i - 1].kind == TOKEN_DOT;
        bool import = i > 0 && fix->tokens[i - 1].kind == TOKEN_IMPORT;
        bool dot = i + 1 < fix->token_count && fix->tokens[i + 1].kind == TOKEN_DOT;
        if (!member && !import && !dot) return false;
    }
    return true;
}

static const struct symbol *fix_names_symbol(const struct unit *unit, cy_bytes name)
{
    const struct map_entry *entry = unit ? map_find(&unit->names, name) : NULL;
    const struct symbol *symbol = entry ? entry->value.pointer : NULL;
    return symbol && symbol->kind != SYMBOL_MODULE ? symbol : NULL;
}

static void fix_names_merged(struct fix *fix, const struct unit *unit, struct span span, cy_bytes name)
{
    const struct node *found = NULL;
    bool exported = false, many = false;
    for (uint32_t i = 0; i < unit->declarations.count; i++) {
        const struct node *node = unit->declarations.items[i];
        if (node->kind != NODE_IMPORT) continue;
        cy_bytes natives = node->as.import.native_module;
        const struct symbol *symbol = fix_names_symbol(node->as.import.unit, name);
        bool native = natives.count > 0 && native_row_find_member(natives, name);
        if (!symbol && !native) continue;
        many = many || found;
        found = node;
        exported = native || symbol->exported;
    }
    if (!found) return; /* the compiler's message says all there is */
    cy_bytes module = found->as.import.name.text;
    if (many || !fix_names_is_clear(fix, module))
        fix_remain(fix, FIX_AMBIGUOUS, span, name);
    else if (!exported)
        fix_remain(fix, FIX_NOT_EXPORTED, span, fix_join(fix, module, CY_BYTES("."), name));
    else
        fix_edit(fix, FIX_MERGED, span.start, span.start,
                 fix_join(fix, module, CY_BYTES("."), CY_BYTES_NONE));
}

static cy_bytes fix_names_trit(cy_bytes name)
{
    if (cy_bytes_equal(name, CY_BYTES("긍정"))) return CY_BYTES("티");
    if (cy_bytes_equal(name, CY_BYTES("보류"))) return CY_BYTES("옴");
    return cy_bytes_equal(name, CY_BYTES("부정")) ? CY_BYTES("타") : CY_BYTES_NONE;
}

/* -- imports ------------------------------------------------------------------------------------------------------- */

/* `import "m"` names a standard module here; beside the file there may be one called m. */
static void fix_names_path(struct fix *fix, struct span span, cy_bytes name)
{
    static const char *const endings[] = {".han", ".한선"};
    cy_bytes folder = cy_bytes_from_text(fix->path);
    while (folder.count > 0 && folder.data[folder.count - 1] != '/') folder.count--;
    bool found = false;
    for (size_t i = 0; i < CY_COUNT_OF(endings) && !found; i++) {
        struct builder path, text;
        builder_init(&path), builder_init(&text);
        builder_bytes(&path, folder);
        builder_bytes(&path, name);
        if (!cy_bytes_start_with(cy_bytes_skip(name, name.count > 4 ? name.count - 4 : 0), CY_BYTES(".han")))
            builder_text(&path, endings[i]);
        const char *full = builder_text_view(&path);
        found = full && !cy_failed(fix->options->read_source(fix->options->context, full, &text));
        builder_fini(&path), builder_fini(&text);
    }
    cy_bytes written = source_slice(&fix->source, span);
    if (found && written.count > 2 && (written.data[0] == '"' || written.data[0] == '`'))
        fix_edit(fix, FIX_IMPORT_PATH, span.start + 1, span.start + 1, CY_BYTES("./"));
}

static void fix_names_import(struct fix *fix, const struct unit *unit, cy_bytes name)
{
    uint32_t at = fix->tokens[0].doc.end ? fix->tokens[0].doc.start : fix->tokens[0].span.start;
    const struct node *last = NULL;
    for (uint32_t i = 0; i < unit->declarations.count; i++)
        if (unit->declarations.items[i]->kind == NODE_IMPORT) last = unit->declarations.items[i];
    bool korean = fix->source.text.data[fix->tokens[0].span.start] >= 0x80;
    cy_bytes line =
        fix_join(fix, korean ? CY_BYTES("가져오기 \"") : CY_BYTES("import \""), name, CY_BYTES("\""));
    if (last)
        fix_edit(fix, FIX_IMPORT_ADD, last->span.end, last->span.end,
                 fix_join(fix, CY_BYTES("\n"), line, CY_BYTES_NONE));
    else
        fix_edit(fix, FIX_IMPORT_ADD, at, at, fix_join(fix, line, CY_BYTES("\n"), CY_BYTES_NONE));
}

/* -- rounds -------------------------------------------------------------------------------------------------------- */

static void fix_names_mend(struct fix *fix, const struct unit *unit, const struct diag *diag)
{
    if (diag->source != &unit->source) return;
    for (uint32_t i = 0; i < fix->edit_count; i++)
        if (fix->edits[i].start == diag->span.start) return; /* reported twice */
    cy_bytes name = diag->arguments[0];
    if (diag->code == DIAG_UNKNOWN_NAME) {
        cy_bytes trit = fix_names_trit(name);
        if (trit.count)
            fix_edit(fix, FIX_TRIT_WORD, diag->span.start, diag->span.end, trit);
        else
            fix_names_merged(fix, unit, diag->span, name);
    } else if (diag->code == DIAG_STD_UNKNOWN) {
        fix_names_path(fix, diag->span, name);
    } else if (diag->code == DIAG_NOT_IMPORTED) {
        bool dot = diag->span.end < fix->source.text.count && fix->source.text.data[diag->span.end] == '.';
        if (!dot) fix_names_merged(fix, unit, diag->span, name);
        if (!dot) return;
        for (uint32_t i = 0; i < fix->edit_count; i++) /* once, however many uses it has */
            if (cy_bytes_find(fix->edits[i].text, '"') < fix->edits[i].text.count) return;
        fix_names_import(fix, unit, name);
    }
}

/* What is still wrong with the new text, but for the lines that were listed: a message there says it again. */
static uint32_t fix_names_report(struct fix *fix, struct compilation *compilation, struct builder *messages)
{
    struct diag_list *diags = &compilation->diags;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < diags->count; i++) {
        bool listed = false;
        for (uint32_t k = 0; k < fix->remark_count; k++)
            listed |=
                diags->items[i].source == &compilation->units.items[0]->source &&
                (diags->items[i].span.line == fix->remarks[k].span.line ||
                 (diags->items[i].code == DIAG_TOP_LEVEL_DECLARES && fix->remarks[k].row == FIX_TOP_LEVEL));
        if (!listed) diags->items[kept++] = diags->items[i];
    }
    diags->count = kept;
    cy_bytes folder = cy_bytes_from_text(fix->path);
    while (folder.count > 0 && folder.data[folder.count - 1] != '/') folder.count--;
    struct diag_style style = {.korean = fix->options->korean, .folder = folder};
    struct diag_list none;
    diag_init(&none, &compilation->arena);
    return kept ? diag_render(diags, &none, &style, messages).errors : 0;
}

/* True when something was edited and another round is worth while. */
static bool fix_names_round(struct fix *fix, struct builder *messages, uint32_t *errors_out)
{
    struct compile_options options = {.path = fix->path,
                                      .stdlib = fix->options->stdlib,
                                      .stdlib_count = fix->options->stdlib_count,
                                      .korean = fix->options->korean,
                                      .module = true,
                                      .read_source = fix_names_read,
                                      .context = fix};
    struct compilation compilation;
    compilation_init(&compilation, &options);
    *errors_out = 0;
    bool again = false;
    if (module_graph_load(&compilation)) {
        compilation.read_whole = compilation.diags.count == 0;
        resolve_units(&compilation);
        for (uint32_t i = 0; i < compilation.diags.count; i++)
            fix_names_mend(fix, compilation.units.items[0], &compilation.diags.items[i]);
        again = fix->edit_count > 0;
        if (!again) *errors_out = fix_names_report(fix, &compilation, messages);
    }
    compilation_fini(&compilation);
    return again;
}

uint32_t fix_names(struct fix *fix, struct builder *messages)
{
    uint32_t errors = 0;
    for (uint32_t round = 0; round < FIX_NAMES_ROUNDS; round++) {
        if (!fix_names_round(fix, messages, &errors)) break;
        (void)fix_apply(fix);
        if (!fix_lex(fix, messages)) return 1;
    }
    return errors;
}
