/* SPDX-License-Identifier: MIT
 *
 * vm/base/check.c: the end of a process that found a bug in itself.
 *
 * In:   the condition that did not hold, and where.
 * Out:  one line and a stack on stderr, then abort(): the master sees the signal, a core file keeps the state.
 * Invariant: allocates nothing, because the heap may be what is broken.
 */
#include "vm/base/check.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CHECK_FRAMES_MAX = 64, /* a stack on a screen; deeper frames are the event loop's anyway */
    CHECK_LINE_BYTES = 1024
};

void check_failed(const char *condition, const char *file, int line)
{
    char text[CHECK_LINE_BYTES];
    int bytes = snprintf(text, sizeof text, "crownyc: CHECK failed: %s\n  at %s:%d\n", condition, file, line);
    if (bytes >= (int)sizeof text) bytes = (int)sizeof text - 1;
    if (bytes > 0 && write(STDERR_FILENO, text, (size_t)bytes) < 0) abort();

    void *frames[CHECK_FRAMES_MAX];
    int frame_count = backtrace(frames, CHECK_FRAMES_MAX);
    backtrace_symbols_fd(frames, frame_count, STDERR_FILENO);
    abort();
}
