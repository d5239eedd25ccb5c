/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_hash.c: modules hash and random: the natives over vm/sys/crypto.h and vm/sys/random.h.
 *
 * In:   bytes (str). Out: digests as small hex or as bytes.
 * Invariant: one call is bounded by LIMIT_HASH_BYTES, because it holds the thread.
 * Not here: hash.crc32c, base64, hex (native_encode.c).
 */
#include "vm/base/encode.h"
#include "vm/base/limits.h"
#include "vm/native/native_bodies.h"
#include "vm/native/option.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"
#include "vm/sys/clock.h"
#include "vm/sys/crypto.h"
#include "vm/sys/random.h"

enum { NATIVE_HASH_HEX, NATIVE_HASH_BYTES };

static enum native_outcome native_hash_failed(struct native_call *call, cy_err err, const char *native)
{
    return native_fail_reason(call, err, native);
}

static enum native_outcome native_hash_text(struct native_call *call, const char *native, cy_bytes text)
{
    cy_value value;
    cy_err err = string_new(call->vm, text, &value);
    return cy_failed(err) ? native_hash_failed(call, err, native) : native_return(call, value);
}

static bool native_hash_fits(struct native_call *call, const char *native, cy_bytes bytes)
{
    native_charge(call, bytes.count / 50);
    if (bytes.count <= LIMIT_HASH_BYTES) return true;
    native_fail(call, CY_ERR(LIMIT), "%s: %zu bytes in one call, at most %d are taken (HASH_BYTES)", native,
                bytes.count, LIMIT_HASH_BYTES);
    return false;
}

static enum native_outcome native_hash_result(struct native_call *call, const char *native, cy_err err,
                                              enum crypto_digest digest, const uint8_t *bytes, uint32_t form)
{
    if (cy_failed(err)) return native_hash_failed(call, err, native);
    cy_bytes view = cy_bytes_of(bytes, crypto_digest_bytes(digest));
    uint8_t hex[2 * CRYPTO_DIGEST_BYTES_MAX];
    if (form == NATIVE_HASH_BYTES) return native_hash_text(call, native, view);
    encode_hex(view, hex);
    return native_hash_text(call, native, cy_bytes_of(hex, encode_hex_count(view.count)));
}

static const char *const native_hash_forms[] = {
    [NATIVE_HASH_HEX] = "hex", [NATIVE_HASH_BYTES] = "bytes", NULL};

static enum native_outcome native_hash_digest(struct native_call *call, const char *native,
                                              enum crypto_digest digest)
{
    uint32_t form = NATIVE_HASH_HEX;
    uint8_t out[CRYPTO_DIGEST_BYTES_MAX];
    cy_bytes bytes = string_bytes(call->args[0]);
    if (!option_word(call, 1, native, "form", native_hash_forms, &form)) return NATIVE_FAIL;
    if (!native_hash_fits(call, native, bytes)) return NATIVE_FAIL;
    return native_hash_result(call, native, crypto_hash(digest, bytes, out), digest, out, form);
}

enum native_outcome native_hash_md5(struct native_call *call)
{
    return native_hash_digest(call, "hash.md5", CRYPTO_MD5);
}
enum native_outcome native_hash_sha1(struct native_call *call)
{
    return native_hash_digest(call, "hash.sha1", CRYPTO_SHA1);
}
enum native_outcome native_hash_sha256(struct native_call *call)
{
    return native_hash_digest(call, "hash.sha256", CRYPTO_SHA256);
}
enum native_outcome native_hash_sha512(struct native_call *call)
{
    return native_hash_digest(call, "hash.sha512", CRYPTO_SHA512);
}

static enum native_outcome native_hash_keyed(struct native_call *call, const char *native,
                                             enum crypto_digest digest)
{
    uint32_t form = NATIVE_HASH_HEX;
    uint8_t out[CRYPTO_DIGEST_BYTES_MAX];
    cy_bytes key = string_bytes(call->args[0]), bytes = string_bytes(call->args[1]);
    if (!option_word(call, 2, native, "form", native_hash_forms, &form)) return NATIVE_FAIL;
    if (!native_hash_fits(call, native, bytes) || !native_hash_fits(call, native, key)) return NATIVE_FAIL;
    return native_hash_result(call, native, crypto_hmac(digest, key, bytes, out), digest, out, form);
}

enum native_outcome native_hash_hmac_sha1(struct native_call *call)
{
    return native_hash_keyed(call, "hash.hmac_sha1", CRYPTO_SHA1);
}
enum native_outcome native_hash_hmac_sha256(struct native_call *call)
{
    return native_hash_keyed(call, "hash.hmac_sha256", CRYPTO_SHA256);
}
enum native_outcome native_hash_hmac_sha512(struct native_call *call)
{
    return native_hash_keyed(call, "hash.hmac_sha512", CRYPTO_SHA512);
}

enum native_outcome native_hash_equal(struct native_call *call)
{
    cy_bytes a = string_bytes(call->args[0]), b = string_bytes(call->args[1]);
    native_charge(call, cy_min_size(a.count, b.count) / 100);
    return native_return(call, value_bool(crypto_equal(a, b)));
}

/* -- random ------------------------------------------------------------------------------------------------- */

/* The count argument, within 0..RANDOM_BYTES. */
static bool native_random_count(struct native_call *call, const char *native, int64_t count)
{
    if (count > LIMIT_RANDOM_BYTES)
        native_fail(call, CY_ERR(LIMIT), "%s: %lld bytes in one call, at most %d are given (RANDOM_BYTES)",
                    native, (long long)count, LIMIT_RANDOM_BYTES);
    else if (count < 0)
        native_fail(call, CY_ERR(VALUE), "%s: the count must be 0 or more, not %lld", native,
                    (long long)count);
    native_charge(call, count > 0 ? (uint64_t)count / 20 : 0);
    return count >= 0 && count <= LIMIT_RANDOM_BYTES;
}

enum native_outcome native_random_bytes(struct native_call *call)
{
    int64_t count = call->args[0].as.i;
    cy_value value;
    uint8_t *to;
    if (!native_random_count(call, "random.bytes", count)) return NATIVE_FAIL;
    cy_err err = string_new_blank(call->vm, (size_t)count, &value, &to);
    if (cy_failed(err)) return native_hash_failed(call, err, "random.bytes");
    err = random_bytes(to, (size_t)count);
    if (!cy_failed(err)) return native_return(call, value);
    value_unref(call->vm, value);
    return native_hash_failed(call, err, "random.bytes");
}

enum native_outcome native_random_token(struct native_call *call)
{
    int64_t count = native_has_arg(call, 0) ? call->args[0].as.i : 32;
    cy_value bytes_value, text;
    uint8_t *bytes, *to;
    if (!native_random_count(call, "random.token", count)) return NATIVE_FAIL;
    cy_err err = string_new_blank(call->vm, (size_t)count, &bytes_value, &bytes);
    if (cy_failed(err)) return native_hash_failed(call, err, "random.token");
    err = random_bytes(bytes, (size_t)count);
    if (!cy_failed(err))
        err = string_new_blank(call->vm, encode_base64_count((size_t)count, ENCODE_BASE64_URL), &text, &to);
    if (!cy_failed(err)) encode_base64(cy_bytes_of(bytes, (size_t)count), ENCODE_BASE64_URL, to);
    value_unref(call->vm, bytes_value);
    return cy_failed(err) ? native_hash_failed(call, err, "random.token") : native_return(call, text);
}

/* Numbers below the largest multiple of the width are as likely as each other; the others are thrown again, less than
 * half of the time. */
enum native_outcome native_random_int(struct native_call *call)
{
    int64_t from = call->args[0].as.i, to = call->args[1].as.i;
    if (from >= to)
        return native_fail(call, CY_ERR(VALUE), "random.int: %lld..%lld is empty", (long long)from,
                           (long long)to);
    uint64_t width = (uint64_t)to - (uint64_t)from, number;
    uint64_t refused =
        (0 - width) % width; /* 2^64 modulo width: that many numbers at the bottom are too many */
    do {
        cy_err err = random_bytes(&number, sizeof number);
        if (cy_failed(err)) return native_hash_failed(call, err, "random.int");
    } while (number < refused);
    return native_return(call, value_int((int64_t)((uint64_t)from + number % width)));
}

enum native_outcome native_random_float(struct native_call *call)
{
    uint64_t number;
    cy_err err = random_bytes(&number, sizeof number);
    if (cy_failed(err)) return native_hash_failed(call, err, "random.float");
    return native_return(call, value_float((double)(number >> 11) * 0x1p-53));
}

/* RFC 9562: version and variant set, as text in five groups. */
static enum native_outcome native_random_uuid_text(struct native_call *call, const char *native,
                                                   uint8_t bytes[16], uint8_t version)
{
    static const uint8_t groups[] = {4, 2, 2, 2, 6};
    uint8_t text[36], *to = text;
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | version << 4);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (size_t group = 0; group < CY_COUNT_OF(groups); group++) {
        if (group > 0) *to++ = '-';
        encode_hex(cy_bytes_of(bytes, groups[group]), to);
        to += 2 * groups[group];
        bytes += groups[group];
    }
    return native_hash_text(call, native, cy_bytes_of(text, sizeof text));
}

enum native_outcome native_random_uuid(struct native_call *call)
{
    uint8_t bytes[16];
    cy_err err = random_bytes(bytes, sizeof bytes);
    if (cy_failed(err)) return native_hash_failed(call, err, "random.uuid");
    return native_random_uuid_text(call, "random.uuid", bytes, 4);
}

enum native_outcome native_random_uuid7(struct native_call *call)
{
    uint8_t bytes[16];
    cy_err err = random_bytes(bytes, sizeof bytes);
    if (cy_failed(err)) return native_hash_failed(call, err, "random.uuid7");
    uint64_t milliseconds = (uint64_t)clock_wall_ms();
    for (size_t i = 0; i < 6; i++) bytes[i] = (uint8_t)(milliseconds >> (40 - 8 * i));
    return native_random_uuid_text(call, "random.uuid7", bytes, 7);
}
