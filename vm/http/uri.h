/* SPDX-License-Identifier: MIT
 *
 * vm/http/uri.h: request targets and hosts: taken apart, and brought to the one form that routing compares.
 *
 * In:   bytes the head parser let through (no control bytes, no spaces, no '#').
 * Out:  views into the input where it is already in normal form, else into memory of the caller.
 * Invariant: two paths that RFC 3986 calls equivalent give the same normal path; a normal path has no dot
 *       segments, no escaped unreserved bytes, no lower-case escapes, no NUL and no backslash. %2F stays %2F:
 *       it is not a separator. Empty segments ("//") stay.
 * Not here: what is forwarded (the original).
 */
#ifndef CY_HTTP_URI_H
#define CY_HTTP_URI_H

#include "vm/base/bytes.h"
#include "vm/http/h1_fault.h"

/* Writes the normal form of an absolute path (without query) to `space`, which has room for path.count bytes;
 * gives the path itself when it is already normal. Returns enum h1_fault. */
uint8_t uri_normalise_path(cy_bytes path, uint8_t *space, cy_bytes *path_out);

/* Whether a segment of a path as received is "..", plainly or in escapes: put behind a base path it leads out of it. */
bool uri_climbs(cy_bytes path);

struct uri_host {
    cy_bytes
        host; /* lower case, without port and the trailing dot, no dot behind another; IPv6 keeps its brackets; may
                    * be empty */
    uint16_t port; /* 0: not written */
};
/* The value of Host, or the authority of an absolute target: "name", "name:80", "[::1]:80". `space` has room
 * for authority.count bytes. Returns enum h1_fault. */
uint8_t uri_normalise_host(cy_bytes authority, uint8_t *space, struct uri_host *host_out);

/* "http://authority/path?query" taken apart; false when it has no such form. `rest` begins with '/' or '?' or
 * is empty. */
bool uri_split_absolute(cy_bytes target, bool *secure_out, cy_bytes *authority_out, cy_bytes *rest_out);
/* What stands behind "scheme://", as above. */
void uri_split_authority(cy_bytes text, cy_bytes *authority_out, cy_bytes *rest_out);

#endif
