/* SPDX-License-Identifier: MIT
 *
 * vm/net/timer.c: a hierarchical timing wheel.
 *
 * In:   due times in ms. Out: calls of `fire`.
 *
 * Level l has 64 slots of 64^l ms. A timer sits on the level of the highest group of 6 bits in which its time differs
 * from `now`, in the slot that this group names:
 *
 *     placed  000001 000101 110000        level 1 is the highest group that differs,
 *     now     000001 000011 001010        so level 1, slot 000101
 *
 * Hence all timers of a level are due before all of a higher one, the first occupied slot of the lowest occupied
 * level comes next, and nothing wraps. When `now` reaches the begin of a slot above level 0, its timers are placed
 * again, one level or more lower: at most LEVELS times in a timer's life.
 *
 * A timer moved to a later time stays where it is; only due_ms changes, and it is placed again when its old slot
 * comes up. Most timers (idle, read, write limits) are moved or cleared long before that.
 *
 * Invariant: placed_ms > now for every timer in a slot; a bit of `occupied` is set exactly when its slot is not
 *            empty.
 */
#include "vm/net/timer.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

#define TIMER_SLOT_BITS 6
#define TIMER_SLOTS 64
#define TIMER_LEVELS 8 /* 2^48 ms are 8,900 years; later times are clamped to that */
#define TIMER_SPAN_BITS (TIMER_SLOT_BITS * TIMER_LEVELS)

struct timer_wheel {
    uint64_t now_ms;
    uint64_t advancing_to_ms; /* what is set for a time up to here waits in `due` for the next advance */
    struct timer due;         /* list heads: `next` and `previous` only */
    uint64_t occupied[TIMER_LEVELS];
    struct timer slots[TIMER_LEVELS][TIMER_SLOTS];
};

static void timer_list_init(struct timer *head) { head->next = head->previous = head; }
static bool timer_list_empty(const struct timer *head) { return head->next == head; }

static void timer_link(struct timer *head, struct timer *timer)
{
    timer->previous = head->previous;
    timer->next = head;
    head->previous->next = timer;
    head->previous = timer;
}

/* Moves a whole list to an empty head. */
static void timer_list_move(struct timer *from, struct timer *to)
{
    timer_list_init(to);
    if (timer_list_empty(from)) return;
    to->next = from->next;
    to->previous = from->previous;
    to->next->previous = to;
    to->previous->next = to;
    timer_list_init(from);
}

static void timer_unlink(struct timer_wheel *wheel, struct timer *timer)
{
    struct timer *next = timer->next;
    bool was_last = next == timer->previous; /* both are then the head */
    timer->previous->next = next;
    next->previous = timer->previous;
    timer->next = timer->previous = NULL;
    if (!was_last) return;
    uintptr_t offset = (uintptr_t)next - (uintptr_t)wheel->slots;
    if (offset >= sizeof wheel->slots) return; /* a list outside the slots */
    size_t index = offset / sizeof(struct timer);
    wheel->occupied[index / TIMER_SLOTS] &= ~((uint64_t)1 << index % TIMER_SLOTS);
}

static void timer_place(struct timer_wheel *wheel, struct timer *timer)
{
    uint64_t placed_ms = timer->due_ms;
    uint64_t border_ms = wheel->advancing_to_ms > wheel->now_ms ? wheel->advancing_to_ms : wheel->now_ms;
    timer->placed_ms = placed_ms;
    if (placed_ms <= border_ms) {
        timer_link(&wheel->due, timer);
        return;
    }
    uint64_t difference = placed_ms ^ wheel->now_ms;
    if (difference >> TIMER_SPAN_BITS) {
        placed_ms = wheel->now_ms | (((uint64_t)1 << TIMER_SPAN_BITS) - 1);
        difference = placed_ms ^ wheel->now_ms;
        timer->placed_ms = placed_ms;
    }
    unsigned level = (63u - (unsigned)__builtin_clzll(difference | 1)) / TIMER_SLOT_BITS;
    unsigned slot = (unsigned)(placed_ms >> (level * TIMER_SLOT_BITS)) & (TIMER_SLOTS - 1);
    timer_link(&wheel->slots[level][slot], timer);
    wheel->occupied[level] |= (uint64_t)1 << slot;
}

struct timer_wheel *timer_wheel_new(uint64_t now_ms)
{
    struct timer_wheel *wheel = mem_alloc_zeroed(sizeof *wheel);
    if (!wheel) return NULL;
    wheel->now_ms = now_ms;
    timer_list_init(&wheel->due);
    for (size_t level = 0; level < TIMER_LEVELS; level++)
        for (size_t slot = 0; slot < TIMER_SLOTS; slot++) timer_list_init(&wheel->slots[level][slot]);
    return wheel;
}

void timer_wheel_free(struct timer_wheel **wheel)
{
    if (!*wheel) return;
    CHECK(timer_wheel_next_ms(*wheel) == UINT64_MAX); /* a timer left here would point into freed memory */
    mem_free(*wheel);
    *wheel = NULL;
}

void timer_wheel_set(struct timer_wheel *wheel, struct timer *timer, uint64_t due_ms)
{
    DCHECK(timer->fire != NULL);
    if (due_ms == 0) due_ms = 1; /* 0 means "not set" */
    if (timer->due_ms != 0) {
        if (due_ms >= timer->placed_ms && timer->placed_ms > wheel->now_ms) {
            timer->due_ms = due_ms; /* later: it is placed again when its slot comes up */
            return;
        }
        timer_unlink(wheel, timer);
    }
    timer->due_ms = due_ms;
    timer_place(wheel, timer);
}

void timer_wheel_clear(struct timer_wheel *wheel, struct timer *timer)
{
    if (timer->due_ms == 0) return;
    timer_unlink(wheel, timer);
    timer->due_ms = 0;
}

static void timer_fire(struct timer_wheel *wheel, struct timer *timer)
{
    timer_unlink(wheel, timer);
    timer->due_ms = 0;
    timer->fire(timer); /* may set it again, or free its memory */
}

/* The next slot with something in it: when it begins, and which one. UINT64_MAX when there is none. */
static uint64_t timer_next_slot(const struct timer_wheel *wheel, unsigned *level_out, unsigned *slot_out)
{
    for (unsigned level = 0; level < TIMER_LEVELS; level++) {
        if (wheel->occupied[level] == 0) continue;
        unsigned slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
        unsigned shift = level * TIMER_SLOT_BITS;
        uint64_t level_begin_ms = wheel->now_ms >> (shift + TIMER_SLOT_BITS) << (shift + TIMER_SLOT_BITS);
        *level_out = level;
        *slot_out = slot;
        return level_begin_ms | (uint64_t)slot << shift;
    }
    return UINT64_MAX;
}

/* `now` stands at the begin of this slot: what is due fires, the rest moves down. */
static void timer_open_slot(struct timer_wheel *wheel, unsigned level, unsigned slot)
{
    struct timer opened;
    timer_list_move(&wheel->slots[level][slot], &opened);
    wheel->occupied[level] &= ~((uint64_t)1 << slot);
    while (!timer_list_empty(&opened)) {
        struct timer *timer = opened.next;
        if (timer->due_ms <= wheel->now_ms) {
            timer_fire(wheel, timer);
        } else {
            timer_unlink(wheel, timer);
            uint64_t advancing_to_ms = wheel->advancing_to_ms;
            wheel->advancing_to_ms = 0; /* an old timer that is due within this advance fires within it */
            timer_place(wheel, timer);
            wheel->advancing_to_ms = advancing_to_ms;
        }
    }
}

void timer_wheel_advance(struct timer_wheel *wheel, uint64_t now_ms)
{
    if (now_ms < wheel->now_ms) now_ms = wheel->now_ms;
    wheel->advancing_to_ms = now_ms;
    struct timer due;
    timer_list_move(&wheel->due, &due);
    while (!timer_list_empty(&due)) {
        struct timer *timer = due.next;
        if (timer->due_ms <= now_ms) {
            timer_fire(wheel, timer);
        } else {
            timer_unlink(wheel, timer);
            timer_place(wheel, timer);
        }
    }
    unsigned level = 0, slot = 0;
    for (;;) {
        uint64_t begin_ms = timer_next_slot(wheel, &level, &slot);
        if (begin_ms > now_ms) break;
        DCHECK(begin_ms > wheel->now_ms);
        wheel->now_ms = begin_ms;
        timer_open_slot(wheel, level, slot);
    }
    wheel->now_ms = now_ms;
    wheel->advancing_to_ms = 0;
}

uint64_t timer_wheel_next_ms(const struct timer_wheel *wheel)
{
    if (!timer_list_empty(&wheel->due)) return wheel->now_ms;
    unsigned level, slot;
    return timer_next_slot(wheel, &level, &slot);
}

#undef TIMER_SLOT_BITS
#undef TIMER_SLOTS
#undef TIMER_LEVELS
#undef TIMER_SPAN_BITS
