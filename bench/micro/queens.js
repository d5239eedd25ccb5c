// SPDX-License-Identifier: MIT
//
// bench/micro/queens.js: recursion with arrays of booleans in outer variables. Counts the ways to place n queens, and
// adds up the columns of the queens in row 0; the count is checked against the published ones.

'use strict';

const columnUsed = [], risingUsed = [], fallingUsed = [];
let firstColumnSum = 0;

function place(row, n, first) {
    if (row === n) {
        firstColumnSum += first;
        return 1;
    }
    let count = 0;
    for (let column = 0; column < n; column++) {
        const rising = row + column, falling = row - column + n;
        if (columnUsed[column] || risingUsed[rising] || fallingUsed[falling]) continue;
        columnUsed[column] = true;
        risingUsed[rising] = true;
        fallingUsed[falling] = true;
        if (row === 0) first = column;
        count += place(row + 1, n, first);
        columnUsed[column] = false;
        risingUsed[rising] = false;
        fallingUsed[falling] = false;
    }
    return count;
}

const n = Number(process.argv[2]);
for (let i = 0; i < n; i++) columnUsed.push(false);
for (let i = 0; i <= 2 * n; i++) {
    risingUsed.push(false);
    fallingUsed.push(false);
}
const count = place(0, n, 0);
const known = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200];
if (n < known.length && count !== known[n]) throw new Error('wrong number of ways');
console.log(count * 10000 + firstColumnSum);
