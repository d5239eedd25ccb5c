/* SPDX-License-Identifier: MIT
 *
 * vm/run/value.c: kinds and equality of any value.
 *
 * In:   values, borrowed. Out: answers.
 * Method: == keeps a stack of pairs instead of recursing; past LIMIT_VALUE_DEPTH containers are compared by identity.
 *       Long walks remember which objects they took for equal (visited.h), so shared parts cost once.
 * Invariant: only keys of maps nest on the C stack, at most LIMIT_KEY_NESTING deep.
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
#include "vm/run/visited.h"
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
static int value_equal_outside(struct vm *vm, cy_value a, cy_value b)
{
    if (a.tag != b.tag) {
        if (value_is_nil(a) && value_is_nil(b)) return 1;
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
        if (a.as.object == b.as.object) return 1;
        if (string_of(a)->count != string_of(b)->count) return 0;
        vm_charge_bytes(vm, string_of(a)->count);
        return cy_bytes_equal(string_view(string_of(a)), string_view(string_of(b)));
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

/* The next two contents, `*more_out` false when there are none. `*missing_out`: a key of one map is not in the
 * other. */
static cy_err value_next_pair(struct vm *vm, struct value_pair *pair, cy_value *a_out, cy_value *b_out,
                              bool *more_out, bool *missing_out)
{
    *more_out = false;
    switch (pair->a.tag) {
    case TAG_LIST: {
        const struct list *a = list_of(pair->a), *b = list_of(pair->b);
        if (pair->index >= a->count) return CY_OK;
        *a_out = list_item(a, pair->index);
        *b_out = list_item(b, pair->index++);
        *more_out = true;
        return CY_OK;
    }
    case TAG_RECORD: {
        const struct record *a = record_of(pair->a), *b = record_of(pair->b);
        if (pair->index >= a->shape->field_count) return CY_OK;
        if (pair->index == 0) error_settle_places(vm, pair->a);
        if (pair->index == 0) error_settle_places(vm, pair->b);
        *a_out = a->fields[pair->index];
        *b_out = b->fields[pair->index++];
        *more_out = true;
        return CY_OK;
    }
    default: {
        const struct map_object *a = map_object_of(pair->a), *b = map_object_of(pair->b);
        while (pair->index < a->entry_count && a->entries[pair->index].key.tag == TAG_ABSENT) pair->index++;
        if (pair->index >= a->entry_count) return CY_OK;
        const struct map_object_entry *entry = &a->entries[pair->index++];
        uint32_t at;
        CY_TRY(map_object_find(vm, b, entry->key, entry->hash, &at));
        *missing_out = at == MAP_OBJECT_NONE;
        *a_out = entry->value;
        *b_out = *missing_out ? value_nil() : b->entries[at].value;
        *more_out = true;
        return CY_OK;
    }
    }
}

enum { VALUE_PAIRS_INLINE = 16 }; /* what ordinary data needs, on the C stack */

/* One == with all that it compares; `visited` has classes of objects that were compared or are being compared. Taking
 * those for equal is right: if one of them is not, the whole == says so. */
struct value_walk {
    uint64_t steps;
    uint32_t nesting; /* of keys */
    struct visited visited;
};

/* Room for twice as many pairs; *owned_pairs is NULL while they lie on the C stack. */
static bool value_grow_pairs(struct value_pair **pairs, struct value_pair **owned_pairs, uint32_t *capacity)
{
    struct value_pair *more = mem_resize(*owned_pairs, (size_t)*capacity * 2 * sizeof *more);
    if (!more) return false;
    if (!*owned_pairs) memcpy(more, *pairs, *capacity * sizeof *more);
    *pairs = *owned_pairs = more;
    *capacity *= 2;
    return true;
}

/* Whether two containers must be walked: not when they are known to be equal if all else is. */
static cy_err value_must_enter(struct vm *vm, struct value_walk *walk, cy_value a, cy_value b, bool *must_out)
{
    bool same = false;
    if (walk->steps >= VISITED_STEPS_FIRST)
        CY_TRY(visited_join(vm, &walk->visited, a.as.object, b.as.object, &same));
    *must_out = !same;
    return CY_OK;
}

static cy_err value_compare_inside(struct vm *vm, struct value_walk *walk, cy_value a, cy_value b,
                                   bool *equal_out)
{
    struct value_pair inline_pairs[VALUE_PAIRS_INLINE], *pairs = inline_pairs, *owned_pairs = NULL;
    uint32_t depth = 1, capacity = VALUE_PAIRS_INLINE;
    bool equal = true;
    pairs[0] = (struct value_pair){a, b, 0};
    cy_err err = CY_OK;
    while (depth > 0 && equal && !cy_failed(err)) {
        bool missing = false, more;
        err = value_next_pair(vm, &pairs[depth - 1], &a, &b, &more, &missing);
        if (!cy_failed(err)) err = visited_step(vm, &walk->steps);
        if (cy_failed(err)) break;
        if (!more) {
            depth--;
            continue;
        }
        int outside = missing ? 0 : value_equal_outside(vm, a, b);
        equal = outside != 0;
        if (outside != 2) continue;
        bool enter;
        err = value_must_enter(vm, walk, a, b, &enter);
        if (cy_failed(err) || !enter) continue;
        if (depth == LIMIT_VALUE_DEPTH)
            equal = false;
        else if (depth == capacity && !value_grow_pairs(&pairs, &owned_pairs, &capacity))
            err = CY_ERR(NO_MEMORY);
        else
            pairs[depth++] = (struct value_pair){a, b, 0};
    }
    mem_free(owned_pairs);
    *equal_out = equal;
    return err;
}

/* Keys of maps inside the == under way: with the same step count and, while they are equal, the same classes. */
static cy_err value_compare_key(struct vm *vm, cy_value a, cy_value b, bool *equal_out)
{
    struct value_walk *walk = vm->compare;
    bool enter;
    CY_TRY(value_must_enter(vm, walk, a, b, &enter));
    *equal_out = true;
    if (!enter) return CY_OK;
    if (walk->nesting == LIMIT_KEY_NESTING) return (cy_err){CY_ERR_DEPTH, LIMIT_KEY_NESTING};
    walk->nesting++;
    cy_err err = value_compare_inside(vm, walk, a, b, equal_out);
    walk->nesting--;
    /* Two keys with one hash that differ do not end the ==, so what was taken for equal here may not be. */
    if (!*equal_out) visited_fini(vm, &walk->visited);
    return err;
}

cy_err value_compare(struct vm *vm, cy_value a, cy_value b, bool *equal_out)
{
    int outside = value_equal_outside(vm, a, b);
    *equal_out = outside == 1;
    if (outside != 2) return CY_OK;
    if (vm->compare) return value_compare_key(vm, a, b, equal_out);
    struct value_walk walk = {0};
    vm->compare = &walk;
    cy_err err = value_compare_inside(vm, &walk, a, b, equal_out);
    vm->compare = NULL;
    visited_fini(vm, &walk.visited);
    return err;
}

cy_err list_find(struct vm *vm, cy_value list, cy_value item, int64_t *index_out)
{
    size_t count = list_count(list);
    struct value_walk walk = {0};
    cy_err err = CY_OK;
    CHECK(!vm->compare);
    vm->compare = &walk;
    *index_out = -1;
    for (size_t i = 0; i < count && *index_out < 0 && !cy_failed(err); i++) {
        cy_value other = list_item(list_of(list), (uint32_t)i);
        int outside = value_equal_outside(vm, other, item);
        bool equal = outside == 1;
        if (outside == 2) {
            err = value_compare_inside(vm, &walk, other, item, &equal);
            visited_fini(vm, &walk.visited); /* what was taken for equal is, or is not, with this item only */
        }
        if (equal && !cy_failed(err)) *index_out = (int64_t)i;
    }
    vm->compare = NULL;
    return err;
}

bool value_equal(struct vm *vm, cy_value a, cy_value b)
{
    bool equal;
    return !cy_failed(value_compare(vm, a, b, &equal)) && equal;
}
