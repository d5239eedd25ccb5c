/* SPDX-License-Identifier: MIT
 *
 * vm/base/encode.h: bytes as text: hexadecimal, and base64 in both alphabets (RFC 4648).
 *
 * In, Out: bytes of any kind; sizes are known before anything is written, so the caller makes room once.
 * Invariant: decoding accepts exactly what encoding gives (hex: both cases): no white space, no other alphabet, no
 *       missing or needless '=', no bits left over. So every byte string has one text.
 */
#ifndef CY_BASE_ENCODE_H
#define CY_BASE_ENCODE_H

#include "vm/base/bytes.h"

static inline size_t encode_hex_count(size_t bytes) { return bytes * 2; }
void encode_hex(cy_bytes bytes, uint8_t *to); /* small letters */
/* Writes text.count / 2 bytes. False, with the offset of what is wrong. */
CY_NODISCARD bool decode_hex(cy_bytes text, uint8_t *to, size_t *offset_out);

enum encode_alphabet {
    ENCODE_BASE64,    /* + and /, padded with = */
    ENCODE_BASE64_URL /* - and _, not padded */
};
size_t encode_base64_count(size_t bytes, enum encode_alphabet alphabet);
void encode_base64(cy_bytes bytes, enum encode_alphabet alphabet, uint8_t *to);
/* Writes at most decode_base64_count_max(text.count) bytes. False, with the offset of what is wrong. */
static inline size_t decode_base64_count_max(size_t text_count) { return text_count / 4 * 3 + 3; }
CY_NODISCARD bool decode_base64(cy_bytes text, enum encode_alphabet alphabet, uint8_t *to, size_t *count_out,
                                size_t *offset_out);

#endif
