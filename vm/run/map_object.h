/* SPDX-License-Identifier: MIT
 *
 * vm/run/map_object.h: the layout of map, private to vm/run.
 *
 *   entries: | tag hash key value | tag hash key value | (removed) | ...   in insertion order, 32 bytes each: two
 *                                                               to a line of the cache; a removed one is TAG_ABSENT
 *   slots:   | 2 | - | 0 | x | 3 | ...                          free, removed, or a word: the index of an entry in
 *                                                               the bits of slot_count - 1, the hash's bits in the
 *                                                               others. Linear probing from the hash's lower bits
 *
 * Invariant: at most MAP_OBJECT_SCAN_MAX entries have no slots and are searched one by one. entry_count
 *       counts removed ones, live_count does not; removed ones are never many
 *       more than half of them. Keys are hashed with the VM's seed.
 */
#ifndef CY_RUN_MAP_OBJECT_H
#define CY_RUN_MAP_OBJECT_H

#include "vm/base/hash.h"
#include "vm/run/heap.h"
#include "vm/run/object.h"

struct map_object_entry {
    uint32_t key_tag; /* of the key, which is a cy_value but for the hash in it: map_object_key */
    uint32_t hash;    /* the lower half of what the key hashes to */
    int64_t key_payload;
    cy_value value;
};
_Static_assert(sizeof(struct map_object_entry) == 32, "two entries to a line of the cache");
struct map_object {
    struct container container;
    uint32_t live_count;
    uint32_t entry_count;
    uint32_t entry_capacity;
    uint32_t slot_count; /* a power of two, or 0 */
    uint32_t first_live; /* no entry before it is live: taking the first key again and again walks no holes */
    struct map_object_entry *entries;
    uint32_t
        *slots; /* a probe that meets another key mostly sees it by the hash's bits, and touches no entry */
};
enum { MAP_OBJECT_SCAN_MAX = 8 };
#define MAP_OBJECT_NONE UINT32_MAX

static inline struct map_object *map_object_of(cy_value value)
{
    DCHECK(value.tag == TAG_MAP);
    return (struct map_object *)value.as.object;
}

static inline cy_value map_object_key(const struct map_object_entry *entry)
{
    return (cy_value){entry->key_tag, {.i = entry->key_payload}};
}

/* Steps over removed entries; false at the end. */
static inline bool map_object_seek(const struct map_object *map, uint32_t *index)
{
    if (*index < map->first_live) *index = map->first_live;
    while (*index < map->entry_count && map->entries[*index].key_tag == TAG_ABSENT) ++*index;
    return *index < map->entry_count;
}

/* KEY when the value can be no key (nil, NaN, a handle, function, ref or opaque value, or a container of
 * one). */
CY_NODISCARD cy_err map_object_hash_key(struct vm *vm, cy_value key, uint64_t *hash_out);
/* Names the kind that cannot be a key: of `key`, or of what lies inside it. */
bool error_raise_bad_key(struct vm *vm, cy_err reason, cy_value key);
/* Entry index or MAP_OBJECT_NONE; the lower half of `hash` counts. Fails as value_compare does. */
CY_NODISCARD cy_err map_object_find(struct vm *vm, const struct map_object *map, cy_value key, uint64_t hash,
                                    uint32_t *index_out);
/* The quick way for a key that is a str or an int: the place of its value, NULL when it is not there. False when that
 * takes map_object_find. */
bool map_object_look(struct vm *vm, const struct map_object *map, cy_value key, cy_value **place_out);
/* What an int, or a float equal to it, hashes to. */
static inline uint64_t map_object_hash_int(hash_seed seed, uint64_t number)
{
    /* Two products of 64 bits with secret factors, folded: a fifth of SipHash's time. What it hashes to cannot be seen
     * from outside: maps are walked in the order of insertion. */
    unsigned __int128 product = (unsigned __int128)(number ^ seed.k0) * (seed.k1 | 1);
    uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);
    product = (unsigned __int128)(folded ^ seed.k1) * (seed.k0 | 0x8000000000000001u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
/* These need the only holder. map_object_insert: the key is not there. */
CY_NODISCARD cy_err map_object_insert(struct vm *vm, struct map_object *unshared, cy_value owned_key,
                                      uint64_t hash, cy_value owned_value);
CY_NODISCARD cy_err map_object_set(struct vm *vm, struct map_object *unshared, cy_value owned_key,
                                   cy_value owned_value);
CY_NODISCARD cy_err map_object_copy(struct vm *vm, cy_value map, cy_value *owned_out);
bool map_object_pop_dead(struct map_object *map, cy_value *item_out);
void map_object_free(struct vm *vm, struct map_object *map);

#endif
