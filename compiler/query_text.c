/* SPDX-License-Identifier: MIT
 *
 * compiler/query_text.c: words about names: how they are declared, and their documentation, for hovering, outlines and
 * pages.
 *
 * In:   symbols and fields of a query. Out: text and Markdown.
 * Invariant: code is shown as the source has it; a declaration that was half-typed is shown as far as it was read.
 */
#include "compiler/query_internal.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"

/* Source from `start` to `end`, without space at its ends. */
static cy_bytes query_text_slice(const struct unit *unit, uint32_t start, uint32_t end)
{
    cy_bytes text = cy_bytes_slice(unit->source.text, start, end);
    while (text.count && text.data[text.count - 1] <= ' ') text.count--;
    while (text.count && text.data[0] <= ' ') text = cy_bytes_skip(text, 1);
    return text;
}

void query_put_field(const struct unit *unit, const struct field_decl *field, struct builder *out)
{
    builder_bytes(out, field->name.text);
    if (field->annotation) {
        const struct annotation *annotation = field->annotation;
        uint32_t start =
            annotation->module.text.count ? annotation->module.span.start : annotation->name.span.start;
        builder_text(out, ": ");
        builder_bytes(out, query_text_slice(unit, start, annotation->name.span.end));
    }
    if (field->default_value) {
        builder_text(out, " = ");
        builder_bytes(
            out, query_text_slice(unit, field->default_value->span.start, field->default_value->span.end));
    }
}

static void query_text_function(const struct symbol *symbol, struct builder *out)
{
    const struct function_decl *function = symbol->function;
    builder_text(out, "fn ");
    builder_bytes(out, symbol->name);
    uint32_t start = function->name.span.end, end = function->body.span.start;
    if (function->name.text.count && end > start)
        builder_bytes(out, query_text_slice(function->unit, start, end));
}

static void query_text_record(const struct symbol *symbol, struct builder *out)
{
    const struct record_decl *record = symbol->record;
    builder_text(out, "record ");
    builder_bytes(out, symbol->name);
    builder_text(out, " {");
    for (uint32_t i = 0; i < record->field_count; i++) {
        builder_text(out, i ? ", " : " ");
        query_put_field(record->unit, &record->fields[i], out);
    }
    builder_text(out, " }");
}

static void query_text_variable(const struct symbol *symbol, struct builder *out)
{
    if (!symbol->is_parameter) builder_text(out, symbol->constant ? "const " : "let ");
    builder_bytes(out, symbol->name);
    const struct annotation *annotation = symbol->annotation;
    if (annotation && symbol->unit) {
        uint32_t start =
            annotation->module.text.count ? annotation->module.span.start : annotation->name.span.start;
        builder_text(out, ": ");
        builder_bytes(out, query_text_slice(symbol->unit, start, annotation->name.span.end));
    } else if (symbol->record) {
        builder_text(out, ": ");
        builder_bytes(out, symbol->record->name.text);
    }
    const struct node *value = symbol->literal;
    if (!value || !symbol->unit || value->span.end > symbol->unit->source.text.count) return;
    builder_text(out, " = ");
    builder_bytes(out, query_text_slice(symbol->unit, value->span.start, value->span.end));
}

void query_put_signature(const struct symbol *symbol, struct builder *out)
{
    switch (symbol->kind) {
    case SYMBOL_FUNCTION: query_text_function(symbol, out); break;
    case SYMBOL_RECORD: query_text_record(symbol, out); break;
    case SYMBOL_NATIVE:
        builder_text(out, "fn ");
        builder_text(out, symbol->native->english);
        builder_text(out, symbol->native->signature);
        break;
    case SYMBOL_MODULE:
        builder_text(out, "import ");
        builder_bytes(out, symbol->name);
        builder_text(out, " = \"");
        builder_bytes(out, symbol->import->as.import.path.text);
        builder_u8(out, '"');
        break;
    case SYMBOL_KIND: builder_bytes(out, symbol->name); break;
    default:
        if (symbol->function)
            query_text_function(symbol, out);
        else
            query_text_variable(symbol, out);
    }
}

cy_bytes query_doc_text(cy_bytes doc, cy_bytes *korean_out)
{
    cy_bytes directive = CY_BYTES("한국어: ");
    *korean_out = CY_BYTES_NONE;
    if (!cy_bytes_start_with(doc, directive)) return doc;
    size_t end = cy_bytes_find(doc, '\n');
    *korean_out = cy_bytes_slice(doc, directive.count, end);
    return cy_bytes_skip(doc, end + 1);
}

static void query_text_code(struct builder *out, struct builder *code)
{
    builder_text(out, "```hanseon\n");
    builder_bytes(out, builder_view(code));
    builder_text(out, "\n```\n");
    builder_fini(code);
}

static void query_text_doc(struct builder *out, cy_bytes doc)
{
    cy_bytes korean;
    cy_bytes text = query_doc_text(doc, &korean);
    if (korean.count) {
        builder_text(out, "\n한국어: `");
        builder_bytes(out, korean);
        builder_text(out, "`\n");
    }
    if (!text.count) return;
    builder_u8(out, '\n');
    builder_bytes(out, text);
    builder_u8(out, '\n');
}

static void query_text_native(struct builder *out, const struct native_row *row)
{
    builder_text(out, "\n한국어: `");
    builder_text(out, row->korean);
    builder_text(out, "`\n\n");
    builder_text(out, row->meaning);
    builder_u8(out, '\n');
}

void query_hover(const struct query *query, const struct query_target *target, struct builder *out)
{
    (void)query;
    struct builder code;
    builder_init(&code);
    if (target->field) {
        query_put_field(target->field_unit, target->field, &code);
        query_text_code(out, &code);
        query_text_doc(out, target->field->doc);
        return;
    }
    const struct symbol *symbol = target->symbol;
    query_put_signature(symbol, &code);
    query_text_code(out, &code);
    if (symbol->kind == SYMBOL_NATIVE) query_text_native(out, symbol->native);
    if (symbol->kind == SYMBOL_MODULE && symbol->import->as.import.unit)
        query_text_doc(out, symbol->import->as.import.unit->doc);
    query_text_doc(out, symbol->doc);
}

/* -- outlines and pages -------------------------------------------------------------------------------------------- */

struct query_text_outline {
    struct query_outline *items;
    uint32_t count, capacity;
    struct arena *arena;
    uint32_t file;
};

static void query_text_add(struct query_text_outline *list, cy_bytes name, enum query_item_kind kind,
                           struct span whole, struct span word, uint32_t depth)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 32;
        list->items = arena_grow(list->arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        if (!list->items) mem_exhausted();
        list->capacity = capacity;
    }
    whole = span_join(whole, word);
    if (word.start < whole.start) whole.start = word.start;
    list->items[list->count++] = (struct query_outline){.name = name,
                                                        .kind = kind,
                                                        .whole = {list->file, whole.start, whole.end},
                                                        .word = {list->file, word.start, word.end},
                                                        .depth = depth};
}

static void query_text_outline_node(struct query_text_outline *list, const struct unit *unit,
                                    const struct node *node)
{
    switch (node->kind) {
    case NODE_LET:
        query_text_add(list, node->as.let.name.text,
                       node->flags & NODE_IS_CONST ? QUERY_ITEM_CONSTANT : QUERY_ITEM_VARIABLE, node->span,
                       node->as.let.name.span, 0);
        break;
    case NODE_FN:
        query_text_add(list, node->as.function->name.text, QUERY_ITEM_FUNCTION, node->span,
                       node->as.function->name.span, 0);
        break;
    case NODE_RECORD:
        query_text_add(list, node->as.record->name.text, QUERY_ITEM_RECORD, node->span,
                       node->as.record->name.span, 0);
        for (uint32_t i = 0; i < node->as.record->field_count; i++) {
            const struct word *word = &node->as.record->fields[i].name;
            query_text_add(list, word->text, QUERY_ITEM_FIELD, word->span, word->span, 1);
        }
        break;
    case NODE_TEST: {
        cy_bytes line = source_slice(&unit->source, node->span);
        line = cy_bytes_slice(line, 0, cy_min_size(cy_bytes_find(line, '{'), cy_bytes_find(line, '\n')));
        while (line.count && line.data[line.count - 1] <= ' ') line.count--;
        if (line.count) query_text_add(list, line, QUERY_ITEM_TEST, node->span, node->span, 0);
        break;
    }
    default: break; /* imports */
    }
}

const struct query_outline *query_outline(const struct query *query, uint32_t file, struct arena *arena,
                                          uint32_t *count_out)
{
    const struct unit *unit = query->compilation.units.items[file];
    struct query_text_outline list = {.arena = arena, .file = file};
    for (uint32_t i = 0; i < unit->declarations.count; i++)
        query_text_outline_node(&list, unit, unit->declarations.items[i]);
    *count_out = list.count;
    return list.items;
}

static bool query_text_on_page(const struct symbol *symbol, uint8_t kind)
{
    return symbol->kind == kind && (symbol->exported || symbol->doc.count);
}

static void query_text_fields(const struct record_decl *record, struct builder *out)
{
    bool some = false;
    for (uint32_t i = 0; i < record->field_count; i++) {
        if (!record->fields[i].doc.count) continue;
        builder_text(out, some ? "- `" : "\n- `");
        some = true;
        builder_bytes(out, record->fields[i].name.text);
        builder_text(out, "`: ");
        for (size_t k = 0; k < record->fields[i].doc.count; k++) /* one item, one line */
            builder_u8(out, record->fields[i].doc.data[k] == '\n' ? ' ' : record->fields[i].doc.data[k]);
        builder_u8(out, '\n');
    }
}

static void query_text_entry(const struct symbol *symbol, struct builder *out)
{
    builder_text(out, "\n### `");
    builder_bytes(out, symbol->name);
    builder_text(out, "`\n\n");
    struct builder code;
    builder_init(&code);
    if (symbol->exported) builder_text(&code, "export ");
    query_put_signature(symbol, &code);
    query_text_code(out, &code);
    query_text_doc(out, symbol->doc);
    if (symbol->kind == SYMBOL_RECORD) query_text_fields(symbol->record, out);
}

void query_write_page(const struct query *query, uint32_t file, bool korean, struct builder *out)
{
    static const struct {
        uint8_t kind;
        const char *english, *korean;
    } parts[] = {{SYMBOL_FUNCTION, "Functions", "함수"},
                 {SYMBOL_RECORD, "Records", "자료형"},
                 {SYMBOL_GLOBAL, "Variables and constants", "변수와 상수"}};
    const struct unit *unit = query->compilation.units.items[file];
    builder_text(out, "# ");
    builder_bytes(out, unit->name);
    builder_u8(out, '\n');
    query_text_doc(out, unit->doc);
    for (size_t i = 0; i < CY_COUNT_OF(parts); i++) {
        bool some = false;
        for (uint32_t k = 0; k < unit->symbols.count; k++) {
            const struct symbol *symbol = unit->symbols.items[k];
            if (!query_text_on_page(symbol, parts[i].kind)) continue;
            if (!some) builder_printf(out, "\n## %s\n", korean ? parts[i].korean : parts[i].english);
            some = true;
            query_text_entry(symbol, out);
        }
    }
}
