# SPDX-License-Identifier: MIT
#
# bench/micro/mandelbrot.py: float arithmetic in local variables. Counts, over an n by n grid of c, the points that
# stay within 2 for 50 rounds of z = z * z + c, and all the rounds. The picture must mirror at the real axis.

import sys

ROUNDS_MAX = 50


def rounds(cr, ci):
    zr = zi = tr = ti = 0.0
    count = 0
    while count < ROUNDS_MAX and tr + ti <= 4.0:
        zi = 2.0 * zr * zi + ci
        zr = tr - ti + cr
        tr = zr * zr
        ti = zi * zi
        count += 1
    return count


def row(n, y):
    ci = 2.0 * y / n - 1.0
    total = 0
    for x in range(n):
        total += rounds(2.0 * x / n - 1.5, ci)
    return total


def main(n):  # a multiple of 4, so that the two rows below have exact coordinates
    total = 0
    for y in range(n):
        total += row(n, y)
    assert row(n, n // 4) == row(n, n - n // 4), "the picture is not symmetric"
    print(total)


main(int(sys.argv[1]))
