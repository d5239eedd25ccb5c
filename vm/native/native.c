/* SPDX-License-Identifier: MIT
 *
 * vm/native/native.c: the table of all natives, by number.
 *
 * Invariant: every row of native.def has a body here, or the build fails.
 */
#include "vm/native/native.h"

#include "vm/native/native_bodies.h"

const native_body native_table_full[NATIVE_NUMBER_END] = {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    [number] = native_##name,
#include "vm/code/native.def"
#undef NATIVE
};
