/* SPDX-License-Identifier: MIT
 *
 * compiler/query_complete.c: the names that may be written at a place.
 *
 * In:   a query and a place, mostly inside something half-typed. Out: names with signature and documentation.
 * Method: the tree has holes where somebody types, so the place is judged by the text before it: a word that has begun,
 *         and whether a dot stands before that. What stands before the dot is asked for as a name.
 * Invariant: each name once; an inner one hides an outer one.
 */
#include "compiler/lexer.h"
#include "compiler/query_internal.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/code/native_table.h"

struct query_complete {
    const struct query *query;
    const struct unit *unit;
    struct arena *arena;
    uint32_t offset;
    bool korean; /* most keywords of the file are */
    struct query_item *items;
    uint32_t count, capacity;
    struct map names;
};

static void query_complete_add(struct query_complete *run, struct query_item item)
{
    bool inserted;
    if (!item.name.count) return;
    if (!map_insert(&run->names, item.name, &inserted)) mem_exhausted();
    if (!inserted) return;
    if (run->count == run->capacity) {
        uint32_t capacity = run->capacity ? run->capacity * 2 : 64;
        run->items = arena_grow(run->arena, run->items, run->capacity * sizeof *run->items,
                                capacity * sizeof *run->items);
        if (!run->items) mem_exhausted();
        run->capacity = capacity;
    }
    run->items[run->count++] = item;
}

static bool query_complete_is_hangul(cy_bytes word)
{
    uint32_t code_point;
    size_t length;
    return text_decode(word, &code_point, &length) && code_point >= 0x1100;
}

static enum query_item_kind query_complete_kind(const struct symbol *symbol)
{
    switch (symbol->kind) {
    case SYMBOL_FUNCTION:
    case SYMBOL_NATIVE: return QUERY_ITEM_FUNCTION;
    case SYMBOL_RECORD: return QUERY_ITEM_RECORD;
    case SYMBOL_MODULE: return QUERY_ITEM_MODULE;
    case SYMBOL_KIND: return QUERY_ITEM_KIND;
    default:
        return symbol->function   ? QUERY_ITEM_FUNCTION
               : symbol->constant ? QUERY_ITEM_CONSTANT
                                  : QUERY_ITEM_VARIABLE;
    }
}

static void query_complete_symbol(struct query_complete *run, cy_bytes name, const struct symbol *symbol)
{
    struct builder detail;
    builder_init(&detail);
    query_put_signature(symbol, &detail);
    cy_bytes korean;
    bool std = symbol->unit && symbol->unit->is_std && symbol->unit != run->unit;
    query_complete_add(
        run, (struct query_item){.name = name,
                                 .kind = query_complete_kind(symbol),
                                 .detail = query_keep(run->arena, &detail),
                                 .doc = query_doc_text(symbol->doc, &korean),
                                 .other_spelling = std && query_complete_is_hangul(name) != run->korean});
}

/* -- members ------------------------------------------------------------------------------------------------------- */

static void query_complete_native(struct query_complete *run, const struct native_row *row, cy_bytes name,
                                  bool korean)
{
    struct builder detail;
    builder_init(&detail);
    builder_text(&detail, "fn ");
    builder_text(&detail, row->english);
    builder_text(&detail, row->signature);
    query_complete_add(run, (struct query_item){.name = name,
                                                .kind = QUERY_ITEM_FUNCTION,
                                                .detail = query_keep(run->arena, &detail),
                                                .doc = cy_bytes_from_text(row->meaning),
                                                .other_spelling = korean != run->korean});
}

/* Natives of a module; of the prelude when it is "". */
static void query_complete_natives(struct query_complete *run, cy_bytes module)
{
    const struct native_row *row;
    for (size_t i = 0; (row = native_row_at(i)) != NULL; i++) {
        cy_bytes english = cy_bytes_from_text(row->english);
        size_t dot = cy_bytes_find(english, '.');
        cy_bytes of = dot < english.count ? cy_bytes_slice(english, 0, dot) : CY_BYTES_NONE;
        if (!cy_bytes_equal(of, module)) continue;
        query_complete_native(run, row, module.count ? cy_bytes_skip(english, dot + 1) : english, false);
        query_complete_native(run, row, cy_bytes_from_text(row->korean), true);
    }
}

static void query_complete_module(struct query_complete *run, const struct symbol *symbol)
{
    const struct unit *unit;
    cy_bytes natives;
    if (symbol->kind == SYMBOL_MODULE) {
        unit = symbol->import->as.import.unit;
        natives = symbol->import->as.import.native_module;
    } else {
        unit = run->query->compilation.kind_units[symbol->value_kind];
        natives = cy_bytes_from_text(kind_name((enum value_kind)symbol->value_kind, false));
    }
    for (uint32_t i = 0; unit && i < unit->names.count; i++) {
        const struct symbol *member = unit->names.entries[i].value.pointer;
        if (member && member->exported) query_complete_symbol(run, unit->names.entries[i].key, member);
    }
    if (natives.count) query_complete_natives(run, natives);
}

static void query_complete_fields(struct query_complete *run, const struct record_decl *record)
{
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct field_decl *field = &record->fields[i];
        struct builder detail;
        builder_init(&detail);
        builder_bytes(&detail, record->name.text);
        builder_u8(&detail, '.');
        query_put_field(record->unit, field, &detail);
        query_complete_add(run, (struct query_item){.name = field->name.text,
                                                    .kind = QUERY_ITEM_FIELD,
                                                    .detail = query_keep(run->arena, &detail),
                                                    .doc = field->doc});
    }
}

/* Nothing is known of the value: fields of the records that this module can name. */
static void query_complete_all_fields(struct query_complete *run)
{
    for (uint32_t i = 0; i < run->unit->symbols.count; i++) {
        const struct symbol *symbol = run->unit->symbols.items[i];
        if (symbol->kind == SYMBOL_RECORD) query_complete_fields(run, symbol->record);
        const struct unit *unit = symbol->kind == SYMBOL_MODULE ? symbol->import->as.import.unit : NULL;
        for (uint32_t k = 0; unit && !unit->is_std && k < unit->symbols.count; k++)
            if (unit->symbols.items[k]->kind == SYMBOL_RECORD && unit->symbols.items[k]->exported)
                query_complete_fields(run, unit->symbols.items[k]->record);
    }
}

/* -- scopes -------------------------------------------------------------------------------------------------------- */

/* Calls `take` for every local in sight, the innermost first: declarations are in source order, so the last is it. */
static const struct symbol *query_complete_locals(struct query_complete *run, cy_bytes wanted, bool offer)
{
    uint32_t first, end;
    query_mentions_of(run->query, run->unit->source.index, &first, &end);
    while (end > first) {
        const struct mention *mention = run->query->mentions[--end];
        const struct symbol *symbol = mention->symbol;
        bool visible = mention->declares && symbol && symbol->kind == SYMBOL_LOCAL &&
                       mention->span.end <= run->offset && run->offset <= symbol->scope_end;
        if (!visible) continue;
        if (!offer && cy_bytes_equal(symbol->name, wanted)) return symbol;
        if (offer) query_complete_symbol(run, symbol->name, symbol);
    }
    return NULL;
}

/* What a word means here, as far as that can be told without its statement. */
static const struct symbol *query_complete_find(struct query_complete *run, cy_bytes word,
                                                struct symbol *kind_symbol)
{
    const struct symbol *local = query_complete_locals(run, word, false);
    if (local) return local;
    const struct map_entry *entry = map_find(&run->unit->names, word);
    if (entry && entry->value.pointer) return entry->value.pointer;
    enum value_kind kind;
    if (!kind_find(word, &kind)) return NULL;
    *kind_symbol = (struct symbol){.kind = SYMBOL_KIND, .value_kind = (uint8_t)kind};
    return kind_symbol;
}

/* The record whose fields follow the dot at `dot`, or the module whose members do. */
static void query_complete_member(struct query_complete *run, uint32_t dot, cy_bytes word)
{
    struct query_target target;
    struct query_place place;
    struct symbol kind_symbol;
    const struct symbol *symbol = NULL;
    const struct record_decl *record = NULL;
    bool known =
        query_target_at(run->query, run->unit->source.index, dot, &target, &place) && place.end == dot;
    if (known && target.field && target.field->annotation && target.field->annotation->known)
        record = target.field->annotation->record;
    symbol = known ? target.symbol : query_complete_find(run, word, &kind_symbol);
    bool kind_word = symbol && (symbol->kind == SYMBOL_KIND || symbol->kind == SYMBOL_NATIVE) &&
                     symbol->value_kind != KIND_COUNT;
    if (kind_word || (symbol && symbol->kind == SYMBOL_MODULE)) {
        query_complete_module(run, symbol);
        return;
    }
    if (symbol && (symbol->kind == SYMBOL_LOCAL || symbol->kind == SYMBOL_GLOBAL)) record = symbol->record;
    if (record)
        query_complete_fields(run, record);
    else
        query_complete_all_fields(run);
}

static void query_complete_words(struct query_complete *run)
{
    query_complete_locals(run, CY_BYTES_NONE, true);
    for (uint32_t i = 0; i < run->unit->names.count; i++) {
        const struct symbol *symbol = run->unit->names.entries[i].value.pointer;
        if (symbol) query_complete_symbol(run, run->unit->names.entries[i].key, symbol);
    }
    static const char *const keywords[][2] = {
#define KEYWORD(name, english, korean, korean_2) {english, korean},
#define MARK(name, text)
#include "compiler/token.def"
#undef KEYWORD
#undef MARK
    };
    for (size_t i = 0; i < CY_COUNT_OF(keywords); i++)
        query_complete_add(run, (struct query_item){.name = cy_bytes_from_text(keywords[i][run->korean]),
                                                    .kind = QUERY_ITEM_KEYWORD,
                                                    .detail = cy_bytes_from_text(keywords[i][!run->korean])});
    query_complete_natives(run, CY_BYTES_NONE);
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        for (int korean = 0; korean < 2; korean++)
            query_complete_add(
                run, (struct query_item){.name = cy_bytes_from_text(kind_name((enum value_kind)kind, korean)),
                                         .kind = QUERY_ITEM_KIND,
                                         .other_spelling = (korean == 1) != run->korean});
}

/* Names of standard modules, inside the quotes of an import. */
static void query_complete_modules(struct query_complete *run)
{
    for (size_t i = 0; i < run->query->options.stdlib_count; i++)
        query_complete_add(run,
                           (struct query_item){.name = cy_bytes_from_text(run->query->options.stdlib[i].name),
                                               .kind = QUERY_ITEM_MODULE});
    const struct native_row *row;
    for (size_t i = 0; (row = native_row_at(i)) != NULL; i++) {
        cy_bytes english = cy_bytes_from_text(row->english);
        size_t dot = cy_bytes_find(english, '.');
        if (dot == english.count) continue;
        query_complete_add(
            run, (struct query_item){.name = arena_copy(run->arena, cy_bytes_slice(english, 0, dot)),
                                     .kind = QUERY_ITEM_MODULE});
    }
}

/* -- the place ----------------------------------------------------------------------------------------------------- */

enum query_complete_place { COMPLETE_CODE, COMPLETE_NOTHING, COMPLETE_IMPORT };

/* Reads the file's tokens: where the place lies, and in which language most keywords are written. */
static enum query_complete_place query_complete_look(struct query_complete *run)
{
    struct diag_list ignored;
    struct lexer lexer;
    diag_init(&ignored, run->arena);
    lexer_init(&lexer, run->arena, &ignored, &run->unit->source, &run->query->compilation.keywords);
    enum query_complete_place place = COMPLETE_CODE;
    uint32_t korean_count = 0, english_count = 0, previous_end = 0;
    uint8_t previous_kind = TOKEN_END;
    for (;;) {
        struct token token = lexer_next(&lexer);
        bool text = token.kind >= TOKEN_STR && token.kind <= TOKEN_TEXT_END;
        if (text && token.span.start < run->offset && run->offset < token.span.end)
            place = previous_kind == TOKEN_IMPORT || previous_kind == TOKEN_ASSIGN ? COMPLETE_IMPORT
                                                                                   : COMPLETE_NOTHING;
        if (place == COMPLETE_IMPORT && previous_kind == TOKEN_ASSIGN) {
            /* `import name = "..."` stands in one line; `let x = "..."` is a text. */
            size_t line = token.span.start;
            while (line > 0 && run->unit->source.text.data[line - 1] != '\n') line--;
            cy_bytes start = cy_bytes_slice(run->unit->source.text, line, token.span.start);
            if (!cy_bytes_start_with(start, CY_BYTES("import")) &&
                !cy_bytes_start_with(start, CY_BYTES("가져오기")))
                place = COMPLETE_NOTHING;
        }
        if (previous_end <= run->offset &&
            run->offset <= token.span.start) { /* between two: space or comments */
            cy_bytes gap = cy_bytes_slice(run->unit->source.text, previous_end, run->offset);
            size_t line = gap.count;
            while (line > 0 && gap.data[line - 1] != '\n') line--;
            for (; line + 1 < gap.count; line++)
                if (gap.data[line] == '/' && gap.data[line + 1] == '/') place = COMPLETE_NOTHING;
        }
        if (token.kind == TOKEN_END) break;
        if (token_is_keyword(token.kind) && token.text.count &&
            (token.span.end < run->offset || token.span.start > run->offset)) {
            if (query_complete_is_hangul(token.text))
                korean_count++;
            else
                english_count++;
        }
        previous_end = token.span.end;
        previous_kind = token.kind;
    }
    run->korean =
        korean_count > english_count || (korean_count == english_count && run->query->options.korean);
    return place;
}

/* Where the word that ends at `end` begins. */
static uint32_t query_complete_word_start(cy_bytes text, uint32_t end)
{
    uint32_t start = end;
    while (start > 0) {
        uint32_t before = start - 1, code_point;
        size_t length;
        while (before > 0 && (text.data[before] & 0xC0) == 0x80 && start - before < 4) before--;
        if (!text_decode(cy_bytes_slice(text, before, start), &code_point, &length)) break;
        if (length != start - before || !text_is_identifier_part(code_point)) break;
        start = before;
    }
    return start;
}

const struct query_item *query_complete(const struct query *query, uint32_t file, uint32_t offset,
                                        struct arena *arena, uint32_t *count_out)
{
    struct query_complete run = {
        .query = query, .unit = query->compilation.units.items[file], .arena = arena, .offset = offset};
    cy_bytes text = run.unit->source.text;
    map_init(&run.names, (hash_seed){0, 0});
    if (run.offset > text.count) run.offset = (uint32_t)text.count;
    enum query_complete_place place = query_complete_look(&run);
    uint32_t start = query_complete_word_start(text, run.offset);
    bool dot = start > 0 && text.data[start - 1] == '.' && !(start > 1 && text.data[start - 2] == '.');
    if (place == COMPLETE_IMPORT)
        query_complete_modules(&run);
    else if (place == COMPLETE_CODE && dot) {
        uint32_t word = query_complete_word_start(text, start - 1);
        query_complete_member(&run, start - 1, cy_bytes_slice(text, word, start - 1));
    } else if (place == COMPLETE_CODE)
        query_complete_words(&run);
    map_fini(&run.names);
    *count_out = run.count;
    return run.items;
}
