/* SPDX-License-Identifier: MIT
 *
 * vm/base/histogram.c: see histogram.h.
 *
 * In:   values. Out: counters and quantiles.
 * Invariant: bucket_of(bucket_end(b)) == b for every bucket, and the sum of all buckets is `count`.
 */
#include "vm/base/histogram.h"

#include "vm/base/check.h"

#include <string.h>

void histogram_clear(struct histogram *histogram)
{
    memset(histogram, 0, sizeof *histogram);
    histogram->smallest = UINT64_MAX;
}

uint32_t histogram_bucket_of(uint64_t value)
{
    if (value > HISTOGRAM_VALUE_MAX) value = HISTOGRAM_VALUE_MAX;
    if (value < HISTOGRAM_PARTS) return (uint32_t)value;
    /* The highest bit says which row, the HISTOGRAM_PART_BITS below it which part of the row. */
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_PART_BITS;
    return (shift + 1) * HISTOGRAM_PARTS + (uint32_t)((value >> shift) - HISTOGRAM_PARTS);
}

uint64_t histogram_bucket_end(uint32_t bucket)
{
    CHECK(bucket < HISTOGRAM_BUCKETS);
    if (bucket < HISTOGRAM_PARTS) return bucket;
    unsigned shift = bucket / HISTOGRAM_PARTS - 1;
    uint64_t begin = (uint64_t)(bucket % HISTOGRAM_PARTS + HISTOGRAM_PARTS) << shift;
    return begin + ((uint64_t)1 << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->count++;
    histogram->sum += value;
    if (value < histogram->smallest) histogram->smallest = value;
    if (value > histogram->largest) histogram->largest = value;
    histogram->buckets[histogram_bucket_of(value)]++;
}

/* ceil(count * ppm / 1,000,000) without overflow, at least 1. */
static uint64_t histogram_rank(uint64_t count, uint32_t parts_per_million)
{
    uint64_t millions = count / 1000000u, rest = count % 1000000u;
    uint64_t rank = millions * parts_per_million + (rest * parts_per_million + 999999u) / 1000000u;
    return rank ? rank : 1;
}

uint64_t histogram_quantile(const struct histogram *histogram, uint32_t parts_per_million)
{
    CHECK(parts_per_million <= 1000000u);
    if (histogram->count == 0) return 0;
    if (parts_per_million == 0) return histogram->smallest;
    uint64_t rank = histogram_rank(histogram->count, parts_per_million), seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen < rank) continue;
        uint64_t end = histogram_bucket_end(i);
        bool last = i == HISTOGRAM_BUCKETS - 1; /* open above */
        return last || end > histogram->largest ? histogram->largest : end;
    }
    UNREACHABLE();
}

uint64_t histogram_mean(const struct histogram *histogram)
{
    return histogram->count ? histogram->sum / histogram->count : 0;
}
