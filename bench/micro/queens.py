# SPDX-License-Identifier: MIT
#
# bench/micro/queens.py: recursion with lists of bools in outer variables. Counts the ways to place n queens, and adds
# up the columns of the queens in row 0; the count is checked against the published ones.

import sys

KNOWN = (1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200)

column_used, rising_used, falling_used = [], [], []
first_column_sum = 0


def place(row, n, first):
    global first_column_sum
    if row == n:
        first_column_sum += first
        return 1
    count = 0
    for column in range(n):
        rising, falling = row + column, row - column + n
        if column_used[column] or rising_used[rising] or falling_used[falling]:
            continue
        column_used[column] = True
        rising_used[rising] = True
        falling_used[falling] = True
        if row == 0:
            first = column
        count += place(row + 1, n, first)
        column_used[column] = False
        rising_used[rising] = False
        falling_used[falling] = False
    return count


def main(n):
    column_used.extend([False] * n)
    rising_used.extend([False] * (2 * n))
    falling_used.extend([False] * (2 * n + 1))
    count = place(0, n, 0)
    assert n >= len(KNOWN) or count == KNOWN[n], "wrong number of ways"
    print(count * 10000 + first_column_sum)


main(int(sys.argv[1]))
