/* SPDX-License-Identifier: MIT
 *
 * tests/support/loopback.h: two connected streams in memory, without any socket.
 *
 * In:   a loop (any back end) and how much one read may give at most. Out: what one end writes, the other reads.
 * Completions come from a timer of the loop, as the contract of streams wants it.
 */
#ifndef CY_TESTS_LOOPBACK_H
#define CY_TESTS_LOOPBACK_H

#include "vm/net/stream.h"

/* `read_bytes_max` 0: a whole buffer. Each end is closed on its own. */
CY_NODISCARD cy_err loopback_pair(struct loop *loop, size_t read_bytes_max, struct stream **a_out,
                                  struct stream **b_out);
/* What the end says of itself: `info` as a TLS stream might have it. Borrowed views. */
void loopback_set_info(struct stream *stream, const struct stream_info *info);
/* Writes that this end was asked for, and the bytes of them that went over. */
uint64_t loopback_write_count(struct stream *stream);
uint64_t loopback_written_bytes(struct stream *stream);
/* The last byte of what the next read of this end gives is changed on the way. */
void loopback_spoil(struct stream *stream);

#endif
