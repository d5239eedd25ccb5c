/* SPDX-License-Identifier: MIT
 *
 * vm/run/map_object.c: the language's map: insertion order, open addressing, keys hashed with a seed.
 *
 * In:   keys and values. Out: owned map values.
 * Invariant: see map_object.h. Removing leaves a hole in `entries`; when holes are the majority the
 *       entries move together, at the removal itself or at the next key that needs room.
 * Not here: what a key hashes to (key.c).
 */
#include "vm/run/map_object.h"

#include "vm/base/limits.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

#define MAP_OBJECT_REMOVED (UINT32_MAX - 1)

static bool map_object_is_hole(const struct map_object_entry *entry) { return entry->key_tag == TAG_ABSENT; }
static size_t map_object_entry_bytes(size_t capacity) { return capacity * sizeof(struct map_object_entry); }
static size_t map_object_slot_bytes(size_t count) { return count * sizeof(uint32_t); }
static uint32_t map_object_slot(uint32_t hash, uint32_t index, uint32_t mask)
{
    return (hash & ~mask) | index;
}
/* Whether what a slot holds may be the entry of a key with this hash. Also true of some that are free or removed. */
static bool map_object_slot_may_be(uint32_t slot, uint32_t hash, uint32_t mask)
{
    return ((slot ^ hash) & ~mask) == 0;
}

cy_err map_new(struct vm *vm, size_t capacity, cy_value *owned_out)
{
    if (capacity > LIMIT_LIST_ITEMS) return CY_ERR_DETAIL(TOO_LARGE, LIMIT_LIST_ITEMS);
    struct map_object *map = heap_new_object(vm, TAG_MAP, sizeof *map);
    if (!map) return CY_ERR(NO_MEMORY);
    map->live_count = map->entry_count = map->entry_capacity = map->slot_count = map->first_live = 0;
    map->entries = NULL;
    map->slots = NULL;
    if (capacity > 0) {
        map->entries = heap_alloc(vm, map_object_entry_bytes(capacity));
        if (!map->entries) {
            heap_free_object(vm, &map->container.head, sizeof *map);
            return CY_ERR(NO_MEMORY);
        }
        map->entry_capacity = (uint32_t)capacity;
    }
    *owned_out = value_object(TAG_MAP, &map->container.head);
    return CY_OK;
}

void map_object_free(struct vm *vm, struct map_object *map)
{
    heap_free(vm, map->entries, map_object_entry_bytes(map->entry_capacity));
    heap_free(vm, map->slots, map_object_slot_bytes(map->slot_count));
    heap_free_object(vm, &map->container.head, sizeof *map);
}

bool map_object_pop_dead(struct map_object *map, cy_value *item_out)
{
    while (map->entry_count > 0) {
        struct map_object_entry *entry = &map->entries[map->entry_count - 1];
        if (entry->value.tag != TAG_ABSENT) {
            *item_out = entry->value;
            entry->value = value_absent();
            return true;
        }
        map->entry_count--;
        if (!map_object_is_hole(entry)) {
            *item_out = map_object_key(entry);
            return true;
        }
    }
    return false;
}

static cy_err map_object_key_equal(struct vm *vm, cy_value a, cy_value b, bool *equal_out)
{
    if (a.tag == TAG_STR && b.tag == TAG_STR) {
        *equal_out = a.as.object == b.as.object ||
                     cy_bytes_equal(string_view(string_of(a)), string_view(string_of(b)));
        return CY_OK;
    }
    return value_compare(vm, a, b, equal_out);
}

cy_err map_object_find(struct vm *vm, const struct map_object *map, cy_value key, uint64_t hash,
                       uint32_t *index_out)
{
    bool equal = false;
    uint32_t half = (uint32_t)hash;
    *index_out = MAP_OBJECT_NONE;
    if (map->slot_count == 0) {
        for (uint32_t i = 0; i < map->entry_count && !equal; i++) {
            const struct map_object_entry *entry = &map->entries[i];
            if (entry->hash != half || map_object_is_hole(entry)) continue;
            CY_TRY(map_object_key_equal(vm, map_object_key(entry), key, &equal));
            if (equal) *index_out = i;
        }
        return CY_OK;
    }
    uint32_t mask = map->slot_count - 1;
    for (uint32_t at = half & mask; !equal; at = (at + 1) & mask) {
        uint32_t slot = map->slots[at];
        if (slot == MAP_OBJECT_NONE) return CY_OK;
        if (!map_object_slot_may_be(slot, half, mask) || slot == MAP_OBJECT_REMOVED) continue;
        const struct map_object_entry *entry = &map->entries[slot & mask];
        if (entry->hash != half) continue;
        CY_TRY(map_object_key_equal(vm, map_object_key(entry), key, &equal));
        if (equal) *index_out = slot & mask;
    }
    return CY_OK;
}

/* What is wanted next is asked for before it is needed: one map of a gateway's ten thousand is rarely in the nearest
 * cache. The object of an entry, while its key is compared; the slots of a small map, while its key is hashed
 * (decision 0088 has what that is worth). */
static inline void map_object_foresee(const cy_value *value)
{
    if (value_is_heap(*value)) __builtin_prefetch(value->as.object);
}
enum { MAP_OBJECT_LINE_SLOTS = 16 }; /* in 64 bytes */
static inline void map_object_foresee_slots(const struct map_object *map)
{
    if (map->slot_count > 2 * MAP_OBJECT_LINE_SLOTS) return;
    __builtin_prefetch(map->slots);
    __builtin_prefetch(map->slots + MAP_OBJECT_LINE_SLOTS);
}

/* Whether the entry is that of a str or int: 0, 1; 2 when its key is of another kind. */
static inline int map_object_is_entry(const struct map_object_entry *entry, cy_value key, uint32_t hash)
{
    if (entry->hash != hash || map_object_is_hole(entry)) return 0;
    if (entry->key_tag != key.tag) return 2;
    if (entry->key_payload == key.as.i) return 1;
    if (key.tag == TAG_INT) return 0;
    const struct string *a = string_of(map_object_key(entry)), *b = string_of(key);
    map_object_foresee(&entry->value);
    return a->count == b->count && memcmp(a->data, b->data, a->count) == 0;
}

bool map_object_look(struct vm *vm, const struct map_object *map, cy_value key, cy_value **place_out)
{
    uint32_t hash;
    map_object_foresee_slots(map);
    if (key.tag == TAG_STR)
        hash = (uint32_t)string_hash(vm, string_of(key));
    else if (key.tag == TAG_INT)
        hash = (uint32_t)map_object_hash_int(vm->options.seed, (uint64_t)key.as.i);
    else
        return false;
    *place_out = NULL;
    uint32_t mask = map->slot_count - 1, at = hash & mask;
    for (uint32_t i = 0;; i++, at = (at + 1) & mask) {
        uint32_t index = i;
        if (map->slot_count > 0) {
            uint32_t slot = map->slots[at];
            if (slot == MAP_OBJECT_NONE) return true;
            if (!map_object_slot_may_be(slot, hash, mask) || slot == MAP_OBJECT_REMOVED) continue;
            index = slot & mask;
        } else if (i >= map->entry_count)
            return true;
        int is = map_object_is_entry(&map->entries[index], key, hash);
        if (is == 2) return false;
        if (is == 0) continue;
        *place_out = &map->entries[index].value;
        return true;
    }
}

/* Puts every entry into `slots`, which has a free one left for each. */
static void map_object_fill_slots(struct map_object *map)
{
    memset(map->slots, 0xff, map_object_slot_bytes(map->slot_count)); /* MAP_OBJECT_NONE */
    uint32_t mask = map->slot_count - 1;
    for (uint32_t i = 0; i < map->entry_count; i++) {
        uint32_t hash = map->entries[i].hash, at = hash & mask;
        while (map->slots[at] != MAP_OBJECT_NONE) at = (at + 1) & mask;
        map->slots[at] = map_object_slot(hash, i, mask);
    }
}

/* Moves the entries together over the holes. The slots are stale afterwards. */
static void map_object_close_holes(struct map_object *map)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < map->entry_count; i++)
        if (!map_object_is_hole(&map->entries[i])) map->entries[count++] = map->entries[i];
    map->entry_count = count;
    map->first_live = 0;
    CHECK(count == map->live_count);
}

/* The slots for so many entries: at most half of them are used, so the highest bit of an index in a slot is 0, and no
 * slot in use looks free or removed. */
static size_t map_object_slots_for(size_t entry_capacity)
{
    size_t count = 0;
    if (entry_capacity > MAP_OBJECT_SCAN_MAX)
        for (count = 16; count < entry_capacity * 2;) count *= 2;
    return count;
}

/* Replaces the slots by enough for `entry_capacity` entries, at most half of them used, and fills them.
 * Holes go first: a removed entry must not be in the slots again. Unchanged on failure. */
static cy_err map_object_rebuild_slots(struct vm *vm, struct map_object *map, size_t entry_capacity)
{
    size_t count = map_object_slots_for(entry_capacity);
    if (count != map->slot_count) {
        uint32_t *slots = count ? heap_alloc(vm, map_object_slot_bytes(count)) : NULL;
        if (count && !slots) return CY_ERR(NO_MEMORY);
        heap_free(vm, map->slots, map_object_slot_bytes(map->slot_count));
        map->slots = slots;
        map->slot_count = (uint32_t)count;
    }
    vm_charge_items(vm, (size_t)map->entry_count + map->slot_count / 4);
    if (map->entry_count != map->live_count) map_object_close_holes(map);
    if (map->slot_count > 0) map_object_fill_slots(map);
    return CY_OK;
}

enum { MAP_OBJECT_HOLES_MIN = 32 }; /* fewer are walked faster than closed */

/* Closes the holes where they are the majority, and gives memory back. Takes none: whoever removes must not fail for
 * that, and where less cannot be had (mem_resize) it stays as large as it was. Each removal pays for its part. */
static void map_object_shrink(struct vm *vm, struct map_object *map)
{
    uint32_t holes = map->entry_count - map->live_count;
    if (holes < MAP_OBJECT_HOLES_MIN || holes <= map->live_count) return;
    vm_charge_items(vm, map->entry_count);
    map_object_close_holes(map);
    size_t capacity = 4;
    while (capacity < 2 * (size_t)map->live_count) capacity *= 2;
    if (capacity < map->entry_capacity) {
        void *entries = heap_resize(vm, map->entries, map_object_entry_bytes(map->entry_capacity),
                                    map_object_entry_bytes(capacity));
        if (entries) {
            map->entries = entries;
            map->entry_capacity = (uint32_t)capacity;
        }
    }
    size_t count = map_object_slots_for(map->entry_capacity);
    if (count == 0) {
        heap_free(vm, map->slots, map_object_slot_bytes(map->slot_count));
        map->slots = NULL;
        map->slot_count = 0;
    } else if (count < map->slot_count) {
        void *slots =
            heap_resize(vm, map->slots, map_object_slot_bytes(map->slot_count), map_object_slot_bytes(count));
        if (slots) {
            map->slots = slots;
            map->slot_count = (uint32_t)count;
        }
    }
    vm_charge_items(vm, map->slot_count / 4);
    if (map->slot_count > 0) map_object_fill_slots(map);
}

/* Room for one more entry. Where most entries are holes they are closed instead of growing. */
static cy_err map_object_make_room(struct vm *vm, struct map_object *map)
{
    if (CY_LIKELY(map->entry_count < map->entry_capacity &&
                  (map->slot_count > 0 || map->entry_count < MAP_OBJECT_SCAN_MAX)))
        return CY_OK;
    size_t capacity = map->entry_capacity;
    bool mostly_holes = map->live_count < map->entry_count / 2;
    if (map->entry_count == capacity && !mostly_holes) capacity = capacity < 4 ? 4 : capacity * 2;
    if (capacity > LIMIT_LIST_ITEMS) return CY_ERR_DETAIL(TOO_LARGE, LIMIT_LIST_ITEMS);
    CY_TRY(map_object_rebuild_slots(vm, map, capacity));
    if (capacity == map->entry_capacity) return CY_OK;
    size_t bytes_old = map_object_entry_bytes(map->entry_capacity), bytes = map_object_entry_bytes(capacity);
    void *entries = map->entries ? heap_resize(vm, map->entries, bytes_old, bytes) : heap_alloc(vm, bytes);
    if (!entries) return CY_ERR(NO_MEMORY);
    map->entries = entries;
    map->entry_capacity = (uint32_t)capacity;
    return CY_OK;
}

cy_err map_object_insert(struct vm *vm, struct map_object *unshared, cy_value owned_key, uint64_t hash,
                         cy_value owned_value)
{
    cy_err err = map_object_make_room(vm, unshared);
    if (cy_failed(err)) {
        value_unref(vm, owned_key);
        value_unref(vm, owned_value);
        return err;
    }
    uint32_t index = unshared->entry_count++, half = (uint32_t)hash;
    unshared->live_count++;
    unshared->entries[index] =
        (struct map_object_entry){(uint32_t)owned_key.tag, half, owned_key.as.i, owned_value};
    if (unshared->slot_count > 0) {
        uint32_t mask = unshared->slot_count - 1, at = half & mask;
        while (unshared->slots[at] < MAP_OBJECT_REMOVED) at = (at + 1) & mask;
        unshared->slots[at] = map_object_slot(half, index, mask);
    }
    return CY_OK;
}

cy_err map_object_set(struct vm *vm, struct map_object *unshared, cy_value owned_key, cy_value owned_value)
{
    uint64_t hash;
    uint32_t index;
    cy_err err = map_object_hash_key(vm, owned_key, &hash);
    if (!cy_failed(err)) err = map_object_find(vm, unshared, owned_key, hash, &index);
    if (cy_failed(err)) {
        value_unref(vm, owned_key);
        value_unref(vm, owned_value);
        return err;
    }
    if (index == MAP_OBJECT_NONE) return map_object_insert(vm, unshared, owned_key, hash, owned_value);
    cy_value before = unshared->entries[index].value;
    unshared->entries[index].value = owned_value;
    value_unref(vm, before);
    value_unref(vm, owned_key);
    return CY_OK;
}

cy_err map_object_copy(struct vm *vm, cy_value map, cy_value *owned_out)
{
    const struct map_object *from = map_object_of(map);
    CY_TRY(map_new(vm, cy_max_size(from->live_count, 4), owned_out));
    struct map_object *copy = map_object_of(*owned_out);
    vm_charge_items(vm, 2 * (size_t)from->entry_count);
    for (uint32_t i = 0; i < from->entry_count; i++) {
        const struct map_object_entry *entry = &from->entries[i];
        if (map_object_is_hole(entry)) continue;
        value_ref(map_object_key(entry));
        value_ref(entry->value);
        copy->entries[copy->entry_count++] = *entry;
    }
    copy->live_count = copy->entry_count;
    cy_err err = map_object_rebuild_slots(vm, copy, copy->entry_capacity);
    if (cy_failed(err)) value_unref(vm, *owned_out);
    return err;
}

/* Makes `*map` the only holder. */
static cy_err map_object_unshare(struct vm *vm, cy_value *map)
{
    CHECK(map->tag == TAG_MAP);
    if (value_is_unshared(*map)) return CY_OK;
    cy_value copy;
    CY_TRY(map_object_copy(vm, *map, &copy));
    vm->counters.copies++;
    value_unref(vm, *map);
    *map = copy;
    return CY_OK;
}

size_t map_object_count(cy_value map)
{
    CHECK(map.tag == TAG_MAP);
    return map_object_of(map)->live_count;
}

cy_err map_get(struct vm *vm, cy_value map, cy_value key, bool *found_out, cy_value *value_out)
{
    CHECK(map.tag == TAG_MAP);
    uint64_t hash;
    uint32_t index;
    cy_value *place;
    *found_out = false;
    if (map_object_look(vm, map_object_of(map), key, &place)) {
        *found_out = place != NULL;
        if (place) *value_out = *place;
        return CY_OK;
    }
    CY_TRY(map_object_hash_key(vm, key, &hash));
    CY_TRY(map_object_find(vm, map_object_of(map), key, hash, &index));
    *found_out = index != MAP_OBJECT_NONE;
    if (*found_out) *value_out = map_object_of(map)->entries[index].value;
    return CY_OK;
}

/* As map_object_find for bytes that are no value yet. */
static uint32_t map_object_find_text(struct vm *vm, const struct map_object *map, cy_bytes key)
{
    uint32_t hash = (uint32_t)hash_bytes(vm->options.seed, key);
    uint32_t mask = map->slot_count - 1, at = hash & mask;
    for (uint32_t i = 0;; i++, at = (at + 1) & mask) {
        uint32_t index = i;
        if (map->slot_count > 0) {
            uint32_t slot = map->slots[at];
            if (slot == MAP_OBJECT_NONE) return MAP_OBJECT_NONE;
            if (!map_object_slot_may_be(slot, hash, mask) || slot == MAP_OBJECT_REMOVED) continue;
            index = slot & mask;
        } else if (i >= map->entry_count)
            return MAP_OBJECT_NONE;
        const struct map_object_entry *entry = &map->entries[index];
        if (entry->hash == hash && entry->key_tag == TAG_STR &&
            cy_bytes_equal(string_bytes(map_object_key(entry)), key))
            return index;
    }
}

bool map_get_text(struct vm *vm, cy_value map, cy_bytes key, cy_value *value_out)
{
    CHECK(map.tag == TAG_MAP);
    uint32_t index = map_object_find_text(vm, map_object_of(map), key);
    if (index == MAP_OBJECT_NONE) return false;
    *value_out = map_object_of(map)->entries[index].value;
    return true;
}

bool map_entry_at(cy_value map, size_t index, cy_value *key_out, cy_value *value_out)
{
    CHECK(map.tag == TAG_MAP);
    const struct map_object *object = map_object_of(map);
    if (index >= object->live_count) return false;
    size_t at = index;
    if (object->live_count != object->entry_count) {
        /* Holes before the entry shift it; walking them is rare, maps that shrink close theirs. */
        size_t live = 0;
        for (at = object->first_live;; at++)
            if (!map_object_is_hole(&object->entries[at]) && live++ == index) break;
    }
    *key_out = map_object_key(&object->entries[at]);
    *value_out = object->entries[at].value;
    return true;
}

bool map_next(cy_value map, size_t *cursor, cy_value *key_out, cy_value *value_out)
{
    CHECK(map.tag == TAG_MAP);
    const struct map_object *object = map_object_of(map);
    uint32_t index = (uint32_t)*cursor;
    bool found = map_object_seek(object, &index);
    *cursor = index + found;
    if (!found) return false;
    *key_out = map_object_key(&object->entries[index]);
    *value_out = object->entries[index].value;
    return true;
}

cy_err map_set(struct vm *vm, cy_value *map, cy_value owned_key, cy_value owned_value)
{
    cy_err err = map_object_unshare(vm, map);
    if (cy_failed(err)) {
        value_unref(vm, owned_key);
        value_unref(vm, owned_value);
        return err;
    }
    return map_object_set(vm, map_object_of(*map), owned_key, owned_value);
}

cy_err map_set_text(struct vm *vm, cy_value *map, cy_bytes key, cy_value owned_value)
{
    cy_value key_value;
    cy_err err = string_new(vm, key, &key_value);
    if (cy_failed(err)) {
        value_unref(vm, owned_value);
        return err;
    }
    return map_set(vm, map, key_value, owned_value);
}

cy_err map_remove(struct vm *vm, cy_value *map, cy_value key, bool *removed_out)
{
    CHECK(map->tag == TAG_MAP);
    *removed_out = false;
    uint64_t hash;
    uint32_t index;
    CY_TRY(map_object_hash_key(vm, key, &hash));
    CY_TRY(map_object_find(vm, map_object_of(*map), key, hash, &index));
    if (index == MAP_OBJECT_NONE) return CY_OK;
    CY_TRY(map_object_unshare(vm, map));
    struct map_object *object = map_object_of(*map);
    CY_TRY(map_object_find(vm, object, key, hash, &index)); /* a copy has closed its holes */
    struct map_object_entry *entry = &object->entries[index], before = *entry;
    if (object->slot_count > 0) {
        uint32_t mask = object->slot_count - 1, at = (uint32_t)hash & mask;
        while ((object->slots[at] & mask) != index) at = (at + 1) & mask;
        object->slots[at] = MAP_OBJECT_REMOVED;
    }
    entry->key_tag = TAG_ABSENT;
    entry->value = value_absent();
    object->live_count--;
    /* Without slots the last one leaves no hole. With slots it must: each insert then costs an entry, so
     * that the removed marks are swept out before they fill the slots. */
    if (object->slot_count == 0 && index + 1 == object->entry_count) object->entry_count--;
    (void)map_object_seek(object, &object->first_live);
    map_object_shrink(vm, object);
    value_unref(vm, map_object_key(&before));
    value_unref(vm, before.value);
    *removed_out = true;
    return CY_OK;
}

#undef MAP_OBJECT_REMOVED
