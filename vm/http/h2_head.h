/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_head.h: heads of HTTP/2 messages while they are in our hands: one record for each field, pseudo-fields
 * too, in one buffer.
 *
 *     name length u16 | value length u32 | name | value      (little-endian)
 *
 * Heads that come in are collected field by field as HPACK gives them (struct h2_block); heads that go out are written
 * through a head_writer by the carriers' put_* calls and become nghttp2's table at the end.
 * Invariant: names are lower case in both directions. Records hold offsets, no pointers, so a block may move while it
 *       grows.
 */
#ifndef CY_HTTP_H2_HEAD_H
#define CY_HTTP_H2_HEAD_H

#include "vm/http/head_write.h"
#include "vm/http/message.h"

#include <nghttp2/nghttp2.h>

#define H2_RECORD_BYTES 6

/* -- out ------------------------------------------------------------------------------------------------- */
/* The name in lower case; the bytes were checked before. */
void h2_head_put(struct head_writer *writer, cy_bytes name, cy_bytes value);
/* The same with a value in two pieces. */
void h2_head_put_joined(struct head_writer *writer, cy_bytes name, cy_bytes value, cy_bytes more);
/* More than any head of ours has: pseudo-fields, what a message and a verdict hold, and our own. */
#define H2_HEAD_FIELDS_MAX (LIMIT_HTTP_FIELDS + LIMIT_HTTP_VERDICT_FIELDS + 16)
/* Gives the number of fields; views into the block. */
size_t h2_head_table(cy_bytes block, nghttp2_nv table[H2_HEAD_FIELDS_MAX]);
/* The same from lines "name: value" CR LF, as trailers travel inside (relay.h). */
size_t h2_head_trailer_table(cy_bytes section, uint8_t *space, nghttp2_nv table[H2_HEAD_FIELDS_MAX]);

/* -- in -------------------------------------------------------------------------------------------------- */
/* The next record off the front of `*block`. */
bool h2_head_next(cy_bytes *block, cy_bytes *name_out, cy_bytes *value_out);

struct h2_block {
    struct buffer *buffer; /* NULL: nothing yet */
    size_t list_bytes;     /* of names and values, with the 4 bytes that a line of HTTP/1 has beyond them */
    uint32_t field_count;  /* without pseudo-fields; all cookies are one */
    uint32_t cookie_count;
    bool too_large; /* LIMIT_HTTP_HEAD_BYTES or LIMIT_HTTP_FIELDS: the rest is dropped */
    bool failed;    /* no memory */
};
void h2_block_add(struct h2_block *block, struct buffer_pool *pool, cy_bytes name, cy_bytes value);
/* RFC 9113 section 8.2.3: cookies that came in pieces become one field. Call it once, at the end. */
void h2_block_join_cookies(struct h2_block *block, struct buffer_pool *pool);
void h2_block_fini(struct h2_block *block);
/* Fields only (no pseudo-fields, and of joined cookies the whole). Gives their number, at most LIMIT_HTTP_FIELDS. */
uint32_t h2_block_fields(const struct h2_block *block, struct http_field *fields);
/* The value of a pseudo-field, CY_BYTES_NONE with data NULL when it is not there. */
cy_bytes h2_block_pseudo(const struct h2_block *block, cy_bytes name);
/* As lines "name: value" CR LF in a buffer of its own, within LIMIT_HTTP_TRAILER_BYTES; NULL: none, or no memory. */
struct buffer *h2_block_trailer(const struct h2_block *block, struct buffer_pool *pool);

#endif
