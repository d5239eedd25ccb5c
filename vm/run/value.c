/* SPDX-License-Identifier: MIT
 *
 * vm/run/value.c: kinds and equality of any value.
 *
 * In:   values, borrowed. Out: answers.
 * Method: == keeps a stack of pairs instead of recursing; it never fails: too deep or without memory, what
 *       is left is compared by identity.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/arith.h"
#include "vm/code/opcode.h"
#include "vm/run/code.h"
#include "vm/run/handle.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

const uint8_t value_kind_by_tag[TAG_COUNT] = {
    [TAG_NIL] = KIND_NIL,           [TAG_BOOL] = KIND_BOOL,     [TAG_INT] = KIND_INT,
    [TAG_FLOAT] = KIND_FLOAT,       [TAG_HANDLE] = KIND_HANDLE, [TAG_STR] = KIND_STR,
    [TAG_LIST] = KIND_LIST,         [TAG_MAP] = KIND_MAP,       [TAG_RANGE] = KIND_RANGE,
    [TAG_RECORD] = KIND_RECORD,     [TAG_REF] = KIND_REF,       [TAG_OPAQUE] = KIND_OPAQUE,
    [TAG_FUNCTION] = KIND_FUNCTION,
};

const char *value_kind_text(struct vm *vm, cy_value value)
{
    switch (value.tag) {
    case TAG_RECORD: return (const char *)string_of(record_of(value)->shape->name)->data;
    case TAG_OPAQUE: return opaque_of(value)->type->name;
    case TAG_HANDLE: return handle_type_name(vm, value);
    default: return kind_name((enum value_kind)value_kind_by_tag[value.tag], false);
    }
}

/* What two values without looking inside say: 0 differ, 1 equal, 2 compare their contents. */
static int value_equal_outside(cy_value a, cy_value b)
{
    if (a.tag != b.tag) {
        if (a.tag == TAG_INT && b.tag == TAG_FLOAT) return arith_compare_int_float(a.as.i, b.as.f) == 0;
        if (a.tag == TAG_FLOAT && b.tag == TAG_INT) return arith_compare_int_float(b.as.i, a.as.f) == 0;
        return 0;
    }
    switch (a.tag) {
    case TAG_NIL:
    case TAG_ABSENT: return 1;
    case TAG_BOOL: return a.as.b == b.as.b;
    case TAG_FLOAT: return a.as.f == b.as.f;
    case TAG_STR:
        return a.as.object == b.as.object ||
               cy_bytes_equal(string_view(string_of(a)), string_view(string_of(b)));
    case TAG_RANGE: {
        const struct range *x = range_of(a), *y = range_of(b);
        return x->from == y->from && x->to == y->to;
    }
    case TAG_LIST:
        if (a.as.object == b.as.object) return 1; /* a container equals itself, also with a NaN inside */
        return list_of(a)->count == list_of(b)->count ? 2 : 0;
    case TAG_MAP:
        if (a.as.object == b.as.object) return 1;
        return map_object_of(a)->live_count == map_object_of(b)->live_count ? 2 : 0;
    case TAG_RECORD:
        if (a.as.object == b.as.object) return 1;
        return record_of(a)->shape == record_of(b)->shape ? 2 : 0;
    default: return a.as.i == b.as.i; /* int, handle; function, ref, opaque by identity */
    }
}

struct value_pair {
    cy_value a, b;
    uint32_t index; /* of the contents to compare next */
};

/* The next two contents; false when there are no more. `*missing_out`: a key of one map is not in the
 * other. */
static bool value_next_pair(struct vm *vm, struct value_pair *pair, cy_value *a_out, cy_value *b_out,
                            bool *missing_out)
{
    switch (pair->a.tag) {
    case TAG_LIST: {
        const struct list *a = list_of(pair->a), *b = list_of(pair->b);
        if (pair->index >= a->count) return false;
        *a_out = list_item(a, pair->index);
        *b_out = list_item(b, pair->index++);
        return true;
    }
    case TAG_RECORD: {
        const struct record *a = record_of(pair->a);
        if (pair->index >= a->shape->field_count) return false;
        *a_out = a->fields[pair->index];
        *b_out = record_of(pair->b)->fields[pair->index++];
        return true;
    }
    default: {
        const struct map_object *a = map_object_of(pair->a), *b = map_object_of(pair->b);
        while (pair->index < a->entry_count && a->entries[pair->index].key.tag == TAG_ABSENT) pair->index++;
        if (pair->index >= a->entry_count) return false;
        const struct map_object_entry *entry = &a->entries[pair->index++];
        uint32_t at = map_object_find(vm, b, entry->key, entry->hash);
        *missing_out = at == MAP_OBJECT_NONE;
        *a_out = entry->value;
        *b_out = *missing_out ? value_nil() : b->entries[at].value;
        return true;
    }
    }
}

enum { VALUE_PAIRS_INLINE = 16 }; /* what ordinary data needs, on the C stack */

static bool value_equal_inside(struct vm *vm, cy_value a, cy_value b)
{
    struct value_pair inline_pairs[VALUE_PAIRS_INLINE], *pairs = inline_pairs, *owned_pairs = NULL;
    uint32_t depth = 1, capacity = VALUE_PAIRS_INLINE;
    bool equal = true;
    pairs[0] = (struct value_pair){a, b, 0};
    while (depth > 0 && equal) {
        bool missing = false;
        if (!value_next_pair(vm, &pairs[depth - 1], &a, &b, &missing)) {
            depth--;
            continue;
        }
        int outside = missing ? 0 : value_equal_outside(a, b);
        equal = outside != 0;
        if (outside != 2) continue;
        if (depth == capacity) {
            /* Past the depth that == follows, containers that are not the same object count as different. */
            struct value_pair *more = capacity < LIMIT_VALUE_DEPTH
                                          ? mem_resize(owned_pairs, (size_t)capacity * 2 * sizeof *pairs)
                                          : NULL;
            if (!more) {
                equal = false;
                break;
            }
            if (!owned_pairs) memcpy(more, inline_pairs, sizeof inline_pairs);
            pairs = owned_pairs = more;
            capacity *= 2;
        }
        pairs[depth++] = (struct value_pair){a, b, 0};
    }
    mem_free(owned_pairs);
    return equal;
}

bool value_equal(struct vm *vm, cy_value a, cy_value b)
{
    int outside = value_equal_outside(a, b);
    return outside == 2 ? value_equal_inside(vm, a, b) : outside != 0;
}
