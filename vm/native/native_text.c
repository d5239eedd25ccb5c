/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_text.c: module text. Work on str as bytes; only text.count looks at letters.
 *
 * In:   arguments already checked against native.def. Out: new str values.
 * Invariant: work that grows with its input charges the budget, about one step per 100 bytes.
 */
#define _GNU_SOURCE /* memmem */
#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/native/native_bodies.h"
#include "vm/run/heap.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

enum { NATIVE_TEXT_BYTES_PER_STEP = 100 };

static cy_bytes native_text_arg(const struct native_call *call, uint32_t index)
{
    return string_bytes(call->args[index]);
}

static void native_text_charge(struct native_call *call, size_t bytes)
{
    native_charge(call, bytes / NATIVE_TEXT_BYTES_PER_STEP);
}

static enum native_outcome native_text_failed(struct native_call *call, cy_err err, const char *native)
{
    return native_fail(call, err, "%s: %s", native, cy_err_text(err, vm_korean(call->vm)));
}

static enum native_outcome native_text_return(struct native_call *call, cy_bytes text, const char *native)
{
    cy_value value;
    cy_err err = string_new(call->vm, text, &value);
    return cy_failed(err) ? native_text_failed(call, err, native) : native_return(call, value);
}

/* Byte index of `part` at or behind `from`, SIZE_MAX when there is none. An empty part is found at once. */
static size_t native_text_index(cy_bytes text, cy_bytes part, size_t from)
{
    if (from > text.count) return SIZE_MAX;
    if (part.count == 0) return from;
    const uint8_t *found = memmem(text.data + from, text.count - from, part.data, part.count);
    return found ? (size_t)(found - text.data) : SIZE_MAX;
}

/* -- looking --------------------------------------------------------------------------------------------- */

enum native_outcome native_text_graphemes(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    native_text_charge(call, text.count * 4);
    return native_return(call, value_int((int64_t)text_grapheme_count(text)));
}

enum native_outcome native_text_contains(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    native_text_charge(call, text.count);
    return native_return(call, value_bool(native_text_index(text, native_text_arg(call, 1), 0) != SIZE_MAX));
}

enum native_outcome native_text_starts(struct native_call *call)
{
    return native_return(call,
                         value_bool(cy_bytes_start_with(native_text_arg(call, 0), native_text_arg(call, 1))));
}

enum native_outcome native_text_ends(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), end = native_text_arg(call, 1);
    bool ends = text.count >= end.count && cy_bytes_equal(cy_bytes_skip(text, text.count - end.count), end);
    return native_return(call, value_bool(ends));
}

enum native_outcome native_text_find(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    int64_t from = native_has_arg(call, 2) ? call->args[2].as.i : 0;
    if (from < 0 || (uint64_t)from > text.count)
        return native_fail(call, CY_ERR(INDEX), "text.find: from %lld is outside 0..%zu", (long long)from,
                           text.count);
    native_text_charge(call, text.count);
    size_t index = native_text_index(text, native_text_arg(call, 1), (size_t)from);
    return native_return(call, value_int(index == SIZE_MAX ? -1 : (int64_t)index));
}

enum native_outcome native_text_find_last(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), part = native_text_arg(call, 1);
    if (part.count == 0) return native_return(call, value_int((int64_t)text.count));
    if (part.count > text.count) return native_return(call, value_int(-1));
    native_text_charge(call, 2 * text.count);
    /* The first occurrence from the other side: memmem takes linear time for any part, comparing everywhere not. */
    size_t scratch_bytes = text.count + part.count;
    uint8_t *scratch = heap_alloc(call->vm, scratch_bytes);
    if (!scratch) return native_text_failed(call, CY_ERR(NO_MEMORY), "text.find_last");
    for (size_t i = 0; i < text.count; i++) scratch[i] = text.data[text.count - 1 - i];
    for (size_t i = 0; i < part.count; i++) scratch[text.count + i] = part.data[part.count - 1 - i];
    size_t at =
        native_text_index(cy_bytes_of(scratch, text.count), cy_bytes_of(scratch + text.count, part.count), 0);
    heap_free(call->vm, scratch, scratch_bytes);
    return native_return(call, value_int(at == SIZE_MAX ? -1 : (int64_t)(text.count - part.count - at)));
}

/* The distance of two words takes the product of their lengths; a letter pair is a few ns. */
enum { NATIVE_TEXT_PAIRS_PER_STEP = 8 };

enum native_outcome native_text_nearest(struct native_call *call)
{
    cy_value known = call->args[1];
    uint64_t steps = 0, word_bytes = native_text_arg(call, 0).count;
    struct nearest nearest;
    nearest_init(&nearest, native_text_arg(call, 0));
    cy_value best = value_nil();
    for (size_t i = 0; i < list_count(known); i++) {
        cy_value word = list_get(known, i);
        if (word.tag != TAG_STR)
            return native_fail(call, CY_ERR(TYPE), "text.nearest: item %zu must be str, not %s", i,
                               value_kind_text(call->vm, word));
        steps += 1 + word_bytes * string_bytes(word).count / NATIVE_TEXT_PAIRS_PER_STEP;
        if (steps > LIMIT_WALK_STEPS)
            return native_fail(call, CY_ERR(LIMIT), "text.nearest: %s (WALK_STEPS: %d)",
                               cy_err_text(CY_ERR(LIMIT), vm_korean(call->vm)), LIMIT_WALK_STEPS);
        size_t distance = nearest.best.count ? nearest.best_distance : SIZE_MAX;
        nearest_offer(&nearest, string_bytes(word));
        if (nearest.no_memory) return native_text_failed(call, CY_ERR(NO_MEMORY), "text.nearest");
        if (nearest.best.count && nearest.best_distance < distance) best = word;
    }
    native_charge(call, steps);
    return native_return(call, value_ref(best));
}

/* -- taking apart and joining ---------------------------------------------------------------------------- */

enum native_outcome native_text_split(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), separator = native_text_arg(call, 1);
    if (separator.count == 0) return native_fail(call, CY_ERR(VALUE), "text.split: the separator is empty");
    native_text_charge(call, text.count);
    cy_value parts;
    cy_err err = list_new(call->vm, 0, &parts);
    if (cy_failed(err)) return native_text_failed(call, err, "text.split");
    for (size_t from = 0;;) {
        size_t end = native_text_index(text, separator, from);
        cy_value part;
        err = string_new(call->vm, cy_bytes_slice(text, from, end == SIZE_MAX ? text.count : end), &part);
        if (!cy_failed(err)) err = list_append(call->vm, &parts, part);
        if (cy_failed(err)) {
            value_unref(call->vm, parts);
            return native_text_failed(call, err, "text.split");
        }
        if (end == SIZE_MAX) return native_return(call, parts);
        from = end + separator.count;
    }
}

enum native_outcome native_text_join(struct native_call *call)
{
    cy_value parts = call->args[0];
    cy_bytes separator = native_has_arg(call, 1) ? native_text_arg(call, 1) : CY_BYTES_NONE;
    size_t count = list_count(parts), bytes = 0;
    for (size_t i = 0; i < count; i++) {
        cy_value part = list_get(parts, i);
        if (part.tag != TAG_STR)
            return native_fail(call, CY_ERR(TYPE), "text.join: item %zu must be str, not %s", i,
                               value_kind_text(call->vm, part));
        bytes += string_bytes(part).count +
                 (i > 0 ? separator.count : 0); /* below 2^28 items of 2^30 bytes: fits */
    }
    native_text_charge(call, bytes);
    cy_value joined;
    uint8_t *to;
    cy_err err = string_new_blank(call->vm, bytes, &joined, &to);
    if (cy_failed(err)) return native_text_failed(call, err, "text.join");
    for (size_t i = 0; i < count; i++) {
        cy_bytes part = string_bytes(list_get(parts, i));
        if (i > 0 && separator.count)
            to = (uint8_t *)memcpy(to, separator.data, separator.count) + separator.count;
        if (part.count) to = (uint8_t *)memcpy(to, part.data, part.count) + part.count;
    }
    return native_return(call, joined);
}

enum native_outcome native_text_lower(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    cy_value lower;
    uint8_t *to;
    cy_err err = string_new_blank(call->vm, text.count, &lower, &to);
    if (cy_failed(err)) return native_text_failed(call, err, "text.lower_ascii");
    for (size_t i = 0; i < text.count; i++) {
        uint8_t byte = text.data[i];
        to[i] = byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;
    }
    native_text_charge(call, text.count);
    return native_return(call, lower);
}

static bool native_text_is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

enum native_outcome native_text_trim(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    size_t begin = 0, end = text.count;
    while (begin < end && native_text_is_space(text.data[begin])) begin++;
    while (end > begin && native_text_is_space(text.data[end - 1])) end--;
    if (end - begin == text.count) return native_return(call, native_take_arg(call, 0));
    return native_text_return(call, cy_bytes_slice(text, begin, end), "text.trim");
}

enum native_outcome native_text_replace(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), old = native_text_arg(call, 1), with = native_text_arg(call, 2);
    if (old.count == 0) return native_fail(call, CY_ERR(VALUE), "text.replace: old is empty");
    struct builder out;
    builder_init(&out);
    out.count_max = cy_max_size(vm_memory_left(call->vm, LIMIT_STRING_BYTES), 1);
    for (size_t from = 0; !out.failed;) {
        size_t at = native_text_index(text, old, from);
        builder_bytes(&out, cy_bytes_slice(text, from, at == SIZE_MAX ? text.count : at));
        if (at == SIZE_MAX) break;
        builder_bytes(&out, with);
        from = at + old.count;
    }
    native_text_charge(call, text.count + out.count);
    cy_err err = builder_error(&out);
    enum native_outcome outcome = cy_failed(err)
                                      ? native_text_failed(call, err, "text.replace")
                                      : native_text_return(call, builder_view(&out), "text.replace");
    builder_fini(&out);
    return outcome;
}

enum native_outcome native_text_repeat(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    int64_t times = call->args[1].as.i;
    size_t bytes;
    if (times < 0)
        return native_fail(call, CY_ERR(VALUE), "text.repeat: times must be 0 or more, not %lld",
                           (long long)times);
    cy_value repeated;
    uint8_t *to;
    cy_err err = cy_mul_overflows(text.count, (size_t)times, &bytes)
                     ? CY_ERR(TOO_LARGE)
                     : string_new_blank(call->vm, bytes, &repeated, &to);
    if (cy_failed(err)) return native_text_failed(call, err, "text.repeat");
    if (text.count)
        for (int64_t i = 0; i < times; i++) to = (uint8_t *)memcpy(to, text.data, text.count) + text.count;
    native_text_charge(call, bytes);
    return native_return(call, repeated);
}
