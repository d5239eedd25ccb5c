/* SPDX-License-Identifier: MIT
 *
 * vm/base/json.h: JSON as RFC 8259 has it, read as a sequence of events, and the pieces of writing it.
 *
 * In:   bytes of one document. Out: one event per call, borrowed views; nothing is allocated, nothing recurses.
 * Invariant: what json_next accepted whole is a valid document: UTF-8 without a byte order mark, no raw control bytes,
 *       no lone surrogate, no trailing comma, at most LIMIT_JSON_DEPTH levels. A reader that failed stays failed.
 * Not here: values (vm/native/json_value.c), duplicate keys (whoever builds).
 */
#ifndef CY_BASE_JSON_H
#define CY_BASE_JSON_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"
#include "vm/base/limits.h"

enum json_event {
    JSON_FAILED, /* reader.fault says why, reader.offset where */
    JSON_END,    /* the document is complete */
    JSON_NULL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_INT,   /* reader.int_value: exact */
    JSON_FLOAT, /* reader.float_value: the nearest double */
    JSON_TEXT,  /* reader.raw, decoded by json_decode */
    JSON_KEY,   /* the same; its value comes next */
    JSON_LIST_BEGIN,
    JSON_LIST_END,
    JSON_MAP_BEGIN,
    JSON_MAP_END,
    JSON_PAUSED /* at reader.limit, in the middle of a long text or of white space: set it further and call again */
};

enum json_fault {
    JSON_FAULT_NONE,
#define JSON_FAULT(name, korean, english) JSON_FAULT_##name,
#include "vm/base/json_fault.def"
#undef JSON_FAULT
    JSON_FAULT_COUNT
};
const char *json_fault_text(enum json_fault fault, bool korean);

struct json_reader {
    cy_bytes input;
    size_t at;
    /* of the last event */
    size_t offset; /* where it begins; on failure the byte that is wrong */
    int64_t int_value;
    double float_value;
    cy_bytes raw;         /* of a text: between the quotes */
    size_t decoded_count; /* bytes it has when decoded */
    enum json_fault fault;
    /* options */
    bool big_int_is_float; /* an integer beyond 64 bits is the nearest double instead of a failure */
    size_t limit;          /* where long texts and white space pause; input.count: nowhere */
    /* between events */
    bool paused;    /* in white space */
    uint8_t inside; /* enum json_event of the text that paused, or 0 */
    size_t text_at; /* where it goes on */
    size_t text_saved;
    uint8_t expect;
    uint32_t depth;
    uint64_t is_map[LIMIT_JSON_DEPTH / 64 + 1]; /* a bit per level */
};
void json_reader_init(struct json_reader *reader, cy_bytes input);
enum json_event json_next(struct json_reader *reader);
/* Writes the text of the last JSON_TEXT or JSON_KEY: exactly reader->decoded_count bytes. */
void json_decode(const struct json_reader *reader, uint8_t *to);
/* The same in pieces: from `*raw_at` (at first 0) about `bytes` of raw. Gives how many were written. */
size_t json_decode_piece(const struct json_reader *reader, size_t *raw_at, size_t bytes, uint8_t *to);
/* Line and column (code points) of an offset, both from 1. */
void json_place(cy_bytes input, size_t offset, uint32_t *line_out, uint32_t *column_out);

/* Line and column of `to`, going on from an earlier place (at first {0, 1, 1}). What lies between is UTF-8. */
struct json_place {
    size_t offset;
    uint32_t line;
    uint32_t column;
};
void json_place_advance(cy_bytes input, size_t to, struct json_place *place);

/* Appends text[*at, end) escaped, without quotes; `*at` moves to `end`, or at most 7 bytes further. False, with `*at`
 * at the first bad byte, when it is not UTF-8. */
CY_NODISCARD bool json_write_piece(struct builder *out, cy_bytes text, size_t *at, size_t end);
/* Appends `text` in quotes and escaped. False, with the offset of the first bad byte, when it is not UTF-8. */
CY_NODISCARD bool json_write_text(struct builder *out, cy_bytes text, size_t *bad_offset_out);

#endif
