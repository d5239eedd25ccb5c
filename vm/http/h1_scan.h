/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1_scan.h: takes field lines of the usual form, 16 bytes at a time.
 *
 * In:   where a line begins and what lies behind it. Out: the field and how many bytes its line has.
 * Invariant: what is taken here h1_parse.c's line parser takes too, with the same result; every other line is left to
 *            it, also those that are at fault. A unit test holds the two together.
 */
#ifndef CY_HTTP_H1_SCAN_H
#define CY_HTTP_H1_SCAN_H

#include "vm/http/message.h"

/* NAME ":" [SP] VALUE CR LF, with a name of at most 31 bytes and no white space behind the value. The number of bytes
 * of the line with its CR LF, `field_out` filled in; 0: not of that form, or not all here, or no vectors on this
 * processor. */
size_t h1_scan_field(cy_bytes input, struct http_field *field_out);

#endif
