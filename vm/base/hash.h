/* SPDX-License-Identifier: MIT
 *
 * vm/base/hash.h: CRC32C for files, SipHash-1-3 for tables whose keys come from outside.
 */
#ifndef CY_BASE_HASH_H
#define CY_BASE_HASH_H

#include "vm/base/bytes.h"

/* CRC-32C (Castagnoli, reflected 0x82F63B78), as in iSCSI (RFC 3720). `crc` is 0 or the result for the bytes
 * before. */
uint32_t crc32c(uint32_t crc, cy_bytes bytes);

typedef struct hash_seed {
    uint64_t k0, k1;
} hash_seed;
/* SipHash-1-3. The seed is random per process where keys come from peers, fixed in the compiler. */
uint64_t hash_bytes(hash_seed seed, cy_bytes bytes);
uint64_t hash_u64(hash_seed seed, uint64_t number);

#endif
