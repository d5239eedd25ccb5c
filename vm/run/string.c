/* SPDX-License-Identifier: MIT
 *
 * vm/run/string.c: str values: immutable bytes, except at the end while there is one holder.
 *
 * In:   bytes. Out: owned str values.
 * Invariant: a shared string never changes, so views of it stay valid while anybody holds it.
 */
#include "vm/run/string.h"

#include "vm/base/limits.h"
#include "vm/run/heap.h"
#include "vm/run/vm_internal.h"

#include <inttypes.h>
#include <stdio.h>

static size_t string_bytes_of(size_t capacity) { return sizeof(struct string) + capacity + 1; }

static cy_err string_make(struct vm *vm, size_t count, size_t capacity, struct string **string_out)
{
    if (count > LIMIT_STRING_BYTES) return CY_ERR_DETAIL(TOO_LARGE, LIMIT_STRING_BYTES);
    if (capacity > LIMIT_STRING_BYTES) capacity = LIMIT_STRING_BYTES;
    struct string *string = heap_new_object(vm, TAG_STR, string_bytes_of(capacity));
    if (!string) return CY_ERR(NO_MEMORY);
    vm_charge_bytes(vm, count); /* whoever made it fills it */
    string->count = (uint32_t)count;
    string->capacity = (uint32_t)capacity;
    string->hash = 0;
    string->data[count] = 0;
    *string_out = string;
    return CY_OK;
}

cy_err string_new_blank(struct vm *vm, size_t count, cy_value *owned_out, uint8_t **data_out)
{
    struct string *string;
    CY_TRY(string_make(vm, count, count, &string));
    *data_out = string->data;
    *owned_out = value_object(TAG_STR, &string->head);
    return CY_OK;
}

cy_err string_new(struct vm *vm, cy_bytes bytes, cy_value *owned_out)
{
    return string_join(vm, bytes, CY_BYTES_NONE, owned_out);
}

cy_err string_join(struct vm *vm, cy_bytes a, cy_bytes b, cy_value *owned_out)
{
    size_t count;
    if (cy_add_overflows(a.count, b.count, &count)) return CY_ERR(TOO_LARGE);
    uint8_t *data;
    CY_TRY(string_new_blank(vm, count, owned_out, &data));
    if (a.count) memcpy(data, a.data, a.count);
    if (b.count) memcpy(data + a.count, b.data, b.count);
    return CY_OK;
}

/* -- built ----------------------------------------------------------------------------------------------- */

/* Up to here a copy is cheaper than giving memory back that the builder has too much. */
enum { STRING_BUILD_COPY_BYTES = 1 << 20, STRING_BUILD_FIRST_BYTES = 128 };

void string_build(struct vm *vm, struct builder *out, size_t count_max)
{
    builder_init(out);
    out->count_max = STRING_BUILD_FIRST_BYTES + vm_memory_left(vm, count_max);
    if (builder_reserve(out, STRING_BUILD_FIRST_BYTES)) out->count = sizeof(struct string);
    out->count_max -= STRING_BUILD_FIRST_BYTES - sizeof(struct string); /* it was for the first room */
}

cy_bytes string_build_view(const struct builder *out)
{
    return out->failed && out->count == 0 ? CY_BYTES_NONE
                                          : cy_bytes_skip(builder_view(out), sizeof(struct string));
}

bool string_build_is_full(const struct builder *out, size_t count_max)
{
    return out->past_max && out->count_max == sizeof(struct string) + count_max;
}

cy_err string_build_end(struct vm *vm, struct builder *owned, size_t count_max, cy_value *owned_out)
{
    cy_err err = string_build_is_full(owned, count_max) ? CY_ERR(TOO_LARGE) : builder_error(owned);
    cy_bytes text = string_build_view(owned);
    if (!cy_failed(err) && text.count <= STRING_BUILD_COPY_BYTES)
        err = string_new(vm, text, owned_out);
    else if (!cy_failed(err)) {
        struct string *string = heap_adopt(vm, owned->data, string_bytes_of(text.count));
        err = string ? CY_OK : CY_ERR(NO_MEMORY);
        if (string) {
            owned->data = NULL;
            string->head = (struct object){.refs = 1, .tag = TAG_STR};
            string->count = string->capacity = (uint32_t)text.count;
            string->hash = 0;
            string->data[text.count] = 0;
            vm->heap_objects++;
            *owned_out = value_object(TAG_STR, &string->head);
        }
    }
    builder_fini(owned);
    return err;
}

cy_bytes string_bytes(cy_value str)
{
    CHECK(str.tag == TAG_STR);
    return string_view((const struct string *)str.as.object);
}

void string_free(struct vm *vm, struct string *string)
{
    heap_free_object(vm, &string->head, string_bytes_of(string->capacity));
}

uint64_t string_hash(struct vm *vm, struct string *string)
{
    if (!(string->head.flags & STRING_HASHED)) {
        vm_charge_bytes(vm, string->count);
        string->hash = hash_bytes(vm->options.seed, string_view(string));
        string->head.flags |= STRING_HASHED;
    }
    return string->hash;
}

cy_err string_append(struct vm *vm, cy_value *unshared, cy_bytes more)
{
    CHECK(value_is_unshared(*unshared));
    struct string *string = string_of(*unshared);
    size_t count;
    if (cy_add_overflows(string->count, more.count, &count) || count > LIMIT_STRING_BYTES)
        return CY_ERR(TOO_LARGE);
    vm_charge_bytes(vm, more.count);
    if (count > string->capacity) {
        /* Doubling keeps n appends at O(n) copied bytes. */
        size_t capacity =
            cy_max_size(count, cy_min_size((size_t)string->capacity * 2 + 16, LIMIT_STRING_BYTES));
        string = heap_resize(vm, string, string_bytes_of(string->capacity), string_bytes_of(capacity));
        if (!string) return CY_ERR(NO_MEMORY);
        string->capacity = (uint32_t)capacity;
        unshared->as.object = &string->head;
    }
    if (more.count) memcpy(string->data + string->count, more.data, more.count);
    string->count = (uint32_t)count;
    string->data[count] = 0;
    string->head.flags &= (uint8_t)~STRING_HASHED;
    return CY_OK;
}

bool string_text_of(cy_value value, char room[STRING_NUMBER_BYTES], cy_bytes *text_out)
{
    switch (value.tag) {
    case TAG_STR: *text_out = string_view(string_of(value)); return true;
    case TAG_BOOL: *text_out = value.as.b ? CY_BYTES("true") : CY_BYTES("false"); return true;
    case TAG_INT: {
        int count = snprintf(room, STRING_NUMBER_BYTES, "%" PRId64, value.as.i);
        *text_out = cy_bytes_of(room, (size_t)count);
        return true;
    }
    case TAG_FLOAT: {
        /* A builder over the caller's room, which no text of a double fills: it asks for no memory and cannot fail.
         * */
        struct builder text = {
            .data = (uint8_t *)room, .capacity = STRING_NUMBER_BYTES, .count_max = STRING_NUMBER_BYTES};
        builder_f64_text(&text, value.as.f);
        CHECK(!text.failed);
        *text_out = builder_view(&text);
        return true;
    }
    default: return false;
    }
}
