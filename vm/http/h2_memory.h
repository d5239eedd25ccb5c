/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_memory.h: the memory that nghttp2 asks for, kept for its next request.
 *
 * In:   nghttp2's calls (struct nghttp2_mem). Out: blocks of a few sizes, last in first out, so that a request in the
 *       steady state allocates nothing.
 * Bound: at rest at most LIMIT_HTTP2_MEMORY_FREE_BYTES wait for reuse, each class its equal part of them, and under
 *        load what was in use of late (vm/base/spare.h); larger blocks than the largest class are never kept.
 * Invariant: one for each server and client, used by their loop's thread only; freed when no block is out.
 */
#ifndef CY_HTTP_H2_MEMORY_H
#define CY_HTTP_H2_MEMORY_H

#include "vm/base/base.h"
#include "vm/base/spare.h"

#include <nghttp2/nghttp2.h>

#define H2_MEMORY_CLASSES 12 /* 32 bytes to 64 KiB, each twice the one before */

struct h2_memory {
    nghttp2_mem library; /* what nghttp2 is given */
    struct spare_list spare[H2_MEMORY_CLASSES];
    size_t lent_count; /* blocks that are out */
};

void h2_memory_init(struct h2_memory *memory, struct spare_watch *watch);
void h2_memory_fini(struct h2_memory *memory); /* CHECKs that every block came back */

#endif
