/* SPDX-License-Identifier: MIT
 *
 * vm/native/option.c: maps of options, checked against rows.
 *
 * In:   a map that a program wrote. Out: values by row.
 * Invariant: nothing is ignored: what no row names is an error, with the nearest name where one is close.
 */
#include "vm/native/option.h"

#include "vm/base/text.h"

#include <stdio.h>

static uint32_t option_find_word(const char *const *words, cy_bytes word)
{
    for (uint32_t i = 0; words[i]; i++)
        if (cy_bytes_equal(cy_bytes_from_text(words[i]), word)) return i;
    return UINT32_MAX;
}

/* "a, b or c" */
static void option_list_words(struct vm *vm, const char *const *words, char *text, size_t bytes_max)
{
    size_t count = 0;
    text[0] = 0;
    for (size_t i = 0; words[i] && count < bytes_max; i++) {
        const char *comma = i == 0 ? "" : words[i + 1] ? ", " : vm_text(vm, " or ");
        count += (size_t)snprintf(text + count, bytes_max - count, "%s\"%s\"", comma, words[i]);
    }
}

static bool option_wrong(struct native_call *call, const char *native, const char *name, const char *wanted,
                         cy_value value)
{
    native_fail(call, CY_ERR(TYPE), "%s: %s must be %s, not %s", native, name, wanted,
                value_kind_text(call->vm, value));
    return false;
}

static bool option_take_word(struct native_call *call, const char *native, const char *name,
                             const char *const *words, cy_value value, uint32_t *index_out)
{
    char known[200];
    if (value.tag != TAG_STR) return option_wrong(call, native, name, "str", value);
    *index_out = option_find_word(words, string_bytes(value));
    if (*index_out != UINT32_MAX) return true;
    option_list_words(call->vm, words, known, sizeof known);
    native_fail(call, CY_ERR(VALUE), "%s: %s must be %s, not \"%.40s\"", native, name, known,
                (const char *)string_bytes(value).data);
    return false;
}

static bool option_take(struct native_call *call, const char *native, const struct option_row *row,
                        cy_value value, cy_value *value_out)
{
    *value_out = value;
    bool may_be_nil = row->kind == OPTION_STR_OR_NIL || row->kind == OPTION_INT_OR_NIL;
    if (may_be_nil && value_is_nil(value)) return true;
    switch (row->kind) {
    case OPTION_BOOL: return value.tag == TAG_BOOL || option_wrong(call, native, row->name, "bool", value);
    case OPTION_STR:
    case OPTION_STR_OR_NIL:
        return value.tag == TAG_STR || option_wrong(call, native, row->name, "str", value);
    case OPTION_LIST: return value.tag == TAG_LIST || option_wrong(call, native, row->name, "list", value);
    case OPTION_STR_OR_LIST:
        return value.tag == TAG_STR || value.tag == TAG_LIST ||
               option_wrong(call, native, row->name, vm_text(call->vm, "str or list"), value);
    case OPTION_WORD: {
        uint32_t index = 0;
        if (!option_take_word(call, native, row->name, row->words, value, &index)) return false;
        *value_out = value_int(index);
        return true;
    }
    case OPTION_INT:
    case OPTION_INT_OR_NIL:
        if (value.tag != TAG_INT) return option_wrong(call, native, row->name, "int", value);
        if (value.as.i >= row->min && value.as.i <= row->max) return true;
        native_fail(call, CY_ERR(VALUE), "%s: %s must be %lld..%lld, not %lld", native, row->name,
                    (long long)row->min, (long long)row->max, (long long)value.as.i);
        return false;
    }
    UNREACHABLE();
}

static bool option_unknown(struct native_call *call, const char *native, const struct option_row *rows,
                           size_t row_count, cy_value key)
{
    if (key.tag != TAG_STR)
        return option_wrong(call, native, vm_text(call->vm, "the name of an option"), "str", key);
    struct nearest nearest;
    nearest_init(&nearest, cy_bytes_slice(string_bytes(key), 0, 40));
    for (size_t i = 0; i < row_count; i++) nearest_offer(&nearest, cy_bytes_from_text(rows[i].name));
    if (nearest.best.count)
        native_fail(call, CY_ERR(VALUE), "%s: no option \"%.40s\"; did you mean \"%.*s\"?", native,
                    (const char *)string_bytes(key).data, CY_BYTES_ARG(nearest.best));
    else
        native_fail(call, CY_ERR(VALUE), "%s: no option \"%.40s\"", native,
                    (const char *)string_bytes(key).data);
    return false;
}

bool option_read(struct native_call *call, uint32_t index, const char *native, const struct option_row *rows,
                 size_t row_count, cy_value *values)
{
    for (size_t i = 0; i < row_count; i++) values[i] = value_nil();
    if (!native_has_arg(call, index)) return true;
    cy_value key, value;
    size_t cursor = 0;
    while (map_next(call->args[index], &cursor, &key, &value)) {
        size_t row = 0;
        while (row < row_count &&
               !(key.tag == TAG_STR && cy_bytes_equal(string_bytes(key), cy_bytes_from_text(rows[row].name))))
            row++;
        if (row == row_count) return option_unknown(call, native, rows, row_count, key);
        if (!option_take(call, native, &rows[row], value, &values[row])) return false;
    }
    return true;
}

bool option_word(struct native_call *call, uint32_t index, const char *native, const char *what,
                 const char *const *words, uint32_t *index_out)
{
    if (!native_has_arg(call, index)) return true;
    return option_take_word(call, native, what, words, call->args[index], index_out);
}
