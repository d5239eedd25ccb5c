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

/* Where a name stands for several groups, the one that took part. */
static void native_replace_group(const struct native_regex_use *use, uint32_t group, struct builder *out)
{
    size_t begin, end;
    cy_bytes name = CY_BYTES_NONE, other;
    uint32_t other_group;
    if (regex_search_group(&use->search, group, &begin, &end)) {
        builder_bytes(out, cy_bytes_slice(use->search.text, begin, end));
        return;
    }
    for (uint32_t i = 0; regex_name_at(use->regex, i, &other, &other_group); i++)
        if (other_group == group) name = other;
    for (uint32_t i = 0; name.count && regex_name_at(use->regex, i, &other, &other_group); i++) {
        if (!cy_bytes_equal(name, other) || !regex_search_group(&use->search, other_group, &begin, &end))
            continue;
        builder_bytes(out, cy_bytes_slice(use->search.text, begin, end));
        return;
    }
}

static bool native_replace_all(struct native_call *call, struct native_regex_use *use, cy_bytes replacement,
                               int64_t count, struct builder *out)
{
    struct native_regex_walk walk = {0};
    size_t copied = 0;
    bool found = true;
    while (count-- > 0 && !out->failed) {
        if (!native_regex_each(call, use, &walk, &found)) return false;
        if (!found) break;
        builder_bytes(out, cy_bytes_slice(use->search.text, copied, walk.begin));
        for (cy_bytes rest = replacement; rest.count > 0;) {
            struct native_replace_piece piece;
            if (!native_replace_take(call, use->regex, &rest, &piece)) return false;
            if (piece.plain.count)
                builder_bytes(out, piece.plain);
            else
                native_replace_group(use, piece.group, out);
        }
        copied = walk.end;
    }
    builder_bytes(out, cy_bytes_skip(use->search.text, copied));
    return true;
}

static enum native_outcome native_replace_text(struct native_call *call, const char *native,
                                               struct builder *text)
{
    cy_value value;
    cy_err err = builder_error(text);
    if (!cy_failed(err)) err = string_new(call->vm, builder_view(text), &value);
    builder_fini(text);
    if (cy_failed(err))
        return native_fail(call, err, "%s: %s", native, cy_err_text(err, vm_korean(call->vm)));
    return native_return(call, value);
}

enum native_outcome native_regex_replace(struct native_call *call)
{
    struct native_regex_use use;
    struct builder out;
    int64_t count;
    cy_bytes replacement = string_bytes(call->args[2]);
    if (!native_regex_count(call, 3, "regex.replace", "count", &count)) return NATIVE_FAIL;
    if (!native_regex_begin(call, "regex.replace", &use)) return NATIVE_FAIL;
    builder_init(&out);
    out.count_max = cy_max_size(vm_memory_left(call->vm, LIMIT_STRING_BYTES), 1);
    bool good = native_replace_check(call, use.regex, replacement) &&
                native_replace_all(call, &use, replacement, count, &out);
    native_regex_end(call, &use);
    if (good) return native_replace_text(call, "regex.replace", &out);
    builder_fini(&out);
    return NATIVE_FAIL;
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
    return native_replace_text(call, "regex.escape", &out);
}
