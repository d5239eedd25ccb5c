/* SPDX-License-Identifier: MIT
 *
 * compiler/module_graph.c: which files a program is made of, and in which order they start.
 *
 * In:   the path of main, the imports that the parser finds.
 * Out:  every unit once, in load order and in start order (imported ones first).
 * Invariant: a unit's name is its path relative to main's folder, NFC, without ending; no machine's folder is in it.
 *            Import chains are followed in loops, never by recursion.
 */
#include "compiler/lexer.h"
#include "compiler/session.h"
#include "compiler/unit.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/code/native_table.h"

static const char *const module_graph_endings[] = {".han", ".한선"};

struct module_graph_path {
    struct compilation *compilation;
    struct builder folder; /* of main, as the user wrote it, "" or ending in '/' */
    bool outside;          /* something imported lies outside of it */
};

static void module_graph_add(struct arena *arena, struct unit_list *list, struct unit *unit)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 8;
        list->items = arena_grow(arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    list->items[list->count++] = unit;
}

static struct unit *module_graph_new_unit(struct compilation *compilation, cy_bytes name, cy_bytes file,
                                          cy_bytes text)
{
    struct unit *unit = arena_alloc_zeroed(&compilation->arena, sizeof *unit);
    unit->name = arena_copy(&compilation->arena, name);
    unit->source.file = arena_copy(&compilation->arena, file);
    unit->source.text = arena_copy(&compilation->arena, text);
    unit->source.index = compilation->units.count;
    unit->is_std = cy_bytes_start_with(name, CY_BYTES("std:"));
    session_adopt(compilation, unit);
    map_init(&unit->names, (hash_seed){0, 0});
    module_graph_add(&compilation->arena, &compilation->units, unit);
    struct map_entry *entry = map_insert(&compilation->unit_names, unit->name, NULL);
    if (!entry) mem_exhausted();
    entry->value.pointer = unit;
    parse_unit(compilation, unit);
    return unit;
}

/* -- names --------------------------------------------------------------------------------------------------------- */

static cy_bytes module_graph_nfc(struct compilation *compilation, cy_bytes text)
{
    struct builder composed;
    builder_init(&composed);
    cy_bytes result = text; /* what is no UTF-8, or no path, has no other form */
    if (text.count <= LIMIT_PROGRAM_NAME_BYTES && !cy_failed(text_to_nfc(text, &composed)))
        result = arena_copy(&compilation->arena, builder_view(&composed));
    builder_fini(&composed);
    return result;
}

static size_t module_graph_ending(cy_bytes path)
{
    for (size_t i = 0; i < CY_COUNT_OF(module_graph_endings); i++) {
        cy_bytes ending = cy_bytes_from_text(module_graph_endings[i]);
        if (path.count > ending.count &&
            cy_bytes_equal(cy_bytes_skip(path, path.count - ending.count), ending))
            return ending.count;
    }
    return 0;
}

static cy_bytes module_graph_last_segment(cy_bytes path)
{
    size_t start = path.count;
    while (start > 0 && path.data[start - 1] != '/') start--;
    return cy_bytes_skip(path, start);
}

/* Appends `path` to the folder in `out`, segment by segment: "." is dropped, ".." goes up. False for empty segments and
 * for characters that no file name should have. */
static bool module_graph_join(struct builder *out, cy_bytes path)
{
    for (size_t start = 0; start <= path.count;) {
        size_t end = start + cy_bytes_find(cy_bytes_skip(path, start), '/');
        cy_bytes segment = cy_bytes_slice(path, start, end);
        start = end + 1;
        if (segment.count == 0) return false;
        for (size_t i = 0; i < segment.count; i++)
            if (segment.data[i] < 0x20 || segment.data[i] == '\\' || segment.data[i] == ':' ||
                segment.data[i] == 0x7f)
                return false;
        if (cy_bytes_equal(segment, CY_BYTES("."))) continue;
        cy_bytes folder = builder_view(out);
        cy_bytes last = module_graph_last_segment(folder);
        if (cy_bytes_equal(segment, CY_BYTES("..")) && folder.count &&
            !cy_bytes_equal(last, CY_BYTES(".."))) {
            out->count -= last.count;
            if (out->count) out->count--; /* its '/' */
            continue;
        }
        if (out->count) builder_u8(out, '/');
        builder_bytes(out, segment);
    }
    cy_bytes last = module_graph_last_segment(builder_view(out));
    return out->count > 0 && !cy_bytes_equal(last, CY_BYTES("..")) && text_is_utf8(path, NULL);
}

static bool module_graph_is_name(struct compilation *compilation, cy_bytes word)
{
    for (size_t offset = 0; offset < word.count;) {
        uint32_t code_point;
        size_t length;
        if (!text_decode(cy_bytes_skip(word, offset), &code_point, &length)) return false;
        bool good = offset == 0 ? text_is_identifier_start(code_point) : text_is_identifier_part(code_point);
        if (!good) return false;
        offset += length;
    }
    return word.count > 0 && !map_find(&compilation->keywords, word);
}

/* -- files --------------------------------------------------------------------------------------------------------- */

static cy_err module_graph_read(struct compilation *compilation, struct builder *path, struct builder *text)
{
    const char *path_text = builder_text_view(path);
    if (!path_text) mem_exhausted();
    builder_clear(text);
    cy_err err = compilation->options->read_source(compilation->options->context, path_text, text);
    if (cy_is(err, CY_ERR_NO_MEMORY)) mem_exhausted();
    if (!cy_failed(err) && text->count > LIMIT_SOURCE_BYTES) err = CY_ERR(TOO_LARGE);
    return err;
}

/* Also where a folder on the way is a file. */
static bool module_graph_is_missing(cy_err err)
{
    return cy_is(err, CY_ERR_NOT_FOUND) || cy_is(err, CY_ERR_NOT_FOLDER);
}

/* Tries name.han and name.한선, composed and, as some file systems hand names out, decomposed. */
static cy_err module_graph_find(struct module_graph_path *path, cy_bytes name, struct builder *text,
                                cy_bytes *file_out)
{
    struct compilation *compilation = path->compilation;
    cy_err err = CY_ERR(NOT_FOUND);
    for (int decomposed = 0; decomposed < 2 && module_graph_is_missing(err); decomposed++) {
        for (size_t i = 0; i < CY_COUNT_OF(module_graph_endings) && module_graph_is_missing(err); i++) {
            struct builder file, full;
            builder_init(&file);
            builder_init(&full);
            builder_bytes(&file, name);
            builder_text(&file, module_graph_endings[i]);
            builder_bytes(&full, builder_view(&path->folder));
            if (!decomposed)
                builder_bytes(&full, builder_view(&file));
            else if (cy_failed(text_to_nfd(builder_view(&file), &full)))
                mem_exhausted();
            err = module_graph_read(compilation, &full, text);
            *file_out = arena_copy(&compilation->arena, builder_view(&file));
            builder_fini(&file);
            builder_fini(&full);
        }
    }
    return err;
}

static cy_bytes module_graph_reason(struct compilation *compilation, cy_err err)
{
    char reason[128];
    bool korean = compilation->options->korean;
    struct builder text;
    builder_init(&text);
    builder_text(&text, cy_err_describe(err, korean, reason, sizeof reason));
    if (cy_is(err, CY_ERR_TOO_LARGE))
        builder_printf(&text, korean ? " (한도 SOURCE_BYTES: %d 바이트)" : " (limit SOURCE_BYTES: %d bytes)",
                       LIMIT_SOURCE_BYTES);
    if (text.failed) mem_exhausted();
    cy_bytes copy = arena_copy(&compilation->arena, builder_view(&text));
    builder_fini(&text);
    return copy;
}

/* -- imports ------------------------------------------------------------------------------------------------------- */

const struct stdlib_module *module_graph_find_std(const struct compilation *compilation, cy_bytes name)
{
    for (size_t i = 0; i < compilation->options->stdlib_count; i++) {
        const struct stdlib_module *module = &compilation->options->stdlib[i];
        if (cy_bytes_equal(cy_bytes_from_text(module->name), name)) return module;
    }
    return NULL;
}

static void module_graph_offer_std(const struct compilation *compilation, struct diag *diag, cy_bytes name)
{
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < compilation->options->stdlib_count; i++)
        nearest_offer(&nearest, cy_bytes_from_text(compilation->options->stdlib[i].name));
    const struct native_row *row;
    for (size_t i = 0; (row = native_row_at(i)) != NULL; i++) {
        cy_bytes english = cy_bytes_from_text(row->english);
        size_t dot = cy_bytes_find(english, '.');
        if (dot < english.count) nearest_offer(&nearest, cy_bytes_slice(english, 0, dot));
    }
    diag->nearest = nearest.best;
}

static struct unit *module_graph_std_unit(struct compilation *compilation, const struct stdlib_module *module)
{
    struct builder name;
    builder_init(&name);
    builder_text(&name, "std:");
    builder_text(&name, module->name);
    if (name.failed) mem_exhausted();
    struct map_entry *loaded = map_find(&compilation->unit_names, builder_view(&name));
    struct unit *unit = loaded ? loaded->value.pointer
                               : module_graph_new_unit(compilation, builder_view(&name), builder_view(&name),
                                                       cy_bytes_of(module->source, module->source_bytes));
    builder_fini(&name);
    return unit;
}

/* `list.map(...)` needs no import: the word alone brings std:list in. */
static void module_graph_load_kinds(struct compilation *compilation, uint32_t kind_words)
{
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        if (!(kind_words & 1u << kind) || compilation->kind_units[kind]) continue;
        cy_bytes name = cy_bytes_from_text(kind_name((enum value_kind)kind, false));
        const struct stdlib_module *module = module_graph_find_std(compilation, name);
        if (module) compilation->kind_units[kind] = module_graph_std_unit(compilation, module);
    }
}

/* `import "http"`. Inside std:http itself the word means the natives of that name. */
static void module_graph_import_std(struct module_graph_path *path, struct unit *unit, struct node *node)
{
    struct compilation *compilation = path->compilation;
    cy_bytes name = module_graph_nfc(compilation, node->as.import.path.text);
    struct builder full_name;
    builder_init(&full_name);
    builder_text(&full_name, "std:");
    builder_bytes(&full_name, name);

    bool natives = name.count > 0 && native_module_exists(name);
    if (natives) node->as.import.native_module = name;
    const struct stdlib_module *module = module_graph_find_std(compilation, name);
    bool own = cy_bytes_equal(unit->name, builder_view(&full_name));
    if (own && natives)
        module = NULL;
    else if (module)
        node->as.import.unit = module_graph_std_unit(compilation, module);
    builder_fini(&full_name);
    if (module || natives) return;
    struct diag *diag =
        diag_report_1(&compilation->diags, &unit->source, node->as.import.path.span, DIAG_STD_UNKNOWN, name);
    module_graph_offer_std(compilation, diag, name);
}

static void module_graph_import_file(struct module_graph_path *path, struct unit *unit, struct node *node)
{
    struct compilation *compilation = path->compilation;
    struct diag_list *diags = &compilation->diags;
    struct span span = node->as.import.path.span;
    cy_bytes written = module_graph_nfc(compilation, node->as.import.path.text);
    cy_bytes plain = cy_bytes_slice(written, 0, written.count - module_graph_ending(written));

    struct builder name, text;
    builder_init(&name);
    builder_init(&text);
    size_t folder_bytes = unit->name.count - module_graph_last_segment(unit->name).count;
    builder_bytes(&name, cy_bytes_slice(unit->name, 0, folder_bytes ? folder_bytes - 1 : 0));
    bool too_long = written.count + unit->name.count > LIMIT_PROGRAM_NAME_BYTES / 2;
    bool good = !unit->is_std && !too_long && module_graph_join(&name, plain);
    /* A program lies in main's folder and below; a module looked at by itself may lie below its program's. */
    bool outside = cy_bytes_start_with(builder_view(&name), CY_BYTES("../"));
    if (outside) path->outside = true;
    if (!good || (outside && !compilation->options->module)) {
        (void)diag_report_1(diags, &unit->source, span, DIAG_IMPORT_PATH, written);
    } else {
        struct map_entry *loaded = map_find(&compilation->unit_names, builder_view(&name));
        cy_bytes file;
        cy_err err = loaded ? CY_OK : module_graph_find(path, builder_view(&name), &text, &file);
        if (loaded)
            node->as.import.unit = loaded->value.pointer;
        else if (!cy_failed(err))
            node->as.import.unit =
                module_graph_new_unit(compilation, builder_view(&name), file, builder_view(&text));
        else if (module_graph_is_missing(err))
            (void)diag_report_1(diags, &unit->source, span, DIAG_IMPORT_NOT_FOUND,
                                arena_copy(&compilation->arena, builder_view(&name)));
        else
            (void)diag_report_2(diags, &unit->source, span, DIAG_FILE_UNREADABLE, file,
                                module_graph_reason(compilation, err));
    }
    builder_fini(&name);
    builder_fini(&text);
}

static void module_graph_name_import(struct compilation *compilation, struct unit *unit, struct node *node)
{
    if (node->as.import.name.text.count) return;
    cy_bytes path = module_graph_nfc(compilation, node->as.import.path.text);
    path.count -= module_graph_ending(path);
    node->as.import.name = (struct word){module_graph_last_segment(path), node->as.import.path.span};
    bool found = node->as.import.unit || node->as.import.native_module.count;
    /* `test` is a keyword, and still the name of a module: before a dot it can be nothing else. */
    bool is_name = module_graph_is_name(compilation, node->as.import.name.text) ||
                   cy_bytes_equal(node->as.import.name.text, CY_BYTES("test"));
    if (found && !is_name)
        (void)diag_report_1(&compilation->diags, &unit->source, node->as.import.path.span, DIAG_IMPORT_NAME,
                            node->as.import.name.text);
}

static void module_graph_load_imports(struct module_graph_path *path, struct unit *unit)
{
    for (uint32_t i = 0; i < unit->declarations.count; i++) {
        struct node *node = unit->declarations.items[i];
        if (node->kind != NODE_IMPORT) continue;
        cy_bytes written = node->as.import.path.text;
        bool relative =
            cy_bytes_start_with(written, CY_BYTES("./")) || cy_bytes_start_with(written, CY_BYTES("../"));
        if (relative)
            module_graph_import_file(path, unit, node);
        else
            module_graph_import_std(path, unit, node);
        module_graph_name_import(path->compilation, unit, node);
    }
}

/* -- order --------------------------------------------------------------------------------------------------------- */

struct module_graph_visit {
    struct unit *unit;
    unsigned next_kind; /* kind word to look at; these come first */
    uint32_t next;      /* declaration to look at */
};

/* The next unit that the one on top needs before it, NULL at the end. `*import_out`: the node that says so, NULL for
 * a kind word. Std modules make no circles: they use each other's functions, not each other's initialisers. */
static struct unit *module_graph_next(const struct compilation *compilation, struct module_graph_visit *visit,
                                      const struct node **import_out)
{
    *import_out = NULL;
    /* Inputs stand in their order, each behind what it alone imports: so a longer session begins like a shorter one. */
    struct unit *before = visit->unit->session_before;
    if (before && before->visit == UNIT_NEW) return before;
    while (visit->next_kind < KIND_COUNT) {
        unsigned kind = visit->next_kind++;
        struct unit *unit = compilation->kind_units[kind];
        if (unit && visit->unit->kind_words & 1u << kind && unit->visit == UNIT_NEW) return unit;
    }
    while (visit->next < visit->unit->declarations.count) {
        const struct node *node = visit->unit->declarations.items[visit->next++];
        if (node->kind != NODE_IMPORT || !node->as.import.unit) continue;
        if (node->as.import.unit->is_std && node->as.import.unit->visit == UNIT_OPEN) continue;
        *import_out = node;
        return node->as.import.unit;
    }
    return NULL;
}

static void module_graph_report_cycle(struct compilation *compilation, const struct module_graph_visit *stack,
                                      uint32_t count, const struct node *import)
{
    uint32_t start = count - 1;
    while (stack[start].unit != import->as.import.unit) start--;
    struct builder path;
    builder_init(&path);
    for (uint32_t i = start; i < count; i++) {
        builder_bytes(&path, stack[i].unit->name);
        builder_text(&path, " -> ");
    }
    builder_bytes(&path, import->as.import.unit->name);
    (void)diag_report_1(&compilation->diags, &stack[count - 1].unit->source, import->as.import.path.span,
                        DIAG_IMPORT_CYCLE, arena_copy(&compilation->arena, builder_view(&path)));
    builder_fini(&path);
}

/* Depth first, imported units before those that import them. Each unit is on the stack at most once. */
static void module_graph_sort(struct compilation *compilation)
{
    struct module_graph_visit *stack =
        arena_alloc(&compilation->arena, compilation->units.count * sizeof *stack);
    uint32_t count = 0;
    stack[count++] = (struct module_graph_visit){.unit = compilation->units.items[0]};
    stack[0].unit->visit = UNIT_OPEN;
    while (count > 0) {
        struct module_graph_visit *top = &stack[count - 1];
        const struct node *node;
        struct unit *imported = module_graph_next(compilation, top, &node);
        if (!imported) {
            top->unit->visit = UNIT_DONE;
            module_graph_add(&compilation->arena, &compilation->order, top->unit);
            count--;
            continue;
        }
        if (imported->visit == UNIT_DONE) continue;
        if (imported->visit == UNIT_OPEN) {
            module_graph_report_cycle(compilation, stack, count, node);
            continue;
        }
        imported->visit = UNIT_OPEN;
        stack[count++] = (struct module_graph_visit){.unit = imported};
    }
}

static bool module_graph_load_main(struct module_graph_path *path)
{
    struct compilation *compilation = path->compilation;
    cy_bytes given = cy_bytes_from_text(compilation->options->path);
    cy_bytes file = module_graph_last_segment(given);
    builder_bytes(&path->folder, cy_bytes_slice(given, 0, given.count - file.count));

    struct builder full, text;
    builder_init(&full);
    builder_init(&text);
    builder_bytes(&full, given);
    cy_err err = module_graph_read(compilation, &full, &text);
    if (cy_failed(err)) {
        (void)diag_report_2(&compilation->diags, NULL, (struct span){0}, DIAG_FILE_UNREADABLE, given,
                            module_graph_reason(compilation, err));
    } else {
        file = module_graph_nfc(compilation, file);
        cy_bytes name = cy_bytes_slice(file, 0, file.count - module_graph_ending(file));
        (void)module_graph_new_unit(compilation, name, file, builder_view(&text));
    }
    builder_fini(&full);
    builder_fini(&text);
    return !cy_failed(err);
}

/* Behind main, which is unit 0: input i is unit i + 1. */
static void module_graph_load_inputs(struct compilation *compilation, const struct compile_session *session)
{
    for (uint32_t i = 0; i < session->input_count; i++) {
        const struct session_input *input = &session->inputs[i];
        cy_bytes name = cy_bytes_slice(input->name, 0, input->name.count - module_graph_ending(input->name));
        (void)module_graph_new_unit(compilation, name, input->name, input->text);
    }
    for (uint32_t i = 1; i < session->input_count; i++)
        compilation->units.items[i + 1]->session_before = compilation->units.items[i];
    if (session->input_count > 0)
        compilation->units.items[0]->session_before = compilation->units.items[session->input_count];
}

bool module_graph_load(struct compilation *compilation)
{
    struct module_graph_path path = {.compilation = compilation};
    builder_init(&path.folder);
    bool loaded = module_graph_load_main(&path);
    if (loaded && compilation->options->session)
        module_graph_load_inputs(compilation, compilation->options->session);
    /* The list grows while it is walked: each unit brings in the ones it imports. */
    for (uint32_t i = 0; i < compilation->units.count; i++) {
        module_graph_load_kinds(compilation, compilation->units.items[i]->kind_words);
        module_graph_load_imports(&path, compilation->units.items[i]);
    }
    builder_fini(&path.folder);
    compilation->outside = path.outside;
    if (loaded) module_graph_sort(compilation);
    return loaded;
}
