/* SPDX-License-Identifier: MIT
 *
 * vm/http/metrics.c: see metrics.h.
 */
#include "vm/http/metrics.h"

#include "vm/base/check.h"

#define METRICS_SUB_BITS 3 /* 8 slots for each power of two */
#define METRICS_SUB_COUNT (1u << METRICS_SUB_BITS)
#define METRICS_GAUGE_GAUGE 1 /* METRICS_GAUGE_ and the kind of a row */
#define METRICS_GAUGE_COUNTER 0

/* -- latency --------------------------------------------------------------------------------------------- */

uint32_t http_latency_slot(uint64_t us)
{
    if (us < METRICS_SUB_COUNT) return (uint32_t)us;
    uint32_t exponent = 63u - (uint32_t)__builtin_clzll(us);
    uint32_t part = (uint32_t)(us >> (exponent - METRICS_SUB_BITS)) & (METRICS_SUB_COUNT - 1);
    uint32_t slot = (exponent - METRICS_SUB_BITS + 1) * METRICS_SUB_COUNT + part;
    return slot < HTTP_LATENCY_SLOTS ? slot : HTTP_LATENCY_SLOTS - 1;
}

uint64_t http_latency_upper_us(uint32_t slot)
{
    if (slot >= HTTP_LATENCY_SLOTS - 1) return UINT64_MAX;
    if (slot < METRICS_SUB_COUNT) return slot;
    uint32_t shift = slot / METRICS_SUB_COUNT - 1;
    return ((uint64_t)(METRICS_SUB_COUNT + slot % METRICS_SUB_COUNT + 1) << shift) - 1;
}

void http_latency_add(struct http_server_counters *counters, uint64_t us)
{
    counters->latency[http_latency_slot(us)]++;
    counters->latency_us_sum += us;
}

/* -- over workers ---------------------------------------------------------------------------------------- */

static uint64_t metrics_read(const uint64_t *number) { return __atomic_load_n(number, __ATOMIC_RELAXED); }

void http_counters_sum(struct http_server_counters *sum, const struct http_server_counters *counters)
{
    const uint64_t *from = (const uint64_t *)counters;
    uint64_t *to = (uint64_t *)sum;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += metrics_read(&from[i]);
}
_Static_assert(sizeof(struct http_server_counters) % sizeof(uint64_t) == 0, "it holds 64-bit numbers only");

void http_counters_restart(struct http_server_counters *counters)
{
#define HTTP_COUNTER(name, kind, meaning) \
    if (METRICS_GAUGE_##kind) counters->name = 0;
#include "vm/http/metrics.def"
#undef HTTP_COUNTER
}

/* -- text ------------------------------------------------------------------------------------------------ */

static void metrics_write_one(struct builder *out, const char *prefix, const char *name, bool is_gauge,
                              const char *meaning, uint64_t value)
{
    const char *end = is_gauge ? "" : "_total";
    builder_printf(out, "# HELP %s%s%s %s\n# TYPE %s%s%s %s\n%s%s%s %llu\n", prefix, name, end, meaning,
                   prefix, name, end, is_gauge ? "gauge" : "counter", prefix, name, end,
                   (unsigned long long)value);
}

/* One bucket for each power of two is enough for rates and quantiles, and 5 times less text; in seconds, as the format
 * wants it. */
static void metrics_write_latency(struct builder *out, const char *prefix,
                                  const struct http_server_counters *counters)
{
    uint64_t count = 0;
    builder_printf(out,
                   "# HELP %srequest_seconds from a request's head to the last byte of its answer\n"
                   "# TYPE %srequest_seconds histogram\n",
                   prefix, prefix);
    for (uint32_t i = 0; i < HTTP_LATENCY_SLOTS; i++) {
        count += counters->latency[i];
        uint64_t upper_us = http_latency_upper_us(i);
        bool is_shown = i % METRICS_SUB_COUNT == METRICS_SUB_COUNT - 1 && upper_us != UINT64_MAX;
        if (is_shown)
            builder_printf(out, "%srequest_seconds_bucket{le=\"%llu.%06llu\"} %llu\n", prefix,
                           (unsigned long long)((upper_us + 1) / 1000000),
                           (unsigned long long)((upper_us + 1) % 1000000), (unsigned long long)count);
    }
    builder_printf(
        out,
        "%srequest_seconds_bucket{le=\"+Inf\"} %llu\n%srequest_seconds_sum %llu.%06llu\n"
        "%srequest_seconds_count %llu\n",
        prefix, (unsigned long long)count, prefix, (unsigned long long)(counters->latency_us_sum / 1000000),
        (unsigned long long)(counters->latency_us_sum % 1000000), prefix, (unsigned long long)count);
}

void http_counters_write(const struct http_server_counters *counters, const char *prefix, struct builder *out)
{
#define HTTP_COUNTER(name, kind, meaning) \
    metrics_write_one(out, prefix, #name, METRICS_GAUGE_##kind, meaning, counters->name);
#include "vm/http/metrics.def"
#undef HTTP_COUNTER
    builder_printf(out,
                   "# HELP %sresponses_total answers by class of status\n# TYPE %sresponses_total counter\n",
                   prefix, prefix);
    for (unsigned i = 1; i < 6; i++)
        builder_printf(out, "%sresponses_total{class=\"%uxx\"} %llu\n", prefix, i,
                       (unsigned long long)counters->responses_by_class[i]);
    metrics_write_latency(out, prefix, counters);
}

#undef METRICS_SUB_BITS
#undef METRICS_SUB_COUNT
#undef METRICS_GAUGE_GAUGE
#undef METRICS_GAUGE_COUNTER
