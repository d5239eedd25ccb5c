/* SPDX-License-Identifier: MIT
 *
 * vm/base/encode.c: hex and base64.
 *
 * In, Out, Invariant: encode.h.
 * Not secret: the time of decoding depends on the bytes only through the table below, which lies in a few lines of
 *       cache; keys that must not leak even there do not come through here.
 */
#include "vm/base/encode.h"

#include "vm/base/check.h"

static const char encode_letters[2][65] = {
    [ENCODE_BASE64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [ENCODE_BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

void encode_hex(cy_bytes bytes, uint8_t *to)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.count; i++) {
        *to++ = (uint8_t)digits[bytes.data[i] >> 4];
        *to++ = (uint8_t)digits[bytes.data[i] & 15];
    }
}

static int encode_hex_digit(uint8_t byte)
{
    if ((uint8_t)(byte - '0') < 10) return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool decode_hex(cy_bytes text, uint8_t *to, size_t *offset_out)
{
    for (size_t i = 0; i < text.count; i++) {
        int digit = encode_hex_digit(text.data[i]);
        if (digit < 0) {
            *offset_out = i;
            return false;
        }
        if (i & 1)
            to[i / 2] = (uint8_t)(to[i / 2] << 4 | digit);
        else if (i + 1 < text.count)
            to[i / 2] = (uint8_t)digit;
    }
    *offset_out = text.count;
    return text.count % 2 == 0;
}

size_t encode_base64_count(size_t bytes, enum encode_alphabet alphabet)
{
    if (alphabet == ENCODE_BASE64) return (bytes + 2) / 3 * 4;
    return bytes / 3 * 4 + (bytes % 3 ? bytes % 3 + 1 : 0);
}

void encode_base64(cy_bytes bytes, enum encode_alphabet alphabet, uint8_t *to)
{
    const char *letters = encode_letters[alphabet];
    size_t i = 0;
    for (; i + 3 <= bytes.count; i += 3) {
        uint32_t group = (uint32_t)bytes.data[i] << 16 | (uint32_t)bytes.data[i + 1] << 8 | bytes.data[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) *to++ = (uint8_t)letters[group >> shift & 63];
    }
    size_t left = bytes.count - i;
    if (left == 0) return;
    uint32_t group = (uint32_t)bytes.data[i] << 16 | (left > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0);
    for (size_t letter = 0; letter < left + 1; letter++)
        *to++ = (uint8_t)letters[group >> (18 - 6 * letter) & 63];
    if (alphabet == ENCODE_BASE64)
        for (size_t pad = left; pad < 3; pad++) *to++ = '=';
}

/* 0..63; -1 for what is no letter of the alphabet. */
static int encode_letter_value(uint8_t byte, enum encode_alphabet alphabet)
{
    if ((uint8_t)(byte - 'A') < 26) return byte - 'A';
    if ((uint8_t)(byte - 'a') < 26) return byte - 'a' + 26;
    if ((uint8_t)(byte - '0') < 10) return byte - '0' + 52;
    if (byte == (uint8_t)encode_letters[alphabet][62]) return 62;
    return byte == (uint8_t)encode_letters[alphabet][63] ? 63 : -1;
}

bool decode_base64(cy_bytes text, enum encode_alphabet alphabet, uint8_t *to, size_t *count_out,
                   size_t *offset_out)
{
    size_t letters = text.count, count = 0;
    if (alphabet == ENCODE_BASE64) {
        *offset_out = text.count;
        if (text.count % 4 != 0) return false;
        for (int pad = 0; pad < 2 && letters > 0 && text.data[letters - 1] == '='; pad++) letters--;
    }
    *offset_out = letters;
    if (letters % 4 == 1) return false;
    uint32_t group = 0;
    int bits = 0;
    for (size_t i = 0; i < letters; i++) {
        int value = encode_letter_value(text.data[i], alphabet);
        *offset_out = i;
        if (value < 0) return false;
        group = group << 6 | (uint32_t)value;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        to[count++] = (uint8_t)(group >> bits);
        group &= (1u << bits) - 1;
    }
    CHECK(count <= decode_base64_count_max(text.count));
    *count_out = count;
    /* Bits left over would be a second text for the same bytes; the offset is the last letter's. */
    return group == 0;
}
