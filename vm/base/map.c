/* SPDX-License-Identifier: MIT
 *
 * vm/base/map.c: entries in a row, and a table of their indexes beside it.
 *
 *      slots    [ 0 | 2 | 0 | 1 | ... ]     entry index + 1, linear probing, at most half full
 *      entries  [ first | second | ... ]    in the order they came
 *
 * In:   byte keys. Out: entries.
 * Invariant: slot_count is 0 or a power of two and at least 2 * count; each entry has exactly one slot.
 */
#include "vm/base/map.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

enum {
    MAP_CAPACITY_FIRST = 8,
    MAP_CAPACITY_MAX = 1 << 30 /* twice that still counts in a uint32_t */
};

void map_init(struct map *map, hash_seed seed) { *map = (struct map){.seed = seed}; }

static void map_free_keys(struct map *map)
{
    for (uint32_t i = 0; i < map->count; i++) mem_free((void *)(uintptr_t)map->entries[i].key.data);
}

void map_fini(struct map *map)
{
    map_free_keys(map);
    mem_free(map->entries);
    mem_free(map->slots);
    map_init(map, map->seed);
}

void map_clear(struct map *map)
{
    map_free_keys(map);
    map->count = 0;
    if (map->slots) memset(map->slots, 0, map->slot_count * sizeof *map->slots);
}

/* The slot that holds `key`, or the free one where it would go. The table is never full, so the walk ends. */
static uint32_t map_slot_of(const struct map *map, cy_bytes key, uint64_t hash)
{
    uint32_t mask = map->slot_count - 1;
    for (uint32_t slot = (uint32_t)hash & mask;; slot = (slot + 1) & mask) {
        if (map->slots[slot] == 0) return slot;
        const struct map_entry *entry = &map->entries[map->slots[slot] - 1];
        if (entry->hash == hash && cy_bytes_equal(entry->key, key)) return slot;
    }
}

struct map_entry *map_find(const struct map *map, cy_bytes key)
{
    if (map->count == 0) return NULL;
    uint32_t index_plus_1 = map->slots[map_slot_of(map, key, hash_bytes(map->seed, key))];
    return index_plus_1 ? &map->entries[index_plus_1 - 1] : NULL;
}

/* Room for one more. On failure the map is as before: the larger entry array alone breaks no invariant. */
static bool map_make_room(struct map *map)
{
    if (map->count < map->capacity) return true;
    if (map->capacity >= MAP_CAPACITY_MAX) return false;
    uint32_t capacity = map->capacity ? map->capacity * 2 : MAP_CAPACITY_FIRST;
    uint32_t slot_count = capacity * 2;

    struct map_entry *entries = mem_resize(map->entries, capacity * sizeof *entries);
    if (!entries) return false;
    map->entries = entries;
    uint32_t *slots = mem_alloc_zeroed(slot_count * sizeof *slots);
    if (!slots) return false;
    mem_free(map->slots);
    map->slots = slots;
    map->slot_count = slot_count;
    map->capacity = capacity;
    for (uint32_t i = 0; i < map->count; i++)
        slots[map_slot_of(map, entries[i].key, entries[i].hash)] = i + 1;
    return true;
}

struct map_entry *map_insert(struct map *map, cy_bytes key, bool *inserted_out)
{
    if (inserted_out) *inserted_out = false;
    struct map_entry *present = map_find(map, key);
    if (present) return present;
    if (!map_make_room(map)) return NULL;

    size_t key_bytes;
    if (cy_add_overflows(key.count, 1, &key_bytes)) return NULL;
    uint8_t *key_copy = mem_alloc(key_bytes);
    if (!key_copy) return NULL;
    if (key.count) memcpy(key_copy, key.data, key.count);
    key_copy[key.count] = 0;

    uint64_t hash = hash_bytes(map->seed, key);
    uint32_t slot = map_slot_of(map, key, hash);
    CHECK(map->slots[slot] == 0);
    struct map_entry *entry = &map->entries[map->count];
    *entry = (struct map_entry){.key = cy_bytes_of(key_copy, key.count), .hash = hash};
    map->slots[slot] = ++map->count;
    if (inserted_out) *inserted_out = true;
    return entry;
}
