/* SPDX-License-Identifier: MIT
 *
 * vm/sys/random.h: bytes nobody can guess, from the kernel.
 */
#ifndef CY_SYS_RANDOM_H
#define CY_SYS_RANDOM_H

#include "vm/base/error.h"
#include "vm/base/hash.h"

CY_NODISCARD cy_err random_bytes(void *bytes, size_t count);
CY_NODISCARD cy_err random_hash_seed(hash_seed *seed_out);

#endif
