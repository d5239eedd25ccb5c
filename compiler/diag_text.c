/* SPDX-License-Identifier: MIT
 *
 * compiler/diag_text.c: one message for people: where, what, the source line, carets under it, a second place, a hint.
 *
 * In:   struct diag. Out: lines of text.
 * Invariant: a caret stands under the right column of a terminal: tabs are kept as tabs, Hangul is two wide, combining
 *            marks have no width. Of a very long line only the part around the place is shown, whatever its length.
 * Not here: the words (diag.c).
 */
#include "compiler/diag_internal.h"
#include "vm/base/text.h"

enum {
    DIAG_TEXT_BYTES_BEFORE = 96,  /* of a long line, what is shown before the place */
    DIAG_TEXT_BYTES_BEHIND = 144, /* and from its start on */
};

enum diag_text_color { DIAG_TEXT_PLAIN, DIAG_TEXT_RED, DIAG_TEXT_YELLOW, DIAG_TEXT_BLUE, DIAG_TEXT_CYAN };

static void diag_text_color(struct builder *out, const struct diag_style *style, enum diag_text_color color)
{
    static const char *const codes[] = {"\x1b[0m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1;36m"};
    if (style->color) builder_text(out, codes[color]);
}

/* The part of a line that is shown. */
struct diag_text_window {
    cy_bytes line;
    size_t before_bytes; /* the place, inside `line` */
    bool cut_before, cut_behind;
};

/* Whether a window may begin or end before this byte: not inside a code point, nor before a mark that would then hang
 *                                                     on
 * nothing. */
static bool diag_text_is_border(cy_bytes text, size_t offset)
{
    uint32_t code_point;
    size_t length;
    if (offset >= text.count) return true;
    if ((text.data[offset] & 0xC0) == 0x80) return false;
    return !text_decode(cy_bytes_skip(text, offset), &code_point, &length) ||
           text_width(cy_bytes_slice(text, offset, offset + length)) > 0;
}

static struct diag_text_window diag_text_find(cy_bytes text, size_t offset)
{
    size_t start = offset, end = offset;
    while (start > 0 && text.data[start - 1] != '\n' && offset - start < DIAG_TEXT_BYTES_BEFORE) start--;
    while (end < text.count && text.data[end] != '\n' && end - offset < DIAG_TEXT_BYTES_BEHIND) end++;
    bool cut_before = start > 0 && text.data[start - 1] != '\n';
    bool cut_behind = end < text.count && text.data[end] != '\n';
    while (cut_before && start < offset && !diag_text_is_border(text, start)) start++;
    while (cut_behind && end > offset && !diag_text_is_border(text, end)) end--;
    if (end > offset && text.data[end - 1] == '\r') end--;
    return (struct diag_text_window){cy_bytes_slice(text, start, end), offset - start, cut_before,
                                     cut_behind};
}

static size_t diag_text_shown_width(cy_bytes text)
{
    struct builder shown;
    builder_init(&shown);
    diag_put_text(&shown, text);
    size_t width = text_width(builder_view(&shown));
    builder_fini(&shown);
    return width;
}

/* The line that holds `span`, and `mark` under each column of it. */
static void diag_text_put_line(struct builder *out, const struct source *source, struct span span, char mark,
                               const struct diag_style *style, enum diag_text_color color)
{
    cy_bytes text = source->text;
    struct diag_text_window window = diag_text_find(text, cy_min_size(span.start, text.count));
    builder_text(out, window.cut_before ? "    …" : "    ");
    diag_put_text(out, window.line);
    builder_text(out, window.cut_behind ? "…\n    " : "\n    ");
    if (window.cut_before) builder_u8(out, ' ');

    for (size_t offset = 0; offset < window.before_bytes;) {
        uint32_t code_point;
        size_t length;
        (void)!text_decode(cy_bytes_skip(window.line, offset), &code_point, &length);
        size_t width = diag_text_shown_width(cy_bytes_slice(window.line, offset, offset + length));
        if (window.line.data[offset] == '\t')
            builder_u8(out, '\t');
        else
            for (; width > 0; width--) builder_u8(out, ' ');
        offset += length;
    }
    size_t span_bytes = span.end > span.start ? span.end - span.start : 0;
    size_t marks = diag_text_shown_width(
        cy_bytes_slice(window.line, window.before_bytes, window.before_bytes + span_bytes));
    diag_text_color(out, style, color);
    for (marks = marks ? marks : 1; marks > 0; marks--) builder_u8(out, (uint8_t)mark);
    diag_text_color(out, style, DIAG_TEXT_PLAIN);
    builder_u8(out, '\n');
}

static void diag_text_put_place(struct builder *out, const struct source *source, struct span span,
                                const struct diag_style *style)
{
    diag_put_file(out, source, style);
    builder_printf(out, ":%u:%u: ", span.line, span.column);
}

static void diag_text_put_label(struct builder *out, const struct diag *diag, const struct diag_style *style)
{
    builder_text(out, "  ");
    diag_text_put_place(out, diag->label_source, diag->label_span, style);
    diag_text_color(out, style, DIAG_TEXT_BLUE);
    builder_text(out, diag_label_text(diag->label, style->korean));
    diag_text_color(out, style, DIAG_TEXT_PLAIN);
    builder_u8(out, '\n');
    diag_text_put_line(out, diag->label_source, diag->label_span, '-', style, DIAG_TEXT_BLUE);
}

void diag_text_put(struct builder *out, const struct diag *diag, const struct diag_style *style)
{
    bool warning = diag_is_warning(diag->code);
    enum diag_text_color color = warning ? DIAG_TEXT_YELLOW : DIAG_TEXT_RED;
    char code[DIAG_CODE_TEXT_BYTES];
    diag_code_text(diag->code, code);
    if (diag->source) diag_text_put_place(out, diag->source, diag->span, style);
    diag_text_color(out, style, color);
    builder_printf(out, "%s %s: ",
                   style->korean ? warning ? "경고" : "오류"
                   : warning     ? "warning"
                                 : "error",
                   code);
    diag_text_color(out, style, DIAG_TEXT_PLAIN);
    diag_put_message(out, diag, style->korean);
    builder_u8(out, '\n');
    if (diag->source) diag_text_put_line(out, diag->source, diag->span, '^', style, color);
    if (diag->label) diag_text_put_label(out, diag, style);

    struct builder hint;
    builder_init(&hint);
    if (diag_put_hint(&hint, diag, style->korean)) {
        diag_text_color(out, style, DIAG_TEXT_CYAN);
        builder_text(out, style->korean ? "  도움말: " : "  hint: ");
        diag_text_color(out, style, DIAG_TEXT_PLAIN);
        builder_bytes(out, builder_view(&hint));
        builder_u8(out, '\n');
    }
    builder_fini(&hint);
}
