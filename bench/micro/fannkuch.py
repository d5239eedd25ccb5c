# SPDX-License-Identifier: MIT
#
# bench/micro/fannkuch.py: small lists of ints. Over all permutations of n: how many flips of the first k until 1 is
# in front, at most; and a checksum of all flips. Checked against the published maxima.

import sys

MAXIMA = (0, 0, 1, 2, 4, 7, 10, 16, 22, 30, 38, 51)


def flips_of(permutation):
    p = permutation[:]
    flips = 0
    while True:
        first = p[0]
        if first == 0:
            return flips
        low, high = 0, first
        while low < high:
            p[low], p[high] = p[high], p[low]
            low += 1
            high -= 1
        flips += 1


def fannkuch(n):
    permutation = list(range(n))
    counts = [0] * n
    flips_max = checksum = 0
    sign = 1
    r = n
    while True:
        while r > 1:
            counts[r - 1] = r
            r -= 1
        flips = flips_of(permutation)
        if flips > flips_max:
            flips_max = flips
        checksum += sign * flips
        sign = -sign
        while True:  # the next permutation: rotate the first r + 1
            if r == n:
                return flips_max, checksum
            first = permutation[0]
            for i in range(r):
                permutation[i] = permutation[i + 1]
            permutation[r] = first
            counts[r] -= 1
            if counts[r] > 0:
                break
            r += 1


def main(n):
    flips_max, checksum = fannkuch(n)
    assert n >= len(MAXIMA) or flips_max == MAXIMA[n], "wrong number of flips"
    print(checksum * 100 + flips_max)


main(int(sys.argv[1]))
