/* SPDX-License-Identifier: MIT
 *
 * tests/support/secrets.h: counts the blocks that were given back to the allocator with a secret still in them.
 *
 * In:   the bytes of the secret, borrowed, which lie in no block that is freed on purpose. Out: a count; 0 is good.
 *       Where the C library does not say how large a block is (mem_watch) nothing is seen, so tests that count are for
 *       Linux, and begin with something that is not wiped.
 */
#ifndef CY_TEST_SECRETS_H
#define CY_TEST_SECRETS_H

#include "vm/base/bytes.h"
#include "vm/base/mem.h"

struct secrets_watch {
    cy_bytes secret;
    unsigned count;
};

static inline void secrets_on_given_back(void *context, const void *block, size_t bytes)
{
    struct secrets_watch *watch = context;
    const uint8_t *at = block;
    for (size_t i = 0; i + watch->secret.count <= bytes; i++)
        if (at[i] == watch->secret.data[0] && memcmp(at + i, watch->secret.data, watch->secret.count) == 0) {
            watch->count++;
            return;
        }
}

static inline void secrets_watch_begin(struct secrets_watch *watch, cy_bytes secret)
{
    *watch = (struct secrets_watch){.secret = secret};
    mem_watch(secrets_on_given_back, watch);
}

/* Gives how many blocks there were. */
static inline unsigned secrets_watch_end(struct secrets_watch *watch)
{
    mem_watch(NULL, NULL);
    return watch->count;
}

#endif
