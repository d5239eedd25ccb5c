/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_lsp_publish.c: messages of the compiler, as diagnostics.
 *
 * In:   the programs of all open documents. Out: one notification for each file whose messages are not those that the
 *       client knows.
 * Invariant: what one program says of a file and another says too is said once. A file about which nothing is left to
 *            say is told of once more, empty.
 */
#include "vm/cli/cli_lsp.h"

#include "vm/base/hash.h"
#include "vm/base/mem.h"

#include <stdlib.h>

/* One message about one file. */
struct lsp_publish_item {
    cy_bytes path;
    const struct query *query;
    const struct query_diag *diag;
    uint32_t start, end;
};
struct lsp_publish_list {
    struct lsp_publish_item *items;
    uint32_t count, capacity;
    struct arena arena;
};

static void lsp_publish_add(struct lsp_publish_list *list, struct lsp_publish_item item)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 64;
        list->items =
            arena_grow(&list->arena, list->items, list->capacity * sizeof item, capacity * sizeof item);
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
}

/* What stands in a standard module is a fault of ours; what has no place is shown at the start of the document. */
static void lsp_publish_collect(struct lsp_publish_list *list, struct lsp_server *server,
                                struct lsp_document *document)
{
    struct query *query = lsp_document_query(server, document);
    uint32_t count;
    const struct query_diag *diags = query_diags(query, &list->arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        const struct query_place *place = &diags[i].place;
        struct builder path;
        builder_init(&path);
        struct lsp_publish_item item = {.query = query, .diag = &diags[i]};
        if (place->file == QUERY_NO_FILE) {
            item.path = builder_view(&document->path);
            lsp_publish_add(list, item);
        } else if (!query_file_at(query, place->file).is_std && lsp_file_path(query, place->file, &path)) {
            item.path = arena_copy(&list->arena, builder_view(&path));
            item.start = place->start;
            item.end = place->end;
            lsp_publish_add(list, item);
        }
        builder_fini(&path);
    }
}

static int lsp_publish_compare(const void *left, const void *right)
{
    const struct lsp_publish_item *a = left, *b = right;
    int order = cy_bytes_compare(a->path, b->path);
    if (!order) order = a->start < b->start ? -1 : a->start > b->start;
    if (!order) order = strcmp(a->diag->code, b->diag->code);
    return order ? order : cy_bytes_compare(a->diag->message, b->diag->message);
}

/* The text of the file a place lies in, as lines. */
static struct lsp_lines lsp_publish_lines(struct lsp_server *server, struct lsp_publish_list *list,
                                          const struct query *query, uint32_t file)
{
    cy_bytes text = file == QUERY_NO_FILE ? CY_BYTES_NONE : query_file_at(query, file).text;
    return lsp_lines_of(text, server->utf8, &list->arena);
}

static void lsp_publish_label(struct lsp_server *server, struct lsp_publish_list *list,
                              const struct lsp_publish_item *item, struct builder *out)
{
    struct builder path, uri;
    builder_init(&path);
    builder_init(&uri);
    if (lsp_file_path(item->query, item->diag->label_place.file, &path)) {
        struct lsp_lines lines = lsp_publish_lines(server, list, item->query, item->diag->label_place.file);
        lsp_put_uri(server, builder_view(&path), &uri);
        builder_text(out, ",\"relatedInformation\":[{\"location\":{\"uri\":");
        lsp_put_text(out, builder_view(&uri));
        builder_text(out, ",\"range\":");
        lsp_put_range(out, &lines, item->diag->label_place.start, item->diag->label_place.end);
        builder_text(out, "},\"message\":");
        lsp_put_text(out, item->diag->label);
        builder_text(out, "}]");
    }
    builder_fini(&path);
    builder_fini(&uri);
}

static void lsp_publish_item_json(struct lsp_server *server, struct lsp_publish_list *list,
                                  const struct lsp_publish_item *item, const struct lsp_lines *lines,
                                  struct builder *out)
{
    builder_text(out, "{\"range\":");
    lsp_put_range(out, lines, item->start, item->end);
    builder_printf(out, ",\"severity\":%d,\"code\":\"%s\",\"source\":\"crownyc\",\"message\":",
                   item->diag->warning ? 2 : 1, item->diag->code);
    lsp_put_text(out, item->diag->message);
    if (item->diag->unused) builder_text(out, ",\"tags\":[1]");
    if (item->diag->label.count) lsp_publish_label(server, list, item, out);
    builder_u8(out, '}');
}

/* Tells of one file, unless the client knows. `items` is JSON. */
static void lsp_publish_file(struct lsp_server *server, cy_bytes uri, cy_bytes items)
{
    bool inserted;
    struct map_entry *entry = map_insert(&server->published, uri, &inserted);
    if (!entry) mem_exhausted();
    if (inserted) entry->value.pointer = arena_alloc_zeroed(&server->arena, sizeof(struct lsp_published));
    struct lsp_published *known = entry->value.pointer;
    uint64_t hash = hash_bytes((hash_seed){0, 0}, items);
    bool same = known->round && known->hash == hash;
    known->hash = hash;
    known->round = server->publish_round;
    if (same) return;
    struct builder body;
    builder_init(&body);
    builder_text(&body,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/publishDiagnostics\",\"params\":{\"uri\":");
    lsp_put_text(&body, uri);
    builder_text(&body, ",\"diagnostics\":[");
    builder_bytes(&body, items);
    builder_text(&body, "]}}");
    if (body.failed) mem_exhausted();
    lsp_send(server, builder_view(&body));
    builder_fini(&body);
}

/* Items [start, end) are about one file. */
static void lsp_publish_group(struct lsp_server *server, struct lsp_publish_list *list, uint32_t start,
                              uint32_t end)
{
    struct lsp_publish_item *items = list->items;
    struct lsp_lines lines =
        lsp_publish_lines(server, list, items[start].query, items[start].diag->place.file);
    struct builder json, uri;
    builder_init(&json);
    builder_init(&uri);
    for (uint32_t i = start; i < end; i++) {
        if (i > start && lsp_publish_compare(&items[i - 1], &items[i]) == 0) continue;
        if (i > start) builder_u8(&json, ',');
        lsp_publish_item_json(server, list, &items[i], &lines, &json);
    }
    lsp_put_uri(server, items[start].path, &uri);
    if (json.failed || uri.failed) mem_exhausted();
    lsp_publish_file(server, builder_view(&uri), builder_view(&json));
    builder_fini(&json);
    builder_fini(&uri);
}

void lsp_publish(struct lsp_server *server)
{
    struct lsp_publish_list list = {0};
    arena_init(&list.arena, 0);
    list.arena.exit_when_exhausted = true;
    server->publish_wanted = false;
    server->publish_round++;
    for (struct lsp_document *document = server->documents; document; document = document->next)
        if (!document->std_copy) lsp_publish_collect(&list, server, document);
    if (list.count) qsort(list.items, list.count, sizeof *list.items, lsp_publish_compare);
    for (uint32_t start = 0, end; start < list.count; start = end) {
        for (end = start + 1;
             end < list.count && cy_bytes_equal(list.items[end].path, list.items[start].path);)
            end++;
        lsp_publish_group(server, &list, start, end);
    }
    /* Files about which there was something to say and is nothing now; documents are told of even when all is well. */
    for (uint32_t i = 0; i < server->published.count; i++) {
        struct lsp_published *known = server->published.entries[i].value.pointer;
        if (known->round && known->round != server->publish_round)
            lsp_publish_file(server, server->published.entries[i].key, CY_BYTES_NONE);
    }
    for (struct lsp_document *document = server->documents; document; document = document->next) {
        const struct map_entry *entry = map_find(&server->published, builder_view(&document->uri));
        if (!entry || !((const struct lsp_published *)entry->value.pointer)->round)
            lsp_publish_file(server, builder_view(&document->uri), CY_BYTES_NONE);
    }
    arena_fini(&list.arena);
}
