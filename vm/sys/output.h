/* SPDX-License-Identifier: MIT
 *
 * vm/sys/output.h: text to a descriptor whose reader may stop reading, without ever waiting for it.
 *
 * In:   whole pieces of text. Out: the same on the descriptor, in order, written by a thread of its own; a piece that
 *       finds no room is dropped whole and counted, and the count is told in a line once the reader goes on.
 * Threads: pieces may come from any thread.
 */
#ifndef CY_SYS_OUTPUT_H
#define CY_SYS_OUTPUT_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

struct output;

#define OUTPUT_LOSS_FORMAT "(%llu lines were dropped here: nobody read this output)\n"

/* One piece at once, in the caller's thread, for who may have no thread: lost when the reader of a pipe has no room.
 * False then; a piece longer than PIPE_BUF may lose its end. */
bool output_try(int descriptor, cy_bytes text);

/* Starts the thread; so never before a fork that goes on without exec. The descriptor stays the caller's. */
CY_NODISCARD cy_err output_new(int descriptor, struct output **output_out);
/* Never waits. False when it was dropped. A piece longer than LIMIT_OUTPUT_RING_BYTES is always dropped. */
bool output_write(struct output *output, cy_bytes text);
uint64_t output_dropped(struct output *output); /* pieces, since the start */
/* Waits until all is written, but not for a reader that takes nothing for LIMIT_OUTPUT_FLUSH_MS. */
void output_free(struct output **output);

#endif
