# SPDX-License-Identifier: MIT
#
# bench/micro/sieve.py: a list of bools. Primes up to 100,000 by Eratosthenes' sieve, n times over, each time with one
# number more; the last hundred are checked by division. Prints the sum of the primes and of their counts.

import sys


def sieve(limit):
    composite = [False] * (limit + 1)
    i = 2
    while i * i <= limit:
        if not composite[i]:
            for multiple in range(i * i, limit + 1, i):
                composite[multiple] = True
        i += 1
    return composite


def is_prime(n):
    divisor = 2
    while divisor * divisor <= n:
        if n % divisor == 0:
            return False
        divisor += 1
    return True


def main(rounds):
    total = 0
    for limit in range(100000, 100000 + rounds):
        composite = sieve(limit)
        for i in range(2, limit + 1):
            if not composite[i]:
                total += i + 1
        for i in range(limit - 100, limit + 1):
            assert composite[i] != is_prime(i), "sieve is wrong"
    print(total)


main(int(sys.argv[1]))
