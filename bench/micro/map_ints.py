# SPDX-License-Identifier: MIT
#
# bench/micro/map_ints.py: maps with scattered int keys. 20,000 entries put in, looked up, half of them counted up,
# and as many missing ones asked for, n times over.

import sys

ENTRIES = 20000
MODULUS = 2147483647


def key(i):
    return i * 48271 % MODULUS


def main(rounds):
    total = 0
    for _ in range(rounds):
        entries = {}
        for i in range(ENTRIES):
            entries[key(i)] = i
        for i in range(ENTRIES // 2):
            entries[key(2 * i)] += 1
        found = 0
        for i in range(ENTRIES):
            found += entries[key(i)]
        for i in range(ENTRIES, 2 * ENTRIES):
            assert key(i) not in entries, "it is there"
        assert found == ENTRIES * (ENTRIES - 1) // 2 + ENTRIES // 2, "the sum is wrong"
        total += found + len(entries)
    print(total)


main(int(sys.argv[1]))
