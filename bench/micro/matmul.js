// SPDX-License-Identifier: MIT
//
// bench/micro/matmul.js: arrays of arrays of floats. The product of two n by n matrices, the second one transposed
// first; checked against the row sums, (A B) 1 = A (B 1). All entries are small halves, so every sum is exact.

'use strict';

function matrix(n, seed) {
    const rows = [];
    for (let i = 0; i < n; i++) {
        const row = [];
        for (let j = 0; j < n; j++) row.push(((i * 7 + j * seed) % 17 - 8) * 0.5);
        rows.push(row);
    }
    return rows;
}

function transposed(m) {
    const rows = [];
    for (let j = 0; j < m.length; j++) {
        const row = [];
        for (let i = 0; i < m.length; i++) row.push(m[i][j]);
        rows.push(row);
    }
    return rows;
}

function product(a, b) {
    const columns = transposed(b);
    const n = a.length;
    const rows = [];
    for (let i = 0; i < n; i++) {
        const left = a[i];
        const row = [];
        for (let j = 0; j < n; j++) {
            const right = columns[j];
            let sum = 0.0;
            for (let k = 0; k < n; k++) sum += left[k] * right[k];
            row.push(sum);
        }
        rows.push(row);
    }
    return rows;
}

function rowSums(m, weights) {
    const sums = [];
    for (const row of m) {
        let sum = 0.0;
        for (let j = 0; j < row.length; j++) sum += row[j] * weights[j];
        sums.push(sum);
    }
    return sums;
}

const n = Number(process.argv[2]);
const a = matrix(n, 3), b = matrix(n, 5);
const c = product(a, b);
const ones = new Array(n).fill(1.0);
const expected = rowSums(a, rowSums(b, ones));
rowSums(c, ones).forEach((sum, i) => { if (sum !== expected[i]) throw new Error('the product is wrong'); });
let checksum = 0.0;
for (let i = 0; i < n; i++) checksum += c[i][i] * (i + 1);
console.log(Math.trunc(checksum * 4.0));
