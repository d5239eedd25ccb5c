/* SPDX-License-Identifier: MIT
 *
 * vm/run/string.h: the layout of str, private to vm/run.
 *
 * Invariant: data[count] is NUL. `hash` is valid when STRING_HASHED is set. A string with one holder may
 *       grow at the end; to everybody else it never changes.
 */
#ifndef CY_RUN_STRING_H
#define CY_RUN_STRING_H

#include "vm/run/object.h"

struct string {
    struct object head;
    uint32_t count;
    uint32_t capacity; /* bytes in data, the NUL not counted */
    uint64_t hash;
    uint8_t data[];
};
enum { STRING_HASHED = 1 }; /* object.flags */

static inline struct string *string_of(cy_value value)
{
    DCHECK(value.tag == TAG_STR);
    return (struct string *)value.as.object;
}
static inline cy_bytes string_view(const struct string *string)
{
    return cy_bytes_of(string->data, string->count);
}

void string_free(struct vm *vm, struct string *string);
uint64_t string_hash(struct vm *vm, struct string *string);
/* Appends to the only holder; the object may move. LIMIT past LIMIT_STRING_BYTES. */
CY_NODISCARD cy_err string_append(struct vm *vm, cy_value *unshared, cy_bytes more);
/* a then b in a new str. */
CY_NODISCARD cy_err string_join(struct vm *vm, cy_bytes a, cy_bytes b, cy_value *owned_out);

/* The text of a str, int, float or bool as `+` joins it; numbers are written into `room`. False for any
 * other kind. */
enum { STRING_NUMBER_BYTES = 48 };
CY_NODISCARD bool string_text_of(cy_value value, char room[STRING_NUMBER_BYTES], cy_bytes *text_out);

#endif
