# SPDX-License-Identifier: MIT
#
# bench/micro/sort.py: the library's sort over 20,000 ints, as many floats and 5000 strings in no order, n times over.
# Each result is checked to rise.

import sys

COUNT = 20000
WORDS = 5000


def is_rising(items):
    for i in range(1, len(items)):
        if items[i] < items[i - 1]:
            return False
    return True


def main(rounds):
    total = 0
    for n in range(rounds):
        seed = 42 + n
        ints, floats, words = [], [], []
        for i in range(COUNT):
            seed = (seed * 48271) % 2147483647
            ints.append(seed % 1000000)
            floats.append(seed * 0.001)
            if i < WORDS:
                words.append(f"key-{seed % 100000}")
        ints.sort()
        floats.sort()
        words.sort()
        assert is_rising(ints) and is_rising(floats) and is_rising(words), "not in order"
        total += ints[COUNT // 2] + int(floats[10]) + len(words[0])
    print(total)


main(int(sys.argv[1]))
