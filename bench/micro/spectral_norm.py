# SPDX-License-Identifier: MIT
#
# bench/micro/spectral_norm.py: float arithmetic with a division in a small function. The largest singular value of an
# n by n corner of an infinite matrix, in units of 1e-9.

import math
import sys


def entry(i, j):
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


def multiply(v):
    out = []
    for i in range(len(v)):
        total = 0.0
        for j in range(len(v)):
            total += entry(i, j) * v[j]
        out.append(total)
    return out


def multiply_transposed(v):
    out = []
    for i in range(len(v)):
        total = 0.0
        for j in range(len(v)):
            total += entry(j, i) * v[j]
        out.append(total)
    return out


def dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


def main(n):
    u = [1.0] * n
    for _ in range(10):
        v = multiply_transposed(multiply(u))
        u = multiply_transposed(multiply(v))
    norm = math.sqrt(dot(u, v) / dot(v, v))
    assert 1.2 <= norm <= 1.2743, "no corner has that norm"
    print(math.floor(norm * 1e9))


main(int(sys.argv[1]))
