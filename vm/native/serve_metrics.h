/* SPDX-License-Identifier: MIT
 *
 * vm/native/serve_metrics.h: the numbers of all workers, in memory that they and the master share.
 */
#ifndef CY_NATIVE_SERVE_METRICS_H
#define CY_NATIVE_SERVE_METRICS_H

#include "vm/http/metrics.h"
#include "vm/net/master.h"

struct runtime;

/* A worker that is started again goes on with the numbers of its slot. */
struct serve_metrics {
    uint64_t worker_count;
    struct master_counters master;
    struct http_server_counters workers[];
};

/* Once, before the workers; without workers with a count of 1. */
CY_NODISCARD cy_err serve_metrics_new(struct runtime *runtime, uint32_t worker_count);
void serve_metrics_free(struct runtime *runtime);
struct http_server_counters *serve_metrics_own(struct runtime *runtime);

/* The admin listener, on a server of its own, which answers GET /metrics and nothing else. */
CY_NODISCARD cy_err serve_admin_open(struct runtime *runtime);
CY_NODISCARD cy_err serve_admin_listen(struct runtime *runtime, int owned_descriptor);

#endif
