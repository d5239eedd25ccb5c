/* SPDX-License-Identifier: MIT
 *
 * vm/base/map.h: names to numbers, in the order they came.
 *
 * In:   byte keys (copied) and a 64-bit number or pointer each.
 * Out:  look-up, and a walk in insertion order: what the compiler writes never depends on a hash.
 * Invariant: entry indexes are stable; nothing is ever removed (map_clear empties the whole map).
 * Not here: the language's map (vm/run/map_object.h).
 */
#ifndef CY_BASE_MAP_H
#define CY_BASE_MAP_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/base/hash.h"

struct map_entry {
    cy_bytes key; /* owned by the map, NUL behind it */
    uint64_t hash;
    union {
        uint64_t number;
        void *pointer;
    } value;
};
struct map {
    struct map_entry *entries;
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* entry index + 1, 0 = free; open addressing */
    uint32_t slot_count;
    hash_seed seed;
};

void map_init(struct map *map, hash_seed seed);
void map_fini(struct map *map);
void map_clear(struct map *map);
/* NULL when absent. Borrowed until the next insert. */
struct map_entry *map_find(const struct map *map, cy_bytes key);
/* Finds or inserts (value 0). `*inserted_out` (may be NULL) says which. NULL when there was no memory. */
CY_NODISCARD struct map_entry *map_insert(struct map *map, cy_bytes key, bool *inserted_out);

#endif
