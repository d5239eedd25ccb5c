/* SPDX-License-Identifier: MIT
 *
 * vm/base/path.c: paths as text.
 *
 * In:   any bytes; a NUL is a byte like others here (who hands a path to the system looks for it).
 * Out:  views into what was given, or appended text. Cost: linear.
 * Invariant: nothing here asks the system, so an answer is about the text and not about what lies there.
 */
#include "vm/base/path.h"

cy_bytes path_next(cy_bytes *rest)
{
    size_t begin = 0;
    while (begin < rest->count && rest->data[begin] == '/') begin++;
    cy_bytes from = cy_bytes_skip(*rest, begin);
    size_t end = cy_bytes_find(from, '/');
    *rest = cy_bytes_skip(from, end);
    return cy_bytes_slice(from, 0, end);
}

static bool path_is_up(cy_bytes part) { return cy_bytes_equal(part, CY_BYTES("..")); }

/* Takes the last part off what was appended behind `begin`. False when there is none that could be taken. */
static bool path_drop_last(struct builder *out, size_t begin, bool absolute)
{
    cy_bytes done = cy_bytes_skip(builder_view(out), begin);
    if (done.count == (absolute ? 1u : 0u)) return false;
    cy_bytes name = path_name(done);
    if (path_is_up(name)) return false;
    out->count -= name.count;
    if (out->count > begin + (absolute ? 1 : 0)) out->count--; /* the slash before it */
    return true;
}

void path_normalise(cy_bytes path, struct builder *out)
{
    size_t begin = out->count;
    bool absolute = path_is_absolute(path);
    if (absolute) builder_u8(out, '/');
    for (cy_bytes part; (part = path_next(&path)).count > 0;) {
        if (cy_bytes_equal(part, CY_BYTES("."))) continue;
        if (path_is_up(part) && (path_drop_last(out, begin, absolute) || absolute)) continue;
        if (out->count > begin + (absolute ? 1 : 0)) builder_u8(out, '/');
        builder_bytes(out, part);
    }
    if (out->count == begin) builder_u8(out, '.');
}

void path_join(cy_bytes base, cy_bytes more, struct builder *out)
{
    if (path_is_absolute(more) || base.count == 0) {
        path_normalise(more, out);
        return;
    }
    struct builder whole;
    builder_init(&whole);
    builder_bytes(&whole, base);
    builder_u8(&whole, '/');
    builder_bytes(&whole, more);
    if (whole.failed)
        out->failed = true;
    else
        path_normalise(builder_view(&whole), out);
    builder_fini(&whole);
}

static cy_bytes path_without_slashes(cy_bytes path)
{
    while (path.count > 1 && path.data[path.count - 1] == '/') path.count--;
    return path;
}

/* Where the last part begins. */
static size_t path_name_begin(cy_bytes path)
{
    size_t begin = path.count;
    while (begin > 0 && path.data[begin - 1] != '/') begin--;
    return begin;
}

cy_bytes path_name(cy_bytes path)
{
    path = path_without_slashes(path);
    return cy_bytes_skip(path, path_name_begin(path));
}

cy_bytes path_parent(cy_bytes path)
{
    path = path_without_slashes(path);
    size_t begin = path_name_begin(path);
    if (begin == 0) return CY_BYTES(".");
    return path_without_slashes(cy_bytes_slice(path, 0, begin));
}

cy_bytes path_extension(cy_bytes path)
{
    cy_bytes name = path_name(path);
    size_t dot = name.count;
    while (dot > 0 && name.data[dot - 1] != '.') dot--;
    if (dot <= 1 || dot == name.count || path_is_up(name)) return CY_BYTES_NONE;
    return cy_bytes_skip(name, dot - 1);
}

bool path_is_below(cy_bytes path, cy_bytes folder, cy_bytes *below_out)
{
    if (!cy_bytes_start_with(path, folder)) return false;
    cy_bytes rest = cy_bytes_skip(path, folder.count);
    bool top = folder.count == 1 && folder.data[0] == '/';
    if (rest.count > 0 && !top) {
        if (rest.data[0] != '/') return false;
        rest = cy_bytes_skip(rest, 1);
    }
    *below_out = rest.count > 0 ? rest : CY_BYTES(".");
    return true;
}

bool path_relative(cy_bytes path, cy_bytes base, struct builder *out)
{
    if (path_is_absolute(path) != path_is_absolute(base)) return false;
    cy_bytes here = CY_BYTES(".");
    cy_bytes to = cy_bytes_equal(path, here) ? CY_BYTES_NONE : path;
    cy_bytes from = cy_bytes_equal(base, here) ? CY_BYTES_NONE : base;
    size_t begin = out->count;
    for (;;) { /* what both begin with */
        cy_bytes to_rest = to, from_rest = from;
        cy_bytes to_part = path_next(&to_rest), from_part = path_next(&from_rest);
        if (to_part.count == 0 || !cy_bytes_equal(to_part, from_part)) break;
        to = to_rest;
        from = from_rest;
    }
    for (cy_bytes part; (part = path_next(&from)).count > 0;) {
        if (path_is_up(part)) return false;
        if (out->count > begin) builder_u8(out, '/');
        builder_text(out, "..");
    }
    for (cy_bytes part; (part = path_next(&to)).count > 0;) {
        if (out->count > begin) builder_u8(out, '/');
        builder_bytes(out, part);
    }
    if (out->count == begin) builder_u8(out, '.');
    return true;
}
