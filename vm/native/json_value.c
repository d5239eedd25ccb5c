/* SPDX-License-Identifier: MIT
 *
 * vm/native/json_value.c: events of the JSON reader become values.
 *
 * In, Out, Invariant: json_value.h.
 * Method: a frame per open list or map, and values go straight into it. Keys repeat, so the last few are kept by a hash
 *       of their beginning: a list of a million maps then holds each key once, hashed once.
 * Not here: syntax (vm/base/json.c), writing (json_write.c).
 */
#include "vm/native/json_value.h"

#include "vm/base/check.h"
#include "vm/base/json.h"
#include "vm/base/limits.h"
#include "vm/run/vm.h"

#include <stdio.h>

enum {
    JSON_VALUE_KEY_BYTES_MAX = 64,
    JSON_VALUE_PIECE_BYTES =
        64 << 10, /* of a text, of white space, and events between two looks at the budget: */
    JSON_VALUE_PIECE_EVENTS = 256,
    JSON_VALUE_BYTES_PER_STEP = 50,
};

static cy_err json_value_text(struct json_value_reading *reading, cy_value *owned_out)
{
    uint8_t *data;
    CY_TRY(string_new_blank(reading->vm, reading->reader.decoded_count, owned_out, &data));
    json_decode(&reading->reader, data);
    return CY_OK;
}

/* A long text: an empty str of its size, which json_value_piece fills. */
static cy_err json_value_text_begin(struct json_value_reading *reading, bool is_key)
{
    uint8_t *data;
    CY_TRY(string_new_blank(reading->vm, reading->reader.decoded_count, &reading->text, &data));
    reading->text_is_key = is_key;
    reading->raw_at = reading->text_at = 0;
    return CY_OK;
}

static inline bool json_value_is_long(const struct json_value_reading *reading)
{
    return reading->reader.raw.count > JSON_VALUE_PIECE_BYTES;
}

/* A str for the key just read: a kept one when it is equal. */
static cy_err json_value_key(struct json_value_reading *reading, cy_value *owned_out)
{
    cy_bytes raw = reading->reader.raw;
    if (raw.count != reading->reader.decoded_count || raw.count > JSON_VALUE_KEY_BYTES_MAX)
        return json_value_text(reading, owned_out);
    uint64_t begin = 0, end = 0;
    size_t part = cy_min_size(raw.count, 8);
    memcpy(&begin, raw.data, part);
    memcpy(&end, raw.data + raw.count - part, part);
    uint64_t mixed = (begin ^ end * 31 ^ raw.count) * 0x9e3779b97f4a7c15u;
    cy_value *kept = &reading->keys[mixed >> 57];
    if (kept->tag != TAG_STR || !cy_bytes_equal(string_bytes(*kept), raw)) {
        cy_value key;
        CY_TRY(json_value_text(reading, &key));
        value_unref(reading->vm, *kept);
        *kept = key;
    }
    *owned_out = value_ref(*kept);
    return CY_OK;
}
_Static_assert(JSON_VALUE_KEYS == 1 << (64 - 57), "the shift gives an index");

/* Puts an entry into the map on top. */
static cy_err json_value_entry(struct json_value_reading *reading, cy_value owned_value)
{
    struct json_value_frame *frame = &reading->frames[reading->depth - 1];
    size_t count = map_object_count(frame->container);
    cy_value key = frame->key;
    frame->key = value_nil();
    if (reading->options.duplicates == JSON_DUPLICATES_FIRST) {
        bool found;
        cy_value known;
        cy_err err = map_get(reading->vm, frame->container, key, &found, &known);
        if (cy_failed(err) || found) {
            value_unref(reading->vm, key);
            value_unref(reading->vm, owned_value);
            return err;
        }
    }
    CY_TRY(map_set(reading->vm, &frame->container, key, owned_value));
    bool was_there = map_object_count(frame->container) == count;
    if (!was_there || reading->options.duplicates == JSON_DUPLICATES_LAST) return CY_OK;
    reading->duplicate = true;
    return CY_ERR(BAD_FORMAT);
}

static inline cy_err json_value_add(struct json_value_reading *reading, cy_value owned_value)
{
    if (reading->depth == 0) {
        reading->root = owned_value;
        return CY_OK;
    }
    struct json_value_frame *frame = &reading->frames[reading->depth - 1];
    if (frame->container.tag == TAG_LIST) return list_append(reading->vm, &frame->container, owned_value);
    return json_value_entry(reading, owned_value);
}

static cy_err json_value_open(struct json_value_reading *reading, bool is_map)
{
    CHECK(reading->depth < LIMIT_JSON_DEPTH);
    cy_value container;
    CY_TRY(is_map ? map_new(reading->vm, 0, &container) : list_new(reading->vm, 0, &container));
    reading->frames[reading->depth++] = (struct json_value_frame){container, value_nil(), 0};
    return CY_OK;
}

static cy_err json_value_event(struct json_value_reading *reading, enum json_event event)
{
    cy_value value;
    switch (event) {
    case JSON_NULL: return json_value_add(reading, value_nil());
    case JSON_TRUE:
    case JSON_FALSE: return json_value_add(reading, value_bool(event == JSON_TRUE));
    case JSON_INT: return json_value_add(reading, value_int(reading->reader.int_value));
    case JSON_FLOAT: return json_value_add(reading, value_float(reading->reader.float_value));
    case JSON_TEXT:
        if (CY_UNLIKELY(json_value_is_long(reading))) return json_value_text_begin(reading, false);
        CY_TRY(json_value_text(reading, &value));
        return json_value_add(reading, value);
    case JSON_KEY: {
        struct json_value_frame *frame = &reading->frames[reading->depth - 1];
        frame->key_offset = reading->reader.offset;
        if (CY_UNLIKELY(json_value_is_long(reading))) return json_value_text_begin(reading, true);
        return json_value_key(reading, &frame->key);
    }
    case JSON_LIST_BEGIN: return json_value_open(reading, false);
    case JSON_MAP_BEGIN: return json_value_open(reading, true);
    case JSON_LIST_END:
    case JSON_MAP_END:
        value = reading->frames[--reading->depth].container;
        return json_value_add(reading, value);
    default: UNREACHABLE();
    }
}

/* A piece of the long text under way. */
static cy_err json_value_piece(struct json_value_reading *reading)
{
    uint8_t *data = (uint8_t *)string_bytes(reading->text).data; /* nobody else has it yet */
    size_t raw_before = reading->raw_at;
    reading->text_at += json_decode_piece(&reading->reader, &reading->raw_at, JSON_VALUE_PIECE_BYTES,
                                          data + reading->text_at);
    vm_work(reading->vm, (reading->raw_at - raw_before) / (2 * JSON_VALUE_BYTES_PER_STEP));
    if (reading->raw_at < reading->reader.raw.count) return CY_OK;
    CHECK(reading->text_at == reading->reader.decoded_count);
    cy_value text = reading->text;
    reading->text = value_nil();
    if (!reading->text_is_key) return json_value_add(reading, text);
    reading->frames[reading->depth - 1].key = text;
    return CY_OK;
}

static size_t json_value_fault_offset(const struct json_value_reading *reading)
{
    return reading->duplicate ? reading->frames[reading->depth - 1].key_offset : reading->reader.offset;
}

static void json_value_say(struct json_value_reading *reading, bool korean,
                           struct json_value_fault *fault_out)
{
    const struct json_reader *reader = &reading->reader;
    size_t offset = json_value_fault_offset(reading);
    fault_out->line = reading->place.line;
    fault_out->column = reading->place.column;
    if (reading->duplicate) {
        snprintf(fault_out->message, sizeof fault_out->message, "%s",
                 korean ? "같은 열쇠가 두 번 나옵니다" : "expected another key: this one stands twice");
        return;
    }
    const char *text = json_fault_text(reader->fault, korean);
    uint8_t byte = offset < reader->input.count ? reader->input.data[offset] : 0;
    if (offset >= reader->input.count)
        snprintf(fault_out->message, sizeof fault_out->message, "%s%s", text,
                 korean ? ": 글이 끝났습니다" : ": the text ends here");
    else if (byte > 0x20 && byte < 0x7f)
        snprintf(fault_out->message, sizeof fault_out->message, korean ? "%s: '%c'" : "%s, found '%c'", text,
                 byte);
    else
        snprintf(fault_out->message, sizeof fault_out->message,
                 korean ? "%s: 바이트 0x%02x" : "%s, found byte 0x%02x", text, byte);
}

void json_reading_end(struct json_value_reading *reading)
{
    while (reading->depth > 0) {
        struct json_value_frame *frame = &reading->frames[--reading->depth];
        value_unref(reading->vm, frame->container);
        value_unref(reading->vm, frame->key);
    }
    for (size_t i = 0; i < JSON_VALUE_KEYS; i++) value_unref(reading->vm, reading->keys[i]);
    value_unref(reading->vm, reading->text);
    value_unref(reading->vm, reading->root);
}

cy_err json_reading_begin(struct json_value_reading *reading, struct vm *vm, cy_bytes text,
                          const struct json_read_options *options)
{
    reading->vm = vm;
    reading->options = *options;
    reading->depth = 0;
    reading->root = reading->text = value_nil();
    reading->duplicate = false;
    reading->failed = CY_OK;
    reading->place = (struct json_place){0, 1, 1};
    for (size_t i = 0; i < JSON_VALUE_KEYS; i++) reading->keys[i] = value_nil();
    json_reader_init(&reading->reader, text);
    reading->reader.big_int_is_float = options->big_int_is_float;
    return text.count > LIMIT_JSON_BYTES ? CY_ERR(LIMIT) : CY_OK;
}

/* Some events, a piece of a text, or a part of the way to the place of a failure. False when it is done. */
static bool json_reading_part(struct json_value_reading *reading, cy_err *err)
{
    struct json_reader *reader = &reading->reader;
    size_t before = reader->inside ? reader->text_at : reader->at;
    *err = CY_OK;
    if (cy_failed(reading->failed)) {
        size_t end = json_value_fault_offset(reading);
        before = reading->place.offset;
        json_place_advance(reader->input, cy_min_size(end, before + JSON_VALUE_PIECE_BYTES), &reading->place);
        vm_work(reading->vm, (reading->place.offset - before) / JSON_VALUE_BYTES_PER_STEP);
        if (reading->place.offset < cy_min_size(end, reader->input.count)) return true;
        *err = reading->failed;
        return false;
    }
    if (reading->text.tag == TAG_STR) {
        *err = json_value_piece(reading);
    } else {
        reader->limit = cy_min_size(reader->input.count, before + JSON_VALUE_PIECE_BYTES);
        for (int i = 0; i < JSON_VALUE_PIECE_EVENTS; i++) {
            enum json_event event = json_next(reader);
            if (event == JSON_END) return false;
            if (event == JSON_PAUSED) break;
            *err = event == JSON_FAILED ? CY_ERR(BAD_FORMAT) : json_value_event(reading, event);
            if (cy_failed(*err) || reading->text.tag == TAG_STR || reader->at >= reader->limit) break;
        }
        vm_work(reading->vm,
                ((reader->inside ? reader->text_at : reader->at) - before) / JSON_VALUE_BYTES_PER_STEP);
    }
    if (!cy_is(*err, CY_ERR_BAD_FORMAT)) return !cy_failed(*err);
    reading->failed = *err;
    *err = CY_OK;
    return true;
}

cy_err json_reading_go(struct json_value_reading *reading, struct native_call *call, bool korean,
                       struct json_value_fault *fault_out, cy_value *owned_out, bool *paused_out)
{
    cy_err err;
    *paused_out = false;
    *fault_out = (struct json_value_fault){0};
    while (json_reading_part(reading, &err))
        if (call && native_turn_over(call)) {
            *paused_out = true;
            return CY_OK;
        }
    if (cy_is(err, CY_ERR_BAD_FORMAT)) json_value_say(reading, korean, fault_out);
    if (!cy_failed(err)) {
        *owned_out = reading->root;
        reading->root = value_nil();
    }
    return err;
}

cy_err json_value_read(struct vm *vm, cy_bytes text, const struct json_read_options *options, bool korean,
                       struct json_value_fault *fault_out, cy_value *owned_out)
{
    struct json_value_reading reading;
    bool paused;
    *fault_out = (struct json_value_fault){0};
    CY_TRY(json_reading_begin(&reading, vm, text, options));
    cy_err err = json_reading_go(&reading, NULL, korean, fault_out, owned_out, &paused);
    json_reading_end(&reading);
    return err;
}
