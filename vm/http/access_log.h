/* SPDX-License-Identifier: MIT
 *
 * vm/http/access_log.h: one line per request, gathered and handed on in batches.
 *
 * In:   what is known of an exchange at its end. Out: whole lines, to a file or a function, never waiting for either.
 * Formats: COMMON and COMBINED as Apache has them (bytes with the head's); JSON with everything, an object per line.
 * Hostile bytes: what a client chose never ends a line or a quoted text. COMMON and COMBINED write \xHH for control
 *       characters, '"', '\' and bytes past ASCII; JSON writes \u00HH, one for each such byte.
 * Invariant: lines that nobody takes in time are dropped whole and counted.
 */
#ifndef CY_HTTP_ACCESS_LOG_H
#define CY_HTTP_ACCESS_LOG_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/http/metrics.h"
#include "vm/net/loop.h"

struct access_log;

enum access_log_format { ACCESS_LOG_COMMON, ACCESS_LOG_COMBINED, ACCESS_LOG_JSON };

struct access_log_entry {
    cy_bytes client, method, host, target, referer, user_agent; /* empty: not known */
    cy_bytes upstream;                                          /* empty: none was asked */
    const char *protocol; /* "HTTP/1.1"; NULL: no request line was read */
    uint16_t status;      /* 499: the client went away first */
    uint64_t bytes;
    uint64_t duration_us;
    uint64_t upstream_us; /* until the head of its answer; UINT64_MAX: none came */
};

struct access_log_options {
    struct loop *loop;
    enum access_log_format format;
    struct http_server_counters *counters; /* lines and losses; borrowed */
    int owned_descriptor; /* a file of its own, opened for appending; -1: `put` takes the lines */
    bool (*put)(void *context, cy_bytes lines); /* false: dropped */
    void *context;
};
/* Takes the descriptor, also on failure. A file gets a thread, so never before a fork. */
CY_NODISCARD cy_err access_log_new(const struct access_log_options *options, struct access_log **log_out);
void access_log_write(struct access_log *log, const struct access_log_entry *entry);
/* Hands on what was gathered: lines wait at most LIMIT_ACCESS_LOG_FLUSH_MS for that. */
void access_log_flush(struct access_log *log);
/* From now on into this file: the name was moved away, say. Takes the descriptor. */
void access_log_reopen(struct access_log *log, int owned_descriptor);
/* Flushes, and waits for a file as output_free does. */
void access_log_free(struct access_log **log);

#endif
