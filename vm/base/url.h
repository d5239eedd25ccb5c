/* SPDX-License-Identifier: MIT
 *
 * vm/base/url.h: URI references as RFC 3986 has them: taken apart, put together, normalised, resolved; and percent
 *       coding.
 *
 * In:   text from anywhere. Out: views into it, or text appended to a builder.
 * Invariant: what url_parse accepted is in the grammar of RFC 3986, byte for byte: ASCII, escapes whole, no spaces.
 *       Written again with url_write it is the same text (but for a ':' without a port behind it).
 * Not here: what HTTP allows in a request target (vm/http/uri.c), names of other scripts (IDNA).
 */
#ifndef CY_BASE_URL_H
#define CY_BASE_URL_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"

struct url_parts {
    bool has_scheme, has_authority, has_userinfo, has_port, has_query, has_fragment;
    uint16_t port;
    cy_bytes scheme;   /* without ':' */
    cy_bytes userinfo; /* without '@' */
    cy_bytes host;     /* an IPv6 address keeps its brackets; may be empty */
    cy_bytes path;     /* always there, may be empty */
    cy_bytes query;    /* without '?' */
    cy_bytes fragment; /* without '#' */
};

/* Views into `text`. NULL on success, else what was expected; `*offset_out` says where. */
const char *url_parse(cy_bytes text, struct url_parts *parts_out, size_t *offset_out);
void url_write(struct builder *out, const struct url_parts *parts);

/* RFC 3986 section 6.2.2 and 6.2.3: lower-case scheme and host, no default port, escapes in capitals and none for
 * unreserved bytes, no dot segments in a path that begins with '/', "/" for the empty path of http and its kin. */
void url_write_normalised(struct builder *out, const struct url_parts *parts);
/* RFC 3986 section 5.2.2, strict. `base` has a scheme. */
void url_write_resolved(struct builder *out, const struct url_parts *base, const struct url_parts *reference);

/* RFC 3986 section 5.2.4, in place; gives the new count. */
size_t url_remove_dot_segments(uint8_t *path, size_t count);

bool url_is_unreserved(uint8_t byte);
int url_hex_digit(uint8_t byte); /* its value; -1 when it is none */

/* Everything but unreserved bytes (and those of `kept`) becomes %XX. */
void url_encode(struct builder *out, cy_bytes text, const char *kept);
/* False at a '%' without two hex digits, with its offset. */
CY_NODISCARD bool url_decode(struct builder *out, cy_bytes text, bool plus_is_space, size_t *offset_out);

#endif
