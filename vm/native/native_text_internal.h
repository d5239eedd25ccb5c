/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_text_internal.h: what the files of module text share.
 */
#ifndef CY_NATIVE_NATIVE_TEXT_INTERNAL_H
#define CY_NATIVE_NATIVE_TEXT_INTERNAL_H

#include "vm/base/text.h"
#include "vm/native/native_bodies.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

enum { NATIVE_TEXT_BYTES_PER_STEP = 100 };

static inline cy_bytes native_text_arg(const struct native_call *call, uint32_t index)
{
    return string_bytes(call->args[index]);
}

static inline void native_text_charge(struct native_call *call, size_t bytes)
{
    native_charge(call, bytes / NATIVE_TEXT_BYTES_PER_STEP);
}

/* Gives a copy of `text`, or the first argument itself when that is all of it. */
enum native_outcome native_text_return(struct native_call *call, cy_bytes text, const char *native);
/* Gives what was built, and frees the builder. */
enum native_outcome native_text_return_built(struct native_call *call, struct builder *built,
                                             const char *native);
/* A builder that cannot grow past what the VM may still allocate. */
void native_text_build(struct native_call *call, struct builder *builder);
/* Byte index of `part` at or behind `from`, SIZE_MAX when there is none. An empty part is found at once. */
size_t native_text_index(cy_bytes text, cy_bytes part, size_t from);
/* Puts text[begin, end) into the next place of a list of values. */
CY_NODISCARD cy_err native_text_put(struct native_call *call, cy_value *place, cy_bytes text, size_t begin,
                                    size_t end);

#endif
