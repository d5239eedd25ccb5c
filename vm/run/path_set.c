/* SPDX-License-Identifier: MIT
 *
 * vm/run/path_set.c: c[k], c.name, and writing inside values without copying what nobody else holds.
 *
 *   local[k1][k2] = v      (also = that + v, = that + [v])
 *                          walks k1 .. k(n-1); a shared level is copied (one level, counted), an unshared
 *                          one is entered as it is; the last key is set in place.
 *
 * In:   values and keys. Out: items, or errors that name the range or the nearest name.
 * Invariant: what somebody else holds never changes. A failed write leaves equal values, though perhaps
 *       unshared ones.
 */
#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/run/handle.h"
#include "vm/run/interp_slow.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"

/* -- errors ---------------------------------------------------------------------------------------------- */

static bool path_index_failed(struct vm *vm, cy_value container, int64_t index, uint64_t count)
{
    const char *kind = value_kind_text(vm, container);
    if (count == 0) return error_raise(vm, CY_ERR(INDEX), MESSAGE_INDEX_EMPTY, (long long)index, kind);
    return error_raise(vm, CY_ERR(INDEX), MESSAGE_INDEX, (long long)index, (long long)(count - 1), kind,
                       (long long)count);
}

enum { PATH_HINT_BYTES = 64 }; /* a name; comparing two takes the product of their lengths */

static bool path_no_key(struct vm *vm, const struct map_object *map, cy_value key)
{
    struct nearest nearest;
    bool text = key.tag == TAG_STR && string_bytes(key).count <= PATH_HINT_BYTES;
    nearest_init(&nearest, text ? string_bytes(key) : CY_BYTES_NONE);
    /* A hint is worth looking at some names, not at a million. */
    for (uint32_t i = 0; text && i < map->entry_count && i < 1000; i++)
        if (map->entries[i].key.tag == TAG_STR && string_bytes(map->entries[i].key).count <= PATH_HINT_BYTES)
            nearest_offer(&nearest, string_bytes(map->entries[i].key));
    struct builder shown;
    builder_init(&shown);
    shown.count_max = 4096; /* a message, not a document: the key itself is in error.data */
    value_format(vm, key, true, &shown);
    const char *name = builder_text_view(&shown);
    if (!name) name = value_kind_text(vm, key);
    if (nearest.best.count)
        error_raise_data(vm, CY_ERR(KEY), value_ref(key), MESSAGE_NO_KEY_NEAR, name,
                         CY_BYTES_ARG(nearest.best));
    else
        error_raise_data(vm, CY_ERR(KEY), value_ref(key), MESSAGE_NO_KEY, name);
    builder_fini(&shown);
    return false;
}

static bool path_no_field(struct vm *vm, cy_value container, cy_bytes name)
{
    struct nearest nearest;
    nearest_init(&nearest, name);
    if (container.tag == TAG_RECORD) {
        const struct record_shape *shape = record_of(container)->shape;
        for (uint32_t i = 0; i < shape->field_count; i++)
            nearest_offer(&nearest, string_bytes(shape->fields[i]));
    }
    const char *kind = value_kind_text(vm, container);
    if (nearest.best.count)
        return error_raise(vm, CY_ERR(FIELD), MESSAGE_NO_FIELD_NEAR, kind, CY_BYTES_ARG(name),
                           CY_BYTES_ARG(nearest.best));
    return error_raise(vm, CY_ERR(FIELD), MESSAGE_NO_FIELD, kind, CY_BYTES_ARG(name));
}

static bool path_failed(struct vm *vm, cy_err err, cy_value key)
{
    if (cy_is(err, CY_ERR_KEY)) return error_raise(vm, err, MESSAGE_BAD_KEY, value_kind_text(vm, key));
    return cy_is(err, CY_ERR_TOO_LARGE) ? error_raise_limit(vm, err, "LIST_ITEMS")
                                        : error_raise_walk(vm, err);
}

/* -- reading --------------------------------------------------------------------------------------------- */

static bool path_slice(struct vm *vm, cy_value container, const struct range *range, cy_value *owned_out)
{
    bool list = container.tag == TAG_LIST;
    int64_t count = list ? list_of(container)->count : string_of(container)->count;
    if (range->from < 0 || range->to < range->from || range->to > count)
        return error_raise(vm, CY_ERR(INDEX), MESSAGE_SLICE, (long long)range->from, (long long)range->to,
                           (long long)count);
    size_t begin = (size_t)range->from, end = (size_t)range->to;
    cy_err err = list ? list_slice(vm, container, begin, end, owned_out)
                      : string_new(vm, cy_bytes_slice(string_bytes(container), begin, end), owned_out);
    return cy_failed(err) ? error_raise_plain(vm, err) : true;
}

static bool path_get_numbered(struct vm *vm, cy_value container, cy_value key, cy_value *owned_out)
{
    bool list = container.tag == TAG_LIST;
    uint32_t count = list ? list_of(container)->count : string_of(container)->count;
    if (key.tag == TAG_RANGE) return path_slice(vm, container, range_of(key), owned_out);
    if (key.tag != TAG_INT)
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_INDEX_KIND, value_kind_text(vm, container),
                           value_kind_text(vm, key));
    if ((uint64_t)key.as.i >= count) return path_index_failed(vm, container, key.as.i, count);
    uint32_t index = (uint32_t)key.as.i;
    *owned_out =
        list ? value_ref(list_item(list_of(container), index)) : value_int(string_of(container)->data[index]);
    return true;
}

static bool path_get_entry(struct vm *vm, cy_value map, cy_value key, cy_value *owned_out)
{
    uint64_t hash;
    cy_err err = map_object_hash_key(vm, key, &hash);
    if (cy_failed(err)) return path_failed(vm, err, key);
    uint32_t index;
    err = map_object_find(vm, map_object_of(map), key, hash, &index);
    if (cy_failed(err)) return path_failed(vm, err, key);
    if (index == MAP_OBJECT_NONE) return path_no_key(vm, map_object_of(map), key);
    *owned_out = value_ref(map_object_of(map)->entries[index].value);
    return true;
}

static bool path_get_range(struct vm *vm, cy_value container, cy_value key, cy_value *owned_out)
{
    const struct range *range = range_of(container);
    if (key.tag != TAG_INT)
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_INDEX_KIND, "range", value_kind_text(vm, key));
    if ((uint64_t)key.as.i >= range_count(range))
        return path_index_failed(vm, container, key.as.i, range_count(range));
    *owned_out = value_int((int64_t)((uint64_t)range->from + (uint64_t)key.as.i));
    return true;
}

/* c.name by the name's bytes. */
static bool path_get_field(struct vm *vm, cy_value container, cy_value name, cy_value *owned_out)
{
    cy_bytes text = string_bytes(name);
    cy_err err = CY_OK;
    switch (container.tag) {
    case TAG_RECORD: {
        uint32_t index = record_shape_find(record_of(container)->shape, text);
        if (index == UINT32_MAX) break;
        if (index == ERROR_FIELD_STACK) error_settle_places(vm, container);
        *owned_out = value_ref(record_of(container)->fields[index]);
        return true;
    }
    case TAG_MAP: return path_get_entry(vm, container, name, owned_out);
    case TAG_REF:
        if (!cy_bytes_equal(text, CY_BYTES("value"))) break;
        *owned_out = value_ref(ref_touch(vm, container)->value);
        return true;
    case TAG_OPAQUE: {
        const struct opaque *opaque = opaque_of(container);
        bool found =
            opaque->type->get_field && opaque->type->get_field(vm, opaque->payload, text, owned_out, &err);
        if (cy_failed(err)) return error_raise_plain(vm, err); /* before the value, which is not there then */
        if (found) return true;
        break;
    }
    case TAG_HANDLE: {
        bool found = handle_get_field(vm, container, text, owned_out, &err);
        if (cy_is(err, CY_ERR_CLOSED))
            return error_raise(vm, err, MESSAGE_CLOSED, value_kind_text(vm, container));
        if (cy_failed(err)) return error_raise_plain(vm, err);
        if (found) return true;
        break;
    }
    default: break;
    }
    return path_no_field(vm, container, text);
}

static bool path_get(struct vm *vm, cy_value container, cy_value key, cy_value *owned_out)
{
    switch (container.tag) {
    case TAG_LIST:
    case TAG_STR: return path_get_numbered(vm, container, key, owned_out);
    case TAG_MAP: return path_get_entry(vm, container, key, owned_out);
    case TAG_RANGE: return path_get_range(vm, container, key, owned_out);
    case TAG_RECORD:
    case TAG_REF:
    case TAG_OPAQUE:
    case TAG_HANDLE:
        if (key.tag == TAG_STR) return path_get_field(vm, container, key, owned_out);
        __attribute__((fallthrough));
    default: return error_raise(vm, CY_ERR(TYPE), MESSAGE_NOT_INDEXED, value_kind_text(vm, container));
    }
}

bool slow_index_get(struct vm *vm, cy_value *r, const struct run_step *step)
{
    bool number = step->op == RUN_INDEX_GET_INT;
    cy_value key = number ? value_int((int32_t)step->c) : r[step->c], item;
    if (!path_get(vm, r[step->b], key, &item)) return false;
    if (step->x & RUN_OWN_B) slow_clear(vm, &r[step->b]);
    if (!number && (step->x & RUN_OWN_C)) slow_clear(vm, &r[step->c]);
    slow_put(vm, &r[step->a], item);
    return true;
}

/* Remembers where the field was, so that the next access need not search. */
static void path_remember(const struct instance *instance, cy_value container, cy_value name,
                          struct run_cache *cache)
{
    if (container.tag == TAG_RECORD) {
        /* Another instance's shape may be freed while this code lives, and its address used again. */
        const void *owner = record_of(container)->shape->owner;
        if (owner != instance) return; /* nor the VM's own shape: reading an error's stack formats it first */
        cache->shape = record_of(container)->shape;
        cache->index = record_shape_find(record_of(container)->shape, string_bytes(name));
    } else if (container.tag == TAG_MAP) {
        const struct map_object *map = map_object_of(container);
        const struct string *string = string_of(name);
        for (uint32_t i = 0; i < map->entry_count && i < MAP_OBJECT_SCAN_MAX; i++) {
            if (map->entries[i].key.tag != TAG_STR || map->entries[i].key.as.object != &string->head)
                continue;
            cache->shape = NULL;
            cache->index = i;
            return;
        }
    }
}

bool slow_field_get(struct vm *vm, cy_value *r, const struct instance *instance, struct run_step *step)
{
    cy_value name = instance->constants[step->c], item;
    if (!path_get_field(vm, r[step->b], name, &item)) return false;
    path_remember(instance, r[step->b], name, (struct run_cache *)(step + 1));
    if (step->x & RUN_OWN_B) slow_clear(vm, &r[step->b]);
    slow_put(vm, &r[step->a], item);
    return true;
}

/* -- writing --------------------------------------------------------------------------------------------- */

/* Makes `*cell` the only holder of its container. */
static bool path_unshare(struct vm *vm, cy_value *cell)
{
    if (value_is_unshared(*cell)) return true;
    cy_value copy;
    cy_err err;
    switch (cell->tag) {
    case TAG_LIST: err = list_copy(vm, *cell, 0, &copy); break;
    case TAG_MAP: err = map_object_copy(vm, *cell, &copy); break;
    default: err = record_copy(vm, *cell, &copy); break;
    }
    if (cy_failed(err)) return error_raise_plain(vm, err);
    vm->counters.copies++;
    slow_put(vm, cell, copy);
    return true;
}

bool slow_append(struct vm *vm, cy_value *list, cy_value *item_slot)
{
    if (list->tag != TAG_LIST)
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_APPEND_KIND, value_kind_text(vm, *list));
    cy_err err = list_append(vm, list, slow_take(item_slot));
    return cy_failed(err) ? path_failed(vm, err, value_nil()) : true;
}

static bool path_list_index(struct vm *vm, cy_value list, cy_value key, uint32_t *index_out)
{
    uint32_t count = list_of(list)->count;
    if (key.tag != TAG_INT)
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_INDEX_KIND, value_kind_text(vm, list),
                           value_kind_text(vm, key));
    if ((uint64_t)key.as.i >= count) return path_index_failed(vm, list, key.as.i, count);
    *index_out = (uint32_t)key.as.i;
    return true;
}

static bool path_field_index(struct vm *vm, cy_value record, cy_value key, uint32_t *index_out)
{
    if (key.tag != TAG_STR)
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_NOT_INDEXED, value_kind_text(vm, record));
    *index_out = record_shape_find(record_of(record)->shape, string_bytes(key));
    return *index_out != UINT32_MAX || path_no_field(vm, record, string_bytes(key));
}

static bool path_is_value_field(struct vm *vm, cy_value ref, cy_value key)
{
    if (key.tag == TAG_STR && cy_bytes_equal(string_bytes(key), CY_BYTES("value"))) return true;
    if (key.tag == TAG_STR) return path_no_field(vm, ref, string_bytes(key));
    return error_raise(vm, CY_ERR(TYPE), MESSAGE_NOT_INDEXED, value_kind_text(vm, ref));
}

/* The cell of an existing item inside `*cell`, whose container is unshared first. */
static bool path_enter(struct vm *vm, cy_value *cell, cy_value key, cy_value **inner_out)
{
    uint32_t index;
    uint64_t hash;
    switch (cell->tag) {
    case TAG_LIST:
        if (!path_list_index(vm, *cell, key, &index)) return false;
        if (list_kind_of(list_of(*cell)) != LIST_ANY) /* bare numbers: nothing to enter */
            return error_raise(vm, CY_ERR(TYPE), MESSAGE_NOT_WRITABLE,
                               value_kind_text(vm, list_item(list_of(*cell), index)));
        if (!path_unshare(vm, cell)) return false;
        *inner_out = &list_of(*cell)->items.any[index];
        return true;
    case TAG_MAP: {
        cy_err err = map_object_hash_key(vm, key, &hash);
        if (!cy_failed(err)) err = map_object_find(vm, map_object_of(*cell), key, hash, &index);
        if (cy_failed(err)) return path_failed(vm, err, key);
        if (index == MAP_OBJECT_NONE) return path_no_key(vm, map_object_of(*cell), key);
        if (!path_unshare(vm, cell)) return false;
        err = map_object_find(vm, map_object_of(*cell), key, hash, &index); /* a copy has closed its holes */
        if (cy_failed(err)) return path_failed(vm, err, key);
        *inner_out = &map_object_of(*cell)->entries[index].value;
        return true;
    }
    case TAG_RECORD:
        if (!path_field_index(vm, *cell, key, &index) || !path_unshare(vm, cell)) return false;
        if (index == ERROR_FIELD_STACK) error_settle_places(vm, *cell);
        *inner_out = &record_of(*cell)->fields[index];
        return true;
    case TAG_REF:
        if (!path_is_value_field(vm, *cell, key)) return false;
        *inner_out = &ref_touch_to_write(vm, *cell)->value;
        return true;
    default: return error_raise(vm, CY_ERR(TYPE), MESSAGE_NOT_WRITABLE, value_kind_text(vm, *cell));
    }
}

/* The last level: sets the item; a map gets a new key. Takes the value out of `value_slot` when it
 * succeeds or once the value cannot be refused any more. */
static bool path_set_last(struct vm *vm, cy_value *cell, cy_value key, cy_value *value_slot)
{
    uint32_t index;
    cy_err err;
    switch (cell->tag) {
    case TAG_LIST:
        if (!path_list_index(vm, *cell, key, &index) || !path_unshare(vm, cell)) return false;
        err = list_set(vm, list_of(*cell), index, slow_take(value_slot));
        return cy_failed(err) ? path_failed(vm, err, key) : true;
    case TAG_MAP:
        if (!path_unshare(vm, cell)) return false;
        err = map_object_set(vm, map_object_of(*cell), value_ref(key), slow_take(value_slot));
        return cy_failed(err) ? path_failed(vm, err, key) : true;
    case TAG_RECORD:
        if (!path_field_index(vm, *cell, key, &index)) return false;
        if (!record_check_field(vm, record_of(*cell)->shape, index, *value_slot)) return false;
        if (!path_unshare(vm, cell)) return false;
        slow_put(vm, &record_of(*cell)->fields[index], slow_take(value_slot));
        return true;
    case TAG_REF:
        if (!path_is_value_field(vm, *cell, key)) return false;
        slow_put(vm, &ref_touch_to_write(vm, *cell)->value, slow_take(value_slot));
        return true;
    default: return error_raise(vm, CY_ERR(TYPE), MESSAGE_NOT_WRITABLE, value_kind_text(vm, *cell));
    }
}

bool slow_path_set(struct vm *vm, cy_value *target, cy_value *keys, uint32_t count)
{
    cy_value *cell = target;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (!path_enter(vm, cell, keys[i], &cell)) return false;
    if (!path_set_last(vm, cell, keys[count - 1], &keys[count])) return false;
    for (uint32_t i = 0; i < count; i++) slow_clear(vm, &keys[i]);
    return true;
}

/* -- adding ---------------------------------------------------------------------------------------------- */

/* cell = cell + value. A str or list grows where it is and keeps its kind; of the rest the sum is made beside it and
 * then set, because a record's field, or a list of bare numbers, may refuse it or store it otherwise. */
static bool path_add_last(struct vm *vm, cy_value *cell, cy_value key, cy_value *value_slot, bool append)
{
    cy_value *place = NULL, sum;
    bool bare = cell->tag == TAG_LIST && list_kind_of(list_of(*cell)) != LIST_ANY;
    if (!bare && !path_enter(vm, cell, key, &place)) return false;
    if (place && append) return slow_append(vm, place, value_slot);
    if (place && value_is_heap(*place)) return slow_add_in_place(vm, place, *value_slot);
    if (bare) {
        uint32_t index;
        if (!path_list_index(vm, *cell, key, &index)) return false;
        sum = list_item(list_of(*cell), index);
        if (append) return slow_append(vm, &sum, value_slot); /* a number: refused */
    } else
        sum = *place;
    if (!slow_add_in_place(vm, &sum, *value_slot)) return false;
    if (place && cell->tag != TAG_RECORD) {
        *place = sum; /* it held no reference */
        return true;
    }
    if (path_set_last(vm, cell, key, &sum)) return true;
    slow_clear(vm, &sum);
    return false;
}

bool slow_path_add(struct vm *vm, cy_value *target, cy_value *keys, uint32_t count, bool append)
{
    cy_value *cell = target;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (!path_enter(vm, cell, keys[i], &cell)) return false;
    if (!path_add_last(vm, cell, keys[count - 1], &keys[count], append)) return false;
    for (uint32_t i = 0; i <= count; i++) slow_clear(vm, &keys[i]);
    return true;
}
