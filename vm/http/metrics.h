/* SPDX-License-Identifier: MIT
 *
 * vm/http/metrics.h: the numbers of one worker's server, in memory that other processes may read.
 *
 * In:   increments of the one process that owns them. Out: the same numbers, summed over workers by whoever reads.
 * Invariant: each number is one aligned 64-bit word that a single process stores: a reader sees an old or a new
 *       value, never half of one, and no increment costs more than a plain one. Numbers that are read together need
 *       not be of one moment.
 */
#ifndef CY_HTTP_METRICS_H
#define CY_HTTP_METRICS_H

#include "vm/base/builder.h"

/* Times in microseconds, log-linear: 8 slots for each power of two, so a slot is at most an eighth wide. The last one
 * takes all that is longer. */
#define HTTP_LATENCY_SLOTS 272

struct http_server_counters {
#define HTTP_COUNTER(name, kind, meaning) uint64_t name;
#include "vm/http/metrics.def"
#undef HTTP_COUNTER
    uint64_t responses_by_class[6];
    uint64_t latency_us_sum;
    uint64_t latency[HTTP_LATENCY_SLOTS]; /* answered requests */
};

uint32_t http_latency_slot(uint64_t us);
uint64_t http_latency_upper_us(uint32_t slot); /* the longest time that falls into it */
/* An answered request. */
void http_latency_add(struct http_server_counters *counters, uint64_t us);

/* Adds `counters`, which another process may be changing. */
void http_counters_sum(struct http_server_counters *sum, const struct http_server_counters *counters);
/* What is a state of a process and not a sum over its life begins anew with each process. */
void http_counters_restart(struct http_server_counters *counters);
/* Prometheus text (exposition format 0.0.4), with names that begin with `prefix`. */
void http_counters_write(const struct http_server_counters *counters, const char *prefix,
                         struct builder *out);

#endif
