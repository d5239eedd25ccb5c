# SPDX-License-Identifier: MIT
#
# bench/micro/loops.py: the bare cost of loops. Sums of ints and of floats, counted by `for` and by `while`, against
# their closed forms.

import sys


def sum_ints(n):
    total = 0
    for i in range(n):
        total += i
    return total


def sum_floats(n):
    total = x = 0.0
    limit = float(n)
    while x < limit:
        total += x
        x += 1.0
    return total


def count_odd(n):
    count = i = 0
    while i < n:
        if i % 2 == 1:
            count += 1
        i += 1
    return count


def main(n):
    ints, floats, odd = sum_ints(n), sum_floats(n), count_odd(n)
    assert ints == n * (n - 1) // 2 and floats == ints and odd == n // 2, "a sum is wrong"
    print(ints + odd)


main(int(sys.argv[1]))
