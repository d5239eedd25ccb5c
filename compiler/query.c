/* SPDX-License-Identifier: MIT
 *
 * compiler/query.c: keeps a compiled program, and answers about places in it.
 *
 * In:   sources through read_source. Out: messages, meanings, definitions, references.
 * Invariant: the i-th file that was read is the i-th unit with a file of its own, so its path is known as the reader
 *            knows it. query->mentions is sorted; a place stands once, with what was noted about it first.
 * Not here: words about things (query_text.c), what may be written (query_complete.c).
 */
#include "compiler/query_internal.h"

#include "compiler/diag_internal.h"
#include "compiler/lexer.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"

#include <stdlib.h>

/* -- compiling ----------------------------------------------------------------------------------------------------- */

/* Notes which paths gave a file. What the compiler would refuse as too large is refused here: it has no unit. */
static cy_err query_read(void *context, const char *path, struct builder *out)
{
    struct query *query = context;
    size_t start = out->count;
    CY_TRY(query->read_source(query->context, path, out));
    if (out->count - start > LIMIT_SOURCE_BYTES) return CY_ERR(TOO_LARGE);
    struct arena *arena = &query->compilation.arena;
    if (query->path_count == query->path_capacity) {
        uint32_t capacity = query->path_capacity ? query->path_capacity * 2 : 16;
        query->paths = arena_grow(arena, query->paths, query->path_capacity * sizeof *query->paths,
                                  capacity * sizeof *query->paths);
        query->path_capacity = capacity;
    }
    query->paths[query->path_count++] = arena_copy(arena, cy_bytes_from_text(path));
    return CY_OK;
}

/* Notes lie in the arena in order, so that addresses tell which came first. */
static int query_compare(const void *left, const void *right)
{
    const struct mention *a = *(const struct mention *const *)left;
    const struct mention *b = *(const struct mention *const *)right;
    uint32_t a_file = a->unit->source.index, b_file = b->unit->source.index;
    if (a_file != b_file) return a_file < b_file ? -1 : 1;
    if (a->span.start != b->span.start) return a->span.start < b->span.start ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void query_sort_mentions(struct query *query)
{
    const struct mention_list *list = &query->compilation.mentions;
    query->mentions = arena_alloc(&query->compilation.arena, (list->count + 1) * sizeof *query->mentions);
    for (uint32_t i = 0; i < list->count; i++) query->mentions[i] = &list->items[i];
    if (list->count) qsort(query->mentions, list->count, sizeof *query->mentions, query_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct mention *last = kept ? query->mentions[kept - 1] : NULL;
        const struct mention *next = query->mentions[i];
        if (!last || last->unit != next->unit || last->span.start != next->span.start)
            query->mentions[kept++] = next;
    }
    query->mention_count = kept;
}

struct query *query_open(const struct compile_options *options)
{
    struct query *query = mem_alloc(sizeof *query);
    if (!query) mem_exhausted();
    *query =
        (struct query){.options = *options, .read_source = options->read_source, .context = options->context};
    query->options.read_source = query_read;
    query->options.context = query;
    query->options.warnings = true;
    query->options.module = true;
    query->options.warning_count_out = NULL;
    compilation_init(&query->compilation, &query->options);
    query->options.path =
        (const char *)arena_copy(&query->compilation.arena, cy_bytes_from_text(options->path)).data;
    query->compilation.mentions.wanted = true;
    struct program *program = NULL;
    struct builder messages; /* of faults of the compiler itself: `crownyc check` shows them */
    builder_init(&messages);
    cy_err err = compilation_run(&query->compilation, &program, &messages);
    (void)err; /* the lists say it */
    builder_fini(&messages);
    program_free(&program);
    diag_settle(&query->compilation.diags);
    diag_settle(&query->compilation.warnings);
    query_sort_mentions(query);
    return query;
}

void query_close(struct query **query)
{
    if (!*query) return;
    compilation_fini(&(*query)->compilation);
    mem_free(*query);
    *query = NULL;
}

/* -- files --------------------------------------------------------------------------------------------------------- */

uint32_t query_file_count(const struct query *query) { return query->compilation.units.count; }

struct query_file query_file_at(const struct query *query, uint32_t file)
{
    CHECK(file < query->compilation.units.count);
    const struct unit *unit = query->compilation.units.items[file];
    uint32_t read_before = 0;
    for (uint32_t i = 0; i < file; i++)
        if (!query->compilation.units.items[i]->is_std) read_before++;
    CHECK(unit->is_std || read_before < query->path_count);
    return (struct query_file){.path = unit->is_std ? unit->name : query->paths[read_before],
                               .text = unit->source.text,
                               .name = unit->name,
                               .is_std = unit->is_std};
}

/* -- messages ------------------------------------------------------------------------------------------------------ */

cy_bytes query_keep(struct arena *arena, struct builder *text)
{
    if (text->failed) mem_exhausted();
    cy_bytes kept = arena_copy(arena, builder_view(text));
    if (!kept.data) mem_exhausted();
    builder_fini(text);
    return kept;
}

static struct query_place query_place_of(const struct source *source, struct span span)
{
    if (!source) return (struct query_place){.file = QUERY_NO_FILE};
    return (struct query_place){.file = source->index, .start = span.start, .end = span.end};
}

static bool query_is_unused(enum diag_code code)
{
    return code == WARNING_UNUSED_VARIABLE || code == WARNING_UNUSED_PARAMETER ||
           code == WARNING_UNUSED_IMPORT || code == WARNING_UNUSED_DECLARATION || code == WARNING_UNREACHABLE;
}

static struct query_diag query_diag_of(const struct diag *diag, bool korean, struct arena *arena)
{
    struct query_diag out = {.place = query_place_of(diag->source, diag->span),
                             .warning = diag_is_warning(diag->code),
                             .unused = query_is_unused(diag->code)};
    diag_code_text(diag->code, out.code);
    struct builder message;
    builder_init(&message);
    diag_put_message(&message, diag, korean);
    size_t count = message.count;
    builder_u8(&message, '\n');
    if (!diag_put_hint(&message, diag, korean)) message.count = count;
    out.message = query_keep(arena, &message);
    if (diag->label == DIAG_LABEL_NONE || !diag->label_source) return out;
    out.label = cy_bytes_from_text(diag_label_text(diag->label, korean));
    out.label_place = query_place_of(diag->label_source, diag->label_span);
    return out;
}

bool query_has_errors(const struct query *query) { return query->compilation.diags.count > 0; }

const struct query_diag *query_diags(const struct query *query, struct arena *arena, uint32_t *count_out)
{
    const struct diag_list *list =
        query_has_errors(query) ? &query->compilation.diags : &query->compilation.warnings;
    struct query_diag *diags = arena_alloc(arena, (list->count + 1) * sizeof *diags);
    if (!diags) mem_exhausted();
    for (uint32_t i = 0; i < list->count; i++)
        diags[i] = query_diag_of(&list->items[i], query->options.korean, arena);
    *count_out = list->count;
    return diags;
}

/* -- names --------------------------------------------------------------------------------------------------------- */

struct query_target query_meaning(const struct mention *mention)
{
    return (struct query_target){.symbol = mention->param ? mention->param->symbol : mention->symbol,
                                 .field = mention->field,
                                 .field_unit = mention->field_unit};
}

bool query_same(const struct query_target *a, const struct query_target *b)
{
    return (a->symbol && a->symbol == b->symbol) || (a->field && a->field == b->field);
}

/* The first mention at or behind the place. */
static uint32_t query_find_mention(const struct query *query, uint32_t file, uint32_t start)
{
    uint32_t low = 0, high = query->mention_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct mention *mention = query->mentions[middle];
        uint32_t index = mention->unit->source.index;
        if (index < file || (index == file && mention->span.start < start))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void query_mentions_of(const struct query *query, uint32_t file, uint32_t *first_out, uint32_t *end_out)
{
    *first_out = query_find_mention(query, file, 0);
    *end_out = query_find_mention(query, file + 1, 0);
}

bool query_target_at(const struct query *query, uint32_t file, uint32_t offset,
                     struct query_target *target_out, struct query_place *place_out)
{
    uint32_t behind = query_find_mention(query, file, offset + 1);
    if (behind == 0) return false;
    const struct mention *mention = query->mentions[behind - 1];
    if (mention->unit->source.index != file || mention->span.end < offset) return false;
    *target_out = query_meaning(mention);
    *place_out = query_place_of(&mention->unit->source, mention->span);
    return target_out->symbol || target_out->field;
}

bool query_target_declared(const struct query *query, uint32_t file, uint32_t start,
                           struct query_target *target_out)
{
    uint32_t index = query_find_mention(query, file, start);
    if (index == query->mention_count) return false;
    const struct mention *mention = query->mentions[index];
    *target_out = query_meaning(mention);
    return mention->unit->source.index == file && mention->span.start == start && mention->declares;
}

bool query_declaration(const struct query *query, const struct query_target *target,
                       struct query_place *place_out)
{
    (void)query;
    if (target->field) {
        *place_out = query_place_of(&target->field_unit->source, target->field->name.span);
        return true;
    }
    if (!target->symbol->unit) return false;
    *place_out = query_place_of(&target->symbol->unit->source, target->symbol->span);
    return true;
}

bool query_definition(const struct query *query, const struct query_target *target,
                      struct query_place *place_out)
{
    const struct symbol *symbol = target->symbol;
    const struct unit *unit = symbol && symbol->kind == SYMBOL_MODULE ? symbol->import->as.import.unit : NULL;
    if (!unit) return query_declaration(query, target, place_out);
    *place_out = query_place_of(&unit->source, (struct span){0});
    return true;
}

const struct query_place *query_references(const struct query *query, const struct query_target *target,
                                           struct arena *arena, uint32_t *count_out)
{
    uint32_t count = 0;
    for (int pass = 0;; pass++) {
        struct query_place *places = NULL;
        if (pass == 1 && !(places = arena_alloc(arena, (count + 1) * sizeof *places))) mem_exhausted();
        count = 0;
        for (uint32_t i = 0; i < query->mention_count; i++) {
            struct query_target meaning = query_meaning(query->mentions[i]);
            if (!query_same(&meaning, target)) continue;
            if (pass == 1)
                places[count] = query_place_of(&query->mentions[i]->unit->source, query->mentions[i]->span);
            count++;
        }
        *count_out = count;
        if (pass == 1) return places;
    }
}

enum query_fixed query_fixed(const struct query *query, const struct query_target *target)
{
    static const char *const entries[] = {"main", "configure", "handle"};
    if (target->field) return QUERY_FIXED_FIELD;
    const struct symbol *symbol = target->symbol;
    if (!symbol->unit || symbol->unit->is_std) return QUERY_FIXED_STD;
    bool of_main = symbol->unit == query->compilation.units.items[0] && symbol->kind == SYMBOL_FUNCTION;
    for (size_t i = 0; of_main && symbol->exported && i < CY_COUNT_OF(entries); i++)
        if (cy_bytes_equal(symbol->name, cy_bytes_from_text(entries[i]))) return QUERY_FIXED_ENTRY;
    return QUERY_FREE;
}

bool query_is_import_path(const struct query *query, const struct query_target *target,
                          const struct query_place *place)
{
    const struct symbol *symbol = target->symbol;
    if (!symbol || symbol->kind != SYMBOL_MODULE || !symbol->unit) return false;
    const struct node *import = symbol->import;
    const struct unit *unit = query->compilation.units.items[place->file];
    return symbol->unit == unit && place->start == import->as.import.path.span.start;
}

bool query_is_name(cy_bytes word)
{
    struct map keywords;
    lexer_keywords_init(&keywords);
    bool good = word.count > 0 && word.count <= LIMIT_PROGRAM_NAME_BYTES && !map_find(&keywords, word);
    map_fini(&keywords);
    for (size_t offset = 0; good && offset < word.count;) {
        uint32_t code_point;
        size_t length;
        good = text_decode(cy_bytes_skip(word, offset), &code_point, &length) &&
               (offset == 0 ? text_is_identifier_start(code_point) : text_is_identifier_part(code_point));
        offset += length;
    }
    return good && text_is_nfc(word);
}
