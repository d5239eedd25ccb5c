/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_lsp_answer.c: hover, definition, references, completion, outline, formatting.
 *
 * In:   a request about a document. Out: its result as JSON.
 * Invariant: a place that is in no document, or where no name stands, has the answer null; half-typed programs are
 *            answered about as far as they could be read.
 */
#include "vm/cli/cli_lsp.h"

#include "compiler/fmt.h"
#include "vm/base/mem.h"

void lsp_fail(struct lsp_request *request, enum lsp_error error, const char *message)
{
    builder_clear(request->out);
    builder_text(request->out, message);
    request->error = error;
}

/* -- the place ----------------------------------------------------------------------------------------------------- */

bool lsp_request_document(struct lsp_request *request, struct lsp_place *place_out)
{
    struct builder path;
    builder_init(&path);
    bool good = lsp_path_of_uri(lsp_json_text(lsp_json_at(request->params, "textDocument.uri")), &path);
    place_out->document = good ? lsp_find_document(request->server, builder_view(&path)) : NULL;
    builder_fini(&path);
    if (!place_out->document) {
        lsp_fail(request, LSP_INVALID_PARAMS, "textDocument.uri names no open document");
        return false;
    }
    place_out->query = lsp_document_query(request->server, place_out->document);
    place_out->lines =
        lsp_lines_of(builder_view(&place_out->document->text), request->server->utf8, request->arena);
    return true;
}

bool lsp_request_place(struct lsp_request *request, struct lsp_place *place_out)
{
    uint32_t line, character;
    if (!lsp_request_document(request, place_out)) return false;
    if (!lsp_json_u32(lsp_json_at(request->params, "position.line"), &line) ||
        !lsp_json_u32(lsp_json_at(request->params, "position.character"), &character)) {
        lsp_fail(request, LSP_INVALID_PARAMS, "position lacks line or character");
        return false;
    }
    place_out->offset = lsp_offset(&place_out->lines, line, character);
    return true;
}

bool lsp_request_target(struct lsp_request *request, struct lsp_place *place_out,
                        struct query_target *target_out, struct query_place *where_out)
{
    if (!lsp_request_place(request, place_out)) return false;
    if (query_file_count(place_out->query) > 0 &&
        query_target_at(place_out->query, 0, place_out->offset, target_out, where_out))
        return true;
    builder_text(request->out, "null");
    return false;
}

/* {"uri":..., "range":...}; false when the file can be shown to nobody. */
static bool lsp_answer_location(struct lsp_request *request, const struct query *query,
                                const struct query_place *place)
{
    struct builder path, uri;
    builder_init(&path);
    builder_init(&uri);
    bool good = lsp_file_path(query, place->file, &path);
    if (good) {
        cy_bytes text = query_file_at(query, place->file).text;
        struct lsp_lines lines = lsp_lines_of(text, request->server->utf8, request->arena);
        lsp_put_uri(request->server, builder_view(&path), &uri);
        builder_text(request->out, "{\"uri\":");
        lsp_put_text(request->out, builder_view(&uri));
        builder_text(request->out, ",\"range\":");
        lsp_put_range(request->out, &lines, place->start, place->end);
        builder_u8(request->out, '}');
    }
    builder_fini(&path);
    builder_fini(&uri);
    return good;
}

/* -- names --------------------------------------------------------------------------------------------------------- */

void lsp_hover(struct lsp_request *request)
{
    struct lsp_place place;
    struct query_target target;
    struct query_place where;
    if (!lsp_request_target(request, &place, &target, &where)) return;
    struct builder text;
    builder_init(&text);
    query_hover(place.query, &target, &text);
    if (text.failed) mem_exhausted();
    builder_text(request->out, "{\"contents\":{\"kind\":\"markdown\",\"value\":");
    lsp_put_text(request->out, builder_view(&text));
    builder_text(request->out, "},\"range\":");
    lsp_put_range(request->out, &place.lines, where.start, where.end);
    builder_u8(request->out, '}');
    builder_fini(&text);
}

void lsp_definition(struct lsp_request *request)
{
    struct lsp_place place;
    struct query_target target;
    struct query_place where, definition;
    if (!lsp_request_target(request, &place, &target, &where)) return;
    bool known = query_definition(place.query, &target, &definition);
    if (!known || !lsp_answer_location(request, place.query, &definition)) builder_text(request->out, "null");
}

/* The uses that the document's own program has: files that import this one and are not open are not looked through. */
void lsp_references(struct lsp_request *request)
{
    struct lsp_place place;
    struct query_target target;
    struct query_place where, declaration;
    uint32_t count;
    if (!lsp_request_target(request, &place, &target, &where)) return;
    bool with_declaration = lsp_json_true(lsp_json_at(request->params, "context.includeDeclaration"));
    bool declared = query_declaration(place.query, &target, &declaration);
    const struct query_place *uses = query_references(place.query, &target, request->arena, &count);
    bool some = false;
    builder_u8(request->out, '[');
    for (uint32_t i = 0; i < count; i++) {
        bool is_declaration =
            declared && uses[i].file == declaration.file && uses[i].start == declaration.start;
        if (is_declaration && !with_declaration) continue;
        if (query_file_at(place.query, uses[i].file).is_std) continue;
        size_t before = request->out->count;
        if (some) builder_u8(request->out, ',');
        if (lsp_answer_location(request, place.query, &uses[i]))
            some = true;
        else
            request->out->count = before;
    }
    builder_u8(request->out, ']');
}

void lsp_highlight(struct lsp_request *request)
{
    struct lsp_place place;
    struct query_target target;
    struct query_place where;
    uint32_t count;
    if (!lsp_request_target(request, &place, &target, &where)) return;
    const struct query_place *uses = query_references(place.query, &target, request->arena, &count);
    bool some = false;
    builder_u8(request->out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (uses[i].file != 0) continue;
        builder_text(request->out, some ? ",{\"range\":" : "{\"range\":");
        lsp_put_range(request->out, &place.lines, uses[i].start, uses[i].end);
        builder_u8(request->out, '}');
        some = true;
    }
    builder_u8(request->out, ']');
}

/* -- completion ---------------------------------------------------------------------------------------------------- */

/* By enum query_item_kind: CompletionItemKind and SymbolKind of the protocol. */
static const struct {
    uint8_t completion, symbol;
} lsp_answer_kinds[] = {
    [QUERY_ITEM_KEYWORD] = {14, 0},  [QUERY_ITEM_VARIABLE] = {6, 13}, [QUERY_ITEM_CONSTANT] = {21, 14},
    [QUERY_ITEM_FUNCTION] = {3, 12}, [QUERY_ITEM_RECORD] = {22, 23},  [QUERY_ITEM_MODULE] = {9, 2},
    [QUERY_ITEM_FIELD] = {5, 8},     [QUERY_ITEM_KIND] = {25, 26},    [QUERY_ITEM_TEST] = {1, 6},
};

void lsp_complete(struct lsp_request *request)
{
    struct lsp_place place;
    uint32_t count = 0;
    if (!lsp_request_place(request, &place)) return;
    const struct query_item *items = NULL;
    if (query_file_count(place.query) > 0)
        items = query_complete(place.query, 0, place.offset, request->arena, &count);
    struct builder *out = request->out;
    builder_u8(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        builder_text(out, i ? ",{\"label\":" : "{\"label\":");
        lsp_put_text(out, items[i].name);
        builder_printf(out, ",\"kind\":%d,\"sortText\":", lsp_answer_kinds[items[i].kind].completion);
        struct builder order;
        builder_init(&order);
        builder_printf(&order, "%d", items[i].other_spelling + 2 * (items[i].kind == QUERY_ITEM_KEYWORD));
        builder_bytes(&order, items[i].name);
        lsp_put_text(out, builder_view(&order));
        builder_fini(&order);
        if (items[i].detail.count) {
            builder_text(out, ",\"detail\":");
            lsp_put_text(out, items[i].detail);
        }
        if (items[i].doc.count) {
            builder_text(out, ",\"documentation\":{\"kind\":\"markdown\",\"value\":");
            lsp_put_text(out, items[i].doc);
            builder_u8(out, '}');
        }
        builder_u8(out, '}');
    }
    builder_u8(out, ']');
}

/* -- outline ------------------------------------------------------------------------------------------------------- */

static void lsp_answer_symbol(struct lsp_request *request, const struct lsp_place *place,
                              const struct query_outline *item)
{
    struct builder *out = request->out;
    builder_text(out, "{\"name\":");
    lsp_put_text(out, item->name.count ? item->name : CY_BYTES("?"));
    builder_printf(out, ",\"kind\":%d,\"range\":", lsp_answer_kinds[item->kind].symbol);
    lsp_put_range(out, &place->lines, item->whole.start, item->whole.end);
    builder_text(out, ",\"selectionRange\":");
    lsp_put_range(out, &place->lines, item->word.start, item->word.end);
    builder_text(out, ",\"children\":[");
}

void lsp_symbols(struct lsp_request *request)
{
    struct lsp_place place;
    uint32_t count = 0, depth = 0;
    if (!lsp_request_document(request, &place)) return;
    const struct query_outline *items = NULL;
    if (query_file_count(place.query) > 0) items = query_outline(place.query, 0, request->arena, &count);
    builder_u8(request->out, '[');
    for (uint32_t i = 0; i < count; i++) {
        /* An item stays open until the next one that is not inside it. */
        if (i > 0 && items[i].depth <= depth)
            for (uint32_t level = items[i].depth; level <= depth; level++) builder_text(request->out, "]}");
        if (i > 0 && items[i].depth <= depth) builder_u8(request->out, ',');
        lsp_answer_symbol(request, &place, &items[i]);
        depth = items[i].depth;
    }
    for (uint32_t level = 0; count > 0 && level <= depth; level++) builder_text(request->out, "]}");
    builder_u8(request->out, ']');
}

/* -- formatting ---------------------------------------------------------------------------------------------------- */

/* One edit, without the lines at both ends that stay: the client's cursors and marks stay with them. */
static void lsp_answer_edit(struct lsp_request *request, const struct lsp_lines *lines, cy_bytes after)
{
    cy_bytes before = lines->text;
    size_t start = 0, end = 0, common = cy_min_size(before.count, after.count);
    for (size_t i = 0; i < common && before.data[i] == after.data[i]; i++)
        if (before.data[i] == '\n') start = i + 1;
    for (size_t i = 1; i <= common - start; i++) {
        if (before.data[before.count - i] != after.data[after.count - i]) break;
        if (before.data[before.count - i] == '\n') end = i - 1;
    }
    builder_text(request->out, "[{\"range\":");
    lsp_put_range(request->out, lines, (uint32_t)start, (uint32_t)(before.count - end));
    builder_text(request->out, ",\"newText\":");
    lsp_put_text(request->out, cy_bytes_slice(after, start, after.count - end));
    builder_text(request->out, "}]");
}

/* A source with mistakes is not laid out: its diagnostics say why, so the answer is just null. */
void lsp_format(struct lsp_request *request)
{
    struct lsp_place place;
    if (!lsp_request_document(request, &place)) return;
    struct fmt_options options = {.korean = request->server->options->korean};
    struct builder formatted, messages;
    builder_init(&formatted);
    builder_init(&messages);
    cy_err err =
        fmt_source(builder_view(&place.document->path), place.lines.text, &options, &formatted, &messages);
    if (cy_failed(err))
        builder_text(request->out, "null");
    else if (cy_bytes_equal(place.lines.text, builder_view(&formatted)))
        builder_text(request->out, "[]");
    else
        lsp_answer_edit(request, &place.lines, builder_view(&formatted));
    builder_fini(&formatted);
    builder_fini(&messages);
}
