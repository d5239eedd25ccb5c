// SPDX-License-Identifier: MIT
//
// bench/micro/havlak.js: recursion over a graph, union-find, sets. Finds the loops of a control flow graph (Havlak,
// "Nesting of reducible and irreducible loops", 1997): ten times in one of 11 blocks, then n times in one of 5213.
// The number of loops is checked against the published one. Blocks, nodes and loops are arenas named by int ids; NONE
// is no id.

'use strict';

const NONE = -1;

const NON_HEADER = 0, REDUCIBLE = 1, SELF = 2, IRREDUCIBLE = 3;

const OTHER_MAX = 32768; // predecessors of one node, beyond which the search gives up

let blocks = [];
let nodes = []; // in the order of a depth-first walk: a node's id is its place in it
let number = []; // block to node
let loops = [];

// -- the graph

function connect(from, to) {
    while (blocks.length <= from || blocks.length <= to) blocks.push({inEdges: [], outEdges: []});
    blocks[from].outEdges.push(to);
    blocks[to].inEdges.push(from);
}

function buildStraight(from, count) {
    for (let i = 0; i < count; i++) connect(from + i, from + i + 1);
    return from + count;
}

function buildDiamond(from) {
    connect(from, from + 1);
    connect(from, from + 2);
    connect(from + 1, from + 3);
    connect(from + 2, from + 3);
    return from + 3;
}

function buildBaseLoop(from) {
    const header = buildStraight(from, 1);
    const diamond1 = buildDiamond(header);
    const between = buildStraight(diamond1, 1);
    const diamond2 = buildDiamond(between);
    const footer = buildStraight(diamond2, 1);
    connect(diamond2, between);
    connect(diamond1, header);
    connect(footer, from);
    return buildStraight(footer, 1);
}

function buildSmall() {
    blocks = [{inEdges: [], outEdges: []}];
    buildBaseLoop(0);
    connect(0, 2);
}

function buildLarge(outer, middle, inner) {
    let n = 2;
    for (let i = 0; i < outer; i++) {
        connect(2, n + 1);
        n++;
        for (let j = 0; j < middle; j++) {
            const top = n;
            n = buildStraight(n, 1);
            for (let k = 0; k < inner; k++) n = buildBaseLoop(n);
            const bottom = buildStraight(n, 1);
            connect(n, top);
            n = bottom;
        }
        connect(n, 1);
    }
}

// -- union-find

function findSet(id) {
    let root = id;
    while (nodes[root].parent !== root) root = nodes[root].parent;
    let node = nodes[id];
    while (node.parent !== root) {
        const next = node.parent;
        node.parent = root;
        node = nodes[next];
    }
    return root;
}

// -- the search

function walk(block) {
    const me = nodes.length;
    number[block] = me;
    const node = {parent: me, block, loopId: NONE, last: NONE, header: 0, type: NON_HEADER, back: [], other: new Set()};
    nodes.push(node);
    for (const target of blocks[block].outEdges) {
        if (number[target] === NONE) walk(target);
    }
    node.last = nodes.length - 1;
}

function isAncestor(w, v) {
    return w <= v && v <= nodes[w].last;
}

function classifyEdges() {
    for (let w = 0; w < nodes.length; w++) {
        for (const source of blocks[nodes[w].block].inEdges) {
            const v = number[source];
            if (v === NONE) continue;
            if (isAncestor(w, v)) {
                nodes[w].back.push(v);
            } else {
                nodes[w].other.add(v);
            }
        }
    }
}

function contains(list, id) {
    for (let i = 0; i < list.length; i++) {
        if (list[i] === id) return true;
    }
    return false;
}

// The nodes of the loop whose header is w; null when it has too many predecessors.
function collectBody(w) {
    const pool = [];
    const header = nodes[w];
    for (const v of header.back) {
        if (v === w) {
            header.type = SELF;
        } else {
            pool.push(findSet(v));
        }
    }
    if (pool.length > 0) header.type = REDUCIBLE;
    for (let at = 0; at < pool.length; at++) {
        const x = nodes[pool[at]];
        if (x.other.size > OTHER_MAX) return null;
        for (const y of x.other) {
            const root = findSet(y);
            if (!isAncestor(w, root)) {
                header.type = IRREDUCIBLE;
                header.other.add(root);
            } else if (root !== w && !contains(pool, root)) {
                pool.push(root);
            }
        }
    }
    return pool;
}

function makeLoop(w, pool) {
    const header = nodes[w];
    const loop = {header: header.block, isReducible: header.type !== IRREDUCIBLE, parent: NONE, blocks: 0};
    loops.push(loop);
    const id = loops.length - 1;
    header.loopId = id;
    for (const member of pool) {
        const node = nodes[member];
        node.header = w;
        node.parent = w;
        if (node.loopId !== NONE) {
            loops[node.loopId].parent = id;
        } else {
            loop.blocks++;
        }
    }
}

function findLoops() {
    nodes = [];
    number = new Array(blocks.length).fill(NONE);
    walk(0);
    classifyEdges();
    for (let w = nodes.length - 1; w >= 0; w--) {
        const pool = collectBody(w);
        if (pool === null) return;
        if (pool.length > 0 || nodes[w].type === SELF) makeLoop(w, pool);
    }
}

function weigh() {
    let sum = 0;
    for (const loop of loops) {
        let depth = 1;
        for (let parent = loop.parent; parent !== NONE; parent = loops[parent].parent) depth++;
        sum += depth * 10 + loop.blocks;
        if (loop.isReducible) sum += 1000;
    }
    return sum;
}

const rounds = Number(process.argv[2]);
buildSmall();
for (let i = 0; i < 10; i++) findLoops();
buildLarge(10, 10, 5);
let sum = 0;
for (let i = 0; i < rounds; i++) {
    if (i > 0) loops = [];
    findLoops();
    if (i === 0 && (loops.length + 1 !== 1632 || blocks.length !== 5213)) throw new Error(`${loops.length + 1} loops`);
    sum += weigh();
}
console.log(sum);
