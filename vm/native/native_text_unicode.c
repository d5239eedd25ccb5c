/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_text_unicode.c: module text: letters, code points, case, normal forms, columns.
 *
 * In:   arguments already checked against native.def. Out: new str values and lists.
 * Invariant: bytes that are no UTF-8 stand for themselves, one letter each, where a function does not say that it
 *            refuses them. Work that grows with its input charges the budget.
 * Not here: the tables of Unicode (vm/base/text*.c).
 */
#define _GNU_SOURCE /* mempcpy */
#include "vm/base/limits.h"
#include "vm/native/native_text_internal.h"

/* Looking up a code point's properties is about four times the work of passing a byte. */
static void native_text_unicode_charge(struct native_call *call, size_t bytes)
{
    native_text_charge(call, 4 * bytes);
}

/* -- letters ------------------------------------------------------------------------------------------- */

enum native_outcome native_text_graphemes(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    native_text_unicode_charge(call, text.count);
    return native_return(call, value_int((int64_t)text_grapheme_count(text)));
}

enum native_outcome native_text_grapheme_list(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    native_text_unicode_charge(call, 2 * text.count);
    size_t count = text_grapheme_count(text);
    cy_value letters, *places;
    cy_err err = list_new_values(call->vm, count, &letters, &places);
    if (cy_failed(err)) return native_fail_reason(call, err, "text.graphemes");
    for (size_t i = 0, from = 0; i < count && !cy_failed(err); i++) {
        size_t end = text_grapheme_end(text, from);
        err = native_text_put(call, &places[i], text, from, end);
        from = end;
    }
    if (!cy_failed(err)) return native_return(call, letters);
    value_unref(call->vm, letters);
    return native_fail_reason(call, err, "text.graphemes");
}

/* Steps over at most `count` letters from `from` on; gives where it stands, and how many there were. */
static size_t native_text_unicode_skip(cy_bytes text, size_t from, int64_t count, int64_t *skipped_out)
{
    int64_t skipped = 0;
    for (; skipped < count && from < text.count; skipped++) from = text_grapheme_end(text, from);
    *skipped_out = skipped;
    return from;
}

enum native_outcome native_text_grapheme_at(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    int64_t index = call->args[1].as.i, skipped;
    size_t begin = native_text_unicode_skip(text, 0, index, &skipped);
    native_text_unicode_charge(call, begin);
    if (index < 0 || begin == text.count)
        return native_fail(call, CY_ERR(INDEX), "text.grapheme_at: index %lld is outside 0..%zu",
                           (long long)index, text_grapheme_count(text));
    return native_text_return(call, cy_bytes_slice(text, begin, text_grapheme_end(text, begin)),
                              "text.grapheme_at");
}

enum native_outcome native_text_slice(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    int64_t from = call->args[1].as.i, to = native_has_arg(call, 2) ? call->args[2].as.i : INT64_MAX, skipped;
    if (from < 0 || to < from)
        return native_fail(call, CY_ERR(INDEX), "text.slice: %lld..%lld is no range of letters",
                           (long long)from, (long long)to);
    size_t begin = native_text_unicode_skip(text, 0, from, &skipped);
    size_t end = to == INT64_MAX ? text.count : native_text_unicode_skip(text, begin, to - from, &skipped);
    native_text_unicode_charge(call, end);
    return native_text_return(call, cy_bytes_slice(text, begin, end), "text.slice");
}

enum native_outcome native_text_reverse(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    cy_value reversed;
    uint8_t *to;
    cy_err err = string_new_blank(call->vm, text.count, &reversed, &to);
    if (cy_failed(err)) return native_fail_reason(call, err, "text.reverse");
    native_text_unicode_charge(call, text.count);
    for (size_t from = 0, end; from < text.count; from = end) {
        end = text_grapheme_end(text, from);
        memcpy(to + (text.count - end), text.data + from, end - from);
    }
    return native_return(call, reversed);
}

/* -- bytes and code points ----------------------------------------------------------------------------- */

enum native_outcome native_text_bytes(struct native_call *call)
{
    cy_value bytes;
    cy_err err = list_new_bytes(call->vm, native_text_arg(call, 0), &bytes);
    native_text_charge(call, native_text_arg(call, 0).count);
    return cy_failed(err) ? native_fail_reason(call, err, "text.bytes") : native_return(call, bytes);
}

enum native_outcome native_text_from_bytes(struct native_call *call)
{
    cy_value items = call->args[0], made;
    size_t count = list_count(items);
    uint8_t *to;
    cy_err err = string_new_blank(call->vm, count, &made, &to);
    if (cy_failed(err)) return native_fail_reason(call, err, "text.from_bytes");
    native_text_charge(call, 4 * count);
    for (size_t i = 0; i < count; i++) {
        cy_value item = list_get(items, i);
        if (item.tag == TAG_INT && item.as.i >= 0 && item.as.i <= 255) {
            to[i] = (uint8_t)item.as.i;
            continue;
        }
        value_unref(call->vm, made);
        return native_fail(call, CY_ERR(VALUE), "text.from_bytes: item %zu is no int of 0..255", i);
    }
    return native_return(call, made);
}

static enum native_outcome native_text_unicode_bad(struct native_call *call, size_t offset,
                                                   const char *native)
{
    return native_fail(call, CY_ERR(BAD_TEXT), "%s: %s (byte %zu)", native,
                       cy_err_text(CY_ERR(BAD_TEXT), vm_korean(call->vm)), offset);
}

enum native_outcome native_text_code_points(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    size_t bad, length;
    native_text_unicode_charge(call, text.count);
    if (!text_is_utf8(text, &bad)) return native_text_unicode_bad(call, bad, "text.code_points");
    cy_value points;
    int64_t *to;
    cy_err err = list_new_ints(call->vm, text_code_point_count(text), &points, &to);
    if (cy_failed(err)) return native_fail_reason(call, err, "text.code_points");
    for (size_t offset = 0; offset < text.count; offset += length) {
        uint32_t code_point;
        (void)!text_decode(cy_bytes_skip(text, offset), &code_point, &length);
        *to++ = code_point;
    }
    return native_return(call, points);
}

enum native_outcome native_text_code_point_count(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    native_text_charge(call, text.count);
    return native_return(call, value_int((int64_t)text_code_point_count(text)));
}

enum native_outcome native_text_from_code_points(struct native_call *call)
{
    cy_value items = call->args[0];
    struct builder built;
    native_text_build(call, &built);
    for (size_t i = 0; i < list_count(items) && !built.failed; i++) {
        cy_value item = list_get(items, i);
        bool fits = item.tag == TAG_INT && item.as.i >= 0 && item.as.i <= UINT32_MAX &&
                    text_code_point_is_valid((uint32_t)item.as.i);
        if (fits) {
            text_encode(&built, (uint32_t)item.as.i);
            continue;
        }
        builder_fini(&built);
        return native_fail(call, CY_ERR(VALUE), "text.from_code_points: item %zu is no code point", i);
    }
    return native_text_return_built(call, &built, "text.from_code_points");
}

/* -- UTF-8 and its normal forms ------------------------------------------------------------------------ */

enum native_outcome native_text_is_utf8(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    native_text_charge(call, text.count);
    return native_return(call, value_bool(text_is_utf8(text, NULL)));
}

enum native_outcome native_text_repair(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    native_text_charge(call, 2 * text.count);
    if (text_is_utf8(text, NULL)) return native_return(call, native_take_arg(call, 0));
    struct builder built;
    native_text_build(call, &built);
    for (size_t offset = 0, length; offset < text.count && !built.failed; offset += length) {
        uint32_t code_point;
        bool valid = text_decode(cy_bytes_skip(text, offset), &code_point, &length);
        builder_bytes(&built,
                      valid ? cy_bytes_slice(text, offset, offset + length) : CY_BYTES("\xef\xbf\xbd"));
    }
    return native_text_return_built(call, &built, "text.repair");
}

/* Normalising sorts each run of marks in time squared in its length. */
static bool native_text_unicode_marks_fit(cy_bytes text)
{
    size_t run = 0;
    for (size_t offset = 0, length; offset < text.count && run <= LIMIT_TEXT_MARKS; offset += length) {
        uint32_t code_point;
        (void)!text_decode(cy_bytes_skip(text, offset), &code_point, &length);
        run = text_is_mark(code_point) ? run + 1 : 0;
    }
    return run <= LIMIT_TEXT_MARKS;
}

static enum native_outcome native_text_unicode_normal(struct native_call *call, const char *native,
                                                      cy_err (*normalise)(cy_bytes, struct builder *))
{
    cy_bytes text = native_text_arg(call, 0);
    size_t bad;
    native_text_unicode_charge(call, 4 * text.count);
    if (!text_is_utf8(text, &bad)) return native_text_unicode_bad(call, bad, native);
    if (!native_text_unicode_marks_fit(text))
        return native_fail(call, CY_ERR(LIMIT), "%s: too many marks on one letter (TEXT_MARKS: %d)", native,
                           LIMIT_TEXT_MARKS);
    /* Code points while it works, four bytes each, and up to 18 for one: bounded before they are asked for. */
    if (text.count > vm_memory_left(call->vm, LIMIT_STRING_BYTES) / 16)
        return native_fail_reason(call, CY_ERR(NO_MEMORY), native);
    struct builder built;
    native_text_build(call, &built);
    cy_err err = normalise(text, &built);
    if (!cy_failed(err)) return native_text_return_built(call, &built, native);
    builder_fini(&built);
    return native_fail_reason(call, err, native);
}
enum native_outcome native_text_nfc(struct native_call *call)
{
    return native_text_unicode_normal(call, "text.nfc", text_to_nfc);
}
enum native_outcome native_text_nfd(struct native_call *call)
{
    return native_text_unicode_normal(call, "text.nfd", text_to_nfd);
}

/* -- case ---------------------------------------------------------------------------------------------- */

static bool native_text_unicode_is_ascii(cy_bytes text)
{
    uint8_t all = 0;
    for (size_t i = 0; i < text.count; i++) all |= text.data[i];
    return all < 0x80;
}

enum native_outcome native_text_is_ascii(struct native_call *call)
{
    native_text_charge(call, native_text_arg(call, 0).count);
    return native_return(call, value_bool(native_text_unicode_is_ascii(native_text_arg(call, 0))));
}

static enum native_outcome native_text_unicode_ascii_case(struct native_call *call, bool upper,
                                                          const char *native)
{
    cy_bytes text = native_text_arg(call, 0);
    cy_value mapped;
    uint8_t *to, first = upper ? 'a' : 'A';
    cy_err err = string_new_blank(call->vm, text.count, &mapped, &to);
    if (cy_failed(err)) return native_fail_reason(call, err, native);
    for (size_t i = 0; i < text.count; i++) {
        uint8_t byte = text.data[i];
        to[i] = byte ^ (uint8_t)((uint8_t)(byte - first) < 26 ? 'a' - 'A' : 0);
    }
    native_text_charge(call, text.count);
    return native_return(call, mapped);
}
enum native_outcome native_text_lower_ascii(struct native_call *call)
{
    return native_text_unicode_ascii_case(call, false, "text.lower_ascii");
}
enum native_outcome native_text_upper_ascii(struct native_call *call)
{
    return native_text_unicode_ascii_case(call, true, "text.upper_ascii");
}

static void native_text_unicode_map(cy_bytes text, enum text_case to, struct builder *built)
{
    for (size_t offset = 0, length; offset < text.count && !built->failed; offset += length) {
        uint32_t code_point, mapped[TEXT_CASE_MAX];
        if (!text_decode(cy_bytes_skip(text, offset), &code_point, &length)) {
            builder_u8(built, text.data[offset]);
            continue;
        }
        size_t count = text_map_case(code_point, to, mapped);
        for (size_t i = 0; i < count; i++) text_encode(built, mapped[i]);
    }
}

static enum native_outcome native_text_unicode_case(struct native_call *call, enum text_case to,
                                                    const char *native)
{
    cy_bytes text = native_text_arg(call, 0);
    if (native_text_unicode_is_ascii(text))
        return native_text_unicode_ascii_case(call, to == TEXT_UPPER, native);
    native_text_unicode_charge(call, 2 * text.count);
    struct builder built;
    native_text_build(call, &built);
    native_text_unicode_map(text, to, &built);
    return native_text_return_built(call, &built, native);
}
enum native_outcome native_text_upper(struct native_call *call)
{
    return native_text_unicode_case(call, TEXT_UPPER, "text.upper");
}
enum native_outcome native_text_lower(struct native_call *call)
{
    return native_text_unicode_case(call, TEXT_LOWER, "text.lower");
}
enum native_outcome native_text_fold(struct native_call *call)
{
    return native_text_unicode_case(call, TEXT_FOLD, "text.fold");
}

enum native_outcome native_text_equals_fold(struct native_call *call)
{
    cy_bytes a = native_text_arg(call, 0), b = native_text_arg(call, 1);
    native_text_charge(call, cy_min_size(a.count, b.count));
    if (cy_bytes_equal_nocase(a, b)) return native_return(call, value_bool(true));
    if (native_text_unicode_is_ascii(a) && native_text_unicode_is_ascii(b))
        return native_return(call, value_bool(false));
    native_text_unicode_charge(call, 2 * (a.count + b.count));
    struct builder folded[2];
    for (int i = 0; i < 2; i++) {
        native_text_build(call, &folded[i]);
        native_text_unicode_map(i ? b : a, TEXT_FOLD, &folded[i]);
    }
    bool failed = folded[0].failed || folded[1].failed;
    bool equal = cy_bytes_equal(builder_view(&folded[0]), builder_view(&folded[1]));
    builder_fini(&folded[0]);
    builder_fini(&folded[1]);
    if (failed) return native_fail_reason(call, CY_ERR(NO_MEMORY), "text.equals_fold");
    return native_return(call, value_bool(equal));
}

/* -- columns -------------------------------------------------------------------------------------------------------
 * */

enum native_outcome native_text_width(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    native_text_unicode_charge(call, text.count);
    return native_return(call, value_int((int64_t)text_width(text)));
}

/* `columns` filled with `fill`, and with spaces where it does not fit any more. */
static uint8_t *native_text_unicode_fill(uint8_t *to, cy_bytes fill, size_t fill_width, size_t columns)
{
    for (; columns >= fill_width; columns -= fill_width) to = (uint8_t *)mempcpy(to, fill.data, fill.count);
    for (; columns > 0; columns--) *to++ = ' ';
    return to;
}

static enum native_outcome native_text_unicode_pad(struct native_call *call, const char *native, bool before,
                                                   bool behind)
{
    cy_bytes text = native_text_arg(call, 0);
    int64_t columns = call->args[1].as.i;
    cy_bytes fill = native_has_arg(call, 2) ? native_text_arg(call, 2) : CY_BYTES(" ");
    if (columns > LIMIT_STRING_BYTES) return native_fail_reason(call, CY_ERR(TOO_LARGE), native);
    native_text_unicode_charge(call, text.count + fill.count);
    size_t width = text_width(text), fill_width = text_width(fill);
    if (fill_width == 0) return native_fail(call, CY_ERR(VALUE), "%s: fill has no width", native);
    size_t missing = columns > 0 && (size_t)columns > width ? (size_t)columns - width : 0;
    if (missing == 0) return native_return(call, native_take_arg(call, 0));
    size_t left = before && behind ? missing / 2 : before ? missing : 0, right = missing - left, bytes;
    bytes = (left / fill_width + right / fill_width) * fill.count + left % fill_width + right % fill_width +
            text.count;
    cy_value padded;
    uint8_t *to;
    cy_err err =
        bytes > LIMIT_STRING_BYTES ? CY_ERR(TOO_LARGE) : string_new_blank(call->vm, bytes, &padded, &to);
    if (cy_failed(err)) return native_fail_reason(call, err, native);
    native_text_charge(call, bytes);
    to = native_text_unicode_fill(to, fill, fill_width, left);
    if (text.count) to = (uint8_t *)mempcpy(to, text.data, text.count);
    (void)native_text_unicode_fill(to, fill, fill_width, right);
    return native_return(call, padded);
}
enum native_outcome native_text_pad_start(struct native_call *call)
{
    return native_text_unicode_pad(call, "text.pad_start", true, false);
}
enum native_outcome native_text_pad_end(struct native_call *call)
{
    return native_text_unicode_pad(call, "text.pad_end", false, true);
}
enum native_outcome native_text_pad_both(struct native_call *call)
{
    return native_text_unicode_pad(call, "text.pad_both", true, true);
}

enum native_outcome native_text_truncate(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    int64_t columns = call->args[1].as.i;
    cy_bytes mark = native_has_arg(call, 2) ? native_text_arg(call, 2) : CY_BYTES("…");
    size_t mark_width = text_width(mark);
    native_text_unicode_charge(call, 2 * text.count + mark.count);
    if (columns < 0 || (size_t)columns < mark_width)
        return native_fail(call, CY_ERR(VALUE), "text.truncate: %lld columns have no room for the mark",
                           (long long)columns);
    if (text_width(text) <= (size_t)columns) return native_return(call, native_take_arg(call, 0));
    size_t room = (size_t)columns - mark_width, kept = 0;
    for (size_t end; kept < text.count; kept = end) {
        end = text_grapheme_end(text, kept);
        size_t width = text_width(cy_bytes_slice(text, kept, end));
        if (width > room) break;
        room -= width;
    }
    struct builder built;
    native_text_build(call, &built);
    builder_bytes(&built, cy_bytes_slice(text, 0, kept));
    builder_bytes(&built, mark);
    return native_text_return_built(call, &built, "text.truncate");
}
