/* SPDX-License-Identifier: MIT
 *
 * vm/run/profile_svg.c: a profile as one SVG file that any browser shows.
 *
 * In:   the tree of frames. Out: a flame graph: the root below, callees above their callers, widths by share.
 * Method: every frame is an <svg> of its own inside the picture, so that the browser clips its name, whatever font and
 *       script it is in; nothing here measures text. The <title> is what hovering shows. Siblings are sorted by name,
 *       so that equal profiles give equal pictures.
 * Invariant: no script, nothing fetched. Names are escaped: a program chooses them.
 */
#include "vm/run/profile.h"

#include "vm/base/hash.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/run/profile_internal.h"

#include <stdlib.h>

enum {
    PROFILE_SVG_WIDTH = 1200,
    PROFILE_SVG_MARGIN = 10,
    PROFILE_SVG_ROW = 18,        /* one frame */
    PROFILE_SVG_HEAD = 58,       /* title and legend */
    PROFILE_SVG_LETTERS_MIN = 24 /* narrower frames get no name: there is no room for two letters */
};
#define PROFILE_SVG_FRAME_MIN 0.15 /* narrower ones are not drawn: nobody can see or point at them */

/* One frame of the picture. */
struct profile_svg_box {
    cy_bytes name;
    uint32_t index; /* of the frame */
    uint32_t parent;
    uint32_t depth;
    double x, width;
    double next_x; /* where its next child begins */
};

struct profile_svg {
    struct profile_frame *frames;   /* own, with totals */
    struct profile_svg_box *boxes;  /* by frame */
    struct profile_svg_box **order; /* by parent, then name */
    struct builder names;
    uint32_t count;
    uint32_t depth_max;
};

static void profile_svg_text(cy_bytes text, struct builder *out)
{
    while (text.count > 0) {
        uint32_t code_point;
        size_t length;
        bool good = text_decode(text, &code_point, &length);
        bool shown =
            good && code_point >= 0x20 && code_point != 0x7f && code_point != 0xfffe && code_point != 0xffff;
        if (!shown)
            builder_text(out, "\xef\xbf\xbd");
        else if (code_point == '<')
            builder_text(out, "&lt;");
        else if (code_point == '>')
            builder_text(out, "&gt;");
        else if (code_point == '&')
            builder_text(out, "&amp;");
        else
            builder_bytes(out, cy_bytes_slice(text, 0, length));
        text = cy_bytes_skip(text, length);
    }
}

/* Bytecode in warm colours, natives in blue; the same name has the same colour in every picture. */
static void profile_svg_colour(const struct profile_frame *frame, cy_bytes name, struct builder *out)
{
    uint64_t hash = hash_bytes((hash_seed){0, 0}, name);
    unsigned a = (unsigned)(hash % 45), b = (unsigned)(hash / 64 % 80);
    if (frame->kind == PROFILE_ROOT)
        builder_text(out, "#d8d4cc");
    else if (frame->kind == PROFILE_NATIVE)
        builder_printf(out, "rgb(%u,%u,%u)", 130 + a, 170 + b / 2, 225 + a / 2);
    else
        builder_printf(out, "rgb(%u,%u,%u)", 215 + a / 2, 120 + b, 60 + a);
}

/* -- layout ---------------------------------------------------------------------------------------------- */

static int profile_svg_compare(const void *a, const void *b)
{
    const struct profile_svg_box *x = *(struct profile_svg_box *const *)a,
                                 *y = *(struct profile_svg_box *const *)b;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    int order = memcmp(x->name.data, y->name.data, cy_min_size(x->name.count, y->name.count));
    if (order) return order;
    if (x->name.count != y->name.count) return x->name.count < y->name.count ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static bool profile_svg_open(struct profile_svg *svg, const struct profile *profile)
{
    uint32_t count = svg->count = profile->frame_count;
    builder_init(&svg->names);
    svg->frames = mem_alloc(count * sizeof *svg->frames);
    svg->boxes = mem_alloc_zeroed(count * sizeof *svg->boxes);
    svg->order = mem_alloc(count * sizeof *svg->order);
    size_t *ends = mem_alloc(count * sizeof *ends);
    bool made = svg->frames && svg->boxes && svg->order && ends;
    for (uint32_t i = 0; made && i < count; i++) {
        profile_frame_name(&profile->frames[i], &svg->names);
        ends[i] = svg->names.count;
    }
    made = made && !svg->names.failed;
    for (uint32_t i = 0; made && i < count; i++) {
        svg->frames[i] = profile->frames[i];
        size_t start = i ? ends[i - 1] : 0;
        svg->boxes[i] =
            (struct profile_svg_box){.name = cy_bytes_slice(builder_view(&svg->names), start, ends[i]),
                                     .index = i,
                                     .parent = i ? profile->frames[i].parent : 0};
        svg->order[i] = &svg->boxes[i];
    }
    mem_free(ends);
    return made;
}

/* The root comes first in the order (of parent 0, index 0 is skipped by name: it is laid out before the walk); a
 * parent's group stands before its children's, because its index is smaller. */
static void profile_svg_lay_out(struct profile_svg *svg)
{
    profile_sum(svg->frames, svg->count);
    double width = PROFILE_SVG_WIDTH - 2 * PROFILE_SVG_MARGIN, total = (double)svg->frames[0].total;
    qsort(svg->order + 1, svg->count - 1, sizeof *svg->order, profile_svg_compare);
    svg->boxes[0].x = svg->boxes[0].next_x = PROFILE_SVG_MARGIN;
    svg->boxes[0].width = width;
    for (uint32_t i = 1; i < svg->count; i++) {
        struct profile_svg_box *box = svg->order[i], *parent = &svg->boxes[box->parent];
        box->width = total > 0 ? width * (double)svg->frames[box->index].total / total : 0;
        box->x = box->next_x = parent->next_x;
        parent->next_x += box->width;
        box->depth = parent->depth + 1;
        if (box->width >= PROFILE_SVG_FRAME_MIN && box->depth > svg->depth_max) svg->depth_max = box->depth;
    }
}

/* -- writing --------------------------------------------------------------------------------------------- */

static void profile_svg_amount(const struct profile *profile, uint64_t weight, bool korean,
                               struct builder *out)
{
    if (profile->unit == PROFILE_TIME)
        builder_printf(out, "%.3f ms", (double)weight / 1e6);
    else
        builder_printf(out, korean ? "%llu 걸음" : "%llu steps", (unsigned long long)weight);
}

static void profile_svg_box_write(const struct profile *profile, const struct profile_svg *svg,
                                  const struct profile_svg_box *box, uint32_t height, bool korean,
                                  struct builder *out)
{
    const struct profile_frame *frame = &svg->frames[box->index];
    double total = svg->frames[0].total ? (double)svg->frames[0].total : 1;
    uint32_t y = height - PROFILE_SVG_MARGIN - (box->depth + 1) * PROFILE_SVG_ROW;
    builder_printf(out, "<svg x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%u\"><title>", box->x, y,
                   box->width, PROFILE_SVG_ROW - 1);
    profile_svg_text(box->name, out);
    builder_text(out, frame->kind == PROFILE_NATIVE ? (korean ? " (네이티브): " : " (native): ") : ": ");
    profile_svg_amount(profile, frame->total, korean, out);
    builder_printf(out, ", %.2f%%", 100 * (double)frame->total / total);
    if (frame->self && frame->self != frame->total) {
        builder_text(out, korean ? "; 자기 몫 " : "; itself ");
        profile_svg_amount(profile, frame->self, korean, out);
    }
    builder_text(out, "</title><rect width=\"100%\" height=\"100%\" rx=\"2\" fill=\"");
    profile_svg_colour(frame, box->name, out);
    builder_text(out, "\"/>");
    if (box->width >= PROFILE_SVG_LETTERS_MIN) {
        builder_text(out, "<text x=\"4\" y=\"12.5\">");
        profile_svg_text(box->name, out);
        builder_text(out, "</text>");
    }
    builder_text(out, "</svg>\n");
}

static void profile_svg_head(const struct profile *profile, const struct profile_svg *svg, cy_bytes title,
                             uint32_t height, bool korean, struct builder *out)
{
    builder_printf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" width=\"%d\" height=\"%u\" "
        "role=\"img\">\n",
        PROFILE_SVG_WIDTH, height, PROFILE_SVG_WIDTH, height);
    builder_text(
        out, "<style>text{font:12px \"DejaVu Sans Mono\",\"Noto Sans Mono CJK KR\",\"D2Coding\",monospace;"
             "fill:#1c1a17}.h{font:600 17px sans-serif}.s{font:12px sans-serif;fill:#5b554c}"
             "svg svg:hover>rect{stroke:#1c1a17;stroke-width:1.5}</style>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#faf8f4\"/>\n");
    builder_printf(out, "<text class=\"h\" x=\"%d\" y=\"26\">", PROFILE_SVG_MARGIN);
    profile_svg_text(title, out);
    builder_printf(out, "</text>\n<text class=\"s\" x=\"%d\" y=\"45\">", PROFILE_SVG_MARGIN);
    profile_svg_amount(profile, svg->frames[0].total, korean, out);
    builder_printf(out,
                   korean
                       ? ", 표본 %llu개. 폭은 걸린 몫, 위는 불린 함수; 파란 것은 네이티브. 마우스를 올리면 "
                         "수치가 보입니다."
                       : " in %llu samples. Width is share; callees stand above callers; natives are blue. "
                         "Hover for numbers.",
                   (unsigned long long)profile->sample_count);
    builder_text(out, "</text>\n");
}

void profile_write_svg(const struct profile *profile, cy_bytes title, bool korean, struct builder *out)
{
    struct profile_svg svg = {0};
    if (profile_svg_open(&svg, profile)) {
        profile_svg_lay_out(&svg);
        uint32_t height = PROFILE_SVG_HEAD + (svg.depth_max + 1) * PROFILE_SVG_ROW + PROFILE_SVG_MARGIN;
        profile_svg_head(profile, &svg, title, height, korean, out);
        for (uint32_t i = 0; i < svg.count; i++)
            if (i == 0 || svg.order[i]->width >= PROFILE_SVG_FRAME_MIN)
                profile_svg_box_write(profile, &svg, svg.order[i], height, korean, out);
        builder_text(out, "</svg>\n");
    } else {
        out->failed = true;
    }
    builder_fini(&svg.names);
    mem_free(svg.frames);
    mem_free(svg.boxes);
    mem_free(svg.order);
}
