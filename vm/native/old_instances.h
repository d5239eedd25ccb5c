/* SPDX-License-Identifier: MIT
 *
 * vm/native/old_instances.h: the instances of a server program that were served before the present one and whose
 * requests still run.
 *
 * In:   instances, newest last; a loop for its clock, a VM that runs their fibers.
 * Out:  nothing is refused: one that nobody uses any more is let go; past OLD_INSTANCES the oldest get
 *       OLD_INSTANCE_GRACE_MS, then their fibers are cancelled.
 * Not here: what is served now (serve_generation.c).
 */
#ifndef CY_NATIVE_OLD_INSTANCES_H
#define CY_NATIVE_OLD_INSTANCES_H

#include "vm/net/loop.h"
#include "vm/run/vm.h"

struct old_instance;

struct old_instances {
    struct loop *loop;
    struct vm *vm;
    struct old_instance *first; /* newest first */
    struct timer timer;
};

void old_instances_init(struct old_instances *old, struct loop *loop, struct vm *vm);
/* Lets go of all; their fibers keep their own references. Harmless on zeroed memory. */
void old_instances_fini(struct old_instances *old);
/* Takes one reference. They are looked at from the next turn on, then once a second. */
void old_instances_add(struct old_instances *old, struct instance *owned_instance);
uint32_t old_instances_count(const struct old_instances *old);

#endif
