/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_bodies.h: the prototype of every native's body, from the rows of native.def.
 *
 * Invariant: a row without a body does not link.
 */
#ifndef CY_NATIVE_NATIVE_BODIES_H
#define CY_NATIVE_NATIVE_BODIES_H

#include "vm/code/native_table.h"
#include "vm/run/native_call.h"

#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    enum native_outcome native_##name(struct native_call *call);
#include "vm/code/native.def"
#undef NATIVE

/* By native number; only the rows of group CORE. For a binary that has the language and nothing else. */
extern const native_body native_table_core[NATIVE_NUMBER_END];

#endif
