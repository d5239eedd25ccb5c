/* SPDX-License-Identifier: MIT
 *
 * vm/sys/shared.h: numbers under names, in memory that processes share: made before they are forked.
 *
 * In:   keys of 1..LIMIT_SHARED_KEY_BYTES bytes. Out: one 64-bit number for each, changed in one step.
 * Invariant: no lock. Whatever instruction a process is killed at, the others go on, and every number is one that
 *       somebody wrote whole.
 */
#ifndef CY_SYS_SHARED_H
#define CY_SYS_SHARED_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/base/hash.h"

/* Zeroed memory of this process and of those that it forks from now on. */
CY_NODISCARD cy_err shared_memory_new(size_t bytes, void **memory_out);
void shared_memory_free(void *memory, size_t bytes); /* of this process only; NULL is allowed */

struct shared_table;

/* Memory for `entries` keys, all of it now. Keys are hashed with `seed`, which nobody outside may know. */
CY_NODISCARD cy_err shared_table_new(uint32_t entries, hash_seed seed, struct shared_table **table_out);
void shared_table_free(struct shared_table **table); /* of this process only */
uint32_t shared_table_entries(const struct shared_table *table);

/* The number of the key; NULL when it is not there. */
int64_t *shared_table_find(struct shared_table *table, cy_bytes key);
/* The same, 0 under a key that was not there. TOO_MANY when the table is full, VALUE for a key that is empty or too
 * long. A key is never given back. */
CY_NODISCARD cy_err shared_table_take(struct shared_table *table, cy_bytes key, int64_t **number_out);
/* The `index`-th key in no order, copied; false: that place is empty. */
bool shared_table_at(struct shared_table *table, uint32_t index, uint8_t *key_out, size_t *key_bytes_out,
                     int64_t *number_out);

static inline int64_t shared_get(const int64_t *number) { return __atomic_load_n(number, __ATOMIC_SEQ_CST); }
static inline void shared_set(int64_t *number, int64_t value)
{
    __atomic_store_n(number, value, __ATOMIC_SEQ_CST);
}
/* `*expected` becomes what was there. */
static inline bool shared_compare_and_set(int64_t *number, int64_t *expected, int64_t value)
{
    return __atomic_compare_exchange_n(number, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
/* False, with nothing changed, where the sum is no int. */
CY_NODISCARD bool shared_add(int64_t *number, int64_t amount, int64_t *sum_out);

#endif
