/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_json.c: module json: the natives over json_value.h.
 *
 * In:   arguments already checked against native.def. Out: values and texts, or errors with kind and place.
 */
#include "vm/base/limits.h"
#include "vm/native/json_value.h"
#include "vm/native/native_bodies.h"
#include "vm/native/option.h"
#include "vm/run/vm.h"

static const char *const native_json_duplicate_words[] = {
    [JSON_DUPLICATES_REFUSED] = "error",
    [JSON_DUPLICATES_FIRST] = "first",
    [JSON_DUPLICATES_LAST] = "last",
    NULL,
};
static const char *const native_json_big_int_words[] = {"error", "float", NULL};
enum { NATIVE_JSON_INDENT_MAX = 16 };

/* data {line, column} */
static cy_err native_json_place(struct native_call *call, const struct json_value_fault *fault,
                                cy_value *owned_out)
{
    CY_TRY(map_new(call->vm, 2, owned_out));
    cy_err err = map_set_text(call->vm, owned_out, CY_BYTES("line"), value_int(fault->line));
    if (!cy_failed(err))
        err = map_set_text(call->vm, owned_out, CY_BYTES("column"), value_int(fault->column));
    if (cy_failed(err)) value_unref(call->vm, *owned_out);
    return err;
}

static enum native_outcome native_json_failed(struct native_call *call, cy_err err, const char *native,
                                              const struct json_value_fault *fault)
{
    cy_value place;
    cy_err place_err = fault->line ? native_json_place(call, fault, &place) : CY_OK;
    if (cy_failed(place_err)) return native_fail(call, place_err, "%s", native);
    if (fault->line)
        return native_fail_data(call, err, place, "%s: %u:%u: %s", native, fault->line, fault->column,
                                fault->message);
    if (fault->message[0]) return native_fail(call, err, "%s: %s", native, fault->message);
    if (cy_is(err, CY_ERR_LIMIT))
        return native_fail(call, err, "%s: %s (JSON_BYTES: %d)", native,
                           cy_err_text(err, vm_korean(call->vm)), LIMIT_JSON_BYTES);
    return native_fail(call, err, "%s: %s", native, cy_err_text(err, vm_korean(call->vm)));
}

enum native_outcome native_json_parse(struct native_call *call)
{
    static const struct option_row rows[] = {
        {.name = "duplicates", .kind = OPTION_WORD, .words = native_json_duplicate_words},
        {.name = "big_ints", .kind = OPTION_WORD, .words = native_json_big_int_words},
    };
    cy_value given[CY_COUNT_OF(rows)], value;
    if (!option_read(call, 1, "json.parse", rows, CY_COUNT_OF(rows), given)) return NATIVE_FAIL;
    struct json_read_options options = {
        .duplicates = given[0].tag == TAG_INT ? (enum json_duplicates)given[0].as.i : JSON_DUPLICATES_REFUSED,
        .big_int_is_float = given[1].tag == TAG_INT && given[1].as.i == 1,
    };
    struct json_value_fault fault;
    cy_bytes text = string_bytes(call->args[0]);
    cy_err err = json_value_read(call->vm, text, &options, vm_korean(call->vm), &fault, &value);
    native_charge(call, cy_min_size(text.count, LIMIT_JSON_BYTES) / 50);
    return cy_failed(err) ? native_json_failed(call, err, "json.parse", &fault) : native_return(call, value);
}

enum native_outcome native_json_write(struct native_call *call)
{
    static const struct option_row rows[] = {
        {.name = "indent", .kind = OPTION_INT, .min = 0, .max = NATIVE_JSON_INDENT_MAX},
        {.name = "sort_keys", .kind = OPTION_BOOL},
    };
    cy_value given[CY_COUNT_OF(rows)], text;
    if (!option_read(call, 1, "json.write", rows, CY_COUNT_OF(rows), given)) return NATIVE_FAIL;
    struct json_write_options options = {
        .indent = given[0].tag == TAG_INT ? (uint32_t)given[0].as.i : 0,
        .sort_keys = given[1].tag == TAG_BOOL && given[1].as.b,
    };
    struct json_value_fault fault;
    struct builder out;
    builder_init(&out);
    out.count_max = cy_max_size(vm_memory_left(call->vm, LIMIT_JSON_BYTES), 1);
    cy_err err = json_value_write(call->vm, call->args[0], &options, &out, &fault);
    if (!cy_failed(err) && out.failed)
        err = out.past_max && out.count_max == LIMIT_JSON_BYTES ? CY_ERR(LIMIT) : CY_ERR(NO_MEMORY);
    native_charge(call, out.count / 50);
    if (!cy_failed(err)) err = string_new(call->vm, builder_view(&out), &text);
    builder_fini(&out);
    return cy_failed(err) ? native_json_failed(call, err, "json.write", &fault) : native_return(call, text);
}
