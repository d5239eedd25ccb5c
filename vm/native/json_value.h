/* SPDX-License-Identifier: MIT
 *
 * vm/native/json_value.h: JSON text to values and back.
 *
 * In:   text or a value, options. Out: an owned value or text; on failure where and why.
 * Method: long documents take several turns, in pieces of about JSON_PIECE_BYTES.
 * Invariant: nothing recurses; reading makes each value once, in its place, without a tree between.
 */
#ifndef CY_NATIVE_JSON_VALUE_H
#define CY_NATIVE_JSON_VALUE_H

#include "vm/base/builder.h"
#include "vm/base/json.h"
#include "vm/run/object.h"

enum json_duplicates { JSON_DUPLICATES_REFUSED, JSON_DUPLICATES_FIRST, JSON_DUPLICATES_LAST };

struct json_read_options {
    enum json_duplicates duplicates;
    bool big_int_is_float;
};
struct json_write_options {
    uint32_t indent; /* spaces per level; 0: all on one line */
    bool sort_keys;  /* by bytes */
};
/* line 0: no place. The message is for people. */
struct json_value_fault {
    uint32_t line;
    uint32_t column;
    char message[256];
};

/* BAD_FORMAT with a place; else LIMIT (JSON_BYTES), NO_MEMORY. In one go. */
CY_NODISCARD cy_err json_value_read(struct vm *vm, cy_bytes text, const struct json_read_options *options,
                                    bool korean, struct json_value_fault *fault_out, cy_value *owned_out);
/* Appends to `out`, whose count_max the caller has set. TYPE, VALUE, BAD_TEXT with a message that names the place
 * inside the value; DEPTH; out's own failure is the caller's to look at. In one go. */
CY_NODISCARD cy_err json_value_write(struct vm *vm, cy_value value, const struct json_write_options *options,
                                     struct builder *out, struct json_value_fault *fault_out);

/* -- in turns: a struct that may be moved between two calls ------------------------------------------------ */
struct native_call;

struct json_write_entry {
    cy_bytes key;
    cy_value value;
};
struct json_write_frame {
    cy_value container;
    size_t cursor;                   /* of the next content */
    struct json_write_entry *sorted; /* with sort_keys: entries, and as much room to sort them in */
    size_t sorted_count, sorted_end;
    cy_bytes key; /* of the content being written, for messages */
    bool any;     /* a content was written */
};
/* Sorting the entries of the frame on top, from runs to the whole. */
struct json_write_sort {
    bool busy, merging;
    size_t filled;
    size_t runs;
    size_t width, begin, left, right, out;
    struct json_write_entry *from, *to;
};
/* What a writer is in the middle of. */
enum json_write_part { JSON_WRITE_NO_TEXT, JSON_WRITE_STR, JSON_WRITE_KEY, JSON_WRITE_CONTENT };
struct json_writer {
    struct vm *vm;
    struct json_write_options options;
    uint8_t in_text; /* enum json_write_part */
    cy_bytes text;   /* being written, borrowed */
    size_t text_at;
    cy_value content; /* borrowed: written next, behind its key */
    size_t charged_bytes;
    uint64_t work; /* steps not charged yet */
    struct json_write_sort sort;
    uint32_t depth;
    struct json_write_frame frames[LIMIT_JSON_DEPTH];
};
/* The caller holds `value` until the end. */
void json_writer_begin(struct json_writer *writer, struct vm *vm, const struct json_write_options *options);
/* Begins with `value`, or goes on (NULL). `call` NULL: in one go. `*paused_out`: its turn is over, call again. */
CY_NODISCARD cy_err json_writer_go(struct json_writer *writer, struct native_call *call,
                                   const cy_value *value, struct builder *out,
                                   struct json_value_fault *fault_out, bool *paused_out);
/* Lets go of everything, at the end and in the middle. */
void json_writer_end(struct json_writer *writer);

enum { JSON_VALUE_KEYS = 128 };

struct json_value_frame {
    cy_value container;
    cy_value key; /* map: whose value comes next */
    size_t key_offset;
};
struct json_value_reading {
    struct vm *vm;
    struct json_reader reader;
    struct json_read_options options;
    cy_value root;
    cy_value text; /* owned: a long one that is being decoded; nil: none */
    bool text_is_key;
    size_t raw_at, text_at;
    bool duplicate; /* what failed is a key that was there, at frames[depth - 1].key_offset */
    cy_err failed;  /* and its place is being looked for */
    struct json_place place;
    uint32_t depth;
    struct json_value_frame frames[LIMIT_JSON_DEPTH];
    cy_value keys[JSON_VALUE_KEYS]; /* str or nil */
};
/* LIMIT when the text is too long. The caller holds the text until the end. */
CY_NODISCARD cy_err json_reading_begin(struct json_value_reading *reading, struct vm *vm, cy_bytes text,
                                       const struct json_read_options *options);
/* As json_writer_go. `*owned_out` is set when it is done. */
CY_NODISCARD cy_err json_reading_go(struct json_value_reading *reading, struct native_call *call, bool korean,
                                    struct json_value_fault *fault_out, cy_value *owned_out,
                                    bool *paused_out);
void json_reading_end(struct json_value_reading *reading);

#endif
