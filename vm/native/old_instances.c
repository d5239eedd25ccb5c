/* SPDX-License-Identifier: MIT
 *
 * vm/native/old_instances.c: see old_instances.h.
 *
 *   add ─► in use, among the newest ─► a newer one comes: a grace begins ─► its end: cancelled
 *             └───────────────────── nobody uses it: let go ──────────────────────┘
 *
 * Invariant: while there is one, the timer is set.
 */
#include "vm/native/old_instances.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/loop.h"

#define OLD_INSTANCES_LOOK_MS 1000 /* how often they are looked at while there are any */

struct old_instance {
    struct old_instance *next;
    struct instance *instance; /* one reference */
    uint64_t cancel_ms;        /* 0: it may stay */
};

static void old_instances_look(struct timer *timer)
{
    struct old_instances *self = CY_CONTAINER_OF(timer, struct old_instances, timer);
    uint64_t now_ms = loop_now_ms(self->loop);
    uint32_t position = 0;
    for (struct old_instance **link = &self->first; *link;) {
        struct old_instance *old = *link;
        if (!instance_is_shared(old->instance)) {
            *link = old->next;
            instance_unref(self->vm, &old->instance);
            mem_free(old);
            continue;
        }
        if (++position > LIMIT_OLD_INSTANCES && old->cancel_ms == 0)
            old->cancel_ms = now_ms + LIMIT_OLD_INSTANCE_GRACE_MS;
        if (old->cancel_ms && now_ms >= old->cancel_ms) vm_cancel_instance(self->vm, old->instance);
        link = &old->next;
    }
    if (self->first) loop_timer_set(self->loop, &self->timer, OLD_INSTANCES_LOOK_MS);
}

void old_instances_init(struct old_instances *old, struct loop *loop, struct vm *vm)
{
    *old = (struct old_instances){.loop = loop, .vm = vm, .timer.fire = old_instances_look};
}

void old_instances_fini(struct old_instances *old)
{
    if (old->loop) loop_timer_clear(old->loop, &old->timer);
    while (old->first) {
        struct old_instance *one = old->first;
        old->first = one->next;
        instance_unref(old->vm, &one->instance);
        mem_free(one);
    }
}

void old_instances_add(struct old_instances *old, struct instance *owned_instance)
{
    struct old_instance *one = mem_alloc_zeroed(sizeof *one);
    if (!one) { /* its requests hold it; it only cannot be cancelled */
        instance_unref(old->vm, &owned_instance);
        return;
    }
    *one = (struct old_instance){old->first, owned_instance, 0};
    old->first = one;
    loop_timer_set(old->loop, &old->timer, 0);
}

uint32_t old_instances_count(const struct old_instances *old)
{
    uint32_t count = 0;
    for (const struct old_instance *one = old->first; one; one = one->next) count++;
    return count;
}

#undef OLD_INSTANCES_LOOK_MS
