/* SPDX-License-Identifier: MIT
 *
 * vm/run/holds.c: the longest turns, by place.
 *
 * In, Out, Invariant: holds.h.
 * Method: a turn of HOLDS_LEAST_NS or more goes to the row of its place, or to a new row, or takes that of the
 *       shortest.
 *       Places are texts: code may be gone when they are shown. Each is made in memory that is freed at once.
 */
#include "vm/run/holds.h"

#include "vm/run/fiber.h"

enum { HOLDS_LEAST_NS = 2000000 }; /* a turn of ordinary steps takes a tenth of it */

void holds_clear(struct holds *holds) { *holds = (struct holds){0}; }

static struct holds_row *holds_find(struct holds *holds, cy_bytes place, uint64_t spent_ns)
{
    for (uint32_t i = 0; i < holds->row_count; i++)
        if (cy_bytes_equal(cy_bytes_from_text(holds->rows[i].place), place)) return &holds->rows[i];
    struct holds_row *row;
    if (holds->row_count < HOLDS_ROWS)
        row = &holds->rows[holds->row_count++];
    else if (holds->rows[HOLDS_ROWS - 1].longest_ns < spent_ns)
        row = &holds->rows[HOLDS_ROWS - 1];
    else
        return NULL;
    *row = (struct holds_row){0};
    memcpy(row->place, place.data, place.count);
    return row;
}

/* At most `bytes_max` of `text`, with no letter cut in two. */
static cy_bytes holds_cut(cy_bytes text, size_t bytes_max)
{
    if (text.count <= bytes_max) return text;
    while (bytes_max > 0 && (text.data[bytes_max] & 0xc0) == 0x80) bytes_max--;
    return cy_bytes_slice(text, 0, bytes_max);
}

/* "name (file:line:column)"; of a long one the name is cut, because where it is says more. */
static void holds_place(const struct fiber *fiber, struct builder *place)
{
    struct builder whole;
    builder_init(&whole);
    places_describe_turn(fiber, &whole);
    cy_bytes text = builder_view(&whole), where = CY_BYTES_NONE;
    if (whole.failed) text = CY_BYTES("...");
    for (size_t i = text.count; i > 0 && where.count == 0; i--)
        if (text.data[i - 1] == '(') where = cy_bytes_skip(text, i - 1);
    if (text.count > place->count_max && where.count + sizeof "... " < place->count_max) {
        builder_bytes(place, holds_cut(text, place->count_max - where.count - strlen("... ")));
        builder_text(place, "... ");
        text = where;
    }
    builder_bytes(place, holds_cut(text, place->count_max - place->count));
    builder_fini(&whole);
}

void holds_turn(struct holds *holds, const struct fiber *fiber, uint64_t spent_ns)
{
    if (spent_ns > holds->longest_ns) holds->longest_ns = spent_ns;
    if (spent_ns < HOLDS_LEAST_NS) return;
    char room[HOLDS_PLACE_BYTES];
    struct builder place = {.data = (uint8_t *)room, .capacity = sizeof room, .count_max = sizeof room - 1};
    holds_place(fiber, &place);
    struct holds_row *row = holds_find(holds, builder_view(&place), spent_ns);
    if (!row) return;
    row->count++;
    if (spent_ns > row->longest_ns) row->longest_ns = spent_ns;
    for (; row > holds->rows && row[-1].longest_ns < row->longest_ns; row--) {
        struct holds_row swap = row[-1];
        row[-1] = row[0];
        row[0] = swap;
    }
}

void holds_describe(const struct holds *holds, bool korean, struct builder *out)
{
    builder_printf(out, korean ? "가장 긴 차례: %.1f ms\n" : "longest turn: %.1f ms\n",
                   (double)holds->longest_ns / 1e6);
    for (uint32_t i = 0; i < holds->row_count; i++)
        builder_printf(out, korean ? "  %8.1f ms  %llu번  %s\n" : "  %8.1f ms  %llu x  %s\n",
                       (double)holds->rows[i].longest_ns / 1e6, (unsigned long long)holds->rows[i].count,
                       holds->rows[i].place);
}
