/* SPDX-License-Identifier: MIT
 *
 * vm/sys/spawn.h: starts a program, without a shell, and holds on to it.
 *
 * In:   a program and its arguments. Out: three pipe ends of ours, non-blocking and close-on-exec, and a descriptor
 *       that becomes readable when it has ended.
 * The child leads a process group of its own, with default signals and none blocked, and gets no descriptor but 0, 1,
 * 2.
 * Invariant: only a process that was started here and has not been reaped is ever signalled.
 */
#ifndef CY_SYS_SPAWN_H
#define CY_SYS_SPAWN_H

#include "vm/base/error.h"

#include <sys/types.h>

struct spawned {
    pid_t pid;    /* 0: reaped */
    int ended;    /* readable when it has ended; -1: closed */
    int input;    /* writes to its standard input */
    int output;   /* reads its standard output */
    int messages; /* reads its standard error */
};

/* `arguments` begins with the program's name and ends with NULL; a name without a slash is searched in PATH.
 * `environment` likewise ends with NULL; NULL: ours. `folder` is where it runs, and where a name with a slash is looked
 * up; NULL: ours. NOT_FOUND, PERMISSION ... of the program itself and of the folder too. */
CY_NODISCARD cy_err spawn_start(char *const *arguments, char *const *environment, const char *folder,
                                struct spawned *spawned_out);
/* True once it has ended: its exit code, or 128 + the signal that ended it. */
bool spawn_reap(struct spawned *spawned, int *code_out);
/* Ends its whole group and closes the pipes. Does not wait: true when it is gone already, else spawn_reap says so
 * later; a process that the kernel holds (a disk that does not answer) may take any time. `ended` stays open for
 * whoever watches it. */
bool spawn_end(struct spawned *spawned);
void spawn_close(int *descriptor); /* one of the four; sets -1 */

#endif
