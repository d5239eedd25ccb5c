/* SPDX-License-Identifier: MIT
 *
 * vm/http/access_log.c: see access_log.h.
 *
 *   line ─► batch ──ACCESS_LOG_BATCH_BYTES or a timer──► a thread's ring (vm/sys/output.h) ─► file
 *
 * Invariant: the batch always has room for the longest line: every text is cut at a limit before it is escaped.
 */
#include "vm/http/access_log.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/sys/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define ACCESS_LOG_BATCH_BYTES 16384 /* handed on from here: one write of the thread */
#define ACCESS_LOG_ESCAPE_BYTES 6    /* \u00HH, the longest */
#define ACCESS_LOG_FIXED_BYTES 1024  /* of a line: names, numbers, time */
#define ACCESS_LOG_LINE_BYTES                                                                       \
    (ACCESS_LOG_ESCAPE_BYTES * (LIMIT_ACCESS_LOG_TARGET_BYTES + 6 * LIMIT_ACCESS_LOG_FIELD_BYTES) + \
     ACCESS_LOG_FIXED_BYTES)
#define ACCESS_LOG_TIME_BYTES 32

struct access_log {
    struct access_log_options options;
    struct output *output; /* NULL: options.put */
    struct timer flush_timer;
    int64_t time_second;
    size_t count;        /* of `bytes` */
    uint32_t line_count; /* in them */
    uint8_t time_count;
    char time[ACCESS_LOG_TIME_BYTES];
    uint8_t bytes[ACCESS_LOG_BATCH_BYTES + ACCESS_LOG_LINE_BYTES];
};

/* -- text ------------------------------------------------------------------------------------------------ */

/* The room was made sure of by the limits. */
static void access_log_put(struct access_log *log, cy_bytes text)
{
    DCHECK(text.count <= sizeof log->bytes - log->count);
    if (text.count) memcpy(log->bytes + log->count, text.data, text.count);
    log->count += text.count;
}
#define ACCESS_LOG_PUT(log, literal) access_log_put(log, CY_BYTES(literal))

static void access_log_put_number(struct access_log *log, uint64_t number)
{
    uint8_t digits[20];
    size_t i = sizeof digits;
    do {
        digits[--i] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    access_log_put(log, cy_bytes_of(digits + i, sizeof digits - i));
}

static bool access_log_is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

static void access_log_put_escaped(struct access_log *log, uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    bool is_json = log->options.format == ACCESS_LOG_JSON;
    if (is_json && (byte == '"' || byte == '\\')) {
        const uint8_t pair[] = {'\\', byte};
        access_log_put(log, cy_bytes_of(pair, sizeof pair));
        return;
    }
    const char hex[] = {digits[byte >> 4], digits[byte & 15]};
    access_log_put(log, is_json ? CY_BYTES("\\u00") : CY_BYTES("\\x"));
    access_log_put(log, cy_bytes_of(hex, sizeof hex));
}

/* Foreign text between quotes. */
static void access_log_put_text(struct access_log *log, cy_bytes text, size_t bytes_max)
{
    text = cy_bytes_slice(text, 0, cy_min_size(text.count, bytes_max));
    size_t from = 0;
    for (size_t i = 0; i < text.count; i++) {
        if (CY_LIKELY(access_log_is_plain(text.data[i]))) continue;
        access_log_put(log, cy_bytes_slice(text, from, i));
        access_log_put_escaped(log, text.data[i]);
        from = i + 1;
    }
    access_log_put(log, cy_bytes_slice(text, from, text.count));
}

/* Made once a second. By hand, as in server.c: strftime speaks the locale's language. */
static cy_bytes access_log_time(struct access_log *log)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t now = loop_wall_seconds(log->options.loop);
    if (now != log->time_second) {
        time_t seconds = (time_t)now;
        struct tm tm;
        if (!gmtime_r(&seconds, &tm)) memset(&tm, 0, sizeof tm);
        unsigned year = (unsigned)(tm.tm_year + 1900) % 10000u, month = (unsigned)tm.tm_mon % 12u;
        unsigned day = (unsigned)tm.tm_mday % 100u, hour = (unsigned)tm.tm_hour % 100u;
        unsigned minute = (unsigned)tm.tm_min % 100u, second = (unsigned)tm.tm_sec % 100u;
        int count = log->options.format == ACCESS_LOG_JSON
                        ? snprintf(log->time, sizeof log->time, "%04u-%02u-%02uT%02u:%02u:%02uZ", year,
                                   month + 1, day, hour, minute, second)
                        : snprintf(log->time, sizeof log->time, "%02u/%.3s/%04u:%02u:%02u:%02u +0000", day,
                                   months + 3 * month, year, hour, minute, second);
        CHECK(count > 0 && (size_t)count < sizeof log->time);
        log->time_count = (uint8_t)count;
        log->time_second = now;
    }
    return cy_bytes_of(log->time, log->time_count);
}

/* -- formats --------------------------------------------------------------------------------------------- */

static void access_log_put_or_dash(struct access_log *log, cy_bytes text, size_t bytes_max)
{
    access_log_put_text(log, text.count ? text : CY_BYTES("-"), bytes_max);
}

static void access_log_put_common(struct access_log *log, const struct access_log_entry *entry)
{
    access_log_put_or_dash(log, entry->client, LIMIT_ACCESS_LOG_FIELD_BYTES);
    ACCESS_LOG_PUT(log, " - - [");
    access_log_put(log, access_log_time(log));
    ACCESS_LOG_PUT(log, "] \"");
    if (entry->protocol) {
        access_log_put_text(log, entry->method, LIMIT_ACCESS_LOG_FIELD_BYTES);
        ACCESS_LOG_PUT(log, " ");
        access_log_put_text(log, entry->target, LIMIT_ACCESS_LOG_TARGET_BYTES);
        ACCESS_LOG_PUT(log, " ");
        access_log_put(log, cy_bytes_from_text(entry->protocol));
    } else {
        ACCESS_LOG_PUT(log, "-");
    }
    ACCESS_LOG_PUT(log, "\" ");
    access_log_put_number(log, entry->status);
    ACCESS_LOG_PUT(log, " ");
    access_log_put_number(log, entry->bytes);
    if (log->options.format == ACCESS_LOG_COMMON) return;
    ACCESS_LOG_PUT(log, " \"");
    access_log_put_or_dash(log, entry->referer, LIMIT_ACCESS_LOG_FIELD_BYTES);
    ACCESS_LOG_PUT(log, "\" \"");
    access_log_put_or_dash(log, entry->user_agent, LIMIT_ACCESS_LOG_FIELD_BYTES);
    ACCESS_LOG_PUT(log, "\"");
}

static void access_log_put_member(struct access_log *log, cy_bytes name, cy_bytes text, size_t bytes_max)
{
    access_log_put(log, name); /* with the quotes around it, and what is before it */
    access_log_put_text(log, text, bytes_max);
    ACCESS_LOG_PUT(log, "\"");
}

static void access_log_put_json(struct access_log *log, const struct access_log_entry *entry)
{
    const size_t bytes_max = LIMIT_ACCESS_LOG_FIELD_BYTES;
    ACCESS_LOG_PUT(log, "{\"time\":\"");
    access_log_put(log, access_log_time(log));
    access_log_put_member(log, CY_BYTES("\",\"client\":\""), entry->client, bytes_max);
    if (entry->protocol) {
        access_log_put_member(log, CY_BYTES(",\"method\":\""), entry->method, bytes_max);
        access_log_put_member(log, CY_BYTES(",\"host\":\""), entry->host, bytes_max);
        access_log_put_member(log, CY_BYTES(",\"target\":\""), entry->target, LIMIT_ACCESS_LOG_TARGET_BYTES);
        access_log_put_member(log, CY_BYTES(",\"protocol\":\""), cy_bytes_from_text(entry->protocol),
                              bytes_max);
    }
    ACCESS_LOG_PUT(log, ",\"status\":");
    access_log_put_number(log, entry->status);
    ACCESS_LOG_PUT(log, ",\"bytes\":");
    access_log_put_number(log, entry->bytes);
    ACCESS_LOG_PUT(log, ",\"duration_us\":");
    access_log_put_number(log, entry->duration_us);
    if (entry->upstream.count) {
        access_log_put_member(log, CY_BYTES(",\"upstream\":\""), entry->upstream, bytes_max);
        if (entry->upstream_us != UINT64_MAX) {
            ACCESS_LOG_PUT(log, ",\"upstream_us\":");
            access_log_put_number(log, entry->upstream_us);
        }
    }
    if (entry->referer.count)
        access_log_put_member(log, CY_BYTES(",\"referer\":\""), entry->referer, bytes_max);
    if (entry->user_agent.count)
        access_log_put_member(log, CY_BYTES(",\"user_agent\":\""), entry->user_agent, bytes_max);
    ACCESS_LOG_PUT(log, "}");
}

/* -- batches --------------------------------------------------------------------------------------------- */

void access_log_flush(struct access_log *log)
{
    if (log->count == 0) return;
    cy_bytes lines = cy_bytes_of(log->bytes, log->count);
    bool taken =
        log->output ? output_write(log->output, lines) : log->options.put(log->options.context, lines);
    if (!taken) log->options.counters->log_lines_dropped += log->line_count;
    log->count = log->line_count = 0;
}

static void access_log_on_timer(struct timer *timer)
{
    access_log_flush(CY_CONTAINER_OF(timer, struct access_log, flush_timer));
}

void access_log_write(struct access_log *log, const struct access_log_entry *entry)
{
    if (log->options.format == ACCESS_LOG_JSON)
        access_log_put_json(log, entry);
    else
        access_log_put_common(log, entry);
    ACCESS_LOG_PUT(log, "\n");
    log->line_count++;
    log->options.counters->log_lines++;
    if (log->count >= ACCESS_LOG_BATCH_BYTES)
        access_log_flush(log);
    else if (!timer_is_set(&log->flush_timer)) /* it may find nothing: cheaper than clearing it */
        loop_timer_set(log->options.loop, &log->flush_timer, LIMIT_ACCESS_LOG_FLUSH_MS);
}

/* -- opening and closing --------------------------------------------------------------------------------- */

cy_err access_log_new(const struct access_log_options *options, struct access_log **log_out)
{
    CHECK(options->loop && options->counters && (options->owned_descriptor >= 0 || options->put));
    struct access_log *log = mem_alloc(sizeof *log);
    cy_err err = log ? CY_OK : CY_ERR(NO_MEMORY);
    if (log) {
        memset(log, 0, offsetof(struct access_log, bytes));
        log->options = *options;
        log->time_second = INT64_MIN;
        log->flush_timer.fire = access_log_on_timer;
        if (options->owned_descriptor >= 0) err = output_new(options->owned_descriptor, &log->output);
    }
    if (cy_failed(err)) {
        if (options->owned_descriptor >= 0) close(options->owned_descriptor);
        mem_free(log);
        return err;
    }
    *log_out = log;
    return CY_OK;
}

/* The thread may be inside a write: its number then leads to the new file from the next write on. */
void access_log_reopen(struct access_log *log, int owned_descriptor)
{
    CHECK(log->output);
    access_log_flush(log);
    while (dup2(owned_descriptor, log->options.owned_descriptor) < 0 && errno == EINTR) {}
    fcntl(log->options.owned_descriptor, F_SETFD, FD_CLOEXEC);
    close(owned_descriptor);
}

void access_log_free(struct access_log **log_pointer)
{
    struct access_log *log = *log_pointer;
    *log_pointer = NULL;
    if (!log) return;
    access_log_flush(log);
    loop_timer_clear(log->options.loop, &log->flush_timer);
    output_free(&log->output);
    if (log->options.owned_descriptor >= 0) close(log->options.owned_descriptor);
    mem_free(log);
}

#undef ACCESS_LOG_BATCH_BYTES
#undef ACCESS_LOG_ESCAPE_BYTES
#undef ACCESS_LOG_FIXED_BYTES
#undef ACCESS_LOG_LINE_BYTES
#undef ACCESS_LOG_TIME_BYTES
#undef ACCESS_LOG_PUT
