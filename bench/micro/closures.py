# SPDX-License-Identifier: MIT
#
# bench/micro/closures.py: making and calling closures. A chain of three composed functions made anew n times, and 100
# numbers mapped, filtered and summed through function arguments n times; against the same without functions.

import sys


def adder(amount):
    return lambda x: x + amount


def compose(f, g):
    return lambda x: g(f(x))


def map_list(items, f):
    out = []
    for item in items:
        out.append(f(item))
    return out


def filter_list(items, keeps):
    out = []
    for item in items:
        if keeps(item):
            out.append(item)
    return out


def fold(items, start, f):
    result = start
    for item in items:
        result = f(result, item)
    return result


def directly(count, n):
    total = 0
    for item in range(count):
        if (item + 2 * n + 1) % 3 == 0:
            total += item + 2 * n + 1
    return total


def main(rounds):
    numbers = list(range(100))
    total = 0
    for n in range(rounds):
        shift = compose(adder(n), compose(adder(1), adder(n)))
        chosen = filter_list(map_list(numbers, shift), lambda x: x % 3 == 0)
        total += fold(chosen, 0, lambda a, b: a + b)
        if n % 1000 == 0:
            assert fold(chosen, 0, lambda a, b: a + b) == directly(100, n), "wrong sum"
    print(total)


main(int(sys.argv[1]))
