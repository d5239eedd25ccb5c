# SPDX-License-Identifier: MIT
#
# bench/micro/havlak.py: recursion over a graph, union-find, sets. Finds the loops of a control flow graph (Havlak,
# "Nesting of reducible and irreducible loops", 1997): ten times in one of 11 blocks, then n times in one of 5213. The
# number of loops is checked against the published one. Blocks, nodes and loops are arenas named by int ids; NONE is
# no id.

import sys

NONE = -1

NON_HEADER, REDUCIBLE, SELF, IRREDUCIBLE = range(4)

OTHER_MAX = 32768  # predecessors of one node, beyond which the search gives up


class Block:
    __slots__ = ("in_edges", "out_edges")

    def __init__(self):
        self.in_edges = []
        self.out_edges = []


class Node:
    __slots__ = ("parent", "block", "loop_id", "last", "header", "type", "back", "other")

    def __init__(self, parent, block):
        self.parent, self.block, self.loop_id, self.last = parent, block, NONE, NONE
        self.header, self.type = 0, NON_HEADER
        self.back = []
        self.other = set()


class Loop:
    __slots__ = ("header", "is_reducible", "parent", "blocks")

    def __init__(self, header, is_reducible):
        self.header, self.is_reducible, self.parent, self.blocks = header, is_reducible, NONE, 0


blocks = []
nodes = []  # in the order of a depth-first walk: a node's id is its place in it
number = []  # block to node
loops = []


# -- the graph

def connect(start, end):
    while len(blocks) <= start or len(blocks) <= end:
        blocks.append(Block())
    blocks[start].out_edges.append(end)
    blocks[end].in_edges.append(start)


def build_straight(start, count):
    for i in range(count):
        connect(start + i, start + i + 1)
    return start + count


def build_diamond(start):
    connect(start, start + 1)
    connect(start, start + 2)
    connect(start + 1, start + 3)
    connect(start + 2, start + 3)
    return start + 3


def build_base_loop(start):
    header = build_straight(start, 1)
    diamond1 = build_diamond(header)
    between = build_straight(diamond1, 1)
    diamond2 = build_diamond(between)
    footer = build_straight(diamond2, 1)
    connect(diamond2, between)
    connect(diamond1, header)
    connect(footer, start)
    return build_straight(footer, 1)


def build_small():
    blocks.append(Block())
    build_base_loop(0)
    connect(0, 2)


def build_large(outer, middle, inner):
    n = 2
    for _ in range(outer):
        connect(2, n + 1)
        n += 1
        for _ in range(middle):
            top = n
            n = build_straight(n, 1)
            for _ in range(inner):
                n = build_base_loop(n)
            bottom = build_straight(n, 1)
            connect(n, top)
            n = bottom
        connect(n, 1)


# -- union-find

def find_set(node_id):
    root = node_id
    while nodes[root].parent != root:
        root = nodes[root].parent
    node = nodes[node_id]
    while node.parent != root:
        following = node.parent
        node.parent = root
        node = nodes[following]
    return root


# -- the search

def walk(block):
    me = len(nodes)
    number[block] = me
    node = Node(me, block)
    nodes.append(node)
    for target in blocks[block].out_edges:
        if number[target] == NONE:
            walk(target)
    node.last = len(nodes) - 1


def is_ancestor(w, v):
    return w <= v <= nodes[w].last


def classify_edges():
    for w, node in enumerate(nodes):
        for source in blocks[node.block].in_edges:
            v = number[source]
            if v != NONE:
                if is_ancestor(w, v):
                    node.back.append(v)
                else:
                    node.other.add(v)


def contains(items, node_id):
    for item in items:
        if item == node_id:
            return True
    return False


def collect_body(w):
    """The nodes of the loop whose header is w; None when it has too many predecessors."""
    pool = []
    header = nodes[w]
    for v in header.back:
        if v == w:
            header.type = SELF
        else:
            pool.append(find_set(v))
    if pool:
        header.type = REDUCIBLE
    for member in pool:  # grows behind
        x = nodes[member]
        if len(x.other) > OTHER_MAX:
            return None
        for y in x.other:
            root = find_set(y)
            if not is_ancestor(w, root):
                header.type = IRREDUCIBLE
                header.other.add(root)
            elif root != w and not contains(pool, root):
                pool.append(root)
    return pool


def make_loop(w, pool):
    header = nodes[w]
    loop = Loop(header.block, header.type != IRREDUCIBLE)
    loops.append(loop)
    loop_id = len(loops) - 1
    header.loop_id = loop_id
    for member in pool:
        node = nodes[member]
        node.header = w
        node.parent = w
        if node.loop_id != NONE:
            loops[node.loop_id].parent = loop_id
        else:
            loop.blocks += 1


def find_loops():
    nodes.clear()
    number[:] = [NONE] * len(blocks)
    walk(0)
    classify_edges()
    for w in range(len(nodes) - 1, -1, -1):
        pool = collect_body(w)
        if pool is None:
            return
        if pool or nodes[w].type == SELF:
            make_loop(w, pool)


def weigh():
    total = 0
    for loop in loops:
        depth = 1
        parent = loop.parent
        while parent != NONE:
            depth += 1
            parent = loops[parent].parent
        total += depth * 10 + loop.blocks
        if loop.is_reducible:
            total += 1000
    return total


def main(rounds):
    sys.setrecursionlimit(20000)
    build_small()
    for _ in range(10):
        find_loops()
    build_large(10, 10, 5)
    total = 0
    for i in range(rounds):
        if i > 0:
            loops.clear()
        find_loops()
        if i == 0:
            assert len(loops) + 1 == 1632 and len(blocks) == 5213, f"{len(loops) + 1} loops in {len(blocks)} blocks"
        total += weigh()
    print(total)


main(int(sys.argv[1]))
