# SPDX-License-Identifier: MIT
#
# bench/micro/ref_graph.py: shared mutable nodes with cycles between them. Makes a graph of 1000 nodes with three
# edges each and walks it ten times from node 0, n times over. Every walk must reach the same number of nodes.

import sys

NODES = 1000


class Node:
    __slots__ = ("id", "mark", "edges")

    def __init__(self, node_id):
        self.id = node_id
        self.mark = 0
        self.edges = []


def build():
    nodes = [Node(i) for i in range(NODES)]
    for i in range(NODES):
        for step in (1, i * 7 + 3, i * i + 11):
            nodes[i].edges.append(nodes[(i + step) % NODES])
    return nodes[0]


def walk(start, mark):
    start.mark = mark
    reached = [start]
    total = 0
    for node in reached:  # grows behind
        total += node.id
        for target in node.edges:
            if target.mark != mark:
                target.mark = mark
                reached.append(target)
    return total * 1000 + len(reached) % 1000


def main(rounds):
    total = 0
    for _ in range(rounds):
        start = build()
        first = walk(start, 1)
        for mark in range(2, 11):
            assert walk(start, mark) == first, "a walk missed nodes"
        total += first
    print(total)


main(int(sys.argv[1]))
