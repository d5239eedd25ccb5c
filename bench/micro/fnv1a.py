# SPDX-License-Identifier: MIT
#
# bench/micro/fnv1a.py: bytes and wrapping 64-bit arithmetic. The FNV-1a hash of 64 KiB, n times over; checked against
# the published hash of "foobar".

import sys

OFFSET_BASIS = 0xcbf29ce484222325
PRIME = 0x100000001b3
MASK = 0xffffffffffffffff


def fnv1a(data):
    value = OFFSET_BASIS
    for byte in data:
        value = ((value ^ byte) * PRIME) & MASK
    return value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def main(rounds):
    assert fnv1a(b"foobar") == 0x85944171f73967e8, "the hash is wrong"
    data = ("The quick brown fox jumps over the lazy dog. 다람쥐 헌 쳇바퀴" * 1024).encode()
    total = 0
    for i in range(rounds):
        total ^= signed(fnv1a(data[i:])) >> 11
    print(total & 0xfffffffffffff)


main(int(sys.argv[1]))
