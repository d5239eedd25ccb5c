/* SPDX-License-Identifier: MIT
 *
 * vm/code/verify_pool.c: strings, constants and natives.
 *
 * In:   the three pools, and each use of a string in the order of docs/TOAU.md.
 * Out:  accepted, or a rule and an index.
 * Invariant: no string is looked at twice, however often it is named; duplicates are found by sorting, so no
 *            choice of contents makes that slow (a table with a known hash could be flooded).
 */
#include "vm/code/verify_internal.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/code/native_table.h"

enum verify_string_check { VERIFY_STRING_IS_NAME = 1, VERIFY_STRING_IS_PATH = 2 };

/* -- duplicates ---------------------------------------------------------------------------------------- */

typedef int verify_pool_compare(const struct program *program, uint32_t a, uint32_t b);

static int verify_pool_compare_strings(const struct program *program, uint32_t a, uint32_t b)
{
    return cy_bytes_compare(program->strings[a], program->strings[b]);
}

/* By kind and bits: 0.0 and -0.0 differ. */
static uint64_t verify_pool_constant_bits(const struct constant *constant)
{
    uint64_t bits = constant->as.string;
    if (constant->kind == CONSTANT_INT) bits = (uint64_t)constant->as.i;
    if (constant->kind == CONSTANT_FLOAT) memcpy(&bits, &constant->as.f, sizeof bits);
    return bits;
}

static int verify_pool_compare_constants(const struct program *program, uint32_t a, uint32_t b)
{
    const struct constant *x = &program->constants[a], *y = &program->constants[b];
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    uint64_t x_bits = verify_pool_constant_bits(x), y_bits = verify_pool_constant_bits(y);
    return x_bits < y_bits ? -1 : x_bits > y_bits;
}

static void verify_pool_merge(const struct program *program, verify_pool_compare *compare,
                              const uint32_t *from, uint32_t *to, size_t begin, size_t middle, size_t end)
{
    size_t left = begin, right = middle;
    for (size_t at = begin; at < end; at++) {
        bool take_left = left < middle && (right >= end || compare(program, from[left], from[right]) <= 0);
        to[at] = take_left ? from[left++] : from[right++];
    }
}

/* Merge sort: each comparison costs at most the bytes of the entry it puts in place, so the whole is (bytes
 * * log count). *duplicate_out is the later of two equal entries, or `count` when all differ. */
static cy_err verify_pool_find_duplicate(const struct program *program, verify_pool_compare *compare,
                                         uint32_t count, uint32_t *duplicate_out)
{
    *duplicate_out = count;
    if (count < 2) return CY_OK;
    uint32_t *memory = mem_alloc((size_t)count * 2 * sizeof *memory);
    if (!memory) return CY_ERR(NO_MEMORY);
    uint32_t *from = memory, *to = memory + count;
    for (uint32_t i = 0; i < count; i++) from[i] = i;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width)
            verify_pool_merge(program, compare, from, to, begin, cy_min_size(begin + width, count),
                              cy_min_size(begin + 2 * width, count));
        uint32_t *sorted = to;
        to = from;
        from = sorted;
    }
    for (uint32_t i = 1; i < count; i++) {
        if (compare(program, from[i - 1], from[i]) != 0) continue;
        *duplicate_out = from[i]; /* the sort keeps the order of equals */
        break;
    }
    mem_free(memory);
    return CY_OK;
}

cy_err verify_pool_duplicates(struct verify *verify)
{
    const struct program *program = verify->program;
    uint32_t found;
    CY_TRY(verify_pool_find_duplicate(program, verify_pool_compare_strings, program->string_count, &found));
    if (found < program->string_count)
        return verify_refuse(verify, CODE_RULE_STRING_DUPLICATE, CODE_PLACE_STRING, found);
    CY_TRY(
        verify_pool_find_duplicate(program, verify_pool_compare_constants, program->constant_count, &found));
    if (found < program->constant_count)
        return verify_refuse(verify, CODE_RULE_CONSTANT_DUPLICATE, CODE_PLACE_CONSTANT, found);
    return CY_OK;
}

/* -- strings ------------------------------------------------------------------------------------------- */

cy_err verify_pool_string(struct verify *verify, uint32_t string, enum code_place place, uint32_t offset)
{
    if (string >= verify->program->string_count)
        return verify_refuse(verify, CODE_RULE_STRING_INDEX, place, offset);
    if (string > verify->strings_used) return verify_refuse(verify, CODE_RULE_STRING_ORDER, place, offset);
    if (string == verify->strings_used) verify->strings_used++;
    return CY_OK;
}

/* Names stand in messages and logs: nothing in them may move the cursor or turn the writing direction. */
static bool verify_pool_is_plain(cy_bytes text)
{
    for (size_t at = 0, length; at < text.count; at += length) {
        uint32_t code_point;
        if (!text_decode(cy_bytes_skip(text, at), &code_point, &length)) return false;
        bool is_control = code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
        if (is_control || text_is_bidi_control(code_point)) return false;
    }
    return true;
}

/* *rule_out is NONE for a good name. */
static cy_err verify_pool_judge_name(cy_bytes name, enum code_rule *rule_out)
{
    *rule_out = name.count > LIMIT_PROGRAM_NAME_BYTES ? CODE_RULE_NAME_LENGTH
                : !verify_pool_is_plain(name)         ? CODE_RULE_NAME_TEXT
                                                      : CODE_RULE_NONE;
    if (*rule_out) return CY_OK;
    struct builder composed; /* not text_is_nfc: without memory the name would be blamed */
    builder_init(&composed);
    cy_err err = text_to_nfc(name, &composed);
    if (!cy_failed(err)) err = builder_error(&composed);
    if (!cy_failed(err) && !cy_bytes_equal(builder_view(&composed), name)) *rule_out = CODE_RULE_NAME_TEXT;
    builder_fini(&composed);
    return err;
}

/* "std:http", "config", "lib/text": segments between '/', none empty, "." or "..". */
static bool verify_pool_is_path(cy_bytes path)
{
    if (cy_bytes_start_with(path, CY_BYTES("std:"))) path = cy_bytes_skip(path, 4);
    for (size_t begin = 0; begin <= path.count;) {
        cy_bytes rest = cy_bytes_skip(path, begin);
        cy_bytes segment = cy_bytes_slice(rest, 0, cy_bytes_find(rest, '/'));
        if (segment.count == 0 || cy_bytes_equal(segment, CY_BYTES(".")) ||
            cy_bytes_equal(segment, CY_BYTES("..")))
            return false;
        begin += segment.count + 1;
    }
    return true;
}

cy_err verify_pool_name(struct verify *verify, uint32_t string, bool empty_allowed, enum code_place place,
                        uint32_t offset)
{
    CY_TRY(verify_pool_string(verify, string, place, offset));
    cy_bytes name = program_string(verify->program, string);
    if (name.count == 0)
        return empty_allowed ? CY_OK : verify_refuse(verify, CODE_RULE_NAME_EMPTY, place, offset);
    if (verify->string_checks[string] & VERIFY_STRING_IS_NAME) return CY_OK;
    enum code_rule rule;
    CY_TRY(verify_pool_judge_name(name, &rule));
    if (rule) return verify_refuse(verify, rule, place, offset);
    verify->string_checks[string] |= VERIFY_STRING_IS_NAME;
    return CY_OK;
}

cy_err verify_pool_path(struct verify *verify, uint32_t string, enum code_place place, uint32_t offset)
{
    CY_TRY(verify_pool_name(verify, string, false, place, offset));
    if (verify->string_checks[string] & VERIFY_STRING_IS_PATH) return CY_OK;
    if (!verify_pool_is_path(program_string(verify->program, string)))
        return verify_refuse(verify, CODE_RULE_NAME_PATH, place, offset);
    verify->string_checks[string] |= VERIFY_STRING_IS_PATH;
    return CY_OK;
}

void verify_pool_open_scope(struct verify *verify)
{
    CHECK(verify->scope < UINT32_MAX); /* one for each record and module of a file of at most TOAU_BYTES */
    verify->scope++;
}

bool verify_pool_declare(struct verify *verify, uint32_t string)
{
    CHECK(string < verify->program->string_count);
    if (verify->string_scopes[string] == verify->scope) return false;
    verify->string_scopes[string] = verify->scope;
    return true;
}

/* -- constants and natives ----------------------------------------------------------------------------- */

static cy_err verify_pool_constant(struct verify *verify, const struct constant *constant, uint32_t index)
{
    uint64_t bits;
    switch (constant->kind) {
    case CONSTANT_INT:
        if (constant->as.i < INT8_MIN || constant->as.i > INT8_MAX) return CY_OK;
        return verify_refuse(verify, CODE_RULE_CONSTANT_SMALL, CODE_PLACE_CONSTANT, index);
    case CONSTANT_FLOAT:
        bits = verify_pool_constant_bits(constant);
        if (constant->as.f == constant->as.f || bits == CONSTANT_NAN_BITS) return CY_OK;
        return verify_refuse(verify, CODE_RULE_CONSTANT_NAN, CODE_PLACE_CONSTANT, index);
    case CONSTANT_STR: return verify_pool_string(verify, constant->as.string, CODE_PLACE_CONSTANT, index);
    }
    return verify_refuse(verify, CODE_RULE_CONSTANT_KIND, CODE_PLACE_CONSTANT, index);
}

cy_err verify_pool_constants(struct verify *verify)
{
    const struct program *program = verify->program;
    for (uint32_t i = 0; i < program->constant_count; i++)
        CY_TRY(verify_pool_constant(verify, &program->constants[i], i));
    return CY_OK;
}

cy_err verify_pool_natives(struct verify *verify)
{
    const struct program *program = verify->program;
    verify_pool_open_scope(verify);
    for (uint32_t i = 0; i < program->native_count; i++) {
        uint32_t name = program->natives[i].name;
        CY_TRY(verify_pool_name(verify, name, false, CODE_PLACE_NATIVE, i));
        if (!verify_pool_declare(verify, name))
            return verify_refuse(verify, CODE_RULE_NATIVE_DUPLICATE, CODE_PLACE_NATIVE, i);
        const struct native_row *row = native_row_find(program_string(program, name));
        if (!row) return verify_refuse(verify, CODE_RULE_NATIVE_UNKNOWN, CODE_PLACE_NATIVE, i);
        struct native_signature signature;
        native_signature_parse(row, &signature);
        verify->natives[i] = (struct verify_native){signature.required_count, signature.param_count};
    }
    if (program->capabilities != program_capabilities(program))
        return verify_refuse(verify, CODE_RULE_CAPABILITIES, CODE_PLACE_PROGRAM, 0);
    return CY_OK;
}

cy_err verify_pool_unused(struct verify *verify)
{
    const struct program *program = verify->program;
    if (verify->constants_used < program->constant_count)
        return verify_refuse(verify, CODE_RULE_CONSTANT_UNUSED, CODE_PLACE_CONSTANT, verify->constants_used);
    if (verify->natives_used < program->native_count)
        return verify_refuse(verify, CODE_RULE_NATIVE_UNUSED, CODE_PLACE_NATIVE, verify->natives_used);
    if (verify->strings_used < program->string_count)
        return verify_refuse(verify, CODE_RULE_STRING_UNUSED, CODE_PLACE_STRING, verify->strings_used);
    return CY_OK;
}
