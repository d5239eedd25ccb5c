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
#include "vm/run/native_call.h"
#include "vm/run/vm.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    JSON_WRITE_PIECE_BYTES = 32 << 10, /* of one text */
    JSON_WRITE_PIECE_CONTENTS = 64,    /* between two looks at the budget */
    JSON_WRITE_BYTES_PER_STEP = 50,
    JSON_WRITE_RUN = 8,
    JSON_WRITE_SORT_WORK = 1000, /* steps of sorting between two looks */
};
/* What one call has beside the writer. */
struct json_writing {
    struct json_writer *writer;
    struct builder *out;
    struct json_value_fault *fault;
};

/* "$.a[3]" for the innermost levels that fit. */
static void json_write_path(const struct json_writing *writing, char *text, size_t bytes_max)
{
    size_t count = (size_t)snprintf(text, bytes_max, "$");
    for (uint32_t i = 0; i < writing->writer->depth && count + 48 < bytes_max; i++) {
        const struct json_write_frame *frame = &writing->writer->frames[i];
        int more = frame->container.tag == TAG_LIST
                       ? snprintf(text + count, bytes_max - count, "[%zu]", frame->cursor - 1)
                       : snprintf(text + count, bytes_max - count, ".%.32s",
                                  frame->key.count ? (const char *)frame->key.data : "");
        count += (size_t)more;
    }
}

/* `format` is a row of native_message.def. */
CY_PRINTF(3, 4)
static cy_err json_write_refuse(struct json_writing *writing, cy_err err, const char *format, ...)
{
    char path[160], what[92];
    json_write_path(writing, path, sizeof path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, vm_text(writing->writer->vm, format), arguments);
    va_end(arguments);
    snprintf(writing->fault->message, sizeof writing->fault->message, "%s: %s", path, what);
    return err;
}

static void json_write_line(struct json_writing *writing)
{
    if (writing->writer->options.indent == 0) return;
    builder_u8(writing->out, '\n');
    size_t spaces = (size_t)writing->writer->options.indent * writing->writer->depth;
    uint8_t *room = builder_reserve(writing->out, spaces);
    if (!room) return;
    memset(room, ' ', spaces);
    writing->out->count += spaces;
}

static void json_write_colon(struct json_writing *writing)
{
    builder_text(writing->out, writing->writer->options.indent ? ": " : ":");
}

/* The rest of the long text under way, or a piece of it. */
static cy_err json_write_text_piece(struct json_writing *writing)
{
    struct json_writer *writer = writing->writer;
    cy_bytes text = writer->text;
    size_t end = cy_min_size(text.count, writer->text_at + JSON_WRITE_PIECE_BYTES);
    if (!json_write_piece(writing->out, text, &writer->text_at, end))
        return json_write_refuse(writing, CY_ERR(BAD_TEXT), "byte %zu of the str is not UTF-8",
                                 writer->text_at);
    if (writer->text_at < text.count) return CY_OK;
    builder_u8(writing->out, '"');
    if (writer->in_text == JSON_WRITE_KEY) json_write_colon(writing);
    writer->in_text = writer->in_text == JSON_WRITE_KEY ? JSON_WRITE_CONTENT : JSON_WRITE_NO_TEXT;
    return CY_OK;
}

/* A text, or what begins a long one. */
static cy_err json_write_str(struct json_writing *writing, cy_bytes text, enum json_write_part part)
{
    struct json_writer *writer = writing->writer;
    writer->text = text;
    writer->text_at = 0;
    writer->in_text = (uint8_t)part;
    builder_u8(writing->out, '"');
    return text.count <= JSON_WRITE_PIECE_BYTES ? json_write_text_piece(writing) : CY_OK;
}

/* The next entry of a map, or field of a record, in the container's order. */
static bool json_write_entry_next(struct json_writing *writing, struct json_write_frame *frame,
                                  cy_value *key_out, cy_value *value_out)
{
    if (frame->container.tag == TAG_MAP)
        return map_next(frame->container, &frame->cursor, key_out, value_out);
    if (!record_field_at(writing->writer->vm, frame->container, frame->cursor, key_out, value_out))
        return false;
    frame->cursor++;
    return true;
}

static cy_err json_write_key_kind(struct json_writing *writing, cy_value key)
{
    if (key.tag == TAG_STR) return CY_OK;
    return json_write_refuse(writing, CY_ERR(TYPE), "a key is %s; keys of JSON are str",
                             value_kind_text(writing->writer->vm, key));
}

static size_t json_write_entry_count(struct json_writing *writing, cy_value container)
{
    if (container.tag == TAG_MAP) return map_object_count(container);
    cy_value key, value;
    size_t count = 0;
    while (record_field_at(writing->writer->vm, container, count, &key, &value)) count++;
    return count;
}

/* -- sorting keys ---------------------------------------------------------------------------------------- */

static size_t json_write_sorted_bytes(size_t count) { return 2 * count * sizeof(struct json_write_entry); }

static cy_err json_write_sort_begin(struct json_writing *writing, struct json_write_frame *frame)
{
    struct json_writer *writer = writing->writer;
    size_t count = json_write_entry_count(writing, frame->container);
    if (count == 0) return CY_OK;
    frame->sorted = heap_alloc(writer->vm, json_write_sorted_bytes(count));
    if (!frame->sorted) return CY_ERR(NO_MEMORY);
    frame->sorted_count = count;
    writer->sort = (struct json_write_sort){
        .busy = true, .width = JSON_WRITE_RUN, .from = frame->sorted, .to = frame->sorted + count};
    return CY_OK;
}

static bool json_write_is_before(struct json_writer *writer, const struct json_write_entry *a,
                                 const struct json_write_entry *b)
{
    writer->work += 1 + cy_min_size(a->key.count, b->key.count) / 256;
    return cy_bytes_compare(a->key, b->key) < 0;
}

/* Entries, in the container's order. */
static cy_err json_write_fill(struct json_writing *writing, struct json_write_frame *frame)
{
    struct json_write_sort *sort = &writing->writer->sort;
    cy_value key, value;
    for (int i = 0; i < JSON_WRITE_SORT_WORK && sort->filled < frame->sorted_count; i++) {
        CHECK(json_write_entry_next(writing, frame, &key, &value));
        CY_TRY(json_write_key_kind(writing, key));
        sort->from[sort->filled++] = (struct json_write_entry){string_bytes(key), value};
    }
    writing->writer->work += JSON_WRITE_SORT_WORK / 8;
    return CY_OK;
}

/* Runs of a few, by insertion. */
static void json_write_runs(struct json_writer *writer, size_t count)
{
    struct json_write_sort *sort = &writer->sort;
    uint64_t stop = writer->work + JSON_WRITE_SORT_WORK;
    for (; sort->runs < count && writer->work < stop; sort->runs += JSON_WRITE_RUN) {
        struct json_write_entry *run = sort->from + sort->runs;
        size_t length = cy_min_size(JSON_WRITE_RUN, count - sort->runs);
        for (size_t i = 1; i < length; i++) {
            struct json_write_entry entry = run[i];
            size_t to = i;
            for (; to > 0 && json_write_is_before(writer, &entry, &run[to - 1]); to--) run[to] = run[to - 1];
            run[to] = entry;
        }
    }
}

/* A part of merging pairs of runs of `width`; then the next width. */
static void json_write_merge(struct json_writer *writer, size_t count)
{
    struct json_write_sort *sort = &writer->sort;
    uint64_t stop = writer->work + JSON_WRITE_SORT_WORK;
    size_t middle = cy_min_size(sort->begin + sort->width, count),
           end = cy_min_size(middle + sort->width, count);
    if (!sort->merging) {
        sort->left = sort->out = sort->begin;
        sort->right = middle;
        sort->merging = true;
    }
    while (sort->out < end && writer->work < stop) {
        bool right = sort->left == middle ||
                     (sort->right < end &&
                      json_write_is_before(writer, &sort->from[sort->right], &sort->from[sort->left]));
        sort->to[sort->out++] = sort->from[right ? sort->right++ : sort->left++];
        writer->work++;
    }
    if (sort->out < end) return;
    sort->merging = false;
    sort->begin = end;
    if (end < count) return;
    struct json_write_entry *swap = sort->from;
    sort->from = sort->to;
    sort->to = swap;
    sort->width *= 2;
    sort->begin = 0;
}

/* One part of sorting the frame on top. */
static cy_err json_write_sort_part(struct json_writing *writing)
{
    struct json_writer *writer = writing->writer;
    struct json_write_sort *sort = &writer->sort;
    struct json_write_frame *frame = &writer->frames[writer->depth - 1];
    size_t count = frame->sorted_count;
    if (sort->filled < count) return json_write_fill(writing, frame);
    if (sort->runs < count)
        json_write_runs(writer, count);
    else if (sort->width < count)
        json_write_merge(writer, count);
    else {
        sort->busy = false;
        frame->cursor = sort->from == frame->sorted ? 0 : count; /* which half has them */
        frame->sorted_end = frame->cursor + count;
    }
    return CY_OK;
}

/* -- containers ------------------------------------------------------------------------------------------ */

static cy_err json_write_open(struct json_writing *writing, cy_value container)
{
    struct json_writer *writer = writing->writer;
    if (writer->depth == LIMIT_JSON_DEPTH)
        return json_write_refuse(writing, CY_ERR(DEPTH), "too deep (JSON_DEPTH: 512)");
    struct json_write_frame *frame = &writer->frames[writer->depth++];
    *frame = (struct json_write_frame){.container = container};
    builder_u8(writing->out, container.tag == TAG_LIST ? '[' : '{');
    return container.tag != TAG_LIST && writer->options.sort_keys ? json_write_sort_begin(writing, frame)
                                                                  : CY_OK;
}

static void json_write_drop(struct json_writer *writer)
{
    struct json_write_frame *frame = &writer->frames[--writer->depth];
    heap_free(writer->vm, frame->sorted, json_write_sorted_bytes(frame->sorted_count));
}

static void json_write_close(struct json_writing *writing)
{
    const struct json_write_frame *frame = &writing->writer->frames[writing->writer->depth - 1];
    bool is_list = frame->container.tag == TAG_LIST, any = frame->any;
    json_write_drop(writing->writer);
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
    case TAG_STR: return json_write_str(writing, string_bytes(value), JSON_WRITE_STR);
    case TAG_LIST:
    case TAG_MAP:
    case TAG_RECORD: return json_write_open(writing, value);
    default:
        return json_write_refuse(writing, CY_ERR(TYPE), "%s has no form in JSON",
                                 value_kind_text(writing->writer->vm, value));
    }
}

/* Writes what stands before the next content of the level on top, and keeps it in writer->content; false behind the
 * last. */
static bool json_write_next(struct json_writing *writing, cy_err *err_out)
{
    struct json_write_frame *frame = &writing->writer->frames[writing->writer->depth - 1];
    cy_value key, *content_out = &writing->writer->content;
    if (frame->container.tag == TAG_LIST) {
        if (frame->cursor >= list_count(frame->container)) return false;
        *content_out = list_get(frame->container, frame->cursor++);
    } else if (frame->sorted) {
        if (frame->cursor == frame->sorted_end) return false;
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
    writing->writer->in_text = JSON_WRITE_CONTENT;
    if (frame->container.tag != TAG_LIST) *err_out = json_write_str(writing, frame->key, JSON_WRITE_KEY);
    return !cy_failed(*err_out);
}

/* -- the whole ------------------------------------------------------------------------------------------- */

void json_writer_begin(struct json_writer *writer, struct vm *vm, const struct json_write_options *options)
{
    writer->vm = vm;
    writer->options = *options;
    writer->in_text = JSON_WRITE_NO_TEXT;
    writer->charged_bytes = 0;
    writer->work = 0;
    writer->sort.busy = false;
    writer->depth = 0;
}

void json_writer_end(struct json_writer *writer)
{
    while (writer->depth > 0) json_write_drop(writer);
}

/* In the middle of a long text, or sorting. */
static inline bool json_write_is_long(const struct json_writer *writer)
{
    return writer->sort.busy || writer->in_text == JSON_WRITE_STR || writer->in_text == JSON_WRITE_KEY;
}

/* One content, or a part of something long. */
static cy_err json_write_step(struct json_writing *writing)
{
    struct json_writer *writer = writing->writer;
    cy_err err = CY_OK;
    if (CY_UNLIKELY(json_write_is_long(writer)))
        return writer->sort.busy ? json_write_sort_part(writing) : json_write_text_piece(writing);
    if (writer->in_text != JSON_WRITE_CONTENT && !json_write_next(writing, &err)) {
        if (!cy_failed(err)) json_write_close(writing);
        return err;
    }
    if (writer->in_text != JSON_WRITE_CONTENT) return CY_OK; /* behind a long key */
    writer->in_text = JSON_WRITE_NO_TEXT;
    return json_write_value(writing, writer->content);
}

/* Charges what was done since the last time. */
static void json_write_charge(struct json_writer *writer, const struct builder *out)
{
    vm_work(writer->vm, writer->work + (out->count - writer->charged_bytes) / JSON_WRITE_BYTES_PER_STEP);
    writer->work = 0;
    writer->charged_bytes = out->count;
}

cy_err json_writer_go(struct json_writer *writer, struct native_call *call, const cy_value *value,
                      struct builder *out, struct json_value_fault *fault_out, bool *paused_out)
{
    struct json_writing writing = {writer, out, fault_out};
    *fault_out = (struct json_value_fault){0};
    *paused_out = false;
    if (value) writer->charged_bytes = out->count;
    cy_err err = value ? json_write_value(&writing, *value) : CY_OK;
    for (uint32_t steps = 1; !cy_failed(err) && !out->failed; steps++) {
        if (writer->depth == 0 && !json_write_is_long(writer)) break;
        err = json_write_step(&writing);
        if (steps % JSON_WRITE_PIECE_CONTENTS != 0 && !json_write_is_long(writer)) continue;
        json_write_charge(writer, out);
        *paused_out = call && !cy_failed(err) && native_turn_over(call);
        if (*paused_out) return CY_OK;
    }
    json_write_charge(writer, out);
    return err;
}

cy_err json_value_write(struct vm *vm, cy_value value, const struct json_write_options *options,
                        struct builder *out, struct json_value_fault *fault_out)
{
    struct json_writer writer;
    bool paused;
    json_writer_begin(&writer, vm, options);
    cy_err err = json_writer_go(&writer, NULL, &value, out, fault_out, &paused);
    json_writer_end(&writer);
    return err;
}
