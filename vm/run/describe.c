/* SPDX-License-Identifier: MIT
 *
 * vm/run/describe.c: an error for people.
 *
 * In:   an error record, or any value. Out: "kind: message", one line per place below it.
 */
#include "vm/run/list.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

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
        bool is_place = !cy_bytes_start_with(text, CY_BYTES("defer: ")) &&
                        !cy_bytes_start_with(text, CY_BYTES("... ")) &&
                        !cy_bytes_start_with(text, CY_BYTES("spawned in ")) &&
                        !cy_bytes_start_with(text, CY_BYTES("awaited in "));
        builder_printf(out, "  %s%.*s\n", is_place ? "at " : "", CY_BYTES_ARG(text));
    }
}
