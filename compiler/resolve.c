/* SPDX-License-Identifier: MIT
 *
 * compiler/resolve.c: scopes, modules and functions; what a word means where it stands.
 *
 * In:   the trees of all units. Out: the same trees with symbols, slots and captures.
 * Order: the names of every module first; then, module by module, initialisers in source order (a constant is known to
 *        those after it), then functions and tests.
 * Not here: expressions (resolve_expr.c), statements (resolve_stmt.c).
 */
#include "compiler/foreign.h"
#include "compiler/lexer.h"
#include "compiler/resolve_internal.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/code/native_table.h"
#include "vm/code/opcode.h"

struct diag *resolve_report(struct resolver *resolver, struct span span, enum diag_code code, cy_bytes a,
                            cy_bytes b)
{
    return diag_report_2(resolver->diags, &resolver->unit->source, span, code, a, b);
}

static struct symbol *resolve_new_symbol(struct arena *arena, uint8_t kind, cy_bytes name)
{
    struct symbol *symbol = arena_alloc_zeroed(arena, sizeof *symbol);
    symbol->kind = kind;
    symbol->name = name;
    symbol->value_kind = KIND_COUNT;
    return symbol;
}

static struct map_entry *resolve_entry(struct map *map, cy_bytes word)
{
    struct map_entry *entry = map_insert(map, word, NULL);
    if (!entry) mem_exhausted();
    return entry;
}

/* -- local scopes -------------------------------------------------------------------------------------------------- */

static void resolve_push_scope(struct resolver *resolver, struct symbol *symbol)
{
    if (resolver->scope_count == resolver->scope_capacity) {
        uint32_t capacity = resolver->scope_capacity ? resolver->scope_capacity * 2 : 64;
        resolver->scope =
            arena_grow(resolver->arena, resolver->scope, resolver->scope_capacity * sizeof *resolver->scope,
                       capacity * sizeof *resolver->scope);
        resolver->scope_capacity = capacity;
    }
    resolver->scope[resolver->scope_count++] = symbol;
}

static void resolve_report_duplicate(struct resolver *resolver, const struct word *word,
                                     const struct symbol *first)
{
    struct diag *diag = resolve_report(resolver, word->span, DIAG_DUPLICATE_NAME, word->text,
                                       diag_number(resolver->diags, first->span.line));
    diag_add_label(diag, DIAG_LABEL_DECLARED, &first->unit->source, first->span);
}

static uint32_t resolve_new_slot(struct resolver *resolver, struct span span)
{
    struct function_decl *function = resolver->function;
    if (function->slot_next == LIMIT_FUNCTION_LOCALS) {
        if (!resolver->locals_limit_reported)
            (void)resolve_report(resolver, span, DIAG_LIMIT, CY_BYTES("FUNCTION_LOCALS"),
                                 diag_number(resolver->diags, LIMIT_FUNCTION_LOCALS));
        resolver->locals_limit_reported = true;
        return 0;
    }
    uint32_t slot = function->slot_next++;
    if (function->slot_next > function->slot_count) function->slot_count = function->slot_next;
    return slot;
}

struct symbol *resolve_declare_local(struct resolver *resolver, struct word word)
{
    struct map_entry *entry = resolve_entry(&resolver->locals, word.text);
    struct symbol *outer = entry->value.pointer;
    bool ignored = cy_bytes_equal(word.text, CY_BYTES("_")); /* `for _, v in m`, `fn (_, _, c)` */
    bool twice = outer && !ignored && outer->owner == resolver->function &&
                 outer->scope_start == resolver->scope_start;
    if (twice) resolve_report_duplicate(resolver, &word, outer);
    struct symbol *symbol = resolve_new_symbol(resolver->arena, SYMBOL_LOCAL, word.text);
    symbol->span = word.span;
    symbol->unit = resolver->unit;
    symbol->owner = resolver->function;
    symbol->shadowed = outer;
    symbol->scope_start = resolver->scope_start;
    symbol->slot = resolve_new_slot(resolver, word.span);
    symbol->loop_depth = resolver->loop_depth;
    symbol->handler_depth = resolver->handler_depth;
    entry->value.pointer = symbol;
    resolve_push_scope(resolver, symbol);
    mention_symbol(resolver->compilation, resolver->unit, word.span, symbol, true);
    if (!twice) check_unused_shadow(resolver, symbol);
    return symbol;
}

uint32_t resolve_open_scope(struct resolver *resolver)
{
    uint32_t outer_start = resolver->scope_start;
    resolver->scope_start = resolver->scope_count;
    return outer_start;
}

/* Here every read of the scope's variables has been seen. */
static void resolve_finish_local(struct resolver *resolver, struct symbol *symbol)
{
    if (symbol->last_read && symbol->last_read_loop_depth == symbol->loop_depth &&
        symbol->last_read_handler_depth == symbol->handler_depth)
        symbol->last_read->flags |= NODE_LAST_USE;
    if (symbol->captured && symbol->assigned_span.end) {
        struct diag *diag = resolve_report(resolver, symbol->assigned_span, DIAG_ASSIGN_CAPTURED,
                                           symbol->name, CY_BYTES_NONE);
        diag_add_label(diag, DIAG_LABEL_CAPTURED, &symbol->unit->source, symbol->captured_span);
    }
    check_unused_local(resolver, symbol);
}

void resolve_close_scope(struct resolver *resolver, uint32_t outer_start, uint32_t first_slot,
                         uint32_t source_end)
{
    while (resolver->scope_count > resolver->scope_start) {
        struct symbol *symbol = resolver->scope[--resolver->scope_count];
        symbol->scope_end = source_end;
        struct map_entry *entry = map_find(&resolver->locals, symbol->name);
        CHECK(entry && entry->value.pointer == symbol);
        entry->value.pointer = symbol->shadowed;
        resolve_finish_local(resolver, symbol);
    }
    resolver->scope_start = outer_start;
    resolver->function->slot_next = first_slot;
}

/* -- what a word means --------------------------------------------------------------------------------------------- */

static struct symbol *resolve_prelude(struct resolver *resolver, cy_bytes word)
{
    struct compilation *compilation = resolver->compilation;
    struct map_entry *entry = map_find(&compilation->prelude, word);
    if (entry) return entry->value.pointer;
    enum value_kind kind;
    bool is_kind = kind_find(word, &kind);
    const struct native_row *row = native_row_find_member(CY_BYTES_NONE, word);
    struct symbol *symbol = NULL;
    if (row || is_kind) {
        symbol = resolve_new_symbol(&compilation->arena, row ? SYMBOL_NATIVE : SYMBOL_KIND,
                                    arena_copy(&compilation->arena, word));
        symbol->native = row;
        if (is_kind) symbol->value_kind = (uint8_t)kind;
    }
    resolve_entry(&compilation->prelude, word)->value.pointer = symbol;
    return symbol;
}

/* What code that is part of the program reaches. */
static struct symbol *resolve_use(struct resolver *resolver, struct symbol *symbol)
{
    bool in_test = resolver->function && resolver->function->in_test;
    if (!in_test) prune_note_use(resolver->compilation, resolver->unit, resolver->home, symbol);
    return symbol;
}

/* `let x = x + 1` in a session: the new x is not there yet, the one of an input before is meant. */
static struct map_entry *resolve_session_entry(struct resolver *resolver, struct map_entry *entry)
{
    const struct symbol *symbol = entry->value.pointer;
    bool early = symbol->unit == resolver->unit && symbol->kind == SYMBOL_GLOBAL && !symbol->ready &&
                 resolver->function == resolver->unit->init;
    const struct unit *unit = early ? resolver->unit->session_before : NULL;
    while (unit && unit->hidden) unit = unit->session_before;
    struct map_entry *before = unit ? session_find(unit, symbol->name) : NULL;
    return before ? before : entry;
}

struct symbol *resolve_find(struct resolver *resolver, cy_bytes word)
{
    struct map_entry *entry = map_find(&resolver->locals, word);
    if (entry && entry->value.pointer) return entry->value.pointer;
    entry = session_find(resolver->unit, word);
    if (entry && resolver->unit->session_before) entry = resolve_session_entry(resolver, entry);
    if (entry) return resolve_use(resolver, entry->value.pointer);
    return resolve_prelude(resolver, word);
}

struct symbol *resolve_find_in_pattern(struct resolver *resolver, cy_bytes word)
{
    enum value_kind kind;
    struct symbol *symbol = resolve_find(resolver, word);
    return symbol && symbol->kind == SYMBOL_MODULE && kind_find(word, &kind) ? resolve_prelude(resolver, word)
                                                                             : symbol;
}

static void resolve_offer_prelude(struct nearest *nearest, bool korean)
{
    const struct native_row *row;
    for (size_t i = 0; (row = native_row_at(i)) != NULL; i++) {
        cy_bytes english = cy_bytes_from_text(row->english);
        if (cy_bytes_find(english, '.') < english.count) continue;
        nearest_offer(nearest, korean ? cy_bytes_from_text(row->korean) : english);
        nearest_offer(nearest, korean ? english : cy_bytes_from_text(row->korean));
    }
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        nearest_offer(nearest, cy_bytes_from_text(kind_name((enum value_kind)kind, false)));
        nearest_offer(nearest, cy_bytes_from_text(kind_name((enum value_kind)kind, true)));
    }
}

/* `route에서` where route is known: the particle is what is wrong. */
static bool resolve_report_particle(struct resolver *resolver, const struct word *word)
{
    size_t particle = text_particle_length(word->text);
    cy_bytes stem = cy_bytes_slice(word->text, 0, word->text.count - particle);
    if (particle == 0 || !resolve_find(resolver, stem)) return false;
    (void)diag_report(resolver->diags, &resolver->unit->source, word->span, DIAG_PARTICLE_NEEDLESS,
                      word->text, stem, CY_BYTES_NONE);
    return true;
}

void resolve_report_unknown(struct resolver *resolver, const struct word *word)
{
    if (resolve_report_particle(resolver, word)) return;
    if (foreign_is_old_word(word->text)) {
        (void)resolve_report(resolver, word->span, DIAG_OLD_DIALECT, word->text, CY_BYTES_NONE);
        return;
    }
    if (native_module_exists(word->text) || module_graph_find_std(resolver->compilation, word->text)) {
        (void)resolve_report(resolver, word->span, DIAG_NOT_IMPORTED, word->text, CY_BYTES_NONE);
        return;
    }
    struct diag *diag = resolve_report(resolver, word->span, DIAG_UNKNOWN_NAME, word->text, CY_BYTES_NONE);
    bool korean = resolver->compilation->options->korean;
    const struct foreign_row *foreign = foreign_find(word->text);
    diag->nearest =
        foreign ? cy_bytes_from_text(token_spelling(foreign->keyword, korean)) : foreign_name(word->text);
    if (diag->nearest.count || !diag_wants_nearest(resolver->diags)) return;
    struct nearest nearest;
    nearest_init(&nearest, word->text);
    for (uint32_t i = resolver->scope_count; i > 0; i--)
        nearest_offer(&nearest, resolver->scope[i - 1]->name);
    for (const struct unit *unit = resolver->unit; unit; unit = unit->session_before)
        for (uint32_t i = 0; i < unit->symbols.count && !unit->hidden; i++)
            nearest_offer(&nearest, unit->symbols.items[i]->name);
    resolve_offer_prelude(&nearest, korean);
    for (uint32_t i = 0; i < resolver->compilation->keywords.count; i++)
        nearest_offer(&nearest, resolver->compilation->keywords.entries[i].key);
    diag->nearest = nearest.best;
}

static void resolve_offer_members(struct nearest *nearest, const struct unit *unit, cy_bytes native_module)
{
    for (uint32_t i = 0; unit && i < unit->names.count; i++) {
        const struct symbol *symbol = unit->names.entries[i].value.pointer;
        if (symbol->exported) nearest_offer(nearest, unit->names.entries[i].key);
    }
    const struct native_row *row;
    for (size_t i = 0; native_module.count && (row = native_row_at(i)) != NULL; i++) {
        cy_bytes english = cy_bytes_from_text(row->english);
        size_t dot = cy_bytes_find(english, '.');
        if (dot == english.count || !cy_bytes_equal(cy_bytes_slice(english, 0, dot), native_module)) continue;
        nearest_offer(nearest, cy_bytes_skip(english, dot + 1));
        nearest_offer(nearest, cy_bytes_from_text(row->korean));
    }
}

/* One symbol for each native that a program names, whatever the spelling. */
static struct symbol *resolve_native_symbol(struct resolver *resolver, const struct native_row *row)
{
    struct map_entry *entry =
        resolve_entry(&resolver->compilation->prelude, cy_bytes_from_text(row->english));
    if (!entry->value.pointer) {
        struct symbol *symbol =
            resolve_new_symbol(resolver->arena, SYMBOL_NATIVE, cy_bytes_from_text(row->english));
        symbol->native = row;
        entry->value.pointer = symbol;
    }
    return entry->value.pointer;
}

struct symbol *resolve_member(struct resolver *resolver, struct symbol *module, const struct word *member)
{
    const struct unit *unit = NULL;
    cy_bytes native_module = CY_BYTES_NONE;
    module->read_count++;
    if (module->kind == SYMBOL_MODULE) {
        unit = module->import->as.import.unit;
        native_module = module->import->as.import.native_module;
        if (!unit && !native_module.count) return NULL; /* the import failed, which was said there */
    } else {
        unit = resolver->compilation->kind_units[module->value_kind];
        native_module = cy_bytes_from_text(kind_name((enum value_kind)module->value_kind, false));
    }
    const struct map_entry *entry = unit ? map_find(&unit->names, member->text) : NULL;
    struct symbol *symbol = entry ? entry->value.pointer : NULL;
    if (symbol && symbol->exported) {
        resolve_mention(resolver, member->span, symbol);
        return resolve_use(resolver, symbol);
    }
    const struct native_row *row =
        native_module.count ? native_row_find_member(native_module, member->text) : NULL;
    if (row) {
        struct symbol *native = resolve_native_symbol(resolver, row);
        resolve_mention(resolver, member->span, native);
        return native;
    }

    struct diag *diag = resolve_report(
        resolver, member->span, symbol ? DIAG_NOT_EXPORTED : DIAG_UNKNOWN_MEMBER, module->name, member->text);
    if (symbol) diag_add_label(diag, DIAG_LABEL_DECLARED, &symbol->unit->source, symbol->span);
    struct nearest nearest;
    nearest_init(&nearest, member->text);
    if (!symbol && diag_wants_nearest(resolver->diags)) resolve_offer_members(&nearest, unit, native_module);
    diag->nearest = nearest.best;
    return NULL;
}

/* -- annotations and functions ------------------------------------------------------------------------------------- */

static void resolve_report_kind(struct resolver *resolver, const struct word *word)
{
    struct diag *diag = resolve_report(resolver, word->span, DIAG_UNKNOWN_KIND, word->text, CY_BYTES_NONE);
    struct nearest nearest;
    nearest_init(&nearest, word->text);
    for (uint32_t i = 0; i < resolver->unit->symbols.count; i++)
        if (resolver->unit->symbols.items[i]->kind == SYMBOL_RECORD)
            nearest_offer(&nearest, resolver->unit->symbols.items[i]->name);
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        nearest_offer(&nearest, cy_bytes_from_text(kind_name((enum value_kind)kind, false)));
        nearest_offer(&nearest, cy_bytes_from_text(kind_name((enum value_kind)kind, true)));
    }
    diag->nearest = nearest.best;
}

/* Only records, modules and kinds are looked at: `fn f(list: list, rest: list)` means what it says. */
void resolve_annotation(struct resolver *resolver, struct annotation *annotation)
{
    if (!annotation || annotation->known) return;
    if (annotation->choices) {
        annotation->known = true;
        annotation->kind = KIND_COUNT;
        for (struct annotation *choice = annotation->choices; choice; choice = choice->next) {
            resolve_annotation(resolver, choice);
            annotation->known = annotation->known && choice->known;
        }
        return;
    }
    bool qualified = annotation->module.text.count > 0;
    const struct word *word = qualified ? &annotation->module : &annotation->name;
    const struct map_entry *entry = session_find(resolver->unit, word->text);
    struct symbol *symbol = entry ? entry->value.pointer : NULL;
    if (qualified) {
        if (!symbol || symbol->kind != SYMBOL_MODULE) {
            resolve_report_unknown(resolver, word);
            return;
        }
        resolve_mention(resolver, word->span, symbol);
        symbol = resolve_member(resolver, symbol, &annotation->name);
        if (!symbol) return;
    }
    enum value_kind kind;
    annotation->known = true;
    if (symbol) symbol->read_count++;
    if (symbol && symbol->kind == SYMBOL_RECORD) resolve_mention(resolver, annotation->name.span, symbol);
    if (symbol && symbol->kind == SYMBOL_RECORD)
        annotation->record = resolve_use(resolver, symbol)->record;
    else if (!qualified && kind_find(annotation->name.text, &kind))
        annotation->kind = (uint8_t)kind;
    else {
        annotation->known = false;
        resolve_report_kind(resolver, &annotation->name);
    }
}

static void resolve_list_function(struct arena *arena, struct function_list *list,
                                  struct function_decl *function)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = arena_grow(arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    list->items[list->count++] = function;
}

/* Whether `function` lies, at any depth, inside an initialiser. */
static bool resolve_in_initialiser(const struct resolver *resolver)
{
    const struct function_decl *function = resolver->function;
    while (function && function != resolver->unit->init) function = function->parent;
    return function != NULL;
}

static void resolve_params(struct resolver *resolver, struct function_decl *function)
{
    for (uint32_t i = 0; i < function->param_count; i++) {
        struct param *param = &function->params[i];
        resolve_annotation(resolver, param->annotation);
        if (param->default_value) {
            resolve_expression(resolver, param->default_value);
            check_literal(resolver, param->annotation, param->default_value);
        }
        param->symbol = resolve_declare_local(resolver, param->name);
        param->symbol->is_parameter = true;
        param->symbol->annotation = param->annotation;
        if (param->annotation) param->symbol->record = param->annotation->record;
    }
}

void resolve_function(struct resolver *resolver, struct function_decl *function, struct symbol *symbol)
{
    struct resolver outer = *resolver;
    bool initialiser = resolve_in_initialiser(resolver);
    function->parent = resolver->function;
    function->symbol = symbol;
    function->home = resolver->home;
    function->in_test = function->in_test || (resolver->function && resolver->function->in_test);
    if (!function->in_test)
        resolve_list_function(resolver->arena,
                              initialiser ? &resolver->unit->init_functions : &resolver->unit->functions,
                              function);
    resolve_annotation(resolver, function->result);

    resolver->function = function;
    resolver->loop_depth = resolver->handler_depth = resolver->defer_depth = resolver->defer_loop_depth = 0;
    uint32_t outer_start = resolve_open_scope(resolver);
    /* Parameters are slots 0.. in order, so their defaults, which may need none, are resolved among them. */
    resolve_params(resolver, function);
    resolve_statements(resolver, &function->body.statements);
    resolve_close_scope(resolver, outer_start, 0, function->span.end);
    if (function->self_symbol) {
        function->slot_next = function->slot_count;
        function->self_symbol->slot = resolve_new_slot(resolver, function->span);
    }
    resolver->function = outer.function;
    resolver->loop_depth = outer.loop_depth;
    resolver->handler_depth = outer.handler_depth;
    resolver->defer_depth = outer.defer_depth;
    resolver->defer_loop_depth = outer.defer_loop_depth;
}

/* -- modules ------------------------------------------------------------------------------------------------------- */

static void resolve_declare_global(struct resolver *resolver, struct symbol *symbol, struct word word,
                                   bool exported)
{
    struct unit *unit = resolver->unit;
    symbol->span = word.span;
    symbol->unit = unit;
    symbol->exported = exported;
    struct map_entry *entry = resolve_entry(&unit->names, word.text);
    if (entry->value.pointer) {
        resolve_report_duplicate(resolver, &word, entry->value.pointer);
        return;
    }
    entry->value.pointer = symbol;
    mention_symbol(resolver->compilation, unit, word.span, symbol, true);
    struct symbol_list *list = &unit->symbols;
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = arena_grow(resolver->arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    list->items[list->count++] = symbol;
}

static void resolve_declare(struct resolver *resolver, struct node *node)
{
    struct arena *arena = resolver->arena;
    bool exported = (node->flags & NODE_EXPORTED) != 0;
    struct symbol *symbol;
    switch (node->kind) {
    case NODE_IMPORT:
        symbol = resolve_new_symbol(arena, SYMBOL_MODULE, node->as.import.name.text);
        symbol->import = node;
        resolve_declare_global(resolver, symbol, node->as.import.name, false);
        break;
    case NODE_LET:
        symbol = resolve_new_symbol(arena, SYMBOL_GLOBAL, node->as.let.name.text);
        symbol->constant = (node->flags & NODE_IS_CONST) != 0;
        symbol->annotation = node->as.let.annotation;
        symbol->doc = node->as.let.doc;
        symbol->declaration_end = node->span.end;
        node->as.let.symbol = symbol;
        resolve_declare_global(resolver, symbol, node->as.let.name, exported);
        break;
    case NODE_FN:
        symbol = resolve_new_symbol(arena, SYMBOL_FUNCTION, node->as.function->name.text);
        symbol->constant = true;
        symbol->function = node->as.function;
        symbol->doc = node->as.function->doc;
        resolve_declare_global(resolver, symbol, node->as.function->name, exported);
        break;
    case NODE_RECORD:
        symbol = resolve_new_symbol(arena, SYMBOL_RECORD, node->as.record->name.text);
        symbol->record = node->as.record;
        symbol->doc = node->as.record->doc;
        resolve_declare_global(resolver, symbol, node->as.record->name, exported);
        break;
    default: break;
    }
}

static void resolve_record(struct resolver *resolver, struct record_decl *record)
{
    for (uint32_t i = 0; i < record->field_count; i++) {
        struct field_decl *field = &record->fields[i];
        mention_field(resolver->compilation, resolver->unit, field->name.span, record, i, true);
        resolve_annotation(resolver, field->annotation);
        if (!field->default_value) continue;
        resolve_expression(resolver, field->default_value);
        check_constant(resolver, field->default_value);
        check_literal(resolver, field->annotation, field->default_value);
    }
}

static void resolve_global(struct resolver *resolver, struct node *node)
{
    struct symbol *symbol = node->as.let.symbol;
    resolve_annotation(resolver, node->as.let.annotation);
    if (node->as.let.value) {
        resolve_expression(resolver, node->as.let.value);
        check_literal(resolver, node->as.let.annotation, node->as.let.value);
    }
    resolve_let_facts(symbol, node);
    symbol->ready = true;
    /* A standard module is whole in its program: nobody asks for its exports by name later. */
    symbol->needs_global = !symbol->literal || (symbol->exported && !symbol->unit->is_std);
}

/* What a declaration declares: code inside it reaches things on its behalf. NULL for a test. */
static struct symbol *resolve_home(const struct unit *unit, const struct node *node)
{
    if (node->kind == NODE_LET) return node->as.let.symbol;
    if (node->kind != NODE_FN && node->kind != NODE_RECORD) return NULL;
    cy_bytes name = node->kind == NODE_FN ? node->as.function->name.text : node->as.record->name.text;
    const struct map_entry *entry = map_find(&unit->names, name);
    return entry ? entry->value.pointer : NULL;
}

/* A field's row in the file has room for a set of kinds, and for one type of record. */
static void resolve_field_kind(struct resolver *resolver, const struct field_decl *field)
{
    resolve_annotation(resolver, field->annotation);
    const struct annotation *choice = field->annotation ? field->annotation->choices : NULL;
    const struct record_decl *only = choice ? annotation_only_record(field->annotation) : NULL;
    bool many = false;
    for (; only && choice; choice = choice->next) many |= choice->record && choice->record != only;
    bool all = only && annotation_kinds(field->annotation) == RECORD_FIELD_KIND(KIND_COUNT) - 1;
    if (many || all)
        (void)resolve_report(resolver, field->annotation->name.span, DIAG_FIELD_CHOICE, field->name.text,
                             CY_BYTES_NONE);
}

/* Annotations of functions are needed by calls in initialisers and in functions above them. */
static void resolve_signatures(struct resolver *resolver)
{
    for (uint32_t i = 0; i < resolver->unit->declarations.count; i++) {
        struct node *node = resolver->unit->declarations.items[i];
        resolver->home = resolve_home(resolver->unit, node);
        if (node->kind == NODE_RECORD) {
            struct record_decl *record = node->as.record;
            for (uint32_t k = 0; k < record->field_count; k++) {
                resolve_field_kind(resolver, &record->fields[k]);
                if (!record->fields[k].default_value) record->required_count++;
            }
        }
        if (node->kind != NODE_FN) continue;
        resolve_annotation(resolver, node->as.function->result);
        for (uint32_t k = 0; k < node->as.function->param_count; k++)
            resolve_annotation(resolver, node->as.function->params[k].annotation);
    }
}

static void resolve_unit(struct resolver *resolver, struct unit *unit)
{
    resolver->unit = unit;
    resolver->function = unit->init;
    resolve_signatures(resolver);
    for (uint32_t i = 0; i < unit->declarations.count; i++) {
        struct node *node = unit->declarations.items[i];
        resolver->home = resolve_home(unit, node);
        if (node->kind == NODE_LET)
            resolve_global(resolver, node);
        else if (node->kind == NODE_RECORD)
            resolve_record(resolver, node->as.record);
    }
    resolver->function = NULL;
    for (uint32_t i = 0; i < unit->declarations.count; i++) {
        struct node *node = unit->declarations.items[i];
        resolver->home = resolve_home(unit, node);
        if (node->kind == NODE_FN) resolve_function(resolver, node->as.function, resolver->home);
        if (node->kind == NODE_TEST) resolve_function(resolver, node->as.function, NULL);
    }
}

/* Variables that were seen to keep one record type for ever: their fields are known. */
static void resolve_check_fields(struct resolver *resolver)
{
    for (uint32_t i = 0; i < resolver->field_check_count; i++) {
        struct node *node = resolver->field_checks[i];
        const struct node *root = node->kind == NODE_ASSIGN ? node->as.assign.target : node->as.field.target;
        while (root->kind != NODE_NAME && !(root->kind == NODE_FIELD && root->as.field.member))
            root = ast_left(root);
        const struct symbol *symbol = root->kind == NODE_NAME ? root->as.name.symbol : root->as.field.member;
        if (!symbol->record || (!symbol->annotation && symbol->replaced)) continue;
        if (node->kind == NODE_ASSIGN)
            check_path(resolver, symbol->record, node);
        else
            check_field(resolver, symbol->record, &node->as.field.name);
    }
    resolver->field_check_count = 0;
}

void resolve_units(struct compilation *compilation)
{
    struct resolver resolver = {
        .compilation = compilation, .arena = &compilation->arena, .diags = &compilation->diags};
    map_init(&resolver.locals, (hash_seed){0, 0});
    map_init(&resolver.captures, (hash_seed){0, 0});
    for (uint32_t i = 0; i < compilation->units.count; i++) {
        struct unit *unit = compilation->units.items[i];
        unit->init = arena_alloc_zeroed(resolver.arena, sizeof *unit->init);
        unit->init->unit = unit;
        resolver.unit = unit;
        for (uint32_t k = 0; k < unit->declarations.count; k++)
            resolve_declare(&resolver, unit->declarations.items[k]);
        if (unit->is_std) std_module_declare(compilation, unit);
    }
    for (uint32_t i = 0; i < compilation->order.count; i++) {
        resolve_unit(&resolver, compilation->order.items[i]);
        resolve_check_fields(&resolver);
    }
    if (compilation->options->warnings) check_unused_units(&resolver);
    map_fini(&resolver.captures);
    map_fini(&resolver.locals);
    check_initialisers(compilation);
    check_main(compilation);
}
