/* SPDX-License-Identifier: MIT
 *
 * vm/run/native_message.c: what natives say, in the language of the run.
 *
 * In:   the English text or format of a message, as it stands in the code of a native.
 * Out:  the Korean one of native_message.def when the VM speaks Korean, else the same.
 * Invariant: the rows are in byte order of their English text (a unit test looks), so that looking one up costs eight
 *            comparisons, and only where a message is Korean.
 * Not here: what the VM itself says (message.def), texts of cy_err (vm/base/error.def).
 */
#include "vm/run/native_call.h"
#include "vm/run/vm_internal.h"

#include <string.h>

struct native_message_row {
    const char *english, *korean;
};
static const struct native_message_row native_message_rows[] = {
#define NATIVE_MESSAGE(english, korean) {english, korean},
#include "vm/run/native_message.def"
#undef NATIVE_MESSAGE
};

const char *native_message_korean(const char *english)
{
    size_t low = 0, high = CY_COUNT_OF(native_message_rows);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(native_message_rows[middle].english, english);
        if (order == 0) return native_message_rows[middle].korean;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *vm_text(struct vm *vm, const char *english)
{
    const char *korean = vm_is_korean(vm) ? native_message_korean(english) : NULL;
    return korean ? korean : english;
}
