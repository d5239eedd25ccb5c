/* SPDX-License-Identifier: MIT
 *
 * vm/http/field.h: field names that mean something to us (rows of field.def), and what may stand in a field.
 *
 * Not here: finding a field in a message by name (message.h), parsing heads (h1_parse.h).
 */
#ifndef CY_HTTP_FIELD_H
#define CY_HTTP_FIELD_H

#include "vm/base/bytes.h"

enum http_field_id {
    HTTP_FIELD_NONE, /* no row has this name */
#define HTTP_FIELD(name, first, last, text, flags) HTTP_FIELD_##name,
#include "vm/http/field.def"
#undef HTTP_FIELD
    HTTP_FIELD_COUNT
};

/* Meanings: field.def. */
enum http_field_flag {
    HTTP_FIELD_FLAG_HOP = 1,
    HTTP_FIELD_FLAG_FRAMING = 2,
    HTTP_FIELD_FLAG_FORWARDING = 4,
    HTTP_FIELD_FLAG_FORBIDDEN = 8,
    HTTP_FIELD_FLAG_SINGLE = 16,
    HTTP_FIELD_FLAG_HEAD_ONLY = 32
};

/* The row with this name in any case, HTTP_FIELD_NONE when there is none. One table look-up and one
 * comparison. */
uint8_t field_identify(cy_bytes name);
/* The same for a name of at most 31 bytes, none of them checked, that begins at `text`, where FIELD_WIDE_BYTES can be
 * read. */
#define FIELD_WIDE_BYTES 32
uint8_t field_identify_wide(const uint8_t *text, size_t count);
uint8_t field_flags(uint8_t id); /* enum http_field_flag; 0 for HTTP_FIELD_NONE */
cy_bytes field_name(uint8_t id); /* as the standard spells it */

/* True for every name that claims where a request came from, also ones no row has: X-Forwarded-anything, and
 * the spellings with '_' that CGI-like servers cannot tell from those with '-'. */
bool field_is_forwarding(cy_bytes name, uint8_t id);

/* True for every name of kind HOP or FRAMING, also spelled with '_', for the same reason. */
bool field_is_for_one_hop(cy_bytes name, uint8_t id);

bool field_is_token(cy_bytes text); /* RFC 9110 section 5.6.2, not empty */
bool field_is_token_byte(uint8_t byte);
bool field_is_value(cy_bytes text); /* visible bytes, space, tab, and 0x80 upwards; empty is allowed */

/* The next element of a comma-separated list: advances `*list`, gives it without white space around it. Empty
 * elements are given too (count 0). False at the end. */
bool field_next_element(cy_bytes *list, cy_bytes *element_out);
/* Without spaces and tabs on both sides. */
cy_bytes field_trim(cy_bytes text);

#endif
