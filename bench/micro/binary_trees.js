// SPDX-License-Identifier: MIT
//
// bench/micro/binary_trees.js: allocating and freeing small objects. Many full trees of depths up to n beside one
// that lives; each must have 2^(depth + 1) - 1 nodes. Prints the sum of all nodes.

'use strict';

function build(depth) {
    if (depth === 0) return {left: null, right: null};
    return {left: build(depth - 1), right: build(depth - 1)};
}

function count(node) {
    if (node.left === null) return 1;
    return 1 + count(node.left) + count(node.right);
}

const depthMax = Number(process.argv[2]);
const longLived = build(depthMax);
let sum = 0;
for (let depth = 4; depth <= depthMax; depth += 4) {
    const rounds = 2 ** (depthMax - depth + 2);
    let nodes = 0;
    for (let round = 0; round < rounds; round++) nodes += count(build(depth));
    if (nodes !== rounds * (2 ** (depth + 1) - 1)) throw new Error('wrong number of nodes');
    sum += nodes;
}
console.log(sum + count(longLived));
