/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_lsp_document.c: open documents: texts, URIs, positions, and the compiled program of each.
 *
 * In:   texts of the client. Out: queries, which read documents before the disk.
 * Invariant: each open document is the main of a query of its own, so that its program is known whether anything
 *            imports it or not. A query is compiled again when it is asked for and a file of its program has changed.
 */
#include "vm/cli/cli_lsp.h"

#include "compiler/source_file.h"
#include "compiler/stdlib.h"
#include "vm/base/hash.h"
#include "vm/base/mem.h"
#include "vm/base/path.h"
#include "vm/base/text.h"
#include "vm/base/url.h"
#include "vm/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- URIs ---------------------------------------------------------------------------------------------------------- */

bool lsp_path_of_uri(cy_bytes uri, struct builder *path)
{
    cy_bytes scheme = CY_BYTES("file://");
    if (uri.count == 0 || uri.count > LIMIT_PATH_BYTES) return false;
    for (size_t i = 0; i < uri.count; i++)
        if (uri.data[i] < 0x20 || uri.data[i] == 0x7f) return false;
    if (uri.count < scheme.count || !cy_bytes_equal_nocase(cy_bytes_slice(uri, 0, scheme.count), scheme)) {
        builder_bytes(path, uri);
        return true;
    }
    cy_bytes rest = cy_bytes_skip(uri, scheme.count);
    size_t offset;
    rest = cy_bytes_skip(rest,
                         cy_bytes_find(rest, '/')); /* a host is this machine, or none that we could read */
    struct builder decoded;
    builder_init(&decoded);
    bool good = rest.count > 0 && url_decode(&decoded, rest, false, &offset);
    good = good && cy_bytes_find(builder_view(&decoded), 0) == decoded.count;
    if (good) path_normalise(builder_view(&decoded), path);
    builder_fini(&decoded);
    return good;
}

void lsp_put_uri(const struct lsp_server *server, cy_bytes path, struct builder *out)
{
    const struct lsp_document *document = lsp_find_document(server, path);
    if (document) {
        builder_bytes(out, builder_view(&document->uri));
        return;
    }
    builder_text(out, "file://");
    url_encode(out, path, "/");
}

/* -- documents ----------------------------------------------------------------------------------------------------- */

struct lsp_document *lsp_find_document(const struct lsp_server *server, cy_bytes path)
{
    for (struct lsp_document *document = server->documents; document; document = document->next)
        if (cy_bytes_equal(builder_view(&document->path), path)) return document;
    return NULL;
}

void lsp_documents_dirty(struct lsp_server *server)
{
    for (struct lsp_document *document = server->documents; document; document = document->next)
        document->dirty = true;
    server->publish_wanted = true;
}

/* Programs that `path` is a file of; those with errors may have missed it. */
static void lsp_document_touch(struct lsp_server *server, cy_bytes path)
{
    uint32_t file;
    for (struct lsp_document *document = server->documents; document; document = document->next)
        if (!document->query || query_has_errors(document->query) ||
            lsp_find_file(document->query, path, &file))
            document->dirty = true;
    server->publish_wanted = true;
}

static void lsp_document_set(struct lsp_server *server, struct lsp_document *document, cy_bytes text)
{
    builder_clear(&document->text);
    builder_bytes(&document->text, text);
    if (document->text.failed) mem_exhausted();
    document->dirty = true;
    lsp_document_touch(server, builder_view(&document->path));
}

void lsp_document_open(struct lsp_server *server, cy_bytes uri, cy_bytes text)
{
    struct builder path;
    builder_init(&path);
    bool good = lsp_path_of_uri(uri, &path);
    struct lsp_document *document = good ? lsp_find_document(server, builder_view(&path)) : NULL;
    bool room = server->document_count < LIMIT_LSP_DOCUMENTS;
    if (good && !document && room) {
        document = mem_alloc_zeroed(sizeof *document);
        if (!document) mem_exhausted();
        builder_init(&document->uri);
        builder_init(&document->path);
        builder_init(&document->text);
        builder_bytes(&document->uri, uri);
        builder_bytes(&document->path, builder_view(&path));
        if (document->uri.failed || document->path.failed) mem_exhausted();
        document->std_copy = lsp_is_std_copy(builder_view(&path));
        document->next = server->documents;
        server->documents = document;
        server->document_count++;
    }
    builder_fini(&path);
    /* A client may have forgotten what it was told before. */
    const struct map_entry *told = map_find(&server->published, uri);
    if (told) ((struct lsp_published *)told->value.pointer)->round = 0;
    if (document)
        lsp_document_set(server, document, text);
    else if (good)
        fprintf(stderr, "%s: at most %d documents are open at once (limit LSP_DOCUMENTS)\n",
                server->options->name, LIMIT_LSP_DOCUMENTS);
}

void lsp_document_close(struct lsp_server *server, struct lsp_document *document)
{
    struct lsp_document **place = &server->documents;
    while (*place != document) place = &(*place)->next;
    *place = document->next;
    server->document_count--;
    lsp_document_touch(server, builder_view(&document->path));
    query_close(&document->query);
    builder_fini(&document->uri);
    builder_fini(&document->path);
    builder_fini(&document->text);
    mem_free(document);
}

/* Replaces a range. */
static void lsp_document_splice(struct lsp_server *server, struct lsp_document *document,
                                const struct lsp_json *range, cy_bytes text, struct arena *arena)
{
    struct lsp_lines lines = lsp_lines_of(builder_view(&document->text), server->utf8, arena);
    uint32_t place[4] = {0};
    static const char *const paths[] = {"start.line", "start.character", "end.line", "end.character"};
    for (size_t i = 0; i < CY_COUNT_OF(paths); i++)
        if (!lsp_json_u32(lsp_json_at(range, paths[i]), &place[i])) return;
    uint32_t start = lsp_offset(&lines, place[0], place[1]), end = lsp_offset(&lines, place[2], place[3]);
    if (end < start) end = start;
    struct builder changed;
    builder_init(&changed);
    builder_bytes(&changed, cy_bytes_slice(lines.text, 0, start));
    builder_bytes(&changed, text);
    builder_bytes(&changed, cy_bytes_skip(lines.text, end));
    if (changed.failed) mem_exhausted();
    lsp_document_set(server, document, builder_view(&changed));
    builder_fini(&changed);
}

void lsp_document_change(struct lsp_server *server, struct lsp_document *document,
                         const struct lsp_json *changes, struct arena *arena)
{
    if (!changes || changes->kind != JSON_LIST_BEGIN) return;
    for (const struct lsp_json *change = changes->child; change; change = change->next) {
        const struct lsp_json *text = lsp_json_at(change, "text"), *range = lsp_json_at(change, "range");
        if (!text || text->kind != JSON_TEXT) continue;
        if (range)
            lsp_document_splice(server, document, range, text->text, arena);
        else
            lsp_document_set(server, document, text->text);
        if (document->text.count > LIMIT_SOURCE_BYTES) { /* more than the compiler would read */
            lsp_document_close(server, document);
            return;
        }
    }
}

/* -- programs ------------------------------------------------------------------------------------------------------ */

/* The text of an edited file, a document, or else the disk's. */
cy_err lsp_read_source(void *context, const char *path, struct builder *out)
{
    const struct lsp_server *server = context;
    struct builder normal;
    builder_init(&normal);
    path_normalise(cy_bytes_from_text(path), &normal);
    cy_bytes key = path[0] == '/' ? builder_view(&normal) : cy_bytes_from_text(path);
    const struct lsp_document *document = lsp_find_document(server, key);
    const struct lsp_edited *edited = NULL;
    for (uint32_t i = 0; i < server->edited_count; i++)
        if (cy_bytes_equal(server->edited[i].path, key)) edited = &server->edited[i];
    if (edited) builder_bytes(out, edited->text);
    if (!edited && document) builder_bytes(out, builder_view(&document->text));
    builder_fini(&normal);
    return edited || document ? builder_error(out) : source_file_read(NULL, path, out);
}

struct query *lsp_open_query(struct lsp_server *server, cy_bytes path)
{
    struct builder text;
    builder_init(&text);
    builder_bytes(&text, path);
    struct compile_options options = {.path = builder_text_view(&text),
                                      .stdlib = stdlib_modules,
                                      .stdlib_count = stdlib_module_count,
                                      .korean = server->options->korean,
                                      .read_source = lsp_read_source,
                                      .context = server};
    if (!options.path) mem_exhausted();
    struct query *query = query_open(&options);
    builder_fini(&text);
    return query;
}

struct query *lsp_document_query(struct lsp_server *server, struct lsp_document *document)
{
    if (document->query && !document->dirty) return document->query;
    query_close(&document->query);
    document->query = lsp_open_query(server, builder_view(&document->path));
    document->dirty = false;
    return document->query;
}

bool lsp_find_file(const struct query *query, cy_bytes path, uint32_t *file_out)
{
    struct builder own;
    builder_init(&own);
    bool found = false;
    for (uint32_t i = 0; !found && i < query_file_count(query); i++) {
        builder_clear(&own);
        if (query_file_at(query, i).is_std || !lsp_file_path(query, i, &own)) continue;
        found = cy_bytes_equal(builder_view(&own), path);
        *file_out = i;
    }
    builder_fini(&own);
    return found;
}

/* -- standard modules ---------------------------------------------------------------------------------------------- */

/* "$XDG_CACHE_HOME/crownyc/std/" */
static bool lsp_document_std_folder(struct builder *out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct builder folder;
    builder_init(&folder);
    bool good = true;
    if (cache && cache[0] == '/')
        builder_text(&folder, cache);
    else if (home && home[0] == '/')
        builder_printf(&folder, "%s/.cache", home);
    else
        good = false;
    builder_text(&folder, "/crownyc/std");
    path_normalise(builder_view(&folder), out);
    builder_u8(out, '/');
    builder_fini(&folder);
    return good && !out->failed;
}

bool lsp_is_std_copy(cy_bytes path)
{
    struct builder folder;
    builder_init(&folder);
    bool copy = lsp_document_std_folder(&folder) && cy_bytes_start_with(path, builder_view(&folder));
    builder_fini(&folder);
    return copy;
}

static bool lsp_document_make_folders(struct builder *path)
{
    const char *text = builder_text_view(path);
    if (!text) return false;
    for (size_t i = 1; i < path->count; i++) {
        if (path->data[i] != '/') continue;
        path->data[i] = 0;
        bool made = mkdir(text, 0777) == 0 || errno == EEXIST;
        path->data[i] = '/';
        if (!made) return false;
    }
    return true;
}

/* A standard module lies in the binary; an editor can show files only. The folder's name says which text it is, so
 * that a copy is never of another version. */
static bool lsp_document_std_copy(const struct query_file *file, struct builder *path)
{
    cy_bytes name = cy_bytes_skip(file->name, sizeof "std:" - 1);
    if (!lsp_document_std_folder(path)) return false;
    builder_printf(path, "%08x/%.*s.han", (unsigned)crc32c(0, file->text), CY_BYTES_ARG(name));
    const char *text = builder_text_view(path);
    if (!text) return false;
    if (access(text, R_OK) == 0) return true;
    return lsp_document_make_folders(path) && !cy_failed(file_write(text, file->text));
}

bool lsp_file_path(const struct query *query, uint32_t index, struct builder *path)
{
    struct query_file file = query_file_at(query, index);
    if (file.is_std) return lsp_document_std_copy(&file, path);
    if (file.path.count && file.path.data[0] == '/')
        path_normalise(file.path, path);
    else
        builder_bytes(path, file.path); /* a document that is no file */
    return !path->failed;
}

/* -- positions ----------------------------------------------------------------------------------------------------- */

struct lsp_lines lsp_lines_of(cy_bytes text, bool utf8, struct arena *arena)
{
    struct lsp_lines lines = {.text = text, .utf8 = utf8};
    uint32_t capacity = 0;
    for (size_t i = 0, start = 0; i <= text.count; i++) {
        bool end = i == text.count || text.data[i] == '\n' ||
                   (text.data[i] == '\r' && (i + 1 == text.count || text.data[i + 1] != '\n'));
        if (!end) continue;
        if (lines.count == capacity) {
            uint32_t grown = capacity ? capacity * 2 : 256;
            lines.starts = arena_grow(arena, lines.starts, capacity * sizeof *lines.starts,
                                      grown * sizeof *lines.starts);
            capacity = grown;
        }
        lines.starts[lines.count++] = (uint32_t)start;
        start = i + 1;
    }
    return lines;
}

static uint32_t lsp_document_line_end(const struct lsp_lines *lines, uint32_t line)
{
    uint32_t end = line + 1 < lines->count ? lines->starts[line + 1] : (uint32_t)lines->text.count;
    while (end > lines->starts[line] &&
           (lines->text.data[end - 1] == '\n' || lines->text.data[end - 1] == '\r'))
        end--;
    return end;
}

/* What one code point counts. */
static uint32_t lsp_document_units(const struct lsp_lines *lines, uint32_t offset, uint32_t end,
                                   size_t *length_out)
{
    uint32_t code_point = 0;
    bool valid = text_decode(cy_bytes_slice(lines->text, offset, end), &code_point, length_out);
    if (lines->utf8) return (uint32_t)*length_out;
    return valid && code_point > 0xFFFF ? 2 : 1;
}

uint32_t lsp_offset(const struct lsp_lines *lines, uint32_t line, uint32_t character)
{
    if (line >= lines->count) return (uint32_t)lines->text.count;
    uint32_t offset = lines->starts[line], end = lsp_document_line_end(lines, line);
    for (uint32_t units = 0; offset < end;) {
        size_t length;
        units += lsp_document_units(lines, offset, end, &length);
        if (units > character) break;
        offset += (uint32_t)length;
    }
    return offset;
}

void lsp_put_position(struct builder *out, const struct lsp_lines *lines, uint32_t offset)
{
    uint32_t low = 0, high = lines->count, units = 0;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (lines->starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    uint32_t end = lsp_document_line_end(lines, low);
    for (uint32_t at = lines->starts[low]; at < offset && at < end;) {
        size_t length;
        units += lsp_document_units(lines, at, end, &length);
        at += (uint32_t)length;
    }
    builder_printf(out, "{\"line\":%u,\"character\":%u}", low, units);
}

void lsp_put_range(struct builder *out, const struct lsp_lines *lines, uint32_t start, uint32_t end)
{
    builder_text(out, "{\"start\":");
    lsp_put_position(out, lines, start);
    builder_text(out, ",\"end\":");
    lsp_put_position(out, lines, end < start ? start : end);
    builder_u8(out, '}');
}
