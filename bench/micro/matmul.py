# SPDX-License-Identifier: MIT
#
# bench/micro/matmul.py: lists of lists of floats. The product of two n by n matrices, the second one transposed
# first; checked against the row sums, (A B) 1 = A (B 1). All entries are small halves, so every sum is exact.

import sys


def matrix(n, seed):
    return [[((i * 7 + j * seed) % 17 - 8) * 0.5 for j in range(n)] for i in range(n)]


def transposed(m):
    rows = []
    for j in range(len(m)):
        row = []
        for i in range(len(m)):
            row.append(m[i][j])
        rows.append(row)
    return rows


def product(a, b):
    columns = transposed(b)
    n = len(a)
    rows = []
    for i in range(n):
        left = a[i]
        row = []
        for j in range(n):
            right = columns[j]
            total = 0.0
            for k in range(n):
                total += left[k] * right[k]
            row.append(total)
        rows.append(row)
    return rows


def row_sums(m, weights):
    sums = []
    for row in m:
        total = 0.0
        for j, x in enumerate(row):
            total += x * weights[j]
        sums.append(total)
    return sums


def main(n):
    a, b = matrix(n, 3), matrix(n, 5)
    c = product(a, b)
    ones = [1.0] * n
    assert row_sums(c, ones) == row_sums(a, row_sums(b, ones)), "the product is wrong"
    checksum = 0.0
    for i in range(n):
        checksum += c[i][i] * (i + 1)
    print(int(checksum * 4.0))


main(int(sys.argv[1]))
