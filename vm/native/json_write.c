/* SPDX-License-Identifier: MIT
 *
 * vm/native/json_write.c: a value becomes JSON text.
 *
 * In:   any value. Out: text appended to a builder, or where in the value something cannot be written.
 * Method: a frame per open container. A record is written as a map of its fields.
 * Invariant: the output's bound is the builder's; a value whose parts are shared ends there and not later.
 * Not here: how a text is escaped (vm/base/json.c).
 */
#include "vm/base/check.h"
#include "vm/base/json.h"
#include "vm/base/limits.h"
#include "vm/native/json_value.h"
#include "vm/run/heap.h"
#include "vm/run/vm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct json_write_entry {
    cy_bytes key;
    cy_value value;
};
struct json_write_frame {
    cy_value container;
    size_t cursor;                   /* of the next content */
    struct json_write_entry *sorted; /* with sort_keys */
    size_t sorted_count;
    cy_bytes key; /* of the content being written, for messages */
    bool any;     /* a content was written */
};
struct json_writing {
    struct vm *vm;
    const struct json_write_options *options;
    struct builder *out;
    struct json_value_fault *fault;
    uint32_t depth;
    struct json_write_frame frames[LIMIT_JSON_DEPTH];
};

/* "$.a[3]" for the innermost levels that fit. */
static void json_write_path(const struct json_writing *writing, char *text, size_t bytes_max)
{
    size_t count = (size_t)snprintf(text, bytes_max, "$");
    for (uint32_t i = 0; i < writing->depth && count + 48 < bytes_max; i++) {
        const struct json_write_frame *frame = &writing->frames[i];
        int more = frame->container.tag == TAG_LIST
                       ? snprintf(text + count, bytes_max - count, "[%zu]", frame->cursor - 1)
                       : snprintf(text + count, bytes_max - count, ".%.32s",
                                  frame->key.count ? (const char *)frame->key.data : "");
        count += (size_t)more;
    }
}

static cy_err json_write_refuse(struct json_writing *writing, cy_err err, const char *what)
{
    char path[160];
    json_write_path(writing, path, sizeof path);
    snprintf(writing->fault->message, sizeof writing->fault->message, "%s: %s", path, what);
    return err;
}

static void json_write_line(struct json_writing *writing)
{
    if (writing->options->indent == 0) return;
    builder_u8(writing->out, '\n');
    size_t spaces = (size_t)writing->options->indent * writing->depth;
    uint8_t *room = builder_reserve(writing->out, spaces);
    if (!room) return;
    memset(room, ' ', spaces);
    writing->out->count += spaces;
}

static cy_err json_write_str(struct json_writing *writing, cy_bytes text)
{
    size_t offset;
    if (json_write_text(writing->out, text, &offset)) return CY_OK;
    char what[64];
    snprintf(what, sizeof what, "byte %zu of the str is not UTF-8", offset);
    return json_write_refuse(writing, CY_ERR(BAD_TEXT), what);
}

static int json_write_compare(const void *a, const void *b)
{
    return cy_bytes_compare(((const struct json_write_entry *)a)->key,
                            ((const struct json_write_entry *)b)->key);
}

/* The next entry of a map, or field of a record, in the container's order. */
static bool json_write_entry_next(struct json_writing *writing, struct json_write_frame *frame,
                                  cy_value *key_out, cy_value *value_out)
{
    if (frame->container.tag == TAG_MAP)
        return map_next(frame->container, &frame->cursor, key_out, value_out);
    if (!record_field_at(writing->vm, frame->container, frame->cursor, key_out, value_out)) return false;
    frame->cursor++;
    return true;
}

static cy_err json_write_key_kind(struct json_writing *writing, cy_value key)
{
    if (key.tag == TAG_STR) return CY_OK;
    char what[96];
    snprintf(what, sizeof what, "a key is %s; keys of JSON are str", value_kind_text(writing->vm, key));
    return json_write_refuse(writing, CY_ERR(TYPE), what);
}

static size_t json_write_entry_count(struct json_writing *writing, cy_value container)
{
    if (container.tag == TAG_MAP) return map_object_count(container);
    cy_value key, value;
    size_t count = 0;
    while (record_field_at(writing->vm, container, count, &key, &value)) count++;
    return count;
}

static cy_err json_write_sort(struct json_writing *writing, struct json_write_frame *frame)
{
    size_t count = json_write_entry_count(writing, frame->container);
    if (count == 0) return CY_OK;
    frame->sorted = heap_alloc(writing->vm, count * sizeof *frame->sorted);
    if (!frame->sorted) return CY_ERR(NO_MEMORY);
    frame->sorted_count = count;
    cy_value key, value;
    for (size_t i = 0; json_write_entry_next(writing, frame, &key, &value); i++) {
        CHECK(i < count);
        frame->sorted[i] = (struct json_write_entry){CY_BYTES_NONE, value_nil()};
        CY_TRY(json_write_key_kind(writing, key));
        frame->sorted[i] = (struct json_write_entry){string_bytes(key), value};
    }
    frame->cursor = 0;
    qsort(frame->sorted, count, sizeof *frame->sorted, json_write_compare);
    return CY_OK;
}

static cy_err json_write_open(struct json_writing *writing, cy_value container)
{
    if (writing->depth == LIMIT_JSON_DEPTH)
        return json_write_refuse(writing, CY_ERR(DEPTH), "too deep (JSON_DEPTH)");
    struct json_write_frame *frame = &writing->frames[writing->depth++];
    *frame = (struct json_write_frame){.container = container};
    builder_u8(writing->out, container.tag == TAG_LIST ? '[' : '{');
    return container.tag != TAG_LIST && writing->options->sort_keys ? json_write_sort(writing, frame) : CY_OK;
}

static void json_write_drop(struct json_writing *writing)
{
    struct json_write_frame *frame = &writing->frames[--writing->depth];
    heap_free(writing->vm, frame->sorted, frame->sorted_count * sizeof *frame->sorted);
}

static void json_write_close(struct json_writing *writing)
{
    const struct json_write_frame *frame = &writing->frames[writing->depth - 1];
    bool is_list = frame->container.tag == TAG_LIST, any = frame->any;
    json_write_drop(writing);
    if (any) json_write_line(writing);
    builder_u8(writing->out, is_list ? ']' : '}');
}

/* A value without contents, or the opening of one with. */
static cy_err json_write_value(struct json_writing *writing, cy_value value)
{
    switch (value.tag) {
    case TAG_NIL:
    case TAG_ABSENT: builder_text(writing->out, "null"); return CY_OK;
    case TAG_BOOL: builder_text(writing->out, value.as.b ? "true" : "false"); return CY_OK;
    case TAG_INT: builder_i64_text(writing->out, value.as.i); return CY_OK;
    case TAG_FLOAT:
        if (!isfinite(value.as.f))
            return json_write_refuse(writing, CY_ERR(VALUE), "JSON has no NaN and no infinity");
        builder_f64_text(writing->out, value.as.f);
        return CY_OK;
    case TAG_STR: return json_write_str(writing, string_bytes(value));
    case TAG_LIST:
    case TAG_MAP:
    case TAG_RECORD: return json_write_open(writing, value);
    default: {
        char what[96];
        snprintf(what, sizeof what, "%s has no form in JSON", value_kind_text(writing->vm, value));
        return json_write_refuse(writing, CY_ERR(TYPE), what);
    }
    }
}

/* Writes what stands before the next content of the level on top, and gives it; false behind the last. */
static bool json_write_next(struct json_writing *writing, cy_value *content_out, cy_err *err_out)
{
    struct json_write_frame *frame = &writing->frames[writing->depth - 1];
    cy_value key;
    if (frame->container.tag == TAG_LIST) {
        if (frame->cursor >= list_count(frame->container)) return false;
        *content_out = list_get(frame->container, frame->cursor++);
    } else if (frame->sorted) {
        if (frame->cursor >= frame->sorted_count) return false;
        frame->key = frame->sorted[frame->cursor].key;
        *content_out = frame->sorted[frame->cursor++].value;
    } else {
        if (!json_write_entry_next(writing, frame, &key, content_out)) return false;
        frame->key = CY_BYTES_NONE;
        *err_out = json_write_key_kind(writing, key);
        if (cy_failed(*err_out)) return false;
        frame->key = string_bytes(key);
    }
    if (frame->any) builder_u8(writing->out, ',');
    frame->any = true;
    json_write_line(writing);
    if (frame->container.tag == TAG_LIST) return true;
    *err_out = json_write_str(writing, frame->key);
    builder_text(writing->out, writing->options->indent ? ": " : ":");
    return !cy_failed(*err_out);
}

cy_err json_value_write(struct vm *vm, cy_value value, const struct json_write_options *options,
                        struct builder *out, struct json_value_fault *fault_out)
{
    *fault_out = (struct json_value_fault){0};
    struct json_writing writing;
    writing.vm = vm;
    writing.options = options;
    writing.out = out;
    writing.fault = fault_out;
    writing.depth = 0;
    cy_err err = json_write_value(&writing, value);
    while (!cy_failed(err) && writing.depth > 0 && !out->failed) {
        cy_value content;
        if (json_write_next(&writing, &content, &err))
            err = json_write_value(&writing, content);
        else if (!cy_failed(err))
            json_write_close(&writing);
    }
    while (writing.depth > 0) json_write_drop(&writing);
    return err;
}
