/* SPDX-License-Identifier: MIT
 *
 * vm/run/describe.c: an error for people.
 *
 * In:   an error record, or any value. Out: "kind: message", one line per place below it.
 */
#include "vm/run/list.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

/* An entry that says itself what it is: not just a place. */
static bool describe_is_place(bool korean, cy_bytes text)
{
    const char *const others[] = {"defer: ", "... ", vm_message_text(MESSAGE_PLACE_SPAWNED, korean),
                                  vm_message_text(MESSAGE_PLACE_AWAITED, korean)};
    for (size_t i = 0; i < CY_COUNT_OF(others); i++)
        if (cy_bytes_start_with(text, cy_bytes_from_text(others[i]))) return false;
    return true;
}

void vm_describe_error(struct vm *vm, cy_value error, struct builder *out)
{
    if (!value_is_error(vm, error)) {
        value_format(vm, error, false, out);
        builder_u8(out, '\n');
        return;
    }
    cy_bytes kind = error_kind(vm, error), message = error_message(vm, error);
    builder_printf(out, "%.*s: %.*s\n", CY_BYTES_ARG(kind), CY_BYTES_ARG(message));
    cy_value places = error_stack(vm, error);
    if (places.tag != TAG_LIST) return;
    for (uint32_t i = 0; i < list_of(places)->count; i++) {
        cy_value place = list_item(list_of(places), i);
        if (place.tag != TAG_STR) continue;
        cy_bytes text = string_bytes(place);
        bool korean = vm_is_korean(vm);
        const char *before = describe_is_place(korean, text) ? vm_message_text(MESSAGE_PLACE, korean) : "";
        builder_printf(out, "  %s%.*s\n", before, CY_BYTES_ARG(text));
    }
}
