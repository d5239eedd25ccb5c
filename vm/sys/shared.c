/* SPDX-License-Identifier: MIT
 *
 * vm/sys/shared.c: see shared.h.
 *
 *   entry:  | mark u64 | number i64 | key words ... |        two cache lines
 *
 *   mark 0 ──compare-and-set──► hash of the key ──► every process that wants this key writes its bytes ──► SHARED_READY
 *
 * The one step that claims an entry is the mark, which is the key's hash. The bytes behind it are written by whoever
 * claimed it and by everybody else who looks for the same key before it is ready: they all write the same bytes, so it
 * does not matter who of them is killed, or when. A process that looks for another key sees another hash and passes
 * on; it never waits. Two keys with one hash of 62 bits that are both new at the same moment would be mixed: the hash
 * is keyed, so that cannot be aimed at, and by chance it takes 2^31 keys.
 *
 * Invariant: a mark never goes back, so a key has one place for ever.
 */
#include "vm/sys/shared.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"

#include <errno.h>
#include <sys/mman.h>

#define SHARED_READY UINT64_C(1)   /* the key's bytes are there */
#define SHARED_CLAIMED UINT64_C(2) /* so that no mark is 0 */
#define SHARED_KEY_WORDS ((LIMIT_SHARED_KEY_BYTES + 8) / 8)

struct shared_entry {
    _Alignas(64) uint64_t mark;
    int64_t number;
    uint64_t key[SHARED_KEY_WORDS]; /* a byte with the length, then the bytes, then zeros */
};
struct shared_table {
    struct shared_entry *entries;
    uint32_t entry_count; /* places: twice the keys, a power of two */
    uint32_t key_count_max;
    uint64_t *
        key_count; /* behind the entries; a killed process may leave it one too high for a key it did not claim */
    hash_seed seed;
    size_t bytes;
};

static size_t shared_bytes(uint32_t places) { return places * sizeof(struct shared_entry) + 64; }

cy_err shared_memory_new(size_t bytes, void **memory_out)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return cy_err_from_errno(errno);
    *memory_out = memory;
    return CY_OK;
}

void shared_memory_free(void *memory, size_t bytes)
{
    if (memory) munmap(memory, bytes);
}

cy_err shared_table_new(uint32_t keys, hash_seed seed, struct shared_table **table_out)
{
    CHECK(keys > 0 && keys <= LIMIT_SHARED_ENTRIES);
    struct shared_table *table = mem_alloc_zeroed(sizeof *table);
    if (!table) return CY_ERR(NO_MEMORY);
    uint32_t places = 16;
    while (places < 2 * keys) places *= 2;
    table->bytes = shared_bytes(places);
    void *memory;
    cy_err err = shared_memory_new(table->bytes, &memory);
    if (cy_failed(err)) {
        mem_free(table);
        return err;
    }
    table->entries = memory;
    table->entry_count = places;
    table->key_count_max = keys;
    table->key_count = (uint64_t *)(table->entries + places);
    table->seed = seed;
    *table_out = table;
    return CY_OK;
}

void shared_table_free(struct shared_table **table_pointer)
{
    struct shared_table *table = *table_pointer;
    *table_pointer = NULL;
    if (!table) return;
    munmap(table->entries, table->bytes);
    mem_free(table);
}

uint32_t shared_table_entries(const struct shared_table *table) { return table->entry_count; }

/* -- keys ------------------------------------------------------------------------------------------------ */

static void shared_pack(cy_bytes key, uint64_t words[SHARED_KEY_WORDS])
{
    uint8_t bytes[8 * SHARED_KEY_WORDS] = {(uint8_t)key.count};
    memcpy(bytes + 1, key.data, key.count);
    memcpy(words, bytes, sizeof bytes);
}

static bool shared_key_is(const struct shared_entry *entry, const uint64_t words[SHARED_KEY_WORDS])
{
    for (int i = 0; i < SHARED_KEY_WORDS; i++)
        if (__atomic_load_n(&entry->key[i], __ATOMIC_RELAXED) != words[i]) return false;
    return true;
}

/* Makes a claimed entry ready, ours or that of somebody who was killed or is slow. */
static void shared_complete(struct shared_entry *entry, uint64_t mark, const uint64_t words[SHARED_KEY_WORDS])
{
    if (mark & SHARED_READY) return;
    for (int i = 0; i < SHARED_KEY_WORDS; i++) __atomic_store_n(&entry->key[i], words[i], __ATOMIC_RELAXED);
    __atomic_fetch_or(&entry->mark, SHARED_READY, __ATOMIC_RELEASE);
}

/* The key's entry; with `add` claims one. NULL: not there, or no room. */
static struct shared_entry *shared_seek(struct shared_table *table, cy_bytes key, bool add)
{
    uint64_t words[SHARED_KEY_WORDS];
    uint64_t hash = hash_bytes(table->seed, key);
    uint64_t claim = (hash & ~(SHARED_READY | SHARED_CLAIMED)) | SHARED_CLAIMED;
    uint32_t mask = table->entry_count - 1;
    shared_pack(key, words);
    for (uint32_t i = 0, at = (uint32_t)(hash >> 32) & mask; i < table->entry_count;
         i++, at = (at + 1) & mask) {
        struct shared_entry *entry = &table->entries[at];
        uint64_t mark = __atomic_load_n(&entry->mark, __ATOMIC_ACQUIRE);
        if (mark == 0) {
            if (!add) return NULL;
            /* Places are twice the keys, so probing stays short and the bound need not be sharp: processes that claim
             * at the same moment may pass it together. Counting last, one that is killed takes no room from the
             * others. */
            bool full = __atomic_load_n(table->key_count, __ATOMIC_ACQUIRE) >= table->key_count_max;
            /* The last room may have been taken, since we looked, for this very key: then its mark is there now. */
            if (full && (mark = __atomic_load_n(&entry->mark, __ATOMIC_ACQUIRE)) == 0) return NULL;
            if (!full && __atomic_compare_exchange_n(&entry->mark, &mark, claim, false, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_ACQUIRE)) {
                mark = claim;
                __atomic_fetch_add(table->key_count, 1, __ATOMIC_RELEASE);
            }
        }
        if ((mark & ~SHARED_READY) != claim) continue;
        shared_complete(entry, mark, words);
        if (shared_key_is(entry, words)) return entry;
    }
    return NULL;
}

int64_t *shared_table_find(struct shared_table *table, cy_bytes key)
{
    if (key.count == 0 || key.count > LIMIT_SHARED_KEY_BYTES) return NULL;
    struct shared_entry *entry = shared_seek(table, key, false);
    return entry ? &entry->number : NULL;
}

cy_err shared_table_take(struct shared_table *table, cy_bytes key, int64_t **number_out)
{
    if (key.count == 0 || key.count > LIMIT_SHARED_KEY_BYTES) return CY_ERR(VALUE);
    struct shared_entry *entry = shared_seek(table, key, true);
    if (!entry) return CY_ERR(TOO_MANY);
    *number_out = &entry->number;
    return CY_OK;
}

bool shared_table_at(struct shared_table *table, uint32_t index, uint8_t *key_out, size_t *key_bytes_out,
                     int64_t *number_out)
{
    struct shared_entry *entry = &table->entries[index];
    uint64_t words[SHARED_KEY_WORDS];
    if (!(__atomic_load_n(&entry->mark, __ATOMIC_ACQUIRE) & SHARED_READY)) return false;
    for (int i = 0; i < SHARED_KEY_WORDS; i++) words[i] = __atomic_load_n(&entry->key[i], __ATOMIC_RELAXED);
    const uint8_t *bytes = (const uint8_t *)words;
    size_t count = bytes[0];
    if (count > LIMIT_SHARED_KEY_BYTES) return false;
    memcpy(key_out, bytes + 1, count);
    *key_bytes_out = count;
    *number_out = shared_get(&entry->number);
    return true;
}

bool shared_add(int64_t *number, int64_t amount, int64_t *sum_out)
{
    int64_t before = shared_get(number);
    do
        if (__builtin_add_overflow(before, amount, sum_out)) return false;
    while (!shared_compare_and_set(number, &before, *sum_out));
    return true;
}

#undef SHARED_READY
#undef SHARED_CLAIMED
#undef SHARED_KEY_WORDS
