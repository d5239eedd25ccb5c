/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_lsp_rename.c: rename, through all files of a workspace.
 *
 * In:   a name at a place, and what it shall be called. Out: edits of every file that mentions it.
 * Method: the file that declares the name is asked for by every source of the workspace in which the word stands: each
 *         is compiled as a main, and where its program has that file, its mentions count. Then everything is
 *         compiled once more with the edits in place.
 * Invariant: an edit is given only when afterwards no program has errors and every place means what it meant: as many
 *            places as before, no more and no fewer. Else the rename is refused, and says why.
 */
#include "vm/cli/cli_lsp.h"

#include "vm/base/mem.h"
#include "vm/base/path.h"
#include "vm/base/text.h"

#include <stdlib.h>

struct lsp_rename_edit {
    cy_bytes path;
    uint32_t start, end;
    bool import; /* the path of an import: `name = ` is put before it */
};
struct lsp_rename_root {
    cy_bytes path;
    uint32_t use_count;
};
struct lsp_rename {
    struct lsp_request *request;
    struct lsp_server *server;
    struct arena *arena;
    cy_bytes old_name, new_name;
    cy_bytes declared_path; /* where the name is declared */
    uint32_t declared_start;
    struct lsp_rename_edit *edits;
    uint32_t edit_count, edit_capacity;
    struct lsp_rename_root *roots; /* programs that mention it */
    uint32_t root_count, root_capacity;
    uint32_t file_count; /* looked through */
    struct lsp_edited *texts;
    uint32_t text_count;
};

static void lsp_rename_refuse(struct lsp_rename *run, const char *english, const char *korean, cy_bytes what)
{
    if (run->request->error) return;
    struct builder message;
    builder_init(&message);
    builder_text(&message, run->server->options->korean ? korean : english);
    builder_bytes(&message, what);
    const char *text = builder_text_view(&message);
    lsp_fail(run->request, LSP_REQUEST_FAILED, text ? text : english);
    builder_fini(&message);
}

static void *lsp_rename_grow(struct lsp_rename *run, void *items, uint32_t count, uint32_t *capacity,
                             size_t size)
{
    if (count < *capacity) return items;
    uint32_t grown = *capacity ? *capacity * 2 : 16;
    items = arena_grow(run->arena, items, *capacity * size, grown * size);
    *capacity = grown;
    return items;
}

/* -- collecting ---------------------------------------------------------------------------------------------------- */

static void lsp_rename_add_edit(struct lsp_rename *run, struct lsp_rename_edit edit)
{
    for (uint32_t i = 0; i < run->edit_count; i++)
        if (run->edits[i].start == edit.start && cy_bytes_equal(run->edits[i].path, edit.path)) return;
    run->edits = lsp_rename_grow(run, run->edits, run->edit_count, &run->edit_capacity, sizeof edit);
    run->edits[run->edit_count++] = edit;
}

/* The name in a program that may have it. */
static bool lsp_rename_find(const struct lsp_rename *run, const struct query *query, uint32_t start,
                            struct query_target *target_out)
{
    uint32_t file;
    return lsp_find_file(query, run->declared_path, &file) &&
           query_target_declared(query, file, start, target_out);
}

static void lsp_rename_take(struct lsp_rename *run, const struct query *query,
                            const struct query_target *target, cy_bytes root)
{
    uint32_t count;
    const struct query_place *uses = query_references(query, target, run->arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct builder path;
        builder_init(&path);
        if (lsp_file_path(query, uses[i].file, &path))
            lsp_rename_add_edit(
                run, (struct lsp_rename_edit){.path = arena_copy(run->arena, builder_view(&path)),
                                              .start = uses[i].start,
                                              .end = uses[i].end,
                                              .import = query_is_import_path(query, target, &uses[i])});
        builder_fini(&path);
    }
    run->roots = lsp_rename_grow(run, run->roots, run->root_count, &run->root_capacity, sizeof *run->roots);
    run->roots[run->root_count++] =
        (struct lsp_rename_root){.path = arena_copy(run->arena, root), .use_count = count};
}

/* Whether the word may stand in a text: an identifier in another normal form may be the same word. */
static bool lsp_rename_may_have(const struct lsp_rename *run, cy_bytes text)
{
    cy_bytes name = run->old_name;
    for (size_t i = 0; i + name.count <= text.count; i++)
        if (text.data[i] == name.data[0] && memcmp(text.data + i, name.data, name.count) == 0) return true;
    bool ascii = true;
    for (size_t i = 0; i < name.count; i++) ascii = ascii && name.data[i] < 0x80;
    return !ascii && !text_is_nfc(text);
}

/* One source of the workspace as a main. */
static bool lsp_rename_root(struct lsp_rename *run, cy_bytes path)
{
    for (uint32_t i = 0; i < run->root_count; i++)
        if (cy_bytes_equal(run->roots[i].path, path)) return true;
    struct builder text, name;
    builder_init(&text);
    builder_init(&name);
    builder_bytes(&name, path);
    const char *name_text = builder_text_view(&name);
    bool may = name_text && !cy_failed(lsp_read_source(run->server, name_text, &text)) &&
               lsp_rename_may_have(run, builder_view(&text));
    builder_fini(&name);
    builder_fini(&text);
    if (!may) return true;
    struct query *query = lsp_open_query(run->server, path);
    struct query_target target;
    if (lsp_rename_find(run, query, run->declared_start, &target)) {
        if (query_fixed(query, &target) == QUERY_FIXED_ENTRY)
            lsp_rename_refuse(run, "the runtime finds this function by its name",
                              "실행기가 이 이름으로 찾는 함수입니다", CY_BYTES_NONE);
        else if (query_has_errors(query))
            lsp_rename_refuse(run, "mend the mistakes first, of the program that begins at ",
                              "먼저 틀린 곳을 고치십시오: ", path);
        else
            lsp_rename_take(run, query, &target, path);
    }
    query_close(&query);
    return !run->request->error;
}

static bool lsp_rename_visit(void *context, const char *path, cy_err err)
{
    struct lsp_rename *run = context;
    if (cy_failed(err)) return true;
    if (++run->file_count > LIMIT_LSP_RENAME_FILES) {
        lsp_rename_refuse(
            run, "there are more sources than LSP_RENAME_FILES (10000) in ",
            "소스가 한도 LSP_RENAME_FILES (10000)보다 많습니다: ", path_parent(cy_bytes_from_text(path)));
        return false;
    }
    struct builder normal;
    builder_init(&normal);
    path_normalise(cy_bytes_from_text(path), &normal);
    bool more = lsp_rename_root(run, builder_view(&normal));
    builder_fini(&normal);
    return more;
}

/* The workspace when the file lies in it, else the file's own folder. */
static void lsp_rename_collect(struct lsp_rename *run, const struct lsp_document *document)
{
    if (!lsp_rename_root(run, builder_view(&document->path))) return;
    for (struct lsp_document *other = run->server->documents; other; other = other->next)
        if (!lsp_rename_root(run, builder_view(&other->path))) return;
    cy_bytes path = builder_view(&document->path), root = builder_view(&run->server->root), below;
    if (!path_is_absolute(path)) return;
    struct builder folder;
    builder_init(&folder);
    builder_bytes(&folder, root.count && path_is_below(path, root, &below) ? root : path_parent(path));
    const char *text = builder_text_view(&folder);
    if (text) cli_visit_folder(text, lsp_rename_visit, run);
    builder_fini(&folder);
}

/* -- trying -------------------------------------------------------------------------------------------------------- */

static int lsp_rename_compare(const void *left, const void *right)
{
    const struct lsp_rename_edit *a = left, *b = right;
    int order = cy_bytes_compare(a->path, b->path);
    return order ? order : a->start < b->start ? -1 : a->start > b->start;
}

static void lsp_rename_put(const struct lsp_rename *run, const struct lsp_rename_edit *edit,
                           struct builder *out)
{
    builder_bytes(out, run->new_name);
    if (edit->import) builder_text(out, " = ");
}

/* The end of what an edit replaces: nothing, where a name is put before a path. */
static uint32_t lsp_rename_end(const struct lsp_rename_edit *edit)
{
    return edit->import ? edit->start : edit->end;
}

/* Edits [first, end) are of one file; gives where the declaration stands then, when it is this file's. */
static void lsp_rename_apply(struct lsp_rename *run, uint32_t first, uint32_t end, uint32_t *declared_out)
{
    struct builder name, before, after;
    builder_init(&name), builder_init(&before), builder_init(&after);
    builder_bytes(&name, run->edits[first].path);
    const char *path = builder_text_view(&name);
    if (!path || cy_failed(lsp_read_source(run->server, path, &before)))
        lsp_rename_refuse(run, "cannot be read: ", "읽을 수 없습니다: ", run->edits[first].path);
    uint32_t at = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct lsp_rename_edit *edit = &run->edits[i];
        builder_bytes(&after, cy_bytes_slice(builder_view(&before), at, edit->start));
        bool declares = edit->start == run->declared_start && cy_bytes_equal(edit->path, run->declared_path);
        if (declares) *declared_out = (uint32_t)after.count;
        lsp_rename_put(run, edit, &after);
        at = lsp_rename_end(edit);
    }
    builder_bytes(&after, cy_bytes_skip(builder_view(&before), at));
    if (after.failed) mem_exhausted();
    run->texts[run->text_count++] = (struct lsp_edited){.path = run->edits[first].path,
                                                        .text = arena_copy(run->arena, builder_view(&after))};
    builder_fini(&name), builder_fini(&before), builder_fini(&after);
}

/* Compiles every program that mentions the name with the edits in place. */
static void lsp_rename_try(struct lsp_rename *run)
{
    uint32_t declared = run->declared_start;
    run->texts = arena_alloc(run->arena, (run->edit_count + 1) * sizeof *run->texts);
    for (uint32_t first = 0, end; first < run->edit_count; first = end) {
        for (end = first + 1;
             end < run->edit_count && cy_bytes_equal(run->edits[end].path, run->edits[first].path);)
            end++;
        lsp_rename_apply(run, first, end, &declared);
    }
    run->server->edited = run->texts;
    run->server->edited_count = run->text_count;
    for (uint32_t i = 0; i < run->root_count && !run->request->error; i++) {
        struct query *query = lsp_open_query(run->server, run->roots[i].path);
        struct query_target target;
        uint32_t count = 0;
        if (!query_has_errors(query) && lsp_rename_find(run, query, declared, &target))
            (void)query_references(query, &target, run->arena, &count);
        if (count != run->roots[i].use_count)
            lsp_rename_refuse(run, "that name means something else already, in the program that begins at ",
                              "그 이름은 이미 다른 뜻으로 쓰입니다: ", run->roots[i].path);
        query_close(&query);
    }
    run->server->edited = NULL;
    run->server->edited_count = 0;
}

/* -- answering ----------------------------------------------------------------------------------------------------- */

static void lsp_rename_write_file(struct lsp_rename *run, uint32_t first, uint32_t end)
{
    struct builder *out = run->request->out, uri, name, text;
    builder_init(&uri), builder_init(&name), builder_init(&text);
    builder_bytes(&name, run->edits[first].path);
    const char *path = builder_text_view(&name);
    if (!path || cy_failed(lsp_read_source(run->server, path, &text)))
        lsp_rename_refuse(run, "cannot be read: ", "읽을 수 없습니다: ", run->edits[first].path);
    struct lsp_lines lines = lsp_lines_of(builder_view(&text), run->server->utf8, run->arena);
    lsp_put_uri(run->server, run->edits[first].path, &uri);
    lsp_put_text(out, builder_view(&uri));
    builder_text(out, ":[");
    for (uint32_t i = first; i < end; i++) {
        struct builder word;
        builder_init(&word);
        lsp_rename_put(run, &run->edits[i], &word);
        builder_text(out, i > first ? ",{\"range\":" : "{\"range\":");
        lsp_put_range(out, &lines, run->edits[i].start, lsp_rename_end(&run->edits[i]));
        builder_text(out, ",\"newText\":");
        lsp_put_text(out, builder_view(&word));
        builder_u8(out, '}');
        builder_fini(&word);
    }
    builder_u8(out, ']');
    builder_fini(&uri), builder_fini(&name), builder_fini(&text);
}

static void lsp_rename_write(struct lsp_rename *run)
{
    builder_text(run->request->out, "{\"changes\":{");
    for (uint32_t first = 0, end; first < run->edit_count && !run->request->error; first = end) {
        for (end = first + 1;
             end < run->edit_count && cy_bytes_equal(run->edits[end].path, run->edits[first].path);)
            end++;
        if (first > 0) builder_u8(run->request->out, ',');
        lsp_rename_write_file(run, first, end);
    }
    if (!run->request->error) builder_text(run->request->out, "}}");
}

/* False, refused, when the name is not the user's to change. */
static bool lsp_rename_allowed(struct lsp_rename *run, const struct lsp_place *place,
                               const struct query_target *target)
{
    enum query_fixed fixed = query_fixed(place->query, target);
    if (place->document->std_copy) fixed = QUERY_FIXED_STD;
    switch (fixed) {
    case QUERY_FREE: return true;
    case QUERY_FIXED_STD:
        lsp_rename_refuse(run, "a name of the standard library cannot be changed",
                          "표준 라이브러리의 이름은 바꿀 수 없습니다", CY_BYTES_NONE);
        return false;
    case QUERY_FIXED_FIELD:
        lsp_rename_refuse(run,
                          "a field cannot be renamed: fields are found by name while the program runs, so "
                          "not every use is known",
                          "칸 이름은 실행 중에도 쓰이므로 바꿀 수 없습니다", CY_BYTES_NONE);
        return false;
    default:
        lsp_rename_refuse(run, "the runtime finds this function by its name",
                          "실행기가 이 이름으로 찾는 함수입니다", CY_BYTES_NONE);
        return false;
    }
}

static bool lsp_rename_begin(struct lsp_rename *run, struct lsp_place *place)
{
    struct query_target target;
    struct query_place where, declaration;
    struct builder path;
    if (!lsp_request_target(run->request, place, &target, &where)) return false;
    if (!lsp_rename_allowed(run, place, &target)) return false;
    if (!query_is_name(run->new_name)) {
        lsp_rename_refuse(
            run, "no name (letters, digits and _, no keyword): ", "이름이 될 수 없습니다: ", run->new_name);
        return false;
    }
    if (!query_declaration(place->query, &target, &declaration)) return false;
    builder_init(&path);
    bool good = lsp_file_path(place->query, declaration.file, &path);
    run->declared_path = arena_copy(run->arena, builder_view(&path));
    run->declared_start = declaration.start;
    builder_clear(&path);
    cy_bytes word = cy_bytes_slice(place->lines.text, where.start, where.end);
    good = good && !cy_failed(text_to_nfc(word, &path)) && path.count > 0;
    run->old_name = arena_copy(run->arena, builder_view(&path));
    builder_fini(&path);
    return good;
}

void lsp_rename(struct lsp_request *request)
{
    struct lsp_place place;
    struct lsp_rename run = {.request = request, .server = request->server, .arena = request->arena};
    struct builder new_name;
    builder_init(&new_name);
    cy_bytes given = lsp_json_text(lsp_json_at(request->params, "newName"));
    if (given.count > LIMIT_PROGRAM_NAME_BYTES || cy_failed(text_to_nfc(given, &new_name)))
        builder_clear(&new_name);
    run.new_name = arena_copy(run.arena, builder_view(&new_name));
    builder_fini(&new_name);
    if (!lsp_rename_begin(&run, &place)) return;
    lsp_rename_collect(&run, place.document);
    if (!request->error && run.edit_count)
        qsort(run.edits, run.edit_count, sizeof *run.edits, lsp_rename_compare);
    if (!request->error) lsp_rename_try(&run);
    if (!request->error) lsp_rename_write(&run);
}

void lsp_prepare_rename(struct lsp_request *request)
{
    struct lsp_place place;
    struct query_target target;
    struct query_place where;
    struct lsp_rename run = {.request = request, .server = request->server, .arena = request->arena};
    if (!lsp_request_target(request, &place, &target, &where)) return;
    if (!lsp_rename_allowed(&run, &place, &target)) return;
    lsp_put_range(request->out, &place.lines, where.start, where.end);
}
