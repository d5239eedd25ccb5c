/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_fault.c: see rpn_fault.h.
 */
#include "vm/code/rpn_fault.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"

#include <stdlib.h>

enum {
    RPN_FAULT_ARGUMENTS_MAX = 3,
    RPN_FAULT_NEAREST_MAX = 80,  /* a search goes through every name */
    RPN_FAULT_LINE_BYTES = 160,  /* of a very long line, what is shown before the caret and behind it */
    RPN_FAULT_SHOWN_BYTES = 200, /* of a very long argument */
};

struct rpn_fault_item {
    struct rpn_place place;
    size_t text_start, text_bytes;
    size_t nearest_bytes; /* behind the text */
    uint32_t order;
    bool is_note;
};

static const struct {
    const char *korean, *english;
} rpn_fault_rows[RPN_FAULT_COUNT] = {
#define RPN_FAULT(name, korean, english) {korean, english},
#include "vm/code/rpn_fault.def"
#undef RPN_FAULT
};

void rpn_faults_init(struct rpn_faults *faults, cy_bytes file, cy_bytes text, bool korean)
{
    *faults = (struct rpn_faults){.file = file, .text = text, .korean = korean};
    builder_init(&faults->items);
    builder_init(&faults->texts);
}

void rpn_faults_fini(struct rpn_faults *faults)
{
    builder_fini(&faults->items);
    builder_fini(&faults->texts);
}

bool rpn_faults_want_nearest(const struct rpn_faults *faults)
{
    return faults->kept_count < RPN_FAULT_NEAREST_MAX;
}

/* -- text ------------------------------------------------------------------------------------------------ */

/* What a terminal would not show as itself becomes U+FFFD, one column wide. */
static void rpn_fault_put(struct builder *out, cy_bytes text)
{
    for (size_t at = 0, length; at < text.count; at += length) {
        uint32_t code_point;
        bool valid = text_decode(cy_bytes_skip(text, at), &code_point, &length);
        bool hidden = !valid || (code_point < 0x20 && code_point != '\t') ||
                      (code_point >= 0x7f && code_point < 0xa0) || text_is_bidi_control(code_point);
        text_encode(out, hidden ? 0xFFFD : code_point);
    }
}

static void rpn_fault_put_argument(struct builder *out, cy_bytes argument)
{
    size_t end = argument.count;
    if (end > RPN_FAULT_SHOWN_BYTES) {
        end = RPN_FAULT_SHOWN_BYTES;
        while (end > 0 && (argument.data[end] & 0xC0) == 0x80) end--;
    }
    rpn_fault_put(out, cy_bytes_slice(argument, 0, end));
    if (end < argument.count) builder_text(out, "...");
}

static void rpn_fault_put_template(struct builder *out, const char *text, const cy_bytes *arguments)
{
    for (const char *c = text; *c;) {
        bool place = *c == '{' && c[1] >= '0' && c[1] < '0' + RPN_FAULT_ARGUMENTS_MAX && c[2] == '}';
        if (place) {
            rpn_fault_put_argument(out, arguments[c[1] - '0']);
            c += 3;
        } else {
            builder_u8(out, (uint8_t)*c++);
        }
    }
}

void rpn_fault_report(struct rpn_faults *faults, struct rpn_place place, enum rpn_fault fault,
                      cy_bytes argument_0, cy_bytes argument_1, cy_bytes argument_2, cy_bytes nearest)
{
    CHECK(fault < RPN_FAULT_COUNT);
    bool is_note = fault == RPN_FAULT_FLOAT_ROUNDED;
    if (!is_note) faults->error_count++;
    if (fault == RPN_FAULT_UNKNOWN_WORD) faults->unknown_count++;
    if (faults->kept_count == LIMIT_COMPILE_ERRORS) return;

    const cy_bytes arguments[RPN_FAULT_ARGUMENTS_MAX] = {argument_0, argument_1, argument_2};
    struct rpn_fault_item item = {.place = place, .order = faults->kept_count, .is_note = is_note};
    item.text_start = faults->texts.count;
    rpn_fault_put_template(&faults->texts,
                           faults->korean ? rpn_fault_rows[fault].korean : rpn_fault_rows[fault].english,
                           arguments);
    item.text_bytes = faults->texts.count - item.text_start;
    rpn_fault_put_argument(&faults->texts, nearest);
    item.nearest_bytes = faults->texts.count - item.text_start - item.text_bytes;
    builder_bytes(&faults->items, cy_bytes_of(&item, sizeof item));
    if (faults->items.failed || faults->texts.failed) faults->no_memory = true;
    if (!faults->no_memory) faults->kept_count++;
}

/* -- showing --------------------------------------------------------------------------------------------- */

static int rpn_fault_compare(const void *left, const void *right)
{
    const struct rpn_fault_item *a = left, *b = right;
    if (a->place.offset != b->place.offset) return a->place.offset < b->place.offset ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* The bytes of the line that holds `offset`, cut to a window around it when the line is very long. */
static cy_bytes rpn_fault_line(cy_bytes text, size_t offset, size_t *before_out)
{
    size_t start = offset, end = offset;
    while (start > 0 && text.data[start - 1] != '\n' && offset - start < RPN_FAULT_LINE_BYTES) start--;
    while (end < text.count && text.data[end] != '\n' && end - offset < RPN_FAULT_LINE_BYTES) end++;
    while (start < offset && (text.data[start] & 0xC0) == 0x80) start++; /* not inside a code point */
    while (end < text.count && end > offset && (text.data[end] & 0xC0) == 0x80) end--;
    if (end > start && text.data[end - 1] == '\r') end--;
    *before_out = offset - start;
    return cy_bytes_slice(text, start, cy_max_size(end, offset));
}

static size_t rpn_fault_width(cy_bytes text)
{
    struct builder shown;
    builder_init(&shown);
    rpn_fault_put(&shown, text);
    size_t width = text_width(builder_view(&shown));
    builder_fini(&shown);
    return width;
}

static void rpn_fault_put_line(const struct rpn_faults *faults, struct rpn_place place, struct builder *out)
{
    size_t before_bytes;
    cy_bytes line =
        rpn_fault_line(faults->text, cy_min_size(place.offset, faults->text.count), &before_bytes);
    builder_text(out, "    ");
    rpn_fault_put(out, line);
    builder_text(out, "\n    ");
    for (size_t at = 0, length; at < before_bytes; at += length) {
        uint32_t code_point;
        (void)!text_decode(cy_bytes_skip(line, at), &code_point, &length);
        size_t width = rpn_fault_width(cy_bytes_slice(line, at, at + length));
        if (line.data[at] == '\t')
            builder_u8(out, '\t');
        else
            for (; width > 0; width--) builder_u8(out, ' ');
    }
    size_t carets = rpn_fault_width(cy_bytes_slice(line, before_bytes, before_bytes + place.bytes));
    for (carets = carets ? carets : 1; carets > 0; carets--) builder_u8(out, '^');
    builder_u8(out, '\n');
}

static void rpn_fault_put_item(const struct rpn_faults *faults, const struct rpn_fault_item *item,
                               struct builder *out)
{
    static const char *const kinds[2][2] = {{"error", "note"}, {"오류", "알림"}};
    cy_bytes texts = builder_view(&faults->texts);
    size_t text_end = item->text_start + item->text_bytes;
    rpn_fault_put(out, faults->file);
    if (item->place.line) builder_printf(out, ":%u:%u", item->place.line, item->place.column);
    builder_printf(out, ": %s: ", kinds[faults->korean][item->is_note]);
    builder_bytes(out, cy_bytes_slice(texts, item->text_start, text_end));
    builder_u8(out, '\n');
    if (item->place.line) rpn_fault_put_line(faults, item->place, out);
    if (!item->nearest_bytes) return;
    builder_text(out, faults->korean ? "  도움말: 혹시 `" : "  hint: did you mean `");
    builder_bytes(out, cy_bytes_slice(texts, text_end, text_end + item->nearest_bytes));
    builder_text(out, "`?\n");
}

void rpn_faults_render(struct rpn_faults *faults, struct builder *out)
{
    struct rpn_fault_item *items = (struct rpn_fault_item *)(void *)faults->items.data;
    if (faults->kept_count) qsort(items, faults->kept_count, sizeof *items, rpn_fault_compare);
    uint32_t shown_count = 0;
    for (uint32_t i = 0; i < faults->kept_count; i++) {
        rpn_fault_put_item(faults, &items[i], out);
        shown_count += !items[i].is_note;
    }
    uint32_t hidden_count = faults->error_count - shown_count;
    if (hidden_count)
        builder_printf(out,
                       faults->korean ? "더 있는 오류 %u건은 보이지 않았습니다\n" : "%u more are not shown\n",
                       hidden_count);
    if (faults->error_count && faults->korean)
        builder_printf(out, "오류 %u건\n", faults->error_count);
    else if (faults->error_count)
        builder_printf(out, faults->error_count == 1 ? "%u error\n" : "%u errors\n", faults->error_count);
    builder_printf(out, "미인식 단어: %u건 (unknown words: %u)\n", faults->unknown_count,
                   faults->unknown_count);
}
