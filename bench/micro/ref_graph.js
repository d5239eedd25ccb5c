// SPDX-License-Identifier: MIT
//
// bench/micro/ref_graph.js: shared mutable nodes with cycles between them. Makes a graph of 1000 nodes with three
// edges each and walks it ten times from node 0, n times over. Every walk must reach the same number of nodes.

'use strict';

const NODES = 1000;

function build() {
    const nodes = [];
    for (let i = 0; i < NODES; i++) nodes.push({id: i, mark: 0, edges: []});
    for (let i = 0; i < NODES; i++) {
        for (const step of [1, i * 7 + 3, i * i + 11]) nodes[i].edges.push(nodes[(i + step) % NODES]);
    }
    return nodes[0];
}

function walk(start, mark) {
    start.mark = mark;
    const reached = [start];
    let at = 0, sum = 0;
    while (at < reached.length) {
        const node = reached[at];
        at++;
        sum += node.id;
        for (const target of node.edges) {
            if (target.mark !== mark) {
                target.mark = mark;
                reached.push(target);
            }
        }
    }
    return sum * 1000 + at % 1000;
}

let sum = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
    const start = build();
    const first = walk(start, 1);
    for (let mark = 2; mark <= 10; mark++) {
        if (walk(start, mark) !== first) throw new Error('a walk missed nodes');
    }
    sum += first;
}
console.log(sum);
