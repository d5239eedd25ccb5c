/* SPDX-License-Identifier: MIT
 *
 * vm/base/log.c: one line, one write.
 *
 * In:   a format. Out: a line on the descriptor.
 * Invariant: allocates nothing (a log must work when memory has run out) and never writes a control byte but the
 *            final line feed. A line longer than LIMIT_LOG_LINE_BYTES ends in "..." instead of vanishing.
 */
#include "vm/base/log.h"

#include "vm/base/limits.h"

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
static void log_put_escaped(struct log_line *line, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *p = (const unsigned char *)text; *p && !line->cut; p++) {
        bool control = *p < 0x20 || *p == 0x7f;
        bool control_in_utf8 = *p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;
        if (control || control_in_utf8) {
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

void log_write(struct log *log, enum log_level level, const char *format, ...)
{
    if (level < log->level_min) return;
    struct log_line line;
    line.count = 0;
    line.cut = false;
    log_put_head(&line, log, level);

    char text[LIMIT_LOG_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int text_bytes = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_put_escaped(&line, text_bytes < 0 ? "(message could not be formatted)" : text);
    if (text_bytes >= (int)sizeof text) line.cut = true;
    log_end_line(&line);

    /* A full pipe or a closed descriptor loses the line: waiting for a log reader would stop the program. */
    int saved_errno = errno;
    while (write(log->descriptor, line.text, line.count) < 0 && errno == EINTR) {}
    errno = saved_errno;
}
