/* SPDX-License-Identifier: MIT
 *
 * compiler/diag_json.c: one message for programs: a JSON object on a line of its own.
 *
 * In:   struct diag. Out: members in this order; docs/DIAGNOSTICS.md describes them:
 *
 *       {"code":"E0043","severity":"error","file":"main.han","line":3,"column":9,"end_line":3,"end_column":10,
 *        "start_byte":31,"end_byte":32,"message":"...","hint":"..."|null,
 *        "related":[{"file":...,"line":...,...,"end_byte":...,"message":"declared here"}]}
 *
 * Invariant: always UTF-8 and always one line, whatever the source holds. A message about no place has no file: null,
 *            and zeros.
 */
#include "compiler/diag_internal.h"

static void diag_json_put_text(struct builder *out, cy_bytes text)
{
    builder_u8(out, '"');
    for (size_t i = 0; i < text.count; i++) {
        uint8_t byte = text.data[i];
        if (byte == '"' || byte == '\\') {
            builder_u8(out, '\\');
            builder_u8(out, byte);
        } else if (byte < 0x20) {
            builder_printf(out, "\\u%04x", byte);
        } else {
            builder_u8(out, byte);
        }
    }
    builder_u8(out, '"');
}

static void diag_json_put_name(struct builder *out, const char *name)
{
    builder_printf(out, ",\"%s\":", name);
}

/* Members file to end_byte. Columns count code points from 1; the end is the place behind the last one. */
static void diag_json_put_place(struct builder *out, const struct source *source, struct span span,
                                const struct diag_style *style)
{
    builder_text(out, "\"file\":");
    if (source) {
        struct builder file;
        builder_init(&file);
        diag_put_file(&file, source, style);
        diag_json_put_text(out, builder_view(&file));
        builder_fini(&file);
    } else {
        builder_text(out, "null");
    }
    uint32_t line = span.line, column = span.column;
    for (size_t i = span.start; source && i < span.end && i < source->text.count; i++) {
        uint8_t byte = source->text.data[i];
        if (byte == '\n')
            line++, column = 1;
        else if ((byte & 0xC0) != 0x80)
            column++;
    }
    uint32_t end = span.end > span.start ? span.end : span.start;
    builder_printf(out, ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u", span.line,
                   span.column, line, column);
    builder_printf(out, ",\"start_byte\":%u,\"end_byte\":%u", span.start, end);
}

void diag_json_put(struct builder *out, const struct diag *diag, const struct diag_style *style)
{
    char code[DIAG_CODE_TEXT_BYTES];
    diag_code_text(diag->code, code);
    builder_printf(out, "{\"code\":\"%s\",\"severity\":\"%s\",", code,
                   diag_is_warning(diag->code) ? "warning" : "error");
    diag_json_put_place(out, diag->source, diag->span, style);

    struct builder text;
    builder_init(&text);
    diag_put_message(&text, diag, style->korean);
    diag_json_put_name(out, "message");
    diag_json_put_text(out, builder_view(&text));
    builder_clear(&text);
    diag_json_put_name(out, "hint");
    if (diag_put_hint(&text, diag, style->korean))
        diag_json_put_text(out, builder_view(&text));
    else
        builder_text(out, "null");
    builder_fini(&text);

    diag_json_put_name(out, "related");
    builder_u8(out, '[');
    if (diag->label) {
        builder_u8(out, '{');
        diag_json_put_place(out, diag->label_source, diag->label_span, style);
        diag_json_put_name(out, "message");
        diag_json_put_text(out, cy_bytes_from_text(diag_label_text(diag->label, style->korean)));
        builder_u8(out, '}');
    }
    builder_text(out, "]}\n");
}
