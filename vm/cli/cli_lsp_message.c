/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_lsp_message.c: messages of the language server: framing, JSON as a tree, JSON text.
 *
 * In:   bytes of the client, hostile until checked.
 *
 *           Content-Length: 52 CR LF
 *           (other fields) CR LF
 *           CR LF
 *           {"jsonrpc":"2.0", ...          52 bytes
 *
 * Out:  bodies, trees in an arena.
 * Invariant: nothing is allocated by what a header claims; a body is at most LIMIT_LSP_MESSAGE_BYTES, a tree at most
 *            LIMIT_LSP_MESSAGE_VALUES. Trees are built and walked without recursion.
 */
#include "vm/cli/cli_lsp.h"

#include "vm/base/mem.h"
#include "vm/base/text.h"

/* -- framing ------------------------------------------------------------------------------------------------------- */

/* One field; false when it is Content-Length and no number that may be. */
static bool lsp_message_field(cy_bytes line, uint64_t *length_out, bool *found_out, struct builder *why)
{
    static const char name[] = "content-length";
    size_t colon = cy_bytes_find(line, ':');
    if (colon == line.count) {
        builder_text(why, "the header of a message has a line without ':'");
        return false;
    }
    if (!cy_bytes_equal_nocase(cy_bytes_slice(line, 0, colon), cy_bytes_from_text(name))) return true;
    cy_bytes digits = cy_bytes_skip(line, colon + 1);
    while (digits.count && (digits.data[0] == ' ' || digits.data[0] == '\t'))
        digits = cy_bytes_skip(digits, 1);
    while (digits.count && (digits.data[digits.count - 1] == ' ' || digits.data[digits.count - 1] == '\t'))
        digits.count--;
    if (*found_out || !cy_bytes_parse_u64(digits, UINT64_MAX, length_out)) {
        builder_text(why, "Content-Length is no number, or stands twice");
        return false;
    }
    *found_out = true;
    if (*length_out <= LIMIT_LSP_MESSAGE_BYTES) return true;
    builder_printf(why, "a message may have %d bytes (limit LSP_MESSAGE_BYTES)", LIMIT_LSP_MESSAGE_BYTES);
    return false;
}

enum lsp_frame lsp_frame_read(cy_bytes input, cy_bytes *body_out, size_t *used_out, struct builder *why)
{
    uint64_t length = 0;
    bool found = false;
    for (size_t at = 0;;) {
        cy_bytes rest = cy_bytes_slice(input, at, LIMIT_LSP_HEADER_BYTES);
        size_t end = cy_bytes_find(rest, '\n');
        if (end == rest.count) {
            if (input.count < LIMIT_LSP_HEADER_BYTES) return LSP_FRAME_MORE;
            builder_printf(why, "the header of a message may have %d bytes (limit LSP_HEADER_BYTES)",
                           LIMIT_LSP_HEADER_BYTES);
            return LSP_FRAME_BAD;
        }
        at += end + 1;
        cy_bytes line = cy_bytes_slice(rest, 0, end);
        if (line.count && line.data[line.count - 1] == '\r') line.count--;
        if (line.count && !lsp_message_field(line, &length, &found, why)) return LSP_FRAME_BAD;
        if (line.count) continue;
        if (!found) {
            builder_text(why, "the header of a message lacks Content-Length");
            return LSP_FRAME_BAD;
        }
        if (input.count - at < length) return LSP_FRAME_MORE;
        *body_out = cy_bytes_slice(input, at, at + length);
        *used_out = at + length;
        return LSP_FRAME_WHOLE;
    }
}

/* -- reading JSON -------------------------------------------------------------------------------------------------- */

static cy_bytes lsp_message_decode(struct arena *arena, const struct json_reader *reader)
{
    uint8_t *text = arena_alloc(arena, reader->decoded_count + 1);
    json_decode(reader, text);
    return cy_bytes_of(text, reader->decoded_count);
}

const struct lsp_json *lsp_json_read(struct arena *arena, cy_bytes input, struct builder *why)
{
    struct json_reader reader;
    json_reader_init(&reader, input);
    reader.big_int_is_float = true;
    struct lsp_json *parents[LIMIT_JSON_DEPTH + 1];
    struct lsp_json *root = NULL, **place = &root; /* where the next value is hung */
    uint32_t depth = 0, count = 0;
    cy_bytes key = CY_BYTES_NONE;
    for (;;) {
        enum json_event event = json_next(&reader);
        if (event == JSON_END) return root;
        if (event == JSON_FAILED) {
            builder_printf(why, "byte %zu: %s", reader.offset, json_fault_text(reader.fault, false));
            return NULL;
        }
        if (event == JSON_KEY) {
            key = lsp_message_decode(arena, &reader);
            continue;
        }
        if (event == JSON_LIST_END || event == JSON_MAP_END) {
            place = &parents[--depth]->next;
            continue;
        }
        if (++count > LIMIT_LSP_MESSAGE_VALUES) {
            builder_printf(why, "a message may have %d values (limit LSP_MESSAGE_VALUES)",
                           LIMIT_LSP_MESSAGE_VALUES);
            return NULL;
        }
        struct lsp_json *value = arena_alloc_zeroed(arena, sizeof *value);
        value->kind = event;
        value->key = key;
        value->integer = reader.int_value;
        if (event == JSON_TEXT) value->text = lsp_message_decode(arena, &reader);
        key = CY_BYTES_NONE;
        *place = value;
        place = &value->next;
        if (event != JSON_LIST_BEGIN && event != JSON_MAP_BEGIN) continue;
        parents[depth++] = value;
        place = &value->child;
    }
}

/* The last of equal keys, as most readers of JSON do. */
static const struct lsp_json *lsp_message_member(const struct lsp_json *json, cy_bytes key)
{
    const struct lsp_json *found = NULL;
    if (json->kind != JSON_MAP_BEGIN) return NULL;
    for (const struct lsp_json *child = json->child; child; child = child->next)
        if (cy_bytes_equal(child->key, key)) found = child;
    return found;
}

const struct lsp_json *lsp_json_at(const struct lsp_json *json, const char *path)
{
    cy_bytes rest = cy_bytes_from_text(path);
    while (json && rest.count) {
        size_t dot = cy_bytes_find(rest, '.');
        json = lsp_message_member(json, cy_bytes_slice(rest, 0, dot));
        rest = cy_bytes_skip(rest, dot + 1);
    }
    return json;
}

cy_bytes lsp_json_text(const struct lsp_json *json)
{
    return json && json->kind == JSON_TEXT ? json->text : CY_BYTES_NONE;
}

bool lsp_json_u32(const struct lsp_json *json, uint32_t *number_out)
{
    if (!json || json->kind != JSON_INT || json->integer < 0) return false;
    /* A client that has no better idea says INT_MAX for the end of a line. */
    *number_out = json->integer > UINT32_MAX ? UINT32_MAX : (uint32_t)json->integer;
    return true;
}

bool lsp_json_true(const struct lsp_json *json) { return json && json->kind == JSON_TRUE; }

/* -- writing JSON -------------------------------------------------------------------------------------------------- */

void lsp_put_text(struct builder *out, cy_bytes text)
{
    size_t bad, count = out->count;
    if (json_write_text(out, text, &bad)) return;
    out->count = count;
    struct builder clean;
    builder_init(&clean);
    for (size_t offset = 0; offset < text.count;) {
        uint32_t code_point;
        size_t length;
        bool valid = text_decode(cy_bytes_skip(text, offset), &code_point, &length);
        text_encode(&clean, valid ? code_point : 0xFFFD);
        offset += length;
    }
    if (clean.failed || !json_write_text(out, builder_view(&clean), &bad)) mem_exhausted();
    builder_fini(&clean);
}
