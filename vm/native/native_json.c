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
#include "vm/run/heap.h"
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
    return native_fail_reason(call, err, native);
}

static void native_json_drop_reading(struct vm *vm, void *state)
{
    (void)vm;
    json_reading_end(state);
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
    struct json_value_reading reading;
    struct json_value_fault fault = {0};
    bool paused;
    if (!native_resume(call, &reading, sizeof reading)) {
        cy_err err = json_reading_begin(&reading, call->vm, string_bytes(call->args[0]), &options);
        if (cy_failed(err)) return native_json_failed(call, err, "json.parse", &fault);
    }
    cy_err err = json_reading_go(&reading, call, vm_korean(call->vm), &fault, &value, &paused);
    if (paused) return native_pause(call, &reading, sizeof reading, native_json_drop_reading, "json.parse");
    json_reading_end(&reading);
    return cy_failed(err) ? native_json_failed(call, err, "json.parse", &fault) : native_return(call, value);
}

/* Between two turns. */
struct native_json_writing {
    struct builder out;
    size_t counted_bytes; /* as the heap's: many tasks may be in the middle of a text */
    struct json_writer writer;
};

static void native_json_drop_writing(struct vm *vm, void *state)
{
    struct native_json_writing *writing = state;
    heap_uncount(vm, writing->counted_bytes);
    json_writer_end(&writing->writer);
    builder_fini(&writing->out);
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
    struct native_json_writing writing;
    bool paused, first = !native_resume(call, &writing, sizeof writing);
    if (!first) heap_uncount(call->vm, writing.counted_bytes);
    if (first) {
        json_writer_begin(&writing.writer, call->vm, &options);
        string_build(call->vm, &writing.out, LIMIT_JSON_BYTES);
    }
    cy_err err =
        json_writer_go(&writing.writer, call, first ? &call->args[0] : NULL, &writing.out, &fault, &paused);
    writing.counted_bytes = paused ? writing.out.capacity : 0;
    if (paused && heap_count(call->vm, writing.counted_bytes))
        return native_pause(call, &writing, sizeof writing, native_json_drop_writing, "json.write");
    if (paused) err = CY_ERR(NO_MEMORY);
    json_writer_end(&writing.writer);
    if (cy_failed(err))
        builder_fini(&writing.out);
    else
        err = string_build_end(call->vm, &writing.out, LIMIT_JSON_BYTES, &text);
    if (cy_is(err, CY_ERR_TOO_LARGE)) err = CY_ERR(LIMIT);
    return cy_failed(err) ? native_json_failed(call, err, "json.write", &fault) : native_return(call, text);
}
