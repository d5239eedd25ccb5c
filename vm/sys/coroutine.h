/* SPDX-License-Identifier: MIT
 *
 * vm/sys/coroutine.h: a C function that stops in the middle and goes on later, on the same thread, for libraries that
 * know no other way to give back the thread.
 *
 *   coroutine_resume ─► entry ... coroutine_pause ─┐        one stack for what calls, one for what is called;
 *         ▲                                        │        each resume returns at the next pause
 *         └────────────────────────────────────────┘
 *
 * In:   memory for it, from the caller: its stack lies in it.
 * Invariant: nothing runs by itself: between two resumes the function does not exist for anybody else. What lies on its
 *       stack is lost when the memory goes, so its owner resumes it until it has let go of what it holds.
 * Bound: the stack does not grow. Only code whose depth is known runs here: no recursion over a text, no bytecode.
 */
#ifndef CY_SYS_COROUTINE_H
#define CY_SYS_COROUTINE_H

#include "vm/base/base.h"

struct coroutine;

/* What coroutine_begin wants, aligned like malloc's. */
size_t coroutine_bytes(void);
size_t coroutine_stack_bytes(void); /* of them, at the end */
/* `memory` becomes a coroutine that has not begun. `entry` never returns: it pauses for good. */
struct coroutine *coroutine_begin(void *memory, void (*entry)(struct coroutine *coroutine, void *context),
                                  void *context);
/* Runs it until it pauses. Not from within a coroutine. */
void coroutine_resume(struct coroutine *coroutine);
/* From within: back to whoever resumed it. */
void coroutine_pause(struct coroutine *coroutine);

#endif
