/* SPDX-License-Identifier: MIT
 *
 * vm/base/histogram.h: how often which size came, exact to 1 part in 256, over the whole range at once.
 *
 * In:   whole numbers (nanoseconds, bytes). Out: how many there were, and the value that a given part of them does not
 *       exceed.
 *
 * Buckets are log-linear: 0..255 have one each; every power of two above is cut into 256 of equal width.
 *
 *     0 1 2 ... 255 | 256 257 ... 511 | 512 514 ... 1022 | 1024 1028 ... 2044 | ...
 *
 * Cost: one addition to one counter. No memory is taken; a struct histogram is 82 KiB.
 * Invariant: smallest, largest, count and sum are exact. What is above HISTOGRAM_VALUE_MAX is counted in the last
 *       bucket.
 */
#ifndef CY_BASE_HISTOGRAM_H
#define CY_BASE_HISTOGRAM_H

#include "vm/base/base.h"

#define HISTOGRAM_PART_BITS 8
#define HISTOGRAM_PARTS (1u << HISTOGRAM_PART_BITS)
#define HISTOGRAM_VALUE_BITS 48 /* of nanoseconds: 78 hours */
#define HISTOGRAM_VALUE_MAX ((1ull << HISTOGRAM_VALUE_BITS) - 1)
#define HISTOGRAM_BUCKETS ((HISTOGRAM_VALUE_BITS - HISTOGRAM_PART_BITS + 1) * HISTOGRAM_PARTS)

struct histogram {
    uint64_t count;
    uint64_t sum; /* wraps past 2^64 */
    uint64_t smallest, largest;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_clear(struct histogram *histogram);
void histogram_add(struct histogram *histogram, uint64_t value);
/* The smallest value v of which can be said that `parts_per_million` of all values are at most v: the upper end of the
 * bucket in which that one lies, or the largest value. 1,000,000 gives the largest, 0 the smallest; 0 without any
 * value. */
uint64_t histogram_quantile(const struct histogram *histogram, uint32_t parts_per_million);
uint64_t histogram_mean(const struct histogram *histogram); /* rounded down; 0 without any value */

/* Where a value is counted, and the largest value that is counted there. For tests and plots. */
uint32_t histogram_bucket_of(uint64_t value);
uint64_t histogram_bucket_end(uint32_t bucket);

#endif
