/* SPDX-License-Identifier: MIT
 *
 * vm/base/log.h: lines for people, on stderr or where the owner says.
 *
 * In:   a level and a printf format; one call is one line, written with one write(2), so lines of several processes
 *       do not mix.
 * Out:  "2026-11-30T10:00:00.123Z warn [b1/0] text". Control bytes in the text are written as \xNN, so that a peer
 *       cannot forge a line.
 * Repeated lines: the same text again within LIMIT_LOG_REPEAT_MS is counted; one line then tells how often.
 */
#ifndef CY_BASE_LOG_H
#define CY_BASE_LOG_H

#include "vm/base/bytes.h"
#include "vm/base/limits.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* A text that was written lately. */
struct log_repeat {
    uint64_t hash;
    uint64_t since_ms; /* monotonic; 0: no entry */
    uint32_t text_bytes;
    uint32_t count; /* of the same since then, not yet told */
    uint8_t level;
    char text[168]; /* its beginning, for the line that tells */
};
struct log {
    int descriptor; /* borrowed; 2 by default */
    enum log_level level_min;
    char label[64]; /* "b1/0": instance and worker; empty = none */
    /* Takes whole lines in place of the descriptor, without waiting. NULL: a write(2) each. */
    void (*put)(void *context, cy_bytes line);
    void *context;
    bool repeated; /* a line was counted; whoever has a timer clears it and calls log_tell_repeats later */
    struct log_repeat repeats[LIMIT_LOG_REPEAT_TEXTS]; /* private */
};
void log_init(struct log *log);
void log_write(struct log *log, enum log_level level, const char *format, ...) CY_PRINTF(3, 4);
/* The same, but told apart by `key`, which the line that counts shows: for lines that differ in what does not matter.
 * */
void log_write_keyed(struct log *log, enum log_level level, const char *key, const char *format, ...)
    CY_PRINTF(4, 5);
/* Tells of repeated lines whose time is over, or with `all` of every one. Gives the milliseconds until there may be
 * something to tell, 0 when there is nothing. Whoever has a timer calls it; else the next line does. */
uint32_t log_tell_repeats(struct log *log, bool all);
/* By its word: debug, info, warn, error. */
CY_NODISCARD bool log_level_find(cy_bytes word, enum log_level *level_out);

#endif
