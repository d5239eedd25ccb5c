# SPDX-License-Identifier: MIT
#
# bench/micro/fib.py: calls. The n-th Fibonacci number by its definition, checked against the sum from below.

import sys


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def from_below(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def main(n):
    result = fib(n)
    assert result == from_below(n), "fib is wrong"
    print(result)


main(int(sys.argv[1]))
