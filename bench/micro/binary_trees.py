# SPDX-License-Identifier: MIT
#
# bench/micro/binary_trees.py: allocating and freeing small objects. Many full trees of depths up to n beside one that
# lives; each must have 2^(depth + 1) - 1 nodes. Prints the sum of all nodes.

import sys


class Node:
    __slots__ = ("left", "right")

    def __init__(self, left, right):
        self.left = left
        self.right = right


def build(depth):
    if depth == 0:
        return Node(None, None)
    return Node(build(depth - 1), build(depth - 1))


def count(node):
    if node.left is None:
        return 1
    return 1 + count(node.left) + count(node.right)


def main(depth_max):
    long_lived = build(depth_max)
    total = 0
    for depth in range(4, depth_max + 1, 4):
        rounds = 1 << depth_max - depth + 2
        nodes = 0
        for _ in range(rounds):
            nodes += count(build(depth))
        assert nodes == rounds * ((2 << depth) - 1), "wrong number of nodes"
        total += nodes
    print(total + count(long_lived))


main(int(sys.argv[1]))
