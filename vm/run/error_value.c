/* SPDX-License-Identifier: MIT
 *
 * vm/run/error_value.c: errors as the program sees them: records {kind, message, data, stack}.
 *
 * In:   a cy_err, a message of message.def.
 * Out:  error values, or one left in vm->raised.
 * Invariant: making an error never fails: one for "out of memory" was made with the VM.
 * Not here: places (unwind.c adds them), texts of cy_err (vm/base/error.def).
 */
#include "vm/base/limits.h"
#include "vm/run/list.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

#include <stdarg.h>

/* An error may be made when the limit is reached: this much past it is kept for them. */
enum { ERROR_VALUE_RESERVE_BYTES = 64 << 10 };

static const char *const error_value_messages[MESSAGE_COUNT][2] = {
#define MESSAGE(name, korean, english) [MESSAGE_##name] = {english, korean},
#include "vm/run/message.def"
#undef MESSAGE
};

const char *vm_message_text(enum vm_message message, bool korean)
{
    CHECK(message < MESSAGE_COUNT);
    return error_value_messages[message][korean];
}

cy_err error_new(struct vm *vm, cy_err reason, cy_bytes message, cy_value owned_data, cy_value *owned_out)
{
    CY_TRY(error_new_of_kind(vm, cy_bytes_from_text(cy_err_kind(reason)), message, owned_data, owned_out));
    owned_out->as.object->detail = (uint16_t)reason.code;
    return CY_OK;
}

cy_err error_reason(struct vm *vm, cy_value error)
{
    if (!value_is_error(vm, error)) return CY_ERR(THROWN);
    if (error.as.object->detail) return (cy_err){error.as.object->detail, 0};
    bool configuration =
        cy_bytes_equal(error_kind(vm, error), cy_bytes_from_text(cy_err_kind(CY_ERR(CONFIGURATION))));
    return configuration ? CY_ERR(CONFIGURATION) : CY_ERR(THROWN);
}

cy_err error_new_of_kind(struct vm *vm, cy_bytes kind, cy_bytes message, cy_value owned_data,
                         cy_value *owned_out)
{
    cy_value fields[ERROR_FIELD_COUNT] = {value_nil(), value_nil(), owned_data, value_nil()};
    cy_err err = string_new(vm, kind, &fields[ERROR_FIELD_KIND]);
    if (!cy_failed(err)) err = string_new(vm, message, &fields[ERROR_FIELD_MESSAGE]);
    if (!cy_failed(err)) err = list_new(vm, 0, &fields[ERROR_FIELD_STACK]);
    if (!cy_failed(err)) err = record_new(vm, vm->error_shape, fields, owned_out);
    if (!cy_failed(err)) return CY_OK;
    for (int i = 0; i < ERROR_FIELD_COUNT; i++) value_unref(vm, fields[i]);
    return err;
}

cy_value error_make(struct vm *vm, cy_err reason, cy_bytes message, cy_value owned_data)
{
    cy_value error;
    vm->heap_bytes_max += ERROR_VALUE_RESERVE_BYTES;
    cy_err err = error_new(vm, reason, message, owned_data, &error);
    vm->heap_bytes_max -= ERROR_VALUE_RESERVE_BYTES;
    return cy_failed(err) ? value_ref(vm->memory_error) : error;
}

bool value_is_error(struct vm *vm, cy_value value)
{
    return value.tag == TAG_RECORD && record_of(value)->shape == vm->error_shape;
}

static cy_bytes error_value_text(struct vm *vm, cy_value error, uint32_t field)
{
    CHECK(value_is_error(vm, error));
    cy_value text = record_of(error)->fields[field];
    return text.tag == TAG_STR ? string_bytes(text)
                               : CY_BYTES_NONE; /* programs may write other kinds there */
}

cy_bytes error_kind(struct vm *vm, cy_value error) { return error_value_text(vm, error, ERROR_FIELD_KIND); }
cy_bytes error_message(struct vm *vm, cy_value error)
{
    return error_value_text(vm, error, ERROR_FIELD_MESSAGE);
}

cy_value error_stack(struct vm *vm, cy_value error)
{
    CHECK(value_is_error(vm, error));
    error_settle_places(vm, error);
    return record_of(error)->fields[ERROR_FIELD_STACK];
}

cy_value error_data(struct vm *vm, cy_value error)
{
    CHECK(value_is_error(vm, error));
    return record_of(error)->fields[ERROR_FIELD_DATA];
}

bool error_raise_value(struct vm *vm, cy_value owned_error)
{
    CHECK(vm->raised.tag == TAG_NIL);
    vm->raised = owned_error;
    return false;
}

static bool error_value_raise(struct vm *vm, cy_err reason, cy_value owned_data, enum vm_message message,
                              va_list arguments)
{
    struct builder text;
    builder_init(&text);
    builder_vprintf(&text, vm_message_text(message, vm_is_korean(vm)), arguments);
    cy_value error;
    if (text.failed) { /* half an error would be taken for a whole one */
        value_unref(vm, owned_data);
        error = value_ref(vm->memory_error);
    } else
        error = error_make(vm, reason, builder_view(&text), owned_data);
    builder_fini(&text);
    return error_raise_value(vm, error);
}

bool error_raise(struct vm *vm, cy_err reason, enum vm_message message, ...)
{
    va_list arguments;
    va_start(arguments, message);
    error_value_raise(vm, reason, value_nil(), message, arguments);
    va_end(arguments);
    return false;
}

bool error_raise_data(struct vm *vm, cy_err reason, cy_value owned_data, enum vm_message message, ...)
{
    va_list arguments;
    va_start(arguments, message);
    error_value_raise(vm, reason, owned_data, message, arguments);
    va_end(arguments);
    return false;
}

bool error_raise_limit(struct vm *vm, cy_err reason, const char *limit_name)
{
    const struct limit *limit = limit_find(limit_name);
    CHECK(limit);
    return error_raise(vm, reason, MESSAGE_LIMIT, cy_err_text(reason, vm_is_korean(vm)), limit->name,
                       (long long)limit->value, limit->unit);
}

bool error_raise_walk(struct vm *vm, cy_err reason)
{
    if (cy_is(reason, CY_ERR_LIMIT))
        return error_raise_limit(vm, reason, reason.detail == LIMIT_KEY_STEPS ? "KEY_STEPS" : "WALK_STEPS");
    if (cy_is(reason, CY_ERR_DEPTH))
        return error_raise_limit(vm, reason,
                                 reason.detail == LIMIT_KEY_NESTING ? "KEY_NESTING" : "VALUE_DEPTH");
    return error_raise_plain(vm, reason);
}

bool error_raise_plain(struct vm *vm, cy_err reason)
{
    if (cy_is(reason, CY_ERR_NO_MEMORY))
        return error_raise(vm, reason, MESSAGE_MEMORY, (unsigned long long)vm->heap_bytes_max);
    return error_raise(vm, reason, MESSAGE_PLAIN, cy_err_text(reason, vm_is_korean(vm)));
}
