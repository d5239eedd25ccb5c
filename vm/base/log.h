/* SPDX-License-Identifier: MIT
 *
 * vm/base/log.h: lines for people, on stderr or where the owner says.
 *
 * In:   a level and a printf format; one call is one line, written with one write(2), so lines of several processes
 *       do not mix.
 * Out:  "2026-11-30T10:00:00.123Z warn [b1/0] text". Control bytes in the text are written as \xNN, so that a peer
 *       cannot forge a line.
 */
#ifndef CY_BASE_LOG_H
#define CY_BASE_LOG_H

#include "vm/base/base.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log {
    int descriptor; /* borrowed; 2 by default */
    enum log_level level_min;
    char label[64]; /* "b1/0": instance and worker; empty = none */
};
void log_init(struct log *log);
void log_write(struct log *log, enum log_level level, const char *format, ...) CY_PRINTF(3, 4);

#endif
