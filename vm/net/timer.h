/* SPDX-License-Identifier: MIT
 *
 * vm/net/timer.h: many timers, most of which never fire.
 *
 * In:   milliseconds from now. Out: one call of `fire`, at or after its time, from the loop's turn.
 * Cost: set, reset and clear O(1) (a hierarchical wheel of 1 ms ticks); resetting to a later time only moves a number.
 * Invariant: a struct timer is its owner's memory and must be cleared before that goes.
 */
#ifndef CY_NET_TIMER_H
#define CY_NET_TIMER_H

#include "vm/base/base.h"

struct timer {
    struct timer *next, *previous; /* private */
    uint64_t due_ms;               /* 0: not set */
    uint64_t placed_ms;            /* private: the slot it sits in */
    void (*fire)(struct timer *timer);
};
struct timer_wheel;

static inline bool timer_is_set(const struct timer *timer) { return timer->due_ms != 0; }

CY_NODISCARD struct timer_wheel *timer_wheel_new(uint64_t now_ms); /* NULL: no memory */
void timer_wheel_free(struct timer_wheel **wheel);
void timer_wheel_set(struct timer_wheel *wheel, struct timer *timer, uint64_t due_ms);
void timer_wheel_clear(struct timer_wheel *wheel, struct timer *timer);
/* Fires all that are due; timers set from inside `fire` for now or earlier fire at the next call. */
void timer_wheel_advance(struct timer_wheel *wheel, uint64_t now_ms);
/* A time at or before the next due one, UINT64_MAX when nothing is set. */
uint64_t timer_wheel_next_ms(const struct timer_wheel *wheel);

#endif
