/* SPDX-License-Identifier: MIT
 *
 * vm/sys/random.c: the kernel's generator.
 *
 * In:   a count. Out: that many bytes, or SYSTEM; never fewer, never weaker ones.
 */
#include "vm/sys/random.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#define RANDOM_CALL_BYTES_MAX 256 /* getentropy refuses more in one call */

cy_err random_bytes(void *bytes, size_t count)
{
    uint8_t *next = bytes;
    while (count > 0) {
        size_t part = cy_min_size(count, RANDOM_CALL_BYTES_MAX);
        if (getentropy(next, part) != 0) return cy_err_from_errno(errno);
        next += part;
        count -= part;
    }
    return CY_OK;
}

cy_err random_hash_seed(hash_seed *seed_out)
{
    uint64_t words[2];
    CY_TRY(random_bytes(words, sizeof words));
    *seed_out = (hash_seed){.k0 = words[0], .k1 = words[1]};
    return CY_OK;
}

#undef RANDOM_CALL_BYTES_MAX
