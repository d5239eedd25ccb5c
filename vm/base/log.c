/* SPDX-License-Identifier: MIT
 *
 * vm/base/log.c: one line, one write.
 *
 * In:   a format. Out: a line on the descriptor, or counted when it was just written.
 * Invariant: allocates nothing (a log must work when memory has run out) and never writes a control byte but the
 *            final line feed. A line longer than LIMIT_LOG_LINE_BYTES ends in "..." instead of vanishing.
 */
#include "vm/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const log_level_names[] = {"debug", "info", "warn", "error"};

/* A line under construction. Three bytes are kept for "..." and one for the line feed. */
struct log_line {
    char text[LIMIT_LOG_LINE_BYTES];
    size_t count;
    bool cut;
};

static void log_put(struct log_line *line, const char *text, size_t count)
{
    if (line->cut || count > sizeof line->text - 4 - line->count) {
        line->cut = true;
        return;
    }
    memcpy(line->text + line->count, text, count);
    line->count += count;
}

/* Control bytes, and U+0080..U+009F which some terminals obey, are spelled out. */
/* Bytes of a sequence that some reader takes for the end of a line or for an order: C0, C1, U+2028 and U+2029. */
static uint32_t log_control_bytes(const unsigned char *p)
{
    if (*p < 0x20 || *p == 0x7f) return 1;
    if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) return 2;
    return *p == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9) ? 3 : 0;
}

static void log_put_escaped(struct log_line *line, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t escape_count = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p && !line->cut; p++) {
        if (escape_count == 0) escape_count = log_control_bytes(p);
        if (escape_count > 0) {
            escape_count--;
            char escaped[4] = {'\\', 'x', digits[*p >> 4], digits[*p & 15]};
            log_put(line, escaped, sizeof escaped);
            continue;
        }
        log_put(line, (const char *)p, 1);
    }
}

/* Cuts back to the border of a UTF-8 sequence, so that a reader never meets half a letter. */
static void log_end_line(struct log_line *line)
{
    if (line->cut) {
        size_t begin =
            line->count; /* first byte of the last sequence: at most three continuation bytes before it */
        while (begin > 0 && line->count - begin < 4 && ((unsigned char)line->text[begin - 1] & 0xc0) == 0x80)
            begin--;
        unsigned char lead = begin > 0 ? (unsigned char)line->text[begin - 1] : 0;
        size_t sequence_bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
        if (begin > 0 && line->count - (begin - 1) < sequence_bytes) line->count = begin - 1;
        memcpy(line->text + line->count, "...", 3);
        line->count += 3;
    }
    line->text[line->count++] = '\n';
}

static void log_put_head(struct log_line *line, const struct log *log, enum log_level level)
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    char head[64]; /* a date, a level: about 32 bytes */
    size_t count = strftime(head, sizeof head, "%Y-%m-%dT%H:%M:%S", &utc);
    count += (size_t)snprintf(head + count, sizeof head - count, ".%03dZ %s ", (int)(now.tv_nsec / 1000000),
                              log_level_names[level]);
    log_put(line, head, count);
    if (log->label[0]) {
        log_put(line, "[", 1);
        log_put_escaped(line, log->label);
        log_put(line, "] ", 2);
    }
}

void log_init(struct log *log) { *log = (struct log){.descriptor = STDERR_FILENO, .level_min = LOG_INFO}; }

bool log_level_find(cy_bytes word, enum log_level *level_out)
{
    for (size_t i = 0; i < CY_COUNT_OF(log_level_names); i++) {
        if (!cy_bytes_equal(word, cy_bytes_from_text(log_level_names[i]))) continue;
        *level_out = (enum log_level)i;
        return true;
    }
    return false;
}

/* A full pipe or a closed descriptor loses the line: waiting for a log reader would stop the program. */
static void log_put_line(struct log *log, const struct log_line *line)
{
    int saved_errno = errno;
    if (log->put)
        log->put(log->context, cy_bytes_of(line->text, line->count));
    else
        while (write(log->descriptor, line->text, line->count) < 0 && errno == EINTR) {}
    errno = saved_errno;
}

static void log_put_text(struct log *log, enum log_level level, const char *text, bool cut)
{
    struct log_line line;
    line.count = 0;
    line.cut = false;
    log_put_head(&line, log, level);
    log_put_escaped(&line, text);
    line.cut |= cut;
    log_end_line(&line);
    log_put_line(log, &line);
}

/* -- repeated lines -------------------------------------------------------------------------------------- */

static uint64_t log_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + 1; /* never 0 */
}

/* FNV-1a. A collision hides a line for a second only where length and beginning are equal too. */
static uint64_t log_hash(const char *text, size_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void log_tell(struct log *log, struct log_repeat *repeat, uint64_t now_ms)
{
    char text[sizeof repeat->text + 64];
    snprintf(text, sizeof text, "%s%s (%u more in %u ms)", repeat->text,
             repeat->text_bytes >= sizeof repeat->text ? "..." : "", repeat->count,
             (unsigned)(now_ms - repeat->since_ms));
    repeat->since_ms = 0;
    if (repeat->count > 0) log_put_text(log, (enum log_level)repeat->level, text, false);
}

static uint32_t log_tell_due(struct log *log, bool all, uint64_t now_ms)
{
    uint32_t next_ms = 0;
    for (size_t i = 0; i < LIMIT_LOG_REPEAT_TEXTS; i++) {
        struct log_repeat *repeat = &log->repeats[i];
        if (repeat->since_ms == 0) continue;
        uint64_t age_ms = now_ms - repeat->since_ms;
        if (all || age_ms >= LIMIT_LOG_REPEAT_MS) {
            log_tell(log, repeat, now_ms);
        } else if (repeat->count > 0) {
            uint32_t left_ms = (uint32_t)(LIMIT_LOG_REPEAT_MS - age_ms);
            if (next_ms == 0 || left_ms < next_ms) next_ms = left_ms;
        }
    }
    return next_ms;
}

uint32_t log_tell_repeats(struct log *log, bool all) { return log_tell_due(log, all, log_now_ms()); }

/* True when the line is one that was just written: it is counted instead. */
static bool log_is_repeated(struct log *log, enum log_level level, const char *text)
{
    uint64_t now_ms = log_now_ms();
    size_t count = strlen(text);
    uint64_t hash = log_hash(text, count);
    log_tell_due(log, false, now_ms);
    struct log_repeat *oldest = &log->repeats[0];
    for (size_t i = 0; i < LIMIT_LOG_REPEAT_TEXTS; i++) {
        struct log_repeat *repeat = &log->repeats[i];
        if (repeat->since_ms < oldest->since_ms) oldest = repeat;
        if (repeat->since_ms == 0 || repeat->hash != hash || repeat->text_bytes != count) continue;
        if (repeat->level != level || strncmp(repeat->text, text, strlen(repeat->text)) != 0) continue;
        repeat->count++;
        log->repeated = true;
        return true;
    }
    if (oldest->since_ms) log_tell(log, oldest, now_ms);
    oldest->hash = hash;
    oldest->since_ms = now_ms;
    oldest->text_bytes = (uint32_t)count;
    oldest->count = 0;
    oldest->level = (uint8_t)level;
    size_t kept = cy_min_size(count, sizeof oldest->text - 1);
    while (kept > 0 && kept < count && ((unsigned char)text[kept] & 0xc0) == 0x80)
        kept--; /* no half letter */
    memcpy(oldest->text, text, kept);
    oldest->text[kept] = 0;
    return false;
}

static void log_write_list(struct log *log, enum log_level level, const char *key, const char *format,
                           va_list arguments)
{
    char text[LIMIT_LOG_LINE_BYTES];
    int text_bytes = vsnprintf(text, sizeof text, format, arguments);
    if (text_bytes < 0) snprintf(text, sizeof text, "(message could not be formatted)");
    if (log_is_repeated(log, level, key ? key : text)) return;
    log_put_text(log, level, text, text_bytes >= (int)sizeof text);
}

void log_write(struct log *log, enum log_level level, const char *format, ...)
{
    if (level < log->level_min) return;
    va_list arguments;
    va_start(arguments, format);
    log_write_list(log, level, NULL, format, arguments);
    va_end(arguments);
}

void log_write_keyed(struct log *log, enum log_level level, const char *key, const char *format, ...)
{
    if (level < log->level_min) return;
    va_list arguments;
    va_start(arguments, format);
    log_write_list(log, level, key, format, arguments);
    va_end(arguments);
}
