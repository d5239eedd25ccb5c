// SPDX-License-Identifier: MIT
//
// bench/micro/loops.js: the bare cost of loops. Sums of ints and of floats, counted by `for` and by `while`, against
// their closed forms.

'use strict';

function sumInts(n) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += i;
    return sum;
}

function sumFloats(n) {
    let sum = 0.0, x = 0.0;
    while (x < n) {
        sum += x;
        x += 1.0;
    }
    return sum;
}

function countOdd(n) {
    let count = 0, i = 0;
    while (i < n) {
        if (i % 2 === 1) count++;
        i++;
    }
    return count;
}

const n = Number(process.argv[2]);
const ints = sumInts(n), floats = sumFloats(n), odd = countOdd(n);
if (ints !== n * (n - 1) / 2 || floats !== ints || odd !== Math.floor(n / 2)) throw new Error('a sum is wrong');
console.log(ints + odd);
