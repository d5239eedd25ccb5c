/* SPDX-License-Identifier: MIT
 *
 * vm/sys/process.h: processes, their signals, and a channel between master and worker.
 *
 * A channel is a SOCK_SEQPACKET pair: one message is one packet of at most CHANNEL_MESSAGE_BYTES with at most one
 * descriptor.
 */
#ifndef CY_SYS_PROCESS_H
#define CY_SYS_PROCESS_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

#include <sys/types.h>

#define CHANNEL_MESSAGE_BYTES 4096

CY_NODISCARD cy_err channel_pair(int *a_out, int *b_out); /* close-on-exec, blocking */
/* Sends one packet; `descriptor` -1 for none (the caller keeps its copy). RESET when the other end is gone. */
CY_NODISCARD cy_err channel_send(int channel, cy_bytes message, int descriptor);
/* Receives one packet. `*count_out` 0 and CLOSED when the other end is gone. `*descriptor_out` is owned, -1 for none,
 * also when one was sent and this process has no number left for it: whoever needs it asks again. */
CY_NODISCARD cy_err channel_receive(int channel, void *message, size_t message_bytes_max, size_t *count_out,
                                    int *descriptor_out);

/* Raises the soft limit of open descriptors to the hard one and gives it: every client may need one for its upstream
 * too, and the soft limit is 1,024 on most systems. */
uint32_t process_raise_descriptors(void);
uint32_t process_cpu_count(void); /* that this process may use (affinity) */
/* Becomes `user` (name or number), its group and its groups, for good. */
CY_NODISCARD cy_err process_drop_to(const char *user);
/* Has this child of ours ended? It is not reaped by that. */
bool process_has_ended(pid_t child);
/* The child gets SIGTERM when its parent dies (Linux; elsewhere the channel's end tells). */
void process_die_with_parent(void);

/* Opens /dev/null as each of the descriptors 0 to 2 that was closed when we were started, so that nothing else gets
 * their numbers: what is printed would go into a file or a connection. First of all in main. */
void process_fill_standard_descriptors(void);

/* Two within this time are one: timeout(1) signals its child and then the child's group. */
enum { SIGNALS_PAUSE_MS = 100 };
/* A descriptor that becomes readable when one of these signals arrives; they are then blocked for normal delivery.
 * signalfd on Linux, a kqueue elsewhere. */
CY_NODISCARD cy_err signals_open(const int *signals, size_t count, int *descriptor_out);
/* The same for SIGINT and SIGTERM (or one of them), but they are not blocked: the first is told on the descriptor, and
 * another one, from SIGNALS_PAUSE_MS behind it on, ends the process as the system does it, whatever is running or
 * blocked then. SIGALRM and its timer are used for that. On failure the descriptor may be open: signals_uncatch,
 * unless it is -1. */
CY_NODISCARD cy_err signals_catch(const int *signals, size_t count, int *descriptor_out);
/* Closes what signals_catch opened. A first signal that was not read yet is sent again. `blocked`: the two wait for
 * signals_open; otherwise they do what they do. After a first signal was read the descriptor can simply be closed. */
void signals_uncatch(int *descriptor, bool blocked);
/* The next signal, 0 when there is none now. */
int signals_next(int descriptor);
/* Undoes the blocking of signals_open, whose descriptor was closed before: they do what they do, also those that came
 * and were not read. */
void signals_unblock(const int *signals, size_t count);
/* Undoes the blocking in a forked child. */
void signals_reset(void);

#endif
