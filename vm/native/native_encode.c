/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_encode.c: modules base64 and hex, and hash.crc32c, which needs no library.
 */
#include "vm/base/encode.h"
#include "vm/base/hash.h"
#include "vm/native/native_bodies.h"
#include "vm/run/heap.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

static enum native_outcome native_encode_failed(struct native_call *call, cy_err err, const char *native)
{
    return native_fail_reason(call, err, native);
}

static enum native_outcome native_encode_base64(struct native_call *call, const char *native,
                                                enum encode_alphabet alphabet)
{
    cy_bytes bytes = string_bytes(call->args[0]);
    cy_value text;
    uint8_t *to;
    cy_err err = string_new_blank(call->vm, encode_base64_count(bytes.count, alphabet), &text, &to);
    if (cy_failed(err)) return native_encode_failed(call, err, native);
    encode_base64(bytes, alphabet, to);
    return native_return(call, text);
}

/* Decodes into scratch, because the count is known only afterwards. */
static enum native_outcome native_decode_base64(struct native_call *call, const char *native,
                                                enum encode_alphabet alphabet)
{
    cy_bytes text = string_bytes(call->args[0]);
    size_t scratch_bytes = decode_base64_count_max(text.count), count, offset;
    uint8_t *scratch = heap_alloc(call->vm, scratch_bytes);
    if (!scratch) return native_encode_failed(call, CY_ERR(NO_MEMORY), native);
    native_charge(call, text.count / 100);
    cy_value bytes;
    bool good = decode_base64(text, alphabet, scratch, &count, &offset);
    cy_err err = good ? string_new(call->vm, cy_bytes_of(scratch, count), &bytes) : CY_ERR(BAD_FORMAT);
    heap_free(call->vm, scratch, scratch_bytes);
    if (!good)
        return native_fail(call, err, "%s: not base64%s at byte %zu", native,
                           alphabet == ENCODE_BASE64_URL ? " (url alphabet, no padding)" : "", offset);
    return cy_failed(err) ? native_encode_failed(call, err, native) : native_return(call, bytes);
}

enum native_outcome native_base64_encode(struct native_call *call)
{
    return native_encode_base64(call, "base64.encode", ENCODE_BASE64);
}
enum native_outcome native_base64_encode_url(struct native_call *call)
{
    return native_encode_base64(call, "base64.encode_url", ENCODE_BASE64_URL);
}
enum native_outcome native_base64_decode(struct native_call *call)
{
    return native_decode_base64(call, "base64.decode", ENCODE_BASE64);
}
enum native_outcome native_base64_decode_url(struct native_call *call)
{
    return native_decode_base64(call, "base64.decode_url", ENCODE_BASE64_URL);
}

enum native_outcome native_hex_encode(struct native_call *call)
{
    cy_bytes bytes = string_bytes(call->args[0]);
    cy_value text;
    uint8_t *to;
    cy_err err = string_new_blank(call->vm, encode_hex_count(bytes.count), &text, &to);
    if (cy_failed(err)) return native_encode_failed(call, err, "hex.encode");
    encode_hex(bytes, to);
    return native_return(call, text);
}

enum native_outcome native_hex_decode(struct native_call *call)
{
    cy_bytes text = string_bytes(call->args[0]);
    cy_value bytes;
    uint8_t *to;
    size_t offset;
    cy_err err = string_new_blank(call->vm, text.count / 2, &bytes, &to);
    if (cy_failed(err)) return native_encode_failed(call, err, "hex.decode");
    if (decode_hex(text, to, &offset)) return native_return(call, bytes);
    value_unref(call->vm, bytes);
    return native_fail(call, CY_ERR(BAD_FORMAT), "hex.decode: expected a hex digit at byte %zu", offset);
}

enum native_outcome native_hash_crc32c(struct native_call *call)
{
    cy_bytes bytes = string_bytes(call->args[0]);
    native_charge(call, bytes.count / 1000);
    return native_return(call, value_int(crc32c(0, bytes)));
}
