/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_table_core.c: the bodies of group CORE, by number.
 */
#include "vm/native/native_bodies.h"

#define NATIVE_TABLE_CORE_CORE(name) [NATIVE_##name] = native_##name,
#define NATIVE_TABLE_CORE_FULL(name)
const native_body native_table_core[NATIVE_NUMBER_END] = {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    NATIVE_TABLE_CORE_##group(name)
#include "vm/code/native.def"
#undef NATIVE
};
#undef NATIVE_TABLE_CORE_CORE
#undef NATIVE_TABLE_CORE_FULL
