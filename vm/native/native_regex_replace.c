/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_regex_replace.c: regex.replace and regex.escape.
 *
 * A replacement, as a grammar; everything else stands for itself, a backslash too:
 *
 *      "$$" a dollar      "$" digits, "${" digits "}" a group      "${" name "}" a group by its name
 *
 * Invariant: a replacement is looked through before anything is replaced, so a wrong one is an error also when nothing
 *       matches.
 */
#include "vm/base/limits.h"
#include "vm/native/native_bodies.h"
#include "vm/native/native_regex.h"
#include "vm/run/heap.h"
#include "vm/run/vm.h"

/* The next piece of a replacement: plain bytes, or a group (plain.count is 0 then). */
struct native_replace_piece {
    cy_bytes plain;
    uint32_t group;
};

static bool native_replace_wrong(struct native_call *call, const char *what, cy_bytes rest)
{
    rest = cy_bytes_slice(rest, 0, 24);
    native_fail(call, CY_ERR(VALUE), "regex.replace: %s in the replacement at \"%.*s\"", what,
                CY_BYTES_ARG(rest));
    return false;
}

static bool native_replace_by_name(const struct regex *regex, cy_bytes name, uint32_t *group_out)
{
    cy_bytes known;
    for (uint32_t i = 0; regex_name_at(regex, i, &known, group_out); i++)
        if (cy_bytes_equal(known, name)) return true;
    return false;
}

/* Takes a piece off the front. */
static bool native_replace_take(struct native_call *call, const struct regex *regex, cy_bytes *rest,
                                struct native_replace_piece *piece)
{
    size_t dollar = cy_bytes_find(*rest, '$');
    cy_bytes whole = *rest;
    uint64_t number = 0;
    if (dollar > 0) {
        piece->plain = cy_bytes_slice(whole, 0, dollar);
        *rest = cy_bytes_skip(whole, dollar);
        return true;
    }
    uint8_t next = whole.count > 1 ? whole.data[1] : 0;
    piece->plain = CY_BYTES_NONE;
    if (next == '$') {
        piece->plain = cy_bytes_slice(whole, 0, 1);
        *rest = cy_bytes_skip(whole, 2);
        return true;
    }
    size_t begin = next == '{' ? 2 : 1, end = begin;
    if (next == '{')
        end = cy_bytes_find(whole, '}');
    else
        while (end < whole.count && (uint8_t)(whole.data[end] - '0') < 10) end++;
    cy_bytes word = cy_bytes_slice(whole, begin, end);
    if (word.count == 0 || (next == '{' && end == whole.count))
        return native_replace_wrong(call, "expected $$, $1, ${1} or ${name}", whole);
    *rest = cy_bytes_skip(whole, end + (next == '{'));
    if (cy_bytes_parse_u64(word, regex_group_count(regex), &number))
        piece->group = (uint32_t)number;
    else if (!native_replace_by_name(regex, word, &piece->group))
        return native_replace_wrong(call, "no such group", whole);
    return true;
}

static bool native_replace_check(struct native_call *call, const struct regex *regex, cy_bytes replacement)
{
    struct native_replace_piece piece;
    while (replacement.count > 0)
        if (!native_replace_take(call, regex, &replacement, &piece)) return false;
    return true;
}

/* -- the new text ------------------------------------------------------------------------------------------- */

static void native_replace_put(struct native_call *call, struct native_regex_work *work, cy_bytes bytes)
{
    if (cy_failed(work->out_err) || bytes.count == 0) return;
    if (bytes.count > work->out_capacity - work->out_count) {
        size_t capacity = cy_max_size(work->out_capacity * 2, work->out_count + bytes.count + 64);
        uint8_t *out = heap_resize(call->vm, work->out, work->out_capacity, capacity);
        work->out_err = work->out_count + bytes.count > LIMIT_STRING_BYTES ? CY_ERR(TOO_LARGE)
                        : out                                              ? CY_OK
                                                                           : CY_ERR(NO_MEMORY);
        if (!out) return;
        work->out = out;
        work->out_capacity = capacity;
    }
    memcpy(work->out + work->out_count, bytes.data, bytes.count);
    work->out_count += bytes.count;
}

/* Where a name stands for several groups, the one that took part. */
static void native_replace_group(struct native_call *call, struct native_regex_work *work, uint32_t group)
{
    size_t begin, end;
    cy_bytes name = CY_BYTES_NONE, other;
    uint32_t other_group;
    if (regex_search_group(&work->search, group, &begin, &end)) {
        native_replace_put(call, work, cy_bytes_slice(work->search.text, begin, end));
        return;
    }
    for (uint32_t i = 0; regex_name_at(work->regex, i, &other, &other_group); i++)
        if (other_group == group) name = other;
    for (uint32_t i = 0; name.count && regex_name_at(work->regex, i, &other, &other_group); i++) {
        if (!cy_bytes_equal(name, other) || !regex_search_group(&work->search, other_group, &begin, &end))
            continue;
        native_replace_put(call, work, cy_bytes_slice(work->search.text, begin, end));
        return;
    }
}

/* What lies between the last match and this one, and what stands for this one. */
static bool native_replace_one(struct native_call *call, struct native_regex_work *work, cy_bytes replacement)
{
    const struct native_regex_walk *walk = &work->walk;
    native_replace_put(call, work, cy_bytes_slice(work->search.text, work->copied, walk->begin));
    while (replacement.count > 0) {
        struct native_replace_piece piece;
        if (!native_replace_take(call, work->regex, &replacement, &piece)) return false;
        if (piece.plain.count)
            native_replace_put(call, work, piece.plain);
        else
            native_replace_group(call, work, piece.group);
    }
    work->copied = walk->end;
    return true;
}

static enum native_outcome native_replace_give(struct native_call *call, const char *native, cy_err err,
                                               cy_bytes text)
{
    cy_value value;
    if (!cy_failed(err)) err = string_new(call->vm, text, &value);
    if (cy_failed(err)) return native_fail_reason(call, err, native);
    return native_return(call, value);
}

static enum native_outcome native_replace_body(struct native_call *call, struct native_regex_work *work)
{
    cy_bytes replacement = string_bytes(call->args[2]);
    if (!work->began && !native_replace_check(call, work->regex, replacement)) return NATIVE_FAIL;
    work->began = true;
    while (work->left > 0 && !cy_failed(work->out_err)) {
        enum native_regex_step step = native_regex_each(call, work);
        if (step == NATIVE_REGEX_AGAIN) return NATIVE_AGAIN;
        if (step == NATIVE_REGEX_FAILED) return NATIVE_FAIL;
        if (step == NATIVE_REGEX_NONE) break;
        work->left--;
        if (!native_replace_one(call, work, replacement)) return NATIVE_FAIL;
    }
    native_replace_put(call, work, cy_bytes_skip(work->search.text, work->copied));
    return native_replace_give(call, "regex.replace", work->out_err, cy_bytes_of(work->out, work->out_count));
}

enum native_outcome native_regex_replace(struct native_call *call)
{
    int64_t count;
    if (!native_regex_count(call, 3, "regex.replace", "count", &count)) return NATIVE_FAIL;
    return native_regex_run(call, "regex.replace", count, native_replace_body);
}

/* A backslash before every ASCII byte that is no letter, digit or _: means itself in every pattern, extended ones
 * too. */
enum native_outcome native_regex_escape(struct native_call *call)
{
    cy_bytes text = string_bytes(call->args[0]);
    struct builder out;
    builder_init(&out);
    out.count_max = cy_max_size(vm_memory_left(call->vm, LIMIT_STRING_BYTES), 1);
    native_charge(call, text.count / 50);
    for (size_t i = 0; i < text.count; i++) {
        uint8_t byte = text.data[i];
        bool word =
            byte >= 0x80 || byte == '_' || (uint8_t)(byte - '0') < 10 || (uint8_t)((byte | 0x20) - 'a') < 26;
        if (!word && byte != 0) builder_u8(&out, '\\');
        if (byte == 0)
            builder_text(&out, "\\x00");
        else
            builder_u8(&out, byte);
    }
    enum native_outcome outcome =
        native_replace_give(call, "regex.escape", builder_error(&out), builder_view(&out));
    builder_fini(&out);
    return outcome;
}
