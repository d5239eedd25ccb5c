/* SPDX-License-Identifier: MIT
 *
 * vm/run/path_set.c: c[k], c.name, and writing inside values without copying what nobody else holds.
 *
 *   local[k1][k2] = v      (also = that + v, = that + [v])
 *                          k1 .. k(n-1) are entered, one step for each; a shared level is copied (one level,
 *                          counted), an unshared one is entered as it is; the last key is set in place.
 *
 * In:   values and keys. Out: items, or errors that name the range or the nearest name.
 * Invariant: what somebody else holds never changes. A failed write leaves equal values, though perhaps
 *       unshared ones.
 */
#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/code/opcode.h"
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

/* A hint is worth looking at some names, not at a million: the error may be caught, and nobody sees it. */
enum { PATH_HINT_NAMES = 32 };

/* Letters of a hint are compared in a loop that takes a quarter of a step for each. */
static void path_charge_hint(struct vm *vm, const struct nearest *nearest)
{
    vm_charge(vm, nearest->work / 4);
}

static bool path_no_key(struct vm *vm, const struct map_object *map, cy_value key)
{
    struct nearest nearest;
    bool text = key.tag == TAG_STR;
    nearest_init(&nearest, text ? string_bytes(key) : CY_BYTES_NONE);
    uint32_t index = 0;
    for (uint32_t seen = 0; text && seen < PATH_HINT_NAMES && map_object_seek(map, &index); seen++, index++)
        if (map->entries[index].key_tag == TAG_STR)
            nearest_offer(&nearest, string_bytes(map_object_key(&map->entries[index])));
    path_charge_hint(vm, &nearest);
    struct builder shown;
    builder_init(&shown);
    shown.count_max = 4096; /* a message, not a document: the key itself is in error.data */
    value_format(vm, key, true, &shown);
    vm_charge_bytes(vm, shown.count);
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
    path_charge_hint(vm, &nearest);
    if (container.tag == TAG_REF) nearest.best = CY_BYTES("value"); /* its only field */
    const char *kind = value_kind_text(vm, container);
    if (nearest.best.count)
        return error_raise(vm, CY_ERR(FIELD), MESSAGE_NO_FIELD_NEAR, kind, CY_BYTES_ARG(name),
                           CY_BYTES_ARG(nearest.best));
    return error_raise(vm, CY_ERR(FIELD), MESSAGE_NO_FIELD, kind, CY_BYTES_ARG(name));
}

static bool path_failed(struct vm *vm, cy_err err, cy_value key)
{
    if (cy_is(err, CY_ERR_KEY)) return error_raise_bad_key(vm, err, key);
    return cy_is(err, CY_ERR_TOO_LARGE) ? error_raise_limit(vm, err, "LIST_ITEMS")
                                        : error_raise_walk(vm, err);
}

/* -- reading --------------------------------------------------------------------------------------------- */

static bool path_slice(struct vm *vm, cy_value container, int64_t from, int64_t to, cy_value *owned_out)
{
    bool list = container.tag == TAG_LIST;
    int64_t count = list ? list_of(container)->count : string_of(container)->count;
    if (from < 0 || to < from || to > count)
        return error_raise(vm, CY_ERR(INDEX), MESSAGE_SLICE, (long long)from, (long long)to,
                           (long long)count);
    cy_err err =
        list ? list_slice(vm, container, (size_t)from, (size_t)to, owned_out)
             : string_new(vm, cy_bytes_slice(string_bytes(container), (size_t)from, (size_t)to), owned_out);
    return cy_failed(err) ? error_raise_plain(vm, err) : true;
}

static bool path_get_numbered(struct vm *vm, cy_value container, cy_value key, cy_value *owned_out)
{
    bool list = container.tag == TAG_LIST;
    uint32_t count = list ? list_of(container)->count : string_of(container)->count;
    if (key.tag == TAG_RANGE)
        return path_slice(vm, container, range_of(key)->from, range_of(key)->to, owned_out);
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
    cy_value *place;
    if (map_object_look(vm, map_object_of(map), key, &place) && place) {
        *owned_out = value_ref(*place);
        return true;
    }
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

/* Lets go of the key and stores the item. */
static bool path_index_done(struct vm *vm, cy_value *r, const struct run_step *step, cy_value owned_item)
{
    bool number = run_op_flags[step->op] & RUN_FLAG_INT_C;
    if (!number && (step->x & RUN_OWN_C)) slow_clear(vm, run_slot(r, step->c));
    slow_put(vm, run_slot(r, step->a), owned_item);
    return true;
}

bool slow_index_get_from(struct vm *vm, cy_value *r, const struct run_step *step, cy_value container)
{
    cy_value item;
    if (!path_get(vm, container, *run_slot(r, step->c), &item)) return false;
    return path_index_done(vm, r, step, item);
}

bool slow_index_get(struct vm *vm, cy_value *r, const struct run_step *step)
{
    bool number = run_op_flags[step->op] & RUN_FLAG_INT_C;
    cy_value key = number ? value_int((int32_t)step->c) : *run_slot(r, step->c), item;
    cy_value *b = run_slot(r, step->b), *place = NULL;
    if (b->tag == TAG_MAP && map_object_look(vm, map_object_of(*b), key, &place) && place)
        item = value_ref(*place);
    else if (!path_get(vm, *b, key, &item))
        return false;
    if (step->x & RUN_OWN_B) slow_clear(vm, run_slot(r, step->b));
    return path_index_done(vm, r, step, item);
}

/* r[b][r[c]..r[c+1]] as INDEX_GET with a range does it, without the range, unless what is indexed is no list or str. */
bool slow_slice(struct vm *vm, cy_value *r, const struct run_step *step)
{
    cy_value *bounds = run_slot(r, step->c), *b = run_slot(r, step->b), item, range;
    bool done;
    if (bounds[0].tag != TAG_INT || bounds[1].tag != TAG_INT)
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_LOOP_INTS, value_kind_text(vm, bounds[0]),
                           value_kind_text(vm, bounds[1]));
    if (b->tag == TAG_LIST || b->tag == TAG_STR)
        done = path_slice(vm, *b, bounds[0].as.i, bounds[1].as.i, &item);
    else {
        cy_err err = range_new(vm, bounds[0].as.i, bounds[1].as.i, &range);
        if (cy_failed(err)) return error_raise_plain(vm, err);
        done = path_get(vm, *b, range, &item);
        value_unref(vm, range);
    }
    if (!done) return false;
    if (step->x & RUN_OWN_B) slow_clear(vm, b);
    slow_put(vm, run_slot(r, step->a), item);
    return true;
}

const char run_cache_ref = 0;

/* Remembers where the field was, so that the next access need not search. */
static void path_remember(const struct instance *instance, cy_value container, cy_value name,
                          struct run_cache *cache)
{
    if (container.tag == TAG_REF) {
        cache->shape = &run_cache_ref;
        cache->kind = RUN_CACHE_ANY;
    } else if (container.tag == TAG_RECORD) {
        /* Another instance's shape may be freed while this code lives, and its address used again. */
        const void *owner = record_of(container)->shape->owner;
        if (owner != instance) return; /* nor the VM's own shape: reading an error's stack formats it first */
        const struct record_shape *shape = record_of(container)->shape;
        cache->shape = shape;
        cache->index = record_shape_find(shape, string_bytes(name));
        const struct record_rule *rule = shape->rules ? &shape->rules[cache->index] : NULL;
        bool one = rule && !rule->serial && (rule->kinds & (rule->kinds - 1)) == 0;
        cache->kind = !rule || rule->kinds == RECORD_FIELD_ANY ? RUN_CACHE_ANY
                      : one                                    ? (uint32_t)__builtin_ctz(rule->kinds)
                                                               : RUN_CACHE_ASK;
    } else if (container.tag == TAG_MAP) {
        const struct map_object *map = map_object_of(container);
        for (uint32_t i = 0; i < map->entry_count && i < MAP_OBJECT_SCAN_MAX; i++) {
            if (map->entries[i].key_tag != TAG_STR || map->entries[i].key_payload != name.as.i) continue;
            cache->shape = NULL;
            cache->index = i;
            cache->kind = RUN_CACHE_ANY;
            return;
        }
    }
}

bool slow_field_get(struct vm *vm, cy_value *r, const struct instance *instance, struct run_step *step)
{
    cy_value name = instance->constants[step->c], item;
    if (!path_get_field(vm, *run_slot(r, step->b), name, &item)) return false;
    path_remember(instance, *run_slot(r, step->b), name, (struct run_cache *)(step + 1));
    if (step->x & RUN_OWN_B) slow_clear(vm, run_slot(r, step->b));
    slow_put(vm, run_slot(r, step->a), item);
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

bool slow_append(struct vm *vm, cy_value *list, cy_value owned_item)
{
    if (list->tag != TAG_LIST) {
        value_unref(vm, owned_item);
        return error_raise(vm, CY_ERR(TYPE), MESSAGE_OPERANDS, "+", value_kind_text(vm, *list),
                           kind_name(KIND_LIST, false));
    }
    cy_err err = list_append(vm, list, owned_item);
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
        if (value_is_unshared(*cell) && map_object_look(vm, map_object_of(*cell), key, inner_out) &&
            *inner_out)
            return true;
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

/* The last level: sets the item; a map gets a new key. */
static bool path_set_last(struct vm *vm, cy_value *cell, cy_value key, cy_value owned)
{
    uint32_t index;
    cy_value *place;
    cy_err err;
    switch (cell->tag) {
    case TAG_LIST:
        if (!path_list_index(vm, *cell, key, &index) || !path_unshare(vm, cell)) break;
        err = list_set(vm, list_of(*cell), index, owned);
        return cy_failed(err) ? path_failed(vm, err, key) : true;
    case TAG_MAP:
        if (CY_UNLIKELY(!value_is_unshared(*cell)) && !path_unshare(vm, cell)) break;
        if (map_object_look(vm, map_object_of(*cell), key, &place) && place) {
            slow_put(vm, place, owned);
            return true;
        }
        err = map_object_set(vm, map_object_of(*cell), value_ref(key), owned);
        return cy_failed(err) ? path_failed(vm, err, key) : true;
    case TAG_RECORD:
        if (!path_field_index(vm, *cell, key, &index)) break;
        if (!record_check_field(vm, record_of(*cell)->shape, index, owned)) break;
        if (!path_unshare(vm, cell)) break;
        slow_put(vm, &record_of(*cell)->fields[index], owned);
        return true;
    case TAG_REF:
        if (!path_is_value_field(vm, *cell, key)) break;
        slow_put(vm, &ref_touch_to_write(vm, *cell)->value, owned);
        return true;
    default: error_raise(vm, CY_ERR(TYPE), MESSAGE_NOT_WRITABLE, value_kind_text(vm, *cell)); break;
    }
    value_unref(vm, owned);
    return false;
}

/* cell = cell + value. A str or list grows where it is and keeps its kind; of the rest the sum is made beside it and
 * then set, because a record's field, or a list of bare numbers, may refuse it or store it otherwise. `value` is
 * borrowed. */
static bool path_add_last(struct vm *vm, cy_value *cell, cy_value key, cy_value value)
{
    cy_value *place = NULL, sum;
    bool bare = cell->tag == TAG_LIST && list_kind_of(list_of(*cell)) != LIST_ANY;
    if (!bare && !path_enter(vm, cell, key, &place)) return false;
    if (place && value_is_heap(*place)) return slow_add_in_place(vm, place, value);
    if (bare) {
        uint32_t index;
        if (!path_list_index(vm, *cell, key, &index)) return false;
        sum = list_item(list_of(*cell), index);
    } else
        sum = *place;
    if (!slow_add_in_place(vm, &sum, value)) return false;
    if (place && cell->tag != TAG_RECORD) {
        *place = sum; /* it held no reference */
        return true;
    }
    return path_set_last(vm, cell, key, sum);
}

static bool path_append_last(struct vm *vm, cy_value *cell, cy_value key, cy_value owned)
{
    cy_value *place = NULL, number;
    uint32_t index;
    if (cell->tag == TAG_LIST && list_kind_of(list_of(*cell)) != LIST_ANY) {
        if (path_list_index(vm, *cell, key, &index)) {
            number = list_item(list_of(*cell), index);
            return slow_append(vm, &number, owned); /* refused */
        }
    } else if (path_enter(vm, cell, key, &place))
        return slow_append(vm, place, owned);
    value_unref(vm, owned);
    return false;
}

/* -- the steps ------------------------------------------------------------------------------------------- */

cy_value *slow_enter_index(struct vm *vm, cy_value *r, cy_value *cell, const struct run_step *step)
{
    cy_value key = step->x & RUN_NUMBER_C ? value_int((int32_t)step->c) : *run_slot(r, step->c), *place;
    if (!path_enter(vm, cell, key, &place)) return NULL;
    if (step->x & RUN_OWN_C) slow_clear(vm, run_slot(r, step->c));
    return place;
}

cy_value *slow_enter_field(struct vm *vm, cy_value *cell, const struct instance *instance,
                           struct run_step *step)
{
    cy_value name = instance->constants[step->c], *place;
    if (!path_enter(vm, cell, name, &place)) return NULL;
    path_remember(instance, *cell, name, (struct run_cache *)(step + 1));
    return place;
}

static cy_value path_key(cy_value *r, const struct run_step *step)
{
    return step->x & RUN_NUMBER_B ? value_int((int32_t)step->b) : *run_slot(r, step->b);
}
static bool path_done(struct vm *vm, cy_value *r, const struct run_step *step, bool done)
{
    if (done && (step->x & RUN_OWN_B)) slow_clear(vm, run_slot(r, step->b));
    return done;
}

bool slow_index_set(struct vm *vm, cy_value *r, cy_value *cell, const struct run_step *step, cy_value owned)
{
    return path_done(vm, r, step, path_set_last(vm, cell, path_key(r, step), owned));
}
bool slow_index_append(struct vm *vm, cy_value *r, cy_value *cell, const struct run_step *step,
                       cy_value owned)
{
    return path_done(vm, r, step, path_append_last(vm, cell, path_key(r, step), owned));
}
bool slow_index_add(struct vm *vm, cy_value *r, cy_value *cell, const struct run_step *step, cy_value owned)
{
    bool done = path_add_last(vm, cell, path_key(r, step), owned);
    value_unref(vm, owned);
    return path_done(vm, r, step, done);
}

/* `tag` is the container's from before the write, which may drop, or move, what holds the cell: the cell of a ref can
 * lie inside that ref's own value. A map or a record is unshared by then and never inside what it drops. */
static bool path_field_done(uint8_t tag, const cy_value *cell, const struct instance *instance,
                            struct run_step *step, bool done)
{
    cy_value container = tag == TAG_REF ? (cy_value){TAG_REF, {.i = 0}} : done ? *cell : value_nil();
    if (done)
        path_remember(instance, container, instance->constants[step->b], (struct run_cache *)(step + 1));
    return done;
}

bool slow_field_set(struct vm *vm, cy_value *cell, const struct instance *instance, struct run_step *step,
                    cy_value owned)
{
    uint8_t tag = cell->tag;
    bool done = path_set_last(vm, cell, instance->constants[step->b], owned);
    return path_field_done(tag, cell, instance, step, done);
}
bool slow_field_append(struct vm *vm, cy_value *cell, const struct instance *instance, struct run_step *step,
                       cy_value owned)
{
    uint8_t tag = cell->tag;
    bool done = path_append_last(vm, cell, instance->constants[step->b], owned);
    return path_field_done(tag, cell, instance, step, done);
}
bool slow_field_add(struct vm *vm, cy_value *cell, const struct instance *instance, struct run_step *step,
                    cy_value owned)
{
    uint8_t tag = cell->tag;
    bool done = path_add_last(vm, cell, instance->constants[step->b], owned);
    value_unref(vm, owned);
    return path_field_done(tag, cell, instance, step, done);
}
