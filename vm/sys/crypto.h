/* SPDX-License-Identifier: MIT
 *
 * vm/sys/crypto.h: digests, keyed digests and signatures, through OpenSSL.
 *
 * In:   bytes. Out: bytes in the caller's memory.
 * Invariant: whatever compares secrets takes the same time for equal lengths. OpenSSL's queue of errors is empty after
 *       every call.
 * Not here: TLS (vm/net), random bytes (random.h), tokens (vm/native/native_jwt.c).
 */
#ifndef CY_SYS_CRYPTO_H
#define CY_SYS_CRYPTO_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

enum crypto_digest { CRYPTO_MD5, CRYPTO_SHA1, CRYPTO_SHA256, CRYPTO_SHA512 };
enum { CRYPTO_DIGEST_BYTES_MAX = 64 };

/* OpenSSL's memory comes through vm/base/mem.h from here on, so that want of it is seen. Before its first use in the
 * process; false when that is too late: then, without memory, an operation says that the key or signature is wrong. */
bool crypto_use_mem(void);

/* Bytes of its result. */
size_t crypto_digest_bytes(enum crypto_digest digest);
/* UNSUPPORTED when OpenSSL's configuration has taken the digest out. */
CY_NODISCARD cy_err crypto_hash(enum crypto_digest digest, cy_bytes bytes,
                                uint8_t out[CRYPTO_DIGEST_BYTES_MAX]);
CY_NODISCARD cy_err crypto_hmac(enum crypto_digest digest, cy_bytes key, cy_bytes bytes,
                                uint8_t out[CRYPTO_DIGEST_BYTES_MAX]);
/* In time that depends on the lengths only. */
bool crypto_equal(cy_bytes a, cy_bytes b);

/* -- public keys -------------------------------------------------------------------------------------------- */

enum crypto_key_kind { CRYPTO_KEY_RSA, CRYPTO_KEY_P256, CRYPTO_KEY_ED25519 };
struct crypto_key;

/* "-----BEGIN PUBLIC KEY-----" or "…CERTIFICATE-----". BAD_FORMAT when it is neither; UNSUPPORTED when it is of no kind
 * above, or an RSA key shorter than 2048 bits. */
CY_NODISCARD cy_err crypto_key_from_pem(cy_bytes pem, struct crypto_key **key_out);
/* Big-endian numbers. */
CY_NODISCARD cy_err crypto_key_from_rsa(cy_bytes modulus, cy_bytes exponent, struct crypto_key **key_out);
CY_NODISCARD cy_err crypto_key_from_p256(cy_bytes x, cy_bytes y, struct crypto_key **key_out);
CY_NODISCARD cy_err crypto_key_from_ed25519(cy_bytes x, struct crypto_key **key_out);
void crypto_key_free(struct crypto_key **key);
enum crypto_key_kind crypto_key_kind(const struct crypto_key *key);

/* Whether `signature` of `bytes` is by this key: RSA with PKCS #1 v1.5 and SHA-256; P-256 with SHA-256, the
 * signature as r and s of 32 bytes each; Ed25519. A wrong signature is false, not an error. */
CY_NODISCARD cy_err crypto_verify(const struct crypto_key *key, cy_bytes bytes, cy_bytes signature,
                                  bool *good_out);

#endif
